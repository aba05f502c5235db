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

/// Loom's atomics are made at their first use, which must not be that of two threads.
fn shared(breaker: Breaker) -> Arc<Breaker> {
    breaker.state();
    breaker.window.touch();
    Arc::new(breaker)
}

/// One attempt, at one moment.
fn tell(breaker: &Breaker, now: u64, failed: bool) {
    let now = Timestamp::from_nanos(now);
    let pass = breaker.pass(now, 0).unwrap();
    if failed {
        breaker.failed(pass, now, Duration::ZERO, 0);
    } else {
        breaker.succeeded(pass, now, Duration::ZERO, 0);
    }
}

fn seen(breaker: &Breaker, now: u64) -> (u64, u64) {
    let generation = breaker.settled().generation();
    let seen = breaker.window.seen(breaker.shape, generation, Timestamp::from_nanos(now));
    (seen.calls, seen.failures)
}

fn of_time() -> Breaker {
    Breaker::share(1.0).window(Duration::from_nanos(100)).min_calls(4)
}

fn of_calls() -> Breaker {
    Breaker::share(1.0).window_calls(4).min_calls(4)
}

#[test]
fn outcomes_of_two_threads_are_both_in_the_window() {
    for mine in [false, true] {
        model(move || {
            let breaker = shared(of_calls());
            let other = breaker.clone();
            let other = thread::spawn(move || tell(&other, 0, true));
            tell(&breaker, 0, mine);
            other.join().unwrap();
            assert_eq!(seen(&breaker, 0), (2, 1 + u64::from(mine)));
        });
    }
}

/// Two threads whose outcomes are those at which the count begins again leave the ring as full as it was.
#[test]
fn a_ring_goes_on_when_too_many_came() {
    model(|| {
        let breaker = shared(of_calls());
        tell(&breaker, 0, true);
        (0..3).for_each(|_| tell(&breaker, 0, false));
        breaker.window.came(window::calls::MANY - 1);
        let other = breaker.clone();
        let other = thread::spawn(move || tell(&other, 0, false));
        tell(&breaker, 0, true);
        other.join().unwrap();
        // The places are those of a ring of four before which came a multiple of four, less one.
        assert_eq!(seen(&breaker, 0), (4, 1));
    });
}

/// One success is counted while a failure opens the slice that both are in.
#[test]
fn a_success_that_comes_while_a_slice_begins_is_counted_once() {
    model(|| {
        let breaker = shared(of_time());
        // The cell of the slice that begins holds what was counted when its turn came last.
        tell(&breaker, 5, false);
        let other = breaker.clone();
        let other = thread::spawn(move || tell(&other, 165, true));
        tell(&breaker, 165, false);
        other.join().unwrap();
        assert_eq!(seen(&breaker, 165), (2, 1));
    });
}

/// Who was held up between a look at the state and the window counts for no longer than until it has taken it back.
#[test]
fn a_success_of_a_generation_that_is_over_is_taken_back() {
    for new in [of_time, of_calls] {
        model(move || {
            let breaker = shared(new());
            let now = Timestamp::from_nanos(5);
            let old = breaker.pass(now, 0).unwrap();
            breaker.succeeded(old, now, Duration::ZERO, 0);
            let other = breaker.clone();
            let other = thread::spawn(move || other.succeeded(old, now, Duration::ZERO, 0));
            breaker.hold_open(now);
            breaker.release(now);
            tell(&breaker, 5, false);
            other.join().unwrap();
            assert_eq!(seen(&breaker, 5), (1, 0));
        });
    }
}
