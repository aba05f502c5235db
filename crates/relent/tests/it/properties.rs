//! What holds for every policy, whatever its numbers.
//!
//! A failing case prints its seed; `PROPTEST_RNG_SEED` or `RELENT_SEED` replays it.

use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed, TestRunner},
};
use relent::{Curve, Decision, Jitter, Policy, Reason, Settings, Timestamp, Verdict};
use std::time::Duration;

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (1..100u64).prop_map(Duration::from_nanos),
        (1..100_000u64).prop_map(Duration::from_micros),
        (1..100_000u64).prop_map(Duration::from_millis),
        any::<u64>().prop_map(Duration::from_nanos),
        Just(Duration::MAX),
    ]
}

fn curve() -> impl Strategy<Value = Curve> {
    static LIST: [Duration; 3] = [Duration::from_secs(15), Duration::ZERO, Duration::from_secs(1800)];
    prop_oneof![
        duration().prop_map(|base| Curve::Constant { base }),
        (duration(), duration()).prop_map(|(base, step)| Curve::Linear { base, step }),
        (duration(), prop_oneof![1.0..4.0, Just(1.0), Just(f64::MAX)])
            .prop_map(|(base, factor)| Curve::Exponential { base, factor }),
        duration().prop_map(|base| Curve::Fibonacci { base }),
        duration().prop_map(|slot| Curve::Slots { slot }),
        any::<bool>().prop_map(|repeat| Curve::List { delays: &LIST, repeat }),
        Just(Curve::Immediate),
    ]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        Just(Jitter::Decorrelated),
        (0.0..=1.0).prop_map(Jitter::Proportional),
        duration().prop_map(Jitter::Additive),
    ]
}

prop_compose! {
    fn settings()(
        curve in curve(), jitter in jitter(), cap in prop::option::of(duration()),
        max_attempts in prop::option::of(0..100u32), max_elapsed in prop::option::of(duration()),
        max_pushback in prop::option::of(duration()), attempt_timeout in prop::option::of(duration()),
        spread in duration(),
    ) -> Settings {
        Settings { curve, cap, jitter, max_attempts, max_elapsed, max_pushback, timeout: None, attempt_timeout, spread }
    }
}

/// Those settings that make a policy.
fn policy() -> impl Strategy<Value = Policy> {
    settings().prop_filter_map("not a policy", |settings| settings.policy().ok())
}

fn check<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let seed = std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok());
    let rng_seed = seed.map_or(RngSeed::Random, RngSeed::Fixed);
    let config = Config { cases: 1000, failure_persistence: None, rng_seed, ..Config::default() };
    println!("seed: {:?}", config.rng_seed);
    let result = TestRunner::new(config).run(&strategy, test);
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

fn cap(policy: &Policy) -> Duration {
    policy.settings().cap.unwrap_or(Duration::MAX)
}

#[test]
fn whatever_is_accepted_comes_back_the_same() {
    check(policy(), |policy| {
        prop_assert_eq!(policy.settings().policy().unwrap(), policy);
        Ok(())
    });
}

#[test]
fn a_delay_never_exceeds_the_cap_and_lies_in_its_row_of_the_schedule() {
    check((policy(), any::<u64>()), |(policy, seed)| {
        for (delay, row) in policy.delays(seed).zip(policy.schedule()).take(100) {
            prop_assert!(delay <= cap(&policy));
            prop_assert!(row.delay.max <= cap(&policy));
            prop_assert!(row.delay.min <= delay && delay <= row.delay.max, "{:?} not in {:?}", delay, row);
            prop_assert!(row.delay.min <= row.delay.mean.saturating_add(Duration::from_nanos(1)));
            prop_assert!(row.delay.mean <= row.delay.max.saturating_add(Duration::from_nanos(1)));
        }
        Ok(())
    });
}

/// What is told of a delay is what is waited: the least and the greatest draw are the ends of its row.
#[test]
fn the_ends_of_a_row_of_the_schedule_are_drawn() {
    check(policy(), |policy| {
        for draw in [0, u64::MAX] {
            let (mut delays, mut schedule) = (policy.delays(1), policy.schedule());
            // What decorrelated jitter draws is the ground of the next delay.
            let most = if policy.settings().jitter == Jitter::Decorrelated { 1 } else { 20 };
            for _ in 0..most {
                let (Some(delay), Some(row)) = (delays.next_with(draw), schedule.next()) else { break };
                let end = if draw == 0 { row.delay.min } else { row.delay.max };
                // The upper end of a range is not drawn.
                prop_assert!(delay.abs_diff(end) <= Duration::from_nanos(1), "{:?} of {:?}", delay, row);
            }
        }
        Ok(())
    });
}

