//! A layer around hyper-util's client, over HTTP/1.1 and HTTP/2.

use crate::raw::{Raw, Say};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use relent::{Jitter, Policy, Reason};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::net::TcpListener;
use tower::{Layer, ServiceExt};

const POLICY: Policy = Policy::constant(Duration::from_millis(5)).jitter(Jitter::None).max_attempts(3);

/// Its own retries are off: there is one place that retries.
fn client(is_http2: bool) -> Client<HttpConnector, Full<Bytes>> {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.retry_canceled_requests(false).http2_only(is_http2);
    builder.build_http()
}

fn request(method: Method, url: &str) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri(url).body(Full::from("body")).unwrap()
}

#[tokio::test]
async fn a_client_retries_and_hands_the_last_answer_over() {
    let raw = Raw::new(|before, _| match before {
        0 => Say::answer(502, "", "words"),
        1 => Say::Cut(vec![]),
        _ => Say::answer(503, "x-mine: 1\r\n", "last words"),
    });
    let raw = raw.await;
    let answer = POLICY.layer().layer(client(false)).oneshot(request(Method::GET, &raw.url("/"))).await.unwrap();
    assert_eq!((answer.status().as_u16(), raw.came()), (503, 3));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "last words");
}

#[tokio::test]
async fn a_post_is_repeated_only_if_it_never_left() {
    let raw = Raw::new(|_, _| Say::Cut(vec![])).await;
    let layer = POLICY.layer();
    let err = layer.layer(client(false)).oneshot(request(Method::POST, &raw.url("/"))).await.unwrap_err();
    assert_eq!((err.reason, raw.came()), (Reason::NotIdempotent, 1));
    let nowhere = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    };
    let err = layer.layer(client(false)).oneshot(request(Method::POST, &nowhere)).await.unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Attempts, 3));
}

/// A server of HTTP/2 that resets the first streams with this reason, or answers.
async fn resets(resets: u32, reason: h2::Reason) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let came = Arc::new(AtomicU32::new(0));
    let count = came.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let count = count.clone();
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((_request, mut respond))) = connection.accept().await {
                    if count.fetch_add(1, Ordering::SeqCst) < resets {
                        respond.send_reset(reason);
                    } else {
                        respond.send_response(http::Response::new(()), true).unwrap();
                    }
                }
            });
        }
    });
    (url, came)
}

#[tokio::test]
async fn a_stream_that_was_refused_never_left() {
    let (url, came) = resets(2, h2::Reason::REFUSED_STREAM).await;
    let answer = POLICY.layer().layer(client(true)).oneshot(request(Method::POST, &url)).await.unwrap();
    assert_eq!((answer.status().as_u16(), came.load(Ordering::SeqCst)), (200, 3));

    let (url, came) = resets(2, h2::Reason::CANCEL).await;
    let err = POLICY.layer().layer(client(true)).oneshot(request(Method::POST, &url)).await.unwrap_err();
    assert_eq!((err.reason, came.load(Ordering::SeqCst)), (Reason::NotIdempotent, 1));
    let (url, came) = resets(2, h2::Reason::CANCEL).await;
    POLICY.layer().layer(client(true)).oneshot(request(Method::GET, &url)).await.unwrap();
    assert_eq!(came.load(Ordering::SeqCst), 3);
}
