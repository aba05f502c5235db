//! When a holder does what: everything is over before somebody else can have the lease.

use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// A clock that all processes of this machine share, that nobody sets, and that goes on while the machine sleeps, as the store's
/// does.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// A point in time on that clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(Duration);

impl Moment {
    pub(super) fn now() -> Moment {
        Moment(clock_gettime(CLOCK).map(Duration::from).unwrap_or_default())
    }

    pub(super) const fn from_millis(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    pub(super) const fn as_millis(self) -> u128 {
        self.0.as_millis()
    }

    pub(super) const fn plus(self, time: Duration) -> Moment {
        Moment(self.0.saturating_add(time))
    }

    /// How long it is from `now` until then; zero if that is over.
    pub(super) const fn after(self, now: Moment) -> Duration {
        self.0.saturating_sub(now.0)
    }

    /// The same on the clock by which is waited, if the machine does not sleep until then.
    pub(super) fn instant(self) -> Instant {
        // No lease is longer than a year.
        let now = Instant::now();
        now.checked_add(self.after(Moment::now())).unwrap_or(now)
    }
}

/// The times of a lease, counted from when its last renewal was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) ttl: Duration,
    /// How long the command has to end, if there is so much.
    pub(super) grace: Duration,
}

impl Times {
    /// From then on the command must be gone: clocks differ by less than the tenth that is left.
    pub(super) fn kill(&self) -> Duration {
        self.ttl - self.ttl / 10
    }

    /// From then on it is told to end: renewing has had more than a second chance.
    pub(super) fn tell(&self) -> Duration {
        self.kill() - self.grace.min(self.ttl * 3 / 10)
    }

    /// After this it is renewed.
    pub(super) fn renew(&self) -> Duration {
        self.ttl / 3
    }

    /// After this it is renewed again, if that failed.
    pub(super) fn again(&self) -> Duration {
        self.ttl / 30
    }

    /// How long one renewal may take.
    pub(super) fn patience(&self) -> Duration {
        self.ttl / 6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_that_of_all_processes_and_over_when_it_is() {
        let (now, second) = (Moment::now(), Duration::from_secs(1));
        let later = now.plus(second);
        assert_eq!((later.after(now), now.after(later)), (second, Duration::ZERO));
        assert!(now.instant() <= Instant::now() && later.instant() <= Instant::now() + second);
        let told = Moment::from_millis(u64::try_from(later.as_millis()).unwrap());
        assert!(told <= later && later < told.plus(Duration::from_millis(1)));
        assert_eq!(
            Moment::from_millis(7).plus(Duration::MAX).after(now),
            Duration::MAX - now.after(Moment(Duration::ZERO))
        );
    }

    #[test]
    fn renewing_comes_before_telling_before_killing_before_the_end() {
        for (ttl, grace) in [(100, 0), (100, 10_000), (30_000, 10_000), (30_000, 100), (31_622_400_000, 1)] {
            let times = Times { ttl: Duration::from_millis(ttl), grace: Duration::from_millis(grace) };
            assert!(times.renew() + times.patience() + times.again() < times.tell(), "{times:?}");
            assert!(times.tell() <= times.kill() && times.kill() < times.ttl, "{times:?}");
            assert!(times.kill() - times.tell() <= times.grace, "{times:?}");
        }
        let usual = Times { ttl: Duration::from_secs(30), grace: Duration::from_secs(10) };
        assert_eq!((usual.tell(), usual.kill()), (Duration::from_secs(18), Duration::from_secs(27)));
    }
}
