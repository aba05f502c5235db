//! The upstream of a run: asked before each attempt, told of each end, paid for each retry.

use super::report::Outcome as End;
use relent::{Outcome, Policy, Timestamp, Upstream, UpstreamAnswer, UpstreamCall, Verdict, duration::Human, rng::mix};
use std::{sync::Arc, time::Duration};

/// What the upstream allows this run.
pub(super) struct Guard {
    call: Option<UpstreamCall<Arc<Upstream>>>,
    draws: u64,
}

/// Whether the next attempt may start.
pub(super) enum Answer {
    Go,
    Wait(Duration),
    /// No, and what to say about it.
    No(End, String),
}

impl Guard {
    pub(super) fn new(upstream: Option<Upstream>, seed: u64) -> Guard {
        Guard { call: upstream.map(|upstream| UpstreamCall::new(Arc::new(upstream))), draws: seed }
    }

    pub(super) fn ask(&mut self, now: Timestamp, within: Duration) -> Answer {
        let draw = self.draw();
        let Some(call) = &mut self.call else { return Answer::Go };
        match call.ask(now, draw, within) {
            UpstreamAnswer::Go => Answer::Go,
            UpstreamAnswer::Wait(wait) | UpstreamAnswer::Queue(wait) => Answer::Wait(wait),
            UpstreamAnswer::Refused(refused) => {
                let name = call.upstream().name();
                let again = match refused.again {
                    Timestamp::MAX => String::new(),
                    again => format!("; ask again in {}", Human(whole_millis(again.since(now)))),
                };
                Answer::No(End::GaveUp(refused.reason), format!("{name}: {}{again}", refused.reason))
            }
        }
    }

    /// An attempt has ended.
    pub(super) fn ended(&mut self, now: Timestamp, failure: Option<Verdict>) {
        let draw = self.draw();
        if let Some(call) = &mut self.call {
            call.outcome(now, failure.map_or(Outcome::Success, Outcome::Failure), draw);
        }
    }

    /// Whether a retry that the policy would make is paid for.
    pub(super) fn pay(&mut self, now: Timestamp, failure: Verdict) -> bool {
        let draw = self.draw();
        self.call.as_mut().is_none_or(|call| call.pay(now, Outcome::Failure(failure), draw))
    }

    /// What there is to say of a run that its budget stopped.
    pub(super) fn out_of_budget(&self) -> String {
        let upstream = self.call.as_ref().map(UpstreamCall::upstream);
        let name = upstream.map_or("upstream", Upstream::name);
        let budget = upstream.and_then(Upstream::its_budget).map_or("", |budget| budget.name());
        format!("{name}: its {budget} budget allows no retry now")
    }

    fn draw(&mut self) -> u64 {
        self.draws = mix(self.draws);
        self.draws
    }
}

/// As people read a wait.
fn whole_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// How long a call would wait to be let through: no longer than for a pushback, and not beyond its end.
pub(super) fn patience(policy: &Policy, elapsed: Duration, limit: Option<Duration>) -> Duration {
    let settings = policy.settings();
    let end = settings.max_elapsed.into_iter().chain(limit).min();
    let left = end.map_or(Duration::MAX, |end| end.saturating_sub(elapsed));
    left.min(settings.max_pushback.unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::{Breaker, Budget, Limit, Reason};

    const SEC: Duration = Duration::from_secs(1);

    #[test]
    fn without_an_upstream_everything_goes() {
        let mut guard = Guard::new(None, 1);
        for _ in 0..100 {
            assert!(matches!(guard.ask(Timestamp::ZERO, Duration::ZERO), Answer::Go));
            guard.ended(Timestamp::ZERO, Some(Verdict::Transient));
            assert!(guard.pay(Timestamp::ZERO, Verdict::Transient));
        }
    }

    #[test]
    fn the_budget_pays_for_retries_and_no_more() {
        let mut guard = Guard::new(Some(Upstream::new("bank").budget(Budget::grpc(10, 0.1))), 1);
        let mut attempts = 0;
        loop {
            assert!(matches!(guard.ask(Timestamp::ZERO, Duration::ZERO), Answer::Go));
            attempts += 1;
            guard.ended(Timestamp::ZERO, Some(Verdict::Transient));
            if !guard.pay(Timestamp::ZERO, Verdict::Transient) {
                break;
            }
        }
        assert_eq!(attempts, 5, "gRPC's 10 and 0.1 stop at the fifth failure");
        assert_eq!(guard.out_of_budget(), "bank: its grpc budget allows no retry now");
    }

    #[test]
    fn an_open_breaker_says_when_to_ask_again() {
        let breaker = Breaker::consecutive(1).open_for(30 * SEC);
        let mut guard = Guard::new(Some(Upstream::new("bank").breaker(breaker)), 1);
        assert!(matches!(guard.ask(Timestamp::ZERO, SEC), Answer::Go));
        guard.ended(Timestamp::ZERO, Some(Verdict::Transient));
        let Answer::No(end, said) = guard.ask(Timestamp::ZERO + SEC, SEC) else { panic!("it is open") };
        assert_eq!(end, End::GaveUp(Reason::Open));
        assert_eq!(said, "bank: breaker open; ask again in 29s");
    }

    #[test]
    fn a_rate_is_waited_for_within_limits() {
        let mut guard = Guard::new(Some(Upstream::new("bank").limit(Limit::rate(1))), 1);
        assert!(matches!(guard.ask(Timestamp::ZERO, SEC), Answer::Go));
        guard.ended(Timestamp::ZERO, Some(Verdict::Transient));
        assert!(guard.pay(Timestamp::ZERO, Verdict::Transient));
        assert!(matches!(guard.ask(Timestamp::ZERO, SEC), Answer::Wait(wait) if wait == SEC));
        let policy = Policy::default().max_elapsed(5 * SEC);
        assert_eq!(patience(&policy, 2 * SEC, None), 3 * SEC);
        assert_eq!(patience(&policy, 2 * SEC, Some(4 * SEC)), 2 * SEC);
        assert_eq!(patience(&Policy::default(), 2 * SEC, None), 120 * SEC);
    }
}
