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
mod tests;
