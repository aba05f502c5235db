//! What is left of a request when its answer is there: what has left arrives, and what may not have is told.

use super::{
    early::{LARGE, NOTE, hasty, ok},
    frames::{
        DATA, END_HEADERS, END_STREAM, HEADERS, PING, SETTINGS, WINDOW_UPDATE, frame, listen, say_that_all_is_read,
    },
    http_in,
};
use crate::binary::Folder;
use std::{
    fs::File,
    io::{self, Read, Write},
    net::TcpStream,
    sync::{Mutex, atomic::Ordering, mpsc},
    thread,
    time::Duration,
};

const PAGE: &str = "note: the page of a redirect was not read to its end, and what its server had not taken of the request's body by then may be \
    lost\n";

/// Room for all of a body.
const ROOM: [u8; 4] = (1_u32 << 30).to_be_bytes();

#[test]
fn a_body_that_is_left_for_where_a_redirect_leads_is_told() {
    let folder = Folder::new();
    File::create_new(folder.path().join("large")).unwrap().set_len(LARGE as u64).unwrap();
    let kept = Mutex::new(Vec::new());
    let (url, count) = hasty(move |stream| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let answer = match head.starts_with(b"POST") {
            true => &b"HTTP/1.1 303 S\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"[..],
            false => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        };
        stream.write_all(answer).unwrap();
        // Whoever hung up would be noticed.
        kept.lock().unwrap().push(stream.try_clone().unwrap());
    });
    for (asked, (data, note)) in (1..).zip([("@large", NOTE), ("small", "")]) {
        let outcome = http_in(&folder, &["-L", "--max-attempts=1", "POST", "-d", data, &url]);
        assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "ok", note), "{data}");
        assert_eq!(count.load(Ordering::Relaxed), 2 * asked);
    }
}

/// 303, and where to (RFC 7541, A).
const ELSEWHERE: &[u8] = b"\x08\x03303\x0f\x1f\x01/";

/// Answers a POST with a redirect when all of it has left, without having read more than its head, and reads on: how many bytes that were.
fn led_away(stream: &mut TcpStream, http2: bool, page: &[u8]) -> io::Result<usize> {
    // So long that all of it has left, and then, that who hangs up has done so.
    let a_moment = || thread::sleep(Duration::from_millis(300));
    a_moment();
    if http2 {
        let is_whole = if page.len() == 4 { END_STREAM } else { 0 };
        let answer = [frame(HEADERS, END_HEADERS, 1, ELSEWHERE), frame(DATA, 0, 1, b"half")].concat();
        stream.write_all(&answer)?;
        a_moment();
        stream.write_all(&frame(DATA, is_whole, 1, page))?;
    } else {
        stream.write_all(b"HTTP/1.1 303 S\r\nLocation: /\r\nContent-Length: 8\r\n\r\nhalf")?;
        a_moment();
        stream.write_all(page)?;
    }
    let (mut piece, mut all) = ([0; 16 << 10], 0);
    loop {
        match stream.read(&mut piece)? {
            0 => return Ok(all),
            count => all += count,
        }
    }
}

#[test]
fn a_body_that_a_redirect_leads_away_from_arrives_if_all_of_it_has_left() {
    const LENGTH: usize = 100_000;
    let folder = Folder::new().bytes("large", &[b'x'; LENGTH]);
    for (http2, page, note) in [(false, "page", ""), (true, "page", ""), (false, "", PAGE), (true, "", PAGE)] {
        let (tell, told) = mpsc::channel();
        let is_first = Mutex::new(true);
        let (url, _) = hasty(move |stream| {
            if http2 {
                let window = frame(SETTINGS, 0, 0, &[&[0, 4][..], &ROOM].concat());
                listen(stream, &[(HEADERS, END_HEADERS)]).unwrap();
                stream.write_all(&[window, frame(WINDOW_UPDATE, 0, 0, &ROOM)].concat()).unwrap();
            } else {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
            }
            if std::mem::take(&mut *is_first.lock().unwrap()) {
                let (mut stream, tell) = (stream.try_clone().unwrap(), tell.clone());
                thread::spawn(move || tell.send(led_away(&mut stream, http2, page.as_bytes()).unwrap_or_default()));
            } else if http2 {
                stream.write_all(&ok()).unwrap();
            } else {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            }
        });
        let version = if http2 { "--http2" } else { "--http1.1" };
        let outcome = http_in(&folder, &["-L", version, "--max-attempts=1", "POST", "-d", "@large", &url]);
        let was = (outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str());
        assert_eq!(was, (Some(0), "ok", note), "{version} {page:?}");
        if note.is_empty() {
            let had = told.recv_timeout(Duration::from_secs(20)).unwrap();
            assert!(had >= LENGTH, "{version}: {had}");
        }
    }
}

