//! What goes to standard output and standard error.

use super::{Place, is_running, sh, until};
use crate::binary::tool;
use std::{
    fs,
    process::{Command, Output, Stdio},
    time::Instant,
};

#[test]
fn a_success_is_silent() {
    sh(&[], "echo out; echo err >&2").is(0, "out\n", "err\n");
}

#[test]
fn standard_output_is_that_of_the_last_attempt_only() {
    sh(&[], "echo out $RELENT_ATTEMPT; echo err >&2; [ $RELENT_ATTEMPT = 3 ]").is(
        0,
        "out 3\n",
        "err\nrelent: attempt 1 of 8: exit 1; next in [t]\n\
         err\nrelent: attempt 2 of 8: exit 1; next in [t]\n\
         err\nrelent: succeeded after 3 attempts in [t]\n",
    );
}

#[test]
fn so_it_is_when_all_fail() {
    sh(&["--max-attempts", "2"], "echo out $RELENT_ATTEMPT; exit 7").is(
        7,
        "out 2\n",
        "relent: attempt 1 of 2: exit 7; next in [t]\n\
         relent: gave up after 2 attempts in [t]: out of attempts (exit 7)\n",
    );
}

/// `curl --retry` concatenates the bodies of failed attempts onto a pipe.
#[test]
fn curl_a_pipe_gets_no_part_of_a_failed_attempt() {
    let place = Place::new();
    let script = "printf 'half of'; [ $RELENT_ATTEMPT = 2 ] && printf ' a whole body'";
    place.sh(&["-q"], script).is(0, "half of a whole body", "");
}

#[test]
fn stream_passes_everything_through() {
    sh(&["--stream", "-q"], "echo out $RELENT_ATTEMPT; [ $RELENT_ATTEMPT = 2 ]").is(0, "out 1\nout 2\n", "");
}

#[test]
fn stream_and_patterns_pass_everything_through_too() {
    let script = "echo out $RELENT_ATTEMPT; echo err $RELENT_ATTEMPT >&2";
    sh(&["--stream", "-q", "--until-output", "out 2"], script).is(0, "out 1\nout 2\n", "err 1\nerr 2\n");
}

#[test]
fn large_output_is_kept_on_disk_and_comes_out_whole() {
    let place = Place::new();
    let script = "yes $RELENT_ATTEMPT | head -c 5000000; [ $RELENT_ATTEMPT = 2 ]";
    let outcome = place.sh(&["-q"], script);
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stdout.len() == 5_000_000 && outcome.stdout.lines().all(|line| line == "2"));
}

#[test]
fn output_may_be_any_bytes() {
    let place = Place::new();
    let args = [&super::QUICK[..], &["--", "printf", "\\377\\000\\n"]].concat();
    assert_eq!(place.command(&args).output().unwrap().stdout, b"\xff\0\n");
}

/// Debian's retry waits for background grandchildren.
#[test]
fn debian_retry_an_attempt_is_over_when_the_command_is_over() {
    let place = Place::new();
    let started = Instant::now();
    place.sh(&[], "sleep 30 & echo $! > pid; echo out").is(0, "out\n", HELD);
    assert!(started.elapsed().as_secs() < 10);
    kill(&fs::read_to_string(place.0.path().join("pid")).unwrap());
}

/// What is said of a daemon whose next line would be an error to it.
const HELD: &str = "relent: something that the command has started goes on and holds its output, which ends now: it needs one of its own \
                    (> FILE), or --stream without patterns\n";

#[test]
fn who_stays_and_holds_no_output_or_is_ended_is_not_told_of() {
    let place = Place::new();
    for (flags, script) in [
        (&[][..], "sleep 30 >/dev/null 2>&1 & echo $! > pid; echo out"),
        (&["-q"], "sleep 30 & echo $! > pid; echo out"),
        (&["-q", "--timeout", "300ms"], "sleep 30 & echo $! > pid; echo out"),
    ] {
        place.sh(flags, script).is(0, "out\n", "");
        kill(&fs::read_to_string(place.0.path().join("pid")).unwrap());
    }
    sh(&["--max-attempts", "1"], "sleep 30 & echo out; exit 3").is(
        3,
        "out\n",
        "relent: gave up after 1 attempt in [t]: out of attempts (exit 3)\n",
    );
}

#[test]
fn who_loses_its_output_to_a_signal_is_told_of_too() {
    let place = Place::new();
    let script = "exec 3<&0; (cat <&3; : > over; exec sleep 30) & echo $! > left; echo out";
    let mut child = place.command(&super::script_args(&[], script));
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    until("relent has seen the end", || place.has("over"));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), HELD));
    kill(&place.0.read("left"));
}

