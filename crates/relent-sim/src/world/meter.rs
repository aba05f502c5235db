//! What is measured while clients call a server.

use crate::{
    outcome::{
        Figures, Ideal, LoadBin, Plots,
        histogram::Waits,
        run::{Health, Run},
        time_bins::{MILLISECOND, Peaks, TimeBins},
    },
    scenario::{Contender, Figure, Service},
};
use relent::{Reason, Verdict};
use std::collections::BTreeMap;

/// Attempts beyond this many share the last entry of the histogram.
const ATTEMPTS_SHOWN: usize = 1024;
/// Clients of the arrival raster.
const SAMPLED: u64 = 200;
/// Arrivals of one sampled client that are kept.
const SAMPLED_ARRIVALS: usize = 256;
/// The bins in which the health of open arrivals is judged.
pub(crate) const HEALTH_NS: u64 = 100_000_000;

const FIRST: usize = 0;
const RETRY: usize = 1;
const REJECTED: usize = 2;
const CONNECTED: usize = 0;
const GAVE_UP: usize = 1;

/// What the measurements are compared with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Judge {
    /// What the far side completes in a second at best.
    pub(crate) capacity: Option<f64>,
    /// Whether there are workers that can be busy, and how many.
    pub(crate) works: bool,
    pub(crate) workers: u32,
    pub(crate) trouble_ends: Option<u64>,
    /// The drain time of clients who know everything, in seconds.
    pub(crate) ideal_s: Option<f64>,
    /// How long the fate of an attempt may be open.
    pub(crate) timeout: u64,
    /// Whether there are machines that refuse.
    pub(crate) protected: bool,
}

impl Judge {
    pub(crate) fn new(service: &Service, contender: &Contender) -> Judge {
        Judge {
            capacity: service.capacity(),
            works: service.server.capacity.is_some(),
            workers: service.server.workers,
            trouble_ends: service.trouble_ends(),
            ideal_s: Ideal::of(service).and_then(|ideal| ideal.figure(Figure::DrainS)),
            timeout: service.timeout.map_or(1_000_000_000, crate::time::nanos),
            protected: contender.protection.is_any(),
        }
    }
}

/// All counters of one run.
pub(crate) struct Meter {
    pub(crate) attempts: u64,
    pub(crate) connected: u64,
    pub(crate) gave_up: BTreeMap<&'static str, u64>,
    pub(crate) in_flight: u64,
    moment: Moment,
    peaks: Peaks,
    arrivals: TimeBins<3>,
    served: TimeBins<1>,
    fates: TimeBins<2>,
    waits: Waits,
    by_attempts: Vec<u64>,
    most_attempts: u32,
    last_connected: u64,
    last_event: u64,
    raster: Vec<Vec<f64>>,
    raster_step: u64,
    health: Vec<Health>,
    open: bool,
    /// Refusals by reason, where there are machines that refuse.
    refused: [u64; REFUSALS.len()],
    /// When the last client of a herd that others join was connected, or the last of those others who had to wait.
    drained: u64,
}

/// Why attempts were refused, at the client or at the server.
const REFUSALS: [(Figure, &str); 6] = [
    (Figure::RefusedBudget, "budget"),
    (Figure::RefusedOpen, "open"),
    (Figure::RefusedShed, "shed"),
    (Figure::RefusedOverloaded, "overloaded"),
    (Figure::RefusedTurn, "turn"),
    (Figure::PutOff, "open, and waited for"),
];

/// What arrived in the millisecond under way, which all wider counters get when it is over.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    ends: u64,
    /// First attempts, and retries.
    arrived: [u64; 2],
    rejected: u64,
}

impl Meter {
    pub(crate) fn new(clients: u64, open: bool) -> Meter {
        Meter {
            attempts: 0,
            connected: 0,
            gave_up: BTreeMap::new(),
            in_flight: 0,
            moment: Moment::default(),
            peaks: Peaks::new(),
            arrivals: TimeBins::new(),
            served: TimeBins::new(),
            fates: TimeBins::new(),
            waits: Waits::new(),
            by_attempts: Vec::new(),
            most_attempts: 0,
            last_connected: 0,
            last_event: 0,
            raster: Vec::new(),
            raster_step: clients.div_ceil(SAMPLED).next_power_of_two(),
            health: Vec::new(),
            open,
            refused: [0; REFUSALS.len()],
            drained: 0,
        }
    }

