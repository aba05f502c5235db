//! Python: Celery and kombu, tenacity, stamina, urllib3, litl/backoff, google-api-core, and two SDKs.

use crate::{
    case::{Case, Outcome, Verified, close, compare, equal, same, unknown},
    drive::{self, Trace, drive, keep},
};
use relent::{
    Policy, Verdict,
    compat::{Formula, Growth, OnPushback, Random, Spread, Stop, Stopped, header, status},
};
use serde_json::Value;
use std::time::Duration;

const SECONDS: Formula = Formula { growth: Growth::Power { factor: 2.0 }, ..Formula::SECONDS };

pub(crate) fn celery_interval(case: &Case) -> Outcome {
    let rule = celery_rule(case.number("factor")?, case.number("maximum")?, case.flag("full_jitter")?);
    let k = case.count("retries")? + 1;
    match case.need("out")?.get("error") {
        Some(error) => {
            let raised = error.as_str().is_some_and(|error| error.starts_with("ValueError"));
            equal("raises ValueError", raised, rule.value(k, &mut 0, case.forced()?).is_none())
        }
        None => same(&[case.number("out")?], &drive::formula(rule, &[k], case.forced()?)?),
    }
}

fn celery_rule(factor: f64, maximum: f64, full_jitter: bool) -> Formula {
    let spread = if full_jitter { Spread::Whole } else { Spread::None };
    Formula { first: factor, cap: maximum, spread, ..SECONDS }
}

pub(crate) fn celery_autoretry(case: &Case) -> Outcome {
    let known = [
        "retry_backoff",
        "retry_backoff_max",
        "retry_jitter",
        "max_retries",
        "default_retry_delay",
        "retry_kwargs",
        "autoretry_for",
    ];
    let options = case.options("options", &known)?;
    let kwargs = options.options("retry_kwargs", &["max_retries", "countdown"])?;
    let backoff = match options.0.get("retry_backoff") {
        None | Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some(1.0),
        Some(number) => number.as_f64().filter(|number| *number != 0.0).map(|number| number.max(1.0).trunc()),
    };
    let jitter = options.get("retry_jitter").is_none_or(|jitter| jitter.as_bool() == Some(true));
    let maximum = options.number_or("retry_backoff_max", 600.0)?.trunc();
    let fixed = kwargs.number_or("countdown", f64::NAN)?;
    let rule = match backoff {
        Some(factor) => celery_rule(factor, maximum, jitter),
        None if fixed.is_nan() => {
            Formula { first: options.number_or("default_retry_delay", 180.0)?, ..Formula::SECONDS }
        }
        None => Formula { first: fixed, ..Formula::SECONDS },
    };
    let retries = kwargs.get("max_retries").or_else(|| options.0.get("max_retries"));
    let attempts = match retries {
        None => 4,
        Some(Value::Null) => u32::MAX,
        Some(retries) => retries.as_u64().ok_or("max_retries")? as u32 + 1,
    };
    let (fails, random) = (case.count("fails")?, case.forced()?);
    let policy = Policy::custom(keep(rule)).max_attempts(attempts);
    let fail = |call| ((call <= fails).then_some(Verdict::Transient), Duration::ZERO);
    let trace = drive(&policy, random, u32::MAX, fail);
    equal("runs", case.count("task_runs")?, trace.calls)?;
    equal("succeeded", case.text("state")? == "SUCCESS", trace.reason.is_none())?;
    countdowns(case, rule, backoff.is_none() && fixed.is_nan(), &trace, random)
}

/// The countdown of the last failure is computed too, though nothing waits for it.
fn countdowns(case: &Case, rule: Formula, default: bool, trace: &Trace, random: Random) -> Outcome {
    let mut waits = trace.waits_s();
    if trace.reason.is_some() {
        waits.extend(drive::formula(rule, &[trace.calls], random)?);
    }
    let expected = case.list("countdowns")?;
    if default {
        let all_default = expected.iter().all(Value::is_null);
        return equal("default countdowns", (true, expected.len()), (all_default, waits.len()));
    }
    same(&case.numbers("countdowns")?, &waits)
}

