//! Pipes that somebody holds open and does not read: a stopped pager, a connection that hangs.

use crate::binary::Folder;
use std::{
    io::{PipeReader, Read, Write, pipe},
    net::TcpListener,
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

enum Full {
    Out,
    Err,
}

/// Starts it with a standard output or a standard error that nobody reads.
fn start(folder: &Folder, full: &Full, args: &[&str]) -> (Child, PipeReader) {
    let (reader, writer) = pipe().expect("there are pipes");
    let mut command = folder.command(args);
    command.stdin(Stdio::null());
    match full {
        Full::Out => command.stdout(writer).stderr(Stdio::null()),
        Full::Err => command.stderr(writer).stdout(Stdio::null()),
    };
    (command.spawn().expect("it is built"), reader)
}

/// Its end, which comes long before a reader.
fn end(child: &mut Child, what: &str) -> ExitStatus {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status;
        }
        if Instant::now() > until {
            child.kill().expect("it is ours");
            panic!("{what} waits for a reader");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// It has nothing to write, and nobody would read it.
#[test]
fn who_watches_nothing_goes_with_the_reader() {
    let folder = Folder::new();
    assert_eq!(folder.relent(&["store", "migrate", "--store", "sqlite:s.db"]).code, Some(0));
    let mut command = folder.command(&["upstream", "watch", "--every", "10ms", "--store", "sqlite:s.db"]);
    let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().expect("it is built");
    drop(child.stdout.take());
    assert_eq!(end(&mut child, "upstream watch").code(), Some(0));
}

const LOUD: &str = "head -c 1000000 /dev/zero; sleep 101";

#[test]
fn a_run_ends_in_time_whoever_does_not_read() {
    let folder = Folder::new();
    let time = ["run", "--timeout", "500ms", "--grace", "200ms"];
    let refused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{refused}/");
    for (full, rest, code) in [
        (Full::Out, &["--max-kept", "100kB", "--", "sh", "-c", LOUD][..], 124),
        (Full::Out, &["--stream", "--until-output", "never", "--", "sh", "-c", LOUD][..], 124),
        // The command is over, and what it wrote is in its pipe yet.
        (Full::Out, &["--stream", "--until-output", "never", "--", "head", "-c", "100000", "/dev/zero"][..], 124),
        // All of it was kept, and is more than a pipe holds.
        (Full::Out, &["--", "head", "-c", "100000", "/dev/zero"][..], 124),
        (Full::Err, &["--", "sh", "-c", "head -c 1000000 /dev/zero >&2; sleep 101"][..], 124),
        (Full::Err, &["--base", "1us", "--cap", "2us", "--max-attempts", "9999999", "-v", "--", "false"][..], 124),
    ] {
        let args = [&time, rest].concat();
        let (mut child, _unread) = start(&folder, &full, &args);
        assert_eq!(end(&mut child, &args.join(" ")).code(), Some(code), "{args:?}");
    }
    let args = ["http", "--timeout", "500ms", "--base", "1us", "--cap", "2us", "--max-attempts", "9999999", "-v", &url];
    let (mut child, _unread) = start(&folder, &Full::Err, &args);
    assert_eq!(end(&mut child, "http").code(), Some(124));
}

/// Who reads a little now and then is waited for, each time anew, but not when the time is over.
#[test]
fn a_reader_that_is_slow_holds_up_no_limit() {
    let folder = Folder::new();
    let refuses: Vec<String> =
        (0..20).map(|_| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()).collect();
    let connect = ["connect", "--timeout", "1s", "--max-attempts", "unlimited", "--curve", "constant", "--base", "1ms"];
    let connect =
        [&connect[..], &refuses.iter().map(String::as_str).collect::<Vec<_>>(), &["--", "touch", "ran"]].concat();
    // A head of 75 kB, which is shown.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", server.local_addr().unwrap());
    thread::spawn(move || {
        let head: String = (0..850).map(|nth| format!("a-{nth:04}: {}\r\n", "words ".repeat(13))).collect();
        for mut asks in server.incoming().flatten() {
            let _ = asks.read(&mut [0; 4096]);
            let _ = write!(asks, "HTTP/1.1 503 No\r\ncontent-length: 0\r\n{head}\r\n");
        }
    });
    for args in [&connect[..], &["http", "-v", "--timeout", "1s", "--base", "1us", &url]] {
        let (mut reader, mut writer) = pipe().expect("there are pipes");
        writer.write_all(&[b'-'; 60_000]).expect("it takes 64 KiB");
        let mut command = folder.command(args);
        let mut child = command.stdout(Stdio::null()).stderr(writer).spawn().expect("it is built");
        drop(command);
        let slow = thread::spawn(move || {
            let mut piece = [0; 4096];
            while reader.read(&mut piece).is_ok_and(|read| read > 0) {
                thread::sleep(Duration::from_millis(900));
            }
        });
        let began = Instant::now();
        assert_eq!(end(&mut child, args[0]).code(), Some(124), "{}", args[0]);
        assert!(began.elapsed() < Duration::from_secs(6), "{}: {:?}", args[0], began.elapsed());
        drop(slow);
    }
    assert!(!folder.path().join("ran").exists(), "none of them accepts");
}

#[test]
fn a_signal_ends_a_run_that_nobody_reads() {
    use nix::sys::signal::{Signal, kill};
    let folder = Folder::new();
    for args in [
        &["run", "--max-kept", "100kB", "--", "sh", "-c", "touch ready; head -c 1000000 /dev/zero; sleep 101"][..],
        &["run", "--stream", "--until-output", "never", "--", "sh", "-c", "touch ready; head -c 1000000 /dev/zero"][..],
        &["run", "--max-kept", "100kB", "--", "sh", "-c", "touch ready; head -c 150000 /dev/zero"][..],
    ] {
        let (mut child, _unread) = start(&folder, &Full::Out, args);
        while !folder.path().join("ready").exists() {
            thread::sleep(Duration::from_millis(5));
        }
        kill(nix::unistd::Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        let status = end(&mut child, &args.join(" "));
        assert!(!status.success(), "{args:?}: {status}");
        std::fs::remove_file(folder.path().join("ready")).unwrap();
    }
}

/// Who is told that an attempt starts may take a second to read it, and its time is over meanwhile.
#[test]
fn nothing_starts_after_its_time_though_it_was_said_to() {
    let folder = Folder::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", server.local_addr().unwrap());
    let time = ["-v", "--json", "--max-elapsed", "500ms"];
    for args in [[&["run"], &time[..], &["--", "touch", "ran"]].concat(), [&["http"], &time[..], &[&url]].concat()] {
        let (reader, mut writer) = pipe().expect("there are pipes");
        writer.write_all(&[b'-'; 1 << 16]).expect("it takes 64 KiB");
        let mut command = folder.command(&args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).spawn().expect("it is built");
        drop(command);
        let status = end(&mut child, args[0]);
        drop(reader);
        assert!(!status.success(), "{args:?}: {status}");
    }
    assert!(!folder.path().join("ran").exists());
    server.set_nonblocking(true).unwrap();
    assert!(server.accept().is_err(), "nobody was asked");
}

/// What was let through and not begun has used nothing that others could use.
#[test]
fn what_was_not_begun_keeps_no_permit() {
    let policy =
        "[policy]\nmax_attempts = 1\n[upstream.bank]\nlimit = { rate = 1, per = '24h' }\nstore = 'sqlite:s.db'\n";
    let url = format!("http://{}/", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let shares = ["--policy", "p.toml", "--upstream", "bank"];
    let time = ["-v", "--json", "--max-elapsed", "500ms"];
    let is_kept = |command: &str, rest: &[&str]| {
        let folder = Folder::new().file("p.toml", policy);
        assert_eq!(folder.relent(&["store", "migrate", "--store", "sqlite:s.db"]).code, Some(0));
        let (reader, mut writer) = pipe().expect("there are pipes");
        writer.write_all(&[b'-'; 1 << 16]).expect("it takes 64 KiB");
        let mut late = folder.command(&[&[command], &shares[..], &time[..], rest].concat());
        let mut child = late.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).spawn().expect("it is built");
        drop(late);
        assert!(!end(&mut child, command).success());
        drop(reader);
        let next = || folder.relent(&[&["run"], &shares[..], &["--", "true"]].concat());
        let (first, second) = (next(), next());
        assert_eq!(second.code, Some(1), "{command}: {second:?}");
        (first.stderr.as_str(), first.code) == ("", Some(0))
    };
    // A store that does not answer within the third of so little time is left alone, and books what nobody hears of.
    let often_enough = |command, rest: &[&str]| (0..9).any(|_| is_kept(command, rest));
    assert!(often_enough("run", &["--", "touch", "ran"]) && often_enough("http", &[&url]));
}

/// Who is told that an attempt starts may take a second to read it, and the signal comes meanwhile.
#[test]
fn nothing_starts_after_a_signal_though_it_was_said_to() {
    use nix::sys::signal::{Signal, kill};
    let folder = Folder::new();
    for _ in 0..20 {
        let (reader, mut writer) = pipe().expect("there are pipes");
        writer.write_all(&[b'-'; 1 << 16]).expect("it takes 64 KiB");
        let began = Instant::now();
        let mut command = folder.command(&["run", "-v", "--json", "--report", "report", "--", "true"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).spawn().expect("it is built");
        drop(command);
        thread::sleep(Duration::from_millis(400));
        kill(nix::unistd::Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        let told = began.elapsed();
        let status = end(&mut child, "run");
        drop(reader);
        // A signal that comes before there is anybody to hear it ends it as it would any program.
        let Ok(report) = std::fs::read_to_string(folder.path().join("report")) else { continue };
        // Later than that it was not read in time, and had started.
        if told < Duration::from_millis(900) {
            assert!(report.contains("\"attempts\":0"), "{report}");
            assert_eq!(status.code(), Some(143));
            return;
        }
    }
    panic!("the machine is too slow to be told in time");
}

/// What is written out then is of no command any more, and what the terminal's hangup has ended has nothing more to say.
#[test]
#[cfg(target_os = "linux")]
fn every_signal_that_ends_a_run_ends_one_that_nobody_reads() {
    use nix::sys::signal::{Signal::*, kill};
    let folder = Folder::new();
    let loud = "head -c 70000 /dev/zero >&2; touch ready; sleep 101";
    for signal in [SIGABRT, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGVTALRM, SIGXCPU] {
        let args = ["run", "-q", "--", "head", "-c", "3000000", "/dev/zero"];
        let (mut kept, mut unread) = start(&folder, &Full::Out, &args);
        unread.read_exact(&mut [0]).unwrap();
        let (mut said, _unread) = start(&folder, &Full::Err, &["run", "--grace", "1s", "--", "sh", "-c", loud]);
        while !folder.path().join("ready").exists() {
            thread::sleep(Duration::from_millis(5));
        }
        for child in [&mut kept, &mut said] {
            kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
            let code = end(child, signal.as_str()).code();
            assert!(code.is_none_or(|code| code == 128 + signal as i32), "{signal}: {code:?}");
        }
        std::fs::remove_file(folder.path().join("ready")).unwrap();
    }
}

/// Nobody was ended by it: as under `nohup`, or who reads its settings anew.
#[test]
fn a_success_that_outlives_a_hangup_is_whole_however_slow_its_reader_is() {
    use nix::sys::signal::{Signal, kill};
    let script = "trap '' HUP; touch ready; until [ -e go ]; do sleep 0.01; done; setsid sleep 60 >/dev/null 2>&1 & \
        echo $! > daemon; echo ok; head -c 100000 /dev/zero; touch over";
    let later = "trap '' HUP; exec 3>&1 > none; (until [ -e over ]; do sleep 0.01; done; sleep 0.3; echo ok >&3) & touch ready; \
        until [ -e go ]; do sleep 0.01; done; touch over";
    for (flags, script, length) in
        [(&["--stream", "--until-output", "ok"][..], script, 100_003), (&[], script, 100_003), (&[], later, 3)]
    {
        let folder = Folder::new();
        let is_there = |name: &str| {
            while !folder.path().join(name).exists() {
                thread::sleep(Duration::from_millis(5));
            }
        };
        let args = [&["run"], flags, &["--", "sh", "-c", script]].concat();
        let (mut child, mut late) = start(&folder, &Full::Out, &args);
        is_there("ready");
        kill(nix::unistd::Pid::from_raw(child.id() as i32), Signal::SIGHUP).unwrap();
        // It is passed on before anything else is done.
        thread::sleep(Duration::from_millis(50));
        std::fs::write(folder.path().join("go"), "").unwrap();
        is_there("over");
        // For longer than late output has.
        thread::sleep(Duration::from_millis(1300));
        let mut all = Vec::new();
        late.read_to_end(&mut all).unwrap();
        assert_eq!((end(&mut child, "relent").code(), all.len()), (Some(0), length), "{args:?}");
        if let Ok(daemon) = std::fs::read_to_string(folder.path().join("daemon")) {
            let daemon = nix::unistd::Pid::from_raw(daemon.trim().parse().unwrap());
            kill(daemon, Signal::SIGKILL).expect("a daemon of a success stays");
        }
    }
}

/// Its command was told, and has succeeded all the same; or there was nothing to tell any more, since its store was waited for.
#[test]
fn nor_does_one_that_has_succeeded_wait_for_a_reader_after_a_signal() {
    use nix::sys::signal::{Signal, kill};
    let folder = Folder::new();
    let store = folder.path().join("state.db");
    let upstream = format!(
        "upstream = \"bank\"\n[upstream.bank]\nbudget = {{ ratio = 0.1 }}\nstore = \"sqlite:{}\"\n",
        store.display()
    );
    let folder = folder.file("bank.toml", &format!("[policy]\n{upstream}"));
    let url = format!("sqlite:{}", store.display());
    assert_eq!(folder.relent(&["store", "migrate", "--store", &url]).code, Some(0));
    assert_eq!(folder.relent(&["run", "-q", "--policy", "bank.toml", "--", "true"]).code, Some(0));
    let lock = rusqlite::Connection::open(&store).unwrap();
    let catches = "trap 'head -c 200000 /dev/zero; exit 0' TERM; touch ready; while :; do sleep 0.02; done";
    let waits = "touch ready; until [ -e go ]; do sleep 0.01; done; head -c 200000 /dev/zero; touch over";
    let is_there = |name: &str| {
        let until = Instant::now() + Duration::from_secs(20);
        while !folder.path().join(name).exists() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    };
    for (flags, script) in
        [(&[][..], catches), (&["--policy", "bank.toml"], waits), (&["--lease", "nightly", "--store", &url], waits)]
    {
        let args = [&["run", "-q"], flags, &["--", "sh", "-c", script]].concat();
        let (mut child, _unread) = start(&folder, &Full::Out, &args);
        is_there("ready");
        if script == waits {
            lock.execute_batch("BEGIN IMMEDIATE").unwrap();
            std::fs::write(folder.path().join("go"), "").unwrap();
            is_there("over");
            // It may be seen to be over.
            thread::sleep(Duration::from_millis(300));
        }
        kill(nix::unistd::Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        assert_eq!(end(&mut child, &args.join(" ")).code(), Some(143), "{args:?}");
        let _ = lock.execute_batch("ROLLBACK");
        for name in ["ready", "go", "over"] {
            let _ = std::fs::remove_file(folder.path().join(name));
        }
    }
}

/// What was measured or simulated until then is told, to who reads.
#[test]
fn nor_do_a_storm_and_a_simulation_that_are_told_to_end() {
    use nix::sys::signal::{Signal, kill};
    let folder = Folder::new();
    let catches = |child: &Child, signal: Signal| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (signal as i32 - 1)) != 0
    };
    let storm = ["storm", "--clients", "50", "--limit", "5m", "--capacity", "1", "--queue", "1"];
    let simulate = ["simulate", "herd", "--clients", "10000", "--capacity", "500", "--seeds", "100000"];
    for (args, signal) in [(&storm[..], Signal::SIGTERM), (&storm, Signal::SIGINT), (&simulate, Signal::SIGINT)] {
        for form in [&[][..], &["--json"]] {
            let args = [args, form].concat();
            let (reader, mut writer) = pipe().expect("there are pipes");
            // What is told is less than a pipe holds: it is full already.
            nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK)).unwrap();
            while writer.write(&[b'x'; 4096]).is_ok() {}
            nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::empty())).unwrap();
            let mut command = folder.command(&args);
            let mut child = command.stdout(writer).stderr(Stdio::null()).spawn().expect("it is built");
            while !catches(&child, signal) {
                thread::sleep(Duration::from_millis(5));
            }
            kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
            assert_eq!(end(&mut child, &args.join(" ")).code(), Some(130), "{args:?}");
            drop(reader);
        }
    }
}

