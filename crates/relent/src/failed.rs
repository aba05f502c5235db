//! How an attempt failed, before anybody has said what that means.

use crate::Verdict;
use core::time::Duration;

/// How an attempt failed.
pub(crate) enum Fault<E> {
    Error(E),
    /// As `Error`, and somebody has asked already what it means.
    #[cfg(feature = "std")]
    Judged(E, Verdict),
    /// At its limit, and what that means.
    TimedOut(Duration, Verdict),
    Cancelled,
}
