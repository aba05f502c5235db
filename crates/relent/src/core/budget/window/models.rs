use super::*;
use loom::{model, sync::Arc, thread};

const CUT: Cut = Cut { slot: 10, keep_a: 1, keep_b: 2, anchored: false };

/// One retry for two calls.
fn half(sum: Pair) -> Option<Pair> {
    ((sum.b + 1) * 2 <= sum.a).then_some(Pair::B)
}

#[test]
fn two_threads_do_not_get_one_retry() {
    model(|| {
        let window = Arc::new(Window::<2>::new());
        window.count(&CUT, 0, |_| Some(Pair { a: 2, b: 0 }));
        let other = window.clone();
        let other = thread::spawn(move || other.count(&CUT, 1, half).is_some());
        let mine = window.count(&CUT, 1, half).is_some();
        assert!(u8::from(mine) + u8::from(other.join().unwrap()) <= 1);
    });
}

/// One thread turns the slot while the other withdraws: what it saw and what it changed are of one slot.
#[test]
fn a_slot_that_turns_creates_nothing() {
    model(|| {
        let window = Arc::new(Window::<2>::new());
        window.count(&CUT, 0, |_| Some(Pair { a: 2, b: 0 }));
        let other = window.clone();
        let other = thread::spawn(move || other.count(&CUT, 10, half).is_some());
        let mine = window.count(&CUT, 9, half).is_some();
        assert!(u8::from(mine) + u8::from(other.join().unwrap()) <= 1);
        let seen = window.read(&CUT, 10);
        assert!(seen.b <= 1);
    });
}

/// Two slots on, the calls are forgotten and the retry is not.
#[test]
fn calls_that_left_pay_for_nothing() {
    model(|| {
        let window = Arc::new(Window::<2>::new());
        window.count(&CUT, 0, |_| Some(Pair { a: 2, b: 0 }));
        let other = window.clone();
        let other = thread::spawn(move || other.count(&CUT, 20, half));
        let mine = window.count(&CUT, 5, half).is_some();
        let theirs = other.join().unwrap().is_some();
        assert!(!(mine && theirs));
        assert!(window.count(&CUT, 21, half).is_none());
    });
}

/// A call that starts while the slot is turned is in one of the two, and another thread's decision sees it or does not.
#[test]
fn no_call_is_lost_while_a_slot_turns() {
    model(|| {
        let window = Arc::new(Window::<2>::new());
        window.add(&CUT, 0);
        let other = window.clone();
        let other = thread::spawn(move || other.add(&CUT, 9));
        window.add(&CUT, 10);
        other.join().unwrap();
        assert_eq!(window.read(&CUT, 10), Pair { a: 3, b: 0 });
    });
}

#[test]
fn a_retry_is_taken_back_while_its_slot_turns() {
    model(|| {
        let window = Arc::new(Window::<2>::new());
        let slot = window.count(&CUT, 0, |_| Some(Pair { a: 2, b: 2 })).unwrap();
        let other = window.clone();
        let other = thread::spawn(move || other.take_back(&CUT, slot));
        window.add(&CUT, 10);
        other.join().unwrap();
        // Unless the gate was shut for longer than anybody waits.
        let seen = window.read(&CUT, 10);
        assert!(seen.a == 3 && (seen.b == 1 || seen.b == 2), "{seen:?}");
    });
}

#[test]
fn no_call_is_lost_while_a_retry_is_taken_back() {
    model(|| {
        let window = Arc::new(Window::<2>::new());
        window.count(&CUT, 0, |_| Some(Pair { a: 2, b: 1 }));
        let other = window.clone();
        let other = thread::spawn(move || other.add(&CUT, 1));
        window.take_back(&CUT, window.number.get());
        window.add(&CUT, 1);
        other.join().unwrap();
        assert_eq!(window.read(&CUT, 1), Pair { a: 4, b: 0 });
    });
}

/// A retry is granted for calls that are there: those that come while it is decided may count or not.
#[test]
fn a_call_that_starts_pays_for_one_retry() {
    model(|| {
        let window = Arc::new(Window::<2>::new());
        window.add(&CUT, 0);
        let other = window.clone();
        let other = thread::spawn(move || {
            other.add(&CUT, 1);
            other.count(&CUT, 1, half).is_some()
        });
        let mine = window.count(&CUT, 1, half).is_some();
        let theirs = other.join().unwrap();
        assert!(mine != theirs, "two calls are there when the second thread asks, and pay once");
        assert_eq!(window.read(&CUT, 1), Pair { a: 2, b: 1 });
    });
}

#[test]
fn two_threads_at_a_full_slot_leave_it_full() {
    model(|| {
        let window = Arc::new(Window::<2>::new());
        window.count(&CUT, 0, |_| Some(Pair { a: FULL, b: 0 }));
        let other = window.clone();
        let other = thread::spawn(move || other.add(&CUT, 1));
        window.add(&CUT, 1);
        other.join().unwrap();
        assert_eq!(window.read(&CUT, 1), Pair { a: FULL, b: 0 });
    });
}

#[test]
fn a_refund_meets_a_withdrawal() {
    model(|| {
        let window = Arc::new(Window::<2>::new());
        window.count(&CUT, 0, |_| Some(Pair { a: 2, b: 0 }));
        let slot = window.count(&CUT, 0, half).unwrap();
        let other = window.clone();
        let other = thread::spawn(move || other.take_back(&CUT, slot));
        let mine = window.count(&CUT, 1, half).is_some();
        other.join().unwrap();
        let left = window.read(&CUT, 1).b;
        assert!(left >= u64::from(mine) && left <= u64::from(mine) + 1);
    });
}
