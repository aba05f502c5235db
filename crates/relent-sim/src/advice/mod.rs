//! What to do, and how safe one is: what a person asks when the table has been read.
//!
//! For a stream of calls: the load up to which every storm ends ([`safe_load`]), and the shortest outage that begins one
//! that does not ([`fatal_outage`]). For a herd: a policy that drains it about as fast as its server can, with about one
//! attempt each ([`recommend`]). What is found by theory is said to be so; what is found by simulation was simulated in
//! the scenario's own world, by the same engine and with the same luck as its policies.
//!
//! Where the clients are not all alike, what populations do to each other is found by leaving out one at a time
//! ([`harms`]); what is to be changed about them, about layers and about streams, by changing it ([`remedies`]).
//!
//! Nothing here is about worlds without a server that has a capacity: there the table says all there is.

use crate::{
    engine::{control::Control, parallel},
    outcome::{Advice, Outcome, Record, Safety, advice::FatalOutage},
    scenario::{Contender, Figure, Scenario, Service, World},
    simulate::plan::{self, Plan},
};
mod fatal_outage;
mod harms;
mod paced;
mod recommend;
mod remedies;
mod safe_load;

use std::sync::atomic::Ordering;

/// How much work finding advice may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// About as many attempts as the scenario itself, and six million more, which take a second where nothing makes them dear:
    /// machines and several populations do. What would be more is left out, and said to be.
    #[default]
    Short,
    /// As much as it takes.
    Any,
}

/// Attempts that are simulated in a second or less, by a herd or stream without machines.
const SECOND: f64 = 6e6;

/// An attempt through layers with policies of their own takes so many times as long.
const LAYERS: f64 = 8.0;

/// Within this much, attempts and drain times are the same.
const SAME: f64 = 0.03;

/// Attempts and drain time of a herd, each in units of the ideal: what is to be small.
fn score(record: &Record) -> Option<f64> {
    Some(record.get(Figure::AttemptsPerClient)? + record.get(Figure::DrainOverIdeal)?)
}

/// Adds advice to an outcome, on so many threads. It does not depend on their number.
///
/// A simulation that was interrupted gets no advice that wants more simulating.
///
/// ```
/// use relent::Policy;
/// use relent_sim::{Control, Effort, Figure, Scenario, Service, World, advise, simulate};
///
/// let mut service = Service::herd(10_000, 500.0);
/// service.server.queue = Some(500);
/// let scenario = Scenario::new("reconnect", World::Service(service)).policy("usual", Policy::default());
/// let mut outcome = simulate(&scenario).unwrap();
/// advise(&scenario, &mut outcome, 1, Effort::Short, &Control::default());
///
/// let recommended = outcome.advice.unwrap().recommended.unwrap();
/// assert!(recommended.flags().starts_with("--spread 21s --curve constant --base 21s"));
/// assert!(recommended.record.get(Figure::DrainOverIdeal).unwrap() < 1.06);
/// ```
pub fn advise(scenario: &Scenario, outcome: &mut Outcome, threads: usize, effort: Effort, control: &Control) {
    let attempts: f64 = outcome.records.iter().map(attempts).sum();
    let mut advice = Advice { policies: vec![Safety::default(); outcome.records.len()], ..Advice::default() };
    let is_chain = scenario.contenders.iter().any(|contender| !contender.layers.is_empty());
    let second = if is_chain { SECOND / LAYERS } else { SECOND };
    let enough = if effort == Effort::Any { f64::INFINITY } else { attempts + second };
    let World::Service(service) = &scenario.world else {
        if matches!(scenario.world, World::Layers(_)) && !control.is_stopped() {
            advice.remedies = remedies::remedies(scenario, outcome, &advice, enough, threads, control);
            outcome.advice = Some(advice);
        }
        return;
    };
    control.advising.store(true, Ordering::Relaxed);
    if service.is_open() {
        let most = enough / outcome.records.len().max(1) as f64;
        advice.policies = policies(scenario, service, &outcome.records, threads, most, control);
    } else if !control.is_stopped() {
        // One policy for all is no answer to clients who differ in more than that.
        if !is_chain && scenario.contenders.iter().all(Contender::is_alike) {
            advice.recommended = recommend::recommend(scenario, service, &outcome.records, threads, control);
        }
        advice.paced = paced::paced(scenario, service, &outcome.records, threads, control);
    }
    if !control.is_stopped() {
        advice.harms = harms::harms(scenario, service, outcome, enough / 2.0, threads, control);
        if service.is_open() || is_chain {
            advice.remedies = remedies::remedies(scenario, outcome, &advice, enough, threads, control);
        }
    }
    outcome.interrupted |= control.is_stopped();
    outcome.advice = Some(advice);
}

/// What theory alone says about a policy under a stream of calls.
pub(crate) fn theory(scenario: &Scenario, service: &Service, contender: &Contender) -> Safety {
    safe_load::safety(scenario, service, contender)
}

/// The attempts that all runs of a policy made, those included that its own machines refused.
fn attempts(record: &Record) -> f64 {
    let refused = [Figure::RefusedBudget, Figure::RefusedOpen, Figure::RefusedShed];
    let refused: f64 = refused.into_iter().filter_map(|figure| record.get(figure)).sum();
    let each = record.get(Figure::AttemptsPerClient).unwrap_or(1.0) + refused;
    each * record.clients as f64 * f64::from(record.seeds)
}

fn policies(
    scenario: &Scenario,
    service: &Service,
    records: &[Record],
    threads: usize,
    most_attempts: f64,
    control: &Control,
) -> Vec<Safety> {
    let safeties: Vec<Safety> =
        scenario.contenders.iter().map(|contender| theory(scenario, service, contender)).collect();
    let tried = records.len().min(safeties.len());
    let search = |place: usize| {
        let contender = &scenario.contenders[place];
        let means = fatal_outage::Means { most_attempts, threads: threads.clamp(1, tried.max(1)) };
        fatal_outage::search(scenario, service, contender, &records[place], &safeties[place], means, control)
    };
    // Each trial looks for itself whether it fits.
    let needed = plan::memory(scenario, &[Plan::Exact]).saturating_mul(threads as u64);
    let outages = control.watched(needed, || parallel::each(tried, threads, control, search));
    let outages = outages.into_iter().flatten().chain(std::iter::repeat_with(|| None));
    let found =
        |(safety, outage): (Safety, Option<Option<FatalOutage>>)| Safety { fatal_outage: outage.flatten(), ..safety };
    safeties.into_iter().zip(outages).map(found).collect()
}
