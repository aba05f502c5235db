//! What is wrong with a policy on an upstream: combinations that hurt, each with its number.

mod breaker_too_short;
mod endless_without_budget;
mod hedge_without_budget;
mod multiplies;
mod no_floor;
#[cfg(all(test, feature = "std"))]
mod tests;

pub(super) use self::{
    breaker_too_short::RULE as BREAKER_TOO_SHORT, endless_without_budget::RULE as ENDLESS_WITHOUT_BUDGET,
    hedge_without_budget::RULE as HEDGE_WITHOUT_BUDGET, multiplies::RULE as MULTIPLIES, no_floor::RULE as NO_FLOOR,
};

use super::{Check, Warning};
use crate::core::{policy::Policy, upstream_settings::UpstreamSettings};

/// The worst first.
const RULES: [super::Rule; 4] = [ENDLESS_WITHOUT_BUDGET, HEDGE_WITHOUT_BUDGET, BREAKER_TOO_SHORT, NO_FLOOR];

/// More attempts at the end of a chain than this for each call at its beginning are warned of.
const MOST: f64 = 4.0;

impl UpstreamSettings {
    /// What the user of this policy on this upstream should know, the worst first, beside the policy's own
    /// [`warnings`](Policy::warnings).
    ///
    /// ```
    /// use relent::{Hedge, Policy, UpstreamSettings};
    /// use std::time::Duration;
    ///
    /// let hedge = Some(Hedge::after(Duration::from_millis(50)).settings());
    /// let search = UpstreamSettings { hedge, ..UpstreamSettings::default() };
    /// let warning = search.warnings(&Policy::default()).next().unwrap();
    /// assert_eq!(warning.name(), "hedge_without_budget");
    /// assert_eq!(warning.to_string(), "hedges have no budget: a far side that is slow gets up to 2 attempts instead of 1");
    /// ```
    pub fn warnings(&self, policy: &Policy) -> impl Iterator<Item = Warning> + use<> {
        RULES
            .map(|rule| match rule.check {
                Check::Upstream(check) => check(policy, self),
                _ => None,
            })
            .into_iter()
            .flatten()
    }
}

impl Warning {
    /// What retries of several layers make of one call, when the lowest fails at every attempt: the product of the
    /// layers' [`amplification`](UpstreamSettings::amplification)s, if that is more than 4. A layer that has retried and
    /// lets the next above retry as well multiplies the load; `None` if all of it is no more.
    ///
    /// ```
    /// use relent::{Budget, Policy, UpstreamSettings, Warning};
    ///
    /// let (read, bare) = (Policy::default().max_attempts(3), UpstreamSettings::default());
    /// let warning = Warning::of_chain([(&read, &bare); 3]).unwrap();
    /// assert_eq!(warning.to_string(), "retries multiply: 3 layers make up to 27 attempts of one call");
    ///
    /// let bank = UpstreamSettings { budget: Some(Budget::ratio(0.1).settings()), ..bare };
    /// assert_eq!(Warning::of_chain([(&read, &bank); 3]), None, "1.331");
    /// ```
    pub fn of_chain<'a>(layers: impl IntoIterator<Item = (&'a Policy, &'a UpstreamSettings)>) -> Option<Warning> {
        let (mut count, mut product) = (0, 1.0);
        for (policy, upstream) in layers {
            count += 1;
            product *= upstream.amplification(policy).unwrap_or(f64::INFINITY);
        }
        (count > 1 && product > MOST).then_some(Warning::Multiplies { layers: count, amplification: product })
    }
}
