//! The rest of a call of a layer, where its first attempt failed or could not be made at once: attempts as closures are run.

use super::{
    Missed, Repeat, Said, Terms,
    faults::Fate,
    kept::Kept,
    sent::{Called, Rest, SEAL, Sent, seen_as},
};
use crate::{
    Attempt, Error, Policy, Reason, Retrier, Timer, Timestamp, Verdict,
    error::is_given_up,
    hooks::{Heeds, Hooks, Judge, Watch},
    run::{self, First},
    seal::Seal,
    setting::Setting,
    sync::lock,
};
use std::{
    any::Any,
    fmt::Write as _,
    future::poll_fn,
    mem,
    sync::{Arc, Mutex},
};
use tower_service::Service;

/// What attempts of one call share, and what is left when it ends.
pub(super) struct Calls<S, Req, R> {
    /// A service that is ready, for the first attempt.
    pub(super) ready: Option<S>,
    /// The request as it came, for the first attempt.
    pub(super) request: Option<Req>,
    /// A service to clone for each attempt more; of the first attempt, once it has been made.
    pub(super) spare: Option<S>,
    pub(super) kept: Kept<Req>,
    /// The last answer that was a failure.
    pub(super) answer: Option<R>,
    pub(super) made: u32,
}

impl<S: Clone, Req, R> Calls<S, Req, R> {
    /// What the next attempt is made with; `None` if there is nothing to make it with, which is never.
    fn next(&mut self, is_last: bool) -> Option<Next<S, Req, R>>
    where
        Req: Repeat<R>,
    {
        self.made = self.made.saturating_add(1);
        let (service, is_ready) = match self.ready.take() {
            Some(ready) => {
                self.spare = Some(ready.clone());
                (ready, true)
            }
            None => (self.spare.clone()?, false),
        };
        let request = match self.request.take() {
            Some(request) => Some(request),
            None => match (&self.kept, is_last) {
                (Kept::Copy(kept), false) => kept.again(),
                _ => None,
            },
        };
        let request = match (request, mem::replace(&mut self.kept, Kept::None)) {
            (Some(request), kept) => {
                self.kept = kept;
                request
            }
            (None, Kept::Copy(kept)) => kept,
            (None, Kept::TooLarge | Kept::None) => return None,
        };
        Some(Next { service, is_ready, request, old: self.answer.take() })
    }
}

struct Next<S, Req, R> {
    service: S,
    is_ready: bool,
    request: Req,
    /// An answer that nobody will see.
    old: Option<R>,
}

type Shared<S, Req, R> = Arc<Mutex<Calls<S, Req, R>>>;

/// Who judges failures of a layer: the answer's own meaning, the user's word about errors, what is known of errors.
struct Judging<W, S, Req, R> {
    when: W,
    calls: Shared<S, Req, R>,
    terms: Terms,
}

impl<W, S, Req, R, E> Heeds<Missed<E>, ()> for Judging<W, S, Req, R> {}

impl<W, S, Req, R, E> Judge<Missed<E>> for Judging<W, S, Req, R>
where
    W: Judge<E>,
    Req: Repeat<R>,
    E: 'static,
{
    fn judge(&mut self, missed: &Missed<E>, _: Seal) -> Verdict {
        match missed {
            Missed::Answered { verdict, .. } => *verdict,
            Missed::Error(_) if is_given_up::<E>() && !self.terms.get().retries_given_up => Verdict::Permanent,
            Missed::Error(error) if W::IS_DEFAULT => match Req::fate(error as &dyn Any, &self.terms) {
                Some(fate) => fate.verdict,
                None => self.when.judge(error, SEAL),
            },
            Missed::Error(error) => self.when.judge(error, SEAL),
        }
    }

    fn stop(&mut self, missed: Option<&Missed<E>>, _: Seal) -> Option<Reason> {
        let calls = lock(&self.calls);
        let kept = match &calls.kept {
            Kept::Copy(kept) => kept,
            Kept::TooLarge => return Some(Reason::TooLarge),
            Kept::None => return None,
        };
        let left = match missed {
            Some(Missed::Answered { .. }) => !kept.is_refused_by_answers(),
            Some(Missed::Error(error)) => Req::fate(error as &dyn Any, &self.terms).is_none_or(|fate: Fate| fate.left),
            None => true,
        };
        // What has failed as it was sent can never be sent as a whole.
        if kept.size() == u64::MAX {
            Some(Reason::Permanent)
        } else if left && !kept.is_idempotent() && !self.terms.get().repeats_unsafe {
            Some(Reason::NotIdempotent)
        } else if kept.size() > self.terms.body_limit() {
            Some(Reason::TooLarge)
        } else {
            None
        }
    }
}

