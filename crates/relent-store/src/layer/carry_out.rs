//! One request with a key, from its body to its answer.

use super::{
    Answered, Claimed, IdempotencyBody, Rules, Shared,
    answer::{self, Refusal},
    body::Read,
};
use crate::{Abandon, Claim, Effect, Engine, Fence, Fingerprint, Key, OnceError, Scope};
use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body::Body;
use relent::{
    layer::Caller,
    wire::{IDEMPOTENCY_KEY, IdempotencyKey},
};
use std::{
    future::pending,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use tower_service::Service;

/// The longest tenant and path that stand in a scope as they are; longer ones by their fingerprints.
const READABLE: usize = 400;

/// The answer of a service that is not kept.
enum Unkept<R: Body, X> {
    Answer(Response<IdempotencyBody<R>>),
    Failed(X),
}

pub(super) async fn carry_out<S, B, R, E>(
    shared: Arc<Shared<E>>,
    service: S,
    parts: Parts,
    body: B,
) -> Answered<R, S::Error>
where
    S: Service<Request<IdempotencyBody<B>>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
    E: Engine,
{
    let key = match key(&parts) {
        Ok(key) => key,
        Err(refusal) => return Ok(refusal.answer()),
    };
    let scope = match scope(&shared.rules, &parts) {
        Ok(scope) => scope,
        Err(refusal) => return Ok(refusal.answer()),
    };
    let body = Read::all(body, shared.rules.max_request).await;
    if body.has_failed() {
        return Ok(Refusal::BodyFailed.answer());
    }
    if body.is_too_large() {
        return Ok(Refusal::TooLarge(shared.rules.max_request).answer());
    }
    let (query, bytes) = (parts.uri.query().unwrap_or_default(), body.data());
    let fingerprint = Fingerprint::of([query.as_bytes(), &bytes].into_iter().chain(body.trailers()));
    let question = shared.rules.look.is_some().then(|| Request::from_parts(parts.clone(), bytes));
    let request = Request::from_parts(parts, body.again());

    // From here on it goes on when nobody waits any more: who comes again finds what came of it.
    let claimed = Arc::new(OnceLock::new());
    let (store, caller) = (shared.store.clone(), Caller::current());
    let claim = Claim { scope, key, fence: Fence(0) };
    let work = once(shared, service, (request, question), claim.clone(), fingerprint, claimed.clone());
    let task = match caller {
        Some(caller) => tokio::spawn(caller.scope(work)),
        None => tokio::spawn(work),
    };
    match task.await {
        Ok(answer) => answer,
        Err(died) => {
            if let Some(fence) = claimed.get() {
                let claim = Claim { fence: *fence, ..claim };
                let _ = store.abandon(&claim, Abandon::Unknown).await;
            }
            match died.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is ending, and everything with it.
                Err(_) => pending().await,
            }
        }
    }
}

