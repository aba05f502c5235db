//! What is retried, what is not, and what is said about it.

use super::{
    command, expect, http, http_in, run,
    server::{Reply, Server, free_port},
};
use crate::binary::Folder;
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    process::Stdio,
    thread,
    time::Duration,
};

#[test]
fn a_success_says_nothing() {
    let server = Server::new(vec![Reply::ok("hello\n")]);
    expect(&http(&[&server.url("/")]), 0, "hello\n", "");
    let request = &server.requests()[0];
    assert_eq!(request.line(), "GET / HTTP/1.1");
    assert_eq!(request.header("user-agent"), Some(concat!("relent/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(request.header("relent-attempt"), None, "the first attempt is not counted aloud");
}

#[test]
fn a_service_that_recovers() {
    let server = Server::new(vec![Reply::status(503), Reply::status(500), Reply::ok("hello\n")]);
    let outcome = http(&[&server.url("/")]);
    let stderr = "\
relent: attempt 1 of 4: 503 Service Unavailable, transient; next in 10ms
relent: attempt 2 of 4: 500 Internal Server Error, transient; next in 20ms
relent: succeeded after 3 attempts in TIME
";
    expect(&outcome, 0, "hello\n", stderr);
    let counted: Vec<_> = server.requests().iter().map(|r| r.header("relent-attempt").map(str::to_owned)).collect();
    assert_eq!(counted, [None, Some("2".into()), Some("3".into())]);
}

#[test]
fn a_service_that_does_not_recover() {
    let server = Server::new(vec![Reply::status(503)]);
    let outcome = http(&["--max-attempts=2", &server.url("/")]);
    let stderr = "\
relent: attempt 1 of 2: 503 Service Unavailable, transient; next in 10ms
error: gave up after 2 attempts in TIME: out of attempts (503 Service Unavailable)
hint: --max-attempts gives it more
";
    expect(&outcome, 1, "", stderr);
    assert_eq!(server.count(), 2, "the attempts told are the attempts made");
}

#[test]
fn quiet_says_errors_only() {
    let server = Server::new(vec![Reply::status(503), Reply::ok("hello\n")]);
    expect(&http(&["-q", &server.url("/")]), 0, "hello\n", "");
    let server = Server::new(vec![Reply::status(404)]);
    let stderr = "\
error: gave up after 1 attempt in TIME: permanent failure (404 Not Found)
hint: --fail-with-body shows what the server says about it
";
    expect(&http(&["-q", &server.url("/")]), 3, "", stderr);
}

#[test]
fn every_status_is_retried_or_not_as_the_table_says() {
    for (statuses, attempts, code) in [
        (&[408, 425, 429, 500, 502, 503, 504, 507, 599][..], 2, 1),
        (&[400, 401, 403, 404, 409, 410, 413, 418, 423, 501, 505], 1, 3),
        (&[204, 206, 301, 304], 1, 0),
    ] {
        for status in statuses {
            // Of a part that nobody asked for only the one that is the whole will do, with the byte that it names.
            let body = if *status == 206 { "x" } else { "" };
            let server = Server::new(vec![Reply::new(*status, &["Content-Range: bytes 0-0/1"], body)]);
            let outcome = http(&["--max-attempts=2", "-q", &server.url("/")]);
            assert_eq!((server.count(), outcome.code), (attempts, Some(code)), "{status}: {}", outcome.stderr);
        }
    }
}

#[test]
fn the_user_says_which_statuses() {
    let server = Server::new(vec![Reply::status(409), Reply::status(421), Reply::ok("x")]);
    let outcome = http(&["--retry-on-status=409,420-429", &server.url("/")]);
    let stderr = "\
relent: attempt 1 of 4: 409 Conflict, transient; next in 10ms
relent: attempt 2 of 4: 421 Misdirected Request, transient; next in 20ms
relent: succeeded after 3 attempts in TIME
";
    expect(&outcome, 0, "x", stderr);
    let server = Server::new(vec![Reply::status(503)]);
    let stderr = "\
error: gave up after 1 attempt in TIME: permanent failure (503 Service Unavailable)
hint: --fail-with-body shows what the server says about it
";
    expect(&http(&["--stop-on-status=500-599", &server.url("/")]), 3, "", stderr);
    let server = Server::new(vec![Reply::new(202, &[], "not yet"), Reply::ok("done")]);
    let outcome = http(&["--retry-on-status=202", "-q", &server.url("/")]);
    expect(&outcome, 0, "done", "");
}

/// A hint names a flag that is not given yet.
#[test]
fn no_hint_names_the_flag_that_was_given() {
    let server = Server::new(vec![Reply::status(409), Reply::status(409)]);
    let outcome = http(&["--retry-on-status=409", "--max-attempts=2", &server.url("/")]);
    let stderr = "\
relent: attempt 1 of 2: 409 Conflict, transient; next in 10ms
error: gave up after 2 attempts in TIME: out of attempts (409 Conflict)
hint: --max-attempts gives it more
";
    expect(&outcome, 1, "", stderr);
    let server = Server::new(vec![Reply::status(409)]);
    let stderr = "\
error: gave up after 1 attempt in TIME: permanent failure (409 Conflict)
hint: --retry-on-status 409 retries it
";
    expect(&http(&[&server.url("/")]), 3, "", stderr);
}

/// A turn is one client's own: kept to the millisecond, and counted before what strangers are told beside it.
#[test]
fn a_turn_is_kept() {
    let told = Reply::new(503, &["Relent-Turn: 30", "Retry-After: 1"], "");
    let server = Server::new(vec![told, Reply::ok("x")]);
    let outcome = http(&["--jitter=full", &server.url("/")]);
    let stderr = "\
relent: attempt 1 of 4: 503 Service Unavailable, its turn is in 30ms (Relent-Turn: 30); next in 30ms
relent: succeeded after 2 attempts in TIME
";
    expect(&outcome, 0, "x", stderr);
}

#[test]
fn nobody_listens() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    let stderr = "\
relent: attempt 1 of 2: cannot connect to HOST: Connection refused, transient; next in 10ms
error: gave up after 2 attempts in TIME: out of attempts (cannot connect to HOST: Connection refused)
hint: --max-attempts gives it more
";
    expect(&http(&["--max-attempts=2", &url]), 1, "", stderr);
}

#[test]
fn a_server_that_starts_late_is_waited_for() {
    let (folder, port) = (Folder::new(), free_port());
    let url = format!("http://127.0.0.1:{port}/");
    let mut command = command(&folder, &["http", "--base=10ms", "--max-attempts=unlimited", "--max-elapsed=20s", &url]);
    let mut relent = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(relent.stderr.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert!(first.starts_with("relent: attempt 1: cannot connect to "), "{first}");
    assert!(first.contains(": Connection refused, transient; next in "), "{first}");
    let server = Server::on(TcpListener::bind(("127.0.0.1", port)).unwrap(), |_, _| Reply::ok("up\n"));
    let (mut rest, output) = (String::new(), relent.wait_with_output().unwrap());
    said.read_to_string(&mut rest).unwrap();
    assert_eq!((output.status.code(), &*output.stdout, server.count()), (Some(0), &b"up\n"[..], 1), "{first}{rest}");
}

#[test]
fn connections_that_are_closed_or_reset_before_the_answer() {
    let server = Server::new(vec![Reply::nothing(), Reply::nothing().reset(), Reply::ok("hello\n")]);
    let stderr = "\
relent: attempt 1 of 4: the connection was closed before the answer, transient; next in 10ms
relent: attempt 2 of 4: the connection broke before the answer: Connection reset by peer, transient; next in 20ms
relent: succeeded after 3 attempts in TIME
";
    expect(&http(&[&server.url("/")]), 0, "hello\n", stderr);
    assert_eq!(server.count(), 3, "hyper-util: the client does not retry by itself");
}

#[test]
fn what_is_not_http_is_permanent() {
    let server = Server::new(vec![Reply::raw("220 mail.example.com ESMTP\r\n\r\n")]);
    let stderr = "\
error: gave up after 1 attempt in TIME: permanent failure (the answer is not HTTP: invalid HTTP version parsed)
";
    expect(&http(&[&server.url("/")]), 3, "", stderr);
}

#[test]
fn an_attempt_that_takes_too_long() {
    let server = Server::new(vec![Reply::ok("late").late(Duration::from_secs(20)), Reply::ok("in time\n")]);
    let stderr = "\
relent: attempt 1 of 4: no answer within 400ms, transient; next in 10ms
relent: succeeded after 2 attempts in TIME
";
    expect(&http(&["--attempt-timeout=400ms", &server.url("/")]), 0, "in time\n", stderr);
}

#[test]
fn a_body_that_stops_coming() {
    let server = Server::new(vec![Reply::ok("hello\n").cut(3).hang(), Reply::ok("hello\n")]);
    let outcome = http(&["--attempt-timeout=400ms", &server.url("/")]);
    let stderr = "\
relent: attempt 1 of 4: no answer within 400ms, transient; next in 10ms
relent: succeeded after 2 attempts in TIME
";
    expect(&outcome, 0, "hello\n", stderr);
}

#[test]
fn out_of_time() {
    let server = Server::new(vec![Reply::status(503)]);
    let outcome = http(&["--max-elapsed=300ms", "--base=1h", "--cap=1h", &server.url("/")]);
    let stderr = "\
error: gave up after 1 attempt in TIME: out of time (503 Service Unavailable)
hint: --max-elapsed gives it more time
";
    expect(&outcome, 124, "", stderr);
}

#[test]
fn redirects_are_followed_only_if_told_to() {
    let server = Server::with(|_, request| match request.line() {
        "GET /old HTTP/1.1" => Reply::new(302, &["Location: /new"], "moved\n"),
        _ => Reply::ok("here\n"),
    });
    let stderr = "note: 302 Found, to /new; -L follows it\n";
    expect(&http(&[&server.url("/old")]), 0, "moved\n", stderr);
    expect(&http(&["-L", &server.url("/old")]), 0, "here\n", "");
    let circle = Server::new(vec![Reply::new(302, &["Location: /"], "")]);
    let outcome = http(&["-L", &circle.url("/")]);
    let stderr = "\
error: gave up after 1 attempt in TIME: permanent failure (too many redirects)
hint: see where it leads without -L
";
    expect(&outcome, 3, "", stderr);
}

#[test]
fn events_for_machines() {
    let server = Server::new(vec![Reply::status(503), Reply::new(429, &["Retry-After-Ms: 30"], ""), Reply::ok("x")]);
    let stderr = r#"{"event":"attempt","attempt":1,"status":503,"what":"503 Service Unavailable","verdict":"transient","ran_ms":N,"elapsed_ms":N,"delay_ms":N,"reason":null}
{"event":"attempt","attempt":2,"status":429,"what":"429 Too Many Requests","verdict":"after 30ms","ran_ms":N,"elapsed_ms":N,"delay_ms":N,"reason":null}
{"event":"end","outcome":"success","attempts":3,"status":200,"exit":0,"elapsed_ms":N,"reason":null,"bytes":1}
"#;
    expect(&http(&["--json", &server.url("/")]), 0, "x", stderr);
    let url = format!("http://127.0.0.1:{}/", free_port());
    let stderr = r#"{"event":"attempt","attempt":1,"status":null,"what":"cannot connect to HOST: Connection refused","verdict":"transient","ran_ms":N,"elapsed_ms":N,"delay_ms":null,"reason":"attempts"}
{"event":"end","outcome":"gave_up","attempts":1,"status":null,"exit":1,"elapsed_ms":N,"reason":"attempts"}
"#;
    expect(&http(&["--json", "--max-attempts=1", &url]), 1, "", stderr);
}

#[test]
fn verbose_shows_what_goes_over_the_wire_and_no_secrets() {
    let server = Server::new(vec![Reply::new(404, &["X-Id: 7"], "")]);
    let args = ["-v", "--seed=1", "-H", "Authorization: Bearer abc", "-H", "A: b", &server.url("/p?q=1")];
    let stderr = "\
relent: policy curve=\"exponential\" base=\"10ms\" factor=2 cap=\"20ms\" jitter=\"none\" max_attempts=4 \
max_elapsed=\"unlimited\" max_pushback=\"2m\" attempt_timeout=\"unlimited\" spread=\"0s\" seed=1
relent: attempt 1 of 4: GET http://HOST/p?q=1
> GET /p?q=1
> host: HOST
> authorization: ***
> a: b
< HTTP/1.1 404 Not Found
< content-length: 0
< x-id: 7
error: gave up after 1 attempt in TIME: permanent failure (404 Not Found)
hint: --fail-with-body shows what the server says about it
";
    expect(&http(&args), 3, "", stderr);
}

#[test]
fn a_policy_file_is_obeyed() {
    let folder =
        Folder::new().file("relent.toml", "[policy.read]\nmax_attempts = 2\nbase = \"5ms\"\njitter = \"none\"\n");
    let server = Server::new(vec![Reply::status(500)]);
    let outcome = run(&folder, &["http", "--policy=relent.toml#read", &server.url("/")]);
    let stderr = "\
relent: attempt 1 of 2: 500 Internal Server Error, transient; next in 5ms
error: gave up after 2 attempts in TIME: out of attempts (500 Internal Server Error)
hint: --max-attempts gives it more
";
    expect(&outcome, 1, "", stderr);
}

#[test]
fn an_interrupt_ends_it_and_leaves_nothing_behind() {
    let folder = Folder::new();
    let server = Server::new(vec![Reply::ok("hello\n").cut(3).hang()]);
    let mut command = command(&folder, &["http", "-o", "file", &server.url("/")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let is_half_there = || {
        let parts = folder.names().into_iter().filter(|name| name.ends_with(".part"));
        parts.map(|name| folder.path().join(name)).any(|part| fs::metadata(part).is_ok_and(|part| part.len() > 0))
    };
    while !is_half_there() {
        thread::sleep(Duration::from_millis(5));
    }
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    let stderr = super::filtered(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(stderr, "relent: stopped after 1 attempt in TIME: SIGTERM\n");
    assert_eq!(folder.names(), Vec::<String>::new(), "no temporary file is left");
}

#[test]
fn a_proxy_of_the_environment_is_used() {
    let proxy = Server::new(vec![Reply::status(502), Reply::ok("through the proxy\n")]);
    let folder = Folder::new();
    let mut command = command(&folder, &["http", "-q", "--base=5ms", "http://far.invalid/x"]);
    command.env("http_proxy", proxy.url(""));
    expect(&super::finish(command), 0, "through the proxy\n", "");
    assert_eq!(proxy.requests()[0].line(), "GET http://far.invalid/x HTTP/1.1");
}

#[test]
fn encodings_are_undone() {
    let brotli = b"\x0b\x02\x80hello\x03";
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x05\0\xfa\xffhello\x86\xa6\x10\x36\x05\0\0\0";
    for (encoding, body) in [("br", &brotli[..]), ("gzip", gzip)] {
        let server = Server::new(vec![Reply::new(200, &[&format!("Content-Encoding: {encoding}")], body)]);
        expect(&http(&["--compressed", &server.url("/")]), 0, "hello", "");
        let accepted = server.requests()[0].header("accept-encoding").unwrap().to_owned();
        assert!(accepted.split(',').any(|name| name.trim() == encoding), "{accepted}");
    }
}

#[test]
fn an_encoded_body_that_ends_early_is_retried() {
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x05\0\xfa\xffhello\x86\xa6\x10\x36\x05\0\0\0";
    let whole = Reply::new(200, &["Content-Encoding: gzip"], gzip);
    let short = Reply::new(200, &["Content-Encoding: gzip"], &gzip[..18]);
    let server = Server::new(vec![short, whole]);
    let stderr = "\
relent: attempt 1 of 4: the body ended early, after 3 bytes, transient; next in 10ms
relent: succeeded after 2 attempts in TIME
";
    let folder = Folder::new();
    expect(&http_in(&folder, &["--compressed", &server.url("/")]), 0, "hello", stderr);
}
