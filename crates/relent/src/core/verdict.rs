//! What a failure means, and what is decided about it.

use super::duration::Human;
use core::{fmt, time::Duration};

/// What a failure means for the call it belongs to.
///
/// A `bool` converts into a verdict: `true` is [`Transient`](Verdict::Transient), `false` is
/// [`Permanent`](Verdict::Permanent), so a predicate serves wherever a verdict is asked for.
///
/// ```
/// use relent::Verdict;
/// use std::{io, time::Duration};
///
/// fn verdict(error: &io::Error) -> Verdict {
///     match error.kind() {
///         io::ErrorKind::NotFound => Verdict::Permanent,
///         io::ErrorKind::ResourceBusy => Verdict::After(Duration::from_secs(1)),
///         _ => Verdict::Transient,
///     }
/// }
/// assert_eq!(verdict(&io::ErrorKind::NotFound.into()), Verdict::from(false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// May succeed if tried again.
    Transient,
    /// Will not succeed however often it is tried.
    Permanent,
    /// The far side said when to come back (pushback): not before this long from now.
    After(Duration),
    /// A turn of this client's own, given out by a pacer: to be kept exactly, where [`After`](Verdict::After) is said
    /// to many and therefore spread. It raises a delay and never shortens it, and has the limits of a pushback.
    Turn(Duration),
    /// The far side said "do not retry": the call fails, and no layer above retries it.
    Overloaded,
}

impl Verdict {
    /// How long the far side said to stay away, if it said so: by a pushback or a turn.
    ///
    /// ```
    /// use relent::Verdict;
    /// use std::time::Duration;
    ///
    /// let second = Duration::from_secs(1);
    /// assert_eq!(Verdict::After(second).pushback(), Some(second));
    /// assert_eq!(Verdict::Turn(second).pushback(), Some(second));
    /// assert_eq!(Verdict::Transient.pushback(), None);
    /// ```
    pub const fn pushback(self) -> Option<Duration> {
        match self {
            Verdict::After(wait) | Verdict::Turn(wait) => Some(wait),
            Verdict::Transient | Verdict::Permanent | Verdict::Overloaded => None,
        }
    }

    /// The same when so much time has passed since it was said: what is left of a wait.
    ///
    /// ```
    /// use relent::Verdict;
    /// use std::time::Duration;
    ///
    /// let second = Duration::from_secs(1);
    /// assert_eq!(Verdict::After(60 * second).less(second), Verdict::After(59 * second));
    /// assert_eq!(Verdict::Overloaded.less(second), Verdict::Overloaded);
    /// ```
    #[must_use]
    pub const fn less(self, passed: Duration) -> Verdict {
        match self {
            Verdict::After(wait) => Verdict::After(wait.saturating_sub(passed)),
            Verdict::Turn(turn) => Verdict::Turn(turn.saturating_sub(passed)),
            Verdict::Transient | Verdict::Permanent | Verdict::Overloaded => self,
        }
    }

    /// The stricter of two words about one call: an end counts more than a wait, and a longer wait more than a shorter one. Of
    /// two that are as strict, this.
    ///
    /// ```
    /// use relent::Verdict;
    /// use std::time::Duration;
    ///
    /// let wait = Verdict::After(Duration::from_secs(1));
    /// assert_eq!(Verdict::Transient.stricter(wait), wait);
    /// assert_eq!(Verdict::Permanent.stricter(wait), Verdict::Permanent);
    /// ```
    #[must_use]
    pub fn stricter(self, other: Verdict) -> Verdict {
        let is_stricter = match (self.reason(), other.reason()) {
            (None, None) => other.pushback().unwrap_or_default() > self.pushback().unwrap_or_default(),
            (mine, _) => mine.is_none(),
        };
        if is_stricter { other } else { self }
    }
}

