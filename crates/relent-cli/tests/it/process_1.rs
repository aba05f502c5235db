//! relent as process 1 of a container: no signal ends it that it does not catch. It takes root to be one.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

use crate::binary::{Folder, tool};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs,
    io::{BufRead, BufReader, PipeReader, Read, pipe},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How a process is started as process 1 of a namespace of its own.
const NAMESPACE: [&str; 3] = ["-pf", "--mount-proc", "--kill-child"];

/// Whether it can be one here.
fn can_be() -> bool {
    tool("unshare").args(NAMESPACE).arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn process_1(folder: &Folder, args: &[&str]) -> Command {
    let mut command = tool("unshare");
    command.args(NAMESPACE).arg("relent").args(args).current_dir(folder.path()).env("TMPDIR", folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Signals the process 1 that this one has started, and waits for the end of it.
fn end(outer: &mut Child, signal: Signal, what: &str) -> ExitStatus {
    let inner = fs::read_to_string(format!("/proc/{0}/task/{0}/children", outer.id())).unwrap();
    kill(Pid::from_raw(inner.trim().parse().unwrap()), signal).unwrap();
    let began = Instant::now();
    loop {
        if let Some(status) = outer.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > Duration::from_secs(10) {
            outer.kill().unwrap();
            panic!("{what}: {signal} does not end it");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_signal_ends_what_waits_as_process_1() {
    if !can_be() {
        eprintln!("SKIPPED a_signal_ends_what_waits_as_process_1: there can be no namespace of processes");
        return;
    }
    let waits = ["--max-attempts", "unlimited", "--curve", "constant", "--base", "30s", "--jitter", "none"];
    let folder = Folder::new();
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGHUP, 129)] {
        for (command, what) in
            [("connect", &["127.0.0.1:1"][..]), ("http", &["http://127.0.0.1:1/"]), ("run", &["--", "false"])]
        {
            let mut outer = process_1(&folder, &[&[command][..], &waits, what].concat()).spawn().unwrap();
            let mut said = String::new();
            BufReader::new(outer.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
            assert!(said.contains("attempt 1"), "{command}: {said}");
            assert_eq!(end(&mut outer, signal, command).code(), Some(code), "{command}");
        }
        let mut outer = process_1(&folder, &["demo"]).spawn().unwrap();
        outer.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert_eq!(end(&mut outer, signal, "demo").code(), Some(code), "demo");
    }
}

#[test]
fn a_signal_ends_process_1_while_what_it_sends_is_read() {
    if !can_be() {
        eprintln!(
            "SKIPPED a_signal_ends_process_1_while_what_it_sends_is_read: there can be no namespace of processes"
        );
        return;
    }
    let folder = Folder::new();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for flags in [&["-d", "@pipe"][..], &["-H", "@pipe"], &["--cacert", "pipe"]] {
        let mut outer = process_1(&folder, &[&["http"], flags, &["http://127.0.0.1:1/"]].concat()).spawn().unwrap();
        // It is there once who reads it is.
        let _writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        assert_eq!(end(&mut outer, Signal::SIGTERM, flags[0]).code(), Some(143), "{flags:?}");
    }
}

/// A signal is no more caught then: nothing is left but to write.
#[test]
fn a_signal_ends_process_1_whose_output_nobody_reads() {
    if !can_be() {
        eprintln!("SKIPPED a_signal_ends_process_1_whose_output_nobody_reads: there can be no namespace of processes");
        return;
    }
    let folder = Folder::new();
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGHUP, 129)] {
        let (reader, writer) = pipe().unwrap();
        let mut command = process_1(&folder, &["run", "--", "head", "-c", "300000", "/dev/zero"]);
        let mut outer = command.stdout(writer).spawn().unwrap();
        drop(command);
        let began = Instant::now();
        while standing_in(&reader) < 1 << 16 {
            assert!(began.elapsed() < Duration::from_secs(10), "nothing is written");
            thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(end(&mut outer, signal, "run").code(), Some(code));
        drop(reader);
    }
}

/// How much stands in a pipe.
fn standing_in(pipe: &PipeReader) -> u64 {
    rustix::io::ioctl_fionread(pipe).unwrap()
}

#[test]
fn control_c_ends_process_1_with_its_exit_code() {
    if !can_be() {
        eprintln!("SKIPPED control_c_ends_process_1_with_its_exit_code: there can be no namespace of processes");
        return;
    }
    let folder = Folder::new();
    // It is the first of the session there, too, as of a container.
    let script = "touch up; exec sleep 30";
    let line = format!("exec unshare {} setsid -c relent run -q -- sh -c '{script}'", NAMESPACE.join(" "));
    let mut command = tool("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(folder.path()).env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is part of Debian");
    let mut stdin = child.stdin.take().unwrap();
    let began = Instant::now();
    while !folder.path().join("up").exists() {
        assert!(began.elapsed() < Duration::from_secs(10), "it does not run");
        thread::sleep(Duration::from_millis(2));
    }
    thread::sleep(Duration::from_millis(50));
    std::io::Write::write_all(&mut stdin, b"\x03").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stdout));
}
