//! JavaScript: cockatiel, got, and the packages of npm.

use crate::{
    case::{Case, Outcome, close, same, unknown},
    drive,
    python::powers,
};
use relent::compat::{Chained, Formula, Growth, Link, OnPushback, Random, Rounding, Spread, Unit, header, status};
use relent::{Policy, Verdict};
use serde_json::Value;
use std::time::Duration;

const MILLIS: Formula = Formula { growth: Growth::Power { factor: 2.0 }, ..Formula::MILLIS };

fn first_steps(count: usize) -> Vec<u32> {
    (1..=count as u32).collect()
}

pub(crate) fn cockatiel(case: &Case) -> Outcome {
    if let Some(listed) = cockatiel_listed(case)? {
        return listed;
    }
    let options = case.options("options", &["initialDelay", "maxDelay", "exponent", "generator"])?;
    let (first, cap) = (options.number_or("initialDelay", 128.0)?, options.number_or("maxDelay", 30_000.0)?);
    let (expected, random) = (case.numbers("out_ms")?, case.forced()?);
    // Powers of other bases than 2 are what the original ignores.
    let plain = Formula { first, cap, ..MILLIS };
    let rule = match case.text("generator")? {
        "noJitterGenerator" => plain,
        "fullJitterGenerator" => Formula { spread: Spread::FULL, round: Rounding::Floor, ..plain },
        "halfJitterGenerator" => Formula { spread: Spread::Half, round: Rounding::Floor, ..plain },
        "decorrelatedJitterGenerator" => {
            let link = Link::Smoothed { factor: options.number_or("exponent", 2.0)? };
            let rule = Chained { unit: Unit::Millis, first, cap, link, ..Chained::SECONDS };
            return close(&expected, &drive::chained(rule, expected.len(), random)?, 1e-9);
        }
        other => return unknown(other),
    };
    same(&expected, &drive::formula(rule, &first_steps(expected.len()), random)?)
}

/// Cockatiel's other two forms: a constant, and a list whose last delay repeats. Their name is written `ConstantBackoff`
/// or `constant`, what they are given follows it in brackets, or is the one value of `options`, `args` and the like.
fn cockatiel_listed(case: &Case) -> Result<Option<Outcome>, String> {
    let names = ["generator", "kind", "class", "backoff", "type", "fn", "name"];
    let name = names.iter().find_map(|key| case.get(key).and_then(|name| name.as_str())).unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    if !lower.contains("constant") && !lower.contains("iterable") {
        return Ok(None);
    }
    let given: Vec<f64> = match name.split_once('(') {
        Some((_, rest)) => {
            let numbers = rest.trim_end_matches(')').split(',').map(|n| n.trim_matches(['[', ']', ' ', '.']).parse());
            numbers.collect::<Result<_, _>>().map_err(|e| format!("{name}: {e}"))?
        }
        None => {
            let known = ["options", "args", "interval", "interval_ms", "duration", "delay", "durations", "values"];
            let value = known.iter().find_map(|key| case.get(key)).ok_or_else(|| format!("{name}: what of?"))?;
            flat(value)
        }
    };
    let last = *given.last().ok_or_else(|| format!("{name}: no delay"))?;
    let expected = case.numbers("out_ms")?;
    let found: Vec<f64> = (0..expected.len()).map(|at| given.get(at).copied().unwrap_or(last)).collect();
    // A list that ends in "no delay" is no policy: that is asked for by name.
    if last == 0.0 {
        return Ok(Some(same(&expected, &found)));
    }
    let list: Vec<Duration> = given.iter().map(|ms| Duration::from_secs_f64(ms / 1e3)).collect();
    let policy = Policy::list_repeating(Box::leak(list.into_boxed_slice()));
    let trace = drive::drive(&policy.unlimited_attempts(), Random::Draw(0), expected.len() as u32 + 1, |_| {
        (Some(Verdict::Transient), Duration::ZERO)
    });
    let driven: Vec<f64> = trace.waits_s().iter().map(|wait| wait * 1e3).collect();
    Ok(Some(same(&expected, &found).and_then(|_| close(&expected, &driven, 1e-9))))
}

