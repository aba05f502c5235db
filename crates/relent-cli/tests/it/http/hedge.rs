//! `--hedge`: a request that is slow is sent again, and the first answer wins.

use super::{
    command, expect, http, http_in,
    server::{Reply, Server},
};
use crate::binary::{Folder, Outcome};
use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

const HEDGE: &str = "--hedge=after=50ms";

/// Longer than any of these tests waits for.
const LONG: Duration = Duration::from_secs(20);

fn slow() -> Reply {
    Reply::ok("slow\n").late(LONG)
}

/// A machine that is slow, and then one that is not.
fn slow_then(next: Reply) -> Server {
    Server::new(vec![slow(), next])
}

fn quickly(work: impl FnOnce() -> Outcome) -> Outcome {
    let began = Instant::now();
    let outcome = work();
    assert!(began.elapsed() < LONG / 2, "{:?}: {outcome:?}", began.elapsed());
    outcome
}

fn events(outcome: &Outcome) -> Vec<serde_json::Value> {
    outcome.stderr.lines().map(|line| serde_json::from_str(&line.replace(":N", ":0")).unwrap()).collect()
}

#[test]
fn a_slow_answer_is_not_waited_for() {
    let server = slow_then(Reply::ok("quick\n"));
    let outcome = quickly(|| http(&[HEDGE, &server.url("/")]));
    expect(&outcome, 0, "quick\n", "relent: succeeded after 2 attempts in TIME\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!((requests[0].header("relent-attempt"), requests[1].header("relent-attempt")), (None, Some("2")));
}

#[test]
fn a_quick_answer_is_asked_for_once() {
    let server = Server::new(vec![Reply::ok("quick\n")]);
    expect(&http(&["--hedge=after=10s", &server.url("/")]), 0, "quick\n", "");
    assert_eq!(server.count(), 1);
}

/// Whether it says nothing, or one hint after the other.
#[test]
fn the_loser_is_dropped_at_once() {
    for hints in ["", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (tell, told) = channel();
        thread::spawn(move || {
            let (mut first, _) = listener.accept().unwrap();
            let (mut second, _) = listener.accept().unwrap();
            let mut piece = [0; 4096];
            assert!(second.read(&mut piece).unwrap() > 0);
            second.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n").unwrap();
            // The body is still on its way when the other connection ends.
            match hints {
                "" => while matches!(first.read(&mut piece), Ok(1..)) {},
                hints => while first.write_all(hints.as_bytes()).is_ok() {},
            }
            tell.send(()).unwrap();
            second.write_all(&[b'x'; 100]).unwrap();
        });
        let outcome = quickly(|| http(&[HEDGE, "--timeout=8s", &url]));
        assert_eq!((outcome.code, outcome.stdout.len()), (Some(0), 100), "{outcome:?}");
        told.recv_timeout(Duration::from_secs(5)).unwrap();
    }
}

/// The file is gone when it is sent again.
#[test]
fn a_hedge_that_cannot_be_sent_ends_no_request_that_is_under_way() {
    let folder = Folder::new().file("body", "b");
    let file = folder.path().join("body");
    let server = Server::with(move |_, _| {
        std::fs::remove_file(&file).unwrap();
        Reply::ok("slow\n").late(Duration::from_millis(300))
    });
    let args = [HEDGE, "--idempotency-key=k", "-d", "@body", &server.url("/")];
    let outcome = quickly(|| http_in(&folder, &args));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "slow\n"), "{outcome:?}");
    assert_eq!(server.count(), 1);
}

#[test]
fn it_is_told() {
    let server = slow_then(Reply::ok("quick\n"));
    let outcome = quickly(|| http(&["-v", HEDGE, &server.url("/")]));
    let said = &outcome.stderr;
    assert!(
        said.contains("relent: attempt 2 of 4: a hedge, ") && said.contains(" after the first has started\n"),
        "{said}"
    );
    assert!(said.contains("relent: attempt 2: answered first\n"), "{said}");
    assert!(said.contains("relent: upstream: 2 attempts, 0 retries, 1 hedge\n"), "{said}");

    let server = slow_then(Reply::ok("quick\n"));
    let outcome = quickly(|| http(&["--json", HEDGE, &server.url("/")]));
    let events = events(&outcome);
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["hedge", "answered", "upstream", "end"]);
    assert_eq!(
        (&events[0]["attempt"], &events[1]["attempt"], &events[3]["attempts"]),
        (&2.into(), &2.into(), &2.into())
    );
    assert_eq!((&events[2]["hedges"], &events[2]["attempts"]), (&1.into(), &2.into()));
}

