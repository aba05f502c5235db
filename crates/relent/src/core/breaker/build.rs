//! How a breaker is made: what trips it. What comes after that is in `recovery.rs`.

use super::{
    Breaker,
    settings::{BreakerSettings, BreakerWindow},
    window::Shape,
};
use crate::core::invalid::Invalid;
use core::time::Duration;

impl Breaker {
    #[track_caller]
    pub(super) const fn must(mut self) -> Breaker {
        self.shape = Shape::of(&self.settings);
        self.plain = matches!(self.shape, Shape::None);
        match self.settings.check() {
            Ok(()) => self,
            Err(invalid) => invalid.refuse(),
        }
    }

    /// Trips after this many failures in a row: at least 1.
    ///
    /// # Panics
    ///
    /// If it is zero. In a `const`, the panic is a compile error. The same holds for every builder.
    ///
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::consecutive(0);
    /// ```
    #[track_caller]
    pub const fn consecutive(failures: u32) -> Breaker {
        Breaker::of(BreakerSettings { consecutive: Some(failures), ..BreakerSettings::DEFAULT }).must()
    }

    /// Trips after this many failures in the window, 10 s unless told otherwise, in a row or not: at least 1.
    ///
    /// # Panics
    ///
    /// If it is zero.
    ///
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::failures(0);
    /// ```
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// const TEN_A_MINUTE: Breaker = Breaker::failures(10).window(Duration::from_secs(60));
    /// ```
    #[track_caller]
    pub const fn failures(failures: u32) -> Breaker {
        Breaker::of(BreakerSettings { failures: Some(failures), ..BreakerSettings::DEFAULT }).must()
    }

    /// Trips when this share of the calls in the window failed: above 0 and up to 1.
    ///
    /// The window is 10 s and the least volume 20 calls: see [`window`](Breaker::window),
    /// [`window_calls`](Breaker::window_calls) and [`min_calls`](Breaker::min_calls).
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// const HALF: Breaker = Breaker::share(0.5).window(Duration::from_secs(30)).min_calls(100);
    /// const OF_THE_LAST_HUNDRED: Breaker = Breaker::share(0.5).window_calls(100);
    /// ```
    ///
    /// # Panics
    ///
    /// If it is not above 0 and up to 1.
    ///
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::share(1.1);
    /// ```
    #[track_caller]
    pub const fn share(share: f64) -> Breaker {
        Breaker::of(BreakerSettings { share: Some(share), ..BreakerSettings::DEFAULT }).must()
    }

    /// Trips when this share of the calls in the window took longer than `after`, whether they succeeded or not.
    ///
    /// # Panics
    ///
    /// If `after` is zero or the share is not above 0 and up to 1.
    ///
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Breaker = relent::Breaker::slow(Duration::ZERO, 0.5);
    /// ```
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// /// Half of the calls take longer than two seconds.
    /// const TOO_SLOW: Breaker = Breaker::slow(Duration::from_secs(2), 0.5);
    /// ```
    #[track_caller]
    pub const fn slow(after: Duration, share: f64) -> Breaker {
        let settings = BreakerSettings { slow_after: Some(after), slow_share: share, ..BreakerSettings::DEFAULT };
        Breaker::of(settings).must()
    }

    /// Also trips after this many failures in a row.
    ///
    /// # Panics
    ///
    /// If it is zero.
    ///
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::share(0.5).or_consecutive(0);
    /// ```
    ///
    /// ```
    /// # use relent::Breaker;
    /// const EITHER: Breaker = Breaker::share(0.5).or_consecutive(5);
    /// assert_eq!(EITHER.settings().consecutive, Some(5));
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn or_consecutive(mut self, failures: u32) -> Breaker {
        self.settings.consecutive = Some(failures);
        self.must()
    }

    /// Also trips after this many failures in the window.
    ///
    /// # Panics
    ///
    /// If it is zero, or more than a window of calls holds.
    ///
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::share(0.5).or_failures(0);
    /// ```
    ///
    /// ```
    /// # use relent::Breaker;
    /// const EITHER: Breaker = Breaker::consecutive(5).or_failures(20);
    /// assert_eq!(EITHER.settings().failures, Some(20));
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn or_failures(mut self, failures: u32) -> Breaker {
        self.settings.failures = Some(failures);
        self.must()
    }