#[test]
fn a_redirect_whose_page_does_not_end_is_hung_up_on() {
    let folder = Folder::new().bytes("large", &[b'x'; 100_000]);
    let (tell, told) = mpsc::channel();
    let is_first = Mutex::new(true);
    let (url, _) = hasty(move |stream| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        if std::mem::take(&mut *is_first.lock().unwrap()) {
            let (mut stream, tell) = (stream.try_clone().unwrap(), tell.clone());
            thread::spawn(move || {
                // So long that all of it has left.
                thread::sleep(Duration::from_millis(300));
                let redirect = b"HTTP/1.1 303 S\r\nLocation: /\r\nContent-Length: 999999999999\r\n\r\n";
                stream.write_all(redirect).unwrap();
                while stream.write_all(&[b'x'; 10_000]).is_ok() {}
                tell.send(()).unwrap();
            });
        } else {
            let body = if told.recv_timeout(Duration::from_secs(10)).is_ok() { "ok" } else { "no" };
            stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{body}").as_bytes()).unwrap();
        }
    });
    let outcome = http_in(&folder, &["-L", "--http1.1", "--max-attempts=1", "POST", "-d", "@large", &url]);
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "ok", PAGE));
}

#[test]
fn a_redirect_of_who_says_that_all_is_read_is_read_to_its_end() {
    let folder = Folder::new().bytes("large", &[b'x'; 100_000]);
    let (tell, told) = mpsc::channel();
    let is_first = Mutex::new(true);
    let (url, _) = hasty(move |stream| {
        let window = frame(SETTINGS, 0, 0, &[&[0, 4][..], &ROOM].concat());
        listen(stream, &[(HEADERS, END_HEADERS)]).unwrap();
        stream.write_all(&[window, frame(WINDOW_UPDATE, 0, 0, &ROOM)].concat()).unwrap();
        if !std::mem::take(&mut *is_first.lock().unwrap()) {
            return stream.write_all(&ok()).unwrap();
        }
        let (mut stream, tell) = (stream.try_clone().unwrap(), tell.clone());
        thread::spawn(move || {
            say_that_all_is_read(&mut stream).unwrap();
            stream
                .write_all(&[frame(HEADERS, END_HEADERS, 1, ELSEWHERE), frame(DATA, 0, 1, b"half")].concat())
                .unwrap();
            // What has not been worked on yet is thrown away by some servers when the connection, or the stream, is gone.
            stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            let hung_up = stream.peek(&mut [0]).is_ok();
            stream.write_all(&frame(DATA, END_STREAM, 1, b"page")).unwrap();
            tell.send(hung_up).unwrap();
        });
    });
    let outcome = http_in(&folder, &["-L", "--http2", "--max-attempts=1", "POST", "-d", "@large", &url]);
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "ok", ""));
    assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(false));
}

