use super::{super::*, *};
use crate::core::{
    outcome::Outcome,
    rng::{GAMMA, mix},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    println,
    vec::Vec,
};

const NOW: Timestamp = Timestamp::from_nanos(1_000_000_000);
const MS: Duration = Duration::from_millis(1);

fn attempt(attempt: u32) -> Arrival {
    Arrival { attempt, ..Arrival::default() }
}

fn of(priority: Priority) -> Arrival {
    Arrival { priority, ..Arrival::default() }
}

fn in_flight(door: &Admission) -> (u32, u32) {
    let limit = door.snapshot(NOW).limit.expect("it has one");
    (limit.in_flight.expect("it counts them"), limit.queued)
}

#[test]
fn places_are_taken_and_come_back() {
    let door = Admission::new().limit(Limit::concurrency(2));
    let first = door.permit(NOW, &attempt(1)).unwrap();
    let mut second = door.permit(NOW, &attempt(1)).unwrap();
    assert_eq!(door.permit(NOW, &attempt(1)).unwrap_err(), Admit::Shed(Duration::from_secs(1)));
    second.answered(NOW + 5 * MS, Outcome::Success);
    assert_eq!(in_flight(&door), (2, 0), "until it is dropped");
    drop(second);
    drop(first);
    assert_eq!(in_flight(&door), (0, 0));
    let snapshot = door.snapshot(NOW);
    assert_eq!((snapshot.accepted, snapshot.full, snapshot.refused()), (2, 1, 1));
    assert_eq!(snapshot.service_time, Some(5 * MS), "what was dropped without an answer teaches nothing");
}

#[test]
fn the_vital_need_no_place_and_the_low_leave_half() {
    let door = Admission::new().limit(Limit::concurrency(4));
    let low: Vec<_> = (0..4).filter_map(|_| door.permit(NOW, &of(Priority::Low)).ok()).collect();
    assert_eq!((low.len(), in_flight(&door)), (2, (2, 0)), "who is refused holds nothing");
    let normal: Vec<_> = (0..4).filter_map(|_| door.permit(NOW, &attempt(1)).ok()).collect();
    assert_eq!(normal.len(), 2);
    let vital = door.permit(NOW, &of(Priority::Vital)).unwrap();
    assert_eq!(in_flight(&door), (4, 0));
    drop(vital);
    assert_eq!((in_flight(&door), door.snapshot(NOW).low), ((4, 0), 2));
}

#[test]
fn the_last_tenth_is_for_those_who_go_first() {
    for (order, first, retry) in
        [(Order::RetriesFirst, 9, 10), (Order::FirstAttemptsFirst, 10, 9), (Order::AsTheyCome, 10, 10)]
    {
        for (number, most) in [(1, first), (2, retry)] {
            let door = Admission::new().order(order).limit(Limit::concurrency(10));
            let taken: Vec<_> = (0..20).filter_map(|_| door.permit(NOW, &attempt(number)).ok()).collect();
            assert_eq!(taken.len(), most, "{order:?}, attempt {number}");
        }
    }
}

#[test]
fn room_that_is_promised_is_not_taken() {
    let door = Admission::new().limit(Limit::concurrency(1)).pacer(Pacer::capacity(1000.0).horizon(3 * MS));
    let first = door.permit(NOW, &attempt(1)).unwrap();
    assert_eq!(door.permit(NOW, &attempt(1)).unwrap_err(), Admit::Turn(MS));
    drop(first);
    assert_eq!(door.permit(NOW, &attempt(1)).unwrap_err(), Admit::Turn(2 * MS), "there is room, but not for newcomers");
    assert_eq!(in_flight(&door), (0, 0), "and no place is lost by it");
    let back = door.permit(NOW + MS, &attempt(2)).unwrap();
    assert_eq!(door.permit(NOW + MS, &attempt(2)).unwrap_err(), Admit::Turn(2 * MS));
    assert_eq!(door.permit(NOW, &attempt(1)).unwrap_err(), Admit::Overloaded(Scope::Service), "beyond the horizon");
    drop(back);
    let snapshot = door.snapshot(NOW + MS);
    assert_eq!((snapshot.turns, snapshot.retries, snapshot.pacer.unwrap().backlog), (3, 1, 2 * MS));
}

