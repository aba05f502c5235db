//! What the command is told.

use super::{
    Place, QUICK,
    hostile::{NOBODY, by, shared},
    script_args, sh,
};
use std::{
    fs,
    os::unix::fs::{MetadataExt, chown},
    process::{Command, Output},
};

const SHOW: &str = "echo $RELENT_ATTEMPT/$RELENT_MAX_ATTEMPTS ${RELENT_LAST_EXIT-none} >> seen; \
                    echo $RELENT_KEY >> keys; echo $RELENT_ELAPSED_MS >> elapsed; ";

#[test]
fn which_attempt_of_how_many_and_how_the_last_one_ended() {
    let place = Place::new();
    let script = format!("{SHOW} [ $RELENT_ATTEMPT = 1 ] && exit 9; [ $RELENT_ATTEMPT = 2 ] && kill -9 $$; exit 0");
    assert_eq!(place.sh(&["-q", "--max-attempts", "5"], &script).code, Some(0));
    assert_eq!(place.0.read("seen"), "1/5 none\n2/5 9\n3/5 137\n");
    let elapsed: Vec<u64> = place.0.read("elapsed").lines().map(|line| line.parse().unwrap()).collect();
    assert!(elapsed.is_sorted() && elapsed[0] < 1000, "{elapsed:?}");
}

/// There is none before the first, whatever a run around this one, or the caller, has in its environment.
#[test]
fn how_the_last_one_ended_is_not_that_of_another_run() {
    let place = Place::new();
    let args = [&QUICK[..], &["--", "sh", "-c", "echo ${RELENT_LAST_EXIT-none}"]].concat();
    place.outcome(place.command(&args).env("RELENT_LAST_EXIT", "7")).is(0, "none\n", "");
}

#[test]
fn unlimited_is_a_word() {
    sh(&["--max-attempts", "unlimited"], "echo $RELENT_MAX_ATTEMPTS").is(0, "unlimited\n", "");
}

#[test]
fn the_key_is_one_for_all_attempts_and_another_for_each_run() {
    let place = Place::new();
    let script = format!("{SHOW} [ $RELENT_ATTEMPT = 3 ]");
    place.sh(&["-q"], &script);
    place.sh(&["-q"], &script);
    let keys = place.0.read("keys");
    let keys: Vec<&str> = keys.lines().collect();
    assert!(keys[0].len() == 32 && keys[0].bytes().all(|byte| byte.is_ascii_hexdigit()), "{keys:?}");
    assert_eq!((keys[1], keys[2], keys[4], keys[5]), (keys[0], keys[0], keys[3], keys[3]));
    assert_ne!(keys[0], keys[3]);
}

#[test]
fn a_key_that_is_there_is_kept() {
    let place = Place::new();
    let args = [&QUICK[..], &["--", "sh", "-c", "echo $RELENT_KEY"]].concat();
    place.outcome(place.command(&args).env("RELENT_KEY", "order-17")).is(0, "order-17\n", "");
}

/// One for files alone, as services have it (`UMask=0177`): root may do all in any case.
fn masked(mask: &str, place: &Place, args: &[&str]) -> Output {
    let masked = by(NOBODY, place, args);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("umask {mask}; exec \"$@\""), "sh"]).arg(masked.get_program()).args(masked.get_args());
    let tmp = place.0.path().join("tmp");
    command.current_dir(place.0.path()).env("TMPDIR", &tmp).env("HOME", "/dev/null").output().unwrap()
}

#[test]
fn a_verdict_is_heard_whatever_the_mask_is() {
    let place = shared();
    for mask in ["0177", "0277", "0377"] {
        let said = "echo permanent > \"$RELENT_VERDICT\"; exit 3";
        let output = masked(mask, &place, &["run", "-q", "--base", "1ms", "--", "sh", "-c", said]);
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(3), &b""[..]), "{mask}: {output:?}");
        assert_eq!(fs::read_dir(place.0.path().join("tmp")).unwrap().count(), 0);
    }
}

#[test]
fn folders_that_are_made_can_be_entered_whatever_the_mask_is() {
    let place = shared();
    let own = place.0.path().join("own");
    fs::create_dir(&own).unwrap();
    chown(&own, Some(65_534), None).unwrap();
    for (mask, mode) in [("0177", 0o700), ("0277", 0o700), ("0777", 0o700), ("0133", 0o744)] {
        // In a folder like `/tmp` those are made without lists.
        for folder in ["own", "tmp"] {
            let plots = format!("{folder}/{mask}/plots");
            let output =
                masked(mask, &place, &["simulate", "herd", "--clients", "5", "--seeds", "1", "-q", "--svg", &plots]);
            assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{mask}: {output:?}");
            let made = fs::metadata(place.0.path().join(plots)).unwrap();
            assert_eq!(made.mode() & 0o777, mode, "{mask} {folder}");
        }
    }
}

#[test]
fn an_empty_folder_for_what_is_temporary_is_none() {
    let place = Place::new();
    let args = script_args(&["-q"], "echo $RELENT_VERDICT; find . -name 'verdict*'");
    let outcome = place.outcome(place.command(&args).env("TMPDIR", ""));
    assert!(outcome.stdout.contains("/verdict-") && outcome.stdout.lines().count() == 1, "{outcome:?}");
}

/// Whoever starts relent may have asked for late timers: the command has what was given, and no limit of relent's is late for it.
#[test]
#[cfg(target_os = "linux")]
fn limits_are_as_punctual_as_ever_where_timers_are_late() {
    let given = nix::sys::prctl::get_timerslack().unwrap() as u64;
    nix::sys::prctl::set_timerslack(3_000_000_000).unwrap();
    // relent has what was given while it starts the command, which may be quicker than its next step.
    let script = "cat /proc/self/timerslack_ns; n=0; \
                  until [ $n = 2000 ] || [ $(cat /proc/$PPID/timerslack_ns) = 50000 ]; do n=$((n + 1)); done; \
                  cat /proc/$PPID/timerslack_ns";
    let outcome = Place::new().sh(&[], script);
    nix::sys::prctl::set_timerslack(given).unwrap();
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "3000000000\n50000\n"), "{}", outcome.stderr);
}
