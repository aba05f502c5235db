use super::*;
use crate::core::rng::{draw, mix, unit};
use std::{cmp::Reverse, collections::BinaryHeap, println, vec, vec::Vec};

const SECOND: Duration = Duration::from_secs(1);
const CAPACITY: f64 = 5000.0;
const GAP: u64 = 200_000;
const HERD: u64 = 100_000;
const FOREVER: Duration = Duration::from_secs(3600);

/// A server with room for a second of work, and clients that come back at their turns.
struct World<'a> {
    pacer: &'a Pacer,
    room: u64,
    busy_until: u64,
    /// The share of refused clients that leave.
    leaves: f64,
    whole_seconds: bool,
    /// The share of clients that never say which attempt they make.
    undeclared: f64,
    seed: u64,
}

#[derive(Debug, Default)]
struct Outcome {
    served: u64,
    attempts: u64,
    most_attempts: u32,
    done_at: f64,
}

impl World<'_> {
    fn new(pacer: &Pacer) -> World<'_> {
        World { pacer, room: 1_000_000_000, busy_until: 0, leaves: 0.0, whole_seconds: false, undeclared: 0.0, seed: 1 }
    }

    /// Runs until nobody comes any more. `arrivals` are the times of first attempts.
    fn run(&mut self, arrivals: impl Iterator<Item = u64>) -> Outcome {
        let mut outcome = Outcome::default();
        let mut events: BinaryHeap<Reverse<(u64, u64, u32)>> =
            arrivals.enumerate().map(|(client, at)| Reverse((at, client as u64, 1))).collect();
        let start = events.peek().map_or(0, |event| event.0.0);
        while let Some(Reverse((now, client, attempt))) = events.pop() {
            outcome.attempts += 1;
            outcome.most_attempts = outcome.most_attempts.max(attempt);
            let waits = self.busy_until.saturating_sub(now);
            let has_room = waits + GAP <= self.room;
            let says = unit(draw(mix(self.seed ^ 7), client as u32)) >= self.undeclared;
            let told = if says { attempt } else { 1 };
            let turn = self.pacer.arrive(Timestamp::from_nanos(now), told, has_room);
            match turn {
                Turn::Now => {
                    assert!(has_room, "taken without room");
                    self.busy_until = self.busy_until.max(now) + GAP;
                    outcome.served += 1;
                    outcome.done_at = (self.busy_until - start) as f64 / 1e9;
                }
                Turn::In(wait) => {
                    // A client decides once, at its first refusal, whether it stays.
                    if attempt == 1 && unit(draw(mix(self.seed), client as u32)) < self.leaves {
                        continue;
                    }
                    let wait = if self.whole_seconds {
                        turn.seconds().expect("it is a wait") * 1_000_000_000
                    } else {
                        nanos(wait)
                    };
                    // A network of up to a millisecond.
                    let late = draw(mix(client), attempt) >> 44;
                    events.push(Reverse((now + wait + if self.whole_seconds { 0 } else { late }, client, attempt + 1)));
                }
                Turn::Overloaded => {}
            }
        }
        outcome
    }

    fn herd(&mut self, at: u64) -> Outcome {
        self.run((0..HERD).map(move |_| at))
    }
}

/// As long as it takes at capacity to serve who stays.
fn ideal(served: u64) -> f64 {
    served as f64 / CAPACITY
}

#[test]
fn a_herd_is_drained_at_capacity_with_one_refusal_each() {
    let pacer = Pacer::capacity(CAPACITY).horizon(FOREVER);
    let outcome = World::new(&pacer).herd(7);
    assert_eq!(outcome.served, HERD);
    let attempts = outcome.attempts as f64 / HERD as f64;
    assert!(attempts <= 1.96, "{attempts} attempts a client");
    assert!(outcome.done_at <= 1.01 * ideal(HERD), "{outcome:?}");
    assert!(outcome.most_attempts <= 3, "{outcome:?}");
    println!("{attempts} attempts a client, {outcome:?}");
}

