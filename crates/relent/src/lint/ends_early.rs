//! The delays end before `max_attempts` is reached.

use super::{Check, Rule, Warning, behaviour::Behaviour};
use crate::core::policy::Policy;
use core::fmt;

pub(super) const RULE: Rule = Rule {
    name: "ends_early",
    hint: "let the list repeat, or lower max_attempts",
    check: Check::Policy(check),
    tell,
    is_note: |_| true,
};

fn check(policy: &Policy, behaviour: &Behaviour) -> Option<Warning> {
    let max_attempts = policy.settings().max_attempts?;
    let attempts = behaviour.rows + 1;
    (behaviour.ended && attempts < max_attempts).then_some(Warning::EndsEarly { max_attempts, attempts })
}

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Warning::EndsEarly { max_attempts, attempts } = *warning else { return Ok(()) };
    write!(f, "delays end early: of {max_attempts} attempts allowed, there are delays for {attempts}")
}