/// A terminal that is open and not looked at: a hung connection, a stopped multiplexer.
#[test]
fn a_terminal_that_nobody_reads_holds_nobody_up() {
    let folder = Folder::new();
    let refused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (url, target) = (format!("http://{refused}/"), refused.to_string());
    let often = ["--timeout", "1500ms", "--base", "1us", "--cap", "2us", "--max-attempts", "9999999"];
    let piped = ["--timeout", "1500ms", "--grace", "200ms", "--stream", "--until-output", "never", "--", "sh", "-c"];
    for (is_out, command, flags, rest) in [
        (false, "run", &often[..], &["-v", "--", "sh", "-c", "exit 3"][..]),
        (false, "run", &often, &["--json", "--", "false"]),
        (false, "http", &often, &[&url]),
        (false, "connect", &often, &[&target]),
        (false, "run", &piped, &["yes | head -c 1000000 >&2; sleep 101"]),
        (true, "run", &piped, &["yes | head -c 1000000; sleep 101"]),
        // Lines of one byte, so that there may be room for less than a line's end.
        (true, "run", &piped, &["yes '' | head -c 1000000; sleep 101"]),
    ] {
        let args = [&[command], flags, rest].concat();
        let terminal = nix::pty::openpty(None, None).unwrap();
        let mut command = folder.command(&args);
        command.stdin(Stdio::null());
        match is_out {
            true => command.stdout(terminal.slave).stderr(Stdio::null()),
            false => command.stderr(terminal.slave).stdout(Stdio::null()),
        };
        let mut child = command.spawn().expect("it is built");
        drop(command);
        assert_eq!(end(&mut child, &args.join(" ")).code(), Some(124), "{args:?}");
        drop(terminal.master);
    }
}

