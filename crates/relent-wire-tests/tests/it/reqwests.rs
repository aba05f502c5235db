//! A layer around a `reqwest::Client`.

use crate::raw::{Raw, Say, answer};
use relent::{Jitter, Policy, Reason, Upstream, layer::RetryService};
use reqwest::{Method, Request, Response};
use std::time::{Duration, Instant};
use tower::{Layer, Service, ServiceExt};

const POLICY: Policy = Policy::constant(Duration::from_millis(5)).jitter(Jitter::None).max_attempts(3);

pub(crate) fn client() -> reqwest::Client {
    // Somebody else may have been first.
    _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().retry(reqwest::retry::never()).no_proxy().build().unwrap()
}

fn request(method: Method, url: &str) -> Request {
    let mut request = Request::new(method, url.parse().unwrap());
    *request.body_mut() = Some("body".into());
    request
}

type Outcome = Result<u16, Reason>;

async fn send(
    service: impl Service<Request, Response = Response, Error = relent::Error<reqwest::Error>>,
    request: Request,
) -> Outcome {
    service.oneshot(request).await.map(|answer| answer.status().as_u16()).map_err(|err| err.reason)
}

fn layered(policy: Policy) -> RetryService<reqwest::Client, relent::Retrier> {
    policy.layer().layer(client())
}

#[tokio::test]
async fn a_client_retries_and_its_connection_lives() {
    let raw = Raw::new(|before, _| match before {
        0 => Say::answer(503, "", "some words that are read, so that the connection can be used again"),
        _ => Say::answer(200, "", "ok"),
    });
    let raw = raw.await;
    let answer = layered(POLICY).oneshot(request(Method::GET, &raw.url("/"))).await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "ok");
    assert_eq!((raw.came(), raw.connections()), (2, 1));
    assert_eq!(raw.header("relent-attempt"), [None, Some("2".into())]);
}

#[tokio::test]
async fn a_post_is_not_doubled_when_the_connection_breaks() {
    let raw = Raw::new(|_, _| Say::Cut(vec![])).await;
    assert_eq!(send(layered(POLICY), request(Method::POST, &raw.url("/"))).await, Err(Reason::NotIdempotent));
    assert_eq!(raw.came(), 1);
    assert_eq!(send(layered(POLICY), request(Method::PUT, &raw.url("/"))).await, Err(Reason::Attempts));
    assert_eq!(raw.came(), 4);
}

