//! botocore and the AWS SDK for JavaScript.

use crate::{
    case::{Case, Outcome, Verified, equal, same, unknown},
    drive, protect,
    python::powers,
};
use relent::AwsQuota;
use relent::compat::{Formula, Growth, OnPushback, Rounding, Spread, header, status};
use std::time::Duration;

const DOUBLING: Formula = Formula { growth: Growth::Power { factor: 2.0 }, ..Formula::SECONDS };

pub(crate) fn legacy(case: &Case) -> Outcome {
    let random_base = case.text("base").is_ok_and(|base| base == "rand");
    let rule = Formula {
        first: if random_base { 1.0 } else { case.number("base")? },
        growth: Growth::Power { factor: case.number("growth_factor")? },
        spread: if random_base { Spread::FULL } else { Spread::None },
        ..Formula::SECONDS
    };
    powers(
        case.number("growth_factor")?,
        &case.numbers("out")?,
        &drive::formula(rule, &case.steps("attempts")?, case.forced()?)?,
    )
}

/// The two versions of the standard mode differ in their scale, and in what a 429 means.
struct Standard {
    scale: fn(throttling: bool, service: &str) -> f64,
    unmodelled_429: bool,
    quota: AwsQuota,
}

pub(crate) fn standard_2020(case: &Case) -> Outcome {
    Standard { scale: |_, _| 1.0, unmodelled_429: false, quota: AwsQuota::V2_0 }.check(case)
}

pub(crate) fn standard_2026(case: &Case) -> Outcome {
    let scale = |throttling, service: &str| match throttling {
        true => 1.0,
        false if service.starts_with("dynamodb") => 0.025,
        false => 0.05,
    };
    Standard { scale, unmodelled_429: true, quota: AwsQuota::V2_1 }.check(case)
}

impl Standard {
    fn check(&self, case: &Case) -> Outcome {
        match case.text("kind")? {
            "delay_amount" => {
                let error = case.text("error")?;
                let throttling = error.contains("throttl") || error.contains("429");
                let delay =
                    drive::formula(self.rule(case, throttling), &[case.count("attempt_number")?], case.forced()?)?;
                same(&[case.number("out")?], &delay)
            }
            "x-amz-retry-after" => self.retry_after(case),
            "classify_code" => {
                let found = self.classified(self.status(case)?, Some(case.text("code")?));
                equal("retryable", case.flag("retryable")?, found.retryable)?;
                equal("throttling", case.flag("throttling")?, found.throttling)
            }
            "classify_status" => {
                let found = status::aws(self.status(case)?, None, self.unmodelled_429);
                equal("retryable", case.flag("retryable")?, found.retryable)
            }
            "classify_exception" => {
                equal("retryable", case.flag("retryable")?, status::aws_exception(case.text("exception")?))
            }
            _ => protect::aws(case, self.quota),
        }
    }

    fn status(&self, case: &Case) -> Result<u16, String> {
        u16::try_from(case.count("http_status")?).map_err(|e| e.to_string())
    }

    /// No case has a model of its operation, so that the code of a 429 is never a modelled one.
    fn classified(&self, status: u16, code: Option<&str>) -> status::Aws {
        let modelled = code.filter(|_| !self.unmodelled_429 || status != 429);
        status::aws(status, modelled, self.unmodelled_429)
    }

    fn rule(&self, case: &Case, throttling: bool) -> Formula {
        let service = case.get("service").and_then(|service| service.as_str()).unwrap_or_default();
        Formula {
            first: (self.scale)(throttling, service),
            cap: 20.0,
            spread: Spread::FULL,
            pushback: OnPushback::RaisesByAtMost(Duration::from_secs(5)),
            ..DOUBLING
        }
    }

    fn retry_after(&self, case: &Case) -> Outcome {
        let (status, attempt, random) = (case.count("status")? as u16, case.count("attempt_number")?, case.forced()?);
        let code = case.get("code").and_then(|code| code.as_str());
        let rule = self.rule(case, self.classified(status, code).throttling);
        let own = drive::formula(rule, &[attempt], random)?;
        let told = header::aws(case.text("header_ms")?);
        let expected = case.number("out")?;
        same(&[expected], &[header::aws_delay(own[0], told)])?;
        // The same as a delay of the rule, which counts nanoseconds.
        if let Some(told) = told.map(|told| Duration::from_secs_f64(told.min(1e9)))
            && let Some(delay) = drive::pushed_back(&rule, attempt, random, told)
            && (delay.as_secs_f64() - expected).abs() > 1e-8
        {
            return Err(format!("the rule waits {delay:?}"));
        }
        Ok(Verified::Ran)
    }
}

pub(crate) fn smithy_js(case: &Case) -> Outcome {
    match case.text("kind")? {
        "backoff" => {
            let rule = Formula {
                first: case.number("base_ms")?,
                growth: Growth::Power { factor: 2.0 },
                cap: 20_000.0,
                spread: Spread::FULL,
                round: Rounding::Floor,
                ..Formula::MILLIS
            };
            let ks: Vec<u32> = case.steps("retryCount")?.iter().map(|n| n + 1).collect();
            same(&case.numbers("out_ms")?, &drive::formula(rule, &ks, case.forced()?)?)
        }
        kind => unknown(kind),
    }
}
