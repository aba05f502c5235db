//! Envoy's `retry_policy` of a route: `num_retries`, `per_try_timeout`, and `retry_back_off` with `base_interval` and
//! `max_interval`.
//!
//! Source: `JitteredExponentialBackOffStrategy` in source/common/common/backoff_strategy.cc: before retry `n` a whole
//! number of milliseconds, `random % interval`, where the interval begins at `base_interval`, doubles while it is
//! below half of `max_interval`, and is `max_interval` from then on. (The documentation says `[0, (2^n - 1) * base)`;
//! the code is followed.) Defaults: 25 ms, ten times the base, one retry. The route's timeout, 15 s by default, holds
//! for all attempts and delays together; `per_try_timeout` is off unless set.

use super::{Reading, Setting, Unreadable, policy, rule};
use crate::redact;
use relent::{
    Backoff, Settings, Step,
    duration::{Human, parse_duration},
    rng::scale,
};
use std::time::Duration;

/// Reads keys and values of a retry policy, written as YAML, JSON or `base_interval=25ms,max_interval=250ms`; what
/// has nothing to do with retries is passed over.
///
/// # Errors
///
/// If a value is not a duration or a number, or the intervals make no sense to Envoy.
pub fn envoy(text: &str) -> Result<Reading, Unreadable> {
    let route = Route::read(text)?;
    let (base, most) = route.intervals()?;
    let retries = route.retries.unwrap_or(1);
    let back_off = rule(EnvoyBackOff { base, most });
    let plain = policy(back_off, Some(retries.saturating_add(1)))?.settings();
    let limited = Settings { timeout: route.timeout(), attempt_timeout: route.per_try(), ..plain };
    Ok(Reading {
        name: "Envoy retry_back_off".to_string(),
        policy: limited.policy()?,
        settings: route.settings(base, most, retries),
        notes: vec!["retries of all requests share max_retries (3) of the cluster, or its retry_budget".to_string()],
        source: "envoy, source/common/common/backoff_strategy.cc; config.route.v3.RetryPolicy",
    })
}

#[derive(Default)]
struct Route {
    base: Option<Duration>,
    most: Option<Duration>,
    retries: Option<u32>,
    per_try_timeout: Option<Duration>,
    timeout: Option<Duration>,
}

const DEFAULT_BASE: Duration = Duration::from_millis(25);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

impl Route {
    fn read(text: &str) -> Result<Route, Unreadable> {
        let is_separator = |c: char| c.is_whitespace() || ":={}[],\"'".contains(c);
        let mut words = text.split(is_separator).filter(|word| !word.is_empty());
        let mut route = Route::default();
        let mut known = false;
        while let Some(key) = words.next() {
            let mut value = || {
                let hint = "write it like base_interval=25ms,max_interval=250ms,num_retries=3";
                words.next().ok_or_else(|| Unreadable::new(format!("{key} has no value"), hint))
            };
            match key {
                "base_interval" | "baseInterval" => route.base = Some(interval(key, value()?)?),
                "max_interval" | "maxInterval" => route.most = Some(interval(key, value()?)?),
                "num_retries" | "numRetries" => route.retries = Some(count(key, value()?)?),
                "per_try_timeout" | "perTryTimeout" => route.per_try_timeout = Some(interval(key, value()?)?),
                "timeout" => route.timeout = Some(interval(key, value()?)?),
                "retry_back_off" | "retryBackOff" | "retry_policy" | "retryPolicy" | "default" => {}
                _ => continue,
            }
            known = true;
        }
        match known {
            true => Ok(route),
            false => Err(Unreadable::new(
                "there is nothing of an Envoy retry policy in it",
                "the keys are base_interval, max_interval, num_retries, per_try_timeout and timeout; \
                 `default` explains the defaults",
            )),
        }
    }

