//! A terminal that is lent to the command, and what others make of it meanwhile.

use super::{
    Place, is_running,
    terminal::{has_the_terminal, in_a_shell, shown, typing},
    until,
};
use crate::binary::tool;
use std::{
    fs,
    io::Write,
    process::Stdio,
    time::{Duration, Instant},
};

/// The system tells it to the group that has the terminal, which is the command's: nobody tries again without one.
#[test]
fn a_terminal_that_is_closed_ends_the_run_and_the_script_around_it() {
    for end in ["exec sleep 30", "trap 'exit 1' HUP; while :; do sleep 0.02; done"] {
        for script in ["relent run -q --base 1ms -- sh cmd.sh", "sh -c 'relent run -q -- sh cmd.sh; : > after'"] {
            let place = Place::new();
            let command = format!("echo x >> runs; echo $PPID > relent; : > up; {end}");
            fs::write(place.0.path().join("cmd.sh"), command).unwrap();
            let (mut terminal, _stdin) = in_a_shell(&place, &format!("{script}; : > after"));
            until("it runs", || place.has("up"));
            std::thread::sleep(Duration::from_millis(50));
            terminal.kill().unwrap();
            terminal.wait().unwrap();
            let relent = place.0.read("relent");
            until("relent has ended", || !is_running(&relent));
            assert_eq!((place.0.read("runs").as_str(), place.has("after")), ("x\n", false), "{script}: {end}");
        }
    }
}

/// A helper of the script, that somebody has stopped for a reason.
#[test]
fn who_was_stopped_before_the_terminal_was_lent_stays_so() {
    let place = Place::new();
    let stopped = "until [ $(cut -d' ' -f3 /proc/$!/stat) = T ]; do :; done";
    let runs = "relent run -q --base 1ms --max-attempts 2 -- false";
    let line = format!("sleep 30 & kill -STOP $!; {stopped}; {runs}; cut -d' ' -f3 /proc/$!/stat > state; kill -9 $!");
    let (child, _stdin) = in_a_shell(&place, &line);
    let (_, text) = shown(child);
    assert_eq!(place.0.read("state"), "T\n", "{text}");
}

/// In a namespace of processes, of whose groups none has the terminal: what it is given it cannot give back to those outside. It takes root
/// to make one.
const NAMESPACE: &str = "unshare -pf --mount-proc --kill-child";

/// One whose `/proc` is that of those outside.
const UNSEEN: &str = "unshare -pf --kill-child";

fn is_there_one() -> bool {
    let mut unshare = tool("sh");
    unshare.args(["-c", &format!("{NAMESPACE} true")]).stderr(Stdio::null());
    unshare.status().is_ok_and(|status| status.success())
}

