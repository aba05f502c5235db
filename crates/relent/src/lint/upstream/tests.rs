//! Each warning of a policy on an upstream, where it is due and where it is not.

use super::*;
use crate::core::{
    breaker::Breaker,
    budget::{Budget, settings::BudgetSettings},
    hedge::Hedge,
    jitter::Jitter,
};
use std::{string::String, string::ToString, time::Duration, vec::Vec};

const SEC: Duration = Duration::from_secs(1);
const ONE: &[Duration] = &[SEC];
const NONE: UpstreamSettings = UpstreamSettings { budget: None, breaker: None, limit: None, hedge: None };

fn told(policy: Policy, upstream: UpstreamSettings) -> Vec<String> {
    upstream.warnings(&policy).map(|warning| warning.to_string()).collect()
}

fn budget(budget: &Budget) -> UpstreamSettings {
    UpstreamSettings { budget: Some(budget.settings()), ..NONE }
}

fn breaker(open_for: Duration) -> UpstreamSettings {
    UpstreamSettings { breaker: Some(Breaker::consecutive(5).open_for(open_for).settings()), ..NONE }
}

#[test]
fn what_the_readme_shows_is_without_fault() {
    let bank = UpstreamSettings {
        budget: Some(Budget::ratio(0.1).settings()),
        hedge: Some(Hedge::after(SEC).settings()),
        ..breaker(30 * SEC)
    };
    assert!(told(Policy::default(), bank).is_empty(), "{:?}", told(Policy::default(), bank));
    assert!(told(Policy::default().cap(10 * SEC).unlimited_attempts(), bank).is_empty());
    assert!(told(Policy::default(), NONE).is_empty());
}

#[test]
fn a_breaker_that_is_over_too_soon() {
    let policy = Policy::exponential(SEC).jitter(Jitter::None).max_attempts(8);
    let text = "the breaker is too short: 4 of 7 retries wait for longer than the 5s it is open";
    assert_eq!(told(policy, breaker(5 * SEC)), [text], "8, 16, 32 and 64 s");
    assert!(told(policy, breaker(8 * SEC)).is_empty(), "3 of 7");
    assert!(told(policy.max_attempts(1), breaker(SEC / 1000)).is_empty(), "nothing is retried");
    assert_eq!(told(Policy::constant(10 * SEC), breaker(SEC)).len(), 1);
    assert!(told(policy.timeout(60 * SEC), breaker(5 * SEC)).is_empty(), "2 of the 5 that come in time");
}

#[test]
fn a_budget_without_a_floor() {
    let policy = Policy::default();
    let text = "the budget has no floor: with fewer than 10 calls in 10s it allows no retry";
    assert_eq!(told(policy, budget(&Budget::ratio(0.1).min_per_second(0))), [text]);
    assert!(told(policy, budget(&Budget::ratio(0.1))).is_empty());
    assert!(told(policy, budget(&Budget::ratio(1.0).min_per_second(0))).is_empty(), "the first call pays for one");
    assert!(told(policy.max_attempts(1), budget(&Budget::ratio(0.1).min_per_second(0))).is_empty());
    let in_flight = "the budget has no floor: with fewer than 5 attempts in flight it allows no retry";
    assert_eq!(told(policy, budget(&Budget::in_flight(0.2, 0))), [in_flight]);
    let never = "the budget has no floor: it never allows a retry";
    let of_nothing = |inclusive| {
        let budget = BudgetSettings::InFlight { share: 0.0, floor: 0, sleeping: true, inclusive };
        UpstreamSettings { budget: Some(budget), ..NONE }
    };
    assert_eq!(told(policy, of_nothing(false)), [never]);
    assert!(told(policy, of_nothing(true)).is_empty(), "one is always allowed while none is in flight");
    let finagle = BudgetSettings::Finagle { ttl: 10 * SEC, min_per_second: 0, ratio: 0.3 };
    let text = "the budget has no floor: with fewer than 4 calls in 10s it allows no retry";
    assert_eq!(told(policy, UpstreamSettings { budget: Some(finagle), ..NONE }), [text]);
}

#[test]
fn hedges_and_endless_retries_want_a_budget() {
    let hedge = UpstreamSettings { hedge: Some(Hedge::after(SEC).at_most(2).settings()), ..NONE };
    let text = "hedges have no budget: a far side that is slow gets up to 3 attempts instead of 1";
    assert_eq!(told(Policy::default(), hedge), [text]);
    let endless = Policy::constant(60 * SEC).jitter(Jitter::None).unlimited_attempts();
    let text =
        "endless retries have no budget: a far side that is down for an hour gets about 61 attempts of each call";
    assert_eq!(told(endless, NONE), [text]);
    let fast = "endless retries have no budget: a far side that is down for an hour gets more than 1000 attempts of each \
                call";
    assert_eq!(told(endless, UpstreamSettings { ..NONE }).len(), 1);
    assert_eq!(told(Policy::immediate().unlimited_attempts(), NONE), [fast]);
    assert!(told(endless.max_elapsed(600 * SEC), NONE).is_empty());
    assert!(told(endless.timeout(600 * SEC), NONE).is_empty());
    let at_once = Policy::constant(SEC / 1000).unlimited_attempts();
    assert!(told(at_once.max_elapsed(600 * SEC), NONE).is_empty(), "with full jitter, too");
    assert!(told(at_once.timeout(600 * SEC), NONE).is_empty());
    assert!(told(Policy::list(ONE).unlimited_attempts(), NONE).is_empty(), "the list ends");
}

#[test]
fn layers_multiply() {
    let (three, bare, ten_percent) = (Policy::default().max_attempts(3), NONE, budget(&Budget::ratio(0.1)));
    let chain = |layers: &[(&Policy, &UpstreamSettings)]| {
        Warning::of_chain(layers.iter().copied()).map(|warning| (warning.name(), warning.to_string()))
    };
    let text = |text: &str| Some(("multiplies", text.to_string()));
    assert_eq!(chain(&[(&three, &bare); 3]), text("retries multiply: 3 layers make up to 27 attempts of one call"));
    assert_eq!(chain(&[(&three, &ten_percent); 3]), None);
    assert_eq!(chain(&[(&three, &bare)]), None, "one layer multiplies nothing");
    assert_eq!(
        chain(&[(&three, &bare), (&three, &bare), (&three, &ten_percent)]),
        text("retries multiply: 3 layers make up to 9.9 attempts of one call")
    );
    let endless = three.unlimited_attempts();
    let without_end = "retries multiply: 2 layers make attempts of one call without end";
    assert_eq!(chain(&[(&endless, &bare), (&three, &bare)]), text(without_end));
    let timed = Policy::constant(SEC).unlimited_attempts().timeout(2 * SEC);
    let four = "retries multiply: 2 layers make up to 12 attempts of one call";
    assert_eq!(chain(&[(&timed, &bare), (&three, &bare)]), text(four), "on average at 0, 0.5, 1 and 1.5 s");
}
