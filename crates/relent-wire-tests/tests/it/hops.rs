//! A service between: what the caller said reaches the bottom, and what the bottom says reaches the top.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::any,
};
use bytes::Bytes;
use http::StatusCode;
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use relent::{Admission, Jitter, Limit, Pacer, Policy, layer::AdmissionLayer};
use relent_wire_tests::{client, serve::Server};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tower::{Layer, ServiceExt};

const READ: Policy = Policy::constant(Duration::from_millis(5)).jitter(Jitter::None).max_attempts(3);

/// What the bottom was asked: attempt and time left, as the request's head said them.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Asked>>>);

type Asked = (Option<u32>, Option<Duration>);

impl Log {
    fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Answers 503 to so many requests, and then 200.
fn bottom(log: Log, failures: usize) -> Router {
    let left = Arc::new(Mutex::new(failures));
    let handler = move |request: Request| {
        let headers = request.headers();
        log.0.lock().unwrap().push((relent::wire::attempt(headers), relent::wire::deadline(headers)));
        let mut left = left.lock().unwrap();
        let status = if *left > 0 { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
        *left = left.saturating_sub(1);
        async move { status }
    };
    Router::new().fallback(any(handler))
}

/// Passes requests on, with retries, as new requests of its own.
async fn middle(State(below): State<SocketAddr>) -> Response {
    let client = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http::<Full<Bytes>>();
    let client = READ.layer().layer(client);
    let request = http::Request::get(format!("http://{below}/")).body(Full::default()).unwrap();
    match client.oneshot(request).await {
        Ok(answer) => answer.map(Body::new),
        Err(err) => (StatusCode::BAD_GATEWAY, err.to_string()).into_response(),
    }
}

fn between(below: SocketAddr) -> Server {
    let layer = AdmissionLayer::new(Admission::new());
    Server::start(Router::new().fallback(any(middle)).with_state(below).layer(layer))
}

#[tokio::test]
async fn attempts_and_deadlines_reach_the_bottom() {
    let log = Log::default();
    let server = Server::start(bottom(log.clone(), 2));
    let (one, two);
    one = between(server.address());
    two = between(one.address());
    let said = [("relent-attempt", "2".to_owned()), ("relent-deadline", "5000".to_owned())];
    let answer = client::get(two.address(), "/", &said).await.unwrap();
    assert_eq!(answer.status(), 200);
    let seen = log.take();
    let attempts: Vec<_> = seen.iter().map(|(attempt, _)| attempt.unwrap()).collect();
    assert_eq!(attempts, [2, 3, 4], "the caller's second, through two hops, and retried twice");
    for pair in seen.windows(2) {
        assert!(pair[1].1 < pair[0].1, "{seen:?}");
    }
    assert!(seen[0].1.unwrap() < Duration::from_secs(5) && seen[2].1.unwrap() > Duration::from_secs(2), "{seen:?}");

    // Who says nothing is a first attempt without a deadline.
    client::get(two.address(), "/", &[]).await.unwrap();
    assert_eq!(log.take(), [(None, None)]);

    // Without time left nothing is begun anywhere.
    let late = client::get(two.address(), "/", &[("relent-deadline", "0".into())]).await.unwrap();
    assert_eq!((late.status().as_u16(), log.take().len()), (429, 0));
}

#[tokio::test]
async fn overloaded_goes_up_as_it_came_and_nobody_asks_again() {
    // Full, and with no turn before the horizon.
    let door =
        Admission::new().limit(Limit::concurrency(1)).pacer(Pacer::capacity(1.0).horizon(Duration::from_millis(1)));
    let layer = AdmissionLayer::new(door);
    let _inside = layer.admission().permit(relent::Timestamp::ZERO, &relent::Arrival::default()).unwrap();
    let log = Log::default();
    let server = Server::start(bottom(log.clone(), 0).layer(layer.clone()));
    let direct = client::get(server.address(), "/", &[]).await.unwrap();
    let before = layer.snapshot().refused();

    let one = between(server.address());
    let two = between(one.address());
    let three = between(two.address());
    let answer = client::get(three.address(), "/", &[]).await.unwrap();
    assert_eq!((answer.status(), answer.status().as_u16()), (direct.status(), 429));
    for name in ["relent-retry", "x-should-retry", "x-envoy-overloaded"] {
        assert_eq!(answer.headers().get(name), direct.headers().get(name), "{name}");
        assert!(answer.headers().contains_key(name), "{name}");
    }
    assert_eq!(layer.snapshot().refused() - before, 1, "three layers of three attempts make one request, not 27");
    assert_eq!(log.take().len(), 0);
}
