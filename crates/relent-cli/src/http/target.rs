//! The file that `-o` or `-O` means, and what it must be like when it has been replaced.
//!
//! A link is followed where Linux would follow it with `fs.protected_symlinks`, and whoever could put another in its place is
//! the caller or root.
//! A file keeps its owner, its group and its permissions, without the bits that would run it as somebody else.

use crate::{
    access,
    escape::{escape, shell},
    links, regular,
    talk::{Fault, plain},
};
use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    sys::stat::Mode,
    unistd::{AccessFlags, Gid, Uid, access, fchown, geteuid},
};
use std::{
    fs::{self, File, Metadata, OpenOptions, Permissions},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// A file that will be replaced when the body is complete, or made.
#[derive(Debug)]
pub(super) struct Target {
    /// Where it is, links followed.
    pub(super) path: PathBuf,
    mode: u32,
    owner: Option<(Uid, Gid)>,
    /// The device and the number of what is there; nothing, if nothing is.
    seen: Option<(u64, u64)>,
}

/// What `-o` names.
#[derive(Debug)]
pub(super) enum Found {
    /// A file.
    File(Target),
    /// Something that cannot be replaced, open for writing: a device, a pipe.
    Special(File),
}

impl Target {
    /// Finds out now whether the body can be written later.
    pub(super) fn find(path: &Path) -> Result<Found, Fault> {
        let real = match links::to_write(path) {
            Ok(real) => real,
            Err(error) if error.raw_os_error().is_none() && is_link(path) => return Err(not_followed(path)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() => {
                return Err(unwritable(path, &error)
                    .hint("choose a folder of your own; its owner could change what you download"));
            }
            Err(error) => return Err(unwritable(path, &error)),
        };
        let (given, follows) = (path, real.is_none());
        let path = real.as_deref().unwrap_or(given);
        match look(path, follows) {
            Ok((_, data)) if data.is_dir() => {
                Err(Fault::new(format!("cannot write to {}: it is a folder", shown(given)))
                    .hint("-o wants the name of a file"))
            }
            Ok((_, data)) if data.is_symlink() => Err(unwritable(given, &io::Error::other("it is being moved"))),
            Ok((_, data)) if !data.is_file() => special(given, path, &data, follows),
            Ok((real, data)) => Target::existing(given, real, &data).map(Found::File),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let target = Target { path: path.to_owned(), mode: 0o666 & !umask(), owner: None, seen: None };
                Ok(Found::File(target))
            }
            Err(error) => Err(unwritable(given, &error)),
        }
    }

    fn existing(given: &Path, path: PathBuf, data: &Metadata) -> Result<Target, Fault> {
        let shown = shown(given);
        let (uid, gid) = (Uid::from_raw(data.uid()), Gid::from_raw(data.gid()));
        let is_ours = access::is_own(data.uid());
        let folder = fs::metadata(folder_of(&path)).map_err(|error| unwritable(given, &error))?;
        if !is_ours && access::is_shared(&folder, folder_of(&path)) && !access::is_same(data.uid(), folder.uid()) {
            return Err(Fault::new(format!(
                "cannot write to {shown}: it belongs to somebody else, in a folder that others may write to"
            ))
            .hint("choose a folder of your own; its owner could change what you download"));
        }
        if !is_ours && !geteuid().is_root() {
            return Err(Fault::new(format!(
                "cannot replace {shown}: it belongs to somebody else, and would be yours then"
            ))
            .hint(format!("remove it first, or write into it: relent http ... > {}", shell(&shown))));
        }
        access(&path, AccessFlags::W_OK).map_err(|error| unwritable(given, &error.into()))?;
        // With an access list, which is not kept, what stands in the group's place is the most for all of the list.
        let mode = data.mode() & if access::path_has_list(&path) { 0o707 } else { 0o777 };
        Ok(Target { path, mode, owner: Some((uid, gid)), seen: Some((data.dev(), data.ino())) })
    }

    /// What is there, to be read: the very file that was looked at, and none that somebody has put in its place, or where there was
    /// nothing, since then.
    pub(super) fn open(&self) -> io::Result<Option<File>> {
        let Some(seen) = self.seen else { return Ok(None) };
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(&self.path)?;
        let data = file.metadata()?;
        match (data.dev(), data.ino()) == seen {
            true => Ok(Some(file)),
            false => Err(io::Error::other("it is being moved")),
        }
    }

    /// Gives the complete file the owner and the permissions that it will have.
    pub(super) fn dress(&self, part: &File) -> io::Result<()> {
        let data = part.metadata()?;
        let mut mode = self.mode;
        if let Some((uid, gid)) = self.owner {
            if data.uid() != uid.as_raw() {
                fchown(part, Some(uid), None)?;
            }
            if data.gid() != gid.as_raw() && fchown(part, None, Some(gid)).is_err() {
                // The group that the file has now may do no more than everybody.
                mode &= 0o707 | (mode & 0o007) << 3;
            }
        }
        part.set_permissions(Permissions::from_mode(mode))
    }
}

/// The folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// What a path leads to, and where that is, without touching it. Links are on the way only where it `follows` them.
#[cfg(target_os = "linux")]
fn look(path: &Path, follows: bool) -> io::Result<(PathBuf, Metadata)> {
    use std::os::fd::AsRawFd;
    let flags = OFlag::O_PATH | if follows { OFlag::empty() } else { OFlag::O_NOFOLLOW };
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let data = file.metadata()?;
    if !data.is_file() {
        return Ok((path.to_owned(), data));
    }
    let real = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).or_else(|_| path.canonicalize())?;
    let there = fs::symlink_metadata(&real)?;
    if (there.dev(), there.ino()) != (data.dev(), data.ino()) {
        return Err(io::Error::other("it is being moved"));
    }
    Ok((real, data))
}

