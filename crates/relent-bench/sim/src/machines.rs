//! The herd of the other cases with relent's machines: one for each client, one for many, and those at the server's door.

use crate::herd::Done;
use relent::{AdmissionSettings, BreakerSettings, BudgetSettings, Hedge, Jitter, Limit, PacerSettings, Policy};
use relent_sim::{Contender, Control, Engine, Figure, Protection, Scenario, Service, World, simulate_with};
use std::time::Duration;

const SEC: Duration = Duration::from_secs(1);

/// By name; `plain` has none, and is what the others are compared with.
pub(crate) const ALL: [&str; 14] = [
    "plain",
    "a budget a client",
    "a breaker a client",
    "budget and breaker a client",
    "a breaker of a share a client",
    "a rate a client",
    "a hedge a client",
    "one budget for all",
    "one breaker for all",
    "a budget for each of 1,000 processes",
    "a breaker for each of 1,000 processes",
    "admission",
    "pacer",
    "pacer that measures",
];

fn protection(name: &str, clients: u64) -> Option<(Protection, Option<u64>)> {
    let none = Protection::default();
    let ratio = |ratio, min_per_second| Some(BudgetSettings::Ratio { ratio, min_per_second, window: 10 * SEC });
    let breaker =
        Some(BreakerSettings { consecutive: Some(5), open_for: 2 * SEC, jitter: 0.5, ..BreakerSettings::default() });
    let share = Some(BreakerSettings { share: Some(0.99), open_for: SEC, ..BreakerSettings::default() });
    let admission = Some(AdmissionSettings { max_retry_share: 1.0, ..AdmissionSettings::default() });
    let pacer = PacerSettings { capacity: clients as f64 / 20.0, horizon: 120 * SEC, ..PacerSettings::default() };
    let waits = Protection { wait_while_open: true, ..none };
    Some(match name {
        "plain" => (none, None),
        "a budget a client" => (Protection { budget: ratio(0.1, 1), ..none }, None),
        "a breaker a client" => (Protection { breaker, ..waits }, None),
        "budget and breaker a client" => (Protection { budget: ratio(0.1, 1), breaker, ..waits }, None),
        "a breaker of a share a client" => (Protection { breaker: share, ..waits }, None),
        "a rate a client" => (Protection { limit: Some(Limit::rate(2).burst(3).settings()), ..none }, None),
        "a hedge a client" => {
            (Protection { hedge: Some(Hedge::after(Duration::from_millis(30)).settings()), ..none }, None)
        }
        "one budget for all" => (Protection { budget: ratio(1.0, 1_000_000), ..none }, Some(1)),
        "one breaker for all" => (Protection { breaker: share, ..waits }, Some(1)),
        "a budget for each of 1,000 processes" => (Protection { budget: ratio(1.0, 1_000_000), ..none }, Some(1000)),
        "a breaker for each of 1,000 processes" => (Protection { breaker: share, ..waits }, Some(1000)),
        "admission" => (Protection { admission, ..none }, None),
        "pacer" => (Protection { pacer: Some(pacer), ..none }, None),
        "pacer that measures" => (Protection { pacer: Some(PacerSettings { measured: true, ..pacer }), ..none }, None),
        _ => return None,
    })
}

/// Nothing, if there is no machine of this name.
pub(crate) fn run(name: &str, clients: u64) -> Option<Done> {
    let (protection, processes) = protection(name, clients)?;
    let mut service = Service::herd(clients, clients as f64 / 20.0);
    service.server.queue = Some(clients / 20);
    service.processes = processes;
    let policy = Policy::exponential(SEC / 10).cap(10 * SEC).jitter(Jitter::Full).unlimited_attempts();
    let contender = Contender::new(name, policy).protected(protection);
    let scenario = Scenario::new("herd", World::Service(service)).contender(contender).engine(Engine::Exact);
    let outcome = simulate_with(&scenario, 1, &Control::default()).expect("the scenario is possible");
    let of = |figure| outcome.records[0].get(figure).unwrap_or(0.0) * clients as f64;
    let attempts = of(Figure::AttemptsPerClient);
    // What a server sheds is an attempt already.
    let refused = [Figure::RefusedBudget, Figure::RefusedOpen, Figure::PutOff].map(of);
    let questions = attempts + refused.into_iter().sum::<f64>();
    Some(Done { attempts: attempts.round() as u64, questions: questions.round() as u64, drained: 0 })
}
