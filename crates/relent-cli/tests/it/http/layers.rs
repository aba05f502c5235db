//! Three attempts around three attempts are three, with real processes.

use super::{
    command, finish,
    server::{Reply, Server},
};
use crate::binary::Folder;
use std::fs;

const RELENT: &str = env!("CARGO_BIN_EXE_relent");
const THREE: [&str; 3] = ["--max-attempts=3", "--base=5ms", "--cap=5ms"];

/// Runs these layers, each with three attempts, the innermost a request to a server that answers so.
fn requests(outer: &[&str], reply: Reply) -> (usize, Option<i32>, String) {
    let server = Server::new(vec![reply]);
    let url = server.url("/");
    let mut args = outer.to_vec();
    args.extend([RELENT, "http"]);
    args.extend(THREE);
    args.push(&url);
    let outcome = finish(command(&Folder::new(), &args[1..]));
    (server.count(), outcome.code, outcome.stderr)
}

#[test]
fn three_around_three_are_three() {
    let run = [&[RELENT, "run"], &THREE[..], &["--"]].concat();
    let (count, code, stderr) = requests(&run, Reply::status(503));
    assert_eq!((count, code), (3, Some(1)), "{stderr}");
    let run_in_run = [run.clone(), run.clone()].concat();
    let (count, code, stderr) = requests(&run_in_run, Reply::status(503));
    assert_eq!((count, code), (3, Some(1)), "{stderr}");
}

#[test]
fn what_is_permanent_or_refused_to_one_layer_is_so_to_all() {
    let run = [&[RELENT, "run"], &THREE[..], &["--"]].concat();
    for (reply, exit) in [
        (Reply::status(404), 3),
        (Reply::new(503, &["Relent-Retry: no"], ""), 4),
        (Reply::new(503, &["x-should-retry: false"], ""), 4),
    ] {
        let (count, code, stderr) = requests(&run, reply);
        assert_eq!((count, code), (1, Some(exit)), "{stderr}");
    }
}

#[test]
fn a_script_that_copes_is_judged_by_its_own_end() {
    let server = Server::new(vec![Reply::status(503)]);
    let folder = Folder::new();
    let script = format!("{RELENT} http -q {} {} || exit 75", THREE.join(" "), server.url("/"));
    let args = [&["run", "-q"], &THREE[..], &["--", "sh", "-c", &script]].concat();
    let outcome = finish(command(&folder, &args));
    assert_eq!((server.count(), outcome.code), (9, Some(75)), "{}", outcome.stderr);
}

/// What was carried out, and could not be written down, is not done again.
#[test]
fn a_request_that_was_answered_is_not_begun_anew_by_a_layer_above_whatever_comes_of_the_answer() {
    let run = [&["run", "-q"], &THREE[..], &["--"]].concat();
    let shell = |line: &str| line.replace("HTTP", &format!("{RELENT} http -q"));
    for (method, requests) in [("POST -d x", 1), ("GET", 3)] {
        for line in [
            "exec HTTP METHOD -o /dev/full URL",
            "exec HTTP METHOD URL >/dev/full",
            "exec HTTP METHOD URL >&-",
            "exec HTTP METHOD -o /dev/null -w x URL >/dev/full",
        ] {
            let server = Server::new(vec![Reply::new(200, &[], "answer")]);
            let line = shell(line).replace("METHOD", method).replace("URL", &server.url("/"));
            let outcome = finish(command(&Folder::new(), &[&run[..], &["sh", "-c", &line]].concat()));
            assert_eq!((server.count(), outcome.code), (requests, Some(125)), "{line}: {}", outcome.stderr);
        }
    }
}

#[test]
fn nor_is_one_that_was_ended_before_its_answer() {
    for (method, requests) in [("POST -d x", 1), ("GET", 3)] {
        let folder = Folder::new();
        let got = folder.path().join("got");
        let server = Server::with(move |_, _| {
            fs::write(&got, "").unwrap();
            Reply::nothing().hang()
        });
        // It is told to end once the server has its request.
        let url = server.url("/");
        let until = "until test -e got; do sleep 0.01; done; rm got";
        let line = format!("{RELENT} http -q {method} {url} & {until}; kill -TERM $!; wait $!");
        let run = [&["run", "-q"], &THREE[..], &["--", "sh", "-c", &line]].concat();
        let outcome = finish(command(&folder, &run));
        assert_eq!((server.count(), outcome.code), (requests, Some(143)), "{line}: {}", outcome.stderr);
    }
}

/// How long the server wants to be left alone counts, though its page could not be written.
#[test]
fn what_the_server_said_counts_whatever_became_of_its_page() {
    let server = Server::new(vec![Reply::new(503, &["Retry-After: 900"], "page")]);
    let line = format!("exec {RELENT} http -q --max-attempts=1 --fail-with-body {} >/dev/full", server.url("/"));
    let args =
        ["run", "-q", "--max-attempts=3", "--base=5ms", "--cap=5ms", "--max-pushback=1s", "--", "sh", "-c", &line];
    let outcome = finish(command(&Folder::new(), &args));
    assert_eq!(server.count(), 1, "{outcome:?}");
}
