//! When the other systems stop, where that is not one of a policy's own limits.
//!
//! `max_attempts` and `max_elapsed` of a [`Policy`](crate::Policy) say it for most systems: no attempt later than
//! `max_elapsed` is what cenkalti and google-api-core do. The rules here count differently.

use crate::{Backoff, Step};
use core::time::Duration;

/// A rule for delays that ends by a rule of its own.
///
/// ```
/// use relent::{Policy, compat::{Formula, Growth, Stop, Stopped}};
/// use std::time::Duration;
///
/// static DOUBLING: Formula = Formula { growth: Growth::Power { factor: 2.0 }, ..Formula::SECONDS };
/// static RULE: Stopped = Stopped { rule: &DOUBLING, stop: Stop::Reached(Duration::from_secs(10)) };
/// // Stops when 10 s have passed, so its last attempt is at 15 s.
/// const POLICY: Policy = Policy::custom(&RULE).unlimited_attempts();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stopped {
    /// The delays.
    pub rule: &'static dyn Backoff,
    /// When they end.
    pub stop: Stop,
}

/// When to stop.
///
/// ```
/// use relent::{Policy, compat::{Formula, Stop, Stopped}};
/// use std::time::Duration;
///
/// static EACH_SECOND: Formula = Formula::SECONDS;
/// static REACHED: Stopped = Stopped { rule: &EACH_SECOND, stop: Stop::Reached(Duration::from_secs(3)) };
/// static BEFORE: Stopped = Stopped { rule: &EACH_SECOND, stop: Stop::WouldReach(Duration::from_secs(3)) };
/// let delays = |policy: Policy| policy.unlimited_attempts().delays(1).count();
/// assert_eq!((delays(Policy::custom(&REACHED)), delays(Policy::custom(&BEFORE))), (3, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Once this long has passed when an attempt fails (tenacity's `stop_after_delay`). The delay decided on just
    /// before may carry the last attempt far past it.
    Reached(Duration),
    /// Once this long would have passed, or just passed, after the next delay (tenacity's `stop_before_delay`).
    WouldReach(Duration),
    /// Once more than this has passed; until then delays are cut to what is left (Failsafe's `maxDuration`). Near the
    /// end the delay is next to nothing, and the loop spins.
    Cut(Duration),
}

impl Backoff for Stopped {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn delay(&self, step: &mut Step) -> Option<Duration> {
        let delay = self.rule.delay(step)?;
        match self.stop {
            Stop::Reached(most) => (step.elapsed < most).then_some(delay),
            Stop::WouldReach(most) => (step.elapsed.saturating_add(delay) < most).then_some(delay),
            Stop::Cut(most) => (step.elapsed <= most).then(|| delay.min(most.saturating_sub(step.elapsed))),
        }
    }

    fn handles_pushback(&self) -> bool {
        self.rule.handles_pushback()
    }

    fn stops_after(&self) -> Option<Duration> {
        let (Stop::Reached(most) | Stop::WouldReach(most) | Stop::Cut(most)) = self.stop;
        Some(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decision, Policy, Timestamp, Verdict, compat::Formula};

    static SECOND: Formula = Formula::SECONDS;

    fn last_attempt_at(stop: Stop, max_calls: u32) -> (Duration, u32) {
        let rule: &'static Stopped = Box::leak(Box::new(Stopped { rule: &SECOND, stop }));
        let policy = Policy::custom(rule).max_attempts(max_calls);
        let (mut now, mut call) = (Timestamp::ZERO, policy.call(Timestamp::ZERO, 1));
        while let Decision::Retry(delay) = call.on_failure(now, Verdict::Transient) {
            now = now + delay;
        }
        (now.since(Timestamp::ZERO), call.failures())
    }

    #[test]
    fn tenacity_overshoots_unless_told_to_stop_before() {
        let limit = Duration::from_millis(2500);
        assert_eq!(last_attempt_at(Stop::Reached(limit), 100), (Duration::from_secs(3), 4));
        assert_eq!(last_attempt_at(Stop::WouldReach(limit), 100), (Duration::from_secs(2), 3));
    }

    #[test]
    fn a_rule_says_when_it_stops() {
        let limit = Duration::from_millis(2500);
        for stop in [Stop::Reached(limit), Stop::WouldReach(limit), Stop::Cut(limit)] {
            assert_eq!(Stopped { rule: &SECOND, stop }.stops_after(), Some(limit));
        }
        assert_eq!(SECOND.stops_after(), None);
    }

    /// Only real time, which a sleep of nothing does not move, ends this loop.
    #[test]
    fn failsafe_spins_at_its_maximum_duration() {
        let limit = Duration::from_millis(2500);
        assert_eq!(last_attempt_at(Stop::Cut(limit), 100), (limit, 100));
    }
}
