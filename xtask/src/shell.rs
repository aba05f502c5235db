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

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What a program prints.
pub(crate) fn output(program: &str, args: &[&str]) -> Result<String, String> {
    let program =
        if program == "cargo" { env::var("CARGO").unwrap_or_else(|_| program.into()) } else { program.into() };
    let output = Command::new(&program)
        .args(args)
        .current_dir(ROOT)
        .output()
        .map_err(|err| format!("cannot run {program}: {err}"))?;
    if !output.status.success() {
        return Err(format!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Cargo as rustup's: it understands `+TOOLCHAIN`, which the one that runs this does not.
pub(crate) fn rustup_cargo(args: &[&str]) -> Outcome {
    run_with(&[("RUSTUP_TOOLCHAIN", args[0].trim_start_matches('+'))], "cargo", &args[1..])
}

/// What rustup calls its toolchain of this version, which it is asked to install if it has none: a machine may have
/// `1.88.0` and know nothing of `1.88`.
pub(crate) fn toolchain(version: &str, more: &[&str]) -> Option<String> {
    let named = || {
        let installed = output("rustup", &["toolchain", "list"]).unwrap_or_default();
        let names = installed.lines().filter_map(|line| line.split_whitespace().next());
        let mut right = names.filter(|name| {
            name.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
        });
        right.next().map(str::to_owned)
    };
    named().or_else(|| {
        let install = ["toolchain", "install", version, "--profile", "minimal", "--no-self-update"];
        run("rustup", &[&install[..], more].concat()).ok()?;
        named()
    })
}

/// Whether the toolchain in use has the standard library of this target, or rustup can add it.
pub(crate) fn has_target(target: &str) -> bool {
    let installed = output("rustup", &["target", "list", "--installed"]).unwrap_or_default();
    installed.lines().any(|line| line.trim() == target) || run("rustup", &["target", "add", target]).is_ok()
}

/// The machine this runs on, as a target.
pub(crate) fn host() -> Result<String, String> {
    let version = output("rustc", &["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".into())
}

/// The version of a package of the workspace.
pub(crate) fn version_of(package: &str) -> Result<String, String> {
    let id = output("cargo", &["pkgid", "-p", package])?;
    Ok(id.trim().rsplit(['#', '@']).next().unwrap_or_default().to_owned())
}

/// A file of the repository.
pub(crate) fn read(file: &str) -> Result<String, String> {
    std::fs::read_to_string(Path::new(ROOT).join(file)).map_err(|err| format!("{file}: {err}"))
}

/// A folder of the repository, made if it is not there.
pub(crate) fn create_folder(folder: &str) -> Outcome {
    std::fs::create_dir_all(Path::new(ROOT).join(folder)).map_err(|err| format!("{folder}: {err}"))
}

/// A folder and all in it, if it is there.
pub(crate) fn remove_folder(folder: &str) -> Outcome {
    match std::fs::remove_dir_all(folder) {
        Err(bad) if bad.kind() != std::io::ErrorKind::NotFound => Err(format!("cannot remove {folder}: {bad}")),
        _ => Ok(()),
    }
}

fn run_with(env: &[(&str, &str)], program: &str, args: &[&str]) -> Outcome {
    let name = Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy());
    let line = format!("{name} {}", args.join(" "));
    eprintln!("$ {line}");
    let program = if program.contains('/') && !program.starts_with('/') {
        Path::new(ROOT).join(program).into_os_string()
    } else {
        program.into()
    };
    let status = Command::new(&program)
        .args(args)
        .envs(env.iter().copied())
        .current_dir(ROOT)
        .stdin(Stdio::null())
        .status()
        .map_err(|err| format!("cannot run {name}: {err}"))?;
    if status.success() { Ok(()) } else { Err(format!("{line}: {status}")) }
}
