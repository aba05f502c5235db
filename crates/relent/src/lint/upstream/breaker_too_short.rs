//! A breaker that is over before the retries that it should stop are due.

use crate::core::{duration::Human, policy::Policy, upstream_settings::UpstreamSettings};
use crate::lint::{Check, Rule, Warning};
use core::{fmt, time::Duration};

pub(in crate::lint) const RULE: Rule = Rule {
    name: "breaker_too_short",
    hint: "raise open_for above the delays, or lower the cap",
    check: Check::Upstream(check),
    tell,
    is_note: |_| false,
};

/// Retries that are looked at.
const ROWS: usize = 100;

/// Half of the retries, or more, come on average when it is over: to them it is no breaker.
fn check(policy: &Policy, upstream: &UpstreamSettings) -> Option<Warning> {
    let open_for = upstream.breaker?.open_for;
    let (mut retries, mut late) = (0, 0);
    let latest = policy.latest_start().unwrap_or(Duration::MAX);
    for row in policy.schedule().take(ROWS).take_while(|row| row.total.mean <= latest) {
        retries += 1;
        late += u32::from(row.delay.mean > open_for);
    }
    (late > 0 && late * 2 >= retries).then_some(Warning::BreakerTooShort { open_for, retries, late })
}

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Warning::BreakerTooShort { open_for, retries, late } = *warning else { return Ok(()) };
    let open_for = Human(open_for);
    write!(f, "the breaker is too short: {late} of {retries} retries wait for longer than the {open_for} it is open")
}
