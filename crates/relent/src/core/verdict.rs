//! What a failure means, and what is decided about it.

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
pub enum Verdict {
    /// May succeed if tried again.
    Transient,
    /// Will not succeed however often it is tried.
    Permanent,
    /// The far side said when to come back (pushback): not before this long from now.
    After(Duration),
    /// The far side said "do not retry": the call fails, and no layer above retries it.
    Overloaded,
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
}

impl Reason {
    /// The reason as one word, as metrics, logs and JSON write it: `"attempts"`, `"pushback_too_long"`.
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
        })
    }
}
