use super::*;

const CUT: Cut = Cut { slot: 10, keep_a: 1, keep_b: 2, anchored: false };

#[test]
fn a_slot_that_is_full_stays_full_and_the_next_one_counts() {
    let window = Window::<2>::new();
    window.count(&CUT, 0, |_| Some(Pair { a: FULL - 1, b: 0 }));
    for _ in 0..3 {
        window.add(&CUT, 1);
    }
    assert_eq!(window.read(&CUT, 1), Pair { a: FULL, b: 0 });
    assert!(window.count(&CUT, 1, |_| Some(Pair::A)).is_none());
    assert!(window.count(&CUT, 1, |_| Some(Pair::B)).is_some(), "the other count has room");
    window.add(&CUT, 10);
    assert_eq!(window.read(&CUT, 10), Pair { a: FULL + 1, b: 1 });
}

#[test]
fn what_was_before_a_reset_is_forgotten() {
    for anchored in [false, true] {
        let (cut, window) = (Cut { anchored, ..CUT }, Window::<2>::new());
        window.add(&cut, 1005);
        let before = window.count(&cut, 1025, |_| Some(Pair { a: 1, b: 1 })).unwrap();
        window.reset(&cut, 1000);
        assert_eq!(window.read(&cut, 1000), Pair::default());
        assert_eq!(window.end.get(), 1010, "a slot begins");
        window.count(&cut, 1004, |_| Some(Pair { a: 1, b: 1 }));
        window.take_back(&cut, before);
        assert_eq!(window.read(&cut, 1004), Pair { a: 1, b: 1 }, "that retry was of another time");
        assert_eq!(window.read(&cut, 1010), Pair { a: 1, b: 1 });
    }
}
