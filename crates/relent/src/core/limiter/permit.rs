//! A permit that cannot be forgotten.

use super::{Limit, LimitAnswer, Place};
use crate::core::{outcome::Outcome, time::Timestamp};
use core::time::Duration;

/// Leave for one attempt, which is made while it is held. Dropped without an outcome it makes room again, and counts as neither success nor
/// failure; one of a [rate](Limit::rate) is used up then, because the far side saw the attempt. What never starts is
/// [given back](LimitPermit::give_back).
///
/// ```
/// use relent::{Limit, Outcome, Timestamp};
/// use std::time::Duration;
///
/// let (limit, now) = (Limit::concurrency(1), Timestamp::ZERO);
/// let permit = limit.permit(now).unwrap();
/// assert!(limit.permit(now).is_err());
/// drop(permit);
/// limit.permit(now).unwrap().end(now, Outcome::Success, Duration::from_millis(3));
/// ```
#[derive(Debug)]
#[must_use = "an attempt is made while its permit is held"]
pub struct LimitPermit<'a> {
    limit: &'a Limit,
    place: Place,
    taken: Timestamp,
    is_held: bool,
}

impl LimitPermit<'_> {
    /// The attempt ended; `latency` is how long it took.
    pub fn end(mut self, now: Timestamp, outcome: Outcome, latency: Duration) {
        self.is_held = false;
        self.limit.release(now, outcome, latency);
    }

    /// The attempt will never start: as if nothing had been granted. Of a rate whoever asks next has the permit, for the time that it was for.
    ///
    /// ```
    /// # use relent::{Limit, Timestamp};
    /// let (limit, now) = (Limit::rate(100), Timestamp::ZERO);
    /// limit.permit(now).unwrap().give_back();
    /// drop(limit.permit(now).unwrap());
    /// assert!(limit.permit(now).is_err(), "an attempt was made");
    /// ```
    pub fn give_back(mut self) {
        self.is_held = false;
        self.limit.give_place_back(self.place, self.taken);
    }
}

impl Drop for LimitPermit<'_> {
    fn drop(&mut self) {
        if self.is_held {
            self.limit.release(self.taken, Outcome::Dropped, Duration::ZERO);
        }
    }
}

impl Limit {
    /// Asks for leave for one attempt, as a guard.
    ///
    /// # Errors
    ///
    /// Any answer but [`LimitAnswer::Granted`]. After [`LimitAnswer::Queue`] the caller is in the queue, and gets out by
    /// [`enter_permit`](Limit::enter_permit) or [`leave`](Limit::leave).
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// let (limit, now) = (Limit::concurrency(1), Timestamp::ZERO);
    /// let held = limit.permit(now)?;
    /// assert_eq!(limit.permit(now).unwrap_err(), LimitAnswer::Shed);
    /// drop(held);
    /// assert!(limit.permit(now).is_ok());
    /// # Ok::<(), LimitAnswer>(())
    /// ```
    #[inline]
    pub fn permit(&self, now: Timestamp) -> Result<LimitPermit<'_>, LimitAnswer> {
        let place = self.acquire_place(now)?;
        Ok(LimitPermit { limit: self, place, taken: now, is_held: true })
    }

    /// From the queue into flight, as a guard. `None` if there is no room: the caller stays in the queue.
    ///
    /// ```
    /// # use relent::{Limit, LimitAnswer, Timestamp};
    /// # use std::time::Duration;
    /// let (limit, now) = (Limit::concurrency(1).queue(1, Duration::from_secs(1)), Timestamp::ZERO);
    /// let held = limit.permit(now).unwrap();
    /// assert!(matches!(limit.permit(now), Err(LimitAnswer::Queue(_))));
    /// drop(held);
    /// assert!(limit.enter_permit(now).is_some());
    /// ```
    pub fn enter_permit(&self, now: Timestamp) -> Option<LimitPermit<'_>> {
        // Made only if there is room: one that is dropped gives a place back.
        self.enter().then(|| LimitPermit { limit: self, place: Place(now.as_nanos()), taken: now, is_held: true })
    }
}
