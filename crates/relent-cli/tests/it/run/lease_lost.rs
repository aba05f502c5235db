//! A lease that is lost while its command runs, and what becomes of all of the command.

use super::{
    Place, is_running,
    lease::{args, has_open, lock, signal, start, wait},
    terminal::{shown, typing},
    until,
};
use crate::at_once;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::time::{Duration, Instant};

/// A process that heeds no TERM, and says where it is.
const STUBBORN: &str = "sh -c 'trap \"\" TERM; echo $$ > left.new; mv left.new left; while :; do sleep 0.02; done'";

/// What the command says of its end is about a work that was cut off; what it has left would run beside the next holder's.
#[test]
fn a_command_that_ends_well_for_its_lease_being_lost_has_not_succeeded() {
    let place = Place::new();
    let script =
        format!("{STUBBORN} & trap 'echo half; echo > told; exit 0' TERM; echo > up; while :; do sleep 0.01; done");
    let run = start(&place, &["--lease-ttl", "1s", "--grace", "200ms"], &script);
    until("it runs", || place.has("up") && place.has("left"));
    let lock = lock(&place);
    until("it was told", || place.has("told"));
    drop(lock);
    let outcome = wait(run);
    assert_eq!(outcome.code, Some(75), "{outcome:?}");
    assert!(outcome.stderr.ends_with(": the lease was lost\n"), "{outcome:?}");
    assert!(!is_running(&place.0.read("left")), "it is left running: {outcome:?}");
}

/// It is told to end by the second process then.
#[test]
fn nor_has_one_that_ends_well_while_relent_is_stopped() {
    let place = Place::new();
    let script = "trap 'exit 0' TERM; echo $$ > pid; echo > up; while :; do sleep 0.01; done";
    let run = start(&place, &["--lease-ttl", "1s"], script);
    until("it runs", || place.has("up"));
    signal("STOP", &run.id().to_string());
    until("it has ended", || !is_running(&place.0.read("pid")));
    signal("CONT", &run.id().to_string());
    let outcome = wait(run);
    assert_eq!(outcome.code, Some(75), "{outcome:?}");
}

/// A success is one: nobody told it to end.
#[test]
fn a_command_that_ends_by_itself_before_its_lease_is_lost_has_succeeded() {
    let place = Place::new();
    let script = "echo > up; while [ ! -e go ]; do sleep 0.01; done";
    let run = start(&place, &["--lease-ttl", "10s"], script);
    until("it runs", || place.has("up"));
    let lock = lock(&place);
    std::fs::write(place.0.path().join("go"), "").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    drop(lock);
    let outcome = wait(run);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
}

/// The time that a lease was waited for is none of it: nobody else has it, and relent was not stopped.
#[test]
fn a_lease_that_is_granted_late_is_not_lost() {
    let place = Place::new();
    let migrated = place.relent(&["store", "migrate", "--store", "sqlite:state.db"]);
    assert_eq!(migrated.code, Some(0), "{migrated:?}");
    let lock = lock(&place);
    let run = start(&place, &["--lease-ttl", "1s"], "echo ran");
    until("it has the store open", || has_open(&run, "state.db"));
    std::thread::sleep(Duration::from_millis(750));
    drop(lock);
    let outcome = wait(run);
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "ran\n", ""), "{outcome:?}");
}

/// Who has cleared the environment is known to relent alone, which may be ending it already when the lease is lost.
#[test]
fn what_a_command_has_left_has_no_more_time_than_the_lease() {
    for end in ["sleep 60", "until [ -e left ]; do sleep 0.01; done; exit 1"] {
        let place = Place::new();
        let script = format!("env -i PATH=$PATH setsid {STUBBORN} & {end}");
        let run = start(&place, &["--lease-ttl", "1s", "--grace", "15s"], &script);
        until("it runs", || place.has("left"));
        let left = place.0.read("left");
        let lock = lock(&place);
        let began = Instant::now();
        until("it is killed", || !is_running(&left));
        let took = began.elapsed();
        drop(lock);
        let outcome = wait(run);
        assert!(took < Duration::from_secs(5), "{end}: {took:?}: {outcome:?}");
        assert_eq!(outcome.code, Some(75), "{end}: {outcome:?}");
    }
}

/// By `--signal INT` it dies as by Ctrl-C, which nobody has typed.
#[test]
fn what_is_told_for_a_lease_on_a_terminal_is_not_taken_for_control_c() {
    let place = Place::new();
    let flags = ["--store=sqlite:state.db", "--lease=nightly", "--lease-ttl=1s", "--signal=INT"];
    let (child, _stdin) = typing(&place, &flags, "echo $$ > pid; : > up; exec sleep 30");
    until("it runs", || place.has("up"));
    let lock = lock(&place);
    until("it has ended", || !is_running(&place.0.read("pid")));
    drop(lock);
    let (code, text) = shown(child);
    assert_eq!(code, Some(75), "{text}");
    assert!(text.ends_with(": the lease was lost\n"), "{text}");
}

/// Nobody reads what the watchman says, which it says beside what it does.
#[test]
fn who_does_not_read_what_a_watchman_says_does_not_keep_the_command_alive() {
    let place = Place::new();
    let (_reader, writer, _) = at_once::full();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    let script = "trap '' TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.01; done 2>&-";
    let mut first = place.command(&args(&["-q", "--lease-ttl", "800ms"], script)).stderr(writer).spawn().unwrap();
    until("the first runs", || place.has("pid"));
    first.kill().unwrap();
    first.wait().unwrap();
    let script = "grep '^State:.*[RSD] ' /proc/$(cat pid)/status 2>/dev/null";
    let second = wait(start(&place, &["--lease-ttl", "1s", "--max-attempts", "1"], script));
    assert_eq!((second.code, second.stdout.as_str()), (Some(1), ""), "{second:?}");
}
