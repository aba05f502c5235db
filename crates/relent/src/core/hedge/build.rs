//! How a hedge is made.

use super::{Hedge, HedgeSettings};
use crate::core::{invalid::Invalid, latency::Latencies};
use core::time::Duration;

impl HedgeSettings {
    /// The hedge of these settings.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the setting that makes no sense, why, and what to write instead.
    pub const fn hedge(self) -> Result<Hedge, Invalid> {
        match self.check() {
            Ok(()) => Ok(Hedge { settings: self, latencies: Latencies::new() }),
            Err(invalid) => Err(invalid),
        }
    }
}

impl Hedge {
    #[track_caller]
    const fn must(self) -> Hedge {
        match self.settings.check() {
            Ok(()) => self,
            Err(invalid) => invalid.refuse(),
        }
    }

    /// A hedge starts this long after the attempt before it.
    ///
    /// # Panics
    ///
    /// If it is zero. In a `const`, the panic is a compile error. The same holds for every builder.
    ///
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Hedge = relent::Hedge::after(Duration::ZERO);
    /// ```
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// const HEDGE: Hedge = Hedge::after(Duration::from_millis(50));
    /// assert_eq!(HEDGE.delay(), Some(Duration::from_millis(50)));
    /// ```
    #[track_caller]
    pub const fn after(time: Duration) -> Hedge {
        let settings = HedgeSettings { after: Some(time), ..HedgeSettings::DEFAULT };
        Hedge { settings, latencies: Latencies::new() }.must()
    }

    /// A hedge starts after this quantile of the latencies [observed](Hedge::observe), of which those above 274 s (2^38 ns) count as
    /// that: above 0 and below 1. None
    /// starts before there are enough of them (100, see [`min_samples`](Hedge::min_samples)), unless a fixed time is
    /// given too, by [`or_after`](Hedge::or_after).
    ///
    /// # Panics
    ///
    /// If it is not above 0 and below 1.
    ///
    /// ```compile_fail
    /// const NO: relent::Hedge = relent::Hedge::quantile(1.0);
    /// ```
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// let hedge = Hedge::quantile(0.95).min_samples(10);
    /// assert_eq!(hedge.delay(), None, "nothing is known yet");
    /// for _ in 0..10 {
    ///     hedge.observe(Duration::from_millis(20));
    /// }
    /// let learned = hedge.delay().unwrap();
    /// assert!(learned >= Duration::from_millis(19) && learned <= Duration::from_millis(22), "{learned:?}");
    /// ```
    #[track_caller]
    pub const fn quantile(quantile: f64) -> Hedge {
        let settings = HedgeSettings { quantile: Some(quantile), ..HedgeSettings::DEFAULT };
        Hedge { settings, latencies: Latencies::new() }.must()
    }

    /// The time to take while there are not enough samples for the quantile.
    ///
    /// # Panics
    ///
    /// If it is zero.
    ///
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Hedge = relent::Hedge::quantile(0.95).or_after(Duration::ZERO);
    /// ```
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// let hedge = Hedge::quantile(0.95).or_after(Duration::from_millis(100));
    /// assert_eq!(hedge.delay(), Some(Duration::from_millis(100)), "until there are samples");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn or_after(mut self, time: Duration) -> Hedge {
        self.settings.after = Some(time);
        self.must()
    }

    /// The most hedges of one call, the first attempt not included: 1 to 255. Default 1.
    ///
    /// # Panics
    ///
    /// If it is not 1 to 255.
    ///
    /// ```compile_fail
    /// const NO: relent::Hedge = relent::Hedge::quantile(0.95).at_most(256);
    /// ```
    ///
    /// ```
    /// # use relent::{Hedge, Timestamp};
    /// # use std::time::Duration;
    /// let (hedge, now) = (Hedge::after(Duration::from_millis(50)).at_most(2), Timestamp::ZERO);
    /// let mut call = hedge.start(now);
    /// call.begun(now);
    /// call.begun(now);
    /// assert_eq!((call.in_flight(), call.due()), (3, None));
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn at_most(mut self, hedges: u32) -> Hedge {
        self.settings.at_most = hedges;
        self.must()
    }

    /// No quantile is taken of fewer latencies than this: 1 to 2048. Default 100.
    ///
    /// # Panics
    ///
    /// If it is not 1 to 2048.
    ///
    /// ```compile_fail
    /// const NO: relent::Hedge = relent::Hedge::quantile(0.95).min_samples(0);
    /// ```
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// let hedge = Hedge::quantile(0.5).min_samples(2);
    /// hedge.observe(Duration::from_millis(20));
    /// assert_eq!(hedge.delay(), None);
    /// hedge.observe(Duration::from_millis(20));
    /// assert!(hedge.delay().is_some());
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn min_samples(mut self, samples: u32) -> Hedge {
        self.settings.min_samples = samples;
        self.must()
    }
}
