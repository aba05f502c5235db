//! How a breaker is made: what it is told, one thing at a time.

use super::{
    Breaker,
    settings::{BreakerSettings, BreakerWindow},
    window::Shape,
};
use crate::core::settings::Invalid;
use core::time::Duration;

impl Breaker {
    pub(super) const fn must(mut self) -> Breaker {
        self.shape = Shape::of(&self.settings);
        self.plain = matches!(self.shape, Shape::None);
        match self.settings.check() {
            Ok(()) => self,
            Err(invalid) => panic!("{}", invalid.problem),
        }
    }

    /// Trips after this many failures in a row: at least 1.
    ///
    /// # Panics
    ///
    /// If it is zero. In a `const`, the panic is a compile error. The same holds for every builder.
    pub const fn consecutive(failures: u32) -> Breaker {
        Breaker::of(BreakerSettings { consecutive: Some(failures), ..BreakerSettings::DEFAULT }).must()
    }

    /// Trips after this many failures in the window, 10 s unless told otherwise, in a row or not: at least 1.
    ///
    /// # Panics
    ///
    /// If it is zero.
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// const TEN_A_MINUTE: Breaker = Breaker::failures(10).window(Duration::from_secs(60));
    /// ```
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
    pub const fn share(share: f64) -> Breaker {
        Breaker::of(BreakerSettings { share: Some(share), ..BreakerSettings::DEFAULT }).must()
    }

    /// Trips when this share of the calls in the window took longer than `after`, whether they succeeded or not.
    ///
    /// # Panics
    ///
    /// If `after` is zero or the share is not above 0 and up to 1.
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// /// Half of the calls take longer than two seconds.
    /// const TOO_SLOW: Breaker = Breaker::slow(Duration::from_secs(2), 0.5);
    /// ```
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
    /// ```
    /// # use relent::Breaker;
    /// const EITHER: Breaker = Breaker::share(0.5).or_consecutive(5);
    /// assert_eq!(EITHER.settings().consecutive, Some(5));
    /// ```
    #[must_use]
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
    /// ```
    /// # use relent::Breaker;
    /// const EITHER: Breaker = Breaker::consecutive(5).or_failures(20);
    /// assert_eq!(EITHER.settings().failures, Some(20));
    /// ```
    #[must_use]
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
    pub const fn or_share(mut self, share: f64) -> Breaker {
        self.settings.share = Some(share);
        self.must()
    }

    /// Also trips when this share of the calls in the window took longer than `after`.
    ///
    /// # Panics
    ///
    /// If `after` is zero or the share is not above 0 and up to 1.
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
    /// ```
    /// # use relent::{Breaker, BreakerWindow};
    /// # use std::time::Duration;
    /// const MINUTE: Duration = Duration::from_secs(60);
    /// assert_eq!(Breaker::share(0.5).window(MINUTE).settings().window, BreakerWindow::Time(MINUTE));
    /// ```
    #[must_use]
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
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let bank = Breaker::share(0.5).min_calls(100);
    /// let now = Timestamp::ZERO;
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// assert_eq!(bank.state(), BreakerState::Closed, "one of one failed, which says nothing yet");
    /// ```
    #[must_use]
    pub const fn min_calls(mut self, calls: u32) -> Breaker {
        self.settings.min_calls = Some(calls);
        self.must()
    }

    /// How long it is open before it lets probes through. Default 30 s.
    ///
    /// # Panics
    ///
    /// If it is zero, or longer than `open_at_most`.
    #[must_use]
    pub const fn open_for(mut self, time: Duration) -> Breaker {
        self.settings.open_for = time;
        self.must()
    }

    /// The open time grows by this factor at each re-trip, up to [`open_at_most`](Breaker::open_at_most). Default 1.
    ///
    /// # Panics
    ///
    /// If it is less than 1 or not finite.
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// let bank = Breaker::consecutive(5).open_for(Duration::from_secs(5)).factor(2.0);
    /// let open: Vec<u64> = (0..4).map(|level| bank.open_time(level, 0).as_secs()).collect();
    /// assert_eq!(open, [5, 10, 20, 40]);
    /// ```
    #[must_use]
    pub const fn factor(mut self, factor: f64) -> Breaker {
        self.settings.factor = factor;
        self.must()
    }

    /// The longest open time, jitter included. Default ten times `open_for`, if there is a factor.
    ///
    /// A breaker that stays closed this long has forgotten its trips: the next one is open for `open_for` again.
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// const PATIENT: Breaker = Breaker::consecutive(5)
    ///     .open_for(Duration::from_secs(5))
    ///     .factor(2.0)
    ///     .open_at_most(Duration::from_secs(300))
    ///     .jitter(0.2);
    /// ```
    ///
    /// # Panics
    ///
    /// If it is shorter than `open_for` and its jitter.
    #[must_use]
    pub const fn open_at_most(mut self, time: Duration) -> Breaker {
        self.settings.open_at_most = Some(time);
        self.must()
    }

    /// Up to this share of the open time is added, by draw, so that clients of one outage do not probe together:
    /// 0 to 1. Default 0. It never makes the open time shorter than without.
    ///
    /// # Panics
    ///
    /// If it is not between 0 and 1, or does not fit under `open_at_most`.
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// let bank = Breaker::consecutive(5).open_for(Duration::from_secs(10)).jitter(0.2);
    /// assert_eq!(bank.open_time(0, 0), Duration::from_secs(10));
    /// assert_eq!(bank.open_time(0, 1 << 63), Duration::from_secs(11));
    /// ```
    #[must_use]
    pub const fn jitter(mut self, share: f64) -> Breaker {
        self.settings.jitter = share;
        self.must()
    }

