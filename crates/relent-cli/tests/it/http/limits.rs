//! Nothing waits for ever, and a limit is kept to the moment.

use super::{
    command, expect, finish, http,
    server::{Reply, Server},
};
use crate::binary::{Folder, said_in};
use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt,
    process::Stdio,
    sync::mpsc::channel,
    time::{Duration, Instant},
};

fn silent() -> Server {
    Server::new(vec![Reply::ok("late").late(Duration::from_secs(20))])
}

#[test]
fn a_timeout_ends_everything_at_that_moment() {
    let server = silent();
    let began = Instant::now();
    let stderr = "\
error: gave up after 1 attempt in TIME: out of time, the --timeout of 400ms is over
hint: --timeout gives it more time
";
    expect(&http(&["--timeout=400ms", &server.url("/")]), 124, "", stderr);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn the_time_that_the_caller_leaves_is_obeyed() {
    let server = silent();
    let folder = Folder::new();
    let mut command = command(&folder, &["http", &server.url("/")]);
    command.env("RELENT_DEADLINE_MS", "300");
    let outcome = finish(command);
    assert_eq!(outcome.code, Some(124), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("what RELENT_DEADLINE_MS leaves of 300ms is over"), "{}", outcome.stderr);
}

#[test]
fn silence_ends_an_attempt_and_max_elapsed_cuts_nothing() {
    let server = silent();
    let stderr = "\
relent: attempt 1 of 2: no head of an answer came from HOST for 200ms, transient; next in 10ms
error: gave up after 2 attempts in TIME: out of attempts (no head of an answer came from HOST for 200ms)
hint: --idle-timeout gives it more time, or unlimited
";
    expect(&http(&["--idle-timeout=200ms", "--max-attempts=2", &server.url("/")]), 1, "", stderr);
    let slow = Server::new(vec![Reply::ok("slow").late(Duration::from_millis(400))]);
    expect(&http(&["--max-elapsed=100ms", &slow.url("/")]), 0, "slow", "");
}

#[test]
fn a_body_that_stops_coming_is_silence_too() {
    let server = Server::new(vec![Reply::ok("hello\n").cut(3).hang(), Reply::ok("hello\n")]);
    let stderr = "\
relent: attempt 1 of 4: nothing more of the body came for 200ms, after 3 of 6 bytes, transient; next in 10ms
relent: succeeded after 2 attempts in TIME
";
    expect(&http(&["--idle-timeout=200ms", &server.url("/")]), 0, "hello\n", stderr);
}

#[test]
fn standard_input_that_never_ends_has_a_limit() {
    let folder = Folder::new();
    let mut command = command(&folder, &["http", "--timeout=200ms", "-d", "@-", "localhost:1"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let said = String::from_utf8(output.stderr).unwrap();
    let time = said.strip_prefix("error: out of time: standard input has not ended within ").unwrap_or_default();
    let decimals = time.split_once('.').map_or(0, |(_, rest)| rest.find(|c: char| !c.is_ascii_digit()).unwrap());
    assert!(output.status.code() == Some(124) && time.ends_with("ms\n") && decimals <= 1, "{said}");
}

#[test]
fn whoever_runs_it_is_told_what_giving_up_means() {
    for (status, word) in [(503, "exit 1: permanent"), (404, "exit 3: permanent")] {
        let server = Server::new(vec![Reply::status(status)]);
        let folder = Folder::new().file("verdict", "");
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let mut command = command(&folder, &["http", "-q", "--base=5ms", "--max-attempts=2", &server.url("/")]);
        command.env("RELENT_VERDICT", folder.path().canonicalize().unwrap().join("verdict"));
        let _ = finish(command);
        assert_eq!(said_in(&folder.path().join("verdict")), [word]);
    }
}

#[test]
fn the_key_of_the_caller_is_the_key_of_the_request() {
    let server = Server::new(vec![Reply::ok("")]);
    let folder = Folder::new();
    let mut command = command(&folder, &["http", "POST", "--idempotency-key", &server.url("/")]);
    command.env("RELENT_KEY", "outer-7");
    assert_eq!(finish(command).code, Some(0));
    assert_eq!(server.requests()[0].header("idempotency-key"), Some("\"outer-7\""));
}

/// Another in its place would be another in each attempt of who runs it.
#[test]
fn a_key_of_the_caller_that_is_none_is_refused() {
    let server = Server::new(vec![Reply::ok("")]);
    for key in ["bestellung-\u{fc}", &"k".repeat(300), "a\tb"] {
        let folder = Folder::new();
        let mut command = command(&folder, &["http", "POST", "--idempotency-key", &server.url("/")]);
        command.env("RELENT_KEY", key);
        let refused = finish(command);
        assert_eq!(refused.code, Some(125), "{key}");
        assert!(refused.stderr.contains("RELENT_KEY: "), "{}", refused.stderr);
    }
    assert!(server.requests().is_empty());
}

/// What `-w` prints, too: who reads it has the pipe full and does not read.
#[test]
fn last_words_wait_for_no_reader() {
    let (server, folder) = (silent(), Folder::new());
    let (_reader, full) = rustix::pipe::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while rustix::io::write(&full, &[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let url = server.url("/");
    let mut command = command(&folder, &["http", "-w", "%{http_code}", "--timeout", "200ms", &url]);
    let mut relent = command.stdout(full).stderr(Stdio::null()).spawn().unwrap();
    let (pid, (tell, ended)) = (relent.id(), channel());
    std::thread::spawn(move || tell.send(relent.wait().unwrap()));
    let status = ended.recv_timeout(Duration::from_secs(10)).unwrap_or_else(|_| {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL).unwrap();
        panic!("it waits for who does not read");
    });
    assert_eq!(status.code(), Some(124));
}
