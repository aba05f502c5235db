use super::*;
use crate::core::{upstream::Upstream, verdict::Verdict};
use std::vec;

const MS: Duration = Duration::from_millis(1);

#[test]
fn at_most_n_hedges_each_after_the_one_before() {
    let hedge = Hedge::after(10 * MS).at_most(2);
    let mut now = Timestamp::ZERO;
    let mut call = hedge.start(now);
    for _ in 0..2 {
        let due = call.due().unwrap();
        assert_eq!(due.since(now), 10 * MS);
        now = due;
        call.begun(now);
    }
    assert_eq!((call.due(), call.in_flight()), (None, 3));
    assert_eq!(call.on_failure(now, Verdict::Transient), HedgeStep::Wait);
    assert_eq!(call.on_failure(now, Verdict::Transient), HedgeStep::Wait);
    assert_eq!(call.on_failure(now, Verdict::Transient), HedgeStep::Fail);
}

#[test]
#[track_caller]
fn a_failure_of_one_means_something_for_the_others() {
    let hedge = Hedge::after(10 * MS).at_most(2);
    let mut call = hedge.start(Timestamp::ZERO);
    assert_eq!(call.on_failure(Timestamp::ZERO, Verdict::Transient), HedgeStep::Start, "the next at once");
    assert!(!call.refused(), "nothing is in flight and the budget does not pay: the call fails");
    for verdict in [Verdict::Permanent, Verdict::Overloaded] {
        let mut call = hedge.start(Timestamp::ZERO);
        call.begun(Timestamp::ZERO);
        assert_eq!(call.on_failure(Timestamp::ZERO, verdict), HedgeStep::Fail, "ends all");
    }
    let mut call = hedge.start(Timestamp::ZERO);
    call.begun(Timestamp::ZERO);
    assert_eq!(call.on_failure(Timestamp::ZERO, Verdict::After(MS)), HedgeStep::Wait);
    assert_eq!(call.due(), None);
    let mut call = hedge.start(Timestamp::ZERO);
    assert!(call.refused(), "the first attempt goes on");
    assert_eq!(call.due(), None);
}

#[test]
fn the_strictest_word_of_all_attempts_counts() {
    let meant = |said: Verdict, last: Verdict| {
        let mut call = Hedge::after(10 * MS).start(Timestamp::ZERO);
        call.begun(Timestamp::ZERO);
        assert_eq!(call.on_failure(Timestamp::ZERO, said), HedgeStep::Wait);
        let now = Timestamp::ZERO + 5 * MS;
        assert_eq!(call.on_failure(now, last), HedgeStep::Fail);
        call.verdict(now, last)
    };
    let (after, turn) = (|ms| Verdict::After(ms * MS), |ms| Verdict::Turn(ms * MS));
    assert_eq!(meant(after(60), Verdict::Transient), after(55));
    assert_eq!(meant(turn(60), Verdict::Transient), turn(55));
    assert_eq!(meant(after(60), turn(20)), after(55), "the longer of both");
    assert_eq!(meant(after(60), turn(56)), turn(56));
    assert_eq!(meant(after(5), Verdict::Transient), Verdict::Transient, "its time has passed");
    for end in [Verdict::Permanent, Verdict::Overloaded] {
        assert_eq!(meant(after(60), end), end);
    }
}

#[test]
#[track_caller]
fn a_quantile_needs_samples() {
    let hedge = Hedge::quantile(0.95).min_samples(50);
    for k in 0..49u32 {
        hedge.observe((k + 1) * MS);
        assert_eq!(hedge.start(Timestamp::ZERO).due(), None);
    }
    hedge.observe(50 * MS);
    let due = hedge.start(Timestamp::ZERO).due().unwrap().since(Timestamp::ZERO);
    assert!(due >= 48 * MS && due <= 52 * MS, "{due:?}");
    let other = Hedge::quantile(0.5).or_after(7 * MS);
    assert_eq!(other.delay(), Some(7 * MS));
    assert_eq!(Hedge::quantile(0.9).adopt(hedge).samples(), 50);
}

#[test]
fn nothing_panics_at_the_ends() {
    let hedge = Hedge::quantile(0.999).or_after(Duration::MAX).min_samples(1);
    hedge.observe(Duration::MAX);
    hedge.observe(Duration::ZERO);
    let mut call = hedge.start(Timestamp::MAX);
    for _ in 0..300 {
        call.begun(Timestamp::MAX);
        call.on_failure(Timestamp::MAX, Verdict::Transient);
        call.push_back(Timestamp::MAX, Duration::MAX);
    }
    for quantile in [0.0, 1.0, -1.0, f64::NAN] {
        let settings = HedgeSettings { quantile: Some(quantile), ..HedgeSettings::default() };
        assert_eq!(settings.hedge().unwrap_err().key, "quantile");
    }
    let good = HedgeSettings { after: Some(MS), ..HedgeSettings::default() };
    assert_eq!(HedgeSettings { after: Some(Duration::ZERO), ..good }.hedge().unwrap_err().key, "after");
    assert_eq!(HedgeSettings { at_most: 256, ..good }.hedge().unwrap_err().key, "at_most");
    assert_eq!(HedgeSettings { min_samples: 0, ..good }.hedge().unwrap_err().key, "min_samples");
}

/// Simulators keep what a hedge has learned apart from it.
#[test]
fn what_was_learned_is_saved_and_loaded() {
    let search = Upstream::new("search").hedge(Hedge::quantile(0.5).min_samples(10));
    let hedge = search.its_hedge().unwrap();
    let learn = |took| (0..64).for_each(|_| hedge.observe(took));
    let saved = || {
        let mut words = vec![0; search.words()];
        search.save(&mut words);
        words
    };
    let fresh = saved();
    learn(10 * MS);
    let (quick, delay) = (saved(), hedge.delay());
    learn(500 * MS);
    learn(500 * MS);
    assert_ne!(hedge.delay(), delay);
    search.load(&quick);
    assert_eq!((hedge.samples(), hedge.delay()), (64, delay));
    learn(10 * MS);
    assert_eq!(hedge.delay(), delay, "of what was loaded none is slow");
    search.load(&fresh);
    assert_eq!((hedge.samples(), hedge.delay()), (0, None));
    assert_eq!(Upstream::new("search").hedge(Hedge::after(MS)).words(), 0, "it learns nothing");
}
