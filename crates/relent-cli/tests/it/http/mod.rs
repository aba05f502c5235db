//! `relent http` against servers that fail the way servers fail: small ones of our own, and a real nginx.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asked;
mod bad_input;
mod beside_curl;
mod bombs;
mod conduct;
mod crash;
mod curl;
mod cut_off;
mod download;
mod early;
mod encodings;
mod floods;
mod frames;
mod goaway;
mod greeting;
mod hedge;
mod hostile;
mod judgement;
mod layers;
mod left;
mod limits;
mod nginx;
mod output;
mod proxies;
mod pushback;
mod real;
mod secrets;
mod server;
mod shares;
mod socks;
mod unsafe_methods;

use super::binary::{Folder, Outcome};
use regex_lite::Regex;
use std::process::Command;

/// The policy of most tests: the same delays every time, and short ones.
pub(super) const QUICK: [&str; 4] = ["--base=10ms", "--jitter=none", "--max-attempts=4", "--cap=20ms"];

/// `relent http` with these arguments and the quick policy, in a folder of its own.
pub(super) fn http(args: &[&str]) -> Outcome {
    http_in(&Folder::new(), args)
}

/// The same in a given folder.
pub(super) fn http_in(folder: &Folder, args: &[&str]) -> Outcome {
    let mut all = vec!["http"];
    all.extend(QUICK);
    all.extend(args);
    run(folder, &all)
}

/// The binary, with what differs from run to run put in capitals.
pub(super) fn run(folder: &Folder, args: &[&str]) -> Outcome {
    finish(command(folder, args))
}

/// The binary, about to run in this folder.
pub(super) fn command(folder: &Folder, args: &[&str]) -> Command {
    folder.command(args)
}

/// Runs it to its end.
pub(super) fn finish(mut command: Command) -> Outcome {
    let output = command.output().expect("the binary was built");
    Outcome {
        stdout: filtered(&String::from_utf8_lossy(&output.stdout)),
        stderr: filtered(&String::from_utf8_lossy(&output.stderr)),
        code: output.status.code(),
    }
}

/// Ports, dates and times that were measured, in capitals.
pub(super) fn filtered(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, word) in [
        (r"127\.0\.0\.1:\d+", "HOST"),
        (r"localhost:\d+", "LOCALHOST"),
        (r"(attempts?) in [0-9.]+(us|ms|s)", "$1 in TIME"),
        (r#"_ms":\d+"#, r#"_ms":N"#),
    ] {
        text = Regex::new(pattern).expect("it is one").replace_all(&text, word).into_owned();
    }
    text
}

/// What an outcome must be.
#[track_caller]
pub(super) fn expect(outcome: &Outcome, code: i32, stdout: &str, stderr: &str) {
    assert_eq!(outcome.stderr, stderr);
    assert_eq!(outcome.stdout, stdout);
    assert_eq!(outcome.code, Some(code));
}
