//! Idempotency keys of requests, as a server's layer handles them.

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use relent_store::{
    Memory, Store,
    layer::{Claimed, IdempotencyBody, IdempotencyLayer},
};
use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tower_layer::Layer;
use tower_service::Service;

const SEC: Duration = Duration::from_secs(1);

/// A service that counts how often it was called, and does what the request's path says.
#[derive(Clone, Default)]
struct Bank(Arc<AtomicU32>);

type Answer = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send>>;

impl<B> Service<Request<IdempotencyBody<B>>> for Bank
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<IdempotencyBody<B>>) -> Answer {
        let calls = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let number = calls.fetch_add(1, Ordering::SeqCst) + 1;
            let status = match head.uri.path() {
                "/slow" => {
                    tokio::time::sleep(10 * SEC).await;
                    StatusCode::OK
                }
                "/panics" => panic!("as it was told"),
                "/fails" => StatusCode::INTERNAL_SERVER_ERROR,
                "/refuses" => StatusCode::NOT_FOUND,
                _ => StatusCode::CREATED,
            };
            let claimed = head.extensions.get::<Claimed>();
            let unknown = claimed.is_some_and(|claimed| claimed.unknown.is_some());
            let text = format!("{number} {unknown} {}", String::from_utf8_lossy(&body));
            let mut answer = Response::new(Full::new(text.into()));
            *answer.status_mut() = status;
            answer.headers_mut().insert("location", "/payments/7".parse().unwrap());
            answer.headers_mut().insert("set-cookie", "secret".parse().unwrap());
            Ok(answer)
        })
    }
}

struct Server {
    layer: IdempotencyLayer<Memory>,
    bank: Bank,
}

#[derive(Debug)]
struct Told {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Told {
    fn is_replayed(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }
}

impl Server {
    fn new(set: impl FnOnce(IdempotencyLayer<Memory>) -> IdempotencyLayer<Memory>) -> Server {
        let layer = IdempotencyLayer::new(Store::new(Memory::new()));
        Server { layer: set(layer), bank: Bank::default() }
    }

    fn calls(&self) -> u32 {
        self.bank.0.load(Ordering::SeqCst)
    }

