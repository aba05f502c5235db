//! The one voice of all subcommands: data on stdout, talk on stderr, `error:` then `hint:`.
//!
//! Colour only marks the words `error`, `hint` and `note`, never carries meaning, and is left out where stderr is no
//! terminal, where `NO_COLOR` is set to anything, or where `TERM` is `dumb`.

use crate::{
    breaks::{COLOUR_BEGINS, COLOUR_ENDS},
    brief,
    escape::{escape, escape_lines},
    json::Object,
    output, redact, screen, stderr,
};
use nix::libc::{EMFILE, ENFILE};
use std::{
    borrow::Cow,
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

/// What `relent` exits with when it failed itself: wrong flags, an unreadable policy file.
pub const EXIT_FAULT: u8 = 125;

/// What went wrong in `relent` itself, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    problem: String,
    /// Whether line breaks in the problem are our own.
    has_lines: bool,
    hint: Option<String>,
    exit: u8,
    /// Whether it may pass by itself.
    passes: bool,
}

impl Fault {
    /// A fault that exits with 125. It is one line: a line break in it comes from a name that somebody chose, and is
    /// written out.
    pub fn new(problem: impl Into<String>) -> Fault {
        Fault { problem: problem.into(), has_lines: false, hint: None, exit: EXIT_FAULT, passes: false }
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Fault {
        Fault { hint: Some(hint.into()), ..self }
    }

    /// With another exit code.
    #[must_use]
    pub fn exit(self, exit: u8) -> Fault {
        Fault { exit, ..self }
    }

    /// Because of what the system says of a file. What is full, lent to somebody, or used up by all together, need not stay so.
    #[must_use]
    pub(crate) fn by(self, error: &io::Error) -> Fault {
        use io::ErrorKind::{OutOfMemory, QuotaExceeded, StorageFull, WouldBlock};
        let passes = [OutOfMemory, QuotaExceeded, StorageFull, WouldBlock].contains(&error.kind());
        Fault { passes: passes || error.raw_os_error() == Some(ENFILE), ..self }
    }

    /// Whether it may pass by itself.
    pub(crate) fn may_pass(&self) -> bool {
        self.passes
    }

    /// What to exit with.
    pub(crate) fn code(&self) -> u8 {
        self.exit
    }

    /// Says it on stderr, and returns what to exit with.
    pub fn tell(&self) -> ExitCode {
        let (problem, hint) = self.shown();
        let mut stderr = stderr::open();
        // There is nobody left to tell when stderr is gone.
        let _ = writeln!(stderr, "{} {}", paint("error:", RED), problem);
        if let Some(hint) = hint {
            let _ = writeln!(stderr, "{} {}", paint("hint:", CYAN), hint);
        }
        ExitCode::from(self.exit)
    }

    /// The problem and the hint, as no terminal obeys them. What is named may be a URL, whatever it was named as.
    pub(crate) fn shown(&self) -> (String, Option<Cow<'_, str>>) {
        let problem = match self.has_lines {
            true => escape_lines(&told(&self.problem)).into_owned(),
            false => message(&self.problem),
        };
        (problem, self.hint.as_deref().map(|hint| Cow::Owned(message(hint))))
    }

    /// The fault as one line of JSON, for `--json`.
    pub fn to_json(&self) -> String {
        let mut event = Object::new();
        event.text("event", "error").text("error", &told(&self.problem));
        if let Some(hint) = &self.hint {
            event.text("hint", &told(hint));
        }
        event.number("code", self.exit.into()).finish()
    }

    /// Says it on stderr as people or machines want it, and returns what to exit with.
    pub fn tell_as(&self, json: bool) -> ExitCode {
        if !json {
            return self.tell();
        }
        let _ = writeln!(stderr::open(), "{}", self.to_json());
        ExitCode::from(self.exit)
    }
}

impl From<relent::config::ConfigError> for Fault {
    fn from(error: relent::config::ConfigError) -> Fault {
        let (told, hint) = redact::lines_of_a_file(&error.to_string(), error.hint());
        Fault { has_lines: true, ..Fault::new(told).hint(hint) }
    }
}

/// How much to say on stderr, and in which form.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct TalkArgs {
    /// Say nothing but errors.
    #[arg(short, long, overrides_with = "verbose")]
    pub quiet: bool,
    /// Say more: the policy, and each attempt as it starts.
    #[arg(short, long, overrides_with = "quiet")]
    pub verbose: bool,
    /// One JSON event a line instead of talk.
    #[arg(long)]
    pub json: bool,
}

/// How much to say on stderr, for commands that attempt nothing.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct HushArgs {
    /// Say nothing but errors.
    #[arg(short, long, overrides_with = "verbose", global = true)]
    pub quiet: bool,
    /// Say more: the policy.
    #[arg(short, long, overrides_with = "quiet", global = true)]
    pub verbose: bool,
}

impl HushArgs {
    /// Says a note, unless nothing is to be said.
    pub fn note(self, text: impl Display) {
        if !self.quiet {
            note(text);
        }
    }

    /// Says a warning, unless nothing is to be said.
    pub fn warn(self, text: impl Display) {
        if !self.quiet {
            warn(text);
        }
    }

