//! What the bulk engines measure.

use crate::{
    outcome::{
        Figures, LoadBin, Plots,
        run::Run,
        time_bins::{Peaks, TimeBins},
    },
    scenario::Figure,
};
use std::collections::BTreeMap;

const FIRST: usize = 0;
const RETRY: usize = 1;
const REJECTED: usize = 2;

/// Counters of one run.
pub(crate) struct Tally {
    pub(crate) attempts: f64,
    pub(crate) connected: f64,
    pub(crate) gave_up: f64,
    pub(crate) last_connected: f64,
    pub(crate) by_attempts: Vec<f64>,
    peaks: Peaks,
    arrivals: TimeBins<3>,
    gone: TimeBins<1>,
    /// Clients that got their answer, finely: percentiles come from here.
    answers: TimeBins<1>,
    /// Fractions of clients that a lane still owes.
    owed: [f64; 5],
}

impl Tally {
    pub(crate) fn new() -> Tally {
        Tally {
            attempts: 0.0,
            connected: 0.0,
            gave_up: 0.0,
            last_connected: 0.0,
            by_attempts: Vec::new(),
            peaks: Peaks::new(),
            arrivals: TimeBins::new(),
            gone: TimeBins::new(),
            answers: TimeBins::with_bins(1 << 16),
            owed: [0.0; 5],
        }
    }

    fn whole(&mut self, lane: usize, amount: f64) -> u64 {
        let sum = self.owed[lane] + amount;
        let whole = sum.max(0.0).floor();
        self.owed[lane] = sum - whole;
        whole as u64
    }

    pub(crate) fn arrived(&mut self, now: u64, first: f64, retries: f64, rejected: f64) {
        self.attempts += first + retries;
        let (first, retries) = (self.whole(FIRST, first), self.whole(RETRY, retries));
        self.peaks.add_many(now, first + retries);
        self.arrivals.add_many(now, FIRST, first);
        self.arrivals.add_many(now, RETRY, retries);
        let rejected = self.whole(REJECTED, rejected);
        self.arrivals.add_many(now, REJECTED, rejected);
    }

    pub(crate) fn gave_up(&mut self, now: u64, clients: f64, attempts: usize) {
        self.gave_up += clients;
        let whole = self.whole(3, clients);
        self.gone.add_many(now, 0, whole);
        self.ended(clients, attempts);
    }

    /// Clients let in with so many attempts; their answers come later.
    pub(crate) fn ended(&mut self, clients: f64, attempts: usize) {
        if self.by_attempts.len() <= attempts {
            self.by_attempts.resize(attempts + 1, 0.0);
        }
        self.by_attempts[attempts] += clients;
    }

    /// So many clients get their answers one after the other, from `begins` on, `period` nanoseconds apart.
    pub(crate) fn answered(&mut self, begins: f64, period: f64, clients: f64) {
        self.connected += clients;
        self.last_connected = begins + period * clients;
        let mut done = 0.0;
        while done < clients {
            // As many as fall into one bin of the lane.
            let width = self.answers.width() as f64;
            let at = begins + period * (done + 1.0).min(clients);
            let bin_ends = ((at / width).floor() + 1.0) * width;
            let in_bin = ((bin_ends - begins) / period).floor().clamp(done + 1.0, clients.max(done + 1.0)).min(clients);
            let count = self.whole(4, in_bin - done);
            self.answers.add_many(at as u64, 0, count);
            done = in_bin;
        }
    }

    fn wait(&self, share: f64) -> Option<f64> {
        let all: u64 = (0..self.answers.len()).map(|bin| self.answers.bin(bin)[0]).sum();
        let rank = ((share * all as f64).ceil() as u64).clamp(1, all.max(1));
        let width = self.answers.width() as f64;
        let mut seen = 0;
        for bin in 0..self.answers.len() {
            let [count] = self.answers.bin(bin);
            if count > 0 && seen + count >= rank {
                let within = (rank - seen) as f64 / count as f64;
                return Some(((bin as f64 + within) * width).min(self.last_connected) / 1e9);
            }
            seen += count;
        }
        None
    }

