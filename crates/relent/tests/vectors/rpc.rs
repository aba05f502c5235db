//! gRPC and the Google clients in Go, and the proxies: Envoy, Linkerd.

use crate::{
    case::{Case, Outcome, close, equal, nanos, same, unknown},
    drive, protect,
};
use relent::compat::{Capped, Compound, Formula, Growth, Random, Rounding, Spread, Unit, WholeSpread, header};

pub(crate) fn a6(case: &Case) -> Outcome {
    if let Some(kind) = case.get("kind").and_then(|kind| kind.as_str())
        && Case::is_later(kind)
    {
        return if kind.starts_with("throttle") && case.has("trace") { protect::grpc(case) } else { unknown(kind) };
    }
    let rule = Formula {
        first: case.number("initial_s")?,
        growth: Growth::Power { factor: case.number("multiplier")? },
        cap: case.number("max_s")?,
        spread: Spread::Between { low: 0.8, width: 0.4 },
        ..Formula::SECONDS
    };
    close(&case.numbers("out_s")?, &drive::formula(rule, &case.steps("retry")?, case.forced()?)?, 1e-12)
}

pub(crate) fn grpc_js(case: &Case) -> Outcome {
    match case.text("kind")? {
        "backoff_ms" => {
            let policy = Case(case.need("retryPolicy")?);
            let seconds = |key| -> Result<f64, String> {
                policy.text(key)?.trim_end_matches('s').parse().map_err(|e| format!("{key}: {e}"))
            };
            let factor = policy.number("backoffMultiplier")?;
            let rule = Formula {
                first: seconds("initialBackoff")?,
                growth: Growth::Product { factor, limit: seconds("maxBackoff")? },
                spread: Spread::Between { low: 0.8, width: 1.2 - 0.8 },
                ..Formula::SECONDS
            };
            let expected = case.numbers("out_ms")?;
            let ks: Vec<u32> = (1..=expected.len() as u32).collect();
            let found: Vec<f64> = drive::formula(rule, &ks, case.forced()?)?.iter().map(|s| s * 1000.0).collect();
            if factor.fract() == 0.0 { same(&expected, &found) } else { close(&expected, &found, 1e-9) }
        }
        "pushback" => match case.get("header").and_then(|header| header.as_str()) {
            Some(header) => same(&[case.number("out")?], &[header::grpc_js(header)]),
            None => equal("no header", true, case.get("out").is_none()),
        },
        "throttle" | "throttle_rescale_on_new_config" => protect::grpc(case),
        kind => unknown(kind),
    }
}

pub(crate) fn grpc_go_and_gax(case: &Case) -> Outcome {
    match case.text("kind")? {
        "gax.Backoff.Pause" => {
            let or = |text: &str, default| nanos(text).map(|nanos| if nanos > 0 { nanos } else { default });
            let factor = case.number("multiplier")?;
            let rule = Compound {
                first: or(case.text("initial")?, 1_000_000_000)?,
                factor: if factor < 1.0 { 2.0 } else { factor },
                cap: or(case.text("max")?, 30_000_000_000)?,
                capped: Capped::After,
                spread: WholeSpread::UpTo,
                ..Compound::CENKALTI
            };
            let expected = case.wholes("out_ns")?;
            equal("delays", expected.clone(), drive::compound(rule, expected.len(), case.forced()?)?)
        }
        "connection_backoff" => {
            let (base, cap) = (nanos(case.text("base")?)? as f64, nanos(case.text("max")?)? as f64);
            let rule = Formula {
                lead: Some(base),
                first: base,
                growth: Growth::Product { factor: case.number("multiplier")?, limit: cap },
                cap,
                spread: Spread::Around { share: case.number("jitter")? },
                round: Rounding::Truncate,
                ..Formula::NANOS
            };
            let ks: Vec<u32> = case.steps("retries")?.iter().map(|n| n + 1).collect();
            same(&case.numbers("out_ns")?, &drive::formula(rule, &ks, case.forced()?)?)
        }
        "retryThrottler" => protect::grpc(case),
        kind => unknown(kind),
    }
}

pub(crate) fn envoy(case: &Case) -> Outcome {
    let kind = case.text("kind")?;
    let bits = || case.need("random_u64")?.as_u64().map(Random::Draw).ok_or("random_u64".to_owned());
    match kind.split(' ').next().unwrap_or_default() {
        "JitteredExponentialBackOffStrategy" => {
            let rule = Compound {
                unit: Unit::Millis,
                first: case.whole("base_ms")?,
                factor: 2.0,
                cap: case.whole("max_ms")?,
                capped: Capped::Quotient,
                spread: WholeSpread::Remainder,
                ..Compound::CENKALTI
            };
            let expected = case.wholes("out_ms")?;
            equal("intervals", case.wholes("intervals")?, drive::intervals(rule, expected.len())?)?;
            equal("delays", expected.clone(), drive::compound(rule, expected.len(), bits()?)?)
        }
        "JitteredLowerBoundBackOffStrategy" => {
            let least = case.whole("min_interval_ms")? as u64;
            equal("delay", case.whole("out_ms")? as u64, header::envoy(least, bits()?))
        }
        "FixedBackOffStrategy" => equal("delay", case.whole("out_ms")?, case.whole("interval_ms")?),
        _ => protect::envoy(case),
    }
}

pub(crate) fn linkerd(case: &Case) -> Outcome {
    let cap = case.number("max_s")?;
    let rule = Formula {
        first: case.number("min_s")?,
        growth: Growth::Power { factor: 2.0 },
        cap,
        spread: Spread::Above { share: case.number("jitter")?, limit: cap },
        ..Formula::SECONDS
    };
    let ks: Vec<u32> = case.steps("iteration")?.iter().map(|n| n + 1).collect();
    same(&case.numbers("out_s")?, &drive::formula(rule, &ks, case.forced()?)?)
}
