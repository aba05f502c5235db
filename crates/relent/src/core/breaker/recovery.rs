//! How a breaker is made: how long it stays open, and how it finds out that the far side is well again.

use super::Breaker;
use core::time::Duration;

impl Breaker {
    /// How long it is open before it lets probes through. Default 30 s.
    ///
    /// # Panics
    ///
    /// If it is zero, or longer than `open_at_most`.
    ///
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Breaker = relent::Breaker::consecutive(5).open_for(Duration::ZERO);
    /// ```
    #[must_use]
    #[track_caller]
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
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::consecutive(5).factor(f64::INFINITY);
    /// ```
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// let bank = Breaker::consecutive(5).open_for(Duration::from_secs(5)).factor(2.0);
    /// let open: Vec<u64> = (0..4).map(|level| bank.open_time(level, 0).as_secs()).collect();
    /// assert_eq!(open, [5, 10, 20, 40]);
    /// ```
    #[must_use]
    #[track_caller]
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
    ///
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Breaker = relent::Breaker::consecutive(5).open_at_most(Duration::from_secs(29));
    /// ```
    #[must_use]
    #[track_caller]
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
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::consecutive(5).jitter(f64::NAN);
    /// ```
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// let bank = Breaker::consecutive(5).open_for(Duration::from_secs(10)).jitter(0.2);
    /// assert_eq!(bank.open_time(0, 0), Duration::from_secs(10));
    /// assert_eq!(bank.open_time(0, 1 << 63), Duration::from_secs(11));
    /// ```
    #[must_use]
    #[track_caller]
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
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::consecutive(5).probes(4096);
    /// ```
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
    #[track_caller]
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
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::consecutive(5).close_after(0);
    /// ```
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
    #[track_caller]
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
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::consecutive(5).reopen_share(0.0);
    /// ```
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
    #[track_caller]
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
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Breaker = relent::Breaker::consecutive(5).probe_again_after(Duration::ZERO);
    /// ```
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
    #[track_caller]
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
    #[track_caller]
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
    /// ```compile_fail
    /// const NO: relent::Breaker = relent::Breaker::consecutive(5).ramp_from(f64::NAN);
    /// ```
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// const HALF_AT_ONCE: Breaker = Breaker::consecutive(5).ramp(Duration::from_secs(10)).ramp_from(0.5);
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn ramp_from(mut self, share: f64) -> Breaker {
        self.settings.ramp_from = share;
        self.must()
    }
}
