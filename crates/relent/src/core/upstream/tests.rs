//! Each sentence about one call on an upstream, without an executor.

use super::{Upstream, ask::UpstreamAnswer, call::UpstreamCall};
use crate::{Breaker, BreakerState, Budget, Limit, Outcome, Reason, Refused, Timestamp, Verdict};
use core::time::Duration;

const SEC: Duration = Duration::from_secs(1);
const NO: Duration = Duration::ZERO;
const NOW: Timestamp = Timestamp::from_nanos(1_000_000_000_000);
const FAILED: Outcome = Outcome::Failure(Verdict::Transient);
const GO: UpstreamAnswer = UpstreamAnswer::Go;

fn refused(answer: UpstreamAnswer) -> Refused {
    match answer {
        UpstreamAnswer::Refused(refused) => refused,
        other => panic!("not refused: {other:?}"),
    }
}

fn fail(upstream: &Upstream, now: Timestamp) {
    let mut call = upstream.call();
    assert_eq!(call.ask(now, 0, NO), GO);
    call.outcome(now, FAILED, 0);
}

#[test]
fn a_first_attempt_that_is_refused_says_when_to_ask_again() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(1).open_for(30 * SEC));
    fail(&bank, NOW);
    let refused = refused(bank.call().ask(NOW + SEC, 0, NO));
    assert_eq!((refused.reason, refused.again), (Reason::Open, NOW + 30 * SEC));
    let now = bank.snapshot_at(NOW);
    assert_eq!((now.calls, now.attempts, now.refused_open), (2, 1, 1));
}

#[test]
fn the_breaker_is_asked_before_the_limiter() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(1)).limit(Limit::rate(1));
    fail(&bank, NOW);
    assert_eq!(refused(bank.call().ask(NOW, 0, NO)).reason, Reason::Open);
    assert_eq!(bank.its_limit().unwrap().book(NOW + SEC, NO), Some(NO), "the refusal cost no permit of the rate");
}

#[test]
fn permanent_is_an_answer_and_all_else_counts() {
    let twice = || Upstream::new("bank").breaker(Breaker::consecutive(1));
    for (outcome, trips) in [
        (Outcome::Success, false),
        (Outcome::Failure(Verdict::Permanent), false),
        (Outcome::Dropped, false),
        (Outcome::Failure(Verdict::Transient), true),
        (Outcome::Failure(Verdict::After(SEC)), true),
        (Outcome::Failure(Verdict::Turn(SEC)), true),
        (Outcome::Failure(Verdict::Overloaded), true),
        (Outcome::TimedOut, true),
    ] {
        let bank = twice();
        let mut call = bank.call();
        assert!(call.go_at_once(NOW));
        call.outcome(NOW, outcome, 0);
        let state = bank.its_breaker().unwrap().state();
        assert_eq!(state == BreakerState::Open, trips, "{outcome:?}");
    }
}

#[test]
fn an_outcome_is_told_once() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(2)).limit(Limit::concurrency(2));
    let mut call = bank.call();
    assert_eq!(call.ask(NOW, 0, NO), GO);
    for _ in 0..10 {
        call.outcome(NOW, FAILED, 0);
    }
    assert_eq!(bank.its_breaker().unwrap().state(), BreakerState::Closed);
    assert_eq!(bank.snapshot_at(NOW).limit.unwrap().in_flight, Some(0));
}

#[test]
fn what_is_dropped_gives_everything_back() {
    let bank = Upstream::new("bank")
        .breaker(Breaker::consecutive(1).open_for(SEC))
        .limit(Limit::concurrency(1))
        .budget(Budget::ratio(0.0).min_per_second(1));
    fail(&bank, NOW);
    let now = NOW + SEC;
    for _ in 0..5 {
        let mut probe = bank.call();
        assert_eq!(probe.ask(now, 0, NO), GO, "the place of the probe came back");
        assert_eq!(bank.snapshot_at(now).breaker.unwrap().probes, 1);
        drop(probe);
    }
    let before = bank.snapshot_at(now).balance;
    let mut sleeper = bank.call();
    assert!(sleeper.pay(now, FAILED, 0));
    assert_ne!(bank.snapshot_at(now).balance, before, "withdrawn when it is decided");
    drop(sleeper);
    assert_eq!(bank.snapshot_at(now).balance, before, "refunded when the sleep is cancelled");
}

#[test]
fn a_retry_that_is_refused_is_refunded() {
    for bank in [
        Upstream::new("open").breaker(Breaker::consecutive(1)).budget(Budget::ratio(0.1)),
        Upstream::new("full").limit(Limit::concurrency(1)).budget(Budget::ratio(0.1)),
    ] {
        let mut call = bank.call();
        assert_eq!(call.ask(NOW, 0, NO), GO);
        call.outcome(NOW, FAILED, 0);
        let before = bank.snapshot_at(NOW).balance;
        assert!(call.pay(NOW, FAILED, 0));
        let mut other = bank.call();
        _ = other.ask(NOW, 0, NO);
        refused(call.ask(NOW, 0, NO));
        drop(other);
        assert_eq!(bank.snapshot_at(NOW).balance, before, "{}", bank.name());
        assert_eq!(bank.snapshot_at(NOW).retries, 0);
    }
}

