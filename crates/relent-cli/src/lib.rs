//! The command line `relent`, as a library that tests can call.
//!
//! One file or folder a subcommand. They share the policy flags ([`policy_args`]), the voice ([`talk`]) and the JSON
//! writer ([`json`]); what others wrote is printed by way of [`escape`] and [`redact`]; the flags, `--help`, the completions and the man page all come from one table, [`cli`].

mod access;
mod arrived;
mod at_once;
mod breaks;
mod brief;
pub mod cli;
mod completions;
pub mod connect;
mod demo;
mod descriptors;
mod dress;
mod dumps;
mod ear;
pub mod escape;
pub mod explain;
mod found_limits;
#[doc(hidden)]
pub mod fuzzed;
mod guard;
mod http;
mod ignored;
mod inherited;
pub mod json;
mod links;
mod loopback;
mod man;
pub mod outer;
pub mod output;
pub mod plot;
pub mod policy_args;
mod policy_file;
mod program;
mod promises;
mod protection_args;
pub mod redact;
pub mod regular;
pub mod report;
mod retried;
mod run;
mod runtime;
pub mod screen;
pub mod simulate;
pub mod size;
mod slack;
mod stderr;
mod store;
pub mod storm;
mod system_text;
pub mod talk;
mod tls_words;
mod topic;
mod trust;
pub mod typed;
mod upstream;
mod upstream_args;
mod waits;
mod whole_file;

use nix::sys::signal::Signal;
use std::{env, ffi::OsString, path::Path, process::ExitCode};

/// Runs the command line `args`, the program's name first, and says what to exit with.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args: Vec<OsString> = args.into_iter().collect();
    // Whatever whoever started it has called it: a help begins with that.
    if let Some(name) = args.first_mut() {
        *name = "relent".into();
    }
    ignored::hear_all();
    slack::be_punctual();
    // Empty is as none: what is temporary would stand in the working folder.
    if env::var_os("TMPDIR").is_some_and(|folder| folder.is_empty()) {
        let _ = tempfile::env::override_temp_dir(Path::new("/tmp"));
    }
    // `run` sees to it itself.
    if args.get(1).is_none_or(|word| word != "run") && !ignored::Ignored::now().has(Signal::SIGXFSZ) {
        ignored::outlive_limits_of_files();
    }
    if args.get(1).is_some_and(|word| word == run::WATCHMAN) {
        let word = |at: usize| args.get(at).and_then(|word| word.to_str());
        return run::watch(word(2), word(3));
    }
    let outcome = match (cli::Command::topic(&args), cli::Command::parse(&args)) {
        (Some(text), _) => talk::write_out(text.as_bytes()).map(|()| ExitCode::SUCCESS),
        (None, Ok(command)) => command.run(),
        (None, Err(error)) => cli::usage::tell(&error, &args),
    };
    let outcome = match outcome {
        Ok(code) if code == ExitCode::SUCCESS => {
            output::has_arrived().map(|()| code).map_err(|error| talk::unwritten(&error))
        }
        ended => ended,
    };
    outcome.unwrap_or_else(|fault| fault.tell())
}