/// All numbers of a value.
fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(list) => list.iter().flat_map(flat).collect(),
        Value::Object(object) => object.values().flat_map(flat).collect(),
        value => value.as_f64().into_iter().collect(),
    }
}

pub(crate) fn got(case: &Case) -> Outcome {
    let limit = case.number_or("limit", 2.0)? as u32;
    let rule = Formula {
        first: 1000.0,
        cap: case.number_or("backoffLimit", f64::INFINITY)?,
        spread: Spread::Additive { most: case.number_or("noise", 100.0)? },
        pushback: OnPushback::Replaces,
        ..MILLIS
    };
    let (method, code) = (case.text("method")?, case.count("status")? as u16);
    let told = case.get("retryAfter_ms").and_then(|told| told.as_f64());
    let longest = case.number_or("maxRetryAfter_ms", f64::INFINITY)?;
    let attempts = case.steps("attemptCount")?;
    let own = drive::formula(rule, &attempts, case.forced()?)?;
    let found: Vec<f64> = attempts
        .iter()
        .zip(own)
        .map(|(&attempt, own)| status::got(method, code, attempt, limit, told, longest, own))
        .collect();
    same(&case.numbers("out_ms")?, &found)
}

pub(crate) fn axios(case: &Case) -> Outcome {
    let (name, random) = (case.text("fn")?, case.forced()?);
    let (name, with_header) = name.strip_suffix("+Retry-After").map_or((name, false), |name| (name, true));
    let factor = case.number_or("delayFactor", 100.0)?;
    let plain = Formula { offset: 1, pushback: OnPushback::Stretched, ..Formula::MILLIS };
    let rule = match name {
        "retryAfter" => {
            let now = date_ms(case.text("now")?)?;
            return same(&[case.number("out_ms")?], &[header::axios(case.text("header")?, now)]);
        }
        "exponentialDelay" => {
            let spread = Spread::Above { share: 0.2, limit: f64::INFINITY };
            Formula { first: factor, growth: Growth::Power { factor: 2.0 }, spread, ..plain }
        }
        "linearDelay" => Formula { first: 0.0, growth: Growth::Linear { step: factor }, ..plain },
        "noDelay" => Formula { first: 0.0, ..plain },
        other => return unknown(other),
    };
    let steps = case.steps("retryNumber")?;
    let expected = case.numbers("out_ms")?;
    if !with_header {
        return same(&expected, &drive::formula(rule, &steps, random)?);
    }
    let now = case.text("now").map_or(Ok(0.0), date_ms)?;
    let told = header::axios(case.text("header")?, now);
    let delay = |&k: &u32| {
        let told = Duration::from_secs_f64(told / 1000.0);
        let delay = drive::pushed_back(&rule, k, random, told).ok_or("no delay")?;
        Ok(delay.as_secs_f64() * 1000.0)
    };
    let found = steps.iter().map(delay).collect::<Result<Vec<f64>, String>>()?;
    // A delay counts whole nanoseconds.
    close(&expected, &found, 1e-9)
}

fn date_ms(text: &str) -> Result<f64, String> {
    let seconds = header::urllib3(&text.replace("UTC", "GMT"), 0.0, f64::INFINITY);
    seconds.map(|seconds| seconds * 1000.0).map_err(|e| e.to_string())
}

