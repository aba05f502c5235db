//! What processes tell each other about a far side that they all call.

use super::{Key, Nonce};
use crate::Time;
use std::time::Duration;

/// What one process saw of an upstream since it last told.
#[derive(Clone, Debug)]
pub struct Delta {
    /// The upstream.
    pub upstream: Key,
    /// Which process it is.
    pub process: Nonce,
    /// Counts the deltas of this process, from 1. One that was merged already is not merged again, so that it can be
    /// sent again when its answer was lost.
    pub seq: u64,
    /// Over how long the answer is to count: a second to an hour, in whole seconds, rounded up.
    pub window: Duration,
    /// Calls that started.
    pub calls: u64,
    /// Retries that were paid for.
    pub retries: u64,
    /// Attempts that succeeded.
    pub successes: u64,
    /// Attempts that failed in a way that counts against the upstream.
    pub failures: u64,
    /// Failures since the last success; all of them if there was none.
    pub run: u64,
    /// Whether this process's own breaker is open.
    pub is_open: bool,
    /// What it may spend of a budget before it tells again, in millionths of a retry: nobody else who reserves may. Up to a million retries; what
    /// is more counts as these.
    pub reserves: u64,
    /// How often this one tells. What others have reserved who have not told for three times as long is free to it: after two seconds at the
    /// earliest, and an hour at the latest.
    pub every: Duration,
    /// Whether the process says goodbye: it has no vote any more; what it did still counts.
    pub is_last: bool,
    /// What it asks of a rate that all processes share.
    pub booking: Option<Booking>,
}

/// A rate that processes share: a permit each `gap`, and `burst` of them at once after as many have not been used.
///
/// ```
/// use relent_store::SharedRate;
/// use std::time::Duration;
///
/// let hundred_a_second = SharedRate { gap: Duration::from_millis(10), burst: 1 };
/// assert_eq!(hundred_a_second.per_second(), 100.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRate {
    /// From one permit to the next: a nanosecond to a day; what is less or more counts as these.
    pub gap: Duration,
    /// How many permits may come at once, 1 or more.
    pub burst: u32,
}

impl SharedRate {
    /// Permits a second.
    pub fn per_second(&self) -> f64 {
        1.0 / self.gap.max(Duration::from_nanos(1)).as_secs_f64()
    }
}

/// What a process asks of a shared rate. Processes should agree on the rate; where they do not, each permit is paid for with the
/// gap of who takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booking {
    /// The rate.
    pub rate: SharedRate,
    /// How many permits it would use.
    pub permits: u32,
    /// How long it would wait for the last of them, up to 26 days.
    pub within: Duration,
    /// How many that it booked before and did not use go back.
    pub back: u32,
}

/// What a process may use of a shared rate. The permits that are not there at once come `wait` from now on, and then one each
/// gap.
///
/// A delta that was merged before books nothing, so what an answer that was lost had booked is lost, too: attempts may be
/// fewer than the rate, and never more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Booked {
    /// Permits, those that come later included.
    pub permits: u32,
    /// How many of them may be used now.
    pub at_once: u32,
    /// When the next one after these comes; where there are none, when one could be had.
    pub wait: Duration,
}

/// What all processes together know of an upstream. It is counted in whole seconds. Of the one that the beginning of a window cuts calls do
/// not count, and all else does: so a budget never allows more than in its window, and what failed is never forgotten early. Nor is it for a clock that goes back, by
/// up to a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Calls in the window: in up to a second less.
    pub calls: u64,
    /// Retries in the window, and up to a second before.
    pub retries: u64,
    /// Successes in the window, and up to a second before.
    pub successes: u64,
    /// Failures in the window, and up to a second before.
    pub failures: u64,
    /// Failures in a row, of all processes.
    pub run: u64,
    /// Processes that told something within the window, this one included.
    pub processes: u64,
    /// How many of them have an open breaker.
    pub open: u64,
    /// Calls of the window that came from those that have.
    pub open_calls: u64,
    /// What the other ones may spend of a budget before they tell again, in millionths of a retry.
    pub reserved: u64,
    /// Whether somebody holds it open or closed by hand.
    pub held: Option<Held>,
    /// The rate that somebody asked of last, if anybody did.
    pub rate: Option<SharedRate>,
    /// Permits of it that were booked in the window, less those that came back in the same second.
    pub permits: u64,
    /// What was booked by the delta that this answers.
    pub booked: Booked,
    /// The store's time.
    pub now: Time,
}

/// A breaker held by hand, for all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Nothing is let through.
    Open,
    /// Everything is let through.
    Closed,
}
