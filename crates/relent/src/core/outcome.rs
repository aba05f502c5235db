//! What became of an attempt, as the machines that calls share are told it.

use super::verdict::Verdict;

/// What became of one attempt: told to budgets and limiters.
///
/// ```
/// use relent::{Outcome, Verdict};
/// use std::time::Duration;
///
/// assert!(Outcome::from(Verdict::Transient).is_load());
/// assert!(!Outcome::from(Verdict::Permanent).is_load(), "the far side answered");
/// assert!(Outcome::from(Verdict::After(Duration::ZERO)).is_throttled());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It succeeded.
    Success,
    /// It failed, and this is what the failure means. [`Verdict::After`] says that the far side throttles; a zero
    /// duration says so without saying how long.
    Failure(Verdict),
    /// It was given up at its attempt timeout.
    TimedOut,
    /// It was dropped before its end: cancelled, a hedge that lost, a panic. Counts as neither success nor failure.
    Dropped,
}

impl Outcome {
    /// Whether the far side failed because of its load, or may have: every failure but a permanent one.
    ///
    /// ```
    /// # use relent::{Outcome, Verdict};
    /// assert!(Outcome::TimedOut.is_load());
    /// assert!(!Outcome::Failure(Verdict::Permanent).is_load());
    /// ```
    pub const fn is_load(self) -> bool {
        match self {
            Outcome::Success | Outcome::Dropped | Outcome::Failure(Verdict::Permanent) => false,
            Outcome::Failure(_) | Outcome::TimedOut => true,
        }
    }

    /// Whether the far side asked for less: a pushback, or "overloaded".
    ///
    /// ```
    /// # use relent::{Outcome, Verdict};
    /// assert!(Outcome::Failure(Verdict::Overloaded).is_throttled());
    /// assert!(!Outcome::Failure(Verdict::Transient).is_throttled());
    /// ```
    pub const fn is_throttled(self) -> bool {
        matches!(self, Outcome::Failure(Verdict::After(_) | Verdict::Turn(_) | Verdict::Overloaded))
    }

    /// Whether the far side did the work: a success or a permanent failure.
    ///
    /// ```
    /// # use relent::{Outcome, Verdict};
    /// assert!(Outcome::Success.is_answered() && Outcome::Failure(Verdict::Permanent).is_answered());
    /// assert!(!Outcome::TimedOut.is_answered());
    /// ```
    pub const fn is_answered(self) -> bool {
        matches!(self, Outcome::Success | Outcome::Failure(Verdict::Permanent))
    }
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Outcome {
        Outcome::Failure(verdict)
    }
}
