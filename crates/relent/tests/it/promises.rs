//! What the crate's face promises: names that clash with nobody's, words that mean the same everywhere.

use relent::{Curve, Jitter, Policy, Reason, Settings, Timestamp, Verdict};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Everything at once, as some write it, beside everything of somebody else. A name that both have is an error where it is used.
mod everything {
    use relent::*;
    use theirs::*;

    mod theirs {
        pub(super) const GAMMA: f64 = 0.577_215_664_9;

        pub(super) fn draw() -> u64 {
            4
        }
        pub(super) fn mix(a: u64, b: u64) -> u64 {
            a ^ b
        }
        pub(super) fn scale(x: u64, by: u64) -> u64 {
            x * by
        }
        pub(super) fn unit() -> u64 {
            1
        }
        pub(super) struct Human(pub(super) u64);
        pub(super) struct BadDuration;
        pub(super) fn parse_duration(_: &str) -> Result<u64, BadDuration> {
            Ok(Human(3).0)
        }
        pub(super) mod time {
            pub(in super::super) const NOW: u64 = 7;
        }
    }

    /// The prelude and other crates are what they were, too.
    pub(super) fn sum() -> Option<u64> {
        let numbers: Vec<u64> = vec![scale(draw(), unit()), mix(1, 2), parse_duration("3 s").ok()?, time::NOW];
        let all: Result<u64, core::convert::Infallible> = Ok(numbers.iter().sum());
        let status = http::StatusCode::OK;
        let _: (Option<toml::de::Error>, Box<dyn Fn() -> String>) = (None, Box::new(String::new));
        (GAMMA < 1.0 && status.is_success() && Policy::default().settings().max_attempts == Some(8))
            .then_some(all.ok()?)
    }
}

#[test]
fn a_glob_import_brings_no_surprise() {
    assert_eq!(everything::sum(), Some(4 + 3 + 3 + 7));
}

/// `deadline`, `deadline_at`, `cancel` and `spread` mean one thing, on whatever they are said.
#[test]
fn a_word_means_the_same_on_policies_retriers_and_loops() {
    let policy = Policy::immediate();
    let cancel = relent::Cancel::new();
    cancel.cancel();
    let down = |_| Err::<(), _>("down");
    let reasons = [
        policy.cancel(&cancel).retry_blocking(down).unwrap_err().reason,
        policy.retrier().cancel(&cancel).retry_blocking(down).unwrap_err().reason,
        policy.start().cancel(&cancel).back_off_blocking("down").unwrap_err().reason,
    ];
    assert_eq!(reasons, [Reason::Cancelled; 3]);

    let (now, instant) = (relent::Timer::now(&relent::SystemTimer), std::time::Instant::now());
    let over = [
        policy.deadline(instant).retry_blocking(down).unwrap_err(),
        policy.deadline_at(now).retry_blocking(down).unwrap_err(),
        policy.retrier().deadline(instant).retry_blocking(down).unwrap_err(),
        policy.retrier().deadline_at(now).retry_blocking(down).unwrap_err(),
    ];
    for err in over {
        assert_eq!((err.reason, err.attempts, err.last), (Reason::Elapsed, 0, None), "no first attempt after it");
    }
    let looped = [policy.start().deadline(instant), policy.start().deadline_at(now)];
    for mut retry in looped {
        assert_eq!(retry.back_off_blocking("down").unwrap_err().reason, Reason::Elapsed);
    }
    let mut call = policy.call(Timestamp::ZERO, 1).deadline_at(Timestamp::ZERO + MS);
    assert_eq!(call.on_failure(Timestamp::ZERO + MS, Verdict::Transient), relent::Decision::GiveUp(Reason::Elapsed));
}

/// A delay of zero for ever is asked for by name: nothing else that a policy can say yields one, whatever is drawn.
#[test]
fn no_curve_but_the_immediate_one_spins() {
    let nano = Duration::from_nanos(1);
    let curves = [
        Curve::Constant { base: nano },
        Curve::Exponential { base: nano, factor: 1.0 },
        Curve::Linear { base: nano, step: Duration::ZERO },
        Curve::Fibonacci { base: nano },
        Curve::Slots { slot: nano },
        Curve::List { delays: &[Duration::ZERO], repeat: true },
    ];
    let jitters = [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Proportional(1.0), Jitter::Decorrelated];
    let mut refused = 0;
    for curve in curves {
        for (jitter, cap) in jitters.into_iter().flat_map(|jitter| [(jitter, nano), (jitter, 3 * nano), (jitter, MS)]) {
            let settings =
                Settings { curve, jitter, cap: Some(cap), max_attempts: Some(15), ..Policy::default().settings() };
            let Ok(policy) = settings.policy() else {
                refused += 1;
                continue;
            };
            let spins = (0..50).all(|seed| policy.delays(seed).all(|delay| delay.is_zero()));
            assert!(!spins, "{settings:?}");
        }
    }
    assert!(refused >= 10, "a nanosecond that is drawn from is none, so it is refused: {refused}");
    assert!(Policy::immediate().max_attempts(15).delays(1).all(|delay| delay.is_zero()));
}
