//! The upstream of a command's calls: asked before each attempt, told of each end, paid for each retry. The same in every
//! subcommand that makes calls.

use crate::{
    json::Object,
    policy_args::PolicyArgs,
    redact,
    talk::{self, Fault, TalkArgs},
    upstream::sharing::{Leave, Sharing},
    upstream_args::{Described, UpstreamArgs},
};
use relent::{
    BreakerState, Call, HedgedCall, Outcome, Policy, Reason, Timestamp, Upstream, UpstreamAnswer, UpstreamCall,
    UpstreamSnapshot, Verdict, duration::Human, rng::mix,
};
use std::{fmt, sync::Arc, time::Duration};

/// What the upstream allows the calls of this command.
pub(crate) struct Guard {
    call: Option<UpstreamCall<Arc<Upstream>>>,
    /// What this process shares of it with all others.
    sharing: Option<Sharing>,
    is_first: bool,
    draws: u64,
}

/// Whether the next attempt may start.
pub(crate) enum Answer {
    Go,
    Wait(Duration),
    /// No, why, and what to say about it.
    No(Reason, String),
}

/// Leave for one attempt: for the call's own, or for a hedge of it.
pub(crate) struct Permit(Option<UpstreamCall<Arc<Upstream>>>);

impl Permit {
    /// For the attempt that was let through.
    pub(crate) fn own() -> Permit {
        Permit(None)
    }
}

/// The upstream of the flags and the file, for a command that makes one attempt at a time, as `why` says: a hedge on a flag
/// is a mistake, and one of the file, which is there for others, is left out.
///
/// # Errors
///
/// The flags or the file make no sense, or ask for a hedge.
pub(crate) fn unhedged(
    args: &UpstreamArgs,
    policy: &PolicyArgs,
    talk: TalkArgs,
    why: &str,
) -> Result<Option<Described>, Fault> {
    if args.hedge.is_some() {
        return Err(Fault::new(format!("--hedge: {why}"))
            .hint("leave --hedge out; a hedge is for calls that are safe to run twice at once"));
    }
    let described = args.draft(policy)?;
    if let Some(described) = described.as_ref().filter(|described| described.draft.settings().hedge.is_some()) {
        talk::remark(talk, &format!("{}: its hedge is left out: {why}", described.name));
    }
    Ok(described)
}

/// The upstream that is described, with nothing counted yet.
///
/// # Errors
///
/// A part of it makes no sense.
pub(crate) fn upstream(described: Option<&Described>) -> Result<Option<Upstream>, Fault> {
    let built = described.map(|described| described.draft.upstream(&described.name));
    built.transpose().map_err(|bad| Fault::new(bad.problem).hint(bad.hint))
}

impl Guard {
    pub(crate) fn new(upstream: Option<impl Into<Arc<Upstream>>>, seed: u64) -> Guard {
        let call = upstream.map(|upstream| UpstreamCall::new(upstream.into()));
        Guard { call, sharing: None, is_first: true, draws: seed }
    }

    /// With what this process shares of the upstream with all others.
    #[must_use]
    pub(crate) fn sharing(self, sharing: Option<Sharing>) -> Guard {
        Guard { sharing, ..self }
    }

    /// What there is to say of the others since this was last asked.
    pub(crate) fn take_remarks(&mut self) -> Vec<String> {
        self.sharing.as_mut().map(Sharing::take_remarks).unwrap_or_default()
    }

    /// What all others know, once this process's own upstream lets an attempt through.
    fn ask_others(&mut self, within: Duration) -> Answer {
        let Some(sharing) = &mut self.sharing else { return Answer::Go };
        let name = self.call.as_ref().map_or("upstream", |call| call.upstream().name());
        match sharing.ask(self.is_first, within) {
            Leave::Go => {
                self.is_first = false;
                Answer::Go
            }
            // This process's own leave stays: asked again, it says so at once.
            Leave::Wait(wait) => Answer::Wait(wait),
            Leave::No(reason, why) => Answer::No(reason, format!("{name}: {why}")),
        }
    }

