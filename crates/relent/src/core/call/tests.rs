use super::*;
use crate::core::jitter::Jitter;

const SEC: Duration = Duration::from_secs(1);
const NOW: Timestamp = Timestamp::from_nanos(5_000_000_000);

fn retry(call: &mut Call<&Policy>, verdict: Verdict) -> Duration {
    match call.on_failure(NOW, verdict) {
        Decision::Retry(delay) => delay,
        Decision::GiveUp(reason) => panic!("gave up: {reason}"),
    }
}

#[test]
fn counts_attempts_and_stops() {
    let policy = Policy::default().max_attempts(3);
    let mut call = policy.call(NOW, 1);
    assert_eq!(call.attempt(), 1);
    retry(&mut call, Verdict::Transient);
    retry(&mut call, Verdict::Transient);
    assert_eq!(call.attempt(), 3);
    assert_eq!(call.on_failure(NOW, Verdict::Transient), Decision::GiveUp(Reason::Attempts));
    assert_eq!(call.failures(), 3);
}

#[test]
fn verdicts_stop_before_limits() {
    let policy = Policy::default().max_attempts(1);
    assert_eq!(policy.call(NOW, 1).on_failure(NOW, Verdict::Permanent), Decision::GiveUp(Reason::Permanent));
    assert_eq!(policy.call(NOW, 1).on_failure(NOW, Verdict::Overloaded), Decision::GiveUp(Reason::Overloaded));
}

#[test]
fn a_pushback_raises_a_delay_and_never_shortens_it() {
    let policy = Policy::constant(10 * SEC).jitter(Jitter::Equal);
    for seed in 0..1000 {
        let raised = retry(&mut policy.call(NOW, seed), Verdict::After(60 * SEC));
        assert!(raised >= 60 * SEC && raised < 66 * SEC, "{raised:?}");
        let kept = retry(&mut policy.call(NOW, seed), Verdict::After(SEC));
        assert_eq!(kept, retry(&mut policy.call(NOW, seed), Verdict::Transient));
    }
}

#[test]
fn a_rule_that_handles_pushbacks_is_left_alone() {
    #[derive(Debug)]
    struct Half;
    impl crate::Backoff for Half {
        fn name(&self) -> &str {
            "half"
        }
        fn delay(&self, step: &mut Step) -> Option<Duration> {
            match step.verdict {
                Verdict::After(pushback) => Some(pushback / 2),
                _ => Some(SEC),
            }
        }
        fn handles_pushback(&self) -> bool {
            true
        }
    }
    let policy = Policy::custom(&Half);
    let mut call = policy.call(NOW, 1);
    assert_eq!(retry(&mut call, Verdict::After(10 * SEC)), 5 * SEC);
    assert_eq!(call.on_failure(NOW, Verdict::After(121 * SEC)), Decision::GiveUp(Reason::PushbackTooLong));
}

#[test]
fn pushbacks_are_spread_unless_there_is_no_jitter() {
    let spread = Policy::constant(SEC);
    let first = retry(&mut spread.call(NOW, 1), Verdict::After(30 * SEC));
    assert_ne!(first, retry(&mut spread.call(NOW, 2), Verdict::After(30 * SEC)));
    let exact = spread.jitter(Jitter::None);
    assert_eq!(retry(&mut exact.call(NOW, 1), Verdict::After(30 * SEC)), 30 * SEC);
}

#[test]
fn a_pushback_that_is_too_long_ends_the_call_at_once() {
    let give_up = |policy: Policy, after: Duration| policy.call(NOW, 1).on_failure(NOW, Verdict::After(after));
    let policy = Policy::default();
    let too_long = Decision::GiveUp(Reason::PushbackTooLong);
    assert_eq!(give_up(policy, 121 * SEC), too_long);
    assert_eq!(give_up(policy, Duration::MAX), too_long);
    assert_eq!(give_up(policy.max_elapsed(29 * SEC), 30 * SEC), too_long);
    assert!(matches!(give_up(policy.max_pushback(3600 * SEC), 121 * SEC), Decision::Retry(_)));
}

#[test]
fn the_spread_of_a_pushback_does_not_make_it_too_late() {
    let policy = Policy::constant(SEC).max_elapsed(30 * SEC);
    for seed in 0..100 {
        assert_eq!(retry(&mut policy.call(NOW, seed), Verdict::After(30 * SEC)), 30 * SEC);
    }
}

