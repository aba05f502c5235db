//! Every call is accounted for, judged by when it began; there is one ideal, and one peak.

use relent::{Jitter, Policy, compat};
use relent_sim::{
    Arrivals, Contender, Engine, Figure, Outcome, Rate, RateLimit, Record, RetryAfter, Scenario, Server, Service,
    Trouble, TroubleKind, World, simulate,
};
use std::time::Duration;

const SEC: Duration = Duration::from_secs(1);

fn run(scenario: &Scenario) -> Outcome {
    simulate(scenario).expect("the scenario is sound")
}

fn get(record: &Record, figure: Figure) -> f64 {
    record.get(figure).unwrap_or_else(|| panic!("{} has no meaning", figure.name()))
}

fn adds_up(record: &Record) {
    let all: f64 =
        [Figure::SuccessShare, Figure::GaveUpShare, Figure::StillTrying].map(|f| get(record, f)).iter().sum();
    assert!((all - 1.0).abs() < 1e-9, "{}: {all}", record.policy);
}

fn stream(rate: Rate, until: Duration, troubles: Vec<Trouble>) -> Service {
    Service {
        arrivals: Arrivals::Open { rate, poisson: true, until },
        timeout: Some(SEC),
        server: Server { capacity: Some(100.0), queue: Some(50), ..Server::default() },
        troubles,
        ..Service::herd(1, 1.0)
    }
}

#[test]
fn every_call_has_one_fate() {
    let outage = Trouble::new(10 * SEC, 10 * SEC, TroubleKind::Stall);
    let policies = [
        ("slow", Policy::constant(20 * SEC).jitter(Jitter::None).max_attempts(3)),
        ("once", Policy::immediate().max_attempts(1)),
        ("endless", Policy::exponential(SEC).unlimited_attempts()),
    ];
    for lifo in [false, true] {
        let mut service = stream(Rate::constant(60.0), 40 * SEC, vec![outage]);
        service.server.lifo = lifo;
        let mut herd = Service::herd(500, 50.0);
        herd.server.queue = Some(20);
        for world in [service, herd] {
            let mut scenario = Scenario::new("x", World::Service(world));
            scenario.limit = 60 * SEC;
            let scenario = policies.iter().fold(scenario, |scenario, (name, policy)| scenario.policy(*name, *policy));
            run(&scenario).records.iter().for_each(adds_up);
        }
    }
    let mut herd = Scenario::new("x", World::Service(Service::herd(20_000, 50.0)));
    herd.limit = 60 * SEC;
    if let World::Service(service) = &mut herd.world {
        service.server.queue = Some(50);
    }
    for engine in [Engine::Count, Engine::Fluid] {
        let policy = Policy::exponential(SEC).cap(8 * SEC).max_attempts(9);
        adds_up(&run(&herd.clone().policy("p", policy).engine(engine)).records[0]);
    }
}

/// A rush that the server cannot do is trouble, and who loses calls in it has not stayed healthy all along.
#[test]
fn a_rush_is_trouble() {
    let rate = Rate::constant(50.0).spike(10 * SEC, 5 * SEC, 6.0);
    let record = run(&Scenario::new("x", World::Service(stream(rate, 60 * SEC, Vec::new())))
        .policy("once", Policy::immediate().max_attempts(1)))
    .records
    .remove(0);
    assert!(get(&record, Figure::RecoveryS) < 5.0 && record.recovered.unwrap().yes == 1);
    assert!(get(&record, Figure::GaveUpShare) > 0.2, "{}", get(&record, Figure::GaveUpShare));
}

/// Calls that are late count when they began, so that no share is above one.
#[test]
fn no_more_calls_succeed_than_began() {
    let outage = Trouble::new(10 * SEC, 10 * SEC, TroubleKind::Refuse);
    let policy = Policy::constant(15 * SEC).jitter(Jitter::None).max_attempts(3);
    let service = stream(Rate::constant(60.0), 40 * SEC, vec![outage]);
    let record = run(&Scenario::new("x", World::Service(service)).policy("late", policy)).records.remove(0);
    assert!(get(&record, Figure::GoodputShare) <= 1.0, "{}", get(&record, Figure::GoodputShare));
}

/// A tenth of all calls is still tried: that is no recovery, however well the last ones do.
#[test]
fn who_leaves_a_tenth_waiting_has_not_recovered() {
    let outage = Trouble::new(5 * SEC, 15 * SEC, TroubleKind::Refuse);
    let policy = Policy::constant(100 * SEC).jitter(Jitter::None).max_attempts(3);
    let service = stream(Rate::constant(40.0), 60 * SEC, vec![outage]);
    let record = run(&Scenario::new("x", World::Service(service)).policy("waits", policy)).records.remove(0);
    assert!(get(&record, Figure::StillTrying) > 0.2 && get(&record, Figure::GoodputShare) > 0.99);
    assert_eq!(record.recovered.unwrap().yes, 0);
}

