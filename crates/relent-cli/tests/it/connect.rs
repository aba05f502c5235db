//! `relent connect`, against listeners of the tests' own.

use crate::binary::{Folder, Outcome, relent, tool};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};
use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixListener},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

/// Short waits, the same in every run.
const QUICK: [&str; 8] = ["connect", "--seed", "7", "--base", "20ms", "--cap", "40ms", "--max-attempts=100"];

fn connect(args: &[&str]) -> Outcome {
    relent(&[&QUICK, args].concat())
}

/// A port that is taken, so that nobody else gets it, and on which nothing listens yet.
struct Closed {
    socket: OwnedFd,
    target: String,
}

impl Closed {
    fn port() -> Closed {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("there are sockets");
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("loopback has free ports");
        let address = getsockname(&socket).ok().and_then(|address| SocketAddr::try_from(address).ok());
        Closed { socket, target: address.expect("it is bound").to_string() }
    }

    fn open(self) -> TcpListener {
        listen(&self.socket, 16).expect("it is bound");
        TcpListener::from(self.socket)
    }
}

/// What is said, with the port, and with the times that differ from run to run, replaced.
fn filtered(text: &str, target: &str) -> String {
    let mut words = Vec::new();
    for line in text.replace(target, "HOST:PORT").lines() {
        let line: Vec<&str> = line.split(' ').collect();
        let after_attempts = |at: usize| at >= 2 && line[at - 1] == "in" && line[at - 2].starts_with("attempt");
        let shown: Vec<&str> = line
            .iter()
            .enumerate()
            .map(|(at, word)| match word.strip_suffix(':') {
                Some(_) if after_attempts(at) => "TIME:",
                None if after_attempts(at) => "TIME",
                _ => word,
            })
            .collect();
        words.push(shown.join(" ") + "\n");
    }
    words.concat()
}

#[test]
fn what_accepts_at_once_is_not_talked_about() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    for target in [target.clone(), format!("tcp://{target}")] {
        assert_eq!(connect(&[&target]), Outcome { stdout: String::new(), stderr: String::new(), code: Some(0) });
    }
    let verbose = connect(&["-v", &target]);
    let said = filtered(&verbose.stderr, &target);
    let (policy, said) = said.split_once('\n').unwrap();
    assert!(policy.starts_with("relent: policy curve="), "{policy}");
    assert_eq!(said, "relent: HOST:PORT: accepts after 1 attempt in TIME\n");
}

#[test]
fn waits_and_becomes_the_command() {
    let closed = Closed::port();
    let target = closed.target.clone();
    let later = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        closed.open().accept().unwrap();
    });
    let outcome = connect(&[&target, "--", "sh", "-c", "echo $RELENT_TARGET \"$@\"; exit 7", "-", "--any", "a b"]);
    later.join().unwrap();
    assert_eq!((outcome.stdout, outcome.code), (format!("{target} --any a b\n"), Some(7)));
    let last = filtered(&outcome.stderr, &target);
    let last = last.lines().last().unwrap();
    assert!(last.starts_with("relent: HOST:PORT: accepts after ") && last.ends_with(" attempts in TIME"), "{last}");
}

/// The command has relent's own process, so signals reach it and nothing is left of relent.
#[test]
fn the_command_has_the_process_of_relent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let folder = Folder::new();
    let mut command = folder.command(&["connect", &target, "--", "sh", "-c", "echo $$"]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), format!("{id}\n"));
}

#[test]
fn gives_up_with_the_last_error() {
    let closed = Closed::port();
    let target = closed.target.clone();
    let outcome = relent(&["connect", "--seed", "7", "--base", "20ms", "--max-attempts", "3", &target]);
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("", Some(1)));
    assert_eq!(
        filtered(&outcome.stderr, &target),
        "relent: HOST:PORT: attempt 1 of 3: Connection refused; next in 6ms\n\
         relent: HOST:PORT: attempt 2 of 3: Connection refused; next in 37.6ms\n\
         relent: HOST:PORT: gave up after 3 attempts in TIME: out of attempts (Connection refused)\n"
    );
    let quiet = relent(&["connect", "-q", "--base", "1ms", "--max-attempts", "2", &target]);
    assert_eq!(quiet, Outcome { stdout: String::new(), stderr: String::new(), code: Some(1) });
}

