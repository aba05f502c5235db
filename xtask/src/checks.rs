//! What is checked besides the tests. What cannot be checked on this machine is skipped, and counted aloud.

use crate::{
    fuzz, house, licences, models, needs, package, public,
    shell::{self, Outcome, cargo, cargo_with, has, run},
};

/// What became of a check that was tried.
enum Done {
    Yes,
    /// Why not.
    Skipped(String),
}

type Check = (&'static str, fn() -> Result<Done, String>);

/// What may be left out by name.
const CHECKS: &[Check] = &[
    ("format", format),
    ("public", public_items),
    ("house", rooms),
    ("lints", lints),
    ("docs", docs),
    ("features", features),
    ("targets", targets),
    ("msrv", msrv),
    ("apart", apart),
    ("licences", licences),
    ("deny", deny),
    ("package", package),
    ("loom", loom),
    ("fuzz", short_fuzz),
];

/// Targets that have no `std`, no threads, or other sockets.
const TARGETS: &[(&str, &[&str])] = &[
    ("thumbv6m-none-eabi", &["--no-default-features"]),
    ("wasm32-unknown-unknown", &["--features", "tokio,stream,toml,http"]),
    ("x86_64-pc-windows-gnu", &["--features", "net,stream,toml,http"]),
];

/// The toolchain whose lints count, so that a new one does not break old commits.
const PINNED: &str = "1.95.0";

/// The names that `--without` takes.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|(name, _)| *name)
}

/// All checks but those left out; what was skipped, for the end.
pub(crate) fn check(without: &[&str]) -> Result<Vec<String>, String> {
    let mut skipped = Vec::new();
    for (name, check) in CHECKS {
        if without.contains(name) {
            skipped.push(format!("{name}: left out by --without"));
            continue;
        }
        eprintln!("== {name}");
        if let Done::Skipped(why) = check()? {
            eprintln!("SKIPPED {name}: {why}");
            skipped.push(format!("{name}: {why}"));
        }
    }
    Ok(skipped)
}

/// Says what was not checked.
pub(crate) fn tell(skipped: &[String]) {
    eprintln!("== checks: {} of {} skipped", skipped.len(), CHECKS.len());
    for line in skipped {
        eprintln!("   SKIPPED {line}");
    }
}

fn format() -> Result<Done, String> {
    cargo(&["fmt", "--all", "--check"]).map(|()| Done::Yes)
}

/// Examples and names of what the library shows.
fn public_items() -> Result<Done, String> {
    public::check().map(|()| Done::Yes)
}

/// Files that use each other.
fn rooms() -> Result<Done, String> {
    house::check().map(|()| Done::Yes)
}

/// With the pinned toolchain if it is here: another may know other lints.
fn lints() -> Result<Done, String> {
    let here = shell::output("rustc", &["--version"]).unwrap_or_default();
    let is_pinned = here.contains(PINNED);
    let toolchain = format!("+{PINNED}");
    let lint = |args: &[&str]| {
        let clippy = [&["clippy", "--locked"], args, &["--", "-D", "warnings"]].concat();
        if is_pinned { cargo(&clippy) } else { shell::rustup_cargo(&[&[toolchain.as_str()], &clippy[..]].concat()) }
    };
    if !is_pinned && shell::toolchain(PINNED, &["--component", "clippy"]).is_none() {
        return Ok(Done::Skipped(format!(
            "clippy is pinned to Rust {PINNED}, which is not to be had; this is {}",
            here.trim()
        )));
    }
    // The core builds without `std`, which is the proof that it touches no clock, thread or socket.
    for features in FEATURES {
        lint(&["-p", "relent", "--no-default-features", "--features", features])?;
    }
    // Each engine alone, and none; `relent-store`'s tests turn all on.
    for features in ["", "sqlite", "redis", "postgres", "tower"] {
        lint(&["-p", "relent-store", "--no-default-features", "--features", features])?;
    }
    lint(&["--workspace", "--all-targets"])?;
    Ok(Done::Yes)
}

fn docs() -> Result<Done, String> {
    let strict = [("RUSTDOCFLAGS", "-D warnings")];
    cargo_with(&strict, &["doc", "--locked", "--workspace", "--lib", "--no-deps"])?;
    cargo_with(&strict, &["doc", "--locked", "-p", "relent", "--no-deps", "--no-default-features"])?;
    Ok(Done::Yes)
}

/// Each alone; the first is none.
const FEATURES: &[&str] = &[
    "", "std", "tokio", "net", "toml", "http", "stream", "tower", "hyper", "reqwest", "moka", "metrics", "tracing",
    "ws",
];

