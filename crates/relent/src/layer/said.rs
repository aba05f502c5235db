//! What an attempt's request says of its call.

use super::Caller;
use http::HeaderValue;
use std::time::Duration;

/// What the request of an attempt is to say of its call: see [`Repeat::announce`](super::Repeat::announce).
///
/// ```
/// use relent::layer::{Repeat, Said};
///
/// /// A request of the program's own, which tells the far side what attempt it is.
/// #[derive(Clone)]
/// struct Ask {
///     attempt: u32,
/// }
///
/// impl<R> Repeat<R> for Ask {
///     fn again(&self) -> Option<Ask> {
///         Some(self.clone())
///     }
///
///     fn announce(&mut self, said: &Said) {
///         self.attempt = said.attempt;
///     }
/// }
///
/// let mut ask = Ask { attempt: 1 };
/// let mut said = Said::default();
/// said.attempt = 2;
/// Repeat::<()>::announce(&mut ask, &said);
/// assert_eq!(ask.attempt, 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Said {
    /// Which attempt it is, from 1; those of callers before this one are added, if their request said so.
    pub attempt: u32,
    /// How long the answer is waited for, if there is a limit.
    pub left: Option<Duration>,
    /// The client's attempts of its last minute, as `Relent-Attempts` has them.
    pub histogram: Option<HeaderValue>,
    /// One key for all attempts of the call, if the request is to have one.
    pub key: Option<HeaderValue>,
}

impl Said {
    /// Whether there is nothing to say.
    pub(crate) fn is_silent(&self) -> bool {
        let is_first = self.attempt <= 1 && !Caller::is_retry();
        is_first && self.left.is_none() && self.histogram.is_none() && self.key.is_none()
    }
}
