//! `relent man`: the manual page, made from the table of flags.

use crate::{
    cli::Cli,
    talk::{Fault, write_out},
};
use clap::CommandFactory;
use clap_mangen::Man;
use std::{io, process::ExitCode};

/// The flags of `relent man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  relent man | man -l -\n  relent man run > relent-run.1")]
pub struct Args {
    /// The subcommand whose page to print; without, the page of relent itself.
    subcommand: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Fault> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let page = match &args.subcommand {
        None => root,
        Some(name) => root.find_subcommand(name).cloned().ok_or_else(|| no_page(&root, name))?,
    };
    let page = page.display_name(match &args.subcommand {
        None => "relent".to_owned(),
        Some(name) => format!("relent-{name}"),
    });
    let mut text = Vec::new();
    render(&page, &mut text).map_err(|error| Fault::new(format!("cannot write the manual page: {error}")))?;
    write_out(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn render(page: &clap::Command, text: &mut Vec<u8>) -> io::Result<()> {
    Man::new(page.clone()).render(text)
}

fn no_page(root: &clap::Command, name: &str) -> Fault {
    let names: Vec<&str> = root.get_subcommands().map(clap::Command::get_name).collect();
    Fault::new(format!("there is no subcommand {name:?}")).hint(format!("there are {}", names.join(", ")))
}
