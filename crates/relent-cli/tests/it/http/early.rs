//! Answers that come before their request is there: all of them are heard, and nothing that was cut off is whole.

use super::{
    frames::{
        DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, go_on, listen,
        say_that_all_is_read,
    },
    http, http_in,
};
use crate::binary::{Folder, Outcome};
use rustls::{RootCertStore, ServerConfig, ServerConnection, pki_types::PrivateKeyDer, server::WebPkiClientVerifier};
use std::{
    fs::File,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// A server that does this with each connection and hangs up, whatever there is to read. Where it is, and how many it had.
pub(super) fn hasty(answer: impl Fn(&mut TcpStream) + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            seen.fetch_add(1, Ordering::Relaxed);
            answer(&mut stream);
        }
    });
    (url, count)
}

/// The same for one that reads a part of a large request.
fn uploaded(head: &'static str, flags: &[&str]) -> (Outcome, usize) {
    let folder = Folder::new();
    File::create_new(folder.path().join("large")).unwrap().set_len(LARGE as u64).unwrap();
    let (url, count) = hasty(move |stream| {
        let _ = stream.read(&mut [0; 64 << 10]).map(|_| stream.write_all(head.as_bytes()));
    });
    let outcome = http_in(&folder, &[flags, &["-d", "@large", &url]].concat());
    (outcome, count.load(Ordering::Relaxed))
}

#[test]
fn a_server_that_hangs_up_on_a_large_body_is_heard() {
    for (head, code, what) in [
        ("HTTP/1.1 503 S\r\nRelent-Retry: no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 4, "Relent-Retry: no"),
        ("HTTP/1.1 503 S\r\nRetry-After: 86400\r\nConnection: close\r\n\r\nlater", 5, "Retry-After: 86400"),
        ("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", 3, "413 Payload Too Large"),
    ] {
        for method in ["PUT", "POST", "PUT"] {
            let (outcome, count) = uploaded(head, &[method]);
            assert_eq!((outcome.code, count), (Some(code), 1), "{method}: {outcome:?}");
            assert!(outcome.stderr.contains(what), "{outcome:?}");
        }
    }
    // It has said what is to be done.
    let (outcome, count) = uploaded("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", &["PUT"]);
    assert_eq!((outcome.code, outcome.stdout.as_str(), count), (Some(0), "ok", 1), "{outcome:?}");
    assert!(outcome.stderr.contains("the server answered before it had all of the request's body"), "{outcome:?}");
}

/// How much of an upload a server had that answered after the head, waited a moment, and read on.
fn read_on(head: &'static str, attempts: usize, flags: &[&str]) -> (Outcome, Vec<usize>) {
    let folder = Folder::new();
    File::create_new(folder.path().join("large")).unwrap().set_len(LARGE as u64).unwrap();
    let (tell, told) = mpsc::channel();
    let (url, _) = hasty(move |stream| {
        let mut piece = vec![0; 64 << 10];
        let mut all = stream.read(&mut piece).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        // So long that who hangs up has done so.
        thread::sleep(Duration::from_millis(100));
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            all += count;
        }
        let _ = tell.send(all);
    });
    let outcome = http_in(&folder, &[flags, &["-d", "@large", &url]].concat());
    let had = |_| told.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("not so many: {outcome:?}"));
    let counts = (0..attempts).map(had).collect();
    (outcome, counts)
}

pub(super) const LARGE: usize = 30 << 20;

#[test]
fn who_answers_early_and_reads_on_gets_all_of_the_body() {
    for method in ["PUT", "POST"] {
        let (outcome, counts) = read_on("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1, &[method]);
        assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "ok", ""));
        assert!(counts[0] > LARGE, "{counts:?}");
    }
}

#[test]
fn who_refuses_is_sent_nothing_while_they_are_waited_for() {
    let flags = ["PUT", "--max-attempts=2", "--jitter=none", "--base=400ms", "--cap=1s"];
    let (outcome, counts) = read_on("HTTP/1.1 503 S\r\nContent-Length: 0\r\n\r\n", 2, &flags);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(counts.iter().all(|count| *count < LARGE), "{counts:?}");
}

#[test]
fn a_body_without_a_length_is_not_whole_where_the_server_hung_up() {
    let (outcome, count) = uploaded("HTTP/1.1 200 OK\r\n\r\nhalf", &["PUT"]);
    assert_eq!((outcome.code, outcome.stdout.as_str(), count), (Some(1), "", 4), "{outcome:?}");
}

#[test]
fn a_server_that_answers_whoever_connects_is_heard() {
    let refusal = b"HTTP/1.1 503 S\r\nRelent-Retry: no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let (url, count) = hasty(|stream| stream.write_all(refusal).unwrap());
    for asked in 1..=20 {
        let outcome = http(&[&url]);
        assert_eq!((outcome.code, count.load(Ordering::Relaxed)), (Some(4), asked), "{outcome:?}");
    }
}

