//! The layer for bodies that cannot be cloned: [`ReplayBody`] around the retries' side, and around each attempt what makes a body of
//! the client's of it.

use super::{
    Repeat, RetryFuture, RetryLayer, RetryService, Runs, Terms, grpc_answer,
    http_request::is_grpc,
    peeked::{Peek, Peeked},
    replay::ReplayBody,
};
use crate::Error;
use http::{HeaderValue, Request, Response, header};
use http_body::Body;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_layer::Layer;
use tower_service::Service;

impl<T> RetryLayer<T> {
    /// For HTTP requests whose body is no `Clone`: it is recorded as it is sent, up to [`body_limit`](RetryLayer::body_limit), and
    /// `body` makes of the recording a body as the service inside takes it: `tonic::body::Body::new`, `axum::body::Body::new`, or
    /// `|replay| replay`. A body that grew larger than the limit is sent once, and never a half of it. Such requests are not hedged.
    ///
    /// Of answers, it looks for gRPC's status also where the first message would be, in trailers that follow the head at
    /// once: if that is a failure, the call is retried. For that the head is held back, but only while the request has
    /// been sent to its end (nobody has more to say that the server may be waiting for), and for no longer than a tenth
    /// of a second: streams go on streaming. And a call of gRPC that ends without an answer is answered with a status:
    /// `UNAVAILABLE` where the breaker is open, there is no room, or nobody could be reached, with a pushback where it is known
    /// when to ask again; `DEADLINE_EXCEEDED`, `CANCELLED`. What nothing would change stays the client's error.
    ///
    /// ```
    /// use http_body_util::{BodyExt, Full, combinators::BoxBody};
    /// use relent::{Policy, layer::ReplayBody};
    /// use std::convert::Infallible;
    /// use tower::{ServiceBuilder, ServiceExt};
    ///
    /// type Stream = BoxBody<bytes::Bytes, Infallible>;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let client = ServiceBuilder::new()
    ///     .layer(Policy::default().layer().replay(|body: ReplayBody<Stream>| body))
    ///     .service_fn(async |_: http::Request<ReplayBody<Stream>>| Ok::<_, Infallible>(http::Response::new(String::new())));
    /// let answer = client.oneshot(http::Request::new(Full::from("stream").boxed())).await.unwrap();
    /// assert_eq!(answer.status(), 200);
    /// # });
    /// ```
    pub fn replay<F>(mut self, body: F) -> ReplayLayer<T, F> {
        self.terms.change().may_hedge = false;
        ReplayLayer { retries: self, body }
    }
}

/// A layer that retries requests whose body cannot be cloned: what [`RetryLayer::replay`] makes.
///
/// ```
/// use http_body_util::Full;
/// use relent::{Policy, Retrier, layer::{ReplayBody, ReplayLayer}};
///
/// type Body = ReplayBody<Full<bytes::Bytes>>;
///
/// let layer: ReplayLayer<Retrier, fn(Body) -> Body> = Policy::default().layer().body_limit(64 << 10).replay(|body| body);
/// # drop(layer);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct ReplayLayer<T, F> {
    retries: RetryLayer<T>,
    body: F,
}

impl<S, T: Clone, F: Clone> Layer<S> for ReplayLayer<T, F> {
    type Service = ReplayService<S, T, F>;

    fn layer(&self, inner: S) -> Self::Service {
        ReplayService { retries: self.retries.layer(Molded { inner, body: self.body.clone() }) }
    }
}

/// A service whose calls are retried, their bodies recorded: what a [`ReplayLayer`] makes of a service.
#[derive(Clone, Debug)]
pub struct ReplayService<S, T, F> {
    retries: RetryService<Molded<S, F>, T>,
}

impl<S, T, F, B, A> Service<Request<B>> for ReplayService<S, T, F>
where
    A: Body,
    B: Body,
    Molded<S, F>: Service<Request<ReplayBody<B>>, Response = Response<Peeked<A>>, Error: fmt::Display + 'static>,
    Request<ReplayBody<B>>: Repeat<Response<Peeked<A>>>,
    T: Runs<Molded<S, F>, Request<ReplayBody<B>>>,
{
    type Response = Response<Peeked<A>>;
    type Error = Error<<Molded<S, F> as Service<Request<ReplayBody<B>>>>::Error>;
    type Future = ReplayFuture<RetryFuture<Molded<S, F>, T, Request<ReplayBody<B>>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.retries.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let limit = self.retries.terms().body_limit();
        let kind = request.headers().get(header::CONTENT_TYPE).filter(|_| is_grpc(request.headers()));
        let grpc = kind.cloned().map(|kind| (kind, self.retries.terms().clone()));
        ReplayFuture { calling: self.retries.call(request.map(|body| ReplayBody::new(body, limit))), grpc }
    }
}

pin_project_lite::pin_project! {
    /// A call of a [`ReplayService`].
    #[must_use = "futures do nothing unless polled"]
    pub struct ReplayFuture<F> {
        #[pin]
        calling: F,
        // The kind of gRPC that it is, if it is one of gRPC.
        grpc: Option<(HeaderValue, Terms)>,
    }
}

impl<F, A, E> Future for ReplayFuture<F>
where
    F: Future<Output = Result<Response<Peeked<A>>, Error<E>>>,
    A: Body,
    E: fmt::Display + 'static,
{
    type Output = Result<Response<Peeked<A>>, Error<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let ended = ready!(this.calling.poll(cx));
        Poll::Ready(ended.or_else(|error| match this.grpc.take() {
            Some((kind, terms)) => grpc_answer::answer(error, kind, &terms),
            None => Err(error),
        }))
    }
}

impl<F> fmt::Debug for ReplayFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayFuture").finish_non_exhaustive()
    }
}

/// A service that is called with the bodies it takes, and whose answers have been looked into.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Molded<S, F> {
    inner: S,
    body: F,
}

impl<S, F, B, B2, A> Service<Request<ReplayBody<B>>> for Molded<S, F>
where
    S: Service<Request<B2>, Response = Response<A>>,
    F: Fn(ReplayBody<B>) -> B2,
    B: Body + Unpin,
    A: Body + Unpin,
{
    type Response = Response<Peeked<A>>;
    type Error = S::Error;
    type Future = Peek<S::Future, B, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReplayBody<B>>) -> Self::Future {
        let sent = is_grpc(request.headers()).then(|| request.body().clone());
        Peek::new(self.inner.call(request.map(&self.body)), sent)
    }
}
