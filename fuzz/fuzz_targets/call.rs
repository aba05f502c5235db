//! A call under any policy that is accepted keeps its limits, whatever happens to it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relent::{Curve, Decision, Jitter, Settings, Timestamp, Verdict};
use std::time::Duration;

fn number(bytes: &mut &[u8]) -> u64 {
    let (head, tail) = bytes.split_at(bytes.len().min(8));
    *bytes = tail;
    head.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes;
    let mut duration = || Duration::from_nanos(number(&mut bytes));
    let base = duration();
    let curve = match duration().subsec_nanos() % 6 {
        0 => Curve::Constant { base },
        1 => Curve::Linear { base, step: duration() },
        2 => Curve::Exponential { base, factor: f64::from_bits(duration().as_nanos() as u64) },
        3 => Curve::Fibonacci { base },
        4 => Curve::Slots { slot: base },
        _ => Curve::Immediate,
    };
    let jitter = match duration().subsec_nanos() % 6 {
        0 => Jitter::None,
        1 => Jitter::Full,
        2 => Jitter::Equal,
        3 => Jitter::Proportional(f64::from_bits(duration().as_nanos() as u64)),
        4 => Jitter::Additive(duration()),
        _ => Jitter::Decorrelated,
    };
    let settings = Settings {
        curve,
        jitter,
        cap: Some(duration()),
        max_attempts: Some(duration().subsec_nanos() % 50),
        max_elapsed: Some(duration()),
        max_pushback: Some(duration()),
        timeout: Some(duration()),
        attempt_timeout: Some(duration()),
        spread: duration(),
    };
    let Ok(policy) = settings.policy() else { return };
    let start = Timestamp::from_nanos(number(&mut bytes));
    let mut now = start;
    let mut call = policy.call(start, number(&mut bytes));
    for attempt in 1.. {
        let verdict = if attempt % 3 == 0 {
            Verdict::After(Duration::from_nanos(number(&mut bytes)))
        } else {
            Verdict::Transient
        };
        match call.on_failure_with(now, verdict, number(&mut bytes)) {
            Decision::GiveUp(_) => break,
            Decision::Retry(delay) => {
                if verdict == Verdict::Transient {
                    assert!(delay <= settings.cap.unwrap());
                }
                now = now + delay;
                assert!(attempt < settings.max_attempts.unwrap());
                assert!(now.since(start) <= settings.max_elapsed.unwrap() || now == Timestamp::MAX);
            }
        }
    }
});
