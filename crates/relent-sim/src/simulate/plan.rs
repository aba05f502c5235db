//! Which engine does the arithmetic: the one asked for, or the one that suits.

use crate::{
    engine::bulk::{self, Grid, Levels},
    outcome::run::Health,
    scenario::{Arrivals, Contender, Engine, Population, Problem, Scenario, Service, World},
    world::{
        meter::HEALTH_NS,
        service::{cast, chain, dispatch, gate, needs_dispatch},
    },
};

/// How the runs of one contender are done.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Exact,
    Count(Levels, Grid),
    Fluid(Levels, Grid),
}

impl Plan {
    pub(crate) const fn engine(&self) -> Engine {
        match self {
            Plan::Exact => Engine::Exact,
            Plan::Count(..) => Engine::Count,
            Plan::Fluid(..) => Engine::Fluid,
        }
    }
}

/// Up to this many clients the exact engine takes a second or less.
const EXACT: u64 = 2_000_000;
/// The count engine's counters are of 32 bits.
const COUNT: u64 = 2_000_000_000;

/// The plan for a contender.
pub(crate) fn plan(scenario: &Scenario, contender: &Contender) -> Result<Plan, Problem> {
    let bulk = match &scenario.world {
        World::Service(service) => bulk_plan(service, contender),
        _ => Err("it knows herds that call a server, nothing else"),
    };
    match scenario.engine {
        Some(Engine::Exact) => Ok(Plan::Exact),
        Some(Engine::Real) => {
            Err(Problem::new("engine", "the real world is not simulated", "use the exact, count or fluid engine"))
        }
        Some(engine) => match bulk {
            Ok((levels, grid)) => bulk_of(engine, levels, grid, scenario),
            Err(reason) => Err(cannot(engine, contender, reason)),
        },
        None => Ok(match bulk {
            Ok((levels, grid)) if clients(scenario) > COUNT => Plan::Fluid(levels, grid),
            Ok((levels, grid)) if clients(scenario) > EXACT => Plan::Count(levels, grid),
            _ => Plan::Exact,
        }),
    }
}

fn bulk_of(engine: Engine, levels: Levels, grid: Grid, scenario: &Scenario) -> Result<Plan, Problem> {
    if engine == Engine::Fluid {
        return Ok(Plan::Fluid(levels, grid));
    }
    if clients(scenario) > COUNT {
        let problem = format!("the count engine counts up to {COUNT} clients");
        return Err(Problem::new("engine", problem, "use the fluid engine"));
    }
    Ok(Plan::Count(levels, grid))
}

fn cannot(engine: Engine, contender: &Contender, reason: &str) -> Problem {
    let problem = format!("the {engine} engine cannot model policy {:?} here: {reason}", contender.name);
    Problem::new("engine", problem, "use the exact engine, or none to have it chosen")
}

fn bulk_plan(service: &Service, contender: &Contender) -> Result<(Levels, Grid), &'static str> {
    if let Some(reason) = bulk::refusal(service, contender) {
        return Err(reason);
    }
    let levels = Levels::new(&contender.policy)?;
    let spread = crate::time::nanos(contender.policy.settings().spread);
    let grid = Grid::new(service, &levels, spread)?;
    Ok((levels, grid))
}

fn clients(scenario: &Scenario) -> u64 {
    match &scenario.world {
        World::Service(Service { arrivals: Arrivals::Herd { clients, .. }, .. }) => *clients,
        _ => 0,
    }
}

/// The bytes that a run of any contender needs, about. What depends on all contenders is reckoned once, not for each of them.
pub(crate) fn memory(scenario: &Scenario, plans: &[Plan]) -> u64 {
    const FIXED: u64 = 16 << 20;
    let counted = plans.iter().filter_map(|plan| match plan {
        Plan::Count(levels, grid) | Plan::Fluid(levels, grid) => {
            Some(grid.slots.saturating_mul(8 * levels.len() as u64))
        }
        Plan::Exact => None,
    });
    let most = counted.chain(exact(scenario, plans)).max().unwrap_or(0);
    FIXED.saturating_add(most).saturating_add(for_time(scenario))
}

/// The bytes that a run simulated exactly needs for its clients, if there is one.
fn exact(scenario: &Scenario, plans: &[Plan]) -> Option<u64> {
    plans.iter().any(|plan| matches!(plan, Plan::Exact)).then(|| for_clients(scenario))
}

