//! A first attempt that is put off: whoever waits is told for how long, by every command.

use crate::binary::Folder;
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
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
