//! What holds for every limiter, whatever happens to it.

use crate::budgets::{check, seed};
use proptest::prelude::*;
use relent::{
    Limit, LimitAnswer, LimitNext, LimitSettings, Outcome, Permits, Timestamp, Verdict, rng::draw, rng::scale,
};
use std::{
    sync::atomic::{AtomicI64, Ordering::SeqCst},
    thread,
    time::Duration,
};

const MS: Duration = Duration::from_millis(1);
const FAILED: Outcome = Outcome::Failure(Verdict::Transient);

/// Whatever is asked when: in any window of time there are at most `burst` permits and those that came due in it.
#[test]
fn a_rate_is_kept_in_every_window() {
    let asks = prop::collection::vec((0..200_u64, any::<bool>()), 1..400);
    check((1..2000_u32, 1..20_u32, asks), |(rate, burst, asks)| {
        let limit = LimitSettings::Rate { rate, per: Duration::from_secs(1), burst }.limit().unwrap();
        let (mut now, mut granted) = (0, Vec::new());
        for (millis, pause) in asks {
            now += if pause { millis * 1_000_000 } else { 0 };
            match limit.acquire(Timestamp::from_nanos(now)) {
                LimitAnswer::Granted => granted.push(now),
                LimitAnswer::Wait(wait) => {
                    let due = Timestamp::from_nanos(now) + wait;
                    prop_assert!(wait > Duration::ZERO && limit.acquire(due) == LimitAnswer::Granted, "told the truth");
                    now = due.as_nanos();
                    granted.push(now);
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
        for (first, from) in granted.iter().enumerate() {
            for (last, to) in granted.iter().enumerate().skip(first) {
                let most = u128::from(to - from) * u128::from(rate) / 1_000_000_000 + u128::from(burst);
                prop_assert!((last - first + 1) as u128 <= most, "{} in {} ns", last - first + 1, to - from);
            }
        }
        Ok(())
    });
}

/// governor's `per_second(10)` admits 19 in the first second.
#[test]
fn a_burst_of_one_paces() {
    for idle in [0, 3600] {
        let limit = Limit::rate(10);
        let start = Timestamp::ZERO + Duration::from_secs(idle);
        let granted = (0..1000).filter(|k| limit.acquire(start + *k * MS) == LimitAnswer::Granted).count();
        assert_eq!(granted, 10);
    }
    let five_a_minute = Limit::rate(5).per(Duration::from_secs(60));
    assert_eq!(five_a_minute.acquire(Timestamp::ZERO), LimitAnswer::Granted);
    assert_eq!(five_a_minute.acquire(Timestamp::ZERO), LimitAnswer::Wait(Duration::from_secs(12)));
}

#[test]
fn a_clock_that_goes_back_grants_nothing() {
    let (limit, now) = (Limit::rate(10), Timestamp::ZERO + Duration::from_secs(100));
    assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    for back in [1, 50, 100] {
        let admit = limit.acquire(Timestamp::from_nanos(now.as_nanos() - back * 1_000_000_000));
        assert!(matches!(admit, LimitAnswer::Wait(wait) if wait > Duration::from_secs(back)));
    }
    assert_eq!(limit.acquire(now + 100 * MS), LimitAnswer::Granted);
}

/// A million operations on each of two threads: never more in flight than the limit, and every permit comes back.
#[test]
fn every_permit_comes_back() {
    static LIMIT: Limit = Limit::concurrency(7);
    static FLYING: AtomicI64 = AtomicI64::new(0);
    let now = Timestamp::ZERO;
    let work = move |seed: u64| {
        let mut held = Vec::new();
        for k in 0..1_000_000 {
            if draw(seed, k).is_multiple_of(2) {
                if let Ok(permit) = LIMIT.permit(now) {
                    assert!(FLYING.fetch_add(1, SeqCst) < 7);
                    held.push(permit);
                }
            } else if !held.is_empty() {
                let permit = held.swap_remove(scale(draw(seed, k), held.len() as u64) as usize);
                FLYING.fetch_sub(1, SeqCst);
                match draw(seed, k) % 3 {
                    0 => drop(permit),
                    1 => permit.end(now, FAILED, MS),
                    _ => permit.end(now, Outcome::Success, MS),
                }
            }
        }
        FLYING.fetch_sub(held.len() as i64, SeqCst);
    };
    let seed = seed().unwrap_or(11);
    let other = thread::spawn(move || work(seed + 1));
    work(seed);
    other.join().unwrap();
    assert_eq!(LIMIT.snapshot(now).in_flight, Some(0));
}

#[test]
fn a_permit_survives_a_panic() {
    let (limit, now) = (Limit::aimd(5), Timestamp::ZERO);
    for _ in 0..100 {
        let caught = std::panic::catch_unwind(|| {
            let _permit = limit.permit(now).unwrap();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(caught.is_err());
    }
    assert_eq!(limit.snapshot(now).in_flight, Some(0));
    assert_eq!(limit.snapshot(now).limit, Some(5.0), "neither success nor failure");
}

#[test]
fn the_newest_goes_first_once_there_has_been_a_queue_for_a_while() {
    let limit = Limit::concurrency(1).queue(3, Duration::from_secs(1));
    let now = Timestamp::from_nanos(7);
    assert_eq!(limit.acquire(now), LimitAnswer::Granted);
    assert_eq!(limit.next(now), None, "nobody waits");
    for _ in 0..3 {
        assert_eq!(limit.acquire(now), LimitAnswer::Queue(Duration::from_secs(1)));
    }
    assert_eq!(limit.acquire(now), LimitAnswer::Shed);
    assert_eq!(limit.next(now), None, "no room");
    assert!(!limit.enter());
    limit.release(now, Outcome::Success, MS);
    assert_eq!(limit.next(now + 99 * MS), Some(LimitNext::Oldest));
    assert_eq!(limit.next(now + 100 * MS), Some(LimitNext::Newest));
    assert!(limit.enter());
    limit.leave();
    let snapshot = limit.snapshot(now);
    assert_eq!((snapshot.in_flight, snapshot.queued), (Some(1), 1));
}

/// Overload is a queue that has not been empty for 100 ms, whoever came to it later.
#[test]
fn a_queue_is_as_old_as_the_first_who_found_it_empty() {
    let limit = Limit::concurrency(1).queue(3, Duration::from_secs(1));
    let now = Timestamp::from_nanos(7);
    for at in [now, now, now + 90 * MS] {
        _ = limit.acquire(at);
    }
    limit.release(now, Outcome::Success, MS);
    assert_eq!(limit.next(now + 100 * MS), Some(LimitNext::Newest));
    assert!(limit.enter());
    limit.leave();
    // Empty; the next queue is a new one.
    assert_eq!(limit.acquire(now + 200 * MS), LimitAnswer::Queue(Duration::from_secs(1)));
    limit.release(now, Outcome::Success, MS);
    assert_eq!(limit.next(now + 299 * MS), Some(LimitNext::Oldest));
}

/// Limits that find themselves count as exactly as those that are told, and a gradient measures with three; what was not granted
/// cannot be given back.
#[test]
fn as_many_are_in_flight_as_the_limit_says() {
    let now = Timestamp::from_nanos(7);
    for (limit, most) in [(Limit::concurrency(5), 5), (Limit::aimd(5), 5), (Limit::gradient(5), 3)] {
        let limits = Some(f64::from(most));
        let granted = (0..9).filter(|_| limit.acquire(now) == LimitAnswer::Granted).count();
        let seen = limit.snapshot(now);
        assert_eq!((granted, seen.in_flight, seen.available), (most as usize, Some(most), 0.0), "{limit:?}");
        (0..9).for_each(|_| limit.give_back(now));
        let seen = limit.snapshot(now);
        assert_eq!((seen.limit, seen.in_flight, seen.available), (limits, Some(0), f64::from(most)), "{limit:?}");
        (0..2).for_each(|_| _ = limit.acquire(now));
        let seen = limit.snapshot(now);
        assert_eq!((seen.available, seen.queued, seen.rate), (f64::from(most - 2), 0, None), "{limit:?}");
    }
}

#[test]
fn who_cannot_book_at_once_does_not_stand_in_the_queue() {
    let (limit, now) = (Limit::concurrency(1).queue(1, Duration::from_secs(1)), Timestamp::ZERO);
    assert_eq!(limit.book(now, MS), Some(Duration::ZERO));
    assert_eq!(limit.book(now, MS), None);
    assert_eq!(limit.snapshot(now).queued, 0);
}

#[test]
fn a_rate_says_what_it_grants() {
    for (rate, burst) in [(20, 5), (1000, 1)] {
        let (limit, now) = (Limit::rate(rate).burst(burst), Timestamp::from_nanos(7));
        let seen = limit.snapshot(now);
        assert_eq!((seen.limit, seen.rate), (Some(f64::from(burst)), Some(f64::from(rate))));
        assert_eq!((seen.in_flight, seen.queued, seen.available), (None, 0, f64::from(burst)));
        _ = limit.acquire(now);
        assert_eq!(limit.snapshot(now).available, f64::from(burst - 1));
    }
}

/// Who asks from the queue, and asks again, takes nobody's place and gives nobody's away.
#[test]
fn who_finds_no_room_from_the_queue_stays_there() {
    let (limit, now) = (Limit::concurrency(2).queue(1, Duration::from_secs(1)), Timestamp::from_nanos(7));
    let load = || (limit.snapshot(now).in_flight, limit.snapshot(now).queued);
    let inside = [limit.permit(now).unwrap(), limit.permit(now).unwrap()];
    assert!(matches!(limit.permit(now), Err(LimitAnswer::Queue(_))));
    for _ in 0..3 {
        assert!(limit.enter_permit(now).is_none(), "no room yet");
        assert_eq!(load(), (Some(2), 1));
    }
    drop(inside);
    let entered = limit.enter_permit(now).unwrap();
    assert_eq!(load(), (Some(1), 0));
    drop(entered);
    assert_eq!(load(), (Some(0), 0));
    assert!(Limit::aimd(2).enter_permit(now).is_none(), "a limit without a queue has nobody there");
}

#[test]
fn aimd_grows_by_one_a_round_and_is_cut_once_a_round() {
    let limit = Limit::aimd(20).between(2, 40);
    let mut now = Timestamp::ZERO + Duration::from_secs(1);
    let round = |now: Timestamp, outcome: Outcome, of: u32| {
        for _ in 0..of {
            assert_eq!(limit.acquire(now), LimitAnswer::Granted);
        }
        for _ in 0..of {
            limit.release(now + 10 * MS, outcome, 10 * MS);
        }
    };
    round(now, FAILED, 20);
    assert_eq!(limit.snapshot(now).limit, Some(18.0), "twenty failures are one sign");
    now = now + 20 * MS;
    round(now, FAILED, 1);
    let cut = limit.snapshot(now).limit.unwrap();
    assert!((16.1..16.3).contains(&cut), "{cut}");
    for _ in 0..2 {
        now = now + 20 * MS;
        round(now, Outcome::Success, 1);
    }
    assert_eq!(limit.snapshot(now).limit, Some(cut), "an idle client learns nothing");
    for _ in 0..1000 {
        now = now + 20 * MS;
        round(now, Outcome::Success, limit.snapshot(now).limit.unwrap() as u32);
    }
    assert_eq!(limit.snapshot(now).limit, Some(40.0));
    for _ in 0..1000 {
        now = now + 20 * MS;
        round(now, Outcome::TimedOut, 1);
    }
    assert_eq!(limit.snapshot(now).limit, Some(2.0));
}

/// A far side that serves ten at a time in 10 ms each: who is in flight beyond that waits.
#[test]
fn a_gradient_finds_what_the_far_side_can_do() {
    let limit = Limit::gradient(200);
    let mut now = Timestamp::ZERO;
    let mut limits = Vec::new();
    for k in 0..3000 {
        let flying = (0..1000).take_while(|_| limit.acquire(now) == LimitAnswer::Granted).count() as u32;
        let latency = 10 * MS * flying.div_ceil(10).max(1);
        now = now + latency;
        (0..flying).for_each(|_| limit.release(now, Outcome::Success, latency));
        if k > 500 {
            limits.push(limit.snapshot(now).limit.unwrap());
        }
    }
    assert_eq!(limit.min_rtt(), Some(10 * MS));
    let mean = limits.iter().sum::<f64>() / limits.len() as f64;
    assert!((5.0..25.0).contains(&mean), "{mean}");
    // A far side that fails at once lowers it too.
    for _ in 0..100 {
        while limit.acquire(now) == LimitAnswer::Granted {}
        let flying = limit.snapshot(now).in_flight.unwrap();
        now = now + 101 * MS;
        (0..flying).for_each(|_| limit.release(now, FAILED, MS));
    }
    assert!(limit.snapshot(now).limit.unwrap() <= 5.0);
    assert_eq!(limit.snapshot(now).in_flight, Some(0));
}

#[test]
fn nothing_panics_whatever_is_asked_for() {
    let settings = prop_oneof![
        (any::<u32>(), any::<u64>(), any::<u32>()).prop_map(|(rate, per, burst)| LimitSettings::Rate {
            rate: rate % 1_000_002,
            per: Duration::from_nanos(per % 100_000_000_000_000),
            burst
        }),
        (0..100_u32, any::<u32>(), any::<u64>()).prop_map(|(limit, queue, longest)| LimitSettings::Concurrency {
            limit,
            queue,
            longest: Duration::from_nanos(longest)
        }),
        (0..100_u32, 0..100_u32, any::<u32>(), any::<u64>()).prop_map(|(start, min, max, slow)| {
            LimitSettings::Aimd { start, min, max: max % 1_000_002, slow_after: Duration::from_nanos(slow) }
        }),
        (0..100_u32, any::<u32>()).prop_map(|(start, max)| LimitSettings::Gradient { start, max: max % 1_000_002 }),
        Just(LimitSettings::AwsAdaptive),
    ];
    check((settings, any::<u64>()), |(settings, seed)| {
        let Ok(limit) = settings.limit() else {
            let invalid = settings.limit().unwrap_err();
            prop_assert!(!invalid.key.is_empty() && !invalid.problem.is_empty() && !invalid.hint.is_empty());
            return Ok(());
        };
        for k in 0..300 {
            let now = match draw(seed, 2 * k) % 8 {
                0 => Timestamp::MAX,
                1 => Timestamp::ZERO,
                _ => Timestamp::from_nanos(draw(seed, 2 * k)),
            };
            let random = draw(seed, 2 * k + 1);
            let latency = Duration::from_nanos(random);
            match random % 10 {
                0..3 => _ = limit.acquire(now),
                3 => limit.release(now, Outcome::Success, latency),
                4 => limit.release(now, Outcome::Failure(Verdict::After(latency)), latency),
                5 => limit.release(now, Outcome::Dropped, latency),
                6 => limit.give_back(now),
                7 => _ = limit.book(now, latency),
                8 => _ = limit.enter(),
                _ => limit.leave(),
            }
            let snapshot = limit.snapshot(now);
            prop_assert!(!snapshot.available.is_nan() && !snapshot.limit.is_some_and(f64::is_nan));
            _ = limit.next(now);
        }
        let fresh = settings.limit().unwrap();
        fresh.adopt(&limit, Timestamp::from_nanos(seed));
        limit.reset(Timestamp::ZERO);
        Ok(())
    });
}

#[test]
fn a_new_configuration_keeps_what_is_in_flight_and_what_was_used() {
    let now = Timestamp::ZERO + Duration::from_secs(9);
    let (old, new) = (Limit::concurrency(2), Limit::concurrency(3));
    assert_eq!((old.acquire(now), old.acquire(now)), (LimitAnswer::Granted, LimitAnswer::Granted));
    new.adopt(&old, now);
    assert_eq!((new.acquire(now), new.acquire(now)), (LimitAnswer::Granted, LimitAnswer::Shed));

    let (old, new) = (Limit::rate(10).burst(4), Limit::rate(20).burst(8));
    (0..4).for_each(|_| assert_eq!(old.acquire(now), LimitAnswer::Granted));
    new.adopt(&old, now);
    assert_eq!(new.snapshot(now).available, 4.0, "four of eight are used");

    let (old, new) = (Limit::aimd(40), Limit::aimd(5).between(1, 10));
    new.adopt(&old, now);
    assert_eq!(new.snapshot(now).limit, Some(10.0));
}

/// Permits that somebody else counts: what is booked, given back and left is theirs to say.
#[test]
fn a_rate_that_is_granted_by_another() {
    #[derive(Debug)]
    struct Every100ms;

    impl Permits for Every100ms {
        fn book(&self, _: Timestamp, within: Duration) -> Result<Duration, Duration> {
            if within < 100 * MS { Err(100 * MS) } else { Ok(100 * MS) }
        }
        fn give_back(&self, now: Timestamp) {
            panic!("given back at {now:?}");
        }
        fn available(&self, _: Timestamp) -> u64 {
            7
        }
    }

    /// Who says so would be asked again without end.
    #[derive(Debug)]
    struct NotYet;

    impl Permits for NotYet {
        fn book(&self, _: Timestamp, _: Duration) -> Result<Duration, Duration> {
            Err(Duration::ZERO)
        }
        fn give_back(&self, _: Timestamp) {}
        fn available(&self, _: Timestamp) -> u64 {
            0
        }
    }

    let hasty = Limit::rate(20).granted_by(&NotYet).acquire(Timestamp::ZERO);
    assert_eq!(hasty, LimitAnswer::Wait(Duration::from_micros(1)));

    let limit = Limit::rate(20).per(Duration::from_secs(10)).burst(3).granted_by(&Every100ms);
    let now = Timestamp::from_nanos(9);
    assert_eq!(limit.acquire(now), LimitAnswer::Wait(100 * MS));
    assert_eq!((limit.book(now, 99 * MS), limit.book(now, 100 * MS)), (None, Some(100 * MS)));
    let seen = limit.snapshot(now);
    assert_eq!((seen.limit, seen.rate, seen.available, seen.in_flight), (Some(3.0), Some(2.0), 7.0, None));
    limit.release(now, Outcome::Success, MS);
    limit.reset(now);
    assert_eq!(limit.name(), "rate");
    assert!(std::panic::catch_unwind(|| limit.give_back(now)).is_err(), "it is told");
}