/// A server of a body that pauses once, for longer than a bar waits before it shows itself, and never comes to its end.
fn slow_body() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there are ports");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
                let _ = stream.write_all(&[b'x'; 50_000]);
                thread::sleep(Duration::from_millis(700));
                let _ = stream.write_all(&[b'x'; 40_000]);
                thread::sleep(Duration::from_secs(60));
            });
        }
    });
    url
}

/// Stopped by Ctrl-S, a terminal takes nothing, and there is a bar to be drawn on it.
#[test]
fn a_bar_on_a_terminal_that_is_stopped_holds_up_neither_a_limit_nor_a_signal() {
    use nix::sys::signal::{Signal, kill};
    let url = slow_body();
    for (flags, signal, code) in [
        (&["-o", "file", "--timeout", "2500ms"][..], None, 124),
        (&["-o", "file", "--attempt-timeout", "2500ms", "--max-attempts", "1"], None, 1),
        (&["--timeout", "2500ms"], None, 124),
        (&["-o", "file"], Some(Signal::SIGTERM), 143),
        (&["-o", "file"], Some(Signal::SIGINT), 130),
    ] {
        let folder = Folder::new();
        let terminal = nix::pty::openpty(None, None).unwrap();
        let mut master = std::fs::File::from(terminal.master);
        master.write_all(b"\x13").unwrap();
        let mut command = folder.command(&[&["http"], flags, &[&url]].concat());
        command.env("TERM", "xterm").stdin(Stdio::null());
        command.stdout(terminal.slave.try_clone().unwrap()).stderr(terminal.slave);
        let mut child = command.spawn().expect("it is built");
        drop(command);
        if let Some(signal) = signal {
            let parts =
                || std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
            while parts().all(|length| length < 90_000) {
                thread::sleep(Duration::from_millis(5));
            }
            // The bar is drawn right after that.
            thread::sleep(Duration::from_millis(50));
            kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
        }
        assert_eq!(end(&mut child, &format!("{flags:?}")).code(), Some(code), "{flags:?}");
        drop(master);
    }
}

