//! Kubernetes' restarts of a container: CrashLoopBackOff.
//!
//! Sources: "Pod Lifecycle", kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle (the first restart is immediate,
//! then 10 s, doubling up to 5 min; forgotten after 10 minutes without problems); KEP-4603 (feature gate
//! `ReduceDefaultCrashLoopBackOffDecay`: 1 s up to 1 min) and KEP-5593 (kubelet configuration
//! `crashLoopBackOff.maxContainerRestartPeriod`, 1 s to 5 min, which also lowers a first delay that is longer). The
//! delay counts from the end of the container, and there is no jitter: flowcontrol.Backoff of client-go.

use super::{Reading, Setting, Unreadable, list, policy};
use crate::redact;
use relent::duration::{Human, parse_duration};
use std::time::Duration;

/// Reads what is different from the defaults: nothing, or `reduced` and `max=DURATION` with a comma between.
///
/// # Errors
///
/// If a word is none of these, or the duration is not between 1 s and 5 min.
pub fn kubernetes(options: &str) -> Result<Reading, Unreadable> {
    let (mut reduced, mut most) = (false, None);
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            None if option == "reduced" => reduced = true,
            Some(("max", value)) => most = Some(restart_period(value)?),
            _ => {
                return Err(Unreadable::new(
                    format!("{:?} is no option of Kubernetes' restarts", redact::value(option)),
                    "use --kubernetes, --kubernetes=reduced or --kubernetes=max=30s",
                ));
            }
        }
    }
    let (first, default_cap) = if reduced { (1, 60) } else { (10, 300) };
    let cap = most.unwrap_or(Duration::from_secs(default_cap));
    let first = Duration::from_secs(first).min(cap);
    Ok(Reading {
        name: "Kubernetes CrashLoopBackOff".to_string(),
        policy: policy(list(delays(first, cap)), None)?,
        settings: settings(first, cap, reduced, most.is_some()),
        notes: vec![
            "the first restart is immediate; the delay counts from the end of the container".to_string(),
            "a container that ran 10m without problems begins anew".to_string(),
            "restarts go on for ever; a Job ends after its backoffLimit (6)".to_string(),
        ],
        source: "kubernetes.io, Pod Lifecycle; KEP-4603 (reduced), KEP-5593 (max)",
    })
}

fn delays(first: Duration, cap: Duration) -> Vec<Duration> {
    let doubled = std::iter::successors(Some(first), |&delay| (delay < cap).then(|| (delay * 2).min(cap)));
    std::iter::once(Duration::ZERO).chain(doubled).collect()
}

fn settings(first: Duration, cap: Duration, reduced: bool, given: bool) -> Vec<Setting> {
    let gate = if reduced { "ReduceDefaultCrashLoopBackOffDecay" } else { "default" };
    let period = if given { "maxContainerRestartPeriod" } else { gate };
    vec![
        Setting::new("first delay", Human(first), if given && first == cap { period } else { gate }),
        Setting::new("factor", 2, "fixed"),
        Setting::new("longest delay", Human(cap), period),
        Setting::new("jitter", "none", "fixed"),
        Setting::new("reset after", Human(Duration::from_secs(600)), "fixed"),
    ]
}

fn restart_period(value: &str) -> Result<Duration, Unreadable> {
    let period = parse_duration(value)
        .map_err(|bad| Unreadable::new(format!("max={}: {bad}", redact::value(value)), bad.hint()))?;
    if period < Duration::from_secs(1) || period > Duration::from_secs(300) {
        return Err(Unreadable::new(
            format!("max={value} is not between 1s and 5m"),
            "the kubelet refuses such a maxContainerRestartPeriod",
        ));
    }
    Ok(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(options: &str) -> Vec<u64> {
        kubernetes(options).unwrap().policy.delays(0).take(8).map(|delay| delay.as_secs()).collect()
    }

    #[test]
    fn delays_are_those_of_the_documentation() {
        assert_eq!(seconds(""), [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(seconds("reduced"), [0, 1, 2, 4, 8, 16, 32, 60]);
        assert_eq!(seconds("max=30s"), [0, 10, 20, 30, 30, 30, 30, 30]);
        assert_eq!(seconds("max=2s"), [0, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(seconds("reduced, max=5m"), [0, 1, 2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn what_is_no_option_says_why() {
        let problem = |options| kubernetes(options).unwrap_err().problem;
        assert_eq!(problem("slow"), "\"slow\" is no option of Kubernetes' restarts");
        assert_eq!(problem("max=10m"), "max=10m is not between 1s and 5m");
        assert_eq!(problem("ann:hunter2"), "\"ann:***\" is no option of Kubernetes' restarts");
        assert_eq!(problem("max=ann:hunter2"), "max=ann:***: the duration has a unit without a number");
        assert_eq!(problem("max=10"), "max=10: the duration has no unit");
    }
}