    pub(crate) fn ask(&mut self, now: Timestamp, within: Duration) -> Answer {
        let draw = self.draw();
        let Some(call) = &mut self.call else { return Answer::Go };
        match call.ask(now, draw, within) {
            UpstreamAnswer::Go => self.ask_others(within),
            UpstreamAnswer::Wait(wait) | UpstreamAnswer::Queue(wait) => Answer::Wait(wait),
            UpstreamAnswer::Refused(refused) => {
                let name = call.upstream().name();
                let again = match refused.again {
                    Timestamp::MAX => String::new(),
                    again => format!("; ask again in {}", Human(whole_millis(again.since(now)))),
                };
                Answer::No(refused.reason, format!("{name}: {}{again}", refused.reason))
            }
        }
    }

    /// The attempt that was let through starts now: to ask the others, and to wait for them, is no latency of the far side.
    pub(crate) fn starts(&mut self, now: Timestamp) {
        if let Some(call) = &mut self.call {
            call.starts(now);
        }
    }

    /// The attempt that was let through has begun, or begins now; what was not gives back what it had when this is dropped.
    pub(crate) fn begins(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.begins();
        }
    }

    /// An attempt has ended.
    pub(crate) fn ended(&mut self, now: Timestamp, outcome: Outcome) {
        self.ended_by(Permit::own(), now, outcome);
    }

    /// The attempt with this leave has ended.
    pub(crate) fn ended_by(&mut self, permit: Permit, now: Timestamp, outcome: Outcome) {
        let draw = self.draw();
        let Some(call) = &mut self.call else { return };
        match permit.0 {
            None => call.outcome(now, outcome, draw),
            Some(mut hedge) => hedge.outcome(now, outcome, draw),
        }
        if let Some(sharing) = &mut self.sharing {
            let state = call.upstream().its_breaker().map(|breaker| breaker.state());
            let is_open = matches!(state, Some(BreakerState::Open | BreakerState::HeldOpen));
            sharing.ended(outcome, is_open);
        }
    }

    /// The attempt with this leave was dropped, since another one has the answer.
    pub(crate) fn give_back(&mut self, permit: Permit) {
        match (permit.0, &mut self.call) {
            (Some(mut hedge), _) => hedge.give_back(),
            (None, Some(call)) => call.give_back(),
            (None, None) => {}
        }
    }

    /// When hedges of an attempt that starts now are due, if the upstream has any.
    pub(crate) fn hedged(&self, now: Timestamp) -> Option<HedgedCall> {
        Some(self.call.as_ref()?.upstream().its_hedge()?.start(now))
    }

    /// Leave for one attempt more beside those under way; why not, if the budget does not pay for it or it would have to wait.
    pub(crate) fn hedge(&mut self, now: Timestamp) -> Result<Permit, String> {
        let (to_pay, to_ask) = (self.draw(), self.draw());
        let Some(call) = &self.call else { return Ok(Permit::own()) };
        let mut hedge = call.hedge();
        let is_paid = hedge.pay(now, Outcome::Failure(Verdict::Transient), to_pay);
        if !is_paid || !self.sharing.as_mut().is_none_or(Sharing::pay) {
            return Err(format!("{}, and no hedge", self.out_of_budget()));
        }
        match hedge.ask(now, to_ask, Duration::ZERO) {
            UpstreamAnswer::Go if self.sharing.as_mut().is_none_or(Sharing::ask_for_a_hedge) => Ok(Permit(Some(hedge))),
            _ => Err(format!("{}: no hedge is let through now", call.upstream().name())),
        }
    }

    /// Whether what the policy would run next is paid for. After a success that is no retry, and costs nothing.
    pub(crate) fn pay(&mut self, now: Timestamp, outcome: Outcome) -> bool {
        let draw = self.draw();
        if outcome == Outcome::Success {
            return true;
        }
        let Some(call) = &mut self.call else { return true };
        call.pay(now, outcome, draw) && self.sharing.as_mut().is_none_or(Sharing::pay)
    }

    /// What there is to say of a run that its budget stopped.
    pub(crate) fn out_of_budget(&self) -> String {
        let upstream = self.call.as_ref().map(UpstreamCall::upstream);
        let name = upstream.map_or("upstream", Upstream::name);
        let budget = upstream.and_then(Upstream::its_budget).map_or("", |budget| budget.name());
        format!("{name}: its {budget} budget allows no retry now")
    }

    /// What the upstream has counted; nothing without one.
    pub(crate) fn told(&self, now: Timestamp) -> Option<Told> {
        let upstream = self.call.as_ref()?.upstream();
        Some(Told { name: upstream.name().to_owned(), snapshot: upstream.snapshot_at(now) })
    }

    fn draw(&mut self) -> u64 {
        self.draws = mix(self.draws);
        self.draws
    }
}