pub(crate) fn kombu(case: &Case) -> Outcome {
    match case.text("fn")? {
        "fxrange" => {
            let arguments = case.list("args")?;
            let argument = |at: usize, default: f64| arguments.get(at).and_then(Value::as_f64).unwrap_or(default);
            let limit = match argument(1, 0.0) {
                0.0 => f64::INFINITY,
                limit => limit,
            };
            let repeat = case.get("repeatlast").is_some_and(|repeat| repeat.as_bool() == Some(true));
            let growth = Growth::Sum { step: argument(2, 1.0), limit, repeat };
            // A range may go below 0, a delay may not.
            let rule = Formula { first: argument(0, 1.0), growth, least: f64::NEG_INFINITY, ..Formula::SECONDS };
            let expected = case.numbers("out")?;
            let mut memory = 0;
            let found = (1..=expected.len() as u32).map_while(|k| rule.value(k, &mut memory, Random::Draw(0)));
            same(&expected, &found.collect::<Vec<f64>>())
        }
        "retry_over_time" => {
            let options = case.options("args", &["max_retries", "interval_start", "interval_step", "interval_max"])?;
            let (first, most) = (options.number_or("interval_start", 2.0)?, options.number_or("interval_max", 30.0)?);
            let growth =
                Growth::Sum { step: options.number_or("interval_step", 2.0)?, limit: most + first, repeat: true };
            let policy = Policy::custom(keep(Formula { first, growth, most, ..Formula::SECONDS }));
            let policy = policy.max_attempts(options.count("max_retries")? + 1);
            let trace = drive(&policy, Random::Draw(0), u32::MAX, |_| (Some(Verdict::Transient), Duration::ZERO));
            equal("calls", case.count("calls")?, trace.calls)?;
            let slices: Vec<f64> = trace.waits_s().into_iter().filter(|wait| *wait > 0.0).flat_map(slices).collect();
            same(&case.numbers("sleeps")?, &slices)
        }
        other => unknown(other),
    }
}

/// It sleeps a second at a time, and then the rest.
fn slices(wait: f64) -> Vec<f64> {
    let mut slices = vec![1.0; wait as usize];
    slices.push((wait.trunc() - wait).abs());
    slices
}

pub(crate) fn google_api_core(case: &Case) -> Outcome {
    let options = case.options("args", &["initial", "maximum", "multiplier"])?;
    let most = options.number_or("maximum", 60.0)?;
    let rule = Formula {
        first: options.number_or("initial", 1.0)?.min(most),
        growth: Growth::Product { factor: options.number_or("multiplier", 2.0)?, limit: most },
        spread: Spread::FULL,
        ..Formula::SECONDS
    };
    let expected = case.numbers("out")?;
    let ks: Vec<u32> = (1..=expected.len() as u32).collect();
    same(&expected, &drive::formula(rule, &ks, case.forced()?)?)
}

pub(crate) fn stamina(case: &Case) -> Outcome {
    let factor = case.number("exp_base")?;
    let rule = Formula {
        first: case.number("initial")?,
        growth: Growth::Power { factor },
        nan: overflow(case.need("exp_base")?),
        spread: Spread::Additive { most: case.number("jitter")? },
        most: case.number("max")?,
        ..Formula::SECONDS
    };
    powers(factor, &[case.number("out")?], &drive::formula(rule, &[case.count("num")?], case.forced()?)?)
}

/// 0 times a whole number of any size is 0; 0 times a float that overflows raises, and that is the maximum.
fn overflow(base: &Value) -> f64 {
    if base.is_f64() { f64::INFINITY } else { 0.0 }
}

/// Powers of 2 are exact; others within the tolerance for powers, and infinitely large is as large as it gets.
pub(crate) fn powers(factor: f64, expected: &[f64], found: &[f64]) -> Outcome {
    if factor.log2().fract() == 0.0 { same(expected, found) } else { close(expected, found, 1e-9) }
}

/// The longest wait of tenacity: half of `sys.maxsize`.
const TENACITY_MAX: f64 = (i64::MAX / 2) as f64;

