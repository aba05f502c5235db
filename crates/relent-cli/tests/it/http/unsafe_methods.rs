//! POST and its like: sent twice only if that does no harm.

use super::{
    expect, http, http_in,
    server::{Reply, Server, free_port},
};
use crate::binary::Folder;
use std::{net::TcpListener, time::Duration};

const STOPPED: &str = "\
error: gave up after 1 attempt in TIME: POST is not sent again, since the method is not idempotent and the request may \
have been carried out (503 Service Unavailable)
hint: --idempotency-key if the server honours it; --retry-unsafe if twice does no harm
";

#[test]
fn a_post_is_sent_once() {
    let server = Server::new(vec![Reply::new(503, &["Retry-After: 3600"], "")]);
    let outcome = http(&["POST", &server.url("/orders"), "-d", "one"]);
    assert_eq!(server.count(), 1, "reqwest-retry 0.9.1: sent 4 times within 4 ms");
    assert_eq!(outcome.code, Some(5), "the longest wait is the first reason: {}", outcome.stderr);

    // To wait for it would be for nothing.
    let server = Server::new(vec![Reply::new(503, &["Retry-After: 5"], "")]);
    let outcome = http(&["POST", &server.url("/orders"), "--max-pushback", "1s", "-d", "one"]);
    assert!(
        outcome
            .stderr
            .ends_with("hint: --idempotency-key if the server honours it; --retry-unsafe if twice does no harm\n"),
        "{outcome:?}"
    );

    let server = Server::new(vec![Reply::status(503)]);
    expect(&http(&["POST", &server.url("/orders"), "-d", "one"]), 6, "", STOPPED);
    expect(&http(&[&server.url("/orders"), "-d", "one"]), 6, "", STOPPED);
    expect(&http(&["post", &server.url("/orders")]), 6, "", STOPPED);
    assert_eq!(server.count(), 3, "curl 7.88 --retry and HAProxy replay it");
    let request = &server.requests()[0];
    assert_eq!((request.line(), request.body.as_slice()), ("POST /orders HTTP/1.1", &b"one"[..]));
    assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
}