#[test]
fn turns_are_laid_denser_by_the_share_that_is_kept() {
    // (leaves, kept as told, at most this much of the ideal, at least)
    for (leaves, kept, most, least) in
        [(0.2, 1.0, 1.22, 1.16), (0.2, 0.8, 1.02, 1.0), (0.5, 1.0, 1.9, 1.8), (0.5, 0.5, 1.02, 1.0)]
    {
        let pacer = Pacer::capacity(CAPACITY).horizon(FOREVER).kept(kept);
        let outcome = World { leaves, ..World::new(&pacer) }.herd(0);
        let ratio = outcome.done_at / ideal(outcome.served);
        assert!(
            ratio <= most && ratio >= least,
            "{leaves} leave, {kept} thought to stay: {ratio} of the ideal, {outcome:?}"
        );
    }
}

#[test]
fn turns_too_dense_cost_refusals_and_no_time() {
    let pacer = Pacer::capacity(CAPACITY).horizon(FOREVER).kept(0.5);
    let outcome = World::new(&pacer).herd(0);
    let attempts = outcome.attempts as f64 / HERD as f64;
    assert_eq!(outcome.served, HERD);
    assert!(outcome.done_at <= 1.01 * ideal(HERD), "{outcome:?}");
    println!("{attempts} attempts a client, {outcome:?}");
    assert!(attempts < 2.9 && outcome.most_attempts <= 8, "{attempts} attempts a client, {outcome:?}");
}

#[test]
fn the_share_is_learned_from_earlier_herds() {
    for leaves in [0.2, 0.5] {
        let pacer = Pacer::capacity(CAPACITY).horizon(FOREVER).learning();
        let mut world = World { leaves, ..World::new(&pacer) };
        let mut ratios = vec![];
        for herd in 0..3u64 {
            world.seed = herd;
            let outcome = world.herd(herd * 100 * 1_000_000_000);
            ratios.push(outcome.done_at / ideal(outcome.served));
        }
        assert!(ratios[0] > 1.15, "nothing can be learned of the first: {ratios:?}");
        assert!(ratios[2] <= 1.05, "{leaves} leave: {ratios:?}");
    }
}

#[test]
fn newcomers_do_not_take_what_is_promised() {
    let pacer = Pacer::capacity(CAPACITY).horizon(FOREVER);
    let mut world = World::new(&pacer);
    // A herd at once, and newcomers at half the capacity for a minute.
    let newcomers = (0..150_000u64).map(|k| k * 2 * GAP + 1);
    let arrivals: Vec<u64> = (0..HERD).map(|_| 0).chain(newcomers).collect();
    let outcome = world.run(arrivals.into_iter());
    assert_eq!(outcome.served, HERD + 150_000);
    assert!(outcome.most_attempts <= 3, "nobody is refused more than twice: {outcome:?}");
    assert!(pacer.backlog(Timestamp::from_nanos(41_000_000_000)).is_zero(), "the backlog is gone after N / (C - C/2)");
}

#[test]
fn whole_seconds_are_smoothed_by_a_queue_of_a_second() {
    let pacer = Pacer::capacity(CAPACITY).horizon(FOREVER);
    let outcome = World { whole_seconds: true, ..World::new(&pacer) }.herd(0);
    assert!(outcome.done_at <= 1.01 * ideal(HERD) && outcome.most_attempts == 2, "{outcome:?}");

    let small = Pacer::capacity(CAPACITY).horizon(FOREVER);
    let outcome = World { whole_seconds: true, room: 500_000_000, ..World::new(&small) }.herd(0);
    assert_eq!(outcome.served, HERD);
    assert!(outcome.done_at > 1.5 * ideal(HERD), "half a second of room cannot: {outcome:?}");
}

/// As curl's `--retry`, and browsers.
#[test]
fn who_never_says_which_attempt_it_makes_is_served_at_capacity_a_little_later() {
    let late = 2.0 + 1.0; // Until turns have lapsed; and whole seconds.
    for (undeclared, whole_seconds) in [(1.0, true), (1.0, false), (0.5, false), (0.5, true), (0.1, false)] {
        let pacer = Pacer::capacity(CAPACITY).horizon(FOREVER);
        let outcome = World { undeclared, whole_seconds, ..World::new(&pacer) }.herd(0);
        println!("{undeclared} undeclared, whole seconds: {whole_seconds}: {outcome:?}");
        assert_eq!(outcome.served, HERD);
        assert!(outcome.done_at <= 1.02 * ideal(HERD) + late, "{undeclared}, {whole_seconds}: {outcome:?}");
    }
}

