//! What threads that share a breaker can do to each other.

use super::*;
use crate::core::time::Timestamp;
use loom::{model, sync::Arc, thread};

const OPEN: Duration = Duration::from_nanos(10);

fn half_open_soon(breaker: Breaker) -> Arc<Breaker> {
    let pass = breaker.pass(Timestamp::ZERO, 0).unwrap();
    breaker.failed(pass, Timestamp::ZERO, Duration::ZERO, 0);
    assert_eq!(breaker.state(), BreakerState::Open);
    Arc::new(breaker)
}

#[test]
fn one_of_two_gets_the_only_probe() {
    model(|| {
        let breaker = half_open_soon(Breaker::consecutive(1).open_for(OPEN));
        let other = breaker.clone();
        let now = Timestamp::from_nanos(10);
        let other = thread::spawn(move || other.pass(now, 0).is_ok());
        let mine = breaker.pass(now, 0).is_ok();
        let other = other.join().unwrap();
        assert!(mine != other, "exactly one");
        assert_eq!(breaker.settled().probes().in_flight, 1);
    });
}

#[test]
fn probes_that_come_and_go_leave_no_place_taken() {
    model(|| {
        let breaker = half_open_soon(Breaker::consecutive(1).open_for(OPEN).probes(2).close_after(4));
        let other = breaker.clone();
        let now = Timestamp::from_nanos(10);
        let other = thread::spawn(move || drop(other.permit(now, 0)));
        drop(breaker.permit(now, 0));
        other.join().unwrap();
        assert_eq!(breaker.settled().probes().in_flight, 0);
    });
}

#[test]
fn two_failures_in_a_row_trip_once() {
    model(|| {
        let breaker = Arc::new(Breaker::consecutive(2).open_for(OPEN));
        breaker.state();
        let other = breaker.clone();
        let fail = |breaker: &Breaker| {
            let pass = breaker.pass(Timestamp::ZERO, 0).unwrap();
            breaker.failed(pass, Timestamp::ZERO, Duration::ZERO, 0).is_some()
        };
        let other = thread::spawn(move || fail(&other));
        let mine = fail(&breaker);
        assert_eq!(u32::from(mine) + u32::from(other.join().unwrap()), 1);
        let until = breaker.until();
        assert_eq!((breaker.settled().state(), until), (BreakerState::Open, Timestamp::from_nanos(10)));
    });
}

#[test]
fn a_probe_and_an_old_outcome_do_not_meet() {
    model(|| {
        let breaker = Breaker::consecutive(1).open_for(OPEN);
        let old = breaker.pass(Timestamp::ZERO, 0).unwrap();
        let breaker = half_open_soon(breaker);
        let now = Timestamp::from_nanos(10);
        let probe = breaker.pass(now, 0).unwrap();
        let other = breaker.clone();
        let other = thread::spawn(move || other.failed(old, now, Duration::ZERO, 0));
        assert!(breaker.succeeded(probe, now, Duration::ZERO, 0).is_some());
        assert_eq!(other.join().unwrap(), None);
        assert_eq!(breaker.settled().state(), BreakerState::Closed);
    });
}

#[test]
fn outcomes_of_two_threads_are_both_in_the_window() {
    model(|| {
        let breaker = Arc::new(Breaker::share(1.0).window_calls(4).min_calls(4));
        breaker.state();
        // Loom's atomics are made at their first use, which must not be that of two threads.
        breaker.window.touch();
        let other = breaker.clone();
        let tell = |breaker: &Breaker, failed: bool| {
            let pass = breaker.pass(Timestamp::ZERO, 0).unwrap();
            if failed {
                breaker.failed(pass, Timestamp::ZERO, Duration::ZERO, 0);
            } else {
                breaker.succeeded(pass, Timestamp::ZERO, Duration::ZERO, 0);
            }
        };
        let other = thread::spawn(move || tell(&other, true));
        tell(&breaker, false);
        other.join().unwrap();
        let seen = breaker.window.seen(breaker.shape, 0, Timestamp::ZERO);
        assert_eq!((seen.calls, seen.failures), (2, 1));
    });
}

/// One success is counted while a failure opens the slice that both are in.
#[test]
fn a_success_that_comes_while_a_slice_begins_is_counted_once() {
    model(|| {
        let window = Duration::from_nanos(100);
        let breaker = Arc::new(Breaker::share(1.0).window(window).min_calls(4));
        breaker.state();
        breaker.window.touch();
        let tell = |breaker: &Breaker, now: u64, failed: bool| {
            let now = Timestamp::from_nanos(now);
            let pass = breaker.pass(now, 0).unwrap();
            if failed {
                breaker.failed(pass, now, Duration::ZERO, 0);
            } else {
                breaker.succeeded(pass, now, Duration::ZERO, 0);
            }
        };
        // The cell of the slice that begins holds what was counted when its turn came last.
        tell(&breaker, 5, false);
        let other = breaker.clone();
        let other = thread::spawn(move || tell(&other, 165, true));
        tell(&breaker, 165, false);
        other.join().unwrap();
        let seen = breaker.window.seen(breaker.shape, 0, Timestamp::from_nanos(165));
        assert_eq!((seen.calls, seen.failures), (2, 1));
    });
}

/// Who was held up between a look at the state and the window counts for no longer than until it has taken it back.
#[test]
fn a_success_of_a_generation_that_is_over_is_taken_back() {
    model(|| {
        let window = Duration::from_nanos(100);
        let breaker = Arc::new(Breaker::share(1.0).window(window).min_calls(4));
        breaker.state();
        breaker.window.touch();
        let now = Timestamp::from_nanos(5);
        let old = breaker.pass(now, 0).unwrap();
        breaker.succeeded(old, now, Duration::ZERO, 0);
        let other = breaker.clone();
        let other = thread::spawn(move || other.succeeded(old, now, Duration::ZERO, 0));
        breaker.hold_open(now);
        breaker.release(now);
        let new = breaker.pass(now, 0).unwrap();
        breaker.succeeded(new, now, Duration::ZERO, 0);
        other.join().unwrap();
        let seen = breaker.window.seen(breaker.shape, breaker.settled().generation(), now);
        assert_eq!((seen.calls, seen.failures), (1, 0));
    });
}
