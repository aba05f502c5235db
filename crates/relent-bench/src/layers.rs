//! Retry layers around a service that answers at once.

use crate::{
    calls::Attempts,
    harness::{Case, Group},
};
use http::{HeaderValue, Request, Response, Uri};
use relent::{Breaker, Budget, Policy, Upstream};
use std::{
    convert::Infallible,
    fmt,
    future::{Future, Ready, ready},
    hint::black_box,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use tower::Service;
use tower_layer::Layer;

const POLICY: Policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).max_attempts(4);
static BREAKER: Upstream = Upstream::new("breaker").breaker(Breaker::consecutive(5));
static BOTH: Upstream = Upstream::new("both").budget(Budget::ratio(0.1)).breaker(Breaker::consecutive(5));

#[derive(Clone, Debug)]
struct Down;

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("down")
    }
}

fn answer(request: u64) -> Ready<Result<u64, Down>> {
    ready(if black_box(true) { Ok(request) } else { Err(Down) })
}

fn call<S: Service<R>, R>(service: &mut S, request: R) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    if service.poll_ready(&mut cx).is_pending() {
        return false;
    }
    matches!(pin!(service.call(request)).poll(&mut cx), Poll::Ready(Ok(_)))
}

fn case<S: Service<u64> + 'static>(name: &'static str, mut service: S) -> Case {
    Case::new(name, move || _ = black_box(call(&mut service, 7)))
}

fn http(request: Request<String>) -> Ready<Result<Response<String>, Infallible>> {
    black_box(&request);
    ready(Ok(Response::new(String::new())))
}

/// A request with two headers, and what it is made of.
fn request(path: &Uri, value: &HeaderValue) -> Request<String> {
    let mut request = Request::new(String::new());
    *request.uri_mut() = path.clone();
    request.headers_mut().insert(http::header::ACCEPT, value.clone());
    request.headers_mut().insert(http::header::USER_AGENT, value.clone());
    request
}

fn http_case<S: Service<Request<String>> + 'static>(name: &'static str, mut service: S) -> Case {
    let path: Uri = "/accounts/7".parse().expect("a path");
    let value = HeaderValue::from_static("relent");
    Case::new(name, move || _ = black_box(call(&mut service, request(&path, &value))))
}

pub(crate) fn successes() -> Group {
    let resilience = tower_resilience_retry::RetryLayer::<u64, u64, Down>::builder()
        .max_attempts(4)
        .exponential_backoff(Duration::from_millis(100))
        .build();
    let cases = vec![
        case("floor: the bare service", tower::service_fn(answer)),
        case("relent, no upstream", POLICY.layer().layer(tower::service_fn(answer))),
        case("relent, a breaker", POLICY.on(&BREAKER).layer().layer(tower::service_fn(answer))),
        case("relent, budget and breaker (reads the clock)", POLICY.on(&BOTH).layer().layer(tower::service_fn(answer))),
        case("tower's retry", tower::retry::Retry::new(Attempts(3), tower::service_fn(answer))),
        case("tower-resilience", resilience.layer(tower::service_fn(answer))),
        http_case("floor: HTTP, the bare service and its request", tower::service_fn(http)),
        http_case("relent, HTTP", POLICY.layer().layer(tower::service_fn(http))),
        http_case("relent, HTTP, with the histogram", POLICY.layer().histogram().layer(tower::service_fn(http))),
        http_case("tower's retry, HTTP", tower::retry::Retry::new(Attempts(3), tower::service_fn(http))),
    ];
    Group { name: "layer", title: "A call through a retry layer, success at the first attempt", per: 1, cases }
}