/// A success of HTTP/2: the second of the names and values that everybody knows (RFC 7541, A) that are statuses, and a body.
pub(super) fn ok() -> Vec<u8> {
    [frame(HEADERS, END_HEADERS, 1, &[0x88]), frame(DATA, END_STREAM, 1, b"ok")].concat()
}

pub(super) const NOTE: &str =
    "note: the server answered before it had all of the request's body, and may not have taken the rest\n";

#[test]
fn what_a_server_of_http2_does_not_take_is_told() {
    const NO_ERROR: [u8; 4] = [0; 4];
    let folder = Folder::new().bytes("large", &[b'x'; 100_000]);
    let (url, count) = hasty(|stream| {
        let greeted = listen(stream, &[(HEADERS, END_HEADERS)]);
        let enough = frame(RST_STREAM, 0, 1, &NO_ERROR);
        let answered = greeted.and_then(|()| stream.write_all(&[ok(), enough].concat()));
        let _ = answered.and_then(|()| go_on(stream, &[(DATA, END_STREAM)]));
    });
    for (asked, method) in (1..).zip(["PUT", "POST"]) {
        let outcome = http_in(&folder, &["--http2", "--max-attempts=1", method, "-d", "@large", &url]);
        assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "ok", NOTE));
        assert_eq!(count.load(Ordering::Relaxed), asked);
    }
    let outcome = http_in(&folder, &["--http2", "--json", "PUT", "-d", "@large", &url]);
    let (remark, end) = outcome.stderr.split_once('\n').unwrap();
    assert_eq!(remark, format!(r#"{{"event":"remark","remark":"{}"}}"#, NOTE.trim_start_matches("note: ").trim_end()));
    assert!(end.starts_with(r#"{"event":"end","outcome":"success","#), "{end}");
}

/// Gives a client of HTTP/2 room for everything, answers when the head is there, and reads on, with a word and a pause whenever something
/// came: how much of a body that was.
fn taken(stream: &mut TcpStream, pause: Duration) -> io::Result<usize> {
    const INITIAL_WINDOW_SIZE: u8 = 4;
    let most = u32::MAX >> 1;
    let room = frame(SETTINGS, 0, 0, &[&[0, INITIAL_WINDOW_SIZE][..], &most.to_be_bytes()].concat());
    let more = frame(WINDOW_UPDATE, 0, 0, &(most - 65_535).to_be_bytes());
    listen(stream, &[(HEADERS, END_HEADERS)])?;
    stream.write_all(&[room, more, ok()].concat())?;
    let mut all = 0;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload)?;
        if head[3] == DATA {
            all += payload.len();
            // So long that who hangs up has done so, and is told of it.
            thread::sleep(pause);
            stream.write_all(&frame(PING, 0, 0, &[0; 8]))?;
            if head[4] & END_STREAM != 0 {
                return say_that_all_is_read(stream).map(|()| all);
            }
        }
    }
}

#[test]
fn who_speaks_http2_and_reads_on_gets_the_end_of_the_body() {
    // The shorter one has all left when the answer comes.
    for (length, pause) in [(3_000_000, 1), (40_000, 100)] {
        let folder = Folder::new();
        File::create_new(folder.path().join("long")).unwrap().set_len(length).unwrap();
        let (tell, told) = mpsc::channel();
        let (url, _) = hasty(move |stream| {
            let all = taken(stream, Duration::from_millis(pause));
            let _ = tell.send(all.map_err(|error| error.kind()));
        });
        for method in ["PUT", "POST"] {
            let outcome = http_in(&folder, &["--http2", "--max-attempts=1", method, "-d", "@long", &url]);
            assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "ok", ""));
            assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(Ok(length as usize)));
        }
    }
}

