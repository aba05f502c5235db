//! `relent man`: the manual page, made from the table of flags.

use crate::talk::{Fault, write_out};
use clap_mangen::Man;
use std::{io, process::ExitCode};

/// The flags of `relent man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  relent man | man -l -\n  relent man run > relent-run.1")]
pub struct Args {
    /// The subcommand whose page to print; without, the page of relent itself.
    subcommand: Option<String>,
}

pub(crate) fn run(args: &Args, table: clap::Command) -> Result<ExitCode, Fault> {
    let mut root = table.disable_help_subcommand(true);
    root.build();
    let page = match &args.subcommand {
        None => root,
        Some(name) => root.find_subcommand(name).cloned().ok_or_else(|| no_page(&root, name))?,
    };
    let name = args.subcommand.as_ref().map_or("relent".to_owned(), |name| format!("relent-{name}"));
    // The page has room for what the help leaves out.
    let page = page.display_name(&name).mut_args(|arg| arg.hide(false));
    let mut text = Vec::new();
    render(&page, &name, &mut text).map_err(|error| Fault::new(format!("cannot write the manual page: {error}")))?;
    write_out(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn render(page: &clap::Command, name: &str, text: &mut Vec<u8>) -> io::Result<()> {
    let source = concat!("relent ", env!("CARGO_PKG_VERSION"));
    Man::new(page.clone()).title(name).source(source).manual("relent").render(text)
}

fn no_page(root: &clap::Command, name: &str) -> Fault {
    let names: Vec<&str> = root.get_subcommands().map(clap::Command::get_name).collect();
    Fault::new(format!("there is no subcommand {name:?}")).hint(format!("there are {}", names.join(", ")))
}
