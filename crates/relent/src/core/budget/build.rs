//! How a budget is made: its kind, and what more it is told.

use super::{
    Budget, Kind,
    allowance::Allowance,
    aws_quota::{AwsQuota, Quota},
    finagle::Finagle,
    grpc::Grpc,
    in_flight::InFlight,
    ratio::Ratio,
    settings::BudgetSettings,
    share::billionths,
    throttle::Throttle,
};
use crate::core::{invalid::Invalid, time::nanos};
use core::time::Duration;

impl Budget {
    /// At most this share of the calls may be retried, 0 to 1, and one retry a second in any case, over 10 s.
    ///
    /// Whenever a retry is granted, the window that ends there holds at most `ratio * calls + min_per_second * window`
    /// retries, that one included. The window moves in steps of a 24th: calls of its oldest step do not count any more,
    /// retries of the step before do still, so that under a steady load 96 % of the share is granted and never more than
    /// all of it.
    ///
    /// # Panics
    ///
    /// If the ratio is not between 0 and 1. In a `const` or `static`, the panic is a compile error. The same holds for
    /// every constructor here.
    ///
    /// ```compile_fail
    /// const NO: relent::Budget = relent::Budget::ratio(f64::NAN);
    /// ```
    ///
    /// Source: Finagle's `RetryBudget`; 10 % is the figure of Google's SRE book, chapter 21.
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let (budget, now) = (Budget::ratio(0.2).min_per_second(0), Timestamp::ZERO);
    /// (0..100).for_each(|_| assert!(budget.start(now, 0)));
    /// let failed = Outcome::Failure(Verdict::Transient);
    /// assert_eq!((0..100).filter(|_| budget.withdraw(now, failed, 0).is_some()).count(), 20);
    /// ```
    #[track_caller]
    pub const fn ratio(ratio: f64) -> Budget {
        BudgetSettings::Ratio { ratio, min_per_second: 1, window: Duration::from_secs(10) }.must()
    }

