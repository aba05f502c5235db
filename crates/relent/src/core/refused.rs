//! A refusal: an attempt that was not let through, why, and when to ask again.

use super::{
    rng::{mix, scale},
    time::Timestamp,
    verdict::Reason,
};
use core::{fmt, time::Duration};

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

/// Nobody waits for less, in nanoseconds.
const LEAST_WAIT: u64 = 1_000_000;

/// A wait is spread over a tenth of itself, as pushbacks are.
const SPREAD: u64 = 10;

impl Refused {
    /// A refusal of this kind, until then: for a machine of one's own.
    ///
    /// ```
    /// use relent::{Reason, Refused, Timestamp};
    ///
    /// let refused = Refused::new(Reason::Open, Timestamp::from_nanos(5));
    /// assert_eq!(refused.to_string(), Reason::Open.to_string());
    /// ```
    pub const fn new(reason: Reason, again: Timestamp) -> Refused {
        Refused { reason, again }
    }

    /// How long who was refused at `now` waits before they ask again, if they do: until it is worth asking, and a spread of up
    /// to a tenth more, by this draw; at least a millisecond. [`UpstreamCall::wait_while_open`](crate::UpstreamCall::wait_while_open)
    /// waits so.
    ///
    /// ```
    /// use relent::{Breaker, Timestamp};
    /// use std::time::Duration;
    ///
    /// let (bank, now) = (Breaker::consecutive(1).open_for(Duration::from_secs(30)), Timestamp::ZERO);
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// let wait = bank.permit(now, 0).unwrap_err().wait(now, 42);
    /// assert!(wait >= Duration::from_secs(30) && wait <= Duration::from_secs(33));
    /// ```
    #[must_use]
    #[inline]
    pub fn wait(&self, now: Timestamp, draw: u64) -> Duration {
        Duration::from_nanos(self.wait_nanos(now, draw))
    }

    /// When who was refused at `now` asks again, if they do: after [`wait`](Refused::wait).
    ///
    /// ```
    /// use relent::{Reason, Refused, Timestamp};
    ///
    /// let now = Timestamp::ZERO;
    /// let refused = Refused::new(Reason::Open, Timestamp::from_nanos(5_000_000_000));
    /// assert_eq!(refused.asks_again(now, 42), now + refused.wait(now, 42));
    /// ```
    #[must_use]
    #[inline]
    pub const fn asks_again(&self, now: Timestamp, draw: u64) -> Timestamp {
        now.plus_nanos(self.wait_nanos(now, draw))
    }

    #[inline]
    const fn wait_nanos(&self, now: Timestamp, draw: u64) -> u64 {
        let until = self.again.as_nanos().saturating_sub(now.as_nanos());
        let wait = until.saturating_add(scale(mix(draw), until / SPREAD));
        if wait < LEAST_WAIT { LEAST_WAIT } else { wait }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl core::error::Error for Refused {}
