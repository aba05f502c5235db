//! Retries without end, and no budget.

use crate::core::{
    policy::Policy,
    upstream_settings::{UpstreamSettings, most_attempts},
};
use crate::lint::{Check, Rule, Warning};
use core::{fmt, time::Duration};

pub(in crate::lint) const RULE: Rule = Rule {
    name: "endless_without_budget",
    hint: "give the upstream a budget, such as ratio = 0.1, or set max_attempts, max_elapsed or timeout",
    check: Check::Upstream(check),
    tell,
    is_note: |_| false,
};

const HOUR: Duration = Duration::from_secs(3600);
/// Attempts that are counted one by one.
const ROWS: usize = 1_000;

fn check(policy: &Policy, upstream: &UpstreamSettings) -> Option<Warning> {
    let is_limited = policy.settings().max_attempts.is_some() || policy.latest_start().is_some();
    if upstream.budget.is_some() || is_limited || most_attempts(policy).is_some() {
        return None;
    }
    let in_an_hour = policy.schedule().take(ROWS).take_while(|row| row.total.mean <= HOUR).count();
    let attempts = (in_an_hour < ROWS).then_some(in_an_hour as u32 + 1);
    Some(Warning::EndlessWithoutBudget { attempts_in_an_hour: attempts })
}

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("endless retries have no budget: ")?;
    match *warning {
        Warning::EndlessWithoutBudget { attempts_in_an_hour: Some(attempts) } => {
            write!(f, "a far side that is down for an hour gets about {attempts} attempts of each call")
        }
        _ => write!(f, "a far side that is down for an hour gets more than {ROWS} attempts of each call"),
    }
}
