//! curl's `--retry`, `--retry-delay`, `--retry-max-time`, `--retry-all-errors` and `--retry-connrefused`.
//!
//! Sources: curl(1); `retrycheck` and `post_per_transfer` in src/tool_operate.c: 1 s, doubling up to 10 min, unless
//! `--retry-delay` fixes it (0 means the default); no jitter. `--retry-max-time` is compared with the time passed when
//! an attempt has failed, before the delay, so the next attempt may begin after it. A `Retry-After` that is longer
//! than the delay replaces it (in older versions a shorter one does too) and alone is checked against
//! `--retry-max-time` in advance.

use super::{Reading, Setting, Unreadable, policy, rule};
use crate::redact;
use relent::{Backoff, Curve, Policy, Settings, Step, duration::Human};
use std::time::Duration;

/// Reads a curl command line, or only its retry flags. What has nothing to do with retries is passed over.
///
/// # Errors
///
/// If a value is missing or is not a number, or if a flag begins with `--retry` and is none that curl has.
pub fn curl(line: &str) -> Result<Reading, Unreadable> {
    let flags = Flags::read(line)?;
    Ok(Reading {
        name: flags.name(),
        policy: flags.policy()?,
        settings: flags.settings(),
        notes: flags.notes(),
        source: "curl(1); src/tool_operate.c",
    })
}

#[derive(Default)]
struct Flags {
    retry: Option<u32>,
    delay: Option<Duration>,
    most_time: Option<Duration>,
    all_errors: bool,
    refused: bool,
    attempt_timeout: Option<Duration>,
}

const FIRST: Duration = Duration::from_secs(1);
const CAP: Duration = Duration::from_secs(600);

impl Flags {
    fn read(line: &str) -> Result<Flags, Unreadable> {
        let mut flags = Flags::default();
        let mut words = line.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
        while let Some(word) = words.next() {
            let mut value =
                || words.next().ok_or_else(|| Unreadable::new(format!("{word} has no value"), "curl wants a number"));
            match word {
                "--retry" => flags.retry = Some(count(word, value()?)?),
                "--retry-delay" => flags.delay = Some(seconds(word, value()?)?),
                "--retry-max-time" => flags.most_time = Some(seconds(word, value()?)?),
                "-m" | "--max-time" => flags.attempt_timeout = Some(seconds(word, value()?)?),
                "--retry-all-errors" => flags.all_errors = true,
                "--retry-connrefused" => flags.refused = true,
                _ if word.starts_with("--retr") => {
                    return Err(Unreadable::new(
                        format!("curl has no flag {}", redact::word(word)),
                        "write the value after a space; the flags are --retry, --retry-delay, --retry-max-time, \
                         --retry-all-errors and --retry-connrefused",
                    ));
                }
                _ => {}
            }
        }
        Ok(flags)
    }

    fn name(&self) -> String {
        format!("curl --retry {}", self.retry.unwrap_or(0))
    }

    /// The delay that `--retry-delay` fixes.
    fn fixed_delay(&self) -> Option<Duration> {
        self.delay.filter(|delay| !delay.is_zero())
    }

    fn most_time(&self) -> Option<Duration> {
        self.most_time.filter(|most| !most.is_zero())
    }

    fn policy(&self) -> Result<Policy, Unreadable> {
        let attempts = self.retry.unwrap_or(0).saturating_add(1);
        let curve = match self.fixed_delay() {
            Some(base) => Curve::Constant { base },
            None => Curve::Exponential { base: FIRST, factor: 2.0 },
        };
        let plain = policy(curve, Some(attempts))?.settings();
        // A shorter one would be none with the jitter that there is unless told.
        let longest = |base: Duration| Policy::constant(base.max(Duration::from_nanos(2))).settings().cap;
        let cap = self.fixed_delay().map_or(Some(CAP), longest);
        let attempt_timeout = self.attempt_timeout.filter(|most| !most.is_zero());
        let plain = Settings { cap, attempt_timeout, max_pushback: None, ..plain }.policy()?;
        match self.most_time() {
            None => Ok(plain),
            Some(most) => {
                let limited = rule(UntilLate { delays: plain, most });
                Ok(Settings { curve: limited, cap: None, ..plain.settings() }.policy()?)
            }
        }
    }

    fn settings(&self) -> Vec<Setting> {
        let given = |key, value: Option<Duration>, none: &str| match value {
            Some(value) => Setting::new(key, Human(value), "given"),
            None => Setting::default(key, none),
        };
        let retry = match self.retry {
            Some(count) => Setting::new("--retry", count, "given"),
            None => Setting::default("--retry", 0),
        };
        let delay = match (self.fixed_delay(), self.delay) {
            (Some(delay), _) => Setting::new("--retry-delay", Human(delay), "given"),
            (None, Some(_)) => Setting::new("--retry-delay", "1s doubling to 10m", "0 means the default"),
            (None, None) => Setting::default("--retry-delay", "1s doubling to 10m"),
        };
        vec![
            retry,
            delay,
            given("--retry-max-time", self.most_time(), "none"),
            given("--max-time", self.attempt_timeout, "none"),
            Setting::new("jitter", "none", "fixed"),
        ]
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.retry.is_none_or(|count| count == 0) {
            notes.push("without --retry curl tries once".to_string());
        }
        if let Some(most) = self.most_time() {
            notes.push(format!(
                "--retry-max-time is checked before the delay, not after: an attempt may begin later than {}",
                Human(most)
            ));
        }
        notes.push("a longer Retry-After replaces the delay, however long, unless --retry-max-time is set".to_string());
        notes.push(match (self.all_errors, self.refused) {
            (true, _) => "--retry-all-errors: every failure is retried, whatever the method".to_string(),
            (false, true) => "retried: timeouts, refused connections, 408, 429, 500, 502, 503, 504".to_string(),
            (false, false) => "retried: timeouts, 408, 429, 500, 502, 503, 504; not a refused connection".to_string(),
        });
        notes
    }
}

