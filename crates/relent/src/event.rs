//! What a watcher is told before each delay.

use crate::{Attempt, Verdict, duration::Human};
use core::{fmt, time::Duration};

/// A failure that will be retried, told to [`notify`](crate::Retrier::notify) before the delay.
///
/// Shown as `attempt 2 failed: connection refused; next in 84.2ms`.
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::{cell::RefCell, time::Duration};
///
/// let told = RefCell::new(vec![]);
/// let policy = Policy::constant(Duration::from_millis(2)).jitter(Jitter::None).max_attempts(2);
/// let _ = policy.notify(|event| told.borrow_mut().push(event.to_string())).retry_blocking(|_| Err::<(), _>("refused"));
/// assert_eq!(*told.borrow(), ["attempt 1 failed: refused; next in 2ms"]);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Event<'a, E> {
    /// The attempt that failed.
    pub attempt: Attempt,
    /// Why it failed.
    pub error: Cause<'a, E>,
    /// What that was taken to mean.
    pub verdict: Verdict,
    /// The delay that comes now: the real one, jitter and pushback included.
    pub delay: Duration,
    /// The time since the call began.
    pub elapsed: Duration,
}

impl<E: fmt::Display> fmt::Display for Event<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {} failed: {}; next in {:.1}", self.attempt.number(), self.error, Human(self.delay))
    }
}

/// Why an attempt failed: by an error of the operation, or by taking too long.
///
/// ```
/// use relent::Cause;
/// use std::time::Duration;
///
/// assert_eq!(Cause::Error(&"refused").to_string(), "refused");
/// assert_eq!(Cause::<&str>::TimedOut(Duration::from_secs(2)).error(), None);
/// ```
#[derive(Debug)]
pub enum Cause<'a, E> {
    /// The operation returned this error.
    Error(&'a E),
    /// The attempt was dropped at its timeout, which was this long.
    TimedOut(Duration),
}

impl<'a, E> Cause<'a, E> {
    /// The operation's error, if it returned one.
    ///
    /// ```
    /// let cause = relent::Cause::Error(&"down");
    /// assert_eq!(cause.error(), Some(&"down"));
    /// ```
    pub const fn error(&self) -> Option<&'a E> {
        match *self {
            Cause::Error(error) => Some(error),
            Cause::TimedOut(_) => None,
        }
    }
}

impl<E> Clone for Cause<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Cause<'_, E> {}

impl<E: fmt::Display> fmt::Display for Cause<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Error(error) => error.fmt(f),
            Cause::TimedOut(limit) => write!(f, "timed out after {}", Human(*limit)),
        }
    }
}
