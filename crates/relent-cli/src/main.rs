//! The binary `relent`: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    relent_cli::run(std::env::args_os())
}
