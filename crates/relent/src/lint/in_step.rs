//! Before one attempt, many clients wait the identical time.

use super::{Check, Rule, Warning, behaviour::Behaviour, jitter_dies, words::Percent};
use crate::core::{duration::Human, policy::Policy};
use core::{fmt, time::Duration};

pub(super) const RULE: Rule = Rule {
    name: "in_step",
    hint: "full jitter spreads every delay, the first as well",
    check: Check::Policy(check),
    tell,
    is_note: |warning| matches!(*warning, Warning::InStep { share, .. } if share < 0.5),
};

/// A share of identical delays before one attempt from which on clients count as being in step.
const IN_STEP: f64 = 0.2;

/// Not where all clients are in step all the time or in the end, which is worse and told by other warnings, and
/// not where they do not wait at all.
fn check(_: &Policy, behaviour: &Behaviour) -> Option<Warning> {
    let (mut most, mut attempt, mut delay) = (0.0, 0, 0);
    for (nth, row) in behaviour.alike().iter().enumerate() {
        if row.share > most {
            (most, attempt, delay) = (row.share, nth as u32 + 2, row.delay);
        }
    }
    let is_told = behaviour.in_step || jitter_dies::dies(behaviour) || most == behaviour.not_at_all.0;
    let delay = Duration::from_nanos(delay);
    (most >= IN_STEP && !is_told).then_some(Warning::InStep { attempt, share: most, delay })
}

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Warning::InStep { attempt, share, delay } = *warning else { return Ok(()) };
    let (share, delay) = (Percent(share), Human(delay));
    write!(f, "in step: before attempt {attempt}, {share} of clients wait the identical {delay}")
}
