//! resilience4j, Failsafe and Finagle on the JVM, and Polly on .NET.

use crate::{
    breakers,
    case::{Case, Outcome, Verified, call_of, equal, nanos, same, unknown, within},
    drive::{self, drive},
    go::random_delays,
    protect,
};
use relent::{
    Policy, Verdict,
    compat::{Capped, Chained, Compound, Formula, Growth, Link, Rounding, Spread, Unit, WholeSpread},
};
use std::time::Duration;

pub(crate) fn resilience4j(case: &Case) -> Outcome {
    let (name, arguments) = call_of(case.text("fn")?);
    let argument = |at: usize, default: f64| match arguments.get(at) {
        Some(text) => text.trim_end_matches("ms").parse().map_err(|e| format!("{text:?}: {e}")),
        None => Ok(default),
    };
    let uncapped = i64::MAX as f64;
    let (factor, margin, most) = match name {
        "of" | "ofDefaults" => (1.0, 0.0, uncapped),
        "ofRandomized" => (1.0, argument(1, 0.5)?, uncapped),
        "ofExponentialBackoff" => (argument(1, 1.5)?, 0.0, argument(2, uncapped)?),
        "ofExponentialRandomBackoff" => (argument(1, 1.5)?, argument(2, 0.5)?, argument(3, uncapped)?),
        _ => return unknown(name),
    };
    let rule = Compound {
        unit: Unit::Millis,
        first: argument(0, 500.0)? as i64,
        factor,
        cap: i64::MAX,
        capped: Capped::Never,
        spread: WholeSpread::Margin(margin),
        least: 1,
        most: most as i64,
        ..Compound::CENKALTI
    };
    let expected = case.wholes("out_ms")?;
    equal("delays", expected.clone(), drive::compound(rule, expected.len(), case.forced()?)?)
}

pub(crate) fn failsafe(case: &Case) -> Outcome {
    let text = case.text("fn")?;
    // Its delays are cut to what is left of a time that runs, so they are never the same twice.
    if text.to_ascii_lowercase().contains("maxduration") {
        return Ok(Verified::Skipped);
    }
    let (name, arguments) = call_of(text);
    let durations = || arguments.iter().take(2).map(|text| nanos(text)).collect::<Result<Vec<i64>, String>>();
    match name {
        "RandomDelay" => random_delays(case, case.forced()?),
        "RetryPolicy.defaults" => {
            let calls = Formula { first: 0.0, ..Formula::NANOS };
            retries(case, Policy::custom(drive::keep(calls)).max_attempts(3))
        }
        "RetryPolicy.withDelay" => {
            let rule = Compound { first: durations()?[0], factor: 1.0, ..backoff() };
            retries(case, Policy::custom(drive::keep(rule)).max_attempts(case.count("calls")?))
        }
        "RetryPolicy.withBackoff" => {
            let durations = durations()?;
            let factor = arguments.get(2).map_or(Ok(2.0), |text| text.parse()).map_err(|e| format!("{text}: {e}"))?;
            let rule = Compound { first: durations[0], factor, cap: durations[1], ..backoff() };
            retries(case, Policy::custom(drive::keep(rule)).max_attempts(case.count("calls")?))
        }
        _ if name.starts_with("CircuitBreaker") => breakers::failsafe(case, text),
        _ => unknown(text),
    }
}

const fn backoff() -> Compound {
    Compound { cap: i64::MAX, capped: Capped::After, spread: WholeSpread::None, ..Compound::CENKALTI }
}

fn retries(case: &Case, policy: Policy) -> Outcome {
    let trace = drive(&policy, case.forced()?, u32::MAX, |_| (Some(Verdict::Transient), Duration::ZERO));
    equal("calls", case.count("calls")?, trace.calls)?;
    equal("delays", case.wholes("delays_ns")?, trace.waits_ns())
}

pub(crate) fn finagle(case: &Case) -> Outcome {
    let kind = case.text("kind")?;
    if let Some(limit) = until(case, kind)? {
        return take_until(case, limit);
    }
    let expected = || case.numbers("out_ns");
    let (start, cap) = (|| case.number("start_ns"), || case.number_or("max_ns", i64::MAX as f64));
    let chain = |link| -> Outcome {
        let rule = Chained { unit: Unit::Nanos, first: start()?, cap: cap()?, link, ..Chained::SECONDS };
        let expected = expected()?;
        let fails = case.get("error_after").is_some();
        let wanted = expected.len() + usize::from(fails);
        same(&expected, &drive::chained(rule, wanted, case.forced()?)?)
    };
    let formula = |rule: Formula| -> Outcome {
        let expected = expected()?;
        let ks: Vec<u32> = (1..=expected.len() as u32).collect();
        same(&expected, &drive::formula(rule, &ks, case.forced()?)?)
    };
    match kind {
        "decorrelatedJittered" => chain(Link::Rising),
        "exponentialJittered" => chain(Link::Compounding),
        "equalJittered" => formula(Formula {
            lead: Some(start()?),
            first: start()?,
            growth: Growth::Power { factor: 2.0 },
            offset: -1,
            cap: cap()?,
            spread: Spread::Twice,
            most: cap()?,
            ..Formula::NANOS
        }),
        "exponential" => {
            let expected = case.wholes("out_ns")?;
            equal("delays", expected.clone(), drive::compound(exponential(case)?, expected.len(), case.forced()?)?)
        }
        "linear" | "const" | "constant" => formula(linear(case)?),
        "retry_budget" => protect::finagle(case),
        kind => unknown(kind),
    }
}

