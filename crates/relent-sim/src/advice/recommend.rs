//! A policy for a herd whose size and server are known, and the proof that it works: its simulation.
//!
//! Any backoff has to find out how crowded it is, and pays for it with attempts: its windows must grow to clients /
//! capacity first. Who knows that time need not: spread over it (and a little more) from the start, the clients come as
//! fast as the server can take them, and hardly one is refused. What remains to be said is what the few do that are:
//!
//! - *Steady*: all of them wait the very time over which they were spread. An outage refuses some part of the herd, and
//!   one period later the same part comes again, in the same order and at the same rate, into the gap it left: however
//!   long the outage was, the server is never asked for more than it can do. To spread the first attempts over the outage,
//!   too, would be worse: those refused would then come back among those still to come.
//! - *Growing*: backoff from a small part of that time, for queues so short that some are refused even so, and for
//!   servers that fail now and then; who is refused at the end need not wait for a whole period.
//!
//! Both are tried in the scenario's own world, and the better one is recommended.
//!
//! The room a queue needs: clients that come evenly over a time in which the server can do `1 + m` times as much leave a
//! backlog whose 99th percentile is about `ln(200 N m^2) / 2m`, and never more than about `2 sqrt(N)`, which is what it
//! takes without any margin (the maximum of a reflected Brownian motion with drift and of a bridge; checked by simulation).

use super::{SAME, safe_load, score};
use crate::{
    engine::control::Control,
    outcome::{Outcome, Recommended, Record, Shape},
    scenario::{Arrivals, Contender, Figure, Scenario, Service},
    simulate::simulate_with,
};
use relent::{Jitter, Policy, Settings};
use std::{cell::Cell, time::Duration};

/// How much longer than clients / capacity the first attempts may be spread. The least is there because nobody knows
/// a capacity to the percent.
const MARGINS: [f64; 5] = [0.05, 0.1, 0.2, 0.5, 1.0];
/// Caps of growing delays in units of the period: at the longer one a whole herd that waits asks for no more than the
/// server can do; the shorter one keeps the last few from waiting long.
const LONG: f64 = 2.0;
const SHORT: f64 = 0.25;
/// A steady period is spread by this, so that nothing can keep clients in step for long.
const UNSTEADY: f64 = 0.02;
/// Spreads are kept in milliseconds of 32 bits.
const LONGEST: Duration = Duration::from_millis(u32::MAX as u64 / 2);
/// Runs with different luck by which candidates are told apart.
const TRIED: u32 = 2;

/// The name of the record.
const NAME: &str = "recommended";

/// What the herd should do, if that can be said.
pub(super) fn recommend(
    scenario: &Scenario,
    service: &Service,
    records: &[Record],
    threads: usize,
    control: &Control,
) -> Option<Recommended> {
    let Arrivals::Herd { clients, window } = service.arrivals else { return None };
    if service.layers > 1 {
        return None;
    }
    let plan = Plan::new(service, &scenario.contenders, clients as f64, window)?;
    let endless = Cell::new(0);
    let try_it = |policy: Policy, seeds: u32| {
        let contenders = vec![Contender::new(NAME, policy)];
        let scenario = Scenario { contenders, seeds, asserts: Vec::new(), ..scenario.clone() };
        let outcome = simulate_with(&scenario, threads, control).ok()?;
        endless.set(endless.get() + u32::from(outcome.records.iter().any(|record| record.stopped.is_some())));
        proof(outcome)
    };
    let tried = scenario.seeds.min(TRIED);
    let mut best: Option<(f64, Candidate, Record)> = None;
    for candidate in plan.candidates() {
        let Some(record) = try_it(candidate.policy, tried) else {
            // Where two of them do not come to an end, none will: answers come too late, or never.
            if endless.get() > 1 && best.is_none() {
                return None;
            }
            continue;
        };
        let score = score(&record)?;
        // One attempt each, and no longer than they are spread: there is nothing better to be found.
        let perfect = score < 2.0 + candidate.margin.min(MARGINS[1]) + SAME;
        if best.as_ref().is_none_or(|(least, ..)| score < least - SAME) {
            best = Some((score, candidate, record));
        }
        if perfect {
            break;
        }
    }
    let (_, chosen, record) = best?;
    let record = if tried == scenario.seeds { record } else { try_it(chosen.policy, scenario.seeds)? };
    Some(Recommended {
        policy: chosen.policy,
        shape: chosen.shape,
        ideal_s: plan.ideal_s,
        margin: chosen.margin,
        queue_room: (2.0 * (clients as f64).sqrt()).ceil() as u64,
        queue_too_short: plan.margin.is_none_or(|margin| margin > chosen.margin),
        as_good: as_good(records, &record),
        record,
    })
}