#[test]
fn machines_get_events() {
    let closed = Closed::port();
    let target = closed.target.clone();
    let args = ["connect", "--json", "--seed", "7", "--base", "20ms", "--max-attempts", "2", &target, "--", "true"];
    let outcome = relent(&args);
    let mut stderr = outcome.stderr.replace(&target, "HOST:PORT");
    while let Some(at) = stderr.find("\"elapsed_ms\":") {
        let end = at + stderr[at..].find([',', '}']).unwrap();
        stderr.replace_range(at..end, "TIME");
    }
    assert_eq!(outcome.code, Some(1));
    assert_eq!(
        stderr,
        r#"{"event":"attempt","target":"HOST:PORT","attempt":1,"error":"Connection refused","verdict":"transient",TIME,"delay_ms":6,"reason":null}
{"event":"attempt","target":"HOST:PORT","attempt":2,"error":"Connection refused","verdict":"transient",TIME,"delay_ms":null,"reason":"attempts"}
{"event":"end","outcome":"gave_up","exit":1,TIME,"reason":"attempts"}
"#
    );
}

#[test]
fn out_of_time_is_124() {
    let closed = Closed::port();
    let outcome = connect(&["--max-elapsed", "100ms", &closed.target]);
    assert_eq!(outcome.code, Some(124));
    assert!(outcome.stderr.trim_end().ends_with("out of time (Connection refused)"), "{}", outcome.stderr);
}

#[test]
fn all_targets_or_any() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (closed, other) = (Closed::port(), Closed::port());
    let (open, shut) = (listener.local_addr().unwrap().to_string(), closed.target.clone());
    let all = relent(&["connect", "-q", "--base", "5ms", "--max-attempts", "3", &open, &shut]);
    assert_eq!(all.code, Some(1));
    let command = ["--", "sh", "-c", "echo $RELENT_TARGET"];
    let any = connect(&[&["-q", "--any", &shut, &open][..], &command].concat());
    assert_eq!((any.stdout, any.code), (format!("{open}\n"), Some(0)));
    let none = relent(&["connect", "-q", "--any", "--base", "5ms", "--max-attempts", "3", &shut, &other.target]);
    assert_eq!(none.code, Some(1));
}

#[test]
fn unix_sockets_are_waited_for() {
    let folder = Folder::new();
    let path = folder.path().join("a.sock");
    let mut command = folder.command(&[&QUICK, &["unix:a.sock"][..]].concat());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    UnixListener::bind(path).unwrap().accept().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let first = "relent: unix:a.sock: attempt 1 of 100: No such file or directory; next in ";
    assert!(said.starts_with(first), "{said}");
}

/// A name that is not there yet may be there at the next attempt, as in a cluster that is starting.
#[test]
fn a_name_that_does_not_resolve_is_retried() {
    let outcome = relent(&["connect", "--seed", "7", "--base", "1ms", "--max-attempts", "2", "nosuch.invalid:80"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.starts_with("relent: nosuch.invalid:80: attempt 1 of 2: "), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("os error"), "{}", outcome.stderr);
}

/// A listener whose queue is full drops packets as a dead host does.
#[cfg(target_os = "linux")]
#[test]
fn an_attempt_has_an_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(20)) {
        queue.push(stream);
    }
    let target = address.to_string();
    let args = ["connect", "--attempt-timeout", "30ms", "--seed", "7", "--base", "1ms", "--max-attempts", "2", &target];
    let outcome = relent(&args);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("attempt 1 of 2: timed out; next in "), "{}", outcome.stderr);
}