    /// An attempt reached the server.
    #[inline(always)]
    pub(crate) fn arrived(&mut self, now: u64, client: u32, failures: u32) {
        if now >= self.moment.ends {
            self.turn(now);
        }
        self.attempts += 1;
        self.last_event = now;
        self.moment.arrived[usize::from(failures != 0)] += 1;
        if u64::from(client) & (self.raster_step - 1) == 0 {
            self.sample(now, client);
        }
    }

    /// An attempt of which only the number matters.
    pub(crate) const fn attempted(&mut self) {
        self.attempts += 1;
    }

    #[cold]
    fn sample(&mut self, now: u64, client: u32) {
        let row = (u64::from(client) / self.raster_step) as usize;
        if self.raster.len() <= row {
            self.raster.resize_with(row + 1, Vec::new);
        }
        if self.raster[row].len() < SAMPLED_ARRIVALS {
            self.raster[row].push(seconds(now));
        }
    }

    /// The millisecond is over.
    #[inline(never)]
    fn turn(&mut self, now: u64) {
        let Moment { ends, arrived: [first, retries], rejected } = self.moment;
        let began = ends.saturating_sub(MILLISECOND);
        self.peaks.add_many(began, first + retries);
        for (kind, count) in [(FIRST, first), (RETRY, retries), (REJECTED, rejected)] {
            self.arrivals.add_many(began, kind, count);
        }
        let ends = (now / MILLISECOND + 1).saturating_mul(MILLISECOND);
        self.moment = Moment { ends, ..Moment::default() };
    }

    /// The server turned an attempt away, or will have failed it.
    #[inline]
    pub(crate) fn rejected(&mut self, now: u64) {
        if now < self.moment.ends {
            self.moment.rejected += 1;
        } else {
            self.arrivals.add(now, REJECTED);
        }
    }

    /// The server completed an attempt, whether or not its client still waits.
    #[inline]
    pub(crate) fn served(&mut self, done: u64) {
        self.served.add(done, 0);
    }

    /// A client got its answer.
    #[inline]
    pub(crate) fn connected(&mut self, now: u64, started: u64, attempts: u32) {
        self.connected += 1;
        self.last_connected = self.last_connected.max(now);
        self.fates.add(now, CONNECTED);
        self.waits.add(now - started.min(now));
        if self.open {
            self.health_at(started).ended_well += 1;
        }
        self.ended(attempts);
    }

    /// A client of a herd that others join was connected, or one of those others who had to wait.
    pub(crate) fn drained(&mut self, now: u64) {
        self.drained = self.drained.max(now);
    }

    /// The server refused an attempt, and told its client this.
    pub(crate) fn refused_by_server(&mut self, told: Verdict) {
        match told {
            Verdict::Turn(_) => self.refused[4] += 1,
            Verdict::Overloaded => self.refused[3] += 1,
            _ => self.refused[2] += 1,
        }
    }

    /// A client's own upstream refused an attempt.
    pub(crate) fn refused_by_client(&mut self, reason: Reason) {
        match reason {
            Reason::Budget => self.refused[0] += 1,
            Reason::Open => self.refused[1] += 1,
            _ => self.refused[2] += 1,
        }
    }

    /// A client's own breaker refused so many attempts, whose clients wait and ask again.
    #[inline(always)]
    pub(crate) fn put_off(&mut self, times: u64) {
        self.refused[5] += times;
    }

    pub(crate) fn gave_up(&mut self, now: u64, reason: Reason, attempts: u32) {
        *self.gave_up.entry(reason.as_str()).or_default() += 1;
        self.fates.add(now, GAVE_UP);
        self.last_event = self.last_event.max(now);
        self.ended(attempts);
    }

    /// How an attempt of an open call ended, by the time it was sent.
    #[inline]
    pub(crate) fn judged(&mut self, sent: u64, first: bool, succeeded: bool) {
        if !self.open {
            return;
        }
        let health = self.health_at(sent);
        health.sent += 1;
        health.first += u64::from(first);
        health.succeeded += u64::from(succeeded);
    }

    /// Calls of a stream began, at these times.
    pub(crate) fn began(&mut self, starts: impl Iterator<Item = u64>) {
        if self.open {
            starts.for_each(|start| self.health_at(start).began += 1);
        }
    }

    #[inline]
    fn health_at(&mut self, time: u64) -> &mut Health {
        let bin = (time / HEALTH_NS) as usize;
        if self.health.len() <= bin {
            self.health.resize(bin + 1, Health::default());
        }
        &mut self.health[bin]
    }

    #[inline]
    fn ended(&mut self, attempts: u32) {
        self.most_attempts = self.most_attempts.max(attempts);
        let place = (attempts as usize).min(ATTEMPTS_SHOWN);
        if self.by_attempts.len() <= place {
            self.by_attempts.resize(place + 1, 0);
        }
        self.by_attempts[place] += 1;
    }