/// Another policy's delays until this much time has passed at a failure: curl's `--retry-max-time`.
#[derive(Debug)]
struct UntilLate {
    delays: Policy,
    most: Duration,
}

impl Backoff for UntilLate {
    fn name(&self) -> &str {
        "curl"
    }

    fn delay(&self, step: &mut Step) -> Option<Duration> {
        if step.elapsed >= self.most {
            return None;
        }
        let nth = step.failures.saturating_sub(1).min(64) as usize;
        let endless = Settings { max_attempts: None, ..self.delays.settings() }.policy().ok()?;
        endless.delays(0).nth(nth)
    }
}

fn count(flag: &str, value: &str) -> Result<u32, Unreadable> {
    value.parse().map_err(|_| {
        Unreadable::new(format!("{flag} {}: not a whole number", redact::word(value)), "write it like --retry 5")
    })
}

fn seconds(flag: &str, value: &str) -> Result<Duration, Unreadable> {
    let seconds = value.parse::<f64>().ok().filter(|seconds| *seconds >= 0.0);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        Unreadable::new(
            format!("{flag} {}: not a number of seconds", redact::word(value)),
            "curl writes durations without a unit",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(line: &str) -> Vec<u64> {
        curl(line).unwrap().policy.schedule().map(|row| row.delay.max.as_secs()).collect()
    }

    #[test]
    fn delays_double_up_to_ten_minutes() {
        assert_eq!(delays("--retry 12"), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(delays("--retry 3 --retry-delay 0"), [1, 2, 4]);
        assert_eq!(delays("curl -s --retry 3 --retry-delay 5 -o x 'https://x'"), [5, 5, 5]);
        assert!(delays("curl https://x").is_empty());
    }

    /// Failures at 0, 1, 3 and 7 s are retried, the last after 8 s more; the one at 15 s is not.
    #[test]
    fn the_time_limit_is_checked_before_the_delay() {
        assert_eq!(delays("--retry 10 --retry-max-time 10"), [1, 2, 4, 8]);
        assert_eq!(delays("--retry 10 --retry-max-time 7"), [1, 2, 4]);
        assert_eq!(delays("--retry 2 --retry-max-time 10"), [1, 2]);
        assert_eq!(delays("--retry 2 --retry-max-time 0"), [1, 2]);
        assert_eq!(delays("--retry 9 --retry-delay 4 --retry-max-time 10"), [4, 4, 4]);
    }

    #[test]
    fn fractions_and_timeouts() {
        let policy = curl("--retry 1 --retry-delay 0.5 -m 2.5").unwrap().policy;
        assert_eq!(policy.settings().attempt_timeout, Some(Duration::from_millis(2500)));
        assert_eq!(policy.schedule().next().unwrap().delay.max, Duration::from_millis(500));
        // As short as there are.
        for least in ["1e-9", "0.000000001", "0.0000000015", "2e-9"] {
            let policy = curl(&format!("--retry 3 --retry-delay {least}")).unwrap().policy;
            assert!(policy.schedule().all(|row| (1..=2).contains(&row.delay.max.as_nanos())), "{least}");
        }
    }

    #[test]
    fn what_is_no_flag_of_curl_says_why() {
        let problem = |line| curl(line).unwrap_err().problem;
        assert_eq!(problem("--retry"), "--retry has no value");
        assert_eq!(problem("--retry five"), "--retry five: not a whole number");
        assert_eq!(problem("--retry-delay 1s"), "--retry-delay 1s: not a number of seconds");
        assert_eq!(problem("--retry-delay -1"), "--retry-delay -1: not a number of seconds");
        assert_eq!(problem("--retry-delay NaN"), "--retry-delay NaN: not a number of seconds");
        assert_eq!(problem("--retry kennwort=hunter2"), "--retry kennwort=***: not a whole number");
        assert_eq!(problem("--retry 1 -m -uann:hunter2"), "-m -uann:***: not a number of seconds");
        assert_eq!(problem("--retry -pHunter2"), "--retry -p***: not a whole number");
        assert_eq!(problem("--retry-x=ann:hunter2"), "curl has no flag --retry-x=***");
        assert_eq!(problem("--retries 5"), "curl has no flag --retries");
        assert!(curl("--retry 4294967295 --retry-delay 1e300").is_err());
    }
}
