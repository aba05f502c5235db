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
    io,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
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

/// A connection of HTTP/2 by hand: takes a request to its end, and answers 200, or with a GOAWAY of this last stream and this
/// error, after which it closes.
async fn take_one(mut stream: TcpStream, came: &AtomicU32, goes_away: Option<(u32, h2::Reason)>) -> io::Result<()> {
    const PREFACE: usize = 24;
    let (data, headers, settings, go_away) = (0, 1, 4, 7);
    let (end_stream, acknowledged, whole) = (1, 1, 4);
    let frame = |kind: u8, flags: u8, id: u32, payload: &[u8]| {
        let mut frame = vec![0, 0, payload.len() as u8, kind, flags];
        frame.extend(id.to_be_bytes());
        frame.extend(payload);
        frame
    };
    stream.read_exact(&mut [0; PREFACE]).await?;
    stream.write_all(&frame(settings, 0, 0, &[])).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).await?;
        let (kind, flags, id) = (head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
        if kind == settings && flags & acknowledged == 0 {
            stream.write_all(&frame(settings, acknowledged, 0, &[])).await?;
        }
        if !matches!(kind, k if k == data || k == headers) || flags & end_stream == 0 {
            continue;
        }
        came.fetch_add(1, Ordering::SeqCst);
        match goes_away {
            Some((last, reason)) => {
                let payload = [last.to_be_bytes(), u32::from(reason).to_be_bytes()].concat();
                stream.write_all(&frame(go_away, 0, 0, &payload)).await?;
                return stream.shutdown().await;
            }
            // `:status: 200`, which has a number of its own.
            None => stream.write_all(&frame(headers, end_stream | whole, id, &[0x88])).await?,
        }
    }
}

/// The first connection goes away, those after it answer.
async fn goes_away(last: u32, reason: h2::Reason) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let came = Arc::new(AtomicU32::new(0));
    let count = came.clone();
    tokio::spawn(async move {
        let mut first = Some((last, reason));
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (count, goes_away) = (count.clone(), first.take());
            tokio::spawn(async move { _ = take_one(stream, &count, goes_away).await });
        }
    });
    (url, came)
}

/// "Activity on streams numbered lower than or equal to the last stream identifier might still complete successfully"; those
/// above "were not or will not be processed", RFC 9113, 6.8.
#[tokio::test]
async fn when_a_server_goes_away_a_post_is_repeated_only_if_it_was_not_taken() {
    const MINE: u32 = 1;
    let send = async |method, last, reason| {
        let (url, came) = goes_away(last, reason).await;
        let outcome = POLICY.layer().layer(client(true)).oneshot(request(method, &url)).await;
        let outcome = outcome.map(|answer| answer.status().as_u16()).map_err(|err| err.reason);
        (outcome, came.load(Ordering::SeqCst))
    };
    let (none, internal) = (h2::Reason::NO_ERROR, h2::Reason::INTERNAL_ERROR);
    assert_eq!(send(Method::POST, 0, none).await, (Ok(200), 2), "not taken");
    assert_eq!(send(Method::POST, MINE, none).await, (Err(Reason::NotIdempotent), 1), "taken, and nobody knows");
    assert_eq!(send(Method::POST, MINE, internal).await, (Err(Reason::NotIdempotent), 1));
    assert_eq!(
        send(Method::POST, 0, internal).await,
        (Err(Reason::NotIdempotent), 1),
        "an error says nothing for sure"
    );
    assert_eq!(send(Method::GET, MINE, none).await, (Ok(200), 2));
}
