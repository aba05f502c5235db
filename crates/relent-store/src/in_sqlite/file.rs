//! The file: made for its user alone, and not opened where it is no file or others decide what is in it.

use super::{SqliteSettings, fault};
use crate::{Error, ErrorKind, at_once};
#[cfg(unix)]
use rustix::io::Errno;
use std::{
    fs,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Makes the file if it is not there, for its user alone; what SQLite puts beside it has the same mode. One that is there must
/// be a regular file, as must be what SQLite would read beside it: a pipe would be waited for without end. Unless
/// anybody is believed, both must be the caller's or root's, and not writable by everybody.
///
/// What is to be said of others who can write to it or read it.
pub(super) fn prepare(path: &Path, settings: &SqliteSettings) -> Result<Vec<&'static str>, Error> {
    make(path)?;
    look(path, settings)
}

/// The same for a file that must be there.
pub(super) fn look(path: &Path, settings: &SqliteSettings) -> Result<Vec<&'static str>, Error> {
    let of_anybody = settings.any_owner;
    let looked = if settings.no_links { fs::symlink_metadata(path) } else { fs::metadata(path) };
    let data = looked.map_err(|err| cannot(path, "be looked at", &err))?;
    let real = real(path, settings).map_err(|err| cannot(path, "be looked at", &err))?;
    if !data.is_file() {
        return Err(no_file(path));
    }
    // SQLite takes one for empty, and writes over it. No store has as little.
    if data.len() == 1 {
        return Err(fault::no_store());
    }
    if is_mounted(&real) {
        let what = format!("the store's file {} is mounted by itself", show(path));
        return Err(Error::new(ErrorKind::Refused, what)
            .hint("who opens it elsewhere would not see what SQLite keeps beside it here: mount its folder instead"));
    }
    if of_anybody && settings.no_links && has_another_name(&data) {
        let what = format!("the store's file {} has another name elsewhere", show(path));
        return Err(Error::new(ErrorKind::Refused, what).hint("anybody may have given it this one; copy it"));
    }
    let second = has_another_name(&data)
        .then_some("The file has a second name: who opens it by that one does not see who uses it by this one.");
    let cautions = whose(path, &data, None, of_anybody)?.into_iter().chain(second).collect();
    for beside in ["-wal", "-shm", JOURNAL].map(|end| beside(&real, end)) {
        match fs::symlink_metadata(&beside) {
            Ok(of_it) if !of_it.is_file() => return Err(no_file(&beside)),
            // Whoever owns it: SQLite writes over whatever was there.
            Ok(of_it) if has_another_name(&of_it) => {
                let what = format!("{}, a part of the store, has another name elsewhere", show(&beside));
                return Err(Error::new(ErrorKind::Refused, what)
                    .hint("SQLite gives none: somebody has put another file there, or kept this one by a link"));
            }
            // Who holds it open could cut it off under who reads it, or read what is written to it.
            Ok(of_it) => whose(&beside, &of_it, Some(&data), of_anybody).map(drop)?,
            Err(_) => {}
        }
    }
    names_no_other(&beside(&real, JOURNAL))?;
    Ok(cautions)
}

/// Where SQLite keeps what stands beside the file: it follows links first, if it may.
pub(super) fn real(path: &Path, settings: &SqliteSettings) -> io::Result<PathBuf> {
    if settings.no_links { Ok(path.to_owned()) } else { path.canonicalize() }
}

const JOURNAL: &str = "-journal";

/// What a journal ends with that was one of several, and names the file that has the names of all.
const ONE_OF_SEVERAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// A journal with which nothing is done but to undo what was not committed. One that names another file has SQLite read that, whatever
/// it is and however long; no store is written together with another.
fn names_no_other(journal: &Path) -> Result<(), Error> {
    let end = || -> io::Result<[u8; 8]> {
        let mut end = [0; 8];
        // What was put there meanwhile is opened at once, too.
        let mut file = at_once::open(journal)?;
        file.seek(SeekFrom::End(-8))?;
        file.read_exact(&mut end)?;
        Ok(end)
    };
    // One that cannot be read, or has less in it, is none.
    match end() {
        Ok(ONE_OF_SEVERAL) => {
            let what = format!("{} is the journal of several databases, and names a file of others", show(journal));
            let hint =
                "no relent has made it; a program that writes several at once puts an end to it when it opens this one";
            Err(Error::new(ErrorKind::Refused, what).hint(hint))
        }
        _ => Ok(()),
    }
}