/// What an upstream has counted in the end.
pub(crate) struct Told {
    name: String,
    snapshot: UpstreamSnapshot,
}

impl Told {
    /// As an event of `--json`, of one target of several if there is one.
    pub(crate) fn to_json(&self, target: Option<&str>) -> String {
        let now = &self.snapshot;
        let mut event = Object::new();
        event.text("event", "upstream");
        if let Some(target) = target {
            event.text("target", &redact::text(target));
        }
        event.text("upstream", &redact::text(&self.name)).number("attempts", now.attempts);
        event.number("retries", now.retries).number("hedges", now.hedges);
        event.number("refused_open", now.refused_open).number("refused_shed", now.refused_shed);
        event.number("refused_budget", now.refused_budget);
        event.option("breaker", now.breaker.map(|breaker| breaker.state.to_string()).as_deref());
        event.float("balance", now.balance).finish()
    }
}

/// `bank: 5 attempts, 4 retries; breaker open; balance 0`.
impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = &self.snapshot;
        let plural = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        write!(f, "{}: {}", self.name, plural(now.attempts, "attempt", "attempts"))?;
        write!(f, ", {}", plural(now.retries, "retry", "retries"))?;
        if now.hedges > 0 {
            write!(f, ", {}", plural(now.hedges, "hedge", "hedges"))?;
        }
        if let Some(breaker) = now.breaker {
            write!(f, "; breaker {}", breaker.state)?;
        }
        now.balance.map_or(Ok(()), |balance| write!(f, "; balance {balance}"))
    }
}

/// As people read a wait.
fn whole_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// Whether an attempt may start now. A program takes its time to begin, and a first attempt that waits for nothing is made, however short the time
/// in which others may start.
pub(crate) fn may_start(call: &Call<&Policy>, now: Timestamp) -> bool {
    const TO_BEGIN: Duration = Duration::from_millis(100);
    let begins = call.attempt() == 1 && call.spread().is_zero() && call.elapsed(now) < TO_BEGIN;
    call.may_start(now) || begins && call.attempt_limit(now).is_none_or(|left| !left.is_zero())
}

