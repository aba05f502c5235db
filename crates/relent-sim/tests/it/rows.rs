//! The further rows of HERD-1, of batches and of the shared channels, against independent implementations (`oracles/`).

use crate::herd::{constant, exponential, herd_1};
use relent::{
    Jitter, Policy,
    compat::{Chained, Link, Unit},
};
use relent_sim::{
    Access, Arrivals, Batch, Contender, Figure, Record, RetryAfter, Saturated, Scenario, Service, Windows, World,
    simulate, theory,
};
use std::time::Duration;

const SEC: Duration = Duration::from_secs(1);

/// A figure of the oracle: the mean and the standard deviation of a run, over so many runs.
#[derive(Clone, Copy, Debug)]
struct Cell {
    mean: f64,
    sd: f64,
    runs: f64,
}

impl Cell {
    /// What is wrong with a record's figure, if it is more than 4 standard errors and a rounding off.
    fn wrong(self, record: &Record, figure: Figure, rounding: f64) -> Option<String> {
        let value = record.get(figure)?;
        // The end of a herd is its unluckiest client: a few runs may have more spread than the oracle's, or show less.
        let sd = record.sd(figure).map_or(self.sd, |own| own.max(self.sd));
        let error = sd * (1.0 / self.runs + 1.0 / f64::from(record.seeds)).sqrt();
        let far = (value - self.mean).abs() > 4.0 * error + rounding * self.mean;
        far.then(|| {
            format!("{} {}: {value} is not {} (standard error {error})", record.policy, figure.name(), self.mean)
        })
    }
}

/// The lines of an oracle: a row's names, and its numbers.
fn lines(text: &'static str, names: usize) -> Vec<(Vec<&'static str>, Vec<f64>)> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let numbers = fields[names..].iter().map(|number| number.parse().expect("a number")).collect();
        (fields[..names].to_vec(), numbers)
    })
    .collect()
}

const FIGURES: [Figure; 10] = [
    Figure::AttemptsPerClient,
    Figure::DrainS,
    Figure::P50S,
    Figure::P90S,
    Figure::P99S,
    Figure::Peak1Ms,
    Figure::Peak100Ms,
    Figure::Peak1S,
    Figure::MaxAttempts,
    Figure::Utilisation,
];

fn contender(name: &str) -> Contender {
    static BLOG: Chained = Chained { name: "blog", ..Chained::SECONDS };
    static SMOOTHED: Chained = Chained {
        name: "smoothed",
        unit: Unit::Ticks,
        first: 1e6,
        cap: 1e8,
        link: Link::Smoothed { factor: 2.0 },
        ..Chained::SECONDS
    };
    let proportional = |x: f64| exponential(Jitter::Proportional(x));
    let at_once = Policy::immediate().unlimited_attempts();
    let told = |retry_after| Contender::new(name, at_once).told(retry_after);
    let policy = match name {
        "told-exact" => return told(RetryAfter::Exact),
        "told-spread" => return told(RetryAfter::Spread),
        "told-1s" => return told(RetryAfter::Fixed(SEC)),
        "told-5s" => return told(RetryAfter::Fixed(5 * SEC)),
        "constant" => constant(),
        "constant-full" => constant().jitter(Jitter::Full),
        "constant-full-2s" => Policy::constant(2 * SEC).jitter(Jitter::Full).unlimited_attempts(),
        "none" => exponential(Jitter::None),
        "none-x1.5" => exponential(Jitter::None).factor(1.5),
        "none-x3" => exponential(Jitter::None).factor(3.0),
        "full" => exponential(Jitter::Full),
        "full-x1.5" => exponential(Jitter::Full).factor(1.5),
        "full-x3" => exponential(Jitter::Full).factor(3.0),
        "full-base-20s" => Policy::exponential(20 * SEC).cap(20 * SEC).jitter(Jitter::Full).unlimited_attempts(),
        "equal" => exponential(Jitter::Equal),
        "equal-x1.5" => exponential(Jitter::Equal).factor(1.5),
        "equal-x3" => exponential(Jitter::Equal).factor(3.0),
        "proportional-10" => proportional(0.1),
        "proportional-20" => proportional(0.2),
        "proportional-50" => proportional(0.5),
        // Here the cap bounds the range, jitter included: a curve that ends at 10 s has a longer one.
        "proportional-10-over" => proportional(0.1).cap(11 * SEC),
        "proportional-20-over" => proportional(0.2).cap(12 * SEC),
        "proportional-50-over" => proportional(0.5).cap(15 * SEC),
        "decorrelated" => exponential(Jitter::Decorrelated),
        "decorrelated-blog" => Policy::custom(&BLOG).unlimited_attempts(),
        "smoothed" => Policy::custom(&SMOOTHED).unlimited_attempts(),
        "spread" => exponential(Jitter::Full).spread(20 * SEC),
        _ => panic!("{name} is no row"),
    };
    Contender::new(name, policy)
}

