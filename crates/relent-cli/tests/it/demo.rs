//! `relent demo`: it is true, and it ends.

use crate::binary::{Folder, relent};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

#[test]
fn shows_what_it_measured() {
    let began = Instant::now();
    let outcome = relent(&["demo"]);
    // It plans for eight seconds; a machine that is busy may take its time.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('\x1b'), "plain in a pipe");
    tells_all(&outcome.stdout);

    let peaks = outcome.stdout.split("a peak of ").nth(1).unwrap();
    let peaks: Vec<u32> = peaks.split(['.', ' ']).filter_map(|word| word.parse().ok()).collect();
    let &[without, with] = &peaks[..2] else { panic!("{peaks:?}") };
    assert!(with < without, "{with} with jitter, {without} without");
}

/// What it tells is in it, each in its place.
fn tells_all(stdout: &str) {
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
    let mut rest = stdout;
    for told in told {
        let at = rest.find(told).unwrap_or_else(|| panic!("{told:?} is not told, or not in its place:\n{stdout}"));
        rest = &rest[at..];
    }
}

/// The demo with so many open files, and no leave to have more.
fn with_files(most: u32) -> Child {
    let line = format!("ulimit -n {most}; exec \"$0\" demo");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_relent")]).stdin(Stdio::null());
    shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("there is a shell")
}

/// Any user of the machine sees the port: those who say nothing take no files that its own clients need, and who asks without the word
/// is no client.
#[test]
fn connections_of_others_change_nothing() {
    let mut child = with_files(600);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut told = String::new();
    while !told.contains("http://127.0.0.1:") {
        assert_ne!(stdout.read_line(&mut told).unwrap(), 0, "{told}");
    }
    let port: u16 = told.split("http://127.0.0.1:").nth(1).unwrap().split('/').next().unwrap().parse().unwrap();
    let began = Instant::now();
    let mut others: Vec<TcpStream> = Vec::new();
    while others.len() < 300 && began.elapsed() < Duration::from_secs(20) {
        // Nothing listens at first.
        let Ok(mut other) = TcpStream::connect(("127.0.0.1", port)) else { continue };
        if others.is_empty() {
            other.write_all(b"GET /orders/42 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        }
        others.push(other);
    }
    assert_eq!(others.len(), 300);
    let mut answer = [0; 12];
    others[0].read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"HTTP/1.1 404");
    let began = Instant::now();
    stdout.read_to_string(&mut told).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((String::from_utf8_lossy(&output.stderr).as_ref(), output.status.code()), ("", Some(0)), "{told}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    tells_all(&told);
}

/// Two hundred clients that can never come together are not waited for.
#[test]
fn too_few_files_are_an_error() {
    let output = with_files(256).wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.starts_with("error: the demo needs 464 open files at once, and this process may have 256\n"),
        "{stderr}"
    );
    assert_eq!(output.status.code(), Some(125));
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("{\"order\": 42, \"state\": \"paid\"}"), "what needs few files is shown: {told}");
}

/// Nobody watches: the demo ends without a word, and so does the client it has started.
#[test]
fn ends_when_nobody_watches() {
    let folder = Folder::new();
    let mut child = folder.command(&["demo"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stderr, output.status.code()), (Vec::new(), Some(0)));
}