#[test]
fn the_command_must_be_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let missing = connect(&[&target, "--", "no-such-command"]);
    assert_eq!(missing.code, Some(127));
    assert_eq!(
        missing.stderr,
        "error: cannot find the command no-such-command\nhint: is it installed, and its folder on PATH?\n"
    );
    let events = connect(&["--json", &target, "--", "no-such-command"]).stderr;
    let error = r#"{"event":"error","error":"cannot find the command no-such-command","hint":"is it installed, and its folder on PATH?","code":127}"#;
    assert_eq!(events.lines().last(), Some(error));
    let folder = Folder::new().file("plain.txt", "text");
    let denied = folder.relent(&["connect", &target, "--", "./plain.txt"]);
    assert_eq!(
        (denied.stderr.as_str(), denied.code),
        ("error: cannot execute ./plain.txt: permission denied\nhint: chmod +x makes a script executable\n", Some(126))
    );
}

#[test]
fn bad_input_says_what_and_what_to_do() {
    let targets = "targets are host:port, host:service, tcp://, tls://, http:// and https:// URLs, and unix:path";
    for (target, problem, hint) in [
        ("db", "\"db\" has no port", targets),
        ("tcp", "\"tcp\" has no port", "leave the word out: the target says what it is"),
        ("db:70000", "\"70000\" is not a port", "a port is a number from 1 to 65535, or a service's name"),
        ("udp://db:53", "udp:// has no connections to wait for", targets),
        ("::1:80", "\"::1:80\" has colons in its host", "an IPv6 address stands in brackets: [::1]:5432"),
    ] {
        let outcome = relent(&["connect", target]);
        let expected = format!("error: invalid value '{target}' for '<TARGET>...': {problem}\nhint: {hint}\n");
        assert_eq!((outcome.stderr, outcome.code), (expected, Some(125)));
    }
    let none = relent(&["connect"]);
    assert_eq!(none.code, Some(125));
    assert!(none.stderr.starts_with("error: "), "{}", none.stderr);
    let many = ["127.0.0.1:1"; 257];
    let outcome = relent(&[&["connect"], &many[..]].concat());
    assert_eq!(outcome.stderr, "error: 257 targets are too many\nhint: up to 256 are waited for at once\n");
}

#[test]
fn flags_of_other_programs_have_hints() {
    for (flags, hint) in [
        (&["db:1", "-t", "30"][..], "--timeout (with a unit: 30s)"),
        (&["db:1", "--strict"], "the command runs only if the targets accept"),
        (&["db:1", "--invert-check"], "--invert"),
        (&["db:1", "--interval", "1s"], "--base"),
        (&["db:1", "--connection-timeout", "1s"], "--attempt-timeout"),
        (&["--host=db", "--port=1"], "a target: host:port"),
        (&["-p", "1", "db"], "a target: host:port"),
        (&["-wait", "tcp://db:1"], "a target: host:port"),
    ] {
        let outcome = relent(&[&["connect"], flags].concat());
        assert_eq!(outcome.code, Some(125));
        assert!(outcome.stderr.contains(hint), "{flags:?}: {}", outcome.stderr);
    }
}

#[test]
fn a_timeout_ends_the_wait_at_its_moment() {
    let started = Instant::now();
    let outcome = relent(&[
        "connect",
        "--timeout",
        "300ms",
        "--base",
        "10ms",
        "--cap",
        "20ms",
        "--max-attempts",
        "unlimited",
        "127.0.0.1:1",
    ]);
    assert_eq!(outcome.code, Some(124));
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert!(outcome.stderr.contains("out of time"), "{}", outcome.stderr);
}

/// A listener whose queue is full: the attempt under way is ended, too.
#[cfg(target_os = "linux")]
#[test]
fn a_timeout_cuts_an_attempt_off() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(20)) {
        queue.push(stream);
    }
    let started = Instant::now();
    let outcome = relent(&["connect", "-q", "--timeout", "300ms", &address.to_string()]);
    assert_eq!(outcome.code, Some(124));
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[test]
fn urls_and_services_are_targets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for url in [format!("http://127.0.0.1:{port}/health"), format!("postgres://u:secret@127.0.0.1:{port}/shop")] {
        let outcome = relent(&["connect", "-v", "--seed", "1", &url]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("secret"), "{}", outcome.stderr);
    }
    let outcome = relent(&["connect", "--max-attempts", "1", "http://user:secret@127.0.0.1:1/?token=secret"]);
    assert!(outcome.stderr.starts_with("relent: 127.0.0.1:1: gave up"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("secret"), "{}", outcome.stderr);
}

