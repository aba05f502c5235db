//! The policy: when to try again, and when to stop. Data only, 64 bytes, `Copy`, usable in a `const`.

use super::{curve::Shape, jitter::PackedJitter, time::Millis};

/// When to try again, and when to stop.
///
/// A policy is a value: it holds no state, so one `const` serves every call of a program. What one call has been
/// through is in its [`Call`](crate::Call). The builders are `const` and check what they are given, so a policy that makes no
/// sense does not compile:
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::time::Duration;
///
/// const READ: Policy = Policy::exponential(Duration::from_millis(100))
///     .cap(Duration::from_secs(10))
///     .jitter(Jitter::Full)
///     .max_attempts(5);
/// ```
///
/// ```compile_fail
/// use relent::Policy;
/// use std::time::Duration;
///
/// const SHRINKING: Policy = Policy::exponential(Duration::from_secs(1)).factor(0.5);
/// ```
///
/// Defaults, unless a constructor says otherwise: cap 64 s (or the base, if that is longer), full jitter,
/// 8 attempts, no `max_elapsed`, no `timeout`, no attempt timeout, `max_pushback` 2 min, no `spread`.
#[derive(Clone, Copy)]
// A future that owns its policy copies it 16 bytes at a time: none of those stores may straddle two lines of the cache.
#[repr(align(16))]
#[must_use]
pub struct Policy {
    /// The curve, and in the bytes that its tag leaves free the timeout of the call.
    pub(crate) shape: Shape,
    pub(crate) cap: u64,
    pub(crate) jitter: PackedJitter,
    pub(crate) max_elapsed: u64,
    pub(crate) max_attempts: u32,
    pub(crate) attempt_timeout: Millis,
    pub(crate) spread: Millis,
    pub(crate) max_pushback: Millis,
}

const _: () = assert!(size_of::<Policy>() <= 64);

impl Policy {
    /// Whether it matters when a call began.
    pub(crate) const fn is_timed(&self) -> bool {
        self.max_elapsed != u64::MAX || self.bounds_attempts() || matches!(self.shape, Shape::Custom { .. })
    }

    /// Whether attempts of a call without a deadline are limited in time.
    #[inline]
    pub(crate) const fn bounds_attempts(&self) -> bool {
        self.attempt_timeout.nanos() != u64::MAX || self.timeout_nanos() != u64::MAX
    }

    /// How long a first attempt may take that starts when its call begins, in nanoseconds; "no limit" is `u64::MAX`.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) const fn first_limit(&self) -> u64 {
        let (attempt, call) = (self.attempt_timeout.nanos(), self.timeout_nanos());
        if attempt < call { attempt } else { call }
    }

    pub(crate) const fn has_spread(&self) -> bool {
        self.spread.nanos() != 0
    }

    /// The timeout of a call in nanoseconds; "no limit" is `u64::MAX`.
    pub(crate) const fn timeout_nanos(&self) -> u64 {
        self.shape.timeout().nanos()
    }
}