pub(crate) fn tenacity_wait(case: &Case) -> Outcome {
    let ks = case.steps("attempts")?;
    let strategy = case.text("strategy")?;
    if let Some(text) = case.get("args").and_then(Value::as_str) {
        return tenacity_composed(case, strategy, text, &ks);
    }
    let known = ["multiplier", "initial", "max", "min", "exp_base", "jitter", "wait", "start", "increment"];
    let options = case.options("args", &known)?;
    let rule = tenacity_rule(strategy, &options)?;
    powers(options.number_or("exp_base", 2.0)?, &case.numbers("out")?, &drive::formula(rule, &ks, case.forced()?)?)
}

fn tenacity_rule(strategy: &str, options: &Case) -> Result<Formula, String> {
    let (least, most) = (options.number_or("min", 0.0)?.max(0.0), options.number_or("max", TENACITY_MAX)?);
    let first = options.number_or("multiplier", options.number_or("initial", 1.0)?)?;
    let growth = Growth::Power { factor: options.number_or("exp_base", 2.0)? };
    let nan = options.get("exp_base").map_or(0.0, overflow);
    let power = Formula { first, growth, nan, ..Formula::SECONDS };
    Ok(match strategy {
        "wait_none" => Formula { first: 0.0, ..Formula::SECONDS },
        "wait_fixed" => Formula { first: options.number("wait")?, ..Formula::SECONDS },
        "wait_random" => {
            let high = options.number_or("max", 1.0)?;
            Formula { first: high, spread: Spread::From { low: options.number_or("min", 0.0)? }, ..Formula::SECONDS }
        }
        "wait_incrementing" => Formula {
            first: options.number_or("start", 0.0)?,
            growth: Growth::Linear { step: options.number_or("increment", 100.0)? },
            most,
            ..Formula::SECONDS
        },
        "wait_exponential" => Formula { least, most, ..power },
        "wait_random_exponential" | "wait_full_jitter" => {
            Formula { cap: most, spread: Spread::From { low: least }, ..power }
        }
        "wait_exponential_jitter" => {
            let jitter = Spread::Additive { most: options.number_or("jitter", 1.0)? };
            Formula { spread: jitter, least, most, ..power }
        }
        other => return Err(format!("a strategy that this test does not know: {other}")),
    })
}

/// `wait_chain` goes through its strategies and stays with the last; `wait_combine` adds them up. They are written as
/// `3x fixed(1), 2x fixed(2), fixed(5)` and `fixed(1) + random(0,2)`.
fn tenacity_composed(case: &Case, strategy: &str, text: &str, ks: &[u32]) -> Outcome {
    let parts = text.replace(" + ", "\n").replace("), ", ")\n").replace(")+", ")\n");
    let mut rules = Vec::new();
    for part in parts.lines() {
        let (times, part) = match part.split_once("x ") {
            Some((times, part)) => (times.trim().parse().map_err(|_| format!("{text:?}"))?, part),
            None => (1, part),
        };
        rules.extend(std::iter::repeat_n(tenacity_part(part)?, times));
    }
    let last = rules.last().copied().ok_or("no strategy")?;
    let value = |rule: Formula, k| Ok::<f64, String>(drive::formula(rule, &[k], case.forced()?)?[0]);
    let found: Result<Vec<f64>, String> = match strategy {
        "wait_chain" => ks.iter().map(|&k| value(rules.get(k as usize - 1).copied().unwrap_or(last), k)).collect(),
        "wait_combine" => ks.iter().map(|&k| rules.iter().map(|rule| value(*rule, k)).sum()).collect(),
        other => return unknown(other),
    };
    close(&case.numbers("out")?, &found?, 1e-12)
}

fn tenacity_part(part: &str) -> Result<Formula, String> {
    let (name, arguments) = crate::case::call_of(part);
    let name = name.trim_start_matches("wait_");
    let positions: &[&str] = match name {
        "fixed" => &["wait"],
        "random" => &["min", "max"],
        "incrementing" => &["start", "increment", "max"],
        "exponential" | "random_exponential" => &["multiplier", "max", "exp_base", "min"],
        "exponential_jitter" => &["initial", "max", "exp_base", "jitter"],
        _ => &[],
    };
    let mut options = serde_json::Map::new();
    for (at, argument) in arguments.iter().enumerate() {
        let (key, text) = match argument.split_once('=') {
            Some((key, text)) => (key.trim(), text),
            None => (*positions.get(at).ok_or_else(|| format!("{part:?}"))?, *argument),
        };
        options.insert(key.into(), text.trim().parse::<f64>().map_err(|e| format!("{part:?}: {e}"))?.into());
    }
    tenacity_rule(&format!("wait_{name}"), &Case(&Value::Object(options)))
}

