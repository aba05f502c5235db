//! Three attempts around three attempts are three, with real processes.

use super::{
    command, finish,
    server::{Reply, Server},
};
use crate::binary::{Folder, said_in};
use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

pub(super) const RELENT: &str = env!("CARGO_BIN_EXE_relent");
pub(super) const THREE: [&str; 3] = ["--max-attempts=3", "--base=5ms", "--cap=5ms"];

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

/// What may not be sent twice is sent once, whatever ends it, and what may be is sent by each of three attempts: `line` is run in a
/// shell, with the binary for `HTTP`, the method for `METHOD` and the server for `URL`.
#[track_caller]
fn is_sent_once(run: &[&str], line: &str, answer: impl Fn() -> Reply, code: i32) {
    for (method, requests) in [("POST -d x", 1), ("GET", 3)] {
        let folder = Folder::new();
        let got = folder.path().join("got");
        let answer = answer();
        let server = Server::with(move |_, _| {
            fs::write(&got, "").unwrap();
            answer.clone()
        });
        let line = line.replace("HTTP", &format!("{RELENT} http -q")).replace("METHOD", method);
        let line = line.replace("URL", &server.url("/"));
        let args = [&["run", "-q"], &THREE[..], run, &["--", "sh", "-c", &line]].concat();
        let outcome = finish(command(&folder, &args));
        assert_eq!((server.count(), outcome.code), (requests, Some(code)), "{line}: {}", outcome.stderr);
    }
}

/// What was carried out, and could not be written down, is not done again.
#[test]
fn a_request_that_was_answered_is_not_begun_anew_by_a_layer_above_whatever_comes_of_the_answer() {
    for line in [
        "exec HTTP METHOD -o /dev/full URL",
        "exec HTTP METHOD URL >/dev/full",
        "exec HTTP METHOD URL >&-",
        "exec HTTP METHOD -o /dev/null -w x URL >/dev/full",
    ] {
        is_sent_once(&[], line, || Reply::new(200, &[], "answer"), 125);
    }
}

#[test]
fn nor_is_one_that_was_ended_before_its_answer() {
    let hangs = || Reply::nothing().hang();
    // Once the server has its request.
    let until = "until test -e got; do sleep 0.01; done; rm got";
    is_sent_once(&[], &format!("HTTP METHOD URL & {until}; kill -TERM $!; wait $!"), hangs, 143);
    is_sent_once(&[], &format!("HTTP METHOD URL & {until}; kill -KILL $!; wait $!"), hangs, 137);
    is_sent_once(&[], &format!("HTTP METHOD URL & {until}; kill -40 $!; wait $!"), hangs, 168);
    // Whatever the program around it makes of that, and whatever others say beside it.
    is_sent_once(&[], &format!("HTTP METHOD URL & {until}; kill -KILL $!; wait $!; exit 7"), hangs, 7);
    let other = "echo 'exit 7: transient' >>$RELENT_VERDICT";
    is_sent_once(&[], &format!("HTTP METHOD URL & {until}; kill -TERM $!; wait $!; {other}; exit 7"), hangs, 7);
    // By the run around it, or by another program.
    is_sent_once(&["--attempt-timeout=500ms"], "HTTP METHOD URL", hangs, 124);
    is_sent_once(&["--attempt-timeout=500ms"], "HTTP METHOD URL; exit 7", hangs, 124);
    is_sent_once(&["--attempt-timeout=500ms"], &format!("exec {RELENT} run -q -- HTTP METHOD URL"), hangs, 124);
    is_sent_once(&[], "timeout 0.5 HTTP METHOD URL", hangs, 124);
    // Its own time was over, and that could not be written: it has given up, as it would have with any method.
    let server = Server::new(vec![hangs()]);
    for method in ["POST -d x", "GET"] {
        let line = format!("exec {RELENT} http -q --timeout 500ms -w x {method} {} >/dev/full", server.url("/"));
        let outcome =
            finish(command(&Folder::new(), &[&["run", "-q"], &THREE[..], &["--", "sh", "-c", &line]].concat()));
        assert_eq!(outcome.code, Some(125), "{method}: {}", outcome.stderr);
    }
    assert_eq!(server.count(), 2);
}