/// Of a script that logs by `exec > >(tee LOG) 2>&1` the shell ends before `tee` has written: here somebody who sees that relent has seen
/// the end, since the command's standard input is closed then.
#[test]
fn what_others_write_for_it_just_after_its_end_is_its_output() {
    let place = Place::new();
    let run_with = |flags: &[&str], pause: &str, script: &str| {
        let script = format!("exec 3<&0; (cat <&3; {pause} echo last; : > log) & echo first; {script}");
        let mut child = place.command(&super::script_args(flags, &script));
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        place.is_clean();
        assert!(place.has("log"), "it was not ended for writing");
        fs::remove_file(place.0.path().join("log")).unwrap();
        let said = super::without_times(&String::from_utf8_lossy(&output.stderr));
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), said)
    };
    let run = |flags: &[&str], script: &str| run_with(flags, "", script);
    let run_late = |flags: &[&str]| run_with(flags, "sleep 0.65;", "exit 0");
    let whole = || "first\nlast\n".to_owned();
    assert_eq!(run(&[], "exit 0"), (Some(0), whole(), String::new()));
    // The limit ends before that; the command was in time.
    let flags = ["-q", "--timeout", "600ms"];
    assert_eq!(run_late(&flags), (Some(0), whole(), String::new()));
    assert_eq!(run(&["-q", "--max-attempts", "1"], "exit 3"), (Some(3), whole(), String::new()));
    let flags = ["-q", "--retry-on-output", "last", "--max-attempts", "2"];
    assert_eq!(run(&flags, "exit 3"), (Some(3), whole(), String::new()));
    let flags = ["-q", "--stream", "--until-output", "last", "--max-attempts", "2"];
    assert_eq!(run(&flags, "exit 0"), (Some(0), whole(), String::new()));
}

