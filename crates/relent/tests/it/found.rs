//! Limits that find themselves, to the number: what each outcome does to them, by the rules they are from.

use relent::{Limit, LimitAnswer, LimitSettings, Outcome, Timestamp, Verdict, gradient};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);
const NOW: Timestamp = Timestamp::from_nanos(1_000_000_000_000);
const FAILED: Outcome = Outcome::Failure(Verdict::Transient);

fn take(limit: &Limit, attempts: u32) {
    (0..attempts).for_each(|_| assert_eq!(limit.acquire(NOW), LimitAnswer::Granted));
}

fn limit_of(limit: &Limit) -> f64 {
    limit.snapshot(NOW).limit.unwrap()
}

#[test]
fn aimd_grows_while_half_of_it_is_in_use() {
    for (flying, grown) in [(9, 20.0), (10, 20.0 + 51.0 / 1024.0), (20, 20.0 + 51.0 / 1024.0)] {
        let limit = Limit::aimd(20);
        take(&limit, flying);
        limit.release(NOW, Outcome::Success, MS);
        assert_eq!(limit_of(&limit), grown, "one in a round of twenty, {flying} in flight, whole 1024ths");
        assert_eq!(limit.snapshot(NOW).in_flight, Some(flying - 1));
    }
    let most = Limit::aimd(20).between(1, 20);
    take(&most, 20);
    most.release(NOW, Outcome::Success, MS);
    assert_eq!(limit_of(&most), 20.0);
    // However large it is, it grows.
    let large =
        LimitSettings::Aimd { start: 100_000, min: 1, max: 1_000_000, slow_after: Duration::MAX }.limit().unwrap();
    take(&large, 50_000);
    large.release(NOW, Outcome::Success, MS);
    assert_eq!(limit_of(&large), 100_000.0 + 1.0 / 1024.0);
}

#[test]
fn aimd_is_cut_by_what_is_load_and_by_what_is_slow() {
    let after = |outcome, took| {
        let limit = Limit::aimd(20).slow_after(SEC);
        take(&limit, 1);
        limit.release(NOW, outcome, took);
        limit_of(&limit)
    };
    for outcome in
        [FAILED, Outcome::TimedOut, Outcome::Failure(Verdict::After(SEC)), Outcome::Failure(Verdict::Overloaded)]
    {
        assert_eq!(after(outcome, MS), 18.0, "{outcome:?}");
    }
    for outcome in [Outcome::Success, Outcome::Failure(Verdict::Permanent)] {
        assert_eq!(after(outcome, SEC), 20.0, "{outcome:?}: not longer than that");
        assert_eq!(after(outcome, SEC + Duration::from_nanos(1)), 18.0, "{outcome:?}: an answer, too late");
    }
    assert_eq!(after(Outcome::Dropped, 2 * SEC), 20.0, "tells nothing");
    let least = Limit::aimd(20).between(19, 30);
    take(&least, 1);
    least.release(NOW, FAILED, MS);
    assert_eq!(limit_of(&least), 19.0);
}

#[test]
fn aimd_is_cut_once_for_what_began_before_the_cut() {
    let limit = Limit::aimd(100);
    take(&limit, 10);
    limit.release(NOW, FAILED, MS);
    assert_eq!(limit_of(&limit), 90.0);
    limit.release(NOW + 10 * MS, FAILED, 10 * MS + Duration::from_nanos(1));
    assert_eq!(limit_of(&limit), 90.0, "it began a nanosecond before");
    limit.release(NOW + 10 * MS, FAILED, 10 * MS);
    assert_eq!(limit_of(&limit), 81.0, "it began then");
    limit.release(NOW + 15 * MS, FAILED, 6 * MS);
    assert_eq!(limit_of(&limit), 81.0, "before the second cut");
    limit.reset(NOW);
    assert_eq!((limit_of(&limit), limit.snapshot(NOW).in_flight), (100.0, Some(0)));
    take(&limit, 1);
    limit.release(NOW, FAILED, SEC);
    assert_eq!(limit_of(&limit), 90.0, "no cut is remembered");
}

