//! How an attempt of a layer failed.

use crate::Verdict;
use http::StatusCode;
use std::{error, fmt};

/// How an attempt of a layer failed: the client's error, or an answer that is a failure. What
/// [`notify`](crate::Retrier::notify) is told of.
///
/// Shown as `503 Service Unavailable` or as the error is.
///
/// ```
/// use relent::{Event, Policy, layer::Missed};
/// use std::io;
///
/// let layer = Policy::default()
///     .notify(|event: &Event<'_, Missed<io::Error>>| eprintln!("{event}"))
///     .layer();
/// # let _ = layer;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missed<E> {
    /// The far side answered, and the answer is a failure. The answer itself is kept for when the call is given up.
    Answered {
        /// The status, if answers have one.
        status: Option<StatusCode>,
        /// What the answer means.
        verdict: Verdict,
    },
    /// There was no answer.
    Error(E),
}

impl<E: fmt::Display> fmt::Display for Missed<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missed::Answered { status: Some(status), .. } if !status.is_success() => status.fmt(f),
            Missed::Answered { verdict, .. } => write!(f, "the answer is a failure ({verdict})"),
            Missed::Error(error) => error.fmt(f),
        }
    }
}

impl<E: error::Error + 'static> error::Error for Missed<E> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Missed::Answered { .. } => None,
            Missed::Error(error) => Some(error),
        }
    }
}
