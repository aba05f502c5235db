//! `relent run`, on real processes.
#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod bad_input;
mod conduct;
mod ending;
mod environment;
mod hostile;
mod inherited;
mod late;
mod lease;
mod lease_failed;
mod lease_lost;
mod leftovers;
mod lent;
#[cfg(target_os = "linux")]
mod namespaces;
mod of_another_user;
mod output;
mod policy;
mod rules;
mod said;
mod stdin;
mod store_of_a_team;
mod terminal;

use crate::binary::{Folder, Outcome};
use std::{
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Short waits, the same in every run.
const QUICK: [&str; 5] = ["run", "--base", "1ms", "--seed", "7"];

/// A folder to run in, with a temporary folder inside that must be empty in the end.
struct Place(Folder);

impl Place {
    fn new() -> Place {
        let folder = Folder::new();
        fs::create_dir(folder.path().join("tmp")).expect("the folder is writable");
        Place(folder)
    }

    fn file(self, name: &str, text: &str) -> Place {
        Place(self.0.file(name, text))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(args);
        command.env("TMPDIR", self.0.path().join("tmp")).env_remove("RELENT_KEY").stdin(Stdio::null());
        command
    }

    /// Runs relent as it is told, and filters the times out of what it says.
    fn relent(&self, args: &[&str]) -> Outcome {
        self.outcome(&mut self.command(args))
    }

    fn outcome(&self, command: &mut Command) -> Outcome {
        let output = command.output().expect("the binary was built");
        self.is_clean();
        Outcome {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: without_times(&String::from_utf8_lossy(&output.stderr)),
            code: output.status.code(),
        }
    }

    /// Runs a script, under short waits unless the flags say otherwise.
    fn sh(&self, flags: &[&str], script: &str) -> Outcome {
        self.relent(&script_args(flags, script))
    }

    /// Starts a script and does not wait for it.
    fn start(&self, flags: &[&str], script: &str) -> Child {
        self.command(&script_args(flags, script))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built")
    }

    fn is_clean(&self) {
        let left: Vec<_> = fs::read_dir(self.0.path().join("tmp")).expect("it is there").flatten().collect();
        assert!(left.is_empty(), "left in TMPDIR: {left:?}");
    }

    fn has(&self, name: &str) -> bool {
        self.0.path().join(name).exists()
    }
}

fn script_args<'a>(flags: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let quick = if flags.contains(&"--base") { &QUICK[..1] } else { &QUICK[..] };
    [quick, flags, &["--", "sh", "-c", script]].concat()
}

fn sh(flags: &[&str], script: &str) -> Outcome {
    Place::new().sh(flags, script)
}

impl Outcome {
    #[track_caller]
    fn is(&self, code: i32, stdout: &str, stderr: &str) {
        let expected = Outcome { stdout: stdout.into(), stderr: stderr.into(), code: Some(code) };
        assert!(*self == expected, "expected {expected:#?}\nbut got {self:#?}");
    }
}

/// The rule for times: in what relent says, every duration becomes `[t]`, and every `_ms` of an event `0`. Errors and
/// hints stay as they are.
fn without_times(text: &str) -> String {
    let is_said = |line: &str| line.contains("relent: ") || line.starts_with('{');
    text.split_inclusive('\n').map(|line| if is_said(line) { filtered(line) } else { line.to_owned() }).collect()
}

fn filtered(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let number = from.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(from.len());
        let is_event = before.ends_with("_ms\":");
        let units = &from[number..];
        let unit = ["ns", "us", "ms", "s", "m", "h"].into_iter().find(|unit| {
            let after = units.strip_prefix(unit).and_then(|after| after.chars().next());
            units.starts_with(unit) && !after.is_some_and(char::is_alphabetic)
        });
        let in_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '"' || c == '=' || c == ':');
        match unit {
            _ if is_event => out.push('0'),
            Some(unit) if !in_word => {
                if !out.ends_with("[t]") {
                    out.push_str("[t]");
                }
                rest = &units[unit.len()..];
                continue;
            }
            _ => out.push_str(&from[..number]),
        }
        rest = units;
    }
    out + rest
}

#[test]
fn times_are_filtered_and_nothing_else() {
    assert_eq!(
        without_times("relent: attempt 1 of 8: exit 1; next in 1m3.5s\n"),
        "relent: attempt 1 of 8: exit 1; next in [t]\n"
    );
    assert_eq!(
        without_times("{\"exit\":12,\"delay_ms\":345,\"ran_ms\":1}"),
        "{\"exit\":12,\"delay_ms\":0,\"ran_ms\":0}"
    );
    assert_eq!(without_times("relent: after 3 attempts in 12.5ms: out"), "relent: after 3 attempts in [t]: out");
    assert_eq!(without_times("hint: like 15s\n"), "hint: like 15s\n");
}

/// Waits until something is so.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process is there and no zombie.
fn is_running(pid: &str) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// What a process does, in a letter.
fn state(pid: impl std::fmt::Display) -> Option<char> {
    let stat = fs::read(format!("/proc/{}/stat", pid.to_string().trim())).ok()?;
    String::from_utf8_lossy(&stat).rsplit(") ").next()?.chars().next()
}
