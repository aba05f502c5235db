//! Servers that were made to do harm.

use super::*;
use crate::{Store, flood::Flood};
use relent::Policy;
use std::{
    io::{Read, Write},
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

/// "You are in", and "ask".
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// A server that floods whoever asks, at once or when it has been trusted.
fn server(is_polite: bool, flood: Flood) -> (String, Arc<AtomicU64>) {
    let (port, sent) = flood.serve(move |socket| {
        let mut buf = [0; 4096];
        let mut has_asked = socket.read(&mut buf)? > 0;
        if is_polite {
            socket.write_all(WELCOME)?;
            has_asked = socket.read(&mut buf)? > 0;
        }
        Ok(has_asked)
    });
    (format!("postgres://relent@127.0.0.1:{port}/shop"), sent)
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    for flood in [
        Flood(b"D\x7f\xff\xff\xff", b"0"),
        Flood(b"R\xff\xff\xff\xff", b"0"),
        Flood(b"", b"1\0\0\0\x04"),
        Flood(b"1\0\0\0\x042\0\0\0\x04T\0\0\0\x06\0\0", b"D\0\0\0\x06\0\0"),
        Flood(b"", b"S\0\0\0\x08a\0b\0"),
        Flood(b"", b"N\0\0\0\x05\0"),
        Flood(b"", b"HTTP/1.1 400 Bad Request\r\n"),
    ] {
        for is_polite in [false, true] {
            let (url, sent) = server(is_polite, flood);
            let begin = Instant::now();
            let policy = Policy::constant(Duration::from_millis(10)).timeout(Duration::from_secs(30));
            let error = Store::open_with(&url, policy).await.unwrap_err();
            let what = format!("{} {is_polite}: {error:?}", flood.0.escape_ascii());
            assert!(!error.is_transient(), "{what}");
            // On a busy machine it takes a second or more to read what is read.
            assert!(begin.elapsed() < Duration::from_secs(29), "{what}: {:?}", begin.elapsed());
            let sent = sent.load(Ordering::Relaxed);
            assert!(sent < 100 << 20, "{what}: {sent} bytes");
        }
    }
}

#[tokio::test]
async fn who_listens_is_not_flooded_either() {
    let (url, sent) = server(true, Flood(b"A\x7f\xff\xff\xff", b"0"));
    let mut config: tokio_postgres::Config = url.parse().unwrap();
    let wire = Wire::new(&mut config, &Ssl::default()).unwrap();
    let (client, connection) = config.connect(wire.clone()).await.unwrap();
    let ended = tokio::join!(client.batch_execute("LISTEN relent_freed"), connection);
    assert!(ended.0.is_err() && ended.1.is_err() && wire.took_nonsense());
    assert!(sent.load(Ordering::Relaxed) < 40 << 20);
}
