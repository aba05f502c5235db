//! The delays that clients draw: mean, variance and support of each jitter, and where decorrelated jitter ends up.

use relent::{Jitter, Policy, compat::Chained, rng::mix};
use std::time::Duration;

const SAMPLES: u64 = 200_000;

/// The `k`-th delays of many calls, in seconds, ascending.
fn delays(policy: &Policy, k: usize, samples: u64) -> Vec<f64> {
    let of = |seed: u64| policy.delays(mix(seed)).nth(k - 1).expect("there are so many").as_secs_f64();
    let mut delays: Vec<f64> = (0..samples).map(of).collect();
    delays.sort_by(f64::total_cmp);
    delays
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
}

#[track_caller]
fn near(value: f64, expected: f64, relative: f64, what: &str) {
    assert!((value - expected).abs() <= relative * expected, "{what}: {value} is not {expected}");
}

/// Of a delay that is v = 0.8 s without jitter.
#[test]
fn every_jitter_has_its_moments() {
    let ms = Duration::from_millis;
    let v: f64 = 0.8;
    let policy = |jitter| Policy::exponential(ms(100)).cap(Duration::from_secs(10)).jitter(jitter).unlimited_attempts();
    // Mean, variance, support.
    for (jitter, expected, spread, least, most) in [
        (Jitter::None, v, 0.0, v, v),
        (Jitter::Full, v / 2.0, v * v / 12.0, 0.0, v),
        (Jitter::Equal, 0.75 * v, v * v / 48.0, v / 2.0, v),
        (Jitter::Proportional(0.2), v, (0.2 * v).powi(2) / 3.0, 0.8 * v, 1.2 * v),
        (Jitter::Additive(ms(300)), v + 0.15, 0.3 * 0.3 / 12.0, v, v + 0.3),
    ] {
        let delays = delays(&policy(jitter), 4, SAMPLES);
        let what = format!("{jitter:?}");
        near(mean(&delays), expected, 0.005, &what);
        assert!((variance(&delays) - spread).abs() <= 0.01 * spread + 1e-12, "{what}: {}", variance(&delays));
        let (first, last) = (delays[0], delays[delays.len() - 1]);
        assert!(first >= least - 1e-9 && first <= least + 1e-4 * v + 1e-9, "{what}: from {first}");
        assert!(last <= most + 1e-9 && last >= most - 1e-4 * v - 1e-9, "{what}: to {last}");
    }
}

/// IEEE 802.3: after the c-th collision one of `2^min(c, 10)` slots.
#[test]
fn slots_have_their_moments() {
    let slot = Duration::from_nanos(51_200);
    for c in [1, 2, 5, 10, 11, 15] {
        let slots: Vec<f64> =
            delays(&Policy::slots(slot), c, 50_000).iter().map(|delay| (delay / slot.as_secs_f64()).round()).collect();
        let width = f64::powi(2.0, c.min(10) as i32);
        near(mean(&slots), (width - 1.0) / 2.0, 0.015, "mean");
        near(variance(&slots), (width * width - 1.0) / 12.0, 0.025, "variance");
        assert_eq!((slots[0], slots[slots.len() - 1]), (0.0, width - 1.0), "{c}");
    }
}

/// Without a cap the mean grows by a half each time: 2, 3.5, 5.75 ... of the base, and the most is `3^n`.
#[test]
fn decorrelated_means_grow_by_a_half() {
    let policy = Policy::exponential(Duration::from_secs(1)).cap(Duration::from_secs(1_000_000));
    let policy = policy.jitter(Jitter::Decorrelated).unlimited_attempts();
    for (n, expected) in (1..).zip([2.0, 3.5, 5.75, 9.125, 14.1875]) {
        let delays = delays(&policy, n, SAMPLES);
        near(mean(&delays), expected, 0.01, &format!("delay {n}"));
        assert!(delays[0] >= 1.0 && delays[delays.len() - 1] <= f64::powi(3.0, n as i32));
    }
}

/// The AWS blog's formula from 0.1 s to 10 s: after a while a third of all delays are exactly the cap. (relent's own
/// draws below the cap, so that none is.)
#[test]
fn a_clipped_draw_piles_up_at_the_cap() {
    static BLOG: Chained = Chained { name: "blog", ..Chained::SECONDS };
    let blog = Policy::custom(&BLOG).unlimited_attempts();
    let own = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10));
    let own = own.jitter(Jitter::Decorrelated).unlimited_attempts();
    for (n, expected, median, at_cap) in
        [(5, 1.41, 0.83, 0.004), (10, 3.94, 2.33, 0.19), (20, 5.13, 4.31, 0.30), (40, 5.28, 4.64, 0.316)]
    {
        let delays = delays(&blog, n, SAMPLES / 2);
        near(mean(&delays), expected, 0.015, &format!("mean of delay {n}"));
        near(delays[delays.len() / 2], median, 0.025, &format!("median of delay {n}"));
        let share = delays.iter().filter(|delay| **delay == 10.0).count() as f64 / delays.len() as f64;
        assert!((share - at_cap).abs() < 0.006, "{share} of delays {n} are the cap, not {at_cap}");
        let own = self::delays(&own, n, 20_000);
        assert!(own.iter().filter(|delay| **delay >= 9.9999).count() < 20, "delay {n}");
    }
}
