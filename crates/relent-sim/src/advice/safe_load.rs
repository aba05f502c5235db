//! Up to which load every retry storm ends by itself.
//!
//! Clients that stop waiting leave their request in the queue, and the server works on it all the same. Once requests
//! wait longer than the clients do, all work is in vain and each call is a full set of attempts: the load is `attempts`
//! times what comes. If that is more than the capacity, the queue never gets shorter. So the load is safe up to
//! 1 / attempts of the capacity, and between that and the capacity a storm, once begun, stays.
//!
//! Source: Bronson et al., "Metastable Failures in Distributed Systems", HotOS 2021; the threshold and the time to
//! recover are derived, and checked by simulation. A budget of `b` retries a call would make it 1 / (1 + b): budgets
//! belong here when there are any.

use crate::{
    engine::draws::Draws,
    outcome::{Cure, SafeLoad, Storm, advice::Safety},
    scenario::{Arrivals, Contender, Scenario, Service, Trouble, TroubleKind},
};
use relent::{Decision, Policy, Timestamp, Verdict, rng::mix};
use std::time::Duration;

/// What theory says about a policy under a stream of calls.
pub(super) fn safety(scenario: &Scenario, service: &Service, contender: &Contender) -> Safety {
    let (Arrivals::Open { rate, until, .. }, Some(capacity)) = (&service.arrivals, service.server.capacity) else {
        return Safety::default();
    };
    // Just before the end: the rate of populations ends with their calls.
    let calls_per_s = rate.at(until.as_secs_f64() * (1.0 - 1e-9));
    let load = calls_per_s * contender.mean_cost(service) / capacity;
    if !contender.is_plain() {
        // Theory knows what retries do, not what machines keep them from doing, nor what layers and populations do together.
        return Safety { calls_per_s: Some(calls_per_s), load: Some(load), ..Safety::default() };
    }
    let storm = storm(scenario, service, contender, capacity);
    let recovery_by_theory_s = match (storm, only_stall(service), rate.points()) {
        (Some(Storm::Above(safe)), Some(stall), [_]) if load < safe.share => {
            recovery(service, &contender.policy, load, safe, stall)
        }
        _ => None,
    };
    Safety { calls_per_s: Some(calls_per_s), load: Some(load), storm, recovery_by_theory_s, fatal_outage: None }
}

fn storm(scenario: &Scenario, service: &Service, contender: &Contender, capacity: f64) -> Option<Storm> {
    let server = &service.server;
    if server.rate_limit.is_some() || server.refuse_for_good || server.failure > 0.0 {
        return None;
    }
    let Some(timeout) = timeout(service, &contender.policy) else { return Some(Storm::Never(Cure::Patience)) };
    if patience(service, timeout) <= 0.0 {
        return Some(Storm::Always);
    }
    if server.lifo {
        return Some(Storm::Never(Cure::NewestFirst));
    }
    if server.drop_expired {
        return None;
    }
    if let Some(queue) = server.queue {
        let (queue, room) = (queue as f64, patience(service, timeout) * capacity / service.mean_cost());
        // Random service times make a full queue last longer now and then.
        let swing = if server.exponential { 2.0 * queue.sqrt() } else { 0.0 };
        if queue + swing <= room {
            return Some(Storm::Never(Cure::ShortQueue));
        }
        // In between, some of what a full queue holds is answered in time.
        if queue < room + swing {
            return None;
        }
    }
    let attempts = attempts(scenario, service, &contender.policy, timeout)?;
    let work = match service.writes {
        Some(writes) => {
            let written = if writes.retried { attempts } else { 1.0 };
            (1.0 - writes.share) * attempts + writes.share * writes.cost * written
        }
        None => attempts,
    };
    let share = service.mean_cost() / work;
    Some(Storm::Above(SafeLoad { share, per_s: capacity / work, attempts }))
}

/// Who calls, as the server's side sees it: each population, or the clients of all, with the service as they meet it. Those
/// behind layers wait for as long as the client does.
pub(super) fn callers(service: &Service, contender: &Contender) -> Vec<(Service, Policy)> {
    if let Some(client) = contender.layers.first() {
        let policy = client.policy.unwrap_or(contender.policy);
        let timeout = client.patience(&policy).or_else(|| client.limit(&policy));
        return vec![(Service { timeout: timeout.or(service.timeout), ..service.clone() }, policy)];
    }
    if contender.populations.is_empty() {
        return vec![(service.clone(), contender.policy)];
    }
    contender.populations.iter().map(|population| (population.service(service), population.policy)).collect()
}

