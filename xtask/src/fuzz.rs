//! Fuzzing with libFuzzer, on the stable toolchain: a build with its coverage, run from a corpus that is kept.

use crate::shell::{self, Outcome, cargo_with, run};

/// The targets of `fuzz/`.
const TARGETS: &[&str] =
    &["call", "command_line", "duration", "http_answer", "machines", "policy_text", "protect", "scenario", "wire"];

/// Inputs that reached something new, for the next time.
const FOUND: &str = "fuzz/target/found";

/// What a compiler is told so that libFuzzer sees which way a run went. The address sanitizer would need a nightly
/// standard library, and finds little in safe code.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                        -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
                        --cfg fuzzing -Clink-dead-code -Cdebug-assertions -Coverflow-checks";

/// How long a target is fuzzed.
enum Limit<'a> {
    Seconds(&'a str),
    /// So many inputs, made up from one seed: the same ones for the same program.
    Inputs(&'a str),
}

/// `fuzz [TARGET] [--seconds N]`.
pub(crate) fn fuzz(args: &[&str]) -> Outcome {
    let (targets, seconds) = match args {
        [] => (TARGETS, "60"),
        ["--seconds", seconds] => (TARGETS, *seconds),
        [target] if TARGETS.contains(target) => (&args[..1], "60"),
        [target, "--seconds", seconds] if TARGETS.contains(target) => (&args[..1], *seconds),
        _ => return Err(format!("fuzz takes a target ({}) and --seconds N", TARGETS.join(", "))),
    };
    from_corpus(targets, &Limit::Seconds(seconds))
}

/// What was kept, and some thousand inputs more, which do not depend on how quick or how lucky the machine is.
pub(crate) fn briefly() -> Outcome {
    shell::remove_folder(FOUND)?;
    from_corpus(TARGETS, &Limit::Inputs("20000"))
}

fn from_corpus(targets: &[&str], limit: &Limit) -> Outcome {
    // A target is named so that the flags are not for build scripts.
    let host = shell::host()?;
    let build = ["build", "--locked", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host];
    cargo_with(&[("RUSTFLAGS", COVERAGE)], &build)?;
    let limit = match limit {
        Limit::Seconds(seconds) => [format!("-max_total_time={seconds}"), "-seed=0".into()],
        Limit::Inputs(inputs) => [format!("-runs={inputs}"), "-seed=1".into()],
    };
    for target in targets {
        // New inputs go into the first folder, which is not in git; `corpus` is what is kept.
        let (found, kept) = (format!("{FOUND}/{target}"), format!("fuzz/corpus/{target}"));
        let artifacts = format!("fuzz/artifacts/{target}/");
        for folder in [&found, &kept, &artifacts] {
            shell::create_folder(folder)?;
        }
        let program = format!("fuzz/target/{host}/release/{target}");
        let prefix = format!("-artifact_prefix={artifacts}");
        let [limit, seed] = &limit;
        run(&program, &[limit, seed, &prefix, "-timeout=10", "-verbosity=0", "-print_final_stats=1", &found, &kept])?;
    }
    Ok(())
}
