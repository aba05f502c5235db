//! The ends of what settings allow, and settings that meet.

use crate::fake::Fake;
use relent::{Breaker, Cancel, Decision, Jitter, Policy, Reason, Timestamp, Upstream, Verdict, duration::Human};
use std::time::Duration;

const SEC: Duration = Duration::from_secs(1);

#[test]
fn the_time_elapsed_is_known_from_a_deadline_on() {
    let fake = Fake::default();
    fake.pass(7 * SEC);
    let policy = Policy::immediate();
    assert_eq!(policy.start_with(&fake).elapsed(), None);
    assert_eq!(policy.start_with(&fake).deadline_at(Timestamp::MAX).elapsed(), None, "that is no deadline");
    let retry = policy.start_with(&fake).deadline_at(Timestamp::ZERO + 60 * SEC);
    assert_eq!(retry.elapsed(), Some(Duration::ZERO));
    fake.pass(3 * SEC);
    assert_eq!(retry.elapsed(), Some(3 * SEC));
}

/// No delay has shortcuts of its own, in the loop and in the calls around a closure.
#[tokio::test]
async fn a_jitter_that_adds_to_no_delay_is_slept() {
    let policy = Policy::immediate().jitter(Jitter::Additive(10 * SEC)).max_attempts(20);
    let is_spread = |fake: &Fake| {
        let slept = fake.slept();
        assert!(slept.len() == 19 && fake.elapsed() > 30 * SEC && slept.iter().any(|one| *one > 5 * SEC), "{slept:?}");
    };
    let fake = Fake::default();
    let mut retry = policy.start_with(&fake);
    while retry.back_off_blocking("refused").is_ok() {}
    is_spread(&fake);
    let fake = Fake::default();
    assert!(policy.timer(&fake).retry_blocking(|_| Err::<(), _>("refused")).is_err());
    is_spread(&fake);
    let fake = Fake::default();
    assert!(policy.timer(&fake).retry(async |_| Err::<(), _>("refused")).await.is_err());
    is_spread(&fake);
}

#[test]
fn a_limit_that_is_added_later_claims_no_start_that_nobody_saw() {
    let (fake, end) = (Fake::default(), Timestamp::ZERO + 60 * SEC);
    for policy in [Policy::immediate(), Policy::constant(SEC)] {
        let mut retry = policy.start_with(&fake);
        retry.back_off_blocking("refused").unwrap();
        fake.pass(3 * SEC);
        let mut retry = retry.deadline_at(end);
        assert_eq!(retry.elapsed(), None, "no clock was read when it began");
        assert_eq!(retry.back_off_blocking("refused").map_err(|err| err.elapsed), Ok(()));
        assert_eq!(retry.elapsed(), None);

        let retry = policy.start_with(&fake).deadline_at(end);
        fake.pass(3 * SEC);
        assert_eq!(retry.deadline_at(end).elapsed(), Some(3 * SEC), "a second limit does not begin it anew");
    }
}

#[test]
fn what_was_healthy_is_forgotten_also_where_there_is_a_switch() {
    for switch_first in [true, false] {
        let (fake, cancel) = (Fake::default(), Cancel::new());
        let policy = Policy::immediate().max_attempts(3);
        let start = policy.start_with(&fake);
        let mut retry = match switch_first {
            true => start.cancel(&cancel).reset_after(60 * SEC),
            false => start.reset_after(60 * SEC).cancel(&cancel),
        };
        retry.back_off_blocking("refused").unwrap();
        retry.back_off_blocking("refused").unwrap();
        assert_eq!(retry.attempt().number(), 3);
        for _ in 0..5 {
            fake.pass(60 * SEC);
            retry.back_off_blocking("lost after a minute").unwrap();
            assert_eq!(retry.attempt().number(), 2, "the first failure of a new trouble");
        }
        cancel.cancel();
        fake.pass(60 * SEC);
        let err = retry.back_off_blocking("lost").unwrap_err();
        assert_eq!((err.reason, err.attempts), (Reason::Cancelled, 1));
    }
}

#[test]
fn the_sixteenth_collision_is_the_last() {
    let policy = Policy::slots(Duration::from_nanos(51_200));
    for seed in 0..20 {
        assert_eq!(policy.delays(seed).count(), 15);
        let mut call = policy.call(Timestamp::ZERO, seed);
        for collision in 1..=15 {
            let decision = call.on_failure(Timestamp::ZERO, Verdict::Transient);
            assert!(matches!(decision, Decision::Retry(_)), "collision {collision}: {decision:?}");
        }
        let end = call.on_failure(Timestamp::ZERO, Verdict::Transient);
        assert_eq!((end, call.failures()), (Decision::GiveUp(Reason::Attempts), 16));
    }
}

#[test]
fn slots_reach_their_cap_and_never_pass_it() {
    let slot = Duration::from_millis(1);
    let policy = Policy::slots(slot).cap(5 * slot);
    let delays: Vec<Duration> = (0..200).flat_map(|seed| policy.delays(seed).collect::<Vec<_>>()).collect();
    assert!(delays.iter().all(|delay| delay.as_nanos() % slot.as_nanos() == 0), "whole slots only");
    assert_eq!(delays.iter().max(), Some(&(5 * slot)), "the slot that ends at the cap is chosen, too");
    assert_eq!(delays.iter().min(), Some(&Duration::ZERO));
}

#[test]
fn a_delay_that_has_reached_the_cap_stays_there() {
    for policy in [Policy::exponential(SEC), Policy::fibonacci(SEC), Policy::linear(SEC)] {
        let policy = policy.jitter(Jitter::None).cap(10 * SEC).unlimited_attempts();
        let delays: Vec<Duration> = policy.delays(1).take(2000).collect();
        assert!(delays.is_sorted() && delays[0] == SEC, "{policy:?}");
        assert!(delays[20..].iter().all(|delay| *delay == 10 * SEC), "{policy:?}");
    }
}

#[test]
fn decorrelated_jitter_of_which_the_base_is_the_cap_has_one_delay() {
    let policy = Policy::exponential(SEC).cap(SEC).jitter(Jitter::Decorrelated);
    for seed in 0..100 {
        assert!(policy.delays(seed).all(|delay| delay == SEC));
    }
    assert!(policy.schedule().all(|row| (row.delay.min, row.delay.max) == (SEC, SEC)));
}

#[test]
fn an_error_says_when_it_is_worth_asking_again() {
    let fake = Fake::default();
    let bank = Upstream::new("bank").breaker(Breaker::consecutive(1).open_for(30 * SEC));
    let policy = Policy::immediate().max_attempts(1);
    let failed = policy.timer(&fake).on(&bank).retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    assert_eq!(failed.to_string(), "out of attempts after 1 attempt: down", "nobody has refused");
    let refused = policy.timer(&fake).on(&bank).retry_blocking(|_| Ok::<_, &str>(1)).unwrap_err();
    let again = refused.again_in.unwrap();
    assert!(again > Duration::ZERO && again <= 30 * SEC, "{again:?}");
    let said = format!("breaker open before the first attempt, again in {}", Human(again));
    assert_eq!(refused.to_string(), said);
    fake.pass(again);
    assert!(policy.timer(&fake).on(&bank).retry_blocking(|_| Ok::<_, &str>(1)).is_ok(), "then it is");
}
