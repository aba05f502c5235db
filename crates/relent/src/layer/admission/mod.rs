//! The server's side as a layer: what there is no room for is refused before any work, in every client's words.
//!
//! Put it outside of whatever costs something, and inside of what all answers need (tracing, compression of bodies does
//! not matter: a refusal has none). In axum, hyper and tonic alike:
//!
//! ```
//! use relent::{Admission, Limit, Pacer, layer::AdmissionLayer};
//! use std::time::Duration;
//!
//! static DOOR: Admission = Admission::new()
//!     .limit(Limit::concurrency(100).queue(50, Duration::from_secs(1)))
//!     .pacer(Pacer::capacity(1000.0));
//!
//! let layer = AdmissionLayer::new(&DOOR);
//! // let app = Router::new().route("/", get(handler)).layer(layer);
//! # drop(layer);
//! ```

mod body;
mod caller;
mod door;
mod future;
mod place;

pub use self::{
    body::AdmissionBody,
    caller::{Caller, CallerScope},
    door::SharedAdmission,
    future::AdmissionFuture,
};

use self::{
    door::{Door, Rules},
    future::Waiting,
};
use crate::{Admission, AdmissionPermit, AdmissionSnapshot, Priority, SystemTimer, Timer, wire};
use core::{
    fmt,
    task::{Context, Poll},
    time::Duration,
};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use std::sync::Arc;
use tower_layer::Layer;
use tower_service::Service;

/// Lets requests in for which there is room and time, and refuses the others with a whole answer.
///
/// | of a request | it does |
/// |---|---|
/// | attempt number and histogram, in all dialects | counts them, and decides by them: [`Admission`] |
/// | the time that is left | does not begin what cannot finish; gives the rest to the handler: [`Caller`] |
/// | the body | does not touch it |
///
/// A request has its place until the body of its answer has been sent or dropped, since a body that is being made costs
/// the service something; but [so long](AdmissionLayer::body_at_most) at most, for the sake of readers that do not read. Where
/// making it costs nothing, see [`until_head`](AdmissionLayer::until_head). The place comes back however the
/// request ends: a panic of the handler and a client that goes away included.
///
/// An answer of 503 or 504 of the service itself says that there is too much load, and so does an error; that is what a
/// limit that finds itself goes by, and the time until the head of the answer. Other answers are answers.
///
/// Copies, and what several layers make of one [`Admission`], share it.
///
/// ```
/// use http::{Request, Response};
/// use relent::{Admission, Limit, layer::AdmissionLayer};
/// use tower::{Layer, Service, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(1)));
/// let mut service = layer.layer(service_fn(async |_: Request<String>| Ok::<_, ()>(Response::new("hello".to_owned()))));
/// let first = service.ready().await.unwrap().call(Request::new(String::new())).await.unwrap();
/// let second = service.ready().await.unwrap().call(Request::new(String::new())).await.unwrap();
/// assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 429));
/// assert_eq!(second.headers()["retry-after"], "1");
/// drop(first);
/// let now = layer.snapshot();
/// assert_eq!((now.accepted, now.full, now.limit.unwrap().in_flight), (1, 1, Some(0)));
/// # });
/// ```
#[derive(Clone)]
pub struct AdmissionLayer {
    admission: SharedAdmission,
    rules: Rules,
}

const BODY_AT_MOST: Duration = Duration::from_secs(10);

impl AdmissionLayer {
    /// A layer before which `admission` decides.
    pub fn new(admission: impl Into<SharedAdmission>) -> AdmissionLayer {
        let rules = Rules {
            priority: None,
            status: None,
            body_at_most: BODY_AT_MOST,
            #[cfg(feature = "metrics")]
            is_observed: false,
        };
        AdmissionLayer { admission: admission.into(), rules }
    }

    /// How much a request matters, by its head. Without a rule all are [`Priority::Normal`].
    ///
    /// ```
    /// use relent::{Admission, Priority, layer::AdmissionLayer};
    ///
    /// let layer = AdmissionLayer::new(Admission::new()).priority(|_, uri, _| match uri.path() {
    ///     "/health" => Priority::Vital,
    ///     "/export" => Priority::Low,
    ///     _ => Priority::Normal,
    /// });
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn priority(
        mut self,
        rule: impl Fn(&Method, &Uri, &HeaderMap) -> Priority + Send + Sync + 'static,
    ) -> AdmissionLayer {
        self.rules.priority = Some(Arc::new(rule));
        self
    }

