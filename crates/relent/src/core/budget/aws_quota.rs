//! The retry quota of the AWS SDKs: a bucket of tokens that retries take and successes refill, without a clock.
//!
//! Source: botocore 1.35.99 (version 2.0, 2020) and 1.44.5 (version 2.1, 2026). A success gives back what its *last*
//! retry cost, or 1 if it needed none; a failure gives nothing back. A pushback counts as throttling.

use super::allowance::{Allowance, Withdrawal};
use crate::core::{outcome::Outcome, time::Timestamp, word::Word};

/// What retries cost, and how much there is.
///
/// ```
/// use relent::{AwsQuota, Budget, BudgetSettings, Outcome, Timestamp, Verdict};
///
/// let small = BudgetSettings::AwsQuota(AwsQuota { capacity: 100, ..AwsQuota::V2_1 }).budget().unwrap();
/// let failed = Outcome::Failure(Verdict::Transient);
/// assert_eq!((0..100).filter(|_| small.withdraw(Timestamp::ZERO, failed, 0).is_some()).count(), 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwsQuota {
    /// How many tokens there are at first and at most.
    pub capacity: u32,
    /// What a retry costs.
    pub cost: u32,
    /// What a retry after throttling costs.
    pub throttling_cost: u32,
    /// What a retry after a timeout costs.
    pub timeout_cost: u32,
}

impl AwsQuota {
    /// Version 2.0 of the standard mode, of 2020: 500 tokens; 5 a retry, 10 after a timeout.
    pub const V2_0: AwsQuota = AwsQuota { capacity: 500, cost: 5, throttling_cost: 5, timeout_cost: 10 };
    /// Version 2.1, of 2026: 500 tokens; 14 a retry, 5 after throttling.
    pub const V2_1: AwsQuota = AwsQuota { capacity: 500, cost: 14, throttling_cost: 5, timeout_cost: 14 };

    const fn of(&self, failure: Outcome) -> u32 {
        match failure {
            Outcome::TimedOut => self.timeout_cost,
            failure if failure.is_throttled() => self.throttling_cost,
            _ => self.cost,
        }
    }
}

#[derive(Debug)]
pub(super) struct Quota {
    pub(super) costs: AwsQuota,
    left: Word,
}

impl Quota {
    pub(super) const fn new(costs: AwsQuota) -> Quota {
        Quota { costs, left: Word::new(costs.capacity as u64) }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        with(&self.left);
    }

    fn give(&self, tokens: u32) {
        let most = u64::from(self.costs.capacity);
        self.left.update(|left| (left < most).then(|| most.min(left + u64::from(tokens))));
    }

    pub(super) fn adopt(&self, old: &Quota) {
        let (new, before) = (u64::from(self.costs.capacity), u64::from(old.costs.capacity));
        self.left.set(old.left.get() * new / before.max(1));
    }

    pub(super) fn reset(&self) {
        self.left.set(u64::from(self.costs.capacity));
    }
}

impl Allowance for Quota {
    fn name(&self) -> &str {
        "aws_quota"
    }

    #[inline]
    fn withdraw(&self, _: Timestamp, failure: Outcome, _: u64) -> Option<Withdrawal> {
        let cost = self.costs.of(failure);
        self.left.update(|left| left.checked_sub(u64::from(cost))).map(|_| Withdrawal::new(cost, 0))
    }

    #[inline]
    fn outcome(&self, _: Timestamp, outcome: Outcome, paid: Option<Withdrawal>) {
        if outcome == Outcome::Success {
            self.give(paid.map_or(1, Withdrawal::cost));
        }
    }

    fn refund(&self, _: Timestamp, withdrawal: Withdrawal) {
        self.give(withdrawal.cost());
    }

    /// Tokens, not retries: what a retry costs depends on the failure.
    fn balance(&self, _: Timestamp) -> f64 {
        self.left.get() as f64
    }
}
