//! Commands that become another user, whom nobody but root may send a signal.

use super::{
    Place,
    hostile::{NOBODY, by, shared},
    is_running, until,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// A program of root's that becomes root whoever starts it, as `sudo` does.
pub(super) fn sudo(place: &Place) -> String {
    let path = place.0.path().join("become-root");
    fs::copy("/usr/bin/setpriv", &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    format!("{} --reuid=0", path.display())
}

/// Nobody waits for somebody who cannot be told to end.
#[test]
fn a_command_of_another_user_is_said_at_once() {
    let place = shared();
    let line = format!("exec {} sleep 20", sudo(&place));
    let started = Instant::now();
    let mut command = by(NOBODY, &place, &["run", "--attempt-timeout", "200ms", "--", "sh", "-c", &line]);
    let output = command.output().unwrap();
    assert!(started.elapsed() < Duration::from_secs(9), "it waited for the grace");
    let said = String::from_utf8_lossy(&output.stderr);
    let (before, after) = said.split_once("(process ").expect(&said);
    assert_eq!(before, "error: the command ");
    let (pid, after) = after.split_once(')').unwrap();
    assert_eq!(
        after,
        " belongs to another user and cannot be sent a signal; it is left running\n\
         hint: run relent as that user, inside of what changes the user: sudo relent run ...\n"
    );
    assert_eq!(output.status.code(), Some(125));
    assert!(is_running(pid), "it is left running");
    Command::new("kill").args(["-KILL", pid]).status().unwrap();
    // It could have written its verdict: others do not get the name of the folder.
    let kept: Vec<_> = fs::read_dir(place.0.path().join("tmp")).unwrap().flatten().collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    fs::remove_dir(kept[0].path()).unwrap();
}

/// What a failed attempt leaves to another user is said, and the next attempt starts.
#[test]
fn leftovers_of_another_user_are_said_and_not_waited_for() {
    let place = shared();
    let sudo = sudo(&place);
    let line =
        format!("{sudo} sleep 20 & echo $! >> left; setsid {sudo} sleep 20 & echo $! >> left; sleep 0.2; exit 3");
    let started = Instant::now();
    let args = ["run", "--base", "1ms", "--max-attempts", "2", "--", "sh", "-c", &line];
    let output = by(NOBODY, &place, &args).output().unwrap();
    assert!(started.elapsed() < Duration::from_secs(9), "it waited for the grace");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("left running, since it belongs to another user").count(), 2, "{said}");
    assert_eq!(output.status.code(), Some(3));
    for pid in place.0.read("left").lines() {
        assert!(said.contains(&format!("({pid})")), "{pid}: {said}");
        Command::new("kill").args(["-KILL", pid]).status().unwrap();
    }
}

/// What cannot be told as long as it is somebody else's is told as soon as it is not.
#[test]
fn what_is_the_callers_own_again_is_told_to_end() {
    let place = shared();
    let sudo = sudo(&place);
    let own = "trap \"touch heard; exit\" TERM; while :; do sleep 0.02; done";
    let theirs = format!(
        "echo $$ > left; until [ -e told ]; do sleep 0.02; done; \
         exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups sh -c '{own}'"
    );
    fs::write(place.0.path().join("theirs"), theirs).unwrap();
    // One that ends late: until then there is time.
    let late = "trap \"touch told; until [ -e heard ]; do sleep 0.02; done; exit\" TERM; touch ready; while :; do sleep 0.02; done";
    let line = format!(
        "exec >/dev/null 2>&1; setsid {sudo} sh theirs & (sh -c '{late}') & \
         until [ -s left ] && [ -e ready ]; do sleep 0.02; done; exit 3"
    );
    let started = Instant::now();
    let args = ["run", "--max-attempts", "1", "--grace", "1m", "--", "sh", "-c", &line];
    let output = by(NOBODY, &place, &args).output().unwrap();
    let took = started.elapsed();
    let left = place.0.read("left");
    let is_left = is_running(&left);
    let _ = Command::new("kill").args(["-KILL", left.trim()]).status();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(place.has("heard") && !said.contains("belongs to another user"), "{said}");
    assert!(!is_left && took < Duration::from_secs(30), "it ends, and nobody waits for the grace: {took:?}");
    assert_eq!(output.status.code(), Some(3));
}

/// As behind `sudo -u`, which waits for it.
#[test]
fn what_is_the_callers_own_behind_another_user_is_ended() {
    let place = shared();
    let sudo = sudo(&place);
    let own = format!("setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups setsid sh -c");
    // One heeds the signal, and one does not.
    let theirs = format!(
        "{own} 'echo $$ > heeds; exec sleep 99' & {own} 'trap \"\" TERM; echo $$ > ignores; while :; do sleep 0.1; done' & \
         echo $$ > left; wait; exec sleep 20"
    );
    fs::write(place.0.path().join("theirs"), theirs).unwrap();
    let line = format!(
        "exec >/dev/null 2>&1; setsid {sudo} sh theirs & \
         until [ -s left ] && [ -s heeds ] && [ -s ignores ]; do sleep 0.02; done; exit 3"
    );
    let args = ["run", "--max-attempts", "1", "--grace", "500ms", "--", "sh", "-c", &line];
    let output = by(NOBODY, &place, &args).output().unwrap();
    let [left, heeds, ignores] = ["left", "heeds", "ignores"].map(|name| place.0.read(name).trim().to_owned());
    let are_left = [&heeds, &ignores].map(|pid| is_running(pid));
    for pid in [&left, &heeds, &ignores] {
        let _ = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("another user and cannot be ended") && said.contains(&format!("({left})")), "{said}");
    assert_eq!((are_left, output.status.code()), ([false, false], Some(3)), "{said}");
}

/// What a script had started so before it became relent is none of the run's.
#[test]
fn what_was_there_before_behind_another_user_is_left_alone() {
    let place = shared();
    let sudo = sudo(&place);
    let theirs = format!(
        "setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups setsid sh -c 'echo $$ > own; exec sleep 99' & \
         echo $$ > left; wait; exec sleep 20"
    );
    fs::write(place.0.path().join("theirs"), theirs).unwrap();
    let command = "until [ -s own ] && [ -e gone ]; do sleep 0.02; done; sleep 1.5; exit 3";
    let script = format!(
        "(setsid {sudo} sh theirs >/dev/null 2>&1 & until [ -e started ]; do sleep 0.02; done; touch gone) & \
         exec ./relent run --max-attempts 1 --grace 500ms -- sh -c 'touch started; {command}'"
    );
    let mut shell = Command::new("setpriv");
    shell.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "sh", "-c", &script]);
    shell.current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
    let output = shell.output().unwrap();
    let [left, own] = ["left", "own"].map(|name| place.0.read(name).trim().to_owned());
    let is_left = is_running(&own);
    for pid in [&left, &own] {
        let _ = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((is_left, output.status.code()), (true, Some(3)), "{said}");
}

