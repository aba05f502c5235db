//! Proxies that lie, refuse and babble: what they say is never taken for the server's, and names them.

use super::{
    Outcome, http,
    server::{Reply, Request, Server},
};
use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// A proxy that answers every CONNECT with these bytes, and stays: where it is, and the heads that it got.
fn proxy(answer: Vec<u8>, stays: bool) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://ann:hunter2@{}", listener.local_addr().unwrap());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let (answer, seen) = (answer.clone(), seen.clone());
            thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && client.read_exact(&mut byte).is_ok() {
                    head.push(byte[0]);
                }
                seen.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
                let _ = client.write_all(&answer);
                if stays {
                    thread::sleep(Duration::from_secs(20));
                }
            });
        }
    });
    (url, heads)
}

/// A POST over TLS by way of this proxy, twice at most.
fn through(proxy: &str) -> Outcome {
    let args = ["-x", proxy, "--connect-timeout=300ms", "--idle-timeout=300ms", "--max-attempts=2", "-d", "one"];
    let began = Instant::now();
    let outcome = http(&[&args[..], &["https://server.invalid/?token=hunter2"]].concat());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!outcome.stderr.chars().any(obeyed), "{:?}", outcome.stderr);
    assert!(!outcome.stderr.contains("hunter2") && outcome.stdout.is_empty(), "{outcome:?}");
    assert_eq!(outcome.stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{}", outcome.stderr);
    outcome
}

/// The request has never left, so that even a POST is sent again, unless the proxy says that this makes no sense.
#[test]
fn what_a_proxy_answers_is_not_the_servers_answer() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    for (answer, attempts) in [
        ("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\nhello", 2),
        ("HTTP/1.1 503 X\r\nRetry-After: 1000\r\n\r\n", 2),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", 2),
        ("HTTP/1.1 407 X\r\nX: \u{1b}\r\n\r\n", 2),
        ("HTTP/1.1 302 Found\r\nLocation: http://elsewhere.invalid/\r\n\r\n", 2),
        ("HTTP/1.1 204 No Content\r\n\r\n", 2),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", 2),
        ("HTTP/1.1 100 Continue\r\n\r\n", 2),
        ("HTTP/1.1 503 \u{1b}[2J\u{9b}2J\u{202e}\nerror: forged\r\n\r\n", 2),
        ("HTTP/1.1 2000 OK\r\n\r\n", 2),
        ("HTTP/9.9 200 OK\r\n\r\n", 2),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", 2),
        ("\0\0\0\0\r\n\r\n", 2),
        ("\r\n\r\n", 2),
        ("", 2),
        (long.as_str(), 2),
    ] {
        let shown = &answer[..answer.floor_char_boundary(40)];
        for stays in [false, true] {
            let (url, heads) = proxy(answer.as_bytes().to_owned(), stays);
            let outcome = through(&url);
            assert!(matches!(outcome.code, Some(1 | 3)), "{shown:?}: {outcome:?}");
            assert!(outcome.stderr.contains("through the proxy http://HOST"), "{shown:?}: {}", outcome.stderr);
            assert_eq!(heads.lock().unwrap().len(), attempts, "{shown:?}: {}", outcome.stderr);
        }
    }
}

/// A tunnel in which somebody else than the server speaks is none: TLS notices.
#[test]
fn a_tunnel_with_a_body_in_it_is_no_server() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\n\r\n",
    ] {
        for stays in [false, true] {
            let (url, heads) = proxy(answer.as_bytes().to_owned(), stays);
            let outcome = through(&url);
            assert!(matches!(outcome.code, Some(1 | 3)), "{answer:?}: {outcome:?}");
            assert!(outcome.stderr.contains("the proxy http://HOST"), "{answer:?}: {}", outcome.stderr);
            let heads = heads.lock().unwrap();
            assert!(heads[0].starts_with("CONNECT server.invalid:443 HTTP/1.1\r\n"), "{}", heads[0]);
            assert!(!heads[0].contains("token"), "the proxy need not know what is asked for: {}", heads[0]);
        }
    }
}

#[test]
fn a_proxy_that_asks_who_we_are_is_asked_once() {
    for answer in [
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"\u{9b}2J\"\r\n\r\n",
        "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.0 407 Who are you?\r\n\r\n",
    ] {
        let (url, heads) = proxy(answer.as_bytes().to_owned(), false);
        let outcome = through(&url);
        assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("hint: --proxy-user USER:PASSWORD"), "{}", outcome.stderr);
        assert_eq!(heads.lock().unwrap().len(), 1);
    }
    let server = Server::new(vec![Reply::new(407, &["Proxy-Authenticate: Basic"], "")]);
    let outcome = http(&["-x", &server.url(""), "http://server.invalid/"]);
    assert_eq!((outcome.code, server.count()), (Some(3), 1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--proxy-user"), "{}", outcome.stderr);
}

/// Who we are to a proxy is for that proxy: not for the server, nor for where it leads.
#[test]
fn the_user_of_a_proxy_is_told_to_nobody_else() {
    let target = Server::new(vec![Reply::ok("there\n")]);
    let to = format!("Location: {}", target.url("/"));
    let proxy = Server::new(vec![Reply::new(302, &[&to, "Set-Cookie: a=b"], "")]);
    let with_user = proxy.url("").replace("//", "//ann:hunter2@");
    let outcome = http(&["-L", "-x", &with_user, "--noproxy", "127.0.0.1", "http://server.invalid/"]);
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("there\n", Some(0)), "{}", outcome.stderr);
    let is_told = |request: &Request| request.header("proxy-authorization").is_some();
    assert!(is_told(&proxy.requests()[0]) && !is_told(&target.requests()[0]), "{}", target.requests()[0].head);
    assert!(proxy.requests()[0].line().starts_with("GET http://server.invalid/ "), "{}", proxy.requests()[0].head);
}

/// Cookies are not kept: what one answer sets, no request sends.
#[test]
fn cookies_are_not_kept() {
    let server = Server::with(|k, _| match k {
        0 => Reply::new(302, &["Location: /in", "Set-Cookie: sid=1; Path=/", "Set-Cookie: b=\u{9b}2J"], ""),
        1 => Reply::new(503, &["Set-Cookie: sid=2"], ""),
        _ => Reply::ok("in\n"),
    });
    let outcome = http(&["-L", "-H", "Cookie: own=1", &server.url("/")]);
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("in\n", Some(0)), "{}", outcome.stderr);
    for request in server.requests() {
        assert_eq!(request.header("cookie"), Some("own=1"), "{}", request.head);
    }
}
