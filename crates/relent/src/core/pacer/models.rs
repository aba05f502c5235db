//! What threads that share a pacer can do to each other.

use super::*;
use loom::{model, sync::Arc, thread};

#[test]
fn no_turn_is_given_twice() {
    model(|| {
        let pacer = Arc::new(Pacer::capacity(1e9).horizon(Duration::from_nanos(2)));
        pacer.turns.touch();
        let other = pacer.clone();
        let other = thread::spawn(move || other.turn(Timestamp::ZERO));
        let mine = pacer.turn(Timestamp::ZERO);
        let other = other.join().unwrap();
        let mut turns = [mine.unwrap().as_nanos(), other.unwrap().as_nanos()];
        turns.sort_unstable();
        assert_eq!(turns, [1, 2]);
        assert_eq!(pacer.turn(Timestamp::ZERO), None);
    });
}

/// What has lapsed is let in once, however many ask for it.
#[test]
fn no_lapsed_turn_is_given_twice() {
    model(|| {
        let pacer = Arc::new(Pacer::capacity(10.0));
        for _ in 0..30 {
            pacer.turn(Timestamp::ZERO);
        }
        let lapses = Timestamp::from_nanos(2_100_000_000);
        let other = pacer.clone();
        let other = thread::spawn(move || other.arrive(lapses, 1, true));
        let mine = pacer.arrive(lapses, 1, true);
        let both = [mine, other.join().unwrap()];
        assert_eq!(both.iter().filter(|turn| **turn == Turn::Now).count(), 1, "{both:?}");
    });
}