#[test]
fn nothing_starts_after_max_elapsed_or_at_the_deadline() {
    let policy = Policy::constant(2 * SEC).jitter(Jitter::None).unlimited_attempts().max_elapsed(5 * SEC);
    let mut call = policy.call(NOW, 1);
    assert_eq!(call.on_failure(NOW + 3 * SEC, Verdict::Transient), Decision::Retry(2 * SEC));
    let late = NOW + 3 * SEC + Duration::from_nanos(1);
    assert_eq!(call.on_failure(late, Verdict::Transient), Decision::GiveUp(Reason::Elapsed));

    let policy = Policy::constant(2 * SEC).jitter(Jitter::None);
    let mut call = policy.call(NOW, 1).deadline_at(NOW + 2 * SEC);
    assert_eq!(call.on_failure(NOW, Verdict::Transient), Decision::GiveUp(Reason::Elapsed));
}

#[test]
fn a_timeout_counts_from_the_beginning_and_a_deadline_may_come_first() {
    let policy = Policy::constant(2 * SEC).jitter(Jitter::None).timeout(5 * SEC);
    let mut call = policy.call(NOW, 1);
    assert_eq!(call.attempt_limit(NOW), Some(5 * SEC));
    assert_eq!(call.attempt_limit(NOW + 4 * SEC), Some(SEC), "an attempt has what is left");
    let last = NOW + 3 * SEC;
    let mut late = call.clone();
    assert_eq!(late.on_failure(last, Verdict::Transient), Decision::GiveUp(Reason::Elapsed));
    let before = Timestamp::from_nanos(last.as_nanos() - 1);
    assert_eq!(call.on_failure(before, Verdict::Transient), Decision::Retry(2 * SEC));
    assert!(call.may_start(Timestamp::from_nanos((NOW + 5 * SEC).as_nanos() - 1)) && !call.may_start(NOW + 5 * SEC));

    let sooner = policy.attempt_timeout(SEC);
    assert_eq!(sooner.call(NOW, 1).attempt_limit(NOW), Some(SEC));
    let call = policy.call(NOW, 1).deadline_at(NOW + 3 * SEC);
    assert_eq!(call.attempt_limit(NOW), Some(3 * SEC));
    let call = policy.call(NOW, 1).deadline_at(NOW + 9 * SEC);
    assert_eq!(call.attempt_limit(NOW), Some(5 * SEC));

    let mut call = policy.call(NOW, 1);
    call.reset(NOW + 100 * SEC);
    assert_eq!(call.attempt_limit(NOW + 101 * SEC), Some(4 * SEC), "a reset begins it anew");
}

#[test]
fn nothing_starts_at_a_deadline_that_has_passed() {
    let policy = Policy::default();
    assert!(policy.call(NOW, 1).may_start(NOW));
    for deadline in [Timestamp::ZERO, NOW] {
        assert!(!policy.call(NOW, 1).deadline_at(deadline).may_start(NOW), "{deadline}");
    }
    assert!(!policy.call(Timestamp::ZERO, 1).deadline_at(Timestamp::ZERO).may_start(Timestamp::ZERO));
    assert!(policy.call(NOW, 1).deadline_at(NOW + Duration::from_nanos(1)).may_start(NOW));
}

/// A shared pushback is spread; a turn is one client's own, and a spread would undo it.
#[test]
fn a_turn_is_kept_to_the_nanosecond() {
    let turn = Duration::from_nanos(30_000_000_001);
    let policy = Policy::constant(10 * SEC);
    for seed in 0..100 {
        assert_eq!(retry(&mut policy.call(NOW, seed), Verdict::Turn(turn)), turn);
    }
    let long = Policy::constant(60 * SEC).jitter(Jitter::None);
    assert_eq!(retry(&mut long.call(NOW, 1), Verdict::Turn(turn)), 60 * SEC, "raises a delay, never shortens it");
    let too_long = Decision::GiveUp(Reason::PushbackTooLong);
    assert_eq!(policy.call(NOW, 1).on_failure(NOW, Verdict::Turn(121 * SEC)), too_long);
    assert_eq!(policy.max_elapsed(29 * SEC).call(NOW, 1).on_failure(NOW, Verdict::Turn(turn)), too_long);
    assert_eq!(policy.timeout(30 * SEC).call(NOW, 1).on_failure(NOW, Verdict::Turn(turn)), too_long);
}

#[test]
fn a_pushback_as_long_as_the_longest_is_waited_for() {
    let policy = Policy::constant(SEC).jitter(Jitter::None).max_pushback(30 * SEC);
    assert_eq!(retry(&mut policy.call(NOW, 1), Verdict::After(30 * SEC)), 30 * SEC);
    let longer = Verdict::After(30 * SEC + Duration::from_nanos(1));
    assert_eq!(policy.call(NOW, 1).on_failure(NOW, longer), Decision::GiveUp(Reason::PushbackTooLong));
}

