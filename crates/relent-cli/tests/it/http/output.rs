//! What goes to stdout and to files.

use super::{
    expect, http, http_in,
    server::{Reply, Server},
};
use crate::binary::{Folder, shown_on, size};
use std::{fs, process::Stdio, time::Duration};

#[test]
fn the_body_of_a_failure_is_shown_only_if_asked_for() {
    let server = Server::new(vec![Reply::new(500, &[], "first\n"), Reply::new(404, &[], "last\n")]);
    let stderr = "\
relent: attempt 1 of 4: 500 Internal Server Error, transient; next in 10ms
error: gave up after 2 attempts in TIME: permanent failure (404 Not Found)
";
    expect(&http(&["--fail-with-body", &server.url("/")]), 3, "last\n", stderr);
}

#[test]
fn the_body_of_a_503_that_is_not_retried_is_not_lost() {
    // pingora loses it.
    let server = Server::new(vec![Reply::new(503, &[], "try tomorrow\n")]);
    let outcome = http(&["-q", "POST", "--fail-with-body", &server.url("/")]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(6), "try tomorrow\n"));
}

#[test]
fn the_body_of_a_failure_never_goes_to_the_file() {
    let folder = Folder::new().file("file", "old");
    let server = Server::new(vec![Reply::new(404, &[], "not here\n")]);
    let outcome = http_in(&folder, &["-q", "--fail-with-body", "-o", "file", &server.url("/")]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), "not here\n"));
    assert_eq!(folder.read("file"), "old");
}

#[test]
fn a_body_of_a_failure_that_breaks_off_is_shown_as_far_as_it_came() {
    let server = Server::new(vec![Reply::new(404, &[], "not here\n").cut(5)]);
    let outcome = http(&["-q", "--fail-with-body", &server.url("/")]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), "not "));
}

#[test]
fn not_modified_leaves_the_file() {
    let folder = Folder::new().file("file", "old");
    let server = Server::new(vec![Reply::raw("HTTP/1.1 304 Not Modified\r\n\r\n")]);
    let condition = "If-None-Match: \"v1\"";
    expect(&http_in(&folder, &["-H", condition, "-o", "file", &server.url("/")]), 0, "", "");
    assert_eq!((folder.read("file").as_str(), folder.names()), ("old", vec!["file".to_owned()]));
}

#[test]
fn an_empty_body_makes_an_empty_file() {
    let folder = Folder::new();
    let server = Server::new(vec![Reply::ok("")]);
    expect(&http_in(&folder, &["-o", "file", &server.url("/")]), 0, "", "");
    assert_eq!(folder.read("file"), "");
}

#[test]
fn a_dash_is_stdout_and_a_device_a_device() {
    let server = Server::new(vec![Reply::ok("hello\n")]);
    expect(&http(&["-o", "-", &server.url("/")]), 0, "hello\n", "");
    expect(&http(&["-o", "/dev/null", &server.url("/")]), 0, "", "");
}

const GONE: &str = "error: gave up after 1 attempt in TIME: permanent failure (404 Not Found)\n";

