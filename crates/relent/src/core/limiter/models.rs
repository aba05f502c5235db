//! Every limiter that is one word, in every order of two threads. Loom makes its atomics at their first use, which must be
//! before a second thread starts: hence the resets.

use super::{Limit, LimitAnswer};
use crate::core::{outcome::Outcome, time::Timestamp, verdict::Verdict};
use core::time::Duration;
use loom::{model, sync::Arc, thread};

const NOW: Timestamp = Timestamp::from_nanos(1000);

/// What two threads are granted together that each ask once.
fn granted(limit: Limit) -> usize {
    let limit = Arc::new(limit);
    limit.reset(NOW);
    let other = limit.clone();
    let other = thread::spawn(move || other.acquire(NOW) == LimitAnswer::Granted);
    let mine = limit.acquire(NOW) == LimitAnswer::Granted;
    usize::from(mine) + usize::from(other.join().unwrap())
}

#[test]
fn one_place_is_granted_once() {
    model(|| assert_eq!(granted(Limit::rate(10)), 1));
    model(|| assert_eq!(granted(Limit::concurrency(1)), 1));
    model(|| assert_eq!(granted(Limit::aimd(1)), 1));
}

#[test]
fn places_come_back_while_the_limit_moves() {
    model(|| {
        let limit = Arc::new(Limit::aimd(2));
        limit.reset(NOW);
        let other = limit.clone();
        let once = |limit: &Limit, outcome| {
            if limit.acquire(NOW) == LimitAnswer::Granted {
                limit.release(NOW, outcome, Duration::ZERO);
            }
        };
        let other = thread::spawn(move || once(&other, Outcome::Failure(Verdict::Transient)));
        once(&limit, Outcome::Success);
        other.join().unwrap();
        assert_eq!(limit.snapshot(NOW).in_flight, Some(0));
    });
}

#[test]
fn who_queues_is_counted_once() {
    model(|| {
        let limit = Arc::new(Limit::concurrency(1).queue(1, Duration::from_secs(1)));
        assert_eq!(limit.acquire(NOW), LimitAnswer::Granted);
        assert!(matches!(limit.acquire(NOW), LimitAnswer::Queue(_)));
        let other = limit.clone();
        let other = thread::spawn(move || other.give_back(NOW));
        let entered = limit.enter();
        other.join().unwrap();
        let snapshot = limit.snapshot(NOW);
        let expected = if entered { (Some(1), 0) } else { (Some(0), 1) };
        assert_eq!((snapshot.in_flight, snapshot.queued), expected);
    });
}

/// The first of a line goes, or the last, while others come: nobody has a time that another one has.
#[test]
fn what_is_given_back_is_had_by_one() {
    const GAP: Duration = Duration::from_millis(100);
    for gone in 1..3 {
        model(move || {
            let limit = Arc::new(Limit::rate(10));
            limit.reset(NOW);
            let book = |limit: &Limit| limit.book(NOW, Duration::MAX).map(|wait| wait.as_millis());
            let booked = [(); 3].map(|()| book(&limit));
            assert_eq!(booked, [Some(0), Some(100), Some(200)]);
            let (giver, taker) = (limit.clone(), limit.clone());
            let giver = thread::spawn(move || giver.give_back(NOW + GAP * gone));
            let taker = thread::spawn(move || book(&taker));
            let mut now = [book(&limit), taker.join().unwrap()];
            giver.join().unwrap();
            now.sort_unstable();
            let mine = Some(u128::from(gone) * 100);
            let rest = book(&limit);
            assert!(now[0] != now[1] && !now.contains(&rest), "{now:?} {rest:?}");
            let others = booked.into_iter().filter(|one| *one != mine);
            others.for_each(|one| assert!(!now.contains(&one) && rest != one, "{now:?} {rest:?}"));
        });
    }
}
