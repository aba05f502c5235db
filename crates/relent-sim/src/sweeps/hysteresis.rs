//! Load raised slowly beyond the capacity, and lowered again: what does not come back the way it went is metastable.

use super::{CHEAP_ATTEMPTS, Studio, most_attempts, open_capacity};
use crate::{
    outcome::{Hysteresis, HysteresisPoint},
    scenario::{Arrivals, Contender, Rate, Service},
};
use std::time::Duration;

/// Loads in units of the capacity, in twentieths, up and down again.
const TOP: u32 = 22;
/// How long the load stays at each, in seconds.
const DWELL: u32 = 20;

pub(super) fn is_cheap(studio: Studio<'_>) -> bool {
    let Some(capacity) = studio.service().and_then(open_capacity) else { return false };
    let loads: u32 = steps().map(|(step, _)| step).sum();
    let calls = capacity * f64::from(DWELL) * f64::from(loads) / 20.0;
    calls * studio.scenario.contenders.iter().map(most_attempts).sum::<f64>() <= CHEAP_ATTEMPTS
}

pub(super) fn draw(studio: Studio<'_>) -> Vec<Hysteresis> {
    let Some((service, capacity)) = studio.service().and_then(raised) else { return Vec::new() };
    studio.each(service.clone(), |contender| Some(sweep(studio, &service, capacity, contender)))
}

fn steps() -> impl Iterator<Item = (u32, bool)> {
    (1..=TOP).map(|step| (step, true)).chain((1..TOP).rev().map(|step| (step, false)))
}

/// The service with a load that is raised slowly beyond the capacity, and lowered again; and the capacity.
fn raised(service: &Service) -> Option<(Service, f64)> {
    let capacity = open_capacity(service)?;
    let at = |step: usize| f64::from(DWELL) * step as f64;
    let points = steps().enumerate().flat_map(|(i, (step, _))| {
        let rate = capacity * f64::from(step) / 20.0;
        [(at(i), rate), (at(i + 1), rate)]
    });
    let until = Duration::from_secs(u64::from(DWELL) * steps().count() as u64);
    let arrivals = Arrivals::Open { rate: Rate::lines(points.collect()), poisson: true, until };
    let mut service = Service { arrivals, troubles: Vec::new(), ..service.clone() };
    // Of a queue that is longer than the clients' patience, the length only says how long the way back takes. It is
    // cut to three times that, so that the load at which the storm ends can be seen, not the backlog of the top.
    let patience = service.timeout.map_or(1.0, |timeout| timeout.as_secs_f64());
    let enough = (3.0 * patience * capacity).ceil() as u64;
    service.server.queue = Some(service.server.queue.map_or(enough, |queue| queue.min(enough)));
    Some((service, capacity))
}

fn sweep(studio: Studio<'_>, service: &Service, capacity: f64, contender: &Contender) -> Hysteresis {
    let run = studio.run(service, contender);
    let bins = 10 * DWELL as usize;
    let points = steps().enumerate().map(|(i, (step, rising))| {
        // The last bins are not there if nothing came in them.
        let end = run.health.len();
        let health = &run.health[(i * bins).min(end)..((i + 1) * bins).min(end)];
        let per_capacity = |count: u64| count as f64 / (capacity * f64::from(DWELL));
        HysteresisPoint {
            rho: f64::from(step) / 20.0,
            rising,
            goodput: per_capacity(health.iter().map(|bin| bin.succeeded).sum()),
            load: per_capacity(health.iter().map(|bin| bin.sent).sum()),
        }
    });
    Hysteresis { policy: contender.name.clone(), points: points.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        engine::control::Control,
        scenario::{Scenario, Server, World},
    };
    use relent::Policy;

    #[test]
    fn what_goes_up_does_not_come_down_the_same_way() {
        let service = Service {
            arrivals: Arrivals::Open { rate: Rate::constant(30.0), poisson: true, until: Duration::from_secs(20) },
            timeout: Some(Duration::from_secs(1)),
            server: Server { capacity: Some(100.0), ..Server::default() },
            ..Service::herd(1, 1.0)
        };
        let scenario = Scenario::new("storm", World::Service(service))
            .policy("three", Policy::immediate().max_attempts(3))
            .policy("one", Policy::immediate().max_attempts(1));
        let control = Control::default();
        let studio = Studio { scenario: &scenario, threads: 2, control: &control };
        let sweeps = draw(studio);
        assert!(is_cheap(studio));
        let goodput = |policy: usize, rho: f64, rising: bool| {
            let points = &sweeps[policy].points;
            points.iter().find(|point| point.rho == rho && point.rising == rising).unwrap().goodput
        };
        assert!((goodput(0, 0.6, true) - 0.6).abs() < 0.06, "{}", goodput(0, 0.6, true));
        assert!(goodput(0, 0.6, false) < 0.06, "the storm stays");
        assert!((goodput(0, 0.15, false) - 0.15).abs() < 0.06, "below a third it ends");
        assert!((goodput(0, 0.05, false) - 0.05).abs() < 0.03, "to the very end: {}", goodput(0, 0.05, false));
        assert!((goodput(1, 0.6, false) - 0.6).abs() < 0.06, "without retries there is no storm");
    }
}
