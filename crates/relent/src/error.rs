//! The error of a call that was given up: why, after what, and the last error itself.

use crate::{Human, Reason, nested::Trace, timeline::Timeline};
use core::{fmt, time::Duration};

/// Why a call was given up, and what it went through.
///
/// Shown as `out of attempts after 3 attempts in 2.1s: connection refused`. The operation's last error is in
/// [`last`](Error::last); [`source`](Error::source) gives it as an error to walk through.
///
/// ```
/// use relent::{Policy, Reason};
/// use std::{io, time::Duration};
///
/// const TWICE: Policy = Policy::constant(Duration::from_millis(1)).max_attempts(2);
/// let err = TWICE.retry_blocking(|_| Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut))).unwrap_err();
///
/// assert_eq!((err.reason, err.attempts), (Reason::Attempts, 2));
/// assert!(err.to_string().starts_with("out of attempts after 2 attempts in "));
/// assert_eq!(err.source().unwrap().to_string(), "timed out");
/// assert_eq!(err.last.unwrap().kind(), io::ErrorKind::TimedOut);
/// ```
#[non_exhaustive]
pub struct Error<E> {
    /// Why the call was given up.
    pub reason: Reason,
    /// The operation's last error. `None` if no attempt returned one: each was dropped at its timeout, or the call was
    /// cancelled before the first ended.
    pub last: Option<E>,
    /// How long the last attempt was given, if it was dropped at its timeout.
    pub timed_out: Option<Duration>,
    /// How many attempts were made, the first included.
    pub attempts: u32,
    /// How long the call took, attempts and delays. Counted from the first failure if nothing (a limit of time, a
    /// watcher) made it necessary to read the clock before.
    pub elapsed: Duration,
    /// How long the far side last said to stay away, if it said so.
    pub pushback: Option<Duration>,
    #[cfg(feature = "std")]
    pub(crate) timeline: Box<Timeline>,
    pub(crate) _trace: Trace,
}

impl<E> Error<E> {
    pub(crate) fn new(
        reason: Reason,
        last: Option<E>,
        attempts: u32,
        elapsed: Duration,
        timeline: &Timeline,
    ) -> Error<E> {
        #[cfg(not(feature = "std"))]
        let _ = timeline;
        Error {
            reason,
            last,
            timed_out: None,
            attempts,
            elapsed,
            pushback: None,
            #[cfg(feature = "std")]
            timeline: Box::new(*timeline),
            _trace: Trace::leave(),
        }
    }

    /// When the attempts ran: the last eight of them. Print it for the story of the call.
    #[cfg(feature = "std")]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The operation's last error, as the source of this one.
    ///
    /// An inherent method, because the trait's `source` cannot give it: `Error<E>` implements
    /// [`core::error::Error`] for every `E` that can be shown (`String` and `anyhow::Error` among them, which are no
    /// errors themselves), and so cannot know that `E` is one. [`chained`](Error::chained) is for where the trait's is
    /// needed.
    pub fn source(&self) -> Option<&(dyn core::error::Error + 'static)>
    where
        E: core::error::Error + 'static,
    {
        self.last.as_ref().map(|last| last as _)
    }

    /// The same error with a `source` that `anyhow` and other reporters can walk through the trait.
    ///
    /// ```
    /// use std::error::Error as _;
    /// # let policy = relent::Policy::immediate().max_attempts(1);
    /// let err = policy.retry_blocking(|_| "x".parse::<u8>()).map_err(relent::Error::chained).unwrap_err();
    /// assert_eq!(err.source().unwrap().to_string(), "invalid digit found in string");
    /// ```
    pub fn chained(self) -> Chained<E>
    where
        E: core::error::Error + 'static,
    {
        Chained(self)
    }

    fn say(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.attempts == 1 { "" } else { "s" };
        write!(f, "{}", self.reason)?;
        if let (Reason::PushbackTooLong, Some(pushback)) = (self.reason, self.pushback) {
            write!(f, " ({})", Human(pushback))?;
        }
        write!(f, " after {} attempt{plural} in {:.1}", self.attempts, Human(self.elapsed))?;
        match self.timed_out {
            Some(limit) => write!(f, ": timed out after {}", Human(limit)),
            None => Ok(()),
        }
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.say(f)?;
        match &self.last {
            Some(last) if self.timed_out.is_none() => write!(f, ": {last}"),
            _ => Ok(()),
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("reason", &self.reason)
            .field("last", &self.last)
            .field("timed_out", &self.timed_out)
            .field("attempts", &self.attempts)
            .field("elapsed", &self.elapsed)
            .field("pushback", &self.pushback)
            .finish_non_exhaustive()
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for Error<E> {}

/// An [`Error`] whose last error is its `source`: see [`Error::chained`]. Shown without the last error, which reporters
/// print as the next link of the chain.
#[derive(Debug)]
pub struct Chained<E>(pub Error<E>);

impl<E> fmt::Display for Chained<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.say(f)
    }
}

impl<E: core::error::Error + 'static> core::error::Error for Chained<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.0.source()
    }
}
