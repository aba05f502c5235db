//! Points in time, as the core sees them: nanoseconds from an epoch that the caller chooses.
//!
//! The core never reads a clock. Whoever drives it (an executor, a simulator, a test) says what time it is,
//! so the same code runs on the machine's clock, on a paused one, and on the clock of a simulated world.

use core::{fmt, time::Duration};

/// A point in time: nanoseconds since an epoch of the caller's choice.
///
/// Only differences between timestamps of one epoch mean anything. All arithmetic saturates: adding to the far
/// future stays in the far future (584 years after the epoch), and a clock that steps back yields a zero difference.
///
/// ```
/// use relent::Timestamp;
/// use std::time::Duration;
///
/// let start = Timestamp::ZERO;
/// let later = start + Duration::from_millis(5);
/// assert_eq!(later.since(start), Duration::from_millis(5));
/// assert_eq!(start.since(later), Duration::ZERO);
/// assert_eq!(later + Duration::MAX, Timestamp::MAX);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The epoch itself.
    pub const ZERO: Timestamp = Timestamp(0);

    /// The far future, which nothing passes. As a deadline it means "none".
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// The point `nanos` nanoseconds after the epoch.
    ///
    /// ```
    /// # use relent::Timestamp;
    /// assert_eq!(Timestamp::from_nanos(1_500_000_000).to_string(), "1.5s");
    /// ```
    pub const fn from_nanos(nanos: u64) -> Timestamp {
        Timestamp(nanos)
    }

    /// Nanoseconds since the epoch.
    ///
    /// ```
    /// # use relent::Timestamp;
    /// # use std::time::Duration;
    /// assert_eq!((Timestamp::ZERO + Duration::from_millis(1)).as_nanos(), 1_000_000);
    /// ```
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`, zero if `earlier` is later.
    pub const fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The point `nanos` nanoseconds after this one, at most [`Timestamp::MAX`].
    ///
    /// ```
    /// # use relent::Timestamp;
    /// const LATER: Timestamp = Timestamp::ZERO.plus_nanos(5);
    /// assert_eq!(LATER.as_nanos(), 5);
    /// assert_eq!(Timestamp::MAX.plus_nanos(1), Timestamp::MAX);
    /// ```
    #[must_use]
    pub const fn plus_nanos(self, nanos: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(nanos))
    }
}

impl core::ops::Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, delay: Duration) -> Timestamp {
        self.plus_nanos(nanos(delay))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Duration::from_nanos(self.0), f)
    }
}

/// The nanoseconds of a duration, at most `u64::MAX` (584 years).
pub(crate) const fn nanos(duration: Duration) -> u64 {
    const NANOS: u64 = 1_000_000_000;
    // Written so that the compiler sees that a duration made of nanoseconds is those nanoseconds.
    if duration.as_secs() >= u64::MAX / NANOS {
        return if duration.as_nanos() > u64::MAX as u128 { u64::MAX } else { duration.as_nanos() as u64 };
    }
    duration.as_secs() * NANOS + duration.subsec_nanos() as u64
}

/// Whole milliseconds in four bytes, so that a policy stays within 64 bytes.
///
/// Used for limits that no timer keeps more exactly. `u32::MAX` (49.7 days) and more means "no limit".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Millis(u32);

impl Millis {
    pub(crate) const UNLIMITED: Millis = Millis(u32::MAX);

    /// Rounds up, so that a limit given is never cut and something above zero never becomes zero.
    pub(crate) const fn ceil(duration: Duration) -> Millis {
        let millis = duration.as_nanos().div_ceil(1_000_000);
        if millis >= u32::MAX as u128 { Millis::UNLIMITED } else { Millis(millis as u32) }
    }

    /// In nanoseconds; "no limit" is `u64::MAX`.
    pub(crate) const fn nanos(self) -> u64 {
        if self.0 == u32::MAX { u64::MAX } else { self.0 as u64 * 1_000_000 }
    }

    pub(crate) const fn limit(self) -> Option<Duration> {
        if self.0 == u32::MAX { None } else { Some(Duration::from_millis(self.0 as u64)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_wraps() {
        assert_eq!(nanos(Duration::MAX), u64::MAX);
        assert_eq!(Timestamp::MAX.plus_nanos(1), Timestamp::MAX);
        assert_eq!(Timestamp::ZERO.since(Timestamp::MAX), Duration::ZERO);
    }

    #[test]
    fn milliseconds_round_up_and_saturate() {
        assert_eq!(Millis::ceil(Duration::from_nanos(1)).nanos(), 1_000_000);
        assert_eq!(Millis::ceil(Duration::ZERO).nanos(), 0);
        assert_eq!(Millis::ceil(Duration::MAX), Millis::UNLIMITED);
        assert_eq!(Millis::UNLIMITED.nanos(), u64::MAX);
        assert_eq!(Millis::UNLIMITED.limit(), None);
    }
}
