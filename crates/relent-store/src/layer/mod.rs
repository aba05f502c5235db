//! Idempotency keys of requests, as a layer of servers: a request that is sent three times is carried out once.
//!
//! Put it around the routes that change something, inside of what knows the tenant:
//!
//! ```
//! use relent_store::{Store, layer::IdempotencyLayer};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let store = Store::open("memory:").await?; // "sqlite:state.db", "redis://..", "postgres://.."
//! let layer = IdempotencyLayer::new(store)
//!     .tenant(|head| head.headers.get("x-tenant").map(|id| id.as_bytes().to_vec()).unwrap_or_default())
//!     .required(|head| head.uri.path().starts_with("/payments"));
//! // let app = Router::new().route("/payments", post(pay)).layer(layer);
//! # drop(layer);
//! # Ok::<_, relent_store::Error>(())
//! # }).unwrap();
//! ```

mod answer;
mod body;
mod carry_out;

pub use self::body::IdempotencyBody;

use crate::{Abandon, Any, Claim, Engine, Store, Stored, Time};
use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode, header, request::Parts};
use http_body::Body;
use relent::{layer::Caller, wire::IDEMPOTENCY_KEY};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tower_layer::Layer;
use tower_service::Service;

/// What is known of a request that is carried out under a key: an extension of it, for its handler.
///
/// A handler whose effects are in the store's own database joins the record to them: `in_sqlite::complete` and
/// `in_postgres::complete` keep its answer in its own transaction, with this [claim](Claimed::claim), what
/// [`stored`](Claimed::stored) makes of the answer, and [`keep`](Claimed::keep). Then nobody who dies leaves doubt: the effects
/// and the answer are both there, or neither. Where the effects are in another database, `first_time` of that engine with this
/// claim's scope and key commits them once, also where the request is carried out [again](IdempotencyLayer::rerun). A far side
/// can be given the fence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claimed {
    /// The claim.
    pub claim: Claim,
    /// Since when it has been unknown whether an earlier run happened; only with [`rerun`](IdempotencyLayer::rerun) and
    /// [`reconcile`](IdempotencyLayer::reconcile).
    pub unknown: Option<Time>,
    /// For how long the answer is kept.
    pub keep: Duration,
    headers: Arc<[HeaderName]>,
}

impl Claimed {
    /// What the layer keeps of an answer: its status, the headers that were chosen, and its body.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::{Request, Response, StatusCode};
    /// use relent_store::{Kept, in_sqlite, layer::{Claimed, IdempotencyBody}};
    ///
    /// /// Books a payment, in one transaction with the answer.
    /// fn pay<B: http_body::Body>(
    ///     request: &Request<IdempotencyBody<B>>,
    ///     bank: &mut rusqlite::Connection,
    /// ) -> Result<Response<Bytes>, Box<dyn std::error::Error>> {
    ///     let claimed = request.extensions().get::<Claimed>().ok_or("the layer is around this")?;
    ///     let answer = Response::builder().status(StatusCode::CREATED).body(Bytes::from("receipt 7"))?;
    ///     let tx = bank.transaction()?;
    ///     tx.execute("INSERT INTO payments VALUES (7)", [])?;
    ///     match in_sqlite::complete(&tx, &claimed.claim, &claimed.stored(&answer), claimed.keep)? {
    ///         Kept::Kept => tx.commit()?,
    ///         Kept::Fenced => return Err("somebody else has taken over".into()),
    ///     }
    ///     Ok(answer)
    /// }
    /// ```
    pub fn stored(&self, answer: &Response<Bytes>) -> Stored {
        let mut head = Response::new(());
        *head.status_mut() = answer.status();
        head.headers_mut().clone_from(answer.headers());
        answer::kept(&head, &self.headers, Some(answer.body()))
    }
}

type Tenant = dyn Fn(&Parts) -> Vec<u8> + Send + Sync;
type Resource = dyn Fn(&Parts) -> Vec<u8> + Send + Sync;
type Required = dyn Fn(&Parts) -> bool + Send + Sync;
type Looked = Pin<Box<dyn Future<Output = Result<Option<Response<Bytes>>, ()>> + Send>>;
type Look = dyn Fn(Request<Bytes>, Time) -> Looked + Send + Sync;
type Stores = dyn Fn(StatusCode) -> bool + Send + Sync;

