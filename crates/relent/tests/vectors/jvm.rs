//! resilience4j, Failsafe and Finagle on the JVM, and Polly on .NET.

use crate::{
    case::{Case, Outcome, Verified, call_of, equal, nanos, same, unknown, within},
    drive::{self, drive},
    go::random_delays,
    protect,
};
use relent::{
    Policy, Verdict,
    compat::{Chained, Compound, Formula, Growth, Limit, Link, Rounding, Spread, Unit, WholeSpread},
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
        limit: Limit::Never,
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
        _ => unknown(text),
    }
}

const fn backoff() -> Compound {
    Compound { cap: i64::MAX, limit: Limit::After, spread: WholeSpread::None, ..Compound::CENKALTI }
}

fn retries(case: &Case, policy: Policy) -> Outcome {
    let trace = drive(&policy, case.forced()?, u32::MAX, |_| (Some(Verdict::Transient), Duration::ZERO));
    equal("calls", case.count("calls")?, trace.calls)?;
    equal("delays", case.wholes("delays_ns")?, trace.waits_ns())
}

pub(crate) fn finagle(case: &Case) -> Outcome {
    let kind = case.text("kind")?;
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
            let rule = Compound {
                first: start()? as i64,
                factor: case.number_or("multiplier", 2.0)?,
                cap: cap()? as i64,
                limit: Limit::After,
                spread: WholeSpread::None,
                ..Compound::CENKALTI
            };
            let expected = case.wholes("out_ns")?;
            equal("delays", expected.clone(), drive::compound(rule, expected.len(), case.forced()?)?)
        }
        "linear" | "const" | "constant" => formula(Formula {
            first: start()?,
            growth: Growth::Linear { step: case.number_or("offset_ns", case.number_or("increment_ns", 0.0)?)? },
            most: cap()?,
            ..Formula::NANOS
        }),
        "retry_budget" => protect::finagle(case),
        kind => unknown(kind),
    }
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
            return within(&expected, &drive::chained(rule, ks.len(), random)?, 1.0);
        }
        "Exponential" => Growth::Power { factor: 2.0 },
        other => return unknown(other),
    };
    let spread = if jitter { Spread::Between { low: 0.75, width: 0.5 } } else { Spread::None };
    let rule = Formula { first: base, growth, spread, round: Rounding::Truncate, most, ..Formula::TICKS };
    within(&expected, &drive::formula(rule, &ks, random)?, 1.0).map(|_| Verified::Ran)
}
