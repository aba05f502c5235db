//! A mutation run with cargo-mutants: does any test notice?

use crate::shell::{Outcome, cargo, has};

/// `mutants [FILE...]`. What changes nothing that can be seen is listed in `.cargo/mutants.toml`, with why.
pub(crate) fn mutants(files: &[&str]) -> Outcome {
    if !has("cargo-mutants") {
        eprintln!("note: installing cargo-mutants");
        cargo(&["install", "--locked", "cargo-mutants"])?;
    }
    let mut run = vec!["mutants", "--package", "relent", "--test-tool", "nextest", "--output", "target"];
    for file in files {
        run.extend(["--file", file]);
    }
    cargo(&run)
}
