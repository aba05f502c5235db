//! What a budget allows, as figures.

use relent::{BudgetSettings, Policy, UpstreamSettings};

/// The retries a second that a budget allows for ever when every attempt fails; `None` if that depends on more.
pub(super) fn retries_a_second(budget: &BudgetSettings, load: f64) -> Option<f64> {
    match *budget {
        BudgetSettings::Ratio { ratio, min_per_second, .. } | BudgetSettings::Finagle { ratio, min_per_second, .. } => {
            Some(ratio * load + f64::from(min_per_second))
        }
        // They live on successes.
        BudgetSettings::AwsQuota(_) | BudgetSettings::Grpc { .. } => Some(0.0),
        _ => None,
    }
}

/// The retries that a budget allows at once when it is fresh and everything fails; `None` if that depends on more.
pub(super) fn at_once(budget: &BudgetSettings) -> Option<u64> {
    match *budget {
        BudgetSettings::Ratio { min_per_second, window, .. } => {
            Some(whole(f64::from(min_per_second) * window.as_secs_f64()))
        }
        BudgetSettings::Finagle { ttl, min_per_second, .. } => {
            Some(whole(f64::from(min_per_second) * ttl.as_secs_f64()))
        }
        BudgetSettings::AwsQuota(costs) => Some(u64::from(costs.capacity / costs.cost.max(1))),
        // Allowed while more than half of the tokens are left after the failure.
        BudgetSettings::Grpc { max_tokens, .. } => Some(u64::from(max_tokens.div_ceil(2)) - 1),
        _ => None,
    }
}

fn whole(retries: f64) -> u64 {
    (retries + 1e-9) as u64
}

/// The most attempts a call that a policy alone makes; `None` if nothing bounds them. It goes through all its delays.
pub(super) fn most(policy: &Policy) -> Option<f64> {
    UpstreamSettings::default().amplification(policy)
}

/// The attempts a call that an upstream allows when this share of the attempts fails, of a policy with that [`most`]; `None` if nothing bounds
/// them or it depends on more.
pub(super) fn attempts(settings: &UpstreamSettings, most: Option<f64>, load: f64, failing: f64) -> Option<f64> {
    let wanted = wanted(most, failing);
    let bound = settings.budget.and_then(|budget| bound(&budget, load, failing));
    match (wanted, bound) {
        (Some(wanted), Some(bound)) => Some(wanted.min(bound)),
        (wanted, bound) => wanted.or(bound),
    }
}

/// The attempts a call that the policy alone makes: 1 + f + f^2 and so on.
pub(super) fn wanted(most: Option<f64>, failing: f64) -> Option<f64> {
    if failing >= 1.0 {
        return most;
    }
    let endless = 1.0 / (1.0 - failing);
    Some(most.map_or(endless, |most| (1.0 - failing.powf(most)) / (1.0 - failing)))
}

fn bound(budget: &BudgetSettings, load: f64, failing: f64) -> Option<f64> {
    match *budget {
        BudgetSettings::Ratio { .. } | BudgetSettings::Finagle { .. } => {
            retries_a_second(budget, load).map(|retries| 1.0 + retries / load)
        }
        // Every success that needed no retry gives one token back, every other what its retry has cost.
        BudgetSettings::AwsQuota(costs) if failing > 0.0 => {
            Some(1.0 + (1.0 - failing) / (f64::from(costs.cost) * failing))
        }
        // Each failure takes a token, each success gives a share: above this balance there are no retries.
        BudgetSettings::Grpc { token_ratio, .. } if failing > token_ratio * (1.0 - failing) => Some(1.0),
        BudgetSettings::InFlight { share, .. } if share < 1.0 => Some(1.0 / (1.0 - share)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::{Budget, Outcome, Timestamp, Verdict};

    fn with(budget: Budget) -> UpstreamSettings {
        UpstreamSettings { budget: Some(budget.settings()), ..UpstreamSettings::default() }
    }

    #[test]
    fn the_numbers_of_their_systems() {
        let allowed = |budget: Budget| at_once(&budget.settings());
        assert_eq!(allowed(Budget::aws_quota_2_1()), Some(35));
        assert_eq!(allowed(Budget::aws_quota_2_0()), Some(100));
        assert_eq!(allowed(Budget::finagle(0.2)), Some(100));
        assert_eq!(allowed(Budget::grpc(10, 0.1)), Some(4), "the fifth failure stops them");
        assert_eq!(allowed(Budget::ratio(0.1)), Some(10));
        assert_eq!(allowed(Budget::throttle(2.0)), None);
    }

    /// What is said is what the machines do.
    #[test]
    fn the_machines_allow_what_is_said() {
        let now = Timestamp::from_nanos(1);
        let failed = Outcome::Failure(Verdict::Transient);
        for name in ["aws-2.0", "aws-2.1", "finagle", "grpc-a6", "sre-retries", "tower"] {
            let budget = Budget::compat(name).unwrap();
            let mut granted = 0;
            let mut paid = None;
            for _ in 0..1_000 {
                budget.outcome(now, failed, paid);
                paid = budget.withdraw(now, failed, 0);
                granted += u64::from(paid.is_some());
                if let Some(paid) = paid {
                    budget.retry(now, paid);
                }
            }
            assert_eq!(Some(granted), at_once(&budget.settings()), "{name}");
        }
    }

    #[test]
    fn attempts_by_the_share_that_fails() {
        let three = Policy::default().max_attempts(3);
        let (endless, three) = (most(&three.unlimited_attempts()), most(&three));
        assert_eq!((endless, three), (None, Some(3.0)));
        assert_eq!(wanted(three, 0.5), Some(1.75));
        assert_eq!(wanted(three, 1.0), Some(3.0));
        assert_eq!(wanted(endless, 0.5), Some(2.0));
        assert_eq!(wanted(endless, 1.0), None);
        let at = |budget: Budget, failing| attempts(&with(budget), three, 100.0, failing);
        assert_eq!(at(Budget::ratio(0.1).min_per_second(1), 1.0), Some(1.11));
        assert_eq!(at(Budget::ratio(0.1), 0.0), Some(1.0));
        assert_eq!(at(Budget::aws_quota_2_1(), 1.0), Some(1.0));
        assert_eq!(at(Budget::grpc(10, 0.1), 0.2), Some(1.0));
        assert!(at(Budget::grpc(10, 0.1), 0.05).unwrap() > 1.05);
        assert_eq!(at(Budget::in_flight(0.2, 3), 1.0), Some(1.25));
        assert_eq!(attempts(&UpstreamSettings::default(), three, 100.0, 1.0), Some(3.0));
    }
}
