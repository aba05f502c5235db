//! The examples: stories in which a process is killed in the middle, told by the engines that can tell them.

use crate::servers::{PostgresServer, RedisServer};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// An example's program. Built with the tests; built here if only this test was asked for.
fn program(example: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples").join(example);
    let age = |path: &Path| fs::metadata(path).and_then(|is| is.modified()).ok();
    let source = Path::new(ROOT).join("examples").join(format!("{example}.rs"));
    if age(&program) < age(&source) {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--locked", "--example", example]).current_dir(ROOT);
        assert!(build.status().unwrap().success(), "{example} is built");
    }
    program
}

/// What an example tells, with this store, or with its own.
fn told(example: &str, url: Option<&str>) -> Vec<String> {
    let out = Command::new(program(example)).args(url).output().unwrap();
    let (told, error) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{example}: {told}{error}");
    told.lines().map(str::to_owned).collect()
}

/// What stands in a page of the documentation.
fn page(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join("../..").join(path)).unwrap()
}

/// A line without what differs each time: the digits of a time of day.
fn timeless(line: &str) -> String {
    line.split(' ')
        .map(|word| if word.contains("T") && word.contains("Z,") { "TIME," } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

fn the_payment_is_made_once(url: Option<&str>) {
    let told: Vec<String> = told("payment", url).iter().map(|line| timeless(line)).collect();
    let want = [
        "a process paid, and was killed before it could tell: signal: 9 (SIGKILL)",
        "not paid again: it was begun at TIME, and may have happened",
        "paid: receipt that was found (replayed: true)",
        "paid: receipt that was found (replayed: true)",
        "booked 1 time(s)",
    ];
    assert_eq!(told, want);
    for path in ["README.md", "docs/stores.md"] {
        let shown = page(path).lines().map(timeless).collect::<Vec<_>>().join("\n");
        assert!(shown.contains(&want.join("\n")), "{path} shows what the example tells");
    }
}

fn the_order_is_inserted_once(url: Option<&str>) {
    let want = [
        "message 1: its consumer was killed before its commit: signal: 9 (SIGKILL)",
        "message 1: a consumer inserted the order",
        "message 1: 1 order(s)",
        "message 2: its consumer was killed before its acknowledgement: signal: 9 (SIGKILL)",
        "message 2: a consumer saw the message before, and did nothing",
        "message 2: 1 order(s)",
        "message 3: a consumer inserted the order",
        "message 3: 1 order(s)",
    ];
    assert_eq!(told("order", url), want);
}

fn every_book_is_sold_once(url: Option<&str>) {
    let told = told("stock", url);
    assert_eq!(told.len(), 6, "{told:#?}");
    assert_eq!(told[1], "process 1 sold 4, and was killed between read and write: signal: 9 (SIGKILL)");
    assert_eq!(told[5], "left: 0, sold: 100 of 100", "{told:#?}");
}

fn the_next_takes_over_and_the_last_is_fenced(url: Option<&str>) {
    let told = told("nightly", url);
    let fence = |nth: usize| -> u64 {
        let (said, fence) = told[nth].rsplit_once(' ').unwrap();
        assert!(said.ends_with("holds the lease under fence"), "{told:#?}");
        fence.parse().unwrap()
    };
    let [one, two, three, four] = [0, 2, 5, 7].map(fence);
    assert!(one < two && two < three && three < four, "{told:#?}");
    let want = [
        format!("web-1: holds the lease under fence {one}"),
        "web-1: killed: signal: 9 (SIGKILL)".to_owned(),
        format!("web-2: holds the lease under fence {two}"),
        format!("web-2: its report is taken under fence {two}"),
        "web-2: lets go".to_owned(),
        format!("web-3: holds the lease under fence {three}"),
        "web-3: stopped, longer than its lease".to_owned(),
        format!("web-4: holds the lease under fence {four}"),
        format!("web-4: its report is taken under fence {four}"),
        "web-4: lets go".to_owned(),
        format!("web-3: wakes up and has lost the lease; its report is refused: fence {three} is older than {four}"),
        "web-3: lets go, and is told that it held nothing".to_owned(),
    ];
    assert_eq!(told, want);
}

#[test]
fn a_payment_survives_a_kill() {
    the_payment_is_made_once(None);
}

#[test]
fn an_order_is_inserted_once_however_often_its_consumers_are_killed() {
    the_order_is_inserted_once(None);
}

#[test]
fn a_stock_is_sold_by_processes_of_which_one_is_killed() {
    every_book_is_sold_once(None);
}

#[test]
fn a_nightly_job_goes_on_when_its_holder_is_killed_or_stopped() {
    the_next_takes_over_and_the_last_is_fenced(None);
}

#[test]
fn an_order_wants_a_store_with_transactions() {
    let out = Command::new(program("order")).arg("memory:").output().unwrap();
    assert!(!out.status.success());
    assert!(String::from_utf8_lossy(&out.stderr).contains("a transaction wants sqlite:FILE or postgres://"));
}

#[test]
fn stories_of_several_processes_want_a_store_that_they_share() {
    for story in ["payment", "stock", "nightly"] {
        let out = Command::new(program(story)).arg("memory:").output().unwrap();
        assert!(!out.status.success() && out.stdout.is_empty(), "{story}: {out:?}");
        assert!(String::from_utf8_lossy(&out.stderr).contains("a store that outlives a process wants sqlite:FILE"));
    }
}

#[test]
fn the_stories_are_told_on_redis_too() {
    let server = RedisServer::start(&[]);
    let url = server.url();
    the_payment_is_made_once(Some(&url));
    every_book_is_sold_once(Some(&url));
    the_next_takes_over_and_the_last_is_fenced(Some(&url));
}

#[test]
fn the_stories_are_told_on_postgres_too() {
    let server = PostgresServer::start();
    let url = server.url();
    the_payment_is_made_once(Some(&url));
    the_order_is_inserted_once(Some(&url));
    every_book_is_sold_once(Some(&url));
    the_next_takes_over_and_the_last_is_fenced(Some(&url));
}

/// The README's payment is that of the page about stores, which compiles.
#[test]
fn the_payment_of_the_readme_is_the_one_that_compiles() {
    let block = |page: &str| -> String {
        let from = page.find("use relent_store::").expect("it has the payment");
        let code = page[from..].split("```").next().unwrap_or_default();
        code.lines().filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n").trim().to_owned()
    };
    assert_eq!(block(&page("README.md")), block(&page("docs/stores.md")));
}

#[test]
fn what_could_not_be_told_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("no folder").join("state.db").display());
    for example in ["payment", "nightly", "stock", "order"] {
        let out = Command::new(program(example)).arg(&url).output().unwrap();
        let told = String::from_utf8_lossy(&out.stdout);
        assert!(!out.status.success(), "{example}: {told}");
        assert!(!told.contains("killed") && !told.contains("paid") && !told.contains("web-"), "{example}: {told}");
    }
}
