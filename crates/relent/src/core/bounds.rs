//! The least, mean and greatest of a random duration.

use super::jitter::Range;
use core::time::Duration;

/// The least, mean and greatest of a random duration.
///
/// ```
/// use relent::{Bounds, Policy};
/// use std::time::Duration;
///
/// let policy = Policy::exponential(Duration::from_secs(1));
/// let Bounds { min, mean, max } = policy.schedule().next().unwrap().delay;
/// assert_eq!((min, mean, max), (Duration::ZERO, Duration::from_millis(500), Duration::from_secs(1)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Never less than this; of a rule that remembers what it drew ([`Backoff`](crate::Backoff)), the least that hundreds of calls and their
    /// extremes come to.
    pub min: Duration,
    /// The expectation, rounded to the nanosecond.
    pub mean: Duration,
    /// Never more than this, in the same sense. With jitter this bound itself is not reached.
    pub max: Duration,
}

impl Bounds {
    pub(super) fn saturating_add(self, other: Bounds) -> Bounds {
        Bounds {
            min: self.min.saturating_add(other.min),
            mean: self.mean.saturating_add(other.mean),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn of_nanos(min: u64, mean: u64, max: u64) -> Bounds {
        Bounds {
            min: Duration::from_nanos(min),
            mean: Duration::from_nanos(mean.clamp(min, max)),
            max: Duration::from_nanos(max),
        }
    }

    pub(super) fn of(range: Range) -> Bounds {
        Bounds::of_nanos(range.low, range.low.saturating_add(range.width.div_ceil(2)), range.high())
    }
}
