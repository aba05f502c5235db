//! What to change about a stream or a chain whose calls are lost or multiplied, proven by running it.
//!
//! Theory proposes, trial decides: each change is made by itself, to the scenario's own world, and simulated with the
//! same luck. One that does not help is not recommended.

use super::safe_load;
use crate::{
    engine::control::Control,
    outcome::{Outcome, Record, Remedied, Remedy, Safety, Storm},
    scenario::{Contender, Figure, Scenario, Service, World},
    simulate::simulate_with,
};
use relent::{Breaker, Budget, Pacer};
use std::time::Duration;

/// Runs a change is tried with, at most.
const RUNS: u32 = 3;
/// A policy that loses less than this has nothing to mend.
const LITTLE: f64 = 0.01;
/// A queue holds this share of the work that clients wait for, so that random service times leave some room.
const ROOM: f64 = 0.8;
/// The share of retries that is usual: Google's.
const RETRIES: f64 = 0.1;
/// How long a breaker is open that is tried.
const OPEN: Duration = Duration::from_secs(5);
/// How far below the safe load a server with headroom is.
const HEADROOM: f64 = 0.95;

/// The changes that help each policy, of those that theory proposes; `left` is how many attempts may be simulated.
pub(super) fn remedies(
    scenario: &Scenario,
    outcome: &Outcome,
    safeties: &[Safety],
    mut left: f64,
    threads: usize,
    control: &Control,
) -> Vec<Remedied> {
    let mut found = Vec::new();
    for (place, record) in outcome.records.iter().enumerate().take(scenario.contenders.len()) {
        if !is_ill(scenario, record) {
            continue;
        }
        let contender = &scenario.contenders[place];
        for remedy in proposed(scenario, contender, safeties.get(place)) {
            let cost = record.get(Figure::AttemptsPerClient).unwrap_or(1.0)
                * record.clients as f64
                * f64::from(scenario.seeds.min(RUNS));
            if cost > left || control.is_stopped() {
                return found;
            }
            left -= cost;
            let Some(tried) = tried(scenario, contender, remedy, threads, control) else { continue };
            if helps(scenario, record, &tried) {
                found.push(Remedied { policy: record.policy.clone(), remedy, record: tried });
            }
        }
    }
    found
}

fn is_ill(scenario: &Scenario, record: &Record) -> bool {
    if let World::Layers(layers) = &scenario.world {
        return layers.depth > 1 && record.get(Figure::AttemptsPerClient).is_some_and(|attempts| attempts > 2.0);
    }
    let recovers = record.recovered.is_some_and(|runs| runs.yes == runs.of);
    !recovers || record.get(Figure::SuccessShare).is_some_and(|success| success < 1.0 - LITTLE)
}

fn proposed(scenario: &Scenario, contender: &Contender, safety: Option<&Safety>) -> Vec<Remedy> {
    let service = match &scenario.world {
        World::Service(service) => service,
        World::Layers(layers) if !layers.say_overloaded => return vec![Remedy::OneLayer],
        _ => return Vec::new(),
    };
    let mut proposed = Vec::new();
    if service.layers > 1 && !service.say_overloaded {
        proposed.push(Remedy::OneLayer);
    }
    let (Some(capacity), Some(load)) = (service.server.capacity, safety.and_then(|safety| safety.load)) else {
        return proposed;
    };
    let most = contender.policy.settings().max_attempts.unwrap_or(u32::MAX);
    let fewer = (1.0 / load).floor().max(1.0) as u32;
    if load < 1.0 && fewer < most {
        proposed.push(Remedy::Attempts(fewer));
    }
    if let Some(room) = room(service, contender, capacity)
        && service.server.queue.is_none_or(|queue| queue > room)
    {
        proposed.push(Remedy::Queue(room));
    }
    let safe = safety.and_then(|safety| safety.storm).and_then(|storm| match storm {
        Storm::Above(safe) if safe.share > 0.0 => Some(safe.share),
        _ => None,
    });
    let safe = safe.unwrap_or(1.0) * HEADROOM;
    if load > safe {
        proposed.push(Remedy::Capacity((capacity * load / safe).ceil()));
    }
    proposed.extend(machines(service, contender, capacity, load));
    proposed
}

