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
fn are_for_others(folder: &Path, file: &Path, of_file: &rustix::fs::Stat) -> bool {
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
fn give_group(part: &impl std::os::fd::AsFd, of_part: u32, of_file: &rustix::fs::Stat) -> rustix::fs::Mode {
    use rustix::fs::{AtFlags, Gid, chownat};
    let (mode, left) = (of_file.st_mode & 0o666, of_file.st_mode & of_file.st_mode >> 3 & 0o006);
    let is_well = is_same_group(of_part, of_file.st_gid)
        || chownat(part, "", None, Some(Gid::from_raw(of_file.st_gid)), AtFlags::EMPTY_PATH).is_ok();
    rustix::fs::Mode::from_raw_mode(if is_well { mode } else { mode & 0o600 | left << 3 | left })
}

/// Root's is given to the file's owner.
#[cfg(target_os = "linux")]
fn give_owner(part: &OwnedFd, of_part: &rustix::fs::Stat, of_file: &rustix::fs::Stat) {
    use rustix::fs::{AtFlags, Uid, chownat};
    if of_part.st_uid == 0 && of_part.st_uid != of_file.st_uid {
        let _ = chownat(part, "", Some(Uid::from_raw(of_file.st_uid)), None, AtFlags::EMPTY_PATH);
    }
}

/// In a shared folder, and where a file's parts would be for others than the file, makes these parts of a file that is there, if they are not
/// there, and sees that strangers made none of them, whoever is believed: what the file's owner or another writer of it put there is as good
/// as the file. Elsewhere it does nothing. Whether it is such a place.
///
/// # Errors
///
/// There is one of a stranger's.
#[cfg(target_os = "linux")]
pub(super) fn make(file: &Path, ends: &[&str]) -> Result<bool, Error> {
    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, mknodat, open, openat, statat};
    let Some(name) = file.file_name() else { return Ok(false) };
    let folder = folder_of(file);
    let ours = rustix::process::geteuid().as_raw();
    let is_shared = is_shared(folder);
    let are_for_others =
        statat(CWD, file, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|data| are_for_others(folder, file, &data));
    if !is_shared && !are_for_others {
        return Ok(false);
    }
    let is_given_later = are_for_others || lists::are_given_in(folder) || lists::is_on(file);
    let Ok(folder) = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return Ok(true);
    };
    let Ok(of_file) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(true) };
    for end in ends {
        // Who could only read a journal could lock it, and nobody else would get it then.
        let whom = if JOURNAL.contains(end) { lists::For::Writers } else { lists::For::All };
        let mut of_file = of_file;
        if whom == lists::For::Writers {
            of_file.st_mode &= !0o044 | (of_file.st_mode & 0o022) << 1;
        }
        let mut part = name.to_owned();
        part.push(end);
        // Neither opened nor followed: to close what SQLite has open elsewhere in this process would let go of its locks.
        let made = mknodat(&folder, &part, FileType::RegularFile, begins(of_file.st_mode, is_given_later), 0);
        let Ok(there) = openat(&folder, &part, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) else {
            continue;
        };
        let Ok(of_part) = statat(&there, "", AtFlags::EMPTY_PATH) else { continue };
        // Else who may use the file could not use what is left beside it; what somebody has exchanged for it stays whose it is. Root gives
        // it to the file's owner, and everybody to the file's group, if they are in it. The caller's mask counts for nothing, as it does
        // not with SQLite: what is made stays also where nothing comes of the opening, since somebody may have it open by then.
        let is_as_made = made.is_ok() && of_part.st_uid == ours && of_part.st_nlink == 1 && of_part.st_size == 0;
        if is_as_made {
            let mode = give_group(&there, of_part.st_gid, &of_file);
            // While it is the caller's: to change what is somebody else's takes more than to give it away (CAP_FOWNER).
            lists::give(&there, file, &of_file, mode, whom);
            give_owner(&there, &of_part, &of_file);
        }
        let is_a_writers = of_part.st_uid == of_file.st_uid || of_file.st_mode & 0o022 != 0;
        if !is_a_writers && of_part.st_uid != ours && of_part.st_uid != 0 {
            return Err(file::strangers(&file::beside(file, end), of_part.st_uid));
        }
    }
    Ok(true)
}

/// The mode with which a part of a file of this mode is made: the same, so that what is left of who is killed then shuts nobody out; but where lists
/// say who may do what, or the group is another, nobody is let in before those are what they should be.
#[cfg(target_os = "linux")]
fn begins(of_file: u32, is_given_later: bool) -> rustix::fs::Mode {
    rustix::fs::Mode::from_raw_mode(of_file & if is_given_later { 0o600 } else { 0o666 })
}

