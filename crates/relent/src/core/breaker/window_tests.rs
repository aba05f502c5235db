//! When the window of a breaker trips it, against a list of all outcomes that were told.

use super::{
    window::{
        Counted,
        calls::MANY,
        time::{COUNT_BITS, FULL, MOST_COUNT},
    },
    *,
};
use crate::core::{
    rng::{draw, scale},
    time::Timestamp,
};
use core::time::Duration;
use std::vec::Vec;

const SECOND: Duration = Duration::from_secs(1);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

/// One outcome at this millisecond; whether it changed the state.
fn tell(breaker: &Breaker, millis: u64, failed: bool) -> bool {
    let permit = breaker.permit(at(millis), 0).expect("it lets attempts through");
    let told = if failed {
        permit.failed(at(millis), Duration::ZERO, 0)
    } else {
        permit.succeeded(at(millis), Duration::ZERO, 0)
    };
    told.is_some()
}

#[test]
fn the_success_that_makes_the_volume_full_trips() {
    let half = Breaker::share(0.5).min_calls(6);
    for breaker in [half.fresh().window_calls(10), half.fresh().window(10 * SECOND)] {
        for (nth, failed) in [true, true, true, false, false].into_iter().enumerate() {
            assert!(!tell(&breaker, 1000 + nth as u64, failed), "{nth}: five calls say nothing yet");
        }
        assert!(tell(&breaker, 1006, false), "three of six");
        assert_eq!(breaker.state(), BreakerState::Open);
    }
}

/// A ring that has counted as far as it counts goes on at the same place, and stays full.
#[test]
fn a_ring_of_calls_never_ends() {
    for most in [1, 2, 3, 7, 32, 33, 100, 1000, 1023, 1024] {
        let breaker = Breaker::share(1.0).window_calls(most).min_calls(most).or_consecutive(u32::MAX);
        let mut told: Vec<bool> = Vec::new();
        for step in 0..3 * most as usize + 40 {
            if step == most as usize + 10 {
                let most = u64::from(most);
                breaker.window.came((MANY - 5) / most * most + step as u64 % most);
            }
            // Some successes go the short way, others and failures the long one.
            let was_well = most > 1 && !told.last().is_some_and(|failed| *failed);
            let failed = was_well && scale(draw(u64::from(most), step as u32), 3) == 0;
            assert!(!tell(&breaker, 1000, failed), "never two in a row");
            told.push(failed);
            let last = &told[told.len().saturating_sub(most as usize)..];
            let seen = breaker.snapshot(at(1000));
            let failures = last.iter().filter(|failed| **failed).count() as u64;
            assert_eq!((seen.window_calls, seen.window_failures), (last.len() as u64, failures), "{step} of {most}");
        }
        let came = breaker.window.latest.get();
        assert!(came < MANY && came > u64::from(most), "{came} of {most}: counted on from fewer, and full");
    }
}

/// Where a thread that was held up adds to a ring that belongs to another state, it takes that back and nothing else.
#[test]
fn a_success_of_another_state_leaves_no_trace_in_a_ring() {
    let of_calls = || Breaker::share(1.0).window_calls(4).min_calls(4);
    let seen = |breaker: &Breaker| (breaker.snapshot(at(1)).window_calls, breaker.snapshot(at(1)).window_failures);
    // The ring is one of the past: the first success of a new state.
    let new = of_calls();
    tell(&new, 1, true);
    tell(&new, 1, true);
    new.hold_open(at(1));
    new.release(at(1));
    assert_eq!(seen(&new), (0, 0));
    tell(&new, 1, false);
    assert_eq!(seen(&new), (1, 0), "and the failures of the past are not in its window");
    tell(&new, 1, true);
    assert_eq!(seen(&new), (2, 1));

    // The ring is one of the future.
    let old = of_calls();
    let before = old.settled().generation();
    old.hold_open(at(1));
    old.release(at(1));
    tell(&old, 1, true);
    assert!(matches!(old.window.count_success(&old.shape, at(1), before), Counted::Not));
    assert_eq!(seen(&old), (1, 1));
    tell(&old, 1, false);
    assert_eq!(seen(&old), (2, 1), "the place that was taken back is the next one's");
}

#[test]
fn a_success_trips_nothing_when_the_failures_have_left() {
    let breaker = Breaker::share(0.1).window(10 * SECOND).min_calls(4);
    for _ in 0..3 {
        assert!(!tell(&breaker, 1000, true));
    }
    for nth in 0..100 {
        assert!(!tell(&breaker, 11_000 + nth, false), "success {nth}");
    }
    assert_eq!(breaker.snapshot(at(11_200)).window_failures, 0);
}