/// A gradient whose latency without load is known, at the limit it starts with; and when that was.
fn measured(start: u32, rtt: Duration) -> (Limit, Timestamp) {
    let limit = Limit::gradient(start);
    for k in 0..50 {
        assert_eq!((limit_of(&limit), limit.min_rtt()), (3.0, None), "measuring, after {k}");
        answer(&limit, NOW, Outcome::Success, rtt);
    }
    assert_eq!((limit_of(&limit), limit.min_rtt()), (f64::from(start), Some(rtt)));
    (limit, NOW)
}

fn answer(limit: &Limit, now: Timestamp, outcome: Outcome, took: Duration) {
    take(limit, 1);
    limit.release(now, outcome, took);
}

#[test]
fn a_gradient_measures_the_mean_of_fifty_answers_and_no_failures() {
    let limit = Limit::gradient(20);
    for k in 0..49 {
        answer(&limit, NOW, FAILED, SEC);
        answer(&limit, NOW, Outcome::Dropped, SEC);
        answer(&limit, NOW, Outcome::Success, if k % 2 == 0 { 10 * MS } else { 20 * MS });
    }
    assert_eq!(limit.min_rtt(), None, "49 answers");
    answer(&limit, NOW, Outcome::Failure(Verdict::Permanent), 20 * MS);
    assert_eq!((limit.min_rtt(), limit_of(&limit)), (Some(15 * MS), 20.0), "permanent is an answer");
    assert_eq!(limit.snapshot(NOW).in_flight, Some(0));
}

#[test]
fn a_gradient_moves_once_a_round_by_the_mean_latency_of_the_round() {
    let (limit, begun) = measured(100, 10 * MS);
    let end = begun + 100 * MS;
    answer(&limit, end, Outcome::Success, 10 * MS);
    let (_, expected) = gradient(100, 10.0, 10.0, 0.25);
    assert_eq!(limit_of(&limit), f64::from(expected), "a round is over when its time is");
    // The next round: 10 and 40 ms are 25 ms on the mean; what ends a nanosecond too early moves nothing.
    answer(&limit, end + 50 * MS, Outcome::Success, 10 * MS);
    answer(&limit, end + (100 * MS - Duration::from_nanos(1)), Outcome::Success, 40 * MS);
    assert_eq!(limit_of(&limit), f64::from(expected));
    answer(&limit, end + 100 * MS, Outcome::Success, 25 * MS);
    let (half, expected) = gradient(expected, 10.0, 25.0, 0.25);
    assert_eq!((half, limit_of(&limit)), (0.5, f64::from(expected)));
    // And a round with nothing of those before it.
    answer(&limit, end + 200 * MS, Outcome::Success, 10 * MS);
    assert_eq!(limit_of(&limit), f64::from(gradient(expected, 10.0, 10.0, 0.25).1));
}

#[test]
fn a_gradient_is_lowered_by_the_share_that_failed() {
    let scaled = |limit: f64, gradient: f64| (gradient * limit + (gradient * limit).sqrt()).floor();
    for (failures, factor) in [(1, 0.75), (3, 0.5), (9, 0.5)] {
        let (limit, begun) = measured(100, 10 * MS);
        (0..failures).for_each(|_| answer(&limit, begun + MS, FAILED, SEC));
        (0..3 - failures.min(3)).for_each(|_| answer(&limit, begun + MS, Outcome::Success, 12_500 * MS / 1000));
        answer(&limit, begun + 100 * MS, Outcome::Success, 12_500 * MS / 1000);
        assert_eq!(limit_of(&limit), scaled(100.0, factor), "{failures} failures, at the latency that changes nothing");
    }
    let (limit, begun) = measured(100, 10 * MS);
    answer(&limit, begun + 100 * MS, FAILED, MS);
    assert_eq!(limit_of(&limit), scaled(100.0, 0.5), "nothing but failures: half, however fast they came");
    let least = LimitSettings::Gradient { start: 3, max: 3 }.limit().unwrap();
    (0..50).for_each(|_| answer(&least, NOW, Outcome::Success, MS));
    answer(&least, NOW + 100 * MS, Outcome::Success, SEC);
    assert_eq!(limit_of(&least), 3.0);
    answer(&least, NOW + 200 * MS, Outcome::Success, MS);
    assert_eq!(limit_of(&least), 3.0, "between 3 and its most");
}

