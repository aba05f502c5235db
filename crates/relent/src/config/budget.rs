//! Budgets as text: `{ ratio = 0.1, min_per_second = 1 }`, `{ grpc = 10, token_ratio = 0.1 }`, `"aws-2.1"`.
//!
//! The key of a kind's main number names the kind.

use super::part::{Fields, Read, Settings, Written};
use crate::{AwsQuota, Budget, BudgetSettings, Invalid};
use std::{format, string::String, vec::Vec};

const KINDS: [&str; 6] = ["ratio", "aws_quota", "grpc", "finagle", "in_flight", "throttle"];

impl Settings for BudgetSettings {
    const NAME: &'static str = "budget";
    const LIKE: &'static str = "budget = { ratio = 0.1, min_per_second = 1 } or \"aws-2.1\"; \
                                on a flag ratio=0.1,min_per_second=1";

    fn named(word: &str) -> Result<BudgetSettings, Vec<&'static str>> {
        let of_kind = KINDS.contains(&word).then(|| of_kind(word));
        let budget = of_kind.or_else(|| Budget::compat(word).map(|budget| budget.settings()));
        budget.ok_or_else(|| KINDS.into_iter().chain(Budget::COMPAT.iter().copied()).collect())
    }

    fn read(fields: &mut Fields<'_>, start: Option<BudgetSettings>) -> Read<BudgetSettings> {
        let start = match (start, fields.kind(&KINDS)?) {
            (Some(start), Some(kind)) if kind_of(&start) != kind => {
                let problem = format!("this budget is of kind {}, and {kind} is another", kind_of(&start));
                return Err(fields.wrong(problem, "leave one of them out"));
            }
            (Some(start), _) => start,
            (None, Some(kind)) => of_kind(kind),
            (None, None) => {
                fields.of_some_kind("a budget", &KINDS, keys)?;
                return Err(fields.wrong("nothing says how many retries the budget allows", Self::LIKE));
            }
        };
        let read = read_over(fields, start)?;
        let kind = kind_of(&read);
        fields.finish(&format!("a {kind} budget"), keys(kind))?;
        Ok(read)
    }

    fn check(&self) -> Result<(), Invalid> {
        self.budget().map(drop)
    }

    fn key_of(&self, key: &'static str) -> &'static str {
        match (self, key) {
            (BudgetSettings::Finagle { .. }, "ratio") => "finagle",
            (BudgetSettings::Grpc { .. }, "max_tokens") => "grpc",
            (BudgetSettings::AwsQuota(_), "capacity") => "aws_quota",
            (BudgetSettings::AwsQuota(costs), "cost") if costs.throttling_cost == 0 => "throttling_cost",
            (BudgetSettings::AwsQuota(costs), "cost") if costs.timeout_cost == 0 => "timeout_cost",
            (_, key) => key,
        }
    }
}

fn read_over(fields: &mut Fields<'_>, start: BudgetSettings) -> Read<BudgetSettings> {
    use BudgetSettings::*;
    Ok(match start {
        Ratio { ratio, min_per_second, window } => Ratio {
            ratio: fields.float("ratio")?.unwrap_or(ratio),
            min_per_second: fields.whole("min_per_second")?.unwrap_or(min_per_second),
            window: fields.duration("window")?.unwrap_or(window),
        },
        AwsQuota(costs) => AwsQuota(crate::AwsQuota {
            capacity: fields.whole("aws_quota")?.unwrap_or(costs.capacity),
            cost: fields.whole("cost")?.unwrap_or(costs.cost),
            throttling_cost: fields.whole("throttling_cost")?.unwrap_or(costs.throttling_cost),
            timeout_cost: fields.whole("timeout_cost")?.unwrap_or(costs.timeout_cost),
        }),
        Grpc { max_tokens, token_ratio } => Grpc {
            max_tokens: fields.whole("grpc")?.unwrap_or(max_tokens),
            token_ratio: fields.float("token_ratio")?.unwrap_or(token_ratio),
        },
        Finagle { ttl, min_per_second, ratio } => Finagle {
            ratio: fields.float("finagle")?.unwrap_or(ratio),
            min_per_second: fields.whole("min_per_second")?.unwrap_or(min_per_second),
            ttl: fields.duration("ttl")?.unwrap_or(ttl),
        },
        InFlight { share, floor, sleeping, inclusive } => InFlight {
            share: fields.float("in_flight")?.unwrap_or(share),
            floor: fields.whole("floor")?.unwrap_or(floor),
            sleeping: fields.flag("sleeping")?.unwrap_or(sleeping),
            inclusive: fields.flag("inclusive")?.unwrap_or(inclusive),
        },
        Throttle { k, window, at_most } => Throttle {
            k: fields.float("throttle")?.unwrap_or(k),
            window: fields.duration("window")?.unwrap_or(window),
            at_most: fields.float("at_most")?.unwrap_or(at_most),
        },
        Custom(rule) => Custom(rule),
    })
}

