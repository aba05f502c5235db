//! Small storms with real sockets: what they say, what they leave, and that they end.
//!
//! They share the machine with other tests, so that what is measured may be late. What must hold all the same: everybody is
//! served and counted once, nobody is refused for ever, and the herd is not drained faster than the server works. How near
//! measured and simulated are is asked of the pacer alone, whose clients need few connections, and within a tolerance for
//! machines that are busy: `cargo xtask loopback` asks for 10 % on one that is idle.

use crate::binary::{Folder, golden, relent, shown_on, size};
use serde_json::Value;
use std::{
    io::{Read, Write},
    net::TcpListener,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const SMALL: [&str; 7] = ["storm", "--clients", "200", "--capacity", "200", "--queue", "50"];

#[track_caller]
fn records(args: &[&str]) -> Vec<Value> {
    let outcome = relent(args);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    match serde_json::from_str(&outcome.stdout).expect("JSON") {
        Value::Array(records) => records,
        other => panic!("no array: {other}"),
    }
}

fn number(record: &Value, figure: &str) -> f64 {
    record[figure].as_f64().unwrap_or_else(|| panic!("{figure} of {record}"))
}

/// Two hundred clients at two hundred a second: the server cannot be done before a second is over.
#[test]
fn a_paced_herd_is_drained_at_once_and_simulated_beside() {
    let records = records(&[&SMALL[..], &["--pacer", "--json", "--base", "50ms", "--cap", "1s"]].concat());
    let names: Vec<&str> = records.iter().filter_map(|record| record["policy"].as_str()).collect();
    assert_eq!(names, ["exponential full", "exponential full + pacer"]);
    for record in &records {
        assert_eq!((record["engine"].as_str(), record["clients"].as_u64()), (Some("real"), Some(200)));
        assert_eq!(record["simulated"]["engine"].as_str(), Some("exact"));
        assert_eq!(record["simulated"]["policy"], record["policy"]);
    }
    let paced = &records[1];
    assert_eq!(number(paced, "success_share"), 1.0, "{paced}");
    assert!(number(paced, "drain_s") > 0.99, "faster than the server works: {paced}");
    let (drain, simulated) = (number(paced, "drain_s"), number(&paced["simulated"], "drain_s"));
    assert!(drain / simulated < 1.5, "{drain} s measured, {simulated} s simulated");
    let (attempts, simulated) =
        (number(paced, "attempts_per_client"), number(&paced["simulated"], "attempts_per_client"));
    assert!((attempts / simulated - 1.0).abs() < 0.5, "{attempts} attempts measured, {simulated} simulated");
    assert!(number(paced, "refused_turn") > 0.3, "turns are given: {paced}");
}

#[test]
fn the_table_has_the_ideal_and_both_sides() {
    let outcome = relent(&[&SMALL[..], &["--compat", "celery", "--compat", "aws-2.1", "--limit", "1500ms"]].concat());
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[0], "200 clients lose their connection; the server takes 200 a second and holds 50");
    let cells: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(cells, ["policy", "connected", "attempts", "drain", "s", "simulated", "attempts", "drain", "s"]);
    assert!(lines[3].starts_with("ideal"), "{}", outcome.stdout);
    assert!(lines[4].starts_with("celery") && lines[5].starts_with("aws-2.1"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("celery: it was watched for 1.5s, and "), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("Measured on loopback with real sockets; simulated by the exact engine"));
}

#[test]
fn a_report_shows_measured_and_simulated() {
    let folder = Folder::new();
    let flags = ["--limit", "1500ms", "--base", "20ms", "--html", "storm.html", "--svg", "plots"];
    let outcome = folder.relent(&[&SMALL[..], &flags].concat());
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    let page = folder.read("storm.html");
    assert!(page.contains("exponential full, simulated"), "the twin is in it");
    assert!(page.contains("relent storm --clients 200"), "the command is in it");
    assert!(folder.read("plots/load.svg").contains("<svg"));
}

/// What a line or the terminal has no room for would stay behind when it is drawn anew.
#[test]
fn the_picture_fits_the_terminal_it_is_shown_on() {
    let folder = Folder::new();
    let mut command = folder.command(&[&SMALL[..], &["--pacer", "--base", "50ms", "--cap", "1s"]].concat());
    command.env("TERM", "xterm").env("COLUMNS", "100").stdout(Stdio::null());
    let (shown, code) = shown_on(Some(&size(4, 40)), |terminal| command.stderr(terminal));
    assert_eq!(code, Some(0), "{shown}");
    let ups: Vec<&str> = shown.split("\u{1b}[").filter(|piece| piece.as_bytes().get(1) == Some(&b'A')).collect();
    assert!(ups.len() > 2 && ups.iter().all(|piece| piece.starts_with('3')), "{shown:?}");
    let lines: Vec<&str> = shown.lines().filter_map(|line| line.split("\u{1b}[K").nth(1)).collect();
    assert!(lines.iter().any(|line| line.starts_with("exponential full")), "{shown:?}");
    assert!(lines.iter().all(|line| line.chars().count() < 40), "{shown:?}");
}

#[test]
fn budgets_of_processes_end_calls() {
    let flags = ["--budget", "grpc=10", "--processes", "4", "--base", "10ms", "--json", "--limit", "3s"];
    let records = records(&[&SMALL[..], &flags].concat());
    let by_budget = records[1]["gave_up_by_reason"]["budget"].as_f64().unwrap_or(0.0);
    assert!(by_budget > 0.0, "{}", records[1]);
    let fates = number(&records[1], "success_share") + number(&records[1], "gave_up_share");
    assert!((fates - 1.0).abs() < 1e-9, "everybody has one fate: {}", records[1]);
}

/// A server of somebody else's, which tells to come back and refuses every other request.
#[test]
fn a_target_on_loopback_is_stormed_and_no_other() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/health", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (nth, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut head = [0; 1024];
            let read = stream.read(&mut head).unwrap_or(0);
            assert!(head[..read].starts_with(b"GET /health"));
            let status = if nth % 2 == 0 { "503 Busy\r\nRetry-After-Ms: 20" } else { "200 OK" };
            let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        }
    });
    let flags = ["storm", "--target", &url, "--clients", "50", "--base", "5ms", "--json", "--limit", "4s"];
    let records = records(&flags);
    assert_eq!(records.len(), 1, "one policy was named");
    assert_eq!(number(&records[0], "success_share"), 1.0, "{}", records[0]);
    let attempts = number(&records[0], "attempts_per_client");
    assert!((1.9..=2.1).contains(&attempts), "every other one is refused: {attempts}");
    assert_eq!(records[0]["simulated"], Value::Null);
    // The page is made to be passed on.
    let folder = Folder::new();
    let secret = url.replace("http://", "http://ann:s3cret@").replace("/health", "/health?token=s3cret");
    let flags = ["storm", "--target", &secret, "--clients", "3", "--limit", "1s", "--html", "page.html"];
    assert_eq!(folder.relent(&flags).code, Some(0));
    let page = folder.read("page.html");
    assert!(page.contains("relent storm --target") && !page.contains("s3cret"), "a password is in the page");
    let refused = relent(&["storm", "--target", "http://192.0.2.1/"]);
    assert_eq!(refused.code, Some(125));
    assert!(refused.stderr.starts_with("error: --target http://192.0.2.1/: its address is not on loopback\nhint: "));
    let both = relent(&["storm", "--target", &url, "--pacer"]);
    assert!(both.stderr.contains("--target names another"), "{}", both.stderr);
}

