//! What becomes of a lease when relent itself fails.

use super::{
    Place,
    lease::{args, start, wait},
};
use crate::binary::tool;
use std::fs::OpenOptions;

/// The job has been done, and the disk is full.
#[cfg(target_os = "linux")]
#[test]
fn one_that_is_to_be_kept_for_longer_than_the_command_takes_is_kept() {
    for flags in [&["--stream", "--until-output", "never"][..], &["--max-kept", "1"]] {
        let place = Place::new();
        let flags = [&["-q", "--lease-at-least", "1h"], flags].concat();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let failed = place.command(&args(&flags, "touch ran; echo said")).stdout(full).status().unwrap();
        assert_eq!((failed.code(), place.has("ran")), (Some(125), true), "{flags:?}");
        let second = wait(start(&place, &["-q", "--lease-held", "skip"], "touch ran-again"));
        assert_eq!((second.code, place.has("ran-again")), (Some(0), false), "{flags:?}: {second:?}");
    }
}

/// Where no command was started, there is nothing that another must not do, too.
#[test]
fn nothing_goes_on_where_no_command_was_started() {
    let mut failed = 0;
    for files in 24..60 {
        let place = Place::new();
        let flags = ["--max-attempts", "1", "--stdin", "null", "--lease-at-least", "1h"];
        let run = args(&flags, "touch ran");
        let run: Vec<_> = run.iter().map(|arg| format!("'{arg}'")).collect();
        let mut shell = tool("sh");
        shell.args(["-c", &format!("ulimit -n {files}; exec relent {}", run.join(" "))]).current_dir(place.0.path());
        let output = shell.env("TMPDIR", place.0.path().join("tmp")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if ["error: cannot create a file in ", "error: cannot execute "].iter().any(|problem| said.contains(problem)) {
            failed += 1;
            assert!(!said.contains("something of the command goes on"), "{files}: {said}");
            let second = wait(start(&place, &["-q", "--lease-held", "fail"], "true"));
            assert!(second.code == Some(0) || said.contains("was not released"), "{files}: {said}{second:?}");
        }
    }
    assert!(failed > 0);
}