#[test]
fn with_one_key_for_all_attempts_it_is_sent_again() {
    let server = Server::new(vec![Reply::status(503), Reply::nothing(), Reply::ok("done\n")]);
    let outcome = http(&["POST", "--idempotency-key", &server.url("/"), "-d", "one"]);
    let stderr = "\
relent: attempt 1 of 4: 503 Service Unavailable, transient, it carries an idempotency key; next in 10ms
relent: attempt 2 of 4: the connection was closed before the answer, transient, it carries an idempotency key; next in 20ms
relent: succeeded after 3 attempts in TIME
";
    expect(&outcome, 0, "done\n", stderr);
    let keys: Vec<_> = server.requests().iter().map(|r| r.header("idempotency-key").unwrap().to_owned()).collect();
    assert!(keys[0] == keys[1] && keys[1] == keys[2], "{keys:?}");
    let uuid = regex_lite::Regex::new(r#"^"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$"#);
    assert!(uuid.unwrap().is_match(&keys[0]), "a quoted string, as the draft says: {}", keys[0]);
}

#[test]
fn a_made_key_is_new_in_each_run_whatever_the_seed() {
    let server = Server::new(vec![Reply::ok("")]);
    for _ in 0..2 {
        assert_eq!(http(&["POST", "--seed=1", "--idempotency-key", &server.url("/")]).code, Some(0));
    }
    let keys: Vec<_> = server.requests().iter().map(|r| r.header("idempotency-key").unwrap().to_owned()).collect();
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn a_given_key_is_quoted() {
    let server = Server::new(vec![Reply::ok("")]);
    assert_eq!(http(&["POST", r#"--idempotency-key=order "7""#, &server.url("/")]).code, Some(0));
    assert_eq!(server.requests()[0].header("idempotency-key"), Some(r#""order \"7\"""#));
}

#[test]
fn the_users_own_header_counts_as_well() {
    let server = Server::new(vec![Reply::status(503), Reply::ok("done\n")]);
    let outcome = http(&["POST", "-q", "-H", "Idempotency-Key: bare", &server.url("/")]);
    expect(&outcome, 0, "done\n", "");
    assert_eq!(server.requests()[1].header("idempotency-key"), Some("bare"));
}

/// As a variable makes that is not set. The server would carry out each of them.
#[test]
fn a_key_that_is_empty_is_refused() {
    let server = Server::new(vec![Reply::status(503)]);
    for header in ["Idempotency-Key:", "Idempotency-Key: \"\""] {
        let outcome = http(&["-d", "order", "-H", header, "--hedge", "after=50ms", &server.url("/")]);
        let said = "error: the header idempotency-key is no key\n\
                    hint: it is given once, and has 1 to 255 printable characters of ASCII; is a variable in it not set?\n";
        expect(&outcome, 125, "", said);
    }
    let outcome = http(&["-d", "order", "--idempotency-key=", &server.url("/")]);
    let said = "error: the idempotency key is empty\n\
                hint: is a variable in it not set? --idempotency-key alone makes one\n";
    expect(&outcome, 125, "", said);
    assert_eq!(server.count(), 0);
}

/// Without it, whoever a redirect names takes each attempt for a new order; and without its condition, a change is made in any case.
#[test]
fn what_a_request_means_goes_wherever_it_goes() {
    let conditions = ["\"Q2hlY2s=\"", "\"a@b\"", "\"k:v\", \"w\""];
    for key in [
        "order-17",
        "order:17",
        "user-1:charge-2",
        "q83vEjRWeJCrze8SNFZ4kA==",
        "job@host",
        "Token 5",
        "ghp_0a1b2c3d4e5f",
    ] {
        let other = Server::new(vec![Reply::status(503), Reply::ok("done\n")]);
        let server = Server::new(vec![Reply::new(308, &[&format!("Location: {}", other.url("/"))], "")]);
        for condition in conditions {
            let sent = [
                "-L",
                "-q",
                "--base=1ms",
                "-d",
                "order",
                &format!("--idempotency-key={key}"),
                "-H",
                &format!("If-Match: {condition}"),
                &server.url("/"),
            ]
            .map(str::to_owned);
            let _ = http(&sent.each_ref().map(String::as_str));
            let last = other.requests().pop().unwrap();
            let quoted = format!("\"{key}\"");
            assert_eq!(last.header("idempotency-key"), Some(quoted.as_str()));
            assert_eq!(last.header("if-match"), Some(condition), "{key}");
        }
        assert_eq!(other.count(), 1 + conditions.len(), "{key}");
    }
}

#[test]
fn on_the_users_word_it_is_sent_again() {
    let server = Server::new(vec![Reply::status(503), Reply::ok("done\n")]);
    let stderr = "\
relent: attempt 1 of 4: 503 Service Unavailable, transient, the user says so; next in 10ms
relent: succeeded after 2 attempts in TIME
";
    expect(&http(&["PATCH", "--retry-unsafe", &server.url("/"), "-d", "x"]), 0, "done\n", stderr);
}

#[test]
fn what_never_left_is_sent_again() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    let stderr = "\
relent: attempt 1 of 2: cannot connect to HOST: Connection refused, transient, the request never left; next in 10ms
error: gave up after 2 attempts in TIME: out of attempts (cannot connect to HOST: Connection refused)
hint: --max-attempts gives it more
";
    expect(&http(&["POST", "--max-attempts=2", &url]), 1, "", stderr);
}

#[test]
fn a_timeout_before_the_connection_was_made_is_no_sending() {
    // Nobody takes what connects here, and the queue of those who wait is full.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    socket2::SockRef::from(&listener).listen(0).unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
        waiting.push(stream);
    }
    let url = format!("http://{address}/");
    let outcome = http(&["POST", "--max-attempts=2", "--attempt-timeout=100ms", &url]);
    let stderr = "\
relent: attempt 1 of 2: no connection to HOST within 100ms, transient, the request never left; next in 10ms
error: gave up after 2 attempts in TIME: out of attempts (no connection to HOST within 100ms)
hint: --max-attempts gives it more
";
    expect(&outcome, 1, "", stderr);
    let outcome = http(&["POST", "--max-attempts=1", "--connect-timeout=100ms", &url]);
    let stderr = "\
error: gave up after 1 attempt in TIME: out of attempts (cannot connect to HOST: out of time)
hint: --max-attempts gives it more
";
    expect(&outcome, 1, "", stderr);
}

#[test]
fn a_post_behind_whose_redirect_nobody_listens_has_left() {
    let gone = format!("Location: http://127.0.0.1:{}/", free_port());
    let server = Server::new(vec![Reply::new(303, &[&gone], "")]);
    let outcome = http(&["POST", "-L", &server.url("/orders")]);
    let stderr = "\
error: gave up after 1 attempt in TIME: POST is not sent again, since the method is not idempotent and the request may \
have been carried out (cannot connect to HOST: Connection refused)
hint: --idempotency-key if the server honours it; --retry-unsafe if twice does no harm
";
    expect(&outcome, 6, "", stderr);
    assert_eq!(server.count(), 1);
}

#[test]
fn a_timeout_after_it_left_stops_a_post() {
    let server = Server::new(vec![Reply::ok("late").late(Duration::from_secs(20))]);
    let outcome = http(&["POST", "--attempt-timeout=400ms", &server.url("/")]);
    assert_eq!((outcome.code, server.count()), (Some(6), 1), "{}", outcome.stderr);
}

#[test]
fn a_stream_that_http2_refused_was_not_processed() {
    let (address, seen) = refusing_http2();
    let outcome = http(&["POST", "--http2", "-d", "one", &format!("http://{address}/")]);
    let stderr = "\
relent: attempt 1 of 4: the server ended the stream: refused stream before processing any application logic, transient, \
the request never left; next in 10ms
relent: succeeded after 2 attempts in TIME
";
    expect(&outcome, 0, "", stderr);
    assert_eq!(*seen.lock().unwrap(), 2, "the client does not retry by itself");
}

/// A server that refuses its first stream, and how many streams it has seen.
fn refusing_http2() -> (std::net::SocketAddr, std::sync::Arc<std::sync::Mutex<u32>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(0));
    let streams = seen.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                let mut connection = h2::server::handshake(socket).await.unwrap();
                while let Some(Ok((_request, mut respond))) = connection.accept().await {
                    *streams.lock().unwrap() += 1;
                    if *streams.lock().unwrap() == 1 {
                        respond.send_reset(h2::Reason::REFUSED_STREAM);
                    } else {
                        respond.send_response(http::Response::new(()), true).unwrap();
                    }
                }
            }
        });
    });
    (address, seen)
}

