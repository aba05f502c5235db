//! What becomes of a lease when relent itself fails.

use super::{
    Place,
    lease::{args, start, wait},
};
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
