//! `relent demo`: it is true, and it ends.

use crate::binary::{Folder, relent};
use std::time::{Duration, Instant};

#[test]
fn shows_what_it_measured() {
    let began = Instant::now();
    let outcome = relent(&["demo"]);
    // It plans for eight seconds; a machine that is busy may take its time.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('\x1b'), "plain in a pipe");

    let told = [
        "1. A service",
        "$ relent http --base 200ms --jitter equal --attempt-timeout 500ms http://127.0.0.1:",
        "relent: attempt 1 of 8: cannot connect to 127.0.0.1:",
        "Nothing listens yet.",
        "relent: attempt 2 of 8: 503 Service Unavailable, told to wait 1s (Retry-After: 1); next in 1",
        "relent: attempt 3 of 8: no answer within 500ms",
        "relent: succeeded after ",
        "{\"order\": 42, \"state\": \"paid\"}",
        "2. 200 clients",
        "without jitter",
        "with jitter",
        "The same clients, the same policy, the same service: a peak of ",
        "relent connect your-db:5432",
    ];
    let mut rest = outcome.stdout.as_str();
    for told in told {
        let at =
            rest.find(told).unwrap_or_else(|| panic!("{told:?} is not told, or not in its place:\n{}", outcome.stdout));
        rest = &rest[at..];
    }

    let peaks = outcome.stdout.split("a peak of ").nth(1).unwrap();
    let peaks: Vec<u32> = peaks.split(['.', ' ']).filter_map(|word| word.parse().ok()).collect();
    let &[without, with] = &peaks[..2] else { panic!("{peaks:?}") };
    assert!(with < without, "{with} with jitter, {without} without");
}

/// Nobody watches: the demo ends without a word, and so does the client it has started.
#[test]
fn ends_when_nobody_watches() {
    use std::process::Stdio;
    let folder = Folder::new();
    let mut child = folder.command(&["demo"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stderr, output.status.code()), (Vec::new(), Some(0)));
}