#[test]
fn inverted_it_waits_until_nobody_accepts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let there = relent(&["connect", "--invert", "--base", "1ms", "--max-attempts", "2", &target]);
    assert_eq!(there.code, Some(1));
    assert!(there.stderr.contains("attempt 1 of 2: still accepts; next in"), "{}", there.stderr);
    drop(listener);
    let gone = relent(&["connect", "--invert", "-v", "--seed", "1", &target, "unix:nosuch.sock"]);
    assert_eq!(gone.code, Some(0));
    assert!(gone.stderr.contains(&format!("{target}: is gone after 1 attempt")), "{}", gone.stderr);
}

/// A name that looks like another is shown as what is looked up; a password in what is no target is not shown.
#[test]
fn names_of_all_nations_zones_and_secrets() {
    for (target, words) in [
        ("\u{430}pple.invalid:80", "xn--pple-43d.invalid:80: gave up"),
        ("tls://b\u{fc}cher.invalid:80", "tls://xn--bcher-kva.invalid:80: gave up"),
        ("xn--a.invalid\u{e9}:80", "is not a host"),
        ("[fe80::1%lo]:9", "[fe80::1%1]:9: gave up"),
        ("[fe80::1%25lo]:9", "[fe80::1%1]:9: gave up"),
        ("[::1%1]:9", "[::1%1]:9: gave up"),
        ("[fe80::1%nosuch0]:9", "there is no network interface \"nosuch0\""),
        ("[fe80::1%]:9", "there is no network interface \"\""),
        ("[db]:9", "\"db\" is no IPv6 address"),
        ("ann:hunter2@db:5432", "has colons in its host"),
        ("postgres://ann:hunter2@d b:5432/shop", "is not a host"),
        ("postgres://ann:hunt er2@db:x/shop", "what follows the last colon is no service"),
        ("postgres://ann:hunter2@:5432/shop", "has no host"),
        ("postgres://ann:hunter2/x@db:5432/shop", "\"postgres://***@db:5432/shop\" is no target"),
        ("postgres://ann:hunter2#x@db", "\"postgres://***@db\" is no target"),
        ("ann:hunter2@db", "\"***@db\" is no target"),
        ("postgres://ann:hunter2@db:0/shop?password=hunter2", "is not a port"),
    ] {
        let outcome = relent(&["connect", "--max-attempts=1", "--attempt-timeout=200ms", target]);
        assert!(outcome.code != Some(0) && outcome.stderr.contains(words), "{target}: {}", outcome.stderr);
        assert!(
            !outcome.stderr.contains("hunter2") && !outcome.stderr.contains("er2@"),
            "{target}: {}",
            outcome.stderr
        );
    }
}

/// Servers that talk without end, begin a handshake without end, or hang up: each attempt has its end.
#[test]
fn hostile_servers_are_not_there_either() {
    let serve = |talk: fn(TcpStream)| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        thread::spawn(move || listener.incoming().flatten().for_each(talk));
        target
    };
    let endless_banner = serve(|mut stream| while stream.write_all(&[b'2'; 4096]).is_ok() {});
    // Records of a handshake, each of one byte of a message that is never whole.
    let endless_handshake = serve(|mut stream| {
        let _ = stream.write_all(&[22, 3, 3, 0, 4, 2, 0, 0xff, 0xff]);
        while stream.write_all(&[22, 3, 3, 0, 1, 0]).is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    });
    let hangs_up = serve(drop);
    let tries = |flags: &[&str], target: &str| {
        let started = Instant::now();
        let limits = ["connect", "--base", "1ms", "--max-attempts", "2", "--attempt-timeout", "300ms"];
        let outcome = relent(&[&limits[..], flags, &[target]].concat());
        assert!(started.elapsed() < Duration::from_secs(10), "{target} takes too long");
        outcome
    };
    for address in [endless_banner, endless_handshake, hangs_up] {
        let outcome = tries(&["-k"], &format!("tls://{address}"));
        assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
        assert!(outcome.stderr.lines().count() == 2 && outcome.stderr.len() < 400, "{}", outcome.stderr);
        let outcome = tries(&["-q"], &address.to_string());
        assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)), "it accepts");
    }
}

