//! Servers that were made to do harm.

use super::{frames::Frames, *};
use crate::{Engine, Kind, Store, flood::Flood};
use relent::Policy;
use std::{
    io::{Read, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// A server that answers the first `honest` questions, and then floods whoever asks. Where it listens, and how much it sent.
fn server(honest: u64, flood: Flood) -> (String, Arc<AtomicU64>) {
    let (port, sent) = flood.serve(move |socket| {
        let (mut questions, mut buf, mut answered) = (Frames::default(), [0; 4096], 0);
        while questions.complete <= honest {
            let read = socket.read(&mut buf)?;
            if read == 0 {
                return Ok(false);
            }
            questions.read(&buf[..read]).expect("what we ask is in order");
            while answered < questions.complete.min(honest) {
                // Two questions are sent to begin with, and then the time is asked for.
                socket.write_all(if answered < 2 { b"+OK\r\n" } else { b"*2\r\n:1\r\n:1\r\n" })?;
                answered += 1;
            }
        }
        Ok(true)
    });
    (format!("redis://127.0.0.1:{port}/0"), sent)
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    for flood in [
        Flood(b"$4000000000\r\n", b"0"),
        Flood(b"+", b"a"),
        Flood(b"$", b"9"),
        Flood(b"*4000000000\r\n", b"*0\r\n"),
        Flood(b"*60000\r\n", b"*60000\r\n:1\r\n"),
        Flood(b"", b"*1\r\n"),
        Flood(b"", b"+OK\r\n"),
        Flood(b"%9223372036854775807\r\n", b"+a\r\n"),
        Flood(b"|30000\r\n", b"+a\r\n"),
        Flood(b"", b">2\r\n+a\r\n+b\r\n"),
        Flood(b"", b"\x00"),
    ] {
        // At once, and when it has been trusted.
        for honest in [0, 3] {
            let (url, sent) = server(honest, flood);
            let begin = Instant::now();
            let error = match Store::open_with(&url, Policy::constant(Duration::from_millis(10))).await {
                Err(error) => error,
                Ok(store) => store.list(Kind::Values, 10).await.unwrap_err(),
            };
            let what = format!("{} after {honest}: {error:?}", flood.0.escape_ascii());
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}");
            assert!(begin.elapsed() < Duration::from_secs(5), "{what}: {:?}", begin.elapsed());
            // What fits into the system's buffers comes on top.
            let sent = sent.load(Ordering::Relaxed);
            assert!(sent < 80 << 20, "{what}: {sent} bytes");
        }
    }
}

/// What a server is told that answers everything so, by who has a user and a password, and what that says of it.
async fn told(answer: &'static str) -> (Vec<u8>, Error) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let (mut all, mut some) = (vec![], [0; 4096]);
            while let Ok(read @ 1..) = socket.read(&mut some) {
                all.extend_from_slice(&some[..read]);
                let _ = socket.write_all(answer.as_bytes());
            }
            let _ = tell.send(all);
        }
    });
    let policy = Policy::constant(Duration::from_millis(1)).max_attempts(1);
    let url = format!("redis://set%20a%200%200%201:flush_all@{address}/0");
    let error = Store::open_with(&url, policy).await.unwrap_err();
    (told.recv().unwrap(), error)
}

/// To a server that takes lines for commands, as memcached does, a user and a password are some.
#[tokio::test]
async fn what_is_no_redis_is_told_no_user_and_no_password() {
    for answer in ["ERROR\r\n", "+OK ready\r\n", "220 mail ESMTP\r\n", "$4\r\nPING\r\n"] {
        let (told, error) = told(answer).await;
        assert!(error.to_string().contains("what answers there is no Redis server"), "{answer}: {error}");
        assert_eq!(told, b"*1\r\n$4\r\nPING\r\n", "{answer}");
    }
    // As Redis 7 says it, whose disk is full.
    let full = "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may \
                modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting \
                fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.\r\n";
    for answer in ["+PONG\r\n", "-NOAUTH Authentication required.\r\n", full, "-ERR unknown command 'PING'\r\n"] {
        let (told, error) = told(answer).await;
        assert!(!error.to_string().contains("no Redis server"), "{answer}: {error}");
        let text = String::from_utf8_lossy(&told);
        assert!(text.contains("AUTH") && text.contains("flush_all"), "{answer}: {text}");
        assert!(!error.to_string().contains("what no Redis answers"), "{answer}: {error}");
    }
}

#[tokio::test]
async fn who_listens_is_not_flooded_either() {
    for flood in [Flood(b"$4000000000\r\n", b"0"), Flood(b"", b"*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\ny\r\n")] {
        let (url, sent) = server(3, flood);
        let redis = Redis::open(&url, "relent_").await.unwrap();
        let begin = Instant::now();
        let waiting = tokio::spawn(async move {
            redis.freed(&Key::new("nightly").unwrap(), Duration::from_secs(60)).await;
        });
        let mut before = 0;
        while before == 0 || sent.load(Ordering::Relaxed) != before {
            before = sent.load(Ordering::Relaxed);
            assert!(begin.elapsed() < Duration::from_secs(10), "it is read on and on: {before} bytes");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(!waiting.is_finished(), "it is waited for as if nothing was heard");
        assert!(before < 40 << 20, "{before} bytes");
        waiting.abort();
    }
}
