//! Points in time: whole nanoseconds, and finer ones, so that a service time of 1/3 of a microsecond does not drift.

use std::time::Duration;

/// The nanoseconds of a duration, at most 584 years.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    (relent::Timestamp::ZERO + duration).as_nanos()
}

/// Nanoseconds with 32 binary places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PreciseTime(u128);

impl PreciseTime {
    pub(crate) const ZERO: PreciseTime = PreciseTime(0);

    pub(crate) const fn from_nanos(nanos: u64) -> PreciseTime {
        PreciseTime((nanos as u128) << 32)
    }

    /// Rounded to the nearest of the 32 places; saturates.
    pub(crate) fn from_float(nanos: f64) -> PreciseTime {
        PreciseTime((nanos * (1u64 << 32) as f64 + 0.5) as u128)
    }

    /// A whole number of seconds divided by a rate, exactly where that is possible.
    pub(crate) fn period(rate_per_s: f64) -> PreciseTime {
        PreciseTime::from_float(1e9 / rate_per_s)
    }

    #[inline]
    pub(crate) const fn nanos(self) -> u64 {
        let nanos = self.0 >> 32;
        if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
    }

    #[inline]
    pub(crate) const fn plus(self, other: PreciseTime) -> PreciseTime {
        PreciseTime(self.0.saturating_add(other.0))
    }

    pub(crate) const fn minus(self, other: PreciseTime) -> PreciseTime {
        PreciseTime(self.0.saturating_sub(other.0))
    }

    /// Work that so many do together; nobody is as many as one.
    pub(crate) fn shared_by(self, workers: u32) -> PreciseTime {
        PreciseTime(self.0 / u128::from(workers.max(1)))
    }

    pub(crate) fn times(self, factor: f64) -> PreciseTime {
        PreciseTime((self.0 as f64 * factor) as u128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_thirds_are_a_third_of_a_million() {
        let third = PreciseTime::period(3.0);
        let mut sum = PreciseTime::ZERO;
        for _ in 0..3_000_000 {
            sum = sum.plus(third);
        }
        assert!(sum.nanos().abs_diff(1_000_000_000_000_000) <= 1, "{}", sum.nanos());
        assert_eq!(PreciseTime::period(5000.0), PreciseTime::from_nanos(200_000));
    }

    #[test]
    fn nothing_wraps() {
        assert_eq!(PreciseTime::from_float(f64::INFINITY).nanos(), u64::MAX);
        assert_eq!(PreciseTime::from_float(f64::INFINITY).plus(PreciseTime::from_nanos(1)).nanos(), u64::MAX);
        assert_eq!(PreciseTime::ZERO.minus(PreciseTime::from_nanos(1)), PreciseTime::ZERO);
    }
}
