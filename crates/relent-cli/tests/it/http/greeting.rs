//! Where a redirect leads, somebody may listen who takes lines for commands. HTTP/2 encodes a path so that its letters can be any bytes, lines as
//! well: nothing of a request is sent before the server has greeted as one of HTTP/2 does.

use super::{
    finish,
    frames::{DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, SETTINGS, WINDOW_UPDATE, frame, go_on, listen},
    http,
    layers::RELENT,
    server::{Reply, Server},
};
use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

/// All that a client says to a server that answers so.
fn heard(answer: &'static [u8]) -> (String, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let all = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut all, mut some) = (vec![], [0; 4096]);
        while let Ok(read @ 1..) = stream.read(&mut some) {
            all.extend_from_slice(&some[..read]);
            let _ = stream.write_all(answer);
        }
        all
    });
    (place, all)
}

/// The kinds of frames behind a client's greeting.
fn kinds(all: &[u8]) -> Vec<u8> {
    let mut rest = all.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("it speaks HTTP/2");
    let mut kinds = vec![];
    while let [a, b, c, kind, ..] = *rest {
        kinds.push(kind);
        rest = &rest[9 + u32::from_be_bytes([0, a, b, c]) as usize..];
    }
    kinds
}

#[test]
fn nothing_is_asked_of_a_server_that_does_not_greet() {
    // Lines as a server of such answers them, silence, and frames that are no greeting.
    for (answer, flags, exit, words) in [
        (&b"UNKNOWN_COMMAND\r\n"[..], &[][..], 3, "the answer is not HTTP/2: frame with invalid size"),
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", &[], 3, "the answer is not HTTP/2"),
        (b"", &["--idle-timeout=300ms"], 1, "no head of an answer"),
        (b"\0\0\x08\x06\0\0\0\0\0whatever", &[], 3, "the answer is not HTTP/2"),
        (b"\0\0\0\x04\x01\0\0\0\0", &[], 3, "the answer is not HTTP/2"),
    ] {
        let (place, all) = heard(answer);
        let outcome = http(&[&["--http2", "--max-attempts=1"], flags, &[&format!("http://{place}/?2t")]].concat());
        assert!(outcome.code == Some(exit) && outcome.stderr.contains(words), "{answer:?}: {outcome:?}");
        let all = all.join().unwrap();
        let asked = kinds(&all).into_iter().find(|kind| ![SETTINGS, WINDOW_UPDATE, PING, GOAWAY].contains(kind));
        assert_eq!(asked, None, "{answer:?}: {all:?}");
    }
}

#[test]
fn a_redirect_says_no_lines_to_a_server_of_those() {
    // Behind the path's first letters, this is "\nflush_all\n" in HTTP/2.
    let (place, all) = heard(b"ERROR\r\n");
    let lines = format!("Location: http://{place}/?1tg5anY42;15a/2:");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let leads = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 24]).unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
        go_on(&mut stream, &[(HEADERS, END_STREAM)]).unwrap();
        let location = lines.strip_prefix("Location: ").unwrap();
        // :status 302, and location, both as in the static table's names.
        let mut head = vec![0x48, 3];
        head.extend(b"302");
        head.extend([0x0f, 46 - 15, location.len() as u8]);
        head.extend(location.as_bytes());
        stream.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &head)).unwrap();
        let _ = stream.read(&mut [0; 64]);
    });
    let outcome = http(&["--http2", "-L", "--max-attempts=1", &url]);
    assert!(matches!(outcome.code, Some(1 | 3)), "{outcome:?}");
    leads.join().unwrap();
    let all = all.join().unwrap();
    assert!(all.starts_with(b"PRI * HTTP/2.0"), "the redirect is followed: {outcome:?}");
    assert!(!all.windows(9).any(|some| some == b"flush_all"), "{}", String::from_utf8_lossy(&all));
}

/// Greets, and answers a request with a body.
fn answers(mut stream: TcpStream) -> io::Result<()> {
    listen(&mut stream, &[(DATA, END_STREAM)])?;
    stream.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x88]))?;
    let _ = stream.read(&mut [0; 64]);
    Ok(())
}

