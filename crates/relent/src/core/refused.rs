//! A refusal: an attempt that was not let through, why, and when to ask again.

use super::{time::Timestamp, verdict::Reason};
use core::fmt;

/// An attempt was not let through: it must not be made.
///
/// ```
/// use relent::{Breaker, Reason, Timestamp};
/// use std::time::Duration;
///
/// let breaker = Breaker::consecutive(1).open_for(Duration::from_secs(30));
/// let now = Timestamp::ZERO;
/// breaker.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
///
/// let refused = breaker.permit(now, 0).unwrap_err();
/// assert_eq!(refused.reason, Reason::Open);
/// assert_eq!(refused.again, now + Duration::from_secs(30));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// Why: [`Reason::Open`] or [`Reason::Shed`].
    pub reason: Reason,
    /// When it would be worth asking again; [`Timestamp::MAX`] if nobody can tell, as when a breaker is held open.
    pub again: Timestamp,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl core::error::Error for Refused {}
