//! What whoever starts relent leaves it: limits, groups, and signals that are blocked or ignored.

use super::Place;
use crate::binary::tool;
use std::{
    process::{Command, Output},
    time::{Duration, Instant},
};

/// A file that may not grow is an error with a word, like a disk that is full, and nothing is left running.
#[test]
fn a_limit_of_files_is_an_error() {
    let place = Place::new();
    let limited = |script: &str| -> (Output, Duration) {
        let started = Instant::now();
        let mut command = tool("sh");
        command.args(["-c", &format!("ulimit -f 100; {script}")]).current_dir(place.0.path());
        command.env("TMPDIR", place.0.path().join("tmp"));
        (command.output().unwrap(), started.elapsed())
    };
    let (output, took) = limited("exec relent run -- sh -c 'head -c 3000000 /dev/zero; sleep 20; echo later > after'");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("error: cannot keep the command's output: File too large"), "{said}");
    assert!(!place.has("after") && took < Duration::from_secs(15), "the command goes on alone: {took:?}");
    place.is_clean();
    // The command is told as it would be without relent: by the signal, which is number 25 on Linux.
    let (output, _) = limited("exec relent run -q --max-attempts 1 -- sh -c 'head -c 3000000 /dev/zero > large'");
    assert!(matches!(output.status.code(), Some(153 | 1)), "{output:?}");
    assert_eq!(std::fs::metadata(place.0.path().join("large")).unwrap().len(), 51_200);
}

/// relent, started by what has blocked these signals.
fn blocked(place: &Place, signals: &str, args: &[&str]) -> Command {
    let script = format!("sigprocmask(SIG_BLOCK, POSIX::SigSet->new({signals})); exec @ARGV or die; ");
    let mut command = tool("perl");
    command.args(["-MPOSIX", "-e", &script, "relent"]).args(args).current_dir(place.0.path());
    command.env("TMPDIR", place.0.path().join("tmp"));
    command
}

#[test]
fn the_end_of_a_command_is_heard_whatever_was_blocked() {
    let place = Place::new();
    for _ in 0..8 {
        let started = Instant::now();
        let args = ["run", "-q", "--timeout", "20s", "--max-attempts", "1", "--", "sh", "-c", "exit 7"];
        let output = blocked(&place, "SIGCHLD", &args).output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert!(started.elapsed() < Duration::from_secs(15));
    }
    let args = ["run", "-q", "--", "sh", "-c", "kill -TERM $PPID; sleep 20"];
    let output = blocked(&place, "SIGTERM, SIGINT, SIGCHLD", &args).output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{output:?}");
}

/// What says which signals are ignored stands behind all groups, and a domain can give a user hundreds.
#[cfg(target_os = "linux")]
#[test]
fn what_was_ignored_stays_so_however_many_groups_there_are() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED what_was_ignored_stays_so_however_many_groups_there_are: it takes root");
        return;
    }
    let place = Place::new();
    let groups: Vec<String> = (1_600_200_001..1_600_201_001).map(|group| group.to_string()).collect();
    let mut command = tool("setpriv");
    let script = "trap '' HUP; exec relent run -q --max-attempts 1 -- sh -c 'kill -HUP $PPID; exit 3'";
    command.args([&format!("--groups={}", groups.join(",")), "sh", "-c", script]).current_dir(place.0.path());
    let output = command.env("TMPDIR", place.0.path().join("tmp")).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}
