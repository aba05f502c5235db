//! An error that carries its own verdict, for operations that know best whether trying again makes sense.

use crate::Verdict;
use core::{fmt, time::Duration};

/// An error and what it means for the call.
///
/// Any error becomes a transient failure through `?`; [`Failure::permanent`] and the others say otherwise. Pass
/// [`Failure::verdict`] to [`when`](crate::Retrier::when).
///
/// ```
/// use relent::{Failure, Policy, Reason};
/// use std::{io, time::Duration};
///
/// let policy = Policy::constant(Duration::from_millis(1));
/// let err = policy
///     .when(Failure::verdict)
///     .retry_blocking(|_| Err::<(), Failure<io::Error>>(Failure::permanent(io::ErrorKind::NotFound.into())))
///     .unwrap_err();
/// assert_eq!((err.reason, err.attempts), (Reason::Permanent, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<E> {
    /// The error.
    pub error: E,
    /// What it means.
    pub verdict: Verdict,
}

impl<E> Failure<E> {
    /// A failure with this verdict.
    ///
    /// ```
    /// use relent::{Failure, Verdict};
    ///
    /// let failure = Failure::new("HTTP 503", Verdict::Overloaded);
    /// assert_eq!(failure, Failure::overloaded("HTTP 503"));
    /// ```
    pub const fn new(error: E, verdict: Verdict) -> Failure<E> {
        Failure { error, verdict }
    }

    /// May succeed if tried again.
    ///
    /// ```
    /// let failure = relent::Failure::transient("reset");
    /// assert_eq!(failure.verdict, relent::Verdict::Transient);
    /// ```
    pub const fn transient(error: E) -> Failure<E> {
        Failure::new(error, Verdict::Transient)
    }

    /// Will not succeed however often it is tried.
    ///
    /// ```
    /// let failure = relent::Failure::permanent("no such user");
    /// assert_eq!(failure.verdict, relent::Verdict::Permanent);
    /// ```
    pub const fn permanent(error: E) -> Failure<E> {
        Failure::new(error, Verdict::Permanent)
    }

    /// The far side said not to come back before `delay` has passed.
    ///
    /// ```
    /// use relent::{Failure, Verdict};
    /// use std::time::Duration;
    ///
    /// let failure = Failure::after("busy", Duration::from_secs(30));
    /// assert_eq!(failure.verdict, Verdict::After(Duration::from_secs(30)));
    /// ```
    pub const fn after(error: E, delay: Duration) -> Failure<E> {
        Failure::new(error, Verdict::After(delay))
    }

    /// The far side gave this client a turn of its own, `delay` from now.
    ///
    /// ```
    /// use relent::{Failure, Verdict};
    /// use std::time::Duration;
    ///
    /// let failure = Failure::turn("come back at your turn", Duration::from_millis(1234));
    /// assert_eq!(failure.verdict, Verdict::Turn(Duration::from_millis(1234)));
    /// ```
    pub const fn turn(error: E, delay: Duration) -> Failure<E> {
        Failure::new(error, Verdict::Turn(delay))
    }

    /// The far side said not to retry.
    ///
    /// ```
    /// let failure = relent::Failure::overloaded("do not come back");
    /// assert_eq!(failure.verdict, relent::Verdict::Overloaded);
    /// ```
    pub const fn overloaded(error: E) -> Failure<E> {
        Failure::new(error, Verdict::Overloaded)
    }

    /// The verdict; what [`when`](crate::Retrier::when) takes.
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }
}

impl<E> From<E> for Failure<E> {
    fn from(error: E) -> Failure<E> {
        Failure::transient(error)
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<E: core::error::Error + 'static> core::error::Error for Failure<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}