/// How many of them are in lists that take their room at once, or look before they grow: those take no more addresses than memory.
pub(crate) fn reserved(scenario: &Scenario, plans: &[Plan]) -> u64 {
    let World::Service(service) = &scenario.world else { return 0 };
    let Some(exact) = exact(scenario, plans) else { return 0 };
    let has_others = scenario.contenders.iter().any(Contender::has_upstream) || layers(scenario) > 0;
    let own = match needs_dispatch(service) && !has_others {
        true => dispatch::memory(service, service.clients() as u64, service.most_waiting()),
        false => 0,
    };
    own.saturating_add(at_server(scenario, service)).min(exact)
}

/// What is kept of each stretch of a stream, once for all and once for each population; a list that grows takes twice its room.
fn for_time(scenario: &Scenario) -> u64 {
    let World::Service(Service { arrivals: Arrivals::Open { until, .. }, .. }) = &scenario.world else { return 0 };
    let populations = scenario.contenders.iter().map(|contender| contender.populations.len() as u64).max().unwrap_or(0);
    let stretches = (crate::time::nanos(*until) / HEALTH_NS + 1).saturating_mul(1 + populations);
    stretches.saturating_mul(2 * size_of::<Health>() as u64)
}

/// The layers of the contender that has most.
fn layers(scenario: &Scenario) -> u64 {
    scenario.contenders.iter().map(|contender| contender.layers.len() as u64).max().unwrap_or(0)
}

/// The clients of a run that is simulated exactly, their upstreams, and those of them who are at the server at once.
fn for_clients(scenario: &Scenario) -> u64 {
    let World::Service(service) = &scenario.world else { return alone(scenario) };
    let contenders = &scenario.contenders;
    let clients = service.clients() as u64;
    // Who is of which population, what each has of its own, and when they come, put in order.
    let populations = contenders.iter().map(|contender| contender.populations.len() as u64).max().unwrap_or(0);
    let is_own = contenders.iter().flat_map(|contender| &contender.populations).any(Population::is_own);
    let of_each = if populations > 0 { 3 + 8 * populations } else { 0 } + if is_own { 64 } else { 0 };
    alone(scenario).saturating_add(at_server(scenario, service)).saturating_add(clients.saturating_mul(of_each))
}

/// What a server keeps of those inside, first come, first served; a list that grows takes half as much room again.
fn at_server(scenario: &Scenario, service: &Service) -> u64 {
    let contenders = &scenario.contenders;
    let learned = contenders.iter().map(|contender| gate::memory(&contender.protection)).max().unwrap_or(0);
    let counted = if service.server.queue.is_some() { 3 * size_of::<u64>() as u64 / 2 } else { 0 };
    service.most_waiting().saturating_mul(learned.saturating_add(counted))
}

