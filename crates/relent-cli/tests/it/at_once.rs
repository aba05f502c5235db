//! Standard streams that wait for nobody (`O_NONBLOCK`), as who started relent, or a program before on the same terminal, has left them.

use crate::binary::Folder;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::{
    io::{PipeReader, PipeWriter, Read, Write, pipe},
    net::TcpListener,
    os::fd::AsFd,
    process::Command,
    thread,
    time::Duration,
};

/// For so long there is nothing to read, and no room to write.
const A_MOMENT: Duration = Duration::from_millis(50);

fn to_wait_for_nobody(end: impl AsFd) {
    fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("it is a pipe");
}

/// A pipe that is full, and how much is in it.
pub(crate) fn full() -> (PipeReader, PipeWriter, usize) {
    let (reader, mut writer) = pipe().expect("there are pipes");
    to_wait_for_nobody(&writer);
    let mut count = 0;
    while let Ok(more) = writer.write(&[0; 4096]) {
        count += more;
    }
    (reader, writer, count)
}

/// What is in it behind that, once somebody reads.
fn read(mut reader: PipeReader, count: usize) -> String {
    thread::sleep(A_MOMENT);
    let mut read = Vec::new();
    reader.read_to_end(&mut read).expect("it ends");
    String::from_utf8(read.split_off(count)).expect("relent writes UTF-8")
}

/// What it says on both streams, and its code.
fn outcome(mut command: Command, input: &str) -> (String, String, Option<i32>) {
    let (stdin, mut writer) = pipe().expect("there are pipes");
    to_wait_for_nobody(&stdin);
    let ((out, stdout, before_out), (err, stderr, before_err)) = (full(), full());
    let mut child = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn().expect("it is built");
    // It has the ends that were for it, too.
    drop(command);
    thread::scope(|scope| {
        scope.spawn(move || {
            for half in [&input[..input.len() / 2], &input[input.len() / 2..]] {
                thread::sleep(A_MOMENT);
                // Who reads nothing may be gone.
                let _ = writer.write_all(half.as_bytes());
            }
        });
        let said = scope.spawn(move || read(err, before_err));
        let written = read(out, before_out);
        (written, said.join().expect("it is read"), child.wait().expect("it is ours").code())
    })
}

/// Where what is sent comes back.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("somebody comes");
            let (mut request, mut piece) = (Vec::new(), [0; 4096]);
            let body = loop {
                let read = stream.read(&mut piece).expect("it is sent");
                request.extend(&piece[..read]);
                let text = String::from_utf8_lossy(&request);
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if body.len() == length.expect("it is told").parse::<usize>().expect("it is a number") {
                    break body.to_owned();
                }
            };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).expect("it is read");
        }
    });
    url
}

#[test]
fn who_waits_for_nobody_is_waited_for() {
    let folder = Folder::new();
    let url = echo();
    let long: String = (0..50_000).map(|number| format!("{number}\n")).collect();
    let unit = "[Service]\nExecStart=/bin/true\nRestart=always\nRestartSec=2\n";
    let scenario = "[[policy]]\nname = \"one\"\n[policy.policy]\nbase = \"1s\"\n";
    for (args, input) in [
        (&["http", "-X", "PUT", "-d", "@-", &url][..], long.as_str()),
        (&["http", "-X", "PUT", "-d", "@/dev/stdin", "-o", "/dev/stdout", &url], &long),
        (&["http", "-w", "%{http_code}\\n", "-H", "@-", "-d", "x", &url], "X-One: 1\nX-Two: 2\n"),
        (&["run", "--max-attempts", "1", "--", "sh", "-c", "cat; echo said >&2; exit 3"], &long),
        (&["run", "--stream", "--", "sh", "-c", "sleep 0.3; cat"], "one\ntwo\n"),
        (&["explain", "--policy", "-"], "base = \"2s\"\ncap = \"9s\"\n"),
        (&["explain", "--systemd", "-"], unit),
        (&["explain", "--seed", "1", "--json", "--max-attempts", "5000"], ""),
        (&["explain", "--base", "nonsense"], ""),
        (&["simulate", "/dev/stdin"], scenario),
        (&["help", "policy"], ""),
        (&["completions", "bash"], ""),
        (&["man", "http"], ""),
        (&["http", "--help"], ""),
        (&["--version"], ""),
    ] {
        let expected = folder.relent_with(args, input);
        let (stdout, stderr, code) = outcome(folder.command(args), input);
        let no_times = |text: &str| text.lines().filter(|line| !line.contains("gave up after")).collect::<String>();
        assert!(stdout == expected.stdout, "{args:?}: {} bytes for {}", stdout.len(), expected.stdout.len());
        assert_eq!((no_times(&stderr), code), (no_times(&expected.stderr), expected.code), "{args:?}");
    }
}
