//! The one voice of all subcommands: data on stdout, talk on stderr, `error:` then `hint:`.
//!
//! Colour only marks the words `error`, `hint` and `note`, never carries meaning, and is left out where stderr is no
//! terminal, where `NO_COLOR` is set to anything, or where `TERM` is `dumb`.

use crate::{cli::Cli, json::Object};
use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{
    error::Error,
    fmt::Display,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

/// What `relent` exits with when it failed itself: wrong flags, an unreadable policy file.
pub const EXIT_FAULT: u8 = 125;

/// What went wrong in `relent` itself, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    problem: String,
    hint: Option<String>,
    exit: u8,
}

impl Fault {
    /// A fault that exits with 125.
    pub fn new(problem: impl Into<String>) -> Fault {
        Fault { problem: problem.into(), hint: None, exit: EXIT_FAULT }
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

    /// Says it on stderr, and returns what to exit with.
    pub fn tell(&self) -> ExitCode {
        let mut stderr = io::stderr().lock();
        // There is nobody left to tell when stderr is gone.
        let _ = writeln!(stderr, "{} {}", paint("error:", RED), self.problem);
        if let Some(hint) = &self.hint {
            let _ = writeln!(stderr, "{} {hint}", paint("hint:", CYAN));
        }
        ExitCode::from(self.exit)
    }

    /// The fault as one line of JSON, for `--json`.
    pub fn to_json(&self) -> String {
        let mut event = Object::new();
        event.text("event", "error").text("error", &self.problem);
        if let Some(hint) = &self.hint {
            event.text("hint", hint);
        }
        event.number("code", self.exit.into()).finish()
    }

    /// Says it on stderr as people or machines want it, and returns what to exit with.
    pub fn tell_as(&self, json: bool) -> ExitCode {
        if !json {
            return self.tell();
        }
        let _ = writeln!(io::stderr().lock(), "{}", self.to_json());
        ExitCode::from(self.exit)
    }
}

impl From<relent::config::ConfigError> for Fault {
    fn from(error: relent::config::ConfigError) -> Fault {
        Fault::new(error.to_string()).hint(error.hint())
    }
}

/// How much to say on stderr, and in which form.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct TalkArgs {
    /// Say nothing but errors.
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more: the policy, and each attempt as it starts.
    #[arg(short, long)]
    pub verbose: bool,
    /// One JSON event a line instead of talk.
    #[arg(long)]
    pub json: bool,
}

/// Says a note on stderr: something the user should know that is no error.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{} {text}", paint("note:", CYAN));
}

/// Says a warning on stderr: something that will probably not do what the user wants.
pub fn warn(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{} {text}", paint("warning:", YELLOW));
}

const RED: &str = "31";
const YELLOW: &str = "33";
const CYAN: &str = "36";

fn paint(word: &str, colour: &str) -> String {
    if colours() { format!("\x1b[1;{colour}m{word}\x1b[0m") } else { word.to_owned() }
}

/// Whether stderr takes colour.
pub fn colours() -> bool {
    io::stderr().is_terminal() && is_unset("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The columns of the terminal: `COLUMNS` where it is set, else what stdout says if it is a terminal.
pub fn columns() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let asked = || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    said.or_else(asked).filter(|columns| *columns > 0)
}

/// Breaks lines between words so that none is longer than `width`, if no word is.
pub fn wrap(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut length = 0;
        for word in line.split(' ') {
            let more = word.chars().count();
            if length > 0 && length + 1 + more > width {
                out.push('\n');
                length = 0;
            } else if length > 0 {
                out.push(' ');
                length += 1;
            }
            out.push_str(word);
            length += more;
        }
        out.push('\n');
    }
    out
}

/// Whether the locale takes characters beyond ASCII: not where it names another character set, as `C` does.
pub fn unicode() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

fn is_unset(variable: &str) -> bool {
    std::env::var_os(variable).is_none_or(|value| value.is_empty())
}

/// What the flag parser says, in our voice; help and version go to stdout.
pub(crate) fn usage(error: &clap::Error, first: Option<&str>) -> Result<ExitCode, Fault> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            write_out(format!("{}\n", error.render().to_string().trim_end()).as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = writeln!(io::stderr().lock(), "{}", error.render().to_string().trim_end());
            Ok(ExitCode::from(EXIT_FAULT))
        }
        _ => Err(usage_fault(error, first)),
    }
}

fn usage_fault(error: &clap::Error, first: Option<&str>) -> Fault {
    let text = error.render().to_string();
    let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    let problem = lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned();
    // "To pass it as a value" is what hardly anybody wants who mistypes a flag.
    let tip = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("tip: "))
        .find(|tip| !tip.contains(" as a value"));
    let hint = cause_hint(error).or_else(|| elsewhere(error)).or_else(|| tip.map(str::to_owned));
    Fault::new(problem).hint(hint.unwrap_or_else(|| help_of(first)))
}

/// What flags of other programs are called here.
fn elsewhere(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let ours = match flag.trim_start_matches('-') {
        "retries" | "max-retries" | "tries" | "attempts" | "max-tries" | "retry" | "n" | "t" | "r" | "times" => {
            "--max-attempts (which counts the first attempt too)"
        }
        "timeout" | "max-time" | "per-try-timeout" => {
            "--attempt-timeout for each attempt, --max-elapsed for all of them"
        }
        "delay" | "wait" | "interval" | "sleep" | "d" | "s" | "retry-delay" | "min-delay" | "wait-min" => "--base",
        "max-delay" | "max-wait" | "max-interval" | "wait-max" => "--cap",
        "backoff" => "--curve",
        "multiplier" => "--factor",
        "retry-max-time" | "max-duration" => "--max-elapsed",
        _ => return None,
    };
    Some(format!("here it is {ours}"))
}

/// The hint of the value parser that refused, if it was one of ours.
fn cause_hint(error: &clap::Error) -> Option<String> {
    error.source()?.downcast_ref::<relent::config::BadSetting>().map(|bad| bad.hint.clone())
}

/// Where the help is: the subcommand's, if the first argument is one.
fn help_of(first: Option<&str>) -> String {
    match first.filter(|first| Cli::command().find_subcommand(first).is_some()) {
        Some(subcommand) => format!("see relent {subcommand} --help"),
        None => "see relent --help".to_owned(),
    }
}

/// Writes data to stdout. A reader that went away (`| head`) is no fault: the rest is not written.
///
/// # Errors
///
/// Any other failure to write.
pub fn write_out(data: &[u8]) -> Result<(), Fault> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(data).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Fault::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
