//! What a budget says, by name: what text is parsed into, what is checked, and what `explain` prints.

use super::{allowance::Allowance, aws_quota::AwsQuota};
use crate::core::{invalid::Invalid, time::nanos};
use core::time::Duration;

const SECOND: u64 = 1_000_000_000;
/// Beyond this it would be a window in name only, and a shorter one would be finer than clocks are.
const LONGEST: u64 = 24 * 3600 * SECOND;
const SHORTEST: u64 = 1_000_000;

/// Everything a [`Budget`](crate::Budget) says, by name.
///
/// ```
/// use relent::BudgetSettings;
/// use std::time::Duration;
///
/// let bad = BudgetSettings::Ratio { ratio: 1.5, min_per_second: 1, window: Duration::from_secs(10) };
/// let invalid = bad.budget().unwrap_err();
/// assert_eq!(invalid.key, "ratio");
/// assert_eq!(invalid.to_string(), "the ratio is not between 0 and 1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BudgetSettings {
    /// [`Budget::ratio`](crate::Budget::ratio).
    Ratio {
        /// Retries a call, 0 to 1, kept to a billionth.
        ratio: f64,
        /// Retries a second that are always allowed, at most a million.
        min_per_second: u32,
        /// Over how long both are counted: 1 ms to a day.
        window: Duration,
    },
    /// [`Budget::aws_quota_2_1`](crate::Budget::aws_quota_2_1).
    AwsQuota(AwsQuota),
    /// [`Budget::grpc`](crate::Budget::grpc).
    Grpc {
        /// How many tokens there are at most: 1 to 1000.
        max_tokens: u32,
        /// What a success gives back: 0.001 to 1000, kept to three decimals.
        token_ratio: f64,
    },
    /// [`Budget::finagle`](crate::Budget::finagle).
    Finagle {
        /// How long deposits and withdrawals count, 1 s to 60 s.
        ttl: Duration,
        /// The reserve, in retries a second; at most a million.
        min_per_second: u32,
        /// Retries a call, 0 to 1000.
        ratio: f64,
    },
    /// [`Budget::in_flight`](crate::Budget::in_flight).
    InFlight {
        /// Retries in flight for each attempt in flight, 0 to 1.
        share: f64,
        /// So many retries may be in flight in any case.
        floor: u32,
        /// Whether retries that sleep are in flight.
        sleeping: bool,
        /// Whether a share that is reached exactly allows one more: failsafe-go's rule instead of Envoy's.
        inclusive: bool,
    },
    /// [`Budget::throttle`](crate::Budget::throttle).
    Throttle {
        /// How many times more requests than accepts are let through, 1 or more.
        k: f64,
        /// Over how long they are counted: 1 ms to a day.
        window: Duration,
        /// The most that is refused, 0 to 1.
        at_most: f64,
    },
    /// [`Budget::custom`](crate::Budget::custom).
    Custom(&'static dyn Allowance),
}

impl BudgetSettings {
    pub(super) const fn problem(&self) -> Option<Invalid> {
        match *self {
            BudgetSettings::Ratio { ratio, min_per_second, window } => {
                if !(ratio >= 0.0 && ratio <= 1.0) {
                    return bad("ratio", "the ratio is not between 0 and 1", "0.1 allows a retry for every tenth call");
                }
                if let Some(invalid) = bad_rate(min_per_second) {
                    return Some(invalid);
                }
                if ratio == 0.0 && min_per_second == 0 {
                    return bad("ratio", "the budget never allows a retry", "use max_attempts = 1 for no retries");
                }
                bad_window(window)
            }
            BudgetSettings::AwsQuota(AwsQuota { capacity, cost, throttling_cost, timeout_cost }) => {
                if capacity == 0 {
                    return bad("capacity", "the quota is empty", "the AWS SDKs have 500 tokens");
                }
                if cost == 0 || throttling_cost == 0 || timeout_cost == 0 {
                    return bad("cost", "a retry costs nothing", "version 2.1 takes 14 tokens, 5 after throttling");
                }
                None
            }
            BudgetSettings::Grpc { max_tokens, token_ratio } => {
                if max_tokens == 0 || max_tokens > 1000 {
                    return bad("max_tokens", "the tokens are not between 1 and 1000", "gRFC A6 suggests 10");
                }
                if !(token_ratio >= 0.001 && token_ratio <= 1000.0) {
                    return bad("token_ratio", "the token ratio is not between 0.001 and 1000", "gRFC A6 suggests 0.1");
                }
                None
            }
            BudgetSettings::Finagle { ttl, min_per_second, ratio } => {
                if nanos(ttl) < SECOND || nanos(ttl) > 60 * SECOND {
                    return bad("ttl", "the ttl is not between 1 s and 60 s", "Finagle's default is 10s");
                }
                if !(ratio >= 0.0 && ratio <= 1000.0) {
                    return bad("ratio", "the ratio is not between 0 and 1000", "Finagle's default is 0.2");
                }
                bad_rate(min_per_second)
            }
            BudgetSettings::InFlight { share, .. } if !(share >= 0.0 && share <= 1.0) => {
                bad("in_flight", "the share is not between 0 and 1", "Envoy and failsafe-go allow 0.2")
            }
            BudgetSettings::InFlight { .. } => None,
            BudgetSettings::Throttle { k, window, at_most } => {
                if !(k >= 1.0 && k <= 1e9) {
                    return bad("throttle", "k is less than 1 or not finite", "2 lets twice what is accepted through");
                }
                if !(at_most >= 0.0 && at_most <= 1.0) {
                    return bad("at_most", "the most that is refused is not between 0 and 1", "failsafe-go has 0.9");
                }
                bad_window(window)
            }
            BudgetSettings::Custom(_) => None,
        }
    }
}

const fn bad_rate(per_second: u32) -> Option<Invalid> {
    if per_second > 1_000_000 {
        return bad("min_per_second", "more than a million retries a second are always allowed", "1 is the default");
    }
    None
}

const fn bad_window(window: Duration) -> Option<Invalid> {
    match nanos(window) {
        0 => bad("window", "the window is zero", "leave it out for the default"),
        length if length < SHORTEST => bad("window", "the window is shorter than 1 ms", "10s is usual"),
        length if length > LONGEST => bad("window", "the window is longer than a day", "10s is usual"),
        _ => None,
    }
}

const fn bad(key: &'static str, problem: &'static str, hint: &'static str) -> Option<Invalid> {
    Some(Invalid { key, problem, hint })
}
