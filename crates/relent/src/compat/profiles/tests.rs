//! Every profile: it never panics, and does what its row says.

use super::*;
use crate::{Curve, Decision, Step, Timestamp, Verdict, compat, rng::mix};

/// Whatever is thrown at a profile, it answers.
#[test]
fn no_profile_ever_panics() {
    let numbers = [0, 1, 2, 3, 31, 32, 63, 64, 1023, 1024, 1 << 31, u32::MAX - 1, u32::MAX];
    let draws = [0, 1, 1 << 62, 1 << 63, u64::MAX - 1, u64::MAX];
    let times = [Duration::ZERO, secs(1), secs(1 << 40), Duration::MAX];
    for profile in compat::all() {
        let Curve::Custom(rule) = profile.policy().settings().curve else { continue };
        for verdict in [Verdict::Transient, Verdict::After(secs(7)), Verdict::After(Duration::MAX)] {
            for (i, draw) in draws.into_iter().enumerate() {
                let mut memory = [0, u64::MAX, draw][i % 3];
                for (failures, elapsed) in numbers.into_iter().zip(times.into_iter().cycle()) {
                    let mut step = Step { failures, elapsed, verdict, draw, memory };
                    rule.delay(&mut step);
                    memory = step.memory;
                }
            }
        }
    }
}

#[test]
fn long_calls_of_every_profile_end_or_go_on() {
    for profile in compat::all() {
        let policy = profile.policy().unlimited_attempts();
        for seed in 0..4 {
            let (mut now, mut call) = (Timestamp::ZERO, policy.call(Timestamp::ZERO, seed));
            for k in 0..2000u64 {
                let verdict =
                    if mix(seed ^ k).is_multiple_of(5) { Verdict::After(secs(3)) } else { Verdict::Transient };
                match call.on_failure(now, verdict) {
                    Decision::Retry(delay) => now = now + delay,
                    Decision::GiveUp(_) => break,
                }
            }
        }
    }
}

fn schedule(name: &str) -> Vec<f64> {
    let profile = compat::find(name).unwrap();
    profile.policy().max_attempts(10).schedule().map(|row| row.delay.max.as_secs_f64()).collect()
}

/// What the original systems' documentation promises.
#[test]
fn schedules_are_the_documented_ones() {
    assert_eq!(schedule("celery-no-jitter"), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);
    assert_eq!(schedule("kombu"), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0]);
    assert_eq!(schedule("go-retryablehttp"), [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]);
    assert_eq!(schedule("apue"), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
    assert_eq!(schedule("google-cloud")[..3], [2.0, 3.0, 5.0]);
    assert_eq!(schedule("google-cloud")[6..], [64.0, 64.0, 64.0]);
    assert_eq!(schedule("google-cloud-java"), schedule("google-cloud"));
    assert_eq!(schedule("polly-exponential")[..4], [2.0, 4.0, 8.0, 16.0]);
    assert_eq!(schedule("tenacity-exponential")[..4], [1.0, 2.0, 4.0, 8.0]);
    assert_eq!(schedule("urllib3-backoff")[..4], [0.0, 2.0, 4.0, 8.0]);
    assert_eq!(schedule("axios-retry"), [0.0; 9]);
    assert_eq!(schedule("npm-retry")[..4], [1.0, 2.0, 4.0, 8.0]);
    assert_eq!(schedule("browser-reconnect")[..2], [1.2, 2.4]);
}

#[test]
fn notification_schedules_take_as_long_as_documented() {
    let total = |name| {
        let policy = compat::find(name).unwrap().policy();
        let last = policy.schedule().last().unwrap();
        (last.attempt, last.total.max)
    };
    assert_eq!(total("wechat-pay"), (16, secs(24 * HOUR + 4 * MINUTE)));
    assert_eq!(total("alipay"), (8, secs(24 * HOUR + 24 * MINUTE)));
    assert_eq!(total("svix"), (8, secs(27 * HOUR + 35 * MINUTE + 5)));
    assert_eq!(total("standard-webhooks"), (10, secs(75 * HOUR + 35 * MINUTE + 5)));
}

