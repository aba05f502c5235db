//! The time that a system needs to be healthy again after an outage, by the load it carries.
//!
//! While work waits longer than clients do, every call is made as often as its policy allows, and all in vain. The queue
//! shrinks only if that is below the capacity: with `R` retries below a load of `1 / (R + 1)`. The closer the load is to
//! it, the longer it takes.

use super::{CHEAP_ATTEMPTS, Studio, open_capacity};
use crate::{
    advice::{self},
    outcome::{Recovery, RecoveryPoint, advice::Storm},
    scenario::{Arrivals, Contender, Figure, Rate, Service, Trouble, TroubleKind},
};
use std::time::Duration;

/// When the outage begins.
const CALM: Duration = Duration::from_secs(20);
/// How long recovery is waited for, and how much longer calls come, so that it can be seen to last.
const PATIENCE: Duration = Duration::from_secs(180);
const LASTING: Duration = Duration::from_secs(10);
/// How long the outage lasts if the scenario has none.
const USUAL: Duration = Duration::from_secs(10);
/// Loads behind layers with policies of their own count so many times.
const LAYERS: f64 = 8.0;
/// The greatest load, of the capacity.
const MOST: f64 = 0.95;
/// After so many loads in a row at which it does not recover, it will not at greater ones.
const HOPELESS: usize = 2;

pub(super) fn is_cheap(studio: Studio<'_>) -> bool {
    let Some(capacity) = studio.service().and_then(open_capacity) else { return false };
    // Beyond the threshold hardly anything is simulated, and below it a server gets no more than twice its capacity.
    let seconds = (CALM + PATIENCE + LASTING).as_secs_f64();
    let Some(service) = studio.service() else { return false };
    let loads = |contender: &Contender| {
        // Behind layers an attempt takes longer to simulate, and where the threshold lies nobody knows.
        let dear = if contender.layers.is_empty() { 1.0 } else { LAYERS };
        dear * loads(threshold(studio, service, contender)).iter().sum::<f64>()
    };
    capacity * seconds * studio.scenario.contenders.iter().map(loads).sum::<f64>() <= CHEAP_ATTEMPTS
}

pub(super) fn draw(studio: Studio<'_>) -> Vec<Recovery> {
    let Some(service) = studio.service() else { return Vec::new() };
    let Some(largest) = loaded(service, MOST) else { return Vec::new() };
    studio.each(largest, |contender| curve(studio, service, contender))
}

/// The service with an outage, at a share of its capacity.
fn loaded(service: &Service, rho: f64) -> Option<Service> {
    let (kind, lasts) = outage(service);
    let until = CALM + lasts + PATIENCE + LASTING;
    let arrivals = Arrivals::Open { rate: Rate::constant(open_capacity(service)? * rho), poisson: true, until };
    Some(Service { arrivals, troubles: vec![Trouble::new(CALM, lasts, kind)], ..service.clone() })
}

/// The worst that the scenario has, or a usual one.
fn outage(service: &Service) -> (TroubleKind, Duration) {
    let worst = service.troubles.iter().max_by_key(|trouble| trouble.lasts);
    worst.map_or((TroubleKind::Stall, USUAL), |trouble| (trouble.kind, trouble.lasts))
}

/// The safe load; `None` where there is none, or every load is safe.
fn threshold(studio: Studio<'_>, service: &Service, contender: &Contender) -> Option<f64> {
    match advice::theory(studio.scenario, service, contender).storm {
        Some(Storm::Above(safe)) if safe.share > 0.0 => Some(safe.share),
        _ => None,
    }
}

/// Twentieths of the capacity, and more of them near the threshold.
fn loads(threshold: Option<f64>) -> Vec<f64> {
    let near = threshold.into_iter().flat_map(|threshold| [0.85, 0.9, 0.95].map(|share| share * threshold));
    let mut loads: Vec<f64> = (1..20).map(|step| f64::from(step) / 20.0).chain(near).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup_by(|a, b| (*a - *b).abs() < 0.004);
    loads
}

fn curve(studio: Studio<'_>, service: &Service, contender: &Contender) -> Option<Recovery> {
    let threshold = threshold(studio, service, contender);
    let (mut points, mut hopeless) = (Vec::new(), 0);
    for rho in loads(threshold) {
        if hopeless >= HOPELESS || studio.control.is_stopped() {
            break;
        }
        let service = loaded(service, rho)?;
        let run = studio.run(&service, contender);
        let recovery_s = run.figures.get(Figure::RecoveryS).filter(|time| *time <= PATIENCE.as_secs_f64());
        hopeless = if recovery_s.is_none() { hopeless + 1 } else { 0 };
        let expected_s = advice::theory(studio.scenario, &service, contender).recovery_by_theory_s;
        let expected_s = expected_s.filter(|time| *time <= PATIENCE.as_secs_f64());
        points.push(RecoveryPoint { rho, recovery_s, expected_s });
    }
    let (outage_s, patience_s) = (outage(service).1.as_secs_f64(), PATIENCE.as_secs_f64());
    Some(Recovery { policy: contender.name.clone(), outage_s, patience_s, threshold, points })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        engine::control::Control,
        scenario::{Scenario, Server, World},
    };
    use relent::Policy;

    fn curve_of(attempts: u32, queue: Option<u64>) -> Recovery {
        let service = Service {
            arrivals: Arrivals::Open { rate: Rate::constant(30.0), poisson: true, until: Duration::from_secs(20) },
            timeout: Some(Duration::from_secs(1)),
            server: Server { capacity: Some(1000.0), exponential: true, queue, ..Server::default() },
            ..Service::herd(1, 1.0)
        };
        let scenario = Scenario::new("storm", World::Service(service))
            .policy("at once", Policy::immediate().max_attempts(attempts));
        let control = Control::default();
        let mut curves = draw(Studio { scenario: &scenario, threads: 1, control: &control });
        assert!(is_cheap(Studio { scenario: &scenario, threads: 1, control: &control }));
        curves.remove(0)
    }

    /// Measured elsewhere: R = 1 at 0.45 heals in 72-74 s (75.5 by theory), R = 3 at 0.2 in 24-29 s (29 by theory).
    #[test]
    fn the_closer_to_the_threshold_the_longer_it_takes() {
        for (attempts, rho, seconds) in [(2, 0.45, 75.5), (4, 0.2, 29.0)] {
            let curve = curve_of(attempts, None);
            let at = |rho: f64| curve.points.iter().find(|point| (point.rho - rho).abs() < 1e-9).unwrap();
            let point = at(rho);
            assert!((point.expected_s.unwrap() - seconds).abs() < 0.5, "{point:?}");
            assert!((point.recovery_s.unwrap() / seconds - 1.0).abs() < 0.15, "{point:?}");
            let threshold = curve.threshold.unwrap();
            let beyond: Vec<_> = curve.points.iter().filter(|point| point.rho > threshold + 0.01).collect();
            assert!(!beyond.is_empty() && beyond.iter().all(|point| point.recovery_s.is_none()), "{beyond:?}");
            assert!(beyond.len() <= HOPELESS);
        }
    }

    #[test]
    fn a_short_queue_heals_at_any_load() {
        let curve = curve_of(4, Some(500));
        assert!(curve.points.iter().all(|point| point.expected_s.is_none()));
        assert!(
            curve.points.iter().filter(|point| point.rho < 0.9).all(|point| point.recovery_s < Some(5.0)),
            "{curve:?}"
        );
    }
}
