//! Pictures of a scenario as a whole: hysteresis, the map over base and cap, layers x attempts.

use crate::{
    arrivals::{Arrivals, Rate},
    bulk::{self, Fluid},
    calendar::Calendar,
    engine,
    figure::Figure,
    layers::Layers,
    luck::Luck,
    outcome::{Engine, Heat, Hysteresis, HysteresisPoint, Outcome},
    run::{Control, Run},
    scenario::{Contender, Scenario, Service, World},
    service::{
        dispatch,
        predict::{self, Task},
    },
    simulate::needs_dispatch,
};
use relent::{Curve, Policy, Settings};
use std::time::Duration;

/// Adds the pictures that the scenario asks for to its outcome. They cost time of their own: up to a few seconds.
pub fn draw_pictures(scenario: &Scenario, outcome: &mut Outcome, control: &Control) {
    if scenario.pictures.hysteresis
        && let World::Service(service) = &scenario.world
    {
        let sweeps =
            scenario.contenders.iter().filter_map(|contender| hysteresis(scenario, service, contender, control));
        outcome.extras.hysteresis = sweeps.collect();
    }
    if scenario.pictures.heat
        && let World::Service(service) = &scenario.world
    {
        outcome.extras.heat =
            scenario.contenders.iter().rev().find_map(|contender| heat(scenario, service, contender, control));
    }
    if scenario.pictures.layers && outcome.extras.layers.is_none() {
        let (failure, say_overloaded) = match &scenario.world {
            World::Layers(layers) => (layers.failure, layers.say_overloaded),
            World::Service(service) => (1.0, service.say_overloaded),
            _ => (1.0, false),
        };
        outcome.extras.layers = Some(Layers { calls: 1, depth: 1, failure, say_overloaded }.matrix());
    }
}

/// Loads in units of the capacity, in twentieths, up and down again.
const TOP: u32 = 22;
/// How long the load stays at each, in seconds.
const DWELL: u32 = 20;
/// A server faster than this would take too many calls.
const FASTEST: f64 = 20_000.0;

/// Raises the load slowly beyond the capacity, and lowers it again.
fn hysteresis(scenario: &Scenario, service: &Service, contender: &Contender, control: &Control) -> Option<Hysteresis> {
    let capacity = service.capacity().filter(|capacity| *capacity <= FASTEST)?;
    if !matches!(service.arrivals, Arrivals::Open { .. }) {
        return None;
    }
    let steps: Vec<(u32, bool)> =
        (1..=TOP).map(|step| (step, true)).chain((1..TOP).rev().map(|step| (step, false))).collect();
    let at = |step: usize| f64::from(DWELL) * step as f64;
    let points = steps.iter().enumerate().flat_map(|(i, (step, _))| {
        let rate = capacity * f64::from(*step) / 20.0;
        [(at(i), rate), (at(i + 1), rate)]
    });
    let until = Duration::from_secs(u64::from(DWELL) * steps.len() as u64);
    let arrivals = Arrivals::Open { rate: Rate::lines(points.collect()), poisson: true, until };
    let mut service = Service { arrivals, troubles: Vec::new(), ..service.clone() };
    // Of a queue that is longer than the clients' patience, the length only says how long the way back takes. It is
    // cut to three times that, so that the load at which the storm ends can be seen, not the backlog of the top.
    let patience = service.timeout.map_or(1.0, |timeout| timeout.as_secs_f64());
    let enough = (3.0 * patience * capacity).ceil() as u64;
    service.server.queue = Some(service.server.queue.map_or(enough, |queue| queue.min(enough)));
    let run = exact(scenario, &service, contender, control);
    let bins = 10 * DWELL as usize;
    let points = steps.iter().enumerate().map(|(i, (step, rising))| {
        let health = run.health.get(i * bins..(i + 1) * bins).unwrap_or_default();
        let per_capacity = |count: u64| count as f64 / (capacity * f64::from(DWELL));
        HysteresisPoint {
            rho: f64::from(*step) / 20.0,
            rising: *rising,
            goodput: per_capacity(health.iter().map(|bin| bin.succeeded).sum()),
            load: per_capacity(health.iter().map(|bin| bin.sent).sum()),
        }
    });
    Some(Hysteresis { policy: contender.name.clone(), points: points.collect() })
}

fn exact(scenario: &Scenario, service: &Service, contender: &Contender, control: &Control) -> Run {
    let luck = Luck::new(scenario.first_seed, scenario.forced);
    let task = Task { service, contender, luck, limit: crate::nanos(scenario.limit), control };
    if needs_dispatch(service) { dispatch::run(&task) } else { predict::run(&task, Calendar::new()) }
}

/// The map's bases and caps: 1, 2, 5 of each power of ten, in milliseconds.
const BASES_MS: [u64; 13] = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];
/// Runs that need more than this many times the ideal are off the map.
const OFF_THE_MAP: f64 = 20.0;