/// What a path leads to, and where that is.
#[cfg(not(target_os = "linux"))]
fn look(path: &Path, follows: bool) -> io::Result<(PathBuf, Metadata)> {
    let real = if follows { path.canonicalize()? } else { path.to_owned() };
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

fn special(given: &Path, path: &Path, data: &Metadata, follows: bool) -> Result<Found, Fault> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | if follows { OFlag::empty() } else { OFlag::O_NOFOLLOW };
    let opened = OpenOptions::new().write(true).custom_flags(flags.bits()).open(path);
    let file = opened.map_err(|error| match data.file_type().is_fifo() {
        true if error.raw_os_error() == Some(nix::libc::ENXIO) => {
            Fault::new(format!("cannot write to {}: nobody reads from this pipe", shown(given)))
                .hint("start the reader first")
        }
        _ => unwritable(given, &error),
    })?;
    if !follows {
        let opened = file.metadata().and_then(|opened| regular::still_there(path, &opened));
        opened.map_err(|error| unwritable(given, &error))?;
    }
    // Writing waits for the reader as it does elsewhere.
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty())).map_err(|error| unwritable(given, &error.into()))?;
    Ok(Found::Special(file))
}

/// What new files are not allowed, asked by setting it; no other thread runs yet.
fn umask() -> u32 {
    let mask = nix::sys::stat::umask(Mode::from_bits_truncate(0o077));
    nix::sys::stat::umask(mask);
    mask.bits()
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
    Fault::new(format!("cannot write to {}: {}", shown(path), plain(error))).hint(hint)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The list kept the group from more than reading; its mask is not the group's.
    #[test]
    fn what_an_access_list_allows_is_not_the_groups() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_permissions(Permissions::from_mode(0o664)).unwrap();
        let mode = || match Target::find(file.path()).unwrap() {
            Found::File(target) => target.mode,
            Found::Special(_) => panic!("it is a file"),
        };
        assert_eq!(mode(), 0o664);
        if let Err(error) = access::give_list(file.path(), 6) {
            eprintln!("SKIPPED what_an_access_list_allows_is_not_the_groups: {error}");
            return;
        }
        assert_eq!(mode(), 0o704);
    }
}
