//! What others write when the command has ended, while relent still waits for a reader: it is none of the command's, but for output of
//! the next moment.

use super::{Place, script_args, until};
use std::{
    io::{self, pipe},
    process::Stdio,
    thread,
};

/// How a run ends, and after how many attempts. The command says more than the reader of relent's output takes, and leaves somebody
/// who does this when relent has seen the end: from then on the command's standard input is closed.
fn with_a_late_one(flags: &[&str], descriptor: &str, late: &str) -> (Option<i32>, usize) {
    let place = Place::new();
    let leaves = format!("exec 3<&0; (cat <&3; {late}; touch late) & exit 0");
    let script = format!("echo >> count; head -c 90000 /dev/zero >&{descriptor}; {leaves}");
    let (mut reader, writer) = pipe().unwrap();
    let mut command = place.command(&script_args(&[&["--max-attempts", "2"], flags].concat(), &script));
    match descriptor {
        "1" => command.stdout(writer).stderr(Stdio::null()),
        _ => command.stdout(Stdio::null()).stderr(writer),
    };
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary was built");
    drop(command);
    let stdin = child.stdin.take();
    until("it has come late", || place.has("late"));
    let read = thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
    let status = child.wait().unwrap();
    read.join().unwrap().unwrap();
    drop(stdin);
    place.is_clean();
    (status.code(), place.0.read("count").lines().count())
}

#[test]
fn a_verdict_that_comes_when_the_command_has_ended_is_not_heard() {
    for word in ["transient", "permanent"] {
        let late = format!("echo {word} > \"$RELENT_VERDICT\"");
        assert_eq!(with_a_late_one(&[], "2", &late), (Some(0), 1), "{word}");
    }
}

#[test]
fn output_that_comes_long_after_the_command_has_ended_is_not_searched() {
    let flags = ["--retry-on-output", "again"];
    assert_eq!(with_a_late_one(&flags, "2", "sleep 2; echo again >&2"), (Some(0), 1));
    assert_eq!(with_a_late_one(&[&flags[..], &["--stream"]].concat(), "1", "sleep 2; echo again"), (Some(0), 1));
}

/// The command has ended in time, and only the reader of its output was late: what it came to stays, and is not done again.
#[test]
fn what_has_ended_is_not_begun_anew_because_nobody_reads_its_output() {
    for (end, attempts) in [("exit 0", 1), ("echo 'exit 7: permanent' > $RELENT_VERDICT; exit 7", 1), ("exit 7", 2)] {
        let place = Place::new();
        let script = format!("echo >> count; head -c 120000 /dev/zero >&2; {end}");
        let flags = ["--attempt-timeout", "500ms", "--max-attempts", "2", "--base", "1ms"];
        let (reader, writer) = pipe().unwrap();
        let mut command = place.command(&script_args(&flags, &script));
        let mut child = command.stdout(Stdio::null()).stderr(writer).spawn().expect("the binary was built");
        drop(command);
        let status = child.wait().unwrap();
        drop(reader);
        assert_eq!((status.code(), place.0.read("count").lines().count()), (Some(124), attempts), "{end}");
    }
}
