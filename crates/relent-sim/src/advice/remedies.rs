//! What to change about a stream or a chain whose calls are lost or multiplied, proven by running it.
//!
//! Theory proposes, trial decides: each change is made by itself, to the scenario's own world, and simulated with the
//! same luck. One that does not help is not recommended.

use super::safe_load;
use crate::{
    engine::control::Control,
    outcome::{Advice, Outcome, Record, Remedied, Remedy, Safety, Storm},
    scenario::{Contender, Figure, Layer, Population, Scenario, Service, World},
    simulate::simulate_with,
};
use relent::{Breaker, Budget, LimitSettings, PacerSettings, Policy, Settings};
use std::time::Duration;

/// Runs a change is tried with, at most.
const RUNS: u32 = 3;
/// A policy that loses less than this has nothing to mend.
const LITTLE: f64 = 0.01;
/// Attempts are much fewer if there are less than this share of them.
const FEWER: f64 = 0.8;
/// A queue holds this share of the work that clients wait for, so that random service times leave some room.
const ROOM: f64 = 0.8;
/// The share of retries that is usual: Google's.
const RETRIES: f64 = 0.1;
/// How long a breaker is open that is tried.
const OPEN: Duration = Duration::from_secs(5);
/// How far below the safe load a server with headroom is.
const HEADROOM: f64 = 0.95;

/// A change, and the population or layer that is changed, if not all are.
type Change = (Option<String>, Remedy);

/// The changes that help each policy, of those that theory proposes; `left` is how many attempts may be simulated.
pub(super) fn remedies(
    scenario: &Scenario,
    outcome: &Outcome,
    advice: &Advice,
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
        let mut proposed = proposed(scenario, contender, advice.policies.get(place));
        // Who hurts others is changed first.
        proposed.sort_by_key(|(whose, _)| !hurts(advice, record, whose.as_deref()));
        let each = record.get(Figure::AttemptsPerClient).unwrap_or(1.0) * record.clients as f64;
        for (whose, remedy) in proposed {
            // If it does not help, it takes as much as the policy did as it is.
            let runs = scenario.seeds.min(RUNS).min((left / each.max(1.0)) as u32);
            if runs == 0 || control.is_stopped() {
                return found;
            }
            let Some(changed) = changed(scenario, contender, whose.as_deref(), remedy) else { continue };
            let Some(tried) = tried(&Scenario { seeds: runs, ..changed }, threads, control) else {
                left -= each * f64::from(runs);
                continue;
            };
            left -= super::attempts(&tried);
            if helps(record, &tried) {
                found.push(Remedied { policy: record.policy.clone(), whose, remedy, record: tried });
            }
        }
    }
    found
}

/// Whether a population does others harm.
fn hurts(advice: &Advice, all: &Record, whose: Option<&str>) -> bool {
    advice.harms.iter().any(|harm| {
        let as_it_is = all.populations.iter().find(|record| record.policy == harm.record.policy);
        harm.policy == all.policy && Some(harm.by.as_str()) == whose && as_it_is.is_some_and(|own| harm.hurts(own))
    })
}

fn is_ill(scenario: &Scenario, record: &Record) -> bool {
    if let World::Layers(layers) = &scenario.world {
        return layers.depth > 1 && has_multiplied(record);
    }
    let recovers = |record: &Record| record.recovered.is_none_or(|runs| runs.yes == runs.of);
    let loses = |record: &Record| record.get(Figure::SuccessShare).is_some_and(|success| success < 1.0 - LITTLE);
    record.with_populations().any(|record| !recovers(record) || loses(record))
}

fn proposed(scenario: &Scenario, contender: &Contender, safety: Option<&Safety>) -> Vec<Change> {
    let service = match &scenario.world {
        World::Service(service) => service,
        World::Layers(layers) if !layers.say_overloaded => return vec![(None, Remedy::OneLayer)],
        _ => return Vec::new(),
    };
    let mut proposed = of_layers(contender);
    if service.layers > 1 && !service.say_overloaded {
        proposed.push((None, Remedy::OneLayer));
    }
    let (Some(capacity), Some(load)) = (service.server.capacity, safety.and_then(|safety| safety.load)) else {
        return proposed;
    };
    proposed.extend(of_populations(service, contender, capacity, load));
    proposed.extend(of_all(service, contender, safety, capacity, load).into_iter().map(|remedy| (None, remedy)));
    proposed
}

/// Whether a policy retries at all.
fn retries(policy: &Policy) -> bool {
    policy.settings().max_attempts.is_none_or(|most| most > 1)
}