/// The ideal knows outage, burst, latency and rate limit: nobody beats it, and who comes as it would is as quick.
#[test]
fn nobody_beats_the_ideal() {
    let outage = Trouble::new(Duration::ZERO, 5 * SEC, TroubleKind::Refuse);
    let changes: [fn(&mut Service); 7] = [
        |_| {},
        |service| service.server.latency = SEC,
        |service| service.server.rate_limit = Some(RateLimit { rate: 50.0, burst: 300 }),
        |service| service.server.workers = 30,
        |service| service.troubles.push(Trouble::new(2 * SEC, 3 * SEC, TroubleKind::Stall)),
        |service| service.server.queue = Some(10),
        |service| service.server.capacity = Some(1000.0),
    ];
    let policies = [
        ("at once", Policy::immediate().unlimited_attempts()),
        ("full", Policy::exponential(Duration::from_millis(50)).cap(SEC).unlimited_attempts()),
    ];
    for (nth, change) in changes.into_iter().enumerate() {
        for troubles in [vec![], vec![outage], vec![outage.ramp(5 * SEC)]] {
            let mut service = Service { troubles, ..Service::herd(500, 100.0) };
            service.server.queue = Some(400);
            change(&mut service);
            let scenario = Scenario::new("x", World::Service(service));
            let scenario = policies.iter().fold(scenario, |scenario, (name, policy)| scenario.policy(*name, *policy));
            let outcome = run(&scenario);
            let ideal = outcome.ideal.unwrap();
            assert_eq!(ideal.figure(Figure::DrainOverIdeal), Some(1.0));
            for record in &outcome.records {
                for figure in
                    [Figure::DrainOverIdeal, Figure::DrainS, Figure::P50S, Figure::P99S, Figure::AttemptsPerClient]
                {
                    let (value, best) = (get(record, figure), ideal.figure(figure).unwrap());
                    let what = format!("{nth} {} {}: {value}, ideal {best}", record.policy, figure.name());
                    assert!(value >= best * (1.0 - 1e-4), "{what}");
                }
            }
        }
    }
}

/// A rush is as high whenever it begins.
#[test]
fn a_rush_of_a_second_has_one_peak() {
    let peak = |at: u64| {
        let rate = Rate::constant(1.0).spike(Duration::from_millis(at), SEC, 50.0);
        let mut service = stream(rate, 20 * SEC, Vec::new());
        service.arrivals = match service.arrivals {
            Arrivals::Open { rate, until, .. } => Arrivals::Open { rate, poisson: false, until },
            herd => herd,
        };
        get(
            &run(&Scenario::new("x", World::Service(service)).policy("p", Policy::default())).records[0],
            Figure::Peak1S,
        )
    };
    assert!(
        (peak(10_000) - 50.0).abs() <= 1.0 && (peak(10_500) - 50.0).abs() <= 1.0,
        "{} {}",
        peak(10_000),
        peak(10_500)
    );
}

/// Other systems' rules may shorten what the server says, or ignore it.
#[test]
fn every_profile_meets_every_retry_after() {
    for profile in compat::all() {
        for retry_after in [RetryAfter::Silent, RetryAfter::Fixed(10 * SEC), RetryAfter::Spread, RetryAfter::Exact] {
            let policy = profile.policy();
            let mut service = Service::herd(60, 20.0);
            service.server.rate_limit = Some(RateLimit { rate: 5.0, burst: 2 });
            service.server.retry_after = retry_after;
            let mut scenario =
                Scenario::new(profile.name, World::Service(service)).contender(Contender::new(profile.name, policy));
            scenario.limit = 3600 * SEC;
            for layers in [1, 2] {
                if let World::Service(service) = &mut scenario.world {
                    service.layers = layers;
                }
                run(&scenario).records.iter().for_each(adds_up);
            }
        }
    }
}

/// Requests that are lost say nothing: clients find out by their timeouts, and a writer does not know.
#[test]
fn what_is_lost_is_missed_after_the_timeout() {
    let lost = Trouble::new(Duration::ZERO, 5 * SEC, TroubleKind::Losing(1.0));
    for lifo in [false, true] {
        let mut service = Service { troubles: vec![lost], timeout: Some(2 * SEC), ..Service::herd(10, 100.0) };
        service.server.lifo = lifo;
        let scenario = Scenario::new("x", World::Service(service)).policy("p", Policy::immediate().max_attempts(5));
        let record = run(&scenario).records.remove(0);
        // Sent at 0, 2 and 4 seconds in vain, and at 6.
        assert_eq!(get(&record, Figure::AttemptsPerClient), 4.0);
        assert!((get(&record, Figure::P50S) - 6.06).abs() < 0.1, "{}", get(&record, Figure::P50S));
    }
    let service = Service { troubles: vec![lost], ..Service::herd(10, 100.0) };
    let problem = simulate(&Scenario::new("x", World::Service(service)).policy("p", Policy::default())).unwrap_err();
    assert!(problem.problem.contains("wait for an answer for ever"), "{problem}");
}

/// After an outage a cold server is slow at first.
#[test]
fn capacity_comes_back_over_the_ramp() {
    let drain = |ramp: Duration| {
        let outage = Trouble::new(Duration::ZERO, SEC, TroubleKind::Stall).ramp(ramp);
        let service = Service { troubles: vec![outage], ..Service::herd(1000, 100.0) };
        get(
            &run(&Scenario::new("x", World::Service(service)).policy("p", Policy::default())).records[0],
            Figure::DrainS,
        )
    };
    // Of ten seconds of ramp half are lost.
    assert!(
        (drain(10 * SEC) - drain(Duration::ZERO) - 5.0).abs() < 0.01,
        "{} {}",
        drain(10 * SEC),
        drain(Duration::ZERO)
    );
}