    /// The intervals in whole milliseconds, as Envoy keeps them.
    fn intervals(&self) -> Result<(u64, u64), Unreadable> {
        let base = self.base.unwrap_or(DEFAULT_BASE);
        let most = self.most.unwrap_or(base.saturating_mul(10));
        if base.is_zero() || most < base {
            return Err(Unreadable::new(
                format!("base_interval {} and max_interval {} make no sense to Envoy", Human(base), Human(most)),
                "base_interval must be greater than zero and at most max_interval",
            ));
        }
        Ok((millis(base), millis(most)))
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.timeout.unwrap_or(DEFAULT_TIMEOUT)).filter(|timeout| !timeout.is_zero())
    }

    /// A `per_try_timeout` that is not shorter than the route's timeout is ignored.
    fn per_try(&self) -> Option<Duration> {
        let all = self.timeout().unwrap_or(Duration::MAX);
        self.per_try_timeout.filter(|timeout| !timeout.is_zero() && *timeout < all)
    }

    fn settings(&self, base: u64, most: u64, retries: u32) -> Vec<Setting> {
        let from = |given: bool, default| if given { "given" } else { default };
        let ms = |millis| Human(Duration::from_millis(millis));
        let timeout = self.timeout().map_or("none".to_string(), |timeout| Human(timeout).to_string());
        let per_try = self.per_try().map_or("none".to_string(), |timeout| Human(timeout).to_string());
        let per_try_from = match (self.per_try_timeout, self.per_try()) {
            (None, _) => "default",
            (Some(_), None) => "ignored: not shorter than timeout",
            (Some(_), Some(_)) => "given",
        };
        vec![
            Setting::new("base_interval", ms(base), from(self.base.is_some(), "default")),
            Setting::new("max_interval", ms(most), from(self.most.is_some(), "default: 10 * base_interval")),
            Setting::new("num_retries", retries, from(self.retries.is_some(), "default")),
            Setting::new("per_try_timeout", per_try, per_try_from),
            Setting::new("timeout", timeout, from(self.timeout.is_some(), "default")),
        ]
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Envoy's delays, in milliseconds.
#[derive(Debug)]
struct EnvoyBackOff {
    base: u64,
    most: u64,
}

impl Backoff for EnvoyBackOff {
    fn name(&self) -> &str {
        "envoy"
    }

    fn delay(&self, step: &mut Step) -> Option<Duration> {
        let interval = if step.memory == 0 { self.base } else { step.memory };
        step.memory = if interval < self.most / 2 { interval * 2 } else { self.most };
        // Where Envoy takes the remainder of a random number, the same uniform choice is made by scaling a draw.
        Some(Duration::from_millis(scale(step.draw, interval)))
    }
}

fn count(key: &str, value: &str) -> Result<u32, Unreadable> {
    value.parse().map_err(|_| {
        Unreadable::new(format!("{key} {}: not a whole number", redact::value(value)), "write it like num_retries=3")
    })
}

fn interval(key: &str, value: &str) -> Result<Duration, Unreadable> {
    parse_duration(value).map_err(|bad| Unreadable::new(format!("{key} {}: {bad}", redact::value(value)), bad.hint()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(text: &str, count: usize) -> Vec<u128> {
        let endless = Settings { max_attempts: None, timeout: None, ..envoy(text).unwrap().policy.settings() };
        let policy = endless.policy().unwrap();
        policy.schedule().take(count).map(|row| row.delay.max.as_millis() + 1).collect()
    }

    #[test]
    fn intervals_are_those_of_the_code() {
        assert_eq!(intervals("default", 6), [25, 50, 100, 200, 250, 250]);
        assert_eq!(intervals("base_interval=100ms, max_interval=1s", 6), [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(intervals("{base_interval: 0.05s}", 5), [50, 100, 200, 400, 500]);
    }

    #[test]
    fn reads_yaml_and_json() {
        let yaml =
            "retry_policy:\n  retry_on: \"5xx\"\n  num_retries: 4\n  retry_back_off:\n    base_interval: 0.25s\n";
        let json = r#"{"retryPolicy": {"numRetries": 4, "retryBackOff": {"baseInterval": "0.25s"}}}"#;
        for text in [yaml, json] {
            let settings = envoy(text).unwrap().policy.settings();
            assert_eq!(settings.max_attempts, Some(5));
            assert_eq!(settings.timeout, Some(Duration::from_secs(15)));
            assert_eq!(intervals(text, 1), [250]);
        }
    }

    #[test]
    fn timeouts() {
        let settings = |text| envoy(text).unwrap().policy.settings();
        assert_eq!(settings("timeout: 0s").timeout, None);
        assert_eq!(settings("per_try_timeout: 2s").attempt_timeout, Some(Duration::from_secs(2)));
        assert_eq!(settings("per_try_timeout: 15s").attempt_timeout, None);
    }

    #[test]
    fn what_makes_no_sense_to_envoy_says_why() {
        let problem = |text| envoy(text).unwrap_err().problem;
        assert_eq!(problem("hello"), "there is nothing of an Envoy retry policy in it");
        assert_eq!(problem("base_interval"), "base_interval has no value");
        assert_eq!(problem("base_interval=25"), "base_interval 25: the duration has no unit");
        assert_eq!(problem("num_retries: many"), "num_retries many: not a whole number");
        assert_eq!(problem("num_retries=a\\hunter2"), "num_retries a***: not a whole number");
        assert_eq!(problem("base_interval=a\\hunter2"), "base_interval a***: the duration has a unit without a number");
        let text = "base_interval 1s and max_interval 500ms make no sense to Envoy";
        assert_eq!(problem("base_interval=1s max_interval=500ms"), text);
        assert!(envoy("base_interval=0ms").is_err());
        assert!(envoy("base_interval=500y").is_err());
        envoy("base_interval=200000d,num_retries=4294967295").unwrap();
    }
}
