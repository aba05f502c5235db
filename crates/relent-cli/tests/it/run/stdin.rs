//! Standard input: the same from the start in each attempt.

use super::{
    Place, QUICK,
    hostile::{NOBODY, shared},
    until,
};
use crate::binary::{Outcome, tool};
use std::{
    fs::{self, File, OpenOptions},
    io::{PipeReader, Read, Seek, SeekFrom, Write, pipe},
    os::{
        fd::OwnedFd,
        unix::{fs::PermissionsExt, net::UnixStream},
    },
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
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
    until("the first line arrives while the pipe is open", || place.has("first"));
    stdin.write_all(b"two\n").unwrap();
    drop(stdin);
    assert_eq!(child.wait_with_output().unwrap().stdout, b"one two\n");
}

/// A run whose command waits for `go` before it reads, and is told to end after two seconds.
fn waiting(place: &Place, input: OwnedFd, flags: &[&str], script: &str) -> Child {
    let limits = ["--timeout", "2s", "--grace", "100ms"];
    let script = format!("echo > up; until [ -e go ]; do sleep 0.01; done; {script}");
    let args = [&QUICK[..], &limits, flags, &["--", "sh", "-c", &script]].concat();
    let child = place.command(&args).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the command runs", || place.has("up"));
    child
}

/// What it comes to, in time.
#[track_caller]
fn ends(child: Child) -> Outcome {
    let (pid, started) = (child.id(), Instant::now());
    let waits = std::thread::spawn(move || child.wait_with_output().unwrap());
    while !waits.is_finished() {
        if started.elapsed() > Duration::from_secs(20) {
            Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
            panic!("--timeout is not heard");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = waits.join().unwrap();
    Outcome {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: super::without_times(&String::from_utf8_lossy(&output.stderr)),
        code: output.status.code(),
    }
}

const OTHERS: &str = "relent: somebody else reads standard input, too, and gets what the command gets; with --stdin inherit one of them does\n";

/// What somebody else reads of a pipe that has been copied already: all of it, a part, or all before something new comes.
#[cfg(target_os = "linux")]
#[test]
fn a_second_reader_of_a_pipe_holds_up_nobody_and_the_next_attempt_gets_what_the_first_got() {
    for (taken, new, whole) in
        [(6, "", "first\n"), (2, "", "first\n"), (6, "second\n", "first\nsecond\n"), (6, "more\n", "first\nmore\n")]
    {
        let place = Place::new();
        let (mut reader, mut writer): (PipeReader, _) = pipe().unwrap();
        writer.write_all(b"first\n").unwrap();
        let script = "cat; [ $RELENT_ATTEMPT = 2 ]";
        let run = waiting(&place, reader.try_clone().unwrap().into(), &[], script);
        // It was copied when the command's pipe has it.
        until("it is copied", || in_the_pipe_of_the_child(&run) == 6);
        reader.read_exact(&mut vec![0; taken]).unwrap();
        writer.write_all(new.as_bytes()).unwrap();
        drop(writer);
        fs::write(place.0.path().join("go"), "").unwrap();
        let outcome = ends(run);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), whole), "{taken} {new:?}: {}", outcome.stderr);
        assert!(outcome.stderr.starts_with(OTHERS), "{}", outcome.stderr);
    }
}

/// How much stands in the standard input of the command.
#[cfg(target_os = "linux")]
fn in_the_pipe_of_the_child(run: &Child) -> u64 {
    rustix::io::ioctl_fionread(input_of_the_child(run)).unwrap()
}

#[cfg(target_os = "linux")]
fn input_of_the_child(run: &Child) -> File {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.id())).unwrap();
    File::open(format!("/proc/{}/fd/0", children.trim())).unwrap()
}

/// It has room then before all was read.
#[cfg(target_os = "linux")]
#[test]
fn what_is_lost_of_an_input_is_said_though_the_command_makes_its_pipe_larger() {
    let place = Place::new();
    let (mut reader, mut writer) = pipe().unwrap();
    let feeder = std::thread::spawn(move || {
        // Nobody need read it all.
        (1..200_000).try_for_each(|line| writeln!(writer, "{line}"))
    });
    let run = waiting(&place, reader.try_clone().unwrap().into(), &["--max-attempts", "1"], "read a; sleep 0.3");
    until("it is copied", || in_the_pipe_of_the_child(&run) > 0);
    rustix::pipe::fcntl_setpipe_size(input_of_the_child(&run), 1 << 20).unwrap();
    fs::write(place.0.path().join("go"), "").unwrap();
    let outcome = ends(run);
    let mut rest = vec![0; 1 << 16];
    let count = reader.read(&mut rest).unwrap();
    drop(reader);
    let _ = feeder.join().unwrap();
    // Lines may begin in what was lost.
    let next = String::from_utf8_lossy(&rest[..count]).lines().nth(1).unwrap().parse::<u32>().unwrap();
    let lost: usize = (2..next - 1).map(|line| line.to_string().len() + 1).sum();
    let said = outcome.stderr.split_once("took ").and_then(|(_, said)| said.split(' ').next()?.parse::<usize>().ok());
    assert!(said.is_some_and(|said| said.abs_diff(lost) < 8), "{lost}: {}", outcome.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_reader_of_a_pipe_keeps_no_limit_and_no_signal_from_being_heard() {
    for by_signal in [false, true] {
        let place = Place::new();
        let (mut reader, mut writer) = pipe().unwrap();
        writer.write_all(b"hello\n").unwrap();
        let run = waiting(&place, reader.try_clone().unwrap().into(), &["--max-attempts", "1"], "cat");
        until("it is copied", || in_the_pipe_of_the_child(&run) == 6);
        reader.read_exact(&mut [0; 6]).unwrap();
        fs::write(place.0.path().join("go"), "").unwrap();
        if by_signal {
            std::thread::sleep(Duration::from_millis(200));
            Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap();
        }
        let outcome = ends(run);
        assert_eq!(outcome.code, Some(if by_signal { 143 } else { 124 }), "{}", outcome.stderr);
        drop(writer);
    }
}

/// A named pipe is everybody's who may open it.
#[cfg(target_os = "linux")]
#[test]
fn another_user_who_reads_a_named_pipe_holds_up_nobody() {
    let place = shared();
    let path = place.0.path().join("fifo");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let mut held = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let run = waiting(&place, File::open(&path).unwrap().into(), &["--max-attempts", "1"], "cat");
    held.write_all(b"hello\n").unwrap();
    until("it is copied", || in_the_pipe_of_the_child(&run) == 6);
    let mut neighbour = Command::new("setpriv");
    neighbour.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "head", "-c", "6"]);
    assert_eq!(neighbour.arg(&path).output().unwrap().stdout, b"hello\n");
    fs::write(place.0.path().join("go"), "").unwrap();
    let outcome = ends(run);
    assert_eq!((outcome.code, outcome.stderr.starts_with(OTHERS)), (Some(124), true), "{}", outcome.stderr);
}