/// Which file it is: its number, and when it was made, because numbers are given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(u64, u64, Option<SystemTime>);

/// Which file a path names, where the system says so. Nothing else is asked, because this is before and after each commit: since
/// Linux 6.13 a file whose times somebody has looked at gets finer ones with the next byte, and they have to be on disk with it, so
/// that a commit would take half as long again.
#[cfg(target_os = "linux")]
pub(super) fn id(path: &Path) -> Option<Id> {
    id_at(rustix::fs::CWD, path, rustix::fs::AtFlags::empty())
}

/// The same of what is open, be it only to be looked at.
#[cfg(target_os = "linux")]
pub(super) fn id_of(file: impl std::os::fd::AsFd) -> Option<Id> {
    id_at(file, Path::new(""), rustix::fs::AtFlags::EMPTY_PATH)
}

#[cfg(target_os = "linux")]
fn id_at(folder: impl std::os::fd::AsFd, path: &Path, flags: rustix::fs::AtFlags) -> Option<Id> {
    use rustix::fs::{StatxFlags, statx};
    use std::time::Duration;
    let data = statx(folder, path, flags, StatxFlags::INO | StatxFlags::BTIME).ok()?;
    let is_told = StatxFlags::from_bits_retain(data.stx_mask).contains(StatxFlags::BTIME);
    let seconds = u64::try_from(data.stx_btime.tv_sec).ok().filter(|_| is_told);
    let born = seconds.and_then(|seconds| {
        SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, data.stx_btime.tv_nsec.min(999_999_999)))
    });
    let device = u64::from(data.stx_dev_major) << 32 | u64::from(data.stx_dev_minor);
    Some(Id(device, data.stx_ino, born))
}

/// Which file a path names, where the system says so.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn id(path: &Path) -> Option<Id> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|data| Id(data.dev(), data.ino(), data.created().ok()))
}

/// An open file cannot be deleted elsewhere.
#[cfg(not(unix))]
pub(super) fn id(_: &Path) -> Option<Id> {
    None
}

/// The file was taken away under a process that uses it.
pub(super) fn gone(path: &Path) -> Error {
    let what = format!("the store's file {} was deleted or replaced while it was in use", show(path));
    Error::new(ErrorKind::Unavailable, what)
        .hint("put a copy back, or `relent store migrate` makes an empty one, which knows nothing of what was done")
}

/// What SQLite keeps beside the file was taken away under a process that uses it.
pub(super) fn part_gone(path: &Path) -> Error {
    let what = format!("{}, a part of the store, was deleted or replaced while it was in use", show(path));
    Error::new(ErrorKind::Unavailable, what)
        .hint("end who else uses the store, without force: the last to close it saves what was accepted")
}

fn make(path: &Path) -> Result<(), Error> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(err) => Err(cannot(path, "be made", &err)),
    }
}

pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(end);
    beside.into()
}