#[test]
fn a_file_is_sent_whole_each_time() {
    let data: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    let folder = Folder::new().bytes("data", &data);
    let server = Server::new(vec![Reply::status(503), Reply::ok("done\n")]);
    let outcome = http_in(&folder, &["PUT", "-q", "-d", "@data", &server.url("/")]);
    expect(&outcome, 0, "done\n", "");
    for request in server.requests() {
        assert!(request.body == data, "{} bytes", request.body.len());
        assert_eq!(request.header("content-length"), Some("1200000"));
    }
    assert_eq!(server.count(), 2, "HAProxy stops retrying above 16 KiB, reqwest-retry 0.9.1 sends no stream at all");
}

#[test]
fn standard_input_is_sent_whole_each_time() {
    let data = "line\n".repeat(400_000);
    let server = Server::new(vec![Reply::status(503), Reply::ok("done\n")]);
    let outcome = Folder::new().relent_with(&["http", "PUT", "-q", "--base=5ms", "-d", "@-", &server.url("/")], &data);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
    assert!(bodies.len() == 2 && bodies.iter().all(|body| *body == data.as_bytes()));
}

#[test]
fn a_body_that_is_not_there_has_a_length() {
    let server = Server::new(vec![Reply::ok("")]);
    for (method, length) in [("POST", Some("0")), ("PUT", Some("0")), ("GET", None), ("DELETE", None)] {
        assert_eq!(http(&[method, &server.url("/")]).code, Some(0));
        assert_eq!(server.requests().last().unwrap().header("content-length"), length, "{method}");
    }
}

#[test]
fn texts_are_joined_as_curl_joins_them() {
    let server = Server::new(vec![Reply::ok("")]);
    expect(&http(&["-X", "PUT", "-d", "a=1", "-d", "b=2", &server.url("/")]), 0, "", "");
    let request = &server.requests()[0];
    assert_eq!((request.line(), request.body.as_slice()), ("PUT / HTTP/1.1", &b"a=1&b=2"[..]));
}

/// A server of raw HTTP/2 that goes away after each request, having processed streams up to `last`; and how many came.
fn going_away(last: u8, code: u8) -> (std::net::SocketAddr, std::sync::Arc<std::sync::Mutex<u32>>) {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = std::sync::Arc::new(std::sync::Mutex::new(0));
    let seen = count.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut frames = || -> std::io::Result<()> {
                stream.read_exact(&mut [0; 24])?;
                stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0])?;
                loop {
                    let mut head = [0; 9];
                    stream.read_exact(&mut head)?;
                    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                    stream.read_exact(&mut vec![0; length as usize])?;
                    // The last frame of a request is its body.
                    if head[3] == 0 && head[4] & 1 == 1 {
                        break;
                    }
                }
                *seen.lock().unwrap() += 1;
                stream.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, code])?;
                stream.shutdown(std::net::Shutdown::Write)?;
                std::io::copy(&mut stream, &mut std::io::sink()).map(drop)
            };
            let _ = frames();
        }
    });
    (address, count)
}

#[test]
fn what_a_server_that_goes_away_has_processed_is_not_sent_again() {
    for (last, code, attempts, exit) in [(0, 0, 2, 1), (1, 0, 1, 6), (1, 2, 1, 6), (7, 0, 1, 6)] {
        let (address, seen) = going_away(last, code);
        let outcome = http(&["POST", "--http2", "--max-attempts=2", "-d", "one", &format!("http://{address}/")]);
        let stderr = &outcome.stderr;
        assert_eq!((*seen.lock().unwrap(), outcome.code), (attempts, Some(exit)), "last {last}, code {code}: {stderr}");
    }
}

/// What a redirect leads away from was carried out, and only where it leads to cannot be reached.
#[test]
fn a_post_that_a_redirect_answered_is_not_sent_again() {
    // It accepts, and says nothing in the handshake: no connection in the sense of anything having left.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = format!("https://{}/receipt", silent.local_addr().unwrap());
    for status in [302, 303, 307, 308] {
        let server = Server::new(vec![Reply::new(status, &[&format!("Location: {elsewhere}")], "")]);
        let args = ["-L", "-d", "pay=1", "--max-attempts=3", "--attempt-timeout=300ms", &server.url("/order")];
        let outcome = http(&args);
        assert_eq!((outcome.code, server.count()), (Some(6), 1), "{status}: {}", outcome.stderr);
        let said = &outcome.stderr;
        assert!(
            said.contains("no connection to HOST within 300ms") && !said.contains("never left"),
            "{status}: {said}"
        );
    }
}
