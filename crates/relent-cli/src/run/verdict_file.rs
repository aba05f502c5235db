//! The file named by `RELENT_VERDICT`, in which the command says what its failure means.

use super::spool::private_file;
use relent::{Verdict, duration::parse_duration};
use std::{
    fs::{self, OpenOptions},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The longest answer that is read.
const LONGEST: u64 = 4096;

/// The file, for one run; it is emptied before each attempt and removed with the value.
pub(super) struct VerdictFile {
    path: PathBuf,
}

impl VerdictFile {
    pub(super) fn create() -> io::Result<VerdictFile> {
        let (_, path) = private_file("verdict")?;
        Ok(VerdictFile { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the command wrote since the last time: nothing, a verdict, or something that is none.
    ///
    /// A file that is gone or cannot be read says nothing.
    pub(super) fn take(&self) -> Option<Result<Verdict, String>> {
        let mut text = String::new();
        let mut file = OpenOptions::new().read(true).write(true).open(&self.path).ok()?;
        file.by_ref().take(LONGEST).read_to_string(&mut text).ok()?;
        if !text.is_empty() {
            file.set_len(0).ok()?;
        }
        let word = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(parse(word).ok_or_else(|| word.to_owned()))
    }
}

impl Drop for VerdictFile {
    fn drop(&mut self) {
        // It may be gone already, by the command's doing.
        let _ = fs::remove_file(&self.path);
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
        assert_eq!(verdict.take(), None);
        fs::write(&path, "transient\npermanent\n\n").unwrap();
        assert_eq!(verdict.take(), Some(Ok(Verdict::Permanent)));
        assert_eq!(verdict.take(), None);
        fs::write(&path, "perhaps").unwrap();
        assert_eq!(verdict.take(), Some(Err("perhaps".to_owned())));
        fs::remove_file(&path).unwrap();
        assert_eq!(verdict.take(), None);
        drop(verdict);
        assert!(!path.exists());
    }
}
