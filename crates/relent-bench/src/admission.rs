//! The server's side: what it costs to let a request in, and to refuse one.

use crate::harness::{Case, Group};
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use relent::{Admission, Arrival, Limit, Outcome, Pacer, SystemTimer, Timer, Timestamp, layer::AdmissionLayer, wire};
use std::{
    convert::Infallible,
    future::{Future, Ready, ready},
    hint::black_box,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tower::{Layer, Service, service_fn};

const NOW: Timestamp = Timestamp::from_nanos(1_000_000_000);
static OPEN: Admission = Admission::new().limit(Limit::concurrency(1000)).pacer(Pacer::capacity(1e6));
static LIMITED: Admission = Admission::new().limit(Limit::concurrency(1000));
static AIMD: Admission = Admission::new().limit(Limit::aimd(100));
static FULL: Admission =
    Admission::new().limit(Limit::concurrency(1)).pacer(Pacer::capacity(1e9).horizon(Duration::MAX));
static SHED: Admission = Admission::new().limit(Limit::concurrency(1));

/// A body that has ended, or has not.
#[derive(Default)]
struct Nothing;

impl Body for Nothing {
    type Data = &'static [u8];
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Infallible>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// What a browser sends.
fn headers(more: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in [
        header::HOST,
        header::USER_AGENT,
        header::ACCEPT,
        header::ACCEPT_LANGUAGE,
        header::ACCEPT_ENCODING,
        header::COOKIE,
        header::REFERER,
        header::CACHE_CONTROL,
    ] {
        headers.insert(name, HeaderValue::from_static("something of usual length"));
    }
    for (name, value) in more {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    headers
}

/// Calls with the same headers each time, so that making a request costs nothing.
fn call<S, B>(service: &mut S, headers: &mut HeaderMap) -> Response<B>
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let mut cx = Context::from_waker(Waker::noop());
    let mut request = Request::new(());
    *request.headers_mut() = std::mem::take(headers);
    let _ = service.poll_ready(&mut cx);
    match pin!(service.call(request)).poll(&mut cx) {
        Poll::Ready(Ok(answer)) => answer,
        _ => unreachable!("it answers at once"),
    }
}

/// A service around which there is a layer, or none; the headers of its requests are kept beside it.
fn case<S, B>(name: &'static str, mut service: S, more: &[(&'static str, &'static str)]) -> Case
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible> + 'static,
{
    let all = headers(more);
    let mut kept = all.clone();
    Case::new(name, move || {
        drop(black_box(call(&mut service, &mut kept)));
        kept = KEPT.with(|kept| kept.take()).unwrap_or_default();
        if kept.is_empty() {
            kept.clone_from(&all);
        }
    })
}

thread_local! {
    /// The headers of the last request that was let in.
    static KEPT: std::cell::Cell<Option<HeaderMap>> = const { std::cell::Cell::new(None) };
}

fn keeping(request: Request<()>) -> Ready<Result<Response<Nothing>, Infallible>> {
    KEPT.with(|kept| kept.set(Some(request.into_parts().0.headers)));
    ready(Ok(Response::new(Nothing)))
}

/// One thread.
pub(crate) fn costs() -> Group {
    let retry = [("relent-attempt", "2"), ("relent-deadline", "60000"), ("relent-attempts", "1=930,2=50,3=12")];
    let let_in = |name, door: &'static Admission| {
        Case::new(name, move || {
            let mut permit = door.permit(black_box(NOW), black_box(&Arrival::default())).expect("there is room");
            permit.answered(NOW, Outcome::Success);
        })
    };
    for door in [&FULL, &SHED] {
        std::mem::forget(door.permit(NOW, &Arrival::default()));
    }
    let (plain, said) = (headers(&[]), headers(&retry));
    let histogram = wire::attempts(&said).expect("it is one");
    let empty = HeaderMap::new();
    let refuse = |name, door: &'static Admission| {
        let empty = empty.clone();
        Case::new(name, move || {
            let refused = door.permit(black_box(NOW), &Arrival::default()).expect_err("it is full");
            black_box(wire::refusal(refused, door.settings().scope, &empty));
        })
    };
    let layer = |door: &'static Admission| AdmissionLayer::new(door).layer(service_fn(keeping));
    let cases = vec![
        Case::new("floor (the clock is read)", || _ = black_box(SystemTimer.now())),
        let_in("relent: let in by a limit, and its end", &LIMITED),
        let_in("relent: let in by a limit and a pacer, and its end", &OPEN),
        let_in("relent: let in by a limit that finds itself, and its end", &AIMD),
        Case::new("relent: what 8 headers say that say nothing", move || {
            _ = black_box(wire::arrival(black_box(&plain)))
        }),
        Case::new("relent: what 11 headers say, histogram included", move || {
            _ = black_box(wire::arrival(black_box(&said)))
        }),
        Case::new("relent: a histogram is written", move || _ = black_box(wire::attempts_value(black_box(&histogram)))),
        refuse("relent: a refusal, whole, with a turn", &FULL),
        refuse("relent: a refusal, whole, shed", &SHED),
        case("floor (the bare service, a request)", service_fn(keeping), &[]),
        case("relent: the layer, a request is let in", layer(&LIMITED), &[]),
        case("relent: the layer, with a pacer", layer(&OPEN), &[]),
        case("relent: the layer, a retry with a deadline", layer(&LIMITED), &retry[..2]),
    ];
    Group { name: "admission", title: "Admission: nanoseconds a request", per: 1, cases }
}
