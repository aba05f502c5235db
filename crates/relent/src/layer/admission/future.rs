//! One request on its way through an admission: refused, waiting for room, or at work.

use super::{AdmissionBody, Caller, door::Door, place::Place};
use crate::{AdmissionPermit, Outcome, Sleep, SystemTimer, Timer, Verdict, wire};
use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use tower_service::Service;

pin_project_lite::pin_project! {
    /// What an [`AdmissionService`](super::AdmissionService) answers with, sooner or later. Dropping it gives the place back.
    #[must_use = "futures do nothing unless polled"]
    pub struct AdmissionFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S, B, S::Future>,
    }
}

pin_project_lite::pin_project! {
    #[project = Projected]
    pub(super) enum State<S, B, F> {
        Refused { response: Option<Response<()>> },
        Waiting { waiting: Option<Box<Waiting<S, B>>> },
        AtWork { #[pin] future: F, permit: Option<AdmissionPermit<Door>>, caller: Caller, is_multiplexed: bool },
    }
}

/// A request before the door. The service is one that is ready.
pub(super) struct Waiting<S, B> {
    pub(super) service: S,
    pub(super) request: Request<B>,
    pub(super) permit: AdmissionPermit<Door>,
    pub(super) door: Door,
    pub(super) caller: Caller,
    pub(super) sleep: Sleep,
}

impl<S: Service<Request<B>>, B> AdmissionFuture<S, B> {
    pub(super) fn refused(response: Response<()>) -> Self {
        AdmissionFuture { state: State::Refused { response: Some(response) } }
    }

    pub(super) fn waiting(waiting: Waiting<S, B>) -> Self {
        AdmissionFuture { state: State::Waiting { waiting: Some(Box::new(waiting)) } }
    }

    pub(super) fn at_work(
        future: S::Future,
        permit: AdmissionPermit<Door>,
        caller: Caller,
        is_multiplexed: bool,
    ) -> Self {
        AdmissionFuture { state: State::AtWork { future, permit: Some(permit), caller, is_multiplexed } }
    }
}

const AFTER_THE_END: &str = "a future is not polled after its end";

impl<S, B, R> Future for AdmissionFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
{
    type Output = Result<Response<AdmissionBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                Projected::Refused { response } => {
                    let response = response.take().expect(AFTER_THE_END);
                    return Poll::Ready(Ok(response.map(|()| AdmissionBody::refused())));
                }
                Projected::AtWork { future, permit, caller, is_multiplexed } => {
                    let answer = ready!(caller.within(|| future.poll(cx)));
                    let mut permit = permit.take().expect(AFTER_THE_END);
                    permit.answered(SystemTimer.now(), answer.as_ref().map_or(FAILED, outcome));
                    let is_multiplexed = *is_multiplexed;
                    return Poll::Ready(answer.map(|answer| {
                        answer.map(|body| {
                            let mut place = match permit.of_body() {
                                Some(at_most) if !body.is_end_stream() => Place::new(permit, at_most),
                                _ => Place::free(),
                            };
                            // In HTTP/2 and later a body may never be asked for anything, where the client says so.
                            if is_multiplexed {
                                place.start();
                            }
                            AdmissionBody::new(body, place, *caller)
                        })
                    }));
                }
                Projected::Waiting { waiting } => {
                    let before = waiting.as_mut().expect(AFTER_THE_END);
                    before.permit.stand_in_line(cx.waker());
                    match before.permit.ask_again(SystemTimer.now()) {
                        Ok(false) => {
                            ready!(Pin::new(&mut before.sleep).poll(cx));
                            continue;
                        }
                        Ok(true) => {
                            let Waiting { mut service, request, permit, caller, .. } =
                                *waiting.take().expect(AFTER_THE_END);
                            let is_multiplexed = request.version() > Version::HTTP_11;
                            let future = caller.within(|| service.call(request));
                            State::AtWork { future, permit: Some(permit), caller, is_multiplexed }
                        }
                        Err(refusal) => {
                            let response = before.door.refusal(refusal, before.request.headers());
                            State::Refused { response: Some(response) }
                        }
                    }
                }
            };
            state.set(next);
        }
    }
}

const FAILED: Outcome = Outcome::Failure(Verdict::Transient);

/// What an answer says of the load: 503 and 504 are what a service says that cannot do more, or waits for one that
/// cannot. Any other answer is one, an error of the program too.
fn outcome<R>(answer: &Response<R>) -> Outcome {
    let is_load = match answer.status() {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => true,
        // DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE.
        StatusCode::OK => {
            answer.headers().get(wire::GRPC_STATUS).is_some_and(|code| matches!(code.as_bytes(), b"4" | b"8" | b"14"))
        }
        _ => false,
    };
    if is_load { FAILED } else { Outcome::Success }
}

impl<S: Service<Request<B>>, B> fmt::Debug for AdmissionFuture<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Refused { .. } => "refused",
            State::Waiting { .. } => "waiting",
            State::AtWork { .. } => "at work",
        };
        f.debug_struct("AdmissionFuture").field("state", &state).finish_non_exhaustive()
    }
}
