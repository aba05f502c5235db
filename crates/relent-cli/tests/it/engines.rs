//! Leases and stores of the command line on real servers, started and ended here.

use crate::binary::{Folder, Outcome};
use servers::{PostgresServer, RedisServer};
use std::{
    process::{Child, Stdio},
    time::{Duration, Instant},
};

#[expect(dead_code, reason = "the tests of the stores use more of it")]
#[path = "../../../relent-store/tests/it/servers.rs"]
mod servers;

fn start(folder: &Folder, url: &str, ttl: &str, script: &str) -> Child {
    let flags = ["run", "--base", "10ms", "--cap", "100ms", "--lease", "nightly", "--lease-ttl", ttl, "--store", url];
    let mut command = folder.command(&[&flags[..], &["--", "sh", "-c", script]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary was built")
}

fn wait(child: Child) -> Outcome {
    let output = child.wait_with_output().expect("it can be waited for");
    let text = |bytes| String::from_utf8(bytes).expect("relent writes UTF-8");
    Outcome { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
}

/// Six at once, one after the other.
fn take_turns(url: &str) {
    let folder = Folder::new();
    let script = "mkdir busy || echo two >> wrong; echo $RELENT_FENCE >> fences; sleep 0.02; rmdir busy";
    let runs: Vec<Child> = (0..6).map(|_| start(&folder, url, "30s", script)).collect();
    for run in runs {
        let outcome = wait(run);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
    assert!(!folder.path().join("wrong").exists());
    let fences: Vec<u64> = folder.read("fences").lines().map(|line| line.parse().expect("they are numbers")).collect();
    assert!(fences.len() == 6 && fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

fn store(args: &[&str], url: &str) -> Outcome {
    Folder::new().relent(&[&["store"], args, &["--timeout", "3s", "--store", url]].concat())
}

/// What is said of a server that is not there: soon, and without its password.
fn is_away(url: &str) {
    let began = Instant::now();
    let away = store(&["check"], url);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!((away.code, away.stdout.as_str()), (Some(125), ""), "{away:?}");
    assert!(away.stderr.starts_with("error: store ") && away.stderr.contains("\nhint: "), "{away:?}");
    assert!(!away.stderr.contains("hunter2"), "{away:?}");
}

#[test]
fn a_lease_in_redis() {
    let mut server = RedisServer::start(&["--requirepass", "hunter2"]);
    let url = server.url().replace("redis://", "redis://:hunter2@");
    take_turns(&url);
    let checked = store(&["check"], &url);
    assert!(checked.stdout.contains("engine    redis ") && checked.stdout.contains("fsync always"), "{checked:?}");
    assert!(checked.stdout.contains("redis://***@127.0.0.1:") && !checked.stdout.contains("hunter2"), "{checked:?}");
    let refused = store(&["check"], &server.url());
    assert_eq!(refused.code, Some(125), "{refused:?}");

    // A command whose store goes away is ended before somebody else can have the lease.
    let folder = Folder::new();
    let run = start(&folder, &url, "3s", "trap 'exit 3' TERM; echo > began; while :; do sleep 0.01; done");
    while !folder.path().join("began").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = Instant::now();
    server.kill();
    let outcome = wait(run);
    assert_eq!(outcome.code, Some(75), "{outcome:?}");
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
    assert!(outcome.stderr.contains("the lease nightly cannot be renewed: "), "{outcome:?}");
    assert!(outcome.stderr.lines().count() < 10, "{outcome:?}");
    is_away(&url);
    server.again();
    let after = wait(start(&folder, &url, "3s", "true"));
    assert_eq!(after.code, Some(0), "{after:?}");
}

#[test]
fn a_lease_in_postgres() {
    let mut server = PostgresServer::start();
    let url = server.url();
    let until = Instant::now() + Duration::from_secs(20);
    // It listens before it takes connections.
    while store(&["migrate"], &url).code != Some(0) {
        assert!(Instant::now() < until, "{:?}", store(&["migrate"], &url));
    }
    take_turns(&url);
    let checked = store(&["check"], &url);
    assert!(checked.stdout.contains("engine    postgres ") && !checked.stdout.contains("hunter2"), "{checked:?}");
    let missing = store(&["check"], &url.replace("/postgres", "/nowhere"));
    assert_eq!(missing.code, Some(125), "{missing:?}");
    assert!(!missing.stderr.contains("hunter2"), "{missing:?}");
    server.kill();
    is_away(&url);
    server.again();
}

/// The database of another program gets nothing by who only looks.
#[test]
fn who_only_looks_into_a_postgres_makes_nothing() {
    let server = PostgresServer::start();
    let url = server.url();
    let until = Instant::now() + Duration::from_secs(20);
    let none = "there is no store in it: it has none of its tables\n\
                hint: relent store migrate makes it, and so does the first command that uses it by --store or RELENT_STORE\n";
    let is_up = || store(&["show"], &url).stderr.ends_with(none);
    while !is_up() {
        assert!(Instant::now() < until, "{:?}", store(&["show"], &url));
    }
    let looks: [&[&str]; 6] = [
        &["store", "check"],
        &["store", "show"],
        &["store", "purge"],
        &["upstream"],
        &["upstream", "watch", "--times=1"],
        &["store", "show", "--json"],
    ];
    // Had one of them made something, the next would find it.
    for look in looks.iter().chain(&looks[..1]) {
        let outcome = Folder::new().relent(&[look, &["--store", &url][..]].concat());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(125), ""), "{look:?}: {outcome:?}");
        assert!(outcome.stderr.contains("there is no store in it"), "{look:?}: {outcome:?}");
        assert!(!outcome.stderr.contains("make=no"), "{look:?}: {outcome:?}");
    }
    assert_eq!(store(&["migrate"], &url).code, Some(0));
    for look in looks {
        let outcome = Folder::new().relent(&[look, &["--store", &url]].concat());
        assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "{look:?}");
        assert!(!outcome.stdout.contains("make=no"), "{look:?}: {outcome:?}");
    }
}
