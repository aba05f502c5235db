//! Open arrivals: retry storms after an outage, and when they end.

use relent::{Jitter, Policy};
use relent_sim::{
    Arrivals, Figure, Network, Rate, Record, Scenario, Server, Service, Trouble, TroubleKind, World, simulate,
};
use std::time::Duration;

const SEC: Duration = Duration::from_secs(1);

/// M/M/1 of 1000 a second, clients that wait a second, and an outage at 60 s.
fn storm(rho: f64, outage: Duration) -> Service {
    Service {
        arrivals: Arrivals::Open { rate: Rate::constant(1000.0 * rho), poisson: true, until: 400 * SEC },
        network: Network::Constant(Duration::ZERO),
        timeout: Some(SEC),
        server: Server { capacity: Some(1000.0), exponential: true, ..Server::default() },
        troubles: vec![Trouble::new(60 * SEC, outage, TroubleKind::Stall)],
        ..Service::herd(1, 1.0)
    }
}

fn run(service: Service, policy: Policy) -> Record {
    let scenario = Scenario::new("storm", World::Service(service)).policy("p", policy).seeds(3);
    simulate(&scenario).expect("the scenario is sound").records.remove(0)
}

fn at_once(retries: u32) -> Policy {
    Policy::immediate().max_attempts(retries + 1)
}

fn get(record: &Record, figure: Figure) -> f64 {
    record.get(figure).expect("the figure has a meaning")
}

fn recovers(record: &Record) -> bool {
    let share = record.recovered.expect("open arrivals recover or do not").share();
    assert!(share == 0.0 || share == 1.0, "the runs do not agree");
    share == 1.0
}

#[test]
fn a_storm_stays_if_the_load_is_above_one_over_the_attempts() {
    for (retries, heals, stays) in [(1, 0.48, 0.52), (2, 0.32, 0.34), (3, 0.24, 0.26)] {
        let healed = run(storm(heals, 10 * SEC), at_once(retries));
        assert!(recovers(&healed), "{retries} {heals}");
        assert!((get(&healed, Figure::GoodputShare) - 1.0).abs() < 0.01);
        let stuck = run(storm(stays, 10 * SEC), at_once(retries));
        assert!(!recovers(&stuck), "{retries} {stays}");
        assert!(get(&stuck, Figure::Goodput) < 0.001 * stays * 1000.0);
        assert!((get(&stuck, Figure::Load) - f64::from(retries + 1)).abs() < 0.05, "{:?}", stuck.get(Figure::Load));
        assert_eq!(stuck.get(Figure::RecoveryS), None);
    }
    assert!(recovers(&run(storm(0.95, 10 * SEC), at_once(0))), "without retries it always heals");
}

#[test]
fn recovery_takes_as_long_as_the_backlog() {
    for (retries, rho) in [(0, 0.9), (1, 0.45), (2, 0.3), (3, 0.2)] {
        let record = run(storm(rho, 10 * SEC), at_once(retries));
        let r = f64::from(retries);
        let expected = (rho * ((r + 1.0) * 10.0 - r * (r + 1.0) / 2.0) - 1.0) / (1.0 - rho * (r + 1.0));
        let value = get(&record, Figure::RecoveryS);
        assert!((value / expected - 1.0).abs() < 0.15, "{retries} {rho}: {value} is not {expected}");
    }
}

#[test]
fn a_trigger_must_be_long_enough() {
    let stays = |millis| !recovers(&run(storm(0.6, Duration::from_millis(millis)), at_once(3)));
    assert!(!stays(1000));
    assert!(stays(1500));
}

#[test]
fn cures_and_what_is_none() {
    let with = |rho, change: fn(&mut Server)| {
        let mut service = storm(rho, 10 * SEC);
        change(&mut service.server);
        run(service, at_once(3))
    };
    let short = with(0.9, |server| server.queue = Some(500));
    assert!(
        recovers(&short) && get(&short, Figure::RecoveryS) <= 1.0,
        "a queue shorter than the patience heals at once"
    );
    assert!(!recovers(&with(0.6, |server| server.queue = Some(2000))), "a longer one does not");
    let lifo = with(0.9, |server| server.lifo = true);
    assert!(recovers(&lifo) && get(&lifo, Figure::RecoveryS) <= 1.0, "newest first heals at once");
    let dropping = with(0.7, |server| server.drop_expired = true);
    assert!(recovers(&dropping) && get(&dropping, Figure::RecoveryS) < 10.0, "{:?}", dropping.get(Figure::RecoveryS));
    let dropping = with(0.9, |server| server.drop_expired = true);
    assert!(!recovers(&dropping));
    assert!((get(&dropping, Figure::GoodputShare) - 0.44).abs() < 0.08, "{:?}", dropping.get(Figure::GoodputShare));
    assert!((get(&dropping, Figure::Load) - 3.17).abs() < 0.2, "{:?}", dropping.get(Figure::Load));
}

/// Whatever the load below the capacity.
#[test]
fn a_short_queue_and_newest_first_heal_at_every_load() {
    for rho in [0.3, 0.6, 0.9] {
        for cure in [|server: &mut Server| server.queue = Some(500), |server: &mut Server| server.lifo = true] {
            let mut service = storm(rho, 10 * SEC);
            service.arrivals = Arrivals::Open { rate: Rate::constant(1000.0 * rho), poisson: true, until: 150 * SEC };
            cure(&mut service.server);
            let record = run(service, at_once(3));
            assert!(recovers(&record) && get(&record, Figure::RecoveryS) <= 1.0, "{rho}");
        }
    }
    for (rho, most) in [(0.3, 0.5), (0.6, 1.0), (0.7, 5.0)] {
        let mut service = storm(rho, 10 * SEC);
        service.server.drop_expired = true;
        let record = run(service, at_once(3));
        assert!(recovers(&record) && get(&record, Figure::RecoveryS) <= most, "{rho} {record:?}");
    }
}

/// A scenario of others: 9.3 calls a second at a server of 10, a rush of 30 for five seconds, clients that wait four
/// seconds and try four times. The queue of 100 holds more work than that, so the rush is never digested.
#[test]
fn a_rush_is_enough_to_begin_a_storm() {
    let rush = |queue, attempts| {
        let rate = Rate::constant(9.3).spike(120 * SEC, 5 * SEC, 30.0 / 9.3);
        let service = Service {
            arrivals: Arrivals::Open { rate, poisson: true, until: 400 * SEC },
            network: Network::Constant(Duration::ZERO),
            timeout: Some(4 * SEC),
            server: Server { capacity: Some(10.0), exponential: true, queue: Some(queue), ..Server::default() },
            ..Service::herd(1, 1.0)
        };
        let scenario =
            Scenario::new("rush", World::Service(service)).policy("p", Policy::immediate().max_attempts(attempts));
        simulate(&scenario.seeds(8)).expect("the scenario is sound").records.remove(0)
    };
    let stays = rush(100, 4);
    assert!(!recovers(&stays) && get(&stays, Figure::GoodputShare) < 0.05, "{stays:?}");
    assert!((get(&stays, Figure::Load) - 4.0).abs() < 0.1, "{stays:?}");
    // A queue of three seconds of work is digested within the clients' patience.
    let short = rush(30, 4);
    assert!(get(&short, Figure::GoodputShare) > 0.8, "{short:?}");
}

#[test]
fn backoff_alone_does_not_heal() {
    let policy = Policy::exponential(SEC).jitter(Jitter::Full).max_attempts(4);
    for rho in [0.3, 0.6, 0.9] {
        assert!(!recovers(&run(storm(rho, 10 * SEC), policy)), "{rho}");
    }
}