/// They are in tables, pages and pictures that are passed on.
#[test]
fn names_of_policies_are_told_as_simulate_tells_them() {
    let names = ["https://ann:hunter2Kx7@h/", "password=hunter2Kx7", "Bearer hunter2Kx7Longer"];
    let policies = names.map(|name| format!("[policy.\"{name}\"]\nbase = \"50ms\"\nmax_attempts = 4\n")).concat();
    let folder = Folder::new().file("p.toml", &policies);
    let specs = names.map(|name| format!("p.toml#{name}"));
    for more in [&[][..], &["--json"], &["--html", "page.html", "--svg", "pictures"]] {
        let flags = ["storm", "--clients", "3", "--capacity", "200", "--queue", "5", "--limit", "1s"];
        let policies = ["--policy", &specs[0], "--compare", &specs[1], "--compare", &specs[2]];
        let outcome = folder.relent(&[&flags[..], &policies, more].concat());
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let said = outcome.stdout + &outcome.stderr;
        assert!(said.contains("password=***") && !said.contains("hunter2"), "{said}");
    }
    assert!(!folder.read("page.html").contains("hunter2"));
    let pictures = std::fs::read_dir(folder.path().join("pictures")).unwrap();
    for picture in pictures.map(|entry| entry.unwrap().path()) {
        let drawn = std::fs::read_to_string(&picture).unwrap();
        assert!(!drawn.contains("hunter2"), "{}", picture.display());
    }
}

