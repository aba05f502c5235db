//! Every chore of the project in one place: `cargo xtask help`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks")]

mod checks;
mod faults;
mod fuzz;
mod house;
mod licences;
mod models;
mod mutants;
mod needs;
mod package;
mod public;
mod shell;

use shell::{Outcome, cargo, has};
use std::{num::NonZero, process::ExitCode};

const HELP: &str = "\
cargo xtask COMMAND

  test [--without NAME]... [TEST...]
                  all tests; installs what they need (nginx, chromium, redis, postgres) and says so; what is left out is
                  counted as skipped
  ci [--without NAME]...
                  what CI runs: checks, then the tests. NAME is one of those of `test` and `check`
  check [--without NAME]...
                  format, public, house, lints, docs, features, targets, msrv, apart, licences, deny, package, loom, fuzz; says
                  what was skipped, and why
  bench [...]     the benchmark against other libraries: --quick, --json
  bench sim [...] the simulator's, against other simulators: --quick, --simpy, --machines, --json
  loopback        a thousand real clients on loopback against the simulator, in 20 seconds
  herd            two thousand real clients that come at once, by what they do when they are refused, and curl's
  soak [--seconds N] [--seed N]
                  a server at full speed with faults injected: memory stays flat, all places come back; 60 seconds
                  unless told otherwise
  faults [--kills N | --once] [--engine sqlite|redis|postgres] [--seed N]
                  processes killed and stopped while they work on a store, over all engines: 1,000 kills unless told
                  otherwise; what was accepted is there, and workers that do it wrong are caught. --once: 100,000 calls
                  over 1,000 keys by eight processes, and again while 24 are killed; each effect happens once
  vectors [DIR]   other systems' golden numbers against our profiles, from another folder if given
  fuzz [TARGET] [--seconds N]
                  fuzzing, 60 seconds a target unless told otherwise
  loom [--long] [MODEL...]
                  the models of what threads share, in every order of their steps; --long without a bound
  mutants [FILE...]
                  breaks the library in every way that is known, and tells which way no test noticed: hours, or minutes
                  for a file
  package         builds each crate from its package, and tests the library there
  tidy            formats and mends what the lints can mend
";

/// Real clients, in three shapes, against the simulator.
const LOOPBACK: &[&str] = &[
    "storm",
    "--clients",
    "1000",
    "--capacity",
    "250",
    "--queue",
    "250",
    "--limit",
    "9s",
    "--compare",
    "base=100ms,cap=2s,max_attempts=unlimited,jitter=none",
    "--compare",
    "base=100ms,cap=2s,max_attempts=unlimited,jitter=full",
    "--compare",
    "curve=constant,base=300ms,max_attempts=unlimited,jitter=none",
    "--agree",
    "0.1",
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["test", rest @ ..] => test(rest),
        ["ci", rest @ ..] => ci(rest),
        ["check", rest @ ..] => check(rest),
        ["bench", rest @ ..] => bench(rest),
        ["herd"] => example("herd", &[]),
        ["soak", rest @ ..] => example("soak", rest),
        ["loopback"] => cargo(&[&["run", "--locked", "-q", "-p", "relent-cli", "--"], LOOPBACK].concat()),
        ["faults", rest @ ..] => faults::faults(rest),
        ["vectors", rest @ ..] => vectors(rest),
        ["fuzz", rest @ ..] => fuzz::fuzz(rest),
        ["loom", rest @ ..] => models::loom(rest),
        ["mutants", files @ ..] => mutants::mutants(files),
        ["package"] => package::package(),
        ["tidy"] => checks::tidy(),
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

/// Checks, then tests, so that the summary of the test runner comes last; before it what was skipped.
fn ci(args: &[&str]) -> Outcome {
    let (without, rest) = checks::without(args, &checks::all_names())?;
    if let [unknown, ..] = rest.as_slice() {
        return Err(format!("ci takes nothing but --without NAME, not '{unknown}'"));
    }
    let (checks_without, tests_without): (Vec<&str>, Vec<&str>) =
        without.iter().partition(|name| checks::names().any(|check| check == **name));
    let skipped = checks::check(&checks_without)?;
    run_tests(&tests_without, &[], &skipped)
}

fn check(args: &[&str]) -> Outcome {
    let known: Vec<&str> = checks::names().collect();
    let (without, rest) = checks::without(args, &known)?;
    if let [unknown, ..] = rest.as_slice() {
        return Err(format!("check takes nothing but --without NAME, not '{unknown}'"));
    }
    checks::tell(&checks::check(&without)?);
    Ok(())
}

fn test(args: &[&str]) -> Outcome {
    let known: Vec<&str> = needs::names().collect();
    let (without, filter) = checks::without(args, &known)?;
    run_tests(&without, &filter, &[])
}

/// Doc tests first, so that the summary of the test runner comes last.
fn run_tests(without: &[&str], filter: &[&str], skipped: &[String]) -> Outcome {
    needs::install(without)?;
    // One name for the seed of every random test; proptest's own tests know it by another.
    let seed = std::env::var("RELENT_SEED").unwrap_or_default();
    let mut env = Vec::new();
    if !seed.is_empty() {
        env.push(("PROPTEST_RNG_SEED", seed.as_str()));
    }
    // Most tests of the program wait for a clock or a process: as many again run meanwhile.
    let at_once = (2 * std::thread::available_parallelism().map_or(1, NonZero::get)).to_string();
    if std::env::var_os("NEXTEST_TEST_THREADS").is_none() {
        env.push(("NEXTEST_TEST_THREADS", &at_once));
    }
    if filter.is_empty() {
        shell::cargo_with(&env, &["test", "--locked", "--workspace", "--doc"])?;
    }
    if !skipped.is_empty() {
        checks::tell(skipped);
    }
    let has_nextest = has("cargo-nextest");
    let runner: &[&str] = if has_nextest {
        &["nextest", "run", "--no-fail-fast"]
    } else {
        &["test", "--no-fail-fast", "--lib", "--bins", "--tests"]
    };
    let skip = needs::skip(without, has_nextest);
    let skip: Vec<&str> = skip.iter().map(String::as_str).collect();
    shell::cargo_with(&env, &[runner, &["--locked", "--workspace"], filter, &skip].concat())
}

fn bench(args: &[&str]) -> Outcome {
    let (manifest, args) = match args {
        ["sim" | "--sim", rest @ ..] => ("crates/relent-bench/sim/Cargo.toml", rest),
        _ => ("crates/relent-bench/Cargo.toml", args),
    };
    cargo(&[&["run", "--release", "--manifest-path", manifest, "--"], args].concat())
}

/// With real clients and servers.
fn example(name: &str, args: &[&str]) -> Outcome {
    let run = ["run", "--locked", "--profile", "servers", "-q", "-p", "relent-wire-tests", "--example", name, "--"];
    cargo(&[&run[..], args].concat())
}

fn vectors(args: &[&str]) -> Outcome {
    let folder = args.first().map_or_else(|| "vectors".into(), ToString::to_string);
    let folder = std::fs::canonicalize(&folder).map_err(|err| format!("cannot open the folder {folder}: {err}"))?;
    let folder = folder.to_string_lossy();
    let test = ["test", "--locked", "-p", "relent", "--test", "vectors", "--", "--nocapture"];
    shell::cargo_with(&[("RELENT_VECTORS", &folder)], &test)
}
