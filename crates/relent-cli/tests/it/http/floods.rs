//! Servers of HTTP/2 that send frames without end, and others that begin what they never finish: an attempt ends, in memory
//! that stays small.

use super::{
    bombs::{MOST_KIB, peak},
    frames::*,
    http,
    server::{Reply, Server},
};
use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// `:status: 200` of the static table.
const OK: &[u8] = &[0x88];

/// A header that is not kept in the table: name and value, each shorter than 127 bytes.
fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0, name.len() as u8], name, &[value.len() as u8], value].concat()
}

/// A server that answers each request with a beginning, and then with the same bytes until nobody takes them.
fn flood(beginning: Vec<u8>, again: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (beginning, again) = (beginning.clone(), again.clone());
            thread::spawn(move || answer(stream, &beginning, &again));
        }
    });
    url
}

fn answer(mut stream: TcpStream, beginning: &[u8], again: &[u8]) -> io::Result<()> {
    listen(&mut stream, &[(HEADERS, 0)])?;
    let mut reader = stream.try_clone()?;
    thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
    stream.write_all(beginning)?;
    if again.is_empty() {
        thread::sleep(Duration::from_secs(20));
    }
    loop {
        stream.write_all(again)?;
    }
}

/// A server that begins to answer and then sends these bytes ten times a second.
fn drip(beginning: Vec<u8>, again: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (beginning, again) = (beginning.clone(), again.clone());
            thread::spawn(move || {
                let mut slow = stream.try_clone().unwrap();
                thread::spawn(move || answer(stream, &beginning, &[]));
                thread::sleep(Duration::from_millis(300));
                while slow.write_all(&again).is_ok() {
                    thread::sleep(Duration::from_millis(100));
                }
            });
        }
    });
    url
}

/// What becomes of it, with a second of patience: an end in time, little memory, and nothing printed twice.
#[track_caller]
fn survives(what: &str, url: &str) -> (Option<i32>, String) {
    let began = Instant::now();
    let (code, stderr, memory) = peak(&["--http2", "--idle-timeout=1s", "--connect-timeout=2s", url]);
    assert!(began.elapsed() < Duration::from_secs(10), "{what}: it took {:?}", began.elapsed());
    assert!(memory < MOST_KIB, "{what}: {memory} KiB");
    assert!(matches!(code, Some(1 | 3)), "{what}: {code:?} {stderr}");
    assert_eq!(stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{what}: {stderr}");
    (code, stderr)
}

/// Many small frames in a write.
fn many(frame: &[u8]) -> Vec<u8> {
    frame.repeat((64 << 10) / frame.len() + 1)
}

#[test]
fn frames_that_say_nothing() {
    for (what, frame) in [
        ("settings", frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9])),
        ("empty settings", frame(SETTINGS, 0, 0, &[])),
        ("pings", frame(PING, 0, 0, &[7; 8])),
        ("answers to pings", frame(PING, 1, 0, &[7; 8])),
        ("room", frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ("room for the stream", frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])),
        ("priorities", frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 9])),
        ("frames of a kind that there is not", frame(UNKNOWN, 0, 1, &[1; 1024])),
        ("resets of nothing", frame(RST_STREAM, 0, 3, &[0, 0, 0, 8])),
        ("goings away", frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0, 65])),
    ] {
        survives(what, &flood(vec![], many(&frame)));
    }
}

