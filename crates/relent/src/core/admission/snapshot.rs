//! Everything about an admission at one moment.

use super::attempts::Attempts;
use crate::core::{limiter::LimitSnapshot, pacer::PacerSnapshot};
use core::time::Duration;

/// How often each rule of an [`Admission`](crate::Admission) has decided since the start, and what it has seen of late.
///
/// ```
/// use relent::{Admission, Arrival, Room, Timestamp};
///
/// let (admission, now) = (Admission::new(), Timestamp::ZERO);
/// for used in [0, 100] {
///     admission.decide(now, &Arrival::default(), Room { used, most: 100 }, None);
/// }
/// let seen = admission.snapshot(now);
/// assert_eq!((seen.accepted, seen.full, seen.offered.total()), (1, 1, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AdmissionSnapshot {
    /// Taken.
    pub accepted: u64,
    /// Refused because less time was left than an answer takes.
    pub hopeless: u64,
    /// Shed because there was no room.
    pub full: u64,
    /// Shed although there was room, which is kept for others.
    pub low: u64,
    /// Told not to retry, because too much of what is offered are retries, or there is no turn before the horizon.
    pub retries: u64,
    /// Given a turn.
    pub turns: u64,
    /// Attempts offered in the last ten seconds, by number.
    pub offered: Attempts,
    /// What an answer takes, by hand or learned.
    pub service_time: Option<Duration>,
    /// The limit and what is in flight under it, if there is one.
    pub limit: Option<LimitSnapshot>,
    /// The backlog of turns and the capacity, if there is a pacer.
    pub pacer: Option<PacerSnapshot>,
}

impl AdmissionSnapshot {
    /// How many were refused, for whatever reason.
    ///
    /// ```
    /// use relent::{Admission, Arrival, Limit, Timestamp};
    ///
    /// let (door, now) = (Admission::new().limit(Limit::concurrency(1)), Timestamp::ZERO);
    /// let _inside = door.permit(now, &Arrival::default()).unwrap();
    /// assert!(door.permit(now, &Arrival::default()).is_err());
    /// let seen = door.snapshot(now);
    /// assert_eq!((seen.accepted, seen.full, seen.refused()), (1, 1, 1));
    /// ```
    pub const fn refused(&self) -> u64 {
        self.hopeless + self.full + self.low + self.retries + self.turns
    }
}