#[test]
fn who_comes_back_finds_a_tenth_that_newcomers_left() {
    let door = Admission::new().limit(Limit::concurrency(20)).pacer(Pacer::capacity(1000.0));
    let newcomers: Vec<_> = (0..30).filter_map(|_| door.permit(NOW, &attempt(1)).ok()).collect();
    let back: Vec<_> = (0..30).filter_map(|_| door.permit(NOW, &attempt(2)).ok()).collect();
    assert_eq!((newcomers.len(), back.len(), in_flight(&door)), (18, 2, (20, 0)));
    // One place at least, and where there is but one it is for whoever comes.
    for (places, newcomers) in [(10, 9), (2, 1), (1, 1)] {
        let door = Admission::new().limit(Limit::concurrency(places)).pacer(Pacer::capacity(1000.0));
        let taken: Vec<_> = (0..20).filter_map(|_| door.permit(NOW, &attempt(1)).ok()).collect();
        assert_eq!(taken.len(), newcomers, "of {places}");
    }
}

#[test]
fn the_low_leave_half_of_a_rate_too() {
    let door = Admission::new().limit(Limit::rate(10).burst(8));
    let low = (0..8).filter(|_| door.permit(NOW, &of(Priority::Low)).is_ok()).count();
    let normal = (0..8).filter(|_| door.permit(NOW, &attempt(1)).is_ok()).count();
    assert_eq!((low, normal, door.snapshot(NOW).low), (4, 4, 4));
}

#[test]
fn the_room_is_used_up_from_three_quarters_on_or_while_somebody_waits() {
    let door = Admission::new().limit(Limit::concurrency(4));
    let mut inside: Vec<_> = (0..2).map(|_| door.permit(NOW, &attempt(1)).unwrap()).collect();
    assert!(!door.is_used_up(NOW));
    inside.push(door.permit(NOW, &attempt(1)).unwrap());
    assert!(door.is_used_up(NOW));
    let queue = Admission::new().limit(Limit::aws_adaptive());
    assert!(!queue.is_used_up(NOW), "nothing was throttled yet: there is no limit");
    assert!(!Admission::new().is_used_up(NOW), "without a limit there always is room");
    // Somebody waits, and a place has just come free.
    let door = Admission::new().limit(Limit::concurrency(1).queue(1, 100 * MS));
    let inside = door.permit(NOW, &attempt(1)).unwrap();
    let waiting = door.permit(NOW, &attempt(1)).unwrap();
    drop(inside);
    assert!(door.is_used_up(NOW));
    drop(waiting);
    assert!(!door.is_used_up(NOW));
}

#[test]
fn nobody_waits_longer_than_they_may() {
    let door = Admission::new().service_time(10 * MS).limit(Limit::concurrency(1).queue(2, 100 * MS));
    let inside = door.permit(NOW, &attempt(1)).unwrap();
    let mut patient = door.permit(NOW, &attempt(1)).unwrap();
    let mut hurried = door.permit(NOW, &Arrival { left: Some(40 * MS), ..attempt(1) }).unwrap();
    assert_eq!(door.permit(NOW, &attempt(1)).unwrap_err(), Admit::Shed(Duration::from_secs(1)), "the queue is full");
    assert_eq!((patient.waits_until(), hurried.waits_until()), (Some(NOW + 100 * MS), Some(NOW + 30 * MS)));
    assert_eq!((patient.enter(NOW + 30 * MS), in_flight(&door)), (Ok(false), (1, 2)));
    assert!(matches!(hurried.enter(NOW + 30 * MS), Err(Admit::Shed(_))), "no use any more");
    assert_eq!(in_flight(&door), (1, 1));
    drop(hurried);
    drop(inside);
    assert_eq!((patient.enter(NOW + 99 * MS), patient.waits_until(), in_flight(&door)), (Ok(true), None, (1, 0)));
    patient.answered(NOW + 109 * MS, Outcome::Success);
    drop(patient);
    assert_eq!((in_flight(&door), door.snapshot(NOW).accepted, door.snapshot(NOW).full), ((0, 0), 2, 2));
}

#[test]
fn who_leaves_the_queue_holds_nothing() {
    let door = Admission::new().limit(Limit::concurrency(1).queue(5, 100 * MS));
    let inside = door.permit(NOW, &attempt(1)).unwrap();
    let waiting: Vec<_> = (0..5).map(|_| door.permit(NOW, &attempt(1)).unwrap()).collect();
    assert_eq!(in_flight(&door), (1, 5));
    drop(waiting);
    assert_eq!(in_flight(&door), (1, 0));
    drop(inside);
    assert_eq!((in_flight(&door), door.snapshot(NOW).accepted), ((0, 0), 1));
}