/// A child of the caller's that has ended, and that nobody waits for, is no more to be ended than who does not wait for it.
#[test]
fn leftovers_of_another_user_with_an_ended_child_of_ours_are_not_waited_for() {
    let place = shared();
    let sudo = sudo(&place);
    let child = format!("echo $$ > left.new; mv left.new left; setpriv --reuid={NOBODY} true & exec sleep 20");
    let line = format!("{sudo} sh -c '{child}' & until [ -e left ]; do sleep 0.01; done; sleep 0.2; exit 3");
    let started = Instant::now();
    let args = ["run", "--max-attempts", "1", "--grace", "1m", "--", "sh", "-c", &line];
    let output = by(NOBODY, &place, &args).output().unwrap();
    let took = started.elapsed();
    let left = place.0.read("left");
    Command::new("kill").args(["-KILL", left.trim()]).status().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(took < Duration::from_secs(30), "it is waited for: {took:?}, {said}");
    assert!(
        said.contains(&format!("belongs to another user and cannot be ended: sleep ({})\n", left.trim())),
        "{said}"
    );
    assert!(!said.contains("still running"), "{said}");
    assert_eq!(output.status.code(), Some(3));
}

/// A lease that is let go while something of the command goes on is somebody else's beside it.
#[test]
fn a_lease_under_which_something_of_another_user_goes_on_is_kept() {
    let place = shared();
    let own = place.0.path().join("own");
    fs::create_dir(&own).unwrap();
    Command::new("chown").arg(NOBODY).arg(&own).status().unwrap();
    let sudo = sudo(&place);
    let speak = "sh -c 'echo $$ > left.new; mv left.new left; exec sleep 40'";
    let until_up = "until [ -e left ]; do sleep 0.01; done";
    for (name, flags, line, code) in [
        ("command", &["--timeout", "500ms"][..], format!("exec {sudo} {speak}"), 125),
        ("leftover", &["--max-attempts", "1"], format!("setsid {sudo} {speak} & {until_up}; exit 3"), 3),
        ("nothing", &["--max-attempts", "1"], "exit 3".to_owned(), 3),
    ] {
        let store = format!("sqlite:{}", own.join(format!("{name}.db")).display());
        let lease = ["run", "--store", &store, "--lease", "nightly", "--lease-ttl", "20s", "--lease-held", "fail"];
        let said = own.join(name);
        let args = [&lease[..], flags, &["--grace", "100ms", "--", "sh", "-c", &line]].concat();
        // Not a pipe, which who goes on would keep open.
        let mut first = by(NOBODY, &place, &args);
        let first = first.stdout(Stdio::null()).stderr(fs::File::create(&said).unwrap()).status().unwrap();
        let next = by(NOBODY, &place, &[&lease[..], &["--", "true"]].concat()).output().unwrap();
        if name != "nothing" {
            Command::new("kill").args(["-KILL", place.0.read("left").trim()]).status().unwrap();
            fs::remove_file(place.0.path().join("left")).unwrap();
        }
        let said = fs::read_to_string(said).unwrap();
        assert_eq!(first.code(), Some(code), "{name}: {said}");
        assert_eq!(next.status.code(), Some(if name == "nothing" { 0 } else { 75 }), "{name}: {said} {next:?}");
        let is_kept = "relent: the lease nightly is not released, since something of the command goes on; it ends by itself within 20s\n";
        assert_eq!(said.contains(is_kept), name != "nothing", "{name}: {said}");
        assert!(!said.contains("relent was killed") && !said.contains("was killed\n"), "{name}: {said}");
    }
}

