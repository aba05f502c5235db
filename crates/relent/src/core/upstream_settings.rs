//! Everything an upstream says, by name: what text is parsed into, what `lint` judges and `explain` prints.

use super::{
    breaker::BreakerSettings, budget::settings::BudgetSettings, hedge::HedgeSettings, limiter::settings::LimitSettings,
    policy::Policy, schedule::Row,
};
use core::time::Duration;

/// What protects one far side, as settings. Those that are not there protect from nothing.
///
/// ```
/// use relent::{Budget, Policy, UpstreamSettings};
///
/// const READ: Policy = Policy::immediate().max_attempts(3);
/// let none = UpstreamSettings::default();
/// let bank = UpstreamSettings { budget: Some(Budget::ratio(0.1).settings()), ..none };
///
/// // Attempts a call when every attempt fails: through three layers 27, or 1.331.
/// assert_eq!(none.amplification(&READ), Some(3.0));
/// assert!((bank.amplification(&READ).unwrap().powi(3) - 1.331).abs() < 1e-9);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UpstreamSettings {
    /// How many retries are allowed.
    pub budget: Option<BudgetSettings>,
    /// What stops attempts while it fails.
    pub breaker: Option<BreakerSettings>,
    /// How many attempts, or how many at a time.
    pub limit: Option<LimitSettings>,
    /// When a second attempt starts before the first has failed.
    pub hedge: Option<HedgeSettings>,
}

/// More attempts than anybody counts one by one.
const MOST_ROWS: usize = 1_000;

impl UpstreamSettings {
    /// Attempts a call when every attempt fails and there are many calls, by the policy's attempts, hedges and budget: a
    /// floor of the budget comes on top, and a breaker that opens lowers it. `None` if nothing bounds it.
    pub fn amplification(&self, policy: &Policy) -> Option<f64> {
        let hedged = self.hedge.map_or(1.0, |hedge| 1.0 + f64::from(hedge.at_most));
        let by_policy = most_attempts(policy).map(|attempts| attempts as f64 * hedged);
        match (by_policy, self.budget.and_then(by_budget)) {
            (Some(by_policy), Some(by_budget)) => Some(if by_policy < by_budget { by_policy } else { by_budget }),
            (by_policy, by_budget) => by_policy.or(by_budget),
        }
    }
}

/// Attempts a call that a budget allows when every attempt fails.
fn by_budget(settings: BudgetSettings) -> Option<f64> {
    match settings {
        // So many of those in flight may be retries.
        BudgetSettings::InFlight { share, .. } if share < 1.0 => Some(1.0 / (1.0 - share)),
        settings => settings.budget().ok()?.amplification(),
    }
}

/// The most attempts of a call; `None` if there is no end to them.
pub(crate) fn most_attempts(policy: &Policy) -> Option<u64> {
    let settings = policy.settings();
    let latest = policy.latest_start();
    let within = |total: fn(&Row) -> Duration| {
        let is_within = |row: &Row| latest.is_none_or(|latest| total(row) <= latest);
        policy.schedule().take(MOST_ROWS).take_while(is_within).count() as u64
    };
    let mut rows = within(|row| row.total.min);
    if rows >= MOST_ROWS as u64 && settings.max_attempts.is_none() && latest.is_some() {
        // Delays that can all be zero: the mean of many calls is limited, though no single call is.
        rows = within(|row| row.total.mean);
    }
    match settings.max_attempts {
        Some(most) if rows >= MOST_ROWS as u64 => Some(u64::from(most)),
        None if rows >= MOST_ROWS as u64 => None,
        _ => Some(rows + 1),
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;
    use crate::{Budget, Hedge};

    const ONE: &[Duration] = &[Duration::from_secs(1)];
    const NONE: UpstreamSettings = UpstreamSettings { budget: None, breaker: None, limit: None, hedge: None };

    fn with(budget: &Budget) -> UpstreamSettings {
        UpstreamSettings { budget: Some(budget.settings()), ..NONE }
    }

    #[test]
    fn what_bounds_the_attempts_of_a_call() {
        let five = Policy::exponential(Duration::from_secs(1)).max_attempts(5);
        assert_eq!(NONE.amplification(&five), Some(5.0));
        assert_eq!(NONE.amplification(&five.unlimited_attempts()), None);
        assert_eq!(NONE.amplification(&Policy::list(ONE)), Some(2.0));
        let elapsed = Policy::constant(Duration::from_secs(1)).jitter(crate::Jitter::None).unlimited_attempts();
        assert_eq!(NONE.amplification(&elapsed.max_elapsed(Duration::from_secs(3))), Some(4.0));
        assert_eq!(NONE.amplification(&elapsed.timeout(Duration::from_secs(3))), Some(3.0), "none at the third second");
        let spread = elapsed.jitter(crate::Jitter::Full);
        assert_eq!(NONE.amplification(&spread.max_elapsed(Duration::from_secs(3))), Some(7.0), "by the mean");
        assert_eq!(NONE.amplification(&five.max_attempts(u32::MAX - 1)), Some(f64::from(u32::MAX - 1)));
        assert_eq!(with(&Budget::ratio(0.1)).amplification(&five.unlimited_attempts()), Some(1.1));
        assert_eq!(with(&Budget::aws_quota_2_1()).amplification(&five), Some(1.0));
        assert_eq!(with(&Budget::in_flight(0.2, 3)).amplification(&five), Some(1.25));
        assert_eq!(with(&Budget::in_flight(1.0, 3)).amplification(&five), Some(5.0));
        assert_eq!(with(&Budget::throttle(2.0)).amplification(&five), Some(5.0), "the policy's own limit");
        assert_eq!(with(&Budget::ratio(1.0)).amplification(&five.max_attempts(1)), Some(1.0));
        let hedged = UpstreamSettings { hedge: Some(Hedge::after(Duration::from_millis(50)).settings()), ..NONE };
        assert_eq!(hedged.amplification(&five), Some(10.0));
    }
}
