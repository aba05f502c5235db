//! The means that a schedule tells are those of the delays themselves, for every profile.
#![cfg(feature = "std")]

use relent::{Policy, compat, rng::mix};
use std::fmt::Write;

/// Retries that are compared.
const ROWS: usize = 14;

/// What the told means may be off besides chance.
const SLACK: f64 = 0.012;

/// The rows in which the mean of this many calls is not the one that was told.
fn wrong_means(name: &str, policy: &Policy, calls: u64, seed: u64) -> String {
    let (mut sums, mut squares, mut counts) = ([0.0; ROWS], [0.0; ROWS], [0.0; ROWS]);
    for call in 0..calls {
        for (row, delay) in policy.delays(mix(seed ^ mix(call))).take(ROWS).enumerate() {
            let delay = delay.as_secs_f64();
            sums[row] += delay;
            squares[row] += delay * delay;
            counts[row] += 1.0;
        }
    }
    let mut wrong = String::new();
    for (nth, row) in policy.schedule().take(ROWS).enumerate() {
        let (count, told) = (counts[nth], row.delay.mean.as_secs_f64());
        // Where some calls have ended, those that go on are others.
        if count < calls as f64 {
            break;
        }
        let mean = sums[nth] / count;
        let error = ((squares[nth] / count - mean * mean).max(0.0) / count).sqrt();
        if (mean - told).abs() > 5.0 * error + SLACK * mean + 1e-9 {
            let _ = writeln!(wrong, "{name}, attempt {}: {told} s are told, {mean} s were drawn", row.attempt);
        }
    }
    wrong
}

fn all_means_are_right(calls: u64) {
    let seed = std::env::var("RELENT_SEED").map_or(7, |seed| seed.parse().expect("RELENT_SEED is a number"));
    let wrong: String = compat::all()
        .iter()
        .map(|profile| wrong_means(profile.name, &profile.policy().max_attempts(ROWS as u32 + 1), calls, seed))
        .collect();
    assert!(wrong.is_empty(), "RELENT_SEED={seed}\n{wrong}");
}

#[test]
fn means_of_all_profiles_are_those_of_their_delays() {
    all_means_are_right(4_000);
}

/// `cargo test -p relent --release --test means -- --ignored`
#[test]
#[ignore = "a million calls of each profile take 45 s"]
fn means_of_all_profiles_are_those_of_a_million_calls() {
    all_means_are_right(1_000_000);
}

/// By their formula: `E' = (5 + 3 E) / 2` until the cap of 2 s is met.
#[test]
fn the_blogs_decorrelated_means_are_those_of_its_formula() {
    let rows = compat::find("aws-blog-decorrelated").unwrap().policy();
    let mut expected = 5.0;
    for row in rows.schedule().take(5) {
        expected = (5.0 + 3.0 * expected) / 2.0;
        let told = row.delay.mean.as_secs_f64() * 1e3;
        assert!((told / expected - 1.0).abs() < 0.01, "attempt {}: {told} against {expected}", row.attempt);
    }
}