/// relent with a lease, run by nobody where `/proc` shows others' processes to root alone. What it says goes to `said`.
fn where_others_are_hidden(place: &Place, args: &[&str], command: &[&str]) -> Command {
    let own = place.0.path().join("own");
    if !own.exists() {
        fs::create_dir(&own).unwrap();
        Command::new("chown").arg(NOBODY).arg(&own).status().unwrap();
    }
    let store = format!("sqlite:{}", own.join("state.db").display());
    let lease = ["run", "--store", &store, "--lease", "nightly", "--lease-ttl", "20s", "--grace", "2s"];
    let relent = by(NOBODY, place, &[&lease[..], args, &["--"], command].concat());
    let mut hidden = Command::new("unshare");
    hidden.args(["-m", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc && exec \"$0\" \"$@\""]);
    hidden.arg(relent.get_program()).args(relent.get_args()).current_dir(place.0.path()).env_remove("RELENT_KEY");
    hidden.env("TMPDIR", place.0.path().join("tmp")).env("HOME", "/dev/null").stdin(Stdio::null());
    // Not a pipe, which who goes on would keep open.
    hidden.stdout(Stdio::null()).stderr(fs::File::create(place.0.path().join("said")).unwrap());
    hidden
}

/// Where another user's processes are not shown, their group is asked for them.
#[test]
#[cfg(target_os = "linux")]
fn leftovers_of_another_user_who_are_not_shown_are_said_and_keep_the_lease() {
    // One of ours that has ended, and that one of theirs does not wait for, is shown.
    let ours = format!("setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups");
    let up = "echo $$ > left.new; mv left.new left";
    let ended = format!("{ours} sh -c \"{up}\" & exec sleep 40");
    for (stay, who) in [(format!("{up}; exec sleep 40"), "process group"), (ended, "process")] {
        let place = shared();
        let sudo = sudo(&place);
        // Nobody whom relent knows for being its orphan is left when the run ends.
        fs::write(place.0.path().join("leave.sh"), "sh stay.sh & exec sleep 0.3").unwrap();
        fs::write(place.0.path().join("stay.sh"), stay).unwrap();
        let line = format!(
            "[ $RELENT_ATTEMPT = 2 ] && exit 3; echo $$ > leader; {sudo} sh leave.sh & \
             until [ -e left ]; do sleep 0.01; done; exit 3"
        );
        let args = ["--max-attempts", "2", "--base", "1s", "--curve", "constant", "--jitter", "none"];
        let first = where_others_are_hidden(&place, &args, &["sh", "-c", &line]).status().unwrap();
        let said = place.0.read("said");
        let next = where_others_are_hidden(&place, &["--lease-held", "fail"], &["true"]).status().unwrap();
        let pid = place.0.read("left");
        Command::new("kill").args(["-KILL", pid.trim()]).status().unwrap();
        assert_eq!(first.code(), Some(3), "{said}");
        let who = format!("{who} {}", if who == "process" { pid } else { place.0.read("leader") });
        let left = said.lines().find(|line| line.contains("left running, since it belongs to another user"));
        assert!(left.is_some_and(|line| line.contains(who.trim())), "{who}: {said}");
        assert!(said.contains("the lease nightly is not released"), "{said}");
        assert_eq!(next.code(), Some(75), "{said}");
    }
}

