//! The file named by `RELENT_VERDICT`, in which the command says what its failure means.
//!
//! It stands in a folder of its own that nobody else can enter, and is reached through that folder's descriptor: whoever
//! can write to the temporary folder can neither put another file in its place nor know its name beforehand.

use super::exit_set::ExitSet;
use crate::outer::{NOT_BEGUN, speaker};
use nix::{
    dir::Dir,
    errno::Errno,
    fcntl::{AtFlags, OFlag, openat},
    sys::stat::{Mode, fchmod, fstat, fstatat},
    unistd::{UnlinkatFlags, geteuid, unlinkat},
};
use relent::{Verdict, duration::parse_duration};
use rustix::fs::{FlockOperation, flock};
use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    fs::{self, File, Permissions},
    io::{self, BufRead, BufReader, Read},
    os::{
        fd::AsFd,
        unix::fs::{FileExt, MetadataExt, PermissionsExt},
    },
    path::PathBuf,
    rc::Rc,
};

/// How much of an answer is read: its end.
const LONGEST: u64 = 16 << 20;

/// What its names begin with.
const NAME: &str = "verdict-";

/// The file, for one run: another for each attempt, removed with the value.
pub(super) struct VerdictFile {
    handle: Dir,
    folder: PathBuf,
    /// Which of those that were made in this folder: each attempt has another, so that what an attempt before has left does not speak for it.
    nth: u64,
    /// It itself: what was said is read where it cannot be opened any more, too.
    file: File,
}

impl VerdictFile {
    pub(super) fn create() -> io::Result<VerdictFile> {
        // Who says something there follows no link.
        let all = tempfile::env::temp_dir();
        let all = all.canonicalize().unwrap_or(all);
        let folder =
            tempfile::Builder::new().prefix("relent-").permissions(Permissions::from_mode(0o700)).tempdir_in(all)?;
        // By its name it would be removed with all that is in it, whosever that is by then.
        let folder = folder.keep();
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_RDONLY;
        let handle = Dir::open(&folder, flags, Mode::empty()).and_then(|mut handle| {
            // Where everybody may move what is there, another folder can have taken its name meanwhile.
            as_good_as_new(&mut handle)?;
            unmasked(&handle, Mode::S_IRWXU);
            let file = make(&handle, &name(1))?;
            Ok((handle, file))
        });
        match handle {
            Ok((handle, file)) => {
                // Cleaners of temporary folders leave alone what is locked (tmpfiles.d(5)), and a run may take weeks.
                let _ = flock(&handle, FlockOperation::NonBlockingLockShared);
                Ok(VerdictFile { handle, folder, nth: 1, file })
            }
            Err(error) => {
                // There is no file in it. What is not ours is not removed: by its name only an empty folder can be.
                let _ = fs::remove_dir(&folder);
                Err(error.into())
            }
        }
    }

    /// Sees to it that it is there for the next attempt: not every cleaner of temporary folders asks what is in use, and a run may
    /// take weeks.
    ///
    /// What was left of the attempt before may have said something while it was ended, or have the file open, or its name: another takes its
    /// place.
    ///
    /// # Errors
    ///
    /// There is no room for it.
    pub(super) fn renew(&mut self) -> io::Result<()> {
        if !self.is_there() {
            *self = VerdictFile::create()?;
            return Ok(());
        }
        self.remove_all();
        // Somebody may have made one of that name.
        for _ in 1..100 {
            self.nth += 1;
            match make(&self.handle, &name(self.nth)) {
                Err(Errno::EEXIST) => {}
                made => {
                    self.file = made?;
                    return Ok(());
                }
            }
        }
        Err(Errno::EEXIST.into())
    }