#[test]
fn a_rule_that_says_nothing_of_pushbacks_has_its_delay_raised() {
    #[derive(Debug)]
    struct Second;
    impl crate::Backoff for Second {
        fn name(&self) -> &str {
            "second"
        }
        fn delay(&self, _: &mut Step) -> Option<Duration> {
            Some(SEC)
        }
    }
    let policy = Policy::custom(&Second);
    assert_eq!(retry(&mut policy.call(NOW, 1), Verdict::After(10 * SEC)), 10 * SEC);
    assert_eq!(retry(&mut policy.call(NOW, 1), Verdict::Turn(10 * SEC)), 10 * SEC);
}

#[test]
fn a_call_that_has_not_failed_is_the_same_under_any_policy() {
    for policy in [Policy::default(), Policy::exponential(SEC).jitter(Jitter::Decorrelated), Policy::constant(SEC)] {
        let first = policy.call(NOW, 3).on_failure(NOW, Verdict::Transient);
        assert_eq!(policy.resume(NOW, 3, Saved::default()).on_failure(NOW, Verdict::Transient), first);
    }
}

#[test]
fn a_spread_ends_within_the_limits_and_stays_random() {
    let spread = Policy::default().spread(100 * SEC);
    for policy in [spread.max_elapsed(SEC), spread.timeout(SEC)] {
        let mut spreads: [Duration; 100] = core::array::from_fn(|seed| policy.call(NOW, seed as u64).spread());
        assert!(spreads.iter().all(|wait| policy.call(NOW, 0).may_start(NOW + *wait)));
        spreads.sort_unstable();
        assert!(spreads[0] < SEC / 10 && spreads[99] > SEC * 9 / 10);
    }
    let past = spread.call(NOW, 1).deadline_at(Timestamp::ZERO).spread();
    assert_eq!(past, Duration::ZERO);
}

#[test]
fn an_attempt_has_what_is_left() {
    let policy = Policy::default();
    assert_eq!(policy.call(NOW, 1).attempt_limit(NOW), None);
    let call = policy.call(NOW, 1).deadline_at(NOW + 3 * SEC);
    assert_eq!(call.attempt_limit(NOW + SEC), Some(2 * SEC));
    let policy = policy.attempt_timeout(SEC);
    assert_eq!(policy.call(NOW, 1).deadline_at(NOW + 3 * SEC).attempt_limit(NOW), Some(SEC));
}

#[test]
fn a_reset_starts_over_with_new_jitter() {
    let policy = Policy::default();
    let mut call = policy.call(NOW, 1);
    let first = retry(&mut call, Verdict::Transient);
    call.reset(NOW);
    assert_eq!(call.attempt(), 1);
    let again = retry(&mut call, Verdict::Transient);
    assert!(again < SEC && again != first);
}

#[test]
fn calls_of_one_policy_do_not_share_their_jitter() {
    let policy = Policy::default();
    let mut firsts: [Duration; 1000] =
        core::array::from_fn(|seed| retry(&mut policy.call(NOW, seed as u64), Verdict::Transient));
    firsts.sort_unstable();
    assert!(firsts.windows(2).all(|pair| pair[0] != pair[1]), "tower W1: one first delay for all");
}

#[test]
fn the_call_and_the_iterator_take_the_same_delays() {
    let policy = Policy::default();
    let mut call = policy.call(NOW, 9);
    for delay in policy.delays(9) {
        assert_eq!(retry(&mut call, Verdict::Transient), delay);
    }
}

#[test]
fn a_saved_call_goes_on_as_if_nothing_had_happened() {
    for policy in [Policy::default(), Policy::exponential(SEC).jitter(Jitter::Decorrelated)] {
        let mut whole = policy.call(NOW, 9);
        let mut saved = whole.save();
        loop {
            let mut resumed = policy.resume(NOW, 9, saved);
            let decision = whole.on_failure(NOW, Verdict::Transient);
            assert_eq!(resumed.on_failure(NOW, Verdict::Transient), decision);
            saved = resumed.save();
            if decision == Decision::GiveUp(Reason::Attempts) {
                break;
            }
        }
        assert_eq!(saved.failures, 8);
    }
}

#[test]
fn a_spread_is_random_and_bounded() {
    let policy = Policy::default().spread(20 * SEC);
    let spreads: [Duration; 100] = core::array::from_fn(|seed| policy.call(NOW, seed as u64).spread());
    assert!(spreads.iter().all(|s| *s < 20 * SEC));
    assert!(spreads.iter().any(|s| *s > 15 * SEC) && spreads.iter().any(|s| *s < 5 * SEC));
    assert_eq!(Policy::default().call(NOW, 1).spread(), Duration::ZERO);
}