    /// The most probes in flight while half-open: 1 to 4095. Default 1.
    ///
    /// # Panics
    ///
    /// If it is not 1 to 4095.
    ///
    /// ```
    /// # use relent::{Breaker, Timestamp};
    /// # use std::time::Duration;
    /// let bank = Breaker::consecutive(1).open_for(Duration::from_secs(1)).probes(2).close_after(2);
    /// let mut now = Timestamp::ZERO;
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// now = now + Duration::from_secs(1);
    /// let (first, second, third) = (bank.permit(now, 0), bank.permit(now, 0), bank.permit(now, 0));
    /// assert!(first.is_ok() && second.is_ok() && third.is_err());
    /// ```
    #[must_use]
    pub const fn probes(mut self, most: u32) -> Breaker {
        self.settings.probes = most;
        self.must()
    }

    /// Closes after this many probes have succeeded: 1 to 4095. Default 1. No more probes are let through than it
    /// takes.
    ///
    /// # Panics
    ///
    /// If it is not 1 to 4095.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let bank = Breaker::consecutive(1).open_for(Duration::from_secs(1)).close_after(2);
    /// let mut now = Timestamp::ZERO;
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// now = now + Duration::from_secs(1);
    /// bank.permit(now, 0).unwrap().succeeded(now, Duration::ZERO, 0);
    /// assert_eq!(bank.state(), BreakerState::HalfOpen);
    /// bank.permit(now, 0).unwrap().succeeded(now, Duration::ZERO, 0);
    /// assert_eq!(bank.state(), BreakerState::Closed);
    /// ```
    #[must_use]
    pub const fn close_after(mut self, successes: u32) -> Breaker {
        self.settings.close_after = successes;
        self.must()
    }

    /// Waits for `close_after` outcomes of probes, and opens again if this share of them failed, instead of at the
    /// first failure: above 0 and up to 1.
    ///
    /// # Panics
    ///
    /// If it is not above 0 and up to 1.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let bank = Breaker::consecutive(1).open_for(Duration::from_secs(1)).close_after(4).reopen_share(0.5);
    /// let mut now = Timestamp::ZERO;
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// now = now + Duration::from_secs(1);
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// assert_eq!(bank.state(), BreakerState::HalfOpen, "one probe may fail");
    /// for _ in 0..3 {
    ///     bank.permit(now, 0).unwrap().succeeded(now, Duration::ZERO, 0);
    /// }
    /// assert_eq!(bank.state(), BreakerState::Closed);
    /// ```
    #[must_use]
    pub const fn reopen_share(mut self, share: f64) -> Breaker {
        self.settings.reopen_share = Some(share);
        self.must()
    }

    /// Counts probes that have told nothing for so long as lost, and lets others through. Default: waits for them.
    ///
    /// # Panics
    ///
    /// If it is zero.
    ///
    /// ```
    /// # use relent::{Breaker, Timestamp};
    /// # use std::time::Duration;
    /// let second = Duration::from_secs(1);
    /// let bank = Breaker::consecutive(1).open_for(second).probe_again_after(5 * second);
    /// let mut now = Timestamp::ZERO;
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// now = now + second;
    /// let lost = bank.permit(now, 0).unwrap();
    /// assert!(bank.permit(now + 4 * second, 0).is_err());
    /// assert!(bank.permit(now + 5 * second, 0).is_ok());
    /// # drop(lost);
    /// ```
    #[must_use]
    pub const fn probe_again_after(mut self, time: Duration) -> Breaker {
        self.settings.probe_again_after = Some(time);
        self.must()
    }

    /// After the probes, the share that is let through rises from a tenth (or [`ramp_from`](Breaker::ramp_from)) to
    /// all over this time, decided by draw. Default: no ramp.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let second = Duration::from_secs(1);
    /// let bank = Breaker::consecutive(1).open_for(second).ramp(10 * second);
    /// let mut now = Timestamp::ZERO;
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// now = now + second;
    /// bank.permit(now, 0).unwrap().succeeded(now, Duration::ZERO, 0);
    /// assert_eq!(bank.state(), BreakerState::Ramp);
    /// let through = |at| (0..10).filter(|k| bank.permit(at, u64::MAX / 10 * k).is_ok()).count();
    /// let (early, late) = (through(now), through(now + 5 * second));
    /// assert!(early <= 2 && (5..=6).contains(&late), "a tenth, then half and more: {early}, {late}");
    /// ```
    #[must_use]
    pub const fn ramp(mut self, time: Duration) -> Breaker {
        self.settings.ramp = time;
        self.must()
    }

    /// The share that is let through at the start of the ramp: 0 to 1. Default 0.1.
    ///
    /// # Panics
    ///
    /// If it is not between 0 and 1.
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// const HALF_AT_ONCE: Breaker = Breaker::consecutive(5).ramp(Duration::from_secs(10)).ramp_from(0.5);
    /// ```
    #[must_use]
    pub const fn ramp_from(mut self, share: f64) -> Breaker {
        self.settings.ramp_from = share;
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