    /// Retries a second that are allowed however few calls there are, for [`ratio`](Budget::ratio) (1 by default) and
    /// [`finagle`](Budget::finagle) (10). A window's worth of them may come at once.
    ///
    /// # Panics
    ///
    /// If the budget has no such floor, or it is more than a million.
    ///
    /// ```compile_fail
    /// const NO: relent::Budget = relent::Budget::ratio(0.1).min_per_second(1_000_001);
    /// ```
    ///
    /// ```
    /// # use relent::{Budget, Timestamp};
    /// let budget = Budget::ratio(0.1).min_per_second(5);
    /// assert_eq!(budget.balance(Timestamp::ZERO), 50.0, "ten seconds' worth, without any calls");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn min_per_second(self, min_per_second: u32) -> Budget {
        match self.settings {
            BudgetSettings::Ratio { ratio, window, .. } => {
                BudgetSettings::Ratio { ratio, min_per_second, window }.must()
            }
            BudgetSettings::Finagle { ttl, ratio, .. } => BudgetSettings::Finagle { ttl, min_per_second, ratio }.must(),
            _ => panic!("only a ratio has a floor of retries a second"),
        }
    }

    /// Over how long [`ratio`](Budget::ratio) (10 s by default), [`throttle`](Budget::throttle) (2 min) and
    /// [`finagle`](Budget::finagle) (10 s) count.
    ///
    /// # Panics
    ///
    /// If the budget has no window, or it is not between 1 ms and a day (Finagle: 1 s and 60 s).
    ///
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Budget = relent::Budget::ratio(0.1).window(Duration::ZERO);
    /// ```
    ///
    /// ```
    /// # use relent::{Budget, Timestamp};
    /// # use std::time::Duration;
    /// let budget = Budget::ratio(0.1).min_per_second(5).window(Duration::from_secs(60));
    /// assert_eq!(budget.balance(Timestamp::ZERO), 300.0);
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn window(self, window: Duration) -> Budget {
        match self.settings {
            BudgetSettings::Ratio { ratio, min_per_second, .. } => {
                BudgetSettings::Ratio { ratio, min_per_second, window }.must()
            }
            BudgetSettings::Throttle { k, at_most, .. } => BudgetSettings::Throttle { k, window, at_most }.must(),
            BudgetSettings::Finagle { min_per_second, ratio, .. } => {
                BudgetSettings::Finagle { ttl: window, min_per_second, ratio }.must()
            }
            _ => panic!("this budget has no window"),
        }
    }

    /// The AWS SDKs' retry quota, version 2.0 (2020): 500 tokens; a retry takes 5, or 10 after a timeout; a success gives
    /// back what its last retry took, or 1.
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let budget = Budget::aws_quota_2_0();
    /// let failed = Outcome::Failure(Verdict::Transient);
    /// assert_eq!((0..200).filter(|_| budget.withdraw(Timestamp::ZERO, failed, 0).is_some()).count(), 100);
    /// ```
    pub const fn aws_quota_2_0() -> Budget {
        BudgetSettings::AwsQuota(AwsQuota::V2_0).must()
    }

    /// The AWS SDKs' retry quota, version 2.1 (2026): 500 tokens; a retry takes 14, or 5 after throttling; a success
    /// gives back what its last retry took, or 1. A far side that is down gets 35 retries and no more.
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let budget = Budget::aws_quota_2_1();
    /// let failed = Outcome::Failure(Verdict::Transient);
    /// assert_eq!((0..100).filter(|_| budget.withdraw(Timestamp::ZERO, failed, 0).is_some()).count(), 35);
    /// ```
    pub const fn aws_quota_2_1() -> Budget {
        BudgetSettings::AwsQuota(AwsQuota::V2_1).must()
    }

    /// gRPC's retry throttle: a failure takes one of `max_tokens` (1 to 1000), a success gives `token_ratio` back (at least
    /// 0.001, three decimals count); retries are allowed while more than half of the tokens are there. Source: gRFC A6.
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let (budget, now) = (Budget::grpc(10, 0.1), Timestamp::ZERO);
    /// let failed = Outcome::Failure(Verdict::Transient);
    /// for retry in [true, true, true, true, false] {
    ///     budget.outcome(now, failed, None);
    ///     assert_eq!(budget.withdraw(now, failed, 0).is_some(), retry);
    /// }
    /// ```
    ///
    /// ```compile_fail
    /// const NO: relent::Budget = relent::Budget::grpc(0, 0.1);
    /// ```
    #[track_caller]
    pub const fn grpc(max_tokens: u32, token_ratio: f64) -> Budget {
        BudgetSettings::Grpc { max_tokens, token_ratio }.must()
    }

    /// Finagle's `RetryBudget`, bit for bit: this share of the calls (0 to 1000; 0.2 is Finagle's), 10 retries a second and
    /// 10 s unless told otherwise. [`ratio`](Budget::ratio) is the same idea without its oddities.
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let (budget, now) = (Budget::finagle(0.2), Timestamp::ZERO);
    /// let failed = Outcome::Failure(Verdict::Transient);
    /// assert_eq!((0..500).filter(|_| budget.withdraw(now, failed, 0).is_some()).count(), 100);
    /// ```
    ///
    /// ```compile_fail
    /// const NO: relent::Budget = relent::Budget::finagle(-0.1);
    /// ```
    #[track_caller]
    pub const fn finagle(ratio: f64) -> Budget {
        BudgetSettings::Finagle { ttl: Duration::from_secs(10), min_per_second: 10, ratio }.must()
    }

    /// Retries in flight stay below `max(share * attempts in flight, floor)`: Envoy's `retry_budget`, 0.2 and 3 there.
    /// Retries that sleep count; see [`count_sleeping`](Budget::count_sleeping).
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let (budget, now) = (Budget::in_flight(0.2, 3), Timestamp::ZERO);
    /// let failed = Outcome::Failure(Verdict::Transient);
    /// let paid = budget.withdraw(now, failed, 0);
    /// assert_eq!(budget.balance(now), 2.0);
    /// budget.outcome(now, Outcome::Success, paid);
    /// assert_eq!(budget.balance(now), 3.0);
    /// ```
    ///
    /// ```compile_fail
    /// const NO: relent::Budget = relent::Budget::in_flight(1.1, 3);
    /// ```
    #[track_caller]
    pub const fn in_flight(share: f64, floor: u32) -> Budget {
        BudgetSettings::InFlight { share, floor, sleeping: true, inclusive: false }.must()
    }

    /// Whether retries that sleep before their attempt are in flight. If not, many can be decided at once that then start
    /// together; Envoy leaves it open.
    ///
    /// # Panics
    ///
    /// If the budget does not count what is in flight.
    ///
    /// ```compile_fail
    /// const NO: relent::Budget = relent::Budget::ratio(0.1).count_sleeping(false);
    /// ```
    ///
    /// ```
    /// # use relent::{Budget, Outcome, Timestamp, Verdict};
    /// let (budget, now) = (Budget::in_flight(0.2, 3).count_sleeping(false), Timestamp::ZERO);
    /// let paid = budget.withdraw(now, Outcome::Failure(Verdict::Transient), 0).unwrap();
    /// assert_eq!(budget.balance(now), 3.0, "it sleeps");
    /// budget.retry(now, paid);
    /// assert_eq!(budget.balance(now), 2.0, "it is in flight");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn count_sleeping(self, sleeping: bool) -> Budget {
        match self.settings {
            BudgetSettings::InFlight { share, floor, inclusive, .. } => {
                BudgetSettings::InFlight { share, floor, sleeping, inclusive }.must()
            }
            _ => panic!("this budget does not count what is in flight"),
        }
    }

    /// Refuses attempts, the first too, with the probability `max(0, (requests - k * accepts) / (requests + 1))` over
    /// 2 min, drawn by the caller. `k` = 2 is the book's; 1.1 where refusing costs the far side as much as serving.
    /// Source: Google, "Site Reliability Engineering", chapter 21.
    ///
    /// ```
    /// # use relent::{Budget, Timestamp, rng::draw};
    /// let (budget, now) = (Budget::throttle(2.0), Timestamp::ZERO);
    /// let through = (0..1000).filter(|k| budget.start(now, draw(7, *k))).count();
    /// assert!(through < 20, "nothing is accepted, so next to nothing is let through: {through}");
    /// ```
    ///
    /// ```compile_fail
    /// const NO: relent::Budget = relent::Budget::throttle(f64::INFINITY);
    /// ```
    #[track_caller]
    pub const fn throttle(k: f64) -> Budget {
        BudgetSettings::Throttle { k, window: Duration::from_secs(120), at_most: 1.0 }.must()
    }

    /// A budget of the user's own.
    ///
    /// ```
    /// # use relent::{Allowance, Budget, Outcome, Timestamp, Withdrawal};
    /// /// No retries at all while something else is restored.
    /// #[derive(Debug)]
    /// struct Nothing;
    ///
    /// impl Allowance for Nothing {
    ///     fn name(&self) -> &str {
    ///         "nothing"
    ///     }
    ///     fn withdraw(&self, _: Timestamp, _: Outcome, _: u64) -> Option<Withdrawal> {
    ///         None
    ///     }
    ///     fn refund(&self, _: Timestamp, _: Withdrawal) {}
    ///     fn balance(&self, _: Timestamp) -> f64 {
    ///         0.0
    ///     }
    /// }
    /// static BUDGET: Budget = Budget::custom(&Nothing);
    /// assert_eq!(BUDGET.name(), "nothing");
    /// ```
    pub const fn custom(rule: &'static dyn Allowance) -> Budget {
        BudgetSettings::Custom(rule).must()
    }
}

