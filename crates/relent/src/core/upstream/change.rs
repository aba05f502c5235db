//! What listeners of an upstream are told.

use crate::core::{breaker::BreakerState, time::Timestamp};
use core::fmt;

/// The breaker of an upstream went from one state to another: what listeners are told.
///
/// Shown as `bank: closed -> open`.
///
/// ```
/// use relent::{Breaker, BreakerState, Timestamp, Upstream};
/// use std::sync::{Arc, Mutex};
///
/// let bank = Upstream::new("bank").breaker(Breaker::consecutive(5));
/// let states = Arc::new(Mutex::new(vec![]));
/// let seen = states.clone();
/// bank.listen(move |change| seen.lock().unwrap().push((change.from, change.to, change.at)));
/// bank.hold_open_at(Timestamp::ZERO);
/// assert_eq!(*states.lock().unwrap(), [(BreakerState::Closed, BreakerState::HeldOpen, Timestamp::ZERO)]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamChange<'a> {
    /// The name of the upstream.
    pub upstream: &'a str,
    /// The state before.
    pub from: BreakerState,
    /// The state now.
    pub to: BreakerState,
    /// When.
    pub at: Timestamp,
    /// Until when it is open at least; `None` in every other state.
    pub until: Option<Timestamp>,
}

impl fmt::Display for UpstreamChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.upstream, self.from, self.to)
    }
}