#[test]
fn who_reads_nothing_of_a_body_is_heard_though_they_are_owed_an_answer() {
    const ROOM: [u8; 4] = (1_u32 << 30).to_be_bytes();
    // 500, and the name of `Retry-After`, as everybody knows them (RFC 7541, A).
    const LATER: &[u8] = b"\x8e\x0f\x26\x0586400";
    let folder = Folder::new();
    File::create_new(folder.path().join("large")).unwrap().set_len(LARGE as u64).unwrap();
    let kept = Mutex::new(Vec::new());
    let (url, count) = hasty(move |stream| {
        listen(stream, &[(HEADERS, END_HEADERS)]).unwrap();
        let window = frame(SETTINGS, 0, 0, &[&[0, 4][..], &ROOM].concat());
        stream.write_all(&[window, frame(WINDOW_UPDATE, 0, 0, &ROOM)].concat()).unwrap();
        // So long that nothing more can be written.
        thread::sleep(Duration::from_millis(500));
        let owed = [frame(PING, 0, 0, &[0; 8]), frame(SETTINGS, 0, 0, &[])].concat();
        stream.write_all(&owed).unwrap();
        stream.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, 1, LATER)).unwrap();
        kept.lock().unwrap().push(stream.try_clone().unwrap());
    });
    for (asked, method) in (1..).zip(["PUT", "POST"]) {
        let flags = ["--http2", "--max-attempts=2", "--idle-timeout=3s", method, "-d", "@large", &url];
        let outcome = http_in(&folder, &flags);
        assert_eq!((outcome.code, count.load(Ordering::Relaxed)), (Some(5), asked), "{outcome:?}");
    }
}

#[test]
fn data_that_cannot_be_read_is_no_fault_of_a_server() {
    const ROOM: [u8; 4] = (1_u32 << 30).to_be_bytes();
    let folder = Folder::new();
    let data = File::create_new(folder.path().join("large")).unwrap();
    for is_early in [true, false] {
        let shortened = data.try_clone().unwrap();
        let (http2, of_http2) = hasty(move |stream| {
            listen(stream, &[(HEADERS, END_HEADERS)]).unwrap();
            shortened.set_len(1000).unwrap();
            let room = [frame(WINDOW_UPDATE, 0, 0, &ROOM), frame(WINDOW_UPDATE, 0, 1, &ROOM)].concat();
            let said = if is_early { [ok(), room].concat() } else { room };
            stream.write_all(&said).unwrap();
            let _ = go_on(stream, &[(DATA, END_STREAM), (RST_STREAM, 0)]);
        });
        let shortened = data.try_clone().unwrap();
        let (http1, of_http1) = hasty(move |stream| {
            stream.read_exact(&mut [0; 100]).unwrap();
            shortened.set_len(1000).unwrap();
            if is_early {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            }
            let _ = io::copy(stream, &mut io::sink());
        });
        for (url, flags, count) in [(&http2, &["--http2"][..], of_http2), (&http1, &[], of_http1)] {
            for (asked, method) in (1..).zip(["PUT", "POST"]) {
                data.set_len(LARGE as u64).unwrap();
                let outcome = http_in(&folder, &[flags, &["--base=1ms", method, "-d", "@large", url]].concat());
                let expected = (Some(125), "", asked);
                let was = (outcome.code, outcome.stdout.as_str(), count.load(Ordering::Relaxed));
                assert_eq!(was, expected, "early: {is_early}, {flags:?} {method}: {outcome:?}");
                assert!(outcome.stderr.contains("the data file became shorter while it was sent"), "{outcome:?}");
            }
        }
    }
}

/// What comes, after a moment, until nothing does for a while.
fn until_silent(stream: &mut TcpStream) -> usize {
    thread::sleep(Duration::from_millis(100));
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut piece = vec![0; 64 << 10];
    let mut all = 0;
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        all += count;
    }
    all
}

#[test]
fn who_refuses_is_sent_no_more_while_their_page_is_read() {
    const ROOM: [u8; 4] = (1_u32 << 30).to_be_bytes();
    let folder = Folder::new();
    File::create_new(folder.path().join("large")).unwrap().set_len(LARGE as u64).unwrap();
    let (tell, told) = mpsc::channel();
    let tells = tell.clone();
    let (http1, _) = hasty(move |stream| {
        stream.read_exact(&mut [0; 100]).unwrap();
        stream.write_all(b"HTTP/1.1 400 No\r\nContent-Length: 8\r\n\r\nhalf").unwrap();
        tells.send(until_silent(stream)).unwrap();
        stream.write_all(b"page").unwrap();
    });
    let (http2, _) = hasty(move |stream| {
        listen(stream, &[(HEADERS, END_HEADERS)]).unwrap();
        // 400, as everybody knows it (RFC 7541, A).
        let head = [frame(HEADERS, END_HEADERS, 1, &[0x8c]), frame(DATA, 0, 1, b"half")].concat();
        let room = [frame(WINDOW_UPDATE, 0, 0, &ROOM), frame(WINDOW_UPDATE, 0, 1, &ROOM)].concat();
        stream.write_all(&[head, room].concat()).unwrap();
        tell.send(until_silent(stream)).unwrap();
        stream.write_all(&frame(DATA, END_STREAM, 1, b"page")).unwrap();
    });
    for (url, flags) in [(http1, &["--http1.1"][..]), (http2, &["--http2"])] {
        let outcome = http_in(&folder, &[flags, &["--fail-with-body", "PUT", "-d", "@large", &url]].concat());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), "halfpage"), "{flags:?}: {outcome:?}");
        let had = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(had < LARGE / 2, "{flags:?}: {had}");
    }
}