#[test]
fn heads_without_end() {
    let begun = frame(HEADERS, 0, 1, OK);
    let header = literal(b"x-name", &[b'v'; 100]).repeat(100);
    survives("continuations", &flood(begun.clone(), frame(CONTINUATION, 0, 1, &header)));
    survives("empty continuations", &flood(begun.clone(), many(&frame(CONTINUATION, 0, 1, &[]))));
    survives("a head that goes on after nothing", &flood(begun, vec![]));
    // One entry of the table, of 4,000 bytes, named 15,000 times: 60 MB out of 20 kB.
    let mut bomb = [OK, &[0x40, 1, b'x', 0x7f, 0xa1, 0x1e], &[b'v'; 4000]].concat();
    bomb.extend([0xbe; 12_000]);
    survives("a head that unpacks to much", &flood(frame(HEADERS, END_HEADERS, 1, &bomb), vec![]));
    let large = literal(b"x", &[b'v'; 120]).repeat(120);
    let first = [OK, &large].concat();
    survives(
        "heads that are told again",
        &flood(frame(HEADERS, END_HEADERS, 1, &first), frame(HEADERS, END_HEADERS, 1, &first)),
    );
}

/// However many headers it has, of which each counts with 32 bytes more (RFC 9113, 6.5.2).
#[test]
fn a_head_has_a_limit() {
    let header = literal(b"x-name", &[b'v'; 122]);
    let head = |headers: usize| {
        let pieces: Vec<_> =
            [&[OK], vec![&header[..]; headers].as_slice()].concat().chunks(100).map(<[_]>::concat).collect();
        let (first, more) = pieces.split_first().unwrap();
        let more = more.iter().flat_map(|piece| frame(CONTINUATION, 0, 1, piece));
        let end = frame(CONTINUATION, END_HEADERS, 1, &[]);
        frame(HEADERS, END_STREAM, 1, first).into_iter().chain(more).chain(end).collect::<Vec<_>>()
    };
    let outcome = http(&["--http2", "--idle-timeout=1s", &flood(head(480), vec![])]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let (_, stderr) = survives("a head that is too large", &flood(head(540), vec![]));
    assert!(stderr.contains("the answer is not HTTP/2"), "{stderr}");
}

#[test]
fn early_hints_without_end() {
    // `:status: 103`, and a link.
    let hint = [literal(b":status", b"103"), literal(b"link", &[b'l'; 100])].concat();
    survives("early hints", &flood(vec![], many(&frame(HEADERS, END_HEADERS, 1, &hint))));
    let large = [literal(b":status", b"103"), literal(b"link", &[b'l'; 120]).repeat(120)].concat();
    survives("large early hints", &flood(vec![], frame(HEADERS, END_HEADERS, 1, &large)));
}

#[test]
fn bodies_of_nothing() {
    let begun = frame(HEADERS, END_HEADERS, 1, OK);
    let (_, stderr) = survives("empty data", &flood(begun.clone(), many(&frame(DATA, 0, 1, &[]))));
    assert!(stderr.contains("after 0 bytes"), "{stderr}");
    // A frame without a byte is no sign of life, however often it comes.
    for (what, again) in [("empty data", frame(DATA, 0, 1, &[])), ("pings", frame(PING, 0, 0, &[7; 8]))] {
        let (_, stderr) = survives(&format!("{what} now and then"), &drip(begun.clone(), again));
        assert!(stderr.contains("nothing more of the body came for 1s, after 0 bytes"), "{what}: {stderr}");
    }
    let padding = [&[200][..], &[0; 200]].concat();
    survives("padding", &flood(begun.clone(), many(&frame(DATA, PADDED, 1, &padding))));
    survives("promises", &flood(begun.clone(), many(&frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x88]))));
    survives("pings in a body", &flood(begun.clone(), many(&frame(PING, 0, 0, &[7; 8]))));
    survives("data of nobody", &flood(begun, frame(DATA, END_STREAM, 5, &[0; 1000])));
}

