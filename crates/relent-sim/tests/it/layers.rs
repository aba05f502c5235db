//! Amplification through layers that each retry.

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