/// Tries the policy's curve with other bases and caps.
fn heat(scenario: &Scenario, service: &Service, contender: &Contender, control: &Control) -> Option<Heat> {
    let Arrivals::Herd { clients, .. } = service.arrivals else { return None };
    let ideal = clients as f64 / service.capacity()?;
    let begins = service.trouble_ends().map_or(0.0, |end| end as f64 / 1e9);
    let limit = Duration::try_from_secs_f64(begins + ideal * OFF_THE_MAP).ok()?;
    let scenario = Scenario { engine: Some(Engine::Fluid), limit, ..scenario.clone() };
    // Does it work at all?
    cell(&scenario, service, contender, contender.policy, control)?;
    let mut map = Heat { policy: contender.name.clone(), ..Heat::default() };
    map.base_s = BASES_MS.map(|ms| ms as f64 / 1e3).to_vec();
    map.cap_s.clone_from(&map.base_s);
    for cap in BASES_MS {
        let row = BASES_MS.map(|base| {
            let policy = varied(&contender.policy, Duration::from_millis(base), Duration::from_millis(cap))?;
            let run = cell(&scenario, service, contender, policy, control)?;
            let drained = run.stopped.is_none();
            drained.then(|| (run.figures.get(Figure::DrainOverIdeal), run.figures.get(Figure::WastedPerClient)))
        });
        map.drain_over_ideal.push(row.iter().map(|cell| cell.and_then(|cell| cell.0)).collect());
        map.wasted_per_client.push(row.iter().map(|cell| cell.and_then(|cell| cell.1)).collect());
    }
    Some(map)
}

/// The policy with another base and cap, if it has a base that can grow.
fn varied(policy: &Policy, base: Duration, cap: Duration) -> Option<Policy> {
    let settings = policy.settings();
    let curve = match settings.curve {
        Curve::Exponential { factor, .. } => Curve::Exponential { base, factor },
        Curve::Linear { step, .. } => Curve::Linear { base, step },
        Curve::Fibonacci { .. } => Curve::Fibonacci { base },
        _ => return None,
    };
    Settings { curve, cap: Some(cap), ..settings }.policy().ok()
}

fn cell(
    scenario: &Scenario,
    service: &Service,
    contender: &Contender,
    policy: Policy,
    control: &Control,
) -> Option<Run> {
    let contender = Contender { policy, ..contender.clone() };
    let engine::Plan::Fluid(levels, grid) = engine::plan(scenario, &contender).ok()? else { return None };
    let luck = Luck::new(scenario.first_seed, None);
    let task = Task { service, contender: &contender, luck, limit: crate::nanos(scenario.limit), control };
    Some(bulk::run(&task, &levels, grid, Fluid::new(levels.len(), grid)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        scenario::{Pictures, Server},
        simulate::simulate,
    };

    #[test]
    fn what_goes_up_does_not_come_down_the_same_way() {
        let service = Service {
            arrivals: Arrivals::Open { rate: Rate::constant(30.0), poisson: true, until: Duration::from_secs(20) },
            timeout: Some(Duration::from_secs(1)),
            server: Server { capacity: Some(100.0), ..Server::default() },
            ..Service::herd(1, 1.0)
        };
        let mut scenario = Scenario::new("storm", World::Service(service))
            .policy("three", Policy::immediate().max_attempts(3))
            .policy("one", Policy::immediate().max_attempts(1));
        scenario.pictures = Pictures { hysteresis: true, ..Pictures::default() };
        let mut outcome = simulate(&scenario).unwrap();
        draw_pictures(&scenario, &mut outcome, &Control::default());
        let goodput = |policy: usize, rho: f64, rising: bool| {
            let points = &outcome.extras.hysteresis[policy].points;
            points.iter().find(|point| point.rho == rho && point.rising == rising).unwrap().goodput
        };
        assert!((goodput(0, 0.6, true) - 0.6).abs() < 0.06, "{}", goodput(0, 0.6, true));
        assert!(goodput(0, 0.6, false) < 0.06, "the storm stays");
        assert!((goodput(0, 0.15, false) - 0.15).abs() < 0.06, "below a third it ends");
        assert!((goodput(1, 0.6, false) - 0.6).abs() < 0.06, "without retries there is no storm");
    }

    #[test]
    fn a_map_has_holes_where_the_cap_is_below_the_base() {
        let mut service = Service::herd(100_000, 5000.0);
        service.server.queue = Some(5000);
        let full = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).unlimited_attempts();
        let mut scenario = Scenario::new("herd", World::Service(service)).policy("full", full);
        scenario.pictures = Pictures { heat: true, ..Pictures::default() };
        let mut outcome = simulate(&scenario).unwrap();
        draw_pictures(&scenario, &mut outcome, &Control::default());
        let heat = outcome.extras.heat.unwrap();
        let at = |base_ms: u64, cap_ms: u64| {
            let place = |ms: u64| BASES_MS.iter().position(|other| *other == ms).unwrap();
            heat.drain_over_ideal[place(cap_ms)][place(base_ms)]
        };
        assert_eq!(at(1000, 500), None);
        let (short, long) = (at(100, 10_000).unwrap(), at(100, 100_000).unwrap());
        assert!((short - 1.287).abs() < 0.02 && long > 2.0 * short, "{short} {long}");
    }
}
