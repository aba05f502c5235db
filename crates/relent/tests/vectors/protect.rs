//! Budgets, throttles and limiters of other systems.

use crate::case::{Case, Outcome, Verified, close, equal, same, unknown};
use relent::{
    AwsBucket, AwsClocker, AwsCubic, AwsQuota, Budget, BudgetSettings, Limit, Outcome as Told, Timestamp, Verdict,
    Withdrawal, compat::envoy_rejection, gradient, rejection,
};
use serde_json::Value;
use std::time::Duration;

const FAILED: Told = Told::Failure(Verdict::Transient);
const THROTTLED: Told = Told::Failure(Verdict::After(Duration::ZERO));
const NOW: Timestamp = Timestamp::ZERO;

/// CUBIC goes through a cube root.
const ROOTS: f64 = 1e-9;

fn trace<'a>(case: &Case<'a>) -> Result<Vec<Case<'a>>, String> {
    Ok(case.list("trace")?.iter().map(Case).collect())
}

fn at(step: &Case) -> Result<Timestamp, String> {
    Ok(Timestamp::from_nanos((step.number("t")? * 1e9).round() as u64))
}

/// `w*20` is 20 of `w`, `acquire5` 5 of `acquire`.
fn times<'a>(event: &'a str, name: &str) -> Option<&'a str> {
    event.strip_prefix(name).map(|count| count.trim_start_matches('*'))
}

fn count(text: &str) -> Result<u64, String> {
    if text.is_empty() { Ok(1) } else { text.parse().map_err(|e| format!("{text:?}: {e}")) }
}

pub(crate) fn aws(case: &Case, costs: AwsQuota) -> Outcome {
    match case.text("kind")? {
        "quota_trace" => quota_trace(case, costs),
        "quota_exhaust" => {
            let budget = BudgetSettings::AwsQuota(costs).budget().map_err(|e| e.to_string())?;
            let failure = told(case.text("error")?);
            let granted = (0..1000).filter(|_| budget.withdraw(NOW, failure, 0).is_some()).count();
            equal("granted", case.count("granted")?, granted as u32)?;
            same(&[case.number("left")?], &[budget.balance(NOW)])
        }
        "cubic" => cubic(case),
        "rate_clocker" => {
            let mut clocker = AwsClocker::new(case.number_or("start_time", 0.0)?);
            for step in trace(case)? {
                same(&[step.number("measured_rate")?], &[clocker.record(step.number("t")?)])?;
            }
            Ok(Verified::Ran)
        }
        "adaptive_rate_limiter" => adaptive(case),
        "token_bucket" => token_bucket(case),
        kind => unknown(kind),
    }
}

fn told(event: &str) -> Told {
    if event.contains("timeout") {
        Told::TimedOut
    } else if event.contains("throttl") {
        THROTTLED
    } else {
        FAILED
    }
}

fn quota_trace(case: &Case, costs: AwsQuota) -> Outcome {
    let capacity = case.count("initial")?;
    let budget = BudgetSettings::AwsQuota(AwsQuota { capacity, ..costs }).budget().map_err(|e| e.to_string())?;
    let mut paid: Option<Withdrawal> = None;
    for step in trace(case)? {
        match step.text("event")? {
            "success" => budget.outcome(NOW, Told::Success, paid.take()),
            "fail" => budget.outcome(NOW, FAILED, paid.take()),
            event => {
                let failure = told(event);
                budget.outcome(NOW, failure, paid);
                let granted = budget.withdraw(NOW, failure, 0);
                equal("granted", step.flag("granted")?, granted.is_some())?;
                paid = granted.or(paid);
            }
        }
        same(&[step.number("capacity")?], &[budget.balance(NOW)])?;
    }
    Ok(Verified::Ran)
}

fn cubic(case: &Case) -> Outcome {
    let mut cubic = AwsCubic::new(case.number("starting_max_rate")?, case.number("start_time")?);
    let mut rate = case.number("starting_max_rate")?;
    for step in trace(case)? {
        let t = step.number("t")?;
        rate = match step.text("event")? {
            "success" => cubic.success(t),
            "throttle" => cubic.throttle(rate, t),
            event => return unknown(event),
        };
        let expected = ["new_rate", "w_max", "k", "last_fail"].map(|key| step.number(key));
        let expected = expected.into_iter().collect::<Result<Vec<f64>, _>>()?;
        close(&expected, &[rate, cubic.w_max, cubic.k, cubic.last_throttle], ROOTS)?;
    }
    Ok(Verified::Ran)
}