#[derive(Clone)]
struct Rules {
    tenant: Arc<Tenant>,
    resource: Option<Arc<Resource>>,
    required: Option<Arc<Required>>,
    stores: Arc<Stores>,
    headers: Arc<[HeaderName]>,
    lease: Duration,
    keep: Duration,
    max_request: usize,
    max_answer: usize,
    reruns: bool,
    look: Option<Arc<Look>>,
    on_failure: Abandon,
}

/// Carries requests with an `Idempotency-Key` out once, and answers those that come again with what came of the first
/// (draft-ietf-httpapi-idempotency-key-header-07).
///
/// | a `POST` or `PATCH` | is answered |
/// |---|---|
/// | with a new key | by the service; the answer is kept |
/// | with a key that is done | with the answer that is kept, and `idempotent-replayed: true` |
/// | with a key that is being carried out | 409, with `Retry-After` |
/// | with the key of another request (other query, body or trailers) | 422 |
/// | with a key whose outcome is unknown | 409, `relent-retry: no`; or by the service [again](IdempotencyLayer::rerun) |
/// | with something that is no key, or without one where it is [required](IdempotencyLayer::required) | 400 |
/// | without a key elsewhere, and every other method | by the service, as if there were no layer |
/// | while the store is away | 503, with `Retry-After` |
///
/// A key is a quoted string, or bare text, of up to 255 characters. It belongs to its tenant, method and path (that the layer
/// [sees](IdempotencyLayer::resource)): nobody gets another's answer. Refusals are whole answers in `application/problem+json`.
///
/// A request with a key goes on when its connection is lost: the next one with that key gets its answer. If the service
/// panics, its outcome is unknown. What is kept of an answer: its status, [chosen headers](IdempotencyLayer::headers) and its
/// body, up to [a size](IdempotencyLayer::max_answer). By default these are answers of 2xx, 3xx and 4xx, but for 408, 409, 425
/// and 429; after others the request is as if it had never been sent.
///
/// Bodies of requests with a key are read before the service is called, up to [a size](IdempotencyLayer::max_request).
///
/// An answer that is kept says for how many seconds, in `relent-idempotency-keep`; after it, a key is new.
pub struct IdempotencyLayer<E: Engine = Any> {
    shared: Arc<Shared<E>>,
}

struct Shared<E: Engine> {
    store: Store<E>,
    rules: Rules,
}

impl<E: Engine> Clone for IdempotencyLayer<E> {
    fn clone(&self) -> Self {
        IdempotencyLayer { shared: self.shared.clone() }
    }
}

impl<E: Engine> fmt::Debug for IdempotencyLayer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyLayer").field("store", &self.shared.store).finish_non_exhaustive()
    }
}

impl<E: Engine> IdempotencyLayer<E> {
    /// A layer that keeps what was done in this store.
    pub fn new(store: Store<E>) -> Self {
        let rules = Rules {
            tenant: Arc::new(|_| vec![]),
            resource: None,
            required: None,
            stores: Arc::new(is_final),
            headers: [
                header::CONTENT_TYPE,
                header::CONTENT_ENCODING,
                header::CONTENT_LANGUAGE,
                header::ETAG,
                header::LAST_MODIFIED,
                header::LINK,
                header::LOCATION,
            ]
            .into(),
            lease: Duration::from_secs(60),
            keep: Duration::from_secs(24 * 3600),
            max_request: 1 << 20,
            max_answer: 256 << 10,
            reruns: false,
            look: None,
            on_failure: Abandon::Forget,
        };
        IdempotencyLayer { shared: Arc::new(Shared { store, rules }) }
    }

    fn with(self, change: impl FnOnce(&mut Rules)) -> Self {
        let Shared { store, rules } = &*self.shared;
        let (store, mut rules) = (store.clone(), rules.clone());
        change(&mut rules);
        IdempotencyLayer { shared: Arc::new(Shared { store, rules }) }
    }

    /// Whose a request is: one tenant's keys never meet another's. Take what was authenticated. Without it all are one.
    #[must_use]
    pub fn tenant(self, tenant: impl Fn(&Parts) -> Vec<u8> + Send + Sync + 'static) -> Self {
        self.with(|rules| rules.tenant = Arc::new(tenant))
    }