/// A thread that was held up between its look at the state and the window adds to a cell of another generation, or of a
/// slice whose turn has come again.
#[test]
fn what_is_added_to_a_cell_of_something_else_is_taken_back() {
    let breaker = Breaker::share(0.5).window(10 * SECOND).min_calls(4);
    let old = breaker.settled().generation();
    tell(&breaker, 1000, false);
    breaker.hold_open(at(1000));
    breaker.release(at(1000));
    let new = breaker.settled().generation();
    for _ in 0..3 {
        tell(&breaker, 1000, false);
    }
    for _ in 0..5 {
        let counted = breaker.window.count_success(&breaker.shape, at(1000), old);
        assert!(matches!(counted, Counted::Not), "{old} is over, it is {new} now");
    }
    assert_eq!(breaker.snapshot(at(1000)).window_calls, 3);
    assert!(!tell(&breaker, 1001, true), "one of four");
}

#[test]
fn a_full_cell_stays_full_and_keeps_its_tag() {
    let breaker = Breaker::share(0.9).window(10 * SECOND).min_calls(4);
    tell(&breaker, 1000, false);
    let mut cells = Vec::new();
    breaker.window.words(breaker.shape, false, &mut |word| cells.push(word));
    let counted = cells.iter().find(|cell| cell.get() & MOST_COUNT == 1 && cell.get() >> COUNT_BITS != 0).unwrap();
    let tag = counted.get() >> COUNT_BITS;
    for start in [FULL - 2, FULL] {
        counted.set(tag << COUNT_BITS | start);
        for nth in 0..10 {
            assert!(!tell(&breaker, 1000, false), "success {nth}");
        }
        assert_eq!(counted.get(), tag << COUNT_BITS | FULL);
    }
    assert!(!tell(&breaker, 1000, true), "one of 16 million");
    assert_eq!(counted.get(), tag << COUNT_BITS | FULL);
    assert_eq!(breaker.snapshot(at(1000)).window_failures, 1);
}

/// Slices of a second, ten of them.
#[test]
fn a_window_of_time_trips_when_a_list_of_slices_would() {
    let mut trips = 0;
    for seed in 0..300 {
        let random = |k: u32, below: u64| scale(draw(seed, k), below);
        let (least, share) = (1 + random(0, 30), 0.05 + random(1, 90) as f64 / 100.0);
        let mut breaker = Breaker::share(share).window(10 * SECOND).min_calls(least as u32);
        if seed % 2 == 0 {
            breaker = breaker.for_one_thread();
        }
        let (mut now, mut list) = (0, Vec::new());
        for k in 1..200 {
            now += random(3 * k, 4).pow(5);
            let failed = random(3 * k + 1, 100) < random(2, 100);
            list.push((now / 1000, failed));
            let last = list.iter().filter(|(slice, _)| slice + 10 > now / 1000);
            let (calls, failures) =
                last.fold((0u64, 0u64), |(all, bad), (_, failed)| (all + 1, bad + u64::from(*failed)));
            let expected = calls >= least && failures > 0 && failures as f64 / calls as f64 >= share;
            assert_eq!(tell(&breaker, now, failed), expected, "seed {seed}, call {k}: {failures} of {calls}");
            if expected {
                trips += 1;
                break;
            }
            let seen = breaker.snapshot(at(now));
            assert_eq!((seen.window_calls, seen.window_failures), (calls, failures), "seed {seed}, call {k}");
        }
    }
    assert!((50..300).contains(&trips), "some trip and some do not: {trips}");
}

/// In a window of calls, a success trips by making the volume full and by nothing else.
#[test]
fn a_window_of_calls_trips_when_a_list_would() {
    let mut trips = 0;
    for seed in 0..300 {
        let random = |k: u32, below: u64| scale(draw(seed, k), below);
        let most = 1 + random(0, 80);
        let (least, share) = (1 + random(1, most), 0.05 + random(2, 90) as f64 / 100.0);
        let mut breaker = Breaker::share(share).window_calls(most as u32).min_calls(least as u32);
        if seed % 2 == 0 {
            breaker = breaker.for_one_thread();
        }
        let mut list = Vec::new();
        for k in 4..300 {
            let failed = random(k, 100) < random(3, 100);
            list.push(failed);
            let last = &list[list.len().saturating_sub(most as usize)..];
            let (calls, failures) = (last.len() as u64, last.iter().filter(|failed| **failed).count() as u64);
            let looks = failed || calls == least;
            let expected = looks && calls >= least && failures as f64 / calls as f64 >= share;
            assert_eq!(tell(&breaker, 0, failed), expected, "seed {seed}, call {k}: {failures} of {calls}");
            if expected {
                trips += 1;
                break;
            }
        }
    }
    assert!((50..300).contains(&trips), "some trip and some do not: {trips}");
}

