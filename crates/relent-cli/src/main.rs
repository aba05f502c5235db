//! The binary `relent`: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    relent_cli::run(std::env::args_os())
}

ctor::declarative::ctor! {
    #[ctor(unsafe)]
    fn hold_standard_output() {
        relent_cli::output::hold();
    }
}
