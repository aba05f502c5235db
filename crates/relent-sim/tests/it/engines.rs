//! The engines against each other.

use crate::herd::{constant, exponential, herd_1};
use relent::{Jitter, Policy};
use relent_sim::{
    Arrivals, Control, Engine, Figure, Outcome, Record, RetryAfter, Scenario, Service, World, simulate, simulate_with,
};
use std::time::Duration;

fn run(scenario: Scenario) -> Record {
    simulate(&scenario).expect("the scenario is sound").records.remove(0)
}

fn get(record: &Record, figure: Figure) -> f64 {
    record.get(figure).expect("the figure has a meaning")
}

/// Deterministic policies know no luck: the engines agree to the width of a slot.
#[test]
fn count_and_fluid_meet_the_deterministic_rows() {
    for engine in [Engine::Count, Engine::Fluid] {
        for (policy, attempts, drain) in [(constant(), 10.5, 20.2), (exponential(Jitter::None), 12.806, 163.39)] {
            let record = run(herd_1(100_000).policy("p", policy).engine(engine));
            assert_eq!(record.engine, engine);
            assert!((get(&record, Figure::AttemptsPerClient) - attempts).abs() < 1e-3, "{engine} {record:?}");
            assert!((get(&record, Figure::DrainS) - drain).abs() < 2e-3, "{engine}");
        }
    }
}

