//! What an attempt leaves running.

use super::{Place, is_running, until};
use crate::binary::tool;
use std::{fs, path::Path, process::Command};

#[test]
fn a_failed_attempt_leaves_nothing() {
    let place = Place::new();
    let script = "sleep 41 & echo $! > group; setsid sleep 42 & echo $! > session; exit 1";
    assert_eq!(place.sh(&["-q", "--max-attempts", "1"], script).code, Some(1));
    assert!(!is_running(&place.0.read("group")));
    assert!(!is_running(&place.0.read("session")));
}

#[test]
fn nor_does_one_that_will_not_be_told() {
    let place = Place::new();
    let script = "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 0.05; done' & \
                  while [ ! -s pid ]; do sleep 0.01; done; exit 1";
    assert_eq!(place.sh(&["-q", "--max-attempts", "1", "--grace", "100ms"], script).code, Some(1));
    assert!(!is_running(&place.0.read("pid")));
}

#[test]
fn a_success_may_leave_a_daemon() {
    let place = Place::new();
    let script = "sleep 43 >/dev/null 2>&1 & echo $! > pid; [ $RELENT_ATTEMPT = 2 ]";
    assert_eq!(place.sh(&["-q"], script).code, Some(0));
    let pid = place.0.read("pid");
    assert!(is_running(&pid));
    Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
}

#[test]
fn what_was_there_before_is_left_alone() {
    let place = Place::new();
    // The shell becomes relent, so the shell's child is relent's.
    let script = "sleep 44 & echo $! > pid; exec relent run -q --max-attempts 1 -- sh -c 'exit 3'";
    let mut shell = tool("sh");
    shell.args(["-c", script]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
    let mut child = shell.spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let pid = place.0.read("pid");
    assert!(is_running(&pid));
    Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
}

#[test]
fn orphans_do_not_pile_up_while_a_command_runs() {
    let place = Place::new();
    // Each inner shell dies and leaves a child to relent, which ends soon after.
    let script = "for i in 1 2 3 4 5; do sh -c 'sleep 0.05 & echo $! >> pids'; done; \
                  while [ ! -e go ]; do sleep 0.02; done";
    let mut child = place.start(&["-q"], script);
    until("all orphans are there", || place.has("pids") && place.0.read("pids").lines().count() == 5);
    let is_there = |pid: &str| Path::new("/proc").join(pid).exists();
    until("none is left, not even as a zombie", || !place.0.read("pids").lines().any(is_there));
    fs::write(place.0.path().join("go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
