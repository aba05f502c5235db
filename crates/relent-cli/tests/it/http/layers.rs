//! Three attempts around three attempts are three, with real processes.

use super::{
    command, finish,
    server::{Reply, Server},
};
use crate::binary::Folder;

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
