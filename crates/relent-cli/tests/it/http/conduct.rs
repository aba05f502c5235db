//! How it behaves towards terminals, languages and whoever looks at the process.

use super::{
    command, finish,
    server::{Reply, Server},
};
use crate::binary::{Folder, shown_on};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// What a terminal of this kind shows of stdout and stderr, and the exit code.
fn on_a_terminal(term: &str, args: &[&str]) -> (String, Option<i32>) {
    let folder = Folder::new();
    let mut command = command(&folder, args);
    command.env("TERM", term);
    shown_on(None, |terminal| command.stdout(terminal.try_clone().unwrap()).stderr(terminal))
}

#[test]
fn a_body_that_is_no_text_is_no_terminals() {
    let server = Server::new(vec![Reply::ok(b"\x7fELF\0\x1b[2J")]);
    let (shown, code) = on_a_terminal("xterm", &["http", "-q", &server.url("/")]);
    assert_eq!(code, Some(125), "{shown:?}");
    assert!(shown.contains("the body is no text, and standard output is a terminal"), "{shown:?}");
    assert!(!shown.contains("ELF"), "{shown:?}");
    let (shown, code) = on_a_terminal("xterm", &["http", "-q", "-o", "-", &server.url("/")]);
    assert_eq!(code, Some(0), "{shown:?}");
    assert!(shown.contains("ELF"), "{shown:?}");
    let (shown, code) = on_a_terminal(
        "xterm",
        &["http", "-q", "--fail-with-body", &Server::new(vec![Reply::new(404, &[], b"\0x")]).url("/")],
    );
    assert!(code != Some(0) && !shown.contains('\0'), "{shown:?}");
}

/// A device that is named with `-o` may be a terminal, too.
#[test]
fn a_terminal_that_is_named_obeys_no_more() {
    let headers = ["X: \u{9b}2J\u{202e}"];
    let server = Server::new(vec![Reply::new(200, &headers, "plain\n")]);
    let (shown, code) = on_a_terminal("xterm", &["http", "-q", "-i", "-o", "/proc/self/fd/2", &server.url("/")]);
    assert_eq!(code, Some(0), "{shown:?}");
    assert!(!shown.contains(['\u{9b}', '\u{202e}']) && shown.contains("\\u{9b}2J"), "{shown:?}");
    assert!(shown.ends_with("plain\r\n"), "{shown:?}");
    let server = Server::new(vec![Reply::ok(b"\x7fELF\0\x1b[2J")]);
    let (shown, code) = on_a_terminal("xterm", &["http", "-q", "-o", "/proc/self/fd/2", &server.url("/")]);
    assert_eq!(code, Some(125), "{shown:?}");
    assert!(shown.contains("the body is no text, and /proc/self/fd/2 is a terminal"), "{shown:?}");
    assert!(!shown.contains("ELF"), "{shown:?}");
}

/// Where a terminal breaks a line, what a server has sent begins none as relent's messages do.
#[test]
fn no_line_of_a_terminal_is_forged_by_the_length_of_another() {
    const FORGED: &str = "relent: succeeded after 1 attempt in 3.2ms";
    let header_of = |of: &str, fill: usize| format!("{of}: {}{FORGED}", "a ".repeat(fill));
    for fill in 25..45 {
        for (header, flags) in [("Server", &["-v"][..]), ("Content-Encoding", &[]), ("Transfer-Encoding", &[])] {
            let server = Server::new(vec![Reply::new(200, &[&header_of(header, fill)], "")]);
            let url = server.url("/");
            let args = [&["http", "--max-attempts=1"], flags, &[url.as_str()]].concat();
            let (shown, _) = on_a_terminal("xterm", &args);
            assert!(shown.contains("3.2ms"), "{header}: {shown}");
            // As one of 80 columns breaks it.
            let lines = shown.split("\r\n").map(|line| line.split("\u{1b}[0m").last().unwrap_or_default());
            let rows = lines.flat_map(|line| (0..line.len()).step_by(80).map(|at| &line[at..]));
            assert_eq!(rows.filter(|row| row.starts_with(FORGED)).count(), 0, "{header}, {fill}: {shown}");
        }
    }
}

/// What was typed before may be a part of it.
#[test]
fn a_terminal_that_goes_away_has_not_ended_the_body() {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let server = Server::new(vec![Reply::ok("")]);
    for typed in ["", "half\n"] {
        let terminal = nix::pty::openpty(None, None).unwrap();
        fcntl(&terminal.slave, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        fcntl(&terminal.master, FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC)).unwrap();
        let mut master = fs::File::from(terminal.master);
        std::io::Write::write_all(&mut master, typed.as_bytes()).unwrap();
        let folder = Folder::new();
        let mut command = command(&folder, &["http", "-q", "POST", "-d", "@-", &server.url("/")]);
        let child = command.stdin(terminal.slave).stderr(Stdio::piped()).spawn().unwrap();
        drop(command);
        thread::sleep(Duration::from_millis(300));
        drop(master);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(125) && said.contains("cannot read standard input"), "{typed:?}: {said}");
    }
    assert_eq!(server.count(), 0);
}