/// Who is not shown for being another user's, or for keeping secrets, is there nevertheless.
#[test]
#[cfg(target_os = "linux")]
fn a_command_of_another_user_that_is_not_shown_is_watched_over() {
    let goes_on = "relent: relent was killed: its command goes on, since it belongs to another user\n";
    let is_told = "relent: relent was killed: its command is told to end, since nobody renews its lease\n";
    let is_over = |pid: &str| until("it has ended", || !is_running(pid));
    for (is_own, expected) in [(false, goes_on), (true, is_told)] {
        let place = shared();
        // By then the watchman was told of the command.
        fs::write(place.0.path().join("up.sh"), "sleep 0.3; echo $$ > up.new; mv up.new up; exec sleep 40").unwrap();
        let line = match is_own {
            true => "exec ./relent run --store sqlite:own/inner.db --lease inner -- sh up.sh".to_owned(),
            false => format!("exec {} sh up.sh", sudo(&place)),
        };
        let mut relent = where_others_are_hidden(&place, &[], &["sh", "-c", &line]).spawn().unwrap();
        until("the command runs", || place.has("up"));
        relent.kill().unwrap();
        relent.wait().unwrap();
        until(expected, || place.0.read("said").contains(expected));
        let up = place.0.read("up");
        if !is_own {
            assert!(is_running(&up));
            Command::new("kill").args(["-KILL", up.trim()]).status().unwrap();
        }
        is_over(&up);
    }
}

