//! Clients that failed together wait the identical time, attempt after attempt.

use super::{Check, Rule, Warning, behaviour::Behaviour};
use crate::core::{duration::Human, policy::Policy};
use core::{fmt, time::Duration};

pub(super) const RULE: Rule = Rule {
    name: "no_jitter",
    hint: "full jitter spreads them over the whole delay",
    check: Check::Policy(check),
    tell,
    is_note: |_| false,
};

fn check(_: &Policy, behaviour: &Behaviour) -> Option<Warning> {
    let delay = Duration::from_nanos(behaviour.first);
    (behaviour.in_step && behaviour.first > 0).then_some(Warning::NoJitter { delay })
}

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Warning::NoJitter { delay } = *warning else { return Ok(()) };
    let delay = Human(delay);
    write!(f, "no jitter: 100 % of the clients that fail together come back together, first after {delay}")
}