/// The same without what waits at the server, where that is simulated by itself.
fn alone(scenario: &Scenario) -> u64 {
    let per_client = match &scenario.world {
        World::Service(service) if scenario.contenders.iter().any(Contender::has_upstream) => {
            let processes = scenario.contenders.iter().map(|contender| cast::processes(service, contender)).max();
            let upstreams = processes.unwrap_or(0).saturating_mul(size_of::<relent::Upstream>() as u64);
            return upstreams.saturating_add((service.clients() * 320.0) as u64);
        }
        World::Service(service) if layers(scenario) > 0 => {
            return chain::memory(service.clients() as u64, layers(scenario));
        }
        World::Service(service) if needs_dispatch(service) => {
            let clients = service.clients() as u64;
            // When it comes, what its policy remembers, and its calls of other layers.
            let calls = if service.layers > 1 { 64 * u64::from(service.layers) } else { 0 };
            let own = clients.saturating_mul(16 + calls);
            return dispatch::memory(service, clients, service.most_waiting()).saturating_add(own);
        }
        World::Service(service) if service.layers > 1 => 40 + 64 * u64::from(service.layers),
        World::Layers(layers) => 64 * u64::from(layers.depth),
        World::Batch(_) | World::Saturated(_) => 48,
        _ => 40,
    };
    let clients = match &scenario.world {
        World::Service(service) => service.clients(),
        World::OptimisticWriters(writers) => writers.clients as f64,
        World::Layers(layers) => layers.calls as f64,
        World::Batch(batch) => batch.packets as f64,
        World::Ethernet(ethernet) => 3.0 * ethernet.stations as f64,
        World::Saturated(saturated) => saturated.stations as f64,
    };
    (clients * per_client as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each contender again it would take a quarter of an hour.
    #[test]
    fn what_many_contenders_need_is_reckoned_once() {
        let points: Vec<String> = (0..500).map(|time| format!("[\"{time}s\", 1]")).collect();
        let points = points.join(",");
        let text = format!(
            "[clients]\nrate = [{points}]\nfor = \"500s\"\n[server]\ncapacity = 10\n[upstream.u]\nbudget = \"aws-2.1\"\n\
             [policy.a]\nupstream = \"u\"\n[[population]]\nname = \"m\"\nshare = 0.5\n[[population]]\nname = \"n\"\n"
        );
        let mut scenario = Scenario::parse(&text).unwrap();
        let one = memory(&scenario, &[Plan::Exact]);
        scenario.contenders = vec![scenario.contenders[0].clone(); 6000];
        assert_eq!(memory(&scenario, &vec![Plan::Exact; 6000]), one);
    }

    /// What waits at a server is more than who calls it.
    #[test]
    fn what_queues_keep_is_reckoned() {
        let needed = |clients: &str, server: &str| {
            let text = format!(
                "engine = \"exact\"\n[clients]\n{clients}\n[server]\ncapacity = 10000\n{server}\n[policy.a]\nbase = \"1s\"\n"
            );
            let scenario = Scenario::parse(&text).unwrap();
            let plan = plan(&scenario, &scenario.contenders[0]).unwrap();
            (memory(&scenario, &[plan]) - memory(&scenario, &[])) / 1_000_000
        };
        let herd = "count = 1000000";
        assert_eq!(needed(herd, ""), 40, "first come, first served");
        // An event, what a client does, what its policy remembers, and its request.
        let request = needed(herd, "order = \"lifo\"") - needed(herd, "order = \"lifo\"\nqueue = 1");
        assert!(needed(herd, "order = \"lifo\"") >= 100 && request >= 40, "{request}");
        assert_eq!(needed(herd, "drop_expired = true\nqueue = 10"), needed(herd, "order = \"lifo\"\nqueue = 10"));
        let slowly = needed("count = 1000000\nwindow = \"200s\"", "order = \"lifo\"");
        assert_eq!(slowly + request, needed(herd, "order = \"lifo\""), "who comes slowly does not wait");
        assert_eq!(needed(herd, "admission = {}"), 40 + 36, "what it learns from");
        assert_eq!(needed(herd, "queue = 10000000"), 40 + 12, "when each is done");
        assert_eq!(needed("rate = 10000\nfor = \"100s\"", "admission = {}"), 40, "nobody knows how many wait");
        assert!(
            needed("count = 1000000", "order = \"lifo\"\nworkers = 1000000") > 100 + 24,
            "each worker has an event"
        );
    }

    /// An engine that does not know how long a call has lasted keeps no limit of time.
    #[test]
    fn limits_of_time_need_the_exact_engine() {
        for limit in ["max_elapsed", "timeout"] {
            let text = format!(
                "engine = \"count\"\n[clients]\ncount = 10\n[server]\ncapacity = 5\nqueue = 5\n[policy.a]\nbase = \"1s\"\n\
                 {limit} = \"9s\"\n"
            );
            let scenario = Scenario::parse(&text).unwrap();
            let problem = plan(&scenario, &scenario.contenders[0]).err().map(|problem| problem.to_string());
            assert!(problem.is_some_and(|problem| problem.contains("how long a call has lasted")), "{limit}");
        }
    }

    /// Each process has an upstream of its own, and each population processes of its own.
    #[test]
    fn the_upstreams_of_populations_are_reckoned() {
        let needed = |clients: &str, population: &str| {
            let text = format!(
                "[clients]\n{clients}\n[server]\ncapacity = 50000\n[upstream.u]\nbreaker = {{ consecutive = 5 }}\n[policy.a]\nbase = \"1ms\"\n\
                 max_attempts = 3\nupstream = \"u\"\n{population}"
            );
            let scenario = Scenario::parse(&text).unwrap();
            let plan = plan(&scenario, &scenario.contenders[0]).unwrap();
            memory(&scenario, &[plan]) / size_of::<relent::Upstream>() as u64
        };
        let stream = "rate = 5000\nfor = \"100s\"";
        let one = needed(stream, "");
        assert!(one < 300_000);
        let own = "[[population]]\nname = \"m\"\nshare = 0.8\nprocesses = 1000000\n[[population]]\nname = \"n\"\n";
        assert!(needed(stream, own) >= 400_000, "no more than it has calls");
        let herd =
            "[[population]]\nname = \"m\"\nrate = 10\nfor = \"100s\"\n[[population]]\nname = \"n\"\ncount = 500000\n";
        assert!(needed("timeout = \"1s\"", herd) >= 500_000, "a herd has a process for each client");
    }
}