/// What may be given to others: what nothing stood in before SQLite opened the file, or was made since then. Who may write to the folder can
/// have given a part's name to whatever the caller has there for themselves, and SQLite opens that.
#[cfg(target_os = "linux")]
pub(super) struct Fresh {
    since: std::time::SystemTime,
    empty: Vec<file::Id>,
}

#[cfg(target_os = "linux")]
impl Fresh {
    /// As it is now.
    pub(super) fn beside(file: &Path, ends: &[&str]) -> Fresh {
        use rustix::time::{ClockId, clock_gettime};
        // By the clock of file systems, which does not go as finely.
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let (seconds, nanos) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
        let since = std::time::SystemTime::UNIX_EPOCH
            + std::time::Duration::from_secs(seconds)
            + std::time::Duration::from_nanos(nanos);
        let empty = ends.iter().filter_map(|end| {
            let part = looked_at(&file::beside(file, end))?;
            let data = rustix::fs::statat(&part, "", rustix::fs::AtFlags::EMPTY_PATH).ok()?;
            (data.st_size == 0).then(|| file::id_of(&part))?
        });
        Fresh { since, empty: empty.collect() }
    }

    fn has(&self, part: &OwnedFd) -> bool {
        file::id_of(part).is_some_and(|id| self.empty.contains(&id) || id.born().is_some_and(|born| born >= self.since))
    }
}

