//! How a lease is waited for while somebody else holds it.

use relent::Policy;
use std::time::Duration;

/// The policy by which a lease is waited for: the delays and the limits of time are those of the run. How many attempts
/// there may be counts what the command does; and no delay is longer than half of the time to live, so that a lease whose
/// holder died is not free for long.
pub(super) fn waiting(policy: &Policy, ttl: Duration) -> Policy {
    let mut settings = policy.settings();
    let half = ttl / 2;
    settings.max_attempts = None;
    // These are the run's, and counted by it.
    (settings.timeout, settings.max_elapsed, settings.attempt_timeout) = (None, None, None);
    settings.spread = Duration::ZERO;
    if settings.cap.is_none_or(|cap| cap > half) {
        settings.cap = Some(half);
    }
    let usual = || Policy::exponential(half / 16).cap(half).max_attempts(u32::MAX);
    // A base, a list or a jitter that is longer than that has no such cap.
    settings.policy().unwrap_or_else(|_| usual())
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::{Jitter, Timestamp, Verdict};

    #[test]
    fn a_lease_is_asked_for_without_end_and_at_least_twice_in_its_time() {
        const SEC: Duration = Duration::from_secs(1);
        let policies = [
            Policy::default(),
            Policy::constant(100 * SEC).max_attempts(3),
            Policy::exponential(SEC / 10).jitter(Jitter::Proportional(0.2)).max_elapsed(SEC).max_attempts(1),
            Policy::immediate().max_attempts(2),
        ];
        for policy in policies {
            let asks = waiting(&policy, 30 * SEC);
            let mut call = asks.call(Timestamp::ZERO, 7);
            for nth in 0..100_u64 {
                let decision = call.on_failure(Timestamp::ZERO + nth as u32 * SEC, Verdict::Transient);
                let relent::Decision::Retry(delay) = decision else { panic!("{policy:?} gave up: {decision:?}") };
                assert!(delay <= 15 * SEC, "{policy:?}: {delay:?}");
            }
        }
    }
}
