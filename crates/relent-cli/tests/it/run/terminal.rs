//! On a terminal, as `script` makes one.

use super::{Place, QUICK, until};
use crate::binary::tool;
use std::{
    fs,
    io::Write,
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

/// Starts relent on a terminal of its own; what is typed goes into its standard input.
pub(super) fn typing(place: &Place, flags: &[&str], shell: &str) -> (Child, ChildStdin) {
    let quoted = shell.replace('\'', "'\\''");
    let line = format!("relent {} {} -- sh -c '{quoted}'", QUICK.join(" "), flags.join(" "));
    let mut command = tool("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(place.0.path());
    command.env("TMPDIR", place.0.path().join("tmp")).env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is part of Debian");
    let stdin = child.stdin.take().unwrap();
    (child, stdin)
}

pub(super) fn shown(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"))
}

#[test]
fn the_command_can_ask_and_is_answered() {
    let place = Place::new();
    let (child, mut stdin) = typing(&place, &["-q"], "touch up; read name; echo hello $name");
    until("it asks", || place.has("up"));
    stdin.write_all(b"you\n").unwrap();
    let (code, text) = shown(child);
    assert_eq!(code, Some(0));
    assert!(text.ends_with("hello you\n"), "{text}");
}

#[test]
fn in_a_pipeline_a_command_that_asks_is_answered_too() {
    let place = Place::new();
    // Were the terminal lent from the start, the end of the pipeline would be stopped for reading from it.
    let line = "relent run -q -- sh -c 'touch up; read name; echo hello $name' | (cat; echo end)";
    let mut command = tool("script");
    command.args(["-qec", line, "/dev/null"]).current_dir(place.0.path()).env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is part of Debian");
    let mut stdin = child.stdin.take().unwrap();
    until("it asks", || place.has("up"));
    stdin.write_all(b"you\n").unwrap();
    let (code, text) = shown(child);
    assert_eq!(code, Some(0));
    assert!(text.ends_with("hello you\nend\n"), "{text}");
}

#[test]
fn in_a_pipeline_the_terminal_stays_with_the_others() {
    let place = Place::new();
    let reader = "(read key </dev/tty; echo got $key; cat)";
    let line = format!("relent run -q -- sh -c 'touch up; while [ ! -e go ]; do sleep 0.02; done' | {reader}");
    let mut command = tool("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(place.0.path()).env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is part of Debian");
    let mut stdin = child.stdin.take().unwrap();
    until("it runs", || place.has("up"));
    stdin.write_all(b"q\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    fs::write(place.0.path().join("go"), "").unwrap();
    let (code, text) = shown(child);
    assert_eq!(code, Some(0));
    assert!(text.ends_with("got q\n"), "{text}");
}

#[test]
fn output_is_shown_as_it_comes() {
    let place = Place::new();
    let (child, _stdin) = typing(&place, &["-q"], "echo out $RELENT_ATTEMPT; [ $RELENT_ATTEMPT = 2 ]");
    assert_eq!(shown(child), (Some(0), "out 1\nout 2\n".to_owned()));
}

#[test]
fn a_long_wait_is_counted_down() {
    let place = Place::new();
    let flags = ["--base", "1100ms", "--jitter", "none"];
    let line_flags: Vec<&str> = flags.to_vec();
    let shell = "[ $RELENT_ATTEMPT = 2 ]";
    let quoted = shell.replace('\'', "'\\''");
    let line = format!("relent run {} -- sh -c '{quoted}'", line_flags.join(" "));
    let mut command = tool("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(place.0.path()).env("TERM", "xterm");
    let output = command.stdin(Stdio::null()).output().expect("script is part of Debian");
    let text = super::without_times(&String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"));
    assert_eq!(
        text,
        "relent: attempt 1 of 8: exit 1; next in [t]\n\
         \r\u{1b}[Krelent: attempt 2 of 8 in [t]\r\u{1b}[Krelent: attempt 2 of 8 in [t]\r\u{1b}[K\
         relent: succeeded after 2 attempts in [t]\n"
    );
}

#[test]
fn control_c_reaches_the_command_and_stops_the_retrying() {
    let place = Place::new();
    let (child, mut stdin) = typing(&place, &["-q"], "echo >> count; touch up; exec sleep 30");
    until("it runs", || place.has("up"));
    std::thread::sleep(Duration::from_millis(50));
    stdin.write_all(b"\x03").unwrap();
    let (code, _) = shown(child);
    assert_eq!(code, Some(130));
    assert_eq!(place.0.read("count"), "\n");
    place.is_clean();
}

/// It was told to end by another signal, because it took too long.
#[test]
fn control_c_in_the_grace_of_an_attempt_stops_the_retrying() {
    let place = Place::new();
    let flags = ["-q", "--attempt-timeout=300ms", "--grace=1m"];
    let script = "echo >> count; trap 'touch told' TERM; while :; do sleep 0.01; done";
    let (child, mut stdin) = typing(&place, &flags, script);
    until("it is told to end", || place.has("told"));
    stdin.write_all(b"\x03").unwrap();
    let (code, _) = shown(child);
    assert_eq!((code, place.0.read("count").as_str()), (Some(130), "\n"));
    place.is_clean();
}

/// A pipe that the command reads from, so that nothing is started when it is stopped: a shell that waits for its child to begin
/// (vfork) does not stop.
fn pipe(place: &Place, name: &str) -> std::path::PathBuf {
    let path = place.0.path().join(name);
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    path
}

/// Open for as long as somebody may be about to read it.
fn write_line(pipe: &std::path::Path) -> fs::File {
    let mut pipe = fs::OpenOptions::new().read(true).write(true).open(pipe).unwrap();
    pipe.write_all(b"\n").unwrap();
    pipe
}

/// Starts a script of bash on a terminal, where it may have job control.
pub(super) fn in_a_shell(place: &Place, line: &str) -> (Child, ChildStdin) {
    fs::write(place.0.path().join("job.sh"), line).unwrap();
    let mut command = tool("script");
    command.args(["-qec", "bash job.sh", "/dev/null"]).current_dir(place.0.path()).env("TERM", "xterm");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is part of Debian");
    let stdin = child.stdin.take().unwrap();
    (child, stdin)
}

/// Waits until the shell is told to.
const SEEN: &str = "while [ ! -e seen ]; do sleep 0.02; done";

/// Ctrl-Z while this command of a shell waits for a line in `cmd.sh`, and `fg`: what is shown in the end.
fn stopped_and_called_back(line: &str) -> String {
    let place = Place::new();
    let go = pipe(&place, "go");
    fs::write(place.0.path().join("cmd.sh"), "echo $PPID > relent; : > up; read line < go; echo done").unwrap();
    let (child, mut stdin) = in_a_shell(&place, &format!("set -m; {line}; echo $? > stopped; {SEEN}; fg > /dev/null"));
    until("it runs", || place.has("up"));
    std::thread::sleep(Duration::from_millis(50));
    let relent = place.0.read("relent");
    stdin.write_all(b"\x1a").unwrap();
    until("the shell sees it", || place.has("stopped"));
    until("relent stops", || state(&relent) == "T");
    fs::write(place.0.path().join("seen"), "").unwrap();
    let _go = write_line(&go);
    let (code, text) = shown(child);
    assert_eq!(code, Some(0), "{line}: {text}");
    text
}

#[test]
fn control_z_stops_both_and_both_go_on() {
    let text = stopped_and_called_back("relent run -q -- sh cmd.sh");
    assert!(text.ends_with("done\n"), "{text}");
}

/// As without relent, where it would be of the script's group, which Ctrl-Z stops; so around a relent that stops itself within another.
#[test]
fn control_z_stops_the_script_around_relent_too() {
    for run in ["relent run -q -- sh cmd.sh", "relent run -q -- relent run -q -- sh cmd.sh"] {
        let text = stopped_and_called_back(&format!("sh -c '{run}; echo after'"));
        assert!(text.ends_with("done\nafter\n"), "{run}: {text}");
    }
}

/// As in `$(..)` of a shell that people type into: nobody is stopped there for asking. Who asks within the first moment, before the terminal
/// is lent, still reads an error.
#[test]
fn a_command_that_cannot_be_stopped_for_asking_is_answered() {
    let place = Place::new();
    let line = "trap '' TTIN; x=$(relent run -q -- sh -c ': > up; sleep 0.2; read a; echo got $a'); echo $x";
    let (child, mut stdin) = in_a_shell(&place, line);
    until("it asks", || place.has("up"));
    stdin.write_all(b"you\n").unwrap();
    let (code, text) = shown(child);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("got you\n"), "{text}");
}

/// As without relent: who runs tests and then deploys does not deploy what somebody has interrupted.
#[test]
fn control_c_ends_the_script_around_relent_too() {
    let sleeps = "echo x >> runs; touch up; exec sleep 30";
    for (shell, script) in [
        ("sh", "relent run -q -- sh cmd.sh; echo after"),
        ("bash", "relent run -q -- sh cmd.sh; echo after"),
        ("bash", "for i in 1 2 3; do relent run -q -- sh cmd.sh; done; echo after"),
        ("sh", "relent run -q -- relent run -q -- sh cmd.sh; echo after"),
    ] {
        let place = Place::new();
        fs::write(place.0.path().join("cmd.sh"), sleeps).unwrap();
        fs::write(place.0.path().join("run.sh"), script).unwrap();
        let (child, mut stdin) = in_a_shell(&place, &format!("set -m; {shell} run.sh; echo exit $?"));
        until("it runs", || place.has("up"));
        std::thread::sleep(Duration::from_millis(50));
        stdin.write_all(b"\x03").unwrap();
        let (_, text) = shown(child);
        assert!(!text.contains("after"), "{shell}: {text}");
        assert_eq!(place.0.read("runs"), "x\n", "{shell}");
    }
    // Who has answered it and goes on with an exit code means that it goes on.
    let place = Place::new();
    fs::write(place.0.path().join("cmd.sh"), "trap 'exit 130' INT; touch up; while :; do sleep 0.02; done").unwrap();
    fs::write(place.0.path().join("run.sh"), "relent run -q -- sh cmd.sh; echo after").unwrap();
    let (child, mut stdin) = in_a_shell(&place, "set -m; sh run.sh");
    until("it runs", || place.has("up"));
    std::thread::sleep(Duration::from_millis(50));
    stdin.write_all(b"\x03").unwrap();
    let (_, text) = shown(child);
    assert!(text.ends_with("after\n"), "{text}");
}

/// Who signals relent alone, as a supervisor does, means no script around it.
#[test]
fn what_nobody_has_typed_is_meant_for_no_script() {
    for signal in ["INT", "QUIT"] {
        let place = Place::new();
        fs::write(place.0.path().join("cmd.sh"), "echo $PPID > relent; touch up; exec sleep 30").unwrap();
        fs::write(place.0.path().join("run.sh"), "relent run -q -- sh cmd.sh; echo after").unwrap();
        let (child, _stdin) = in_a_shell(&place, "set -m; sh run.sh");
        until("it runs", || place.has("up"));
        std::thread::sleep(Duration::from_millis(50));
        let relent = place.0.read("relent");
        Command::new("kill").args([&format!("-{signal}"), relent.trim()]).status().unwrap();
        let (_, text) = shown(child);
        assert!(text.ends_with("after\n"), "{signal}: {text}");
    }
}

/// As `xargs -P` runs them: what one has lent the other waits for, and nobody is stopped.
#[test]
fn two_commands_of_one_script_ask_one_after_the_other() {
    let place = Place::new();
    let asks = "touch asks$1; read x </dev/tty; echo got$1 $x >> answers; touch got$1";
    fs::write(place.0.path().join("cmd.sh"), asks).unwrap();
    let wait = "while [ ! -e asks1 ]; do sleep 0.02; done; sleep 0.1";
    let script = format!("relent run -q -- sh cmd.sh 1 & {wait}; relent run -q -- sh cmd.sh 2 & wait; echo after");
    fs::write(place.0.path().join("run.sh"), script).unwrap();
    let (child, mut stdin) = in_a_shell(&place, "set -m; sh run.sh; echo exit $?");
    until("both ask", || place.has("asks2"));
    std::thread::sleep(Duration::from_millis(150));
    stdin.write_all(b"one\n").unwrap();
    until("one is answered", || place.has("got1") || place.has("got2"));
    std::thread::sleep(Duration::from_millis(150));
    stdin.write_all(b"two\n").unwrap();
    let (code, text) = shown(child);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("after\nexit 0\n"), "{text}");
    let answers = place.0.read("answers");
    assert!(answers.contains("one\n") && answers.contains("two\n"), "{answers}");
}

/// `ssh -t host relent run`, `docker run -it`: the system stops nobody there by Ctrl-Z, since nobody could call it back.
#[test]
fn control_z_stops_nobody_whom_no_shell_looks_after() {
    let waits = "echo x >> fails; [ $(wc -l < fails) = 2 ]";
    for (flags, script, is_asked) in [
        (&["-q"][..], ": > up; read line < go; echo done", true),
        (&["-q", "--base=600ms", "--jitter=none"], waits, false),
    ] {
        let place = Place::new();
        let go = pipe(&place, "go");
        let (child, mut stdin) = typing(&place, flags, script);
        until("it runs", || place.has(if is_asked { "up" } else { "fails" }));
        std::thread::sleep(Duration::from_millis(50));
        stdin.write_all(b"\x1a").unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let _go = write_line(&go);
        let (code, text) = shown(child);
        assert_eq!(code, Some(0), "{text}");
        assert!(!is_asked || text.ends_with("done\n"), "{text}");
    }
}

/// However many relents there are, and scripts between them.
#[test]
fn control_z_stops_no_relent_within_another_whom_no_shell_looks_after() {
    for inner in ["relent run -q -- sh cmd.sh", "sh -c 'relent run -q -- sh cmd.sh; echo inner'"] {
        let place = Place::new();
        let go = pipe(&place, "go");
        fs::write(place.0.path().join("cmd.sh"), ": > up; read line < go; echo done").unwrap();
        let mut command = tool("script");
        let line = format!("exec relent run -q -- {inner}");
        command.args(["-qec", &line, "/dev/null"]).current_dir(place.0.path()).env("TERM", "xterm");
        command.env("SHELL", "/bin/sh").env("TMPDIR", place.0.path().join("tmp"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is part of Debian");
        let mut stdin = child.stdin.take().unwrap();
        until("it runs", || place.has("up"));
        std::thread::sleep(Duration::from_millis(50));
        stdin.write_all(b"\x1a").unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let _go = write_line(&go);
        let (code, text) = shown(child);
        assert_eq!(code, Some(0), "{inner}: {text}");
        assert!(text.contains("done\n"), "{inner}: {text}");
    }
}

/// Without relent it reads an error, instead of being stopped for ever.
#[test]
fn who_asks_for_a_terminal_that_nobody_can_give_is_ended() {
    let place = Place::new();
    let asks = "touch up; until [ -e go ]; do sleep 0.02; done; read name < /dev/tty; echo read";
    // What has left the shell is of no job of the shell's.
    let job = format!(
        "{{ relent run --max-attempts 1 -- sh -c '{asks}' > said 2>&1; echo $? > code.new; mv code.new code; }} &"
    );
    let line = format!("set -m; ( {job} ); touch go; while [ ! -e code ]; do sleep 0.02; done");
    let (child, stdin) = in_a_shell(&place, &line);
    let (code, text) = shown(child);
    drop(stdin);
    assert_eq!((code, place.0.read("code").as_str()), (Some(0), "143\n"), "{text}");
    let said = place.0.read("said");
    let wants = "relent: the command wants the terminal, which others have, and nobody can call it to the foreground; it is told to end\n";
    assert!(said.starts_with(wants) && !said.contains("read\n"), "{said}");
}

/// The command has the terminal, and so it has the first; what it has left gets its grace.
#[test]
fn control_c_twice_at_once_is_one() {
    // A machine that is busy makes two of it.
    let is_one = || {
        let place = Place::new();
        let job = "trap '' INT; trap 'sleep 0.4; touch clean; exit' TERM; touch up; while :; do sleep 0.02; done";
        let script = format!("echo $PPID > relent; ( {job} ) & read line < go");
        let _go = pipe(&place, "go");
        let (child, mut stdin) = typing(&place, &["-q"], &script);
        until("it runs", || place.has("up"));
        let relent = place.0.read("relent");
        until("the terminal is lent", || !has_the_terminal(&relent));
        let first = Instant::now();
        stdin.write_all(b"\x03").unwrap();
        until("the terminal is given back", || has_the_terminal(&relent));
        stdin.write_all(b"\x03").unwrap();
        let is_quick = first.elapsed() < Duration::from_millis(120);
        let (code, text) = shown(child);
        assert!(!is_quick || (code, place.has("clean")) == (Some(130), true), "{code:?}: {text}");
        is_quick
    };
    assert!((0..10).any(|_| is_one()), "never quick enough");
}

/// As without relent: the shell sees a job that is stopped for wanting the terminal, and calls it back.
#[test]
fn a_background_job_that_asks_stops_until_it_is_called() {
    let place = Place::new();
    let relent = env!("CARGO_BIN_EXE_relent");
    let line = format!(
        "set -m; {relent} run -q -- sh -c 'echo $PPID > relent; touch up; read name </dev/tty; echo hello $name' & \
         while [ ! -e stopped ]; do sleep 0.02; done; fg %1 > /dev/null; echo exit $?"
    );
    let place = Place(place.0.file("job.sh", &line));
    let mut command = Command::new("script");
    command.args(["-qec", "bash job.sh", "/dev/null"]).current_dir(place.0.path()).env("TERM", "xterm");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is part of Debian");
    let mut stdin = child.stdin.take().unwrap();
    until("it runs", || place.has("up"));
    let relent = place.0.read("relent");
    until("relent stops", || state(&relent) == "T");
    fs::write(place.0.path().join("stopped"), "").unwrap();
    stdin.write_all(b"you\n").unwrap();
    let (code, text) = shown(child);
    assert_eq!(code, Some(0));
    assert!(text.ends_with("hello you\nexit 0\n"), "{text}");
}

/// As without relent: after Ctrl-Z and `bg` the terminal is the shell's, when the command wants it and when it ends, too.
#[test]
fn in_the_background_the_terminal_stays_with_the_shell() {
    let place = Place::new();
    let at = |name: &str| place.0.path().join(name);
    for name in ["go", "again"] {
        nix::unistd::mkfifo(&at(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let mut command = tool("script");
    command.args(["-qec", "bash --norc --noprofile -i", "/dev/null"]).current_dir(place.0.path()).env("TERM", "dumb");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is part of Debian");
    let mut stdin = child.stdin.take().unwrap();
    let mut types = |text: &str| stdin.write_all(text.as_bytes()).unwrap();
    for (name, ends) in [("go", "echo end"), ("again", "read name < /dev/tty; echo hello $name")] {
        let wait = format!("echo $PPID > relent; : > up-{name}; read line < {name}");
        types(&format!("relent run -q -- bash -c '{wait}; {ends}'\n"));
        until("it runs", || place.has(&format!("up-{name}")));
        let relent = place.0.read("relent");
        types("\x1a");
        until("relent stops", || state(&relent) == "T");
        types("bg\n");
        until("relent goes on", || state(&relent) != "T");
        types(&format!("touch shell-{name}\n"));
        until("the shell is asked", || place.has(&format!("shell-{name}")));
        let mut go = fs::OpenOptions::new().read(true).write(true).open(at(name)).unwrap();
        go.write_all(b"\n").unwrap();
        let is_over = |state: String| if name == "go" { state.is_empty() } else { state == "T" };
        until("it ends, or stops for wanting to read", || is_over(state(&relent)));
        types(&format!("touch alive-{name}\n"));
        until("the shell is still asked", || place.has(&format!("alive-{name}")));
    }
    let relent = place.0.read("relent");
    types("fg\n");
    until("it is called back", || state(&relent) != "T");
    types("you\n");
    until("it ends", || state(&relent).is_empty());
    types("exit\n");
    let (code, text) = shown(child);
    assert_eq!((code, text.contains("hello you\n")), (Some(0), true), "{text}");
}

/// A shell with job control gives the terminal to groups that it makes, and may be gone before them, as may the first of such a group.
#[test]
fn the_terminal_is_taken_back_from_what_the_command_left() {
    let place = Place::new();
    let leaves = "set -m; true | { sleep 0.2; kill -9 $$; sleep 61; }; true";
    let asks = "touch up; read name; echo hello $name";
    let script = format!("[ $RELENT_ATTEMPT = 2 ] || exec bash -c \"{}\"; {asks}", leaves.replace('$', "\\$"));
    let (child, mut stdin) = typing(&place, &["-q", "--max-attempts=2"], &script);
    until("it asks", || place.has("up"));
    stdin.write_all(b"you\n").unwrap();
    let (code, text) = shown(child);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("hello you\n"), "{text}");
}

/// `stty tostop` stops who writes to the terminal from the background, as relent does while the command has it.
#[test]
fn what_relent_says_while_the_command_has_the_terminal_stops_nobody() {
    let place = Place::new();
    let flags = ["--max-attempts=1", "--timeout=200ms", "--grace=1200ms"];
    let (child, stdin) = typing(&place, &flags, "stty tostop; trap '' TERM; while :; do sleep 0.02; done");
    let (code, text) = shown(child);
    drop(stdin);
    assert_eq!(code, Some(124), "{text}");
    assert!(text.contains("which was told to end"), "{text}");
}

/// A prompt on the terminal itself (`ssh`, `sudo`), with standard input and output elsewhere.
#[test]
fn a_prompt_on_the_terminal_is_answered_whatever_the_input_is() {
    let place = Place::new();
    let relent = env!("CARGO_BIN_EXE_relent");
    let ask = "touch up; printf \"name: \" >/dev/tty; read name </dev/tty; echo hello $name; cat";
    let line = format!("echo data | {relent} run -q -- sh -c '{ask}' > out");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(place.0.path()).env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script is part of Debian");
    let mut stdin = child.stdin.take().unwrap();
    until("it asks", || place.has("up"));
    stdin.write_all(b"you\n").unwrap();
    let (code, text) = shown(child);
    assert_eq!((code, text.contains("name: ")), (Some(0), true), "{text}");
    assert_eq!(place.0.read("out"), "hello you\ndata\n");
}

/// What Linux tells of a process, from its state on.
fn stat(pid: &str) -> String {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(") ").next().unwrap_or_default().to_owned()
}

/// The state of a process.
fn state(pid: &str) -> String {
    stat(pid).chars().take(1).collect()
}

/// Whether the terminal is that of a process's group.
pub(super) fn has_the_terminal(pid: &str) -> bool {
    let stat = stat(pid);
    let fields: Vec<_> = stat.split(' ').collect();
    fields.get(2) == fields.get(5)
}

#[test]
fn errors_have_colour_unless_it_is_unwanted() {
    let coloured = |env: &[(&str, &str)]| {
        let place = Place::new();
        let mut command = tool("script");
        command.args(["-qec", "relent run", "/dev/null"]).current_dir(place.0.path()).env("TERM", "xterm");
        command.env_remove("NO_COLOR").envs(env.iter().copied()).stdin(Stdio::null());
        String::from_utf8_lossy(&command.output().expect("script is part of Debian").stdout).contains('\u{1b}')
    };
    assert!(coloured(&[]));
    assert!(!coloured(&[("NO_COLOR", "1")]));
    assert!(!coloured(&[("TERM", "dumb")]));
}