pub(crate) fn tenacity_stop(case: &Case) -> Outcome {
    let rule = keep(tenacity_part(case.text("wait")?)?);
    let seconds = |key| case.need("args").and_then(|args| Case(args).number(key)).map(Duration::from_secs_f64);
    let until = |stop| Policy::custom(keep(Stopped { rule, stop })).unlimited_attempts();
    let policy = match case.text("stop")? {
        "stop_after_attempt" => Policy::custom(rule).max_attempts(Case(case.need("args")?).count("n")?),
        "stop_after_delay" => until(Stop::Reached(seconds("max_delay")?)),
        "stop_before_delay" => until(Stop::WouldReach(seconds("max_delay")?)),
        other => return unknown(other),
    };
    let takes = case.numbers("op_duration")?;
    let trace = drive(&policy, Random::Draw(0), u32::MAX, |call| {
        let took = takes.get(call as usize - 1).or(takes.last()).copied().unwrap_or(0.0);
        (Some(Verdict::Transient), Duration::from_secs_f64(took))
    });
    equal("calls", case.count("calls")?, trace.calls)?;
    same(&case.numbers("sleeps")?, &trace.waits_s())?;
    same(&[case.number("end")?], &[trace.end.as_secs_f64()])?;
    equal("result", format!("RetryError(attempts={})", trace.calls).as_str(), case.text("result")?)
}

pub(crate) fn litl(case: &Case) -> Outcome {
    if case.has("jitter") {
        let spread = match case.text("jitter")? {
            "full_jitter" => Spread::FULL,
            "random_jitter" => Spread::Additive { most: 1.0 },
            other => return unknown(other),
        };
        let random = case.forced()?;
        let value = |first| drive::formula(Formula { first, spread, ..Formula::SECONDS }, &[1], random).map(|v| v[0]);
        let found = case.numbers("values")?.into_iter().map(value).collect::<Result<Vec<f64>, String>>()?;
        return same(&case.numbers("out")?, &found);
    }
    let known = ["base", "factor", "max_value", "interval", "initial_value", "decay_factor", "min_value"];
    let options = case.options("args", &known)?;
    let cap = options.number_or("max_value", f64::INFINITY)?;
    let expected = case.numbers("out")?;
    let ks: Vec<u32> = (1..=expected.len() as u32).collect();
    let rule = match case.text("gen")? {
        "expo" => {
            let growth = Growth::Power { factor: options.number_or("base", 2.0)? };
            Formula { first: options.number_or("factor", 1.0)?, growth, cap, ..Formula::SECONDS }
        }
        "fibo" => Formula { growth: Growth::Fibonacci, cap, ..Formula::SECONDS },
        "constant" => match options.get("interval") {
            Some(Value::Array(list)) => {
                let list: Vec<f64> = list.iter().filter_map(Value::as_f64).collect();
                return same(&expected, &list[..expected.len().min(list.len())]);
            }
            _ => Formula { first: options.number_or("interval", 1.0)?, ..Formula::SECONDS },
        },
        "decay" => Formula {
            first: options.number_or("initial_value", 1.0)?,
            growth: Growth::Power { factor: (-options.number_or("decay_factor", 1.0)?).exp() },
            least: options.number_or("min_value", 0.0)?,
            ..Formula::SECONDS
        },
        other => return unknown(other),
    };
    let exact = options.number_or("base", 2.0)?.log2().fract() == 0.0 && !options.has("decay_factor");
    compare(&expected, &drive::formula(rule, &ks, case.forced()?)?, |e, f| {
        e == f || (!(exact && case.text("gen") == Ok("expo")) && (e - f).abs() <= 1e-9 * e.abs())
    })
}

