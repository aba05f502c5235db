//! What to do, and how safe one is: what a person asks when the table has been read.
//!
//! For a stream of calls: the load up to which every storm ends ([`safe_load`]), and the shortest outage that begins one
//! that does not ([`fatal_outage`]). For a herd: a policy that drains it about as fast as its server can, with about one
//! attempt each ([`recommend`]). What is found by theory is said to be so; what is found by simulation was simulated in
//! the scenario's own world, by the same engine and with the same luck as its policies.
//!
//! Nothing here is about worlds without a server that has a capacity: there the table says all there is.

mod fatal_outage;
mod recommend;
mod safe_load;

pub use self::{
    fatal_outage::FatalOutage,
    recommend::{Recommended, Shape},
    safe_load::{Cure, SafeLoad, Storm},
};

use crate::{
    figure::Figure,
    outcome::{Outcome, Record},
    parallel,
    run::Control,
    scenario::{Contender, Scenario, Service, World},
};
use std::sync::atomic::Ordering;

/// Advice on a scenario, once it has been simulated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// How safe each policy is, in the order of the records.
    pub policies: Vec<Safety>,
    /// What a herd should do, where that can be said.
    pub recommended: Option<Recommended>,
}

/// How safe a policy is under a stream of calls. Everything is `None` for a herd.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Safety {
    /// Calls a second when the run ends: what a storm meets that something earlier began.
    pub calls_per_s: Option<f64>,
    /// Their first attempts' work in units of the capacity.
    pub load: Option<f64>,
    /// Whether retries can sustain a storm, and above which load; `None` where theory does not say.
    pub storm: Option<Storm>,
    /// How long after the trouble all should be well again, by theory, in seconds.
    pub recovery_by_theory_s: Option<f64>,
    /// The shortest outage that the policy does not survive, where the scenario has one outage that can be varied.
    pub fatal_outage: Option<FatalOutage>,
}

/// How much work finding advice may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// About as much as the scenario itself, and a second. What would be more is left out, and said to be.
    #[default]
    Short,
    /// As much as it takes.
    Any,
}

/// Attempts that are simulated in a second or less.
const SECOND: f64 = 6e6;

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
    let World::Service(service) = &scenario.world else { return };
    let mut advice = Advice { policies: vec![Safety::default(); outcome.records.len()], recommended: None };
    let attempts: f64 = outcome.records.iter().map(attempts).sum();
    control.advising.store(true, Ordering::Relaxed);
    if service.is_open() {
        let most = match effort {
            Effort::Short => (attempts + SECOND) / outcome.records.len().max(1) as f64,
            Effort::Any => f64::INFINITY,
        };
        advice.policies = policies(scenario, service, &outcome.records, threads, most, control);
    } else if !control.is_stopped() {
        advice.recommended = recommend::recommend(scenario, service, &outcome.records, threads, control);
    }
    outcome.interrupted |= control.is_stopped();
    outcome.advice = Some(advice);
}

/// What theory alone says about a policy under a stream of calls.
pub(crate) fn theory(scenario: &Scenario, service: &Service, contender: &Contender) -> Safety {
    safe_load::safety(scenario, service, contender)
}

/// The attempts that all runs of a policy made.
fn attempts(record: &Record) -> f64 {
    record.get(Figure::AttemptsPerClient).unwrap_or(1.0) * record.clients as f64 * f64::from(record.seeds)
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
    let outages = parallel::each(records.len().min(safeties.len()), threads, control, |place| {
        let contender = &scenario.contenders[place];
        fatal_outage::search(scenario, service, contender, &records[place], &safeties[place], most_attempts, control)
    });
    let found =
        |(safety, outage): (Safety, Option<Option<FatalOutage>>)| Safety { fatal_outage: outage.flatten(), ..safety };
    safeties.into_iter().zip(outages).map(found).collect()
}
