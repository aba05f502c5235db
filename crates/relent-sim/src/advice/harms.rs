//! Which population hurts which, and which spares which: each is changed by itself, and the others are simulated beside it.
//!
//! A population that comes by itself is left out. One that is a share of all clients does as the other does: what is asked of
//! a rollout is not how the rest would do with fewer clients, but whether the new policy takes from them or gives to them.

use crate::{
    engine::control::Control,
    outcome::{Harm, Outcome, Record},
    scenario::{Contender, Figure, Scenario, Service, World},
    simulate::simulate_with,
};

/// Runs with a population changed, at most.
const RUNS: u32 = 3;
/// Of more populations than this, too many pairs would have to be told.
const MOST: usize = 4;

/// The populations of each policy with each other one changed; `left` is how many attempts may be simulated.
pub(super) fn harms(
    scenario: &Scenario,
    service: &Service,
    outcome: &Outcome,
    mut left: f64,
    threads: usize,
    control: &Control,
) -> Vec<Harm> {
    let mut found = Vec::new();
    for (contender, all) in scenario.contenders.iter().zip(&outcome.records) {
        let populations = &contender.populations;
        if populations.len() > MOST || all.stopped.is_some() {
            continue;
        }
        let each = |record: &Record| record.get(Figure::AttemptsPerClient).unwrap_or(1.0) * record.clients as f64;
        // Without those who make most of the attempts, the others are soon simulated.
        let mut order: Vec<_> = populations.iter().zip(&all.populations).map(|(by, own)| (by, each(own))).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (by, own) in order {
            for (left_out, changed, service) in changes(contender, &by.name, service) {
                let each = if left_out { each(all) - own } else { each(all) };
                let runs = scenario.seeds.min(RUNS).min((left / each.max(1.0)) as u32);
                if runs == 0 || control.is_stopped() {
                    return found;
                }
                let (world, contenders) = (World::Service(service), vec![changed.0]);
                let trial = Scenario { world, contenders, seeds: runs, asserts: Vec::new(), ..scenario.clone() };
                let Ok(mut outcome) = simulate_with(&trial, threads, control) else { continue };
                let Some(record) = outcome.records.pop().filter(|record| record.stopped.is_none()) else { continue };
                left -= super::attempts(&record);
                if outcome.interrupted {
                    return found;
                }
                let told = |record: Record| {
                    let to = record.policy.strip_prefix(&format!("{}: ", contender.name))?.to_owned();
                    let whom = changed.1.as_ref();
                    let harm = Harm { policy: contender.name.clone(), by: by.name.clone(), left_out, to, record };
                    whom.is_none_or(|whom| *whom == harm.to).then_some(harm)
                };
                found.extend(record.populations.into_iter().filter_map(told));
            }
        }
    }
    found
}

/// A contender, and the only population of it that is looked at.
type Changed = (Contender, Option<String>);

/// The contender with one population left out; or, where it is a share of all clients, once for each other one, with that
/// one's policy.
fn changes(contender: &Contender, by: &str, service: &Service) -> Vec<(bool, Changed, Service)> {
    if let Some((rest, service)) = contender.without(by, service) {
        return vec![(true, (rest, None), service)];
    }
    if contender.populations.iter().any(crate::scenario::Population::is_own) {
        return Vec::new();
    }
    let others = contender.populations.iter().filter(|other| other.name != by);
    others.map(|other| (false, (contender.with_one_as(by, other), Some(other.name.clone())), service.clone())).collect()
}