/// The tests of `relent` turn all features on. Those of `relent-alone` are run with each alone.
fn features() -> Result<Done, String> {
    for features in FEATURES {
        let test = ["test", "--locked", "-q", "-p", "relent-alone", "--tests", "--no-default-features"];
        // Not optimised, as the other tests are: these do little, and relent is built for each.
        let quick = ["--config", "profile.dev.package.relent.opt-level=0", "--features", features];
        cargo(&[&test[..], &quick].concat())?;
    }
    Ok(Done::Yes)
}

fn targets() -> Result<Done, String> {
    let mut missing = Vec::new();
    for (target, features) in TARGETS {
        if shell::has_target(target) {
            let target_dir = ["check", "--locked", "-p", "relent", "--target", target];
            cargo(&[&target_dir[..], features].concat())?;
        } else {
            missing.push(*target);
        }
    }
    Ok(match missing.as_slice() {
        [] => Done::Yes,
        _ => Done::Skipped(format!("rustup has not, and cannot add: {}", missing.join(", "))),
    })
}

fn msrv() -> Result<Done, String> {
    let declared = declared_msrv()?;
    let Some(toolchain) = shell::toolchain(&declared, &[]) else {
        return Ok(Done::Skipped(format!("Rust {declared} is not here, and rustup cannot add it")));
    };
    let toolchain = format!("+{toolchain}");
    let check = ["check", "--locked", "-p", "relent", "-p", "relent-sim", "--target-dir", "target/msrv"];
    shell::rustup_cargo(&[&[toolchain.as_str()], &check[..]].concat())?;
    Ok(Done::Yes)
}

fn declared_msrv() -> Result<String, String> {
    let manifest = shell::read("Cargo.toml")?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    line.map(|version| version.trim_matches('"').to_owned()).ok_or_else(|| "Cargo.toml declares no rust-version".into())
}

/// Workspaces of their own, so that what they are compared with stays out of this one.
fn apart() -> Result<Done, String> {
    for manifest in ["crates/relent-bench/Cargo.toml", "crates/relent-bench/sim/Cargo.toml"] {
        // In the target folder of the others, because most of what they depend on is there already.
        let clippy = ["clippy", "--locked", "--manifest-path", manifest, "--target-dir", "target", "--all-targets"];
        cargo(&[&clippy[..], &["--", "-D", "warnings"]].concat())?;
    }
    Ok(Done::Yes)
}

fn licences() -> Result<Done, String> {
    licences::check().map(|()| Done::Yes)
}

/// Bans and duplicates. Advisories are news, not a property of the commit: `cargo deny check` asks for them.
fn deny() -> Result<Done, String> {
    if !has("cargo-deny") {
        let why = "cargo-deny is not installed and builds for minutes: cargo install --locked cargo-deny. Licences and \
                   sources were checked without it";
        return Ok(Done::Skipped(why.into()));
    }
    cargo(&["deny", "check", "bans", "licenses", "sources"]).map(|()| Done::Yes)
}

fn package() -> Result<Done, String> {
    package::check().map(|()| Done::Yes)
}

fn loom() -> Result<Done, String> {
    models::loom(&[]).map(|()| Done::Yes)
}

fn short_fuzz() -> Result<Done, String> {
    if !has("c++") {
        return Ok(Done::Skipped("there is no C++ compiler, which libFuzzer needs".into()));
    }
    fuzz::briefly().map(|()| Done::Yes)
}

/// Formats and mends what the lints can mend.
pub(crate) fn tidy() -> Outcome {
    cargo(&["clippy", "--workspace", "--all-targets", "--fix", "--allow-dirty", "--allow-staged"])?;
    cargo(&["fmt", "--all"])?;
    run("git", &["status", "--short"])
}

/// Takes `--without NAME` out of the arguments: what is to be left out, and the rest.
pub(crate) fn without<'a>(args: &[&'a str], known: &[&str]) -> Result<(Vec<&'a str>, Vec<&'a str>), String> {
    let (mut without, mut rest) = (vec![], vec![]);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if *arg != "--without" {
            rest.push(*arg);
            continue;
        }
        let name = args.next().copied().unwrap_or_default();
        if !known.contains(&name) {
            return Err(format!("--without takes one of: {}", known.join(", ")));
        }
        without.push(name);
    }
    Ok((without, rest))
}

/// Everything that `ci` can do without.
pub(crate) fn all_names() -> Vec<&'static str> {
    needs::names().chain(names()).collect()
}
