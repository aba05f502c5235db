//! How a lease is waited for while somebody else holds it.

use relent::{Call, Decision, Policy, Timestamp, Verdict};
use std::time::Duration;

/// The shortest delay: a store is asked twenty times a second at most, whatever the policy says.
const SHORTEST: Duration = Duration::from_millis(50);

/// The delays by which a lease is asked for again: those of the run's policy, from the beginning again when they come to an end. How many
/// attempts there may be counts what the command does. No delay is longer than half of the time to live, so that a lease whose holder
/// died is not free for long, and none is so short that the store has nothing else to do.
pub(super) struct Delays {
    policy: Policy,
    seed: u64,
    call: Call,
}

impl Delays {
    pub(super) fn new(policy: &Policy, ttl: Duration, seed: u64) -> Delays {
        let policy = waiting(policy, ttl);
        Delays { policy, seed, call: begun(&policy, seed) }
    }

    pub(super) fn next(&mut self) -> Duration {
        let delay = self.of_policy().or_else(|| {
            self.call = begun(&self.policy, self.seed);
            self.of_policy()
        });
        delay.unwrap_or_default().max(SHORTEST)
    }

    fn of_policy(&mut self) -> Option<Duration> {
        match self.call.on_failure(Timestamp::ZERO, Verdict::Transient) {
            Decision::Retry(delay) => Some(delay),
            Decision::GiveUp(_) => None,
        }
    }
}

fn begun(policy: &Policy, seed: u64) -> Call {
    policy.call(Timestamp::ZERO, seed).into_owned()
}

/// The run's policy, without what the run counts itself, and no delay of which is longer than half of the time to live.
fn waiting(policy: &Policy, ttl: Duration) -> Policy {
    let mut settings = policy.settings();
    let half = ttl / 2;
    settings.max_attempts = None;
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
    use relent::{Curve, Jitter, Settings};

    const SEC: Duration = Duration::from_secs(1);

    const LIST: Policy = Policy::list(&[SEC, Duration::from_secs(2)]);

    #[test]
    fn a_lease_is_asked_for_without_end_and_at_least_twice_in_its_time() {
        let policies = [
            Policy::default(),
            Policy::constant(100 * SEC).max_attempts(3),
            Policy::exponential(SEC / 10).jitter(Jitter::Proportional(0.2)).max_elapsed(SEC).max_attempts(1),
            Policy::immediate().max_attempts(2),
            LIST,
            Settings::of(Curve::Slots { slot: SEC / 1000 }).policy().unwrap(),
        ];
        for policy in policies {
            for ttl in [SEC / 10, 30 * SEC] {
                let mut delays = Delays::new(&policy, ttl, 7);
                for _ in 0..100 {
                    let delay = delays.next();
                    assert!(delay <= ttl / 2 && delay >= SEC / 20, "{policy:?}, {ttl:?}: {delay:?}");
                }
            }
        }
    }

    #[test]
    fn a_list_begins_again() {
        let mut delays = Delays::new(&LIST, 30 * SEC, 7);
        assert_eq!([(); 5].map(|()| delays.next()), [SEC, 2 * SEC, SEC, 2 * SEC, SEC]);
    }
}
