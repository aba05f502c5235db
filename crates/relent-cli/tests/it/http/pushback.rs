//! What servers say about coming back: obeyed, refused or ignored, and what other clients make of the same headers.

use super::{
    expect, http,
    server::{Reply, Server},
};
use std::time::{Duration, Instant, SystemTime};

/// The answers to a 503 with these headers, and how long it took.
fn refused(headers: &[&str], args: &[&str]) -> (crate::binary::Outcome, Duration, usize) {
    let server = Server::new(vec![Reply::new(503, headers, ""), Reply::ok("ok\n")]);
    let url = server.url("/");
    let mut all = args.to_vec();
    all.push(&url);
    let began = Instant::now();
    let outcome = http(&all);
    (outcome, began.elapsed(), server.count())
}

#[test]
fn a_second_is_waited_for() {
    let (outcome, took, _) = refused(&["Retry-After: 1"], &[]);
    let stderr = "\
relent: attempt 1 of 4: 503 Service Unavailable, told to wait 1s (Retry-After: 1); next in 1s
relent: succeeded after 2 attempts in TIME
";
    expect(&outcome, 0, "ok\n", stderr);
    assert!(took >= Duration::from_secs(1), "no gateway that was measured waits for it: {took:?}");
}

#[test]
fn with_jitter_a_little_is_added_and_nothing_taken_away() {
    let (outcome, took, _) = refused(&["Retry-After-Ms: 200"], &["--jitter=full"]);
    assert_eq!(outcome.code, Some(0));
    assert!(took >= Duration::from_millis(200), "{took:?}");
    let said = outcome.stderr.split("next in ").nth(1).unwrap().split("ms").next().unwrap();
    let delay: f64 = said.parse().unwrap();
    assert!((200.0..220.0).contains(&delay), "{delay}");
}

#[test]
fn a_turn_is_kept_exactly_and_counts_more_than_a_wait_beside_it() {
    let (outcome, took, requests) = refused(&["Relent-Turn: 300", "Retry-After: 9"], &["--jitter=full"]);
    let stderr = "\
relent: attempt 1 of 4: 503 Service Unavailable, its turn is in 300ms (Relent-Turn: 300); next in 300ms
relent: succeeded after 2 attempts in TIME
";
    expect(&outcome, 0, "ok\n", stderr);
    assert!(took >= Duration::from_millis(300) && requests == 2, "{took:?}");
}