/// Answers early, gives room then for all of the body, and takes nothing of it for a while, in which it says something all the time: whether
/// it had all of it at last.
fn taken_late(stream: &mut TcpStream) -> bool {
    let said = listen(stream, &[(HEADERS, END_HEADERS)]).and_then(|()| stream.write_all(&ok()));
    said.unwrap();
    thread::sleep(Duration::from_millis(100));
    stream.write_all(&[frame(WINDOW_UPDATE, 0, 0, &ROOM), frame(WINDOW_UPDATE, 0, 1, &ROOM)].concat()).unwrap();
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(100));
        if stream.write_all(&frame(PING, 0, 0, &[0; 8])).is_err() {
            return false;
        }
    }
    say_that_all_is_read(stream).is_ok()
}

#[test]
fn a_limit_that_ends_the_wait_for_who_still_reads_is_told() {
    let folder = Folder::new().bytes("large", &[b'x'; 200_000]);
    let (tell, told) = mpsc::channel();
    let (url, _) = hasty(move |stream| {
        let _ = tell.send(taken_late(stream));
    });
    for (limit, note, has_all) in
        [("--attempt-timeout=1s", NOTE, false), ("--timeout=1500ms", NOTE, false), ("--idle-timeout=1s", "", true)]
    {
        let flags = ["--http2", "--max-attempts=1", limit, "PUT", "-d", "@large", &url];
        let outcome = http_in(&folder, &flags);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), note), "{limit}");
        assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(has_all), "{limit}");
    }
}

/// A server of HTTP/2 that has room for all of a body, answers when all of it has left, and keeps the connection open; of those that read it
/// first. Who does not keep it has not read all of what came, which breaks it.
fn with_room(reads: bool, keeps: bool) -> String {
    let kept = Mutex::new(Vec::new());
    let (url, _) = hasty(move |stream| {
        let window = frame(SETTINGS, 0, 0, &[&[0, 4][..], &ROOM].concat());
        listen(stream, &[(HEADERS, END_HEADERS)]).unwrap();
        stream.write_all(&[window, frame(WINDOW_UPDATE, 0, 0, &ROOM)].concat()).unwrap();
        if reads {
            say_that_all_is_read(stream).unwrap();
        } else {
            thread::sleep(Duration::from_millis(300));
        }
        stream.write_all(&ok()).unwrap();
        if keeps {
            kept.lock().unwrap().push(stream.try_clone().unwrap());
        }
    });
    url
}

#[test]
fn who_answers_before_they_read_what_has_left_is_told_of_and_who_has_read_it_is_not() {
    let folder = Folder::new().bytes("large", &[b'x'; 200_000]);
    for (reads, keeps, note) in [(false, true, NOTE), (true, true, ""), (false, false, NOTE)] {
        let url = with_room(reads, keeps);
        for limit in ["--attempt-timeout=1s", "--timeout=1s", "--idle-timeout=60s"] {
            let flags = ["--http2", "--max-attempts=1", limit, "PUT", "-d", "@large", &url];
            let outcome = http_in(&folder, &flags);
            let expected = (Some(0), "ok", note);
            assert_eq!(
                (outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()),
                expected,
                "{limit} {reads} {keeps}"
            );
        }
    }
}

#[test]
fn a_success_that_is_there_outlasts_what_is_left_of_its_request() {
    let folder = Folder::new();
    File::create_new(folder.path().join("large")).unwrap().set_len(LARGE as u64).unwrap();
    let answer = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok";
    let (url, count) = hasty(move |stream| {
        stream.read_exact(&mut [0; 100]).unwrap();
        stream.write_all(answer).unwrap();
        // Nothing of the rest is taken.
        let mut other = stream.try_clone().unwrap();
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(60));
            let _ = other.flush();
        });
    });
    for (asked, limit) in (1..).zip(["--attempt-timeout=1s", "--timeout=3s", "--idle-timeout=1s"]) {
        let flags = ["POST", limit, "--idempotency-key", "-d", "@large", "-o", "new", &url];
        let outcome = http_in(&folder, &flags);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), NOTE), "{limit}");
        assert_eq!((folder.read("new").as_str(), count.load(Ordering::Relaxed)), ("ok", asked), "{limit}");
    }
}