/// The command gets all of what is too long to be kept, too.
#[test]
fn what_is_too_long_to_be_kept_reaches_the_command_from_a_socket_as_from_a_pipe() {
    let place = Place::new();
    let (near, far) = UnixStream::pair().unwrap();
    let (reader, writer) = pipe().unwrap();
    let ends_of: [(OwnedFd, Box<dyn Write + Send>); 2] =
        [(near.into(), Box::new(far)), (reader.into(), Box::new(writer))];
    for (input, mut other) in ends_of {
        let args = [&QUICK[..], &["--timeout", "20s", "--max-kept", "100k", "--", "wc", "-c"]].concat();
        let mut command = place.command(&args);
        command.stdin(input);
        let writer = std::thread::spawn(move || other.write_all(&[b'x'; 1_000_000]));
        let outcome = place.outcome(&mut command);
        drop(command);
        writer.join().unwrap().unwrap();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "1000000\n"), "{}", outcome.stderr);
    }
}

/// Who waits for the command to read what was played to it need not ask again and again.
#[cfg(target_os = "linux")]
#[test]
fn waiting_behind_what_is_replayed_takes_no_time_of_the_processor() {
    // In hundredths of a second, as the system counts what relent has used.
    let used = "set -- $(cat /proc/$PPID/stat); shift 13; echo $(($1 + $2)) > used";
    let script =
        format!("if [ $RELENT_ATTEMPT = 2 ]; then sleep 1; {used}; exec cat; fi; dd bs=4 count=1 status=none; exit 1");
    let place = Place::new();
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(b"one\ntwo\n").unwrap();
    drop(writer);
    let args = [&QUICK[..], &["-q", "--", "sh", "-c", &script]].concat();
    place.outcome(place.command(&args).stdin(reader)).is(0, "one\ntwo\n", "");
    let used: u32 = place.0.read("used").trim().parse().unwrap();
    assert!(used < 20, "{used} hundredths of a second");
}

#[test]
fn waiting_behind_what_the_command_has_written_takes_no_time_of_the_processor() {
    let used = "set -- $(cat /proc/$PPID/stat); shift 13; echo $(($1 + $2)) > used";
    let script = format!("exec 3<>/dev/stdin; echo own >&3; touch wrote; sleep 1; {used}; head -n 2");
    let place = Place::new();
    let (reader, mut writer) = pipe().unwrap();
    let wrote = place.0.path().join("wrote");
    let writes = std::thread::spawn(move || {
        until("it wrote", || wrote.exists());
        writer.write_all(b"more\n")
    });
    place.outcome(place.command(&["run", "-q", "--", "sh", "-c", &script]).stdin(reader)).is(0, "own\nmore\n", "");
    writes.join().unwrap().unwrap();
    let used: u32 = place.0.read("used").trim().parse().unwrap();
    assert!(used < 20, "{used} hundredths of a second");
}

/// What stands in a pipe may be a part of a file, or of somebody's memory, which changes until it is read.
#[cfg(target_os = "linux")]
#[test]
fn what_the_command_gets_is_what_is_kept_though_it_changes_in_the_pipe() {
    use rustix::pipe::{SpliceFlags, splice};
    let script = "until read -t 0; do sleep 0.01; done; touch there; until test -e changed; do sleep 0.01; done
        head -c 4; exit 1";
    let place = Place::new().file("part", "old\n");
    let (reader, writer) = pipe().unwrap();
    let part = OpenOptions::new().read(true).write(true).open(place.0.path().join("part")).unwrap();
    assert_eq!(splice(&part, None, &writer, None, 4, SpliceFlags::empty()), Ok(4));
    let (there, changed) = (place.0.path().join("there"), place.0.path().join("changed"));
    let changes = std::thread::spawn(move || {
        until("it is there", || there.exists());
        std::os::unix::fs::FileExt::write_all_at(&part, b"new\n", 0).unwrap();
        File::create(changed).unwrap();
        drop(writer);
    });
    let args = [&QUICK[..], &["-q", "--stream", "--max-attempts=2", "--", "bash", "-c", script]].concat();
    let outcome = place.outcome(place.command(&args).stdin(reader));
    changes.join().unwrap();
    assert_eq!(outcome.stdout, "old\nold\n", "{}", outcome.stderr);
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
