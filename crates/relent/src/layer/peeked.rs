//! Answers that were looked into: a failure of gRPC may stand in trailers that come instead of a first message.

use super::{
    http_request::{Trailers, grpc_status, is_grpc},
    replay::ReplayBody,
};
use crate::{Sleep, SystemTimer, Timer};
use bytes::Buf;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

/// How long a head is held back, to see whether the status comes at once.
const LONGEST_LOOK: Duration = Duration::from_millis(100);

pin_project_lite::pin_project! {
    /// Waits for a head, and for a moment for what follows it.
    #[doc(hidden)]
    pub struct Peek<F, B, A> {
        #[pin]
        answering: F,
        // The request, if it is one of gRPC.
        sent: Option<ReplayBody<B>>,
        answer: Option<Response<A>>,
        #[pin]
        end: Option<Sleep>,
    }
}

impl<F, B, A> Peek<F, B, A> {
    /// Waits for what `answering` gives; what was `sent` is looked at only if it is one of gRPC.
    pub(super) fn new(answering: F, sent: Option<ReplayBody<B>>) -> Peek<F, B, A> {
        Peek { answering, sent, answer: None, end: None }
    }
}

impl<F, B, A, E> Future for Peek<F, B, A>
where
    F: Future<Output = Result<Response<A>, E>>,
    B: Body + Unpin,
    A: Body + Unpin,
{
    type Output = Result<Response<Peeked<A>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.answer.is_none() {
            *this.answer = Some(ready!(this.answering.poll(cx))?);
        }
        let first = match (&mut *this.answer, &*this.sent) {
            (Some(answer), Some(sent)) if is_worth_a_look(answer) => match Pin::new(answer.body_mut()).poll_frame(cx) {
                Poll::Ready(first) => First::Came(first),
                Poll::Pending if !sent.has_ended() => First::NotYet,
                Poll::Pending => {
                    if this.end.is_none() {
                        this.end.set(Some(SystemTimer.sleep(LONGEST_LOOK)));
                    }
                    if let Some(end) = this.end.as_pin_mut() {
                        ready!(end.poll(cx));
                    }
                    First::NotYet
                }
            },
            _ => First::NotYet,
        };
        let answer = this.answer.take().expect("a future that is ready is not polled again");
        Poll::Ready(Ok(first.put_back(answer)))
    }
}

/// Whether the status is still to come.
fn is_worth_a_look<A: Body>(answer: &Response<A>) -> bool {
    is_grpc(answer.headers()) && grpc_status(answer.headers()).is_none() && !answer.body().is_end_stream()
}

/// What came after the head: a frame, the end, an error.
type Came<D, E> = Option<Result<Frame<D>, E>>;

enum First<D, E> {
    NotYet,
    Came(Came<D, E>),
}

impl<D, E> First<D, E> {
    fn put_back<A: Body<Data = D, Error = E>>(self, answer: Response<A>) -> Response<Peeked<A>> {
        let (mut head, rest) = answer.into_parts();
        if let First::Came(Some(Ok(frame))) = &self
            && let Some(trailers) = frame.trailers_ref()
            && grpc_status(trailers).is_some_and(|status| status != b"0")
        {
            head.extensions.insert(Trailers(trailers.clone()));
        }
        Response::from_parts(head, Peeked { first: self, rest: Some(rest) })
    }
}

/// The body of an answer that was looked into: the same, from its start.
///
/// ```
/// use http_body_util::{BodyExt, Full};
/// use relent::{Policy, layer::{Peeked, ReplayBody}};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// type Whole = Full<bytes::Bytes>;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let client = service_fn(async |_: http::Request<ReplayBody<Whole>>| {
///     Ok::<_, std::io::Error>(http::Response::new(Whole::from("answer")))
/// });
/// let service = Policy::default().layer().replay(|body| body).layer(client);
/// let answer = service.oneshot(http::Request::new(Whole::from("question"))).await.unwrap();
/// let body: Peeked<Whole> = answer.into_body();
/// assert_eq!(body.collect().await.unwrap().to_bytes(), "answer");
/// # });
/// ```
pub struct Peeked<A: Body> {
    first: First<A::Data, A::Error>,
    rest: Option<A>,
}

impl<A: Body> Peeked<A> {
    /// Nothing in it.
    pub(super) fn empty() -> Peeked<A> {
        Peeked { first: First::NotYet, rest: None }
    }
}

/// Nothing in it is pinned but the rest, which does not care.
impl<A: Body + Unpin> Unpin for Peeked<A> {}

impl<A: Body + Unpin> Body for Peeked<A> {
    type Data = A::Data;
    type Error = A::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Came<A::Data, A::Error>> {
        match std::mem::replace(&mut self.first, First::NotYet) {
            First::Came(first) => Poll::Ready(first),
            First::NotYet => match &mut self.rest {
                Some(rest) => Pin::new(rest).poll_frame(cx),
                None => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.first {
            First::NotYet => self.rest.as_ref().is_none_or(Body::is_end_stream),
            First::Came(first) => first.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let first = match &self.first {
            First::Came(Some(Ok(frame))) => frame.data_ref().map_or(0, |data| data.remaining() as u64),
            _ => 0,
        };
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(first));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(first));
        }
        hint
    }
}

impl<A: Body> fmt::Debug for Peeked<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peeked").finish_non_exhaustive()
    }
}
