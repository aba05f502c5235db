//! The door that every budget stands behind, the user's own included.

use crate::core::{outcome::Outcome, time::Timestamp};
use core::fmt;

/// A rule for how many retries the calls on one upstream may make together.
///
/// Told of a call that starts, of the outcome of each attempt, and of refunds; asked for a withdrawal when a retry is
/// decided. All of it by many threads at once, through `&self`. The order in one call:
///
/// 1. [`start`](Allowance::start); `false` refuses the first attempt, and nothing follows.
/// 2. [`outcome`](Allowance::outcome) of each attempt, with its withdrawal unless it was the first.
/// 3. [`withdraw`](Allowance::withdraw) when a retry is *decided*, before its delay; `None` gives the call up.
/// 4. [`retry`](Allowance::retry) when the delay is over and the attempt starts; then 2 again. Or
///    [`refund`](Allowance::refund), if that attempt will never start.
///
/// ```
/// use relent::{Allowance, Budget, Outcome, Timestamp, Verdict, Withdrawal};
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// /// So many retries, ever.
/// #[derive(Debug)]
/// struct Total(AtomicU64);
///
/// impl Allowance for Total {
///     fn name(&self) -> &str {
///         "total"
///     }
///     fn withdraw(&self, _: Timestamp, _: Outcome, _draw: u64) -> Option<Withdrawal> {
///         self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).ok().map(|_| Withdrawal::new(1, 0))
///     }
///     fn refund(&self, _: Timestamp, _: Withdrawal) {
///         self.0.fetch_add(1, Relaxed);
///     }
///     fn balance(&self, _: Timestamp) -> f64 {
///         self.0.load(Relaxed) as f64
///     }
/// }
///
/// static TWO: Total = Total(AtomicU64::new(2));
/// static BUDGET: Budget = Budget::custom(&TWO);
/// let failed = Outcome::Failure(Verdict::Transient);
/// let granted = (0..5).filter(|_| BUDGET.withdraw(Timestamp::ZERO, failed, 0).is_some()).count();
/// assert_eq!(granted, 2);
/// ```
pub trait Allowance: fmt::Debug + Send + Sync {
    /// A short name, for logs and `explain`.
    fn name(&self) -> &str;

    /// A call starts. `false` refuses its first attempt; most budgets never do. `draw` is a random number of the
    /// caller's.
    fn start(&self, now: Timestamp, draw: u64) -> bool {
        _ = (now, draw);
        true
    }

    /// A retry is decided after an attempt ended as `failure` says: may it be made?
    fn withdraw(&self, now: Timestamp, failure: Outcome, draw: u64) -> Option<Withdrawal>;

    /// A retry that was paid for starts, after its delay.
    fn retry(&self, now: Timestamp, withdrawal: Withdrawal) {
        _ = (now, withdrawal);
    }

    /// An attempt ended. `paid` is its withdrawal, `None` for the first attempt of a call.
    fn outcome(&self, now: Timestamp, outcome: Outcome, paid: Option<Withdrawal>) {
        _ = (now, outcome, paid);
    }

    /// A retry that was paid for will never start.
    fn refund(&self, now: Timestamp, withdrawal: Withdrawal);

    /// How many retries could be withdrawn now, in a row.
    fn balance(&self, now: Timestamp) -> f64;
}

/// The same rule, not one that does the same.
impl PartialEq for dyn Allowance {
    fn eq(&self, other: &dyn Allowance) -> bool {
        core::ptr::addr_eq(self, other)
    }
}

/// What a retry was paid with: kept from the decision until the outcome of that attempt, or its refund.
///
/// ```
/// use relent::{Budget, Outcome, Timestamp, Verdict};
///
/// let (budget, now) = (Budget::aws_quota_2_1(), Timestamp::ZERO);
/// let paid = budget.withdraw(now, Outcome::Failure(Verdict::Transient), 0).unwrap();
/// assert_eq!((paid.cost(), budget.balance(now)), (14, 486.0));
/// budget.retry(now, paid); // The retry starts ...
/// budget.outcome(now, Outcome::Success, Some(paid)); // ... and succeeds.
/// assert_eq!(budget.balance(now), 500.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    cost: u32,
    mark: u64,
}

impl Withdrawal {
    /// For an [`Allowance`] of one's own: what it cost, and eight bytes that come back with it.
    ///
    /// ```
    /// # use relent::Withdrawal;
    /// let paid = Withdrawal::new(14, 7);
    /// assert_eq!((paid.cost(), paid.mark()), (14, 7));
    /// ```
    pub const fn new(cost: u32, mark: u64) -> Withdrawal {
        Withdrawal { cost, mark }
    }

    /// What it cost, in the budget's own tokens.
    pub const fn cost(self) -> u32 {
        self.cost
    }

    /// The eight bytes of the budget's own.
    ///
    /// ```
    /// # use relent::Withdrawal;
    /// assert_eq!(Withdrawal::new(14, 7).mark(), 7);
    /// ```
    pub const fn mark(self) -> u64 {
        self.mark
    }
}
