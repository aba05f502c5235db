//! The body of an answer that went through an admission: the service's, holding its permit; or none.

use super::{Caller, place::Place};
use crate::{Outcome, Verdict};
use core::{
    pin::Pin,
    task::{Context, Poll},
};
use http_body::{Body, Frame, SizeHint};

pin_project_lite::pin_project! {
    /// The body of what an [`AdmissionService`](super::AdmissionService) answers: that of the service, or nothing where the
    /// request was refused. It holds the request's place until its end, or until it is dropped, for
    /// [so long](super::AdmissionLayer::body_at_most) at most.
    ///
    /// ```
    /// use http_body_util::BodyExt;
    /// use relent::{Admission, Limit, layer::{AdmissionBody, AdmissionLayer}};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(1)));
    /// let service = layer.layer(service_fn(async |_: http::Request<()>| Ok::<_, ()>(http::Response::new("hello".to_owned()))));
    /// let body: AdmissionBody<String> = service.oneshot(http::Request::new(())).await.unwrap().into_body();
    /// assert_eq!(layer.snapshot().limit.unwrap().in_flight, Some(1));
    /// assert_eq!(body.collect().await.unwrap().to_bytes(), "hello");
    /// assert_eq!(layer.snapshot().limit.unwrap().in_flight, Some(0));
    /// # });
    /// ```
    #[derive(Debug)]
    pub struct AdmissionBody<B> {
        #[pin]
        inner: Option<B>,
        // After the body, so that what it holds is gone when the place is free.
        place: Place,
        caller: Caller,
    }
}

impl<B> AdmissionBody<B> {
    pub(super) fn refused() -> AdmissionBody<B> {
        AdmissionBody { inner: None, place: Place::free(), caller: Caller::default() }
    }

    pub(super) fn new(inner: B, place: Place, caller: Caller) -> AdmissionBody<B> {
        AdmissionBody { inner: Some(inner), place, caller }
    }
}

/// The empty one, as a refusal has it.
impl<B> Default for AdmissionBody<B> {
    fn default() -> AdmissionBody<B> {
        AdmissionBody::refused()
    }
}

impl<B: Body> Body for AdmissionBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let Some(mut inner) = this.inner.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let polled = this.caller.within(|| inner.as_mut().poll_frame(cx));
        match &polled {
            Poll::Ready(Some(Ok(_))) if !inner.is_end_stream() => this.place.start(),
            Poll::Ready(Some(Err(_))) => this.place.fail(Outcome::Failure(Verdict::Transient)),
            Poll::Ready(_) => *this.place = Place::free(),
            Poll::Pending => this.place.start(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