/// A server that wants to be left alone for longer than the inner one may wait has had the request, too.
#[test]
fn nor_is_one_whose_server_wants_a_long_wait() {
    let later = || Reply::new(503, &["Retry-After: 1"], "");
    is_sent_once(&["--max-pushback=1h"], "HTTP --max-pushback 10ms METHOD URL", later, 5);
}

#[test]
fn nor_is_one_within_a_run_that_was_ended() {
    let until = "until test -e got; do sleep 0.01; done; rm got";
    let line = format!("{RELENT} run -q -- HTTP METHOD URL & {until}; kill -TERM $!; wait $!");
    is_sent_once(&[], &line, || Reply::nothing().hang(), 143);
}

/// What somebody else has said before has no end.
#[test]
fn what_is_said_is_a_line_of_its_own() {
    for before in ["printf transient", "printf '%5000d' 7"] {
        let server = Server::new(vec![Reply::status(503)]);
        let line = format!("{before} >$RELENT_VERDICT; exec {RELENT} http -q -d x {}", server.url("/"));
        let args = [&["run", "-q"], &THREE[..], &["--", "sh", "-c", &line]].concat();
        let outcome = finish(command(&Folder::new(), &args));
        assert_eq!((server.count(), outcome.code), (1, Some(6)), "{line}: {}", outcome.stderr);
    }
}

/// The run around it cannot be told, so nothing is done that would have to be told.
#[test]
fn what_cannot_be_told_to_the_layer_above_is_not_sent() {
    let limited = |limit: &str, code: Option<i32>| {
        let server = Server::new(vec![Reply::status(503)]);
        let line = format!("{limit}; exec {RELENT} http {} -d x {}", THREE.join(" "), server.url("/"));
        let outcome = finish(command(&Folder::new(), &[&["run"], &THREE[..], &["--", "sh", "-c", &line]].concat()));
        assert!(code.is_none_or(|code| outcome.code == Some(code)), "{line}: {outcome:?}");
        (server.count(), outcome.stderr)
    };
    let (count, stderr) = limited("ulimit -f 0", Some(125));
    assert!(count == 0 && stderr.contains("cannot be told what may not be sent twice, so it was not sent"), "{stderr}");
    // Whatever it is for which there are too few of them.
    for files in 8..=24 {
        let (count, stderr) = limited(&format!("ulimit -n {files}"), None);
        assert!(count <= 1, "{files}: {count}, {stderr}");
    }
}

