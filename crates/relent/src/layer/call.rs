//! A call of a layer: the first attempt with nothing around it, and everything else apart, run as closures are.

use super::{Missed, Repeat, Said, Terms, TimeLeft, faults::Fate, terms::Options};
use crate::{
    Attempt, Error, Policy, Reason, Retrier, Timer, Timestamp, Verdict,
    error::is_given_up,
    guard::Guard,
    hooks::{Heeds, Hooks, Judge, Setting, Watch, seal::Seal},
    run::{self, First},
    sync::lock,
    wire::IdempotencyKey,
};
use std::{
    any::Any,
    fmt::{self, Write as _},
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
};
use tower_service::Service;

const SEAL: Seal = Seal(());

/// The rest of a call: what is only allocated where something is in its way.
type Rest<V, E> = Pin<Box<dyn Future<Output = Result<V, Error<E>>> + Send>>;

/// What runs the calls of a layer: a [`Retrier`] whose judge knows the service's errors. Implemented by it; by nothing else.
pub trait Runs<S: Service<Req>, Req: Repeat<S::Response>>: Clone {
    #[doc(hidden)]
    type Guard: Guard;

    #[doc(hidden)]
    fn start(&self, service: &mut S, request: Req, terms: &Terms, _: Seal) -> State<S, Self, Req>;

    #[doc(hidden)]
    fn end(
        first: &mut Option<FirstCall<S, Self, Req>>,
        result: Result<S::Response, S::Error>,
        _: Seal,
    ) -> Result<S::Response, Rest<S::Response, S::Error>>;
}

pin_project_lite::pin_project! {
    #[doc(hidden)]
    #[project = StateProjection]
    pub enum State<S, T, Req>
    where
        S: Service<Req>,
        Req: Repeat<S::Response>,
        T: Runs<S, Req>,
    {
        /// A first attempt that nothing hindered.
        First {
            #[pin]
            attempt: S::Future,
            call: Option<FirstCall<S, T, Req>>,
        },
        /// Everything else.
        Rest { rest: Rest<S::Response, S::Error> },
    }
}

/// What a first attempt under way leaves for what may come after it.
#[doc(hidden)]
pub struct FirstCall<S: Service<Req>, T: Runs<S, Req>, Req: Repeat<S::Response>> {
    retrier: T,
    service: S,
    kept: Kept<Req>,
    guard: T::Guard,
    began: Option<Timestamp>,
    terms: Terms,
}

impl<S, T, Req> State<S, T, Req>
where
    S: Service<Req>,
    Req: Repeat<S::Response>,
    T: Runs<S, Req>,
{
    #[inline]
    pub(crate) fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<S::Response, Error<S::Error>>> {
        if let StateProjection::First { attempt, call } = self.as_mut().project() {
            let result = ready!(attempt.poll(cx));
            match T::end(call, result, SEAL) {
                Ok(answer) => return Poll::Ready(Ok(answer)),
                Err(rest) => self.set(State::Rest { rest }),
            }
        }
        match self.project() {
            StateProjection::Rest { rest } => rest.as_mut().poll(cx),
            StateProjection::First { .. } => Poll::Pending,
        }
    }
}

/// The copy of a request that is sent again.
pub(crate) enum Kept<Req> {
    Copy(Req),
    /// Too large to be kept, or cannot be copied.
    TooLarge,
    /// There is no need for one.
    None,
}

impl<Req> Kept<Req> {
    #[inline]
    fn of<R>(request: &Req, policy: &Policy, terms: &Terms) -> Kept<Req>
    where
        Req: Repeat<R>,
    {
        if policy.max_attempts <= 1 {
            Kept::None
        } else if request.size() > terms.body_limit() {
            Kept::TooLarge
        } else {
            request.again().map_or(Kept::TooLarge, Kept::Copy)
        }
    }

    #[inline]
    fn recycle<R>(self)
    where
        Req: Repeat<R>,
    {
        if let Kept::Copy(request) = self {
            request.recycle();
        }
    }
}

