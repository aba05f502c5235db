//! The file that `-o` or `-O` means, and what it must be like when it has been replaced.
//!
//! A link is followed where Linux would follow it with `fs.protected_symlinks`, and whoever could put another in its place is
//! the caller or root.
//! A file keeps its owner, its group and its permissions, without the bits that would run it as somebody else.

use crate::{
    access,
    dress::{self, Dress},
    escape::escape,
    inherited,
    links::{self, Place, is_one},
    regular,
    talk::{Fault, plain},
    typed::typed,
};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    unistd::{AccessFlags, access, geteuid},
};
use std::{
    ffi::OsStr,
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

/// A file that will be replaced when the body is complete, or made.
#[derive(Debug)]
pub(super) struct Target {
    /// Where it is, links followed.
    pub(super) place: Arc<Place>,
    dress: Dress,
}

/// What `-o` names.
#[derive(Debug)]
pub(super) enum Found {
    /// A file.
    File(Target),
    /// Something that cannot be replaced, open for writing: a device, a pipe, or a file that was open already.
    Special(File),
}

impl Target {
    /// Finds out now whether the body can be written later.
    pub(super) fn find(path: &Path) -> Result<Found, Fault> {
        let real = match links::to_write(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() => {
                return Err(match is_link(path) {
                    true => not_followed(path),
                    false => unwritable(path, &error)
                        .hint("choose a folder of your own; its owner could change what you download"),
                });
            }
            Err(error) => return Err(unwritable(path, &error)),
        };
        let cannot = |error: &io::Error| unwritable(path, error);
        let place = match real {
            Some(place) => place,
            None => {
                let (real, data) = look(path).map_err(|error| cannot(&error))?;
                match inherited::to_write(path).map_err(|error| unread(path, &error))? {
                    Some(open) => return Ok(Found::Special(open)),
                    None if !data.is_file() => return special(path, path, &data, None),
                    // What the system has found has a place of its own.
                    None => links::to_write(&real)
                        .and_then(|place| {
                            let is_it = |place: &Place| place.found().is_some_and(|found| is_one(found, &data));
                            place.filter(is_it).ok_or_else(moved)
                        })
                        .map_err(|error| cannot(&error))?,
                }
            }
        };
        match place.found() {
            Some(data) if data.is_dir() => Err(Fault::new(format!("cannot write to {}: it is a folder", shown(path)))
                .hint("-o wants the name of a file")),
            Some(data) if !data.is_file() => special(path, &place.way(), data, Some(&place)),
            Some(_) => Target::existing(path, place).map(Found::File),
            None => {
                let dress = Dress::of(&place).map_err(|error| cannot(&error))?;
                Ok(Found::File(Target { place: Arc::new(place), dress }))
            }
        }
    }

    fn existing(given: &Path, place: Place) -> Result<Target, Fault> {
        let cannot = |error: &io::Error| unwritable(given, error);
        let shown = shown(given);
        let data = place.found().ok_or_else(|| cannot(&moved()))?;
        place.has_no_other_name(data).map_err(|error| cannot(&error))?;
        let is_ours = access::is_own(data.uid());
        let folder = place.folder().map_err(|error| cannot(&error))?;
        let is_shared = place.is_shared().map_err(|error| cannot(&error))?;
        if !is_ours && is_shared && !access::is_same(data.uid(), folder.uid()) {
            return Err(Fault::new(format!(
                "cannot write to {shown}: it belongs to somebody else, in a folder that others may write to"
            ))
            .hint("choose a folder of your own; its owner could change what you download"));
        }
        let into_it = || format!("write into it: relent http ... > {}", typed(&shown));
        if !is_ours && !geteuid().is_root() && !dress::is_as_own(&place, data.uid()) {
            return Err(Fault::new(format!(
                "cannot replace {shown}: it belongs to somebody else, and would be yours then"
            ))
            .hint(format!("remove it first, or {}", into_it())));
        }
        if !is_ours && geteuid().is_root() && !access::may_be_removed(&folder) {
            return Err(cannot(&Errno::EPERM.into()));
        }
        if place.is_mounted() {
            return Err(Fault::new(format!("cannot replace {shown}: it is mounted by itself")).hint(into_it()));
        }
        access(&place.way(), AccessFlags::W_OK).map_err(|error| cannot(&error.into()))?;
        let dress = Dress::of(&place).map_err(|error| cannot(&error))?;
        Ok(Target { place: Arc::new(place), dress })
    }

    /// What is there, to be read: the very file that was looked at, and none that somebody has put in its place, or where there was
    /// nothing, since then.
    pub(super) fn open(&self) -> io::Result<Option<File>> {
        if self.place.found().is_none() {
            return Ok(None);
        }
        let file = regular::open(OpenOptions::new().read(true), OFlag::O_NOFOLLOW.bits(), &self.place.way())?;
        self.place.is_where_it_was(&file.metadata()?)?;
        Ok(Some(file))
    }

    /// Whether others may put something beside it.
    pub(super) fn is_open_to_others(&self) -> io::Result<bool> {
        self.place.is_open_to_others(|owner| dress::is_as_own(&self.place, owner))
    }

    /// Whether the group of what will be made of a part will be another, and may do less.
    pub(super) fn loses_its_group(&self, part: &File) -> io::Result<bool> {
        self.dress.loses_its_group(&self.place, &part.metadata()?)
    }

    /// Its name.
    pub(super) fn name(&self) -> &OsStr {
        self.place.path().file_name().unwrap_or_default()
    }

    /// Gives the complete file the owner and the permissions that it will have: no more than what is there by now, which somebody may have shut
    /// meanwhile.
    pub(super) fn dress(&self, part: &File) -> io::Result<()> {
        self.dress.no_more_than(&self.place.way()).put_on(part).map(drop)
    }
}

/// Somebody else puts something in its place.
pub(super) fn moved() -> io::Error {
    io::Error::other("it is being moved")
}

/// What the system finds behind a path, and where that is, without touching it.
#[cfg(target_os = "linux")]
fn look(path: &Path) -> io::Result<(PathBuf, Metadata)> {
    use std::os::fd::AsRawFd;
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_PATH.bits()).open(path)?;
    let real = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).or_else(|_| path.canonicalize())?;
    Ok((real, file.metadata()?))
}

