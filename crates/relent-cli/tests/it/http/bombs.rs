//! Bodies that grow when they are unpacked: memory stays small, and there is an end.

use super::{
    command, finish,
    server::{Reply, Server},
};
use crate::binary::Folder;
use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    thread,
};

/// Zeros.
const LENGTH: usize = 96 << 20;

/// The most that a run may have in memory: less than the bomb, more than a program of this size needs.
pub(super) const MOST_KIB: u64 = 64 << 10;

/// `LENGTH` zeros as gzip has them.
fn gzip() -> Vec<u8> {
    let mut packer = Command::new("gzip").arg("-9").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = packer.stdin.take().unwrap();
    let feeder = thread::spawn(move || {
        for _ in 0..LENGTH >> 20 {
            input.write_all(&vec![0; 1 << 20]).unwrap();
        }
    });
    let mut packed = Vec::new();
    packer.stdout.take().unwrap().read_to_end(&mut packed).unwrap();
    feeder.join().unwrap();
    packer.wait().unwrap();
    packed
}

/// Runs with as much memory as there is, and says how much of it was used at most.
pub(super) fn peak(args: &[&str]) -> (Option<i32>, String, u64) {
    let folder = Folder::new();
    let script = "\"$0\" \"$@\" >/dev/null & pid=$!; peak=0
        while read -r _ hwm _ < <(grep VmHWM /proc/$pid/status 2>/dev/null); do peak=$hwm; sleep 0.01; done
        wait $pid; code=$?; echo \"peak $peak\" >&2; exit $code";
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_relent"), "http", "-q", "--max-attempts=1"]).args(args);
    command.current_dir(folder.path());
    for name in ["http_proxy", "all_proxy", "ALL_PROXY"] {
        command.env_remove(name);
    }
    let outcome = finish(command);
    let (stderr, peak) = outcome.stderr.rsplit_once("peak ").unwrap();
    (outcome.code, stderr.to_owned(), peak.trim().parse().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_bomb_ends_in_bounded_memory() {
    let server = Server::new(vec![Reply::new(200, &["Content-Encoding: gzip"], gzip())]);
    let url = server.url("/");
    let (code, stderr, memory) = peak(&["--compressed", "--max-size=90MiB", &url]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("the body is larger than the --max-size of 90MiB"), "{stderr}");
    assert!((1..MOST_KIB).contains(&memory), "{memory} KiB");
    let (code, stderr, memory) = peak(&["--compressed", "-o", "file", &url]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!((1..MOST_KIB).contains(&memory), "{memory} KiB");
}

/// 96 MiB of zeros, packed by brotli.
const BROTLI: &[u8] = &[
    203, 255, 255, 63, 248, 39, 0, 226, 177, 64, 32, 247, 254, 143, 255, 255, 127, 240, 79, 0, 196, 97, 17, 128, 238,
    253, 31, 255, 255, 255, 224, 159, 0, 136, 195, 2, 0, 221, 251, 63, 254, 255, 255, 193, 63, 1, 16, 135, 5, 0, 186,
    247, 127, 252, 255, 255, 131, 127, 2, 32, 14, 11, 0, 116, 239, 255, 248, 255, 255, 7, 255, 4, 64, 28, 22, 0, 232,
    222, 255, 241, 255, 255, 15, 254, 9, 128, 56, 44, 0, 208, 189, 255, 227, 255, 255, 31, 252, 19, 0, 113, 88, 0, 160,
    123, 255, 199, 255, 255, 63, 248, 39, 0, 226, 176, 0, 64, 247, 254, 143, 255, 255, 127, 240, 79, 0, 196, 97, 1,
    128, 238, 253, 31, 255, 255, 255, 224, 159, 0, 136, 195, 2, 0, 221, 251, 191, 252, 255, 255, 195, 63, 1, 16, 135,
    5, 0, 186, 247, 127,
];

#[cfg(target_os = "linux")]
#[test]
fn a_small_bomb_of_brotli_is_one_too() {
    let server = Server::new(vec![Reply::new(200, &["Content-Encoding: br"], BROTLI)]);
    let (code, stderr, memory) = peak(&["--compressed", "--max-size=90MiB", &server.url("/")]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("the body is larger than the --max-size of 90MiB"), "{stderr}");
    assert!((1..MOST_KIB).contains(&memory), "{memory} KiB");
}

#[test]
fn a_failed_response_is_bounded_too() {
    let server = Server::new(vec![Reply::new(404, &[], "x".repeat(1 << 20))]);
    let folder = Folder::new();
    let mut command = command(&folder, &["http", "-q", "--fail-with-body", "--max-size=1000B", &server.url("/")]);
    command.stdin(Stdio::null());
    let outcome = finish(command);
    assert_eq!((outcome.code, outcome.stdout.len()), (Some(3), 1000), "{}", outcome.stderr);
}

/// What is kept until it is complete may take less room than what grows in the user's own file.
#[test]
fn the_bound_is_that_of_the_place_where_a_body_grows() {
    let server = Server::new(vec![Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 1073741825\r\n\r\nx").hang()]);
    let folder = Folder::new();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _reader = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let url = server.url("/");
    for (args, is_refused) in [
        (&["-o", "-"][..], true),
        (&["-o", "/dev/null"], true),
        (&["-o", "pipe"], true),
        (&["-o", "/dev/null", "--max-size=2GiB"], false),
        (&["-o", "file"], false),
        (&["-o", "file", "--max-size=1GiB"], true),
    ] {
        let all = [&["http", "--max-attempts=1", "--idle-timeout=200ms"], args, &[url.as_str()]].concat();
        let outcome = super::run(&folder, &all);
        assert_eq!(outcome.code, Some(if is_refused { 3 } else { 1 }), "{args:?}: {}", outcome.stderr);
        let is_said = outcome.stderr.contains("the body is larger than the --max-size of 1GiB");
        assert_eq!(is_said, is_refused, "{args:?}: {}", outcome.stderr);
    }
}

#[test]
fn a_length_that_is_too_much_is_refused_before_it_comes() {
    let server = Server::new(vec![Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999\r\n\r\nx").hang()]);
    for args in [&["-o", "file"][..], &[]] {
        let folder = Folder::new();
        let url = server.url("/");
        let outcome = super::run(&folder, &[&["http", "--idle-timeout=20s"], args, &[url.as_str()]].concat());
        assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("--max-size"), "{}", outcome.stderr);
        assert_eq!(folder.names(), Vec::<String>::new());
    }
}
