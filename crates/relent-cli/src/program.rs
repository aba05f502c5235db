//! The program that a command line names: found, and started as `env` and `timeout` start theirs, so that a script
//! without `#!` is run by the shell; and what is said when it cannot be.

use crate::{
    regular,
    talk::{hint, plain},
};
use nix::{
    libc::{E2BIG, EMFILE, ENFILE, ENOEXEC, ETXTBSY},
    unistd::{AccessFlags, access},
};
use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Why a program was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CannotRun {
    pub(crate) not_found: bool,
    /// Whether it may go better the next time.
    pub(crate) may_pass: bool,
    pub(crate) problem: String,
    pub(crate) hint: String,
}

impl CannotRun {
    /// Why starting `program` failed.
    pub(crate) fn of(program: &OsStr, error: &io::Error) -> CannotRun {
        let name = Path::new(program).display();
        let not_found = error.kind() == io::ErrorKind::NotFound;
        let may_pass = matches!(error.raw_os_error(), Some(ETXTBSY | EMFILE | ENFILE))
            || matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory);
        let path = find(program);
        let (problem, hint) = match (error.kind(), &path) {
            (io::ErrorKind::NotFound, Some(path)) => no_interpreter(path),
            (io::ErrorKind::NotFound, None) => return CannotRun::not_found(program),
            (io::ErrorKind::PermissionDenied, _) => denied(program, path.as_deref()),
            _ => {
                let hint = match error.raw_os_error() {
                    Some(ETXTBSY) => "somebody has it open for writing",
                    Some(E2BIG) => "arguments and environment together are too long; xargs splits them",
                    Some(ENOEXEC) => "it is built for another kind of machine, or is no program at all",
                    _ if may_pass => {
                        hint(error, "the system has no room for another process; ulimit -u says how many there may be")
                    }
                    _ => "it has to be a program, or a script",
                };
                (format!("cannot execute {name}: {}", plain(error)), hint.to_owned())
            }
        };
        CannotRun { not_found, may_pass, problem, hint }
    }

    fn not_found(program: &OsStr) -> CannotRun {
        let name = program.to_string_lossy();
        let (problem, hint) = if name.is_empty() {
            ("the command has no name".to_owned(), "is it a variable that is not set?")
        } else if name.contains(' ') {
            (format!("cannot find the command {name:?}"), "is it for a shell? sh -c '...' runs a line")
        } else if name.contains('/') {
            (format!("cannot find the command {name}"), "there is no such file; a relative path begins in this folder")
        } else if Path::new(program).is_file() {
            (
                format!("cannot find the command {name}"),
                "it is in this folder, which is not on PATH: ./ before it says so",
            )
        } else {
            (format!("cannot find the command {name}"), "is it installed, and its folder on PATH?")
        };
        CannotRun { not_found: true, may_pass: false, problem, hint: hint.to_owned() }
    }
}

/// The command for a file that the kernel does not know how to execute: a script for the shell, unless it is none.
pub(crate) fn by_the_shell(program: &OsStr, arguments: &[OsString]) -> Option<Command> {
    let path = find(program)?;
    let mut first = [0; 128];
    let count = regular::read(&path).and_then(|mut file| file.read(&mut first)).ok()?;
    if first[..count].contains(&0) {
        return None;
    }
    let mut command = Command::new("/bin/sh");
    command.arg(path).args(arguments);
    Some(command)
}

/// Whether an error says that the kernel does not know the file's form.
pub(crate) fn has_no_form(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ENOEXEC)
}

/// The file that a name means: itself if it has a slash, else the first one on PATH that can be executed, else the
/// first one at all.
fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program)).filter(|path| path.exists());
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let files: Vec<PathBuf> =
        env::split_paths(&folders).map(|folder| folder.join(program)).filter(|path| path.is_file()).collect();
    files.iter().find(|path| access(*path, AccessFlags::X_OK).is_ok()).or(files.first()).cloned()
}

fn no_interpreter(path: &Path) -> (String, String) {
    let name = path.display();
    let mut first = [0; 256];
    let count = regular::read(path).and_then(|mut file| file.read(&mut first)).unwrap_or(0);
    let line = first[..count].split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(interpreter) = line.strip_prefix(b"#!") else {
        return (
            format!("cannot execute {name}: its loader is not found"),
            "it is built for another system: other C library, or other word size".to_owned(),
        );
    };
    let interpreter = String::from_utf8_lossy(interpreter).trim_start().to_owned();
    if interpreter.ends_with('\r') {
        let problem = format!("cannot execute {name}: its first line ends with a carriage return");
        return (problem, "it was written with Windows line ends; sed -i 's/\\r$//' takes them off".to_owned());
    }
    let interpreter = interpreter.split_whitespace().next().unwrap_or_default().to_owned();
    let problem = format!("cannot execute {name}: its interpreter {interpreter} is not found");
    (problem, "install it, or mend the script's first line, #!".to_owned())
}

fn denied(program: &OsStr, path: Option<&Path>) -> (String, String) {
    let name = Path::new(program).display();
    let path = path.unwrap_or(Path::new(program));
    if path.is_dir() {
        return (format!("cannot execute {name}: it is a folder"), "name the program in it".to_owned());
    }
    let problem = format!("cannot execute {name}: permission denied");
    let hint = match access(path, AccessFlags::X_OK) {
        Ok(()) => "its interpreter, or a folder on the way to it, may be closed to you, or the file system noexec",
        Err(_) => "chmod +x makes a script executable",
    };
    (problem, hint.to_owned())
}
