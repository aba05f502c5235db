//! Shared channels: 802.3, slotted ALOHA, Bianchi's DCF, and batches by window strategies.

use crate::engines::interrupted;
use relent::Policy;
use relent_sim::{Access, Batch, Ethernet, Figure, Record, Saturated, Scenario, Windows, World, simulate, theory};
use std::time::Duration;

const SLOT: Duration = Duration::from_nanos(51_200);

fn near(value: f64, expected: f64, error: f64, what: &str) {
    assert!((value - expected).abs() <= error, "{what}: {value} is not {expected}");
}

#[test]
fn slots_have_the_means_of_802_3() {
    let policy = Policy::slots(SLOT);
    let slots = |delay: Duration| delay.as_secs_f64() / SLOT.as_secs_f64();
    let rows: Vec<_> = policy.schedule().collect();
    let means: Vec<f64> = rows.iter().map(|row| slots(row.delay.mean)).collect();
    let expected = [0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 63.5, 127.5, 255.5, 511.5, 511.5, 511.5, 511.5, 511.5, 511.5];
    assert_eq!(means.len(), expected.len());
    for (mean, expected) in means.iter().zip(expected) {
        near(*mean, expected, 1e-3, "E(c)");
    }
    let last = rows.last().unwrap();
    near(slots(last.total.mean), 3575.5, 1e-2, "cumulative mean");
    near(slots(last.total.max), 7151.0, 1e-2, "cumulative maximum");
}

fn ethernet(stations: u64, frame_slots: u64, capture: bool, seeds: u32) -> (Record, Vec<(String, f64, Option<f64>)>) {
    let world = World::Ethernet(Ethernet { stations, frame_slots, slot: SLOT, capture });
    let scenario = Scenario::new("ethernet", world).policy("802.3", Policy::slots(SLOT)).seeds(seeds);
    let mut outcome = simulate(&scenario).expect("the scenario is sound");
    (outcome.records.remove(0), outcome.extras.checks)
}

#[test]
fn two_stations_collide_as_often_as_computed() {
    let (record, _) = ethernet(2, 1, false, 40_000);
    let error = 4.0 * record.sd(Figure::Collisions).unwrap() / 200.0;
    near(record.get(Figure::Collisions).unwrap(), theory::two_station_collisions(), error, "collisions");
    near(record.get(Figure::AttemptsPerPacket).unwrap(), 2.6416, error, "attempts");
}

/// Stations with a frame each, as another simulation of the same rules has it: transmissions a frame, and collisions
/// before the first success.
#[test]
fn many_stations_collide_as_elsewhere() {
    for (stations, seeds, attempts, collisions) in [
        (3, 8000, 3.191, 1.956),
        (4, 8000, 3.643, 2.709),
        (8, 4000, 4.769, 5.035),
        (16, 2000, 5.856, 8.974),
        (128, 400, 8.949, 46.4),
    ] {
        let (record, _) = ethernet(stations, 1, false, seeds);
        for (figure, expected) in [(Figure::AttemptsPerPacket, attempts), (Figure::Collisions, collisions)] {
            let error = 4.5 * record.sd(figure).unwrap() / f64::from(seeds).sqrt() + 0.005 * expected;
            near(record.get(figure).unwrap(), expected, error, &format!("{stations} {}", figure.name()));
        }
        assert_eq!(record.get(Figure::GaveUp), Some(0.0));
    }
    // 802.3 ends at 1024 stations for a reason: the 16th collision discards the frame.
    let (record, _) = ethernet(1024, 1, false, 30);
    assert!((20.0..60.0).contains(&record.get(Figure::GaveUp).unwrap()), "{:?}", record.get(Figure::GaveUp));
    assert_eq!(record.gave_up.keys().collect::<Vec<_>>(), [&"attempts"]);
    near(record.get(Figure::AttemptsPerPacket).unwrap(), 12.995, 0.03, "1024");
}

