//! What must hold of every breaker, whatever happens to it in whatever order, and on real threads.

use super::*;
use crate::core::{
    rng::{draw, mix},
    time::Timestamp,
    verdict::Reason,
};
use std::{format, sync::Arc, vec::Vec};

const NONE: Duration = Duration::ZERO;

/// Any settings that are valid, any order of calls, drops and clock steps: open means no attempt, half-open never more
/// than its probes, every place comes back, nothing panics.
#[test]
fn holds_for_any_order_of_anything() {
    let seed = std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(11);
    std::println!("RELENT_SEED={seed}");
    for run in 0..3000u32 {
        let random = |k: u32| draw(mix(seed ^ u64::from(run)), k);
        let settings = any_settings(&random);
        let Ok(breaker) = settings.breaker() else { continue };
        walk(&breaker, &random, 200);
    }
}

fn any_settings(random: &impl Fn(u32) -> u64) -> BreakerSettings {
    let some = |k: u32| random(k).is_multiple_of(2);
    let time = |k: u32| Duration::from_nanos(random(k) >> (random(k) % 60));
    let share = |k: u32| (random(k) % 100 + 1) as f64 / 100.0;
    let count = |k: u32| (random(k) % 8 + 1) as u32;
    BreakerSettings {
        consecutive: some(1001).then(|| count(1002)),
        failures: some(1003).then(|| count(1004)),
        share: some(1005).then(|| share(1006)),
        slow_after: some(1007).then(|| time(1008)),
        slow_share: share(1009),
        window: if some(1010) { BreakerWindow::Calls(count(1011) * 50) } else { BreakerWindow::Time(time(1012)) },
        min_calls: some(1013).then(|| count(1014)),
        open_for: time(1015),
        factor: 1.0 + share(1016) * 1e6,
        open_at_most: some(1017).then_some(Duration::MAX),
        jitter: share(1018),
        probes: count(1019),
        close_after: count(1020),
        reopen_share: some(1021).then(|| share(1022)),
        probe_again_after: some(1023).then(|| time(1024)),
        ramp: if some(1025) { time(1026) } else { NONE },
        ramp_from: share(1027),
        quirks: [BreakerQuirks::None, BreakerQuirks::Gobreaker, BreakerQuirks::Cockatiel][(random(1028) % 3) as usize],
    }
}

fn walk(breaker: &Breaker, random: &impl Fn(u32) -> u64, steps: u32) {
    let mut now = Timestamp::from_nanos(random(0) >> (random(1) % 64));
    let mut held: Vec<BreakerPermit<'_>> = vec![];
    for step in 0..steps {
        let any = random(2 + step);
        let jump = random(5000 + step) >> (random(6000 + step) % 64);
        now = match any >> 32 & 7 {
            0 => Timestamp::from_nanos(now.as_nanos().wrapping_add(jump)),
            1 => Timestamp::from_nanos(now.as_nanos().saturating_sub(jump)),
            2 => breaker.worth_asking_at(now),
            _ => now.plus_nanos(any % 1000),
        };
        let before = breaker.snapshot(now);
        match any % 9 {
            0..4 => match breaker.permit(now, random(7000 + step)) {
                Ok(permit) => {
                    assert_ne!(before.state, BreakerState::HeldOpen);
                    assert!(before.until.is_none_or(|until| now >= until), "open means no attempt");
                    held.push(permit);
                }
                Err(refused) => {
                    assert_ne!(before.state, BreakerState::Closed);
                    assert_eq!(refused.reason, Reason::Open);
                }
            },
            4 if !held.is_empty() => drop(held.swap_remove(any as usize / 9 % held.len())),
            5 | 6 if !held.is_empty() => {
                let permit = held.swap_remove(any as usize / 9 % held.len());
                permit.succeeded(now, Duration::from_nanos(jump), random(8000 + step));
            }
            7 if !held.is_empty() => {
                let permit = held.swap_remove(any as usize / 9 % held.len());
                permit.failed(now, Duration::from_nanos(jump), random(8000 + step));
            }
            8 if any >> 50 == 0 => breaker.hold_open(now),
            8 if any >> 50 == 1 => breaker.release(now),
            _ => {}
        }
        let snapshot = breaker.snapshot(now);
        let settings = breaker.settings();
        assert!(snapshot.probes <= settings.probes, "{snapshot:?}");
        assert!(snapshot.probes + snapshot.probes_succeeded + snapshot.probes_failed <= settings.close_after);
        assert!(snapshot.window_failures <= snapshot.window_calls && snapshot.window_slow <= snapshot.window_calls);
        assert_eq!(snapshot.until.is_some(), snapshot.state == BreakerState::Open);
        assert!(snapshot.since >= before.since, "a state never began before the one it follows");
    }
    held.clear();
    assert_eq!(breaker.snapshot(now).probes, 0, "every place comes back");
}

/// Real threads drop, panic, fail and succeed; nobody ever sees more probes than there may be, and in the end every
/// place is back.
#[test]
fn every_permit_is_back_after_a_million_drops_on_real_threads() {
    const ROUNDS: u32 = if cfg!(debug_assertions) { 250_000 } else { 500_000 };
    let breaker =
        Arc::new(Breaker::consecutive(3).or_share(0.5).open_for(Duration::from_nanos(50)).probes(2).close_after(3));
    let in_flight = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            let (breaker, in_flight) = (breaker.clone(), in_flight.clone());
            std::thread::spawn(move || {
                for k in 0..ROUNDS {
                    let random = draw(thread, k);
                    let now = Timestamp::from_nanos(u64::from(k));
                    let Ok(permit) = breaker.permit(now, random) else { continue };
                    in_flight.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    match random % 16 {
                        0..6 => drop(permit),
                        6 if random >> 60 == 0 => {
                            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                                let _permit = permit;
                                std::panic::resume_unwind(Box::new(()));
                            }));
                            assert!(caught.is_err());
                        }
                        6..12 => drop(permit.succeeded(now, NONE, random)),
                        _ => drop(permit.failed(now, NONE, random)),
                    }
                    if k.is_multiple_of(64) {
                        assert!(breaker.snapshot(now).probes <= 2);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let end = Timestamp::from_nanos(u64::from(ROUNDS) + 1000);
    let snapshot = breaker.snapshot(end);
    assert_eq!(snapshot.probes, 0, "{snapshot:?}");
    assert!(snapshot.trips > 100, "{snapshot:?}");
    assert!(!format!("{breaker:?}").is_empty());
    // It still works.
    breaker.release(end);
    let permit = breaker.permit(end, 0).expect("it lets attempts through");
    assert_eq!(permit.succeeded(end, NONE, 0), None);
    assert_eq!(breaker.state(), BreakerState::Closed);
}