/// Who stops relent for longer than that, as by Ctrl-Z, keeps it from reading, and has what comes then nevertheless.
#[cfg(target_os = "linux")]
#[test]
fn the_moment_for_late_output_does_not_go_by_while_relent_stands_still() {
    let place = Place::new();
    let script = "exec 3<&0; (cat <&3; : > over; seq 1 30000) & exit 0";
    let mut child = place.command(&super::script_args(&["-q"], script));
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (stdin, pid) = (child.stdin.take(), nix::unistd::Pid::from_raw(child.id() as i32));
    until("relent has seen the end", || place.has("over"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!((output.status.code(), output.stdout.ends_with(b"\n30000\n")), (Some(0), true));
}

/// After a failure it changes nothing of the attempt: what cannot be kept of it is not read. Of a success all of it goes out.
#[test]
fn what_comes_after_the_end_is_read_as_far_as_it_can_be_kept() {
    const FLOODS: &str = "cat /dev/zero";
    for (flags, end, more, code, dots, runs) in [
        (&[][..], "exit 0", ":", 0, 9000, "x\n"),
        (&["--until-output", "first"], "exit 0", ":", 0, 9000, "x\n"),
        (&[], "exit 3", FLOODS, 3, 4994, "x\nx\n"),
        (&["--until-output", "second"], "exit 0", FLOODS, 1, 4994, "x\nx\n"),
        (&["--retry-on-output", "first"], "exit 0", FLOODS, 1, 4994, "x\nx\n"),
        (&["--retry-on-exit", "0"], "exit 0", FLOODS, 1, 4994, "x\nx\n"),
        (&["--consecutive", "3"], "exit 0", FLOODS, 1, 4994, "x\nx\n"),
        (&[], "echo transient > $RELENT_VERDICT; exit 0", FLOODS, 1, 4994, "x\nx\n"),
    ] {
        let place = Place::new();
        let script = format!(
            "echo x >> runs; exec 3<&0; (cat <&3; head -c 9000 /dev/zero | tr '\\0' .; {more}) 2>/dev/null & echo first; {end}"
        );
        let flags = [&["-q", "--max-kept", "5000", "--max-attempts", "2"], flags].concat();
        let output = with_input_open(&mut place.command(&super::script_args(&flags, &script)));
        place.is_clean();
        let written = String::from_utf8_lossy(&output.stdout);
        assert!(written == format!("first\n{}", ".".repeat(dots)), "{flags:?} {end:?}: {} bytes", written.len());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!((output.status.code(), place.0.read("runs").as_str()), (Some(code), runs));
    }
}

/// Its standard input, which nothing comes from, ends when relent has.
fn with_input_open(command: &mut Command) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    output
}

/// The same of a script that becomes relent.
fn in_sh(place: &Place, script: &str) -> Output {
    let mut shell = tool("sh");
    shell.args(["-c", script]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
    with_input_open(&mut shell)
}

/// Who writes it, once relent has seen the end, goes on without it.
#[test]
fn what_a_successful_command_has_left_stays_though_its_output_cannot_be_kept() {
    let place = Place::new();
    let left = "exec 3<&0; (cat <&3; head -c 3000000 /dev/zero; exec sleep 30 >/dev/null 2>&1) & echo $! > pid";
    let script = format!("trap '' XFSZ; ulimit -f 4; exec relent run -q -- sh -c '{left}'");
    let output = in_sh(&place, &script);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{said}");
    assert!(said.starts_with("error: cannot keep the command's output: File too large\n"), "{said}");
    let pid = place.0.read("pid");
    assert!(is_running(&pid));
    kill(&pid);
}

/// Nor is it one where only what comes later makes it a success.
#[test]
fn no_success_has_output_that_was_left_out() {
    for (limits, flags, first, later, error) in [
        (
            "ulimit -f 4;",
            "--until-output READY",
            ":",
            "echo READY >&2",
            "cannot keep the command's output: File too large",
        ),
        ("ulimit -f 4;", "--until-output READY", ":", ":", "cannot keep the command's output: File too large"),
        (
            ":;",
            "--max-kept 10k --until-output READY$",
            "printf READY >&2",
            ":",
            "the command's output is longer than what is kept",
        ),
        ("exec >&-;", "--stream --until-output READY", ":", "echo READY", "cannot write to standard output"),
    ] {
        let place = Place::new();
        let late = format!("exec 3<&0; {first}; (cat <&3; head -c 3000000 /dev/zero; {later}) & exit 0");
        let script = format!("trap '' XFSZ; {limits} exec relent run -q --max-attempts 2 {flags} -- sh -c '{late}'");
        let output = in_sh(&place, &script);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{flags}: {said}");
        assert!(said.contains(&format!("error: {error}")), "{flags}: {said}");
    }
}

/// What is passed on as it comes, who was left writes by itself, and nobody tells it to end before it could.
#[test]
fn what_a_failed_attempt_has_left_has_a_moment_to_finish_output_that_is_not_read() {
    let place = Place::new();
    let left = "(until [ -e over ]; do sleep 0.01; done; sleep 0.1; echo last; : > log) 2>/dev/null </dev/null &";
    let seen = "sh -c 'until [ ! -e /proc/$1/fd/0 ]; do sleep 0.01; done; : > over' 0 $$ >/dev/null 2>&1 & ";
    let stays = "(trap 'echo told; exit' TERM; echo up > up; while :; do sleep 0.02; done) 2>/dev/null & until [ -e up ]; do :; done; ";
    for flags in [&["--stream"][..], &["--reset-after", "10m"]] {
        let flags = [flags, &["-q", "--max-attempts", "1"]].concat();
        place.sh(&flags, &format!("{left} {seen} echo first; exit 3")).is(3, "first\nlast\n", "");
        assert!(place.has("log"));
        ["over", "log"].iter().for_each(|name| fs::remove_file(place.0.path().join(name)).unwrap());
        place.sh(&flags, &format!("{stays} exit 3")).is(3, "told\n", "");
    }
}

#[test]
fn a_grandchild_that_never_stops_writing_does_not_hold_up_the_end() {
    let place = Place::new();
    let outcome = place.sh(&[], "while echo y; do sleep 0.001; done & echo $! > pid; sleep 0.05");
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stdout.starts_with("y\ny\n"));
    kill(&fs::read_to_string(place.0.path().join("pid")).unwrap());
}

/// Ends a process that the test left behind on purpose, if it is still there.
fn kill(pid: &str) {
    let _ = Command::new("kill").args(["-9", pid.trim()]).stderr(Stdio::null()).status();
}

/// The command takes relent's memory away while that runs (`ulimit -v`).
#[cfg(target_os = "linux")]
#[test]
fn what_there_is_no_memory_for_is_kept_in_a_file() {
    let limit = "size=$(sed -n 's/^VmSize:[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$PPID/status); \
        prlimit --pid $PPID --as=$(((size + 256) * 1024)): || exit 9; ";
    let place = Place::new();
    let outcome = place.sh(&[], &format!("{limit} head -c 3000000 /dev/zero"));
    assert_eq!((outcome.code, outcome.stdout.len(), outcome.stderr.as_str()), (Some(0), 3_000_000, ""));

    let script = format!("{limit} [ $(wc -c) = 3000000 ] && [ $RELENT_ATTEMPT = 2 ]");
    let mut command = place.command(&super::script_args(&["-q"], &script));
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, &vec![0; 3_000_000]).unwrap();
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    place.is_clean();
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let place = Place::new();
    let mut child = place.start(&[], "echo one; echo two; touch done");
    until("the command ran", || place.has("done"));
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 141)), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_reader_that_goes_away_ends_a_streaming_command() {
    let place = Place::new();
    let mut child = place.start(&["--stream", "--until-output", "never", "--max-attempts", "1", "-q"], "exec yes");
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(141));
}

#[test]
fn a_command_that_prints_nothing_prints_nothing() {
    sh(&[], ":").is(0, "", "");
}
