//! Running other programs.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

/// Nothing, or what to tell the user.
pub(crate) type Outcome = Result<(), String>;

/// Runs a program in the project's root and shows what it is.
pub(crate) fn run(program: &str, args: &[&str]) -> Outcome {
    run_with(&[], program, args)
}

/// Runs cargo.
pub(crate) fn cargo(args: &[&str]) -> Outcome {
    cargo_with(&[], args)
}

/// Runs cargo with these environment variables.
pub(crate) fn cargo_with(env: &[(&str, &str)], args: &[&str]) -> Outcome {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    run_with(env, &cargo, args)
}

/// Whether a program is on the path.
pub(crate) fn has(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn run_with(env: &[(&str, &str)], program: &str, args: &[&str]) -> Outcome {
    let name = Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy());
    let line = format!("{name} {}", args.join(" "));
    eprintln!("$ {line}");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let status = Command::new(program)
        .args(args)
        .envs(env.iter().copied())
        .current_dir(root)
        .stdin(Stdio::null())
        .status()
        .map_err(|err| format!("cannot run {name}: {err}"))?;
    if status.success() { Ok(()) } else { Err(format!("{line}: {status}")) }
}
