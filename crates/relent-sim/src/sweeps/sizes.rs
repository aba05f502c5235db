//! The same world with more and fewer clients: how cost and time grow.

use super::{CHEAP_ATTEMPTS, Studio};
use crate::{
    outcome::{Outcome, Sizes},
    scenario::{Arrivals, Figure, Pictures, Scenario, Service, World},
    simulate::simulate_with,
    world::channel::saturated,
};

/// Runs of each policy with each number of clients, at most.
const RUNS: u32 = 10;
/// Slots of a channel that is never empty, at most.
const SLOTS: u64 = 200_000;
/// Shared channels are shown up to this many stations at least.
const STATIONS: u64 = 64;

pub(super) fn is_cheap(studio: Studio<'_>) -> bool {
    attempts(studio.scenario) <= CHEAP_ATTEMPTS
}

/// The attempts that one run of each policy with each number of clients takes, roughly.
fn attempts(scenario: &Scenario) -> f64 {
    let contenders = match &scenario.world {
        World::Batch(batch) => batch.windows.len(),
        World::Saturated(_) => return 0.0,
        _ => scenario.contenders.len(),
    };
    // Where all meet in one place, the attempts of each grow with their number, but hardly beyond this.
    let attempts = |clients: u64| clients as f64 * (clients as f64 / 4.0).clamp(4.0, 40.0);
    contenders as f64 * clients(&scenario.world).into_iter().map(attempts).sum::<f64>()
}

pub(super) fn draw(studio: Studio<'_>) -> Option<Sizes> {
    let mut sizes = Sizes { runs: runs(studio.scenario), figures: figures(&studio.scenario.world), ..Sizes::default() };
    for clients in clients(&studio.scenario.world) {
        let scenario = with(studio.scenario, clients, sizes.runs);
        let outcome = simulate_with(&scenario, studio.threads, studio.control).ok()?;
        if outcome.interrupted {
            return None;
        }
        sizes.clients.push(clients);
        sizes.expected.push(expected(&scenario.world));
        add(&mut sizes, &outcome);
    }
    (sizes.clients.len() > 1).then_some(sizes)
}

fn add(sizes: &mut Sizes, outcome: &Outcome) {
    if sizes.policies.is_empty() {
        sizes.policies = outcome.records.iter().map(|record| (record.policy.clone(), Vec::new())).collect();
    }
    for ((_, values), record) in sizes.policies.iter_mut().zip(&outcome.records) {
        values.push(record.mean);
    }
}

/// Fewer where each takes long: great numbers need no mean.
fn runs(scenario: &Scenario) -> u32 {
    let wanted = match scenario.world {
        // A few stations are soon done, and it is a matter of luck how.
        World::Ethernet(_) => scenario.seeds.min(20 * RUNS),
        World::Saturated(_) => 1,
        _ => scenario.seeds.min(RUNS),
    };
    wanted.min((CHEAP_ATTEMPTS / attempts(scenario).max(1.0)) as u32).max(1)
}

/// What is shown: cost and time.
fn figures(world: &World) -> Vec<Figure> {
    match world {
        World::OptimisticWriters(_) => vec![Figure::Calls, Figure::TimeMs],
        World::Batch(_) | World::Ethernet(_) => vec![Figure::AttemptsPerPacket, Figure::MakespanOverN],
        World::Saturated(_) => vec![Figure::SuccessPerSlot],
        _ => vec![Figure::AttemptsPerClient, Figure::DrainS],
    }
}

/// A tenth of the clients to nearly twice as many; on channels, where theory counts in doublings, powers of two.
fn clients(world: &World) -> Vec<u64> {
    let tenths = |clients: u64| {
        let mut all: Vec<u64> = (1..20).map(|tenths| (clients.saturating_mul(tenths) / 10).max(1)).collect();
        all.dedup();
        all
    };
    let doublings = |most: u64| (1..=40).map(|power| 1 << power).take_while(|n| *n / 2 < most.max(STATIONS)).collect();
    match world {
        World::OptimisticWriters(writers) => tenths(writers.clients),
        World::Service(Service { arrivals: Arrivals::Herd { clients, .. }, .. }) => tenths(*clients),
        World::Batch(batch) => doublings(batch.packets),
        World::Ethernet(ethernet) => doublings(ethernet.stations),
        World::Saturated(saturated) => doublings(saturated.stations),
        _ => Vec::new(),
    }
}