#[test]
fn an_open_breaker_is_waited_for_where_asked_and_no_longer_than_told() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(1).open_for(30 * SEC));
    fail(&bank, NOW);
    let mut call = bank.call().wait_while_open(true);
    assert_eq!(refused(call.ask(NOW, 9, 29 * SEC)).reason, Reason::Open);
    let UpstreamAnswer::Wait(wait) = call.ask(NOW, u64::MAX / 3, 60 * SEC) else { panic!("waits") };
    assert!(wait > 30 * SEC && wait <= 33 * SEC, "{wait:?}");
    assert_eq!(call.ask(NOW + wait, 0, NO), GO);
}

#[test]
fn a_rate_is_waited_for_in_the_order_they_came() {
    let gateway = Upstream::new("gateway").limit(Limit::rate(10));
    let mut calls: Vec<_> = (0..5).map(|_| gateway.call()).collect();
    let waits: Vec<_> = calls.iter_mut().map(|call| call.ask(NOW, 0, SEC)).collect();
    let tenth = SEC / 10;
    assert_eq!(waits[0], GO);
    for (nth, answer) in waits.iter().enumerate().skip(1) {
        assert_eq!(*answer, UpstreamAnswer::Wait(tenth * nth as u32));
    }
    assert_eq!(calls[4].ask(NOW + tenth * 4, 0, SEC), GO);
    drop(calls);
    let mut late = gateway.call();
    let shed = refused(late.ask(NOW, 0, NO));
    assert_eq!(shed.reason, Reason::Shed);
    assert!(shed.again > NOW);
}

#[test]
fn a_full_bulkhead_fails_at_once_or_queues() {
    let full = Upstream::new("full").limit(Limit::concurrency(1));
    let mut first = full.call();
    assert_eq!(first.ask(NOW, 0, SEC), GO);
    assert_eq!(refused(full.call().ask(NOW, 0, SEC)).reason, Reason::Shed);

    let queued = Upstream::new("queued").limit(Limit::concurrency(1).queue(1, SEC));
    let mut first = queued.call();
    let mut second = queued.call();
    assert_eq!(first.ask(NOW, 0, 5 * SEC), GO);
    assert_eq!(second.ask(NOW, 0, 5 * SEC), UpstreamAnswer::Queue(SEC));
    assert_eq!(refused(queued.call().ask(NOW, 0, SEC)).reason, Reason::Shed, "bounded in number");
    assert_eq!(second.ask(NOW + SEC / 2, 0, 5 * SEC), UpstreamAnswer::Queue(SEC / 2));
    first.outcome(NOW + SEC / 2, Outcome::Success, 0);
    assert!(queued.next(NOW + SEC / 2).is_some());
    assert_eq!(second.ask(NOW + SEC / 2, 0, 5 * SEC), GO);
    let mut third = queued.call();
    assert_eq!(third.ask(NOW, 0, 5 * SEC), UpstreamAnswer::Queue(SEC));
    assert_eq!(refused(third.ask(NOW + SEC, 0, 5 * SEC)).reason, Reason::Shed, "bounded in time");
    drop(second);
    let limit = queued.snapshot_at(NOW).limit.unwrap();
    assert_eq!((limit.in_flight, limit.queued), (Some(0), 0));
}

#[test]
fn a_throttle_refuses_first_attempts() {
    let busy = Upstream::new("busy").budget(Budget::throttle(1.1));
    let mut reasons = vec![];
    for k in 0..200 {
        let mut call = busy.call();
        if let UpstreamAnswer::Refused(refused) = call.ask(NOW, crate::rng::draw(3, k), NO) {
            reasons.push(refused.reason);
        }
        call.outcome(NOW, FAILED, 0);
    }
    assert!(reasons.len() > 150, "{}", reasons.len());
    assert!(reasons.iter().all(|reason| *reason == Reason::Budget));
    let now = busy.snapshot_at(NOW);
    assert_eq!((now.calls, now.attempts + now.refused_budget), (200, 200));
}

#[test]
fn a_new_configuration_goes_on_with_nothing_in_flight() {
    let old = Upstream::new("bank")
        .breaker(Breaker::consecutive(1))
        .limit(Limit::concurrency(2))
        .budget(Budget::in_flight(0.2, 3));
    let mut flying = old.call();
    assert_eq!(flying.ask(NOW, 0, NO), GO);
    fail(&old, NOW);
    let new = Upstream::new("bank")
        .breaker(Breaker::consecutive(3))
        .limit(Limit::concurrency(3))
        .budget(Budget::in_flight(0.2, 3))
        .adopt(&old, NOW);
    let now = new.snapshot_at(NOW);
    assert_eq!(now.breaker.unwrap().state, BreakerState::Open);
    assert_eq!((now.calls, now.limit.unwrap().in_flight, now.balance), (2, Some(0), Some(3.0)));
    drop(flying);
    assert_eq!(old.snapshot_at(NOW).limit.unwrap().in_flight, Some(0));
}