/// As somebody who has a terminal that he may not open: `su`, `sudo -u`.
fn of_another(args: &[&str]) -> Command {
    assert!(nix::unistd::geteuid().is_root(), "only root can be another user, too: cargo xtask test --without root");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_relent")]).args(args);
    command.current_dir("/").env_remove("TMPDIR").stdin(Stdio::null());
    command
}

/// Nobody says how much room there is in it.
#[test]
fn a_terminal_of_another_user_holds_nobody_up_and_gets_everything() {
    let piped = ["run", "-q", "--timeout", "1500ms", "--grace", "200ms", "--stream", "--until-output", "never", "--"];
    for script in ["yes | head -c 1000000; sleep 101", "yes '' | head -c 1000000; sleep 101"] {
        for is_out in [true, false] {
            let terminal = nix::pty::openpty(None, None).unwrap();
            let redirected = if is_out { script.to_owned() } else { format!("{{ {script}; }} >&2") };
            let mut command = of_another(&[&piped[..], &["sh", "-c", &redirected]].concat());
            match is_out {
                true => command.stdout(terminal.slave).stderr(Stdio::null()),
                false => command.stderr(terminal.slave).stdout(Stdio::null()),
            };
            let mut child = command.spawn().expect("it is built");
            drop(command);
            assert_eq!(end(&mut child, &redirected).code(), Some(124), "{redirected}");
            drop(terminal.master);
        }
    }
    for (script, whole) in
        [("yes | head -c 40000", b"y\r\n".repeat(20_000)), ("yes '' | head -c 20000", b"\r\n".repeat(20_000))]
    {
        let terminal = nix::pty::openpty(None, None).unwrap();
        let mut command =
            of_another(&["run", "-q", "--stream", "--retry-on-output", "never", "--", "sh", "-c", script]);
        let mut child = command.stdout(terminal.slave).stderr(Stdio::null()).spawn().expect("it is built");
        drop(command);
        let all = all_of(terminal.master, 300);
        assert_eq!(end(&mut child, script).code(), Some(0), "{script}");
        assert!(all == whole, "{script}: {} bytes", all.len());
    }
}

