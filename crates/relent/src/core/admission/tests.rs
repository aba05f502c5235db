use super::*;
use std::{format, string::ToString, vec::Vec};

const NOW: Timestamp = Timestamp::ZERO;
const FREE: Room = Room { used: 0, most: 100 };
const FULL: Room = Room { used: 100, most: 100 };
const MS: Duration = Duration::from_millis(1);

fn attempt(attempt: u32) -> Arrival {
    Arrival { attempt, ..Arrival::default() }
}

#[test]
fn what_cannot_finish_is_not_begun() {
    let admission = Admission::new();
    let short = Arrival { left: Some(10 * MS), ..Arrival::default() };
    assert_eq!(admission.decide(NOW, &short, FREE, None), Admit::Accept, "nothing is known yet");
    for _ in 0..100 {
        admission.completed(20 * MS);
    }
    assert_eq!(admission.decide(NOW, &short, FREE, None), Admit::Overloaded(Scope::Service));
    for _ in 0..1000 {
        admission.completed(5 * MS);
    }
    assert_eq!(admission.decide(NOW, &short, FREE, None), Admit::Accept, "it has become quicker");
    let snapshot = admission.snapshot(NOW);
    assert_eq!((snapshot.accepted, snapshot.hopeless, snapshot.service_time), (2, 1, Some(5 * MS)));
}

#[test]
fn too_many_retries_are_told_not_to_retry() {
    let admission = Admission::new().scope(Scope::Host);
    for _ in 0..60 {
        assert_eq!(admission.decide(NOW, &attempt(1), FULL, None), Admit::Shed(Duration::from_secs(1)));
    }
    for _ in 0..60 {
        assert!(matches!(admission.decide(NOW, &attempt(2), FULL, None), Admit::Shed(_)), "half is not more than half");
    }
    assert_eq!(admission.decide(NOW, &attempt(3), FULL, None), Admit::Overloaded(Scope::Host));
    assert_eq!(admission.decide(NOW, &attempt(3), FREE, None), Admit::Accept, "where there is room they are welcome");
    let snapshot = admission.snapshot(NOW);
    assert_eq!((snapshot.full, snapshot.retries, snapshot.accepted), (120, 1, 1));
    assert_eq!(snapshot.offered.to_string(), "1=60,2=60,3=2");
    let later = NOW + Duration::from_secs(13);
    assert_eq!(admission.snapshot(later).offered, Attempts::default(), "and are forgotten");
    assert!(matches!(admission.decide(later, &attempt(3), FULL, None), Admit::Shed(_)));
    let client = Arrival { client: Attempts::parse("1=50,2=50,3=50"), ..attempt(1) };
    assert_eq!(
        admission.decide(later, &client, FULL, None),
        Admit::Overloaded(Scope::Host),
        "this client retries too much"
    );
}

#[test]
fn some_go_first() {
    let admission = Admission::new();
    let arrival = |priority| Arrival { priority, ..Arrival::default() };
    let used = |used| Room { used, most: 100 };
    assert_eq!(admission.decide(NOW, &arrival(Priority::Low), used(49), None), Admit::Accept);
    assert!(matches!(admission.decide(NOW, &arrival(Priority::Low), used(50), None), Admit::Shed(_)));
    assert_eq!(admission.decide(NOW, &arrival(Priority::Normal), used(99), None), Admit::Accept);
    assert_eq!(admission.decide(NOW, &arrival(Priority::Vital), FULL, None), Admit::Accept);
    assert_eq!(admission.snapshot(NOW).low, 1);

    for (order, first, retry) in
        [(Order::AsTheyCome, true, true), (Order::RetriesFirst, false, true), (Order::FirstAttemptsFirst, true, false)]
    {
        let admission = Admission::new().order(order);
        let takes = |number| admission.decide(NOW, &attempt(number), used(95), None) == Admit::Accept;
        assert_eq!((takes(1), takes(3)), (first, retry), "{order:?}");
    }
}