#[test]
fn held_by_hand() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(1));
    assert!(bank.hold_open_at(NOW));
    assert_eq!(refused(bank.call().ask(NOW, 0, NO)).again, Timestamp::MAX);
    assert!(bank.hold_closed_at(NOW));
    fail(&bank, NOW);
    fail(&bank, NOW);
    assert!(bank.release_at(NOW));
    fail(&bank, NOW);
    assert_eq!(refused(bank.call().ask(NOW, 0, NO)).reason, Reason::Open);
    assert!(!Upstream::new("none").hold_open_at(NOW));
}

#[test]
fn nothing_panics_for_any_input() {
    let bank = Upstream::new("bank")
        .breaker(Breaker::consecutive(1).open_for(Duration::MAX).open_at_most(Duration::MAX))
        .limit(Limit::rate(1))
        .budget(Budget::ratio(0.5));
    for now in [Timestamp::MAX, Timestamp::ZERO, NOW] {
        for draw in [0, u64::MAX] {
            for within in [NO, Duration::MAX] {
                let mut call = UpstreamCall::new(&bank).wait_while_open(true);
                _ = call.ask(now, draw, within);
                call.outcome(Timestamp::ZERO, FAILED, draw);
                call.pay(Timestamp::MAX, FAILED, draw);
                _ = call.ask(Timestamp::ZERO, draw, within);
                _ = bank.snapshot_at(now);
            }
        }
    }
}

#[test]
fn a_first_attempt_that_goes_at_once_is_a_call_like_others() {
    let bank = Upstream::new("bank").budget(Budget::ratio(0.1).min_per_second(0));
    for nth in 0..10 {
        assert_eq!(bank.snapshot_at(NOW).balance, Some(0.0), "after {nth} calls");
        let mut call = bank.call();
        assert!(call.go_at_once(NOW));
        assert!(!call.go_at_once(NOW), "it is under way");
        call.outcome(NOW, FAILED, 0);
        assert!(!call.go_at_once(NOW), "what comes now is a retry, which asks and pays");
    }
    let now = bank.snapshot_at(NOW);
    assert_eq!((now.balance, now.calls, now.attempts), (Some(1.0), 10, 10));
}

#[test]
fn a_retry_that_nobody_paid_for_pays_when_it_asks() {
    let bank = Upstream::new("bank").budget(Budget::ratio(0.1).min_per_second(1));
    let mut call = bank.call();
    assert!(call.go_at_once(NOW));
    for left in (0..10).rev() {
        call.outcome(NOW, FAILED, 0);
        assert_eq!(call.ask(NOW, 1, NO), GO);
        assert_eq!(bank.snapshot_at(NOW).balance, Some(f64::from(left)));
    }
    call.outcome(NOW, FAILED, 0);
    assert_eq!(refused(call.ask(NOW, 1, NO)).reason, Reason::Budget);
}

#[test]
fn who_waits_for_an_open_breaker_waits_as_long_as_told_and_no_longer() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(1).open_for(30 * SEC));
    fail(&bank, NOW);
    let ask = |within| bank.call().wait_while_open(true).ask(NOW, 0, within);
    assert_eq!(ask(30 * SEC), UpstreamAnswer::Wait(30 * SEC));
    assert_eq!(refused(ask(30 * SEC - Duration::from_nanos(1))).reason, Reason::Open);
}

#[test]
fn who_waits_for_the_limiter_keeps_no_place_of_a_probe() {
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(1).open_for(SEC)).limit(Limit::rate(1));
    fail(&bank, NOW);
    let later = NOW + 2 * SEC;
    assert_eq!(bank.its_limit().unwrap().book(later, NO), Some(NO));
    let mut call = bank.call();
    assert_eq!(call.ask(later, 0, 10 * SEC), UpstreamAnswer::Wait(SEC));
    assert!(bank.its_breaker().unwrap().permit(later, 0).is_ok(), "the only probe is to be had");
    assert_eq!(call.ask(later + SEC, 0, NO), GO);
}

#[test]
fn what_is_booked_is_waited_for_to_its_end() {
    let gateway = Upstream::new("gateway").limit(Limit::rate(100));
    let millis = Duration::from_millis;
    fail(&gateway, NOW);
    let mut call = gateway.call();
    assert_eq!(call.ask(NOW, 0, SEC), UpstreamAnswer::Wait(millis(10)));
    assert_eq!(call.ask(NOW + millis(4), 0, SEC), UpstreamAnswer::Wait(millis(6)));
    assert_eq!(call.ask(NOW + millis(10), 0, SEC), GO);
}

#[test]
fn who_does_not_wait_takes_no_place_in_the_queue() {
    let far = Upstream::new("far").limit(Limit::concurrency(1).queue(1, SEC));
    let mut first = far.call();
    assert_eq!(first.ask(NOW, 0, NO), GO);
    for _ in 0..3 {
        assert_eq!(refused(far.call().ask(NOW, 0, NO)).reason, Reason::Shed);
    }
    let mut second = far.call();
    assert_eq!(second.ask(NOW, 0, SEC), UpstreamAnswer::Queue(SEC), "its only place is free");
}