pub(crate) fn exponential_backoff(case: &Case) -> Outcome {
    let known = ["jitter", "startingDelay", "timeMultiple", "maxDelay", "delayFirstAttempt", "numOfAttempts", "retry"];
    let options = case.options("options", &known)?;
    let delays_first = options.get("delayFirstAttempt").is_some_and(|flag| flag.as_bool() == Some(true));
    let full = match options.get("jitter").and_then(|jitter| jitter.as_str()) {
        None | Some("none") => false,
        Some("full") => true,
        Some(other) => return unknown(other),
    };
    let rule = Formula {
        first: options.number_or("startingDelay", 100.0)?,
        growth: Growth::Power { factor: options.number_or("timeMultiple", 2.0)? },
        offset: i32::from(delays_first),
        cap: options.number_or("maxDelay", f64::INFINITY)?,
        spread: if full { Spread::FULL } else { Spread::None },
        round: if full { Rounding::Nearest } else { Rounding::Exact },
        ..MILLIS
    };
    let steps = case.steps("attempt")?;
    let mut expected = case.list("out_ms")?.to_vec();
    let mut found = drive::formula(rule, &steps, case.forced()?)?;
    // No delay before the first attempt, unless it is asked for.
    if expected.first().is_some_and(|first| first.is_null()) && !delays_first && steps[0] == 0 {
        expected.remove(0);
        found.remove(0);
    }
    let expected: Option<Vec<f64>> = expected.iter().map(|value| value.as_f64()).collect();
    let expected = expected.ok_or("a delay that is no number")?;
    let dyadic = options.number_or("timeMultiple", 2.0)?.log2().fract() == 0.0;
    if dyadic { same(&expected, &found) } else { close(&expected, &found, 1e-9) }
}

pub(crate) fn reconnecting_websocket(case: &Case) -> Outcome {
    let known = [
        "minReconnectionDelay",
        "maxReconnectionDelay",
        "reconnectionDelayGrowFactor",
        "minUptime",
        "connectionTimeout",
        "maxRetries",
    ];
    let options = case.options("options", &known)?;
    let factor = options.number_or("reconnectionDelayGrowFactor", 1.3)?;
    // The least delay is given, so nothing of it is drawn.
    let (first, width) = match options.get("minReconnectionDelay") {
        Some(_) => (options.number("minReconnectionDelay")?, 0.0),
        None => (1000.0, 4000.0),
    };
    let rule = Chained {
        unit: Unit::Millis,
        first,
        cap: options.number_or("maxReconnectionDelay", 10_000.0)?,
        link: Link::DrawnOnce { width, factor },
        ..Chained::SECONDS
    };
    let steps = case.steps("retryCount")?;
    let last = steps.iter().max().copied().unwrap_or(0);
    let delays = drive::chained(rule, last as usize, case.forced().unwrap_or(Random::Draw(0)))?;
    // The first connection, which is retry 0, does not wait.
    let found: Vec<f64> = steps.iter().map(|&k| if k == 0 { 0.0 } else { delays[k as usize - 1] }).collect();
    close(&case.numbers("out_ms")?, &found, 1e-9)
}

pub(crate) fn retry(case: &Case) -> Outcome {
    let known = ["retries", "factor", "minTimeout", "maxTimeout", "randomize", "forever", "unref", "maxRetryTime"];
    let options = case.options("options", &known)?;
    let randomize = options.get("randomize").is_some_and(|flag| flag.as_bool() == Some(true));
    let rule = Formula {
        first: options.number_or("minTimeout", 1000.0)?.max(1.0),
        growth: Growth::Power { factor: options.number_or("factor", 2.0)? },
        spread: if randomize { Spread::Between { low: 1.0, width: 1.0 } } else { Spread::None },
        round: Rounding::Nearest,
        most: options.number_or("maxTimeout", f64::INFINITY)?,
        ..MILLIS
    };
    let count = options.number_or("retries", 10.0)? as usize;
    let mut found = drive::formula(rule, &first_steps(count), case.forced()?)?;
    // The original sorts its table, which shows where the factor is below 1.
    found.sort_by(f64::total_cmp);
    powers(options.number_or("factor", 2.0)?, &case.numbers("out_ms")?, &found)
}
