//! Hedges that nothing pays for.

use crate::core::{policy::Policy, upstream_settings::UpstreamSettings};
use crate::lint::{Check, Rule, Warning};
use core::fmt;

pub(in crate::lint) const RULE: Rule = Rule {
    name: "hedge_without_budget",
    hint: "give the upstream a budget: hedges are paid from it",
    check: Check::Upstream(check),
    tell,
    is_note: |_| false,
};

fn check(_: &Policy, upstream: &UpstreamSettings) -> Option<Warning> {
    let hedge = upstream.hedge.filter(|_| upstream.budget.is_none())?;
    Some(Warning::HedgeWithoutBudget { attempts: hedge.at_most.saturating_add(1) })
}

fn tell(warning: &Warning, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Warning::HedgeWithoutBudget { attempts } = *warning else { return Ok(()) };
    write!(f, "hedges have no budget: a far side that is slow gets up to {attempts} attempts instead of 1")
}