fn adaptive(case: &Case) -> Outcome {
    let limit = Limit::aws_adaptive();
    limit.reset(NOW);
    for step in trace(case)? {
        let now = at(&step)?;
        limit.release(now, if step.flag("throttled")? { THROTTLED } else { Told::Success }, Duration::ZERO);
        let state = limit.aws_state(now).ok_or("no state")?;
        let keys = ["measured_rate", "fill_rate", "max_capacity", "capacity"];
        let expected = keys.into_iter().map(|key| step.number(key)).collect::<Result<Vec<f64>, _>>()?;
        let bucket = state.bucket;
        close(&expected, &[state.measured_rate, bucket.fill_rate, bucket.max_capacity, bucket.capacity], ROOTS)?;
        equal("enabled", step.flag("enabled")?, state.enabled)?;
    }
    Ok(Verified::Ran)
}

fn token_bucket(case: &Case) -> Outcome {
    let mut bucket = AwsBucket::new(case.number("max_rate")?, 0.0);
    for step in trace(case)? {
        let (t, action) = (step.number("t")?, step.text("action")?);
        if let Some(amount) = times(action, "acquire") {
            let granted = bucket.acquire(count(amount)? as f64, t);
            equal("ok", step.need("ok")? == &Value::Bool(true), granted)?;
        } else if let Some(rate) = times(action, "rate") {
            bucket.set_rate(rate.parse().map_err(|e| format!("{action}: {e}"))?, t);
        } else {
            return unknown(action);
        }
        let expected = ["capacity", "fill_rate", "max_capacity"].map(|key| step.number(key));
        let expected = expected.into_iter().collect::<Result<Vec<f64>, _>>()?;
        same(&expected, &[bucket.capacity, bucket.fill_rate, bucket.max_capacity])?;
    }
    Ok(Verified::Ran)
}

pub(crate) fn grpc(case: &Case) -> Outcome {
    let budget = |most: u32, ratio: f64| {
        let settings = BudgetSettings::Grpc { max_tokens: most, token_ratio: ratio };
        settings.budget().map_err(|e| e.to_string())
    };
    let throttle = budget(case.count("maxTokens")?, case.number("tokenRatio")?)?;
    if case.text("kind")? == "throttle_rescale_on_new_config" {
        let from = Case(case.need("from")?);
        let (most, tokens) = (from.count("maxTokens")?, from.count("tokens")?);
        let old = budget(most, case.number("tokenRatio")?)?;
        (tokens..most).for_each(|_| old.outcome(NOW, FAILED, None));
        throttle.adopt(&old);
    }
    for step in trace(case)? {
        let told = match step.text("event")? {
            "F" => FAILED,
            "S" => Told::Success,
            event => return unknown(event),
        };
        throttle.outcome(NOW, told, None);
        same(&[step.number("tokens")?], &[throttle.balance(NOW)])?;
        let allowed = throttle.withdraw(NOW, FAILED, 0).is_some();
        for (key, expected) in [("canRetry", true), ("throttled", false)] {
            if step.has(key) {
                equal(key, step.flag(key)? == expected, allowed)?;
            }
        }
    }
    Ok(Verified::Ran)
}

pub(crate) fn finagle(case: &Case) -> Outcome {
    let settings = BudgetSettings::Finagle {
        ttl: Duration::from_secs_f64(case.number("ttl_s")?),
        min_per_second: case.count("min_retries_per_sec")?,
        ratio: case.number("percent_can_retry")?,
    };
    let budget = settings.budget().map_err(|e| e.to_string())?;
    budget.reset(NOW);
    let mut now = NOW;
    for step in trace(case)? {
        let event = step.text("event")?;
        if let Some(many) = times(event, "w") {
            let granted = (0..count(many)?).filter(|_| budget.withdraw(now, FAILED, 0).is_some()).count();
            if step.has("granted_count") {
                equal("granted", step.whole("granted_count")?, granted as i64)?;
            } else {
                equal("granted", step.flag("granted")?, granted == 1)?;
            }
        } else if let Some(many) = times(event, "d") {
            (0..count(many)?).for_each(|_| _ = budget.start(now, 0));
        } else if let Some(millis) = times(event, "+") {
            now = now + Duration::from_millis(count(millis)?);
        } else {
            return unknown(event);
        }
        equal("time", step.whole("t_ms")?, (now.as_nanos() / 1_000_000) as i64)?;
        same(&[step.number("balance")?], &[budget.balance(now)])?;
    }
    Ok(Verified::Ran)
}

