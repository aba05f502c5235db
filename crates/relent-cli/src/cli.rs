//! The one table of subcommands and flags: parsing, `--help`, completions and the man page come from here.

use crate::{completions, connect, demo, explain, http, man, run, simulate, talk::Fault};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Makes calls that fail try again without hurting what they call.
#[derive(Debug, Parser)]
#[command(name = "relent", version, after_help = AFTER_HELP, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
  125  relent itself failed: wrong flags, an unreadable policy file
  else as the subcommand says";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command, again if it fails.
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
    /// Print a completion script for a shell.
    Completions(completions::Args),
    /// Print the manual page.
    Man(man::Args),
}

impl Command {
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
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => man::run(&args),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_table_is_sound() {
        Cli::command().debug_assert();
    }
}
