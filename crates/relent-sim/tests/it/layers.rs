//! Amplification through layers that each retry.

use crate::engines::interrupted;
use relent::Policy;
use relent_sim::{Figure, Layers, Scenario, World, simulate};

fn measured(depth: u32, attempts: u32, failure: f64, say_overloaded: bool) -> (f64, f64) {
    let world = World::Layers(Layers { calls: 20_000, depth, failure, say_overloaded });
    let scenario = Scenario::new("layers", world).policy("now", Policy::immediate().max_attempts(attempts));
    let record = simulate(&scenario).expect("the scenario is sound").records.remove(0);
    let get = |figure| record.get(figure).expect("the figure has a meaning");
    (get(Figure::AttemptsPerClient), get(Figure::SuccessShare))
}

#[test]
fn full_failure_is_a_power() {
    for (depth, attempts, expected) in [(1, 4, 4.0), (2, 4, 16.0), (3, 4, 64.0), (3, 3, 27.0), (1, 1, 1.0)] {
        assert_eq!(measured(depth, attempts, 1.0, false), (expected, 0.0));
    }
    assert_eq!(measured(3, 4, 1.0, true), (4.0, 0.0));
}

#[test]
fn partial_failure_follows_the_recursion() {
    for depth in [1, 2, 3] {
        for failure in [0.1, 0.5, 0.75, 0.9] {
            let (calls, success) = measured(depth, 4, failure, false);
            let expected = Layers { calls: 1, depth, failure, say_overloaded: false }.amplification(4);
            let expected_success = 1.0 - failure.powi(4i32.pow(depth));
            assert!((calls / expected - 1.0).abs() < 0.03, "{depth} {failure}: {calls} is not {expected}");
            assert!(
                (success - expected_success).abs() < 0.015,
                "{depth} {failure}: {success} is not {expected_success}"
            );
        }
    }
}

/// Ten layers are a million attempts a call: the run is stopped, but what it says of those that are over is right.
#[test]
fn a_tower_of_layers_is_stopped_and_says_so() {
    let world = World::Layers(Layers { calls: 1000, depth: 10, failure: 1.0, say_overloaded: false });
    let scenario = Scenario::new("tower", world).policy("now", Policy::immediate().max_attempts(4));
    let record = simulate(&scenario).expect("the scenario is sound").records.remove(0);
    assert_eq!(record.stopped.as_deref(), Some("not over after 10000000 attempts"));
    assert_eq!(record.get(Figure::AttemptsPerClient), Some(1_048_576.0));
    assert!((1..1000).contains(&record.clients), "{}", record.clients);
}

#[test]
fn who_interrupts_a_long_call_need_not_wait_for_its_end() {
    let world = World::Layers(Layers { calls: 1, depth: 16, failure: 1.0, say_overloaded: false });
    let scenario = Scenario::new("tower", world).policy("now", Policy::immediate().max_attempts(4));
    let outcome = interrupted(&scenario, |(.., attempts)| attempts > 0);
    assert_eq!(outcome.records[0].stopped.as_deref(), Some("interrupted"));
}
