//! A call of a layer: the first attempt with nothing around it, and everything else apart, run as closures are.

use super::{
    Caller, Missed, Repeat, Said, Terms, TimeLeft,
    kept::Kept,
    rest::{Calls, rest},
    sent::{Called, Rest, SEAL, Sent, seen_as},
    terms::Options,
};
use crate::{
    Error, Retrier, Timer, Timestamp,
    guard::Guard,
    hooks::{Judge, Watch},
    seal::Seal,
    wire::IdempotencyKey,
};
use http::HeaderValue;
use std::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_service::Service;

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

impl<S, Req, W, N, C> Runs<S, Req> for Retrier<W, N, C>
where
    S: Called<Req>,
    Req: Repeat<S::Response>,
    W: Judge<S::Error> + Clone + Send + 'static,
    N: Watch<Missed<S::Error>> + Clone + Send + 'static,
    C: Sent,
{
    type Guard = C::Guard;

    #[inline]
    fn start(&self, service: &mut S, mut request: Req, terms: &Terms, _: Seal) -> State<S, Self, Req> {
        let chosen = if terms.has_routes() { request.policy(terms) } else { None };
        let policy = chosen.as_ref().unwrap_or(&self.policy);
        let mut deadline = Timestamp::MAX;
        if let Some(left) = TimeLeft::current() {
            deadline = left.until();
        }
        if let Some(left) = request.time_left() {
            deadline = deadline.min(left.until());
        }
        let options = terms.get();
        let key =
            if options.has_keys && !request.is_idempotent() { Some(IdempotencyKey::random().value()) } else { None };
        let mut guard = self.hooks.setting.guard(SEAL);
        let spare = service.clone();
        if deadline == Timestamp::MAX && self.hooks.is_plain(policy) && seen_as(options).is_none() {
            let began = self.hooks.began::<Missed<S::Error>>(policy, &guard);
            if guard.go_at_once(began.unwrap_or_default()) {
                let mut kept = Kept::of(&request, policy, terms);
                if let (Kept::Copy(kept), Some(_)) = (&mut kept, &key) {
                    kept.announce(&Said { attempt: 1, key: key.clone(), ..Said::default() });
                }
                if key.is_some() || options.tally.is_some() || Caller::is_retry() {
                    say_first::<S::Response, Req>(&mut request, key, options);
                }
                let attempt = service.call(request);
                let terms = terms.clone();
                // Where it stays: written here and there, and copied as a whole at once, would take as long as all the rest.
                let retrier = Retrier { policy: *policy, hooks: self.hooks.clone() };
                let call = FirstCall { retrier, service: spare, kept, guard, began, terms };
                return State::First { attempt, call: Some(call) };
            }
        }
        let mut retrier = Retrier { policy: *policy, hooks: self.hooks.clone() };
        retrier.hooks.deadline = retrier.hooks.deadline.min(deadline);
        let ready = mem::replace(service, spare);
        if key.is_some() {
            request.announce(&Said { attempt: 1, key, ..Said::default() });
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

/// Kept apart, so that who has nothing to say pays nothing for it.
#[inline(never)]
fn say_first<R, Req: Repeat<R>>(request: &mut Req, key: Option<HeaderValue>, options: &Options) {
    let histogram = options.tally.as_ref().and_then(|tally| tally.count(crate::SystemTimer.now(), 1));
    request.announce(&Said { attempt: 1, left: None, histogram, key });
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
    S: Called<Req>,
    Req: Repeat<S::Response>,
    W: Judge<S::Error> + Clone + Send + 'static,
    N: Watch<Missed<S::Error>> + Clone + Send + 'static,
    C: Sent,
{
    let FirstCall { retrier, service, kept, guard, began, terms } = first;
    let calls = Calls { ready: None, request: None, spare: Some(service), kept, answer, made: 1 };
    rest(retrier, calls, Some((missed, began)), guard, terms)
}
