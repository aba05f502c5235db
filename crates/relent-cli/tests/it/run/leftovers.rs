//! What an attempt leaves running.

use super::{Place, is_running, until};
use crate::binary::tool;
use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

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

/// What is left may write to its verdict's file once more. Where others may write, one of them would take the name that is free then, for links to
/// whatever the caller may write to.
#[test]
fn the_name_of_a_verdict_is_not_for_others_while_something_is_left() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let tmp = place.0.path().join("shared");
    fs::create_dir(&tmp).unwrap();
    for (mode, script, is_kept) in [
        (0o1777, "sleep 43 >/dev/null 2>&1 & echo $! > pid; echo $RELENT_VERDICT > name", true),
        (0o1777, "setsid sleep 43 >/dev/null 2>&1 & echo $! > pid; echo $RELENT_VERDICT > name", true),
        (0o700, "sleep 43 >/dev/null 2>&1 & echo $! > pid; echo $RELENT_VERDICT > name", false),
        (0o1777, "sleep 43 & echo $! > pid; echo $RELENT_VERDICT > name; exit 3", false),
        (0o1777, "(exit 1) & echo $! > pid; echo $RELENT_VERDICT > name", false),
    ] {
        fs::set_permissions(&tmp, fs::Permissions::from_mode(mode)).unwrap();
        for flags in [&["-q", "--max-attempts=1"][..], &["-q", "--max-attempts=1", "--lease=a", "--store=sqlite:s.db"]]
        {
            let outcome = place.outcome(place.command(&super::script_args(flags, script)).env("TMPDIR", &tmp));
            assert!(matches!(outcome.code, Some(0 | 3)), "{script}: {outcome:?}");
            let named = place.0.read("name");
            let folder = Path::new(named.trim()).parent().unwrap();
            assert_eq!(folder.exists(), is_kept, "{mode:o} {flags:?} {script}");
            if is_kept {
                assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
                assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{script}");
                fs::remove_dir(folder).unwrap();
            }
            assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0, "{script}");
            let _ = Command::new("kill").args(["-9", place.0.read("pid").trim()]).output().unwrap();
        }
    }
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

/// As a shell that has something else beside: what it has started before writes nothing by a verdict's name.
#[test]
fn a_verdicts_name_is_kept_for_what_the_command_has_left_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let tmp = place.0.path().join("shared");
    fs::create_dir(&tmp).unwrap();
    fs::set_permissions(&tmp, fs::Permissions::from_mode(0o1777)).unwrap();
    for (leaves, is_kept) in [("sleep 43 >/dev/null 2>&1 & echo $! > pid", true), ("echo > pid", false)] {
        let script = format!("sleep 44 & echo $! > before; exec relent run -q --max-attempts 1 -- sh -c '{leaves}'");
        let mut shell = tool("sh");
        shell.args(["-c", &script]).current_dir(place.0.path()).env("TMPDIR", &tmp);
        assert_eq!(shell.spawn().unwrap().wait().unwrap().code(), Some(0));
        assert_eq!(fs::read_dir(&tmp).unwrap().count(), usize::from(is_kept), "{leaves}");
        fs::read_dir(&tmp).unwrap().for_each(|left| fs::remove_dir(left.unwrap().path()).unwrap());
        let pids = ["before", "pid"].map(|name| place.0.read(name).trim().to_owned());
        Command::new("kill").arg("-9").args(pids.iter().filter(|pid| !pid.is_empty())).status().unwrap();
    }
}