impl<S, Req, W, N, C> Runs<S, Req> for Retrier<W, N, C>
where
    S: Service<Req> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: fmt::Display + Send + 'static,
    Req: Repeat<S::Response>,
    W: Judge<S::Error> + Clone + Send + 'static,
    N: Watch<Missed<S::Error>> + Clone + Send + 'static,
    C: Setting + Clone + Send + Sync + 'static,
    C::Timer: Sync,
    <C::Timer as Timer>::Sleep: Send,
    C::Guard: Send + 'static,
{
    type Guard = C::Guard;

    #[inline]
    fn start(&self, service: &mut S, mut request: Req, terms: &Terms, _: Seal) -> State<S, Self, Req> {
        let mut retrier = self.clone();
        if terms.has_routes()
            && let Some(policy) = request.policy(terms)
        {
            retrier.policy = policy;
        }
        for left in [TimeLeft::current(), request.time_left()].into_iter().flatten() {
            retrier.hooks.deadline = retrier.hooks.deadline.min(left.until());
        }
        let options = terms.get();
        let key =
            if options.has_keys && !request.is_idempotent() { Some(IdempotencyKey::random().value()) } else { None };
        let mut said = Said { attempt: 1, key, ..Said::default() };
        let mut guard = retrier.hooks.setting.guard(SEAL);
        let spare = service.clone();
        if retrier.hooks.is_plain(&retrier.policy) && seen_as(options).is_none() {
            let began = retrier.hooks.began::<Missed<S::Error>>(&retrier.policy, &guard);
            if guard.go_at_once(began.unwrap_or_default()) {
                let mut kept = Kept::of(&request, &retrier.policy, terms);
                if let (Kept::Copy(kept), Some(_)) = (&mut kept, &said.key) {
                    kept.announce(&Said { attempt: 1, key: said.key.clone(), ..Said::default() });
                }
                if let Some(tally) = &options.tally {
                    said.histogram = tally.count(crate::SystemTimer.now(), 1);
                }
                if !said.is_silent() {
                    request.announce(&said);
                }
                let attempt = service.call(request);
                let terms = terms.clone();
                let call = FirstCall { retrier, service: spare, kept, guard, began, terms };
                return State::First { attempt, call: Some(call) };
            }
        }
        let ready = mem::replace(service, spare);
        if let Some(key) = said.key.take() {
            request.announce(&Said { attempt: 1, key: Some(key), ..Said::default() });
        }
        let kept = Kept::of(&request, &retrier.policy, terms);
        let may_hedge = options.may_hedge && request.is_idempotent() && request.is_whole();
        if !may_hedge || !matches!(kept, Kept::Copy(_)) {
            retrier.hooks.setting.unhedge(SEAL);
        }
        let calls = Calls { ready: Some(ready), request: Some(request), spare: None, kept, answer: None, made: 0 };
        State::Rest { rest: rest(retrier, calls, None, guard, terms.clone()) }
    }

    #[inline]
    fn end(
        call: &mut Option<FirstCall<S, Self, Req>>,
        result: Result<S::Response, S::Error>,
        _: Seal,
    ) -> Result<S::Response, Rest<S::Response, S::Error>> {
        let first = call.as_mut().expect(POLLED);
        let missed = match result {
            Ok(mut answer) => match Req::verdict(&answer, &first.terms) {
                None => {
                    // In its place: it is large, and there is nothing more to do with it.
                    first.retrier.hooks.succeeded(&mut first.guard, first.began);
                    if first.terms.get().records {
                        Req::record(&mut answer, "attempts=1");
                    }
                    mem::replace(&mut first.kept, Kept::None).recycle();
                    *call = None;
                    return Ok(answer);
                }
                Some(verdict) => (Missed::Answered { status: Req::status(&answer), verdict }, Some(answer)),
            },
            Err(error) => (Missed::Error(error), None),
        };
        Err(go_on_after(call.take().expect(POLLED), missed))
    }
}

const POLLED: &str = "a future that is ready is not polled again";

/// A first attempt failed.
#[cold]
fn go_on_after<S, Req, W, N, C>(
    first: FirstCall<S, Retrier<W, N, C>, Req>,
    (missed, answer): (Missed<S::Error>, Option<S::Response>),
) -> Rest<S::Response, S::Error>
where
    Retrier<W, N, C>: Runs<S, Req, Guard = C::Guard>,
    S: Service<Req> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: fmt::Display + Send + 'static,
    Req: Repeat<S::Response>,
    W: Judge<S::Error> + Clone + Send + 'static,
    N: Watch<Missed<S::Error>> + Clone + Send + 'static,
    C: Setting + Clone + Send + Sync + 'static,
    C::Timer: Sync,
    <C::Timer as Timer>::Sleep: Send,
    C::Guard: Send + 'static,
{
    let FirstCall { retrier, service, kept, guard, began, terms } = first;
    let calls = Calls { ready: None, request: None, spare: Some(service), kept, answer, made: 1 };
    rest(retrier, calls, Some((missed, began)), guard, terms)
}

/// What attempts of one call share, and what is left when it ends.
struct Calls<S, Req, R> {
    /// A service that is ready, for the first attempt.
    ready: Option<S>,
    /// The request as it came, for the first attempt.
    request: Option<Req>,
    /// A service to clone for each attempt more; of the first attempt, once it has been made.
    spare: Option<S>,
    kept: Kept<Req>,
    /// The last answer that was a failure.
    answer: Option<R>,
    made: u32,
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
        if left && !kept.is_idempotent() && !self.terms.get().repeats_unsafe {
            Some(Reason::NotIdempotent)
        } else if kept.size() > self.terms.body_limit() {
            Some(Reason::TooLarge)
        } else {
            None
        }
    }
}

/// A call as closures are run, in a box.
fn rest<S, Req, W, N, C>(
    retrier: Retrier<W, N, C>,
    calls: Calls<S, Req, S::Response>,
    first: Option<(Missed<S::Error>, Option<Timestamp>)>,
    guard: C::Guard,
    terms: Terms,
) -> Rest<S::Response, S::Error>
where
    S: Service<Req> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: fmt::Display + Send + 'static,
    Req: Repeat<S::Response>,
    W: Judge<S::Error> + Clone + Send + 'static,
    N: Watch<Missed<S::Error>> + Clone + Send + 'static,
    C: Setting + Clone + Send + Sync + 'static,
    C::Timer: Sync,
    <C::Timer as Timer>::Sleep: Send,
    C::Guard: Send + 'static,
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
    S: Service<Req> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: fmt::Display + Send + 'static,
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

/// The name under which a call is seen, if anybody looks.
#[inline]
fn seen_as(options: &Options) -> Option<&'static str> {
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    return options.observed.filter(|_| crate::observe::is_anybody_there());
    #[cfg(not(any(feature = "metrics", feature = "tracing")))]
    options.observed
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