impl BudgetSettings {
    /// The budget of these settings, with nothing used up.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the setting that makes no sense, why, and what to write instead.
    pub const fn budget(self) -> Result<Budget, Invalid> {
        if let Some(invalid) = self.problem() {
            return Err(invalid);
        }
        let kind = match self {
            BudgetSettings::Ratio { ratio, min_per_second, window } => {
                Kind::Ratio(Ratio::new(billionths(ratio), min_per_second, nanos(window)))
            }
            BudgetSettings::AwsQuota(costs) => Kind::AwsQuota(Quota::new(costs)),
            BudgetSettings::Grpc { max_tokens, token_ratio } => Kind::Grpc(Grpc::new(max_tokens, token_ratio)),
            BudgetSettings::Finagle { ttl, min_per_second, ratio } => {
                Kind::Finagle(Finagle::new(nanos(ttl), min_per_second, ratio))
            }
            BudgetSettings::InFlight { share, floor, sleeping, inclusive } => {
                Kind::InFlight(InFlight::new(billionths(share), floor, sleeping, inclusive))
            }
            BudgetSettings::Throttle { k, window, at_most } => Kind::Throttle(Throttle::new(k, nanos(window), at_most)),
            BudgetSettings::Custom(rule) => Kind::Custom(rule),
        };
        Ok(Budget { settings: self, kind })
    }

    #[track_caller]
    pub(super) const fn must(self) -> Budget {
        if let Some(invalid) = self.problem() {
            invalid.refuse();
        }
        match self.budget() {
            Ok(budget) => budget,
            Err(_) => unreachable!(),
        }
    }
}
