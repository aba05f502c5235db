//! A budget that allows no retry where there are few calls.

use crate::core::{
    budget::settings::BudgetSettings, duration::Human, policy::Policy, upstream_settings::UpstreamSettings,
};
use crate::lint::{Check, Rule, Warning};
use core::fmt;

pub(in crate::lint) const RULE: Rule = Rule {
    name: "no_floor",
    hint: "min_per_second = 1 allows a retry a second in any case; of in_flight, floor = 3",
    check: Check::Upstream(check),
    tell,
    is_note: |_| false,
};

fn check(policy: &Policy, upstream: &UpstreamSettings) -> Option<Warning> {
    if policy.settings().max_attempts == Some(1) {
        return None;
    }
    let (share, window) = match upstream.budget? {
        BudgetSettings::Ratio { ratio, min_per_second: 0, window } => (ratio, Some(window)),
        BudgetSettings::Finagle { ratio, min_per_second: 0, ttl } => (ratio, Some(ttl)),
        BudgetSettings::InFlight { share, floor: 0, inclusive: false, .. } => (share, None),
        _ => return None,
    };
    // A share of zero never reaches a call.
    let calls = 1.0 / share;
    let whole = calls as u64;
    let calls = if whole as f64 >= calls { whole } else { whole.saturating_add(1) };
    (calls > 1).then_some(Warning::NoFloor { calls, window })
}

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match *warning {
        Warning::NoFloor { calls: u64::MAX, .. } => f.write_str("the budget has no floor: it never allows a retry"),
        Warning::NoFloor { calls, window: Some(window) } => {
            let window = Human(window);
            write!(f, "the budget has no floor: with fewer than {calls} calls in {window} it allows no retry")
        }
        Warning::NoFloor { calls, window: None } => {
            write!(f, "the budget has no floor: with fewer than {calls} attempts in flight it allows no retry")
        }
        _ => Ok(()),
    }
}
