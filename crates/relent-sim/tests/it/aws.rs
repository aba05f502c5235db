//! The AWS post on backoff and jitter: 2000 runs a cell of an independent implementation.

use relent_sim::{Figure, presets, simulate};

/// Clients, algorithm, time and its standard deviation in ms, calls and their standard deviation.
const TABLE: [(u64, &str, f64, f64, f64, f64); 25] = [
    (1, "exponential", 40.1, 4.0, 1.0, 0.0),
    (1, "decorrelated", 40.1, 4.0, 1.0, 0.0),
    (1, "equal", 40.0, 4.0, 1.0, 0.0),
    (1, "full", 40.0, 4.0, 1.0, 0.0),
    (1, "none", 39.9, 4.0, 1.0, 0.0),
    (2, "exponential", 91.9, 5.3, 3.0, 0.0),
    (2, "decorrelated", 91.9, 5.9, 3.0, 0.0),
    (2, "equal", 89.5, 5.6, 3.0, 0.0),
    (2, "full", 87.1, 6.1, 3.0, 0.0),
    (2, "none", 81.7, 5.3, 3.0, 0.0),
    (10, "exponential", 3438.0, 1312.0, 50.70, 4.19),
    (10, "decorrelated", 436.9, 88.4, 37.69, 2.38),
    (10, "equal", 725.4, 187.5, 42.50, 2.65),
    (10, "full", 465.6, 106.9, 39.05, 2.30),
    (10, "none", 379.9, 34.1, 50.77, 4.08),
    (50, "exponential", 36361.2, 3223.8, 623.13, 28.91),
    (50, "decorrelated", 2203.3, 491.6, 374.93, 13.02),
    (50, "equal", 4250.3, 550.6, 347.15, 5.93),
    (50, "full", 2890.4, 544.1, 332.68, 4.78),
    (50, "none", 1139.0, 43.2, 689.94, 17.42),
    (100, "exponential", 63459.6, 3660.2, 1855.56, 56.00),
    (100, "decorrelated", 4593.5, 706.7, 1001.33, 28.54),
    (100, "equal", 6573.6, 645.8, 811.91, 7.80),
    (100, "full", 4903.2, 540.1, 795.63, 6.78),
    (100, "none", 2027.0, 43.3, 2423.04, 31.19),
];

#[test]
fn the_tables_of_the_post_are_met() {
    let runs = 200;
    let mut zs = Vec::new();
    for clients in [1, 2, 10, 50, 100] {
        let outcome = simulate(&presets::aws(clients).seeds(runs)).unwrap();
        for &(_, name, time, time_sd, calls, calls_sd) in TABLE.iter().filter(|row| row.0 == clients) {
            let record = outcome.records.iter().find(|record| record.policy == name).unwrap();
            let mut z = |figure, expected: f64, sd: f64, printed: f64| {
                let value = record.get(figure).unwrap();
                // The oracle is a mean of 2000 runs itself, and printed with so many digits.
                let error = (sd * sd / f64::from(runs) + sd * sd / 2000.0 + printed * printed / 12.0).sqrt();
                let z = (value - expected) / error;
                assert!(z.abs() < 4.0, "{clients} {name} {}: {value} is not {expected} (z {z})", figure.name());
                zs.push(z);
            };
            z(Figure::TimeMs, time, time_sd, 0.1);
            if calls_sd == 0.0 {
                assert_eq!(record.get(Figure::Calls), Some(calls), "{clients} {name}");
            } else {
                z(Figure::Calls, calls, calls_sd, 0.01);
            }
        }
    }
    let mean = zs.iter().sum::<f64>() / zs.len() as f64;
    assert!(mean.abs() < 0.35, "the mean z is {mean}");
}