#[test]
fn a_background_job_in_a_namespace_takes_the_terminal_from_nobody() {
    if !is_there_one() {
        eprintln!("SKIPPED a_background_job_in_a_namespace_takes_the_terminal_from_nobody: there can be none");
        return;
    }
    for namespace in [NAMESPACE, UNSEEN] {
        let place = Place::new();
        let command = "sh -c ': > up; until [ -e go ]; do sleep 0.02; done'";
        // The shell takes the terminal back after each program that it runs, and so runs none.
        nix::unistd::mkfifo(&place.0.path().join("idle"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let waits = "until [ -e up ]; do :; done; read -t 0.2 x <> idle";
        let line =
            format!("set -m; {namespace} relent run -q -- {command} & {waits}; read x; echo got $x; : > go; wait");
        let (child, mut stdin) = in_a_shell(&place, &line);
        until("it runs", || place.has("up"));
        stdin.write_all(b"you\n").unwrap();
        let (_, text) = shown(child);
        assert!(text.contains("got you\n"), "{text}");
    }
}

/// While the command runs, and between attempts.
#[test]
fn control_c_ends_a_run_in_a_namespace() {
    if !is_there_one() {
        eprintln!("SKIPPED control_c_ends_a_run_in_a_namespace: there can be none");
        return;
    }
    for command in ["sh -c ': > up; exec sleep 30'", "sh -c ': > up; exit 1'"] {
        let place = Place::new();
        let line = format!("exec {NAMESPACE} relent run -q --curve constant --base 30s --jitter none -- {command}");
        let (child, mut stdin) = in_a_shell(&place, &line);
        until("it runs", || place.has("up"));
        std::thread::sleep(Duration::from_millis(100));
        stdin.write_all(b"\x03").unwrap();
        assert_eq!(shown(child).0, Some(130), "{command}");
    }
}

/// The command is of the group that has the terminal, and so are others outside.
#[test]
fn a_command_in_a_namespace_is_answered_and_has_control_c_once() {
    if !is_there_one() {
        eprintln!("SKIPPED a_command_in_a_namespace_is_answered_and_has_control_c_once: there can be none");
        return;
    }
    let place = Place::new();
    let asks =
        "read x; echo got $x; trap \"echo x >> ints; sleep 0.1; exit 3\" INT; : > up; while :; do sleep 0.02; done";
    let line = format!("exec {NAMESPACE} relent run -q -- sh -c '{asks}'");
    let (child, mut stdin) = in_a_shell(&place, &line);
    stdin.write_all(b"you\n").unwrap();
    until("it is answered", || place.has("up"));
    std::thread::sleep(Duration::from_millis(50));
    stdin.write_all(b"\x03").unwrap();
    let (code, text) = shown(child);
    assert_eq!((code, place.0.read("ints").as_str()), (Some(130), "x\n"), "{text}");
    assert!(text.contains("got you\n"), "{text}");
}

/// Without a group of its own what it leaves could not be found.
#[test]
fn who_asks_for_the_terminal_where_nobody_is_seen_is_told_to_end() {
    if !is_there_one() {
        eprintln!("SKIPPED who_asks_for_the_terminal_where_nobody_is_seen_is_told_to_end: there can be none");
        return;
    }
    let place = Place::new();
    let line = format!("exec {UNSEEN} relent run --max-attempts 1 -- sh -c 'sleep 30 & read x; echo got $x'");
    let (child, _stdin) = in_a_shell(&place, &line);
    let (code, text) = shown(child);
    assert_eq!(code, Some(143), "{text}");
    assert!(text.contains("relent: the command wants the terminal, which others have, "), "{text}");
}

/// All of it, though it has no group of its own.
#[test]
fn a_limit_of_time_ends_a_command_in_a_namespace() {
    if !is_there_one() {
        eprintln!("SKIPPED a_limit_of_time_ends_a_command_in_a_namespace: there can be none");
        return;
    }
    let place = Place::new();
    let command = "sh -c 'sleep 30 & : > up; sleep 30; :'";
    let line = format!("exec {NAMESPACE} relent run -q --attempt-timeout 300ms --max-attempts 2 -- {command}");
    let began = Instant::now();
    let (child, _stdin) = in_a_shell(&place, &line);
    assert_eq!(shown(child).0, Some(124));
    assert!(place.has("up") && began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

/// It leads no group there, and so is what it starts.
#[test]
fn a_command_in_a_namespace_may_begin_a_session() {
    if !is_there_one() {
        eprintln!("SKIPPED a_command_in_a_namespace_may_begin_a_session: there can be none");
        return;
    }
    let place = Place::new();
    let line = format!("exec {NAMESPACE} relent run --max-attempts 1 -- setsid sh -c 'exit 3'");
    let (child, stdin) = in_a_shell(&place, &line);
    let (code, text) = shown(child);
    drop(stdin);
    assert_eq!(code, Some(3), "{text}");
    assert!(!text.contains("setsid --wait"), "{text}");
}

/// While the rest of its output is read that somebody holds yet, what is typed is relent's.
#[test]
fn what_is_typed_once_the_command_has_ended_is_heard() {
    let place = Place::new();
    let flags = ["-q", "--until-output=never"];
    let script = "echo x >> runs; echo $PPID > relent; sleep 30 & echo $! > left; echo $$ > pid.new; mv pid.new pid";
    let (child, mut stdin) = typing(&place, &flags, script);
    until("it runs", || place.has("pid"));
    let (relent, pid) = (place.0.read("relent"), place.0.read("pid"));
    until("it has ended", || !is_running(&pid));
    std::thread::sleep(Duration::from_millis(200));
    assert!(has_the_terminal(&relent));
    stdin.write_all(b"\x03").unwrap();
    let (code, text) = shown(child);
    assert_eq!((code, place.0.read("runs").as_str()), (Some(130), "x\n"), "{text}");
    assert!(!is_running(&place.0.read("left")));
}

/// A command that died by Ctrl-C has no more to say: the next one is the second.
#[test]
fn a_second_control_c_kills_what_holds_the_output_at_once() {
    let place = Place::new();
    let left = "(trap '' INT TERM; echo > up; sleep 60; sleep 60) &";
    let script = format!("{left} echo $PPID > relent; echo $$ > pid.new; mv pid.new pid; exec sleep 60");
    let (child, mut stdin) = typing(&place, &["-q", "--grace=60s", "--until-output=never"], &script);
    until("it runs", || place.has("up") && place.has("pid"));
    let (relent, pid) = (place.0.read("relent"), place.0.read("pid"));
    until("the terminal is lent", || !has_the_terminal(&relent));
    stdin.write_all(b"\x03").unwrap();
    until("it has ended", || !is_running(&pid));
    // One that comes at once is the same.
    std::thread::sleep(Duration::from_millis(400));
    stdin.write_all(b"\x03").unwrap();
    until("relent has ended", || !is_running(&relent));
    assert_eq!(shown(child).0, Some(130));
}