/// The record of a whole run in which everybody got through.
fn proof(mut outcome: Outcome) -> Option<Record> {
    let record = outcome.records.pop()?;
    let all = record.recovered.is_some_and(|runs| runs.yes == runs.of);
    (all && !outcome.interrupted && record.stopped.is_none()).then_some(record)
}

/// The first policy that does as well in attempts, time and peak; or the best, if it does better by more than the margin.
fn as_good(records: &[Record], recommended: &Record) -> Option<String> {
    let well = |record: &&Record| {
        let bounds = [(Figure::AttemptsPerClient, 1.01), (Figure::DrainOverIdeal, 1.01), (Figure::Peak100Ms, 1.5)];
        bounds.into_iter().all(|(figure, times)| match (record.get(figure), recommended.get(figure)) {
            (Some(value), Some(bound)) => value <= bound * times,
            _ => false,
        })
    };
    let sound = |record: &&Record| record.stopped.is_none() && record.get(Figure::GaveUp) == Some(0.0);
    let least = score(recommended)? - 2.0 * MARGINS[0];
    let best = records.iter().filter(sound).filter(|record| score(record).is_some_and(|score| score < least));
    let best = best.min_by(|a, b| score(a).unwrap_or(f64::MAX).total_cmp(&score(b).unwrap_or(f64::MAX)));
    records.iter().filter(sound).find(well).or(best).map(|record| record.policy.clone())
}

/// What follows from the world.
struct Plan {
    ideal_s: f64,
    /// The least margin for which the queue has room.
    margin: Option<f64>,
    /// The clients are cut off over a time that is long enough to be no herd.
    is_spread: bool,
    attempt_timeout: Option<Duration>,
}

#[derive(Clone, Copy)]
struct Candidate {
    policy: Policy,
    shape: Shape,
    margin: f64,
}

impl Plan {
    fn new(service: &Service, contenders: &[Contender], clients: f64, window: Duration) -> Option<Plan> {
        let capacity = service.capacity()? * (1.0 - service.server.failure);
        let ideal_s = clients / capacity;
        let mut timeouts = contenders.iter().map(|contender| contender.policy.settings().attempt_timeout);
        let first = timeouts.next()?;
        let attempt_timeout = first.filter(|_| timeouts.all(|other| other == first));
        let limited = Policy::default().settings();
        let limited = Settings { attempt_timeout, ..limited }.policy().ok()?;
        let patience = safe_load::timeout(service, &limited)
            .map_or(f64::INFINITY, |timeout| safe_load::patience(service, timeout) * capacity);
        let queue = service.server.queue.map_or(f64::INFINITY, |queue| queue as f64);
        let burst = service.server.rate_limit.map_or(f64::INFINITY, |limit| limit.burst as f64);
        let variance = if service.server.exponential { 2.0 } else { 1.0 };
        let has = queue.min(burst).min(patience);
        let margin = MARGINS.into_iter().find(|margin| room(clients, *margin, variance) <= has);
        let is_spread = window.as_secs_f64() >= ideal_s * (1.0 + margin.unwrap_or(MARGINS[0]));
        Some(Plan { ideal_s, margin, is_spread, attempt_timeout })
    }

    /// The policies that are tried; of those that do as well as each other, the first is best.
    fn candidates(&self) -> Vec<Candidate> {
        let margins = self.margin.map_or_else(|| vec![MARGINS[0], MARGINS[1], MARGINS[3]], |margin| vec![margin]);
        let steady = |margin| [Jitter::Proportional(UNSTEADY), Jitter::None].map(|jitter| self.steady(margin, jitter));
        let mut candidates = Vec::new();
        for margin in &margins {
            candidates.extend(steady(*margin).into_iter().chain([self.growing(*margin, LONG)]));
        }
        // Where the queue wants a long time or cannot have enough, a shorter one with some refusals may be better; they
        // are soon ridden out.
        if self.margin.is_none_or(|margin| margin > MARGINS[1]) {
            let growing = |margin| [LONG, SHORT].map(|cap| self.growing(margin, cap));
            candidates.extend([MARGINS[0], MARGINS[1], MARGINS[3]].into_iter().flat_map(growing));
        }
        candidates.into_iter().flatten().collect()
    }

