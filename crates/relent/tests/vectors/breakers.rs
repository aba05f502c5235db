//! Breakers: gobreaker, cockatiel and Failsafe, call by call.

use crate::case::{Case, Outcome, Verified, duration, equal};
use relent::{Breaker, BreakerSettings, BreakerState, BreakerWindow, Timestamp};
use std::time::Duration;

pub(crate) fn gobreaker(case: &Case) -> Outcome {
    let known = [
        "consecutive",
        "total_failures",
        "failure_ratio",
        "ratio",
        "min_requests",
        "max_requests",
        "interval_s",
        "timeout_s",
    ];
    let options = case.options("settings", &known)?;
    let mut settings = Breaker::compat("gobreaker").ok_or("no gobreaker")?.settings();
    let ratio = if options.has("ratio") { "ratio" } else { "failure_ratio" };
    if options.has("total_failures") || options.has(ratio) {
        settings.consecutive = None;
    }
    if options.has("consecutive") {
        settings.consecutive = Some(options.count("consecutive")?);
    }
    if options.has("total_failures") {
        settings.failures = Some(options.count("total_failures")?);
    }
    if options.has(ratio) {
        settings.share = Some(options.number(ratio)?);
        settings.min_calls = Some(options.number_or("min_requests", 1.0)?.max(1.0) as u32);
    }
    // Zero is the default of each.
    let positive = |key: &str| options.number_or(key, 0.0).map(|value| (value > 0.0).then_some(value));
    if let Some(probes) = positive("max_requests")? {
        settings.probes = probes as u32;
        settings.close_after = probes as u32;
    }
    if let Some(interval) = positive("interval_s")? {
        settings.window = BreakerWindow::Time(Duration::from_secs_f64(interval));
    }
    if let Some(timeout) = positive("timeout_s")? {
        settings.open_for = Duration::from_secs_f64(timeout);
    }
    let names = |state| match state {
        BreakerState::Closed => "closed",
        BreakerState::Open => "open",
        _ => "half-open",
    };
    run(&settings.breaker().map_err(|e| e.to_string())?, case, ["ok", "boom"], names)
}

pub(crate) fn cockatiel(case: &Case) -> Outcome {
    let known = ["threshold", "halfOpenAfter", "size", "minimumNumberOfCalls", "duration", "minimumRps"];
    let options = case.options("options", &known)?;
    let mut settings = Breaker::compat("cockatiel").ok_or("no cockatiel")?.settings();
    let millis = |key: &str| options.number(key).map(|ms| Duration::from_secs_f64(ms / 1e3));
    settings.open_for = millis("halfOpenAfter")?;
    let threshold = options.number("threshold")?;
    if options.has("size") {
        let size = options.count("size")?;
        settings.consecutive = None;
        settings.share = Some(threshold);
        settings.window = BreakerWindow::Calls(size);
        settings.min_calls = Some(options.number_or("minimumNumberOfCalls", f64::from(size))?.max(1.0) as u32);
    } else if options.has("duration") {
        // It measures in slices of whole milliseconds, which together are a little more or less than it was told.
        let slices = (options.number("duration")? / 1000.0).ceil().max(5.0);
        let duration = (options.number("duration")? / slices).round() * slices;
        // Its guess: the rate at which the threshold is five failures a second.
        let rate = options.number_or("minimumRps", 5.0 / threshold)? / 1000.0;
        settings.consecutive = None;
        settings.share = Some(threshold);
        settings.window = BreakerWindow::Time(millis("duration")?);
        settings.min_calls = Some((duration * rate).ceil().max(1.0) as u32);
    } else {
        settings.consecutive = Some(threshold as u32);
    }
    let names = |state| match state {
        BreakerState::Closed => "Closed",
        BreakerState::Open => "Open",
        _ => "HalfOpen",
    };
    run(&settings.breaker().map_err(|e| e.to_string())?, case, ["ok", "error"], names)
}

/// `CircuitBreaker failureThreshold 3 of 5, successThreshold 2, delay 50ms`: so many failures of the last calls trip it,
/// so many successes in a row close it again. Without "of", the failures are in a row.
pub(crate) fn failsafe(case: &Case, name: &str) -> Outcome {
    let words: Vec<&str> = name.split([' ', ',', '(', ')', '=']).filter(|word| !word.is_empty()).collect();
    let after = |word: &str| words.iter().position(|w| *w == word).and_then(|at| words.get(at + 1)).copied();
    let count =
        |word: &str| after(word).map(|text| text.parse::<u32>().map_err(|e| format!("{word}: {e}"))).transpose();
    let failures = count("failureThreshold")?.ok_or("no failureThreshold")?;
    let probes = count("successThreshold")?.ok_or("no successThreshold")?;
    let mut settings = BreakerSettings { probes, close_after: probes, ..BreakerSettings::default() };
    match count("of")? {
        Some(calls) => {
            settings.consecutive = None;
            settings.failures = Some(failures);
            settings.window = BreakerWindow::Calls(calls);
        }
        None => settings.consecutive = Some(failures),
    }
    settings.open_for = duration(after("delay").unwrap_or("1m"))?;
    let names = |state| match state {
        BreakerState::Closed => "CLOSED",
        BreakerState::Open => "OPEN",
        _ => "HALF_OPEN",
    };
    run(&settings.breaker().map_err(|e| e.to_string())?, case, ["done", "done"], names)
}

fn run(breaker: &Breaker, case: &Case, names: [&str; 2], state_name: impl Fn(BreakerState) -> &'static str) -> Outcome {
    // The breaker was made at the time that the trace begins: its first window starts then.
    let mut now = Timestamp::from_nanos(1_700_000_000_000_000_000);
    breaker.release(now);
    for (index, step) in case.list("trace")?.iter().enumerate() {
        if let Some(wait) = step.as_str() {
            now = now + duration(wait.trim_start_matches("wait "))?;
            continue;
        }
        let step = Case(step);
        if step.has("advance_ns") || step.has("advance_ms") {
            let advance = step.number_or("advance_ns", 0.0)? + step.number_or("advance_ms", 0.0)? * 1e6;
            now = now + Duration::from_nanos(advance as u64);
            continue;
        }
        let succeeds = step.text("call")? == "S";
        let result = match breaker.permit(now, 0) {
            Err(_) => "refused",
            Ok(permit) if succeeds => {
                permit.succeeded(now, Duration::ZERO, 0);
                names[0]
            }
            Ok(permit) => {
                permit.failed(now, Duration::ZERO, 0);
                names[1]
            }
        };
        let expected = match step.text("result")? {
            "circuit breaker is open" | "too many requests" | "REJECTED" => "refused",
            other => other,
        };
        equal(&format!("result of step {index}"), expected, result)?;
        equal(&format!("state after step {index}"), step.text("state_after")?, state_name(breaker.state()))?;
    }
    Ok(Verified::Ran)
}