#[test]
fn with_a_pacer_who_finds_no_room_gets_a_turn() {
    let (admission, pacer) = (Admission::new(), Pacer::capacity(1000.0).horizon(3 * MS));
    assert_eq!(admission.decide(NOW, &attempt(1), FREE, Some(&pacer)), Admit::Accept);
    assert_eq!(admission.decide(NOW, &attempt(1), FULL, Some(&pacer)), Admit::Turn(MS));
    assert_eq!(admission.decide(NOW, &attempt(1), FREE, Some(&pacer)), Admit::Turn(2 * MS), "room that is promised");
    assert_eq!(admission.decide(NOW + MS, &attempt(2), FREE, Some(&pacer)), Admit::Accept);
    for _ in 0..9 {
        admission.decide(NOW, &attempt(1), FULL, Some(&pacer));
    }
    let snapshot = admission.snapshot(NOW);
    assert_eq!((snapshot.accepted, snapshot.turns, snapshot.retries), (2, 3, 8));
}

#[test]
fn what_a_stranger_sends_is_bounded() {
    for bad in ["", ",", "1", "=", "1=", "=1", "0=1", "a=1", "1=-1", "+1=2", " 1=2", "1=2,", "1=1.5"] {
        assert_eq!(Attempts::parse(bad), None, "{bad:?}");
    }
    let long = (0..65).map(|_| "1=1").collect::<Vec<_>>().join(",");
    assert_eq!(Attempts::parse(&long), None);
    let digits = |count| Attempts::parse(&format!("1={}", "9".repeat(count))).map(|read| read.of(1));
    assert_eq!((digits(20), digits(21)), (Some(u32::MAX), None), "as many digits as any count has");
    assert_eq!(Attempts::default().retry_share(), 0.0, "of none, none");
    let most = Attempts::parse("1=99999999999,1=1,999999=7,8=1").unwrap();
    assert_eq!((most.of(1), most.of(8), most.of(4_000_000_000)), (u32::MAX, 8, 8));
    assert_eq!(Attempts::parse(&format!("{most}")), Some(most), "what is written is read");
    for share in [0.0, 1.1, f64::NAN] {
        let settings = AdmissionSettings { max_retry_share: share, ..AdmissionSettings::default() };
        assert_eq!(settings.admission().unwrap_err().key, "max_retry_share");
    }
}

#[test]
fn nothing_panics_at_the_ends() {
    let admission = Admission::new();
    admission.completed(Duration::MAX);
    admission.completed(Duration::ZERO);
    for now in [Timestamp::MAX, NOW, Timestamp::MAX] {
        let arrival = Arrival { attempt: 0, left: Some(Duration::ZERO), ..Arrival::default() };
        for room in [Room { used: u64::MAX, most: u64::MAX }, Room { used: 0, most: 0 }] {
            admission.decide(now, &arrival, room, None);
            admission.decide(now, &Arrival { attempt: u32::MAX, ..Arrival::default() }, room, None);
        }
    }
    assert!(!format!("{admission:?}").is_empty());
}

#[test]
fn each_has_its_share_of_every_room() {
    for most in [0, 1, 2, 9, 10, 11, 19, 20, 100, 101] {
        let takes = |order, priority, number| {
            let admission = Admission::new().order(order);
            let arrival = Arrival { priority, ..attempt(number) };
            (0..=most + 1)
                .take_while(|&used| admission.decide(NOW, &arrival, Room { used, most }, None) == Admit::Accept)
                .count() as u64
        };
        let half = if most % 2 == 0 { most / 2 } else { most / 2 + 1 };
        let behind = most - most / 10;
        assert_eq!(takes(Order::AsTheyCome, Priority::Normal, 1), most, "all of it, {most}");
        assert_eq!(takes(Order::AsTheyCome, Priority::Vital, 1), most + 2, "more than all, {most}");
        for order in [Order::AsTheyCome, Order::RetriesFirst, Order::FirstAttemptsFirst] {
            assert_eq!(takes(order, Priority::Low, 1), half, "half, {most}");
        }
        for (order, number, room) in [
            (Order::RetriesFirst, 0, behind),
            (Order::RetriesFirst, 1, behind),
            (Order::RetriesFirst, 2, most),
            (Order::FirstAttemptsFirst, 1, most),
            (Order::FirstAttemptsFirst, 2, behind),
            (Order::FirstAttemptsFirst, 9, behind),
        ] {
            assert_eq!(takes(order, Priority::Normal, number), room, "{order:?}, attempt {number} of {most}");
        }
    }
}