    /// What a request is about, in place of its path. It is needed where the layer sees a part of the path alone, as inside of a nested
    /// router of axum: there `/pay` of `/v1` and `/pay` of `/v2` look the same, and the answer of one would be given for the
    /// other. Hosts are not told apart, so that a request may come again by another name of the same service; where several
    /// services share a store and have paths in common, name them here or as [tenants](IdempotencyLayer::tenant).
    ///
    /// ```
    /// use relent_store::{Memory, Store, layer::IdempotencyLayer};
    ///
    /// // In axum, `head.extensions.get::<OriginalUri>()` has the whole path, too.
    /// let layer = IdempotencyLayer::new(Store::new(Memory::new()))
    ///     .resource(|head| [b"/v1", head.uri.path().as_bytes()].concat());
    /// // Router::new().nest("/v1", routes.layer(layer))
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn resource(self, resource: impl Fn(&Parts) -> Vec<u8> + Send + Sync + 'static) -> Self {
        self.with(|rules| rules.resource = Some(Arc::new(resource)))
    }

    /// Which `POST` and `PATCH` requests must have a key. None by default.
    #[must_use]
    pub fn required(self, required: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|rules| rules.required = Some(Arc::new(required)))
    }

    /// Which answers are kept, by their status. Others leave nothing behind, or [doubt](IdempotencyLayer::on_failure).
    #[must_use]
    pub fn stores(self, stores: impl Fn(StatusCode) -> bool + Send + Sync + 'static) -> Self {
        self.with(|rules| rules.stores = Arc::new(stores))
    }

    /// What an answer that is not kept leaves: nothing, so that the next request is carried out (the default), or doubt.
    #[must_use]
    pub fn on_failure(self, leaves: Abandon) -> Self {
        self.with(|rules| rules.on_failure = leaves)
    }

    /// Which headers of an answer are kept, besides `content-length`. By default what describes the body, and `location`
    /// and `link`; cookies are not.
    #[must_use]
    pub fn headers(self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        self.with(|rules| rules.headers = names.into_iter().collect())
    }

    /// How long after the last sign of life the outcome of a request is unknown: a minute by default.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        self.with(|rules| rules.lease = lease)
    }

    /// For how long answers are kept: a day by default. Callers are told, by a header; tell it in
    /// the documentation, too.
    #[must_use]
    pub fn keep(self, keep: Duration) -> Self {
        self.with(|rules| rules.keep = keep)
    }

    /// The longest body of a request with a key, in bytes; a longer one is answered with 413. A mebibyte by default.
    #[must_use]
    pub fn max_request(self, bytes: usize) -> Self {
        self.with(|rules| rules.max_request = bytes)
    }

    /// The longest body of an answer that is kept, in bytes, and less than the store's
    /// [own limit](Store::max_value): a quarter of a mebibyte by default. A longer one is sent on as it comes; requests that
    /// come again are told, by 409, that it was done and its answer was too large to keep. So are those after an answer with
    /// trailers, or whose body failed.
    #[must_use]
    pub fn max_answer(self, bytes: usize) -> Self {
        self.with(|rules| rules.max_answer = bytes)
    }

    /// Carries a request out again where nobody knows whether it happened. The service finds in its [`Claimed`] since when
    /// that is so, and can look.
    #[must_use]
    pub fn rerun(self) -> Self {
        self.with(|rules| rules.reruns = true)
    }

    /// Looks whether a request happened where nobody knows, before anything else is done about it. `look` is given the request
    /// and since when it is unknown. `Some` is the answer, which is kept; `None` says that it did not happen, and it is carried
    /// out; an error leaves it unknown (409).
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::{Request, Response};
    /// use relent_store::{Memory, Store, layer::IdempotencyLayer};
    ///
    /// let layer = IdempotencyLayer::new(Store::new(Memory::new())).reconcile(async |request: Request<Bytes>, _since| {
    ///     // What the bank has under this key, for instance.
    ///     let key = request.headers().get("idempotency-key").ok_or("no key")?;
    ///     Ok::<_, &str>((key == "\"7\"").then(|| Response::new(Bytes::from("receipt that was found"))))
    /// });
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn reconcile<F, Fut, X>(self, look: F) -> Self
    where
        F: Fn(Request<Bytes>, Time) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Response<Bytes>>, X>> + Send + 'static,
    {
        let look = move |request, since| -> Looked {
            let looking = look(request, since);
            Box::pin(async move { looking.await.map_err(drop) })
        };
        self.with(|rules| rules.look = Some(Arc::new(look)))
    }
}

