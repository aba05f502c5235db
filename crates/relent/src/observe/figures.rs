//! What is told to `metrics`.

use super::told::{End, Names};
#[cfg(feature = "tower")]
use crate::core::admission::refusal::Rule;
use crate::{BreakerState, UpstreamChange, UpstreamSnapshot};
use core::time::Duration;
use metrics::{Key, Label, Level, Metadata, Recorder, SharedString, Unit, with_recorder};
use std::sync::Once;

const META: Metadata<'static> = Metadata::new("relent", Level::INFO, Some("relent"));

/// Whether there is a recorder. What stands in for none has no fields; one without fields that is installed for all
/// stands nowhere in memory.
pub(super) fn is_recording() -> bool {
    const NOWHERE: usize = 4096;
    with_recorder(|recorder| size_of_val(recorder) > 0 || (&raw const *recorder).cast::<()>().addr() < NOWHERE)
}

fn labels(names: &Names) -> Vec<Label> {
    vec![Label::new("upstream", upstream_of(names)), Label::from_static_parts("policy", names.policy)]
}

fn upstream_of(names: &Names) -> SharedString {
    SharedString::from_shared(names.upstream.clone())
}

fn count(name: &'static str, labels: Vec<Label>, by: u32) {
    let key = Key::from_parts(name, labels);
    with_recorder(|recorder| recorder.register_counter(&key, &META).increment(by.into()));
}

fn record(name: &'static str, labels: Vec<Label>, value: f64) {
    let key = Key::from_parts(name, labels);
    with_recorder(|recorder| recorder.register_histogram(&key, &META).record(value));
}

fn set(name: &'static str, upstream: SharedString, value: f64) {
    let key = Key::from_parts(name, vec![Label::new("upstream", upstream)]);
    with_recorder(|recorder| recorder.register_gauge(&key, &META).set(value));
}

pub(super) fn attempts(names: &Names, verdict: &'static str, by: u32) {
    let mut labels = labels(names);
    labels.push(Label::from_static_parts("verdict", verdict));
    count("relent_attempts_total", labels, by);
}

pub(super) fn retried(names: &Names) {
    count("relent_retries_total", labels(names), 1);
}

pub(super) fn ended(names: &Names, end: &End, waited: Duration, elapsed: Duration) {
    describe();
    let mut all = labels(names);
    all.push(Label::from_static_parts("outcome", end.outcome));
    all.push(Label::from_static_parts("reason", end.reason));
    count("relent_calls_total", all, 1);
    if end.outcome != "dropped" {
        record("relent_call_attempts", labels(names), end.attempts.into());
        record("relent_call_delay_seconds", labels(names), waited.as_secs_f64());
        record("relent_call_elapsed_seconds", labels(names), elapsed.as_secs_f64());
    }
}

pub(super) fn upstream(names: &Names, now: &UpstreamSnapshot) {
    if let Some(balance) = now.balance {
        set("relent_budget_balance", upstream_of(names), balance);
    }
    if let Some(breaker) = &now.breaker {
        set("relent_breaker_state", upstream_of(names), number(breaker.state));
    }
    if let Some(limit) = now.limit.as_ref().and_then(|limit| limit.rate.or(limit.limit)) {
        set("relent_limiter_limit", upstream_of(names), limit);
    }
}

pub(super) fn changed(change: &UpstreamChange<'_>) {
    if is_recording() {
        set("relent_breaker_state", change.upstream.to_owned().into(), number(change.to));
    }
}

#[cfg(feature = "tower")]
pub(super) fn refused(rule: Rule) {
    static ONCE: Once = Once::new();
    describe();
    let told = |rule: Rule, by| {
        count("relent_shed_total", vec![Label::from_static_parts("reason", rule.as_str())], by);
    };
    // All are there from the first on, so that a rate sees each rise from zero.
    ONCE.call_once(|| Rule::ALL.into_iter().for_each(|rule| told(rule, 0)));
    told(rule, 1);
}

const fn number(state: BreakerState) -> f64 {
    match state {
        BreakerState::Closed | BreakerState::HeldClosed => 0.0,
        BreakerState::HalfOpen | BreakerState::Ramp => 1.0,
        BreakerState::Open | BreakerState::HeldOpen => 2.0,
    }
}

/// Says once what the figures mean.
fn describe() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| with_recorder(describe_to));
}

fn describe_to(recorder: &dyn Recorder) {
    for (name, says) in [
        ("relent_calls_total", "Calls, by how they ended and why."),
        ("relent_attempts_total", "Attempts of calls, by what became of them."),
        ("relent_retries_total", "Retries."),
        ("relent_shed_total", "Requests that an admission refused, by the reason."),
    ] {
        recorder.describe_counter(name.into(), Some(Unit::Count), says.into());
    }
    for (name, unit, says) in [
        ("relent_call_attempts", Unit::Count, "Attempts of a call."),
        ("relent_call_delay_seconds", Unit::Seconds, "What a call waited between its attempts."),
        ("relent_call_elapsed_seconds", Unit::Seconds, "How long a call took."),
    ] {
        recorder.describe_histogram(name.into(), Some(unit), says.into());
    }
    for (name, says) in [
        ("relent_budget_balance", "What is left of the budget of retries."),
        ("relent_breaker_state", "The breaker: 0 closed, 1 half-open, 2 open."),
        ("relent_limiter_limit", "Attempts that may be in flight, or a second."),
    ] {
        recorder.describe_gauge(name.into(), None, says.into());
    }
}
