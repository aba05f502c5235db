//! What SQLite keeps beside a file, made before SQLite does.
//!
//! SQLite opens it by name, and makes it if it is not there. In a folder where others may write, somebody could put another file of the
//! caller's there by a link after it was looked that nothing is there, and SQLite would write over that. So it is made beforehand, as
//! what was not there: in a folder with the sticky bit nobody else can take away what is the caller's. SQLite takes an empty part for
//! none, and gives it the file's mode; root's, the file's owner, too.

#[cfg(target_os = "linux")]
use super::lists;
use super::{SqliteSettings, file};
use crate::Error;
#[cfg(target_os = "linux")]
use crate::numbers;
#[cfg(target_os = "linux")]
use rustix::fs::Stat;
#[cfg(unix)]
use rustix::io::Errno;
#[cfg(target_os = "linux")]
use std::{ffi::OsStr, os::fd::OwnedFd};
use std::{fs, path::Path};

/// What there is beside a file whose log is written ahead.
pub(super) const LOG: &[&str] = &["-wal", "-shm"];

/// What there is beside one that is not, while it is written to. SQLite looks for it beside each file before it knows which of them that is,
/// and writes what is in it into the file.
pub(super) const JOURNAL: &[&str] = &["-journal"];

/// The folder in which a file is.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether somebody has the file open, or has left what belongs to it. A journal without anything in it is none.
pub(super) fn is_in_use(file: &Path, settings: &SqliteSettings) -> bool {
    let real = file::real(file, settings).unwrap_or_else(|_| file.to_owned());
    let part = |end: &str| fs::symlink_metadata(file::beside(&real, end));
    part("-wal").is_ok() || part("-journal").is_ok_and(|data| data.len() > 0)
}

/// That what SQLite may make beside the file can be used by all who may write to it. It gets the file's mode, and belongs to who opens it
/// and so may have to make it, even to read: of who may not write to the file it would shut out who may.
///
/// # Errors
///
/// The file cannot be written to, and its folder can.
#[cfg(unix)]
pub(super) fn shut_nobody_out(file: &Path, settings: &SqliteSettings) -> Result<(), Error> {
    // What cannot be found or asked about is told by who looks at it.
    let Ok(real) = file::real(file, settings) else { return Ok(()) };
    let folder = folder_of(&real);
    match may_write(&real) {
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) if may_write(folder).is_ok() => Err(file::only_read(file)),
        _ => Ok(()),
    }
}

#[cfg(unix)]
pub(super) fn may_write(path: &Path) -> rustix::io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)
}

/// Elsewhere nothing is known of whose it would be.
#[cfg(not(unix))]
pub(super) fn shut_nobody_out(_: &Path, _: &SqliteSettings) -> Result<(), Error> {
    Ok(())
}

/// Whether others may put something into a folder, or all that is made there gets an access list of the folder's.
#[cfg(target_os = "linux")]
fn is_shared(folder: &Path) -> bool {
    is_open_to_others(folder) || lists::are_given_in(folder)
}

/// Whether others may put something into a folder.
#[cfg(target_os = "linux")]
pub(super) fn is_open_to_others(folder: &Path) -> bool {
    let (ours, data) = (rustix::process::geteuid().as_raw(), rustix::fs::stat(folder));
    // What cannot be looked at here is not to be opened by SQLite either, which says why.
    data.is_ok_and(|data| data.st_mode & 0o022 != 0 || data.st_uid != ours && data.st_uid != 0)
}

/// Whether what is made beside a file is another group's than the file, or has no list as the file has, and others come as far as that.
#[cfg(target_os = "linux")]
fn are_for_others(folder: &Path, file: &Path, of_file: &Stat) -> bool {
    rustix::fs::stat(folder).is_ok_and(|folder| {
        let of_new_ones = match folder.st_mode & 0o2000 {
            0 => rustix::process::getegid().as_raw(),
            _ => folder.st_gid,
        };
        let is_roots = rustix::process::geteuid().is_root() && of_file.st_uid != 0;
        folder.st_mode & 0o011 != 0 && (is_roots || !is_same_group(of_new_ones, of_file.st_gid) || lists::is_on(file))
    })
}

