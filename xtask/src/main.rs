//! Every chore of the project in one place: `cargo xtask help`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks")]

mod fuzz;
mod models;
mod needs;
mod shell;

use shell::{Outcome, cargo, has, run};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test [--without nginx] [--without chromium] [TEST...]
                  all tests; installs what they need and says so
  ci              what CI runs: checks, then the tests
  check           formatting, lints, docs, features, no_std, licences
  bench [...]     the benchmark against other libraries: --quick, --json
  bench sim [...] the simulator's, against other simulators: --quick, --simpy, --json
  loopback        a thousand real clients on loopback against the simulator, in 20 seconds
  vectors [DIR]   other systems' golden numbers against our profiles, from another folder if given
  fuzz [TARGET] [--seconds N]
                  fuzzing, 60 seconds a target unless told otherwise
  loom [--long] [MODEL...]
                  the models of what threads share, in every order of their steps; --long without a bound
  tidy            formats and mends what the lints can mend
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["test", rest @ ..] => test(rest),
        ["ci"] => check().and_then(|()| test(&[])),
        ["check"] => check(),
        ["bench", rest @ ..] => bench(rest),
        ["loopback"] => cargo(&["run", "--locked", "-q", "-p", "relent-sim", "--example", "loopback"]),
        ["vectors", rest @ ..] => vectors(rest),
        ["fuzz", rest @ ..] => fuzz::fuzz(rest),
        ["loom", rest @ ..] => models::loom(rest),
        ["tidy"] => tidy(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        [unknown, ..] => Err(format!("unknown command '{unknown}'\nhint: cargo xtask help")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Doc tests first, so that the summary of the test runner comes last.
fn test(args: &[&str]) -> Outcome {
    let (without, filter) = needs::without(args)?;
    let without = without.join(",");
    needs::install(&without)?;
    // One name for the seed of every random test; proptest's own tests know it by another.
    let seed = std::env::var("RELENT_SEED").unwrap_or_default();
    let mut env = vec![("RELENT_WITHOUT", without.as_str())];
    if !seed.is_empty() {
        env.push(("PROPTEST_RNG_SEED", seed.as_str()));
    }
    if filter.is_empty() {
        shell::cargo_with(&env, &["test", "--locked", "--workspace", "--doc"])?;
    }
    let runner: &[&str] = if has("cargo-nextest") {
        &["nextest", "run", "--no-fail-fast"]
    } else {
        &["test", "--no-fail-fast", "--lib", "--bins", "--tests"]
    };
    let all = [runner, &["--locked", "--workspace"], filter.as_slice()].concat();
    shell::cargo_with(&env, &all)
}

fn check() -> Outcome {
    cargo(&["fmt", "--all", "--check"])?;
    // The core builds without `std`, which is the proof that it touches no clock, thread or socket.
    for features in ["", "std", "tokio", "toml", "http", "stream"] {
        let features = ["clippy", "--locked", "-p", "relent", "--no-default-features", "--features", features];
        cargo(&[&features[..], &["--", "-D", "warnings"]].concat())?;
    }
    cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    let docs = ["doc", "--locked", "--workspace", "--lib", "--no-deps"];
    shell::cargo_with(&[("RUSTDOCFLAGS", "-D warnings")], &docs)?;
    // Workspaces of their own, so that what they are compared with stays out of this one.
    let mut apart = vec!["crates/relent-bench/Cargo.toml", "crates/relent-bench/sim/Cargo.toml"];
    if has("c++") {
        apart.push("fuzz/Cargo.toml");
    } else {
        eprintln!("note: there is no C++ compiler, which the fuzz targets need; they were not checked");
    }
    for manifest in apart {
        cargo(&["clippy", "--locked", "--manifest-path", manifest, "--all-targets", "--", "-D", "warnings"])?;
    }
    if has("cargo-deny") {
        // Advisories are news, not a property of the commit: `cargo deny check` asks for them.
        cargo(&["deny", "check", "bans", "licenses", "sources"])?;
    } else {
        eprintln!("note: cargo-deny is not installed; licences and sources were not checked");
    }
    Ok(())
}

fn bench(args: &[&str]) -> Outcome {
    let (manifest, args) = match args {
        ["sim" | "--sim", rest @ ..] => ("crates/relent-bench/sim/Cargo.toml", rest),
        _ => ("crates/relent-bench/Cargo.toml", args),
    };
    cargo(&[&["run", "--release", "--manifest-path", manifest, "--"], args].concat())
}

fn vectors(args: &[&str]) -> Outcome {
    let folder = args.first().map_or_else(|| "vectors".into(), ToString::to_string);
    let folder = std::fs::canonicalize(&folder).map_err(|err| format!("cannot open the folder {folder}: {err}"))?;
    let folder = folder.to_string_lossy();
    let test = ["test", "--locked", "-p", "relent", "--test", "vectors", "--", "--nocapture"];
    shell::cargo_with(&[("RELENT_VECTORS", &folder)], &test)
}

fn tidy() -> Outcome {
    cargo(&["clippy", "--workspace", "--all-targets", "--fix", "--allow-dirty", "--allow-staged"])?;
    cargo(&["fmt", "--all"])?;
    run("git", &["status", "--short"])
}