/// The machines that a policy has not, as they are usually set.
fn machines(service: &Service, contender: &Contender, capacity: f64, load: f64) -> Vec<Remedy> {
    let (mut proposed, has) = (Vec::new(), &contender.protection);
    let retries = contender.policy.settings().max_attempts.is_none_or(|most| most > 1);
    // So many that the server can take them beside the first attempts.
    let ratio = RETRIES.min(((1.0 / load - 1.0) * HEADROOM * 100.0).floor() / 100.0);
    if has.budget.is_none() && retries && ratio > 0.0 {
        proposed.push(Remedy::Budget(ratio));
    }
    if has.breaker.is_none() {
        proposed.push(Remedy::Breaker(OPEN));
    }
    // Who is never refused is told nothing.
    if has.pacer.is_none() && retries && service.server.queue.is_some() {
        proposed.push(Remedy::Pacer(capacity / service.mean_cost()));
    }
    proposed
}

/// The requests that may be inside so that whatever is let in is answered in time.
fn room(service: &Service, contender: &Contender, capacity: f64) -> Option<u64> {
    let timeout = safe_load::timeout(service, &contender.policy)?;
    let room = safe_load::patience(service, timeout) * capacity / service.mean_cost() * ROOM;
    (room >= 1.0).then_some(room as u64)
}

/// The scenario with the change, for this policy alone.
fn changed(scenario: &Scenario, contender: &Contender, remedy: Remedy) -> Option<Scenario> {
    let mut contender = contender.clone();
    let mut changed = Scenario { seeds: scenario.seeds.min(RUNS), asserts: Vec::new(), ..scenario.clone() };
    match (&mut changed.world, remedy) {
        (World::Layers(layers), Remedy::OneLayer) => layers.say_overloaded = true,
        (World::Service(service), Remedy::OneLayer) => service.say_overloaded = true,
        (World::Service(service), Remedy::Queue(room)) => service.server.queue = Some(room),
        (World::Service(service), Remedy::Capacity(capacity)) => service.server.capacity = Some(capacity),
        (World::Service(_), Remedy::Attempts(most)) => {
            let settings = relent::Settings { max_attempts: Some(most), ..contender.policy.settings() };
            contender.policy = settings.policy().ok()?;
        }
        (World::Service(_), Remedy::Budget(ratio)) => {
            contender.protection.budget = Some(Budget::ratio(ratio).settings());
        }
        (World::Service(_), Remedy::Breaker(open)) => {
            contender.protection.breaker = Some(Breaker::share(0.5).open_for(open).settings());
        }
        (World::Service(_), Remedy::Pacer(capacity)) => {
            contender.protection.pacer = Some(Pacer::capacity(capacity).settings());
        }
        _ => return None,
    }
    changed.contenders = vec![contender];
    Some(changed)
}

fn tried(
    scenario: &Scenario,
    contender: &Contender,
    remedy: Remedy,
    threads: usize,
    control: &Control,
) -> Option<Record> {
    let mut outcome = simulate_with(&changed(scenario, contender, remedy)?, threads, control).ok()?;
    let record = outcome.records.pop()?;
    (!outcome.interrupted && record.stopped.is_none()).then_some(record)
}

/// Whether more calls succeed, or as many with much less.
fn helps(scenario: &Scenario, before: &Record, after: &Record) -> bool {
    let get = |record: &Record, figure: Figure| record.get(figure).unwrap_or(0.0);
    if matches!(scenario.world, World::Layers(_)) {
        return get(after, Figure::AttemptsPerClient) < 0.8 * get(before, Figure::AttemptsPerClient);
    }
    get(after, Figure::SuccessShare) > get(before, Figure::SuccessShare) + LITTLE
}
