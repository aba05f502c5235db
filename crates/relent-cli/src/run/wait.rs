//! Waiting between attempts: until it is time, or until a signal comes.

use super::{narrator::Narrator, signals::Signals};
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// Waits; the signal that ended the wait early, if one did.
pub(super) fn wait(delay: Duration, attempt: u32, signals: &Signals, narrator: &mut Narrator) -> Option<Signal> {
    let started = Instant::now();
    loop {
        let left = delay.saturating_sub(started.elapsed());
        if left.is_zero() {
            narrator.wait_is_over();
            return None;
        }
        let most = narrator.waiting(attempt, delay, left).unwrap_or(left);
        if let Some(signal) = signals.wait(most.min(left)) {
            narrator.wait_is_over();
            return Some(signal);
        }
    }
}