async fn once<S, B, R, E>(
    shared: Arc<Shared<E>>,
    service: S,
    (request, question): (Request<IdempotencyBody<B>>, Option<Request<Bytes>>),
    claim: Claim,
    fingerprint: Fingerprint,
    claimed: Arc<OnceLock<Fence>>,
) -> Answered<R, S::Error>
where
    S: Service<Request<IdempotencyBody<B>>, Response = Response<R>>,
    B: Body<Data = Bytes>,
    R: Body<Data = Bytes>,
    E: Engine,
{
    let Shared { store, rules } = &*shared;
    let mut once = store.once(&claim.scope, &claim.key).fingerprint(fingerprint);
    once = once.lease(rules.lease).keep(rules.keep).on_failure(rules.on_failure);
    if rules.reruns {
        once = once.rerun();
    }
    let answered = Arc::new(Mutex::new(None));
    let (slot, whose, mut taken) = (answered.clone(), claim.clone(), Some((service, request)));
    let outer = shared.clone();
    let work = move |effect: Effect| {
        let _ = claimed.set(effect.fence);
        let claim = Claim { fence: effect.fence, ..whose.clone() };
        let (taken, slot, shared) = (taken.take(), slot.clone(), outer.clone());
        async move {
            // There is one attempt.
            let Some((mut service, mut request)) = taken else { return pending().await };
            let (keep, headers) = (shared.rules.keep, shared.rules.headers.clone());
            request.extensions_mut().insert(Claimed { claim, unknown: effect.unknown, keep, headers });
            let (head, body) = service.call(request).await.map_err(Unkept::Failed)?.into_parts();
            if !(shared.rules.stores)(head.status) {
                return Err(Unkept::Answer(Response::from_parts(head, IdempotencyBody::as_it_is(body))));
            }
            let body = Read::all(body, shared.rules.max_answer).await;
            let mut head = Response::from_parts(head, ());
            let stored = answer::kept(&head, &shared.rules.headers, body.bytes().as_ref());
            answer::tell_keep(head.headers_mut(), keep);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(head.map(|()| body.again()));
            Ok(stored)
        }
    };
    let done = match (&rules.look, question) {
        (Some(look), Some(question)) => {
            let look = async |since| {
                let found = look(question, since).await?;
                Ok::<_, ()>(found.map(|answer| {
                    let (head, body) = answer.into_parts();
                    let body = Some(&body).filter(|body| body.len() <= rules.max_answer);
                    answer::kept(&Response::from_parts(head, ()), &rules.headers, body)
                }))
            };
            once.reconcile(look).run(work).await
        }
        _ => once.run(work).await,
    };
    let answered = answered.lock().unwrap_or_else(PoisonError::into_inner).take();
    let refusal = match done {
        Ok(done) if done.is_replayed => return Ok(answer::replayed(&done.stored, rules.keep)),
        // What could not be recorded was done all the same.
        Ok(_) | Err(OnceError::NotKept { .. }) => match answered {
            Some(answer) => return Ok(answer),
            None => Refusal::NotKept,
        },
        Err(OnceError::Failed(err)) => match err.last {
            Some(Unkept::Answer(answer)) => return Ok(answer),
            Some(Unkept::Failed(error)) => return Err(error),
            None => Refusal::Unknown,
        },
        Err(OnceError::Busy { retry_after }) => Refusal::Busy(retry_after),
        Err(OnceError::Mismatch) => Refusal::Mismatch,
        Err(OnceError::Unknown { .. }) => Refusal::Unknown,
        Err(OnceError::Fenced(_)) => Refusal::Passed,
        Err(OnceError::Store(_)) => Refusal::StoreAway,
    };
    Ok(refusal.answer())
}

/// The one key that a request has.
fn key(parts: &Parts) -> Result<Key, Refusal> {
    let mut values = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
    match (values.next(), values.next()) {
        (None, _) => Err(Refusal::Missing),
        (Some(value), None) => {
            let key = IdempotencyKey::read(value).ok_or(Refusal::NoKey)?;
            Key::new(key.as_str()).map_err(|_| Refusal::NoKey)
        }
        _ => Err(Refusal::NoKey),
    }
}

/// Tenant, method and path, or what stands for it; what is long by its fingerprint.
fn scope(rules: &Rules, parts: &Parts) -> Result<Scope, Refusal> {
    let short = |part: &[u8]| match part {
        // A mark before each, so that no short one is the fingerprint of a long one.
        short if short.len() <= READABLE / 2 => [b"=", short].concat(),
        long => [&b"#"[..], &Fingerprint::of([long]).0].concat(),
    };
    let tenant = short(&(rules.tenant)(parts));
    let path = match &rules.resource {
        Some(resource) => short(&resource(parts)),
        None => short(parts.uri.path().as_bytes()),
    };
    let method = short(parts.method.as_str().as_bytes());
    Scope::of([&b"http"[..], &tenant, &method, &path]).map_err(|_| Refusal::NoKey)
}
