//! What a limiter answers, whom it has woken, and what it knows.

use core::time::Duration;

/// What a limiter answers.
///
/// ```
/// use relent::{Limit, LimitAnswer, Timestamp};
/// use std::time::Duration;
///
/// fn attempt(limit: &Limit, now: Timestamp) -> String {
///     match limit.acquire(now) {
///         LimitAnswer::Granted => "made".to_owned(),
///         LimitAnswer::Wait(wait) => format!("asks again in {wait:?}"),
///         LimitAnswer::Queue(most) => format!("queues for up to {most:?}"),
///         LimitAnswer::Shed => "not made".to_owned(),
///     }
/// }
///
/// let limit = Limit::concurrency(1).queue(1, Duration::from_secs(1));
/// let answers = [(); 3].map(|()| attempt(&limit, Timestamp::ZERO));
/// assert_eq!(answers, ["made", "queues for up to 1s", "not made"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an attempt that was not granted must not be made"]
pub enum LimitAnswer {
    /// The attempt may be made. Its end is told by [`Limit::release`](crate::Limit::release), or
    /// [`Limit::give_back`](crate::Limit::give_back) if it never starts.
    Granted,
    /// Not now: ask again after so long.
    Wait(Duration),
    /// Not now: the caller is in the queue and may stay there for so long. It gets out by
    /// [`Limit::enter`](crate::Limit::enter), which is worth trying when an attempt ends, or by
    /// [`Limit::leave`](crate::Limit::leave).
    Queue(Duration),
    /// No.
    Shed,
}

/// Whom to wake, of those who queue.
///
/// ```
/// use relent::{Limit, LimitAnswer, LimitNext, Timestamp};
/// use std::time::Duration;
///
/// let (limit, now) = (Limit::concurrency(1).queue(9, Duration::from_secs(1)), Timestamp::ZERO);
/// assert_eq!(limit.acquire(now), LimitAnswer::Granted);
/// assert!(matches!(limit.acquire(now), LimitAnswer::Queue(_)));
/// limit.give_back(now);
/// assert_eq!(limit.next(now), Some(LimitNext::Oldest), "nobody has waited long yet");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitNext {
    /// Who has waited longest.
    Oldest,
    /// Who came last: there has been a queue for 100 ms, so those who came first have waited too long already.
    Newest,
}

/// What a limiter knows.
///
/// ```
/// use relent::{Limit, Timestamp};
///
/// let (limit, now) = (Limit::concurrency(3), Timestamp::ZERO);
/// let permit = limit.permit(now).unwrap();
/// let seen = limit.snapshot(now);
/// assert_eq!((seen.limit, seen.in_flight, seen.available), (Some(3.0), Some(1), 2.0));
/// # drop(permit);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LimitSnapshot {
    /// Attempts that may be in flight; for a rate, permits that may come at once. `None` if it does not limit now.
    pub limit: Option<f64>,
    /// Attempts in flight. `None` for rates, which do not count them.
    pub in_flight: Option<u32>,
    /// How many wait in the queue.
    pub queued: u32,
    /// Permits a second. `None` for what limits attempts in flight.
    pub rate: Option<f64>,
    /// Permits that could be had now.
    pub available: f64,
}
