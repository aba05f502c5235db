//! Rounds, medians and the table.

use crate::count::allocations;
use serde_json::json;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Default)]
pub(crate) struct Settings {
    pub(crate) quick: bool,
    pub(crate) json: bool,
}

impl Settings {
    fn rounds(self) -> usize {
        if self.quick { 31 } else { 501 }
    }

    /// How long one library's turn in a round should take: short, so that few turns are interrupted by whatever else
    /// the machine does, and the median is one that was not.
    fn turn(self) -> Duration {
        Duration::from_micros(200)
    }
}

/// How often a turn that came to nothing is tried.
const TURNS: u32 = 10;

/// Things that are compared with each other.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// How many of what is counted one iteration does.
    pub(crate) per: u32,
    pub(crate) cases: Vec<Case>,
}

pub(crate) struct Case {
    name: &'static str,
    /// Too slow for many rounds.
    slow: bool,
    /// Runs this many iterations, and says how long they took; `None` if that was not what is to be measured.
    run: Box<dyn FnMut(u64) -> Option<Duration>>,
}

impl Case {
    /// `once` is inlined into the loop that is timed.
    pub(crate) fn new(name: &'static str, mut once: impl FnMut() + 'static) -> Case {
        Case::beside(name, move |iterations| {
            let start = Instant::now();
            for _ in 0..iterations {
                once();
            }
            start.elapsed()
        })
    }

    /// Takes its own time: there is something to set up around the iterations.
    pub(crate) fn beside(name: &'static str, mut run: impl FnMut(u64) -> Duration + 'static) -> Case {
        Case::sometimes(name, move |iterations| Some(run(iterations)))
    }

    /// As [`Case::beside`], where a turn may come to nothing: `None`, and it is not counted.
    pub(crate) fn sometimes(name: &'static str, run: impl FnMut(u64) -> Option<Duration> + 'static) -> Case {
        Case { name, slow: false, run: Box::new(run) }
    }

    pub(crate) fn slow(name: &'static str, once: impl FnMut() + 'static) -> Case {
        Case { slow: true, ..Case::new(name, once) }
    }

    /// Doubles the iterations until they fill a turn.
    fn calibrate(&mut self, turn: Duration) -> u64 {
        let mut iterations = 1;
        loop {
            // Where every turn came to nothing, so will the rounds; and the table says so.
            let took = self.time(iterations).unwrap_or(turn);
            if took >= turn || iterations >= 1 << 40 {
                return iterations;
            }
            let missing = turn.as_nanos() / took.as_nanos().max(100) + 1;
            iterations = iterations.saturating_mul((missing as u64).clamp(2, 1000));
        }
    }

    fn time(&mut self, iterations: u64) -> Option<Duration> {
        (0..TURNS).find_map(|_| (self.run)(iterations))
    }
}

struct Measured {
    name: &'static str,
    nanos: f64,
    spread: f64,
    allocations: f64,
}

impl Group {
    pub(crate) fn run(mut self, settings: Settings) {
        let turns: Vec<u64> = self.cases.iter_mut().map(|case| case.calibrate(settings.turn())).collect();
        let per = f64::from(self.per);
        let mut samples = vec![Vec::new(); self.cases.len()];
        for round in 0..settings.rounds() {
            for step in 0..self.cases.len() {
                // Each round starts with another, so that nobody always comes after the same one.
                let at = (step + round) % self.cases.len();
                if self.cases[at].slow && round >= 3 {
                    continue;
                }
                if let Some(took) = self.cases[at].time(turns[at]) {
                    samples[at].push(took.as_nanos() as f64 / (turns[at] as f64 * per));
                }
            }
        }
        let measured: Vec<Measured> = self
            .cases
            .iter_mut()
            .zip(samples)
            .map(|(case, mut samples)| {
                samples.sort_by(f64::total_cmp);
                let last = samples.len().saturating_sub(1) as f64;
                let at = |share: f64| samples.get((last * share) as usize).copied().unwrap_or(f64::NAN);
                let iterations = if case.slow { 1 } else { 100 };
                let allocations = allocations(|| _ = (case.run)(iterations)) as f64 / (iterations as f64 * per);
                Measured { name: case.name, nanos: at(0.5), spread: at(0.75) - at(0.25), allocations }
            })
            .collect();
        self.print(&measured, settings);
    }

    fn print(&self, measured: &[Measured], settings: Settings) {
        if settings.json {
            for Measured { name, nanos, allocations, .. } in measured {
                let line =
                    json!({"name": format!("{}/{name}", self.name), "nanoseconds": nanos, "allocations": allocations});
                println!("{line}");
            }
            return;
        }
        let of = |wanted: &str| measured.iter().find(|m| m.name.starts_with(wanted)).map(|m| m.nanos);
        let (floor, backon) = (of("floor"), of("backon"));
        println!("## {}\n", self.title);
        println!("| library | ns | over floor | of backon | spread | allocations |");
        println!("|---|---:|---:|---:|---:|---:|");
        for Measured { name, nanos, spread, allocations } in measured {
            let over = floor.map_or(String::new(), |floor| format!("{:+.2}", nanos - floor));
            let ratio = backon.map_or(String::new(), |backon| format!("{:.2}", nanos / backon));
            println!("| {name} | {nanos:.2} | {over} | {ratio} | {spread:.2} | {allocations:.2} |");
        }
        println!();
    }
}
