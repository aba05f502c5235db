//! Standard input: the same from the start in each attempt.

use super::{Place, QUICK};
use crate::binary::{Outcome, tool};
use std::{
    fs::File,
    io::{Seek, SeekFrom, Write},
    process::Stdio,
};

/// Fails twice, having read a part, then everything, of its input.
const PICKY: &str = "case $RELENT_ATTEMPT in 1) head -c 3 >/dev/null; exit 1;; 2) cat >/dev/null; exit 1;; esac; cat";

fn piped(flags: &[&str], script: &str, input: &[u8]) -> Outcome {
    let place = Place::new();
    let args = [&QUICK[..], &["-q"], flags, &["--", "sh", "-c", script]].concat();
    let mut command = place.command(&args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // The command need not read it all.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    place.is_clean();
    Outcome {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code(),
    }
}

fn from_file(flags: &[&str], script: &str, start: u64) -> (Outcome, u64) {
    let place = Place::new().file("input", "0123456789\n");
    let mut file = File::open(place.0.path().join("input")).unwrap();
    file.seek(SeekFrom::Start(start)).unwrap();
    let args = [&QUICK[..], &["-q"], flags, &["--", "sh", "-c", script]].concat();
    let outcome = place.outcome(place.command(&args).stdin(file.try_clone().unwrap()));
    (outcome, file.stream_position().unwrap())
}

#[test]
fn a_pipe_is_replayed() {
    piped(&[], PICKY, b"0123456789\n").is(0, "0123456789\n", "");
}

#[test]
fn a_large_pipe_is_replayed_from_disk() {
    let input: Vec<u8> = (0..400_000u32).flat_map(|k| format!("{k:07}\n").into_bytes()).collect();
    let outcome = piped(&[], PICKY, &input);
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stdout.as_bytes() == input, "{} of {} bytes", outcome.stdout.len(), input.len());
}

#[test]
fn a_pipe_that_nobody_reads_does_no_harm() {
    piped(&[], "[ $RELENT_ATTEMPT = 2 ]", &[b'x'; 300_000]).is(0, "", "");
}

#[test]
fn an_empty_pipe_is_empty_in_each_attempt() {
    piped(&[], "wc -c; [ $RELENT_ATTEMPT = 2 ]", b"").is(0, "0\n", "");
}

/// What the command does not read is not taken from the pipe, but for what a pipe holds.
#[test]
fn a_pipe_is_not_read_ahead() {
    let place = Place::new();
    let args = [&QUICK[..], &["--", "sh", "-c", "head -c 1 >/dev/null; sleep 0.3"]].concat();
    let mut child = place.command(&args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let mut written = 0;
        while written < 4_000_000 && stdin.write_all(&[b'x'; 1000]).is_ok() {
            written += 1000;
        }
        written
    });
    assert!(child.wait().unwrap().success());
    assert!(writer.join().unwrap() < 600_000, "much more was taken than was asked for");
}

#[test]
fn a_pipe_that_comes_slowly_is_passed_on_at_once() {
    let place = Place::new();
    let script = "read a; echo $a > first; read b; echo $a $b; [ $RELENT_ATTEMPT = 2 ]";
    let args = [&QUICK[..], &["-q", "--", "sh", "-c", script]].concat();
    let mut child = place.command(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"one\n").unwrap();
    super::until("the first line arrives while the pipe is open", || place.has("first"));
    stdin.write_all(b"two\n").unwrap();
    drop(stdin);
    assert_eq!(child.wait_with_output().unwrap().stdout, b"one two\n");
}

#[test]
fn a_file_is_rewound_to_where_it_stood() {
    assert_eq!(from_file(&[], PICKY, 0).0.stdout, "0123456789\n");
    assert_eq!(from_file(&[], PICKY, 4).0.stdout, "456789\n");
}

#[test]
fn a_file_stands_afterwards_where_the_last_attempt_left_it() {
    let (outcome, at) = from_file(&[], "dd bs=1 count=3 2>/dev/null; [ $RELENT_ATTEMPT = 2 ]", 2);
    assert_eq!((outcome.stdout.as_str(), at), ("234", 5));
}

#[test]
fn inherited_input_goes_on_where_it_was() {
    let (outcome, _) = from_file(&["--stdin", "inherit"], "dd bs=1 count=3 2>/dev/null; [ $RELENT_ATTEMPT = 2 ]", 0);
    assert_eq!(outcome.stdout, "345");
    piped(&["--stdin", "inherit"], "dd bs=1 count=3 2>/dev/null; [ $RELENT_ATTEMPT = 2 ]", b"012345").is(0, "345", "");
}

#[test]
fn no_input_is_none() {
    let (outcome, at) = from_file(&["--stdin", "null"], "wc -c", 0);
    assert_eq!((outcome.stdout.as_str(), at), ("0\n", 0));
}

#[test]
fn input_larger_than_the_disk_is_an_error_that_says_so() {
    let place = Place::new();
    // The largest file that may be written stands for a disk that is full.
    let script = "trap '' XFSZ; ulimit -f 4; head -c 3000000 /dev/zero | relent run -- sh -c 'cat >/dev/null; sleep 9'";
    let mut shell = tool("sh");
    shell.args(["-c", script]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
    place.outcome(&mut shell).is(
        125,
        "",
        "error: cannot keep standard input for another attempt: File too large\n\
         hint: give it as a file (< FILE), name a larger folder in TMPDIR, or use --stdin inherit\n",
    );
}

#[test]
fn output_larger_than_the_disk_is_an_error_that_says_so() {
    let place = Place::new();
    let script = "trap '' XFSZ; ulimit -f 4; relent run -- sh -c 'head -c 3000000 /dev/zero'";
    let mut shell = tool("sh");
    shell.args(["-c", script]).current_dir(place.0.path()).env("TMPDIR", place.0.path().join("tmp"));
    place.outcome(&mut shell).is(
        125,
        "",
        "error: cannot keep the command's output: File too large\n\
         hint: name a larger folder in TMPDIR, or use --stream\n",
    );
}