/// A server that starts anew, or has just ended: nothing was asked.
#[test]
fn a_post_that_was_not_asked_yet_is_sent_again() {
    let settings = frame(SETTINGS, 0, 0, &[]);
    let goodbye = frame(GOAWAY, 0, 0, &[0; 8]);
    for greeting in [vec![], settings[..4].to_vec(), [&settings[..], &goodbye].concat()] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let said = greeting.clone();
        let server = thread::spawn(move || -> io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            stream.read_exact(&mut [0; 24])?;
            stream.write_all(&said)?;
            let _ = stream.read(&mut [0; 256])?;
            drop(stream);
            let (stream, _) = listener.accept()?;
            answers(stream)
        });
        let outcome = http(&["--http2", "--max-attempts=2", "--base=1ms", "-d", "x", &url]);
        assert_eq!(outcome.code, Some(0), "{greeting:?}: {outcome:?}");
        assert!(outcome.stderr.contains("the request never left"), "{greeting:?}: {outcome:?}");
        server.join().unwrap().unwrap();
    }
}

/// As a server that is stopped, or one with nobody behind it.
#[test]
fn a_post_to_who_does_not_greet_in_time_is_sent_again() {
    for limit in ["--attempt-timeout=200ms", "--idle-timeout=200ms"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = thread::spawn(move || -> io::Result<()> {
            let (mut silent, _) = listener.accept()?;
            let (stream, _) = listener.accept()?;
            let mut all = vec![];
            // It was given up; what it says then brings no request.
            let _ = silent.write_all(&frame(SETTINGS, 0, 0, &[]));
            let _ = silent.read_to_end(&mut all);
            assert!(!kinds(&all).contains(&HEADERS), "{all:?}");
            answers(stream)
        });
        let outcome = http(&["--http2", "--max-attempts=2", "--base=1ms", limit, "-d", "x", &url]);
        assert_eq!(outcome.code, Some(0), "{limit}: {outcome:?}");
        assert!(outcome.stderr.contains("the request never left"), "{limit}: {outcome:?}");
        server.join().unwrap().unwrap();
    }
}

/// Whatever ends it: nothing of it has left.
#[test]
fn a_post_to_who_does_not_greet_is_begun_anew_by_the_run_around_it() {
    let lines = [
        "--attempt-timeout=500ms -- HTTP",
        "-- timeout 0.5 HTTP",
        // That of the attempt, which it knows.
        "--attempt-timeout=1h -- env RELENT_DEADLINE_MS=500 HTTP",
    ];
    for line in lines {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let http = format!("{RELENT} http -q --http2 -d x http://{}/", listener.local_addr().unwrap());
        let line = format!("exec {RELENT} run --max-attempts=2 --base=1ms {}", line.replace("HTTP", &http));
        let mut shell = crate::binary::tool("sh");
        shell.args(["-c", &line]);
        let outcome = finish(shell);
        assert!(
            outcome.code == Some(124) && outcome.stderr.contains("gave up after 2 attempts"),
            "{line}: {outcome:?}"
        );
        drop(listener);
    }
}

#[test]
fn who_greets_late_is_asked_then() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answers = |mut stream: TcpStream| -> io::Result<()> {
        stream.read_exact(&mut [0; 24])?;
        // All that a client says before: its settings, and how much it takes.
        for _ in 0..2 {
            let mut head = [0; 9];
            stream.read_exact(&mut head)?;
            assert!([SETTINGS, WINDOW_UPDATE].contains(&head[3]), "{head:?}");
            stream.read_exact(&mut vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize])?;
        }
        // In two pieces.
        stream.set_nodelay(true)?;
        let greeting = frame(SETTINGS, 0, 0, &[]);
        stream.write_all(&greeting[..4])?;
        stream.write_all(&greeting[4..])?;
        go_on(&mut stream, &[(HEADERS, END_STREAM)])?;
        stream.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x88]))?;
        let _ = stream.read(&mut [0; 64]);
        Ok(())
    };
    let server = thread::spawn(move || answers(listener.accept().unwrap().0));
    let outcome = http(&["--http2", "--max-attempts=1", &url]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    server.join().unwrap().unwrap();
    // HTTP/1.1 waits for nobody.
    let old = Server::new(vec![Reply::ok("old")]);
    assert_eq!(http(&["--http1.1", &old.url("/")]).stdout, "old");
}