#[test]
fn all_rows_of_herd_1_are_met() {
    let rows = lines(include_str!("oracles/herd.txt"), 2);
    assert_eq!(rows.len(), 27);
    let mut wrong = Vec::new();
    for (names, numbers) in rows {
        let runs: f64 = names[1].parse().expect("a number");
        let seeds = if runs > 1.0 { 4 } else { 1 };
        let outcome = simulate(&herd_1(100_000).contender(contender(names[0])).seeds(seeds)).unwrap();
        for (figure, cell) in FIGURES.into_iter().zip(numbers.chunks(2)) {
            let cell = Cell { mean: cell[0], sd: cell[1], runs };
            // Counts are exact where nothing is random. Waits are counted in a histogram, and what is a few in a
            // millisecond (the peak of a herd that is spread) has no normal distribution.
            let rounding = match figure {
                Figure::Peak1Ms if cell.mean < 100.0 => 0.15,
                Figure::MaxAttempts if cell.sd > 0.0 || cell.mean > 20.0 => 0.03,
                Figure::P50S | Figure::P90S | Figure::P99S => 5e-5,
                _ => 1e-6,
            };
            let value = outcome.records[0].get(figure).unwrap_or(0.0);
            // The oracle's windows lie end to end. One that slides is no emptier, and lies in two of them at most.
            let slides = matches!(figure, Figure::Peak100Ms | Figure::Peak1S);
            if !(slides && value > cell.mean && value <= 2.0 * cell.mean) {
                wrong.extend(cell.wrong(&outcome.records[0], figure, rounding));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn batches_of_every_size_are_met() {
    let rows = lines(include_str!("oracles/batch.txt"), 2);
    assert_eq!(rows.len(), 13 * 7);
    let mut wrong = Vec::new();
    for rows in rows.chunks(7) {
        let packets: u64 = rows[0].0[0].parse().expect("a number");
        let seeds = (200_000 / packets).clamp(12, 20_000) as u32;
        let world = World::Batch(Batch { packets, windows: Windows::ALL.to_vec() });
        let outcome = simulate(&Scenario::new("batch", world).seeds(seeds)).unwrap();
        for ((names, numbers), record) in rows.iter().zip(&outcome.records) {
            assert_eq!((names[0], names[1]), (packets.to_string().as_str(), record.policy.as_str()));
            let [runs, makespan, makespan_sd, attempts, attempts_sd] = numbers[..] else { panic!("{names:?}") };
            let cells = [
                (Figure::MakespanOverN, Cell { mean: makespan, sd: makespan_sd, runs }),
                (Figure::AttemptsPerPacket, Cell { mean: attempts, sd: attempts_sd, runs }),
            ];
            wrong.extend(cells.into_iter().filter_map(|(figure, cell)| cell.wrong(record, figure, 1e-4)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Successes a slot, tau, the share of collisions, and normalised throughput: the model's and what is simulated.
#[test]
fn every_row_of_bianchi_is_met() {
    for (window, stages) in [(32, 5), (32, 3), (128, 3)] {
        for stations in [5, 10, 15, 20, 30, 50] {
            let access = Access::Dcf { window, stages };
            let slots = if window > 100 { 3_000_000 } else { 1_500_000 };
            let world = World::Saturated(Saturated { stations, access, slots });
            let outcome = simulate(&Scenario::new("dcf", world)).unwrap();
            let mut checks = outcome.extras.checks.iter();
            for what in ["success_per_slot", "tau", "collision", "throughput"] {
                let (name, measured, expected) = checks.next().expect("there are four");
                let expected = expected.expect("Bianchi has a say");
                assert!(name.ends_with(what), "{name}");
                // The model takes stations for independent; with few collisions that is further off.
                let most = if what == "collision" { 0.025 } else { 0.01 };
                let off = measured / expected - 1.0;
                assert!(
                    off.abs() < most,
                    "w {window} m {stages} n {stations} {what}: {measured}, by theory {expected}"
                );
            }
        }
    }
}

/// `(1 - 1/n)^(n-1)`, which goes to 1/e: what slotted ALOHA can do at most.
#[test]
fn aloha_of_finite_populations() {
    for (stations, published) in
        [(2, 0.5), (3, 0.44444), (5, 0.4096), (10, 0.38742), (32, 0.37373), (100, 0.36973), (1000, 0.368063)]
    {
        let access = Access::Persistent(1.0 / stations as f64);
        let world = World::Saturated(Saturated { stations, access, slots: 1_000_000 });
        let outcome = simulate(&Scenario::new("aloha", world)).unwrap();
        let value = outcome.records[0].get(Figure::SuccessPerSlot).unwrap();
        // Five standard errors of a million slots.
        assert!((value - published).abs() < 0.0025, "{stations}: {value} is not {published}");
        assert!((theory::aloha(stations, 1.0 / stations as f64) - published).abs() < 6e-6);
    }
    assert!((theory::slotted_aloha(1.0) - theory::aloha(1_000_000, 1e-6)).abs() < 1e-6);
}

/// At a load of one, a queue of `2 sqrt(N)` turns nobody away; at 5 % and 10 % less, a fifth and a tenth of that do.
#[test]
fn room_for_twice_the_root_of_the_herd_is_enough() {
    let wasted = |clients: u64, longer: f64, room: f64| {
        let mut service = Service::herd(clients, clients as f64 / 20.0);
        service.arrivals = Arrivals::Herd { clients, window: Duration::from_secs_f64(20.0 * longer) };
        service.server.queue = Some((room * (clients as f64).sqrt()) as u64);
        let scenario = Scenario::new("room", World::Service(service)).policy("full", exponential(Jitter::Full));
        let outcome = simulate(&scenario.seeds(8)).unwrap();
        outcome.records[0].get(Figure::WastedPerClient).unwrap()
    };
    for clients in [10_000, 100_000] {
        assert!(wasted(clients, 1.0, 2.1) < 1e-4, "{clients}");
        assert!(wasted(clients, 1.0, 0.5) > 1e-3, "{clients}: a quarter of it is too little");
    }
    assert!(wasted(100_000, 1.05, 0.45) < 1e-5);
    assert!(wasted(100_000, 1.1, 0.25) < 1e-5);
    assert!(wasted(100_000, 1.05, 0.1) > 1e-4);
}

/// How long the queue overruns a window of N / C: a Rayleigh variable of mean `sqrt(pi / 8 N) / C`.
#[test]
fn the_overrun_grows_with_the_root_of_the_herd() {
    for (clients, seeds) in [(1000, 1000), (10_000, 300), (100_000, 60)] {
        let capacity = clients as f64 / 20.0;
        let mut service = Service::herd(clients, capacity);
        service.arrivals = Arrivals::Herd { clients, window: 20 * SEC };
        let scenario = Scenario::new("overrun", World::Service(service)).policy("once", Policy::immediate());
        let outcome = simulate(&scenario.seeds(seeds)).unwrap();
        let record = &outcome.records[0];
        let scale = capacity / (clients as f64).sqrt();
        let overrun = (record.get(Figure::DrainS).unwrap() - 20.01) * scale;
        let sd = record.sd(Figure::DrainS).unwrap() * scale;
        // Of a Rayleigh variable the deviation is sqrt(4/pi - 1) of the mean. Small herds have a service more to do.
        let mean = (std::f64::consts::PI / 8.0).sqrt();
        let error = 4.0 * sd / f64::from(seeds).sqrt() + 0.6 / (clients as f64).sqrt();
        assert!((overrun - mean).abs() < error, "{clients}: {overrun} is not {mean} within {error}");
        assert!((sd / (0.5227 * mean) - 1.0).abs() < 0.3, "{clients}: {sd}");
    }
}