/// What can be changed about layers that each have a policy.
fn of_layers(contender: &Contender) -> Vec<Change> {
    let layers = &contender.layers;
    let policy = |layer: &Layer| layer.policy.unwrap_or(contender.policy);
    let mut proposed = Vec::new();
    let retrying: Vec<&Layer> = layers.iter().filter(|layer| retries(&policy(layer))).collect();
    if retrying.len() > 1 {
        proposed.extend(retrying.iter().map(|layer| (Some(layer.name.clone()), Remedy::OneLayer)));
        if retrying.iter().any(|layer| !layer.say_overloaded) {
            proposed.push((None, Remedy::OneLayer));
        }
    }
    let above = layers.split_last().map_or(&[][..], |(_, above)| above);
    let waits = |layer: &Layer| layer.patience(&policy(layer)).or_else(|| layer.limit(&policy(layer))).is_some();
    if above.iter().any(|layer| !layer.passes_deadline && waits(layer)) {
        proposed.push((None, Remedy::Deadlines));
    }
    proposed
}

/// What can be changed about one population: its retries, its machines, and what the others leave it of the server.
fn of_populations(service: &Service, contender: &Contender, capacity: f64, load: f64) -> Vec<Change> {
    let mut proposed = Vec::new();
    let all = load * capacity;
    for population in &contender.populations {
        let own = population.steady(service) * population.service(service).mean_cost();
        let most = population.policy.settings().max_attempts;
        let mut change = |remedy: Remedy| proposed.push((Some(population.name.clone()), remedy));
        if population.protection.limit.is_none() && retries(&population.policy) {
            let rest = ((capacity - (all - own)) * HEADROOM / population.service(service).mean_cost()).floor();
            // A stream that is limited below its own rate would never end.
            if rest >= 1.0 && rest > population.steady(service) {
                change(Remedy::Limit(rest));
            }
        }
        if most.is_some_and(|most| most > 1) {
            change(Remedy::Attempts(1));
            if population.protection.budget.is_none() {
                change(Remedy::Budget(RETRIES));
            }
        }
        if population.protection.breaker.is_none() && retries(&population.policy) {
            change(Remedy::Breaker(OPEN));
        }
    }
    proposed
}