    pub(crate) fn finish(
        mut self,
        clients: u64,
        capacity: f64,
        ideal_s: Option<f64>,
        begins_ns: u64,
        endless: bool,
        stopped: Option<String>,
    ) -> Run {
        let peaks = self.peaks.clone().most();
        let n = clients as f64;
        let drain = self.last_connected / 1e9;
        let recovered = stopped.is_none() && self.gave_up < 0.5;
        let mut figures = Figures::NONE
            .with(Figure::AttemptsPerClient, self.attempts / n)
            .with(Figure::WastedPerClient, (self.attempts - self.connected) / n)
            .with(Figure::Peak1Ms, peaks[0] as f64)
            .with(Figure::Peak100Ms, peaks[1] as f64)
            .with(Figure::Peak1S, peaks[2] as f64)
            .with(Figure::PeakOverCapacity, peaks[1] as f64 / (capacity * 0.1))
            .with(Figure::GaveUp, self.gave_up)
            .with(Figure::SuccessShare, self.connected / n)
            .with(Figure::GaveUpShare, self.gave_up / n)
            .with(Figure::StillTrying, ((n - self.connected - self.gave_up) / n).max(0.0));
        if self.connected > 0.0 {
            figures = figures
                .with(Figure::DrainS, drain)
                .with_some(Figure::DrainOverIdeal, ideal_s.map(|ideal| drain / ideal))
                .with_some(Figure::P50S, self.wait(0.5))
                .with_some(Figure::P90S, self.wait(0.9))
                .with_some(Figure::P99S, self.wait(0.99))
                .with(Figure::MaxS, drain)
                .with(Figure::Utilisation, (self.connected / capacity / drain).min(1.0))
                .with(Figure::Goodput, self.connected / drain)
                .with(Figure::GoodputShare, self.connected / n)
                .with(Figure::Load, self.attempts / n)
                .with(Figure::LoadOverGoodput, self.attempts / self.connected);
        }
        if begins_ns > 0 {
            figures = figures.with(Figure::RecoveryS, (drain - begins_ns as f64 / 1e9).max(0.0));
        }
        if stopped.is_some() {
            // It has not drained.
            figures = figures.without(Figure::DrainS).without(Figure::DrainOverIdeal).without(Figure::RecoveryS);
        }
        if !endless {
            figures = figures.with(Figure::MaxAttempts, self.by_attempts.len().saturating_sub(1) as f64);
        }
        let mut gave_up = BTreeMap::new();
        if self.gave_up >= 0.5 {
            gave_up.insert("attempts", self.gave_up.round() as u64);
        }
        let plots = self.plots();
        Run {
            clients,
            figures,
            recovered: Some(recovered),
            stopped,
            plots,
            gave_up,
            health: Vec::new(),
            notes: Vec::new(),
            populations: Vec::new(),
        }
    }

    fn plots(&mut self) -> Plots {
        let waits = (0..=100).map(|percent| f64::from(percent) / 100.0);
        let waits = waits.filter_map(|share| Some((share, self.wait(share)?))).collect();
        let mut answers = TimeBins::<1>::new();
        for bin in 0..self.answers.len() {
            answers.add_many(bin as u64 * self.answers.width(), 0, self.answers.bin(bin)[0]);
        }
        let width = self.arrivals.width().max(answers.width()).max(self.gone.width());
        self.arrivals.widen_to(width);
        self.gone.widen_to(width);
        answers.widen_to(width);
        let bins = self.arrivals.len().max(answers.len()).max(self.gone.len());
        let load = (0..bins).map(|bin| {
            let [first, retries, rejected] = self.arrivals.bin(bin).map(|n| n as f64);
            let [connected] = answers.bin(bin).map(|n| n as f64);
            let [gave_up] = self.gone.bin(bin).map(|n| n as f64);
            // The way back is shorter than a bin of a plot: served and connected are one here.
            LoadBin { first, retries, rejected, served: connected, connected, gave_up }
        });
        Plots {
            bin_s: width as f64 / 1e9,
            load: load.collect(),
            waits,
            attempts: self.by_attempts.iter().map(|clients| clients.round() as u64).collect(),
            raster: Vec::new(),
        }
    }
}
