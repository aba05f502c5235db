//! The name of a file's journal, taken while SQLite reads the file for the first time.

#[cfg(target_os = "linux")]
use super::{
    file,
    parts::{JOURNAL, folder_of, is_open_to_others, make, may_write},
};
use crate::Error;
#[cfg(target_os = "linux")]
use crate::ErrorKind;
#[cfg(target_os = "linux")]
use rustix::{fd::OwnedFd, io::Errno};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::{
    ffi::{OsStr, OsString},
    time::Duration,
};

/// The name of a file's journal, taken by an empty one where others may write: SQLite would write one of theirs into the file at its first
/// read, whatever the file says of a log.
#[cfg(target_os = "linux")]
pub(super) struct Taken {
    folder: OwnedFd,
    name: OsString,
    /// Who needs it holds a lock that others can hold, too, so that it stays for them.
    journal: OwnedFd,
}

/// Takes the name of a file's journal, where others may write. Where the caller may make nothing, the folder is somebody else's, who decides what
/// is there.
///
/// # Errors
///
/// There is one of a stranger's, it cannot be opened, or somebody keeps it locked.
#[cfg(target_os = "linux")]
pub(super) fn take(file: &Path) -> Result<Option<Taken>, Error> {
    use rustix::fs::{FlockOperation, Mode, OFlags, flock, open, openat};
    const TRIES: u32 = 200;
    let folder = folder_of(file);
    if !is_open_to_others(folder) {
        return Ok(None);
    }
    let Ok(folder) = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return Ok(None);
    };
    let name = file::beside(file, JOURNAL[0]).file_name().unwrap_or_default().to_owned();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    for _ in 0..TRIES {
        make(file, JOURNAL)?;
        match openat(&folder, &name, flags, Mode::empty()) {
            Ok(journal) => match flock(&journal, FlockOperation::NonBlockingLockShared) {
                // It was looked whose it is before it was opened, and this may be another one.
                Ok(()) if is_it(&folder, &name, &journal) => {
                    make(file, JOURNAL)?;
                    return Ok(Some(Taken { folder, name, journal }));
                }
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(1)),
                // Where there are no locks, nobody gives it back.
                Err(_) if is_it(&folder, &name, &journal) => return make(file, JOURNAL).map(|_| None),
                Err(_) => {}
            },
            Err(_) if may_write(folder_of(file)).is_err() => return Ok(None),
            Err(Errno::NOENT) => {}
            // Somebody else may have taken it when it was given back.
            Err(err) => {
                let what = format!("the journal beside the store's file cannot be opened: {err}");
                return Err(Error::new(ErrorKind::Refused, what)
                    .hint("whose is it, and may one more file be open (ulimit -n)?"));
            }
        }
    }
    Err(Error::new(ErrorKind::Contended, "somebody keeps the journal beside the store's file locked"))
}

/// Whether a name is still that of what was opened by it.
#[cfg(target_os = "linux")]
fn is_it(folder: &OwnedFd, name: &OsStr, opened: &OwnedFd) -> bool {
    use rustix::fs::{AtFlags, fstat, statat};
    let of = |data: rustix::fs::Stat| (data.st_dev, data.st_ino);
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(of) == fstat(opened).map(of)
}

#[cfg(target_os = "linux")]
impl Taken {
    /// Gives the name back, once SQLite has read that the file has a log: from then on it looks for no journal. One that another process needs
    /// stays until that gives it back, and so does one of a file without a log, which may be another program's by now.
    pub(super) fn give_back(self) {
        use rustix::fs::{AtFlags, FlockOperation, flock, fstat, unlinkat};
        // Whoever does not get this lock has none any more.
        let is_alone = flock(&self.journal, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_alone
            && is_it(&self.folder, &self.name, &self.journal)
            && fstat(&self.journal).is_ok_and(|data| data.st_size == 0)
        {
            let _ = unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Elsewhere nothing is made.
#[cfg(not(target_os = "linux"))]
pub(super) struct Taken;

#[cfg(not(target_os = "linux"))]
pub(super) fn take(_: &Path) -> Result<Option<Taken>, Error> {
    Ok(None)
}

#[cfg(not(target_os = "linux"))]
impl Taken {
    pub(super) fn give_back(self) {}
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt},
    };

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = files.collect();
        names.sort();
        names
    }

    /// Whoever gives it back when another has looked at it, and not read, would leave the name to anybody.
    #[test]
    fn a_journals_name_is_taken_until_nobody_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.db");
        fs::write(&file, "").unwrap();
        assert!(take(&file).unwrap().is_none(), "nobody else can write there");
        mode(folder.path(), 0o1777);
        let (first, second) = (take(&file).unwrap().unwrap(), take(&file).unwrap().unwrap());
        first.give_back();
        assert_eq!(names(folder.path()), ["state.db", "state.db-journal"]);
        let third = take(&file).unwrap().unwrap();
        second.give_back();
        assert_eq!(names(folder.path()), ["state.db", "state.db-journal"]);
        fs::write(file::beside(&file, JOURNAL[0]), "of a transaction").unwrap();
        third.give_back();
        assert_eq!(names(folder.path()), ["state.db", "state.db-journal"], "it is in use");
        fs::write(file::beside(&file, JOURNAL[0]), "").unwrap();
        let old = take(&file).unwrap().unwrap();
        fs::remove_file(file::beside(&file, JOURNAL[0])).unwrap();
        fs::write(file::beside(&file, JOURNAL[0]), "").unwrap();
        old.give_back();
        assert_eq!(names(folder.path()), ["state.db", "state.db-journal"], "it is another one");
        take(&file).unwrap().unwrap().give_back();
        assert_eq!(names(folder.path()), ["state.db"]);
    }

    /// Who could only read it could hold a lock of it.
    #[test]
    fn a_journal_is_for_those_alone_who_may_write_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.db");
        fs::write(&file, "").unwrap();
        mode(folder.path(), 0o1777);
        for (of_file, of_journal) in [(0o600, 0o600), (0o644, 0o600), (0o664, 0o660), (0o666, 0o666), (0o640, 0o600)] {
            mode(&file, of_file);
            let taken = take(&file).unwrap().unwrap();
            let data = fs::metadata(file::beside(&file, JOURNAL[0])).unwrap();
            assert_eq!(data.mode() & 0o777, of_journal, "{of_file:o}");
            taken.give_back();
        }
        let journal = file::beside(&file, JOURNAL[0]);
        fs::write(&journal, "").unwrap();
        let held = fs::File::open(&journal).unwrap();
        held.lock().unwrap();
        assert_eq!(take(&file).err().map(|error| error.kind()), Some(ErrorKind::Contended));
        drop(held);
        assert!(take(&file).unwrap().is_some());
        // One that cannot be opened may be anybody's in a moment.
        fs::remove_file(&journal).unwrap();
        std::os::unix::fs::symlink("none", &journal).unwrap();
        assert_eq!(take(&file).err().map(|error| error.kind()), Some(ErrorKind::Refused));
    }

    /// Many at once, each of which sees that the name is taken when it reads.
    #[test]
    fn a_journals_name_is_never_free_for_who_has_taken_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.db");
        fs::write(&file, "").unwrap();
        mode(folder.path(), 0o1777);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let taken = take(&file).unwrap().unwrap();
                        assert!(is_it(&taken.folder, &taken.name, &taken.journal));
                        std::thread::yield_now();
                        assert!(is_it(&taken.folder, &taken.name, &taken.journal));
                        taken.give_back();
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), ["state.db"]);
    }
}