#[test]
fn who_refuses_and_ends_their_page_only_when_they_have_all_is_not_waited_for() {
    let folder = Folder::new();
    File::create_new(folder.path().join("large")).unwrap().set_len(LARGE as u64).unwrap();
    let (url, _) = hasty(|stream| {
        stream.read_exact(&mut [0; 100]).unwrap();
        stream.write_all(b"HTTP/1.1 400 No\r\nContent-Length: 8\r\n\r\nhalf").unwrap();
        thread::sleep(Duration::from_millis(100));
        let _ = io::copy(stream, &mut io::sink());
    });
    let outcome = http_in(&folder, &["--fail-with-body", "--timeout=30s", "PUT", "-d", "@large", &url]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), "half"), "{outcome:?}");
    assert!(outcome.stderr.starts_with("note: the body of the answer has not come to its end\n"), "{outcome:?}");
}

#[test]
fn a_body_that_moves_is_not_silent_wherever_it_comes_from() {
    const LENGTH: usize = 65_535 + 15 * 1000;
    let folder = Folder::new().bytes("body", &[b'x'; LENGTH]);
    let (url, _) = hasty(|stream| {
        listen(stream, &[(HEADERS, END_HEADERS)]).unwrap();
        // As little room as makes it take longer than it may be silent.
        for _ in 0..15 {
            thread::sleep(Duration::from_millis(100));
            let room = 1000_u32.to_be_bytes();
            stream.write_all(&[frame(WINDOW_UPDATE, 0, 0, &room), frame(WINDOW_UPDATE, 0, 1, &room)].concat()).unwrap();
        }
        let _ = go_on(stream, &[(DATA, END_STREAM)]).and_then(|()| stream.write_all(&ok()));
    });
    let text = "x".repeat(LENGTH);
    for data in ["@body", &text] {
        let flags = ["--http2", "--max-attempts=1", "--idle-timeout=1s", "PUT", "-d", data, &url];
        let outcome = http_in(&folder, &flags);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "ok"), "{}: {outcome:?}", &data[..5]);
    }
}

#[test]
fn a_certificate_that_is_wanted_after_the_handshake_is_wanted_in_the_next_attempt_too() {
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let folder = Folder::new().file("ca.pem", &own.cert.pem());
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let provider = relent_tls::provider();
    let wanted = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build().unwrap();
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]);
    let builder = builder.unwrap().with_client_cert_verifier(wanted);
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = builder.with_single_cert(vec![own.cert.der().clone()], key).unwrap();
    for version in ["http/1.1", "h2"] {
        let mut config = config.clone();
        config.alpn_protocols = vec![version.into()];
        let config = Arc::new(config);
        let (url, count) = hasty(move |stream| {
            let mut tls = ServerConnection::new(config.clone()).unwrap();
            assert!(tls.complete_io(stream).is_err());
            // What was said is not lost.
            let _ = io::copy(stream, &mut io::sink());
        });
        let url = url.replace("http:", "https:");
        for (asked, flags) in (1..).zip([&[][..], &["-d", "data"]]) {
            let outcome = http_in(&folder, &[flags, &["--cacert=ca.pem", "--base=1ms", &url]].concat());
            assert_eq!((outcome.code, count.load(Ordering::Relaxed)), (Some(3), asked), "{version}: {outcome:?}");
            assert!(outcome.stderr.contains("the other side says: certificate required"), "{version}: {outcome:?}");
        }
    }
}

/// What a server gives to be known again by would be shown to whoever has its name at another port or address, and be their words there.
#[test]
fn no_session_of_tls_is_taken_up_again() {
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let builder = ServerConfig::builder_with_provider(relent_tls::provider()).with_protocol_versions(&[version]);
        let builder = builder.unwrap().with_no_client_auth();
        let config = builder.with_single_cert(vec![own.cert.der().clone()], key.clone_key()).unwrap();
        let config = Arc::new(config);
        let (tell, told) = mpsc::channel();
        let (url, _) = hasty(move |stream| {
            let mut tls = ServerConnection::new(config.clone()).unwrap();
            while tls.is_handshaking() && tls.complete_io(stream).is_ok() {}
            tell.send(tls.handshake_kind()).unwrap();
            let mut stream = rustls::Stream::new(&mut tls, stream);
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        });
        let url = url.replace("http:", "https:");
        let outcome = http_in(&Folder::new(), &["-k", "--max-attempts=3", "--base=1ms", &url]);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let kinds: Vec<_> = told.try_iter().collect();
        assert_eq!(kinds, [Some(rustls::HandshakeKind::Full); 3], "{version:?}");
    }
}
