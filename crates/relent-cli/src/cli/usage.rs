//! What the flag parser says about a wrong command line, in our voice.

use super::Cli;
use crate::{
    breaks::wrap,
    escape::escape,
    stderr,
    talk::{EXIT_FAULT, Fault, write_out},
};
use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{error::Error, ffi::OsString, io::Write, process::ExitCode};

/// What the flag parser says, in our voice; help and version go to stdout.
pub(crate) fn tell(error: &clap::Error, args: &[OsString]) -> Result<ExitCode, Fault> {
    let first = args.get(1).and_then(|arg| arg.to_str());
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = fitted(&error.render().to_string());
            let is_short = args.iter().any(|arg| arg == "-h") && !args.iter().any(|arg| arg == "--help");
            write_out(if is_short { flags_only(&text) } else { text }.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = writeln!(stderr::open(), "{}", error.render().to_string().trim_end());
            Ok(ExitCode::from(EXIT_FAULT))
        }
        _ => Err(usage_fault(error, first)),
    }
}

/// The most columns of a help.
const COLUMNS: usize = 100;

/// A help whose lines fit: what a flag does goes on below where it began.
fn fitted(help: &str) -> String {
    let mut out = String::new();
    for line in help.trim_end().lines() {
        let indent = line.len() - line.trim_start().len();
        // The text of a flag, or of a command, begins behind two spaces.
        let begins = line[indent..].find("  ").map(|gap| {
            let rest = &line[indent + gap..];
            indent + gap + rest.len() - rest.trim_start().len()
        });
        let column = if indent == 0 { 0 } else { begins.unwrap_or(indent) };
        match line.split_at_checked(column) {
            Some((before, text)) if line.chars().count() > COLUMNS && column < COLUMNS / 2 => {
                let wrapped = wrap(text, COLUMNS - column);
                let lines = wrapped.trim_end().replace('\n', &format!("\n{:column$}", ""));
                out.extend([before, &lines]);
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// A help up to its last flag.
fn flags_only(help: &str) -> String {
    let lines: Vec<&str> = help.lines().collect();
    let is_flag = |line: &&str| line.starts_with(' ') && line.trim_start().starts_with('-');
    let Some(last) = lines.iter().rposition(is_flag) else { return help.to_owned() };
    let goes_on = lines[last + 1..].iter().take_while(|line| line.starts_with("          ")).count();
    let mut out = lines[..=last + goes_on].join("\n");
    if lines.len() > last + goes_on + 1 {
        out.push_str("\n\nMore with --help: exit codes, examples, and what else there is to know.");
    }
    out + "\n"
}

fn usage_fault(error: &clap::Error, first: Option<&str>) -> Fault {
    let mut text = error.render().to_string();
    // A value may have lines, and is known as a whole only.
    for (_, value) in error.context() {
        if let ContextValue::String(value) = value {
            text = text.replace(value.as_str(), &escape(value));
        }
    }
    let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    let problem = lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned();
    // "To pass it as a value" is what hardly anybody wants who mistypes a flag.
    let tip = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("tip: "))
        .find(|tip| !tip.contains(" as a value"));
    let of_curl = first.filter(|first| *first == "http").and_then(|_| of_curl(error));
    let hint = cause_hint(error).or(of_curl).or_else(|| elsewhere(error, first)).or_else(|| tip.map(str::to_owned));
    Fault::new(problem).hint(hint.unwrap_or_else(|| help_of(first)))
}

/// What flags of curl's are called in `relent http`.
fn of_curl(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    crate::http::hints::for_curl(flag).map(str::to_owned)
}

/// What flags of other programs are called here.
fn elsewhere(error: &clap::Error, first: Option<&str>) -> Option<String> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let ours = match flag.trim_start_matches('-') {
        "s" | "strict" if first == Some("connect") => {
            return Some("the command runs only if the targets accept".into());
        }
        "invert-check" | "v" if first == Some("connect") => "--invert",
        "host" | "port" | "p" | "w" | "wait" if first == Some("connect") => "a target: host:port, without a flag",
        "connection-timeout" => "--attempt-timeout",
        "backoff-exponential-max-interval" => "--cap",
        "t" if first == Some("connect") => "--timeout (with a unit: 30s)",
        "max-time" | "m" | "deadline" => "--timeout (which ends everything then)",
        "per-try-timeout" | "per-attempt-timeout" => "--attempt-timeout",
        "kill-after" | "k" if first == Some("run") => "--grace",
        "retries" | "max-retries" | "tries" | "attempts" | "max-tries" | "retry" | "n" | "t" | "r" | "times" => {
            "--max-attempts (which counts the first attempt too)"
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
