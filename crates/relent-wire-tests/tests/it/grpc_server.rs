//! tonic's server behind the layer: refused in gRPC's words, and its handlers know their deadline.

use http::{Request, Response};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use relent::{
    Admission, Limit, Pacer,
    layer::{AdmissionLayer, Caller},
};
use relent_wire_tests::serve;
use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};
use tonic::{body::Body, server::NamedService, transport::Server};
use tower::Service;

/// Answers without a message, and says in a header what it knows of its caller.
#[derive(Clone)]
struct Who;

impl NamedService for Who {
    const NAME: &'static str = "test.Who";
}

impl Service<Request<Body>> for Who {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let caller = Caller::current().unwrap();
        let left = caller.time_left().map_or(0, |time| time.left().as_millis().div_ceil(1000));
        let who = format!("{} {left}", caller.attempt());
        let answer = Response::builder().header("content-type", "application/grpc").header("grpc-status", "0");
        ready(Ok(answer.header("who", who).body(Body::empty()).unwrap()))
    }
}

type Grpc = Client<HttpConnector, http_body_util::Empty<bytes::Bytes>>;

async fn ask(client: &Grpc, url: &str, headers: &[(&str, &str)]) -> Response<hyper::body::Incoming> {
    let mut request = Request::post(url).header("content-type", "application/grpc").header("te", "trailers");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.request(request.body(http_body_util::Empty::new()).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tonic_refuses_in_the_words_of_grpc() {
    let door = Admission::new().limit(Limit::concurrency(1)).pacer(Pacer::capacity(2.0));
    let layer = AdmissionLayer::new(door);
    let listener = serve::listen();
    let url = format!("http://{}/test.Who/Ask", listener.local_addr().unwrap());
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let server = Server::builder().layer(layer.clone()).add_service(Who).serve_with_incoming(incoming);
    let server = tokio::spawn(server);
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();

    let answer = ask(&client, &url, &[("grpc-timeout", "7S"), ("grpc-previous-rpc-attempts", "2")]).await;
    assert_eq!(["grpc-status", "who"].map(|name| &answer.headers()[name]), ["0", "3 7"]);
    drop(answer);

    let inside = layer.admission().permit(relent::Timestamp::ZERO, &relent::Arrival::default());
    assert!(inside.is_ok());
    let refused = ask(&client, &url, &[]).await;
    let said = ["grpc-status", "grpc-retry-pushback-ms", "relent-turn"].map(|name| refused.headers()[name].clone());
    assert_eq!((refused.status().as_u16(), said), (200, ["14", "500", "500"].map(http::HeaderValue::from_static)));
    assert!(hyper::body::Body::is_end_stream(refused.body()), "trailers-only: nothing comes after the head");
    let late = ask(&client, &url, &[("grpc-timeout", "0m")]).await;
    assert_eq!(["grpc-status", "grpc-retry-pushback-ms"].map(|name| &late.headers()[name]), ["8", "-1"]);
    drop(inside);
    server.abort();
}