    /// Where it is; nowhere if somebody has put another folder in the place of ours, or ours was removed.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.is_there().then(|| self.folder.join(name(self.nth)))
    }

    fn is_there(&self) -> bool {
        let named = fs::symlink_metadata(&self.folder).ok();
        let ours = fstat(&self.handle).ok();
        named.zip(ours).is_some_and(|(named, ours)| (named.dev(), named.ino()) == (ours.st_dev, ours.st_ino))
    }

    /// Removes what was made here, and what is left of an attempt has made by its name. By descriptor: what has the folder's name by now may be
    /// anybody's, and what is beside the file is not relent's.
    fn remove_all(&mut self) {
        let ours = |name: &CStr| name.to_bytes().starts_with(NAME.as_bytes()).then(|| name.to_owned());
        let all: Vec<CString> = self.handle.iter().flatten().filter_map(|entry| ours(entry.file_name())).collect();
        for name in all {
            let _ = unlinkat(&self.handle, &*name, UnlinkatFlags::NoRemoveDir);
        }
    }

    /// What the command, and what it has started, wrote.
    ///
    /// A file that is gone or cannot be read, and what is no file, says nothing.
    pub(super) fn take(&self, command: u32) -> Said {
        self.read(command).unwrap_or_default()
    }

    /// Of the file, if it is one: not of another one with another name somewhere, which is no file of ours.
    fn read(&self, command: u32) -> Option<Said> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let name = name(self.nth);
        let made = self.file.metadata().ok()?;
        let opened = openat(&self.handle, &*name, flags, Mode::empty()).map(File::from);
        let file = match &opened {
            Ok(opened) => {
                let data = opened.metadata().ok()?;
                let is_made = (data.dev(), data.ino()) == (made.dev(), made.ino());
                (is_made || (data.is_file() && data.nlink() == 1)).then_some(opened)?
            }
            // It may not be opened any more, or nothing may: what was made is open.
            Err(_) => {
                let named = fstatat(&self.handle, &*name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
                ((named.st_dev, named.st_ino) == (made.dev(), made.ino())).then_some(&self.file)?
            }
        };
        said_in(file, &speaker(command)).ok()
    }
}

/// What is said in a file.
fn said_in(file: &File, command: &str) -> io::Result<Said> {
    let length = file.metadata()?.len();
    let start = length.saturating_sub(LONGEST);
    let mut lines = BufReader::new(From { file, at: start }.take(length - start)).split(b'\n');
    let mut said = Said::default();
    // Of a line that begins before what is read, nothing counts, unless there is no other: then nobody knows what it was.
    let cut = (start > 0).then(|| lines.next()).flatten().transpose()?;
    for line in lines {
        said.hear(String::from_utf8_lossy(&line?).trim(), command);
    }
    if cut.is_some() && said.is_nothing() {
        said.hear("...", command);
    }
    Ok(said)
}

/// What a text of it says of an exit code, whoever the command is.
pub(super) fn last(text: &str, exit: u8) -> Option<Result<Verdict, String>> {
    let mut said = Said::default();
    text.lines().for_each(|line| said.hear(line.trim(), "1.1"));
    said.about(exit)
}

/// A file from somewhere on, wherever others are in it.
struct From<'a> {
    file: &'a File,
    at: u64,
}

