//! Waiting between attempts: until it is time, or until a signal comes.

use super::{lease::Leased, narrator::Narrator, report::Outcome, signals::Signals};
use std::time::{Duration, Instant};

/// Waits; what the run comes to, if a signal or the end of the lease ended the wait early.
pub(super) fn wait(
    delay: Duration,
    attempt: u32,
    signals: &Signals,
    narrator: &mut Narrator,
    lease: Option<&Leased>,
) -> Option<Outcome> {
    let started = Instant::now();
    loop {
        let left = delay.saturating_sub(started.elapsed());
        if left.is_zero() {
            narrator.wait_is_over();
            return None;
        }
        let most = narrator.waiting(attempt, delay, left).unwrap_or(left);
        let lost = lease.map_or(left, |lease| lease.tell_at().saturating_duration_since(Instant::now()));
        let signal = signals.wait(most.min(left).min(lost)).map(Outcome::Interrupted);
        let lost = || lease.filter(|lease| lease.is_lost()).map(|_| Outcome::LeaseLost);
        if let Some(outcome) = signal.or_else(lost) {
            narrator.wait_is_over();
            return Some(outcome);
        }
    }
}
