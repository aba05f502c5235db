//! What a server has asked of who comes back, to wait or not to, counts in all layers, whatever ends who has heard it.

use super::{
    command, finish,
    layers::{RELENT, THREE},
    server::{Reply, Server},
};
use crate::binary::Folder;
use std::time::Duration;

/// How long the server wants to be left alone counts, though whoever waits for that is ended.
#[test]
fn who_is_ended_in_a_wait_that_a_server_has_told_says_so() {
    let later = Reply::new(503, &["Retry-After: 900"], "");
    for line in [
        "timeout 1 HTTP",
        "timeout 1 HTTP; exit 7",
        "timeout 1 RUN HTTP",
        "timeout 1 RUN timeout 9 HTTP; exit 7",
        // What is around the run in between has ended before it.
        "timeout 1 sh -c 'RUN HTTP; true'; exit 7",
        "timeout -s KILL 2 RUN HTTP; exit 7",
        // It has succeeded, and left who waits, or will.
        "RUN sh -c 'HTTP & sleep 0.5'; exit 7",
        "RUN sh -c 'HTTP & sleep 0.1'; sleep 1; exit 7 # LATE",
    ] {
        let late = if line.contains("LATE") { Duration::from_millis(500) } else { Duration::ZERO };
        let server = Server::new(vec![later.clone().late(late)]);
        let run = format!("{RELENT} run -q --max-pushback=1h");
        let http = format!("{RELENT} http -q --max-pushback=1h {}", server.url("/"));
        let line = line.replace("HTTP", &http).replace("RUN", &format!("{run} --"));
        let args = [&["run", "-q", "--max-pushback=1s"], &THREE[..], &["--", "sh", "-c", &line]].concat();
        let outcome = finish(command(&Folder::new(), &args));
        assert_eq!(server.count(), 1, "{line}: {outcome:?}");
    }
}

#[test]
fn a_wait_that_was_ended_makes_nothing_of_what_is_known_of_an_end() {
    let [post, later] = [vec![Reply::status(503)], vec![Reply::new(503, &["Retry-After: 1"], "")]].map(Server::new);
    let [post_to, get_from] = [post.url("/"), later.url("/")];
    let http = format!("{RELENT} http -q");
    let line = format!("{http} -d x {post_to}; rc=$?; timeout 0.3 {http} {get_from}; exit $rc");
    let outcome = finish(command(&Folder::new(), &[&["run", "-q"], &THREE[..], &["--", "sh", "-c", &line]].concat()));
    assert_eq!((post.count(), outcome.code), (1, Some(6)), "{outcome:?}");
    // What the run was told to end for, it ends for.
    let line = format!("timeout 0.3 {http} {get_from}; exit 64");
    let args = [&["run", "-q", "--stop-on-exit", "64"], &THREE[..], &["--", "sh", "-c", &line]].concat();
    let before = later.count();
    assert_eq!(finish(command(&Folder::new(), &args)).code, Some(64));
    assert_eq!(later.count() - before, 1);
    // And what it was told to try again for, however long the wait was, it tries again for.
    let later = Server::new(vec![Reply::new(503, &["Retry-After: 900"], "")]);
    let get = format!("timeout 0.3 {http} --max-pushback=1h {}", later.url("/"));
    for (flags, end) in [
        (&["--retry-on-exit", "7"][..], "exit 7"),
        (&[], "echo 'exit 7: transient' >> $RELENT_VERDICT; exit 7"),
        (&[], "echo 'exit 1-255:' >> $RELENT_VERDICT; exit 7"),
    ] {
        let before = later.count();
        let line = format!("{get}; {end}");
        let args = [&["run", "-q", "--max-pushback=1s"], flags, &THREE[..], &["--", "sh", "-c", &line]].concat();
        assert_eq!(finish(command(&Folder::new(), &args)).code, Some(7), "{end}");
        assert_eq!(later.count() - before, 3, "{end}");
    }
}

