//! Connecting to real sockets, that come up late.

use relent::{Breaker, Cancel, Policy, Reason, Upstream, net};
use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    time::Duration,
};

const QUICK: Policy = Policy::constant(Duration::from_millis(5)).max_attempts(400);

/// A port where nobody listens, and that nobody else is given while the test runs: it is bound, and kept. Who says so
/// (`SO_REUSEADDR`, as listeners of std and tokio do) may still listen on it.
fn free_port() -> u16 {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    let port = socket.local_addr().unwrap().as_socket().unwrap().port();
    std::mem::forget(socket);
    port
}

#[tokio::test]
async fn a_listener_that_comes_up_late_is_reached() {
    let address = format!("localhost:{}", free_port());
    let late = address.clone();
    let server = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(30)).await;
        let listener = tokio::net::TcpListener::bind(late).await.unwrap();
        listener.accept().await.unwrap()
    });
    let stream = net::connect(&QUICK, &address).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap().port().to_string(), address.rsplit(':').next().unwrap());
    server.await.unwrap();
}

#[test]
fn on_a_thread_too() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    net::connect_blocking(&QUICK.attempt_timeout(Duration::from_secs(5)), &address).unwrap();
}

#[test]
fn nobody_there_is_told_after_the_last_attempt() {
    let policy = Policy::constant(Duration::from_millis(1)).max_attempts(3);
    let err = net::connect_blocking(&policy, &format!("127.0.0.1:{}", free_port())).unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Attempts, 3));
    assert_eq!(err.last.unwrap().kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn an_address_that_is_none_fails_at_once() {
    for address in ["localhost", "localhost:65536", ""] {
        let err = net::connect_blocking(&QUICK, address).unwrap_err();
        assert_eq!((err.reason, err.attempts), (Reason::Permanent, 1), "{address:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_that_does_not_exist_yet_is_waited_for() {
    let path = std::env::temp_dir().join(format!("relent-test-{}.sock", std::process::id()));
    let late = path.clone();
    let server = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(30)).await;
        let listener = tokio::net::UnixListener::bind(late).unwrap();
        listener.accept().await.unwrap();
    });
    net::connect_unix(&QUICK, &path).await.unwrap();
    server.await.unwrap();
    std::fs::remove_file(path).unwrap();
}

#[tokio::test]
async fn a_thrown_switch_connects_to_nobody() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let cancel = Cancel::new();
    cancel.cancel();

    let blocking = QUICK.when(net::verdict).cancel(&cancel);
    let err = blocking.retry_blocking(|attempt| net::connect_once(&address, attempt.timeout())).unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Cancelled, 0));
    let err = QUICK.cancel(&cancel).retry(async |_| tokio::net::TcpStream::connect(&address).await).await.unwrap_err();
    assert_eq!((err.reason, err.attempts), (Reason::Cancelled, 0));
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nobody came");
}

#[tokio::test]
async fn connecting_is_done_on_an_upstream() {
    let db = Upstream::new("db").breaker(Breaker::consecutive(3).open_for(Duration::from_secs(60)));
    let address = format!("127.0.0.1:{}", free_port());
    let mut told = 0;
    let err = net::connect(QUICK.on(&db).notify(|_| told += 1), &address).await.unwrap_err();
    assert_eq!((err.reason, err.attempts, told), (Reason::Open, 3, 3));
    let refused = net::connect_blocking(QUICK.on(&db), &address).unwrap_err();
    assert_eq!((refused.reason, refused.attempts), (Reason::Open, 0), "the next call is not even made");
    assert_eq!(db.snapshot().attempts, 3);
    db.release();
    let listener = TcpListener::bind(&address).unwrap();
    net::connect(QUICK.on(&db), &listener.local_addr().unwrap().to_string()).await.unwrap();
    assert_eq!(db.snapshot().attempts, 4);
}