#[cfg(target_os = "linux")]
fn is_same_group(group: u32, other: u32) -> bool {
    group == other && numbers::is_known("gid", group)
}

/// Gives a part the file's group, and says what its mode is to be: the file's, but where it keeps another group, nobody but the
/// owner may do more than both the file's group and everybody may: who is in that may be shut out.
#[cfg(target_os = "linux")]
fn give_group(part: &impl std::os::fd::AsFd, of_part: u32, of_file: &Stat) -> rustix::fs::Mode {
    use rustix::fs::{AtFlags, Gid, chownat};
    let (mode, left) = (of_file.st_mode & 0o666, of_file.st_mode & of_file.st_mode >> 3 & 0o006);
    let is_well = is_same_group(of_part, of_file.st_gid)
        || chownat(part, "", None, Some(Gid::from_raw(of_file.st_gid)), AtFlags::EMPTY_PATH).is_ok();
    rustix::fs::Mode::from_raw_mode(if is_well { mode } else { mode & 0o600 | left << 3 | left })
}

/// Whether what is made can be given to a group.
#[cfg(target_os = "linux")]
fn may_be_given(group: u32) -> bool {
    use rustix::{
        process::{getegid, geteuid, getgroups},
        thread::{CapabilitySet, capabilities},
    };
    let may_give_all = || capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::CHOWN));
    let is_one = |one: &rustix::process::Gid| one.as_raw() == group;
    is_one(&getegid()) || getgroups().is_ok_and(|all| all.iter().any(is_one)) || geteuid().is_root() && may_give_all()
}

/// Root's is given to the file's owner.
#[cfg(target_os = "linux")]
fn give_owner(part: &OwnedFd, of_file: &Stat) {
    use rustix::fs::{AtFlags, Uid, chownat};
    if rustix::process::geteuid().is_root() && of_file.st_uid != 0 {
        let _ = chownat(part, "", Some(Uid::from_raw(of_file.st_uid)), None, AtFlags::EMPTY_PATH);
    }
}

/// What was made beside a file, where others could put something in its place.
#[cfg(target_os = "linux")]
pub(super) struct Made(Vec<file::Id>);

/// In a shared folder, and where a file's parts would be for others than the file, makes these parts of a file that is there, if they are not
/// there, and sees that strangers made none of them, whoever is believed: what the file's owner or another writer of it put there is as good
/// as the file. Elsewhere, `None`, it does nothing.
///
/// # Errors
///
/// There is one of a stranger's.
#[cfg(target_os = "linux")]
pub(super) fn make(file: &Path, ends: &[&str]) -> Result<Option<Made>, Error> {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, open, openat, statat};
    let (Some(name), folder) = (file.file_name(), folder_of(file)) else { return Ok(None) };
    let ours = rustix::process::geteuid().as_raw();
    let are_for_others =
        || statat(CWD, file, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|data| are_for_others(folder, file, &data));
    if !is_shared(folder) && !are_for_others() {
        return Ok(None);
    }
    let mut made = Made(Vec::new());
    let Ok(folder) = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return Ok(Some(made));
    };
    let Ok(of_file) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(Some(made)) };
    for end in ends {
        // Who could only read a journal could lock it, and nobody else would get it then.
        let whom = if JOURNAL.contains(end) { lists::For::Writers } else { lists::For::All };
        let mut of_file = of_file;
        if whom == lists::For::Writers {
            of_file.st_mode &= !0o044 | (of_file.st_mode & 0o022) << 1;
        }
        let mut part = name.to_owned();
        part.push(end);
        // Else who may use the file could not use what is left beside it. Everybody gives it to the file's group, if they are in it. The
        // caller's mask counts for nothing, as it does not with SQLite: what is made stays also where nothing comes of the opening, since
        // somebody may have it open by then.
        let dress = |there: &OwnedFd, of_part: &Stat| {
            lists::give(there, file, &of_file, give_group(there, of_part.st_gid, &of_file), whom);
        };
        if let Some(there) = place(&folder, &part, &dress) {
            made.0.extend(file::id_of(&there));
            give_owner(&there, &of_file);
        }
        let Ok(there) = openat(&folder, &part, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) else {
            continue;
        };
        let Ok(of_part) = statat(&there, "", AtFlags::EMPTY_PATH) else { continue };
        let is_a_writers = of_part.st_uid == of_file.st_uid || of_file.st_mode & 0o022 != 0;
        if !is_a_writers && of_part.st_uid != ours && of_part.st_uid != 0 {
            return Err(file::strangers(&file::beside(file, end), of_part.st_uid));
        }
    }
    Ok(Some(made))
}

