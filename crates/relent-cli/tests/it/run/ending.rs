//! Limits of time, and signals.

use super::{Place, is_running, script_args, sh, state, until};
use crate::binary::tool;
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use std::{
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Child, Output, Stdio},
    time::{Duration, Instant},
};

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).expect("it is running");
}

fn end(child: Child) -> (i32, String) {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code().expect("relent exits"), super::without_times(&String::from_utf8_lossy(&stderr)))
}

/// attempt-cli looks from time to time whether the command has ended, so a 6 s command takes 10 s.
#[test]
fn attempt_cli_a_command_takes_as_long_as_it_takes() {
    let started = Instant::now();
    assert_eq!(sh(&["--attempt-timeout", "20s"], "sleep 0.7").code, Some(0));
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(700) && took < Duration::from_millis(2500), "{took:?}");
}

/// attempt-cli replaces the exit code.
#[test]
fn attempt_cli_the_exit_code_is_the_commands() {
    assert_eq!(sh(&["-q", "--max-attempts", "1"], "exit 42").code, Some(42));
}

#[test]
fn an_attempt_that_takes_too_long_is_ended_and_retried() {
    sh(&["--attempt-timeout", "600ms", "--max-attempts", "2"], "echo $RELENT_ATTEMPT; exec sleep 30").is(
        124,
        "2\n",
        "relent: attempt 1 of 2: timed out after [t]; next in [t]\n\
         relent: gave up after 2 attempts in [t]: out of attempts (timed out after [t])\n",
    );
    sh(&["-q", "--attempt-timeout", "600ms"], "[ $RELENT_ATTEMPT = 2 ] || sleep 30").is(0, "", "");
}

#[test]
fn a_timeout_ends_the_whole_group() {
    let place = Place::new();
    let script = "sleep 31 & echo $! > pid; sleep 32";
    let outcome = place.sh(&["-q", "--attempt-timeout", "600ms", "--max-attempts", "1"], script);
    assert_eq!(outcome.code, Some(124));
    assert!(!is_running(&place.0.read("pid")));
}

#[test]
fn who_does_not_end_when_told_is_killed() {
    let started = Instant::now();
    let flags = ["-q", "--attempt-timeout", "600ms", "--grace", "150ms", "--max-attempts", "1"];
    let outcome = sh(&flags, "trap '' TERM; echo up; while :; do sleep 0.05; done");
    outcome.is(124, "up\n", "");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_command_may_clean_up_in_its_grace() {
    let script = "exec 2>/dev/null; trap 'sleep 0.1; echo cleaned; exit 3' TERM; echo up; while :; do sleep 0.02; done";
    sh(&["-q", "--attempt-timeout", "600ms", "--max-attempts", "1"], script).is(124, "up\ncleaned\n", "");
}

#[test]
fn no_attempt_starts_after_max_elapsed() {
    sh(&["--max-elapsed", "50ms", "--curve", "constant", "--jitter", "none", "--cap", "10s", "--base", "5s"], "exit 3")
        .is(124, "", "relent: gave up after 1 attempt in [t]: out of time (exit 3)\n");
}

/// Debian's retry dies by SIGTERM and leaves its command running.
#[test]
fn debian_retry_sigterm_reaches_the_command() {
    let place = Place::new();
    let child = place.start(&[], "echo $$ > pid; sleep 33 & echo $! > pid2; touch up; wait");
    until("it runs", || place.has("up"));
    send(&child, Signal::SIGTERM);
    assert_eq!(end(child), (143, "relent: stopped after 1 attempt in [t]: SIGTERM\n".to_owned()));
    assert!(!is_running(&place.0.read("pid")) && !is_running(&place.0.read("pid2")));
    place.is_clean();
}

#[test]
fn sigint_and_sighup_do_too_and_stop_the_retrying() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGHUP, 129), (Signal::SIGQUIT, 131)] {
        let place = Place::new();
        let script = "exec 2>/dev/null; trap 'touch got; exit 1' INT HUP QUIT; echo >> count; touch up; while :; do sleep 0.02; done";
        let child = place.start(&["-q"], script);
        until("it runs", || place.has("up"));
        send(&child, signal);
        assert_eq!(end(child), (code, String::new()));
        assert!(place.has("got"));
        assert_eq!(place.0.read("count"), "\n");
    }
}

