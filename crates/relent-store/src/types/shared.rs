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
    /// Whether the process says goodbye: it has no vote any more; what it did still counts.
    pub is_last: bool,
}

/// What all processes together know of an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Calls in the window.
    pub calls: u64,
    /// Retries in the window.
    pub retries: u64,
    /// Successes in the window.
    pub successes: u64,
    /// Failures in the window.
    pub failures: u64,
    /// Failures in a row, of all processes.
    pub run: u64,
    /// Processes that told something within the window, this one included.
    pub processes: u64,
    /// How many of them have an open breaker.
    pub open: u64,
    /// Calls of the window that came from those that have.
    pub open_calls: u64,
    /// Whether somebody holds it open or closed by hand.
    pub held: Option<Held>,
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