/// Makes an empty file that has no name before it is dressed, so that nobody can exchange another for it, or be shut out by what is left of who is
/// killed meanwhile. `None`: there is one. It is open to be looked at alone: to close what SQLite has open elsewhere in this process would let go
/// of its locks.
#[cfg(target_os = "linux")]
fn place(folder: &OwnedFd, name: &OsStr, dress: &dyn Fn(&OwnedFd, &Stat)) -> Option<OwnedFd> {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open, openat, statat};
    let without_a_name = || {
        let made = openat(folder, ".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
        open(lists::by_number(&made), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    };
    let named = |there: OwnedFd| {
        dress(&there, &statat(&there, "", AtFlags::EMPTY_PATH)?);
        linkat(CWD, lists::by_number(&there), folder, name, AtFlags::SYMLINK_FOLLOW).map(|()| there)
    };
    match without_a_name().and_then(named) {
        Ok(there) => Some(there),
        Err(Errno::EXIST) => None,
        Err(_) => place_by_name(folder, name, dress),
    }
}

/// The same where the file system makes none without a name: nobody else is let in before it is what it should be.
#[cfg(target_os = "linux")]
fn place_by_name(folder: &OwnedFd, name: &OsStr, dress: &dyn Fn(&OwnedFd, &Stat)) -> Option<OwnedFd> {
    use rustix::fs::{AtFlags, FileType, Mode, OFlags, mknodat, openat, statat};
    mknodat(folder, name, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0).ok()?;
    let there = openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let data = statat(&there, "", AtFlags::EMPTY_PATH).ok()?;
    let is_as_made = data.st_uid == rustix::process::geteuid().as_raw() && data.st_nlink == 1 && data.st_size == 0;
    is_as_made.then(|| dress(&there, &data))?;
    Some(there)
}

/// Whether the parts that SQLite has open can be used by all who may write to the file: whoever closed it last may have removed those that were
/// [made](make) before, and then SQLite has made others, of the caller's own group. What others have given the name of one is none of those either,
/// and stays as it is: it may be what the caller has for themselves.
#[cfg(target_os = "linux")]
pub(super) fn are_well(file: &Path, ends: &[&str], made: &Made) -> bool {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, open, statat};
    let ours = rustix::process::geteuid().as_raw();
    let Ok(of_file) = statat(CWD, file, AtFlags::SYMLINK_NOFOLLOW) else { return true };
    ends.iter().all(|end| {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(part) = open(file::beside(file, end), flags, Mode::empty()) else { return true };
        let Ok(data) = statat(&part, "", AtFlags::EMPTY_PATH) else { return true };
        let is_as_the_file = is_same_group(data.st_gid, of_file.st_gid)
            && (data.st_mode ^ of_file.st_mode) & 0o666 == 0
            && (data.st_uid != 0 || of_file.st_uid == 0)
            && lists::is_well(&part, file, &of_file);
        let is_made = || file::id_of(&part).is_some_and(|id| made.0.contains(&id));
        data.st_uid != ours || is_as_the_file || is_made() || !may_be_given(of_file.st_gid)
    })
}