/// The verdict as logs and JSON write it: `transient`, `after 30s`.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Transient => f.write_str("transient"),
            Verdict::Permanent => f.write_str("permanent"),
            Verdict::After(wait) => write!(f, "after {}", Human(*wait)),
            Verdict::Turn(wait) => write!(f, "turn {}", Human(*wait)),
            Verdict::Overloaded => f.write_str("overloaded"),
        }
    }
}

impl Verdict {
    /// The reason for which this verdict alone ends a call, if it does.
    #[inline]
    pub(crate) const fn reason(self) -> Option<Reason> {
        match self {
            Verdict::Permanent => Some(Reason::Permanent),
            Verdict::Overloaded => Some(Reason::Overloaded),
            Verdict::Transient | Verdict::After(_) | Verdict::Turn(_) => None,
        }
    }
}

impl From<bool> for Verdict {
    fn from(retry: bool) -> Verdict {
        if retry { Verdict::Transient } else { Verdict::Permanent }
    }
}

/// What to do after a failure.
///
/// ```
/// use relent::{Decision, Policy, Reason, Timestamp, Verdict};
///
/// let policy = Policy::default();
/// let mut call = policy.call(Timestamp::ZERO, 1);
/// match call.on_failure(Timestamp::ZERO, Verdict::Permanent) {
///     Decision::Retry(delay) => println!("again in {delay:?}"),
///     Decision::GiveUp(reason) => assert_eq!(reason, Reason::Permanent),
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Start the next attempt when this long has passed.
    Retry(Duration),
    /// Stop: the call has failed.
    GiveUp(Reason),
}

/// Why a call was given up.
///
/// ```
/// use relent::Reason;
///
/// assert_eq!(Reason::PushbackTooLong.as_str(), "pushback_too_long");
/// assert_eq!(Reason::Attempts.to_string(), "out of attempts");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The failure was judged permanent.
    Permanent,
    /// The far side said "do not retry".
    Overloaded,
    /// `max_attempts` attempts were made.
    Attempts,
    /// The next attempt would have begun after `max_elapsed` or at the deadline.
    Elapsed,
    /// The upstream's allowance of retries is used up.
    Budget,
    /// The upstream's breaker is open.
    Open,
    /// Refused at once because too much is under way.
    Shed,
    /// The far side's pushback is longer than `max_pushback`, or passes `max_elapsed` or the deadline.
    PushbackTooLong,
    /// The caller cancelled.
    Cancelled,
    /// The request may have been carried out, and sending it twice is not the same as sending it once.
    NotIdempotent,
    /// The request is too large to be kept for another attempt, or cannot be copied.
    TooLarge,
}

impl Reason {
    /// The reason as one word, as metrics, logs and JSON write it: `"attempts"`, `"pushback_too_long"`.
    ///
    /// ```
    /// assert_eq!(relent::Reason::PushbackTooLong.as_str(), "pushback_too_long");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Permanent => "permanent",
            Reason::Overloaded => "overloaded",
            Reason::Attempts => "attempts",
            Reason::Elapsed => "elapsed",
            Reason::Budget => "budget",
            Reason::Open => "open",
            Reason::Shed => "shed",
            Reason::PushbackTooLong => "pushback_too_long",
            Reason::Cancelled => "cancelled",
            Reason::NotIdempotent => "not_idempotent",
            Reason::TooLarge => "too_large",
        }
    }
}

/// The reason as people say it: `out of attempts`.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Permanent => "permanent failure",
            Reason::Overloaded => "told not to retry",
            Reason::Attempts => "out of attempts",
            Reason::Elapsed => "out of time",
            Reason::Budget => "out of retry budget",
            Reason::Open => "breaker open",
            Reason::Shed => "shed",
            Reason::PushbackTooLong => "told to wait too long",
            Reason::Cancelled => "cancelled",
            Reason::NotIdempotent => "not idempotent, and may have been carried out",
            Reason::TooLarge => "too large to repeat",
        })
    }
}