/// What is to be said of others who can write to it or read it; what is beside a file may be that one's owner's, and a writer's of its group.
#[cfg(unix)]
fn whose(
    path: &Path,
    data: &fs::Metadata,
    of: Option<&fs::Metadata>,
    of_anybody: bool,
) -> Result<Option<&'static str>, Error> {
    use std::os::unix::fs::MetadataExt;
    let (owner, ours) = (data.uid(), rustix::process::geteuid().as_raw());
    let refused = |what: String, hint: &'static str| Err(Error::new(ErrorKind::Refused, what).hint(hint));
    let is_a_writers = of.is_some_and(|file| file.uid() == owner || file.mode() & 0o020 != 0);
    if !of_anybody && owner != ours && owner != 0 && !is_a_writers {
        let what = format!("the store's file {} belongs to another user, number {owner}", show(path));
        return refused(what, "whoever can write to it decides what was done already: `?owner=any` believes them");
    }
    if !of_anybody && data.mode() & 0o002 != 0 {
        let what = format!("the store's file {} can be written by everybody", show(path));
        return refused(what, "chmod o-w FILE, and look at what is in it; `?owner=any` believes it");
    }
    Ok(match data.mode() & 0o066 {
        0 => None,
        // What stands in the group's place is the most for all of the list then.
        _ if has_list(path) => Some(
            "An access list says who else may use the file: who can write to it decides what was done already, and who can read it may hold its locks, and hold up all who use the store (setfacl -b).",
        ),
        rights if rights & 0o022 != 0 && rights & 0o044 & !(rights << 1) != 0 => Some(
            "The file's group can write to it: it decides what was done already (chmod g-w). Others can read the file: who can may hold its locks, and hold up all who use the store (chmod o-r).",
        ),
        rights if rights & 0o022 != 0 => {
            Some("The file's group can write to it: it decides what was done already (chmod g-w).")
        }
        _ => Some(
            "Others can read the file: who can may hold its locks, and hold up all who use the store (chmod go-r).",
        ),
    })
}

#[cfg(target_os = "linux")]
fn has_list(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| super::lists::is_on(&real))
}

/// Elsewhere no list is known.
#[cfg(all(unix, not(target_os = "linux")))]
fn has_list(_: &Path) -> bool {
    false
}

#[cfg(unix)]
fn has_another_name(data: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(data) > 1
}

#[cfg(not(unix))]
fn has_another_name(_: &fs::Metadata) -> bool {
    false
}

/// Whose it is is known on Unix only.
#[cfg(not(unix))]
fn whose(_: &Path, _: &fs::Metadata, _: Option<&fs::Metadata>, _: bool) -> Result<Option<&'static str>, Error> {
    Ok(None)
}

/// Whether it is mounted by itself, as containers have a file of their host: what is beside it is another's folder. SQLite would keep its log
/// and its index there, where nobody looks for them who opens the file by another name.
#[cfg(target_os = "linux")]
fn is_mounted(file: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    statx(CWD, file, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty())
        .is_ok_and(|data| data.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Elsewhere nothing is.
#[cfg(not(target_os = "linux"))]
fn is_mounted(_: &Path) -> bool {
    false
}

/// A part of a store that lies where others may write, and belongs to nobody who may write to the store.
#[cfg(target_os = "linux")]
pub(super) fn strangers(part: &Path, owner: u32) -> Error {
    let what = format!("{}, a part of the store, belongs to a stranger, number {owner}", show(part));
    Error::new(ErrorKind::Refused, what)
        .hint("who may not write to the store has laid it there: remove it, if nobody uses the store")
}

/// A file that can only be read, where something can be made beside it.
#[cfg(unix)]
pub(super) fn only_read(path: &Path) -> Error {
    let what = format!(
        "the store's file {} cannot be written, and who only reads it would leave files beside it that shut out who may write",
        show(path)
    );
    Error::new(ErrorKind::Refused, what).hint("chmod u+w FILE, or ask as who may write to it")
}

/// A path as one line.
fn show(path: &Path) -> String {
    path.display().to_string().escape_debug().to_string()
}

fn no_file(path: &Path) -> Error {
    Error::new(ErrorKind::Refused, format!("{} is no regular file", show(path))).hint("sqlite:state.db")
}

fn cannot(path: &Path, what: &str, err: &io::Error) -> Error {
    let kind = match err.kind() {
        io::ErrorKind::StorageFull => ErrorKind::Full,
        io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        _ => ErrorKind::Refused,
    };
    let what = format!("the store's file {} cannot {what}: {err}", path.display());
    let hint = match err.raw_os_error() {
        #[cfg(unix)]
        Some(code) if [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error).contains(&code) => {
            "ulimit -n says how many files may be open"
        }
        _ => "does its folder exist, and may it be written?",
    };
    Error::new(kind, what).hint(hint)
}
