//! What a pacer at the server would do for a herd, tried with its clients as they are.
//!
//! The pacer knows what the server can do, and nothing of the herd: who is refused is told a time of its own to come back.
//! It needs no change to the clients but that they heed what they are told, which is why it is said beside the policy that
//! they should have.

use crate::{
    engine::control::Control,
    outcome::{Paced, Record},
    scenario::{Arrivals, Contender, Engine, Figure, RetryAfter, Scenario, Service},
    simulate::simulate_with,
};
use relent::PacerSettings;
use std::time::Duration;

/// Clients that are followed one by one within a second or two: no counting knows who has which turn.
const MOST_FOLLOWED: u64 = 2_000_000;
/// The least horizon: that of a pacer of which nothing is said.
const LEAST: Duration = Duration::from_secs(60);
/// What is less than this share is clearly less.
const CLEARLY: f64 = 0.9;
/// The longest horizon: a month.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// What the herd does when the server tells turns; nothing where one does already, nobody is refused, or it does not help.
pub(super) fn paced(
    scenario: &Scenario,
    service: &Service,
    records: &[Record],
    threads: usize,
    control: &Control,
) -> Option<Paced> {
    let Arrivals::Herd { clients, .. } = service.arrivals else { return None };
    let counted = matches!(scenario.engine, Some(Engine::Count | Engine::Fluid));
    let has_gate = scenario.contenders.iter().any(|contender| contender.protection.has_gate());
    if clients > MOST_FOLLOWED || counted || has_gate || !refuses(service) {
        return None;
    }
    let pacer = service.pacer()?;
    let untold = |contender: &&Contender| {
        contender.retry_after.unwrap_or(service.server.retry_after) == RetryAfter::Silent
            && !contender.protection.is_any()
    };
    // Who does best alone has least to gain: what the pacer buys is not the fault of a bad policy.
    let alone = scenario.contenders.iter().zip(records).filter(|(contender, _)| untold(contender));
    let weight = |record: &Record| if is_done(record) { super::score(record) } else { None }.unwrap_or(f64::INFINITY);
    let (before, alone) = alone.min_by(|a, b| weight(a.1).total_cmp(&weight(b.1)))?;
    let contender = before.clone().told_turns(pacer);
    let name = contender.name.clone();
    if scenario.contenders.iter().any(|other| other.name == name) {
        return None;
    }
    let max_pushback = contender.policy.settings().max_pushback;
    let raised = (max_pushback != before.policy.settings().max_pushback).then_some(pacer.horizon);
    let trial = Scenario { contenders: vec![contender], asserts: Vec::new(), ..scenario.clone() };
    let mut outcome = simulate_with(&trial, threads, control).ok()?;
    let record = outcome.records.pop().filter(|record| is_done(record) && !outcome.interrupted)?;
    helps(alone, &record).then(|| Paced { pacer, policy: before.name.clone(), max_pushback: raised, record })
}

/// Whether the run came to its end.
fn is_done(record: &Record) -> bool {
    record.stopped.is_none() && record.get(Figure::DrainS).is_some()
}

/// Whether no more clients are lost, and clearly fewer are, or attempts or time are clearly less.
fn helps(before: &Record, after: &Record) -> bool {
    let clearly_less = |figure: Figure| match (before.get(figure), after.get(figure)) {
        (Some(was), Some(is)) => is < CLEARLY * was,
        _ => false,
    };
    let lost = |record: &Record| record.get(Figure::GaveUp).unwrap_or(0.0);
    if !is_done(before) || clearly_less(Figure::GaveUp) {
        return true;
    }
    // Who does not come back after a refusal is lost to both, and luck says how many.
    let as_many = lost(after) * CLEARLY <= lost(before);
    as_many && (clearly_less(Figure::AttemptsPerClient) || clearly_less(Figure::DrainS))
}

/// Whether the server ever refuses anybody, who could then be told.
fn refuses(service: &Service) -> bool {
    service.server.queue.is_some() || service.server.rate_limit.is_some()
}

impl Service {
    /// The pacer that suits the clients of a herd: it lays turns at the server's capacity, over twice the time that the
    /// herd needs at least, and as much denser as some of those who are refused never come back. `None` where the server
    /// has no capacity, or one that no pacer knows.
    ///
    /// ```
    /// use relent_sim::Service;
    /// use std::time::Duration;
    ///
    /// let pacer = Service::herd(1_000_000, 5000.0).pacer().unwrap();
    /// assert_eq!((pacer.capacity, pacer.horizon), (5000.0, Duration::from_secs(400)));
    /// assert_eq!(Service::herd(10, 5.0).pacer().unwrap().horizon, Duration::from_secs(60));
    /// ```
    pub fn pacer(&self) -> Option<PacerSettings> {
        let capacity = self.capacity()?;
        let drain = Duration::try_from_secs_f64(2.0 * self.arrivals.clients() / capacity).unwrap_or(Duration::MAX);
        let horizon = drain.clamp(LEAST, LONGEST);
        let kept = (1.0 - self.leaving).clamp(0.125, 1.0);
        let settings = PacerSettings { capacity, horizon, kept, ..PacerSettings::default() };
        settings.pacer().is_ok().then_some(settings)
    }
}

impl Contender {
    /// The same contender, whose server gives each client it refuses a time of its own to come back, and whose clients wait
    /// for it however long it is.
    #[must_use]
    pub fn told_turns(mut self, pacer: PacerSettings) -> Contender {
        let patient = |policy: relent::Policy| match policy.settings().max_pushback {
            Some(most) if most < pacer.horizon => policy.max_pushback(pacer.horizon),
            _ => policy,
        };
        self.policy = patient(self.policy);
        self.populations.iter_mut().for_each(|population| population.policy = patient(population.policy));
        self.layers.iter_mut().for_each(|layer| layer.policy = layer.policy.map(patient));
        self.name = format!("{} + pacer", self.name);
        self.paced(pacer)
    }
}