pub(crate) fn envoy(case: &Case) -> Outcome {
    match case.text("kind")? {
        "retry_budget_max" => {
            let (share, floor) = (case.number("budget_percent")? / 100.0, case.count("min_retry_concurrency")?);
            let budget = Budget::in_flight(share, floor).count_sleeping(false);
            let active = case.count("active")? + case.count("pending")?;
            (0..active).for_each(|_| _ = budget.start(NOW, 0));
            // Each retry that starts takes the place of an attempt that failed, so that what is active stays the same.
            let mut allowed = 0;
            while let Some(paid) = budget.withdraw(NOW, FAILED, 0) {
                if allowed > active + floor {
                    return Err("no end".to_owned());
                }
                budget.outcome(NOW, FAILED, None);
                budget.retry(NOW, paid);
                allowed += 1;
            }
            equal("max_retries", case.count("max_retries")?, allowed)
        }
        "admission_control_reject_probability" => {
            let numbers = ["n_total", "n_success", "threshold", "aggression"].map(|key| case.number(key));
            let [total, success, threshold, aggression] = numbers;
            let p = envoy_rejection(total?, success?, threshold?, aggression?);
            if case.has("uncapped") {
                close(&[case.number("uncapped")?], &[p], ROOTS)?;
            }
            close(&[case.number("out")?], &[p.min(0.8)], ROOTS)
        }
        "adaptive_concurrency" => {
            let numbers = ["min_rtt", "sample_rtt", "buffer"].map(|key| case.number(key));
            let [min_rtt, sample_rtt, buffer] = numbers;
            let (gradient, limit) = gradient(case.count("limit_old")?, min_rtt?, sample_rtt?, buffer?);
            close(&[case.number("gradient")?], &[gradient], ROOTS)?;
            equal("limit", case.count("limit_new")?, limit)
        }
        kind => unknown(kind),
    }
}

pub(crate) fn failsafe_go(case: &Case) -> Outcome {
    match case.text("kind")? {
        "budget" => failsafe_go_budget(case),
        "sre_rejection_rate" => {
            let (executions, successes) = (case.number("executions")?, case.number("successes")?);
            let p = match executions < case.number_or("execution_threshold", 0.0)? {
                true => 0.0,
                false => rejection(executions, successes, case.number("K")?).min(case.number("max_rejection_rate")?),
            };
            close(&[case.number("out")?], &[p], 1e-12)
        }
        kind => unknown(kind),
    }
}

fn failsafe_go_budget(case: &Case) -> Outcome {
    let settings = BudgetSettings::InFlight {
        share: case.number("max_rate")?,
        floor: case.count("min_concurrency")?,
        sleeping: true,
        inclusive: true,
    };
    let budget = settings.budget().map_err(|e| e.to_string())?;
    let (mut executions, mut retries) = (0_i64, Vec::new());
    for step in trace(case)? {
        match step.text("event")? {
            "exec+" => {
                budget.start(NOW, 0);
                executions += 1;
            }
            "exec-" => {
                budget.outcome(NOW, Told::Success, None);
                executions -= 1;
            }
            "retry?" => {
                let granted = budget.withdraw(NOW, FAILED, 0);
                equal("granted", step.flag("granted")?, granted.is_some())?;
                executions += i64::from(granted.is_some());
                retries.extend(granted);
            }
            "retry-" => {
                budget.outcome(NOW, Told::Success, retries.pop());
                executions -= 1;
            }
            event => return unknown(event),
        }
        equal("executions", step.whole("executions")?, executions)?;
        equal("inflight", step.whole("inflight")?, retries.len() as i64)?;
    }
    Ok(Verified::Ran)
}

/// The SRE book: the probability as a formula, and as what a budget that has seen as much does.
pub(crate) fn sre(case: &Case) -> Outcome {
    if case.has("kind") {
        return amplification(case);
    }
    let (requests, accepts, k) = (case.count("requests")?, case.count("accepts")?, case.number("K")?);
    same(&[case.number("out")?], &[rejection(f64::from(requests), f64::from(accepts), k)])?;
    if k < 1.0 {
        // It would refuse attempts of a service that accepts all: relent has no such throttle.
        return Ok(Verified::Ran);
    }
    let budget = Budget::throttle(k);
    (0..requests).for_each(|_| _ = budget.start(NOW, u64::MAX));
    (0..accepts).for_each(|_| budget.outcome(NOW, Told::Success, None));
    same(&[case.number("out")?], &[budget.rejection(NOW)])
}

fn amplification(case: &Case) -> Outcome {
    let (attempts, layers) = (case.number("attempts_per_request")?, case.count("layers")? as i32);
    same(&[case.number("worst_case")?], &[attempts.powi(layers)])?;
    let each = Budget::compat("sre-retries").and_then(|budget| budget.amplification()).ok_or("no figure")?;
    close(&[case.number("with_10pct_client_budget")?], &[each.powi(layers)], 1e-12)
}