#[tokio::test]
async fn a_post_with_a_key_is_repeated_and_the_server_sees_one_key() {
    let raw = Raw::new(|before, _| if before < 2 { Say::Cut(vec![]) } else { Say::answer(200, "", "") }).await;
    let service = POLICY.layer().idempotency_keys().layer(client());
    assert_eq!(send(service, request(Method::POST, &raw.url("/"))).await, Ok(200));
    let keys = raw.header("idempotency-key");
    assert!(keys.len() == 3 && keys[0].is_some() && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

/// An address at which nothing listens.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

#[tokio::test]
async fn a_post_that_never_left_is_repeated_where_that_is_known() {
    let url = nowhere();
    let once = layered(POLICY).oneshot(request(Method::POST, &url)).await.unwrap_err();
    assert_eq!((once.reason, once.attempts), (Reason::NotIdempotent, 1), "it may have been redirected");
    let service = POLICY.layer().without_redirects().layer(client());
    let thrice = service.oneshot(request(Method::POST, &url)).await.unwrap_err();
    assert_eq!((thrice.reason, thrice.attempts), (Reason::Attempts, 3));
}

/// The first server has carried the POST out and sends the client on to where it cannot connect.
#[tokio::test]
async fn a_post_that_was_redirected_to_nowhere_is_not_doubled() {
    let next = nowhere();
    let raw = Raw::new(move |_, _| Say::answer(303, &format!("location: {next}\r\n"), "")).await;
    let err = layered(POLICY).oneshot(request(Method::POST, &raw.url("/"))).await.unwrap_err();
    assert_eq!((err.reason, raw.came()), (Reason::NotIdempotent, 1));
}

#[tokio::test]
async fn a_body_that_streams_is_sent_once() {
    let raw = Raw::new(|_, _| Say::answer(503, "", "")).await;
    let mut put = request(Method::PUT, &raw.url("/"));
    let body = http_body_util::Full::new(bytes::Bytes::from_static(b"stream"));
    *put.body_mut() = Some(reqwest::Body::wrap(body));
    put.headers_mut().insert("content-length", "6".parse().unwrap());
    let answer = POLICY.layer().record().layer(client()).oneshot(put).await.unwrap();
    assert_eq!((answer.headers()["relent"].to_str().unwrap(), raw.came()), ("attempts=1; reason=too_large", 1));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let raw = Raw::new(|_, _| Say::Nothing).await;
    let policy = POLICY.attempt_timeout(Duration::from_millis(50)).timeout(Duration::from_millis(300));
    let begin = Instant::now();
    let err = layered(policy).oneshot(request(Method::GET, &raw.url("/"))).await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(3) && err.timed_out.is_some(), "{err}");
    assert_eq!(raw.came(), 3);
    let left: Vec<u64> =
        raw.header("relent-deadline").iter().map(|left| left.as_ref().unwrap().parse().unwrap()).collect();
    assert!(left[0] == 50 && left[1] == 50 && left[2] > 50, "the last has what is left: {left:?}");
    let post = layered(policy).oneshot(request(Method::POST, &raw.url("/"))).await.unwrap_err();
    assert_eq!((post.reason, raw.came()), (Reason::NotIdempotent, 4));
}

#[tokio::test]
async fn servers_that_lie_do_no_harm() {
    let long = format!("x-long: {}\r\n", "x".repeat(64 << 10));
    for (headers, came) in [
        ("retry-after: 100000000000\r\n", 1),
        ("retry-after: 1\r\nretry-after: 100000000000\r\n", 1),
        ("retry-after: -5\r\nretry-after-ms: abc\r\nrelent-turn: \r\n", 3),
        ("relent-turn: 1\r\nrelent-retry: no\r\n", 1),
        ("x-should-retry: true\r\nx-should-retry: false\r\n", 1),
        (long.as_str(), 3),
    ] {
        let head = headers.to_owned();
        let raw = Raw::new(move |_, _| Say::answer(503, &head, "words")).await;
        let begin = Instant::now();
        let answer = layered(POLICY).oneshot(request(Method::GET, &raw.url("/"))).await.unwrap();
        assert!(begin.elapsed() < Duration::from_secs(5), "{headers:.60}");
        assert_eq!((answer.status().as_u16(), raw.came()), (503, came), "{headers:.60}");
        assert_eq!(answer.text().await.unwrap(), "words");
    }
}

/// Whatever is missing of an answer: what is idempotent is asked for again until the head is there, a POST never, and what ends
/// after its head is the reader's.
#[tokio::test]
async fn answers_that_are_cut_at_every_byte() {
    let whole = answer(200, "x-mine: 1\r\n", "0123456789");
    let head = whole.len() - 10;
    for cut in 0..=whole.len() {
        let bytes = whole.clone();
        let full = whole.clone();
        let raw = Raw::new(
            move |before, _| {
                if before == 0 { Say::Cut(bytes[..cut].to_vec()) } else { Say::Bytes(full.clone()) }
            },
        )
        .await;
        let answer = layered(POLICY).oneshot(request(Method::GET, &raw.url("/"))).await.unwrap();
        assert_eq!((answer.status().as_u16(), raw.came()), (200, if cut < head { 2 } else { 1 }), "cut at {cut}");
        let is_whole = cut < head || cut == whole.len();
        assert_eq!(answer.text().await.is_ok(), is_whole, "cut at {cut}");

        let bytes = whole.clone();
        let raw = Raw::new(move |_, _| Say::Cut(bytes[..cut].to_vec())).await;
        let outcome = send(layered(POLICY), request(Method::POST, &raw.url("/"))).await;
        assert_eq!(raw.came(), 1, "a POST cut at {cut}");
        assert_eq!(outcome.is_ok(), cut >= head, "a POST cut at {cut}");
    }
}

#[tokio::test]
async fn a_breaker_stops_attempts_of_all_clones() {
    static DOWN: Upstream = Upstream::new("down").breaker(relent::Breaker::consecutive(2));
    let raw = Raw::new(|_, _| Say::answer(500, "", "")).await;
    let mut service = POLICY.on(&DOWN).layer().layer(client());
    let answer = service.ready().await.unwrap().call(request(Method::GET, &raw.url("/"))).await.unwrap();
    assert_eq!(answer.status().as_u16(), 500, "the last answer, not an error");
    let err = service.clone().oneshot(request(Method::GET, &raw.url("/"))).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, raw.came()), (Reason::Open, 0, 2));
}