/// What would be answered again.
fn is_final(status: StatusCode) -> bool {
    !status.is_server_error() && !matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

impl<S, E: Engine> Layer<S> for IdempotencyLayer<E> {
    type Service = IdempotencyService<S, E>;

    fn layer(&self, inner: S) -> IdempotencyService<S, E> {
        IdempotencyService { inner, shared: self.shared.clone() }
    }
}

/// What an [`IdempotencyLayer`] makes of a service.
pub struct IdempotencyService<S, E: Engine = Any> {
    inner: S,
    shared: Arc<Shared<E>>,
}

impl<S: Clone, E: Engine> Clone for IdempotencyService<S, E> {
    fn clone(&self) -> Self {
        IdempotencyService { inner: self.inner.clone(), shared: self.shared.clone() }
    }
}

impl<S: fmt::Debug, E: Engine> fmt::Debug for IdempotencyService<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

type Answered<R, X> = Result<Response<IdempotencyBody<R>>, X>;

impl<S, B, R, E> Service<Request<B>> for IdempotencyService<S, E>
where
    S: Service<Request<IdempotencyBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
    E: Engine,
{
    type Response = Response<IdempotencyBody<R>>;
    type Error = S::Error;
    type Future = IdempotencyFuture<S::Future, R, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let changes = matches!(*request.method(), Method::POST | Method::PATCH);
        let has_key = changes && request.headers().contains_key(IDEMPOTENCY_KEY);
        if !(has_key || changes && self.shared.rules.required.is_some()) {
            return IdempotencyFuture::through(self.inner.call(request.map(IdempotencyBody::as_it_is)));
        }
        let (parts, body) = request.into_parts();
        if !has_key && !self.shared.rules.required.as_ref().is_some_and(|required| required(&parts)) {
            let request = Request::from_parts(parts, IdempotencyBody::as_it_is(body));
            return IdempotencyFuture::through(self.inner.call(request));
        }
        // The one that was found ready is taken along, and a new one is asked next time.
        let fresh = self.inner.clone();
        let service = std::mem::replace(&mut self.inner, fresh);
        let carried_out = carry_out::carry_out(self.shared.clone(), service, parts, body);
        IdempotencyFuture::kept(match Caller::current() {
            Some(caller) => Box::pin(caller.scope(carried_out)),
            None => Box::pin(carried_out),
        })
    }
}

pin_project_lite::pin_project! {
    /// What an [`IdempotencyService`] answers with, sooner or later. Dropping it before a request with a key has been read
    /// ends that; afterwards it goes on.
    #[must_use = "futures do nothing unless polled"]
    pub struct IdempotencyFuture<F, R, X> where R: Body {
        #[pin]
        state: State<F, R, X>,
    }
}

pin_project_lite::pin_project! {
    #[project = Projected]
    enum State<F, R, X> where R: Body {
        Through { #[pin] future: F },
        Kept { future: Pin<Box<dyn Future<Output = Answered<R, X>> + Send>> },
    }
}

impl<F, R: Body, X> IdempotencyFuture<F, R, X> {
    fn through(future: F) -> Self {
        IdempotencyFuture { state: State::Through { future } }
    }

    fn kept(future: Pin<Box<dyn Future<Output = Answered<R, X>> + Send>>) -> Self {
        IdempotencyFuture { state: State::Kept { future } }
    }
}

impl<F, R, X> Future for IdempotencyFuture<F, R, X>
where
    F: Future<Output = Result<Response<R>, X>>,
    R: Body,
{
    type Output = Answered<R, X>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            Projected::Through { future } => {
                Poll::Ready(ready!(future.poll(cx)).map(|answer| answer.map(IdempotencyBody::as_it_is)))
            }
            Projected::Kept { future } => future.as_mut().poll(cx),
        }
    }
}

impl<F, R: Body, X> fmt::Debug for IdempotencyFuture<F, R, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_kept = matches!(self.state, State::Kept { .. });
        f.debug_struct("IdempotencyFuture").field("has_key", &is_kept).finish_non_exhaustive()
    }
}
