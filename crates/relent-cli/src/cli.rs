//! The one table of subcommands and flags: parsing, `--help`, completions and the man page come from here.
//!
//! It knows the commands, and no command knows it: those that print the table are given it.

pub(crate) mod usage;

use crate::{
    completions, connect, demo, explain, http, man, policy_args, run, simulate, store, storm, talk::Fault, upstream,
    upstream_args,
};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::{ffi::OsString, process::ExitCode};

/// Makes calls that fail try again without hurting what they call.
#[derive(Debug, Parser)]
#[command(name = "relent", version, after_help = AFTER_HELP, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
relent help policy tells the flags that say when to try again and when to stop,
relent help upstream those that protect what is called, relent help lease those that run a command
on one machine of many.

Exit codes:
  125  relent itself failed: wrong flags, an unreadable policy file
  else as the subcommand says";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command, and again if it fails, until it succeeds or the policy gives up.
    Run(Box<run::Args>),
    /// Wait until something accepts connections, then run a command.
    Connect(Box<connect::Args>),
    /// Show what relent does, in ten seconds and without a network.
    Demo(demo::Args),
    /// Show what a policy will do.
    Explain(Box<explain::Args>),
    /// Make an HTTP request.
    Http(Box<http::Args>),
    /// Simulate what a policy does to a server when many use it.
    Simulate(Box<simulate::Args>),
    /// Let real clients storm a server on loopback, beside the same storm simulated.
    Storm(Box<storm::Args>),
    /// Say what a store promises, and what is in it.
    Store(store::Args),
    /// Show what all processes know of what they call, and hold its breaker by hand.
    Upstream(Box<upstream::Args>),
    /// Print a completion script for a shell.
    Completions(completions::Args),
    /// Print the manual page.
    Man(man::Args),
}

impl Command {
    /// The help that is not about a subcommand, if that is what is asked for: `relent help policy`.
    pub fn topic(args: &[OsString]) -> Option<String> {
        match args {
            [_, help, policy] if help == "help" && policy == "policy" => Some(policy_args::help()),
            [_, help, upstream] if help == "help" && upstream == "upstream" => Some(upstream_args::help()),
            [_, help, lease] if help == "help" && lease == "lease" => Some(run::help_of_lease()),
            _ => None,
        }
    }

    /// What a command line says.
    ///
    /// A correct `relent run` is read by the flags of `run` alone, and one without flags by none: building those of all
    /// subcommands would take longer than all else that it does before its command starts. Everything else, and every
    /// mistake, is read by the whole table.
    ///
    /// # Errors
    ///
    /// The command line is wrong, or asks for help.
    pub fn parse(args: &[OsString]) -> Result<Command, clap::Error> {
        match args {
            [_, run, dashes, command @ ..] if run == "run" && dashes == "--" => {
                Ok(Command::Run(Box::new(run::Args::without_flags(command))))
            }
            [_, run, ..] if run == "run" => {
                run_alone(&args[1..]).or_else(|_| Cli::try_parse_from(args).map(|cli| cli.command))
            }
            _ => Cli::try_parse_from(args).map(|cli| cli.command),
        }
    }

    /// Does what the subcommand says.
    ///
    /// # Errors
    ///
    /// What went wrong in `relent` itself.
    pub fn run(self) -> Result<ExitCode, Fault> {
        match self {
            Command::Run(args) => Ok(run::run(&args)),
            Command::Connect(args) => Ok(connect::run(&args)),
            Command::Demo(_) => demo::run(),
            Command::Explain(args) => Ok(explain::run(&args)),
            Command::Http(args) => http::run(&args),
            Command::Simulate(args) => simulate::run(&args),
            Command::Storm(args) => storm::run(&args),
            Command::Store(args) => Ok(store::run(&args)),
            Command::Upstream(args) => Ok(upstream::run(&args)),
            Command::Completions(args) => completions::run(&args, &mut Cli::command()),
            Command::Man(args) => man::run(&args, Cli::command()),
        }
    }
}

fn run_alone(args: &[OsString]) -> Result<Command, clap::Error> {
    let flags = run::Args::augment_args(clap::Command::new("run"));
    let matches = flags.try_get_matches_from(args)?;
    run::Args::from_arg_matches(&matches).map(|args| Command::Run(Box::new(args)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_short_ways_read_what_the_table_reads() {
        for text in [
            "relent run -- true",
            "relent run -- sh -c x --base -- -v",
            "relent run --",
            "relent run",
            "relent run --base 1s --stop-on-exit 1,3-5 -v sh -c x --base",
            "relent run --grace 3s --json --retry-on-output a.b --consecutive 3 -- a -- b",
        ] {
            let whole = Cli::try_parse_from(line(text)).expect(text).command;
            let short = Command::parse(&line(text)).expect(text);
            assert_eq!(format!("{short:?}"), format!("{whole:?}"), "{text}");
            let alone = run_alone(&line(text)[1..]).expect(text);
            assert_eq!(format!("{alone:?}"), format!("{whole:?}"), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_wrong_by_the_short_ways_too() {
        for text in ["relent run --bse 1s -- true", "relent run --help", "relent run --base 1 x"] {
            assert!(run_alone(&line(text)[1..]).is_err(), "{text}");
            assert!(Command::parse(&line(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn the_table_is_sound() {
        Cli::command().debug_assert();
    }
}
