//! Every budget that is one word, in every order of two threads. Loom makes its atomics at their first use, which must be
//! before a second thread starts: hence the resets.

use super::{Budget, BudgetSettings, aws_quota::AwsQuota};
use crate::core::{outcome::Outcome, time::Timestamp, verdict::Verdict};
use loom::{model, sync::Arc, thread};

const NOW: Timestamp = Timestamp::ZERO;
const FAILED: Outcome = Outcome::Failure(Verdict::Transient);

/// What two threads are granted together that each ask once, after `before`.
fn granted(settings: BudgetSettings, before: impl Fn(&Budget)) -> usize {
    let budget = Arc::new(settings.budget().unwrap());
    budget.reset(NOW);
    before(&budget);
    let other = budget.clone();
    let other = thread::spawn(move || other.withdraw(NOW, FAILED, 0).is_some());
    let mine = budget.withdraw(NOW, FAILED, 0).is_some();
    usize::from(mine) + usize::from(other.join().unwrap())
}

#[test]
fn one_token_is_granted_once() {
    model(|| {
        let quota = AwsQuota { capacity: 1, cost: 1, throttling_cost: 1, timeout_cost: 1 };
        assert_eq!(granted(BudgetSettings::AwsQuota(quota), |_| {}), 1);
    });
    model(|| {
        let in_flight = BudgetSettings::InFlight { share: 0.0, floor: 1, sleeping: true, inclusive: false };
        assert_eq!(granted(in_flight, |_| {}), 1);
    });
}

/// Each of two failures takes its token, and no retry is granted with half of them gone.
#[test]
fn a_failure_is_never_lost() {
    model(|| {
        let budget = Arc::new(Budget::grpc(4, 0.1));
        budget.reset(NOW);
        let other = budget.clone();
        let other = thread::spawn(move || other.outcome(NOW, FAILED, None));
        budget.outcome(NOW, FAILED, None);
        other.join().unwrap();
        assert_eq!(budget.balance(NOW), 2.0);
        assert!(budget.withdraw(NOW, FAILED, 0).is_none());
    });
}

#[test]
fn what_is_in_flight_comes_back() {
    model(|| {
        let budget = Arc::new(Budget::in_flight(0.0, 2));
        budget.reset(NOW);
        let other = budget.clone();
        let once = |budget: &Budget| {
            if let Some(paid) = budget.withdraw(NOW, FAILED, 0) {
                budget.outcome(NOW, Outcome::Dropped, Some(paid));
            }
        };
        let other = thread::spawn(move || once(&other));
        once(&budget);
        other.join().unwrap();
        assert_eq!(budget.balance(NOW), 2.0);
    });
}
