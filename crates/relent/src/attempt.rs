//! What an operation is told about the attempt it is running.

use crate::core::time::nanos;
use core::{fmt, time::Duration};

/// One run of the operation, as the operation sees it.
///
/// ```
/// use relent::Policy;
/// use std::time::Duration;
///
/// let policy = Policy::immediate().max_attempts(3).attempt_timeout(Duration::from_secs(2));
/// let told = policy.retry_blocking(|attempt| {
///     if attempt.is_retry() { Ok((attempt.number(), attempt.timeout())) } else { Err("not yet") }
/// });
/// assert_eq!(told.unwrap(), (2, Some(Duration::from_secs(2))));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    number: u32,
    /// In nanoseconds, `u64::MAX` without. Two numbers travel in registers, where an optional duration goes through
    /// memory at each turn of the loop.
    timeout: u64,
}

impl Attempt {
    #[inline]
    pub(crate) const fn new(number: u32, timeout: Option<Duration>) -> Attempt {
        let timeout = match timeout {
            Some(timeout) => nanos(timeout),
            None => u64::MAX,
        };
        Attempt { number, timeout }
    }

    /// The first, which may take so many nanoseconds; `u64::MAX` is no limit.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) const fn first(timeout: u64) -> Attempt {
        Attempt { number: 1, timeout }
    }

    /// Which attempt of the call this is; the first is 1.
    ///
    /// ```
    /// let policy = relent::Policy::immediate();
    /// let third = policy.retry_blocking(|attempt| if attempt.number() == 3 { Ok(attempt) } else { Err("not yet") });
    /// assert_eq!(third.unwrap().number(), 3);
    /// ```
    #[inline]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether this attempt is a retry, which is every one but the first.
    ///
    /// ```
    /// let policy = relent::Policy::immediate();
    /// assert!(!policy.start().attempt().is_retry());
    /// ```
    #[inline]
    pub const fn is_retry(&self) -> bool {
        self.number > 1
    }

    /// How long this attempt may take: the policy's attempt timeout or what is left until the deadline, whichever is
    /// less; `None` without either. Async executors enforce it; in blocking ones it is for the operation to obey.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let policy = relent::Policy::default().attempt_timeout(Duration::from_secs(2));
    /// let told = policy.retry_blocking(|attempt| Ok::<_, ()>(attempt.timeout())).unwrap();
    /// assert_eq!(told, Some(Duration::from_secs(2)));
    /// ```
    #[inline]
    pub const fn timeout(&self) -> Option<Duration> {
        match self.timeout {
            u64::MAX => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("number", &self.number).field("timeout", &self.timeout()).finish()
    }
}
