//! A delay can be zero, so that some clients retry at once.

use super::{
    Check, Rule, Warning,
    behaviour::{Behaviour, MILLISECOND, ROWS},
    words::Percent,
};
use crate::core::{curve::Curve, duration::Human, jitter::Jitter, policy::Policy, time::nanos};
use core::{fmt, time::Duration};

pub(super) const RULE: Rule = Rule {
    name: "zero_delay",
    hint: "a first delay above zero with jitter equal or proportional keeps away from zero",
    check: Check::Policy(check),
    tell,
    is_note: |warning| matches!(*warning, Warning::ZeroDelay { share, .. } if share < HOT),
};

/// A share of clients that come back within a millisecond above which it is a load, not a tail.
const HOT: f64 = 0.1;

/// A share of delays of exactly zero up to which they are no more than the end of a range.
const RARE: f64 = 0.005;

fn check(policy: &Policy, behaviour: &Behaviour) -> Option<Warning> {
    let first = policy.schedule().take(ROWS as usize).find(|row| row.delay.min.is_zero())?;
    let within = Duration::from_nanos(MILLISECOND);
    if let (Jitter::Full, false) = (policy.settings().jitter, matches!(policy.settings().curve, Curve::Custom(_))) {
        let width = nanos(first.delay.max).max(1);
        let share = (MILLISECOND as f64 / width as f64).min(1.0);
        return Some(Warning::ZeroDelay { attempt: first.attempt, share, within });
    }
    let told = |(share, attempt), within| Warning::ZeroDelay { attempt, share, within };
    Some(match (behaviour.not_at_all, behaviour.soonest) {
        (zero, _) if zero.0 > RARE => told(zero, Duration::ZERO),
        (_, soon) if soon.0 > 0.0 => told(soon, within),
        _ => told((0.0, first.attempt), within),
    })
}

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Warning::ZeroDelay { attempt, share, within } = *warning else { return Ok(()) };
    write!(f, "a delay can be zero: before attempt {attempt}, {} of clients ", Percent(share))?;
    if within.is_zero() { f.write_str("do not wait at all") } else { write!(f, "wait less than {}", Human(within)) }
}
