//! When a holder does what: everything is over before somebody else can have the lease.

use std::time::{Duration, Instant};

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

/// The later end of a lease that was asked for at a time.
pub(super) fn at(asked: Instant, after: Duration) -> Instant {
    // No lease is longer than a year.
    asked.checked_add(after).unwrap_or(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

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
