//! What relent limits by itself, and a `relent.toml` that nobody named cannot take away.

use crate::binary::{Folder, Outcome};
use rustix::net::{AddressFamily, SocketType, socket};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream},
    thread,
    time::Duration,
};

const USED: &str = "relent: policy \"x\" of relent.toml, found in this folder\n";

fn left_out(key: &str, most: &str, file: &str, flag: &str) -> String {
    format!(
        "relent: the {key} of relent.toml, found in this folder, is left out, since it is longer than {most}: \
         --policy {file} or {flag} uses one\n"
    )
}

fn with(keys: &str) -> Folder {
    Folder::new().file("relent.toml", &format!("[policy.x]\n{keys}\n"))
}

/// The system answers for whoever listens and accepts nobody, so a handshake is waited for.
#[test]
fn a_silent_server_does_not_hold_connect() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("tls://{}", silent.local_addr().unwrap());
    // An end for the test, should the attempt have none; long after its own.
    let args = ["connect", "--max-attempts", "1", "--timeout", "40s", &target];
    let waits = |keys: &str, flags: &[&str]| {
        let outcome = with(keys).relent(&[&args[..], flags].concat());
        assert_ne!(outcome.code, Some(125), "{outcome:?}");
        (outcome.stderr, outcome.code)
    };
    thread::scope(|scope| {
        for keys in ["attempt_timeout = 'unlimited'", "attempt_timeout = '1h'", "attempt_timeout = '365d'"] {
            let told = left_out("attempt_timeout", "5s", "relent.toml", "--attempt-timeout");
            scope.spawn(move || {
                let (said, code) = waits(keys, &[]);
                assert!(said.starts_with(&format!("{USED}{told}")) && code == Some(1), "{keys}: {said}");
            });
        }
        scope.spawn(|| {
            let (said, code) = waits("attempt_timeout = 'unlimited'", &["--policy", "#x"]);
            let told = left_out("attempt_timeout", "5s", "'relent.toml#x'", "--attempt-timeout");
            assert!(said.starts_with(&told) && code == Some(1), "{said}");
        });
        scope.spawn(|| {
            let (said, code) = waits("attempt_timeout = '50ms'", &[]);
            assert!(!said.contains("left out") && code == Some(1), "a shorter one counts: {said}");
        });
        let meant = ["--timeout", "6s"];
        for flags in [&["--attempt-timeout", "unlimited"][..], &["--policy", "relent.toml"]] {
            scope.spawn(move || {
                let (said, code) = waits("attempt_timeout = 'unlimited'", &[flags, &meant].concat());
                assert!(!said.contains("left out") && code == Some(124), "what is said counts: {said}");
            });
        }
    });
}

/// A listener whose queue is full lets nobody in and says nothing, as a host that is slow for a moment.
#[test]
fn a_slow_host_is_not_gone_because_a_folder_says_so() {
    let full = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&full, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let full = TcpListener::from(full);
    let target = full.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&target, Duration::from_millis(200)) {
        waiting.push(stream);
    }
    let folder = with("attempt_timeout = '20ms'");
    let inverted = |flags: &[&str]| {
        folder.relent(&[&["connect", "--invert", "--timeout", "200ms", &target.to_string()], flags].concat())
    };
    let told = left_out("attempt_timeout", "5s", "relent.toml", "--attempt-timeout").replace("longer", "shorter");
    let cut = inverted(&[]);
    assert!(cut.stderr.starts_with(&format!("{USED}{told}")) && cut.code == Some(124), "{cut:?}");
    for said in [["--attempt-timeout", "20ms"], ["--policy", "relent.toml"]] {
        let gone = inverted(&said);
        assert!(!gone.stderr.contains("left out") && gone.code == Some(0), "what is said counts: {gone:?}");
    }
}

/// One answer of a server that is busy for longer than anybody would wait, and what is made of it.
fn http(keys: &str, flags: &[&str]) -> Outcome {
    let busy = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let url = format!("http://{}/", busy.local_addr().expect("it is bound"));
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = busy.accept().expect("relent connects");
            let _ = stream.read(&mut [0; 4096]);
            let answer = "HTTP/1.1 503 Busy\r\nRetry-After: 1000000\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(answer.as_bytes()).expect("relent reads");
        });
        with(keys).relent(&[&["http", "--timeout", "30s", &url], flags].concat())
    })
}

#[test]
fn no_server_has_http_wait_for_days() {
    let told = left_out("max_pushback", "2m", "relent.toml", "--max-pushback");
    for keys in ["max_pushback = 'unlimited'", "max_pushback = '500h'", "max_pushback = '365d'", "compat = 'celery'"] {
        let outcome = http(keys, &[]);
        assert_eq!(outcome.code, Some(5), "{outcome:?}");
        assert!(outcome.stderr.starts_with(&format!("{USED}{told}")), "{keys}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("longer than the max_pushback of 2m"), "{keys}: {}", outcome.stderr);
    }
    let shorter = http("max_pushback = '1m'", &[]);
    assert!(shorter.stderr.contains("longer than the max_pushback of 1m"), "a shorter one counts: {}", shorter.stderr);
    for flags in [&["--policy", "relent.toml"][..], &["--max-pushback", "400h"]] {
        let meant = http("max_pushback = '300h'\nmax_attempts = 1", flags);
        assert!(!meant.stderr.contains("left out") && !meant.stderr.contains("max_pushback"), "{}", meant.stderr);
    }
}

#[test]
fn no_command_has_run_wait_for_days() {
    let folder = with("max_pushback = 'unlimited'");
    let command = ["--", "sh", "-c", "echo after 300h > \"$RELENT_VERDICT\"; exit 3"];
    let outcome = folder.relent(&[&["run", "--timeout", "30s"][..], &command].concat());
    let told = left_out("max_pushback", "2m", "relent.toml", "--max-pushback");
    assert!(outcome.stderr.starts_with(&format!("{USED}{told}")) && outcome.code == Some(3), "{outcome:?}");
}

/// What explain shows is what the commands do.
#[test]
fn explain_shows_the_limit_that_holds() {
    let folder = with("max_pushback = 'unlimited'");
    let outcome = folder.relent(&["explain", "--json"]);
    assert!(outcome.stderr.contains("note: the max_pushback of relent.toml, found in this folder, is left out"));
    let named = folder.relent(&["explain", "--json", "--policy", "relent.toml"]);
    assert_eq!(named.stderr, "");
    assert_ne!(outcome.stdout, named.stdout);
}

/// A file of a megabyte can take hundreds of it.
#[test]
fn a_long_file_is_read_if_it_is_named() {
    let text = format!("[policy]\nbase = '1s'\n{}", "# a line that says nothing\n".repeat(2500));
    let folder = Folder::new().file("relent.toml", &text);
    let cannot = "error: cannot read the policy file relent.toml: it is longer than 64KiB\n\
                  hint: a policy file is named by --policy FILE or FILE#NAME\n";
    for command in [&["run", "--", "true"][..], &["explain"], &["run", "--policy", "#x", "--", "true"]] {
        let found = folder.relent(command);
        assert_eq!((found.stderr.as_str(), found.code), (cannot, Some(125)), "{command:?}");
    }
    let named = folder.relent(&["run", "--policy", "relent.toml", "--", "true"]);
    assert_eq!((named.stderr.as_str(), named.code), ("", Some(0)));
}
