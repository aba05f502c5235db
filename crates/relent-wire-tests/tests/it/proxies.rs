//! Behind a real nginx that tries three servers, before which a client tries three times: what reaches the bottom.

use super::nginx::Nginx;
use axum::{Router, extract::Request, routing::any};
use http::{Method, StatusCode};
use relent::{Admission, Budget, Jitter, Limit, Pacer, Policy, Upstream, layer::AdmissionLayer};
use relent_wire_tests::serve::Server;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tower::{Service, ServiceBuilder, ServiceExt};

const THREE: Policy = Policy::constant(Duration::from_millis(1)).jitter(Jitter::None).max_attempts(3);
/// What many have in their configuration, and what goes further than it should.
const USUAL: &str = "error timeout http_502 http_503 http_504";
const BOLD: &str = "error timeout http_502 http_503 http_504 non_idempotent";

/// A client without retries of its own.
fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap()
}

/// An app that counts its requests, and answers with this.
fn counting(status: StatusCode) -> (Router, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let handler = move || {
        seen.fetch_add(1, Ordering::Relaxed);
        async move { status }
    };
    (Router::new().fallback(any(handler)), count)
}

async fn send(client: &reqwest::Client, method: &Method, url: &str) -> StatusCode {
    client.request(method.clone(), url).body("x").send().await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_relent_one_call_is_nine_requests() {
    let (app, count) = counting(StatusCode::SERVICE_UNAVAILABLE);
    let server = Server::start(app);
    let nginx = Nginx::before(server.address(), USUAL);
    let client = client();
    for _ in 0..3 {
        assert_eq!(send(&client, &Method::GET, &nginx.url("/")).await, 503);
    }
    assert_eq!(count.load(Ordering::Relaxed), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn overloaded_reaches_the_top_and_is_one_request() {
    let (app, count) = counting(StatusCode::OK);
    let door =
        Admission::new().limit(Limit::concurrency(1)).pacer(Pacer::capacity(1.0).horizon(Duration::from_millis(1)));
    let layer = AdmissionLayer::new(door);
    let _inside = layer.admission().permit(relent::Timestamp::ZERO, &relent::Arrival::default()).unwrap();
    let server = Server::start(app.layer(layer.clone()));
    let nginx = Nginx::before(server.address(), USUAL);
    let mut client = ServiceBuilder::new().layer(THREE.layer()).service(client());
    let request = reqwest::Request::new(Method::GET, nginx.url("/").parse().unwrap());
    let answer = client.ready().await.unwrap().call(request).await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["relent-retry"]), (429, &"no".parse().unwrap()));
    assert_eq!((layer.snapshot().refused(), count.load(Ordering::Relaxed)), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_shed_costs_one_and_the_budget() {
    static BELOW: Upstream = Upstream::new("below").budget(Budget::ratio(0.1).min_per_second(0));
    let (app, count) = counting(StatusCode::OK);
    // "Later", not "never"; and the client is told at once how long that is, so that the test is quick.
    let door = Admission::new().limit(Limit::concurrency(1)).max_retry_share(1.0).pushback(Duration::ZERO);
    let layer = AdmissionLayer::new(door);
    let _inside = layer.admission().permit(relent::Timestamp::ZERO, &relent::Arrival::default()).unwrap();
    let server = Server::start(app.layer(layer.clone()));
    let nginx = Nginx::before(server.address(), USUAL);
    let client = client();
    let retrier = THREE.on(&BELOW).when(relent::Failure::verdict);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (retrier, client, url) = (retrier, client.clone(), nginx.url("/"));
        tasks.spawn(async move {
            let ended = retrier
                .retry(async |_| {
                    let answer = client.get(&url).send().await.unwrap();
                    // The whole second that is the least of `Retry-After` would make this a long test.
                    match answer.status() {
                        StatusCode::TOO_MANY_REQUESTS => Err(relent::Failure::transient(answer.status())),
                        status => Ok(status),
                    }
                })
                .await;
            assert!(ended.is_err());
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let refused = layer.snapshot().refused();
    assert!((100..=110).contains(&refused), "{refused} of 100 calls");
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

/// The work is done, and then the connection breaks: nobody knows, so nobody may do it again.
fn does_and_breaks(key: Arc<Mutex<Vec<String>>>, breaks: usize) -> (Router, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let done = count.clone();
    let handler = move |request: Request| {
        let value = request.headers().get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
        key.lock().unwrap().extend(value);
        let number = done.fetch_add(1, Ordering::Relaxed);
        async move {
            assert!(number >= breaks, "the connection breaks here");
            StatusCode::OK
        }
    };
    (Router::new().fallback(any(handler)), count)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_never_doubled() {
    for is_behind_nginx in [false, true] {
        let (app, done) = does_and_breaks(Arc::default(), usize::MAX);
        let server = Server::start(app.layer(AdmissionLayer::new(Admission::new())));
        let nginx = is_behind_nginx.then(|| Nginx::before(server.address(), USUAL));
        let url = nginx.as_ref().map_or_else(|| server.url("/"), |nginx| nginx.url("/"));

        let mut layered = ServiceBuilder::new().layer(THREE.layer()).service(client());
        let mut request = reqwest::Request::new(Method::POST, url.parse().unwrap());
        *request.body_mut() = Some("order".into());
        let _ = layered.ready().await.unwrap().call(request).await;
        assert_eq!(done.swap(0, Ordering::Relaxed), 1, "relent around reqwest, behind nginx: {is_behind_nginx}");

        let hyper = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
            .build_http::<http_body_util::Full<bytes::Bytes>>();
        let mut layered = ServiceBuilder::new().layer(THREE.layer()).service(hyper);
        let request = http::Request::post(&url).body("order".into()).unwrap();
        let _ = layered.ready().await.unwrap().call(request).await;
        assert_eq!(done.swap(0, Ordering::Relaxed), 1, "relent around hyper, behind nginx: {is_behind_nginx}");

        let with_idempotent = ServiceBuilder::new().layer(THREE.layer()).service(client());
        let get = reqwest::Request::new(Method::GET, url.parse().unwrap());
        let _ = with_idempotent.oneshot(get).await;
        assert!(done.swap(0, Ordering::Relaxed) >= 3, "a GET may be: this is what would be done to a POST");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_key_a_post_is_retried_and_has_one_key() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let (app, done) = does_and_breaks(keys.clone(), 2);
    let server = Server::start(app);
    let mut layered = ServiceBuilder::new().layer(THREE.layer().idempotency_keys()).service(client());
    for call in 1..=2 {
        let mut request = reqwest::Request::new(Method::POST, server.url("/").parse().unwrap());
        *request.body_mut() = Some("order".into());
        let answer = layered.ready().await.unwrap().call(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        let mut seen = keys.lock().unwrap();
        assert!(seen.iter().all(|key| *key == seen[0]), "{seen:?}");
        assert_eq!(seen.len(), if call == 1 { 3 } else { 1 }, "one for each attempt");
        if call == 1 {
            seen.truncate(1);
            let first = seen.remove(0);
            drop(seen);
            assert!(!first.is_empty());
        }
    }
    assert_eq!(done.load(Ordering::Relaxed), 4);
}

/// curl repeats a POST at any 503 or 429, so what it is told then must be about what was not done.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_was_not_begun_so_curl_may_repeat_a_post() {
    for is_behind_nginx in [false, true] {
        let (app, done) = counting(StatusCode::OK);
        let door = Admission::new().limit(Limit::concurrency(1)).pacer(Pacer::capacity(20.0));
        let layer = AdmissionLayer::new(door);
        let held = layer.admission().permit(relent::Timestamp::ZERO, &relent::Arrival::default()).unwrap();
        let server = Server::start(app.layer(layer.clone()));
        let nginx = is_behind_nginx.then(|| Nginx::before(server.address(), BOLD));
        let url = nginx.as_ref().map_or_else(|| server.url("/"), |nginx| nginx.url("/"));
        let curl = tokio::task::spawn_blocking(move || {
            std::process::Command::new("curl")
                .args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "--retry", "5", "-d", "order", &url])
                .output()
                .unwrap()
        });
        while layer.snapshot().turns == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(done.load(Ordering::Relaxed), 0);
        // Released on another thread's behalf: the permit borrows the layer.
        drop(held);
        let curl = curl.await.unwrap();
        assert_eq!(String::from_utf8_lossy(&curl.stdout), "200", "behind nginx: {is_behind_nginx}");
        assert_eq!((done.load(Ordering::Relaxed), layer.snapshot().turns), (1, 1));
    }
}

/// Done, kept under its key, and then the answer is lost: the first one.
async fn keeps_and_breaks() -> (Router, Arc<AtomicUsize>) {
    let (app, done) = counting(StatusCode::OK);
    let store = relent_store::Store::open("memory:").await.unwrap();
    let answered = Arc::new(AtomicUsize::new(0));
    let breaks = axum::middleware::from_fn(move |request: Request, next: axum::middleware::Next| {
        let answered = answered.clone();
        async move {
            let answer = next.run(request).await;
            assert!(answered.fetch_add(1, Ordering::Relaxed) > 0, "the connection breaks here");
            answer
        }
    });
    (app.layer(relent_store::layer::IdempotencyLayer::new(store)).layer(breaks), done)
}

/// Sends a POST, and repeats it at whatever failure there is.
async fn curl(url: String, headers: &'static [&str]) -> String {
    let curl = tokio::task::spawn_blocking(move || {
        let mut curl = std::process::Command::new("curl");
        curl.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "--retry", "3", "--retry-all-errors", "-d", "order"]);
        for header in headers {
            curl.args(["-H", header]);
        }
        curl.arg(url).output().unwrap()
    });
    String::from_utf8(curl.await.unwrap().stdout).unwrap()
}

/// curl and a bold nginx repeat a POST whatever became of it, and no layer around the client can know. A key can.
#[tokio::test(flavor = "multi_thread")]
async fn with_a_key_that_the_server_keeps_a_post_is_not_doubled_whoever_repeats_it() {
    for is_behind_nginx in [false, true] {
        for is_curl in [false, true] {
            let (app, done) = keeps_and_breaks().await;
            let server = Server::start(app);
            let nginx = is_behind_nginx.then(|| Nginx::before(server.address(), BOLD));
            let url = nginx.as_ref().map_or_else(|| server.url("/"), |nginx| nginx.url("/"));
            let status = if is_curl {
                curl(url, &["Idempotency-Key: \"order-7\""]).await
            } else {
                let mut layered = ServiceBuilder::new().layer(THREE.layer().idempotency_keys()).service(client());
                let mut request = reqwest::Request::new(Method::POST, url.parse().unwrap());
                *request.body_mut() = Some("order".into());
                layered.ready().await.unwrap().call(request).await.unwrap().status().as_str().to_owned()
            };
            let who = format!("curl: {is_curl}, behind nginx: {is_behind_nginx}");
            assert_eq!((status.as_str(), done.load(Ordering::Relaxed)), ("200", 1), "{who}");
        }
    }
    let (app, done) = keeps_and_breaks().await;
    let server = Server::start(app);
    assert_eq!(curl(server.url("/"), &[]).await, "200");
    assert_eq!(done.load(Ordering::Relaxed), 2, "without a key it is");
}