/// How long an attempt waits for its answer.
pub(super) fn timeout(service: &Service, policy: &Policy) -> Option<Duration> {
    [service.timeout, policy.settings().attempt_timeout].into_iter().flatten().min()
}

/// The seconds that a request may wait at the server so that its answer is in time.
pub(super) fn patience(service: &Service, timeout: Duration) -> f64 {
    (timeout.as_secs_f64() - 2.0 * service.network.mean_ns() / 1e9 - service.server.latency.as_secs_f64()).max(0.0)
}

/// The only trouble there is, if the server stalls in it.
fn only_stall(service: &Service) -> Option<Trouble> {
    match service.troubles[..] {
        [trouble] if trouble.kind == TroubleKind::Stall => Some(trouble),
        _ => None,
    }
}

/// A call that made so many attempts will go on for ever.
const ENDLESS: u32 = 10_000;
/// Calls that are tried to find a mean.
const TRIED: u64 = 64;

/// The mean number of attempts of a call of which every one times out.
fn attempts(scenario: &Scenario, service: &Service, policy: &Policy, timeout: Duration) -> Option<f64> {
    let settings = policy.settings();
    let layers = service.layers as i32;
    let is_timed = settings.max_elapsed.is_some() || settings.timeout.is_some();
    if layers > 1 && is_timed {
        return None;
    }
    let draws = Draws::new(scenario.first_seed, None);
    let of = |client: u64| starts(policy, draws.call(client), timeout).count() as u32;
    let first = of(0);
    if first >= ENDLESS {
        return Some(f64::INFINITY);
    }
    let mean = match is_timed {
        false => f64::from(first),
        true => (0..TRIED).map(|client| f64::from(of(client))).sum::<f64>() / TRIED as f64,
    };
    Some(if layers > 1 && !service.say_overloaded { mean.powi(layers) } else { mean })
}

/// When each attempt of a call starts, in seconds, if every one times out: the core decides.
pub(super) fn starts(policy: &Policy, seed: u64, timeout: Duration) -> impl Iterator<Item = f64> + '_ {
    let mut call = policy.call(Timestamp::ZERO, seed);
    let mut next = Some(Timestamp::ZERO);
    std::iter::from_fn(move || {
        let start = next?;
        let noticed = start + timeout;
        next = match call.on_failure(noticed, Verdict::Transient) {
            Decision::Retry(delay) => Some(noticed + delay),
            Decision::GiveUp(_) => None,
        };
        Some(start.as_nanos() as f64 / 1e9)
    })
    .take(ENDLESS as usize)
}

/// The work that waits when the server has stood still for `lasts` seconds, in seconds of its time: the calls that came
/// and their retries, of which each began when the attempt before had timed out and its delay was over. The mean, where
/// delays depend on luck.
///
/// With `R` retries at once this is `load * (D + (D - T)^+ + (D - 2 T)^+ + ...)`.
pub(super) fn backlog(policy: &Policy, timeout: Duration, load: f64, lasts: f64) -> f64 {
    let of = |client: u64| {
        let within = starts(policy, mix(client), timeout).take_while(|start| *start < lasts);
        within.map(|start| lasts - start).sum::<f64>()
    };
    load * (0..TRIED).map(of).sum::<f64>() / TRIED as f64
}

