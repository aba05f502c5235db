//! How an attempt failed, before anybody has said what that means.

use core::time::Duration;

/// How an attempt failed.
pub(crate) enum Fault<E> {
    Error(E),
    /// As `Error`, and somebody has asked already what it means.
    #[cfg(feature = "std")]
    Judged(E, crate::Verdict),
    TimedOut(Duration),
    Cancelled,
}