/// A call as closures are run, in a box.
pub(super) fn rest<S, Req, W, N, C>(
    retrier: Retrier<W, N, C>,
    calls: Calls<S, Req, S::Response>,
    first: Option<(Missed<S::Error>, Option<Timestamp>)>,
    guard: C::Guard,
    terms: Terms,
) -> Rest<S::Response, S::Error>
where
    S: Called<Req>,
    Req: Repeat<S::Response>,
    W: Judge<S::Error> + Clone + Send + 'static,
    N: Watch<Missed<S::Error>> + Clone + Send + 'static,
    C: Sent,
{
    let Retrier { policy, hooks } = retrier;
    let calls: Shared<S, Req, S::Response> = Arc::new(Mutex::new(calls));
    let judging = |when| Judging { when, calls: calls.clone(), terms: terms.clone() };
    let hooks = hooks.map(|when, notify, setting| (judging(when), notify, setting));
    Box::pin(run_rest(policy, hooks, first, guard, calls, terms))
}

async fn run_rest<S, Req, W, N, C>(
    policy: Policy,
    mut hooks: Hooks<Judging<W, S, Req, S::Response>, N, C>,
    first: Option<(Missed<S::Error>, Option<Timestamp>)>,
    guard: C::Guard,
    calls: Shared<S, Req, S::Response>,
    terms: Terms,
) -> Result<S::Response, Error<S::Error>>
where
    S: Called<Req>,
    Req: Repeat<S::Response>,
    W: Judge<S::Error> + Send,
    N: Watch<Missed<S::Error>> + Send,
    C: Setting + Send + Sync,
{
    let first = first.map(|(error, began)| {
        let verdict = hooks.when.judge(&error, SEAL);
        First { began, failures: 0, error, verdict }
    });
    let mut op = |attempt: Attempt| {
        let next = lock(&calls).next(attempt.number() >= policy.max_attempts);
        one(next, attempt, calls.clone(), terms.clone())
    };
    let outcome = match (seen_as(terms.get()), first) {
        #[cfg(any(feature = "metrics", feature = "tracing"))]
        (Some(name), None) => crate::observe::call_of_layer(name, &policy, hooks, op, guard).await,
        (_, first) => run::go_on(&policy, &mut hooks, first, &mut op, guard).await,
    };
    let mut calls = lock(&calls);
    mem::replace(&mut calls.kept, Kept::None).recycle();
    match outcome {
        Ok(mut answer) => {
            if terms.get().records {
                Req::record(&mut answer, &format!("attempts={}", calls.made));
            }
            Ok(answer)
        }
        Err(error) => match calls.answer.take() {
            Some(mut answer) if error.reason != Reason::Cancelled && error.timed_out.is_none() => {
                if error.reason != Reason::Permanent {
                    Req::give_up(&mut answer);
                }
                if terms.get().records {
                    Req::record(&mut answer, &record(&error));
                }
                Ok(answer)
            }
            _ => Err(error.map_last(|missed| match missed {
                Missed::Error(error) => Some(error),
                Missed::Answered { .. } => None,
            })),
        },
    }
}

fn record<E>(error: &Error<E>) -> String {
    let mut record = format!("attempts={}; reason={}", error.attempts, error.reason.as_str());
    if let Some(pushback) = error.pushback {
        // Writing to a string does not fail.
        _ = write!(record, "; pushback_ms={}", pushback.as_millis());
    }
    record
}

/// One attempt.
async fn one<S, Req>(
    next: Option<Next<S, Req, S::Response>>,
    attempt: Attempt,
    calls: Shared<S, Req, S::Response>,
    terms: Terms,
) -> Result<S::Response, Missed<S::Error>>
where
    S: Service<Req> + Clone + Send + 'static,
    S::Response: Send + 'static,
    Req: Repeat<S::Response>,
{
    let Next { mut service, is_ready, mut request, old } = next.expect("what cannot be repeated is stopped before");
    if let Some(old) = old {
        Req::drain(old).await;
    }
    if !is_ready {
        poll_fn(|cx| service.poll_ready(cx)).await.map_err(Missed::Error)?;
    }
    let histogram = terms.get().tally.as_ref();
    let histogram = histogram.and_then(|tally| tally.count(crate::SystemTimer.now(), attempt.number()));
    let said = Said { attempt: attempt.number(), left: attempt.timeout(), histogram, key: None };
    if !said.is_silent() {
        request.announce(&said);
    }
    let answer = service.call(request).await.map_err(Missed::Error)?;
    match Req::verdict(&answer, &terms) {
        None => Ok(answer),
        Some(verdict) => {
            let status = Req::status(&answer);
            let old = lock(&calls).answer.replace(answer);
            drop(old);
            Err(Missed::Answered { status, verdict })
        }
    }
}