/// All that is shown on a terminal, looked at so much at a time.
fn all_of(master: OwnedFd, size: usize) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), vec![0; size]);
    let mut master = std::fs::File::from(master);
    // When nobody has the other end any more, reading is an error.
    while let Ok(count @ 1..) = master.read(&mut piece) {
        all.extend_from_slice(&piece[..count]);
        thread::sleep(Duration::from_millis(1));
    }
    all
}

/// Who looks at a terminal late sees all of it.
#[test]
fn a_terminal_that_is_slow_gets_everything() {
    let folder = Folder::new();
    let terminal = nix::pty::openpty(None, None).unwrap();
    let args = ["run", "-q", "--stream", "--retry-on-output", "never", "--", "sh", "-c", "yes | head -c 200000"];
    let mut command = folder.command(&args);
    command.stdin(Stdio::null()).stdout(terminal.slave).stderr(Stdio::null());
    let mut child = command.spawn().expect("it is built");
    drop(command);
    let all = all_of(terminal.master, 3_000);
    end(&mut child, "what is looked at");
    assert!(all == b"y\r\n".repeat(100_000), "{} bytes", all.len());
}

/// A socket is no pipe: it may say that there is room, and not say how much.
#[test]
fn a_socket_that_nobody_reads_holds_nobody_up() {
    let folder = Folder::new();
    let (_unread, full) = std::os::unix::net::UnixStream::pair().unwrap();
    let args =
        ["run", "--timeout", "1500ms", "--base", "1us", "--cap", "2us", "--max-attempts", "9999999", "--", "false"];
    let mut command = folder.command(&args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(OwnedFd::from(full));
    let mut child = command.spawn().expect("it is built");
    assert_eq!(end(&mut child, "run").code(), Some(124));
}

/// Who reads late gets all of it.
#[test]
fn a_reader_that_is_slow_gets_everything() {
    let folder = Folder::new();
    for more in [&["--max-kept", "100kB"][..], &["--stream", "--retry-on-output", "never"][..]] {
        let args = [&["run", "-q"], more, &["--", "sh", "-c", "yes | head -c 1000000; exit 0"]].concat();
        let (mut child, mut reader) = start(&folder, &Full::Out, &args);
        let (mut all, mut piece) = (Vec::new(), vec![0; 30_000]);
        loop {
            thread::sleep(Duration::from_millis(1));
            match reader.read(&mut piece).unwrap() {
                0 => break,
                count => all.extend_from_slice(&piece[..count]),
            }
        }
        end(&mut child, "what is read");
        assert!(all == b"y\n".repeat(500_000), "{more:?}: {} bytes", all.len());
    }
}

/// Whatever was said on standard error before: each has its own way.
#[test]
fn what_is_for_a_pipe_goes_there() {
    let folder = Folder::new()
        .file("s.toml", "seeds = 1\n[clients]\ncount = 20\n[server]\ncapacity = 50\n[policy.a]\nbase = '1s'\n");
    for (args, begin) in [
        (&["run", "-v", "--report", "/dev/fd/3", "--", "sh", "-c", "exit 3"][..], "{"),
        (&["simulate", "-v", "s.toml", "--csv", "/dev/fd/3"], "scenario,policy,"),
        (&["simulate", "-v", "s.toml", "--csv", "fifo"], "scenario,policy,"),
    ] {
        let fifo = folder.path().join("fifo");
        let _ = nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU);
        let fast = ["--max-attempts", "2", "--base", "1ms"];
        let (head, rest) = args.split_at(2);
        let args = if args[0] == "run" { [head, &fast[..], rest].concat() } else { args.to_vec() };
        let line = "cat fifo > got & exec 3>fifo; \"$@\" 2>&1 >/dev/null | cat > said; exec 3>&-; wait";
        let mut command = Command::new("sh");
        command.args(["-c", line, "sh", env!("CARGO_BIN_EXE_relent")]).args(&args).current_dir(folder.path());
        let status = command.env("RELENT_CONFIG", "none").stdin(Stdio::null()).status().expect("there is a shell");
        let (got, said) = (folder.read("got"), folder.read("said"));
        assert!(status.success() && got.starts_with(begin) && got.ends_with('\n'), "{args:?}: {got:?} {said}");
        assert!(!said.contains(got.trim()), "{args:?}: {said}");
    }
}