    /// With `--verbose`: a policy in a line.
    pub(crate) fn policy(self, name: &str, policy: &relent::Policy) {
        if self.verbose {
            let text = format!("relent: policy {name}: {}", keys(*policy));
            let _ = writeln!(stderr::open(), "{}", brief::within(&escape(&text), 0));
        }
    }
}

/// The line of a policy. It is made of numbers and words of ours, so nothing in it is hidden, whatever secret has the same in it.
pub(crate) fn policy(policy: relent::Policy, seed: u64) -> String {
    let seed = format!(" seed={seed}");
    brief::within(&format!("relent: policy {}", keys(policy)), seed.len()) + &seed
}

fn keys(policy: relent::Policy) -> String {
    let keys = relent::config::Draft::from(policy).to_string();
    let keys: Vec<String> = keys.lines().map(|line| line.replace(" = ", "=")).collect();
    keys.join(" ")
}

/// What is wrong, without the number that only the system knows.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}

/// What to do about it: of what the system itself says is missing, that; else what is `likely`.
pub(crate) fn hint(error: &io::Error, likely: &'static str) -> &'static str {
    match error.raw_os_error() {
        Some(EMFILE | ENFILE) => "ulimit -n says how many files may be open",
        _ => likely,
    }
}

/// What is told, to people and machines alike: without secrets, and no longer than anybody reads. Others wrote some of it.
pub(crate) fn told(text: &str) -> Cow<'_, str> {
    // What was given is known as a whole only.
    let known = redact::without_given(text);
    match brief::lines(&known) {
        Cow::Borrowed(same) if same == text => Cow::Borrowed(text),
        shown => Cow::Owned(shown.into_owned()),
    }
}

/// Which attempt it is, and of how many at most: `1 of 5`.
pub(crate) fn of_most(attempt: u32, most: Option<u32>) -> String {
    most.map_or_else(|| attempt.to_string(), |most| format!("{attempt} of {most}"))
}

/// The same as one line that no terminal obeys.
pub(crate) fn message(text: &str) -> String {
    escape(&told(text)).into_owned()
}

/// Says something that the user should know, as `relent: ...` or as an event, unless nothing is to be said.
pub fn remark(talk: TalkArgs, text: &str) {
    if talk.quiet {
        return;
    }
    let _ = writeln!(stderr::open(), "{}", remarked(talk.json, text));
}

/// The line of a remark.
fn remarked(is_json: bool, text: &str) -> String {
    match is_json {
        true => Object::new().text("event", "remark").text("remark", &told(text)).finish(),
        false => format!("relent: {}", message(text)),
    }
}

/// From when on a wait before the first attempt is told of: whoever waits does not know that anything goes on.
pub(crate) const WORTH_TELLING: Duration = Duration::from_secs(1);

/// Says a note on stderr: something the user should know that is no error.
pub fn note(text: impl Display) {
    let _ = writeln!(stderr::open(), "{} {}", paint("note:", CYAN), message(&text.to_string()));
}

/// Says a warning on stderr: something that will probably not do what the user wants.
pub fn warn(text: impl Display) {
    let _ = writeln!(stderr::open(), "{} {}", paint("warning:", YELLOW), message(&text.to_string()));
}

const RED: &str = "31";
const YELLOW: &str = "33";
const CYAN: &str = "36";

fn paint(word: &str, colour: &str) -> String {
    if screen::colours() { format!("{COLOUR_BEGINS}{colour}m{word}{COLOUR_ENDS}") } else { word.to_owned() }
}

/// What there is to say when standard output cannot be written to.
pub(crate) fn unwritten(error: &io::Error) -> Fault {
    let fault = Fault::new(format!("cannot write to standard output: {}", plain(error)));
    match error.kind() {
        io::ErrorKind::Other => fault.hint(">/dev/null throws away what is not wanted"),
        _ => fault,
    }
}

/// Writes data to stdout. A reader that went away (`| head`) is no fault: the rest is not written.
///
/// # Errors
///
/// Any other failure to write: it is closed, or its disk full.
pub fn write_out(data: &[u8]) -> Result<(), Fault> {
    if data.is_empty() {
        return Ok(());
    }
    is_written(output::write(data))
}

/// Writes what was done until a signal came, which was heard: a reader that does not read does not get the rest.
///
/// # Errors
///
/// As [`write_out`].
pub(crate) fn write_out_at_once(data: &[u8]) -> Result<(), Fault> {
    is_written(output::write_until(data, Some(Instant::now())).map(drop))
}

fn is_written(written: io::Result<()>) -> Result<(), Fault> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritten(&error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_policy_is_no_longer_than_others() {
        const DELAYS: [Duration; 1000] = [Duration::from_nanos(1_000_000_001); 1000];
        let long = policy(relent::Policy::list(&DELAYS), u64::MAX);
        assert_eq!(long.chars().count(), 2_000);
        assert!(long.starts_with("relent: policy ") && long.ends_with("... seed=18446744073709551615"), "{long}");
    }

    #[test]
    fn a_name_that_a_process_has_chosen_is_no_line_of_its_own_and_moves_no_cursor() {
        let said = "still running: \x1b[31mX\nerror: Y (7)";
        assert_eq!(remarked(false, said), "relent: still running: \\u{1b}[31mX\\nerror: Y (7)");
        let event = r#"{"event":"remark","remark":"still running: \u001b[31mX\nerror: Y (7)"}"#;
        assert_eq!(remarked(true, said), event);
    }
}
