//! A command on one machine of many: `--lease`, with real processes.

use super::{Place, QUICK, is_running, until};
use crate::binary::Outcome;
use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Short waits, one store, a lease that a test can outwait.
const LEASE: [&str; 6] = ["--store", "sqlite:state.db", "--lease", "nightly", "--cap", "20ms"];

pub(super) fn args<'a>(flags: &[&'a str], script: &'a str) -> Vec<&'a str> {
    [&QUICK[..], &LEASE[..], flags, &["--", "sh", "-c", script]].concat()
}

pub(super) fn start(place: &Place, flags: &[&str], script: &str) -> Child {
    let mut command = place.command(&args(flags, script));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary was built")
}

pub(super) fn wait(child: Child) -> Outcome {
    let output = child.wait_with_output().unwrap();
    Outcome {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code(),
    }
}

pub(super) fn signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), pid.trim()]).status().unwrap().success());
}

/// It may have ended.
fn signal_if_there(name: &str, pid: u32) {
    let _ = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).stderr(Stdio::null()).status();
}

/// The numbers that runs have written down, one a line.
fn fences(place: &Place) -> Vec<u64> {
    place.0.read("fences").lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn of_ten_at_once_no_two_run_together_and_fences_grow() {
    let place = Place::new();
    let script = "mkdir busy || echo two >> wrong; echo $RELENT_FENCE >> fences; sleep 0.03; rmdir busy";
    let runs: Vec<Child> = (0..10).map(|_| start(&place, &["--lease-ttl", "10s"], script)).collect();
    for run in runs {
        let outcome = wait(run);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
    assert!(!place.has("wrong"));
    let fences = fences(&place);
    assert!(fences.len() == 10 && fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

/// The delays of the policy say how often, and neither they nor the attempts for how long.
#[test]
fn a_list_of_delays_that_comes_to_its_end_does_not_end_the_wait() {
    let place = Place::new();
    let holder = start(&place, &[], "touch held; while [ ! -e go ]; do sleep 0.01; done");
    until("it is held", || place.has("held"));
    let flags = ["run", "--store", "sqlite:state.db", "--lease", "nightly", "--delays", "1ms", "--max-attempts", "1"];
    let mut next = place.command(&[&flags[..], &["--", "true"]].concat());
    let mut next = next.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(next.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for lease nightly"), "{line}");
    fs::write(place.0.path().join("go"), "").unwrap();
    assert_eq!((wait(holder).code, next.wait().unwrap().code()), (Some(0), Some(0)));
}

#[test]
fn the_lease_is_one_for_all_attempts_and_let_go_after_them() {
    let place = Place::new();
    let outcome = place.relent(&args(&["-q"], "echo $RELENT_FENCE >> fences; [ $RELENT_ATTEMPT = 3 ]"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let fences_of_one = fences(&place);
    assert!(fences_of_one.len() == 3 && fences_of_one.iter().all(|fence| *fence == fences_of_one[0]));
    let next = place.relent(&args(&["-q", "--lease-held", "fail"], "echo $RELENT_FENCE >> fences"));
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(fences(&place)[3] > fences_of_one[0]);
}

/// The command goes as soon as its relent is dead; the lease, when its time is over.
#[test]
fn a_relent_that_is_killed_takes_its_command_along_and_the_next_gets_the_lease() {
    let place = Place::new();
    let script = "echo $RELENT_FENCE >> fences; echo $$ > pid; exec sleep 60 2>&-";
    let mut first = start(&place, &["--lease-ttl", "1s", "--json"], script);
    until("the first runs", || place.has("pid") && !place.0.read("pid").is_empty());
    first.kill().unwrap();
    first.wait().unwrap();
    let killed = Instant::now();
    let pid = place.0.read("pid");
    until("its command is ended", || !is_running(&pid));
    let second = start(&place, &["--lease-ttl", "1s"], "echo $RELENT_FENCE >> fences");
    // What is said after relent's end, too, is for machines.
    for line in wait(first).stderr.lines() {
        assert!(
            serde_json::from_str::<serde_json::Value>(line).is_ok_and(|event| event["event"].is_string()),
            "{line}"
        );
    }
    let second = wait(second);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(second.stderr.contains("waiting for lease nightly, which "), "{second:?}");
    let fences = fences(&place);
    assert!(fences.len() == 2 && fences[0] < fences[1], "{fences:?}");
    assert!(killed.elapsed() < Duration::from_secs(10));
}

/// The watchman of a lease inside of another is none of what that one's ends, and the command is known to both.
#[test]
fn under_two_leases_the_command_ends_whichever_relent_is_killed() {
    for which in ["outer", "inner"] {
        let place = Place::new();
        let stubborn =
            "trap '' TERM; echo $PPID > inner; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.01; done";
        let inner = ["relent", "run", "-q", "--store", "sqlite:state.db", "--lease", "b", "--lease-ttl", "20s"];
        let outer =
            ["run", "-q", "--store", "sqlite:state.db", "--lease", "a", "--lease-ttl", "2s", "--max-attempts", "1"];
        let args = [&outer[..], &["--"], &inner, &["--grace", "10s", "--", "sh", "-c", stubborn]].concat();
        let mut relent = place.command(&args).spawn().unwrap();
        until("the command runs", || place.has("pid"));
        let pid = place.0.read("pid");
        let killed = if which == "outer" { relent.id().to_string() } else { place.0.read("inner") };
        let began = Instant::now();
        signal("KILL", &killed);
        until("its command is ended", || !is_running(&pid));
        assert!(began.elapsed() < Duration::from_secs(15), "{which}: {:?}", began.elapsed());
        signal_if_there("TERM", relent.id());
        relent.wait().unwrap();
    }
}

/// Its command is ended by the second process before another can have the lease, though it heeds no TERM.
#[test]
fn a_relent_that_is_stopped_loses_the_lease_and_its_command() {
    let place = Place::new();
    let stubborn = "trap '' TERM; echo $RELENT_FENCE >> fences; echo $$ > pid; while :; do sleep 0.01; done";
    let first = start(&place, &["--lease-ttl", "3s"], stubborn);
    until("the first runs", || place.has("pid") && !place.0.read("pid").is_empty());
    let pid = place.0.read("pid");
    signal("STOP", &first.id().to_string());
    // What runs under the lease next looks whether the first command is still there, dead ones that nobody has waited for aside.
    let script = format!("echo $RELENT_FENCE >> fences; grep -s '^State:' /proc/{}/status > state; true", pid.trim());
    let second = wait(start(&place, &["--lease-ttl", "3s"], &script));
    assert_eq!(second.code, Some(0), "{second:?}");
    let state = place.0.read("state");
    assert!(state.is_empty() || state.contains("Z ("), "two at once: {state} {second:?}");
    signal("CONT", &first.id().to_string());
    let first = wait(first);
    assert_eq!(first.code, Some(75), "{first:?}");
    assert!(first.stderr.contains("relent: the lease nightly "), "{first:?}");
    let fences = fences(&place);
    assert!(fences.len() == 2 && fences[0] < fences[1], "{fences:?}");
}

/// Who forks and leaves its session all the time is seen by chance, and is looked for until it was not seen for several times.
#[test]
#[cfg(target_os = "linux")]
fn a_command_that_runs_away_from_its_watchman_is_caught() {
    for how in ["KILL", "STOP"] {
        let place = Place::new();
        let hops = "use POSIX; $SIG{TERM} = $SIG{HUP} = 'IGNORE'; my $end = time + 15; while (time < $end) { \
                    open(H, '>>', 'hops'); syswrite H, '.'; close H; select undef, undef, undef, 0.002; \
                    my $child = fork; exit if $child; setsid if defined $child }";
        fs::write(place.0.path().join("hops.pl"), hops).unwrap();
        let script = "for hopper in 1 2 3; do perl hops.pl & done; sleep 60";
        let mut relent = start(&place, &["--lease-ttl", "1s", "--grace", "100ms"], script);
        let hops = || fs::metadata(place.0.path().join("hops")).map_or(0, |data| data.len());
        until("it runs away", || hops() > 60);
        signal(how, &relent.id().to_string());
        let began = Instant::now();
        until("it is caught", || {
            let before = hops();
            std::thread::sleep(Duration::from_millis(700));
            before == hops()
        });
        assert!(began.elapsed() < Duration::from_secs(10), "{how}: {:?}", began.elapsed());
        let _ = relent.kill();
        let _ = relent.wait();
    }
}

/// Somebody locks the whole store: the command is told to end in time, and that is how it is.
#[test]
fn a_store_that_is_away_ends_the_command_before_the_lease() {
    let place = Place::new();
    let script = "trap 'echo told > told; exit 3' TERM; echo $$ > pid; while :; do sleep 0.01; done";
    let run = start(&place, &["--lease-ttl", "3s"], script);
    until("it runs", || place.has("pid") && !place.0.read("pid").is_empty());
    let lock = lock(&place);
    let began = Instant::now();
    until("it was told", || place.has("told"));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    drop(lock);
    let outcome = wait(run);
    assert_eq!(outcome.code, Some(75), "{outcome:?}");
    assert!(outcome.stderr.contains("the lease nightly cannot be renewed: "), "{outcome:?}");
    assert!(outcome.stderr.contains("stopped after 1 attempt in "), "{outcome:?}");
}

pub(super) fn has_open(run: &Child, name: &str) -> bool {
    let open = fs::read_dir(format!("/proc/{}/fd", run.id())).into_iter().flatten().flatten();
    open.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|file| file.ends_with(name))
}

/// Somebody has the whole store, until this is dropped.
pub(super) fn lock(place: &Place) -> rusqlite::Connection {
    let lock = rusqlite::Connection::open(place.0.path().join("state.db")).unwrap();
    lock.busy_timeout(Duration::from_secs(5)).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    lock
}

/// Somebody locks the whole store: it answers neither the wish for the lease nor that it is let go.
#[test]
fn a_store_that_hangs_holds_up_no_deadline_and_no_signal() {
    let place = Place::new();
    let lock = || lock(&place);
    let migrated = place.relent(&["store", "migrate", "--store", "sqlite:state.db"]);
    assert_eq!(migrated.code, Some(0), "{migrated:?}");
    let locked = lock();
    let began = Instant::now();
    let outcome = wait(start(&place, &["--timeout", "500ms"], "touch ran"));
    assert_eq!(outcome.code, Some(124), "{outcome:?}");
    let silent = "relent: store sqlite:state.db: it does not answer; if it grants lease nightly yet, that ends by itself within 30s\n";
    assert!(outcome.stderr.starts_with(silent), "{outcome:?}");
    assert!(outcome.stderr.ends_with(": out of time\n"), "{outcome:?}");
    assert!(!place.has("ran") && began.elapsed() < Duration::from_millis(2500), "{:?}", began.elapsed());

    let run = start(&place, &[], "touch ran");
    until("it has the store open", || has_open(&run, "state.db"));
    // It has asked by then; and if not, ends all the same.
    std::thread::sleep(Duration::from_millis(300));
    let told = Instant::now();
    signal("TERM", &run.id().to_string());
    let outcome = wait(run);
    assert!(told.elapsed() < Duration::from_secs(1), "{:?}: {outcome:?}", told.elapsed());
    assert_eq!(outcome.code, Some(143), "{outcome:?}");
    assert!(!place.has("ran"), "{outcome:?}");
    drop(locked);

    let began = Instant::now();
    let run = start(&place, &["--timeout", "2s"], "touch ran; sleep 60");
    until("it runs", || place.has("ran"));
    let _locked = lock();
    let outcome = wait(run);
    assert_eq!(outcome.code, Some(124), "{outcome:?}");
    assert!(
        outcome.stderr.contains("the lease nightly was not released, and ends by itself within 30s"),
        "{outcome:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

/// Anybody of the same user may stop it, the command too.
#[cfg(target_os = "linux")]
#[test]
fn a_watchman_that_is_stopped_holds_up_nothing() {
    let place = Place::new();
    let script = "for child in $(cat /proc/$PPID/task/$PPID/children); do
        [ $child = $$ ] || { kill -STOP $child && echo $child > watchman; }
    done";
    let run = start(&place, &[], script);
    let outcome = wait(run);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(!is_running(place.0.read("watchman").trim()), "it is gone");
}

/// One that goes on after it was stopped knows what has been since, however much that is.
#[cfg(target_os = "linux")]
#[test]
fn a_watchman_that_goes_on_does_nothing_on_what_is_old() {
    let place = Place::new();
    let script = "[ -e watchman ] || for child in $(cat /proc/$PPID/task/$PPID/children); do
        [ $child = $$ ] || { kill -STOP $child && echo $child > watchman; date +%s > stopped; }
    done
    echo x >> count; [ $(wc -l < count) -lt 250 ] && exit 1
    until [ $(($(date +%s) - $(cat stopped))) -ge 4 ]; do sleep 0.1; done
    kill -CONT $(cat watchman); sleep 0.5";
    let flags = ["-q", "--lease-ttl", "3s", "--max-attempts", "300", "--base", "1ms", "--cap", "1ms"];
    let outcome = wait(start(&place, &flags, script));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    assert_eq!(place.0.read("count").lines().count(), 250, "none was ended and begun again");
}

/// Who signals all of a service at once means the command, which reopens its logs, and not who watches over it. That it is gone is said while
/// the command runs.
#[cfg(target_os = "linux")]
#[test]
fn a_watchman_outlives_what_is_only_passed_on_and_its_end_is_said_at_once() {
    for (signals, is_missed) in [("USR1 USR2 ALRM HUP", 0), ("KILL", 1)] {
        let place = Place::new();
        let script = format!(
            "for child in $(cat /proc/$PPID/task/$PPID/children); do
                [ $child = $$ ] || for signal in {signals}; do kill -$signal $child; done
            done
            sleep 1.5; touch over"
        );
        let outcome = wait(start(&place, &["--lease-ttl", "3s"], &script));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(outcome.stderr.matches("nobody watches over the lease any more").count(), is_missed, "{outcome:?}");
    }
}

/// As by a system that has too little memory.
#[cfg(target_os = "linux")]
#[test]
fn a_watchman_that_was_ended_is_missed_and_its_number_is_nobody_elses() {
    let place = Place::new();
    let script = "[ -e watchman ] || for child in $(cat /proc/$PPID/task/$PPID/children); do
        [ $child = $$ ] || { kill -9 $child && echo $child > watchman; }
    done
    (exit 0) & wait
    echo x >> count; [ $(wc -l < count) -lt 3 ] && { sleep 0.1; exit 1; }
    grep -s '^State:' /proc/$(cat watchman)/status > state; true";
    let outcome = wait(start(&place, &["--max-attempts", "3", "--base", "1ms"], script));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stderr.matches("nobody watches over the lease any more").count(), 1, "{outcome:?}");
    assert!(place.0.read("state").contains("Z ("), "it is kept: {}", place.0.read("state"));
}

/// Whoever wants an end after the command was through does not wait for a store that is silent.
#[test]
fn a_signal_ends_the_wait_for_a_lease_to_be_let_go() {
    let place = Place::new();
    let run = start(&place, &[], "touch ran; exec >&- 2>&-; while [ ! -e go ]; do sleep 0.01; done; echo $$ > last");
    until("it runs", || place.has("ran"));
    let locked = lock(&place);
    fs::write(place.0.path().join("go"), "").unwrap();
    until("the command is through", || place.has("last") && !is_running(place.0.read("last").trim()));
    let told = Instant::now();
    signal("TERM", &run.id().to_string());
    let outcome = wait(run);
    // It would be waited for for four seconds.
    assert!(told.elapsed() < Duration::from_secs(2), "{:?}: {outcome:?}", told.elapsed());
    assert!(outcome.stderr.contains("the lease nightly was not released, and ends by itself"), "{outcome:?}");
    drop(locked);
}

/// Nor does whoever has ended the command.
#[test]
fn a_signal_that_has_ended_the_run_waits_for_no_silent_store() {
    let succeeds = "trap 'exit 0' TERM; touch ran; while :; do sleep 0.01; done";
    for (script, code) in [("touch ran; exec sleep 60", 143), (succeeds, 0)] {
        let place = Place::new();
        let run = start(&place, &[], script);
        until("it runs", || place.has("ran"));
        let locked = lock(&place);
        let told = Instant::now();
        signal("TERM", &run.id().to_string());
        let outcome = wait(run);
        // It would be waited for for three seconds.
        assert!(told.elapsed() < Duration::from_secs(2), "{:?}: {outcome:?}", told.elapsed());
        assert!(outcome.stderr.contains("the lease nightly was not released, and ends by itself"), "{outcome:?}");
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        drop(locked);
    }
}

/// Its command is through: nothing is left to be ended, whatever becomes of relent.
#[test]
fn what_a_successful_command_leaves_stays_if_relent_is_killed_while_the_store_is_waited_for() {
    let place = Place::new();
    let script = "setsid sh -c 'echo $$ > daemon; exec sleep 60' >&- 2>&- & exec >&- 2>&-
        until [ -s daemon ] && [ -e go ]; do sleep 0.01; done; echo $$ > last";
    let mut run = start(&place, &["--max-attempts", "1"], script);
    until("it runs", || place.has("daemon"));
    let locked = lock(&place);
    fs::write(place.0.path().join("go"), "").unwrap();
    until("the command is through", || place.has("last") && !is_running(place.0.read("last").trim()));
    std::thread::sleep(Duration::from_millis(200));
    assert!(run.try_wait().unwrap().is_none(), "the store is waited for");
    signal("KILL", &run.id().to_string());
    wait(run);
    std::thread::sleep(Duration::from_millis(300));
    let daemon = place.0.read("daemon");
    assert!(is_running(daemon.trim()));
    signal("KILL", daemon.trim());
    drop(locked);
}

#[test]
fn who_does_not_wait_is_told_who_holds_it() {
    let place = Place::new();
    let holder = start(&place, &[], "touch held; while [ ! -e go ]; do sleep 0.01; done");
    until("it is held", || place.has("held"));
    let by = format!(":{} holds lease nightly (", holder.id());
    let said = |flags: &[&str]| wait(start(&place, flags, "touch ran"));

    let skipped = said(&["--lease-held", "skip"]);
    assert_eq!(skipped.code, Some(0), "{skipped:?}");
    assert!(skipped.stderr.starts_with("relent: skipped: ") && skipped.stderr.contains(&by), "{skipped:?}");
    let failed = said(&["--lease-held", "fail"]);
    assert_eq!(failed.code, Some(75), "{failed:?}");
    assert!(failed.stderr.starts_with("relent: not run: ") && failed.stderr.contains(&by), "{failed:?}");
    let waited = said(&["--lease-wait", "50ms"]);
    assert_eq!(waited.code, Some(75), "{waited:?}");
    assert!(waited.stderr.contains("waiting for lease nightly, which "), "{waited:?}");
    assert!(waited.stderr.contains("relent: not run: ") && waited.stderr.contains(&by), "{waited:?}");
    for flag in ["--timeout", "--max-elapsed"] {
        let late = said(&[flag, "50ms"]);
        assert_eq!(late.code, Some(124), "{late:?}");
    }
    assert_eq!(said(&["-q", "--lease-held", "skip"]).stderr, "");
    let machine = said(&["--json", "--lease-held", "skip"]).stderr;
    let events: Vec<serde_json::Value> = machine.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((events.len(), &events[0]["state"], &events[0]["lease"]), (2, &"skipped".into(), &"nightly".into()));
    assert_eq!((&events[1]["outcome"], &events[1]["exit"]), (&"skipped".into(), &0.into()));

    assert!(!place.has("ran"), "nobody ran without the lease");
    fs::write(place.0.path().join("go"), "").unwrap();
    assert_eq!(wait(holder).code, Some(0));
}

/// Nobody holds what nobody was asked about.
#[test]
fn a_store_that_does_not_answer_is_no_holder() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let store = format!("redis://{}", silent.local_addr().unwrap());
    for held in ["wait", "skip", "fail"] {
        let place = Place::new();
        let flags = ["run", "--lease", "nightly", "--store", &store, "--lease-wait", "50ms", "--lease-held", held];
        let outcome = place.relent(&[&flags[..], &["--", "touch", "ran"]].concat());
        assert_eq!((outcome.code, place.has("ran")), (Some(125), false), "{outcome:?}");
        assert!(outcome.stderr.contains("does not answer") && !outcome.stderr.contains("holds"), "{outcome:?}");
    }
    let place = Place::new();
    let at_once = wait(start(&place, &["--lease-wait", "0s"], "touch ran"));
    assert_eq!((at_once.code, place.has("ran")), (Some(0), true), "{at_once:?}");
}

#[test]
fn a_wait_ends_with_a_signal_and_takes_nothing() {
    let place = Place::new();
    let holder = start(&place, &[], "touch held; while [ ! -e go ]; do sleep 0.01; done");
    until("it is held", || place.has("held"));
    let mut waiting = start(&place, &["--report", "report.json"], "touch ran");
    let mut stderr = BufReader::new(waiting.stderr.take().unwrap());
    stderr.read_line(&mut String::new()).unwrap();
    signal("TERM", &waiting.id().to_string());
    let waiting = wait(waiting);
    assert_eq!(waiting.code, Some(143), "{waiting:?}");
    fs::write(place.0.path().join("go"), "").unwrap();
    assert_eq!(wait(holder).code, Some(0));
    let next = wait(start(&place, &["--lease-held", "fail"], "true"));
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(!place.has("ran"));
}

/// Ten hosts whose clocks differ by less than a minute run a short job once.
#[test]
fn a_lease_can_be_kept_for_longer_than_the_command_takes() {
    let place = Place::new();
    let first = wait(start(&place, &["--lease-at-least", "1h", "-v"], "echo $RELENT_FENCE >> fences"));
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(
        first.stderr.contains("lease nightly: kept for another 1h") || first.stderr.contains("kept for another 59m")
    );
    let second = wait(start(&place, &["--lease-held", "skip"], "echo $RELENT_FENCE >> fences"));
    assert_eq!((second.code, fences(&place).len()), (Some(0), 1), "{second:?}");
}

/// A log would be left beside it otherwise, which shuts out who may use the store but not read that.
#[test]
fn a_run_ends_when_the_store_is_closed() {
    let place = Place::new();
    let is_alone = || {
        let left = fs::read_dir(place.0.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> = left.filter(|name| name.starts_with("state.db")).collect();
        assert_eq!(left, ["state.db"]);
    };
    for code in [0, 1] {
        let script = format!("touch up; until rm go 2> /dev/null; do sleep 0.01; done; exit {code}");
        let run = start(&place, &["-q", "--max-attempts", "1"], &script);
        until("it is held", || place.has("up"));
        // A log that is long, and not so long that it is written into the file with what comes next.
        let other = rusqlite::Connection::open(place.0.path().join("state.db")).unwrap();
        other.execute_batch("PRAGMA wal_autocheckpoint = 0; CREATE TABLE IF NOT EXISTS long (of_it)").unwrap();
        other.execute("INSERT INTO long VALUES (zeroblob(3900000))", []).unwrap();
        drop(other);
        fs::remove_file(place.0.path().join("up")).unwrap();
        fs::write(place.0.path().join("go"), "").unwrap();
        assert_eq!(wait(run).code, Some(code));
        is_alone();
    }
    let kept = wait(start(&place, &["-q", "--lease-at-least", "1h"], "true"));
    assert_eq!(kept.code, Some(0), "{kept:?}");
    is_alone();
    for (how, code) in [("skip", 0), ("fail", 75)] {
        let refused = wait(start(&place, &["-q", "--lease-held", how], "true"));
        assert_eq!(refused.code, Some(code), "{refused:?}");
        is_alone();
    }
}

/// Who knows the mark can have processes of theirs taken for the command's.
#[test]
fn nobody_can_list_what_the_command_is_known_by() {
    let place = Place::new();
    let run = start(&place, &[], "echo $RELENT_RUN_ID > mark; touch up; while [ ! -e go ]; do sleep 0.01; done");
    until("it runs", || place.has("up"));
    let mark = place.0.read("mark").trim().to_owned();
    let is_listed = |word: &str| {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(word))
    };
    // On a machine that is busy it is a moment until a process has its arguments.
    until("the watchman has them", || is_listed("@lease-watchman"));
    assert!(mark.len() == 32 && !is_listed(&mark), "{mark}");
    fs::write(place.0.path().join("go"), "").unwrap();
    assert_eq!(wait(run).code, Some(0));
}

#[test]
fn the_report_and_the_events_have_the_fence() {
    let place = Place::new();
    let outcome = wait(start(&place, &["--json", "--report", "report.json"], "true"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let report: serde_json::Value = serde_json::from_str(&place.0.read("report.json")).unwrap();
    assert_eq!(report["fence"], 1);
    assert!(outcome.stderr.contains(r#""event":"lease","state":"held","lease":"nightly","fence":1,"#), "{outcome:?}");
    assert!(outcome.stderr.contains(r#""state":"released""#), "{outcome:?}");
}

#[test]
fn without_a_store_named_it_is_a_file_of_ones_own() {
    let place = Place::new();
    let run = |variable: &str, value: &str| {
        let mut command = place.command(&["run", "--lease", "a", "--", "true"]);
        command.env("HOME", place.0.path()).env_remove("XDG_STATE_HOME").env(variable, value);
        place.outcome(&mut command)
    };
    run("LANG", "C").is(0, "", "");
    let folder = place.0.path().join(".local/state/relent");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("state.db"))), (0o700, 0o600));
    run("XDG_STATE_HOME", place.0.path().join("state").to_str().unwrap()).is(0, "", "");
    assert!(place.has("state/relent/state.db"));
    run("RELENT_STORE", "sqlite:own.db").is(0, "", "");
    assert!(place.has("own.db"));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let stderr = run("LANG", "C").stderr;
    assert!(stderr.contains("others can write to it\nhint: name another place: --store sqlite:FILE"), "{stderr}");
}

#[test]
fn stores_that_are_none_are_told_of_without_credentials() {
    let place = Place::new().file("text.db", &"no store ".repeat(1000));
    let said = |url: &str| {
        let began = Instant::now();
        let outcome = place.relent(&["run", "--store", url, "--lease", "a", "--", "touch", "ran"]);
        assert!(began.elapsed() < Duration::from_secs(15), "{url}");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(125), ""), "{outcome:?}");
        assert!(outcome.stderr.starts_with("error: store ") && outcome.stderr.contains("\nhint: "), "{outcome:?}");
        outcome.stderr
    };
    assert!(said("sqlite:text.db").starts_with("error: store sqlite:text.db: the file is no store, or is damaged\n"));
    assert!(said("sqlite:no/such/folder.db").contains("cannot be made"));
    let shared = place.0.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(
        said("sqlite:shared/state.db"),
        "error: store sqlite:shared/state.db: everybody can put into its folder what it would be read from\n\
         hint: name a file in a folder that only you and root can write to and move, as mktemp -d makes one; \
         ?owner=any believes all, as in a team, or a sandbox where nobody else is known\n"
    );
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 0, "nothing was made there");
    assert!(
        said("mysql://ann:pw@host/db").starts_with("error: store mysql://***@host/db: the store's URL names no engine")
    );
    assert!(said("nonsense").contains("names no engine"));
    assert!(said("sqlite:state.db?x=1").contains("x"));
    assert!(!place.has("ran"));
}

/// Who owns the folder above may take the working folder away: what an absolute path means does not hang on that.
#[test]
fn a_store_is_looked_at_in_a_folder_that_is_gone_too() {
    let place = Place::new();
    let (shared, own) = (place.0.path().join("shared"), place.0.path().join("own"));
    for (folder, mode) in [(&shared, 0o777), (&own, 0o700)] {
        fs::create_dir(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    }
    let run = |url: &str| {
        let relent = env!("CARGO_BIN_EXE_relent");
        let line = format!(
            "mkdir gone && cd gone && rmdir ../gone && exec {relent} run -q --lease a --store '{url}' -- echo ran"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
        place.outcome(command.stdin(Stdio::null()))
    };
    let said = run(&format!("sqlite:{}/state.db", shared.display()));
    assert_eq!((said.code, said.stdout.as_str()), (Some(125), ""), "{said:?}");
    assert!(said.stderr.contains("everybody can put into its folder"), "{said:?}");
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 0, "nothing was made there");
    assert_eq!(run("sqlite:state.db").code, Some(125));
    run(&format!("sqlite:{}/state.db", own.display())).is(0, "ran\n", "");
}

#[test]
fn bad_flags_say_what_and_why() {
    let place = Place::new();
    let said = |flags: &[&str]| {
        let outcome = place.relent(&[&["run"], flags, &["--", "true"]].concat());
        assert_eq!(outcome.code, Some(125), "{outcome:?}");
        outcome.stderr
    };
    assert!(said(&["--lease", ""]).contains("hint: a name like nightly, the same for all who share it\n"));
    assert!(said(&["--lease", &"x".repeat(256)]).contains("more than 255"));
    assert!(said(&["--lease", "a", "--lease-ttl", "1ms"]).contains("the duration is shorter than 100ms\n"));
    assert!(said(&["--lease", "a", "--lease-held", "kill"]).contains("[possible values: wait, skip, fail]"));
    assert!(said(&["--lease-ttl", "3s"]).contains("--lease <NAME>"));
}

#[test]
fn the_help_of_leases() {
    let outcome = crate::binary::relent(&["help", "lease"]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    crate::binary::golden("help-lease.txt", &outcome.stdout);
    assert!(outcome.stdout.lines().all(|line| line.chars().count() <= 100), "{}", outcome.stdout);
}