/// What can be changed about the server, or about all clients alike.
fn of_all(service: &Service, contender: &Contender, safety: Option<&Safety>, capacity: f64, load: f64) -> Vec<Remedy> {
    let mut proposed = Vec::new();
    let are_alike = contender.populations.is_empty() && contender.layers.is_empty();
    let most = contender.policy.settings().max_attempts.unwrap_or(u32::MAX);
    let fewer = (1.0 / load).floor().max(1.0) as u32;
    if load < 1.0 && fewer < most && are_alike {
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
    let has = &contender.protection;
    let is_retried = match contender.populations.is_empty() {
        true => {
            contender.layers.iter().map(|layer| layer.policy.unwrap_or(contender.policy)).any(|own| retries(&own))
                || retries(&contender.policy)
        }
        false => contender.populations.iter().any(|population| retries(&population.policy)),
    };
    // So many that the server can take them beside the first attempts.
    let ratio = RETRIES.min(((1.0 / load - 1.0) * HEADROOM * 100.0).floor() / 100.0);
    if are_alike && has.budget.is_none() && is_retried && ratio > 0.0 {
        proposed.push(Remedy::Budget(ratio));
    }
    if are_alike && has.breaker.is_none() {
        proposed.push(Remedy::Breaker(OPEN));
    }
    // Who is never refused is told nothing.
    if has.pacer.is_none() && is_retried && service.server.queue.is_some() {
        proposed.push(Remedy::Pacer(capacity / contender.mean_cost(service)));
    }
    proposed
}

/// The requests that may be inside so that whatever is let in is answered in time.
fn room(service: &Service, contender: &Contender, capacity: f64) -> Option<u64> {
    let patience = |(own, policy): &(Service, Policy)| {
        Some(safe_load::patience(own, safe_load::timeout(own, policy)?)).filter(|patience| *patience > 0.0)
    };
    let own = |layer: &Layer| layer.patience(&layer.policy.unwrap_or(contender.policy)).map(|wait| wait.as_secs_f64());
    let callers = safe_load::callers(service, contender);
    // The least patient of all who wait for the server's answer.
    let least = callers.iter().filter_map(patience).chain(contender.layers.iter().filter_map(own)).reduce(f64::min)?;
    let room = least * capacity / contender.mean_cost(service) * ROOM;
    (room >= 1.0).then_some(room as u64)
}

/// The scenario with the change, for this policy alone.
fn changed(scenario: &Scenario, contender: &Contender, whose: Option<&str>, remedy: Remedy) -> Option<Scenario> {
    let mut contender = contender.clone();
    let mut changed = Scenario { asserts: Vec::new(), ..scenario.clone() };
    if let Some(population) = contender.populations.iter_mut().find(|own| Some(own.name.as_str()) == whose) {
        change_population(population, remedy)?;
    } else if let Some(only) = whose {
        if remedy != Remedy::OneLayer || contender.layers.iter().all(|layer| layer.name != only) {
            return None;
        }
        let usual = contender.policy;
        for layer in contender.layers.iter_mut().filter(|layer| layer.name != only) {
            layer.policy = Some(with_attempts(&layer.policy.unwrap_or(usual), 1)?);
        }
    } else {
        change_all(&mut changed.world, &mut contender, remedy)?;
    }
    changed.contenders = vec![contender];
    Some(changed)
}

fn change_population(population: &mut Population, remedy: Remedy) -> Option<()> {
    match remedy {
        Remedy::Attempts(most) => population.policy = with_attempts(&population.policy, most)?,
        Remedy::Budget(ratio) => population.protection.budget = Some(Budget::ratio(ratio).settings()),
        Remedy::Breaker(open) => {
            population.protection.breaker = Some(Breaker::share(0.5).open_for(open).settings());
        }
        Remedy::Limit(rate) => {
            let rate = (rate as u32).clamp(1, 1_000_000);
            let burst = (rate / 10).max(1);
            population.protection.limit = Some(LimitSettings::Rate { rate, per: Duration::from_secs(1), burst });
            // One limiter for all of them, wherever they are.
            population.processes = Some(1);
        }
        _ => return None,
    }
    Some(())
}

fn change_all(world: &mut World, contender: &mut Contender, remedy: Remedy) -> Option<()> {
    match (world, remedy) {
        (World::Layers(layers), Remedy::OneLayer) => layers.say_overloaded = true,
        (World::Service(_), Remedy::OneLayer) if !contender.layers.is_empty() => {
            contender.layers.iter_mut().for_each(|layer| layer.say_overloaded = true);
        }
        (World::Service(service), Remedy::OneLayer) => service.say_overloaded = true,
        (World::Service(_), Remedy::Deadlines) => {
            contender.layers.iter_mut().for_each(|layer| layer.passes_deadline = true);
        }
        (World::Service(service), Remedy::Queue(room)) => service.server.queue = Some(room),
        (World::Service(service), Remedy::Capacity(capacity)) => service.server.capacity = Some(capacity),
        (World::Service(_), Remedy::Attempts(most)) => contender.policy = with_attempts(&contender.policy, most)?,
        (World::Service(_), Remedy::Budget(ratio)) => {
            contender.protection.budget = Some(Budget::ratio(ratio).settings());
        }
        (World::Service(_), Remedy::Breaker(open)) => {
            contender.protection.breaker = Some(Breaker::share(0.5).open_for(open).settings());
        }
        (World::Service(_), Remedy::Pacer(capacity)) => {
            // A server may have more than a pacer knows.
            let settings = PacerSettings { capacity, ..PacerSettings::default() };
            contender.protection.pacer = settings.pacer().is_ok().then_some(settings);
            contender.protection.pacer?;
        }
        _ => return None,
    }
    Some(())
}

fn with_attempts(policy: &Policy, most: u32) -> Option<Policy> {
    Settings { max_attempts: Some(most), ..policy.settings() }.policy().ok()
}

fn tried(changed: &Scenario, threads: usize, control: &Control) -> Option<Record> {
    let mut outcome = simulate_with(changed, threads, control).ok()?;
    let record = outcome.records.pop()?;
    (!outcome.interrupted && record.stopped.is_none()).then_some(record)
}

/// Whether more calls succeed, and of no population fewer; or as many with much fewer attempts.
fn helps(before: &Record, after: &Record) -> bool {
    let get = |record: &Record, figure: Figure| record.get(figure).unwrap_or(0.0);
    let gain =
        |(before, after): (&Record, &Record)| get(after, Figure::SuccessShare) - get(before, Figure::SuccessShare);
    let each = || before.with_populations().zip(after.with_populations()).map(gain);
    if each().any(|gain| gain < -LITTLE) {
        return false;
    }
    let fewer = get(after, Figure::AttemptsPerClient) < FEWER * get(before, Figure::AttemptsPerClient);
    each().any(|gain| gain > LITTLE) || fewer && has_multiplied(before)
}

/// Whether calls are made many times over, whatever becomes of them.
fn has_multiplied(record: &Record) -> bool {
    record.get(Figure::AttemptsPerClient).is_some_and(|attempts| attempts > 2.0)
}