/// What was waited for is waited for once, by whoever was told of it.
#[test]
fn a_wait_that_is_over_counts_for_nobody() {
    let wait = || Reply::new(503, &["Retry-After: 1"], "");
    for (replies, line, count) in [
        // It was said beside a success.
        (vec![Reply::new(200, &["Retry-After: 900"], "ok")], "HTTP; exit 7", 3),
        // Whoever was in it was killed, and the script takes it back, and so does what succeeds.
        (
            vec![Reply::new(503, &["Retry-After: 900"], "")],
            "RUN sh -c \"timeout -s KILL 0.3 HTTP; echo exit 1-255: >> \\$RELENT_VERDICT\"; exit 7",
            3,
        ),
        // Or the run in between was ended, and the script copes with that.
        (
            vec![Reply::new(503, &["Relent-Retry: no"], "")],
            "timeout 1 RUN sh -c \"trap : TERM; HTTP; rc=\\$?; sleep 9 & wait; exit \\$rc\" || exit 7",
            3,
        ),
        // Or it was left by one that had succeeded, and has succeeded then.
        (
            vec![Reply::new(200, &["Relent-Retry: no"], "ok").late(Duration::from_millis(300))],
            "RUN sh -c \"HTTP >/dev/null 2>&1 &\"; sleep 0.8; exit 7",
            3,
        ),
        // Or has failed then, which nobody hears, and may be sent again.
        (
            vec![Reply::status(404).late(Duration::from_millis(300))],
            "RUN sh -c \"HTTP -w x >/dev/null 2>&1 &\"; sleep 0.8; exit 7",
            3,
        ),
        // Whoever was in it was killed, and the run in between has waited for them.
        (
            vec![wait(), Reply::ok("ok")],
            "RUN sh -c \"[ \\$RELENT_ATTEMPT = 2 ] || timeout -s KILL 0.3 HTTP\"; exit 7",
            3,
        ),
        // Nothing of it counts more than what the script says.
        (
            vec![wait()],
            "RUN sh -c \"timeout -s KILL 0.3 HTTP; echo exit 1-255: >> \\$RELENT_VERDICT; exit 8\"; exit 7",
            6,
        ),
    ] {
        let server = Server::new(replies);
        let http = format!("{RELENT} http -q {}", server.url("/"));
        let line =
            line.replace("HTTP", &http).replace("RUN", &format!("{RELENT} run -q --max-attempts=2 --base=5ms --"));
        let args = [&["run", "-q", "--max-pushback=100ms"], &THREE[..], &["--", "sh", "-c", &line]].concat();
        let outcome = finish(command(&Folder::new(), &args));
        assert_eq!((server.count(), outcome.code), (count, Some(7)), "{line}: {}", outcome.stderr);
    }
}

/// What the server says of coming back counts from when it is said, though whoever hears it is ended before all of its answer is there.
#[test]
fn what_the_server_said_counts_before_its_page_is_there() {
    let page = |status: &str, header: &str| {
        Reply::raw(format!("HTTP/1.1 {status} X\r\n{header}\r\nContent-Length: 9\r\n\r\npage")).hang()
    };
    let later = "Retry-After: 900";
    for (replies, flags, count) in [
        (vec![page("503", later)], "--fail-with-body", 1),
        (vec![page("503", later)], "--fail-with-body --max-attempts=1", 1),
        (vec![page("503", "Relent-Retry: no")], "--fail-with-body", 1),
        (vec![page("404", "A: b")], "--fail-with-body", 1),
        (vec![page("200", later)], "", 1),
        (vec![page("200", "Relent-Retry: no")], "", 1),
        (vec![page("200", "A: b")], "", 3),
        // Its own end is another thing, which the script copes with, or has as its own.
        (vec![page("200", later)], "--timeout=100ms", 3),
        (vec![page("200", later)], "-o /dev/full --idle-timeout=100ms --max-attempts=1", 3),
        // Another one is under way.
        (vec![Reply::nothing().hang(), Reply::new(503, &[later], "")], "--hedge after=20ms", 2),
    ] {
        let server = Server::new(replies);
        let line = format!("timeout 0.5 {RELENT} http -q {flags} {}; exit 7", server.url("/"));
        let args = [&["run", "-q", "--max-pushback=1s"], &THREE[..], &["--", "sh", "-c", &line]].concat();
        let outcome = finish(command(&Folder::new(), &args));
        assert_eq!((server.count(), outcome.code), (count, Some(7)), "{line}: {}", outcome.stderr);
    }
}

/// How long the server wants to be left alone counts, though its page could not be written.
#[test]
fn what_the_server_said_counts_whatever_became_of_its_page() {
    let (page, long) = ("page", "page".repeat(100_000));
    for (status, header, page, line, count) in [
        (503, "Retry-After: 900", page, "exec HTTP --max-attempts=1 --fail-with-body URL >/dev/full", 1),
        (200, "Retry-After: 900", page, "exec HTTP URL >/dev/full", 1),
        (200, "Relent-Retry: no", page, "exec HTTP URL >/dev/full", 1),
        (200, "A: b", page, "exec HTTP URL >/dev/full", 3),
        (200, "Retry-After: 900", &long, "HTTP URL | sleep 60", 1),
        (200, "Relent-Retry: no", &long, "HTTP URL | sleep 60", 1),
        (200, "A: b", &long, "HTTP URL | sleep 60", 3),
        (503, "Retry-After: 900", &long, "HTTP --max-attempts=1 --fail-with-body URL | sleep 60", 1),
        (404, "A: b", &long, "HTTP --fail-with-body URL | sleep 60", 1),
        (200, "A: b", &long, "HTTP -d x URL | sleep 60", 1),
        (500, "A: b", &long, "HTTP -d x --fail-with-body URL | sleep 60", 1),
        // What came of it is known, and is there, or nobody wants to see it.
        (200, "A: b", &long, "HTTP -d x URL | head -c 1; exit 7", 3),
        (200, "Relent-Retry: no", page, "HTTP URL; exit 7", 3),
    ] {
        let server = Server::new(vec![Reply::new(status, &[header], page)]);
        let line = line.replace("HTTP", &format!("{RELENT} http -q")).replace("URL", &server.url("/"));
        let limits = ["--max-pushback=1s", "--attempt-timeout=500ms"];
        let args = [&["run", "-q"], &THREE[..], &limits, &["--", "sh", "-c", &line]].concat();
        let outcome = finish(command(&Folder::new(), &args));
        assert_eq!(server.count(), count, "{header}, {line}: {outcome:?}");
    }
}
