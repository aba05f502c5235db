//! `max_elapsed` or `timeout` ends calls before `max_attempts` can.

use super::{Check, Rule, Warning, behaviour::Behaviour};
use crate::core::{duration::Human, policy::Policy};
use core::{fmt, time::Duration};

pub(super) const RULE: Rule = Rule {
    name: "attempts_do_not_fit",
    hint: "raise max_elapsed or timeout, or lower max_attempts or the cap",
    check: Check::Policy(check),
    tell,
    is_note: |warning| matches!(*warning, Warning::AttemptsDoNotFit { max_attempts, typical, .. } if typical >= max_attempts),
};

/// Retries that are counted against the limit, so that the check ends whatever `max_attempts` is.
const MOST_ROWS: u32 = 1_000;

fn check(policy: &Policy, _: &Behaviour) -> Option<Warning> {
    let settings = policy.settings();
    let (max_attempts, latest) = (settings.max_attempts?, policy.latest_start()?);
    let limit = settings.max_elapsed.into_iter().chain(settings.timeout).min()?;
    let timeout = settings.attempt_timeout.unwrap_or(Duration::ZERO);
    let (mut at_most, mut typical, mut timed_out, mut rows) = (1, 1, 1, 1);
    for row in policy.schedule().take(MOST_ROWS as usize) {
        let attempts = timeout.saturating_mul(row.attempt - 1);
        rows = row.attempt;
        at_most += u32::from(row.total.min <= latest);
        typical += u32::from(row.total.mean <= latest);
        timed_out += u32::from(row.total.mean.saturating_add(attempts) <= latest);
    }
    // What the delays themselves, or the patience of this check, do not reach is not the limit's fault.
    (timed_out < rows).then_some(Warning::AttemptsDoNotFit {
        max_attempts,
        limit,
        at_most: if at_most == rows { max_attempts } else { at_most },
        typical: if typical == rows { max_attempts } else { typical },
        timed_out,
    })
}

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Warning::AttemptsDoNotFit { max_attempts, limit, at_most, typical, timed_out } = *warning else {
        return Ok(());
    };
    let limit = Human(limit);
    write!(f, "attempts do not fit: of {max_attempts} allowed, ")?;
    if at_most < max_attempts {
        write!(f, "never more than {at_most} begin within {limit}")
    } else if typical < max_attempts {
        write!(f, "about {typical} begin within {limit}")
    } else {
        write!(f, "about {timed_out} begin within {limit} if each runs into its timeout")
    }
}