#[test]
fn the_head_alone() {
    let server =
        Server::new(vec![Reply::status(503), Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-Id: 7\r\n\r\n")]);
    let head = "HTTP/1.1 200 OK\ncontent-length: 6\nx-id: 7\n";
    expect(&http(&["-I", "-q", &server.url("/")]), 0, head, "");
    assert_eq!(server.requests()[0].line(), "HEAD / HTTP/1.1");
    let server = Server::new(vec![Reply::raw("HTTP/1.1 404 Not Found\r\nX-Id: 7\r\n\r\n")]);
    expect(&http(&["-I", "--fail-with-body", &server.url("/")]), 3, "HTTP/1.1 404 Not Found\nx-id: 7\n", GONE);
}

#[test]
fn a_reader_that_goes_away_ends_it_as_sigpipe_would() {
    let folder = Folder::new();
    let body = "x".repeat(1 << 20);
    let server = Server::new(vec![Reply::ok(&body)]);
    let mut command = super::command(&folder, &["http", &server.url("/")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(141), ""));
}

#[test]
fn on_a_terminal_a_long_wait_is_counted_down_and_a_long_body_has_a_bar() {
    let late = Reply::new(503, &["Retry-After: 1"], "");
    let slow = Reply::ok("x".repeat(100_000)).paused(50_000, Duration::from_millis(1200));
    let server = Server::new(vec![late, slow]);
    let folder = Folder::new();
    let mut command = super::command(&folder, &["http", "--jitter=none", "-o", "file", &server.url("/")]);
    command.env("TERM", "xterm");
    let (shown, code) = shown_on(None, |terminal| command.stderr(terminal));
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("\r\u{1b}[Krelent: next attempt in 1s"), "{shown:?}");
    assert!(shown.contains("/97.66 KiB"), "a bar: {shown:?}");
    assert!(super::filtered(&shown).ends_with("relent: succeeded after 2 attempts in TIME\r\n"), "{shown:?}");
}

/// Of the terminal that it is shown on, wherever the body goes.
#[test]
fn the_bar_is_shorter_than_a_line() {
    let server = Server::new(vec![Reply::ok("x".repeat(100_000)).paused(50_000, Duration::from_millis(700))]);
    let folder = Folder::new();
    let mut command = super::command(&folder, &["http", &server.url("/")]);
    command.env("TERM", "xterm").stdout(Stdio::null());
    let (shown, code) = shown_on(Some(&size(24, 60)), |terminal| command.stderr(terminal));
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("/97.66 KiB"), "{shown:?}");
    for frame in shown.split("\r\u{1b}[K") {
        assert!(frame.chars().count() < 60, "{frame:?}");
    }
}

#[test]
fn a_countdown_is_shorter_than_a_line() {
    let server = Server::new(vec![Reply::new(503, &["Retry-After: 1"], ""), Reply::ok("")]);
    let (folder, url) = (Folder::new(), server.url("/"));
    for args in [
        &["http", "--jitter=none", "-o", "/dev/null", &url][..],
        &["run", "--max-attempts=2", "--jitter=none", "--base=1s", "--", "false"],
    ] {
        let mut command = super::command(&folder, args);
        command.env("TERM", "xterm");
        let (shown, _) = shown_on(Some(&size(24, 20)), |terminal| command.stderr(terminal));
        let frames: Vec<&str> = shown.split("\r\u{1b}[K").filter(|frame| !frame.contains('\n')).collect();
        assert!(frames.iter().any(|frame| frame.starts_with("relent: ")), "{shown:?}");
        assert!(frames.iter().all(|frame| frame.chars().count() < 20), "{shown:?}");
    }
}

/// What a terminal of its own shows of the standard output, and what to exit with.
fn on_a_terminal(folder: &Folder, args: &[&str]) -> (String, Option<i32>) {
    let mut command = super::command(folder, &[&["http", "-q", "--max-attempts=1"], args].concat());
    command.stderr(Stdio::null());
    let (shown, code) = shown_on(None, |terminal| command.stdout(terminal));
    (shown.replace("\r\n", "\n"), code)
}