fn policies() -> [(&'static str, Policy); 5] {
    [
        ("full", exponential(Jitter::Full)),
        ("full x3", exponential(Jitter::Full).factor(3.0)),
        ("equal", exponential(Jitter::Equal)),
        ("half", exponential(Jitter::Proportional(0.5))),
        ("limited", exponential(Jitter::Full).max_attempts(9)),
    ]
}

/// At a load of one a short queue refuses by how its clients come within a millisecond, not only by how many.
#[test]
fn a_short_queue_at_full_load_is_counted_as_it_is_followed() {
    let policy = Policy::exponential(Duration::from_millis(200)).cap(Duration::from_secs(5)).max_attempts(8);
    for (queue, capacity) in [(2, 600.0), (5, 600.0), (5, 590.0), (26, 600.0)] {
        let mut service = Service::herd(3599, capacity);
        service.arrivals = Arrivals::Herd { clients: 3599, window: Duration::from_secs(6) };
        service.server.queue = Some(queue);
        let seeds = 200;
        let scenario = Scenario::new("full load", World::Service(service)).policy("full", policy).seeds(seeds);
        let (exact, count) = (run(scenario.clone()), run(scenario.engine(Engine::Count)));
        for figure in [Figure::AttemptsPerClient, Figure::DrainS] {
            let (a, b) = (get(&exact, figure), get(&count, figure));
            let error = |record: &Record| record.sd(figure).expect("there are many").powi(2) / f64::from(seeds);
            let tolerance = 3.5 * (error(&exact) + error(&count)).sqrt() + 0.002 * a;
            assert!((a - b).abs() <= tolerance, "{queue} {}: exact {a}, count {b}, within {tolerance}", figure.name());
        }
    }
}

#[test]
fn count_is_exact_in_distribution() {
    for (name, policy) in policies() {
        let seeds = 8;
        let exact = run(herd_1(100_000).policy(name, policy).seeds(seeds));
        let count = run(herd_1(100_000).policy(name, policy).seeds(seeds).engine(Engine::Count));
        for (figure, bias) in [
            (Figure::AttemptsPerClient, 0.004),
            (Figure::DrainS, 0.005),
            (Figure::P50S, 0.002),
            (Figure::P99S, 0.01),
            (Figure::GaveUp, 0.01),
        ] {
            let (a, b) = (get(&exact, figure), get(&count, figure));
            let error = |record: &Record| record.sd(figure).unwrap().powi(2) / f64::from(seeds);
            let tolerance = 3.5 * (error(&exact) + error(&count)).sqrt() + bias * a;
            assert!((a - b).abs() <= tolerance, "{name} {}: exact {a}, count {b}, within {tolerance}", figure.name());
        }
    }
}

#[test]
fn fluid_is_the_mean() {
    for (name, policy) in policies() {
        let exact = run(herd_1(100_000).policy(name, policy).seeds(8));
        let fluid = run(herd_1(100_000).policy(name, policy).engine(Engine::Fluid));
        for (figure, tolerance) in
            [(Figure::AttemptsPerClient, 0.004), (Figure::DrainS, 0.015), (Figure::P50S, 0.003), (Figure::P99S, 0.03)]
        {
            let (a, b) = (get(&exact, figure), get(&fluid, figure));
            assert!((b / a - 1.0).abs() < tolerance, "{name} {}: exact {a}, fluid {b}", figure.name());
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let scenario = herd_1(20_000)
        .policy("full", exponential(Jitter::Full))
        .policy("decorrelated", exponential(Jitter::Decorrelated))
        .seeds(4);
    let one = simulate_with(&scenario, 1, &Control::default()).unwrap();
    for threads in [2, 3, 16] {
        assert_eq!(simulate_with(&scenario, threads, &Control::default()).unwrap(), one);
    }
    // Nor does it matter what else is simulated.
    let alone = herd_1(20_000).policy("decorrelated", exponential(Jitter::Decorrelated)).seeds(4);
    assert_eq!(simulate(&alone).unwrap().records[0], one.records[1]);
}

#[test]
fn engines_refuse_what_they_cannot_model() {
    let decorrelated = herd_1(1000).policy("d", exponential(Jitter::Decorrelated));
    for engine in [Engine::Count, Engine::Fluid] {
        let problem = simulate(&decorrelated.clone().engine(engine)).unwrap_err();
        assert_eq!(problem.key, "engine");
        assert!(problem.problem.contains("depends on the one before"), "{problem}");
    }
    assert_eq!(run(decorrelated).engine, Engine::Exact);
}

/// Clients without names: who was cut off when is not known, so neither is how long anybody waited.
#[test]
fn waits_are_unknown_where_clients_begin_at_different_times() {
    let mut scenario = herd_1(20_000).policy("full", exponential(Jitter::Full)).seeds(8);
    let World::Service(service) = &mut scenario.world else { panic!("it is a service") };
    service.arrivals = Arrivals::Herd { clients: 20_000, window: Duration::from_secs(10) };
    let exact = run(scenario.clone());
    assert!(get(&exact, Figure::P50S) < 3.0, "{:?}", exact.get(Figure::P50S));
    for engine in [Engine::Count, Engine::Fluid] {
        let record = run(scenario.clone().engine(engine));
        for figure in [Figure::P50S, Figure::P90S, Figure::P99S, Figure::MaxS] {
            assert_eq!(record.get(figure), None, "{engine} {}", figure.name());
        }
        for (figure, tolerance) in [(Figure::AttemptsPerClient, 0.005), (Figure::DrainS, 0.015)] {
            let (a, b) = (get(&exact, figure), get(&record, figure));
            assert!((b / a - 1.0).abs() < tolerance, "{engine} {}: exact {a}, {b}", figure.name());
        }
    }
}

/// Everything that the engines without names do not know is refused, not left out of account.
#[test]
fn what_cannot_be_counted_is_refused() {
    type Change = fn(&mut Service);
    let changes: [(Change, &str); 5] = [
        (|service| service.server.workers = 3, "one worker"),
        (|service| service.server.latency = Duration::from_millis(50), "latency"),
        (|service| service.server.lifo = true, "order of arrival"),
        (|service| service.timeout = Some(Duration::from_secs(1)), "timeouts"),
        (|service| service.server.retry_after = RetryAfter::Exact, "Retry-After"),
    ];
    for (change, reason) in changes {
        let mut scenario = herd_1(1000).policy("full", exponential(Jitter::Full)).engine(Engine::Count);
        let World::Service(service) = &mut scenario.world else { panic!("it is a service") };
        change(service);
        let problem = simulate(&scenario).expect_err("it cannot be counted");
        assert!(problem.problem.contains(reason), "{problem}");
    }
    let mut both = herd_1(1000).policy("both", exponential(Jitter::Full).spread(Duration::from_secs(5)));
    let World::Service(service) = &mut both.world else { panic!("it is a service") };
    service.arrivals = Arrivals::Herd { clients: 1000, window: Duration::from_secs(5) };
    assert!(simulate(&both.engine(Engine::Fluid)).expect_err("it cannot").problem.contains("not both at once"));
}

#[test]
fn engines_are_chosen_by_the_size_of_the_herd() {
    let full = |clients| run(herd_1(clients).policy("full", exponential(Jitter::Full)));
    assert_eq!(full(10_000).engine, Engine::Exact);
    let billions = full(4_000_000_000);
    assert_eq!(billions.engine, Engine::Fluid);
    assert!((get(&billions, Figure::AttemptsPerClient) / 8.017 - 1.0).abs() < 0.005, "{billions:?}");
}

#[test]
fn what_is_stopped_keeps_what_was_done() {
    let scenario = herd_1(20_000).policy("full", exponential(Jitter::Full)).seeds(3);
    let control = Control::default();
    control.stop();
    let nothing = simulate_with(&scenario, 2, &control).expect("the scenario is sound");
    assert!(nothing.interrupted);
    assert_eq!((nothing.records[0].seeds, nothing.records[0].get(Figure::DrainS)), (0, None));
    assert_eq!(control.progress().0, 0);
}

/// Runs a scenario on one thread until it is stopped, as soon as its progress is far enough.
pub(crate) fn interrupted(scenario: &Scenario, is_enough: impl Fn((u64, u64, u64)) -> bool) -> Outcome {
    let control = Control::default();
    std::thread::scope(|scope| {
        let simulation = scope.spawn(|| simulate_with(scenario, 1, &control));
        while !is_enough(control.progress()) && !simulation.is_finished() {
            std::thread::yield_now();
        }
        control.stop();
        simulation.join().expect("it does not panic").expect("the scenario is sound")
    })
}

/// Interrupted, policies can still be compared: each has had as many runs as the others, but for the one under way.
#[test]
fn whoever_interrupts_has_as_many_runs_of_each_policy() {
    let policies = [Jitter::None, Jitter::Full, Jitter::Equal].map(exponential);
    let names = ["none", "full", "equal"];
    let scenario = names.into_iter().zip(policies).fold(herd_1(20_000), |all, (name, policy)| all.policy(name, policy));
    let outcome = interrupted(&scenario.seeds(1000), |(runs, ..)| runs >= 5);
    let seeds: Vec<u32> = outcome.records.iter().map(|record| record.seeds).collect();
    assert!(seeds[0] > 1 && seeds.iter().all(|runs| seeds[0] - runs <= 1), "{seeds:?}");
}