#[test]
fn too_few_files_say_what_to_set() {
    let limited = "ulimit -n 256; exec \"$0\" storm --clients 2000 --limit 1s";
    let outcome = Command::new("sh").args(["-c", limited, env!("CARGO_BIN_EXE_relent")]).output().unwrap();
    let stderr = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(125), "{stderr}");
    assert!(stderr.starts_with("error: the storm needs 8064 open files at once, and this process may have 256\n"));
    assert!(stderr.contains("ulimit -Hn 8064") && stderr.contains("may have 96"), "{stderr}");
}

#[test]
fn ctrl_c_ends_it_and_shows_what_was_done() {
    let mut storm = Command::new(env!("CARGO_BIN_EXE_relent"))
        .args(["storm", "--clients", "100", "--capacity", "10", "--queue", "5", "--limit", "60s", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(900));
    let begun = Instant::now();
    Command::new("kill").args(["-INT", &storm.id().to_string()]).status().unwrap();
    let mut text = String::new();
    storm.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(storm.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let records: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(records.as_array().map(Vec::len), Some(3), "{text}");
    assert_eq!(records[0]["stopped"].as_str(), Some("interrupted"));
}

#[test]
fn agreement_is_asked_for() {
    let flags = ["--limit", "1500ms", "--base", "20ms", "--agree", "0.000001", "-q", "--seed"];
    // Both may make the same number of attempts by chance, but not each time.
    let mut outcomes = ["1", "2", "3"].into_iter().map(|seed| relent(&[&SMALL[..], &flags, &[seed]].concat()));
    let outcome = outcomes.find(|outcome| outcome.code != Some(0)).expect("what differs does not agree");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("error: measured and simulated differ by "), "{}", outcome.stderr);
    assert_eq!(relent(&["storm", "--agree", "2"]).code, Some(125));
}

#[test]
fn bad_flags_say_what_and_why() {
    let said = |args: &[&str]| relent(&[&["storm"], args].concat()).stderr;
    assert!(said(&["--clients", "0"]).contains("0 is not in 1..=20000"));
    assert!(said(&["--clients", "20001"]).contains("is not in 1..=20000"));
    assert!(said(&["--capacity", "nan"]).contains("a number a second from 0.1 to 100000 is expected"));
    assert!(said(&["--limit", "6m"]).contains("a storm lasts 5m at most"));
    assert!(said(&["--pacer", "capacity=0"]).starts_with("error: --pacer: the capacity is not above 0"));
    let many = ["--compare", "celery"].repeat(13);
    assert!(said(&many).starts_with("error: 13 policies are too many for one storm\nhint: up to 12"));
}

#[test]
fn the_help_of_a_storm() {
    let outcome = relent(&["storm", "--help"]);
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    golden("storm-help.txt", &outcome.stdout);
    assert!(outcome.stdout.lines().all(|line| line.chars().count() <= 100), "{}", outcome.stdout);
}

/// What is refused is told without its password, whatever it looks like.
#[test]
fn a_refused_target_shows_no_password() {
    for target in ["ann:s3cret@10.0.0.1/", "http://ann:s3cret@10.0.0.1/", "10.0.0.1/?token=s3cret"] {
        let outcome = relent(&["storm", "--target", target]);
        assert_eq!(outcome.code, Some(125), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("s3cret"), "{}", outcome.stderr);
    }
}

/// A file that was only found does not have a real server stormed without end or delay.
#[test]
fn a_found_file_asks_for_no_flood() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("http://{}/", listener.local_addr().unwrap());
    let endless = "[policy.x]\ncurve = \"immediate\"\nmax_attempts = \"unlimited\"\n";
    let flood = "[policy.x]\ncurve = \"immediate\"\nmax_attempts = 100\n";
    let storm = |text: &str, flags: &[&str]| {
        let folder = Folder::new().file("relent.toml", text);
        folder.relent(&[&["storm", "--target", &target, "--clients=5", "--limit=200ms"], flags].concat())
    };
    for flag in ["--policy=#x", "--compare=#x"] {
        let outcome = storm(endless, &[flag]);
        assert_eq!(outcome.code, Some(125), "{flag}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("asks for attempts without end or delay"), "{flag}: {}", outcome.stderr);
        let outcome = storm(flood, &[flag]);
        assert_eq!(outcome.code, Some(125), "{flag}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("asks for more than 20 retries within a second"), "{}", outcome.stderr);
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody has come");
    // What is in the folder and was not asked for is nothing to it.
    let outcome = storm(endless, &["--curve=immediate", "--max-attempts=30"]);
    assert!(!outcome.stderr.contains("relent.toml"), "{}", outcome.stderr);
}