/// What may have been carried out is not sent a second time, unless the server knows that it is the same.
#[test]
fn what_changes_something_is_never_hedged_without_a_key() {
    let server = slow_then(Reply::ok("quick\n"));
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        for more in [&["--retry-unsafe"][..], &[]] {
            let outcome = http(&[more, &[HEDGE, "-d", "x", method, &server.url("/")]].concat());
            let why = format!("error: --hedge: {method} without an Idempotency-Key is sent once at a time\nhint: ");
            assert!(outcome.stderr.starts_with(&why) && outcome.code == Some(125), "{outcome:?}");
        }
    }
    assert_eq!(server.count(), 0);
    let outcome = quickly(|| http(&[HEDGE, "--idempotency-key", "-d", "x", &server.url("/")]));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "quick\n"), "{outcome:?}");
    let requests = server.requests();
    assert!(requests.len() == 2 && requests.iter().all(|request| request.body == b"x"));
    assert!(requests[0].header("idempotency-key").is_some());
    assert_eq!(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
}

/// A file is there for others, too.
#[test]
fn the_hedge_of_a_file_is_left_out_where_it_would_do_harm() {
    let file = "[policy.read]\nupstream = \"shop\"\n[upstream.shop]\nhedge = { after = \"20ms\" }\n";
    let folder = Folder::new().file("relent.toml", file);
    let server = Server::new(vec![Reply::ok("late\n").late(Duration::from_millis(300))]);
    let outcome = http_in(&folder, &["--policy", "#read", "-d", "x", &server.url("/")]);
    assert_eq!((outcome.code, outcome.stdout.as_str(), server.count()), (Some(0), "late\n", 1), "{outcome:?}");
    let said = "relent: shop: its hedge is left out: POST without an Idempotency-Key is sent once at a time\n";
    assert!(outcome.stderr.contains(said), "{outcome:?}");
    let outcome = http_in(&folder, &["--policy", "#read", &server.url("/")]);
    assert!(outcome.code == Some(0) && server.count() > 2, "{outcome:?}");
}

#[test]
fn the_budget_pays_for_hedges() {
    let server = Server::new(vec![Reply::ok("late\n").late(Duration::from_millis(300))]);
    let outcome = http(&["-v", HEDGE, "--budget=in_flight=0.0,floor=0", &server.url("/")]);
    assert_eq!((outcome.code, server.count()), (Some(0), 1), "{outcome:?}");
    assert!(outcome.stderr.contains("budget allows no retry now, and no hedge\n"), "{outcome:?}");
}

#[test]
fn hedges_are_attempts_and_have_their_limit() {
    let server = Server::new(vec![Reply::status(503).late(Duration::from_millis(100))]);
    let outcome = quickly(|| http(&["--max-attempts=3", HEDGE, &server.url("/")]));
    assert_eq!((outcome.code, server.count()), (Some(1), 3), "{outcome:?}");
    let server = Server::new(vec![Reply::ok("late\n").late(Duration::from_millis(300))]);
    let outcome = http(&["--max-attempts=1", HEDGE, &server.url("/")]);
    assert_eq!((outcome.code, server.count()), (Some(0), 1), "{outcome:?}");
}

/// As with gRPC: what passes starts the next at once, what does not pass ends all.
#[test]
fn a_failure_starts_the_hedge_or_ends_the_call() {
    let server = Server::new(vec![Reply::status(503), Reply::ok("quick\n")]);
    let outcome = quickly(|| http(&["--base=19s", "--cap=19s", "--hedge=after=19s", &server.url("/")]));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "quick\n"), "{outcome:?}");
    let server = slow_then(Reply::status(404));
    let outcome = quickly(|| http(&[HEDGE, &server.url("/")]));
    assert_eq!((outcome.code, server.count()), (Some(3), 2), "{outcome:?}");
}

#[test]
fn each_has_the_time_of_an_attempt() {
    let server = Server::new(vec![slow(), slow(), Reply::ok("third\n")]);
    let outcome = quickly(|| http(&["--attempt-timeout=300ms", HEDGE, &server.url("/")]));
    assert_eq!((outcome.code, outcome.stdout.as_str(), server.count()), (Some(0), "third\n", 3), "{outcome:?}");
    assert!(outcome.stderr.contains("no answer within 300ms"), "{outcome:?}");
    let server = Server::new(vec![slow()]);
    let outcome = quickly(|| http(&["--timeout=300ms", HEDGE, &server.url("/")]));
    assert_eq!((outcome.code, server.count()), (Some(124), 2), "{outcome:?}");
}

/// Whatever the loser had to say, the file has the winner's body alone; what goes on with a part is asked for once.
#[test]
fn bodies_are_not_mixed() {
    let folder = Folder::new();
    let server = Server::new(vec![
        Reply::new(200, &["ETag: \"a\""], "wrong wrong\n").late(Duration::from_millis(400)),
        Reply::new(200, &["ETag: \"b\""], "right right\n").paused(6, Duration::from_millis(600)),
    ]);
    let outcome = quickly(|| http_in(&folder, &["-o", "file", HEDGE, &server.url("/")]));
    assert_eq!((outcome.code, folder.read("file").as_str()), (Some(0), "right right\n"), "{outcome:?}");

    let (etag, range) = ("ETag: \"a\"", "Content-Range: bytes 4-8/9");
    let server = Server::new(vec![
        Reply::new(200, &[etag], "one, two\n").cut(5),
        Reply::new(206, &[etag, range], " two\n").late(Duration::from_millis(900)),
    ]);
    let outcome = quickly(|| http_in(&folder, &["-o", "file", "--hedge=after=400ms", &server.url("/")]));
    assert_eq!((outcome.code, server.count()), (Some(0), 2), "{outcome:?}");
    assert_eq!(folder.read("file"), "one, two\n");
}