/// Whether it was to end already for something else, or is to be killed at once.
#[test]
fn a_hangup_is_not_lost_whatever_else_ends_the_command() {
    const MANY: [&str; 6] = ["-q", "--base", "1ms", "--max-attempts", "3", "--grace"];
    let dies = "trap 'touch told' TERM; echo >> count; touch up; while :; do sleep 0.02; done";
    let exits = "trap '' TERM; trap 'exit 9' HUP; echo >> count; touch up told; while :; do sleep 0.02; done";
    let by_it = "echo >> count; touch up told; exec sleep 60";
    for (grace, limit, script) in [
        ("1m", &["--attempt-timeout", "300ms"][..], dies),
        ("1m", &["--attempt-timeout", "300ms"], exits),
        ("0s", &[], by_it),
    ] {
        let place = Place::new();
        let child = place.start(&[&MANY[..], &[grace], limit].concat(), script);
        until("it runs", || place.has("up") && place.has("told"));
        send(&child, Signal::SIGHUP);
        let (code, _) = end(child);
        assert_eq!((code, place.0.read("count").as_str()), (129, "\n"), "{script}");
    }
}

#[test]
fn a_command_that_succeeds_in_spite_of_a_signal_has_succeeded() {
    let place = Place::new();
    let script = "trap 'echo done; exit 0' TERM; touch up; while :; do sleep 0.02; done";
    let child = place.start(&[], script);
    until("it runs", || place.has("up"));
    send(&child, Signal::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"done\n".to_vec()));
}