    /// The status of refusals, for whom the one by their [`Scope`](crate::Scope) does not do: 429 for a service, 503 for a
    /// host. Those of gRPC stay as they are.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> AdmissionLayer {
        self.rules.status = Some(status);
        self
    }

    /// Frees a request's place when the head of its answer is there, not when its body has been sent. For services whose
    /// bodies are ready when their head is, and whose clients may be slow to read them.
    ///
    /// ```
    /// use relent::{Admission, Limit, layer::AdmissionLayer};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(1))).until_head();
    /// let service = layer.layer(service_fn(async |_: http::Request<()>| Ok::<_, ()>(http::Response::new("hello".to_owned()))));
    /// let _unread = service.oneshot(http::Request::new(())).await.unwrap();
    /// assert_eq!(layer.snapshot().limit.unwrap().in_flight, Some(0));
    /// # });
    /// ```
    #[must_use]
    pub fn until_head(mut self) -> AdmissionLayer {
        self.rules.body_at_most = Duration::ZERO;
        self
    }

    /// The longest that a body keeps its request's place. One that is sent for longer goes on without: it waits for its
    /// reader more than for the service, and clients that do not read would take all places. 10 s unless said;
    /// `Duration::MAX` is no limit.
    ///
    /// ```
    /// use relent::{Admission, layer::AdmissionLayer};
    /// use std::time::Duration;
    ///
    /// let downloads = AdmissionLayer::new(Admission::new()).body_at_most(Duration::from_secs(1));
    /// # drop(downloads);
    /// ```
    #[must_use]
    pub fn body_at_most(mut self, longest: Duration) -> AdmissionLayer {
        self.rules.body_at_most = longest;
        self
    }

    /// Counts refusals in the figures of [`observe`](crate::observe): `relent_shed_total`, by their reason, which are the
    /// counts of an [`AdmissionSnapshot`] by name: `hopeless`, `full`, `low`, `retries`, `turns`. Feature `metrics`.
    ///
    /// ```
    /// use relent::{Admission, Limit, layer::AdmissionLayer};
    ///
    /// static DOOR: Admission = Admission::new().limit(Limit::concurrency(100));
    /// let layer = AdmissionLayer::new(&DOOR).observe();
    /// # drop(layer);
    /// ```
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn observe(mut self) -> AdmissionLayer {
        self.rules.is_observed = true;
        self
    }

    /// The admission that decides.
    ///
    /// ```
    /// use relent::{Admission, layer::AdmissionLayer};
    ///
    /// static DOOR: Admission = Admission::new();
    /// assert!(std::ptr::eq(AdmissionLayer::new(&DOOR).admission(), &DOOR));
    /// ```
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// How often it has decided how, by reason, what is in flight, and what is offered: everything now.
    pub fn snapshot(&self) -> AdmissionSnapshot {
        self.admission.snapshot(SystemTimer.now())
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = AdmissionService<S>;

    fn layer(&self, inner: S) -> AdmissionService<S> {
        let AdmissionLayer { admission, rules } = self.clone();
        AdmissionService { inner, door: Door::new(admission, rules) }
    }
}

impl fmt::Debug for AdmissionLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionLayer").field("admission", &self.admission).finish_non_exhaustive()
    }
}

/// What an [`AdmissionLayer`] makes of a service.
#[derive(Clone)]
pub struct AdmissionService<S> {
    inner: S,
    door: Door,
}

impl<S: fmt::Debug> fmt::Debug for AdmissionService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for AdmissionService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    R: Body,
{
    type Response = Response<AdmissionBody<R>>;
    type Error = S::Error;
    type Future = AdmissionFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> AdmissionFuture<S, B> {
        let now = SystemTimer.now();
        let mut arrival = wire::arrival(request.headers());
        arrival.priority = self.door.priority(&request);
        let permit = match AdmissionPermit::of(self.door.clone(), now, &arrival) {
            Ok(permit) => permit,
            Err(refusal) => return AdmissionFuture::refused(self.door.refusal(refusal, request.headers())),
        };
        let caller = Caller::new(now, &arrival);
        if let Some(left) = caller.time_left() {
            request.extensions_mut().insert(left);
        }
        if caller != Caller::default() {
            request.extensions_mut().insert(caller);
        }
        let Some(until) = permit.waits_until() else {
            let is_multiplexed = request.version() > Version::HTTP_11;
            let future = caller.within(|| self.inner.call(request));
            return AdmissionFuture::at_work(future, permit, caller, is_multiplexed);
        };
        // The one that was found ready is taken along, and a new one is asked next time.
        let fresh = self.inner.clone();
        let service = core::mem::replace(&mut self.inner, fresh);
        let (door, sleep) = (self.door.clone(), SystemTimer.sleep(until.since(now)));
        AdmissionFuture::waiting(Waiting { service, request, permit, door, caller, sleep })
    }
}