/// The time until the backlog of a stall is done, at the rate that storms leave: `(backlog - T) / (1 - load * attempts)`.
/// It holds if a call can make all its attempts within the stall; else the server gets fewer for a while.
fn recovery(service: &Service, policy: &Policy, load: f64, safe: SafeLoad, stall: Trouble) -> Option<f64> {
    if service.layers > 1 || service.writes.is_some() || service.server.queue.is_some() {
        return None;
    }
    let (timeout, lasts) = (timeout(service, policy)?, stall.lasts.as_secs_f64());
    let last = |client: u64| starts(policy, mix(client), timeout).last().unwrap_or(0.0);
    if (0..TRIED).map(last).sum::<f64>() / TRIED as f64 > lasts {
        return None;
    }
    let late = backlog(policy, timeout, load, lasts) - patience(service, timeout);
    Some((late / (1.0 - load * safe.attempts)).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Network, Rate, Server, World, Writes};

    const SEC: Duration = Duration::from_secs(1);

    fn service(change: impl FnOnce(&mut Service)) -> Service {
        let mut service = Service {
            arrivals: Arrivals::Open { rate: Rate::constant(200.0), poisson: true, until: 400 * SEC },
            timeout: Some(SEC),
            server: Server { capacity: Some(1000.0), exponential: true, ..Server::default() },
            troubles: vec![Trouble::new(60 * SEC, 10 * SEC, TroubleKind::Stall)],
            ..Service::herd(1, 1.0)
        };
        change(&mut service);
        service
    }

    fn storm_of(policy: Policy, change: impl FnOnce(&mut Service)) -> Option<Storm> {
        let service = service(change);
        let scenario = Scenario::new("storm", World::Service(service.clone()));
        safety(&scenario, &service, &Contender::new("p", policy)).storm
    }

    fn share(policy: Policy, change: impl FnOnce(&mut Service)) -> f64 {
        match storm_of(policy, change) {
            Some(Storm::Above(safe)) => safe.share,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_over_the_attempts() {
        for attempts in 1..10 {
            let safe = share(Policy::immediate().max_attempts(attempts), |_| ());
            assert_eq!(safe, 1.0 / f64::from(attempts));
            assert_eq!(share(Policy::exponential(SEC).max_attempts(attempts), |_| ()), safe, "backoff only defers");
        }
        assert_eq!(share(Policy::default().unlimited_attempts(), |_| ()), 0.0);
        assert_eq!(share(Policy::immediate().unlimited_attempts().max_elapsed(3 * SEC), |_| ()), 0.25);
        assert_eq!(share(Policy::immediate().unlimited_attempts().timeout(3 * SEC), |_| ()), 1.0 / 3.0);
        let at_most_once = |service: &mut Service| {
            service.writes = Some(Writes { share: 0.5, retried: false, cost: 1.0 });
        };
        assert_eq!(share(Policy::immediate().max_attempts(3), at_most_once), 0.5);
        assert_eq!(share(Policy::immediate().max_attempts(2), |service| service.layers = 3), 0.125);
    }

    #[test]
    fn nothing_is_claimed_where_the_theory_does_not_hold() {
        let of = |change: fn(&mut Service)| storm_of(Policy::immediate().max_attempts(4), change);
        assert_eq!(of(|service| service.server.queue = Some(500)), Some(Storm::Never(Cure::ShortQueue)));
        assert_eq!(of(|service| service.server.queue = Some(980)), None, "it depends on luck");
        assert!(matches!(of(|service| service.server.queue = Some(2000)), Some(Storm::Above(_))));
        assert_eq!(of(|service| service.server.lifo = true), Some(Storm::Never(Cure::NewestFirst)));
        assert_eq!(of(|service| service.network = Network::round_trip(2 * SEC)), Some(Storm::Always));
        assert_eq!(of(|service| service.timeout = None), Some(Storm::Never(Cure::Patience)));
        assert_eq!(of(|service| service.server.drop_expired = true), None);
        assert_eq!(of(|service| service.server.failure = 0.5), None);
    }

    /// Rows of (retries, load, seconds), worked out by hand; the world itself needs as long within 15 %.
    #[test]
    fn recovery_times_of_the_formula() {
        for (retries, load, expected) in
            [(0, 0.9, 80.0), (1, 0.45, 75.5), (2, 0.3, 71.0), (3, 0.2, 29.0), (3, 0.24, 179.0)]
        {
            let service = service(|service| {
                let Arrivals::Open { rate, .. } = &mut service.arrivals else { return };
                *rate = Rate::constant(1000.0 * load);
            });
            let scenario = Scenario::new("storm", World::Service(service.clone()));
            let contender = Contender::new("p", Policy::immediate().max_attempts(retries + 1));
            let value = safety(&scenario, &service, &contender).recovery_by_theory_s.unwrap();
            assert!((value / expected - 1.0).abs() < 0.02, "{retries} {load}: {value} is not {expected}");
        }
    }
}
