//! How relent behaves around a command: limits that hold, input that stays, signals that arrive, pipes that close.

use super::{Place, is_running, sh, until};
use crate::binary::tool;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    process::Stdio,
    time::{Duration, Instant},
};

/// A line for a shell.
fn shell(place: &Place, line: &str) -> (String, String, Option<i32>) {
    let mut command = tool("bash");
    command.args(["-c", line]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).unwrap();
}

#[test]
fn a_timeout_ends_everything_at_its_moment() {
    let started = Instant::now();
    sh(&["--timeout", "300ms"], "echo begun; exec sleep 30").is(
        124,
        "begun\n",
        "relent: gave up after 1 attempt in [t]: out of time (timed out after [t])\n",
    );
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    // Attempts that are over in time are retried, and the last one has what is left.
    let place = Place::new();
    let outcome = place.sh(&["-q", "--timeout", "900ms"], "echo >> n; [ $(wc -l < n) -lt 3 ] && exit 1; exec sleep 30");
    assert_eq!((outcome.code, place.0.read("n").len()), (Some(124), 3));
    // What ends when it is told is out of time all the same; what does not is killed.
    assert_eq!(sh(&["-q", "--timeout", "200ms"], "trap 'exit 0' TERM; sleep 30 & wait").code, Some(124));
    assert_eq!(sh(&["-q", "--timeout", "200ms", "--grace", "50ms"], "trap '' TERM; sleep 2; sleep 2").code, Some(124));
    // Nothing starts after it, not even the first attempt of a herd.
    let none = sh(&["--timeout", "50ms", "--spread", "1h", "--seed", "5"], "touch ran");
    assert_eq!(none.code, Some(if none.stderr.is_empty() { 0 } else { 124 }));
}

#[test]
fn max_elapsed_cuts_nothing_off() {
    sh(&["-q", "--max-elapsed", "50ms"], "sleep 0.3; echo done").is(0, "done\n", "");
}

#[test]
fn times_are_those_of_the_attempt_without_the_grace() {
    let place = Place::new();
    let flags = ["--json", "--attempt-timeout", "200ms", "--grace", "800ms", "--max-attempts", "1"];
    let command = [&["run"], &flags[..], &["--", "sh", "-c", "trap '' TERM; sleep 2; sleep 2"]].concat();
    let stderr = String::from_utf8(place.command(&command).output().unwrap().stderr).unwrap();
    let ran = stderr.split("\"ran_ms\":").nth(1).unwrap().split(',').next().unwrap().parse::<u64>().unwrap();
    assert!((200..700).contains(&ran), "{stderr}");
}

/// A loop that feeds on the same input loses nothing to a command that does not read.
#[test]
fn input_that_is_not_read_stays_where_it_is() {
    let place = Place::new();
    let lines = "1\n2\n3\n4\n5\n";
    let (out, err, _) = shell(&place, "seq 5 | while read l; do relent run -- true; echo $l; done");
    assert_eq!((out.as_str(), err.as_str()), (lines, ""));
    let (out, ..) = shell(&place, "seq 3 | { relent run -q -- sh -c 'read l; echo got $l'; cat; }");
    assert_eq!(out, "got 1\n2\n3\n");
    // Read, failed, replayed, and the rest left.
    let script = "read l; echo got $l; [ $RELENT_ATTEMPT = 2 ]";
    let (out, ..) = shell(&place, &format!("seq 3 | {{ relent run -q --base 1ms -- sh -c '{script}'; cat; }}"));
    assert_eq!(out, "got 1\n2\n3\n");
    let (out, ..) = shell(&place, "seq 200000 | relent run -q --base 1ms -- sh -c 'md5sum; [ $RELENT_ATTEMPT = 2 ]'");
    assert_eq!(out, shell(&place, "seq 200000 | md5sum").0);
    // What was played again and read by the last attempt, however late, was not taken in vain.
    let script = "[ $RELENT_ATTEMPT = 1 ] || sleep 0.2; cat; [ $RELENT_ATTEMPT = 2 ]";
    let (out, err, _) = shell(&place, &format!("seq 3 | relent run --base 1ms -- sh -c '{script}'"));
    assert_eq!(out, "1\n2\n3\n");
    assert_eq!(err.matches("relent: ").count(), 2, "{err}");
    assert!(err.contains("succeeded after 2 attempts"), "{err}");
    let script = "[ $RELENT_ATTEMPT = 1 ] && cat && exit 1; sleep 0.1";
    let (_, err, _) = shell(&place, &format!("seq 3 | relent run --base 1ms -- sh -c '{script}'"));
    assert!(err.contains("took 6 bytes of standard input that the command did not read"), "{err}");
}