/// Somebody gave up before them: the place that comes free is offered to one who is still there.
#[cfg(feature = "tower")]
#[test]
fn who_has_left_the_queue_is_not_woken_in_place_of_another() {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering::SeqCst},
        },
        task::{Wake, Waker},
    };

    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    let count = || Arc::new(Count(AtomicU32::new(0)));
    let door = Admission::new().limit(Limit::concurrency(1).queue(2, 100 * MS));
    let inside = door.permit(NOW, &attempt(1)).unwrap();
    let (impatient, patient) = (count(), count());
    let mut first = door.permit(NOW, &attempt(1)).unwrap();
    let mut second = door.permit(NOW, &attempt(1)).unwrap();
    first.stand_in_line(&Waker::from(impatient.clone()));
    second.stand_in_line(&Waker::from(patient.clone()));
    drop(first);
    drop(inside);
    assert_eq!((impatient.0.load(SeqCst), patient.0.load(SeqCst)), (0, 1));
    assert_eq!((second.enter(NOW), second.enter(NOW)), (Ok(true), Ok(true)), "who is inside may begin");
}

#[test]
fn without_time_nothing_is_begun() {
    let door = Admission::new().limit(Limit::concurrency(1));
    let late = Arrival { left: Some(Duration::ZERO), ..attempt(1) };
    assert_eq!(door.permit(NOW, &late).unwrap_err(), Admit::Overloaded(Scope::Service), "though nothing is known yet");
    assert_eq!((in_flight(&door), door.snapshot(NOW).hopeless), ((0, 0), 1));
}

#[test]
fn a_rate_is_not_used_up_by_who_is_given_a_turn() {
    let door = Admission::new().limit(Limit::rate(10)).pacer(Pacer::capacity(10.0));
    drop(door.permit(NOW, &attempt(1)).unwrap());
    assert_eq!(door.permit(NOW, &attempt(1)).unwrap_err(), Admit::Turn(100 * MS), "the rate is used up");
    // Room again, but promised.
    assert_eq!(door.permit(NOW + 99 * MS, &attempt(1)).unwrap_err(), Admit::Turn(101 * MS));
    let later = NOW + 150 * MS;
    assert_eq!(door.permit(later, &attempt(1)).unwrap_err(), Admit::Turn(150 * MS));
    assert!(door.permit(later, &attempt(2)).is_ok(), "the permit was given back");
}

#[test]
fn a_limit_that_finds_itself_learns_from_answers() {
    let door = Admission::new().limit(Limit::aimd(10));
    let limit = || door.snapshot(NOW).limit.unwrap().limit.unwrap();
    let mut all: Vec<_> = (0..10).map(|_| door.permit(NOW, &attempt(1)).unwrap()).collect();
    for permit in &mut all {
        permit.answered(NOW + MS, Outcome::Success);
    }
    all.clear();
    assert!(limit() > 10.0, "{}", limit());
    let before = limit();
    let mut failing = door.permit(NOW + 2 * MS, &attempt(1)).unwrap();
    failing.answered(NOW + 3 * MS, Outcome::Failure(crate::Verdict::Transient));
    drop(failing);
    assert!(limit() < before * 0.91, "{}", limit());
    let before = limit();
    drop(door.permit(NOW + 4 * MS, &attempt(1)).unwrap());
    assert_eq!(limit(), before, "a client that went away is neither");
    let mut cut = door.permit(NOW + 5 * MS, &attempt(1)).unwrap();
    cut.answered(NOW + 6 * MS, Outcome::Success);
    cut.failed(Outcome::Failure(crate::Verdict::Transient));
    drop(cut);
    assert!(limit() < before, "its body failed");
}

/// Four workers of 10 ms each are 400 a second, whatever was thought before.
#[test]
fn a_capacity_is_measured_while_the_room_is_used_up() {
    for limit in [Limit::concurrency(4), Limit::concurrency(4).queue(1, 100 * MS)] {
        let door = Admission::new().limit(limit).pacer(Pacer::measured(50.0).horizon(Duration::from_secs(9)));
        let capacity = || door.snapshot(NOW).pacer.unwrap().capacity;
        let mut now = NOW;
        for _ in 0..500 {
            let mut alone = door.permit(now, &attempt(2)).unwrap();
            now = now + 10 * MS;
            alone.answered(now, Outcome::Success);
        }
        assert_eq!(capacity(), 50.0, "an idle server shows its load, not its capacity");
        // One ends each 2.5 ms, and another takes its place.
        let mut inside: Vec<_> = (0..4).map(|_| door.permit(now, &attempt(2)).unwrap()).collect();
        for _ in 0..2000 {
            now = now + Duration::from_micros(2500);
            let mut ended = inside.remove(0);
            ended.answered(now, Outcome::Success);
            drop(ended);
            inside.push(door.permit(now, &attempt(2)).unwrap());
        }
        assert!((390.0..=410.0).contains(&capacity()), "{}", capacity());
    }
}

