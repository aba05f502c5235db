//! Each warning, where it is due and where it is not.

use super::*;
use crate::core::{backoff::Step, curve::Curve, jitter::Jitter, rng};
use crate::{Backoff, Settings};
use std::{
    string::{String, ToString},
    vec::Vec,
};

const SEC: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn told(policy: Policy) -> Vec<String> {
    policy.warnings().map(|warning| warning.to_string()).collect()
}

fn names(policy: Policy) -> Vec<&'static str> {
    policy.warnings().map(|warning| warning.name()).collect()
}

/// A rule written as a closure's function: failures, draw, memory.
struct Rule(&'static str, fn(u32, f64, &mut u64) -> Option<Duration>);

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Backoff for Rule {
    fn name(&self) -> &str {
        self.0
    }
    fn delay(&self, step: &mut Step) -> Option<Duration> {
        (self.1)(step.failures, rng::unit(step.draw), &mut step.memory)
    }
}

/// `min(2^n + random milliseconds, 32 s)`.
static GOOGLE_CLOUD: Rule = Rule("google-cloud", |k, r, _| {
    let seconds = 2f64.powi(k.min(40) as i32 - 1) + (r * 1000.0).floor() / 1000.0;
    Some(Duration::from_secs_f64(seconds.min(32.0)))
});

/// `min(cap, U[base, 3 * previous))`, the draw clipped.
static CLIPPED_DECORRELATED: Rule = Rule("clipped", |_, r, previous| {
    let before = (*previous).max(100_000_000) as f64;
    *previous = (100e6 + r * (3.0 * before - 100e6)).min(10e9) as u64;
    Some(Duration::from_nanos(*previous))
});

#[test]
fn a_policy_without_fault_has_no_warnings() {
    let policy = Policy::default().jitter(Jitter::Equal);
    assert!(names(policy).is_empty());
    assert!(names(policy.max_elapsed(600 * SEC).attempt_timeout(SEC)).is_empty());
    assert!(names(Policy::default().max_attempts(1).jitter(Jitter::None)).is_empty(), "nothing is retried");
}

#[test]
fn the_default_policy_has_one_note() {
    assert_eq!(told(Policy::default()), ["a delay can be zero: before attempt 2, 0.1 % of clients wait less than 1ms"]);
    assert!(Policy::default().warnings().all(|warning| warning.is_note()));
}

#[test]
fn no_jitter() {
    let policy = Policy::exponential(SEC).jitter(Jitter::None);
    let text = "no jitter: 100 % of the clients that fail together come back together, first after 1s";
    assert_eq!(told(policy), [text]);
    assert_eq!(names(Policy::list(&[SEC, SEC])), ["no_jitter"]);
    assert_eq!(names(Policy::list(&[Duration::ZERO, SEC])), ["no_jitter", "zero_delay"]);
    assert_eq!(names(policy.jitter(Jitter::Proportional(0.0))), ["no_jitter"]);
}

/// The built-in jitters keep their width at the cap, so none of them dies, whatever the curve.
#[test]
fn no_jitter_of_ours_dies_at_the_cap() {
    for curve in [Policy::exponential(SEC), Policy::constant(SEC), Policy::fibonacci(SEC), Policy::linear(SEC)] {
        for jitter in
            [Jitter::Full, Jitter::Equal, Jitter::Proportional(0.2), Jitter::Additive(SEC), Jitter::Decorrelated]
        {
            let policy = curve.cap(10 * SEC).jitter(jitter).max_attempts(60);
            assert!(policy.warnings().all(|warning| warning.is_note()), "{policy:?}: {:?}", told(policy));
        }
    }
    let half = "a delay can be zero: before attempt 2, 50 % of clients do not wait at all";
    assert_eq!(told(Policy::slots(Duration::from_micros(51))), [half]);
}

#[test]
fn jitter_that_is_clipped_dies() {
    let policy = Policy::custom(&GOOGLE_CLOUD).max_attempts(20);
    assert_eq!(told(policy), ["jitter dies: from attempt 7 on, 100 % of clients wait the identical 32s"]);
    assert!(names(policy.max_attempts(6)).is_empty(), "it does not get there");
}

/// A third of the clipped draws lie on the cap: 31.6 % in the stationary state.
#[test]
fn the_share_that_is_in_step_is_measured() {
    let policy = Policy::custom(&CLIPPED_DECORRELATED).max_attempts(60);
    let [Warning::JitterDies { share, delay, attempt }] = policy.warnings().collect::<Vec<_>>()[..] else {
        panic!("{:?}", told(policy));
    };
    assert_eq!(delay, 10 * SEC);
    assert!((share - 0.316).abs() < 0.02, "{share}");
    assert!((6..=16).contains(&attempt), "{attempt}");
}

/// As in gRPC's connections: the first delay is exact, the later ones are not.
#[test]
fn clients_that_are_in_step_once() {
    static FIRST: Rule = Rule("first", |k, r, _| Some(SEC * k + if k > 1 { SEC.mul_f64(r) } else { Duration::ZERO }));
    let policy = Policy::custom(&FIRST).max_attempts(9);
    assert_eq!(told(policy), ["in step: before attempt 2, 100 % of clients wait the identical 1s"]);
    static COARSE: Rule = Rule("coarse", |_, r, _| Some(SEC + SEC * (r * 4.0) as u32));
    let note = Policy::custom(&COARSE).max_attempts(9).warnings().next().unwrap();
    assert_eq!((note.name(), note.is_note()), ("in_step", true));
    assert!(note.to_string().contains("25 % of clients wait the identical"), "{note}");
}

/// Time ends after 584 years; what would be later is no cap that all clients meet at.
#[test]
fn delays_beyond_time_are_not_in_step() {
    static ENDLESS: Rule = Rule("endless", |k, r, _| {
        Some(Duration::try_from_secs_f64(r * 2f64.powi(k.min(900) as i32)).unwrap_or(Duration::MAX))
    });
    let policy = Settings { max_attempts: None, ..Policy::custom(&ENDLESS).settings() }.policy().unwrap();
    let told = told(policy);
    assert_eq!(told[0], "no limit: a call that keeps failing makes about 17 attempts in a day and never ends");
    assert!(!names(policy).contains(&"jitter_dies"), "{told:?}");
}

#[test]
fn no_limit() {
    let policy = Policy::constant(SEC).jitter(Jitter::Equal).unlimited_attempts();
    let text = "no limit: a call that keeps failing makes about 115000 attempts in a day and never ends";
    assert_eq!(told(policy), [text]);
    assert!(names(policy.max_elapsed(60 * SEC).attempt_timeout(SEC)).is_empty());
    assert!(names(policy.timeout(60 * SEC)).is_empty());
    assert_eq!(names(Policy::immediate().unlimited_attempts()), ["no_limit", "zero_delay"]);
    assert_eq!(names(Policy::slots(SEC)), ["zero_delay"], "slots give up after the 16th attempt");
}

#[test]
fn zero_delays() {
    let hot = Policy::exponential(2 * MS);
    assert_eq!(told(hot), ["a delay can be zero: before attempt 2, 50 % of clients wait less than 1ms"]);
    assert!(!hot.warnings().next().unwrap().is_note());
    assert_eq!(
        told(Policy::immediate().max_attempts(3)),
        ["a delay can be zero: before attempt 2, 100 % of clients do not wait at all"]
    );
    let long = told(Policy::constant(3600 * SEC));
    assert_eq!(long, ["a delay can be zero: before attempt 2, less than 0.1 % of clients wait less than 1ms"]);
}

#[test]
fn attempts_that_do_not_fit() {
    let policy = Policy::constant(10 * SEC).jitter(Jitter::Equal).max_attempts(8).attempt_timeout(5 * SEC);
    let fit = |limit: Duration| {
        let warning = policy.max_elapsed(limit).warnings().next();
        warning.map(|warning| (warning.is_note(), warning.to_string()))
    };
    let start = "attempts do not fit: of 8 allowed, ";
    assert_eq!(fit(30 * SEC), Some((false, start.to_string() + "never more than 7 begin within 30s")));
    assert_eq!(fit(40 * SEC), Some((false, start.to_string() + "about 6 begin within 40s")));
    let slow = " if each runs into its timeout";
    assert_eq!(fit(60 * SEC), Some((true, start.to_string() + "about 5 begin within 1m" + slow)));
    assert_eq!(fit(90 * SEC), None);
    let timed = |limit: Duration| policy.timeout(limit).warnings().next().map(|warning| warning.to_string());
    assert_eq!(timed(40 * SEC), Some(start.to_string() + "about 6 begin within 40s"));
    assert_eq!(timed(90 * SEC), None);
    let both = policy.max_elapsed(40 * SEC).timeout(30 * SEC).warnings().next().unwrap().to_string();
    assert_eq!(both, start.to_string() + "never more than 6 begin within 30s", "none at the 30th second itself");
}

#[test]
fn limits_that_never_apply() {
    assert_eq!(
        told(Policy::list(&[SEC]).max_attempts(5)),
        [
            "no jitter: 100 % of the clients that fail together come back together, first after 1s",
            "delays end early: of 5 attempts allowed, there are delays for 2",
        ]
    );
    let policy = Policy::default().jitter(Jitter::Equal).max_elapsed(600 * SEC);
    assert_eq!(told(policy), ["an attempt can hang: max_elapsed 10m ends no attempt that is under way"]);
    assert!(names(policy.timeout(900 * SEC)).is_empty(), "it ends one");
}

#[test]
fn whatever_the_policy_the_check_ends() {
    for cap in [2, 1_000_000_000, u64::MAX] {
        for jitter in [Jitter::None, Jitter::Full, Jitter::Decorrelated] {
            let settings = Settings {
                curve: Curve::Exponential { base: Duration::from_nanos(1), factor: f64::MAX },
                cap: Some(Duration::from_nanos(cap)),
                jitter,
                max_attempts: Some(u32::MAX - 1),
                max_elapsed: Some(Duration::MAX - SEC),
                ..Settings::default()
            };
            settings.policy().unwrap().warnings().for_each(drop);
        }
    }
}

/// A list that ends is a limit.
#[test]
fn a_list_that_ends_is_limited() {
    let delays: &'static [Duration] = (1..=100).map(|n| SEC * n).collect::<Vec<_>>().leak();
    for policy in [Policy::list(&[SEC, SEC]), Policy::list(delays)] {
        assert_eq!(names(policy.unlimited_attempts()), ["no_jitter"]);
    }
    assert_eq!(names(Policy::list_repeating(&[SEC]).unlimited_attempts()), ["no_limit", "no_jitter"]);
}

/// What is told about the end of jitter is what the schedule shows of that attempt.
#[test]
fn jitter_dies_where_the_schedule_shows_it() {
    /// Draws once, and grows by a third each time up to 10 s.
    static ONCE: Rule = Rule("once", |k, r, drawn| {
        if *drawn == 0 {
            *drawn = (1e9 + 4e9 * r) as u64;
        }
        Some(Duration::from_secs_f64((*drawn as f64 / 1e9 * 1.3f64.powi(k as i32 - 1)).min(10.0)))
    });
    /// From a tenth of a second to the curve, cut at 10 s: one of 2^n is not cut.
    static CUT: Rule = Rule("cut", |k, r, _| {
        let value = 0.1 * 2f64.powi(k.min(60) as i32 - 1);
        Some(Duration::from_secs_f64((0.1 + (value - 0.1) * r).min(10.0)))
    });
    for (rule, expected) in [
        (&ONCE, "jitter dies: from attempt 11 on, 100 % of clients wait the identical 10s"),
        (&CUT, "jitter dies: from attempt 17 on, more than 99.9 % of clients wait the identical 10s"),
    ] {
        let policy = Policy::custom(rule).max_attempts(80);
        let warning = policy.warnings().find(|warning| warning.name() == "jitter_dies").unwrap();
        assert_eq!(warning.to_string(), expected);
        let Warning::JitterDies { attempt, share, delay } = warning else { panic!() };
        let row = policy.schedule().nth(attempt as usize - 2).unwrap();
        assert_eq!(row.delay.max, delay);
        assert_eq!(row.delay.min == delay, share == 1.0, "{warning}: {row:?}");
        let before = policy.schedule().nth(attempt as usize - 3).unwrap();
        assert!(before.delay.min < delay, "{warning}: {before:?}");
    }
}