/// The scenario with so many clients.
fn with(scenario: &Scenario, clients: u64, runs: u32) -> Scenario {
    let mut scenario = Scenario { seeds: runs, pictures: Pictures::NONE, ..scenario.clone() };
    match &mut scenario.world {
        World::OptimisticWriters(writers) => writers.clients = clients,
        World::Service(service) => {
            if let Arrivals::Herd { clients: herd, .. } = &mut service.arrivals {
                *herd = clients;
            }
        }
        World::Batch(batch) => batch.packets = clients,
        World::Ethernet(ethernet) => ethernet.stations = clients,
        World::Saturated(saturated) => {
            (saturated.stations, saturated.slots) = (clients, saturated.slots.min(SLOTS));
        }
        World::Layers(_) => {}
    }
    scenario
}

fn expected(world: &World) -> Option<f64> {
    match world {
        World::Saturated(saturated) => Some(saturated::expected(saturated)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        engine::control::Control,
        scenario::{Access, Saturated, presets},
    };

    fn sizes_of(scenario: &Scenario) -> Sizes {
        let control = Control::default();
        let studio = Studio { scenario, threads: 2, control: &control };
        assert!(is_cheap(studio));
        draw(studio).unwrap()
    }

    /// The post's own picture: 10 to 190 clients. Its numbers are tested elsewhere; here, that these are the ones.
    #[test]
    fn writers_of_one_row_are_those_of_the_post() {
        let sizes = sizes_of(&presets::aws(100).seeds(3));
        assert_eq!(sizes.clients, (1..20).map(|n| n * 10).collect::<Vec<_>>());
        let calls = |policy: usize, place: usize| sizes.policies[policy].1[place].get(Figure::Calls).unwrap();
        assert_eq!((sizes.policies.len(), sizes.policies[2].0.as_str()), (5, "full"));
        assert!((calls(2, 9) / 795.6 - 1.0).abs() < 0.03, "{}", calls(2, 9));
        assert!((calls(0, 9) / 2423.0 - 1.0).abs() < 0.05, "{}", calls(0, 9));
    }

    #[test]
    fn a_busy_channel_is_compared_with_theory() {
        let access = Access::Dcf { window: 32, stages: 5 };
        let scenario = Scenario::new("x", World::Saturated(Saturated { stations: 10, access, slots: 1_000_000 }));
        let sizes = sizes_of(&scenario);
        assert_eq!(sizes.clients, [2, 4, 8, 16, 32, 64]);
        for (figures, expected) in sizes.policies[0].1.iter().zip(&sizes.expected).skip(2) {
            let (measured, expected) = (figures.get(Figure::SuccessPerSlot).unwrap(), expected.unwrap());
            assert!((measured / expected - 1.0).abs() < 0.02, "{measured} {expected}");
        }
    }

    #[test]
    fn a_great_herd_is_asked_for_first() {
        let herd = |clients| {
            let policy = relent::Policy::default().unlimited_attempts();
            Scenario::new("x", World::Service(Service::herd(clients, 50.0))).policy("a", policy)
        };
        let control = Control::default();
        let is_cheap = |scenario: &Scenario| is_cheap(Studio { scenario, threads: 1, control: &control });
        assert!(is_cheap(&herd(1000)) && !is_cheap(&herd(100_000)));
        assert_eq!([1000, 5000, 100_000].map(|clients| runs(&herd(clients).seeds(100))), [RUNS, 5, 1]);
        let World::Service(service) = with(&herd(1000), 7, 3).world else { panic!("it is a service") };
        assert_eq!(service.arrivals.clients(), 7.0);
    }
}