    pub(crate) fn gave_up_total(&self) -> u64 {
        self.gave_up.values().sum()
    }

    /// The figures and series of the run.
    pub(crate) fn finish(
        mut self,
        judge: &Judge,
        clients: u64,
        busy_ns: u64,
        until: Option<u64>,
        stopped: Option<String>,
    ) -> Run {
        self.turn(self.last_event);
        let figures = self.figures(judge, clients, busy_ns, until);
        let (figures, recovered) = if self.open {
            self.open_figures(judge, figures, until.unwrap_or(self.last_event), clients)
        } else {
            let all = self.connected == clients && stopped.is_none();
            let mut figures = self.herd_figures(judge, figures, clients);
            if stopped.is_some() {
                // It has not drained.
                figures = figures.without(Figure::DrainS).without(Figure::DrainOverIdeal).without(Figure::RecoveryS);
            }
            (figures, Some(all))
        };
        let plots = self.plots(until);
        Run {
            clients,
            figures,
            recovered,
            stopped,
            plots,
            gave_up: self.gave_up,
            health: self.health,
            notes: Vec::new(),
            populations: Vec::new(),
        }
    }

    fn figures(&self, judge: &Judge, clients: u64, busy_ns: u64, until: Option<u64>) -> Figures {
        let peaks = self.peaks.clone().most();
        let per_client = |count: u64| count as f64 / clients as f64;
        let [p50, p90, p99] = self.waits.percentiles([0.5, 0.9, 0.99]).map(|wait| wait.map(seconds));
        let per_peak = judge.capacity.map(|capacity| peaks[1] as f64 / (capacity * 0.1));
        let end = until.unwrap_or(self.last_connected.max(1));
        let (served, first) = (self.served.total(0), self.arrivals.total(FIRST));
        let mut figures = Figures::NONE;
        for ((figure, _), count) in REFUSALS.iter().zip(self.refused).filter(|_| judge.protected) {
            figures = figures.with(*figure, per_client(count));
        }
        let max = self.waits.max().map(seconds);
        figures
            .with_some(Figure::Amplification, (first > 0).then(|| self.attempts as f64 / first as f64))
            .with(Figure::WastedWork, 1.0 - self.connected.min(served) as f64 / served as f64)
            .with_some(Figure::Fairness, max.zip(p50).filter(|(_, p50)| *p50 > 0.0).map(|(max, p50)| max / p50))
            .with(Figure::AttemptsPerClient, per_client(self.attempts))
            .with(Figure::WastedPerClient, per_client(self.attempts - self.connected.min(self.attempts)))
            .with_some(Figure::P50S, p50)
            .with_some(Figure::P90S, p90)
            .with_some(Figure::P99S, p99)
            .with_some(Figure::MaxS, max)
            .with(Figure::Peak1Ms, peaks[0] as f64)
            .with(Figure::Peak100Ms, peaks[1] as f64)
            .with(Figure::Peak1S, peaks[2] as f64)
            .with_some(Figure::PeakOverCapacity, per_peak)
            .with_some(
                Figure::Utilisation,
                judge.works.then(|| (busy_ns as f64 / f64::from(judge.workers) / end as f64).min(1.0)),
            )
            .with(Figure::GaveUp, self.gave_up_total() as f64)
            .with(Figure::SuccessShare, per_client(self.connected))
            .with(Figure::GaveUpShare, per_client(self.gave_up_total()))
            .with(Figure::StillTrying, per_client(self.still_trying(clients)))
            .with(Figure::MaxAttempts, f64::from(self.most_attempts))
    }

    /// Calls that have neither succeeded nor been given up.
    fn still_trying(&self, clients: u64) -> u64 {
        clients.saturating_sub(self.connected + self.gave_up_total())
    }

    fn herd_figures(&self, judge: &Judge, figures: Figures, clients: u64) -> Figures {
        if self.connected == 0 {
            return figures;
        }
        let drain = seconds(if self.drained > 0 { self.drained } else { self.last_connected });
        let attempts_per_success = self.attempts as f64 / self.connected as f64;
        let outage = judge.trouble_ends.map(seconds);
        figures
            .with(Figure::DrainS, drain)
            .with_some(Figure::DrainOverIdeal, judge.ideal_s.map(|ideal| drain / ideal))
            .with_some(Figure::RecoveryS, outage.map(|end| (drain - end).max(0.0)))
            .with(Figure::Goodput, self.connected as f64 / seconds(self.last_connected))
            .with(Figure::GoodputShare, self.connected as f64 / clients as f64)
            .with(Figure::Load, self.attempts as f64 / clients as f64)
            .with(Figure::LoadOverGoodput, attempts_per_success)
    }