/// How long a call would wait to be let through: no longer than for a pushback, and not beyond its end. `elapsed` is since it began, and `left` what
/// is left until everything ends.
pub(crate) fn patience(policy: &Policy, elapsed: Duration, left: Option<Duration>) -> Duration {
    let settings = policy.settings();
    let of_call = settings.max_elapsed.map(|most| most.saturating_sub(elapsed));
    let least = of_call.into_iter().chain(left).chain(settings.max_pushback).min();
    least.unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::{Breaker, Budget, Limit};

    const SEC: Duration = Duration::from_secs(1);
    const FAILED: Outcome = Outcome::Failure(Verdict::Transient);

    #[test]
    fn without_an_upstream_everything_goes() {
        let mut guard = Guard::new(None::<Upstream>, 1);
        for _ in 0..100 {
            assert!(matches!(guard.ask(Timestamp::ZERO, Duration::ZERO), Answer::Go));
            guard.ended(Timestamp::ZERO, FAILED);
            assert!(guard.pay(Timestamp::ZERO, FAILED));
        }
    }

    #[test]
    fn the_budget_pays_for_retries_and_no_more() {
        let mut guard = Guard::new(Some(Upstream::new("bank").budget(Budget::grpc(10, 0.1))), 1);
        let mut attempts = 0;
        loop {
            assert!(matches!(guard.ask(Timestamp::ZERO, Duration::ZERO), Answer::Go));
            attempts += 1;
            guard.ended(Timestamp::ZERO, FAILED);
            if !guard.pay(Timestamp::ZERO, FAILED) {
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
        guard.ended(Timestamp::ZERO, FAILED);
        let Answer::No(end, said) = guard.ask(Timestamp::ZERO + SEC, SEC) else { panic!("it is open") };
        assert_eq!(end, Reason::Open);
        assert_eq!(said, "bank: breaker open; ask again in 29s");
    }

    #[test]
    fn a_rate_is_waited_for_within_limits() {
        let mut guard = Guard::new(Some(Upstream::new("bank").limit(Limit::rate(1))), 1);
        assert!(matches!(guard.ask(Timestamp::ZERO, SEC), Answer::Go));
        guard.ended(Timestamp::ZERO, FAILED);
        assert!(guard.pay(Timestamp::ZERO, FAILED));
        assert!(matches!(guard.ask(Timestamp::ZERO, SEC), Answer::Wait(wait) if wait == SEC));
        let policy = Policy::default().max_elapsed(5 * SEC);
        assert_eq!(patience(&policy, 2 * SEC, None), 3 * SEC);
        assert_eq!(patience(&policy, 2 * SEC, Some(2 * SEC)), 2 * SEC, "as is left until everything ends");
        assert_eq!(patience(&policy, 2 * SEC, Some(4 * SEC)), 3 * SEC);
        assert_eq!(patience(&Policy::default(), 2 * SEC, None), 120 * SEC);
    }

    /// What was waited for before it started is not how long it took.
    #[test]
    fn a_wait_for_others_is_no_latency() {
        let slow = Breaker::consecutive(9).or_slow(SEC, 0.5).min_calls(1);
        let mut guard = Guard::new(Some(Upstream::new("bank").breaker(slow)), 1);
        assert!(matches!(guard.ask(Timestamp::ZERO, SEC), Answer::Go));
        guard.starts(Timestamp::ZERO + 9 * SEC);
        guard.ended(Timestamp::ZERO + 9 * SEC + SEC / 2, Outcome::Success);
        assert!(matches!(guard.ask(Timestamp::ZERO + 10 * SEC, SEC), Answer::Go));
    }

    /// AWS's quota costs more for what timed out.
    #[test]
    fn a_timeout_is_told_as_one() {
        let paid = |outcome| {
            let mut guard = Guard::new(Some(Upstream::new("bank").budget(Budget::aws_quota_2_0())), 1);
            (0..1000).take_while(|_| guard.pay_after(outcome)).count()
        };
        assert_eq!((paid(FAILED), paid(Outcome::TimedOut)), (100, 50));
    }

    #[test]
    fn what_comes_after_a_success_is_no_retry() {
        let upstream = Upstream::new("bank").budget(Budget::in_flight(0.0, 0));
        let mut guard = Guard::new(Some(upstream), 1);
        assert!((0..100).all(|_| guard.pay_after(Outcome::Success)));
        assert!(!guard.pay_after(FAILED));
    }

    impl Guard {
        /// An attempt that ended so, and whether another is paid for.
        fn pay_after(&mut self, outcome: Outcome) -> bool {
            assert!(matches!(self.ask(Timestamp::ZERO, Duration::ZERO), Answer::Go));
            self.ended(Timestamp::ZERO, outcome);
            self.pay(Timestamp::ZERO, outcome)
        }
    }
}