    /// The time over which the first attempts are spread, as a number that can be read: three digits, rounded up.
    fn period(&self, margin: f64) -> Option<Duration> {
        let period = readable(self.ideal_s * (1.0 + margin));
        Duration::try_from_secs_f64(period).ok().filter(|period| (MS..LONGEST).contains(period))
    }

    fn steady(&self, margin: f64, jitter: Jitter) -> Option<Candidate> {
        let period = self.period(margin)?;
        let cap = match jitter {
            Jitter::Proportional(share) => {
                Duration::try_from_secs_f64(readable(period.as_secs_f64() * (1.0 + share))).ok()?
            }
            _ => period,
        };
        let spread = if self.is_spread { Duration::ZERO } else { period };
        let settings = Policy::constant(period).settings();
        let attempt_timeout = self.attempt_timeout;
        let settings = Settings { cap: Some(cap), jitter, max_attempts: None, attempt_timeout, spread, ..settings };
        Some(Candidate { policy: settings.policy().ok()?, shape: Shape::Steady, margin })
    }

    /// Backoff up to a cap in units of the period.
    fn growing(&self, margin: f64, cap: f64) -> Option<Candidate> {
        let period = self.period(margin)?;
        let base = Duration::try_from_secs_f64(readable(period.as_secs_f64() / 16.0)).ok()?.max(MS);
        let spread = if self.is_spread { Duration::ZERO } else { period };
        let settings = Policy::exponential(base).settings();
        let cap = Some(Duration::try_from_secs_f64(readable(period.as_secs_f64() * cap)).ok()?);
        let attempt_timeout = self.attempt_timeout;
        let settings = Settings { cap, max_attempts: None, attempt_timeout, spread, ..settings };
        Some(Candidate { policy: settings.policy().ok()?, shape: Shape::Growing, margin })
    }
}

const MS: Duration = Duration::from_millis(1);

/// A time of seconds with three digits, or in whole milliseconds, rounded up.
fn readable(seconds: f64) -> f64 {
    if seconds.is_nan() || seconds <= 0.0 {
        return 0.0;
    }
    let digit = 10f64.powf(seconds.log10().floor() - 2.0).max(1e-3);
    // A hair less, so that 21.000000000000004 is 21.
    ((seconds / digit - 1e-6).ceil() * digit * 1e3).round() / 1e3
}

/// The requests that hardly ever more than wait, if `clients` come evenly over a time that is longer than they need by
/// the margin. `variance` is one, and that of a service time in units of its mean squared.
fn room(clients: f64, margin: f64, variance: f64) -> f64 {
    let without = 2.0 * (clients * variance).sqrt();
    let crossings = 200.0 * clients * margin * margin / variance;
    if crossings <= 1.0 { without } else { without.min(variance * crossings.ln() / (2.0 * margin)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable_and_never_shorter() {
        let times = [21.000_000_000_000_004, 20.0 * 1.05, 1.312_5, 0.0131, 123_456.0, 0.000_01].map(readable);
        assert_eq!(times, [21.0, 21.0, 1.32, 0.014, 124_000.0, 0.001]);
        assert_eq!(readable(f64::NAN), 0.0);
    }

    /// Measured 99th percentiles of the backlog: at no margin 1.9 of the root; at 5 and 10 % 0.37 and 0.19 of it, at
    /// 100,000 clients.
    #[test]
    fn the_room_is_what_was_measured() {
        let root = 100_000f64.sqrt();
        assert_eq!(room(100_000.0, 0.0, 1.0), 2.0 * root);
        for (margin, measured) in [(0.05, 0.37), (0.1, 0.19)] {
            let ratio = room(100_000.0, margin, 1.0) / (measured * root);
            assert!((0.85..1.2).contains(&ratio), "{margin}: {ratio}");
        }
        assert!(room(100.0, 0.05, 1.0) <= 20.0);
    }
}
