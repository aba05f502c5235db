//! What a call went through before it was given up: what is rarely read of an error, and therefore apart from it.

use crate::{Timeline, duration::Human};
use core::{fmt, time::Duration};

/// What a call went through before it was given up; an [`Error`](crate::Error) dereferences to it.
///
/// Shown in one line: `attempts began after 0s, 1s, 3.1s`.
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::time::Duration;
///
/// let policy = Policy::constant(Duration::from_millis(2)).jitter(Jitter::None).max_attempts(2);
/// let err = policy.max_elapsed(Duration::from_secs(60)).retry_blocking(|_| Err::<(), _>("refused")).unwrap_err();
/// assert_eq!((err.attempts, err.pushback, err.timed_out), (2, None, None));
/// assert!(err.elapsed.unwrap() >= Duration::from_millis(2));
/// assert!(err.timeline().attempts().count() == 2);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Story {
    /// How many attempts were made, the first included, and the one that was under way when the call was cancelled. None
    /// if the call ended before its first.
    pub attempts: u32,
    /// How long the call took, attempts and delays; `None` where the clock was not read at its beginning, because no
    /// limit of time, no watcher and no switch made it necessary.
    pub elapsed: Option<Duration>,
    /// How long the last attempt was given, if it was dropped at its timeout.
    pub timed_out: Option<Duration>,
    /// How long the far side last said to stay away, if it said so.
    pub pushback: Option<Duration>,
    /// How long until it is worth asking again, where that is known of a call that was refused.
    pub again_in: Option<Duration>,
    pub(crate) timeline: Timeline,
}

impl Story {
    /// All that is known where one attempt was made and nobody looked at the clock.
    pub(crate) const ONE_ATTEMPT: Story = Story {
        attempts: 1,
        elapsed: None,
        timed_out: None,
        pushback: None,
        again_in: None,
        timeline: Timeline::ONE_UNTIMED,
    };

    /// When the attempts ran: the last eight of them. Print it for the story of the call.
    ///
    /// ```
    /// let policy = relent::Policy::immediate().max_attempts(3);
    /// let err = policy.retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    /// assert_eq!(err.timeline().attempts().count(), 3);
    /// ```
    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    pub(crate) fn say_attempts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.attempts == 0 {
            return f.write_str(" before the first attempt");
        }
        let plural = if self.attempts == 1 { "" } else { "s" };
        write!(f, " after {} attempt{plural}", self.attempts)?;
        match (self.elapsed, self.timeline.since_first_failure()) {
            (Some(elapsed), _) => write!(f, " in {:.1}", Human(elapsed)),
            (None, Some(since)) if self.attempts > 1 => write!(f, " in {:.1} from the first failure", Human(since)),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut began = self.timeline.attempts().filter_map(|past| past.started).peekable();
        if began.peek().is_none() {
            let plural = if self.attempts == 1 { "" } else { "s" };
            return write!(f, "{} attempt{plural}", self.attempts);
        }
        let from = if self.elapsed.is_some() { "" } else { " the first failure and" };
        write!(f, "attempts began after{from}")?;
        for (nth, at) in began.enumerate() {
            write!(f, "{} {:.1}", if nth == 0 { "" } else { "," }, Human(at))?;
        }
        Ok(())
    }
}