/// Who clears the environment is left alone there, and what they have started before is not.
#[test]
fn what_is_the_runs_own_below_who_is_left_alone_is_ended() {
    let place = Place::new();
    let below = "setsid sh -c 'echo $$ > ours; exec sleep 49' & echo $$ > alone; until [ -s ours ]; do sleep 0.01; done; exec env -i A=b sleep 50";
    fs::write(place.0.path().join("below"), below).unwrap();
    let script = "sleep 44 & echo $! > pid; \
        exec relent run -q --max-attempts 1 -- sh -c 'setsid sh below >/dev/null 2>&1 & until [ -s ours ]; do sleep 0.01; done; sleep 0.3; exit 3'";
    let mut shell = tool("sh");
    shell.args(["-c", script]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
    assert_eq!(shell.spawn().unwrap().wait().unwrap().code(), Some(3));
    let [ours, alone, pid] = ["ours", "alone", "pid"].map(|name| place.0.read(name).trim().to_owned());
    let are_running = [&ours, &alone, &pid].map(|pid| is_running(pid));
    for pid in [&ours, &alone, &pid] {
        let _ = Command::new("kill").args(["-9", pid]).status();
    }
    assert_eq!(are_running, [false, true, true]);
}

/// A script starts a helper, which makes itself a daemon, and becomes relent.
#[test]
fn nor_is_what_was_there_before_known_by_having_been_a_child() {
    let place = Place::new();
    let helper = "while [ ! -e started ]; do sleep 0.01; done; setsid sleep 45 & echo $! > theirs";
    let script = "touch started; while [ ! -s theirs ]; do sleep 0.01; done; sleep 0.1; \
                  setsid sleep 46 & echo $! > ours; \
                  RELENT_ATTEMPT=7 RELENT_ELAPSED_MS=7 setsid sleep 47 & echo $! > within; \
                  RELENT_KEY=$RELENT_KEY-mails setsid sleep 48 & echo $! > mails; \
                  setsid perl -e \"\\$0 = q(title ) x 9000; open F, q(>up); sleep 49\" & echo $! > titled; \
                  until [ -e up ]; do sleep 0.01; done; exit 3";
    let flags = "-q --max-attempts 1 --grace 100ms";
    let script = format!("sh -c '{helper}' & exec relent run {flags} -- sh -c '{script}'");
    let mut shell = tool("sh");
    shell.args(["-c", &script]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
    let mut child = shell.spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let is_left = ["theirs", "ours", "within", "mails", "titled"].map(|name| is_running(&place.0.read(name)));
    Command::new("kill").args(["-9", place.0.read("theirs").trim()]).status().unwrap();
    assert_eq!(is_left, [true, false, false, false, false]);
}

/// For a moment, as who is becoming another program on a machine that is busy.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn who_shows_nothing_counts_as_the_attempts_only_after_a_while() {
    // Its command line and its environment end where they begin (`PR_SET_MM_MAP`); of one of the two not for long.
    let blank = "open S, q(/proc/self/stat); ($s = <S>) =~ s/.*\\) //; @f = split / /, $s; $brk = syscall(12, 0);
        sub ends {
            $map = pack q(Q12Ll), @f[23, 24, 42, 43, 44], $brk, @f[25, 45], $_[0], $f[47], $_[1], 0, 0, -1;
            syscall(157, 35, 14, $map, length $map, 0) == 0 or open F, q(>cannot);
        }
        ends(@f[45, 47]); open F, qq(>$ARGV[0].new); print F $$; close F; rename qq($ARGV[0].new), $ARGV[0];
        if ($ARGV[1]) { select undef, undef, undef, .4; ends(@f[46, 48]) } sleep 60";
    let place = Place(Place::new().0.file("blank.pl", blank));
    let helper = "until [ -e started ]; do sleep 0.01; done; setsid perl blank.pl theirs 1 >/dev/null 2>&1 &";
    let script = "setsid perl blank.pl ours >/dev/null 2>&1 & until [ -s ours ]; do sleep 0.01; done; touch started; \
                  until [ -s theirs ]; do sleep 0.01; done; exit 3";
    let script = format!("sh -c '{helper}' & exec relent run -q --max-attempts 1 --grace 10s -- sh -c '{script}'");
    let mut shell = tool("sh");
    shell.args(["-c", &script]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
    assert_eq!(shell.status().unwrap().code(), Some(3));
    let is_left = ["theirs", "ours"].map(|name| is_running(&place.0.read(name)));
    Command::new("kill").args(["-9", place.0.read("theirs").trim()]).status().unwrap();
    if place.has("cannot") {
        eprintln!("SKIPPED who_shows_nothing_counts_as_the_attempts_only_after_a_while: nobody can show nothing here");
        return;
    }
    assert_eq!(is_left, [true, false]);
}

/// A script within another run, whose key and attempt it has from there.
#[test]
fn nor_is_what_was_there_before_by_what_a_run_around_it_has_set() {
    // It may tell the run around nothing, or not be able to.
    for becomes in ["", "env -u RELENT_VERDICT", "env RELENT_VERDICT="] {
        what_a_run_around_has_set_is_no_mark(becomes);
    }
}

fn what_a_run_around_has_set_is_no_mark(becomes: &str) {
    let place = Place::new();
    let helper = "while [ ! -e started ]; do sleep 0.01; done; setsid sleep 45 & echo $! > theirs";
    let within = "relent run -q -- sh -c 'setsid sleep 47 >/dev/null 2>&1 & echo $! > within'";
    let command = format!(
        "touch started; while [ ! -s theirs ]; do sleep 0.01; done; sleep 0.05; setsid sleep 46 & echo $! > ours; {within}; exit 3"
    );
    let place = Place(place.0.file("helper.sh", helper).file("command.sh", &command));
    let inner = format!("sh helper.sh & exec {becomes} relent run -q --max-attempts 1 --grace 100ms -- sh command.sh");
    let place = Place(place.0.file("inner.sh", &inner));
    let outcome = place.sh(&["-q", "--max-attempts", "1"], "sh inner.sh; echo $? > code");
    assert_eq!((outcome.code, place.0.read("code").as_str()), (Some(0), "3\n"), "{outcome:?}");
    let is_left = ["theirs", "ours", "within"].map(|name| is_running(&place.0.read(name)));
    Command::new("kill").args(["-9", place.0.read("theirs").trim()]).status().unwrap();
    assert_eq!(is_left, [true, false, false], "{becomes}");
}

/// A script has a daemon started by a run, and becomes another, which adopts it: both have the key of the script.
#[test]
fn nor_is_what_another_run_has_left_on_purpose() {
    let daemon = "relent run -q -- sh -c 'until [ -e started ]; do sleep 0.01; done; setsid sleep 45 >/dev/null 2>&1 & echo $! > theirs; until [ -s theirs ]; do sleep 0.01; done; sleep 0.1'";
    let command = "touch started; until [ -e over ]; do sleep 0.01; done; setsid sleep 46 & echo $! > ours; exit 3";
    let script =
        format!("({daemon}; touch over) & exec relent run -q --max-attempts 1 --grace 100ms -- sh -c '{command}'");
    for is_within in [false, true] {
        let place = Place(Place::new().0.file("script.sh", &script));
        if is_within {
            let outcome = place.sh(&["-q", "--max-attempts", "1"], "sh script.sh; echo $? > code");
            assert_eq!((outcome.code, place.0.read("code").as_str()), (Some(0), "3\n"), "{outcome:?}");
        } else {
            let mut shell = tool("sh");
            shell.arg("script.sh").current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
            assert_eq!(shell.env("RELENT_KEY", "order-17").status().unwrap().code(), Some(3));
        }
        let is_left = ["theirs", "ours"].map(|name| is_running(&place.0.read(name)));
        Command::new("kill").args(["-9", place.0.read("theirs").trim()]).status().unwrap();
        assert_eq!(is_left, [true, false], "within: {is_within}");
    }
}

/// What a daemon of an attempt that succeeded has started comes to relent during the next one, where the daemon ends then.
#[test]
fn nor_is_what_a_daemon_of_an_attempt_before_has_started() {
    let daemon = "setsid sleep 45 & echo $! > theirs; touch up; until [ -e over ]; do sleep 0.01; done; exit 0";
    let first =
        format!("setsid sh -c '{daemon}' >/dev/null 2>&1 & echo $! > daemon; until [ -e up ]; do sleep 0.01; done");
    let second =
        "setsid sleep 46 & echo $! > ours; touch over; while kill -0 $(cat daemon); do sleep 0.01; done; exit 3";
    let place = Place(Place::new().0.file("first.sh", &first).file("second.sh", second));
    let flags = ["-q", "--consecutive", "2", "--max-attempts", "2", "--base", "1ms", "--grace", "100ms"];
    let outcome = place.sh(&flags, "if [ $RELENT_ATTEMPT = 1 ]; then . ./first.sh; else . ./second.sh 2>&-; fi");
    let is_left = ["theirs", "ours"].map(|name| is_running(&place.0.read(name)));
    Command::new("kill").args(["-9", place.0.read("theirs").trim()]).status().unwrap();
    assert_eq!((outcome.code, is_left), (Some(3), [true, false]), "{outcome:?}");
}

/// Whatever it is called, in any encoding.
#[test]
fn nor_is_a_daemon_whose_name_is_no_text() {
    let first = "name=$(printf './\\377daemon'); cp $(command -v sleep) $name; setsid $name 45 >/dev/null 2>&1 & \
                 echo $! > theirs; while grep -q setsid /proc/$!/cmdline; do sleep 0.01; done";
    let second = "setsid sleep 46 >/dev/null 2>&1 & echo $! > ours; exit 3";
    let place = Place(Place::new().0.file("first.sh", first).file("second.sh", second));
    let flags = ["-q", "--consecutive", "2", "--max-attempts", "2", "--base", "1ms", "--grace", "100ms"];
    let outcome = place.sh(&flags, "if [ $RELENT_ATTEMPT = 1 ]; then . ./first.sh; else . ./second.sh; fi");
    let is_left = ["theirs", "ours"].map(|name| is_running(&place.0.read(name)));
    Command::new("kill").args(["-9", place.0.read("theirs").trim()]).status().unwrap();
    assert_eq!((outcome.code, is_left), (Some(3), [true, false]), "{outcome:?}");
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

/// A command may go into another group of the session, even into relent's own.
#[test]
fn a_command_that_leaves_its_group_is_ended_in_time() {
    const SCRIPT: &str = "setpgrp(0, getpgrp(getppid())); open(P, '>', 'pid.new'); print P $$; close P; \
                          rename('pid.new', 'pid'); sleep 60";
    for flags in [&["--timeout", "1s"][..], &["--attempt-timeout", "1s", "--max-attempts", "1"], &["--timeout", "1m"]] {
        let place = Place::new();
        let args = [&["run", "-q", "--grace", "200ms"], flags, &["--", "perl", "-e", SCRIPT]].concat();
        let mut command = place.command(&args);
        // Else what is told to relent's group would reach the test.
        let mut relent = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap();
        until("it has left its group", || place.has("pid"));
        let pid = place.0.read("pid");
        if flags[1] == "1m" {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(relent.id() as i32), nix::sys::signal::SIGTERM).unwrap();
        }
        let started = Instant::now();
        while relent.try_wait().unwrap().is_none() {
            if started.elapsed() > Duration::from_secs(10) {
                relent.kill().unwrap();
                panic!("{flags:?}: it is waited for");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!is_running(&pid), "{flags:?}: it is left running");
    }
}

/// Without a `/proc` of its own processes nobody knows what has left the group. It takes root to take that away.
#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_seen_is_said() {
    let place = Place::new();
    let run = "exec \"$0\" run --max-attempts 2 --base 1ms -- sh -c \"$1\"";
    let mounted = format!("mount -t tmpfs none /proc && {run}");
    for (namespace, line) in [(&["-m"][..], mounted.as_str()), (&["--pid", "--fork"], run)] {
        let script = "setsid sleep 5 & sleep 0.2; exit 1";
        let mut command = tool("unshare");
        command.args(namespace).args(["sh", "-c", line, env!("CARGO_BIN_EXE_relent"), script]);
        let output = command.current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if !said.contains("relent:") {
            eprintln!("SKIPPED what_cannot_be_seen_is_said: {said}");
            return;
        }
        assert_eq!(said.matches("cannot be seen here (/proc), and stays").count(), 1, "it is said once: {said}");
    }
    let quiet = place.sh(&["--max-attempts", "1"], "setsid sleep 5 & exit 1");
    assert!(!quiet.stderr.contains("cannot be seen"), "{}", quiet.stderr);
}

/// As long as what it has left may be told to end, or its output waits for a reader, its number is nobody else's, and so is its group's.
#[test]
#[cfg(target_os = "linux")]
fn a_command_keeps_its_number_until_nothing_of_it_is_left() {
    let is_kept = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
        status.lines().any(|line| line.starts_with("State:\tZ"))
    };
    let stays = "setsid sh -c 'trap : TERM; echo > up; until [ -e go ]; do sleep 0.02; done' & echo $$ > pid; \
                 until [ -e up ]; do sleep 0.01; done; exit 1";
    let place = Place::new();
    let mut relent = place.start(&["--max-attempts", "1", "--grace", "1m"], stays);
    until("it has ended", || place.has("pid") && is_kept(&place.0.read("pid")));
    fs::write(place.0.path().join("go"), "").unwrap();
    assert_eq!(relent.wait().unwrap().code(), Some(1));
    assert!(!Path::new("/proc").join(place.0.read("pid").trim()).exists(), "it is let go");

    let place = Place::new();
    let script = "echo $$ > pid.new; mv pid.new pid; head -c 100000 /dev/zero; exit 1";
    let flags = ["run", "--stream", "--retry-on-output", "zz", "--max-attempts", "1", "--", "sh", "-c", script];
    let mut relent = place.command(&flags).stdout(std::process::Stdio::piped()).spawn().unwrap();
    until("it has ended", || place.has("pid") && is_kept(&place.0.read("pid")));
    std::io::copy(&mut relent.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    assert_eq!(relent.wait().unwrap().code(), Some(1));
}

/// What relent looks at is how it ended, whatever signals this system has.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_for_real_time_ends_a_process_like_any_other() {
    let place = Place::new();
    let ends = "setsid sh -c 'echo > up; kill -40 $$' & until [ -e up ]; do sleep 0.01; done; sleep 0.1; kill -40 $$";
    let started = Instant::now();
    let output = place.sh(&["--max-attempts", "1", "--grace", "1m"], ends);
    assert_eq!(output.code, Some(128 + 40), "{}", output.stderr);
    assert!(started.elapsed() < Duration::from_secs(30), "nobody waits for who has ended: {}", output.stderr);
}

/// Who is of the command's group is its own, whatever environment it gave itself.
#[test]
#[cfg(target_os = "linux")]
fn of_a_command_with_siblings_all_of_its_group_is_ended() {
    let place = Place::new();
    let line = r#"sleep 9 > /dev/null 2>&1 & exec "$0" run --max-attempts 1 --grace 200ms -- sh -c '
        env -i X=1 /bin/sh -c "echo \$\$ > pid.new; mv pid.new pid; trap : TERM; while :; do sleep 0.1; done" &
        until [ -e pid ]; do sleep 0.01; done; exit 1'"#;
    let mut command = Command::new("sh");
    command.args(["-c", line, env!("CARGO_BIN_EXE_relent")]).current_dir(place.0.path());
    let output = command.env("TMPDIR", place.0.path().join("tmp")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!is_running(&place.0.read("pid")), "it is left running");
}

/// Its orphans go to the first process of that namespace, and are in its group all the same. It takes root to enter one.
#[test]
#[cfg(target_os = "linux")]
fn what_a_command_leaves_in_another_namespace_is_ended_by_its_group() {
    let place = Place::new();
    let script = r#"unshare --pid --fork --kill-child sleep 60 & shell=$!
        for try in $(seq 500); do
            first=$(cat /proc/$shell/task/$shell/children 2> none); [ -n "$first" ] && break; sleep 0.01
        done
        "$0" run --max-attempts 1 -- nsenter -t ${first% } -p sh -c 'sleep 4.75 & exit 3'; code=$?
        for name in /proc/[0-9]*; do tr '\0' ' ' < $name/cmdline 2> none | grep -qx 'sleep 4.75 ' && echo left; done
        kill -9 ${first% }; exit $code"#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_relent")]).current_dir(place.0.path());
    let output = command.env("TMPDIR", place.0.path().join("tmp")).output().unwrap();
    if output.status.code() != Some(3) {
        eprintln!("SKIPPED what_a_command_leaves_in_another_namespace_is_ended_by_its_group: {output:?}");
        return;
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

/// Many take a second signal for a wish for haste. It is in the group and, as its parent has ended, one of relent's own, too.
#[test]
#[cfg(target_os = "linux")]
fn what_is_left_in_the_group_is_told_once() {
    for (flags, ends) in [(&["--max-attempts", "1"][..], "exit 3"), (&["--timeout", "400ms"], "sleep 60")] {
        let place = Place::new();
        let left = "$SIG{TERM} = sub { syswrite STDOUT, 'x'; $told = time }; open(P, '>', 'up'); close P; \
                    select undef, undef, undef, 0.01 until $told && time > $told + 1";
        fs::write(place.0.path().join("left.pl"), left).unwrap();
        let script = format!("perl left.pl > told & until [ -e up ]; do sleep 0.01; done; {ends}");
        let flags = [&["-q", "--grace", "1m"], flags].concat();
        place.sh(&flags, &script);
        assert_eq!(place.0.read("told"), "x", "{ends}");
    }
}

/// What is shown as the state of a process is that of its first thread.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_process_whose_first_thread_has_ended_is_left_like_any_other() {
    const THREADS: &str = "use threads; $SIG{TERM} = 'IGNORE'; threads->create(sub { open(P, '>', 'pid.new'); print P $$; \
                           close P; rename('pid.new', 'pid'); sleep 60 while 1 }); syscall(60, 0)";
    let place = Place::new();
    fs::write(place.0.path().join("threads.pl"), THREADS).unwrap();
    let script = r#"unshare --pid --fork --mount-proc --kill-child sleep 60 & shell=$!
        for try in $(seq 500); do
            first=$(cat /proc/$shell/task/$shell/children 2> none); [ -n "$first" ] && break; sleep 0.01
        done
        "$0" run --max-attempts 1 --grace 200ms -- \
            nsenter -t ${first% } -p sh -c 'perl threads.pl & until [ -e pid ]; do sleep 0.01; done; sleep 0.1; exit 3'; code=$?
        for name in /proc/[0-9]*; do
            grep -qs 'State:.*Z' $name/status && [ "$(ls $name/task | wc -l)" -gt 1 ] && [ $(cat $name/comm) = perl ] && echo left
        done
        kill -9 ${first% }; exit $code"#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_relent")]).current_dir(place.0.path());
    let output = command.env("TMPDIR", place.0.path().join("tmp")).output().unwrap();
    if output.status.code() != Some(3) {
        eprintln!("SKIPPED a_process_whose_first_thread_has_ended_is_left_like_any_other: {output:?}");
        return;
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

/// Where relent itself fails, the command and what it has started are ended as after a failed attempt.
#[test]
fn what_a_run_that_fails_itself_leaves_is_ended() {
    let script = "setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 60' & \
                  while [ ! -e pid ]; do sleep 0.01; done; echo x; sleep 60";
    let lease = ["--store", "sqlite:state.db", "--lease", "nightly"];
    for (flags, script) in [
        (&[][..], script.to_owned()),
        (&lease, script.to_owned()),
        // The command is over before what it said is read.
        (&[], script.replace("echo x; sleep 60", "echo x")),
    ] {
        let place = Place::new();
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let args = [&["run", "--stream", "--until-output", "zz"], flags, &["--", "sh", "-c", &script]].concat();
        let output = place.command(&args).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(!is_running(&place.0.read("pid")), "{flags:?}: it is left running");
        assert!(!said.contains("relent was killed"), "{said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_command_of_a_run_that_fails_itself_has_its_grace() {
    let script = "trap 'sleep 0.2; echo > told; exit 0' TERM; echo x; while :; do sleep 0.01; done";
    for (grace, told) in [("1m", true), ("50ms", false)] {
        let place = Place::new();
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let args = ["run", "--stream", "--until-output", "zz", "--grace", grace, "--", "sh", "-c", script];
        assert_eq!(place.command(&args).stdout(full).status().unwrap().code(), Some(125));
        assert_eq!(place.has("told"), told, "{grace}");
    }
    let place = Place::new();
    let stubborn = "trap '' TERM; echo x; while :; do sleep 0.01; done";
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = ["run", "--stream", "--until-output", "zz", "--grace", "1500ms", "--", "sh", "-c", stubborn];
    let output = place.command(&args).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("relent: waiting for the command, which was told to end; killed in "), "{said}");
}

/// Whoever traces the command is told of its end first, and may not care: nobody else can reap it then. A command with much memory
/// takes a moment to die, in which its tracer is no orphan yet.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_command_that_its_own_child_traces_is_ended_in_time() {
    const SCRIPT: &str = "use POSIX; my $leader = $$; if (!fork) { setsid(); $SIG{$_} = 'IGNORE' for keys %SIG; \
                          my $seized = syscall(101, 0x4206, $leader, 0, 0); open(P, '>', 'pid.new'); \
                          print P $seized == 0 ? $$ : 'no'; close P; rename('pid.new', 'pid'); sleep 60 while 1 } \
                          $SIG{TERM} = 'IGNORE'; my $much = 'x' x 200_000_000; sleep 60 while 1";
    let place = Place::new();
    let flags = ["run", "--max-attempts", "1", "--attempt-timeout", "2s", "--grace", "300ms", "--timeout", "4s"];
    let mut relent = place.command(&[&flags[..], &["--", "perl", "-e", SCRIPT]].concat()).spawn().unwrap();
    until("there is a tracer", || place.has("pid"));
    let tracer = place.0.read("pid");
    let started = Instant::now();
    while relent.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(20) {
            relent.kill().unwrap();
            panic!("it is waited for");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    if tracer == "no" {
        eprintln!("SKIPPED a_command_that_its_own_child_traces_is_ended_in_time: this system lets nobody trace");
    }
    assert!(!is_running(&tracer), "it is left running");
}

/// Who traces it may have nothing to do with the run: it is enough to be the user that the command has become. It takes root to become
/// another.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_command_that_a_stranger_traces_is_not_waited_for_without_end() {
    const SCRIPT: &str = "use POSIX; if (!fork) { setsid(); fork && exit; \
                          my $seized = syscall(101, 0x4206, $ARGV[0] + 0, 0, 0); \
                          open(P, '>', 'pid.new'); print P $seized == 0 ? $$ : 'no'; close P; rename('pid.new', 'pid'); sleep 60 }";
    let place = Place::new();
    let args = ["run", "--timeout", "500ms", "--grace", "100ms", "--", "sh", "-c", "echo $$ > leader; exec sleep 60"];
    let mut relent = place.command(&args).spawn().unwrap();
    until("it runs", || place.has("leader") && !place.0.read("leader").is_empty());
    let mut tracer = Command::new("perl");
    tracer.args(["-e", SCRIPT, place.0.read("leader").trim()]).current_dir(place.0.path()).status().unwrap();
    until("there is a tracer", || place.has("pid"));
    let started = Instant::now();
    let ended = loop {
        match relent.try_wait().unwrap() {
            None if started.elapsed() > Duration::from_secs(30) => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
            ended => break ended,
        }
    };
    let tracer = place.0.read("pid");
    if tracer == "no" {
        eprintln!(
            "SKIPPED a_command_that_a_stranger_traces_is_not_waited_for_without_end: this system lets nobody trace"
        );
        return;
    }
    Command::new("kill").args(["-9", tracer.trim()]).status().unwrap();
    assert_eq!(ended.expect("it is waited for").code(), Some(125));
}

/// `sh` starts what it leaves in the background deaf to INT; that is told to end by what ends everything else.
#[test]
fn who_ignores_one_signal_is_told_by_the_other() {
    for signal in ["INT", "QUIT"] {
        let place = Place::new();
        let mut child = place.start(&["-q", "--grace=20s"], "sleep 60 & touch up; wait");
        until("it runs", || place.has("up"));
        let began = Instant::now();
        Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        child.wait().unwrap();
        assert!(began.elapsed() < Duration::from_secs(10), "{signal}: it is waited for, and killed");
    }
}
