//! Fuzzing, with libFuzzer through cargo-fuzz.

use crate::shell::{Outcome, cargo, cargo_with, has};

/// The targets of `fuzz/`.
const TARGETS: &[&str] = &["call", "duration", "machines", "policy_text", "protect", "wire"];

/// `fuzz [TARGET] [--seconds N]`.
pub(crate) fn fuzz(args: &[&str]) -> Outcome {
    let (targets, seconds) = match args {
        [] => (TARGETS, "60"),
        ["--seconds", seconds] => (TARGETS, *seconds),
        [target] if TARGETS.contains(target) => (&args[..1], "60"),
        [target, "--seconds", seconds] if TARGETS.contains(target) => (&args[..1], *seconds),
        _ => return Err(format!("fuzz takes a target ({}) and --seconds N", TARGETS.join(", "))),
    };
    if !has("cargo-fuzz") {
        eprintln!("note: installing cargo-fuzz");
        cargo(&["install", "--locked", "cargo-fuzz"])?;
    }
    let time = format!("-max_total_time={seconds}");
    for target in targets {
        // The coverage flags are unstable ones; the targets themselves are stable Rust. The address sanitizer needs a
        // nightly standard library and finds little in safe code.
        let run = ["fuzz", "run", "--sanitizer", "none", target, "--", &time];
        cargo_with(&[("RUSTC_BOOTSTRAP", "1")], &run)?;
    }
    Ok(())
}