pub(crate) fn urllib3(case: &Case) -> Outcome {
    match case.text("kind")? {
        "backoff" => {
            let options = case.options("args", &["backoff_factor", "backoff_jitter", "backoff_max", "total"])?;
            let rule = Formula {
                lead: Some(0.0),
                first: options.number_or("backoff_factor", 0.0)?,
                spread: Spread::Additive { most: options.number_or("backoff_jitter", 0.0)? },
                most: options.number_or("backoff_max", 120.0)?,
                pushback: OnPushback::Replaces,
                ..SECONDS
            };
            same(&case.numbers("out")?, &drive::formula(rule, &case.steps("after_n_errors")?, case.forced()?)?)
        }
        "parse_retry_after" => {
            let most = case.number_or("retry_after_max", 21_600.0)?;
            let found = header::urllib3(case.text("header")?, case.number("now_unix")?, most);
            match (case.need("out")?.get("error"), found) {
                (Some(_), Err(_)) => Ok(Verified::Ran),
                (Some(error), Ok(found)) => Err(format!("expected {error}, found {found}")),
                (None, Err(e)) => Err(e.to_string()),
                (None, Ok(found)) => same(&[case.number("out")?], &[found]),
            }
        }
        "is_retry" => {
            let (method, code) = (case.text("method")?, case.count("status")? as u16);
            let retries = |forcelist: &[u16]| {
                Ok::<bool, String>(status::urllib3(method, code, case.flag("has_retry_after")?, forcelist))
            };
            equal("by default", case.flag("default")?, retries(&[])?)?;
            let forcelists = case.0.as_object().into_iter().flatten().filter(|(key, _)| key.starts_with("forcelist_"));
            for (key, expected) in forcelists {
                let forcelist: Vec<u16> = key.split('_').filter_map(|code| code.parse().ok()).collect();
                equal(key, expected.as_bool(), Some(retries(&forcelist)?))?;
            }
            Ok(Verified::Ran)
        }
        kind => unknown(kind),
    }
}

pub(crate) fn stripe_and_openai(case: &Case) -> Outcome {
    let code = || case.count("status").map(|status| status as u16);
    let told = |key| case.get(key).and_then(Value::as_str);
    match (case.text("sdk")?, case.text("fn")?) {
        ("stripe", "_sleep_time_seconds") => {
            let half = Spread::Between { low: 0.5, width: 0.5 };
            let rule = Formula { first: 0.5, cap: 5.0, spread: half, least: 0.5, ..SECONDS };
            same(&case.numbers("out_s")?, &drive::formula(rule, &case.steps("num_retries")?, case.forced()?)?)
        }
        ("stripe", "_should_retry") => {
            equal("retry", case.flag("out")?, status::stripe(code()?, told("stripe_should_retry")))
        }
        ("openai", "_should_retry") => {
            equal("retry", case.flag("out")?, status::openai(code()?, told("x_should_retry")))
        }
        ("openai", "_calculate_retry_timeout") => {
            let ks: Vec<u32> = case.steps("retries_taken")?.iter().map(|n| n + 1).collect();
            same(&case.numbers("out_s")?, &drive::formula(OPENAI, &ks, case.forced()?)?)
        }
        ("openai", "_calculate_retry_timeout+headers") => {
            let headers = Case(case.need("headers")?);
            let read = |key| headers.get(key).and_then(Value::as_str);
            let now = case.number_or("now_unix", 0.0)?;
            let told = header::openai(read("retry-after-ms"), read("retry-after"), now);
            let own = drive::formula(OPENAI, &[case.count("retries_taken")? + 1], case.forced()?)?[0];
            let obeyed = told.filter(|told| header::openai_obeys(*told));
            same(&[case.number("out_s")?], &[obeyed.unwrap_or(own)])?;
            let too_long = told.is_some_and(|told| told.is_finite() && told > header::OPENAI_LONGEST);
            equal(
                "retries a 429",
                case.flag("should_retry_429")?,
                !too_long && status::openai(429, read("x-should-retry")),
            )
        }
        (_, other) => unknown(other),
    }
}

const OPENAI: Formula = Formula { first: 0.5, cap: 8.0, spread: Spread::Between { low: 1.0, width: -0.25 }, ..SECONDS };
