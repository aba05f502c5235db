//! The file named by `RELENT_VERDICT`, in which the command says what its failure means.
//!
//! It stands in a folder of its own that nobody else can enter, and is reached through that folder's descriptor: whoever
//! can write to the temporary folder can neither put another file in its place nor know its name beforehand.

use super::{orphans, said::Said};
use crate::outer::speaker;
use nix::{
    dir::Dir,
    errno::Errno,
    fcntl::{AtFlags, OFlag, openat},
    sys::stat::{Mode, fchmod, fstat, fstatat},
    unistd::{Pid, UnlinkatFlags, geteuid, unlinkat},
};
use rustix::fs::{FlockOperation, flock};
use std::{
    ffi::{CStr, CString},
    fs::{self, File, Permissions},
    io::{self, BufRead, BufReader, Read},
    os::{
        fd::AsFd,
        unix::fs::{FileExt, MetadataExt, PermissionsExt},
    },
    path::PathBuf,
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
    /// Those children that there were before any attempt was made.
    children: Vec<Pid>,
    /// It itself, as long as the value lives: what was said is read where it cannot be opened any more, too.
    file: Option<File>,
}

impl VerdictFile {
    /// For a run that has these children before it begins.
    pub(super) fn create(children: Vec<Pid>) -> io::Result<VerdictFile> {
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
                Ok(VerdictFile { handle, folder, nth: 1, children, file: Some(file) })
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
            *self = VerdictFile::create(self.children.clone())?;
            return Ok(());
        }
        self.remove_all();
        // Somebody may have made one of that name.
        for _ in 1..100 {
            self.nth += 1;
            match make(&self.handle, &name(self.nth)) {
                Err(Errno::EEXIST) => {}
                made => {
                    self.file = Some(made?);
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

    /// Whether others could take the name of the folder, and what is left of the run may write by that once more: it would follow their links.
    fn is_needed(&self) -> bool {
        let all = self.folder.parent().and_then(|all| fs::metadata(all).ok());
        all.is_some_and(|all| all.mode() & 0o022 != 0) && orphans::are_left(&self.children)
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
        // What cannot be read now will not be: an error has no end.
        let entries = self.handle.iter().map_while(Result::ok);
        let all: Vec<CString> = entries.filter_map(|entry| ours(entry.file_name())).collect();
        for name in all {
            let _ = unlinkat(&self.handle, &*name, UnlinkatFlags::NoRemoveDir);
        }
    }

    /// What the command, and what it has started, wrote.
    ///
    /// A file that is gone, and what is no file, says nothing, but for what relents have said there before. Of one that is there and cannot be
    /// read nobody knows what somebody is at.
    pub(super) fn take(&self, command: u32) -> Said {
        self.read(&speaker(command)).unwrap_or_else(|_| Said::of_what_cannot_be_read())
    }

    /// Of the file, if it is one: not of another one with another name somewhere, which is no file of ours.
    fn read(&self, command: &str) -> io::Result<Said> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let name = name(self.nth);
        let own = self.file.as_ref().ok_or(Errno::ENOENT)?;
        let made = own.metadata()?;
        let opened = openat(&self.handle, &*name, flags, Mode::empty()).map(File::from);
        let (is_made, other) = match &opened {
            Ok(opened) => {
                let data = opened.metadata()?;
                let is_made = (data.dev(), data.ino()) == (made.dev(), made.ino());
                (is_made, Some(opened).filter(|_| data.is_file() && data.nlink() == 1))
            }
            // It may not be opened any more, or nothing may: what was made is open.
            Err(_) => match fstatat(&self.handle, &*name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Err(Errno::ENOENT) => (false, None),
                named => {
                    let named = named?;
                    ((named.st_dev, named.st_ino) == (made.dev(), made.ino()), None)
                }
            },
        };
        let mut said = Said::default();
        hear(own, command, &mut said)?;
        if is_made {
            return Ok(said);
        }
        // Whoever took it away, or put another in its place, has not ended what somebody is at.
        let mut said = said.of_relents();
        other.map_or(Ok(()), |other| hear(other, command, &mut said))?;
        Ok(said)
    }
}

/// What is said in a file, after what was said before.
fn hear(file: &File, command: &str, said: &mut Said) -> io::Result<()> {
    let length = file.metadata()?.len();
    let start = length.saturating_sub(LONGEST);
    let mut lines = BufReader::new(From { file, at: start }.take(length - start)).split(b'\n');
    // Of a line that begins before what is read, nothing counts, unless there is no other: then nobody knows what it was.
    let cut = (start > 0).then(|| lines.next()).flatten().transpose()?;
    for line in lines {
        said.hear(String::from_utf8_lossy(&line?).trim(), command);
    }
    if cut.is_some() && said.is_nothing() {
        said.hear("...", command);
    }
    Ok(())
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

/// Removes the folder as well, if that is still there, has nothing else in it, and its name is not needed. What is left then a cleaner of
/// temporary folders takes away.
impl Drop for VerdictFile {
    fn drop(&mut self) {
        self.remove_all();
        // Where it is open it may have another name there until it is not (NFS, FUSE).
        self.file = None;
        if self.is_there() && !self.is_needed() {
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::Verdict;
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
        let file = VerdictFile::create(vec![]).unwrap();
        let folder = File::open(file.path().unwrap().parent().unwrap()).unwrap();
        assert!(flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err());
        drop(file);
        assert!(flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok());
    }

    /// A cleaner that asks for nothing but the age, or somebody who moves folders about.
    #[test]
    fn what_was_taken_away_is_made_anew_for_the_next_attempt() {
        let mut file = VerdictFile::create(vec![]).unwrap();
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
        let mut file = VerdictFile::create(vec![]).unwrap();
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
        let file = VerdictFile::create(vec![]).unwrap();
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
        let file = VerdictFile::create(vec![]).unwrap();
        let folder = file.path().unwrap().parent().unwrap().to_owned();
        fs::write(folder.join("important"), "kept").unwrap();
        fs::create_dir(folder.join("empty")).unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(folder.join("important")).unwrap(), "kept");
        assert!(folder.join("empty").is_dir() && fs::read_dir(&folder).unwrap().count() == 2);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_last_line_counts() {
        let verdict = VerdictFile::create(vec![]).unwrap();
        let path = verdict.path().unwrap().to_owned();
        assert_eq!(verdict.take(1).about(1), None);
        fs::write(&path, "transient\npermanent\n\n").unwrap();
        assert_eq!(verdict.take(1).about(1), Some(Ok(Verdict::Permanent)));
        fs::write(&path, "perhaps").unwrap();
        assert_eq!(verdict.take(1).about(1), Some(Err("perhaps".to_owned())));
        fs::remove_file(&path).unwrap();
        assert_eq!(verdict.take(1).about(1), None);
        // Whoever is at something is at it all the same.
        verdict.file.as_ref().unwrap().write_all(b"\nexit 1-255 by 1.7: permanent\n").unwrap();
        assert_eq!(verdict.take(1).about(1), Some(Ok(Verdict::Permanent)));
        fs::write(&path, "exit 1: transient\n").unwrap();
        assert_eq!(verdict.take(1).about(1), Some(Ok(Verdict::Permanent)));
        fs::write(&path, "exit 1-255 by 1.7: taken back\nexit 1: transient\n").unwrap();
        assert_eq!(verdict.take(1).about(1), Some(Ok(Verdict::Transient)));
        drop(verdict);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }

    /// A loop in the command may have said the same again and again.
    #[test]
    fn the_last_line_counts_however_many_there_are() {
        let verdict = VerdictFile::create(vec![]).unwrap();
        for (times, last) in [(500, "permanent\n"), (455, "permanent"), (1_700_000, "exit 1: permanent\n\n")] {
            fs::write(verdict.path().unwrap(), "transient\n".repeat(times) + last).unwrap();
            assert_eq!(verdict.take(1).about(1), Some(Ok(Verdict::Permanent)), "{times}");
        }
        fs::write(verdict.path().unwrap(), "x".repeat(17 << 20)).unwrap();
        assert_eq!(verdict.take(1).about(1), Some(Err("...".to_owned())));
    }

    /// However much is said, by ten thousand of a service that has many on their way.
    #[test]
    fn what_was_said_long_ago_stands() {
        let verdict = VerdictFile::create(vec![]).unwrap();
        let others: String = (100..10_000)
            .map(|n| format!("exit 1-255 by 1.{n}: permanent\n\nexit 1-255 by 1.{n}: taken back\n"))
            .collect();
        fs::write(verdict.path().unwrap(), format!("exit 1-255 by 1.7: permanent\n{others}")).unwrap();
        assert_eq!(verdict.take(1).about(7), Some(Ok(Verdict::Permanent)));
        fs::write(verdict.path().unwrap(), others).unwrap();
        assert_eq!(verdict.take(1).about(7), None);
    }

    /// A link, a named pipe, a file put in its place by a rename: none of them is believed or waited for.
    #[test]
    fn only_the_file_is_read() {
        let verdict = VerdictFile::create(vec![]).unwrap();
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
