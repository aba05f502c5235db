//! A first attempt that is put off: whoever waits is told for how long, by every command.

use crate::binary::Folder;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    thread,
    time::Duration,
};

/// The first line that is said, of a command that is ended then.
fn first_line(args: &[&str]) -> String {
    let folder = Folder::new();
    let mut relent = folder.command(args).stderr(Stdio::piped()).spawn().expect("the binary was built");
    let mut line = String::new();
    let read = BufReader::new(relent.stderr.take().expect("it is piped")).read_line(&mut line);
    relent.kill().expect("it waits");
    relent.wait().expect("it was killed");
    read.expect("it is text");
    line
}

const ENDS: [&[&str]; 3] = [&["run", "--", "true"], &["http", "http://127.0.0.1:1/"], &["connect", "127.0.0.1:1"]];
const CALLS: [&[&str]; 3] = [&["run", "--", "false"], ENDS[1], ENDS[2]];

#[test]
fn a_first_attempt_that_is_put_off_is_told_of() {
    for command in ENDS {
        let told = |flags: &[&str]| {
            first_line(&[&command[..1], &["--spread", "9h", "--seed", "5"], flags, &command[1..]].concat())
        };
        let line = told(&[]);
        assert!(line.starts_with("relent: ") && line.contains("attempt 1 of 8 in ") && line.contains('h'), "{line}");
        let event = told(&["--json"]);
        assert!(
            event.starts_with("{\"event\":\"waiting\",") && event.contains("\"attempt\":1,\"left_ms\":"),
            "{event}"
        );
    }
}

#[test]
fn a_short_wait_or_a_quiet_one_is_not() {
    let folder = Folder::new();
    for flags in [&["--spread", "20ms"][..], &["-q", "--spread", "1200ms"]] {
        let outcome = folder.relent(&[&["run"], flags, &["--", "true"]].concat());
        assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "{flags:?}");
    }
}

/// A limit may put off an attempt for longer than the policy does.
#[test]
fn a_later_attempt_that_is_put_off_is_told_of() {
    let folder = Folder::new();
    for (command, at) in CALLS.iter().zip(["", "", "127.0.0.1:1: "]) {
        let flags = ["--limit", "rate=1,per=1m", "--base", "1ms"];
        let args = [&command[..1], &flags, &command[1..]].concat();
        let mut relent = folder.command(&args).stderr(Stdio::piped()).spawn().expect("the binary was built");
        let said = BufReader::new(relent.stderr.take().expect("it is piped"));
        let lines: Vec<String> = said.lines().take(2).map(|line| line.expect("it is text")).collect();
        relent.kill().expect("it waits");
        relent.wait().expect("it was killed");
        assert!(lines[0].starts_with(&format!("relent: {at}attempt 1 of 8: ")), "{lines:?}");
        let told = lines[1].strip_prefix(&format!("relent: {at}attempt 2 of 8 in "));
        assert!(told.is_some_and(|told| told.starts_with("59") || told.starts_with("1m")), "{lines:?}");
    }
}

/// Who is stopped meanwhile, as a container or a machine is that somebody pauses, wakes when it is too late.
#[test]
fn nothing_starts_after_the_time_for_it_whoever_was_stopped_meanwhile() {
    let folder = Folder::new();
    let begin = |command: &&[&'static str]| {
        let policy = "--curve constant --base 500ms --jitter none --max-attempts 9 --max-elapsed 800ms";
        let flags: Vec<&str> = policy.split(' ').collect();
        let args = [&command[..1], &flags, &command[1..]].concat();
        let mut relent = folder.command(&args).stderr(Stdio::piped()).spawn().expect("the binary was built");
        let mut said = BufReader::new(relent.stderr.take().expect("it is piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it is text");
        let send = {
            let pid = Pid::from_raw(relent.id().cast_signed());
            move |signal| kill(pid, signal).expect("it waits")
        };
        send(Signal::SIGSTOP);
        (relent, said, line, send)
    };
    let stopped: Vec<_> = CALLS.iter().map(begin).collect();
    thread::sleep(Duration::from_millis(900));
    for (mut relent, said, line, send) in stopped {
        send(Signal::SIGCONT);
        assert!(line.contains("next in 500ms"), "{line}");
        let rest: Vec<String> = said.lines().map(|line| line.expect("it is text")).collect();
        let end = |line: &String| line.contains("gave up after 1 attempt in ") && line.contains(": out of time");
        assert!(rest.first().is_some_and(end), "{line}{rest:?}");
        assert_eq!(relent.wait().expect("it ends").code(), Some(124));
    }
}
