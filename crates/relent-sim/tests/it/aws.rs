//! The AWS post on backoff and jitter: its whole table, as an independent implementation has it.

use relent_sim::{Figure, Record, presets, simulate};

/// A cell of a table: the mean and the standard deviation of a run.
#[derive(Clone, Copy, Debug)]
struct Cell {
    mean: f64,
    sd: f64,
}

impl Cell {
    /// By how many standard errors the means of so many runs differ.
    fn z(self, runs: u32, other: f64, other_runs: u32) -> f64 {
        (other - self.mean) / (self.sd.powi(2) * (1.0 / f64::from(runs) + 1.0 / f64::from(other_runs))).sqrt()
    }
}

/// Writers and algorithm, time in ms, calls.
type Row = (u64, &'static str, Cell, Cell);

const RUNS: u32 = 2000;

fn oracle() -> Vec<Row> {
    let lines = include_str!("oracles/aws.txt").lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [clients, algorithm, numbers @ ..] = &fields[..] else { panic!("{line}") };
        let numbers: Vec<f64> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
        let cell = |at: usize| Cell { mean: numbers[at], sd: numbers[at + 1] };
        (clients.parse().expect("a number"), *algorithm, cell(0), cell(2))
    };
    lines.map(row).collect()
}

/// Another implementation's cells, of 2000 runs too: writers, algorithm, time and its deviation, calls and theirs.
const PUBLISHED: [(u64, &str, f64, f64, f64, f64); 25] = [
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
fn the_oracle_is_that_of_others() {
    let oracle = oracle();
    assert_eq!(oracle.len(), 105);
    for (clients, algorithm, time, time_sd, calls, calls_sd) in PUBLISHED {
        let (.., own_time, own_calls) = oracle.iter().find(|row| (row.0, row.1) == (clients, algorithm)).unwrap();
        for (own, mean, sd) in [(own_time, time, time_sd), (own_calls, calls, calls_sd)] {
            if sd == 0.0 {
                assert_eq!((own.mean, own.sd), (mean, sd));
                continue;
            }
            let z = own.z(RUNS, mean, RUNS);
            assert!(z.abs() < 4.0, "{clients} {algorithm}: {own:?} is not {mean} (z {z})");
            assert!((own.sd / sd - 1.0).abs() < 0.1, "{clients} {algorithm}: the deviation {} is not {sd}", own.sd);
        }
    }
}

/// The post's own table: 10 to 190 writers, five algorithms, 100 runs a cell.
#[test]
fn the_whole_table_of_the_post_is_met() {
    let (runs, oracle) = (100, oracle());
    let (mut zs, mut ratios) = ([0.0, 0.0], [0.0, 0.0]);
    let mut cells = 0;
    for clients in (10..200).step_by(10) {
        let outcome = simulate(&presets::aws(clients).seeds(runs)).unwrap();
        let rows: Vec<&Row> = oracle.iter().filter(|row| row.0 == clients).collect();
        assert_eq!(rows.len(), 5);
        for (_, algorithm, time, calls) in rows {
            let record = outcome.records.iter().find(|record| record.policy == *algorithm).unwrap();
            for (i, (figure, cell)) in [(Figure::TimeMs, time), (Figure::Calls, calls)].into_iter().enumerate() {
                let (value, sd) = (record.get(figure).unwrap(), record.sd(figure).unwrap());
                let (z, ratio) = (cell.z(RUNS, value, runs), sd / cell.sd);
                assert!(z.abs() < 4.0, "{clients} {algorithm} {}: {value}, {cell:?}, z {z}", figure.name());
                assert!((0.6..1.6).contains(&ratio), "{clients} {algorithm} {}: sd {sd}, {cell:?}", figure.name());
                zs[i] += z;
                ratios[i] += ratio;
            }
            cells += 1;
        }
    }
    assert_eq!(cells, 95);
    for (z, ratio) in zs.map(|z| z / 95.0).into_iter().zip(ratios.map(|ratio| ratio / 95.0)) {
        assert!(z.abs() < 0.35, "the mean z is {z}");
        assert!((ratio - 1.0).abs() < 0.05, "deviations are {ratio} of the oracle's");
    }
}

/// One writer needs one call and four messages, two need three calls, whatever the algorithm.
#[test]
fn one_and_two_writers() {
    let runs = 1000;
    for (clients, expected) in [(1, 1.0), (2, 3.0)] {
        let outcome = simulate(&presets::aws(clients).seeds(runs)).unwrap();
        let get = |record: &Record, figure| (record.get(figure).unwrap(), record.sd(figure).unwrap());
        for (_, algorithm, time, _) in oracle().iter().filter(|row| row.0 == clients) {
            let record = outcome.records.iter().find(|record| record.policy == *algorithm).unwrap();
            assert_eq!(get(record, Figure::Calls), (expected, 0.0));
            let z = time.z(RUNS, record.get(Figure::TimeMs).unwrap(), runs);
            assert!(z.abs() < 4.0, "{clients} {algorithm}: z {z}");
        }
    }
}
