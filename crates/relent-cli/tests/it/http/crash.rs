//! What is left when it ends without warning, and how the next run goes on with it.

use super::{
    command, expect, finish, http_in,
    server::{Reply, Request, Server},
};
use crate::binary::Folder;
use std::{
    fs::{self, Permissions},
    io::Read as _,
    os::unix::fs::{PermissionsExt, chown},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const TAG: &str = "ETag: \"v1\"";

/// A body of 200 kB in which every place differs.
fn body() -> String {
    (0..25_000).map(|k| format!("{k:07}\n")).collect()
}

/// A server that stops after the first half of the body, and later has the rest.
fn half() -> Server {
    let body = body();
    Server::with(move |k, request| match k {
        0 => Reply::new(200, &[TAG], &body).cut(100_000).hang(),
        _ => rest(request, &body),
    })
}

fn rest(request: &Request, body: &str) -> Reply {
    let from = request.header("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    match from {
        None => Reply::new(200, &[TAG], body),
        Some(from @ 0..200_000) => {
            let range = format!("Content-Range: bytes {from}-{}/{}", body.len() - 1, body.len());
            Reply::new(206, &[TAG, &range], &body[from..])
        }
        Some(_) => Reply::new(416, &["Content-Range: bytes */200000"], ""),
    }
}

fn spawn(folder: &Folder, args: &[&str]) -> Child {
    let mut command = command(folder, args);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until one of the files there has 100 kB.
fn wait_for_half(folder: &Folder) {
    let began = Instant::now();
    loop {
        let lengths = folder.names().into_iter().filter_map(|name| fs::metadata(folder.path().join(name)).ok());
        if lengths.map(|data| data.len()).max().is_some_and(|most| most == 100_000) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", folder.names());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_kill_leaves_what_the_next_run_goes_on_with() {
    let server = half();
    let folder = Folder::new().file("file", "");
    let args = ["http", "-q", "-C", "-", "-o", "file", &server.url("/")];
    let mut killed = spawn(&folder, &args);
    wait_for_half(&folder);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(folder.names(), [".file.part", ".file.part.from", "file"]);
    expect(&http_in(&folder, &args[1..]), 0, "", "");
    assert!(folder.read("file") == body(), "the two halves are the whole");
    assert_eq!(folder.names(), ["file"]);
    assert_eq!(server.requests()[1].header("range"), Some("bytes=100000-"));
}

#[test]
fn a_kill_between_the_part_and_what_is_known_about_it_starts_over() {
    let server = Server::with(|_, request| rest(request, &body()));
    for about in [None, Some(""), Some("http://elsewhere/\n\"v1\"\n200000\n"), Some("\u{0}\u{0}\u{0}")] {
        let folder = Folder::new().file(".file.part", &body()[..50_000]);
        if let Some(about) = about {
            fs::write(folder.path().join(".file.part.from"), about).unwrap();
        }
        for name in folder.names() {
            fs::set_permissions(folder.path().join(name), Permissions::from_mode(0o600)).unwrap();
        }
        expect(&http_in(&folder, &["-q", "-C", "-", "-o", "file", &server.url("/")]), 0, "", "");
        assert!(folder.read("file") == body(), "{about:?}");
        assert_eq!(folder.names(), ["file"], "{about:?}");
    }
}

#[test]
fn a_part_that_is_longer_than_the_whole_starts_over() {
    let server = Server::with(|_, request| rest(request, &body()));
    let about = format!("{}\n\"v1\"\n200000\n", server.url("/"));
    let folder = Folder::new().file(".file.part", &"x".repeat(200_001)).file(".file.part.from", &about);
    for name in folder.names() {
        fs::set_permissions(folder.path().join(name), Permissions::from_mode(0o600)).unwrap();
    }
    let outcome = http_in(&folder, &["-q", "-C", "-", "-o", "file", &server.url("/")]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(folder.read("file") == body());
}

#[test]
fn a_kill_without_going_on_leaves_the_file_as_it_was() {
    let server = half();
    let folder = Folder::new().file("file", "old");
    let mut killed = spawn(&folder, &["http", "-q", "-o", "file", &server.url("/")]);
    wait_for_half(&folder);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(folder.read("file"), "old");
    expect(&http_in(&folder, &["-q", "-o", "file", &server.url("/")]), 0, "", "");
    assert!(folder.read("file") == body());
}

#[test]
fn a_signal_leaves_the_part_only_if_it_is_of_use() {
    for (flags, left) in [(&["-C", "-"][..], &[".file.part", ".file.part.from"][..]), (&[], &[])] {
        let server = half();
        let folder = Folder::new();
        let url = server.url("/");
        let args = [&["http", "-q"], flags, &["-o", "file", &url]].concat();
        let mut stopped = spawn(&folder, &args);
        wait_for_half(&folder);
        let pid = nix::unistd::Pid::from_raw(i32::try_from(stopped.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        assert_eq!(stopped.wait().unwrap().code(), Some(143));
        assert_eq!(folder.names(), left);
    }
}

/// FILE is the user's word for what this run asks for; what an earlier run said of another part is not true of it.
#[test]
fn what_was_said_of_another_part_is_said_no_more() {
    for (is_removed, path) in [(false, "/other"), (true, "/")] {
        let server = Server::with(|k, _| match k {
            0 => Reply::new(200, &[TAG], body()).cut(100_000),
            _ => Reply::new(503, &[], ""),
        });
        let folder = Folder::new();
        let get = |path: &str| http_in(&folder, &["--max-attempts=1", "-C", "-", "-o", "file", &server.url(path)]);
        assert!(get("/").stderr.contains("100000 bytes are kept"));
        assert_eq!(folder.names(), [".file.part", ".file.part.from"]);
        fs::write(folder.path().join("file"), "old").unwrap();
        if is_removed {
            fs::remove_file(folder.path().join(".file.part")).unwrap();
        }
        let stopped = get(path);
        assert_eq!((stopped.code, stopped.stderr.contains("kept")), (Some(1), false), "{}", stopped.stderr);
        assert_eq!((folder.names(), folder.read("file")), (vec!["file".to_owned()], "old".to_owned()));
        assert_eq!(server.requests()[1].header("if-range"), None);
    }
}

#[test]
fn a_part_that_goes_to_stdout_is_left_to_nobody_who_waits_for_its_reader() {
    for flags in [&[][..], &["-C", "-"]] {
        let server = Server::new(vec![Reply::new(302, &["Location: /"], "x".repeat(2 << 20))]);
        let folder = Folder::new();
        let url = server.url("/");
        let mut command = command(&folder, &[&["http", "-q"], flags, &["-o", "file", &url]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert!(folder.names().is_empty(), "{flags:?}: {:?}", folder.names());
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(143));
        assert!(folder.names().is_empty(), "{flags:?}: {:?}", folder.names());
    }
}

#[test]
fn two_runs_never_write_one_part() {
    let server = half();
    let folder = Folder::new();
    let url = server.url("/");
    let args = ["http", "-C", "-", "-o", "file", &url];
    let mut first = spawn(&folder, &args);
    wait_for_half(&folder);
    let second = http_in(&folder, &args[1..]);
    assert_eq!(second.code, Some(125));
    assert!(second.stderr.contains("another relent is writing ./.file.part"), "{}", second.stderr);
    assert_eq!(folder.names(), [".file.part", ".file.part.from"], "the second has removed nothing");
    first.kill().unwrap();
    first.wait().unwrap();
    expect(&http_in(&folder, &["-q", "-C", "-", "-o", "file", &url]), 0, "", "");
    assert!(folder.read("file") == body());
}

#[test]
fn a_full_folder_keeps_the_part_for_later() {
    let server = Server::with(|_, request| rest(request, &body()));
    let folder = Folder::new();
    // A file that may not grow is what a full folder looks like, without having to fill one.
    let script = "ulimit -f 64; trap '' XFSZ; exec \"$0\" \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_relent"), "http", "-q", "-C", "-", "-o", "file", &server.url("/")]);
    let full = finish({
        command.current_dir(folder.path());
        command
    });
    assert_eq!(full.code, Some(125), "{}", full.stderr);
    assert_eq!(folder.names(), [".file.part", ".file.part.from"]);
    expect(&http_in(&folder, &["-q", "-C", "-", "-o", "file", &server.url("/")]), 0, "", "");
    assert!(folder.read("file") == body());
    assert_eq!(server.requests()[1].header("range"), Some("bytes=65536-"));
}

#[test]
fn a_folder_that_goes_away_is_told() {
    let server = Server::new(vec![Reply::ok("0123456789").paused(5, Duration::from_millis(500))]);
    let folder = Folder::new().file("inner/x", "");
    let mut command = command(&folder, &["http", "-q", "-o", "inner/file", &server.url("/")]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while server.count() == 0 {
        assert!(began.elapsed() < Duration::from_secs(30));
        thread::sleep(Duration::from_millis(5));
    }
    fs::remove_dir_all(folder.path().join("inner")).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.starts_with("error: cannot write to inner/file: No such file"), "{stderr}");
}

/// Which root could do in any case.
#[test]
fn what_is_left_is_gone_on_with_whatever_the_mask_is() {
    assert!(nix::unistd::geteuid().is_root(), "only root can be another user, too: cargo xtask test --without root");
    for mask in ["0277", "0777"] {
        let (folder, body) = (Folder::new(), body());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        chown(folder.path(), Some(65_534), None).unwrap();
        let server = Server::with(move |k, request| match k {
            0 => Reply::new(200, &[TAG], &body).cut(100_000),
            _ => rest(request, &body),
        });
        let run = || {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c"]);
            command.arg(format!("umask {mask}; exec \"$@\"")).args(["sh", env!("CARGO_BIN_EXE_relent"), "http", "-q"]);
            command.args(["--max-attempts", "1", "-C", "-", "-o", "file", &server.url("/")]);
            command.current_dir(folder.path());
            finish(command)
        };
        assert_eq!((run().code, folder.names()), (Some(1), [".file.part", ".file.part.from"].map(Into::into).to_vec()));
        let second = run();
        assert_eq!((second.code, folder.names()), (Some(0), vec!["file".to_owned()]), "{}", second.stderr);
        assert_eq!(server.requests()[1].header("range"), Some("bytes=100000-"), "{mask}");
    }
}

#[test]
fn what_is_kept_is_told_to_machines_before_the_end() {
    for (flags, code) in [(&["--max-attempts=1", "--idle-timeout=200ms"][..], 1), (&["--timeout=500ms"], 124)] {
        let (server, folder) = (half(), Folder::new());
        let url = server.url("/");
        let outcome = http_in(&folder, &[&["--json", "-C", "-", "-o", "file", &url], flags].concat());
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        let (before, end) = outcome.stderr.trim_end().rsplit_once('\n').unwrap();
        assert!(end.starts_with(r#"{"event":"end","#), "{outcome:?}");
        assert_eq!(before.matches("100000 bytes are kept in").count(), 1, "{outcome:?}");
    }
}
