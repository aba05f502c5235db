//! Servers that were made to do harm.

use super::{frames::Frames, *};
use crate::{Engine, Kind, Store};
use relent::Policy;
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

/// What a server sends in the place of an answer: its beginning, and what follows without end.
#[derive(Clone, Copy)]
struct Flood(&'static str, &'static [u8]);

/// A server that answers the first `honest` questions, and then floods whoever asks. Where it listens, and how much it sent.
fn server(honest: u64, flood: Flood) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("redis://127.0.0.1:{}/0", listener.local_addr().unwrap().port());
    let sent = Arc::new(AtomicU64::new(0));
    let counts = sent.clone();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let counts = counts.clone();
            thread::spawn(move || answer(socket, honest, flood, &counts));
        }
    });
    (url, sent)
}

fn answer(mut socket: TcpStream, honest: u64, Flood(begin, rest): Flood, counts: &AtomicU64) -> std::io::Result<()> {
    let (mut questions, mut buf, mut answered) = (Frames::default(), [0; 4096], 0);
    loop {
        let read = socket.read(&mut buf)?;
        if read == 0 {
            return Ok(());
        }
        questions.read(&buf[..read]).expect("what we ask is in order");
        while answered < questions.complete.min(honest) {
            // Two questions are sent to begin with, and then the time is asked for.
            socket.write_all(if answered < 2 { b"+OK\r\n" } else { b"*2\r\n:1\r\n:1\r\n" })?;
            answered += 1;
        }
        if questions.complete > honest {
            break;
        }
    }
    socket.write_all(begin.as_bytes())?;
    let rest = rest.repeat(65_536 / rest.len());
    while counts.fetch_add(rest.len() as u64, Ordering::Relaxed) < 1 << 32 {
        socket.write_all(&rest)?;
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    for flood in [
        Flood("$4000000000\r\n", b"0"),
        Flood("+", b"a"),
        Flood("$", b"9"),
        Flood("*4000000000\r\n", b"*0\r\n"),
        Flood("*60000\r\n", b"*60000\r\n:1\r\n"),
        Flood("", b"*1\r\n"),
        Flood("", b"+OK\r\n"),
        Flood("%9223372036854775807\r\n", b"+a\r\n"),
        Flood("|30000\r\n", b"+a\r\n"),
        Flood("", b">2\r\n+a\r\n+b\r\n"),
        Flood("", b"\x00"),
    ] {
        // At once, and when it has been trusted.
        for honest in [0, 3] {
            let (url, sent) = server(honest, flood);
            let begin = Instant::now();
            let error = match Store::open_with(&url, Policy::constant(Duration::from_millis(10))).await {
                Err(error) => error,
                Ok(store) => store.list(Kind::Values, 10).await.unwrap_err(),
            };
            let what = format!("{:?} after {honest}: {error:?}", flood.0);
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}");
            assert!(begin.elapsed() < Duration::from_secs(5), "{what}: {:?}", begin.elapsed());
            // What fits into the system's buffers comes on top.
            let sent = sent.load(Ordering::Relaxed);
            assert!(sent < 80 << 20, "{what}: {sent} bytes");
        }
    }
}

#[tokio::test]
async fn who_listens_is_not_flooded_either() {
    let (url, sent) = server(3, Flood("$4000000000\r\n", b"0"));
    let redis = Redis::open(&url, "relent_").await.unwrap();
    let begin = Instant::now();
    redis.freed(&Key::new("nightly").unwrap(), Duration::from_millis(300)).await;
    assert!(begin.elapsed() >= Duration::from_millis(300), "it is waited for as if nothing was heard");
    assert!(sent.load(Ordering::Relaxed) < 40 << 20);
}