/// The same in HTTP/1.1: whatever never ends, an attempt does.
#[test]
fn lines_without_end() {
    let head = "HTTP/1.1 200 OK\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (what, bytes) in [
        ("a first line", format!("HTTP/1.1 200 {}", "x".repeat(3 << 20))),
        ("a header", format!("{head}X: {}", "x".repeat(3 << 20))),
        ("headers", format!("{head}{}", "X: y\r\n".repeat(500_000))),
        ("a length of a chunk", format!("{chunked}{}", "0".repeat(3 << 20))),
        ("an extension of a chunk", format!("{chunked}5;{}", "x".repeat(3 << 20))),
        ("trailers", format!("{chunked}0\r\n{}", "X: y\r\n".repeat(500_000))),
        ("nothing but line breaks", "\r\n".repeat(1 << 20)),
    ] {
        let server = Server::new(vec![Reply::raw(bytes).hang()]);
        let began = Instant::now();
        let (code, stderr, memory) = peak(&["--idle-timeout=1s", &server.url("/")]);
        assert!(began.elapsed() < Duration::from_secs(10) && memory < MOST_KIB, "{what}: {memory} KiB");
        assert!(matches!(code, Some(1 | 3)), "{what}: {code:?} {stderr}");
    }
}

/// A server that answers each request in this way, on a thread of its own; its URL.
fn answered(answer: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                answer(stream);
            });
        }
    });
    url
}

/// Hints in HTTP/1.1, as fast as they are read: limits of time and signals are heard all the same.
#[test]
fn hints_without_end_in_http_1() {
    let url = answered(|mut stream| {
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(2000);
        while stream.write_all(hints.as_bytes()).is_ok() {}
    });
    for (limit, exit) in [("--timeout=1s", 124), ("--attempt-timeout=500ms", 1), ("--idle-timeout=500ms", 1)] {
        let began = Instant::now();
        let (code, stderr, memory) = peak(&[limit, "--max-attempts=1", &url]);
        assert!(began.elapsed() < Duration::from_secs(10) && memory < MOST_KIB, "{limit}: {memory} KiB");
        assert_eq!(code, Some(exit), "{limit}: {stderr}");
    }
    let folder = crate::binary::Folder::new();
    let mut command = super::command(&folder, &["http", "-v", "--max-attempts=1", &url]);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut said = io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("> GET") {
        line.clear();
        assert!(io::BufRead::read_line(&mut said, &mut line).unwrap() > 0);
    }
    let began = Instant::now();
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// Who is given up is not listened to any more: the next attempt, and a hedge, reach the server beside.
#[test]
fn one_that_never_stops_does_not_keep_others_from_answering() {
    for (what, beginning, again) in [
        ("a length of a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5", " "),
        ("hints", "", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    ] {
        for more in [&["--attempt-timeout=500ms"][..], &["--hedge=after=100ms", "--attempt-timeout=500ms"]] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let (closed, is_closed) = mpsc::channel();
            thread::spawn(move || {
                for (nth, mut stream) in listener.incoming().map_while(Result::ok).enumerate() {
                    let closed = closed.clone();
                    thread::spawn(move || {
                        let _ = stream.read(&mut [0; 4096]);
                        if nth > 0 {
                            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                            return;
                        }
                        let _ = stream.write_all(beginning.as_bytes());
                        while stream.write_all(again.repeat(20_000).as_bytes()).is_ok() {}
                        let _ = closed.send(());
                    });
                }
            });
            let began = Instant::now();
            let outcome = http(&[more, &["--timeout=20s", &url]].concat());
            let said = &outcome.stderr;
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "ok"), "{what} {more:?}: {said}");
            assert!(began.elapsed() < Duration::from_secs(10), "{what} {more:?}: {said}");
            is_closed.recv_timeout(Duration::from_secs(10)).unwrap();
        }
    }
}

/// A byte now and then is no answer: the head has to be there in time.
#[test]
fn a_head_that_drips() {
    let url = answered(|mut stream| {
        for byte in "HTTP/1.1 200 OK\r\nX: ".bytes().chain(std::iter::repeat(b'x')) {
            if stream.write_all(&[byte]).is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
    let (code, stderr, _) = peak(&["--idle-timeout=1s", &url]);
    assert!(code == Some(1) && stderr.contains("no head of an answer came"), "{code:?} {stderr}");
}