/// Elsewhere than on Linux nothing is known of a way to make a file without opening it.
#[cfg(not(target_os = "linux"))]
pub(super) struct Made;

#[cfg(not(target_os = "linux"))]
pub(super) fn make(_: &Path, _: &[&str]) -> Result<Option<Made>, Error> {
    Ok(None)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn are_well(_: &Path, _: &[&str], _: &Made) -> bool {
    true
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::{ErrorKind, in_sqlite::Sqlite};
    use std::{
        os::unix::fs::{MetadataExt, PermissionsExt, chown},
        path::PathBuf,
    };

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn believing() -> SqliteSettings {
        SqliteSettings { any_owner: true, ..SqliteSettings::default() }
    }

    fn names(folder: &Path) -> Vec<String> {
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = files.collect();
        names.sort();
        names
    }

    #[test]
    fn parts_are_there_before_sqlite_opens_them_where_others_may_write() {
        for (shared, are_made) in [(0o1777, true), (0o777, true), (0o1770, true), (0o755, false), (0o700, false)] {
            let folder = tempfile::tempdir().unwrap();
            mode(folder.path(), shared);
            let file = folder.path().join("state.db");
            let opened = crate::in_sqlite::opened::unread(&believing(), &file).unwrap();
            let all: &[&str] = match are_made {
                true => &["state.db", "state.db-journal", "state.db-shm", "state.db-wal"],
                false => &["state.db"],
            };
            assert_eq!(names(folder.path()), all, "{shared:o}");
            for name in all {
                let data = fs::symlink_metadata(folder.path().join(name)).unwrap();
                let of_it = (data.is_file(), data.mode() & 0o7777, data.nlink(), data.len());
                assert_eq!(of_it, (true, 0o600, 1, 0), "{shared:o}, {name}");
            }
            drop(opened);
            // It is as any store, and leaves nothing when it is closed.
            for _ in 0..2 {
                drop(believing().open(&file).unwrap());
                let again = Sqlite::open_url(&format!("sqlite:{}?owner=any&make=no", file.display())).unwrap();
                assert_eq!(names(folder.path()), ["state.db", "state.db-shm", "state.db-wal"], "{shared:o}");
                drop(again);
                assert_eq!(names(folder.path()), ["state.db"], "{shared:o}");
            }
        }
    }

    /// One that its group may not write to shuts out who may write to the file.
    #[test]
    fn parts_have_the_files_mode_whatever_the_mask_of_who_makes_them() {
        for of_file in [0o660, 0o666, 0o600, 0o640] {
            let folder = tempfile::tempdir().unwrap();
            mode(folder.path(), 0o777);
            let file = folder.path().join("state.db");
            drop(believing().open(&file).unwrap());
            mode(&file, of_file);
            drop(crate::in_sqlite::opened::unread(&believing(), &file).unwrap());
            for end in LOG {
                let data = fs::symlink_metadata(file::beside(&file, end)).unwrap();
                assert_eq!((data.mode() & 0o7777, data.len()), (of_file, 0), "{of_file:o}, {end}");
            }
        }
    }

    /// As containers and services have it that may give away, and not change what is somebody else's. It takes root.
    #[test]
    fn parts_that_are_given_to_the_files_owner_have_its_mode_and_list() {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        let folder = tempfile::tempdir().unwrap();
        mode(folder.path(), 0o777);
        let file = folder.path().join("state.db");
        drop(believing().open(&file).unwrap());
        if chown(&file, Some(65_534), Some(12_345)).is_err() {
            eprintln!("SKIPPED parts_that_are_given_to_the_files_owner_have_its_mode_and_list: it takes root");
            return;
        }
        let made = || {
            let without = || {
                let mut sets = capabilities(None).unwrap();
                sets.effective.remove(CapabilitySet::FOWNER);
                set_capabilities(None, sets).unwrap();
                drop(crate::in_sqlite::opened::unread(&believing(), &file).unwrap());
            };
            std::thread::scope(|scope| scope.spawn(without).join().unwrap());
            [LOG[0], LOG[1]].map(|end| file::beside(&file, end))
        };
        for of_file in [0o660, 0o666, 0o640, 0o600] {
            mode(&file, of_file);
            for part in made() {
                let data = fs::metadata(&part).unwrap();
                assert_eq!((data.uid(), data.gid(), data.mode() & 0o7777), (65_534, 12_345, of_file), "{part:?}");
                fs::remove_file(part).unwrap();
            }
        }
        if let Err(error) = lists::tests::give(&file) {
            eprintln!("SKIPPED parts_that_are_given_to_the_files_owner_have_its_mode_and_list in part: {error}");
            return;
        }
        for part in made() {
            let data = fs::metadata(&part).unwrap();
            assert_eq!((data.uid(), data.gid(), lists::is_on(&part)), (65_534, 12_345, true), "{part:?}");
        }
    }

    /// Whoever laid it there can exchange it between a look and its opening. It takes root to give something away.
    #[test]
    fn no_part_of_a_strangers_is_used_where_others_may_write() {
        let folder = tempfile::tempdir().unwrap();
        mode(folder.path(), 0o1777);
        let file = folder.path().join("state.db");
        let laid = |end: &str| -> Option<PathBuf> {
            let part = file::beside(&file, end);
            fs::write(&part, "").unwrap();
            chown(&part, Some(65_534), None).ok().map(|()| part)
        };
        for end in [LOG, JOURNAL].concat() {
            let _ = fs::remove_file(&file);
            let Some(part) = laid(end) else {
                eprintln!("SKIPPED no_part_of_a_strangers_is_used_where_others_may_write: it takes root");
                return;
            };
            let error = believing().open(&file).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{end}: {error}");
            assert!(
                error.to_string().ends_with(", a part of the store, belongs to a stranger, number 65534"),
                "{error}"
            );
            // Who may write to the file may have made it.
            for of_file in [0o660, 0o606] {
                mode(&file, of_file);
                let opened = believing().open(&file);
                assert!(opened.is_ok(), "{end}, {of_file:o}: {opened:?}");
                drop(opened);
                let _ = laid(end);
            }
            mode(&file, 0o600);
            chown(&file, Some(65_534), None).unwrap();
            fs::remove_file(&part).unwrap();
            drop(crate::in_sqlite::opened::unread(&believing(), &file).unwrap());
            for end in LOG {
                let data = fs::symlink_metadata(file::beside(&file, end)).unwrap();
                assert_eq!((data.uid(), data.nlink(), data.len()), (65_534, 1, 0), "{end}: whose the file is");
            }
            assert!(believing().open(&file).is_ok(), "{end}, of the file's owner");
            let _ = fs::remove_file(&part);
        }
    }

    /// Whom it names may not use the store.
    #[test]
    fn parts_have_no_list_that_the_folder_gives_to_all_that_is_made_there() {
        for shared in [0o755, 0o777, 0o2771] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("state.db");
            drop(believing().open(&file).unwrap());
            mode(&file, 0o660);
            mode(folder.path(), shared);
            if let Err(error) = lists::tests::give_to_new(folder.path()) {
                eprintln!("SKIPPED parts_have_no_list_that_the_folder_gives_to_all_that_is_made_there: {error}");
                return;
            }
            let of = |end: &str| {
                let part = file::beside(&file, end);
                let list = rustix::fs::getxattr(&part, "system.posix_acl_access", &mut [0; 256][..]);
                (list.is_ok(), fs::metadata(&part).unwrap().mode() & 0o777)
            };
            let opened = crate::in_sqlite::opened::unread(&believing(), &file).unwrap();
            assert_eq!([LOG[0], LOG[1]].map(of), [(false, 0o660); 2], "{shared:o}");
            drop(opened);
            for end in LOG {
                fs::remove_file(file::beside(&file, end)).unwrap();
            }
            // SQLite has made them.
            let conn = rusqlite::Connection::open(&file).unwrap();
            let _: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
            assert_eq!([LOG[0], LOG[1]].map(of), [(true, 0o660); 2], "{shared:o}");
            assert!(!are_well(&file, LOG, &Made(vec![])), "{shared:o}");
            drop(conn);
            let store = believing().open(&file).unwrap();
            assert_eq!([LOG[0], LOG[1]].map(of), [(false, 0o660); 2], "{shared:o}");
            drop(store);
            assert_eq!(names(folder.path()), ["state.db"], "{shared:o}");
        }
    }

    /// Whoever is in the folder's group, or in the caller's, may not read what is in the file. It takes root to give something away.
    #[test]
    fn the_log_of_a_file_of_another_group_is_for_nobody_whom_the_file_is_not_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.db");
        for (folders, of_folder) in [(0o2755, Some(54_321)), (0o755, None), (0o2711, Some(54_321))] {
            drop(believing().open(&file).unwrap());
            if chown(folder.path(), None, of_folder).and_then(|()| chown(&file, None, Some(12_345))).is_err() {
                eprintln!(
                    "SKIPPED the_log_of_a_file_of_another_group_is_for_nobody_whom_the_file_is_not_for: it takes root"
                );
                return;
            }
            mode(folder.path(), folders);
            for of_file in [0o640, 0o660, 0o600, 0o644] {
                mode(&file, of_file);
                let of = |end: &str| {
                    let data = fs::metadata(file::beside(&file, end)).unwrap();
                    (data.gid(), data.mode() & 0o777)
                };
                let opened = crate::in_sqlite::opened::unread(&believing(), &file).unwrap();
                assert_eq!([LOG[0], LOG[1]].map(of), [(12_345, of_file); 2], "{folders:o} {of_file:o}");
                drop(opened);
                LOG.iter().for_each(|end| drop(fs::remove_file(file::beside(&file, end))));
            }
            fs::remove_file(&file).unwrap();
        }
    }

    /// Whose group it cannot be, it is for no group.
    #[test]
    fn a_part_that_does_not_get_the_files_group_is_for_no_other() {
        use rustix::{
            fs::{Mode, OFlags, open},
            thread::{CapabilitySet, capabilities, set_capabilities},
        };
        let folder = tempfile::tempdir().unwrap();
        let part = folder.path().join("part");
        fs::write(&part, "").unwrap();
        let mut of_file = rustix::fs::stat(&part).unwrap();
        let of_part = of_file.st_gid;
        of_file.st_gid = 12_345;
        let mut given = move |mode: u32, of_part: u32| {
            of_file.st_mode = mode;
            let part = open(&part, OFlags::PATH, Mode::empty()).unwrap();
            give_group(&part, of_part, &of_file).as_raw_mode()
        };
        let without = move || {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::CHOWN);
            set_capabilities(None, sets).unwrap();
            let modes = [
                (0o640, 0o600),
                (0o660, 0o600),
                (0o644, 0o644),
                (0o664, 0o644),
                (0o666, 0o666),
                (0o604, 0o600),
                (0o646, 0o644),
            ];
            for (mode, left) in modes {
                assert_eq!((given(mode, of_part), given(mode, 12_345)), (left, mode), "{mode:o}");
            }
        };
        std::thread::scope(|scope| scope.spawn(without).join().unwrap());
    }

    /// SQLite takes whatever has the name for its log, and would give it to the file's owner and group, and what is empty the file's mode.
    #[test]
    fn what_others_have_given_the_logs_name_is_given_to_nobody() {
        let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = folder.path().join("state.db");
        drop(believing().open(&file).unwrap());
        mode(folder.path(), 0o770);
        if chown(folder.path(), None, Some(12_345)).and_then(|()| chown(&file, None, Some(12_345))).is_err() {
            eprintln!("SKIPPED what_others_have_given_the_logs_name_is_given_to_nobody: it takes root");
            return;
        }
        mode(&file, 0o660);
        for end in [LOG, JOURNAL].concat() {
            let (path, part) = (home.path().join("private"), file::beside(&file, end));
            fs::write(&path, "private").unwrap();
            chown(&path, None, Some(54_321)).unwrap();
            mode(&path, 0o640);
            let private = fs::File::open(&path).unwrap();
            fs::rename(path, &part).unwrap();
            let store = believing().open(&file);
            let data = private.metadata().unwrap();
            assert_eq!((data.gid(), data.mode() & 0o777), (54_321, 0o640), "{end}: {store:?}");
            drop(store);
            let _ = fs::remove_file(part);
        }
    }

    /// SQLite makes it anew where somebody has closed the file, and removed it, after it was made. It takes root to give something away.
    #[test]
    fn a_log_that_sqlite_has_made_anew_is_made_by_us_when_nobody_else_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.db");
        drop(believing().open(&file).unwrap());
        mode(folder.path(), 0o770);
        if chown(&file, Some(65_534), Some(12_345)).is_err() {
            eprintln!("SKIPPED a_log_that_sqlite_has_made_anew_is_made_by_us_when_nobody_else_has_it: it takes root");
            return;
        }
        mode(&file, 0o660);
        let of = |end: &str| {
            let data = fs::metadata(file::beside(&file, end)).unwrap();
            (data.uid(), data.gid(), data.mode() & 0o777)
        };
        let made_by_sqlite = || {
            let conn = rusqlite::Connection::open(&file).unwrap();
            let read = || conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
            let _: i64 = crate::in_sqlite::rights::kept(read);
            conn
        };
        let conn = made_by_sqlite();
        assert!(!are_well(&file, LOG, &Made(vec![])));
        // Who has it open keeps it.
        drop(believing().open(&file).unwrap());
        assert_eq!([LOG[0], LOG[1]].map(|end| of(end).0), [0; 2]);
        // What was left, and nobody has open, is made anew.
        let kept = LOG.iter().map(|end| (file::beside(&file, end), fs::read(file::beside(&file, end)).unwrap()));
        let kept: Vec<(PathBuf, Vec<u8>)> = kept.collect();
        drop(conn);
        kept.iter().for_each(|(part, bytes)| fs::write(part, bytes).unwrap());
        let store = believing().open(&file).unwrap();
        assert_eq!([LOG[0], LOG[1]].map(of), [(65_534, 12_345, 0o660); 2]);
        drop(store);
    }

    /// As on file systems that make none without a name.
    #[test]
    fn a_part_that_is_made_by_its_name_is_dressed_as_well() {
        use rustix::fs::{Mode, OFlags, open};
        let folder = tempfile::tempdir().unwrap();
        let opened = open(folder.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        for make in [place, place_by_name] {
            let dress = |there: &OwnedFd, of_part: &Stat| {
                assert_eq!((of_part.st_mode & 0o777, of_part.st_size), (0o600, 0));
                rustix::fs::chmodat(
                    rustix::fs::CWD,
                    lists::by_number(there),
                    Mode::from_raw_mode(0o640),
                    rustix::fs::AtFlags::empty(),
                )
                .unwrap();
            };
            let there = make(&opened, OsStr::new("part"), &dress).unwrap();
            let path = folder.path().join("part");
            assert_eq!((file::id_of(&there), fs::metadata(&path).unwrap().mode() & 0o777), (file::id(&path), 0o640));
            assert!(make(&opened, OsStr::new("part"), &dress).is_none(), "there is one");
            fs::remove_file(path).unwrap();
        }
    }
}