/// One call of failures, with trips, probes that fail, ramps and leaps of time both ways: what is asked and told of it is
/// the same whether the window is whole, in three words, or one thread's own.
#[test]
fn the_window_of_one_call_trips_when_the_whole_one_would() {
    let mut trips = 0;
    for seed in 0..2000 {
        let random = |k: u32, below: u64| scale(draw(seed, k), below);
        let (least, window) = (1 + random(0, 30) as u32, Duration::from_nanos(200_000_000 + random(1, 20_000_000_000)));
        let ramp = [Duration::ZERO, SECOND][random(2, 2) as usize];
        let whole = match random(3, 3) {
            0 => Breaker::failures(least).window(window),
            _ => Breaker::share(0.01 * (1 + random(4, 100)) as f64).min_calls(least).window(window),
        };
        let whole =
            whole.open_for(SECOND).jitter(0.5).factor(1.5).ramp(ramp).ramp_from(0.3).probes(1 + random(5, 2) as u32);
        let (small, alone) = (whole.for_one_call(), whole.for_one_thread());
        let words = |breaker: Breaker| crate::Upstream::new("any").breaker(breaker).words();
        assert_eq!((words(whole.fresh()), words(whole.for_one_call())), (39, 7), "seed {seed}");
        let mut now = Timestamp::from_nanos(random(6, 40_000_000_000));
        for k in 10..250 {
            let leap = random(4 * k, 1 << [20, 28, 31, 34][random(4 * k + 1, 4) as usize]);
            now = match random(4 * k + 2, 20) {
                0 => Timestamp::from_nanos(now.as_nanos().saturating_sub(leap)),
                _ => now.plus_nanos(leap),
            };
            let luck = draw(seed, 4 * k + 3);
            let passes = (whole.pass(now, luck), small.pass(now, luck), alone.pass(now, luck));
            assert_eq!((passes.0, passes.0), (passes.1, passes.2), "seed {seed}, call {k}");
            if let (Ok(theirs), Ok(mine), Ok(own)) = passes {
                let told = whole.failed(theirs, now, Duration::ZERO, luck);
                assert_eq!(small.failed(mine, now, Duration::ZERO, luck), told, "seed {seed}, call {k}");
                assert_eq!(alone.failed(own, now, Duration::ZERO, luck), told, "seed {seed}, call {k}");
                trips += u32::from(told.is_some());
            }
            assert_eq!(alone.snapshot(now), whole.snapshot(now), "seed {seed}, call {k}");
            assert_eq!(small.snapshot(now), whole.snapshot(now), "seed {seed}, call {k}");
        }
    }
    assert!(trips > 10_000, "they trip: {trips}");
}

/// What three words do not hold stays a whole window.
#[test]
fn windows_that_do_not_fit_stay_whole() {
    let share = || Breaker::share(0.5).window(10 * SECOND);
    let slow = share().or_slow(SECOND, 0.5);
    let short = share().window(Duration::from_millis(100));
    let large = share().min_calls(10_000);
    for breaker in [slow, short, large, share().window_calls(10), Breaker::consecutive(5)] {
        let words = |breaker: Breaker| crate::Upstream::new("any").breaker(breaker).words();
        assert_eq!(words(breaker.for_one_call()), words(breaker.for_one_thread()), "{breaker:?}");
    }
}

/// Outcomes of two threads at once are all counted, whichever way each takes.
#[test]
fn nothing_that_two_threads_tell_is_lost() {
    const EACH: u64 = 20_000;
    let breaker = std::sync::Arc::new(Breaker::share(1.0).window(3600 * SECOND).min_calls(u32::MAX));
    let threads: Vec<_> = [7, 11]
        .into_iter()
        .map(|every| {
            let breaker = breaker.clone();
            std::thread::spawn(move || (0..EACH).for_each(|nth| _ = tell(&breaker, nth, nth % every == 0)))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let seen = breaker.snapshot(at(EACH));
    assert_eq!(seen.window_calls, 2 * EACH);
    assert_eq!(seen.window_failures, EACH.div_ceil(7) + EACH.div_ceil(11));
}