/// What is passed on to a command that is somebody else's ends nothing, and what is told to it kills nobody that goes on with it.
#[test]
fn what_goes_on_with_a_command_of_another_user_is_not_killed() {
    // The shell says who was ended, and relent, which would hear it, may have ended.
    let helper = "exec 2> none; trap 'echo > hup' HUP; trap 'echo > term' TERM; echo $$ > helper; \
                  while :; do sleep 0.02; done";
    for (signal, heard, code) in [(Signal::SIGHUP, "hup", 0), (Signal::SIGTERM, "term", 125)] {
        let place = shared();
        let sudo = sudo(&place);
        fs::write(place.0.path().join("helper.sh"), helper).unwrap();
        let leader = "echo $$ > up; until [ -e go ]; do sleep 0.02; done; echo done";
        let line = format!("sh helper.sh & until [ -s helper ]; do sleep 0.01; done; exec {sudo} sh -c '{leader}'");
        let mut command = by(NOBODY, &place, &["run", "--max-attempts", "1", "--grace", "1m", "--", "sh", "-c", &line]);
        let relent = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("it is another user's", || place.has("up") && !place.0.read("up").is_empty());
        kill(Pid::from_raw(relent.id() as i32), signal).unwrap();
        until("it is heard", || place.has(heard));
        if signal == Signal::SIGHUP {
            fs::write(place.0.path().join("go"), "").unwrap();
        }
        let output = relent.wait_with_output().unwrap();
        let is_left = is_running(&place.0.read("helper"));
        for left in ["helper", "up"] {
            Command::new("kill").args(["-KILL", place.0.read(left).trim()]).stderr(Stdio::null()).status().unwrap();
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(is_left, "{signal}: the helper is killed: {said}");
        assert_eq!(said.contains("it is left running"), code == 125, "{said}");
    }
}

/// It knows nothing of it, however long it goes on.
#[test]
fn a_hangup_that_another_users_command_cannot_be_told_ends_the_run() {
    let place = shared();
    let sudo = sudo(&place);
    let script = "echo >> count; echo $$ > up; until [ -e go ]; do sleep 0.02; done; exit 1";
    let flags = ["run", "--max-attempts", "2", "--base", "1ms", "--grace", "0s", "--"];
    let line = format!("exec {sudo} sh -c '{script}'");
    let mut command = by(NOBODY, &place, &[&flags[..], &["sh", "-c", &line]].concat());
    let relent = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("it is another user's", || place.has("up") && !place.0.read("up").is_empty());
    kill(Pid::from_raw(relent.id() as i32), Signal::SIGHUP).unwrap();
    // Longer than the grace, and than a moment: the clock of another process cannot be moved.
    std::thread::sleep(Duration::from_millis(1200));
    fs::write(place.0.path().join("go"), "").unwrap();
    let output = relent.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), place.0.read("count").as_str()), (Some(129), "\n"), "{said}");
    assert!(said.contains("cannot be told of the hangup"), "{said}");
}

/// As root made it, or a group that its owner has left.
#[test]
fn a_group_that_another_user_is_not_in_keeps_that_one_from_no_file_of_theirs() {
    const GROUP: u32 = 65_532;
    let place = shared();
    let user: u32 = NOBODY.parse().unwrap();
    let own = place.0.path().join("own");
    fs::create_dir(&own).unwrap();
    chown(&own, Some(user), Some(user)).unwrap();
    // In a folder like `/tmp` others may have brought it; elsewhere it is written over, and stays the group's.
    for (name, after) in [("picture", (user, user, 0o644)), ("own/picture", (user, GROUP, 0o664))] {
        let file = place.0.path().join(name);
        fs::write(&file, "old").unwrap();
        chown(&file, Some(user), Some(GROUP)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
        let output = by(NOBODY, &place, &["explain", "-q", "--svg", name]).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let data = fs::metadata(&file).unwrap();
        assert!(fs::read_to_string(&file).unwrap().starts_with("<svg"), "{name}");
        assert_eq!((data.uid(), data.gid(), data.mode() & 0o777), after, "{name}");
    }
}