    /// Also trips when this share of the calls in the window failed.
    ///
    /// # Panics
    ///
    /// If it is not above 0 and up to 1.
    ///
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::consecutive(5).or_share(0.0);
    /// ```
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let bank = Breaker::consecutive(5).or_share(0.5).min_calls(4);
    /// let now = Timestamp::ZERO;
    /// for call in 0..4 {
    ///     let permit = bank.permit(now, 0).unwrap();
    ///     let _ = match call % 2 {
    ///         0 => permit.succeeded(now, Duration::ZERO, 0),
    ///         _ => permit.failed(now, Duration::ZERO, 0),
    ///     };
    /// }
    /// assert_eq!(bank.state(), BreakerState::Open, "never five in a row, but two of four");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn or_share(mut self, share: f64) -> Breaker {
        self.settings.share = Some(share);
        self.must()
    }

    /// Also trips when this share of the calls in the window took longer than `after`. A probe that takes longer has failed, whatever it brings.
    ///
    /// # Panics
    ///
    /// If `after` is zero or the share is not above 0 and up to 1.
    ///
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Breaker = relent::Breaker::consecutive(5).or_slow(Duration::from_secs(2), f64::NAN);
    /// ```
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let bank = Breaker::consecutive(5).or_slow(Duration::from_secs(2), 0.8).min_calls(1);
    /// let now = Timestamp::ZERO;
    /// bank.permit(now, 0).unwrap().succeeded(now, Duration::from_secs(3), 0);
    /// assert_eq!(bank.state(), BreakerState::Open, "it succeeded, after 3 s");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn or_slow(mut self, after: Duration, share: f64) -> Breaker {
        self.settings.slow_after = Some(after);
        self.settings.slow_share = share;
        self.must()
    }

    /// Shares are taken over this last time, in ten slices: a slice is forgotten at a time.
    ///
    /// # Panics
    ///
    /// If it is less than 10 ns.
    ///
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Breaker = relent::Breaker::share(0.5).window(Duration::ZERO);
    /// ```
    ///
    /// ```
    /// # use relent::{Breaker, BreakerWindow};
    /// # use std::time::Duration;
    /// const MINUTE: Duration = Duration::from_secs(60);
    /// assert_eq!(Breaker::share(0.5).window(MINUTE).settings().window, BreakerWindow::Time(MINUTE));
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn window(mut self, time: Duration) -> Breaker {
        self.settings.window = BreakerWindow::Time(time);
        self.must()
    }

    /// Shares are taken over the last calls, exactly: 1 to 1024.
    ///
    /// # Panics
    ///
    /// If it is not 1 to 1024, or less than `min_calls` or `failures`.
    ///
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::share(0.5).window_calls(1025);
    /// ```
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let bank = Breaker::share(0.5).window_calls(2);
    /// let now = Timestamp::ZERO;
    /// bank.permit(now, 0).unwrap().succeeded(now, Duration::ZERO, 0);
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// assert_eq!(bank.state(), BreakerState::Open, "one of the last two");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn window_calls(mut self, calls: u32) -> Breaker {
        self.settings.window = BreakerWindow::Calls(calls);
        self.must()
    }

    /// No share trips with fewer calls in the window than this. Default 20, or the window if that is less.
    ///
    /// # Panics
    ///
    /// If it is zero, or more than a window of calls holds.
    ///
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::share(0.5).min_calls(0);
    /// ```
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let bank = Breaker::share(0.5).min_calls(100);
    /// let now = Timestamp::ZERO;
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// assert_eq!(bank.state(), BreakerState::Closed, "one of one failed, which says nothing yet");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn min_calls(mut self, calls: u32) -> Breaker {
        self.settings.min_calls = Some(calls);
        self.must()
    }
}

impl BreakerSettings {
    /// A closed breaker of these settings.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the setting that makes no sense, why, and what to write instead.
    pub const fn breaker(self) -> Result<Breaker, Invalid> {
        match self.check() {
            Ok(()) => Ok(Breaker::of(self)),
            Err(invalid) => Err(invalid),
        }
    }
}

impl TryFrom<BreakerSettings> for Breaker {
    type Error = Invalid;

    fn try_from(settings: BreakerSettings) -> Result<Breaker, Invalid> {
        settings.breaker()
    }
}