/// A start past the maximum is the maximum, unless nothing grows.
fn exponential(case: &Case) -> Result<Compound, String> {
    let (start, cap) = (case.whole("start_ns")?, case.number_or("max_ns", i64::MAX as f64)? as i64);
    let factor = case.number_or("multiplier", 2.0)?;
    let factor = if start >= cap && factor != 1.0 { 1.0 } else { factor };
    let (first, cap) =
        if case.number_or("multiplier", 2.0)? == 1.0 { (start, i64::MAX) } else { (start.min(cap), cap) };
    let capped = if factor == 0.0 { Capped::Never } else { Capped::Quotient };
    Ok(Compound { first, factor, cap, capped, spread: WholeSpread::None, ..Compound::CENKALTI })
}

fn linear(case: &Case) -> Result<Formula, String> {
    let step = case.number_or("offset_ns", case.number_or("increment_ns", 0.0)?)?;
    let most = if step == 0.0 { f64::INFINITY } else { case.number_or("max_ns", f64::INFINITY)? };
    Ok(Formula { first: case.number("start_ns")?, growth: Growth::Linear { step }, most, ..Formula::NANOS })
}

/// How long all delays of `takeUntil` may be together, whether its name or a field of the case says so.
fn until(case: &Case, kind: &str) -> Result<Option<i64>, String> {
    let lower = kind.to_ascii_lowercase();
    let fields = case.0.as_object().into_iter().flatten();
    let mut fields = fields.filter(|(key, value)| {
        let key = key.to_ascii_lowercase();
        value.is_number() && (key.contains("until") || key.contains("cumulative"))
    });
    if let Some((key, value)) = fields.next() {
        let unit = if key.ends_with("_s") {
            1e9
        } else if key.ends_with("_ms") {
            1e6
        } else {
            1.0
        };
        return Ok(Some((value.as_f64().unwrap_or(0.0) * unit) as i64));
    }
    let Some((_, rest)) = lower.split_once("takeuntil") else { return Ok(None) };
    let argument = rest.trim_start_matches(['(', ' ', '=', ':']);
    nanos(argument.split([')', ' ', ',']).next().unwrap_or(argument)).map(Some)
}

/// The delays before which less than `limit` was waited: the last one may pass it.
fn take_until(case: &Case, limit: i64) -> Outcome {
    let expected = case.wholes("out_ns")?;
    let kind = case.text("kind")?.to_ascii_lowercase();
    let count = expected.len() + 1;
    let ks: Vec<u32> = (1..=count as u32).collect();
    let delays: Vec<i64> = if case.has("offset_ns") || kind.contains("linear") || kind.contains("const") {
        drive::formula(linear(case)?, &ks, case.forced()?)?.iter().map(|delay| *delay as i64).collect()
    } else {
        drive::compound(exponential(case)?, count, case.forced()?)?
    };
    let mut waited = 0;
    let in_time = |delay: &i64| {
        let begins = waited < limit;
        waited += delay;
        begins
    };
    equal("delays", expected, delays.into_iter().take_while(in_time).collect())
}

pub(crate) fn polly(case: &Case) -> Outcome {
    let (base, jitter, random) = (case.number("base_ticks")?, case.flag("use_jitter")?, case.forced()?);
    let most = case.number_or("max_ticks", i64::MAX as f64)?;
    let expected = case.numbers("out_ticks")?;
    let ks: Vec<u32> = case.steps("attempt")?.iter().map(|n| n + 1).collect();
    let growth = match case.text("backoff")? {
        "Constant" => Growth::Constant,
        "Linear" => Growth::Linear { step: base },
        "Exponential" if jitter => {
            let link = Link::Smoothed { factor: 2.0 };
            let rule = Chained { unit: Unit::Ticks, first: base, cap: most, link, ..Chained::SECONDS };
            return within(&expected, &drive::chained_at(rule, &ks, random)?, 1.0);
        }
        "Exponential" => Growth::Power { factor: 2.0 },
        other => return unknown(other),
    };
    let spread = if jitter { Spread::Between { low: 0.75, width: 0.5 } } else { Spread::None };
    let rule = Formula { first: base, growth, spread, round: Rounding::Truncate, most, ..Formula::TICKS };
    within(&expected, &drive::formula(rule, &ks, random)?, 1.0).map(|_| Verified::Ran)
}
