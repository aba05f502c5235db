//! Nothing ends a call.

use super::{
    Check, Rule, Warning,
    behaviour::{Behaviour, ROWS},
    words::three_digits,
};
use crate::core::{curve::Curve, policy::Policy, time::nanos};

pub(super) const RULE: Rule = Rule {
    name: "no_limit",
    hint: "set max_attempts, max_elapsed or timeout",
    check: Check::Policy(check),
    tell,
    is_note: |_| false,
};

const DAY: u64 = 86_400 * 1_000_000_000;

fn check(policy: &Policy, behaviour: &Behaviour) -> Option<Warning> {
    let settings = policy.settings();
    let is_limited = settings.max_attempts.is_some() || policy.latest_start().is_some();
    // A list that ends, slots and some rules are limits themselves.
    let ends = behaviour.ended || matches!(settings.curve, Curve::List { repeat: false, .. } | Curve::Slots { .. });
    if is_limited || ends {
        return None;
    }
    let mut last = None;
    for row in policy.schedule().take(ROWS as usize) {
        if nanos(row.total.mean) > DAY {
            return Some(Warning::NoLimit { attempts_in_a_day: Some(u64::from(row.attempt - 1)) });
        }
        last = Some(row);
    }
    let last = last.filter(|row| row.attempt > ROWS)?;
    let more = (DAY - nanos(last.total.mean)).checked_div(nanos(last.delay.mean));
    Some(Warning::NoLimit { attempts_in_a_day: more.map(|more| more + u64::from(last.attempt)) })
}

fn tell(warning: &Warning, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
    match *warning {
        Warning::NoLimit { attempts_in_a_day: Some(count) } => {
            let count = three_digits(count);
            write!(f, "no limit: a call that keeps failing makes about {count} attempts in a day and never ends")
        }
        _ => f.write_str("no limit: a call that keeps failing is repeated without a pause and never ends"),
    }
}