/// Opens a part to be looked at, and no more: to close what SQLite has open would let go of its locks.
#[cfg(target_os = "linux")]
fn looked_at(part: &Path) -> Option<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    open(part, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Sees, once the file was read, that the parts that SQLite has open can be used by all who may write to the file: whoever closed it last may
/// have removed those that were made before, and then SQLite has made others, of the caller's own group. They get the file's group, mode
/// and access list, where [`make`] has made them.
#[cfg(target_os = "linux")]
pub(super) fn give(file: &Path, ends: &[&str], fresh: &Fresh) {
    use rustix::fs::{AtFlags, CWD, FileType, Mode, statat};
    let ours = rustix::process::geteuid().as_raw();
    let folder = folder_of(file);
    let Ok(of_file) = statat(CWD, file, AtFlags::SYMLINK_NOFOLLOW) else { return };
    let is_to_be_given = is_shared(folder) || are_for_others(folder, file, &of_file);
    for end in ends.iter().filter(|_| is_to_be_given) {
        let Some(part) = looked_at(&file::beside(file, end)) else { continue };
        let Ok(data) = statat(&part, "", AtFlags::EMPTY_PATH) else { continue };
        let mode = Mode::from_raw_mode(of_file.st_mode & 0o666);
        let is_as_the_file = is_same_group(data.st_gid, of_file.st_gid) && Mode::from_raw_mode(data.st_mode) == mode;
        let is_ours = data.st_uid == ours && data.st_nlink == 1 && FileType::from_raw_mode(data.st_mode).is_file();
        // What somebody has exchanged for it stays whose it is.
        let is_its_owners = ours != 0 || data.st_uid == of_file.st_uid;
        let is_well = is_as_the_file && is_its_owners && lists::is_well(&part, file, &of_file);
        if is_well || !is_ours || !fresh.has(&part) || !is_open_here(data.st_dev, data.st_ino) {
            continue;
        }
        lists::give(&part, file, &of_file, give_group(&part, data.st_gid, &of_file), lists::For::All);
        give_owner(&part, &data, &of_file);
    }
}

/// Whether this process has a file open otherwise than to be looked at.
#[cfg(target_os = "linux")]
fn is_open_here(device: u64, number: u64) -> bool {
    use std::os::unix::fs::MetadataExt;
    let is_it = |data: fs::Metadata| (data.dev(), data.ino()) == (device, number);
    let is_for_more = |number: &OsStr| {
        let told = fs::read_to_string(Path::new("/proc/self/fdinfo").join(number)).unwrap_or_default();
        let flags = told.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
        flags.is_some_and(|flags| flags & rustix::fs::OFlags::PATH.bits() == 0)
    };
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    open.into_iter().any(|entry| fs::metadata(entry.path()).is_ok_and(is_it) && is_for_more(&entry.file_name()))
}

/// Elsewhere nothing is.
#[cfg(not(target_os = "linux"))]
pub(super) struct Fresh;

#[cfg(not(target_os = "linux"))]
impl Fresh {
    pub(super) fn beside(_: &Path, _: &[&str]) -> Fresh {
        Fresh
    }
}

/// Elsewhere nobody is asked.
#[cfg(not(target_os = "linux"))]
pub(super) fn give(_: &Path, _: &[&str], _: &Fresh) {}

/// Elsewhere than on Linux nothing is known of a way to make a file without opening it.
#[cfg(not(target_os = "linux"))]
pub(super) fn make(_: &Path, _: &[&str]) -> Result<bool, Error> {
    Ok(false)
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
    fn parts_are_made_for_all_who_may_use_the_file_unless_lists_say_who_that_is() {
        for (of_file, has_lists, mode) in [(0o660, false, 0o660), (0o664, true, 0o600), (0o440, false, 0o440)] {
            assert_eq!(begins(0o100_000 | of_file, has_lists).bits(), mode, "{of_file:o}");
        }
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
            let fresh = Fresh::beside(&file, LOG);
            let conn = rusqlite::Connection::open(&file).unwrap();
            let _: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
            assert_eq!([LOG[0], LOG[1]].map(of), [(true, 0o660); 2], "{shared:o}");
            give(&file, LOG, &fresh);
            assert_eq!([LOG[0], LOG[1]].map(of), [(false, 0o660); 2], "{shared:o}");
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

    /// SQLite takes whatever has the name for its log; what it makes nothing of, it leaves as it is until it is written to.
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
        let log = file::beside(&file, "-wal");
        let private = |name: &str| {
            let path = home.path().join(name);
            fs::write(&path, "private").unwrap();
            chown(&path, None, Some(54_321)).unwrap();
            mode(&path, 0o640);
            path
        };
        let (first, second) = (private("first"), private("second"));
        // The clock of file systems goes on.
        let born = file::id(&second).unwrap().born();
        while born.is_some_and(|born| Fresh::beside(&file, LOG).since <= born) {}
        let now = || {
            let data = fs::metadata(&log).unwrap();
            (data.gid(), data.mode() & 0o777)
        };
        // Before it is opened.
        fs::rename(first, &log).unwrap();
        let store = believing().open(&file).unwrap();
        assert_eq!(now(), (54_321, 0o640));
        drop(store);
        // In the place of one that was made beforehand.
        fs::write(&log, "").unwrap();
        let fresh = Fresh::beside(&file, LOG);
        fs::rename(second, &log).unwrap();
        let conn = rusqlite::Connection::open(&file).unwrap();
        let read = || conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        let _: i64 = crate::in_sqlite::rights::kept(read);
        give(&file, LOG, &fresh);
        assert_eq!(now(), (54_321, 0o640));
    }

    /// SQLite makes it anew where somebody has closed the file, and removed it, after it was made. It takes root to give something away.
    #[test]
    fn a_log_that_sqlite_has_made_anew_is_given_to_the_files_owner_and_group() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.db");
        drop(believing().open(&file).unwrap());
        if chown(&file, Some(65_534), Some(12_345)).is_err() {
            eprintln!("SKIPPED a_log_that_sqlite_has_made_anew_is_given_to_the_files_owner_and_group: it takes root");
            return;
        }
        mode(&file, 0o660);
        let of = |end: &str| {
            let data = fs::metadata(file::beside(&file, end)).unwrap();
            (data.uid(), data.gid(), data.mode() & 0o777)
        };
        for (folders, now) in [(0o770, (65_534, 12_345, 0o660)), (0o700, (0, 54_321, 0o600))] {
            mode(folder.path(), folders);
            let fresh = Fresh::beside(&file, LOG);
            let conn = rusqlite::Connection::open(&file).unwrap();
            let read = || conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
            let _: i64 = crate::in_sqlite::rights::kept(read);
            for end in LOG {
                chown(file::beside(&file, end), None, Some(54_321)).unwrap();
                mode(&file::beside(&file, end), 0o600);
            }
            give(&file, LOG, &fresh);
            assert_eq!([LOG[0], LOG[1]].map(of), [now; 2], "{folders:o}");
        }
        // What nobody has open here was laid there.
        mode(folder.path(), 0o770);
        let fresh = Fresh::beside(&file, LOG);
        for end in LOG {
            fs::write(file::beside(&file, end), "private").unwrap();
            mode(&file::beside(&file, end), 0o600);
        }
        let before = [LOG[0], LOG[1]].map(of);
        give(&file, LOG, &fresh);
        assert_eq!([LOG[0], LOG[1]].map(of), before);
    }
}