/// Who declares itself loses nothing by others who do not: it is served at its turn.
#[test]
fn what_lapsed_is_taken_from_nobody_who_comes_in_time() {
    let pacer = Pacer::capacity(CAPACITY).horizon(FOREVER);
    let mut world = World { undeclared: 0.5, ..World::new(&pacer) };
    let outcome = world.herd(0);
    println!("{outcome:?}");
    let (now, second) = (Timestamp::from_nanos(1 << 40), 1_000_000_000);
    // A turn a nanosecond before it lapses is its owner's, one that has lapsed is one newcomer's.
    let pacer = Pacer::capacity(10.0).horizon(FOREVER);
    assert_eq!(pacer.turn(now), Some(SECOND / 10));
    for _ in 0..100 {
        pacer.turn(now);
    }
    let lapses = now + SECOND / 10 + 2 * SECOND;
    assert!(matches!(pacer.arrive(Timestamp::from_nanos(lapses.as_nanos() - 1), 1, true), Turn::In(_)));
    assert_eq!(pacer.arrive(lapses, 1, true), Turn::Now);
    assert!(matches!(pacer.arrive(lapses, 1, true), Turn::In(_)), "there was one");
    // And a place that is taken by who comes back is not given a second time.
    assert_eq!(pacer.arrive(lapses + SECOND / 10, 2, true), Turn::Now);
    assert!(matches!(pacer.arrive(lapses + SECOND / 10, 1, true), Turn::In(_)));
    // What lapsed while nobody came is not saved up: a second's worth at most.
    let later = Timestamp::from_nanos(now.as_nanos() + 9 * second);
    let let_in = (0..100).filter(|_| pacer.arrive(later, 1, true) == Turn::Now).count();
    assert_eq!(let_in, 10);
}

/// Whatever comes in whatever order, in no window is more let in that does not come back than the capacity and a second's worth.
#[test]
fn newcomers_are_let_in_at_the_capacity_at_most() {
    for seed in 0..50 {
        let capacity = 10.0 + unit(draw(seed, 0)) * 1000.0;
        let pacer = Pacer::capacity(capacity).horizon(FOREVER);
        let (mut now, mut taken) = (0u64, vec![]);
        for k in 1..5000 {
            now += (unit(draw(seed, 3 * k)) * 2e9 / capacity) as u64;
            let attempt = if unit(draw(seed, 3 * k + 1)) < 0.2 { 2 } else { 1 };
            let has_room = unit(draw(seed, 3 * k + 2)) < 0.9;
            let is_promised = !pacer.backlog(Timestamp::from_nanos(now)).is_zero();
            if pacer.arrive(Timestamp::from_nanos(now), attempt, has_room) == Turn::Now && is_promised && attempt == 1 {
                assert!(has_room, "taken without room");
                taken.push(now);
            }
        }
        for (nth, from) in taken.iter().enumerate() {
            for (count, to) in taken[nth..].iter().enumerate().skip(1).step_by(7) {
                let most = ((to - from) as f64 / 1e9 + 1.0) * capacity + 1.0;
                assert!((count as f64) <= most, "seed {seed}: {count} in {} ns of {most}", to - from);
            }
        }
    }
}

#[test]
fn beyond_the_horizon_it_is_overloaded() {
    let pacer = Pacer::capacity(10.0).horizon(SECOND);
    let turns = (0..20).filter_map(|_| pacer.turn(Timestamp::ZERO)).count();
    assert_eq!(turns, 10);
    assert_eq!(pacer.arrive(Timestamp::ZERO, 3, false), Turn::Overloaded);
    assert_eq!(pacer.backlog(Timestamp::ZERO), SECOND, "a refusal for good takes no turn");
    assert_eq!(pacer.turn(Timestamp::from_nanos(500_000_000)), Some(Duration::from_millis(600)));
}

