//! `relent completions SHELL`: a completion script made from the table of flags.

use crate::talk::{Fault, write_out};
use clap::ValueEnum;
use clap_complete::{Shell, generate};
use std::process::ExitCode;

/// The flags of `relent completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The shell to complete in.
    #[arg(value_enum)]
    shell: Dialect,
}

const AFTER_HELP: &str = "\
Examples:
  source <(relent completions bash)
  relent completions zsh > ~/.zfunc/_relent
  relent completions fish > ~/.config/fish/completions/relent.fish";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dialect {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(args: &Args, table: &mut clap::Command) -> Result<ExitCode, Fault> {
    let shell = match args.shell {
        Dialect::Bash => Shell::Bash,
        Dialect::Zsh => Shell::Zsh,
        Dialect::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, table, "relent", &mut script);
    write_out(&script)?;
    Ok(ExitCode::SUCCESS)
}
