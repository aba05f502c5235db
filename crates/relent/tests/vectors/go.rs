//! jpillora/backoff, go-retryablehttp and failsafe-go. cenkalti has a file of its own.

use crate::{
    case::{Case, Outcome, Verified, call_of, equal, nanos, same, unknown},
    drive, protect,
};
use relent::compat::{Compound, Formula, Growth, Random, Rounding, Spread, WholeSpread, header, status};

const NANOS: Formula = Formula { growth: Growth::Power { factor: 2.0 }, round: Rounding::Truncate, ..Formula::NANOS };

pub(crate) fn jpillora(case: &Case) -> Outcome {
    let or = |value: f64, default: f64| if value > 0.0 { value } else { default };
    let most = or(case.number("max_ns")?, 1e10);
    let least = or(case.number("min_ns")?, 1e8).min(most);
    let expected = case.numbers("out_ns")?;
    let mut ks: Vec<u32> = (1..=expected.len() as u32).collect();
    if case.has("note") {
        let shown = ks.len() - 2;
        ks[shown..].copy_from_slice(&[101, 5001]);
    }
    let rule = Formula {
        first: least,
        growth: Growth::Power { factor: or(case.number("factor")?, 2.0) },
        spread: if case.flag("jitter")? { Spread::From { low: least } } else { Spread::None },
        least,
        most,
        ..NANOS
    };
    same(&expected, &drive::formula(rule, &ks, case.forced()?)?)
}

pub(crate) fn retryablehttp(case: &Case) -> Outcome {
    let (name, retry_after) = match case.text("fn")?.split_once("+Retry-After:") {
        Some((name, rest)) => (name, rest.split(' ').next()),
        None => (case.text("fn")?, None),
    };
    match name {
        "DefaultBackoff" => {
            let rule = Formula {
                first: case.number_or("min_ns", 1e9)?,
                nan: f64::INFINITY,
                most: case.number_or("max_ns", 3e10)?,
                ..NANOS
            };
            with_retry_after(case, rule, retry_after)
        }
        "LinearJitterBackoff" | "RateLimitLinearJitterBackoff" => {
            let spread = Spread::Times { low: case.number_or("min_ns", 1e9)?, high: case.number_or("max_ns", 3e10)? };
            let rule = Formula { growth: Growth::Linear { step: 1.0 }, spread, ..Formula::NANOS };
            with_retry_after(case, rule, retry_after)
        }
        "parseRetryAfterHeader" => {
            let now = header::urllib3(&case.text("now")?.replace("UTC", "GMT"), 0.0, f64::INFINITY);
            let found = header::retryablehttp(case.text("header")?, now.map_err(|e| e.to_string())?);
            equal("ok", case.flag("ok")?, found.is_some())?;
            equal("wait", case.whole("out_ns")?, found.unwrap_or(0))
        }
        "baseRetryPolicy" => match case.get("error").and_then(|error| error.as_str()) {
            Some(error) => equal("retry", case.flag("retry")?, status::retryablehttp_error(error)),
            None => {
                let (retry, error) = status::retryablehttp(case.count("status")? as u16);
                if case.has("err") {
                    equal("error", case.flag("err")?, error)?;
                }
                equal("retry", case.flag("retry")?, retry)
            }
        },
        other => unknown(other),
    }
}

fn with_retry_after(case: &Case, rule: Formula, retry_after: Option<&str>) -> Outcome {
    let obeyed = case.get("status").is_some_and(|status| matches!(status.as_u64(), Some(429 | 503)));
    let expected = if case.need("out_ns")?.is_array() { case.numbers("out_ns")? } else { vec![case.number("out_ns")?] };
    if let Some(told) = retry_after.filter(|_| obeyed).and_then(|told| header::retryablehttp(told, 0.0)) {
        return same(&expected, &vec![told as f64; expected.len()]);
    }
    let ks: Vec<u32> = case.steps("attemptNum")?.iter().map(|n| n + 1).collect();
    same(&expected, &drive::formula(rule, &ks, case.forced()?)?)
}

pub(crate) fn failsafe(case: &Case) -> Outcome {
    match case.text("kind")? {
        "jitter" => random_delays(case, case.forced()?),
        _ => protect::failsafe_go(case),
    }
}

/// Failsafe's three kinds of random delay, in Go and in Java: the keys of a case are calls. Where Go adds up in
/// floating point, Java adds whole numbers, and the other way round.
pub(crate) fn random_delays(case: &Case, random: Random) -> Outcome {
    let object = case.0.as_object().ok_or("no object")?;
    let calls = object.iter().filter(|(key, _)| key.contains('('));
    let mut outcome = Err("no call in the case".to_owned());
    for (key, expected) in calls {
        let (name, arguments) = call_of(key);
        let &[first, second] = arguments.as_slice() else { return Err(format!("arguments of {key}")) };
        let number = || second.parse::<f64>().map_err(|e| format!("{key}: {e}"));
        let (v, spread) = match name {
            "RandomDelay" => (nanos(first)?, WholeSpread::By(nanos(second)?)),
            "jitter" => (nanos(first)?, WholeSpread::ByInFloat(nanos(second)?)),
            "RandomDelayFactor" | "factor" => (nanos(first)?, WholeSpread::Share(number()?)),
            "RandomDelayInRange" => (0, WholeSpread::InRangeInFloat { low: nanos(first)?, high: nanos(second)? }),
            "inRange" => (0, WholeSpread::InRange { low: nanos(first)?, high: nanos(second)? }),
            _ => return Err(format!("a call that this test does not know: {key}")),
        };
        let rule = Compound { first: v, factor: 1.0, cap: i64::MAX, spread, ..Compound::CENKALTI };
        outcome = equal(key, expected.as_i64(), Some(drive::compound(rule, 1, random)?[0]));
        if outcome.is_err() {
            break;
        }
    }
    outcome.map(|_| Verified::Ran)
}