#[test]
fn the_capacity_is_measured_while_there_is_a_queue() {
    let pacer = Pacer::measured(100.0);
    let mut now = 0u64;
    for _ in 0..20_000 {
        now += 1_000_000;
        pacer.completed(Timestamp::from_nanos(now), Duration::from_millis(20), true);
    }
    let snapshot = pacer.snapshot(Timestamp::from_nanos(now));
    assert!((snapshot.capacity - 1000.0).abs() < 15.0, "{snapshot:?}");
    assert!(snapshot.overloaded, "everybody waits 20 ms");
    for _ in 0..2_000 {
        now += 100_000_000;
        pacer.completed(Timestamp::from_nanos(now), Duration::ZERO, false);
    }
    let snapshot = pacer.snapshot(Timestamp::from_nanos(now));
    assert!((snapshot.capacity - 1000.0).abs() < 15.0, "an idle server is not a slow one: {snapshot:?}");
    assert!(!snapshot.overloaded);
}

#[test]
fn a_clock_that_goes_back_gives_no_turn_twice() {
    let pacer = Pacer::capacity(1000.0).horizon(FOREVER);
    let mut last = 0;
    for k in 0..10_000u32 {
        let now = draw(5, k) >> 32;
        let at = now + nanos(pacer.turn(Timestamp::from_nanos(now)).unwrap());
        assert!(at >= last + 1_000_000);
        last = at;
    }
}

#[test]
fn nothing_panics_and_what_makes_no_sense_is_named() {
    let key = |settings: PacerSettings| settings.pacer().unwrap_err().key;
    let good = PacerSettings::default();
    for capacity in [0.0, -1.0, 1e10, f64::NAN, f64::INFINITY] {
        assert_eq!(key(PacerSettings { capacity, ..good }), "capacity");
    }
    for kept in [0.0, 1.1, f64::NAN] {
        assert_eq!(key(PacerSettings { kept, ..good }), "kept");
    }
    assert_eq!(key(PacerSettings { horizon: Duration::ZERO, ..good }), "horizon");
    for capacity in [f64::MIN_POSITIVE, 1e-9, 1e9] {
        let settings = PacerSettings { capacity, measured: true, learned: true, horizon: Duration::MAX, ..good };
        let pacer = settings.pacer().unwrap();
        for k in 0..1000 {
            let now = Timestamp::from_nanos(draw(3, k) >> (k % 64));
            pacer.arrive(now, k % 3, k % 2 == 0);
            pacer.completed(now, Duration::from_nanos(draw(4, k)), k % 5 != 0);
            pacer.snapshot(now);
        }
        assert!(pacer.turn(Timestamp::MAX).is_some());
    }
    let old = Pacer::capacity(10.0);
    old.turn(Timestamp::ZERO);
    assert_eq!(Pacer::capacity(20.0).adopt(&old).backlog(Timestamp::ZERO), Duration::from_millis(100));
}

/// Who reads a configuration anew forgets neither what was used nor what was learned and measured.
#[test]
fn what_was_known_is_known_after_a_new_configuration() {
    let came = Timestamp::from_nanos(1 << 40);
    let old = Pacer::capacity(1.0);
    for _ in 0..10 {
        old.turn(came);
    }
    let lapses = came + 3 * SECOND;
    assert_eq!(old.arrive(lapses, 1, true), Turn::Now, "one has lapsed");
    let new = Pacer::capacity(1.0).adopt(&old);
    assert!(matches!(new.arrive(lapses, 1, true), Turn::In(_)), "and was given already");
    assert_eq!(new.arrive(lapses + SECOND, 1, true), Turn::Now, "the next one");

    let old = Pacer::measured(100.0).learning();
    let mut now = 0u64;
    for k in 0..20_000u32 {
        now += 1_000_000;
        let at = Timestamp::from_nanos(now);
        old.completed(at, Duration::from_millis(20), true);
        old.turn(at);
        if k % 2 == 0 {
            old.arrive(at, 2, true);
        }
    }
    let now = Timestamp::from_nanos(now);
    let (before, after) = (old.snapshot(now), Pacer::measured(100.0).learning().adopt(&old).snapshot(now));
    assert!(before.capacity > 900.0 && before.kept < 0.9, "{before:?}");
    assert_eq!((after.capacity, after.kept), (before.capacity, before.kept));
    let by_hand = Pacer::capacity(100.0).adopt(&old).snapshot(now);
    assert_eq!((by_hand.capacity, by_hand.kept), (100.0, 1.0), "what is said by hand counts");
}