/// Opened once more, it would be another terminal's.
#[test]
#[cfg(target_os = "linux")]
fn the_other_end_of_a_terminal_gets_what_is_written_to_it() {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    use std::io::Read;
    let server = Server::new(vec![Reply::ok("one\n")]);
    for flags in [&[][..], &["-o", "/dev/stdout"], &["-o", "/dev/null", "-w", "one\\n"]] {
        let terminal = nix::pty::openpty(None, None).unwrap();
        fcntl(&terminal.slave, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let folder = Folder::new();
        let mut command = command(&folder, &[&["http", "-q"], flags, &[&server.url("/")]].concat());
        let status = command.stdout(terminal.master.try_clone().unwrap()).status().unwrap();
        let mut got = [0; 16];
        let read = fs::File::from(terminal.slave)
            .read(&mut got)
            .map(|count| String::from_utf8_lossy(&got[..count]).into_owned());
        assert_eq!((status.code(), read.ok().as_deref()), (Some(0), Some("one\n")), "{flags:?}");
    }
    // And of standard error.
    let terminal = nix::pty::openpty(None, None).unwrap();
    fcntl(&terminal.slave, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let folder = Folder::new();
    let mut command = command(&folder, &["http", "--nonsense"]);
    command.env("NO_COLOR", "1").stderr(terminal.master.try_clone().unwrap()).status().unwrap();
    let mut got = [0; 512];
    let count = fs::File::from(terminal.slave).read(&mut got).unwrap_or_default();
    assert!(got[..count].starts_with(b"error: "), "{:?}", String::from_utf8_lossy(&got[..count]));
}

/// What a server wrote into a header is shown, and not obeyed.
#[test]
fn a_terminal_obeys_no_header() {
    let headers = ["X: \u{9b}2J\u{202e}", "Content-Type: text/\u{9b}2J", "Location: /\u{9b}2J"];
    let server = Server::new(vec![Reply::new(200, &headers, "")]);
    let format = "<%header{x} %{content_type} %header{location}>\\n";
    for args in [&["-w", format][..], &["-i"], &["-v"], &["-I"], &["-w", format, "-o", "/dev/null"]] {
        let (shown, code) = on_a_terminal("xterm", &[&["http", &server.url("/")], args].concat());
        assert_eq!(code, Some(0), "{shown:?}");
        assert!(!shown.contains(['\u{9b}', '\u{202e}']) && shown.contains("\\u{9b}2J"), "{args:?}: {shown:?}");
    }
    let piped = super::http(&["-w", "%header{x}", &server.url("/")]);
    assert_eq!(piped.stdout, "\u{9b}2J\u{202e}", "as data it is what it was");
}

#[test]
fn a_dumb_terminal_gets_no_escapes() {
    let slow = Reply::ok("x".repeat(100_000)).paused(50_000, Duration::from_millis(300));
    let server = Server::new(vec![Reply::new(503, &["Retry-After: 1"], ""), slow]);
    let (shown, code) = on_a_terminal("dumb", &["http", "--jitter=none", &server.url("/")]);
    assert_eq!(code, Some(0), "{shown:?}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let (shown, code) =
        on_a_terminal("dumb", &["http", "--max-attempts=1", &Server::new(vec![Reply::status(404)]).url("/")]);
    assert!(code == Some(3) && !shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_plain_locale_gets_ascii() {
    let server = Server::new(vec![Reply::new(503, &["Retry-After: \u{fc}", "X-N: \u{4e2d}"], "")]);
    let folder = Folder::new();
    for args in
        [&["http", "-v", "--max-attempts=2", "--base=5ms"][..], &["http", "--max-attempts=1", "-o", "f\u{fc}/x"]]
    {
        let url = server.url("/\u{fc}");
        let mut command = command(&folder, &[args, &[url.as_str()]].concat());
        command.env("LC_ALL", "C");
        let outcome = finish(command);
        assert!(outcome.stderr.is_ascii() && outcome.code != Some(0), "{}", outcome.stderr);
    }
}

/// Whose the process is to the system: root's, if nobody may dump or look into it.
#[cfg(target_os = "linux")]
#[test]
fn what_is_in_memory_is_in_no_dump() {
    let late = || Reply::ok("").late(Duration::from_secs(20));
    let server = Server::new(vec![late(), late()]);
    let folder = Folder::new();
    let is_root = nix::unistd::geteuid().is_root();
    let target = server.url("/").replace("//", "//ann:hunter2@");
    for (nth, args) in [
        &["http", "-q", "-u", "ann:hunter2", &server.url("/")][..],
        &["storm", "-q", "--clients", "1", "--limit", "20s", "--target", &target],
    ]
    .into_iter()
    .enumerate()
    {
        let (mut command, own) = if is_root {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_relent")]);
            (command, 65_534)
        } else {
            (Command::new(env!("CARGO_BIN_EXE_relent")), nix::unistd::geteuid().as_raw())
        };
        command.args(args).current_dir(folder.path());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while server.count() == nth && began.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(10));
        }
        // Where a process may be dumped these files are its user's.
        let owner = fs::metadata(format!("/proc/{}/maps", child.id())).map(|data| data.uid());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(server.count() > nth, "{args:?}: nobody came");
        assert_ne!(owner.unwrap(), own, "{args:?}");
    }
}
