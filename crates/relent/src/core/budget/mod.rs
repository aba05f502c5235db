//! Budgets: how many retries all calls on one upstream may make together.
//!
//! A limit of attempts bounds one call. When the far side is down, every call uses its limit up, and the load is multiplied
//! just then. A budget bounds the sum. There are several ways to count, each in a file of its own, behind one door.

pub(crate) mod allowance;
pub(crate) mod aws_quota;
mod build;
mod compat;
mod finagle;
mod grpc;
mod in_flight;
#[cfg(all(test, loom))]
mod models;
mod one_call;
mod ratio;
pub(crate) mod settings;
mod share;
pub(crate) mod throttle;
mod window;

use self::{
    allowance::{Allowance, Withdrawal},
    aws_quota::Quota,
    finagle::Finagle,
    grpc::Grpc,
    in_flight::InFlight,
    one_call::OneCall,
    ratio::Ratio,
    settings::BudgetSettings,
    throttle::Throttle,
};
use super::{outcome::Outcome, time::Timestamp, word::Word};

/// How many retries all calls on one upstream may make together.
///
/// Made by a `const fn` and usable in a `static`; all methods take `&self`, are lock-free in practice (a thread that the
/// system stops in the middle of closing a slot of the window costs the others the odd deposit or retry, never a wait),
/// and allocate nothing. In an [`Allowance`] the order is told in which they are called.
///
/// ```
/// use relent::{Budget, Outcome, Timestamp, Verdict};
///
/// static BUDGET: Budget = Budget::ratio(0.1).min_per_second(1);
///
/// let now = Timestamp::from_nanos(1_000_000_000);
/// for _ in 0..1000 {
///     BUDGET.start(now, 0);
/// }
/// let failed = Outcome::Failure(Verdict::Transient);
/// let granted = (0..1000).filter(|_| BUDGET.withdraw(now, failed, 0).is_some()).count();
/// assert_eq!(granted, 110, "a tenth of the calls, and one a second for ten seconds");
/// ```
///
/// What makes no sense does not compile:
///
/// ```compile_fail
/// static BUDGET: relent::Budget = relent::Budget::ratio(1.5);
/// ```
#[derive(Debug)]
pub struct Budget {
    settings: BudgetSettings,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Ratio(Ratio),
    RatioOfOneCall(Ratio<OneCall>),
    AwsQuota(Quota),
    Grpc(Grpc),
    Finagle(Finagle),
    InFlight(InFlight),
    Throttle(Throttle),
    Custom(&'static dyn Allowance),
}

impl Budget {
    /// Everything the budget says, by name.
    ///
    /// ```
    /// # use relent::{Budget, BudgetSettings};
    /// assert!(matches!(Budget::ratio(0.1).settings(), BudgetSettings::Ratio { min_per_second: 1, .. }));
    /// ```
    pub const fn settings(&self) -> BudgetSettings {
        self.settings
    }