impl Read for From<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(into, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// What was said in an attempt.
#[derive(Debug)]
pub(super) struct Said {
    /// By whom nothing is to be begun anew, how often.
    at_it: HashMap<String, u32>,
    /// What the command itself has said of its end, whatever that is.
    own: Option<Rc<str>>,
    /// What was said last of every code, and the how manieth that was.
    every: Option<Rc<str>>,
    nth: u32,
    /// What was said last of each code, and after the how manieth of every one.
    of: [Option<(u32, Rc<str>)>; 256],
}

impl Default for Said {
    fn default() -> Said {
        Said { at_it: HashMap::new(), own: None, every: None, nth: 0, of: [const { None }; 256] }
    }
}

/// No word of a verdict is so long.
const A_WORD: usize = 4096;

impl Said {
    fn is_nothing(&self) -> bool {
        self.at_it.is_empty() && self.own.is_none() && self.every.is_none() && self.of.iter().all(Option::is_none)
    }

    fn hear(&mut self, line: &str, command: &str) {
        let line = if line.len() > A_WORD { "..." } else { line };
        let Some(About { codes, by, word }) = about(line) else {
            // Who speaks of every end knows all of it; what is no verdict, as the beginning of a line, takes nothing back.
            if parse(line).is_some() {
                self.at_it.clear();
            }
            if !line.is_empty() {
                (self.own, self.every) = (None, Some(line.into()));
                self.nth += 1;
            }
            return;
        };
        match by {
            Some(by) if !codes.is_one() && (word.is_empty() || word == NOT_BEGUN) => {
                if by == command && word == NOT_BEGUN {
                    self.own = None;
                }
                let is_over = self.at_it.get_mut(by).is_some_and(|times| {
                    *times -= 1;
                    *times == 0
                });
                if is_over {
                    self.at_it.remove(by);
                }
            }
            Some(by) => {
                if !codes.is_one() {
                    *self.at_it.entry(by.to_owned()).or_default() += 1;
                }
                // What it takes back of that is for those who go on: nothing does after the command, but that it may be cut off.
                if by == command {
                    self.own = Some(word.into());
                } else if codes.is_one() {
                    self.say(&codes, word);
                }
            }
            None => self.say(&codes, word),
        }
    }

    fn say(&mut self, codes: &ExitSet, word: &str) {
        let word = Some(word).filter(|word| !word.is_empty()).map(|word| (self.nth, word.into()));
        let all = (0..=255).filter(|code| codes.contains(*code));
        all.for_each(|code| self.of[usize::from(code)].clone_from(&word));
    }

    /// Whether somebody was at something that may not be done twice, and has not said what became of it.
    pub(super) fn is_at_it(&self) -> bool {
        !self.at_it.is_empty()
    }

    /// What of it is about this exit code: nothing, a verdict, or something that is none.
    pub(super) fn about(&self, exit: u8) -> Option<Result<Verdict, String>> {
        if exit != 0 && self.is_at_it() {
            return Some(Ok(Verdict::Permanent));
        }
        let of_it = self.of[usize::from(exit)].as_ref().filter(|(nth, _)| *nth == self.nth).map(|(_, word)| word);
        let word = self.own.as_ref().filter(|_| exit != 0).or(of_it).or(self.every.as_ref())?;
        Some(parse(word).ok_or_else(|| word.to_string()))
    }
}

fn name(nth: u64) -> String {
    format!("{NAME}{nth}")
}

/// Makes the file, which is not there.
fn make(folder: &Dir, name: &str) -> nix::Result<File> {
    let (made, mode) =
        (OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::from_bits_truncate(0o600));
    let file = openat(folder, name, made, mode)?;
    unmasked(&file, mode);
    Ok(file.into())
}

/// What was made as a mask that is for files alone (0177) leaves it is for its owner all the same.
fn unmasked(made: impl AsFd, mode: Mode) {
    if fstat(&made).is_ok_and(|data| data.st_mode & mode.bits() != mode.bits()) {
        let _ = fchmod(made, mode);
    }
}

/// Whether the folder is the caller's, nobody else can enter it, and there is nothing in it: as the one that was made, if not that one.
fn as_good_as_new(folder: &mut Dir) -> nix::Result<()> {
    let opened = fstat(&*folder)?;
    let is_ours = opened.st_uid == geteuid().as_raw() && opened.st_mode & 0o077 == 0;
    let is_none = |name: &CStr| [c".", c".."].contains(&name);
    let is_empty = folder.iter().all(|entry| entry.is_ok_and(|entry| is_none(entry.file_name())));
    if is_ours && is_empty { Ok(()) } else { Err(Errno::EPERM) }
}

/// Removes the folder as well, if that is still there and has nothing else in it.
impl Drop for VerdictFile {
    fn drop(&mut self) {
        self.remove_all();
        if self.is_there() {
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

/// What a line of some exit codes says.
struct About<'a> {
    codes: ExitSet,
    /// Who says it, if that is a relent.
    by: Option<&'a str>,
    word: &'a str,
}

/// `exit 22: permanent`, or as relent says it; nothing of a line that is about no code.
fn about(line: &str) -> Option<About<'_>> {
    let (codes, word) = line.strip_prefix("exit ")?.split_once(':')?;
    let (codes, by) = codes.split_once(" by ").map_or((codes, None), |(codes, by)| (codes, Some(by.trim())));
    Some(About { codes: codes.parse().ok()?, by, word: word.trim() })
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
    use std::io::Write;

    /// Where everybody may move what is there, another can take the place of the one that was made before it is opened: a neighbour's,
    /// or one of ours with something in it.
    #[test]
    fn a_folder_that_others_can_enter_or_that_has_something_in_it_is_not_taken_for_ours() {
        let folder = tempfile::tempdir().unwrap();
        let is_taken = || {
            let mut opened = Dir::open(folder.path(), OFlag::O_DIRECTORY, Mode::empty()).unwrap();
            as_good_as_new(&mut opened).is_ok()
        };
        for (mode, answer) in [(0o755, false), (0o701, false), (0o700, true)] {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_taken(), answer, "{mode:o}");
        }
        fs::write(folder.path().join("important"), "kept").unwrap();
        assert!(!is_taken());
        fs::remove_file(folder.path().join("important")).unwrap();
        fs::create_dir(folder.path().join(".important")).unwrap();
        assert!(!is_taken());
        fs::remove_dir(folder.path().join(".important")).unwrap();
        assert!(is_taken());
        if geteuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(65_534), None).unwrap();
            assert!(!is_taken());
        }
    }

    /// By the rules of tmpfiles.d(5): what somebody has locked is in use.
    #[test]
    fn cleaners_see_that_it_is_in_use() {
        let file = VerdictFile::create().unwrap();
        let folder = File::open(file.path().unwrap().parent().unwrap()).unwrap();
        assert!(flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err());
        drop(file);
        assert!(flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok());
    }

    /// A cleaner that asks for nothing but the age, or somebody who moves folders about.
    #[test]
    fn what_was_taken_away_is_made_anew_for_the_next_attempt() {
        let mut file = VerdictFile::create().unwrap();
        let first = file.path().unwrap().to_owned();
        file.renew().unwrap();
        assert_eq!(file.path().unwrap().parent(), first.parent(), "what is there stays");
        fs::remove_dir_all(first.parent().unwrap()).unwrap();
        assert_eq!(file.path(), None);
        file.renew().unwrap();
        let second = file.path().unwrap().to_owned();
        fs::write(&second, "permanent").unwrap();
        assert_eq!(file.take(1).about(1), Some(Ok(Verdict::Permanent)));
        // One that is not ours has taken the name: it stays as it is.
        fs::create_dir(first.parent().unwrap()).unwrap();
        fs::write(&first, "kept").unwrap();
        drop(file);
        assert!(!second.parent().unwrap().exists());
        assert_eq!(fs::read_to_string(&first).unwrap(), "kept");
        fs::remove_dir_all(first.parent().unwrap()).unwrap();
    }

    /// What is left of an attempt may speak while it is ended, and later where it could not be.
    #[test]
    fn what_was_said_too_late_is_not_of_the_next_attempt() {
        let mut file = VerdictFile::create().unwrap();
        let path = file.path().unwrap().to_owned();
        let speak = |path: &PathBuf| fs::write(path, "permanent\n").unwrap();
        let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
        late.write_all(b"permanent\n").unwrap();
        file.renew().unwrap();
        assert_eq!(file.take(1).about(0), None);
        late.write_all(b"permanent\n").unwrap();
        // By the name, too.
        speak(&path);
        assert_eq!(file.take(1).about(0), None);
        let (before, path) = (path, file.path().unwrap());
        assert_ne!(before, path);
        // Whatever has taken its place goes, and what cannot, as a folder, is none.
        let other = tempfile::NamedTempFile::new().unwrap();
        fs::write(other.path(), "permanent").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(other.path(), &path).unwrap();
        file.renew().unwrap();
        assert!(!before.exists() && fs::symlink_metadata(&path).is_err(), "what has these names goes");
        assert_eq!(fs::read_to_string(other.path()).unwrap(), "permanent");
        let path = file.path().unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(file.take(1).about(0), None);
        // What stands where the next one would is no verdict.
        speak(&path.with_file_name(name(4)));
        file.renew().unwrap();
        let next = file.path().unwrap();
        assert_eq!((file.take(1).about(0), next.exists()), (None, true));
        fs::write(&next, "transient").unwrap();
        assert_eq!(file.take(1).about(1), Some(Ok(Verdict::Transient)));
        fs::remove_dir(&path).unwrap();
        drop(file);
        assert!(!path.parent().unwrap().exists());
    }

    /// In a temporary folder without the sticky bit.
    #[test]
    fn what_somebody_put_in_its_place_stays_as_it_is() {
        let file = VerdictFile::create().unwrap();
        let folder = file.path().unwrap().parent().unwrap().to_owned();
        let aside = folder.with_extension("aside");
        fs::rename(&folder, &aside).unwrap();
        assert_eq!(file.path(), None, "nobody is told of a folder that is not there");
        fs::create_dir(&folder).unwrap();
        assert_eq!(file.path(), None, "nor of one that is not ours");
        fs::write(folder.join("important"), "kept").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(folder.join("important")).unwrap(), "kept");
        assert_eq!(fs::read_dir(&aside).unwrap().count(), 0, "what is ours is removed wherever it is");
        fs::remove_dir_all(&folder).unwrap();
        fs::remove_dir(&aside).unwrap();
    }

    #[test]
    fn what_relent_has_not_made_is_not_removed() {
        let file = VerdictFile::create().unwrap();
        let folder = file.path().unwrap().parent().unwrap().to_owned();
        fs::write(folder.join("important"), "kept").unwrap();
        fs::create_dir(folder.join("empty")).unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(folder.join("important")).unwrap(), "kept");
        assert!(folder.join("empty").is_dir() && fs::read_dir(&folder).unwrap().count() == 2);
        fs::remove_dir_all(&folder).unwrap();
    }

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
    fn the_last_line_counts() {
        let verdict = VerdictFile::create().unwrap();
        let path = verdict.path().unwrap().to_owned();
        assert_eq!(verdict.take(1).about(1), None);
        fs::write(&path, "transient\npermanent\n\n").unwrap();
        assert_eq!(verdict.take(1).about(1), Some(Ok(Verdict::Permanent)));
        fs::write(&path, "perhaps").unwrap();
        assert_eq!(verdict.take(1).about(1), Some(Err("perhaps".to_owned())));
        fs::remove_file(&path).unwrap();
        assert_eq!(verdict.take(1).about(1), None);
        drop(verdict);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }

    /// A loop in the command may have said the same again and again.
    #[test]
    fn the_last_line_counts_however_many_there_are() {
        let verdict = VerdictFile::create().unwrap();
        for (times, last) in [(500, "permanent\n"), (455, "permanent"), (1_700_000, "exit 1: permanent\n\n")] {
            fs::write(verdict.path().unwrap(), "transient\n".repeat(times) + last).unwrap();
            assert_eq!(verdict.take(1).about(1), Some(Ok(Verdict::Permanent)), "{times}");
        }
        fs::write(verdict.path().unwrap(), "x".repeat(17 << 20)).unwrap();
        assert_eq!(verdict.take(1).about(1), Some(Err("...".to_owned())));
    }

    #[test]
    fn what_is_about_another_end_does_not_count() {
        for (text, verdict) in [
            ("exit 22: permanent\n", Some(Ok(Verdict::Permanent))),
            ("exit 7: permanent\n", None),
            ("transient\nexit 7: permanent\n", Some(Ok(Verdict::Transient))),
            ("exit strategy: none", Some(Err("exit strategy: none".to_owned()))),
            ("exit 3,20-30: permanent\nexit 7,23-24: overloaded\n", Some(Ok(Verdict::Permanent))),
            ("exit 22: permanent\nexit 20-30: overloaded\n", Some(Ok(Verdict::Overloaded))),
            ("exit 20-30: permanent\nexit 22:\n", None),
            ("transient\nexit 20-30: permanent\nexit 22:\n", Some(Ok(Verdict::Transient))),
            ("exit 22: permanent\ntransient\n", Some(Ok(Verdict::Transient))),
            ("exit 22 by 1.7: overloaded\n", Some(Ok(Verdict::Overloaded))),
            ("exit 22 by 1.7: overloaded\nexit 23 by 1.8: permanent\n", Some(Ok(Verdict::Overloaded))),
        ] {
            assert_eq!(last(text, 22), verdict, "{text:?}");
        }
    }

    /// Until the same one takes it back: whoever else speaks, and whatever is said of one code.
    #[test]
    fn what_somebody_is_at_is_not_begun_anew() {
        let (seven, eight) = ("exit 1-255 by 1.7: permanent\n", "exit 1-255 by 1.8: permanent\n");
        let (seven_is_done, eight_is_done) = ("exit 1-255 by 1.7:\n", "exit 1-255 by 1.8:\n");
        let other = "exit 22 by 1.9: overloaded\n";
        let permanent = Some(Verdict::Permanent);
        for (text, verdict) in [
            ([seven, "", "", ""], permanent),
            ([seven, seven_is_done, "", ""], None),
            ([seven, eight, seven_is_done, ""], permanent),
            ([seven, eight, seven_is_done, eight_is_done], None),
            ([seven, eight, eight_is_done, seven_is_done], None),
            ([seven, other, "", ""], permanent),
            ([seven, other, seven_is_done, ""], Some(Verdict::Overloaded)),
            // Of another namespace.
            ([seven, "exit 1-255 by 2.7:\n", "", ""], permanent),
            // One number again.
            ([seven, seven, seven_is_done, ""], permanent),
            ([seven_is_done, seven, "", ""], permanent),
            ([seven, "exit 1-255:\n", "", ""], permanent),
            // Who speaks of every end knows all of it.
            ([seven, "transient\n", "", ""], Some(Verdict::Transient)),
            ([seven, "transient\n", other, ""], Some(Verdict::Overloaded)),
            // What there was no room for.
            ([seven, "exit 1-255 by 1.\n", "", ""], permanent),
            ([seven, "exit 1-2\n", "perhaps\n", ""], permanent),
            (["transient\n", seven, "", ""], permanent),
        ] {
            assert_eq!(last(&text.concat(), 22), verdict.map(Ok), "{text:?}");
            let of_a_success = last(&text.concat(), 0).is_some_and(|said| said.is_ok());
            assert_eq!(of_a_success, text.contains(&"transient\n"), "{text:?}");
        }
    }

    /// Its end is the attempt's, so that nobody goes on after it: it may only be cut off.
    #[test]
    fn what_the_command_says_is_about_its_end_whatever_that_is() {
        let (is_at_it, is_done) = ("exit 1-255 by 1.1: permanent\n", "exit 1-255 by 1.1:\n");
        for (text, verdict) in [
            ([is_at_it, "", ""], Some(Verdict::Permanent)),
            ([is_at_it, is_done, ""], Some(Verdict::Permanent)),
            ([is_at_it, "exit 1-255 by 1.1: not begun\n", ""], None),
            (["exit 1-255 by 1.7: permanent\n", "exit 1-255 by 1.7: not begun\n", ""], None),
            ([is_at_it, "exit 4 by 1.1: overloaded\n", is_done], Some(Verdict::Overloaded)),
            ([is_at_it, "exit 4 by 1.1: overloaded\n", ""], Some(Verdict::Permanent)),
            (["exit 5 by 1.1: after 2s\n", "", ""], Some(Verdict::After(Duration::from_secs(2)))),
            (
                ["exit 5 by 1.1: after 2s\n", "exit 124 by 1.9: permanent\n", ""],
                Some(Verdict::After(Duration::from_secs(2))),
            ),
            // Somebody else is at it beside the command.
            (["exit 1-255 by 1.7: permanent\n", "exit 5 by 1.1: after 2s\n", ""], Some(Verdict::Permanent)),
            ([is_at_it, "transient\n", ""], Some(Verdict::Transient)),
        ] {
            assert_eq!(last(&text.concat(), 124), verdict.map(Ok), "{text:?}");
            assert_eq!(
                last(&text.concat(), 0),
                text.contains(&"transient\n").then_some(Ok(Verdict::Transient)),
                "{text:?}"
            );
        }
    }

    /// However much is said, by ten thousand of a service that has many on their way.
    #[test]
    fn what_was_said_long_ago_stands() {
        let verdict = VerdictFile::create().unwrap();
        let others: String =
            (100..10_000).map(|n| format!("exit 1-255 by 1.{n}: permanent\n\nexit 1-255 by 1.{n}:\n")).collect();
        fs::write(verdict.path().unwrap(), format!("exit 1-255 by 1.7: permanent\n{others}")).unwrap();
        assert_eq!(verdict.take(1).about(7), Some(Ok(Verdict::Permanent)));
        fs::write(verdict.path().unwrap(), others).unwrap();
        assert_eq!(verdict.take(1).about(7), None);
    }

    /// A link, a named pipe, a file put in its place by a rename: none of them is believed or waited for.
    #[test]
    fn only_the_file_is_read() {
        let verdict = VerdictFile::create().unwrap();
        let path = verdict.path().unwrap().to_owned();
        let mode = fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700);
        let other = tempfile::NamedTempFile::new().unwrap();
        fs::write(other.path(), "permanent").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(other.path(), &path).unwrap();
        assert_eq!(verdict.take(1).about(1), None);
        assert_eq!(fs::read_to_string(other.path()).unwrap(), "permanent");
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
        assert_eq!(verdict.take(1).about(1), None);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "permanent").unwrap();
        assert_eq!(verdict.take(1).about(1), Some(Ok(Verdict::Permanent)), "an atomic write by rename is one");
    }
}
