//! Everything about an upstream at one moment.

use super::Upstream;
use crate::core::{
    breaker::{Breaker, BreakerSnapshot},
    hedge::Hedge,
    limiter::LimitSnapshot,
    time::Timestamp,
};
use core::time::Duration;

/// Everything about an upstream at one moment, and what was done since the start. Always
/// `attempts == calls - (calls refused before their first attempt) + retries + hedges`.
///
/// ```
/// use relent::{Budget, Policy, Upstream};
///
/// let bank = Upstream::new("bank").budget(Budget::aws_quota_2_1());
/// let down = Policy::immediate().max_attempts(3).on(&bank).retry_blocking(|_| Err::<(), _>("down"));
/// assert!(down.is_err());
/// let seen = bank.snapshot();
/// assert_eq!((seen.calls, seen.attempts, seen.retries, seen.balance), (1, 3, 2, Some(472.0)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct UpstreamSnapshot {
    /// The breaker: its state, since when, until when. `None` without one.
    pub breaker: Option<BreakerSnapshot>,
    /// What is left in the budget: see [`Budget::balance`](crate::Budget::balance). `None` without one.
    pub balance: Option<f64>,
    /// The limit and what is in flight. `None` without one.
    pub limit: Option<LimitSnapshot>,
    /// After how long a hedge starts. `None` without one, or while too little is known.
    pub hedge_after: Option<Duration>,
    /// Calls, those refused before their first attempt included.
    pub calls: u64,
    /// Attempts let through: first ones, retries and hedges.
    pub attempts: u64,
    /// Attempts that were retries.
    pub retries: u64,
    /// Attempts that were hedges.
    pub hedges: u64,
    /// Attempts that the breaker refused, first ones and retries; one call that waits and asks again counts once.
    pub refused_open: u64,
    /// Attempts that the limiter refused.
    pub refused_shed: u64,
    /// Retries, and for some budgets first attempts, that the budget refused.
    pub refused_budget: u64,
}

impl Upstream {
    /// Everything at `now`.
    ///
    /// ```
    /// # use relent::{Budget, Timestamp, Upstream};
    /// let bank = Upstream::new("bank").budget(Budget::aws_quota_2_1());
    /// assert_eq!(bank.snapshot_at(Timestamp::ZERO).balance, Some(500.0));
    /// ```
    pub fn snapshot_at(&self, now: Timestamp) -> UpstreamSnapshot {
        let counts = &self.counts;
        let (retries, hedges, started) = (counts.retries.get(), counts.hedges.get(), self.started());
        let (first, later) = (counts.first(), counts.later());
        UpstreamSnapshot {
            breaker: self.breaker.as_ref().map(|breaker: &Breaker| breaker.snapshot(now)),
            balance: self.budget.as_ref().map(|budget| budget.balance(now)),
            limit: self.limit.as_ref().map(|limit| limit.snapshot(now)),
            hedge_after: self.hedge.as_ref().and_then(Hedge::delay),
            calls: started.wrapping_add(first.into_iter().fold(0, u64::wrapping_add)),
            attempts: started.wrapping_add(retries).wrapping_add(hedges),
            retries,
            hedges,
            refused_open: first[0].wrapping_add(later[0]),
            refused_shed: first[1].wrapping_add(later[1]),
            refused_budget: first[2].wrapping_add(later[2]),
        }
    }
}
