//! A standard output that nothing can be written to: closed, or open for reading alone.

use crate::binary::{Folder, tool};
use std::{
    io::{Read, Write},
    net::TcpListener,
    process::Stdio,
    thread,
};

/// What a shell's line says on standard error, and what it comes to.
fn line(folder: &Folder, line: &str) -> (String, Option<i32>) {
    let mut command = tool("sh");
    command.args(["-c", line]).current_dir(folder.path()).stdin(Stdio::null());
    let output = command.output().expect("there is a shell");
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

const CLOSED: &str = "error: cannot write to standard output: it is closed\n\
                      hint: >/dev/null throws away what is not wanted\n";

#[test]
fn what_cannot_be_said_is_an_error() {
    let folder = Folder::new();
    for what in [
        "--help",
        "--version",
        "run --help",
        "help policy",
        "man run",
        "completions bash",
        "explain",
        "simulate herd --clients 20 --capacity 10",
        "store check --store memory:",
        "run -q -- echo lost",
        "run -q -- sh -c 'yes | head -c 3000000'",
        "run -q --max-kept 1MiB -- sh -c 'yes | head -c 3000000'",
        "run -q --stream --until-output nothing -- sh -c 'echo lost; exit 0'",
    ] {
        for closed in [">&-", "1</dev/null", "<&- >&-"] {
            let (said, code) = line(&folder, &format!("relent {what} {closed}"));
            assert!(said.ends_with(CLOSED) && code == Some(125), "{what} {closed}: {code:?} {said}");
        }
        let (said, code) = line(&folder, &format!("relent {what} >&- 2>&-"));
        assert_eq!((said.as_str(), code), ("", Some(125)), "{what}");
    }
}

#[test]
fn who_has_nothing_to_say_needs_no_output() {
    let folder = Folder::new();
    for closed in [">&-", "<&- >&-", "<&- >&- 2>&-", "1</dev/null"] {
        for what in ["run -q -- true", "run -q --stream -- true", "connect -q unix:nosuch --invert"] {
            assert_eq!(line(&folder, &format!("relent {what} {closed}")), (String::new(), Some(0)), "{what} {closed}");
        }
    }
}

/// Whoever was told to read something does not take what cannot be read for something empty.
#[test]
fn an_input_that_cannot_be_read_is_not_empty() {
    let folder = Folder::new().file("some", "1");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    for what in [
        &format!("http -q POST -d @- {url}"),
        &format!("http -q -H @- {url}"),
        "explain --policy -",
        "explain --systemd -",
    ] {
        for (input, why) in [("<&-", "it is closed"), ("0>/dev/null", "Bad file"), ("0>>some", "Bad file")] {
            let (said, code) = line(&folder, &format!("relent {what} {input} >/dev/null"));
            assert!(code == Some(125) && said.contains(why), "{what} {input}: {code:?} {said}");
        }
    }
    let (said, code) = line(&folder, &format!("relent http -q POST -d @/dev/stdin {url} <&-"));
    assert!(code == Some(125) && said.contains("it is closed"), "{code:?} {said}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nothing was sent");
}

#[test]
fn machines_hear_of_it_in_their_words() {
    let (said, code) = line(&Folder::new(), "relent explain --json >&-");
    assert!(said.starts_with(r#"{"event":"error","error":"cannot write to standard output: it is closed""#), "{said}");
    assert_eq!(code, Some(125));
}

/// Such a standard error is as good as none, and nobody waits for room in it.
#[test]
fn a_standard_error_that_can_only_be_read_holds_nobody_up() {
    let folder = Folder::new();
    for (command, code) in [
        ("run -- sh -c 'echo e >&2; exit 0'", 0),
        ("run --max-attempts 2 --base 1ms -- sh -c 'echo e >&2; exit 3'", 3),
        ("run --retry-on-output never -- sh -c 'head -c 200000 /dev/zero >&2; exit 0'", 0),
        ("run --stream -- sh -c 'echo e >&2; exit 0'", 0),
        ("explain --nonsense", 125),
    ] {
        // It has a writer, who says nothing.
        let script = format!("mkfifo p; exec 9<>p 8<p; timeout 20 relent {command} 2<&8; echo $? >code; rm p");
        line(&folder, &script);
        assert_eq!(folder.read("code"), format!("{code}\n"), "{command}");
    }
}

/// Whoever throws it away has said so.
#[test]
fn a_device_that_swallows_everything_is_no_closed_one() {
    let folder = Folder::new();
    for opened in [">/dev/null", "1<>/dev/null", ">>/dev/null", "<&- >/dev/null"] {
        for what in ["explain", "run -q -- echo lost", "run -q --stream -- echo lost"] {
            assert_eq!(line(&folder, &format!("relent {what} {opened}")), (String::new(), Some(0)), "{what} {opened}");
        }
    }
}

/// As without relent.
#[test]
fn a_command_that_inherits_it_notices() {
    let folder = Folder::new();
    let run = "relent run -q --stream --max-attempts 1 -- sh -c 'echo x' >&-";
    let (said, code) = line(&folder, run);
    assert!(said.starts_with("sh: ") && code == Some(1), "{code:?} {said}");
    let (said, code) = line(&folder, "relent connect -q --invert unix:nosuch -- sh -c 'echo x' >&-");
    assert!(said.starts_with("sh: ") && code == Some(1), "{code:?} {said}");
}

#[test]
fn a_body_that_cannot_be_printed_is_an_error_and_one_in_a_file_none() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n");
        }
    });
    for closed in [">&-", "1</dev/null"] {
        for what in ["", "-I", "-o file -w '%{http_code}'"] {
            assert_eq!(line(&folder, &format!("relent http {what} {url} {closed}")), (CLOSED.to_owned(), Some(125)));
        }
        assert_eq!(line(&folder, &format!("relent http -o file {url} {closed}")), (String::new(), Some(0)));
        assert_eq!(folder.read("file"), "hello\n");
    }
}

/// As in a root that somebody has made by hand. It takes root to take devices away.
#[test]
#[cfg(target_os = "linux")]
fn where_there_are_no_devices_all_is_said() {
    let folder = Folder::new();
    let bare = |what: &str| {
        let mut command = tool("unshare");
        let line = format!("mount -t tmpfs none /dev && relent {what}");
        command.args(["-m", "sh", "-c", &line]).current_dir(folder.path()).stdin(Stdio::null());
        let output = command.output().expect("util-linux is there");
        (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
    };
    if bare("--version").1 != Some(0) {
        eprintln!("SKIPPED where_there_are_no_devices_all_is_said: nothing can be mounted");
        return;
    }
    for (closed, code) in [("<&-", 0), ("<&- 2>&-", 0), (">&-", 125), ("<&- >&- 2>&-", 125)] {
        let (said, ended) = bare(&format!("run -q -- echo there {closed}"));
        assert_eq!(ended, Some(code), "{closed}: {said}");
        assert!(said == if code == 0 || closed.contains("2>&-") { "" } else { CLOSED }, "{closed}: {said}");
    }
    let (said, code) = bare("run --stdin null -- true");
    assert!(
        said.starts_with("error: --stdin null: cannot open /dev/null: No such file or directory\nhint: "),
        "{said}"
    );
    assert_eq!(code, Some(125));
}