/// A body that was meant for a file, or of which nobody thought that it would be shown, is one for a terminal now.
#[test]
fn on_a_terminal_no_body_that_is_no_text_is_shown_unless_asked_for() {
    let binary = b"x\0\x1b]0;title\x07";
    let elsewhere = ["Location: /elsewhere", "X-Title: \u{9b}0;title"];
    for (flags, status) in [
        (&["--fail-with-body", "-o", "file"][..], 404),
        (&["--fail-with-body", "-o", "/dev/null"], 404),
        (&["--fail-with-body"], 404),
        (&["-o", "file"], 302),
        (&["-i", "-o", "file"], 302),
        (&["-o", "/dev/null"], 302),
        (&[], 302),
        (&[], 200),
    ] {
        let folder = Folder::new();
        let server = Server::new(vec![Reply::new(status, &elsewhere, binary)]);
        let (shown, code) = on_a_terminal(&folder, &[flags, &[&server.url("/")]].concat());
        assert_eq!((shown.as_str(), code), ("", Some(125)), "{flags:?} {status}");
        assert!(folder.names().is_empty(), "{flags:?} {status}");
    }
    for (flags, status, code) in [(&["--fail-with-body"][..], 404, 3), (&[], 302, 0), (&[], 200, 0)] {
        let server = Server::new(vec![Reply::new(status, &[], binary)]);
        let url = server.url("/");
        let (shown, exit) = on_a_terminal(&Folder::new(), &[flags, &["-o", "-", &url]].concat());
        assert!(shown.starts_with('x') && exit == Some(code), "{flags:?} {status}: {shown:?}");
    }
    // Text is shown, and of a head nothing is obeyed.
    for (flags, status) in [(&["-i", "--fail-with-body"][..], 404), (&["-i"], 302), (&["-i", "-L", "-I"], 404)] {
        for file in [&[][..], &["-o", "file"], &["-o", "/dev/null"]] {
            let server = Server::new(vec![Reply::new(status, &elsewhere[1..], "text\n")]);
            let (shown, _) = on_a_terminal(&Folder::new(), &[flags, file, &[&server.url("/")]].concat());
            assert!(!shown.contains('\u{9b}'), "{flags:?} {file:?}: {shown:?}");
            let is_head = flags.contains(&"-I");
            assert!(is_head || shown.ends_with("x-title: \\u{9b}0;title\n\ntext\n"), "{flags:?} {file:?}: {shown:?}");
        }
    }
}

/// Whoever asked for a file goes on with what is there.
#[test]
fn what_does_not_become_the_file_is_no_success() {
    for (status, headers, said) in [
        (
            302,
            &["Location: /there"][..],
            "error: file is not written: the answer is 302 Found, to /there\nhint: -L follows it\n",
        ),
        (
            302,
            &[],
            "error: file is not written: the answer is 302 Found\nhint: without -o the answer is taken as it is\n",
        ),
        (
            304,
            &[],
            "error: file is not written: the answer is 304 Not Modified\nhint: without -o the answer is taken as it is\n",
        ),
    ] {
        let server = Server::new(vec![Reply::new(status, headers, "")]);
        let folder = Folder::new().file("file", "old");
        expect(&http_in(&folder, &["-q", "-o", "file", &server.url("/")]), 3, "", said);
        let told = http_in(&folder, &["--json", "-o", "file", &server.url("/")]);
        assert!(told.code == Some(3) && told.stderr.ends_with("\"code\":3}\n"), "{told:?}");
        assert_eq!(folder.read("file"), "old", "{status}");
        let condition = "If-None-Match: \"v1\"";
        let asked = http(&["-q", "-H", condition, "-o", "/dev/null", &server.url("/")]);
        assert_eq!(asked.code, Some(0), "{status}: {asked:?}");
    }
}

#[test]
fn help_reads_well() {
    let outcome = super::run(&Folder::new(), &["http", "--help"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    // The policy flags are those of every subcommand.
    let (own, rest) = outcome.stdout.split_once("\nPolicy (relent help policy").unwrap();
    let (_, exits) = rest.split_once("\nExit codes:\n").unwrap();
    for line in outcome.stdout.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    crate::binary::golden("http-help.txt", &format!("{own}\n...\n\nExit codes:\n{exits}"));
}

/// What is called like standard output is a file all the same, and so is what has the longest name that there is.
#[test]
fn the_last_part_of_a_path_is_a_file_whatever_it_is_called() {
    let server = Server::new(vec![Reply::ok("body")]);
    for name in ["-", &"n".repeat(255)] {
        let folder = Folder::new();
        expect(&http_in(&folder, &["-O", &server.url(&format!("/{name}"))]), 0, "", "");
        assert_eq!((folder.names(), folder.read(name)), (vec![name.to_owned()], "body".to_owned()));
    }
}

/// What a URL calls a file is told as if it had been given.
#[test]
fn a_name_from_a_url_is_told_without_what_is_secret_of_it() {
    let folder = Folder::new();
    fs::create_dir(folder.path().join("dump;jsessionid=hunter2")).unwrap();
    let outcome = http_in(&folder, &["-O", "http://127.0.0.1:9/dump;jsessionid=hunter2"]);
    let said = "error: cannot write to dump***: it is a folder\nhint: -o wants the name of a file\n";
    expect(&outcome, 125, "", said);
}
