//! Other systems' budgets by name.

use super::{Budget, BudgetSettings};
use core::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

impl Budget {
    /// The names that [`compat`](Budget::compat) knows.
    pub const COMPAT: &'static [&'static str] = &[
        "aws-2.0",
        "aws-2.1",
        "envoy",
        "failsafe-go",
        "failsafe-go-throttle",
        "finagle",
        "grpc-a6",
        "linkerd",
        "sre",
        "sre-retries",
        "tower",
    ];

    /// Another system's budget with its defaults, by name; `None` if the name is not known.
    ///
    /// | name | the same as |
    /// |---|---|
    /// | `aws-2.0`, `aws-2.1` | [`aws_quota_2_0`](Budget::aws_quota_2_0), [`aws_quota_2_1`](Budget::aws_quota_2_1) |
    /// | `envoy` | `in_flight(0.2, 3)` |
    /// | `failsafe-go` | `in_flight(0.2, 3)`, and a share reached exactly allows one more |
    /// | `failsafe-go-throttle` | `throttle(1 / 0.9)` over 1 min, at most 0.9 refused |
    /// | `finagle` | `finagle(0.2)`: 10 retries a second, 10 s |
    /// | `grpc-a6` | `grpc(10, 0.1)`, the example of gRFC A6 |
    /// | `linkerd`, `tower` | `ratio(0.2).min_per_second(10)`, without tower's truncation of shares |
    /// | `sre` | `throttle(2.0)` over 2 min |
    /// | `sre-retries` | `ratio(0.1)`: the book's 10 % of retries a client |
    ///
    /// ```
    /// use relent::Budget;
    ///
    /// assert_eq!(Budget::compat("grpc-a6").unwrap().name(), "grpc");
    /// assert!(Budget::COMPAT.iter().all(|name| Budget::compat(name).is_some()));
    /// assert!(Budget::compat("no such budget").is_none());
    /// ```
    pub fn compat(name: &str) -> Option<Budget> {
        Some(match name {
            "aws-2.0" => Budget::aws_quota_2_0(),
            "aws-2.1" => Budget::aws_quota_2_1(),
            "envoy" => Budget::in_flight(0.2, 3),
            "failsafe-go" => BudgetSettings::InFlight { share: 0.2, floor: 3, sleeping: true, inclusive: true }.must(),
            "failsafe-go-throttle" => {
                BudgetSettings::Throttle { k: 1.0 / (1.0 - 0.1), window: MINUTE, at_most: 0.9 }.must()
            }
            "finagle" => Budget::finagle(0.2),
            "grpc-a6" => Budget::grpc(10, 0.1),
            "linkerd" | "tower" => Budget::ratio(0.2).min_per_second(10),
            "sre" => Budget::throttle(2.0),
            "sre-retries" => Budget::ratio(0.1),
            _ => return None,
        })
    }
}
