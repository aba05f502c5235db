//! What is seen of one call, wherever it is told.

#[cfg(feature = "tracing")]
use super::spans;
use super::told::End;
#[cfg(feature = "metrics")]
use super::{figures, told::Names};
use crate::{Cause, Error, Event, Reason, Setting, Timer, Timestamp, Verdict, guard::Guard, run::SEAL};
use core::{
    fmt::Display,
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Whether anybody listens or records.
pub(crate) fn is_anybody_there() -> bool {
    #[cfg(feature = "tracing")]
    if spans::is_listening() {
        return true;
    }
    #[cfg(feature = "metrics")]
    if figures::is_recording() {
        return true;
    }
    false
}

/// One call. Whatever becomes of it is told once, at the latest when it is dropped.
pub(super) struct Seen {
    #[cfg(feature = "metrics")]
    names: Names,
    began: Timestamp,
    started: AtomicU32,
    succeeded: AtomicU32,
    failed: AtomicU32,
    /// Failures of which somebody said what they mean, and those that ran out of time.
    judged: AtomicU32,
    timed_out: AtomicU32,
    waited: AtomicU64,
    is_over: core::sync::atomic::AtomicBool,
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

impl Seen {
    pub(super) fn begin<S: Setting>(policy: &'static str, setting: &S) -> Seen {
        let guard = setting.guard(SEAL);
        let upstream = guard.upstream(SEAL).map_or("", |upstream| upstream.name());
        Seen {
            #[cfg(feature = "tracing")]
            span: spans::call(policy, upstream),
            #[cfg(feature = "metrics")]
            names: Names { policy, upstream: upstream.into() },
            began: setting.timer(SEAL).now(),
            started: AtomicU32::new(0),
            succeeded: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            judged: AtomicU32::new(0),
            timed_out: AtomicU32::new(0),
            waited: AtomicU64::new(0),
            is_over: false.into(),
        }
    }

    /// Runs a call within its span.
    pub(super) async fn within<F: Future>(&self, call: F) -> F::Output {
        let mut call = pin!(call);
        poll_fn(|cx| self.within_blocking(|| call.as_mut().poll(cx))).await
    }

    pub(super) fn within_blocking<R>(&self, call: impl FnOnce() -> R) -> R {
        #[cfg(feature = "tracing")]
        return self.span.in_scope(call);
        #[cfg(not(feature = "tracing"))]
        call()
    }

    pub(super) async fn attempt<V, E>(&self, attempt: impl Future<Output = Result<V, E>>) -> Result<V, E> {
        self.started.fetch_add(1, Relaxed);
        let result = attempt.await;
        self.ended(&result);
        result
    }

    pub(super) fn attempt_blocking<V, E>(&self, attempt: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        self.started.fetch_add(1, Relaxed);
        let result = attempt();
        self.ended(&result);
        result
    }

    fn ended<V, E>(&self, result: &Result<V, E>) {
        match result {
            Ok(_) => {
                self.succeeded.fetch_add(1, Relaxed);
                self.count_attempts("success", 1);
            }
            Err(_) => {
                self.failed.fetch_add(1, Relaxed);
            }
        }
    }

    /// What a failure means, handed through.
    pub(super) fn judged(&self, verdict: Verdict) -> Verdict {
        self.judged.fetch_add(1, Relaxed);
        self.count_attempts(word(verdict), 1);
        verdict
    }

    /// A failure that will be retried.
    pub(super) fn retried<E: Display>(&self, event: &Event<'_, E>) {
        if let Cause::TimedOut(_) = event.error {
            self.has_timed_out();
        }
        let delay = crate::core::time::nanos(event.delay);
        // Saturates where the sum does not fit, which is after centuries.
        let _ = self.waited.fetch_update(Relaxed, Relaxed, |sum| Some(sum.saturating_add(delay)));
        #[cfg(feature = "tracing")]
        spans::retried(event);
        #[cfg(feature = "metrics")]
        figures::retried(&self.names);
    }

    fn has_timed_out(&self) {
        self.timed_out.fetch_add(1, Relaxed);
        self.count_attempts("timeout", 1);
    }

    /// Tells the end, and hands the result through.
    pub(super) fn end<V, E, S: Setting>(&self, setting: &S, result: Result<V, Error<E>>) -> Result<V, Error<E>> {
        let (outcome, reason) = match &result {
            Ok(_) => ("success", ""),
            Err(error) => {
                if error.timed_out.is_some() && error.reason != Reason::Cancelled {
                    self.has_timed_out();
                }
                ("failure", error.reason.as_str())
            }
        };
        let now = setting.timer(SEAL).now();
        self.tell_end(outcome, reason, now.since(self.began));
        #[cfg(feature = "metrics")]
        if let Some(upstream) = setting.guard(SEAL).upstream(SEAL) {
            figures::upstream(&self.names, &upstream.snapshot_at(now));
        }
        result
    }

    fn tell_end(&self, outcome: &'static str, reason: &'static str, elapsed: Duration) {
        if self.is_over.swap(true, Relaxed) {
            return;
        }
        let [started, succeeded, failed] = [&self.started, &self.succeeded, &self.failed].map(|n| n.load(Relaxed));
        // What an inner policy gave up on, nobody is asked about.
        self.count_attempts("permanent", failed.saturating_sub(self.judged.load(Relaxed)));
        let ended = succeeded.saturating_add(failed).saturating_add(self.timed_out.load(Relaxed));
        self.count_attempts("dropped", started.saturating_sub(ended));
        let end = End { outcome, reason, attempts: started };
        #[cfg(feature = "tracing")]
        spans::ended(&self.span, &end);
        #[cfg(feature = "metrics")]
        figures::ended(&self.names, &end, Duration::from_nanos(self.waited.load(Relaxed)), elapsed);
        #[cfg(not(feature = "metrics"))]
        let _ = elapsed;
    }

    fn count_attempts(&self, verdict: &'static str, attempts: u32) {
        #[cfg(feature = "metrics")]
        if attempts > 0 {
            figures::attempts(&self.names, verdict, attempts);
        }
        #[cfg(not(feature = "metrics"))]
        let _ = (verdict, attempts);
    }
}

/// A call that nobody waits for any more.
impl Drop for Seen {
    fn drop(&mut self) {
        self.tell_end("dropped", "", Duration::ZERO);
    }
}

/// A verdict as a label: without how long, or there would be as many series as durations.
const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Transient => "transient",
        Verdict::Permanent => "permanent",
        Verdict::After(_) => "after",
        Verdict::Turn(_) => "turn",
        Verdict::Overloaded => "overloaded",
    }
}