#[test]
fn the_winner_captures_the_channel() {
    let (record, checks) = ethernet(2, 1024, true, 20_000);
    let mut seen = 0;
    for (name, measured, expected) in checks {
        let c: u32 = name.rsplit('c').next().unwrap().parse().unwrap();
        near(measured, expected.unwrap(), 0.02 + 0.03 * f64::from(c > 12), &name);
        seen += 1;
    }
    assert!(seen >= 20, "{seen} probabilities were measured");
    // Once behind, the second station is mostly discarded.
    assert!(record.get(Figure::GaveUp).unwrap() > 0.1);
}

#[test]
fn saturated_stations_share_as_bianchi_says() {
    for (stations, window, stages) in [(5, 32, 5), (10, 32, 5), (50, 32, 5), (20, 32, 3), (50, 128, 3), (10, 128, 3)] {
        let access = Access::Dcf { window, stages };
        let world = World::Saturated(Saturated { stations, access, slots: 2_000_000 });
        let record = simulate(&Scenario::new("dcf", world)).unwrap().records.remove(0);
        let expected = theory::bianchi(stations, window, stages).success;
        let value = record.get(Figure::SuccessPerSlot).unwrap();
        near(value / expected, 1.0, 0.01, &format!("{stations} {window} {stages}"));
    }
}

#[test]
fn aloha_is_the_binomial() {
    for stations in [2, 3, 10, 100] {
        for p in [1.0 / stations as f64, 0.5 / stations as f64] {
            let world = World::Saturated(Saturated { stations, access: Access::Persistent(p), slots: 1_000_000 });
            let record = simulate(&Scenario::new("aloha", world)).unwrap().records.remove(0);
            near(record.get(Figure::SuccessPerSlot).unwrap(), theory::aloha(stations, p), 0.003, "aloha");
        }
    }
}

/// Packets; makespan a packet and attempts a packet for each strategy in the order of `Windows::ALL`.
const BATCHES: [(u64, [(f64, f64); 7]); 4] = [
    (2, [(2.87, 2.64), (3.17, 3.71), (3.28, 2.28), (2.75, 2.65), (2.85, 2.64), (2.98, 3.25), (1.99, 1.99)]),
    (16, [(5.62, 5.41), (4.65, 7.72), (4.46, 4.35), (3.98, 6.46), (4.43, 5.59), (4.57, 11.55), (3.21, 1.98)]),
    (256, [(9.38, 9.41), (7.02, 14.43), (5.24, 12.31), (5.71, 19.92), (6.01, 12.78), (6.24, 37.03), (4.33, 2.01)]),
    (4096, [(15.13, 13.41), (8.34, 21.25), (7.20, 38.35), (7.07, 43.91), (6.99, 22.59), (7.00, 78.67), (5.00, 2.01)]),
];

#[test]
fn batches_take_as_long_as_measured_elsewhere() {
    for (packets, row) in BATCHES {
        let seeds = if packets < 100 {
            8000
        } else if packets < 1000 {
            1000
        } else {
            60
        };
        let world = World::Batch(Batch { packets, windows: Windows::ALL.to_vec() });
        let outcome = simulate(&Scenario::new("batch", world).seeds(seeds)).unwrap();
        let mut wrong = Vec::new();
        for (record, (makespan, attempts)) in outcome.records.iter().zip(row) {
            for (figure, expected) in [(Figure::MakespanOverN, makespan), (Figure::AttemptsPerPacket, attempts)] {
                let (value, sd) = (record.get(figure).unwrap(), record.sd(figure).unwrap());
                let error = 4.0 * sd / f64::from(seeds).sqrt() + 0.02 * expected;
                if (value - expected).abs() > error {
                    wrong.push(format!("{packets} {} {}: {value:.3} is not {expected}", record.policy, figure.name()));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// What is cut short has the successes of the slots that there were.
#[test]
fn an_interrupted_channel_says_what_it_heard() {
    let world = World::Saturated(Saturated { stations: 10, access: Access::Persistent(0.1), slots: 10_000_000_000 });
    let scenario = Scenario::new("aloha", world);
    let outcome = interrupted(&scenario, |(.., attempts)| attempts >= 100_000);
    let heard = outcome.records[0].get(Figure::SuccessPerSlot).unwrap();
    assert!((heard - 0.3874).abs() < 0.01, "{heard}");
}
