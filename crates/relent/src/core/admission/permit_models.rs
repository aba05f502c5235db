//! What threads that ask for places, and leave them, can do to each other.

use super::*;
use crate::{
    core::{limiter::Limit, pacer::Pacer},
    modelled::{Count, model},
};
use core::task::Waker;
use loom::{sync::Arc, thread};

const NOW: Timestamp = Timestamp::from_nanos(1000);
const SEC: Duration = Duration::from_secs(1);

/// Everything that threads share is made before there are two.
fn door(admission: Admission) -> Arc<Admission> {
    admission.lobby.enter(7, Waker::noop());
    admission.lobby.leave(7);
    let _ = admission.snapshot(NOW);
    if let Some(pacer) = &admission.pacer {
        pacer.touch();
    }
    Arc::new(admission)
}

fn ask(door: &Arc<Admission>, attempt: u32) -> Result<AdmissionPermit<Arc<Admission>>, Admit> {
    AdmissionPermit::ask(door.clone(), NOW, &Arrival { attempt, ..Arrival::default() })
}

/// In flight and in the queue.
fn held(door: &Admission) -> (Option<u32>, u32) {
    let limit = door.snapshot(NOW).limit.unwrap();
    (limit.in_flight, limit.queued)
}

/// One inside and one in the queue.
fn busy() -> (Arc<Admission>, AdmissionPermit<Arc<Admission>>, AdmissionPermit<Arc<Admission>>) {
    let door = door(Admission::new().limit(Limit::concurrency(1).queue(1, SEC)));
    let inside = ask(&door, 1).unwrap();
    let waiting = ask(&door, 1).unwrap();
    assert!(inside.waits_until().is_none() && waiting.waits_until().is_some());
    (door, inside, waiting)
}

#[test]
fn one_place_is_one_attempts() {
    model(|| {
        let door = door(Admission::new().limit(Limit::concurrency(1)));
        let held_by = |permit: &Result<_, _>| u32::from(permit.is_ok());
        let other = door.clone();
        let other = thread::spawn(move || ask(&other, 1));
        let (mine, theirs) = (ask(&door, 1), other.join().unwrap());
        assert_eq!(held_by(&mine) + held_by(&theirs), 1);
        drop((mine, theirs));
        assert_eq!(held(&door), (Some(0), 0));
    });
}

/// Who stands in line and then asks is either let in, or woken when there is room.
#[test]
fn no_place_that_comes_free_is_missed() {
    model(|| {
        let (door, mut inside, mut waiting) = busy();
        let other = thread::spawn(move || {
            inside.answered(NOW, Outcome::Success);
            drop(inside);
        });
        let count = std::sync::Arc::new(Count::default());
        waiting.stand_in_line(&Waker::from(count.clone()));
        let entered = waiting.enter(NOW).unwrap();
        other.join().unwrap();
        if !entered {
            assert_eq!(count.woken(), 1, "it would sleep for ever");
            assert_eq!(waiting.enter(NOW), Ok(true));
        }
        assert_eq!(held(&door), (Some(1), 0));
        drop(waiting);
        assert_eq!(held(&door), (Some(0), 0));
    });
}

/// Whoever hangs up while a place comes free for them leaves it to others.
#[test]
fn who_goes_away_leaves_neither_a_place_nor_a_waker() {
    model(|| {
        let (door, inside, mut waiting) = busy();
        let count = std::sync::Arc::new(Count::default());
        waiting.stand_in_line(&Waker::from(count.clone()));
        let other = thread::spawn(move || drop(inside));
        drop(waiting);
        other.join().unwrap();
        assert_eq!(held(&door), (Some(0), 0));
        assert_eq!(std::sync::Arc::strong_count(&count), 1, "nobody keeps its waker");
    });
}

/// A newcomer takes a place, sees that it is kept for those who come back, and leaves it. Somebody who comes back
/// meanwhile may be told a turn, and nothing is left taken.
#[test]
fn a_place_that_is_not_for_newcomers_is_given_back() {
    model(|| {
        let limit = Limit::concurrency(2);
        let door = door(Admission::new().limit(limit).pacer(Pacer::capacity(1000.0)));
        let first = ask(&door, 1).unwrap();
        let other = door.clone();
        let other = thread::spawn(move || matches!(ask(&other, 1), Err(Admit::Turn(_))));
        let back = ask(&door, 2);
        assert!(other.join().unwrap(), "of two places one is kept, and that one is in use");
        assert!(matches!(&back, Ok(_) | Err(Admit::Turn(_))));
        drop((first, back));
        assert_eq!(held(&door), (Some(0), 0));
    });
}