/// Who connects to a Unix socket whose queue is full waits until there is room: not we.
#[test]
fn a_unix_socket_whose_queue_is_full_hangs_nobody() {
    use rustix::net::{SocketAddrUnix, connect};
    let folder = Folder::new();
    let address = SocketAddrUnix::new(folder.path().join("full")).unwrap();
    let new = |flags| socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    let server = new(SocketFlags::empty());
    bind(&server, &address).unwrap();
    listen(&server, 1).unwrap();
    let mut waiting = Vec::new();
    loop {
        let client = new(SocketFlags::NONBLOCK);
        if connect(&client, &address).is_err() {
            break;
        }
        waiting.push(client);
    }
    let outcome = folder.relent(&["connect", "--base", "1ms", "--max-attempts", "2", "unix:full"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("it accepts nobody, and its queue is full"), "{}", outcome.stderr);
    // Nor is it gone.
    let outcome = folder.relent(&["connect", "--invert", "--base", "1ms", "--max-attempts", "2", "unix:full"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("its queue is full"), "{}", outcome.stderr);
    // Nor who speaks in messages (SEQPACKET), as many of the system's own do.
    let address = SocketAddrUnix::new(folder.path().join("messages")).unwrap();
    let server = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::empty(), None).unwrap();
    bind(&server, &address).unwrap();
    listen(&server, 1).unwrap();
    let outcome = folder.relent(&["connect", "--invert", "--base", "1ms", "--max-attempts", "2", "unix:messages"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
}

/// As the other commands that make calls do: with `-v`, and to machines always.
#[test]
fn what_the_upstream_of_each_target_counted_is_told() {
    let (one, other) = (Closed::port(), Closed::port());
    let args = ["--max-attempts=3", "--budget", "grpc=10,token_ratio=0.1", &one.target, &other.target];
    let outcome = connect(&[&["-v"], &args[..]].concat());
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let said = format!("relent: {}: upstream: 3 attempts, 2 retries; balance ", one.target);
    let both = format!("relent: {}: upstream: ", other.target);
    assert!(outcome.stderr.contains(&said) || outcome.stderr.contains(&both), "{outcome:?}");
    let outcome = connect(&[&["--json"], &args[..]].concat());
    let events =
        outcome.stderr.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("it is JSON"));
    let told: Vec<_> = events.filter(|event| event["event"] == "upstream").collect();
    assert!(!told.is_empty() && told.iter().all(|event| event["target"].is_string()), "{outcome:?}");
    assert!(told.iter().any(|event| event["attempts"] == 3 && event["retries"] == 2), "{outcome:?}");
    let outcome = connect(&[&["-q"], &args[..]].concat());
    assert_eq!(outcome.stderr, "");
}

/// TCP connects to itself where the system gives out the very port that nobody listens on, as it does of every four here.
#[test]
#[cfg(target_os = "linux")]
fn nobody_accepts_where_tcp_has_connected_to_itself() {
    let made =
        "ip link set lo up && echo 50000 50003 > /proc/sys/net/ipv4/ip_local_port_range || exit 99; exec relent \"$@\"";
    let often = ["--max-attempts", "100", "--base", "1us", "--cap", "2us"];
    for call in [
        &["connect", "127.0.0.1:50000"][..],
        &["http", "http://127.0.0.1:50000/"],
        &["http", "-d", "x", "http://127.0.0.1:50000/"],
    ] {
        let mut command = tool("unshare");
        command.args(["-n", "sh", "-c", made, "sh"]).args(call).args(often).stdin(Stdio::null());
        let output = command.output().expect("util-linux is there");
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(99) || stderr.contains("unshare:") {
            eprintln!("SKIPPED nobody_accepts_where_tcp_has_connected_to_itself: it takes root and iproute2");
            return;
        }
        assert!(output.status.code() == Some(1) && stderr.contains("onnection refused"), "{call:?}: {stderr}");
    }
}