#[test]
fn dates_in_all_three_forms_are_waited_for() {
    let at = SystemTime::now() + Duration::from_secs(100_000);
    let fixed = httpdate::fmt_http_date(at);
    let part = |range: std::ops::Range<usize>| &fixed[range];
    let names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let long = names.iter().find(|name| name.starts_with(part(0..3))).unwrap();
    let rfc850 = format!("{long}, {}-{}-{} {} GMT", part(5..7), part(8..11), part(14..16), part(17..25));
    let day = part(5..7).trim_start_matches('0');
    let asctime = format!("{} {} {day:>2} {} {}", part(0..3), part(8..11), part(17..25), part(12..16));
    for date in [fixed.clone(), rfc850, asctime] {
        let (outcome, took, requests) = refused(&[&format!("Retry-After: {date}")], &[]);
        assert_eq!((outcome.code, requests), (Some(5), 1), "{date}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(&format!("(Retry-After: {date}), longer than the max_pushback of 2m")));
        assert!(outcome.stderr.contains("told to wait 27h4"), "{}", outcome.stderr);
        assert!(took < Duration::from_secs(20));
    }
}

#[test]
fn too_long_fails_now_with_the_value() {
    let (outcome, _, requests) = refused(&["Retry-After: 2592000"], &[]);
    let stderr = "\
error: gave up after 1 attempt in TIME: told to wait 720h (Retry-After: 2592000), longer than the max_pushback of 2m (503 Service Unavailable)
hint: --max-pushback 720h waits for it
";
    expect(&outcome, 5, "", stderr);
    assert_eq!(requests, 1, "got 14.6.6, axios-retry 4.5.0: retried within milliseconds");

    let (outcome, _, requests) = refused(&["Retry-After: 30"], &["--max-elapsed=10s"]);
    let stderr = "\
error: gave up after 1 attempt in TIME: told to wait 30s (Retry-After: 30), past the max_elapsed of 10s (503 Service Unavailable)
hint: --max-elapsed gives it more time
";
    expect(&outcome, 5, "", stderr);
    assert_eq!(requests, 1);
}

#[test]
fn numbers_that_overflow_others_are_too_long() {
    for huge in ["100000000000", "18446744073709551616", "99999999999999999999999999999999999999"] {
        let (outcome, took, requests) = refused(&[&format!("Retry-After: {huge}")], &[]);
        assert_eq!((outcome.code, requests), (Some(5), 1), "go-retryablehttp, axios-retry: {huge}");
        assert!(took < Duration::from_secs(20));
    }
}

#[test]
fn nonsense_leaves_the_policys_own_delay() {
    for nonsense in [
        "0",
        "-1",
        "2.5",
        "abc",
        "",
        "Mon, 01 Jan 1900 00:00:00 GMT",
        "Fri, 32 Dec 1999 23:59:59 GMT",
        "Fri, 32 Dec 1999",
        "1, 2",
    ] {
        let (outcome, took, _) = refused(&[&format!("Retry-After: {nonsense}")], &[]);
        assert_eq!(outcome.code, Some(0), "{nonsense}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("; next in 10ms\n"), "{nonsense}: {}", outcome.stderr);
        assert!(took < Duration::from_secs(5), "urllib3 sleeps 6 hours: {nonsense}");
    }
}

#[test]
fn of_two_headers_the_longer_counts() {
    let (outcome, _, _) = refused(&["Retry-After: 0", "Retry-After: 3600"], &[]);
    let stderr = "\
error: gave up after 1 attempt in TIME: told to wait 1h (Retry-After: 3600), longer than the max_pushback of 2m (503 Service Unavailable)
hint: --max-pushback 1h waits for it
";
    expect(&outcome, 5, "", stderr);
    let (outcome, _, _) = refused(&["Retry-After: nonsense", "Retry-After-Ms: 30", "X-Ms-Retry-After-Ms: 40"], &[]);
    let stderr = "\
relent: attempt 1 of 4: 503 Service Unavailable, told to wait 40ms (X-Ms-Retry-After-Ms: 40); next in 40ms
relent: succeeded after 2 attempts in TIME
";
    expect(&outcome, 0, "ok\n", stderr);
}

#[test]
fn sixty_four_kib_of_header() {
    let nines = format!("Retry-After: {}", "9".repeat(65_536));
    let (outcome, _, requests) = refused(&[&nines], &[]);
    assert_eq!((outcome.code, requests), (Some(5), 1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("(Retry-After: 9999999999999999999999999999999999999999...)"));
    assert!(outcome.stderr.len() < 500, "a message stays a message");
    let letters = format!("Retry-After: {}", "a".repeat(65_536));
    let (outcome, _, _) = refused(&[&letters], &[]);
    assert!(outcome.stderr.contains("; next in 10ms\n"), "{}", outcome.stderr);
}

#[test]
fn told_not_to_come_back() {
    for header in
        ["Relent-Retry: no", "X-Should-Retry: false", "X-Envoy-Overloaded: true", "Grpc-Retry-Pushback-Ms: -1"]
    {
        let (outcome, _, requests) = refused(&[header], &[]);
        let stderr =
            format!("error: gave up after 1 attempt in TIME: told not to retry ({header}) (503 Service Unavailable)\n");
        expect(&outcome, 4, "", &stderr);
        assert_eq!(requests, 1, "{header}");
    }
}

/// A head that came is heard, for whatever reason the attempt fails then.
#[test]
fn what_is_said_counts_whatever_fails() {
    const TAG: &str = "ETag: \"v1\"";
    const LATE: Duration = Duration::from_secs(30);
    let broken = || Reply::new(200, &[TAG], "0123456789").cut(6);
    type Answer = fn(&str) -> Reply;
    let answers: [(&str, Option<Reply>, u16, Answer); 8] = [
        ("another rest", Some(broken()), 416, |word| Reply::new(416, &["Content-Range: bytes */7", word], "")),
        ("another part", Some(broken()), 206, |word| Reply::new(206, &["Content-Range: bytes 1-2/7", word], "12")),
        ("no rest", Some(broken()), 302, |word| Reply::new(302, &["Location: /wait", word], "")),
        ("not asked for", None, 206, |word| Reply::new(206, &["Content-Range: bytes 0-1/7", word], "01")),
        ("breaks off", None, 200, |word| Reply::new(200, &[word], "0123456789").cut(6)),
        ("is silent", None, 200, |word| Reply::new(200, &[word], "0123456789").cut(6).hang()),
        ("is late", None, 200, |word| Reply::new(200, &[word], "0123456789").paused(6, LATE)),
        ("gzip that ends", None, 200, |word| {
            Reply::raw(format!("HTTP/1.1 200 X\r\n{word}\r\nContent-Encoding: gzip\r\n\r\n\x1f"))
        }),
    ];
    for (what, before, status, answer) in answers {
        let stop = format!("--stop-on-status={status}");
        for (word, more, code, said) in [
            ("Retry-After: 3000", None, 5, "told to wait "),
            ("Relent-Retry: no", None, 4, "told not to retry (Relent-Retry: no)"),
            ("X: y", Some(stop.as_str()), 3, "permanent failure"),
        ] {
            let replies = before.clone().into_iter().chain([answer(word), Reply::ok("too early\n")]).collect();
            let server = Server::new(replies);
            let url = server.url("/");
            let limits = if what == "is silent" { "--idle-timeout=300ms" } else { "--attempt-timeout=600ms" };
            let args: Vec<_> = [limits, "--compressed", &url].into_iter().chain(more).collect();
            let outcome = http(&args);
            let count = 1 + usize::from(before.is_some());
            assert_eq!((outcome.code, server.count()), (Some(code), count), "{what}, {word}: {outcome:?}");
            assert!(outcome.stderr.contains(said), "{what}, {word}: {outcome:?}");
        }
    }
}

#[test]
fn a_long_pushback_lifts_no_limit() {
    let server = Server::new(vec![Reply::new(503, &["Retry-After-Ms: 20"], "")]);
    let outcome = http(&["--max-attempts=3", "-q", &server.url("/")]);
    assert_eq!((outcome.code, server.count()), (Some(1), 3), "backon, backoff: retried for ever");
}
