//! The exact engine's servers against queueing theory.

use relent::Policy;
use relent_sim::{Arrivals, Figure, Network, Rate, RateLimit, Record, Scenario, Server, Service, World, simulate};
use std::time::Duration;

/// Calls that come at random and are tried once.
fn open(per_s: f64, server: Server) -> Record {
    let service = Service {
        arrivals: Arrivals::Open { rate: Rate::constant(per_s), poisson: true, until: Duration::from_secs(1000) },
        network: Network::Constant(Duration::ZERO),
        server,
        ..Service::herd(1, 1.0)
    };
    let scenario = Scenario::new("queue", World::Service(service)).policy("once", Policy::immediate().max_attempts(1));
    simulate(&scenario).expect("the scenario is sound").records.remove(0)
}

fn server(capacity: f64, change: impl FnOnce(&mut Server)) -> Server {
    let mut server = Server { capacity: Some(capacity), exponential: true, ..Server::default() };
    change(&mut server);
    server
}

#[track_caller]
fn near(record: &Record, figure: Figure, expected: f64, relative: f64) {
    let value = record.get(figure).expect("the figure has a meaning");
    assert!((value - expected).abs() <= relative * expected, "{}: {value} is not {expected}", figure.name());
}

/// M/M/1: the time in the system is exponential with rate capacity - load.
#[test]
fn one_worker_is_m_m_1() {
    for load in [300.0, 500.0, 800.0] {
        let record = open(load, server(1000.0, |_| ()));
        let wait = |share: f64| -(1.0 - share).ln() / (1000.0 - load);
        for (figure, share) in [(Figure::P50S, 0.5), (Figure::P90S, 0.9), (Figure::P99S, 0.99)] {
            near(&record, figure, wait(share), 0.05);
        }
        near(&record, Figure::Utilisation, load / 1000.0, 0.01);
    }
}

/// M/M/c/c: Erlang's loss formula, and for one place the same whatever the service times.
#[test]
fn as_many_places_as_workers_lose_what_erlang_says() {
    let erlang = |workers: u32, load: f64| {
        (1..=workers).fold(1.0, |blocked, k| load * blocked / (f64::from(k) + load * blocked))
    };
    for (workers, load) in [(1, 0.5), (1, 1.0), (2, 1.5), (4, 3.0), (10, 12.0)] {
        for exponential in [true, false] {
            let record = open(
                load * 100.0,
                server(f64::from(workers) * 100.0, |server| {
                    server.workers = workers;
                    server.queue = Some(u64::from(workers));
                    server.exponential = exponential;
                }),
            );
            near(&record, Figure::SuccessShare, 1.0 - erlang(workers, load), 0.01);
        }
    }
}

/// M/M/c: who waits, waits exponentially; the share that does is Erlang's C.
#[test]
fn several_workers_are_m_m_c() {
    let (workers, load) = (4u32, 3.2f64);
    let record = open(load * 100.0, server(400.0, |server| server.workers = workers));
    // The time in the system is that of the service plus, for the share that waits, an exponential wait.
    let blocked = (1..=workers).fold(1.0, |blocked, k| load * blocked / (f64::from(k) + load * blocked));
    let waits = blocked / (1.0 - load / f64::from(workers) * (1.0 - blocked));
    let (mu, theta) = (100.0, 400.0 - load * 100.0);
    let longer = |t: f64| {
        let both = (mu * (-theta * t).exp() - theta * (-mu * t).exp()) / (mu - theta);
        (1.0 - waits) * (-mu * t).exp() + waits * both
    };
    for (figure, share) in [(Figure::P50S, 0.5), (Figure::P90S, 0.1), (Figure::P99S, 0.01)] {
        let time = record.get(figure).expect("they succeed");
        assert!((longer(time) / share - 1.0).abs() < 0.08, "{}: {time} is exceeded by {}", figure.name(), longer(time));
    }
}

/// A token bucket of one token turns away what comes within a period of the last one let in: `load / (1 + load)`.
#[test]
fn a_bucket_of_one_token_is_a_renewal() {
    for load in [0.25, 1.0, 4.0] {
        let limit = Some(RateLimit { rate: 100.0, burst: 1 });
        let record = open(load * 100.0, Server { rate_limit: limit, ..Server::default() });
        near(&record, Figure::SuccessShare, 1.0 / (1.0 + load), 0.02);
    }
}