    /// The kind, as policy files name it: `ratio`, `aws_quota`, `grpc`, `finagle`, `in_flight`, `throttle`; of a budget of
    /// the user's own, its name.
    ///
    /// ```
    /// # use relent::Budget;
    /// assert_eq!(Budget::in_flight(0.2, 3).name(), "in_flight");
    /// ```
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Ratio(kind) => kind.name(),
            Kind::RatioOfOneCall(kind) => kind.name(),
            Kind::AwsQuota(kind) => kind.name(),
            Kind::Grpc(kind) => kind.name(),
            Kind::Finagle(kind) => kind.name(),
            Kind::InFlight(kind) => kind.name(),
            Kind::Throttle(kind) => kind.name(),
            Kind::Custom(kind) => kind.name(),
        }
    }

    /// A call starts. `false` refuses its first attempt, which only [`throttle`](Budget::throttle) and budgets of the
    /// user's own do; then nothing else is told of that call.
    ///
    /// ```
    /// # use relent::{Budget, Timestamp};
    /// assert!(Budget::ratio(0.1).start(Timestamp::ZERO, 0), "first attempts are free");
    /// ```
    #[inline]
    pub fn start(&self, now: Timestamp, draw: u64) -> bool {
        match &self.kind {
            Kind::Ratio(kind) => kind.start(now, draw),
            Kind::RatioOfOneCall(kind) => kind.start(now, draw),
            Kind::AwsQuota(_) | Kind::Grpc(_) => true,
            Kind::Finagle(kind) => kind.start(now, draw),
            Kind::InFlight(kind) => kind.start(now, draw),
            Kind::Throttle(kind) => kind.start(now, draw),
            Kind::Custom(kind) => kind.start(now, draw),
        }
    }

    /// A retry is decided after an attempt that ended as `failure` says: `None` refuses it. The withdrawal belongs to
    /// [`retry`](Budget::retry) and [`outcome`](Budget::outcome) of that attempt, or to its [`refund`](Budget::refund).
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let (budget, now) = (Budget::aws_quota_2_1(), Timestamp::ZERO);
    /// assert_eq!(budget.withdraw(now, Outcome::Failure(Verdict::Transient), 0).unwrap().cost(), 14);
    /// ```
    #[inline]
    pub fn withdraw(&self, now: Timestamp, failure: Outcome, draw: u64) -> Option<Withdrawal> {
        match &self.kind {
            Kind::Ratio(kind) => kind.withdraw(now, failure, draw),
            Kind::RatioOfOneCall(kind) => kind.withdraw(now, failure, draw),
            Kind::AwsQuota(kind) => kind.withdraw(now, failure, draw),
            Kind::Grpc(kind) => kind.withdraw(now, failure, draw),
            Kind::Finagle(kind) => kind.withdraw(now, failure, draw),
            Kind::InFlight(kind) => kind.withdraw(now, failure, draw),
            Kind::Throttle(kind) => kind.withdraw(now, failure, draw),
            Kind::Custom(kind) => kind.withdraw(now, failure, draw),
        }
    }

    /// A retry starts, after its delay.
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let (budget, now) = (Budget::in_flight(0.2, 3), Timestamp::ZERO);
    /// let paid = budget.withdraw(now, Outcome::Failure(Verdict::Transient), 0).unwrap();
    /// budget.retry(now, paid);
    /// budget.outcome(now, Outcome::Success, Some(paid));
    /// assert_eq!(budget.balance(now), 3.0);
    /// ```
    #[inline]
    pub fn retry(&self, now: Timestamp, withdrawal: Withdrawal) {
        match &self.kind {
            Kind::InFlight(kind) => kind.retry(now, withdrawal),
            Kind::Custom(kind) => kind.retry(now, withdrawal),
            _ => {}
        }
    }

    /// An attempt ended; `paid` is its withdrawal, `None` for the first attempt of a call. Told before the next
    /// [`withdraw`](Budget::withdraw).
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let (budget, now) = (Budget::grpc(10, 0.5), Timestamp::ZERO);
    /// budget.outcome(now, Outcome::Failure(Verdict::Transient), None);
    /// assert_eq!(budget.balance(now), 9.0);
    /// budget.outcome(now, Outcome::Success, None);
    /// assert_eq!(budget.balance(now), 9.5);
    /// ```
    #[inline]
    pub fn outcome(&self, now: Timestamp, outcome: Outcome, paid: Option<Withdrawal>) {
        match &self.kind {
            Kind::Ratio(_) | Kind::RatioOfOneCall(_) | Kind::Finagle(_) => {}
            Kind::AwsQuota(kind) => kind.outcome(now, outcome, paid),
            Kind::Grpc(kind) => kind.outcome(now, outcome, paid),
            Kind::InFlight(kind) => kind.outcome(now, outcome, paid),
            Kind::Throttle(kind) => kind.outcome(now, outcome, paid),
            Kind::Custom(kind) => kind.outcome(now, outcome, paid),
        }
    }

    /// A retry that was paid for will never start: its sleep was cancelled, or breaker or limiter refused it.
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let (budget, now) = (Budget::aws_quota_2_1(), Timestamp::ZERO);
    /// let paid = budget.withdraw(now, Outcome::Failure(Verdict::Transient), 0).unwrap();
    /// budget.refund(now, paid); // Its sleep was cancelled.
    /// assert_eq!(budget.balance(now), 500.0);
    /// ```
    pub fn refund(&self, now: Timestamp, withdrawal: Withdrawal) {
        match &self.kind {
            Kind::Ratio(kind) => kind.refund(now, withdrawal),
            Kind::RatioOfOneCall(kind) => kind.refund(now, withdrawal),
            Kind::AwsQuota(kind) => kind.refund(now, withdrawal),
            Kind::Grpc(kind) => kind.refund(now, withdrawal),
            Kind::Finagle(kind) => kind.refund(now, withdrawal),
            Kind::InFlight(kind) => kind.refund(now, withdrawal),
            Kind::Throttle(kind) => kind.refund(now, withdrawal),
            Kind::Custom(kind) => kind.refund(now, withdrawal),
        }
    }

    /// What is left: retries that could be withdrawn in a row now (`ratio`, `in_flight`, `finagle`, which may be negative),
    /// tokens (`aws_quota`, `grpc`), or the share of attempts let through (`throttle`).
    ///
    /// ```
    /// # use relent::{Budget, Timestamp};
    /// assert_eq!(Budget::aws_quota_2_1().balance(Timestamp::ZERO), 500.0);
    /// assert_eq!(Budget::in_flight(0.2, 3).balance(Timestamp::ZERO), 3.0);
    /// ```
    pub fn balance(&self, now: Timestamp) -> f64 {
        match &self.kind {
            Kind::Ratio(kind) => kind.balance(now),
            Kind::RatioOfOneCall(kind) => kind.balance(now),
            Kind::AwsQuota(kind) => kind.balance(now),
            Kind::Grpc(kind) => kind.balance(now),
            Kind::Finagle(kind) => kind.balance(now),
            Kind::InFlight(kind) => kind.balance(now),
            Kind::Throttle(kind) => kind.balance(now),
            Kind::Custom(kind) => kind.balance(now),
        }
    }

    /// The probability with which a call that starts now is refused: 0 but for [`throttle`](Budget::throttle).
    ///
    /// ```
    /// # use relent::{Budget, Timestamp};
    /// let (budget, now) = (Budget::throttle(2.0), Timestamp::ZERO);
    /// assert_eq!(budget.rejection(now), 0.0);
    /// (0..9).for_each(|_| {
    ///     budget.start(now, u64::MAX);
    /// });
    /// assert_eq!(budget.rejection(now), 0.9, "of nine requests none was accepted");
    /// ```
    pub fn rejection(&self, now: Timestamp) -> f64 {
        match &self.kind {
            Kind::Throttle(kind) => kind.rejection(now),
            _ => 0.0,
        }
    }

    /// Attempts a call when every attempt fails and there are many calls: 1.1 for `ratio(0.1)`. `None` where it depends
    /// on more than the budget.
    ///
    /// ```
    /// # use relent::Budget;
    /// let three_layers = Budget::ratio(0.1).amplification().unwrap().powi(3);
    /// assert!((three_layers - 1.331).abs() < 1e-9, "without a budget three attempts each make it 27");
    /// ```
    pub const fn amplification(&self) -> Option<f64> {
        match self.settings {
            BudgetSettings::Ratio { ratio, .. } | BudgetSettings::Finagle { ratio, .. } => Some(1.0 + ratio),
            // They need successes, of which there are none.
            BudgetSettings::AwsQuota(_) | BudgetSettings::Grpc { .. } => Some(1.0),
            _ => None,
        }
    }

    /// Takes over what another budget has counted, when a configuration is loaded anew. What did not change is kept; what
    /// did is rescaled as gRPC does, by `new / old`: tokens by their maximum, counts by the window. A budget of another
    /// kind is not taken over, nor one [of one call](Budget::for_one_call). `old` should not be in use any more.
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let (old, new, now) = (Budget::grpc(10, 0.1), Budget::grpc(20, 0.5), Timestamp::ZERO);
    /// for _ in 0..3 {
    ///     old.outcome(now, Outcome::Failure(Verdict::Transient), None);
    /// }
    /// new.adopt(&old);
    /// assert_eq!((old.balance(now), new.balance(now)), (7.0, 14.0));
    /// ```
    pub fn adopt(&self, old: &Budget) {
        match (&self.kind, &old.kind) {
            (Kind::Ratio(new), Kind::Ratio(old)) => new.adopt(old),
            (Kind::AwsQuota(new), Kind::AwsQuota(old)) => new.adopt(old),
            (Kind::Grpc(new), Kind::Grpc(old)) => new.adopt(old),
            (Kind::Finagle(new), Kind::Finagle(old)) => new.adopt(old),
            (Kind::InFlight(new), Kind::InFlight(old)) => new.adopt(old),
            (Kind::Throttle(new), Kind::Throttle(old)) => new.adopt(old),
            _ => {}
        }
    }

    /// The same rule with nothing counted yet, for an upstream on which one call is made, and by one thread: a simulator has
    /// millions of them, and [saves](crate::Upstream::save) what each has counted. A [`ratio`](Budget::ratio) that allows
    /// such a call at most 15 retries is three words then; all else stays what it is.
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Upstream, Verdict};
    /// let (budget, now) = (Budget::ratio(0.1).min_per_second(1).for_one_call(), Timestamp::ZERO);
    /// assert!(budget.start(now, 0));
    /// let failed = Outcome::Failure(Verdict::Transient);
    /// assert_eq!((0..20).filter(|_| budget.withdraw(now, failed, 0).is_some()).count(), 10);
    /// assert_eq!(Upstream::new("bank").budget(budget).words(), 3);
    /// ```
    #[must_use]
    pub fn for_one_call(&self) -> Budget {
        let fresh = self.settings.must();
        match &fresh.kind {
            Kind::Ratio(ratio) => match ratio.of_one_call() {
                Some(one) => Budget { settings: self.settings, kind: Kind::RatioOfOneCall(one) },
                None => fresh,
            },
            _ => fresh,
        }
    }

    /// A word for the upstream to count calls in, beside one that changes with each call; `None` if there is none.
    #[inline]
    pub(super) fn beside(&self) -> Option<&Word> {
        match &self.kind {
            Kind::Ratio(kind) => Some(kind.beside()),
            Kind::Finagle(kind) => Some(kind.beside()),
            Kind::Throttle(kind) => Some(kind.beside()),
            _ => None,
        }
    }

    /// What it has counted; nothing of a budget of the user's own.
    #[inline(always)]
    pub(super) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        match &self.kind {
            Kind::RatioOfOneCall(kind) => kind.words(with),
            _ => self.words_of_others(with),
        }
    }

    #[inline(never)]
    fn words_of_others<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        match &self.kind {
            Kind::Ratio(kind) => kind.words(with),
            Kind::RatioOfOneCall(kind) => kind.words(with),
            Kind::AwsQuota(kind) => kind.words(with),
            Kind::Grpc(kind) => kind.words(with),
            Kind::Finagle(kind) => kind.words(with),
            Kind::InFlight(kind) => kind.words(with),
            Kind::Throttle(kind) => kind.words(with),
            Kind::Custom(_) => {}
        }
    }

    /// What was taken over as being in flight ends in another budget, so it is not in flight here.
    pub(crate) fn land(&self) {
        if let Kind::InFlight(kind) = &self.kind {
            kind.reset();
        }
    }

    /// As if nothing had happened yet. A budget of the user's own is left alone.
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let (budget, now) = (Budget::aws_quota_2_1(), Timestamp::ZERO);
    /// assert!(budget.withdraw(now, Outcome::TimedOut, 0).is_some());
    /// budget.reset(now);
    /// assert_eq!(budget.balance(now), 500.0);
    /// ```
    pub fn reset(&self, now: Timestamp) {
        match &self.kind {
            Kind::Ratio(kind) => kind.reset(now.as_nanos()),
            Kind::RatioOfOneCall(kind) => kind.reset(now.as_nanos()),
            Kind::AwsQuota(kind) => kind.reset(),
            Kind::Grpc(kind) => kind.reset(),
            Kind::Finagle(kind) => kind.reset(now.as_nanos()),
            Kind::InFlight(kind) => kind.reset(),
            Kind::Throttle(kind) => kind.reset(now.as_nanos()),
            Kind::Custom(_) => {}
        }
    }
}