/// What the system finds behind a path, and where that is.
#[cfg(not(target_os = "linux"))]
fn look(path: &Path) -> io::Result<(PathBuf, Metadata)> {
    let real = path.canonicalize()?;
    let data = fs::symlink_metadata(&real)?;
    Ok((real, data))
}

fn not_followed(path: &Path) -> Fault {
    Fault::new(format!("cannot write to {}: the link is not followed", shown(path)))
        .hint("it belongs to somebody else, in a folder that others may write to; name the file itself")
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_symlink())
}

fn special(given: &Path, path: &Path, data: &Metadata, place: Option<&Place>) -> Result<Found, Fault> {
    let follows = if place.is_none() { OFlag::empty() } else { OFlag::O_NOFOLLOW };
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | follows;
    let opened = OpenOptions::new().write(true).custom_flags(flags.bits()).open(path);
    let file = opened.map_err(|error| match data.file_type().is_fifo() {
        true => unread(given, &error),
        false => unwritable(given, &error),
    })?;
    let is_it = || place.map_or(Ok(()), |place| place.is_where_it_was(&file.metadata()?));
    is_it().map_err(|error| unwritable(given, &error))?;
    // Writing waits for the reader as it does elsewhere.
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty())).map_err(|error| unwritable(given, &error.into()))?;
    Ok(Found::Special(file))
}

/// Nothing can be written to a pipe, or to what is open here already.
fn unread(path: &Path, error: &io::Error) -> Fault {
    match error.raw_os_error() {
        Some(nix::libc::ENXIO) => Fault::new(format!("cannot write to {}: nobody reads from this pipe", shown(path)))
            .hint("start the reader first"),
        _ => unwritable(path, error),
    }
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}

/// A file cannot be written.
pub(super) fn unwritable(path: &Path, error: &io::Error) -> Fault {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "make the folder first (mkdir -p)",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room, or choose another place with -o",
        _ => "choose another place with -o",
    };
    Fault::new(format!("cannot write to {}: {}", shown(path), plain(error))).hint(hint).by(error)
}