/// As they were written, times included.
fn exact_events(args: &[&str]) -> Vec<serde_json::Value> {
    let output = command(&Folder::new(), &[&["http", "--json"], args].concat()).output().unwrap();
    let lines = String::from_utf8(output.stderr).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).filter(is_of_attempts).collect()
}

fn is_of_attempts(event: &serde_json::Value) -> bool {
    event["event"] == "attempt"
}

/// Which attempt an event tells of, with what status, and why it was the last.
fn told(event: &serde_json::Value) -> (Option<u64>, Option<u64>, Option<&str>) {
    (event["attempt"].as_u64(), event["status"].as_u64(), event["reason"].as_str())
}

#[test]
fn each_failure_is_told_as_that_of_its_own_attempt() {
    let late = Duration::from_millis(500);
    let server = Server::new(vec![Reply::status(500).late(late), Reply::status(503)]);
    let events = exact_events(&["--max-attempts=2", HEDGE, &server.url("/")]);
    assert_eq!(
        events.iter().map(told).collect::<Vec<_>>(),
        [(Some(2), Some(503), None), (Some(1), Some(500), Some("attempts"))]
    );
    let ran = |event: &serde_json::Value| event["ran_ms"].as_u64().unwrap();
    // The second began 50 ms after the first.
    assert!(ran(&events[1]) >= 500 && ran(&events[0]) + 50 <= events[0]["elapsed_ms"].as_u64().unwrap(), "{events:?}");

    // The first answers while its hedge is under way, and breaks off then.
    let server = Server::new(vec![Reply::ok("half of it\n").cut(5).late(late), slow()]);
    let events = exact_events(&["--max-attempts=2", HEDGE, &server.url("/")]);
    assert_eq!(events.iter().map(told).collect::<Vec<_>>(), [(Some(1), None, Some("attempts"))]);
    assert!(ran(&events[0]) >= 500, "{events:?}");
}

/// What was told with a delay is not told again because the upstream lets nothing more through.
#[test]
fn no_failure_is_told_twice() {
    let server = Server::new(vec![Reply::status(503)]);
    let args = ["--base=10ms", "--breaker=consecutive=1,open_for=1h", &server.url("/")];
    let events = exact_events(&args);
    assert_eq!(events.iter().map(told).collect::<Vec<_>>(), [(Some(1), Some(503), None)]);
}

/// A server that was asked twice at once says to one when to come back, and fails the other.
#[test]
fn who_was_told_to_wait_waits_whichever_attempt_fails_last() {
    let told = |header| Reply::new(503, &[header], "").late(Duration::from_millis(300));
    let late = Duration::from_millis(700);
    let lasts = [
        Reply::status(503).late(late),
        Reply::nothing().late(late),
        Reply::ok("half of it\n").cut(5).late(late),
        Reply::new(503, &["Retry-After: 1"], "").late(late),
        slow(),
    ];
    let args = ["--jitter=none", "--attempt-timeout=1s", HEDGE];
    for last in lasts {
        let server = Server::new(vec![told("Retry-After: 3000"), last.clone(), Reply::ok("too early\n")]);
        let outcome = quickly(|| http(&[&args, &[server.url("/").as_str()][..]].concat()));
        assert_eq!((outcome.code, server.count()), (Some(5), 2), "{last:?}: {outcome:?}");
        assert!(outcome.stderr.contains("told to wait 49m59."), "what has passed is not waited for: {outcome:?}");
        assert!(outcome.stderr.contains(" (Retry-After: 3000), longer than the max_pushback of 2m"), "{outcome:?}");
    }
    let server = Server::new(vec![told("Retry-After-Ms: 1500"), Reply::nothing().late(late), Reply::ok("in time\n")]);
    let began = Instant::now();
    let outcome = quickly(|| http(&[&args, &[server.url("/").as_str()][..]].concat()));
    assert_eq!((outcome.code, outcome.stdout.as_str(), server.count()), (Some(0), "in time\n", 3), "{outcome:?}");
    assert!(began.elapsed() >= Duration::from_millis(1800), "{:?}", began.elapsed());

    let server = Server::new(vec![told("Retry-After-Ms: 200"), Reply::nothing().late(late), Reply::ok("late\n")]);
    let outcome = quickly(|| http(&[&args, &[server.url("/").as_str()][..]].concat()));
    assert!(outcome.stderr.contains("before the answer, transient; next in 20ms\n"), "it has passed: {outcome:?}");
}
