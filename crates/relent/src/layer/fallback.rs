//! What is answered instead of a failure: something that the program makes.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_layer::Layer;
use tower_service::Service;

/// A layer that answers with something else where the program says so: a default, an empty list, what it has in a file.
///
/// The rule is asked about every outcome, an answer or an error, and `None` lets it through. Around a
/// [`RetryLayer`](super::RetryLayer), it hears of a call only when that is over.
///
/// ```
/// use relent::{Policy, layer::FallbackLayer};
/// use std::io;
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let rates = ServiceBuilder::new()
///     .layer(FallbackLayer::new(|outcome: Result<&f64, &relent::Error<io::Error>>| outcome.is_err().then_some(1.0)))
///     .layer(Policy::immediate().max_attempts(3).layer())
///     .service_fn(async |_currency: &'static str| Err::<f64, _>(io::Error::other("down")));
/// assert_eq!(rates.oneshot("EUR").await.unwrap(), 1.0);
/// # });
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct FallbackLayer<F> {
    rule: F,
}

impl<F> FallbackLayer<F> {
    /// Answers with what `rule` makes of an outcome, if it makes something.
    pub const fn new<R, E>(rule: F) -> FallbackLayer<F>
    where
        F: Fn(Result<&R, &E>) -> Option<R>,
    {
        FallbackLayer { rule }
    }
}

impl<S, F: Clone> Layer<S> for FallbackLayer<F> {
    type Service = FallbackService<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        FallbackService { inner, rule: self.rule.clone() }
    }
}

/// A service that has something to answer instead: what a [`FallbackLayer`] makes of a service.
#[derive(Clone, Copy, Debug)]
pub struct FallbackService<S, F> {
    inner: S,
    rule: F,
}

impl<S, F, Req> Service<Req> for FallbackService<S, F>
where
    S: Service<Req>,
    F: Fn(Result<&S::Response, &S::Error>) -> Option<S::Response> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = FallbackFuture<S::Future, F>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        FallbackFuture { call: self.inner.call(request), rule: self.rule.clone() }
    }
}

pin_project_lite::pin_project! {
    /// A call of a [`FallbackService`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct FallbackFuture<T, F> {
        #[pin]
        call: T,
        rule: F,
    }
}

impl<T, F, R, E> Future for FallbackFuture<T, F>
where
    T: Future<Output = Result<R, E>>,
    F: Fn(Result<&R, &E>) -> Option<R>,
{
    type Output = Result<R, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<R, E>> {
        let this = self.project();
        let outcome = ready!(this.call.poll(cx));
        Poll::Ready(match (this.rule)(outcome.as_ref()) {
            Some(instead) => Ok(instead),
            None => outcome,
        })
    }
}
