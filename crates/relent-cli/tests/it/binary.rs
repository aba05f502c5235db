//! Runs the real binary in a folder of its own, and compares what it says with the files in `tests/golden`.
//!
//! `RELENT_BLESS=1` writes the files instead; the difference is then in the commit for everybody to read.

use std::{
    env, fs,
    io::{self, Read, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// What a run of the binary left behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

/// A folder of a test's own, removed at its end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let unique = format!("relent-it-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let path = env::temp_dir().join(unique);
            match fs::create_dir(&path) {
                Ok(()) => return Folder(path),
                // That of a test which had this number and was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("the temporary folder is not writable: {error}"),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// With a file in it.
    pub(crate) fn file(self, name: &str, text: &str) -> Folder {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("the folder is writable");
        fs::write(path, text).expect("the folder is writable");
        self
    }

    /// With a file that is no text.
    pub(crate) fn bytes(self, name: &str, bytes: &[u8]) -> Folder {
        fs::write(self.0.join(name), bytes).expect("the folder is writable");
        self
    }

    /// The names of everything in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder is readable").map_while(Result::ok);
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect("the file was written")
    }

    /// The binary, about to run in this folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = tool(env!("CARGO_BIN_EXE_relent"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    pub(crate) fn relent(&self, args: &[&str]) -> Outcome {
        self.relent_with(args, "")
    }

    /// With a standard input.
    pub(crate) fn relent_with(&self, args: &[&str], stdin: &str) -> Outcome {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary was built");
        // A command that reads nothing may be gone already.
        let _ = child.stdin.take().expect("it is piped").write_all(stdin.as_bytes());
        let output = child.wait_with_output().expect("it can be waited for");
        Outcome { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
    }
}

/// A program that may start the binary by its name alone, with nothing of the environment that changes what that says:
/// no proxies, no settings of the user, and in `PATH` no folder that cannot be searched.
pub(crate) fn tool(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy().to_ascii_lowercase();
        let changes = text.starts_with("relent_") || text.ends_with("_proxy");
        if changes || ["columns", "no_color", "lc_all", "lc_ctype", "lang"].contains(&text.as_str()) {
            command.env_remove(name);
        }
    }
    let own = Path::new(env!("CARGO_BIN_EXE_relent")).parent().expect("a file is in a folder").to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let others = env::split_paths(&path).filter(|folder| fs::read_dir(folder).is_ok());
    command.env("PATH", env::join_paths([own].into_iter().chain(others)).expect("no folder has a colon in its name"));
    command
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("relent writes UTF-8")
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the binary in an empty folder.
pub(crate) fn relent(args: &[&str]) -> Outcome {
    Folder::new().relent(args)
}

/// The text must be that of the file in `tests/golden`.
#[track_caller]
pub(crate) fn golden(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("RELENT_BLESS").is_some() {
        fs::write(&path, actual).expect("tests/golden is writable");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(actual == expected, "not as in {name} (RELENT_BLESS=1 writes it):\n{actual}");
}

/// What a terminal shows of a command that has it for an output, and what that exits with.
pub(crate) fn shown_on<'a>(
    size: Option<&nix::pty::Winsize>,
    give: impl FnOnce(OwnedFd) -> &'a mut Command,
) -> (String, Option<i32>) {
    let terminal = nix::pty::openpty(size, None).expect("there are terminals");
    let command = give(terminal.slave);
    let mut child = command.spawn().expect("it is built");
    // The terminal ends when nobody has it open for writing any more.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut shown = Vec::new();
    let _ = fs::File::from(terminal.master).read_to_end(&mut shown);
    (String::from_utf8_lossy(&shown).into_owned(), child.wait().expect("it was started").code())
}

/// What relents have said in `RELENT_VERDICT`, a line each, without who said it.
pub(crate) fn said_in(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).expect("it is there");
    let lines = text.lines().filter(|line| !line.is_empty());
    let anybody =
        |line: &str| match line.split_once(" by ").and_then(|(exit, rest)| Some((exit, rest.split_once(':')?.1))) {
            Some((exit, word)) => format!("{exit}:{word}"),
            None => line.to_owned(),
        };
    lines.map(anybody).collect()
}

/// A terminal of this many rows and columns.
pub(crate) fn size(rows: u16, columns: u16) -> nix::pty::Winsize {
    nix::pty::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