fn of_kind(kind: &str) -> BudgetSettings {
    let budget = match kind {
        "aws_quota" => return BudgetSettings::AwsQuota(AwsQuota::V2_1),
        "grpc" => Budget::grpc(10, 0.1),
        "finagle" => Budget::finagle(0.2),
        "in_flight" => Budget::in_flight(0.2, 3),
        "throttle" => Budget::throttle(2.0),
        _ => Budget::ratio(0.1),
    };
    budget.settings()
}

pub(super) fn kind_of(settings: &BudgetSettings) -> &'static str {
    match settings {
        BudgetSettings::Ratio { .. } => "ratio",
        BudgetSettings::AwsQuota(_) => "aws_quota",
        BudgetSettings::Grpc { .. } => "grpc",
        BudgetSettings::Finagle { .. } => "finagle",
        BudgetSettings::InFlight { .. } => "in_flight",
        BudgetSettings::Throttle { .. } => "throttle",
        BudgetSettings::Custom(_) => "custom",
    }
}

fn keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "ratio" => &["ratio", "min_per_second", "window", "compat"],
        "aws_quota" => &["aws_quota", "cost", "throttling_cost", "timeout_cost", "compat"],
        "grpc" => &["grpc", "token_ratio", "compat"],
        "finagle" => &["finagle", "min_per_second", "ttl", "compat"],
        "in_flight" => &["in_flight", "floor", "sleeping", "inclusive", "compat"],
        "throttle" => &["throttle", "window", "at_most", "compat"],
        _ => &[],
    }
}

/// Every key given. A rule of the user's own has no text that could be read back.
pub(super) fn write(settings: &BudgetSettings) -> String {
    let text = Written::new();
    match *settings {
        BudgetSettings::Ratio { ratio, min_per_second, window } => {
            text.number("ratio", ratio).whole("min_per_second", min_per_second).duration("window", window)
        }
        BudgetSettings::AwsQuota(costs) => text
            .whole("aws_quota", costs.capacity)
            .whole("cost", costs.cost)
            .whole("throttling_cost", costs.throttling_cost)
            .whole("timeout_cost", costs.timeout_cost),
        BudgetSettings::Grpc { max_tokens, token_ratio } => {
            text.whole("grpc", max_tokens).number("token_ratio", token_ratio)
        }
        BudgetSettings::Finagle { ttl, min_per_second, ratio } => {
            text.number("finagle", ratio).whole("min_per_second", min_per_second).duration("ttl", ttl)
        }
        BudgetSettings::InFlight { share, floor, sleeping, inclusive } => text
            .number("in_flight", share)
            .whole("floor", floor)
            .flag("sleeping", sleeping)
            .flag("inclusive", inclusive),
        BudgetSettings::Throttle { k, window, at_most } => {
            text.number("throttle", k).duration("window", window).number("at_most", at_most)
        }
        BudgetSettings::Custom(_) => text.word("compat", "custom"),
    }
    .end()
}