/// Whatever happens in whatever order: never more inside than the limit, and every place comes back.
#[test]
fn every_place_comes_back() {
    let seed = std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(12u64);
    println!("RELENT_SEED={seed}");
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state.wrapping_add(GAMMA);
        mix(state) % below
    };
    for round in 0..200 {
        let (limit, queue) = (1 + draw(4) as u32, draw(4) as u32);
        let limits = match round % 3 {
            0 => Limit::concurrency(limit),
            1 => Limit::concurrency(limit).queue(queue, 20 * MS),
            _ => Limit::aimd(limit),
        };
        let door = Admission::new().limit(limits);
        let door = if draw(2) == 0 { door } else { door.pacer(Pacer::capacity(500.0).horizon(20 * MS)) };
        let (mut now, mut held) = (NOW, Vec::new());
        for _ in 0..300 {
            // A clock that goes back, too.
            now = if draw(20) == 0 { NOW } else { now + MS * draw(5) as u32 };
            match draw(5) {
                0 | 1 => {
                    let priority = [Priority::Low, Priority::Normal, Priority::Vital][draw(3) as usize];
                    let left = (draw(3) == 0).then(|| MS * draw(30) as u32);
                    let arrival = Arrival { attempt: draw(4) as u32, client: None, left, priority };
                    held.extend(door.permit(now, &arrival));
                }
                2 => {
                    if let Some(permit) = held.first_mut()
                        && permit.enter(now) == Ok(true)
                    {
                        permit.answered(now, [Outcome::Success, Outcome::TimedOut][draw(2) as usize]);
                    }
                }
                _ if !held.is_empty() => drop(held.swap_remove(draw(held.len() as u64) as usize)),
                _ => {}
            }
            let inside = held.iter().filter(|permit| permit.phase == Phase::Inside).count();
            let waiting = held.iter().filter(|permit| permit.phase == Phase::Waiting).count();
            assert_eq!(in_flight(&door), (inside as u32, waiting as u32), "round {round}");
            if round % 3 != 2 {
                assert!(inside <= limit as usize && waiting <= queue as usize, "round {round}");
            }
        }
        drop(held);
        assert_eq!(in_flight(&door), (0, 0), "round {round}");
    }
}

/// A herd of `curl --retry`: whole seconds, and never a word of which attempt it is. Turns of those who do not come as who was
/// promised them must not keep the room empty.
#[test]
fn a_herd_that_never_says_which_attempt_it_makes_is_served_at_the_capacity() {
    const CLIENTS: u64 = 200;
    const WORK: u64 = 1_000_000_000 / 15;
    let door = Admission::new()
        .order(Order::RetriesFirst)
        .limit(Limit::concurrency(15))
        .max_retry_share(1.0)
        .pacer(Pacer::capacity(15.0).horizon(Duration::from_secs(600)));
    // Within a second and a half, as a system starts so many.
    let mut events: BTreeSet<(u64, u64)> = (0..CLIENTS).map(|client| (client * 7_500_000, client)).collect();
    let (mut at_work, mut busy_until, mut attempts) = (BTreeMap::new(), 0, 0);
    while let Some((now, client)) = events.pop_first() {
        let at = Timestamp::from_nanos(now);
        if let Some(permit) = at_work.remove(&client) {
            let mut permit: AdmissionPermit<&Admission> = permit;
            permit.answered(at, Outcome::Success);
            continue;
        }
        attempts += 1;
        match door.permit(at, &Arrival::default()) {
            Ok(permit) => {
                busy_until = now.max(busy_until) + WORK;
                at_work.insert(client, permit);
                events.insert((busy_until, client));
            }
            Err(Admit::Turn(wait)) => {
                let seconds = Turn::In(wait).seconds().expect("it is a wait");
                events.insert((now + seconds * 1_000_000_000, client));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    let (took, attempts) = (busy_until as f64 / 1e9, attempts as f64 / CLIENTS as f64);
    println!("{took:.2} s of an ideal {:.2}, {attempts:.2} attempts each", (CLIENTS * WORK) as f64 / 1e9);
    assert_eq!((door.snapshot(NOW).accepted, in_flight(&door)), (CLIENTS, (0, 0)));
    assert!(took < 20.0 && attempts < 4.0, "{took} s, {attempts} attempts each");
}
