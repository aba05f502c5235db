//! Clients that do a server no good: none hangs it, and every place comes back.

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::IntoResponse,
    routing::{any, get},
};
use bytes::Bytes;
use relent::{
    Admission, Limit,
    layer::{AdmissionLayer, Caller},
};
use relent_wire_tests::{client, serve::Server};
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};
use tokio_stream::StreamExt;

fn in_flight(layer: &AdmissionLayer) -> u32 {
    layer.snapshot().limit.unwrap().in_flight.unwrap()
}

/// Until all places are back; servers need a moment to see that somebody has gone.
async fn all_back(layer: &AdmissionLayer) {
    let begin = Instant::now();
    while in_flight(layer) > 0 {
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", layer.snapshot());
        sleep(Duration::from_millis(2)).await;
    }
}

/// Streams without end.
async fn endless() -> impl IntoResponse {
    let chunk = Bytes::from(vec![b'x'; 64 << 10]);
    Body::from_stream(tokio_stream::iter(std::iter::repeat(chunk)).map(Ok::<_, io::Error>))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_reads_keeps_nobody_out() {
    let layer =
        AdmissionLayer::new(Admission::new().limit(Limit::concurrency(2))).body_at_most(Duration::from_millis(300));
    let server =
        Server::start(Router::new().route("/", get(endless)).route("/small", get("small")).layer(layer.clone()));
    let mut idle = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        idle.push(stream);
    }
    let begin = Instant::now();
    let mut refused = 0;
    loop {
        match client::get(server.address(), "/small", &[]).await.unwrap().status().as_u16() {
            // The idle ones may come after the first of these.
            200 if in_flight(&layer) == 0 && layer.snapshot().accepted > 2 && refused > 0 => break,
            429 => refused += 1,
            _ => {}
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", layer.snapshot());
        sleep(Duration::from_millis(10)).await;
    }
    assert!(begin.elapsed() >= Duration::from_millis(200), "{:?}", begin.elapsed());
    drop(idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cuts_at_any_byte_leaves_nothing_behind() {
    let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(3)));
    let echo = async |request: Request| axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap_or_default();
    let app = Router::new().route("/", any(echo)).route("/endless", get(endless)).layer(layer.clone());
    let server = Server::start(app);
    let post = b"POST / HTTP/1.1\r\nHost: x\r\nRelent-Attempt: 2\r\nRelent-Deadline: 9000\r\nContent-Length: 10\r\n\r\n0123456789";
    for cut in 0..=post.len() {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(&post[..cut]).await.unwrap();
        // Half of them say goodbye, half are just gone.
        if cut % 2 == 0 {
            stream.shutdown().await.unwrap();
            let mut rest = Vec::new();
            let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await.expect("the server hangs");
        }
        drop(stream);
        all_back(&layer).await;
    }
    for bytes in [1, 100, 100_000] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut some = vec![0; bytes];
        stream.read_exact(&mut some).await.unwrap();
        drop(stream);
        all_back(&layer).await;
    }
    assert_eq!(client::get(server.address(), "/", &[]).await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lies_in_headers_is_served_as_one_who_says_nothing() {
    let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(1)));
    let caller = async || {
        let caller = Caller::current().unwrap();
        format!("{} {:?}", caller.attempt(), caller.time_left().map(|time| time.left().as_secs() > 1_000_000))
    };
    let server = Server::start(Router::new().route("/", get(caller)).layer(layer.clone()));
    let long = "9".repeat(4000);
    let many = vec!["1=1"; 900].join(",");
    for (headers, expected) in [
        (vec![("relent-deadline", long.as_str())], "1 Some(true)"),
        (vec![("relent-deadline", "-1"), ("grpc-timeout", "abc")], "1 None"),
        (vec![("relent-attempt", long.as_str())], "4294967295 None"),
        (vec![("relent-attempt", "0"), ("relent-attempt", "two"), ("x-envoy-attempt-count", "3")], "3 None"),
        (vec![("relent-attempts", many.as_str())], "1 None"),
        (vec![("relent-attempts", "1=99999999999999"), ("relent-attempts", "0=1,,=")], "1 None"),
        (vec![("amz-sdk-request", "attempt=;max=;;;attempt=9")], "1 None"),
        (vec![("x-envoy-expected-rq-timeout-ms", "0"), ("grpc-timeout", "99999999H")], "1 Some(true)"),
    ] {
        let headers: Vec<_> = headers.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
        let answer = client::get(server.address(), "/", &headers).await.unwrap();
        assert_eq!((answer.status().as_u16(), &answer.body()[..]), (200, expected.as_bytes()), "{headers:?}");
    }
    assert_eq!(in_flight(&layer), 0);
    // So much that hyper says no before anybody looks at it.
    let answer = raw(
        server.address(),
        format!("GET / HTTP/1.1\r\nHost: x\r\nRelent-Attempts: {}\r\n\r\n", "1=1,".repeat(150_000)),
    );
    assert!(answer.await.starts_with("HTTP/1.1 431"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_does_not_wait_for_the_body() {
    let layer = AdmissionLayer::new(Admission::new().limit(Limit::concurrency(1)));
    let _inside = layer.admission().permit(relent::Timestamp::ZERO, &relent::Arrival::default()).unwrap();
    let server = Server::start(Router::new().route("/", any("never")).layer(layer.clone()));
    // Ten megabytes are announced, and never sent.
    let answer = raw(server.address(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n".into()).await;
    assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{answer}");
    let answer = answer.to_ascii_lowercase();
    assert!(answer.contains("content-length: 0\r\n") && answer.contains("retry-after: 1\r\n"), "{answer}");
}

/// What is answered to these bytes at first.
async fn raw(address: SocketAddr, bytes: String) -> String {
    let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
    let send = tokio::spawn(async move {
        let _ = write.write_all(bytes.as_bytes()).await;
        write
    });
    let mut answer = vec![0; 4096];
    let read = timeout(Duration::from_secs(10), read.read(&mut answer)).await.expect("the server hangs").unwrap();
    send.abort();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}
