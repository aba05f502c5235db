//! What is told to `tracing`.

use super::told::End;
use crate::{Event, UpstreamChange, duration::Human};
use core::fmt::Display;
use tracing::{Level, Span, field};

pub(super) fn is_listening() -> bool {
    tracing::enabled!(target: "relent", Level::WARN)
}

pub(super) fn call(policy: &'static str, upstream: &str) -> Span {
    tracing::info_span!(
        target: "relent",
        "call",
        policy,
        upstream,
        attempts = field::Empty,
        outcome = field::Empty,
        reason = field::Empty,
    )
}

pub(super) fn retried<E: Display>(event: &Event<'_, E>) {
    tracing::warn!(
        target: "relent",
        attempt = event.attempt.number(),
        delay = %Human(event.delay),
        error = %event.error,
        reason = %event.verdict,
        "will try again"
    );
}

pub(super) fn ended(span: &Span, end: &End) {
    span.record("attempts", end.attempts);
    span.record("outcome", end.outcome);
    if !end.reason.is_empty() {
        span.record("reason", end.reason);
    }
}

pub(super) fn changed(change: &UpstreamChange<'_>) {
    let (from, to) = (change.from.as_str(), change.to.as_str());
    tracing::warn!(target: "relent", upstream = change.upstream, from, to, "breaker changed");
}