/// Who has heard it does not wait for what was not begun.
#[test]
fn what_one_layer_has_no_room_for_is_taken_back_from_the_others() {
    let server = Server::new(vec![Reply::new(200, &[], "ok")]);
    let folder = Folder::new();
    let path = folder.path().canonicalize().unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    fs::write(path.join("near"), "").unwrap();
    // As long as a file may be here.
    fs::write(path.join("far"), "\n".repeat(4096)).unwrap();
    let line = format!("ulimit -f 8; exec {RELENT} http -q -d x {}", server.url("/"));
    let mut shell = crate::binary::tool("sh");
    shell.args(["-c", &line]).current_dir(&path);
    shell.env("RELENT_VERDICT", path.join("near")).env("RELENT_VERDICTS_ABOVE", path.join("far"));
    let outcome = finish(shell);
    assert_eq!((outcome.code, server.count()), (Some(125), 0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("so it was not sent"), "{}", outcome.stderr);
    assert_eq!(said_in(&path.join("near")), ["exit 1-255: permanent", "exit 1-255: not begun"]);
}

/// The nearest is who begins anew; that one further out hears it is not enough.
#[test]
fn that_the_nearest_run_hears_nothing_is_said() {
    for around in [&["run", "--"][..], &["run", "--", RELENT, "run", "--"]] {
        for (reply, flag, about) in [
            (Reply::new(200, &[], "ok"), "-dx", "what may not be sent twice"),
            (Reply::new(503, &["Retry-After: 1"], ""), "--max-attempts=2", "what that means"),
        ] {
            let server = Server::new(vec![reply, Reply::new(200, &[], "ok")]);
            let line = format!("rm -r \"${{RELENT_VERDICT%/*}}\"; {RELENT} http {flag} {}", server.url("/"));
            let outcome = finish(command(&Folder::new(), &[around, &["sh", "-c", &line]].concat()));
            let said = format!("relent: the relent run around this one is not told {about}: ");
            assert_eq!(outcome.stderr.matches(&said).count(), 1, "{around:?}: {}", outcome.stderr);
        }
    }
}

/// Several may be on their way at once: what one takes back is its own.
#[test]
fn nor_is_one_beside_others_that_have_ended() {
    let servers =
        [Reply::nothing().hang(), Reply::new(200, &[], "ok"), Reply::status(503)].map(|reply| Server::new(vec![reply]));
    let [hangs, answers, refuses] = [0, 1, 2].map(|at: usize| servers[at].url("/"));
    let line = format!(
        "H -d x --timeout 1s {hangs} & H -d x {answers}; H -d x {refuses}; wait $!; H --max-attempts=1 {refuses}"
    );
    let line = line.replace("H ", &format!("{RELENT} http -q "));
    let outcome = finish(command(&Folder::new(), &[&["run", "-q"], &THREE[..], &["--", "sh", "-c", &line]].concat()));
    assert_eq!((servers[0].count(), servers[1].count(), outcome.code), (1, 1, Some(1)), "{}", outcome.stderr);
}

/// Of a program that goes on, its own end counts, though a request of its that may not be sent twice has said something before.
#[test]
fn a_script_that_goes_on_after_a_request_is_judged_by_its_own_end() {
    for (reply, end) in [(Reply::new(200, &[], "ok"), 124), (Reply::status(503), 1), (Reply::status(503), 124)] {
        let server = Server::new(vec![reply]);
        let line = format!("{RELENT} http -q -d x {}; exit {end}", server.url("/"));
        let args = [&["run", "-q"], &THREE[..], &["--", "sh", "-c", &line]].concat();
        let outcome = finish(command(&Folder::new(), &args));
        assert_eq!((server.count(), outcome.code), (3, Some(end)), "{line}: {}", outcome.stderr);
    }
}

/// A run within a run has done what it has done, though nobody could write it down.
#[test]
fn a_run_that_has_run_is_not_begun_anew_for_its_report_or_its_output() {
    for end in ["exit 0", "exit 7"] {
        for line in ["RUN --report /dev/full COMMAND", "RUN COMMAND >/dev/full"] {
            let folder = Folder::new();
            let script = format!("-- sh -c 'echo x >> ran; echo out; {end}'");
            let run = format!("exec {RELENT} run -q --max-attempts=1");
            let line = line.replace("RUN", &run).replace("COMMAND", &script);
            let args = [&["run", "-q"], &THREE[..], &["--", "sh", "-c", &line]].concat();
            let outcome = finish(command(&folder, &args));
            let ran = fs::read_to_string(folder.path().join("ran")).unwrap();
            assert_eq!((ran.as_str(), outcome.code), ("x\n", Some(125)), "{line}: {}", outcome.stderr);
        }
    }
}

/// Nor for the limit of the run around it, while nobody reads what it writes out.
#[test]
fn a_run_that_has_run_is_not_begun_anew_because_it_was_ended_while_it_wrote() {
    for grace in ["0s", "5s"] {
        let server = Server::new(vec![Reply::new(200, &[], "x".repeat(300_000))]);
        let line = format!("{RELENT} run -q -- {RELENT} http -q -d x {}; exit $?", server.url("/"));
        let flags = ["--stream", "--attempt-timeout=1s", "--grace", grace];
        let args = [&["run", "-q"], &flags[..], &THREE[..], &["--", "sh", "-c", &line]].concat();
        let (reader, writer) = std::io::pipe().unwrap();
        let folder = Folder::new();
        let mut run = command(&folder, &args);
        let mut child = run.stdout(writer).stderr(std::process::Stdio::null()).spawn().unwrap();
        drop(run);
        assert_eq!((child.wait().unwrap().code(), server.count()), (Some(124), 1), "{grace}");
        drop(reader);
    }
}

/// What is said before, and at the end.
#[test]
fn what_is_told_to_the_layer_above() {
    let said = |args: &[&str]| {
        let folder = Folder::new();
        let path = folder.path().canonicalize().unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        let file = path.join("said");
        fs::write(&file, "").unwrap();
        let mut command = command(&folder, args);
        command.env("RELENT_VERDICT", &file);
        finish(command);
        said_in(&file).join("; ")
    };
    let of_a_request = |reply: Reply, flags: &[&str]| {
        let server = Server::new(vec![reply]);
        said(&[&["http", "-q", "--max-attempts=1", &server.url("/")], flags].concat())
    };
    let within = |between: &str| format!("exit 1-255: permanent; {between}exit 1-255: taken back");
    assert_eq!(of_a_request(Reply::new(200, &[], "ok"), &["-d", "x"]), within(""));
    assert_eq!(of_a_request(Reply::new(200, &[], "ok"), &[]), "");
    let overloaded = || Reply::new(503, &["Relent-Retry: no"], "");
    // From the head of the answer on.
    assert_eq!(of_a_request(overloaded(), &["-d", "x"]), within(&(within("exit 4: overloaded; ") + "; ")));
    assert_eq!(of_a_request(overloaded(), &[]), within("exit 4: overloaded; "));
    // What it knows of its end, and nobody knows of the request.
    let hangs = || Reply::nothing().hang();
    assert_eq!(
        of_a_request(Reply::new(200, &[], "ok"), &["-d", "x", "-o", "/dev/full"]),
        within("exit 125: permanent; ")
    );
    let ended = of_a_request(hangs(), &["-d", "x", "--timeout", "300ms"]);
    assert_eq!(ended, within("exit 124: permanent; "));
    let run = ["run", "-q", "--max-attempts=1", "--", "sh", "-c"];
    assert_eq!(said(&[&run[..], &["exit 0"]].concat()), within(""));
    assert_eq!(said(&[&run[..], &["exit 7"]].concat()), within("exit 7: permanent; "));
}

/// Who is at something beside the command is heard, whatever that says of its own end.
#[test]
fn nor_is_one_beside_a_command_that_may_be() {
    let hangs = Server::new(vec![Reply::nothing().hang()]);
    let later = Server::new(vec![Reply::new(503, &["Retry-After: 1"], "")]);
    let folder = Folder::new();
    let line = format!(
        "{RELENT} http -q -d x {} & sleep 0.3; exec {RELENT} http -q --max-attempts=1 --max-pushback 10ms {}",
        hangs.url("/"),
        later.url("/")
    );
    let args = [&["run", "-q", "--max-pushback=1h"], &THREE[..], &["--", "sh", "-c", &line]].concat();
    let outcome = finish(command(&folder, &args));
    assert_eq!((hangs.count(), later.count()), (1, 1), "{}", outcome.stderr);
}

/// A wait that is too long for the inner one may not be for the outer one, whatever is in between.
#[test]
fn a_long_wait_is_told_through_all_layers() {
    let server = Server::new(vec![Reply::new(503, &["Retry-After: 1"], "")]);
    let inner = [RELENT, "run", "-q", "--max-pushback=10ms", "--", RELENT, "http", "-q", "--max-pushback=10ms"];
    let url = server.url("/");
    let args =
        [&["run", "-q", "--max-pushback=1h", "--max-attempts=2", "--base=5ms", "--"], &inner[..], &[&url]].concat();
    let outcome = finish(command(&Folder::new(), &args));
    assert_eq!(server.count(), 2, "{}", outcome.stderr);
}

/// What a run in between was told of somebody who was ended while at it, it passes on; what it knows of its own end, too.
#[test]
fn nor_is_one_that_was_ended_within_a_run_that_goes_on() {
    let hangs = || Reply::nothing().hang();
    let run = format!("{RELENT} run -q --max-attempts=1 --");
    is_sent_once(&[], &format!("{run} timeout -s KILL 0.5 HTTP METHOD URL || exit 9"), hangs, 9);
    is_sent_once(&[], &format!("{run} timeout 0.5 HTTP METHOD URL || exit 9"), hangs, 9);
    // Whoever is around that has ended before it could.
    is_sent_once(&["--attempt-timeout=500ms"], &format!("{run} sh -c 'HTTP METHOD URL'; exit 7"), hangs, 124);
    let until = "until test -e got; do sleep 0.01; done; rm got";
    is_sent_once(&[], &format!("{run} {run} sh -c 'HTTP METHOD URL' & {until}; exit 7"), hangs, 7);
    // Its command has succeeded, and has left it.
    is_sent_once(&[], &format!("{run} sh -c 'HTTP METHOD URL & {until}'; exit 9"), hangs, 9);
}

/// The limit of an attempt is that of all who are in it, and who has set it may look before those in between have said what came of that.
#[test]
fn nor_is_one_whose_time_was_that_of_an_attempt_further_out() {
    let hangs = || Reply::nothing().hang();
    let run = format!("{RELENT} run -q --max-attempts=1 --");
    let out_of_time = "RELENT_DEADLINE_MS=200 HTTP METHOD URL";
    for runs in [run.clone(), format!("{run} {run}")] {
        let line = format!("{runs} sh -c '{out_of_time}; sleep 60'");
        is_sent_once(&["--attempt-timeout=700ms"], &line, hangs, 124);
        // Each of those in between has heard how it ended, and its own end is another's to judge.
        let server = Server::new(vec![hangs()]);
        let line = format!("{runs} sh -c '{out_of_time}; exit 7' || exit 9");
        let line = line.replace("HTTP METHOD URL", &format!("{RELENT} http -q -d x {}", server.url("/")));
        let args = [&["run", "-q"], &THREE[..], &["--", "sh", "-c", &line]].concat();
        let outcome = finish(command(&Folder::new(), &args));
        assert_eq!((server.count(), outcome.code), (3, Some(9)), "{line}: {}", outcome.stderr);
    }
}

/// It has said how it ended, to a run that is still ending what its attempt has left when it is ended itself.
#[test]
fn nor_is_one_whose_end_the_run_in_between_has_not_passed_on() {
    let rest = "(trap : TERM; sleep 9; sleep 9) >/dev/null 2>&1 &";
    let later = Reply::new(503, &["Retry-After: 900"], "");
    let never = Reply::new(503, &["Relent-Retry: no"], "");
    for (http, reply) in [
        ("-d x", Reply::status(404)),
        ("-d x", Reply::status(503)),
        ("-d x --max-pushback=10ms", later.clone()),
        ("-d x -o /dev/full", Reply::ok("ok")),
        ("--max-pushback=10ms", later),
        ("", never),
    ] {
        for run in ["RUN", "RUN RUN"] {
            let server = Server::new(vec![reply.clone()]);
            let run = run.replace("RUN", &format!("{RELENT} run -q --"));
            let line = format!("{run} sh -c '{rest} {RELENT} http -q {http} {}; exit $?'; exit $?", server.url("/"));
            let limits = ["--attempt-timeout=500ms", "--grace=300ms", "--max-pushback=1s"];
            let args = [&["run", "-q"], &THREE[..], &limits, &["--", "sh", "-c", &line]].concat();
            let outcome = finish(command(&Folder::new(), &args));
            assert_eq!((server.count(), outcome.code), (1, Some(124)), "{http}: {}", outcome.stderr);
        }
    }
}

/// Its command has ended, and said what that means; only its output is not read.
#[test]
fn nor_is_one_whose_run_is_ended_while_it_waits_for_a_reader() {
    let run = format!("{RELENT} run -q --");
    let inner = "sh -c 'HTTP METHOD URL; rc=$?; head -c 70000 /dev/zero >&2; exit $rc'";
    for (method, reply) in [("-d x", Reply::status(404)), ("", Reply::status(404)), ("-d x", Reply::new(200, &[], ""))]
    {
        let server = Server::new(vec![reply]);
        let request = format!("{RELENT} http -q {method} {}", server.url("/"));
        let line = format!("timeout 0.7 {run} {inner} 2>&1 >/dev/null | {{ sleep 1; cat; }} >/dev/null; exit 124");
        let line = line.replace("HTTP METHOD URL", &request);
        let args = [&["run", "-q"], &THREE[..], &["--", "sh", "-c", &line]].concat();
        let outcome = finish(command(&Folder::new(), &args));
        assert_eq!((server.count(), outcome.code), (1, Some(124)), "{line}: {}", outcome.stderr);
    }
}

/// What it copes with is no end of its own, nor of a run around that one, whoever ends it then.
#[test]
fn a_script_within_a_run_that_goes_on_after_a_request_is_judged_by_its_own_end() {
    let never = || Reply::new(503, &["Relent-Retry: no"], "");
    let later = || Reply::new(429, &["Retry-After: 900"], "");
    let (copes, until) = ("HTTP || true; touch done", "until test -e done; do sleep 0.01; done; rm done");
    let ended = format!("RUN sh -c '{copes}; sleep 9' & {until}; kill -TERM $!; wait $!; exit 7");
    let of_two = ended.replace("RUN", "RUN RUN");
    let out_of_time = format!("RUN sh -c '{copes}; sleep 9'");
    // It fails while the end of its attempt is waited for, and the run goes on.
    let late = "RUN sh -c '[ $RELENT_ATTEMPT = 2 ] && exit 0; (sleep 0.1; HTTP) & exit 9'; exit 7";
    let has_failed =
        "RUN --stream --retry-on-output z -- sh -c 'HTTP; c=$?; (sleep 0.1; echo x) & exit $c' >/dev/full; exit 7";
    for (http, reply, lines) in [
        ("-w x", Reply::status(404), vec![&*ended, late, has_failed]),
        ("", never(), vec![&*ended, &*of_two, &*out_of_time, late]),
        ("--max-pushback=10ms", later(), vec![&*ended, late]),
        ("-d x", Reply::status(404), vec![&*ended, &*of_two, &*out_of_time, late]),
        ("-d x --max-pushback=10ms", later(), vec![&*ended]),
    ] {
        for line in lines {
            let (server, folder) = (Server::new(vec![reply.clone()]), Folder::new());
            let request = format!("{RELENT} http {http} {} >&2", server.url("/"));
            let line = line.replace("HTTP", &request).replace("RUN --stream", &format!("{RELENT} run -q --stream"));
            let line = line.replace("RUN", &format!("{RELENT} run -q --base=5ms --"));
            let (limit, code) = if line.ends_with("sleep 9'") { ("1s", 124) } else { ("1m", 7) };
            let (limit, line) = (format!("--attempt-timeout={limit}"), format!("echo >>ran; {line}"));
            let args = [&["run", "-q", &limit, "--max-pushback=1s"], &THREE[..], &["--", "sh", "-c", &line]].concat();
            let outcome = finish(command(&folder, &args));
            assert_eq!((folder.read("ran").len(), outcome.code), (3, Some(code)), "{line}: {}", outcome.stderr);
        }
    }
}

/// Of an attempt that took too long that counts, and no word about the signal that has ended its command.
#[test]
fn what_was_said_of_another_end_is_not_told_to_a_run_around() {
    for word in ["after 10m", "permanent"] {
        let folder = Folder::new();
        let inner = format!("echo \"exit 143: {word}\" >>$RELENT_VERDICT; sleep 9");
        let line = format!(
            "echo >>ran; timeout 0.6 {RELENT} run -q --attempt-timeout=200ms --base=9s --jitter=none -- sh -c '{inner}'; exit 7"
        );
        let args = [&["run", "-q", "--max-pushback=1s"], &THREE[..], &["--", "sh", "-c", &line]].concat();
        let outcome = finish(command(&folder, &args));
        assert_eq!((folder.read("ran").len(), outcome.code), (3, Some(7)), "{word}: {}", outcome.stderr);
    }
}

/// Whatever the folder for temporary files is called.
#[test]
fn nor_is_one_that_was_told_in_a_folder_with_a_colon() {
    let run = format!("{RELENT} run -q --max-attempts=1 --");
    let until = "until test -e got; do sleep 0.01; done; rm got";
    let inner = format!("{run} {run} HTTP METHOD URL & {until}; exit 7");
    let three = THREE.join(" ");
    let outer = format!("mkdir -p 12:30%3A; TMPDIR=$PWD/12:30%3A exec {RELENT} run -q {three} -- sh -c '{inner}'");
    is_sent_once(&[], &outer, || Reply::nothing().hang(), 7);
}

/// Whatever came of its output, and also if it was ended: what it has to say of that is about that end, and of what was under way.
#[test]
fn a_script_that_goes_on_after_a_run_is_judged_by_its_own_end() {
    for line in [
        "RUN -- seq 1 200000 | head -1; exit 7",
        "RUN -- echo >/dev/full; exit 7",
        "RUN -- echo | true; exit 7",
        "timeout 0.3 RUN --retry-on-exit 75 -- sleep 5; exit 7",
        "timeout 0.3 RUN -- sh -c 'trap \"exit 0\" TERM; while :; do sleep 0.01; done'; exit 7",
    ] {
        let folder = Folder::new();
        let line = format!("echo >> ran; {}", line.replace("RUN", &format!("{RELENT} run -q")));
        let outcome = finish(command(&folder, &[&["run", "-q"], &THREE[..], &["--", "sh", "-c", &line]].concat()));
        assert_eq!((outcome.code, folder.read("ran").len()), (Some(7), 3), "{line}: {}", outcome.stderr);
    }
}

/// Nobody holds it for long.
#[test]
fn a_lease_that_somebody_holds_is_asked_for_again_by_the_run_around() {
    let folder = Folder::new();
    let lease = |held: &[&str], script: &str| {
        let flags = ["run", "-q", "--store", "sqlite:s.db", "--lease", "L"];
        [&flags[..], held, &["--", "sh", "-c", script]].concat().into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let own = lease(&[], "touch held; until test -e tried; do sleep 0.01; done");
    let first = std::thread::scope(|scope| {
        let first = scope.spawn(|| finish(command(&folder, &own.iter().map(String::as_str).collect::<Vec<_>>())));
        while !folder.path().join("held").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let inner = lease(&["--lease-held", "fail"], "touch got");
        // Once an attempt was refused.
        let args = ["run", "--max-attempts=1000", "--base=5ms", "--cap=5ms", "--", RELENT];
        let args: Vec<&str> = args.into_iter().chain(inner.iter().map(String::as_str)).collect();
        let mut outer =
            command(&folder, &args).stderr(fs::File::create(folder.path().join("said")).unwrap()).spawn().unwrap();
        while !fs::read_to_string(folder.path().join("said")).unwrap().contains("attempt 1 of") {
            assert!(outer.try_wait().unwrap().is_none(), "it has given up: {}", folder.read("said"));
            std::thread::sleep(Duration::from_millis(5));
        }
        fs::write(folder.path().join("tried"), "").unwrap();
        assert_eq!(outer.wait().unwrap().code(), Some(0), "{}", folder.read("said"));
        first.join().unwrap()
    });
    assert_eq!((first.code, folder.path().join("got").exists()), (Some(0), true));
}