    /// Open arrivals are judged by the calls that began in their last stretch, and as recovered if those succeed and
    /// not many of all calls are still tried.
    fn open_figures(&self, judge: &Judge, figures: Figures, until: u64, clients: u64) -> (Figures, Option<bool>) {
        let trouble = judge.trouble_ends.filter(|end| *end < until);
        let from = trouble.unwrap_or(0);
        let stretch = ((until - from) / 10).clamp(5_000_000_000, 30_000_000_000).min(until - from);
        // Attempts sent within the longest wait of the end have no fate yet.
        let unknown = judge.timeout.min((until - from) / 4);
        let end = until - unknown;
        let last = self.sum(end.saturating_sub(stretch), end);
        let seconds_judged = seconds(end - (end.saturating_sub(stretch) / HEALTH_NS * HEALTH_NS));
        let figures = figures
            .with(Figure::Goodput, last.succeeded as f64 / seconds_judged)
            .with(Figure::GoodputShare, last.ended_well as f64 / last.began as f64)
            .with(Figure::Load, last.sent as f64 / last.first as f64)
            .with(Figure::LoadOverGoodput, last.sent as f64 / last.succeeded as f64);
        let healthy = last.is_healthy() && self.still_trying(clients) * 10 < clients;
        let recovery = match healthy {
            true => trouble.and_then(|end| self.recovery(end)).map(seconds),
            false => None,
        };
        (figures.with_some(Figure::RecoveryS, recovery), Some(healthy))
    }

    fn sum(&self, from: u64, to: u64) -> Health {
        let bins = (from / HEALTH_NS) as usize..(to / HEALTH_NS) as usize;
        let bins = &self.health[bins.start.min(self.health.len())..bins.end.min(self.health.len())];
        bins.iter().fold(Health::default(), |sum, bin| Health {
            first: sum.first + bin.first,
            sent: sum.sent + bin.sent,
            succeeded: sum.succeeded + bin.succeeded,
            began: sum.began + bin.began,
            ended_well: sum.ended_well + bin.ended_well,
        })
    }

    /// How long after the end of the trouble calls began to succeed and went on to for five seconds.
    fn recovery(&self, trouble_ends: u64) -> Option<u64> {
        const LASTING: u64 = 5_000_000_000;
        let first = trouble_ends.div_ceil(HEALTH_NS);
        // Where no more calls begin, nobody knows.
        if self.sum(first * HEALTH_NS, u64::MAX).began == 0 {
            return None;
        }
        let bin = (first..self.health.len() as u64).find(|bin| {
            let from = bin * HEALTH_NS;
            let (now, lasting) = (self.sum(from, from + HEALTH_NS), self.sum(from, from + LASTING));
            [now, lasting].iter().all(|health| health.is_healthy() && health.is_prompt())
        })?;
        Some(bin * HEALTH_NS - trouble_ends.min(bin * HEALTH_NS))
    }

    fn plots(&mut self, until: Option<u64>) -> Plots {
        let width = self.arrivals.width().max(self.served.width()).max(self.fates.width());
        self.arrivals.widen_to(width);
        self.served.widen_to(width);
        self.fates.widen_to(width);
        // Work that was taken in before the end of open arrivals may be done long after it.
        let most = until.map_or(usize::MAX, |until| until.div_ceil(width) as usize);
        let bins = self.arrivals.len().max(self.served.len()).max(self.fates.len()).min(most);
        let load = (0..bins).map(|bin| {
            let [first, retries, rejected] = self.arrivals.bin(bin).map(|n| n as f64);
            let [served] = self.served.bin(bin).map(|n| n as f64);
            let [connected, gave_up] = self.fates.bin(bin).map(|n| n as f64);
            LoadBin { first, retries, rejected, served, connected, gave_up }
        });
        Plots {
            bin_s: seconds(width),
            load: load.collect(),
            waits: self.waits.curve(),
            attempts: std::mem::take(&mut self.by_attempts),
            raster: std::mem::take(&mut self.raster),
        }
    }
}

impl Health {
    /// For ten calls that come, nine attempts succeed: they need not be tried until the storm is over.
    const fn is_prompt(&self) -> bool {
        self.succeeded * 10 >= self.first * 9
    }

    /// Of ten calls that began, nine succeeded. Without calls there is nothing to complain about.
    const fn is_healthy(&self) -> bool {
        self.ended_well * 10 >= self.began * 9
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
