//! HERD-1: N clients cut off at once, a server of N/20 a second with a queue of one second.

use relent::{GAMMA, Jitter, Policy, mix};
use relent_sim::{Contender, Figure, RetryAfter, Scenario, Service, World, simulate};
use std::time::Duration;

pub(crate) fn herd_1(clients: u64) -> Scenario {
    let capacity = clients as f64 / 20.0;
    let mut service = Service::herd(clients, capacity);
    service.server.queue = Some(clients / 20);
    Scenario::new("herd-1", World::Service(service))
}

pub(crate) fn exponential(jitter: Jitter) -> Policy {
    Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).jitter(jitter).unlimited_attempts()
}

pub(crate) fn constant() -> Policy {
    Policy::constant(Duration::from_secs(1)).jitter(Jitter::None).unlimited_attempts()
}

#[test]
fn deterministic_rows_are_exact_at_every_scale() {
    for clients in [10_000, 100_000, 1_000_000] {
        let scenario = herd_1(clients)
            .policy("constant", constant())
            .policy("none", exponential(Jitter::None))
            .contender(Contender::new("exact", Policy::immediate().unlimited_attempts()).told(RetryAfter::Exact));
        let outcome = simulate(&scenario).unwrap();
        let figures = |figure| outcome.records.iter().map(|r| r.get(figure).unwrap()).collect::<Vec<_>>();
        assert_eq!(figures(Figure::AttemptsPerClient), [10.5, 12.806, 1.95], "{clients}");
        assert_eq!(figures(Figure::DrainS), [20.2, 163.39, 20.01], "{clients}");
        assert_eq!(figures(Figure::MaxAttempts), [20.0, 23.0, 2.0]);
        assert_eq!(figures(Figure::Peak1Ms), [clients as f64; 3]);
        assert_eq!(figures(Figure::Peak1S), [clients as f64, 3.8285 * clients as f64, clients as f64]);
    }
}

/// The generator of the reference: two rounds of SplitMix64 over seed, client and the number of the failure from 0.
fn reference_draw(seed: u64, client: u64, k: u32) -> u64 {
    let round = |state: u64| mix(state.wrapping_add(GAMMA));
    round(round(seed ^ (client << 20)) ^ u64::from(k - 1))
}

#[test]
fn the_bit_exact_reference_is_met() {
    let scenario = herd_1(100_000).policy("full", exponential(Jitter::Full)).force_draws(reference_draw);
    let outcome = simulate(&scenario).unwrap();
    let get = |figure| outcome.records[0].get(figure).unwrap();
    assert_eq!((get(Figure::AttemptsPerClient) * 1e5).round(), 801_601.0);
    assert_eq!((get(Figure::DrainS) * 1e3).round(), 25_806.0);
    assert!((get(Figure::P50S) - 10.010).abs() < 0.001);
    assert!((get(Figure::P99S) - 21.816).abs() < 0.001);
}