    fn ask(&self, path: &str, headers: &[(&str, &str)], body: &str) -> impl Future<Output = Told> + Send + 'static {
        let mut request = Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap())
    }

    fn send<B>(&self, request: Request<B>) -> impl Future<Output = Told> + Send + 'static
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let mut service = self.layer.layer(self.bank.clone());
        async move {
            let (head, body) = service.call(request).await.unwrap().into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = String::from_utf8(body.to_vec()).unwrap();
            Told { status: head.status.as_u16(), headers: head.headers, body }
        }
    }

    async fn pay(&self, path: &str, key: &str, body: &str) -> Told {
        self.ask(path, &[("idempotency-key", key)], body).await
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_again_is_answered_and_not_done() {
    let server = Server::new(|layer| layer);
    let first = server.pay("/pay", "\"a\"", "100").await;
    assert_eq!((first.status, first.body.as_str(), first.is_replayed()), (201, "1 false 100", false));
    // Quoted or bare, it is the same key.
    let again = server.pay("/pay", "a", "100").await;
    assert_eq!((again.status, again.body.as_str(), again.is_replayed()), (201, "1 false 100", true));
    assert_eq!(again.headers["location"], "/payments/7");
    assert!(!again.headers.contains_key("set-cookie") && first.headers.contains_key("set-cookie"));
    assert_eq!(server.calls(), 1);
    // After its time it is forgotten.
    tokio::time::sleep(25 * 3600 * SEC).await;
    assert_eq!(server.pay("/pay", "a", "100").await.body, "2 false 100");
}

#[tokio::test(start_paused = true)]
async fn another_request_under_the_same_key_is_refused() {
    let server = Server::new(|layer| layer);
    let _ = server.pay("/pay", "a", "100").await;
    for (path, body) in [("/pay", "200"), ("/pay?twice", "100")] {
        let told = server.pay(path, "a", body).await;
        assert_eq!((told.status, &told.headers["content-type"]), (422, &"application/problem+json".parse().unwrap()));
        assert_eq!(told.headers["relent-retry"], "no");
    }
    assert_eq!(server.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn keys_belong_to_their_tenant_and_path() {
    let server = Server::new(|layer| layer.tenant(|head| head.headers["tenant"].as_bytes().to_vec()));
    let long = "x".repeat(3000);
    // Tenants and paths that would be one, were they only put together.
    for (nth, (tenant, path)) in
        [("a", "/b"), ("a/b", "/"), ("a\u{1f}POST", "/b"), ("=a", "/b"), (&long, "/b"), ("a", "/c"), ("", "/b")]
            .into_iter()
            .enumerate()
    {
        let Ok(tenant) = http::HeaderValue::from_bytes(tenant.as_bytes()) else { continue };
        let headers = [("tenant", tenant.to_str().unwrap()), ("idempotency-key", "k")];
        let before = server.calls();
        for _ in 0..2 {
            let told = server.ask(path, &headers, "").await;
            assert_eq!(told.status, 201, "{nth}");
        }
        assert_eq!(server.calls(), before + 1, "{nth}");
    }
}

/// What comes after a body belongs to it, and does not make it nothing.
#[tokio::test(start_paused = true)]
async fn trailers_are_part_of_what_is_asked() {
    let server = Server::new(|layer| layer);
    let ask = |body: &str, trailer: Option<(&'static str, &str)>| {
        let request = Request::post("/payments").header("idempotency-key", "\"7\"");
        let body = Full::new(Bytes::from(body.to_owned()));
        let trailer = trailer.map(|(name, value)| {
            let mut trailers = HeaderMap::new();
            trailers.insert(name, value.parse().unwrap());
            Ok(trailers)
        });
        server.send(request.body(body.with_trailers(async move { trailer })).unwrap())
    };
    let first = ask("amount=1", Some(("x-sum", "1"))).await;
    assert_eq!((first.status, first.body.as_str()), (201, "1 false amount=1"));
    assert!(ask("amount=1", Some(("x-sum", "1"))).await.is_replayed());
    for (body, trailer) in [
        ("amount=1000", Some(("x-sum", "1"))),
        ("", None),
        ("", Some(("x-sum", "1"))),
        ("amount=1", None),
        ("amount=1", Some(("x-sum", "2"))),
        ("amount=1", Some(("x-su", "m1"))),
    ] {
        assert_eq!(ask(body, trailer).await.status, 422, "{body} {trailer:?}");
    }
    assert_eq!(server.calls(), 1);
}

/// A layer that sees a part of the path alone is told what the request is about.
#[tokio::test(start_paused = true)]
async fn what_a_request_is_about_can_be_said() {
    let at = |prefix: &'static str, server: &Server| Server {
        layer: server.layer.clone().resource(move |head| [prefix.as_bytes(), head.uri.path().as_bytes()].concat()),
        bank: server.bank.clone(),
    };
    let one = Server::new(|layer| layer);
    let (first, second) = (at("/v1", &one), at("/v2", &one));
    let key = [("idempotency-key", "\"7\"")];
    for server in [&first, &second] {
        assert!(!server.ask("/pay", &key, "x").await.is_replayed());
        assert!(server.ask("/pay", &key, "x").await.is_replayed());
    }
    // The same as the whole path elsewhere.
    assert!(one.ask("/v1/pay", &key, "x").await.is_replayed());
    assert_eq!(one.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_wanted_where_it_is_required_and_read_where_there_is_one() {
    let server = Server::new(|layer| layer.required(|head| head.uri.path() == "/pay"));
    assert_eq!(server.ask("/pay", &[], "").await.status, 400);
    assert_eq!(server.ask("/other", &[], "").await.status, 201);
    let hostile = "'); DROP TABLE relent_once; --";
    assert_eq!(server.pay("/pay", hostile, "").await.status, 201);
    assert!(server.pay("/pay", hostile, "").await.is_replayed());
    assert_eq!(server.pay("/pay", &"x".repeat(255), "").await.status, 201);
    for bad in ["", "\"", "\"a\"b", &"x".repeat(256)] {
        assert_eq!(server.pay("/pay", bad, "").await.status, 400, "{bad}");
    }
    let two = [("idempotency-key", "a"), ("idempotency-key", "b")];
    assert_eq!(server.ask("/pay", &two, "").await.status, 400);
    assert_eq!(server.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_on_when_its_connection_is_lost() {
    let server = Server::new(|layer| layer);
    let lost = tokio::time::timeout(SEC, server.pay("/slow", "a", "100")).await;
    assert!(lost.is_err());
    let busy = server.pay("/slow", "a", "100").await;
    assert_eq!((busy.status, &busy.headers["retry-after"]), (409, &"5".parse().unwrap()));
    tokio::time::sleep(10 * SEC).await;
    let done = server.pay("/slow", "a", "100").await;
    assert_eq!((done.status, done.body.as_str(), done.is_replayed()), (200, "1 false 100", true));
    assert_eq!(server.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_done_again_and_what_is_final_is_not() {
    let server = Server::new(|layer| layer);
    assert_eq!(server.pay("/fails", "a", "").await.status, 500);
    assert_eq!(server.pay("/fails", "a", "").await.body, "2 false ");
    assert_eq!(server.pay("/refuses", "a", "").await.body, "3 false ");
    let again = server.pay("/refuses", "a", "").await;
    assert_eq!((again.status, again.is_replayed()), (404, true));
    let doubts = Server::new(|layer| layer.on_failure(relent_store::Abandon::Unknown));
    assert_eq!(doubts.pay("/fails", "a", "").await.status, 500);
    assert_eq!(doubts.pay("/fails", "a", "").await.status, 409);
}

#[tokio::test(start_paused = true)]
async fn after_a_panic_the_outcome_is_unknown() {
    for reruns in [false, true] {
        let server = Server::new(|layer| if reruns { layer.rerun() } else { layer });
        let panics = tokio::spawn(server.ask("/panics", &[("idempotency-key", "a")], ""));
        assert!(panics.await.unwrap_err().is_panic(), "as without the layer");
        if reruns {
            let panics = tokio::spawn(server.ask("/panics", &[("idempotency-key", "a")], ""));
            assert!(panics.await.unwrap_err().is_panic());
            assert_eq!(server.calls(), 2);
        } else {
            let told = server.pay("/panics", "a", "").await;
            assert_eq!((told.status, &told.headers["relent-retry"]), (409, &"no".parse().unwrap()));
            assert_eq!(server.calls(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_are_bounded_on_both_sides() {
    let server = Server::new(|layer| layer.max_request(10).max_answer(12));
    assert_eq!(server.pay("/pay", "a", "12345678901").await.status, 413);
    assert_eq!(server.calls(), 0);
    let whole = server.pay("/pay", "b", "1234").await;
    assert_eq!((whole.status, whole.body.as_str()), (201, "1 false 1234"));
    assert!(server.pay("/pay", "b", "1234").await.is_replayed());
    let large = server.pay("/pay", "c", "123456").await;
    assert_eq!((large.status, large.body.as_str()), (201, "2 false 123456"), "it is sent on whole");
    let again = server.pay("/pay", "c", "123456").await;
    assert_eq!(again.status, 409);
    assert!(again.body.contains("was carried out"), "{}", again.body);
    assert_eq!(server.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn of_many_at_once_one_is_carried_out() {
    let server = Server::new(|layer| layer);
    let all: Vec<_> = (0..50).map(|_| tokio::spawn(server.ask("/slow", &[("idempotency-key", "a")], ""))).collect();
    let mut told = vec![];
    for one in all {
        told.push(one.await.unwrap().status);
    }
    told.sort_unstable();
    assert_eq!((told[0], told[1], told[49]), (200, 409, 409));
    assert_eq!(server.calls(), 1);
}
