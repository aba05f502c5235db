//! A limit on what is in flight, led by how latency compares with what it is without load.
//!
//! Envoy's adaptive concurrency: `g = clamp(min_rtt * (1 + buffer) / rtt, 0.5, 2)`, `limit = g * limit + sqrt(g * limit)`,
//! 3 to 1000, every 100 ms. The latency without load is measured anew each minute, over 50 answers at a limit of 3.
//! Source: Envoy, `gradient_controller.cc`. Different here: `rtt` is the mean of a round and not its median, which
//! would take a histogram, and a share of failures lowers the gradient by as much, for a far side that fails fast.

use super::{
    answer::LimitAnswer,
    flight::{FINE, Flight},
};
use crate::core::{
    cells::Cells,
    float::sqrt,
    outcome::Outcome,
    time::{Timestamp, nanos},
    word::Word,
};
use core::time::Duration;

const LEAST: u32 = 3;
const ROUND: u64 = 100_000_000;
const MEASURE_AGAIN: u64 = 60_000_000_000;
const MEASURED_BY: u64 = 50;
pub(super) const BUFFER: f64 = 0.25;

/// The gradient and the limit that follow from a round, as Envoy has them.
///
/// `gradient = clamp(min_rtt * (1 + buffer) / rtt, 0.5, 2)`; `limit = gradient * limit + sqrt(gradient * limit)`,
/// whole, 3 to 1000. What is no number or not positive counts as no change.
///
/// ```
/// assert_eq!(relent::gradient(100, 10.0, 12.5, 0.25), (1.0, 110));
/// assert_eq!(relent::gradient(100, 10.0, 1000.0, 0.25), (0.5, 57));
/// ```
pub fn gradient(limit: u32, min_rtt: f64, rtt: f64, buffer: f64) -> (f64, u32) {
    let ratio = min_rtt * (1.0 + buffer) / rtt;
    let gradient = if ratio.is_nan() { 1.0 } else { ratio.clamp(0.5, 2.0) };
    (gradient, apply(limit, gradient).clamp(LEAST, 1000))
}

fn apply(limit: u32, gradient: f64) -> u32 {
    let scaled = gradient * f64::from(limit);
    (scaled + sqrt(scaled)) as u32
}

const ROUND_END: usize = 0;
const SUM: usize = 1;
const ANSWERS: usize = 2;
const FAILURES: usize = 3;
const MIN_RTT: usize = 4;
/// When the latency without load is to be measured again; 0 while it is being measured.
const MEASURE_AT: usize = 5;
/// The limit that comes back after measuring.
const SAVED: usize = 6;

#[derive(Debug)]
pub(super) struct Gradient {
    pub(super) start: u32,
    most: u32,
    pub(super) flight: Flight,
    round: Cells<7>,
}

impl Gradient {
    /// It begins by measuring.
    pub(super) const fn new(start: u32, most: u32) -> Gradient {
        Gradient { start, most, flight: Flight::new(LEAST), round: Cells::new() }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        self.flight.words(with);
        self.round.words(with);
    }

    #[inline]
    pub(super) fn acquire(&self) -> LimitAnswer {
        self.flight.acquire()
    }

    pub(super) fn release(&self, now: Timestamp, outcome: Outcome, latency: Duration) {
        if outcome.is_answered() || outcome.is_load() {
            let moved = self.round.with(|round| self.sample(round, now.as_nanos(), outcome, nanos(latency)));
            if let Some(Some(limit)) = moved {
                self.flight.move_limit(|_, _| u64::from(limit) * FINE);
            }
        }
        self.flight.release();
    }

    /// The new limit, if a round is over.
    fn sample(&self, round: &mut [u64; 7], now: u64, outcome: Outcome, latency: u64) -> Option<u32> {
        if outcome.is_answered() {
            round[SUM] = round[SUM].saturating_add(latency);
            round[ANSWERS] += 1;
        } else {
            round[FAILURES] += 1;
        }
        let answers = round[ANSWERS];
        let mean = round[SUM] as f64 / answers.max(1) as f64;
        let limit = (self.flight.limit() / FINE) as u32;
        if round[MEASURE_AT] == 0 {
            if answers < MEASURED_BY {
                return None;
            }
            round[MIN_RTT] = (mean as u64).max(1);
            round[MEASURE_AT] = now.saturating_add(MEASURE_AGAIN);
            begin(round, now);
            return Some(if round[SAVED] == 0 { self.start } else { round[SAVED] as u32 });
        }
        if now < round[ROUND_END] {
            return None;
        }
        let failed = round[FAILURES] as f64 / (round[FAILURES] + answers) as f64;
        let (by_latency, _) =
            if answers == 0 { (1.0, 0) } else { gradient(limit, round[MIN_RTT] as f64, mean, BUFFER) };
        let next = apply(limit, (by_latency * (1.0 - failed)).max(0.5)).clamp(LEAST, self.most);
        begin(round, now);
        if now >= round[MEASURE_AT] {
            (round[SAVED], round[MEASURE_AT]) = (u64::from(next), 0);
            return Some(LEAST);
        }
        Some(next)
    }

    /// The latency without load in nanoseconds, 0 before it has been measured.
    pub(super) fn min_rtt(&self) -> Duration {
        Duration::from_nanos(self.round.with(|round| round[MIN_RTT]).unwrap_or(0))
    }

    pub(super) fn adopt(&self, old: &Gradient) {
        self.flight.adopt(&old.flight, LEAST, self.most);
        if let Some(mut theirs) = old.round.with(|round| *round) {
            theirs[SAVED] = theirs[SAVED].min(u64::from(self.most));
            self.round.with(|round| *round = theirs);
        }
    }

    pub(super) fn reset(&self) {
        self.flight.reset(LEAST);
        self.round.with(|round| *round = [0; 7]);
    }
}

const fn begin(round: &mut [u64; 7], now: u64) {
    round[ROUND_END] = now.saturating_add(ROUND);
    (round[SUM], round[ANSWERS], round[FAILURES]) = (0, 0, 0);
}