#[test]
fn what_an_answer_takes_moves_by_an_eighth() {
    let admission = Admission::new();
    let takes = |sample: u64| {
        admission.completed(Duration::from_nanos(sample));
        admission.snapshot(NOW).service_time.map(nanos)
    };
    assert_eq!(takes(80), Some(80), "the first is all there is");
    assert_eq!(takes(160), Some(90));
    assert_eq!(takes(90), Some(90));
    assert_eq!(takes(10), Some(80));
    assert_eq!(takes(79), Some(79), "rounded so that it ends at what answers take");
    assert_eq!(takes(86), Some(79), "less than an eighth more is as much");
    assert_eq!(takes(87), Some(80));
    assert_eq!(Admission::new().snapshot(NOW).service_time, None);
    let told = Admission::new().service_time(5 * MS);
    told.completed(50 * MS);
    assert_eq!(told.snapshot(NOW).service_time, Some(5 * MS), "what is said by hand counts");
}

#[test]
fn who_has_just_as_much_time_as_an_answer_takes_is_begun() {
    let begun = |admission: &Admission, left| {
        admission.decide(NOW, &Arrival { left: Some(left), ..Arrival::default() }, FREE, None) == Admit::Accept
    };
    let known = Admission::new().service_time(20 * MS);
    assert!(begun(&known, 20 * MS) && !begun(&known, 20 * MS - Duration::from_nanos(1)));
    let unknown = Admission::new();
    assert!(begun(&unknown, Duration::from_nanos(1)) && !begun(&unknown, Duration::ZERO));
    let vital = Arrival { left: Some(Duration::ZERO), priority: Priority::Vital, ..Arrival::default() };
    assert_eq!(known.decide(NOW, &vital, FULL, None), Admit::Accept, "health checks have no time to keep");
}

#[test]
fn a_share_means_something_from_a_hundred_attempts_on() {
    let admission = Admission::new().max_retry_share(0.2);
    let refused = |client: &str| {
        let arrival = Arrival { client: Attempts::parse(client), ..attempt(1) };
        admission.decide(NOW + Duration::from_secs(3600), &arrival, FULL, None)
    };
    assert!(matches!(refused("2=99"), Admit::Shed(_)), "99 are few");
    assert_eq!(refused("1=79,2=21"), Admit::Overloaded(Scope::Service), "21 of 100");
    assert!(matches!(refused("1=80,2=20"), Admit::Shed(_)), "20 of 100 are not more than a fifth");
    let all = Admission::new().max_retry_share(1.0);
    for _ in 0..200 {
        assert!(matches!(all.decide(NOW, &attempt(2), FULL, None), Admit::Shed(_)), "no share is more than all");
    }
    let admission = Admission::new().max_retry_share(0.2);
    let told: Vec<_> = (0..100).map(|_| admission.decide(NOW, &attempt(2), FULL, None)).collect();
    assert!(matches!(told[98], Admit::Shed(_)) && told[99] == Admit::Overloaded(Scope::Service));
}

/// Attempts count for ten to twelve seconds, by slices of two; a clock that goes back counts in the newest.
#[test]
fn attempts_are_forgotten_after_ten_to_twelve_seconds() {
    let second = Duration::from_secs(1);
    let begin = Timestamp::from_nanos(3600 * 1_000_000_000);
    // One that comes as its slice begins is kept longest, one that comes as it ends is kept shortest.
    for late in [Duration::ZERO, 2 * second - Duration::from_nanos(1)] {
        let admission = Admission::new();
        admission.decide(begin + late, &attempt(1), FREE, None);
        let seen = |at| admission.snapshot(begin + at).offered.of(1);
        assert_eq!((seen(12 * second - Duration::from_nanos(1)), seen(12 * second)), (1, 0), "{late:?}");
    }
    let admission = Admission::new();
    admission.decide(begin + 6 * second, &attempt(1), FREE, None);
    admission.decide(begin, &attempt(2), FREE, None);
    let seen = |at| admission.snapshot(begin + at).offered.to_string();
    assert_eq!([seen(second), seen(17 * second), seen(18 * second)], ["1=1,2=1", "1=1,2=1", ""]);
}