fn width(name: &str, retry: usize) -> Duration {
    let row = compat::find(name).unwrap().policy().unlimited_attempts().schedule().nth(retry - 1).unwrap();
    row.delay.max - row.delay.min
}

/// The warnings of the table, measured.
#[test]
fn jitter_is_lost_where_the_warnings_say() {
    for name in ["google-cloud", "google-cloud-32", "google-cloud-java", "linkerd", "stamina", "finagle-equal"] {
        assert_eq!(width(name, 12), Duration::ZERO, "{name} at its cap");
    }
    for name in ["jpillora-jitter", "grpc-connection", "stripe", "finagle-equal", "finagle-decorrelated"] {
        assert_eq!(width(name, 1), Duration::ZERO, "{name} at first");
    }
    for name in ["cenkalti-v4", "aws-2.1", "grpc-a6", "got", "openai", "browser-reconnect"] {
        assert!(width(name, 12) > Duration::ZERO, "{name} keeps its jitter");
    }
}

#[test]
fn caps_are_exceeded_where_the_warnings_say() {
    let longest = |name| {
        let policy = compat::find(name).unwrap().policy().unlimited_attempts();
        policy.schedule().nth(20).unwrap().delay.max
    };
    assert_eq!(longest("cenkalti-v4"), Duration::from_nanos(90_000_000_001));
    assert!(longest("grpc-a6") > Duration::from_millis(1199));
    assert!(longest("grpc-connection") > secs(143));
    assert!(longest("go-retryablehttp-linear") > secs(600));
}

#[test]
fn pushbacks_do_what_the_systems_do() {
    let after = |name, pushback| {
        let policy = compat::find(name).unwrap().policy();
        policy.call(Timestamp::ZERO, 1).on_failure_with(Timestamp::ZERO, Verdict::After(pushback), 1 << 63)
    };
    assert_eq!(after("aws-2.1", secs(60)), Decision::Retry(Duration::from_millis(5025)));
    assert_eq!(after("got", Duration::from_millis(3)), Decision::Retry(Duration::from_millis(3)));
    assert_eq!(after("axios-retry-exponential", secs(60)), Decision::Retry(secs(66)));
    assert_eq!(after("cenkalti-v5", secs(3600)), Decision::GiveUp(crate::Reason::PushbackTooLong));
    assert_eq!(after("openai", secs(121)), Decision::GiveUp(crate::Reason::PushbackTooLong));
    assert_eq!(after("tenacity", secs(7)), Decision::Retry(secs(7)));
}

/// What README.md and COMPARE.md say of all of them.
#[test]
fn twelve_profiles_lose_their_jitter_and_twenty_two_never_have_any() {
    let told = |name| {
        let tells =
            |profile: &&Profile| profile.policy().unlimited_attempts().warnings().any(|warning| warning.name() == name);
        compat::all().iter().filter(tells).count()
    };
    assert_eq!((compat::all().len(), told("jitter_dies"), told("no_jitter")), (75, 12, 22));
    let never_wait = |profile: &&Profile| {
        profile.policy().unlimited_attempts().schedule().take(20).all(|row| row.delay.max.is_zero())
    };
    assert_eq!(compat::all().iter().filter(never_wait).count(), 5);
    let spreads_at_a_cap = |profile: &&Profile| {
        let rows: Vec<_> = profile.policy().unlimited_attempts().schedule().take(60).map(|row| row.delay).collect();
        let (Some(first), [.., before, last]) = (rows.first(), rows.as_slice()) else { return false };
        let dies = profile.policy().unlimited_attempts().warnings().any(|warning| warning.name() == "jitter_dies");
        first.max < last.max && before == last && last.min < last.max && !dies
    };
    assert_eq!(compat::all().iter().filter(spreads_at_a_cap).count(), 27);
}
