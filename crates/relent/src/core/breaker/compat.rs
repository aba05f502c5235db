//! Other systems' breakers by name, with their defaults.

use super::{Breaker, BreakerQuirks, BreakerSettings, BreakerWindow};
use core::time::Duration;

impl Breaker {
    /// The names that [`Breaker::compat`] knows.
    pub const COMPAT: &'static [&'static str] = &["cockatiel", "gobreaker", "polly", "resilience4j"];

    /// Another system's breaker by name, with its defaults; `None` if the name is unknown. Builders go on from there.
    ///
    /// | name | what it does |
    /// |---|---|
    /// | `cockatiel` | 3.2.1, `ConsecutiveBreaker(5)`, `halfOpenAfter` 30 s (it has no defaults: these are its examples'); one probe; its other breakers by [`BreakerQuirks::Cockatiel`] |
    /// | `gobreaker` | v2: trips at the 6th failure in a row (more than 5), 60 s, half-open strictly after, `MaxRequests` 1; `Interval` is the [`window`](Breaker::window) |
    /// | `polly` | v8: a tenth of at least 100 calls in 30 s, open 5 s, one probe, which is given up for another after the open time |
    /// | `resilience4j` | half of the last 100 calls, or all of them slower than 60 s; open 60 s; 10 probes, and half of them decide |
    ///
    /// Proven by traces of the real packages: `cockatiel` and `gobreaker`. From their documentation: the others.
    ///
    /// ```
    /// use relent::Breaker;
    /// use std::time::Duration;
    ///
    /// let breaker = Breaker::compat("gobreaker").unwrap();
    /// assert_eq!(breaker.settings().consecutive, Some(6));
    /// assert!(Breaker::compat("fuse").is_none());
    /// ```
    pub const fn compat(name: &str) -> Option<Breaker> {
        let settings = match name.as_bytes() {
            b"cockatiel" => COCKATIEL,
            b"gobreaker" => GOBREAKER,
            b"polly" => POLLY,
            b"resilience4j" => RESILIENCE4J,
            _ => return None,
        };
        Some(Breaker::of(settings).must())
    }
}

const NONE: BreakerSettings = BreakerSettings::DEFAULT;

const COCKATIEL: BreakerSettings = BreakerSettings { consecutive: Some(5), quirks: BreakerQuirks::Cockatiel, ..NONE };

const GOBREAKER: BreakerSettings = BreakerSettings {
    consecutive: Some(6),
    open_for: Duration::from_secs(60),
    window: BreakerWindow::Time(Duration::MAX),
    quirks: BreakerQuirks::Gobreaker,
    ..NONE
};

const POLLY: BreakerSettings = BreakerSettings {
    share: Some(0.1),
    window: BreakerWindow::Time(Duration::from_secs(30)),
    min_calls: Some(100),
    open_for: Duration::from_secs(5),
    probe_again_after: Some(Duration::from_secs(5)),
    ..NONE
};

const RESILIENCE4J: BreakerSettings = BreakerSettings {
    share: Some(0.5),
    slow_after: Some(Duration::from_secs(60)),
    slow_share: 1.0,
    window: BreakerWindow::Calls(100),
    min_calls: Some(100),
    open_for: Duration::from_secs(60),
    probes: 10,
    close_after: 10,
    reopen_share: Some(0.5),
    ..NONE
};
