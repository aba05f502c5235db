//! `max_elapsed` is set but an attempt that hangs is not ended by anything.

use super::{Check, Rule, Warning, behaviour::Behaviour};
use crate::core::{duration::Human, policy::Policy};
use core::fmt;

pub(super) const RULE: Rule = Rule {
    name: "attempt_can_hang",
    hint: "set attempt_timeout or timeout",
    check: Check::Policy(check),
    tell,
    is_note: |_| true,
};

fn check(policy: &Policy, _: &Behaviour) -> Option<Warning> {
    let settings = policy.settings();
    let max_elapsed = settings.max_elapsed?;
    let ends = settings.attempt_timeout.is_some() || settings.timeout.is_some();
    (!ends).then_some(Warning::AttemptCanHang { max_elapsed })
}

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Warning::AttemptCanHang { max_elapsed } = *warning else { return Ok(()) };
    let max_elapsed = Human(max_elapsed);
    write!(f, "an attempt can hang: max_elapsed {max_elapsed} ends no attempt that is under way")
}
