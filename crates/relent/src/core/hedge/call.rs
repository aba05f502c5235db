//! One call whose attempts are hedged.

use crate::core::{time::Timestamp, verdict::Verdict};
use core::time::Duration;

/// What to do after an attempt of a hedged call failed.
///
/// ```
/// use relent::{Hedge, HedgeStep, Timestamp, Verdict};
/// use std::time::Duration;
///
/// let (hedge, now) = (Hedge::after(Duration::from_millis(50)), Timestamp::ZERO);
/// let mut call = hedge.start(now);
/// call.begun(now);
/// assert_eq!(call.on_failure(now, Verdict::Transient), HedgeStep::Wait, "the other is still in flight");
/// assert_eq!(call.on_failure(now, Verdict::Transient), HedgeStep::Fail, "that was the last");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HedgeStep {
    /// Start the next attempt at once, if the budget pays for it: then [`HedgedCall::begun`], else
    /// [`HedgedCall::refused`] and, if that says so, fail.
    Start,
    /// Wait for the attempts that are still in flight.
    Wait,
    /// Drop the others: the call has failed with this failure, and [`HedgedCall::verdict`] says what that means.
    Fail,
}

/// One call whose attempts are hedged: which of them is due, and what a failure of one means for the others.
///
/// The first success wins; the caller drops the others then, and gives back their permits.
///
/// ```
/// use relent::{Hedge, HedgeStep, Timestamp, Verdict};
/// use std::time::Duration;
///
/// let ms = Duration::from_millis(1);
/// let hedge = Hedge::after(50 * ms).at_most(3);
/// let mut call = hedge.start(Timestamp::ZERO);
/// let due = call.due().unwrap();
/// call.begun(due);
/// assert_eq!(call.in_flight(), 2);
/// // The server says when the next may start.
/// call.push_back(due, 500 * ms);
/// assert_eq!(call.due(), Some(due + 500 * ms));
/// // The budget does not pay for it: there will be no other, and two are in flight.
/// assert!(call.refused());
/// assert_eq!(call.due(), None);
/// assert_eq!(call.on_failure(due, Verdict::Permanent), HedgeStep::Fail);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HedgedCall {
    delay: Option<Duration>,
    due: Option<Timestamp>,
    left: u32,
    in_flight: u32,
    /// The strictest word of the attempts that failed, and when that was.
    said: (Verdict, Timestamp),
}

impl HedgedCall {
    pub(super) fn new(delay: Option<Duration>, now: Timestamp, at_most: u32) -> HedgedCall {
        let said = (Verdict::Transient, now);
        HedgedCall { delay, due: delay.map(|delay| now + delay), left: at_most, in_flight: 1, said }
    }

    /// When the next hedge is due: ask the budget then. `None`: none will be.
    pub fn due(&self) -> Option<Timestamp> {
        if self.left == 0 || self.in_flight == 0 { None } else { self.due }
    }

    /// An attempt more has started at `now`.
    pub fn begun(&mut self, now: Timestamp) {
        self.left = self.left.saturating_sub(1);
        self.in_flight = self.in_flight.saturating_add(1);
        self.due = self.delay.map(|delay| now + delay);
    }

    /// The budget, the breaker or the limiter did not let the hedge start: there will be no other. Whether attempts
    /// are still in flight.
    pub fn refused(&mut self) -> bool {
        self.left = 0;
        self.in_flight > 0
    }

    /// The far side said when the next hedge may start (`grpc-retry-pushback-ms`): that long from `now`.
    pub fn push_back(&mut self, now: Timestamp, wait: Duration) {
        self.due = Some(now + wait);
    }

    /// An attempt failed at `now`.
    pub fn on_failure(&mut self, now: Timestamp, verdict: Verdict) -> HedgeStep {
        self.said = (self.verdict(now, verdict), now);
        self.in_flight = self.in_flight.saturating_sub(1);
        if !matches!(verdict, Verdict::Transient) {
            self.left = 0;
        }
        match verdict {
            Verdict::Transient if self.left > 0 => HedgeStep::Start,
            // Told to come back later, the call starts no more, but what is in flight may still succeed.
            Verdict::Permanent | Verdict::Overloaded => HedgeStep::Fail,
            _ if self.in_flight > 0 => HedgeStep::Wait,
            _ => HedgeStep::Fail,
        }
    }

    /// What it means that the call has failed at `now`, if this is what the last failure means: the strictest word of all its
    /// failed attempts, less the time that has passed since it was said.
    ///
    /// ```
    /// use relent::{Hedge, HedgeStep, Timestamp, Verdict};
    /// use std::time::Duration;
    ///
    /// let second = Duration::from_secs(1);
    /// let mut call = Hedge::after(second).start(Timestamp::ZERO);
    /// let now = Timestamp::ZERO + second;
    /// call.begun(now);
    /// assert_eq!(call.on_failure(now, Verdict::After(60 * second)), HedgeStep::Wait);
    /// let now = now + second;
    /// assert_eq!(call.on_failure(now, Verdict::Transient), HedgeStep::Fail);
    /// assert_eq!(call.verdict(now, Verdict::Transient), Verdict::After(59 * second));
    /// ```
    pub fn verdict(&self, now: Timestamp, last: Verdict) -> Verdict {
        let (said, at) = self.said;
        last.stricter(said.less(now.since(at)))
    }

    /// How many attempts are in flight.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }
}