/// The width that each jitter promises, once the curve has grown past the cap: what the least and the greatest draw
/// yield there, and what the schedule says.
#[test]
fn spread_survives_the_cap() {
    let cases = (1_000..1_000_000u64, 1.1..3.0f64, 0.0..=1.0f64, 2..1000u32);
    check(cases, |(base, factor, share, times)| {
        let base = Duration::from_micros(base);
        let cap = base * times;
        let policy = Policy::exponential(base).factor(factor).cap(cap).max_attempts(102);
        let expected = [
            (Jitter::None, Duration::ZERO),
            (Jitter::Full, cap),
            (Jitter::Equal, cap / 2),
            (Jitter::Proportional(share), cap.mul_f64(2.0 * share / (1.0 + share))),
            (Jitter::Additive(base / 2), base / 2),
            (Jitter::Decorrelated, cap - base),
        ];
        for (jitter, width) in expected {
            let policy = policy.jitter(jitter);
            let at_the_cap = |draw| {
                let mut delays = policy.delays(1);
                (0..100).for_each(|_| assert!(delays.next_with(u64::MAX).is_some()));
                delays.next_with(draw).unwrap()
            };
            let (least, greatest) = (at_the_cap(0), at_the_cap(u64::MAX));
            let actual = greatest - least;
            // The middle and both ends of a range are whole nanoseconds, and its upper end is not drawn.
            let is_as_wide = actual.abs_diff(width) <= Duration::from_nanos(4);
            prop_assert!(is_as_wide, "{:?}: {:?}, not {:?}", jitter, actual, width);
            prop_assert!(greatest <= cap);
            if jitter != Jitter::Decorrelated {
                let row = policy.schedule().last().unwrap();
                prop_assert!(
                    row.delay.min.abs_diff(least) + row.delay.max.abs_diff(greatest) <= Duration::from_nanos(2)
                );
            }
        }
        Ok(())
    });
}

#[test]
fn a_call_keeps_every_limit() {
    let verdicts = prop::collection::vec((any::<u8>(), duration(), duration()), 1..50);
    check((policy(), verdicts, any::<u64>(), prop::option::of(duration())), |(policy, failures, seed, deadline)| {
        let settings = policy.settings();
        let start = Timestamp::from_nanos(seed >> 20);
        let mut call = policy.call(start, seed);
        let end = deadline.map_or(Timestamp::MAX, |deadline| start + deadline);
        call = call.deadline_at(end);
        let mut now = start;
        for (kind, pushback, took) in failures {
            now = now + took;
            let verdict = match kind % 8 {
                0 => Verdict::Permanent,
                1 => Verdict::Overloaded,
                2..4 => Verdict::After(pushback),
                _ => Verdict::Transient,
            };
            match call.on_failure(now, verdict) {
                Decision::GiveUp(reason) => {
                    prop_assert_eq!(reason == Reason::Permanent, verdict == Verdict::Permanent);
                    prop_assert_eq!(reason == Reason::Overloaded, verdict == Verdict::Overloaded);
                    return Ok(());
                }
                Decision::Retry(delay) => {
                    if let Verdict::After(pushback) = verdict {
                        prop_assert!(delay.as_nanos() >= pushback.as_nanos().min(u64::MAX.into()));
                        // Kept to the millisecond, rounded up.
                        let most = settings.max_pushback.unwrap_or(Duration::MAX);
                        prop_assert!(pushback <= most);
                    } else {
                        prop_assert!(delay <= cap(&policy));
                    }
                    now = now + delay;
                    prop_assert!(call.failures() < settings.max_attempts.unwrap_or(u32::MAX));
                    prop_assert!(
                        now.since(start) <= settings.max_elapsed.unwrap_or(Duration::MAX) || now == Timestamp::MAX
                    );
                    prop_assert!(now < end || end == Timestamp::MAX);
                }
            }
        }
        Ok(())
    });
}

#[test]
fn the_same_seed_makes_the_same_call_and_another_seed_another() {
    check(any::<(u64, u64)>(), |(one, other)| {
        let policy = Policy::default();
        let delays = |seed| policy.delays(seed).collect::<Vec<_>>();
        prop_assert_eq!(delays(one), delays(one));
        prop_assert!(one == other || delays(one) != delays(other));
        Ok(())
    });
}

#[test]
fn settings_that_make_no_policy_name_a_setting_and_a_way_out() {
    check(settings(), |settings| {
        if let Err(invalid) = settings.policy() {
            prop_assert!(!invalid.key.is_empty() && !invalid.problem.is_empty() && !invalid.hint.is_empty());
        }
        Ok(())
    });
}
