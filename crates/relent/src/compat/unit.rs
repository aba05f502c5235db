//! Units: what the number 1 of another system's delay means.

use core::time::Duration;

/// What the number 1 means in a system's arithmetic. Rounding and whole numbers happen in this unit.
///
/// ```
/// use relent::compat::Unit;
/// use std::time::Duration;
///
/// assert_eq!(Unit::Ticks.nanos(), 100);
/// assert_eq!(Unit::Seconds.duration(1.5), Duration::from_millis(1500));
/// assert_eq!(Unit::Millis.whole(-1), Duration::ZERO);
/// assert_eq!(Unit::Millis.of(Duration::from_secs(2)), 2000.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds, as in Python.
    Seconds,
    /// Milliseconds, as in JavaScript and on the JVM.
    Millis,
    /// Ticks of 100 ns, as in .NET.
    Ticks,
    /// Nanoseconds, as in Go.
    Nanos,
}

impl Unit {
    /// The nanoseconds of one unit.
    pub const fn nanos(self) -> u64 {
        match self {
            Unit::Seconds => 1_000_000_000,
            Unit::Millis => 1_000_000,
            Unit::Ticks => 100,
            Unit::Nanos => 1,
        }
    }

    /// A delay in this unit, to the nearest nanosecond. Less than nothing, and what is no number, is zero; more than
    /// 584 years is 584 years.
    pub fn duration(self, value: f64) -> Duration {
        let nanos = value * self.nanos() as f64;
        // The cast saturates, and takes NaN to zero.
        Duration::from_nanos(if nanos < (1u64 << 52) as f64 { (nanos + 0.5) as u64 } else { nanos as u64 })
    }

    /// A delay of whole units, zero if negative.
    pub fn whole(self, value: i64) -> Duration {
        Duration::from_nanos(u64::try_from(value).unwrap_or(0).saturating_mul(self.nanos()))
    }

    /// A duration as a number of units.
    pub fn of(self, duration: Duration) -> f64 {
        duration.as_nanos() as f64 / self.nanos() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_no_delay_becomes_one() {
        for value in [f64::NAN, f64::NEG_INFINITY, -1.0, -0.0, 0.0] {
            assert_eq!(Unit::Seconds.duration(value), Duration::ZERO);
        }
        assert_eq!(Unit::Seconds.duration(f64::INFINITY), Duration::from_nanos(u64::MAX));
        assert_eq!(Unit::Seconds.whole(i64::MIN), Duration::ZERO);
        assert_eq!(Unit::Millis.whole(i64::MAX), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn fractions_go_to_the_nearest_nanosecond() {
        assert_eq!(Unit::Seconds.duration(0.1), Duration::from_millis(100));
        assert_eq!(Unit::Millis.duration(1690.0000000000002), Duration::from_millis(1690));
        assert_eq!(Unit::Ticks.duration(13771822.0), Duration::from_nanos(1_377_182_200));
        assert_eq!(Unit::Nanos.duration(4_611_686_018_427_387_904.0).as_nanos(), 1 << 62);
        assert_eq!(Unit::Seconds.of(Duration::from_millis(1500)), 1.5);
    }
}