#[test]
fn a_signal_ends_a_wait_at_once() {
    let place = Place::new();
    let started = Instant::now();
    let mut child = place.start(&["--base", "60s", "--jitter", "none"], "echo part; exit 3");
    let (mut stderr, mut said) = (BufReader::new(child.stderr.take().unwrap()), String::new());
    stderr.read_line(&mut said).unwrap();
    send(&child, Signal::SIGINT);
    stderr.read_to_string(&mut said).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(130), b"part\n".to_vec()));
    let said = super::without_times(&said);
    assert_eq!(said, "relent: attempt 1 of 8: exit 3; next in [t]\nrelent: stopped after 1 attempt in [t]: SIGINT\n");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn who_ignores_a_signal_is_killed_after_the_grace() {
    let place = Place::new();
    let child = place.start(&["-q", "--grace", "100ms"], "trap '' TERM; touch up; while :; do sleep 0.05; done");
    until("it runs", || place.has("up"));
    send(&child, Signal::SIGTERM);
    assert_eq!(end(child).0, 143);
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let place = Place::new();
    let script = "trap '' HUP; exec relent run -- sh -c 'touch up; while [ ! -e go ]; do sleep 0.02; done'";
    let mut command = tool("sh");
    command.args(["-c", script]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
    let mut child = command.spawn().unwrap();
    until("it runs", || place.has("up"));
    send(&child, Signal::SIGHUP);
    std::thread::sleep(Duration::from_millis(50));
    std::fs::write(place.0.path().join("go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_healthy_run_makes_earlier_failures_forgotten() {
    let place = Place::new();
    // Two quick failures, a healthy run, then two quick failures again: without the reset the fourth would be the last.
    let script = "echo >> count; n=$(wc -l < count); [ $n = 3 ] && sleep 1.2; echo $RELENT_ATTEMPT >> seen; [ $n = 6 ]";
    let outcome = place.sh(&["-q", "--max-attempts", "4", "--reset-after", "1s"], script);
    assert_eq!(outcome.code, Some(0));
    assert_eq!(place.0.read("seen"), "1\n2\n3\n2\n3\n4\n");
}

/// The command may have ended by the first, and what it left not.
#[test]
fn a_second_signal_kills_what_the_command_left_at_once() {
    let place = Place::new();
    let script =
        "setsid sh -c 'trap : TERM; echo $$ > left.new; mv left.new left; while :; do sleep 0.1; done' & echo $$ > pid
        until [ -e left ]; do sleep 0.01; done; echo > ready; sleep 60";
    let mut relent = place.start(&["-q", "--max-attempts", "1", "--grace", "1m"], script);
    until("it runs", || place.has("ready"));
    send(&relent, Signal::SIGTERM);
    until("the command has ended", || !is_running(&place.0.read("pid")));
    // Before, it is an echo of the first.
    std::thread::sleep(Duration::from_millis(220));
    send(&relent, Signal::SIGTERM);
    let began = Instant::now();
    assert_eq!(relent.wait().unwrap().code(), Some(143));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(!is_running(&place.0.read("left")), "it is left running");
}

/// `kill -INT` and `kill -TERM` at once are one wish, and the command hears both.
#[test]
fn another_signal_that_comes_at_once_is_passed_on_too() {
    let place = Place::new();
    let script = "exec 2>/dev/null; trap '' INT; trap 'sleep 0.3; touch clean; exit 1' TERM; touch up; while :; do sleep 0.02; done";
    let child = place.start(&["-q", "--grace", "1m"], script);
    until("it runs", || place.has("up"));
    send(&child, Signal::SIGINT);
    send(&child, Signal::SIGTERM);
    send(&child, Signal::SIGTERM);
    assert_eq!(end(child), (130, String::new()));
    assert!(place.has("clean"));
}

/// Whoever holds a lease on a file is asked before it is opened, as who looks at programs first is; a file system may hang as well.
#[test]
#[cfg(target_os = "linux")]
fn what_does_not_start_is_ended_in_time_and_never_runs() {
    const HOLDS: &str = "$SIG{IO} = 'IGNORE'; open F, '+<', 'cmd.sh'; \
                         open U, '>', fcntl(F, 1024, 1) ? 'held' : 'unheld'; close U; sleep 20";
    for (flags, signal, code) in [
        (&["--timeout", "300ms"][..], None, 124),
        (&["--attempt-timeout", "300ms", "--max-attempts", "1"], None, 124),
        (&["--timeout", "1m"], Some(Signal::SIGTERM), 143),
        (&["--timeout", "1m"], Some(Signal::SIGHUP), 129),
        (&[], Some(Signal::SIGTERM), 143),
    ] {
        let place = Place::new().file("cmd.sh", "#!/bin/sh\ntouch ran\n");
        let script = place.0.path().join("cmd.sh");
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut holder = tool("perl").args(["-e", HOLDS]).current_dir(place.0.path()).spawn().unwrap();
        until("it is held", || place.has("held") || place.has("unheld"));
        let began = Instant::now();
        let relent = place.command(&[&["run", "-q"], flags, &["--", "./cmd.sh"]].concat()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        if let Some(signal) = signal.filter(|_| place.has("held")) {
            send(&relent, signal);
        }
        let ended = end(relent);
        if place.has("unheld") {
            eprintln!("SKIPPED what_does_not_start_is_ended_in_time_and_never_runs: this file system has no leases");
            holder.kill().unwrap();
            holder.wait().unwrap();
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{flags:?} {signal:?}: {:?}", began.elapsed());
        assert_eq!(ended.0, code, "{flags:?} {signal:?}");
        holder.kill().unwrap();
        holder.wait().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        assert!(!place.has("ran"), "{flags:?} {signal:?}");
    }
}

/// It may write while it cleans up: somebody reads that, though it goes nowhere.
#[test]
#[cfg(target_os = "linux")]
fn the_command_of_a_run_that_fails_itself_is_not_held_up_by_its_output() {
    let place = Place::new();
    let script = "trap 'head -c 300000 /dev/zero; echo swept >&2; echo > told; exit 0' TERM; echo x; while :; do sleep 0.01; done";
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = ["run", "--stream", "--until-output", "zz", "--grace", "10s", "--", "sh", "-c", script];
    let output = place.command(&args).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), place.has("told")), (Some(125), true), "{said}");
    assert!(said.contains("swept\n"), "{said}");
}

/// What is to become the program has a group of its own before it is one, and Ctrl-Z stops it in between.
#[test]
#[cfg(target_os = "linux")]
fn control_z_while_the_command_starts_stops_relent_as_ever() {
    let place = Place::new();
    let flags = ["-q", "--cap=2ms", "--jitter=none", "--max-attempts=unlimited"];
    let mut command = place.command(&script_args(&flags, "echo x >> begun; exit 1"));
    let child = command.process_group(0).stderr(Stdio::piped()).spawn().unwrap();
    let group = Pid::from_raw(child.id() as i32);
    until("it starts the command", || place.has("begun"));
    for round in 0..300 {
        // At another moment each time.
        std::thread::sleep(Duration::from_micros(round % 16 * 300));
        killpg(group, Signal::SIGTSTP).unwrap();
        until("it is stopped", || state(group) == Some('T'));
        killpg(group, Signal::SIGCONT).unwrap();
    }
    send(&child, Signal::SIGTERM);
    assert_eq!(end(child).0, 143);
}

/// What a command has written is kept until it has ended, and whoever reads it then may be stopped.
#[test]
#[cfg(target_os = "linux")]
fn control_z_stops_who_waits_for_a_reader() {
    let place = Place::new();
    let mut command = place.command(&["run", "-q", "--", "seq", "1", "200000"]);
    let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut text = vec![0];
    out.read_exact(&mut text).unwrap();
    let group = Pid::from_raw(child.id() as i32);
    for _ in 0..3 {
        killpg(group, Signal::SIGTSTP).unwrap();
        until("it is stopped", || state(group) == Some('T'));
        killpg(group, Signal::SIGCONT).unwrap();
        until("it goes on", || state(group) != Some('T'));
    }
    out.read_to_end(&mut text).unwrap();
    assert_eq!((text.ends_with(b"\n200000\n"), end(child).0), (true, 0));
}