#[test]
fn input_of_a_socket_that_was_taken_in_vain_is_said() {
    let place = Place::new();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    std::io::Write::write_all(&mut &ours, b"four").unwrap();
    let mut command = place.command(&["run", "--", "sh", "-c", "sleep 0.3"]);
    let outcome = place.outcome(command.stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs))));
    outcome.is(
        0,
        "",
        "relent: took 4 bytes of standard input that the command did not read; --stdin inherit leaves them\n",
    );
}

#[test]
fn a_supervised_command_is_heard_while_it_runs() {
    let place = Place::new();
    let mut child = place.start(&["-q", "--reset-after", "1h"], "echo up; exec sleep 30");
    let mut said = [0; 3];
    child.stdout.take().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"up\n");
    send(child.id(), Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn what_is_kept_has_a_bound() {
    let place = Place::new();
    let (out, err, _) = shell(&place, "relent run --max-kept 4MiB -- yes | head -1");
    assert_eq!(out, "y\n");
    assert_eq!(
        err,
        "relent: half of the 4MiB of output that are kept until the attempt is judged are used\n\
         relent: the output is longer than the 4MiB that are kept (--max-kept): it goes out, and there is no other \
         attempt\n"
    );
    let long = "head -c 3000 /dev/zero | tr '\\0' x; exit 3";
    let outcome = place.sh(&["--max-kept", "1k"], long);
    assert_eq!((outcome.code, outcome.stdout.len()), (Some(3), 3000));
    assert!(outcome.stderr.ends_with("(exit 3; some of its output is out already)\n"), "{}", outcome.stderr);
    let line = "head -c 300000 /dev/zero | relent run --max-kept 1k -- sh -c 'wc -c; exit 3'; echo $?";
    let (out, err, _) = shell(&place, line);
    assert_eq!(out, "300000\n3\n");
    assert!(err.ends_with("its input was too long to be kept)\n"), "{err}");
}

#[test]
fn a_reader_that_went_away_ends_it() {
    let place = Place::new();
    for flags in ["--stream", "--reset-after 1h", "--stream --until-output never"] {
        let (out, err, code) = shell(
            &place,
            &format!(
                "relent run --base 10s {flags} -- sh -c 'while echo y; do :; done; exit 1' | head -1; exit ${{PIPESTATUS[0]}}"
            ),
        );
        assert_eq!((out.as_str(), err.as_str(), code), ("y\n", "", Some(141)), "{flags}");
    }
}

#[test]
fn a_pattern_is_seen_in_a_line_of_any_length() {
    let script = "head -c 300000 /dev/zero | tr '\\0' x; echo ready";
    assert_eq!(sh(&["-q", "--until-output", "x ?ready$", "--max-attempts", "1"], script).code, Some(0));
    assert_eq!(sh(&["-q", "--until-output", "^ready", "--max-attempts", "1"], script).code, Some(1));
}

/// A leftover in a session of its own has the first signal too, and not only the last one ten seconds later.
/// A pattern that counts far has a new state for each byte, and each takes its time.
#[test]
#[cfg(target_os = "linux")]
fn a_pattern_that_takes_long_holds_up_no_limit_and_no_signal() {
    // As much as a pipe can be made to hold, or without end.
    let speaks = "srand 3; my $said = ''; $said .= rand() < .5 ? 'error' : 'x' x (1 + rand 9) while length $said < 1 << 20; \
                  fcntl(STDOUT, 1031, 1 << 20); open(P, '>', 'up'); close P; ";
    let (all, without_end) = ("syswrite STDOUT, $said", "syswrite STDOUT, $said while 1");
    for (ends, limit, stop, code) in
        [(all, "2s", None, 124), (without_end, "2s", None, 124), (all, "5m", Some(Signal::SIGTERM), 143)]
    {
        let place = Place::new();
        let flags = ["run", "-q", "--max-attempts", "1", "--grace", "100ms", "--timeout", limit];
        let script = format!("{speaks}{ends}");
        let pattern = ["--retry-on-output", "error.{0,5000}timeout", "--", "perl", "-e", &script];
        let started = Instant::now();
        let mut relent = place.command(&[&flags[..], &pattern].concat()).stdout(Stdio::null()).spawn().unwrap();
        if let Some(signal) = stop {
            until("it has begun to speak", || place.has("up"));
            send(relent.id(), signal);
        }
        let ended = loop {
            match relent.try_wait().unwrap() {
                None if started.elapsed() > Duration::from_secs(15) => break None,
                None => std::thread::sleep(Duration::from_millis(5)),
                ended => break ended,
            }
        };
        let _ = relent.kill();
        assert_eq!(ended.map(|status| status.code()), Some(Some(code)), "{ends}, {limit}: {:?}", started.elapsed());
    }
}

#[test]
fn what_left_its_session_is_told_to_end() {
    let started = Instant::now();
    let script = "setsid sh -c 'trap \"echo told > told; exit\" TERM; echo $$ > pid; while :; do sleep 0.02; done' & \
                  while [ ! -s pid ]; do sleep 0.01; done; exit 1";
    let place = Place::new();
    assert_eq!(place.sh(&["-q", "--max-attempts", "1"], script).code, Some(1));
    assert!(place.has("told") && started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

/// A chain of processes, each of which starts the next one in a session of its own and ends.
#[test]
fn a_tree_that_runs_away_is_caught() {
    let place = Place::new();
    let hop = "#!/bin/sh\ntrap '' TERM\n[ -e stop ] && exit\nsetsid ./hop &\n";
    let place = place.file("hop", hop);
    fs::set_permissions(place.0.path().join("hop"), PermissionsExt::from_mode(0o755)).unwrap();
    let outcome = place.sh(&["-q", "--grace", "100ms", "--max-attempts", "1"], "./hop; exit 1");
    let left = shell(&place, "sleep 0.2; pgrep -f '/hop$' | wc -l").0;
    fs::write(place.0.path().join("stop"), "").unwrap();
    assert_eq!((outcome.code, left.trim()), (Some(1), "0"));
}

/// After this a signal is no echo of the one before.
const NO_ECHO: Duration = Duration::from_millis(220);

/// Whoever signals a group, or all processes of a service, or hangs up besides, means one end.
#[test]
fn signals_at_once_leave_the_command_its_grace() {
    use Signal::{SIGHUP, SIGINT, SIGTERM, SIGXCPU};
    for signals in
        [&[SIGTERM, SIGHUP][..], &[SIGHUP, SIGTERM], &[SIGTERM, SIGXCPU], &[SIGXCPU, SIGTERM], &[SIGTERM, SIGINT]]
    {
        let place = Place::new();
        let script = "trap '' HUP; trap 'trap : TERM INT; touch told; sleep 0.5; echo cleaned up; exit 0' TERM INT; \
                      touch up; while :; do sleep 0.02; done";
        let child = place.start(&["-q", "--grace", "1m", "--max-attempts", "1"], script);
        until("it runs", || place.has("up"));
        for (nth, signal) in signals.iter().enumerate() {
            send(child.id(), *signal);
            if nth == 0 && *signal != SIGHUP {
                until("it was told", || place.has("told"));
            }
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"cleaned up\n"[..]), "{signals:?}: {said}");
    }
}

#[test]
fn a_second_signal_kills_at_once() {
    let place = Place::new();
    let script = "trap 'touch told' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let child = place.start(&["-q"], script);
    until("it runs", || place.has("pid") && !place.0.read("pid").is_empty());
    send(child.id(), Signal::SIGTERM);
    until("it was told", || place.has("told"));
    assert!(is_running(&place.0.read("pid")));
    std::thread::sleep(NO_ECHO);
    let second = Instant::now();
    send(child.id(), Signal::SIGTERM);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
    assert!(second.elapsed() < Duration::from_secs(5));
    assert!(!is_running(&place.0.read("pid")));
}

/// What has left the group, too.
#[test]
fn a_second_signal_kills_what_has_left_at_once() {
    let place = Place::new();
    let script = "trap 'touch told' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > pid.new; mv pid.new pid; \
                  while :; do sleep 0.05; done' & while :; do sleep 0.05; done";
    let child = place.start(&["-q", "--grace", "30s"], script);
    until("it runs", || place.has("pid"));
    send(child.id(), Signal::SIGTERM);
    until("it was told", || place.has("told"));
    std::thread::sleep(NO_ECHO);
    let second = Instant::now();
    send(child.id(), Signal::SIGTERM);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
    assert!(second.elapsed() < Duration::from_secs(10), "{:?}", second.elapsed());
    assert!(!is_running(&place.0.read("pid")));
}

#[test]
fn waiting_for_somebody_is_said() {
    let script = "trap '' TERM; sleep 5";
    let outcome = sh(&["--attempt-timeout", "100ms", "--grace", "1300ms", "--max-attempts", "1"], script);
    assert!(
        outcome.stderr.starts_with("relent: waiting for the command, which was told to end; killed in [t]\n"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn signals_that_are_the_commands_are_passed_on() {
    for signal in ["USR1", "USR2", "ALRM", "WINCH", "CONT", "HUP"] {
        let place = Place::new();
        let script =
            format!("trap 'echo {signal} > got' {signal}; touch up; while [ ! -e got ]; do sleep 0.02; done; exit 0");
        let child = place.start(&[], &script);
        until("it is up", || place.has("up"));
        send(child.id(), signal_of(signal));
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{signal}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(place.has("got"), "{signal}");
    }
}

fn signal_of(name: &str) -> Signal {
    format!("SIG{name}").parse().unwrap()
}

#[test]
fn the_first_signal_can_be_named() {
    let place = Place::new();
    // What a shell starts behind it hears no INT: it is ended by the shell itself.
    let script = "trap 'echo int > got; kill $!; exit 3' INT; sleep 30 & wait";
    let flags = ["-q", "--attempt-timeout", "300ms", "--max-attempts", "1"];
    for signal in ["INT", "sigint", "2"] {
        let _ = fs::remove_file(place.0.path().join("got"));
        assert_eq!(place.sh(&[&flags[..], &["--signal", signal]].concat(), script).code, Some(124));
        assert!(place.has("got"), "{signal}");
    }
    let bad = place.sh(&["--signal", "NONE"], ":");
    assert!(bad.stderr.contains("\"NONE\" is no signal"), "{}", bad.stderr);
}

/// Three attempts around three attempts are three.
#[test]
fn layers_do_not_multiply() {
    let place = Place::new();
    let inner = "relent run -q --base 1ms --max-attempts 3 -- sh -c 'echo >> n; exit 7'";
    let outcome = place.sh(&["-q", "--max-attempts", "3"], inner);
    assert_eq!((outcome.code, place.0.read("n").len()), (Some(7), 3));
    // Overloaded stays overloaded.
    let inner = "relent run -q --base 1ms -- sh -c 'echo overloaded > $RELENT_VERDICT; exit 7'";
    let outcome = place.sh(&["--max-attempts", "3"], inner);
    assert!(outcome.stderr.contains("gave up after 1 attempt"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("told not to retry"), "{}", outcome.stderr);
    // A failure that was coped with is none, and says nothing about another one.
    let inner = "relent run -q --base 1ms --max-attempts 2 -- sh -c 'exit 7'";
    assert_eq!(place.sh(&["-q"], &format!("{inner} || echo instead")).stdout, "instead\n");
    for (takes_back, attempts) in [("", 1), (": > \"$RELENT_VERDICT\"; ", 3)] {
        let place = Place::new();
        let same = format!("echo >> same; {inner}; {takes_back}exit 7");
        assert_eq!(place.sh(&["-q", "--max-attempts", "3"], &same).code, Some(7));
        assert_eq!(place.0.read("same").lines().count(), attempts, "{takes_back}");
    }
    let other = place.sh(&["-q", "--max-attempts", "3"], &format!("{inner}; echo >> other; exit 1"));
    assert_eq!((other.code, place.0.read("other").len()), (Some(1), 3));
    let connect = place.sh(&["-q", "--max-attempts", "3"], "echo >> c; relent connect -q --max-attempts 1 127.0.0.1:1");
    assert_eq!((connect.code, place.0.read("c").len()), (Some(1), 1));
}

#[test]
fn the_time_that_is_left_is_passed_on_and_obeyed() {
    let outcome = sh(&["-q", "--timeout", "20s", "--attempt-timeout", "10s"], "echo $RELENT_DEADLINE_MS");
    let left: u64 = outcome.stdout.trim().parse().unwrap();
    assert!((9_000..=10_000).contains(&left), "{left}");
    sh(&["-q"], "echo ${RELENT_DEADLINE_MS-none}").is(0, "none\n", "");
    let place = Place::new();
    let mut command = place.command(&["run", "--", "sleep", "30"]);
    let outcome = place.outcome(command.env("RELENT_DEADLINE_MS", "200"));
    outcome.is(124, "", "relent: gave up after 1 attempt in [t]: out of time (timed out after [t])\n");
    let mut command = place.command(&["run", "--", "touch", "ran"]);
    let outcome = place.outcome(command.env("RELENT_DEADLINE_MS", "0"));
    assert_eq!((outcome.code, place.has("ran")), (Some(124), false));
    let mut command = place.command(&["connect", "-q", "127.0.0.1:1"]);
    let outcome = place.outcome(command.env("RELENT_DEADLINE_MS", "100"));
    assert_eq!(outcome.code, Some(124));
}

/// As env and timeout run them.
#[test]
fn a_script_without_an_interpreter_is_run_by_the_shell() {
    let place = Place::new().file("script", "echo \"$1 of $#\"\n").file("binary", "\0\u{1}no program");
    for name in ["script", "binary"] {
        fs::set_permissions(place.0.path().join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    place.relent(&["run", "--", "./script", "a", "b"]).is(0, "a of 2\n", "");
    let path = format!("{}:/usr/bin:/bin", place.0.path().display());
    place.outcome(place.command(&["run", "--", "script", "a"]).env("PATH", path)).is(0, "a of 1\n", "");
    let binary = place.relent(&["run", "--", "./binary"]);
    assert_eq!(binary.code, Some(126));
    assert!(binary.stderr.contains("built for another kind of machine"), "{}", binary.stderr);
}

#[test]
fn hints_match_the_failure() {
    let place = Place::new().file("folder/x", "").file("dos", "#!/bin/sh\r\necho hi\r\n").file("here", "");
    fs::set_permissions(place.0.path().join("dos"), PermissionsExt::from_mode(0o755)).unwrap();
    let said = |command: &str| place.relent(&["run", "--", command]).stderr;
    assert_eq!(said("./folder"), "error: cannot execute ./folder: it is a folder\nhint: name the program in it\n");
    assert!(said("./dos").contains("carriage return"), "{}", said("./dos"));
    assert!(said("here").contains("./ before it says so"), "{}", said("here"));
    assert!(said("./none").contains("no such file"), "{}", said("./none"));
}

/// A program that is being written may be whole the next time.
#[test]
fn a_program_that_is_being_written_is_retried() {
    let place = Place::new();
    let program = place.0.path().join("program");
    fs::copy("/bin/true", &program).unwrap();
    let open = fs::OpenOptions::new().append(true).open(&program).unwrap();
    let busy = place.relent(&["run", "--base", "1ms", "--max-attempts", "2", "--", "./program"]);
    assert_eq!(busy.code, Some(126));
    assert!(busy.stderr.contains("attempt 1 of 2: cannot execute ./program: Text file busy; next"), "{}", busy.stderr);
    drop(open);
    assert_eq!(place.relent(&["run", "--", "./program"]).code, Some(0));
}

#[test]
fn a_report_is_private_and_a_file() {
    let place = Place::new().file("old", "");
    for name in ["new", "old"] {
        assert_eq!(place.relent(&["run", "--report", name, "--", "true"]).code, Some(0));
        let mode = fs::metadata(place.0.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
    nix::unistd::mkfifo(&place.0.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let outcome = place.relent(&["run", "--report", "pipe", "--", "true"]);
    assert_eq!(outcome.code, Some(125));
    assert!(outcome.stderr.contains("named pipe"), "{}", outcome.stderr);
}

/// Permissions are asked when a file is opened, and not again.
#[test]
fn who_has_a_report_open_already_does_not_read_the_new_one() {
    let place = Place::new().file("old", "nothing\n").file("own", "nothing\n");
    for (name, mode) in [("old", 0o644), ("own", 0o600)] {
        fs::set_permissions(place.0.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    std::os::unix::fs::symlink("old", place.0.path().join("link")).unwrap();
    for name in ["link", "own"] {
        let mut open = fs::File::open(place.0.path().join(name)).unwrap();
        assert_eq!(place.relent(&["run", "--report", name, "--", "true", "secret"]).code, Some(0));
        let mut read = String::new();
        open.read_to_string(&mut read).unwrap();
        assert_eq!(read, "nothing\n", "{name}");
        assert!(place.0.read(name).contains("secret"), "{name}");
    }
    assert!(fs::symlink_metadata(place.0.path().join("link")).unwrap().is_symlink());
    let mode = fs::metadata(place.0.path().join("old")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert!(!place.0.names().iter().any(|name| name.starts_with(".relent-")), "{:?}", place.0.names());
}

/// It is written at the end, and as a whole.
#[test]
fn a_report_is_the_old_one_until_the_new_one_is_there() {
    let place = Place::new().file("report", "old\n");
    let wrong = place.relent(&["run", "--report", "report", "--lease", "a", "--store", "sqlit:x", "--", "true"]);
    assert_eq!((wrong.code, place.0.read("report").as_str()), (Some(125), "old\n"));
    let inner = "cat report; relent run -q --report report -- true; cp report inner";
    let outer = shell(&place, &format!("relent run -q --report report -- sh -c '{inner}'"));
    assert_eq!(outer, ("old\n".to_owned(), String::new(), Some(0)));
    let command = |name: &str| {
        let report: serde_json::Value = serde_json::from_str(&place.0.read(name)).unwrap();
        report["command"][0].as_str().unwrap().to_owned()
    };
    assert_eq!((command("inner"), command("report")), ("true".to_owned(), "sh".to_owned()), "one of two runs each");
}

/// What a command has done is done, whatever becomes of the report, and builds make their folder anew.
#[test]
fn output_outlasts_a_report_that_cannot_be_written() {
    let place = Place::new();
    let run = |command: &str| place.relent(&["run", "-q", "--report", "build/report", "--", "sh", "-c", command]);
    fs::create_dir(place.0.path().join("build")).unwrap();
    run("rm -r build; mkdir build; echo done").is(0, "done\n", "");
    assert!(place.0.read("build/report").starts_with("{\"command\":"));
    for command in ["rm -r build; echo done", "rm -f build/report; mkdir build/report; echo done"] {
        fs::create_dir_all(place.0.path().join("build")).unwrap();
        let lost = run(command);
        assert_eq!((lost.code, lost.stdout.as_str()), (Some(125), "done\n"), "{lost:?}");
        assert!(lost.stderr.starts_with("error: cannot write the report: "), "{lost:?}");
    }
}

/// Which is a pipe in CI and in containers; what is closed is an error, though another thing stands in its place.
#[test]
#[cfg(target_os = "linux")]
fn a_report_goes_to_what_is_open_already_whatever_that_is() {
    let place = Place::new();
    let reported = place.relent(&["run", "-q", "--report", "/dev/stderr", "--", "true"]);
    assert_eq!(reported.code, Some(0));
    assert!(reported.stderr.starts_with("{\"command\":[\"true\"]"), "{}", reported.stderr);
    let closed = shell(&place, "relent run -q --report /dev/fd/3 -- true 3>&- 2>&1; echo $?").0;
    assert!(
        closed.contains("/dev/fd/3") && closed.ends_with("125\n"),
        "it would be a socket of relent's own: {closed}"
    );
    let by_a_number = shell(&place, "relent run -q --report /dev/fd/3 -- echo text 3>&1 >/dev/null | grep -c command");
    assert_eq!(by_a_number, ("1\n".to_owned(), String::new(), Some(0)));
    let (_, said, code) = shell(&place, "relent run -q --report /dev/stdout -- true >&-");
    assert_eq!(code, Some(125));
    assert!(said.contains("it is closed"), "{said}");
}

#[test]
fn nothing_that_others_wrote_is_obeyed() {
    let place = Place::new();
    let outcome = place.sh(&[], "printf 'bad\\033[2J\\302\\233\\n' > $RELENT_VERDICT; exit 1");
    assert!(outcome.stderr.is_ascii() && !outcome.stderr.contains('\u{1b}'), "{}", outcome.stderr);
    let named = place.relent(&["run", "--", "no\u{1b}[2J\u{202e}such\nerror: forged"]);
    assert!(!named.stderr.contains('\u{1b}') && !named.stderr.contains("\nerror: forged"), "{}", named.stderr);
}

#[test]
fn a_value_that_is_too_large_is_refused() {
    for flags in [
        ["--grace", "99999999999999h"],
        ["--timeout", "60d"],
        ["--attempt-timeout", "60d"],
        ["--base", "99999999999999h"],
        ["--heartbeat", "99999999999999h"],
        ["--max-kept", "99999999999T"],
    ] {
        assert_eq!(sh(&flags, ":").code, Some(125), "{flags:?}");
    }
}