#[test]
fn a_gradient_measures_again_after_a_minute_and_comes_back() {
    let (limit, begun) = measured(20, 10 * MS);
    answer(&limit, begun + (60 * SEC - Duration::from_nanos(1)), Outcome::Success, 20 * MS);
    let (_, before) = gradient(20, 10.0, 20.0, 0.25);
    assert_eq!(limit_of(&limit), f64::from(before), "not yet");
    let again = begun + 61 * SEC;
    answer(&limit, again, Outcome::Success, 20 * MS);
    assert_eq!(limit_of(&limit), 3.0, "measures again, the latency of before being known until it has");
    assert_eq!(limit.min_rtt(), Some(10 * MS));
    let (_, comes_back) = gradient(before, 10.0, 20.0, 0.25);
    for _ in 0..50 {
        assert_eq!(limit_of(&limit), 3.0);
        answer(&limit, again + SEC, Outcome::Success, 30 * MS);
    }
    assert_eq!((limit_of(&limit), limit.min_rtt()), (f64::from(comes_back), Some(30 * MS)));
    limit.reset(NOW);
    assert_eq!((limit_of(&limit), limit.min_rtt()), (3.0, None));
}

/// Envoy's formula, in the numbers of its controller: no change within the buffer, never more than half or twice.
#[test]
fn the_gradient_is_envoys() {
    assert_eq!(gradient(100, 10.0, 12.5, 0.25), (1.0, 110));
    assert_eq!(gradient(100, 10.0, 1.0, 0.25), (2.0, 214));
    assert_eq!(gradient(1000, 10.0, 1.0, 0.25), (2.0, 1000), "a thousand at most");
    assert_eq!(gradient(4, 10.0, 1000.0, 0.25), (0.5, 3), "three at least");
    assert_eq!(gradient(100, f64::NAN, 1.0, 0.25).0, 1.0);
    assert_eq!(gradient(100, 0.0, 0.0, 0.25).0, 1.0, "what is no number changes nothing");
}

#[test]
fn aws_adaptive_waits_are_true() {
    let limit = Limit::aws_adaptive();
    let throttled = Outcome::Failure(Verdict::After(Duration::ZERO));
    let mut now = Timestamp::ZERO + Duration::from_secs(5);
    for k in 0..2000 {
        match limit.acquire(now) {
            LimitAnswer::Granted => limit.release(now, if k % 50 == 7 { throttled } else { Outcome::Success }, MS),
            LimitAnswer::Wait(wait) => {
                now = now + wait;
                assert_eq!(limit.acquire(now), LimitAnswer::Granted);
                limit.give_back(now);
            }
            other => panic!("{other:?}"),
        }
        now = now + MS;
    }
    assert!(limit.aws_state(now).unwrap().enabled);
}

/// Before the first throttling there is no limit. After it one attempt in two seconds, of which none is saved up.
#[test]
fn aws_adaptive_begins_with_the_first_throttling() {
    let (limit, mut now) = (Limit::aws_adaptive(), Timestamp::ZERO + Duration::from_secs(5));
    let seen = limit.snapshot(now);
    assert_eq!((seen.limit, seen.rate, seen.in_flight, seen.queued), (None, None, None, 0));
    assert_eq!(seen.available, f64::INFINITY);
    limit.release(now, Outcome::Failure(Verdict::After(Duration::ZERO)), MS);
    let seen = limit.snapshot(now);
    assert_eq!((seen.limit, seen.rate, seen.in_flight, seen.queued), (Some(1.0), Some(0.5), None, 0));
    // All of the bucket, however full it was.
    let wait = |now| match limit.acquire(now) {
        LimitAnswer::Granted => Duration::ZERO,
        LimitAnswer::Wait(wait) => wait,
        other => panic!("{other:?}"),
    };
    now = now + Duration::from_secs(60);
    assert_eq!((wait(now), wait(now)), (Duration::ZERO, Duration::from_nanos(2_000_000_001)));
    limit.give_back(now);
    assert_eq!((wait(now), wait(now)), (Duration::ZERO, Duration::from_nanos(2_000_000_001)));
    (0..3).for_each(|_| limit.give_back(now));
    assert_eq!(
        (wait(now), wait(now)),
        (Duration::ZERO, Duration::from_nanos(2_000_000_001)),
        "no more than the bucket holds"
    );
    let half = now + Duration::from_secs(1);
    assert_eq!((limit.snapshot(half).available, wait(half)), (0.0, Duration::from_nanos(1_000_000_001)));
}
