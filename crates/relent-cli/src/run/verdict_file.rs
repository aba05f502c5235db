//! The file named by `RELENT_VERDICT`, in which the command says what its failure means.
//!
//! It stands in a folder of its own that nobody else can enter, and is reached through that folder's descriptor: whoever
//! can write to the temporary folder can neither put another file in its place nor know its name beforehand.

use nix::{
    dir::Dir,
    fcntl::{OFlag, openat},
    sys::stat::Mode,
    unistd::{UnlinkatFlags, unlinkat},
};
use relent::{Verdict, duration::parse_duration};
use std::{
    fs::{self, File, Permissions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// The longest answer that is read.
const LONGEST: u64 = 4096;

const NAME: &str = "verdict";

/// The file, for one run; it is emptied before each attempt and removed with the value.
pub(super) struct VerdictFile {
    /// Removed when this is dropped.
    _folder: TempDir,
    handle: Dir,
    path: PathBuf,
}

impl VerdictFile {
    pub(super) fn create() -> io::Result<VerdictFile> {
        let folder = tempfile::Builder::new().prefix("relent-").permissions(Permissions::from_mode(0o700)).tempdir()?;
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_RDONLY;
        let made = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let handle = Dir::open(folder.path(), flags, Mode::empty()).and_then(|handle| {
            openat(&handle, NAME, made, Mode::S_IRUSR | Mode::S_IWUSR)?;
            Ok(handle)
        });
        match handle {
            Ok(handle) => Ok(VerdictFile { path: folder.path().join(NAME), _folder: folder, handle }),
            Err(error) => {
                // Where no file can be opened any more, only this removes the folder.
                let _ = fs::remove_dir(folder.path());
                Err(error.into())
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the command wrote since the last time, of what is about this exit code: nothing, a verdict, or something
    /// that is none.
    ///
    /// A file that is gone or cannot be read, and what is no file, says nothing.
    pub(super) fn take(&self, exit: u8) -> Option<Result<Verdict, String>> {
        let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.handle, NAME, flags, Mode::empty()).ok()?);
        // One with another name somewhere is no file of ours: it would be emptied.
        if !file.metadata().is_ok_and(|data| data.is_file() && data.nlink() == 1) {
            return None;
        }
        let mut bytes = Vec::new();
        file.by_ref().take(LONGEST).read_to_end(&mut bytes).ok()?;
        if !bytes.is_empty() {
            file.set_len(0).ok()?;
        }
        last(&String::from_utf8_lossy(&bytes), exit)
    }
}

/// The last verdict of a text that is about this exit code, or what stands there in its place.
pub(super) fn last(text: &str, exit: u8) -> Option<Result<Verdict, String>> {
    let said = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let word = said.filter_map(|line| about(exit, line)).next_back()?;
    Some(parse(word).ok_or_else(|| word.to_owned()))
}

/// Removes what is there in any case, without opening anything; what the command has put beside it, the folder removes.
impl Drop for VerdictFile {
    fn drop(&mut self) {
        let _ = unlinkat(&self.handle, NAME, UnlinkatFlags::NoRemoveDir);
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

/// What a line says about an attempt that ended with this exit code: `exit 22: permanent` is about one code only.
fn about(exit: u8, line: &str) -> Option<&str> {
    let Some(rest) = line.strip_prefix("exit ") else { return Some(line) };
    match rest.split_once(':') {
        Some((code, word)) if code.trim().parse() == Ok(exit) => Some(word.trim()),
        Some((code, _)) if code.trim().parse::<u8>().is_ok() => None,
        _ => Some(line),
    }
}

fn parse(word: &str) -> Option<Verdict> {
    match word {
        "transient" => Some(Verdict::Transient),
        "permanent" => Some(Verdict::Permanent),
        "overloaded" => Some(Verdict::Overloaded),
        _ => {
            let after = word.strip_prefix("after")?.strip_prefix([' ', '\t', '=', ':'])?;
            parse_duration(after).ok().map(Verdict::After)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_words_of_a_verdict() {
        assert_eq!(parse("transient"), Some(Verdict::Transient));
        assert_eq!(parse("permanent"), Some(Verdict::Permanent));
        assert_eq!(parse("overloaded"), Some(Verdict::Overloaded));
        assert_eq!(parse("after 30s"), Some(Verdict::After(Duration::from_secs(30))));
        assert_eq!(parse("after 30"), None);
        assert_eq!(parse("afterwards"), None);
        assert_eq!(parse("perhaps"), None);
    }

    #[test]
    fn the_last_line_counts_and_is_taken_once() {
        let verdict = VerdictFile::create().unwrap();
        let path = verdict.path().to_owned();
        assert_eq!(verdict.take(1), None);
        fs::write(&path, "transient\npermanent\n\n").unwrap();
        assert_eq!(verdict.take(1), Some(Ok(Verdict::Permanent)));
        assert_eq!(verdict.take(1), None);
        fs::write(&path, "perhaps").unwrap();
        assert_eq!(verdict.take(1), Some(Err("perhaps".to_owned())));
        fs::remove_file(&path).unwrap();
        assert_eq!(verdict.take(1), None);
        drop(verdict);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }

    #[test]
    fn what_is_about_another_end_does_not_count() {
        let verdict = VerdictFile::create().unwrap();
        let says = |text: &str| {
            fs::write(verdict.path(), text).unwrap();
            verdict.take(22)
        };
        assert_eq!(says("exit 22: permanent\n"), Some(Ok(Verdict::Permanent)));
        assert_eq!(says("exit 7: permanent\n"), None);
        assert_eq!(says("transient\nexit 7: permanent\n"), Some(Ok(Verdict::Transient)));
        assert_eq!(says("exit strategy: none"), Some(Err("exit strategy: none".to_owned())));
    }

    /// A link, a named pipe, a file put in its place by a rename: none of them is believed or waited for.
    #[test]
    fn only_the_file_is_read() {
        let verdict = VerdictFile::create().unwrap();
        let path = verdict.path().to_owned();
        let mode = fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700);
        let other = tempfile::NamedTempFile::new().unwrap();
        fs::write(other.path(), "permanent").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(other.path(), &path).unwrap();
        assert_eq!(verdict.take(1), None);
        assert_eq!(fs::read_to_string(other.path()).unwrap(), "permanent");
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
        assert_eq!(verdict.take(1), None);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "permanent").unwrap();
        assert_eq!(verdict.take(1), Some(Ok(Verdict::Permanent)), "an atomic write by rename is one");
    }
}
