//! The engines against each other.

use crate::herd::{constant, exponential, herd_1};
use relent::{Jitter, Policy};
use relent_sim::{Control, Engine, Figure, Record, Scenario, simulate, simulate_with};

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
