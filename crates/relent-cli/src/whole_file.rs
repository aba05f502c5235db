//! Files that are written once all of what they will hold is there: until then what was there stays, and who has that open goes on
//! reading it. Nothing is left of one that was not written: the new file is made, filled and put in its place in one go.

use crate::{
    access, arrived,
    breaks::if_shown,
    dress::{self, Dress},
    ear::Undisturbed,
    inherited,
    links::{self, Place, is_one},
    regular::{self, Or, check},
    stderr::{self, PATIENCE, PIECE, has_room},
    talk::plain,
};
use nix::{
    errno::Errno,
    poll::PollTimeout,
    unistd::{AccessFlags, access, geteuid},
};
use std::{
    fs::{self, File, Permissions},
    io::{self, IsTerminal, Write},
    os::{
        fd::AsFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::Path,
};
use tempfile::NamedTempFile;

/// A file that will be written.
#[derive(Debug)]
pub(crate) struct WholeFile {
    way: Way,
    /// Whether only its owner may read and write it.
    is_private: bool,
}

#[derive(Debug)]
enum Way {
    /// A new file takes its place; or, where none can be made by then, what is there is written to, if that may be.
    Beside(Box<Place>, Option<File>),
    /// A file that stays the one that it is, as it has another name, or an access list, or nothing can take its place.
    Kept(File),
    /// What is written to as it comes: a device, a pipe, and what is open here already, where it stands.
    Through(File),
}

impl WholeFile {
    /// One that only its owner reads. If others can read the one that is there, a new one takes its place.
    ///
    /// # Errors
    ///
    /// It cannot be written, is somebody else's, or no regular file, device or pipe of ours.
    pub(crate) fn private(path: &Path) -> io::Result<WholeFile> {
        WholeFile::find(path, true)
    }

    fn find(path: &Path, is_private: bool) -> io::Result<WholeFile> {
        let or = if is_private { Or::Device } else { Or::Pipe };
        let as_it_is = |way| Ok(WholeFile { way, is_private });
        let Some(place) = links::to_write(path)? else {
            // What has no path of its own, as `/dev/stdout`, is found by the system.
            let Some(open) = inherited::to_write(path)? else {
                let file = check(regular::to_write(path)?, or)?;
                let data = file.metadata()?;
                return match data.is_file() {
                    true if is_private && !access::is_own(data.uid()) => Err(of_somebody_else()),
                    true => as_it_is(Way::Kept(file)),
                    false => as_it_is(Way::Through(file)),
                };
            };
            return as_it_is(Way::Through(open));
        };
        let Some(found) = place.found() else {
            takes_new_ones(&place)?;
            return as_it_is(Way::Beside(place.into(), None));
        };
        let file = check(regular::to_write_in(&place)?, or)?;
        if !found.is_file() {
            return as_it_is(Way::Through(file));
        }
        place.has_no_other_name(found)?;
        let way = match is_private {
            true => of_a_private_one(place, file)?,
            false => of_a_public_one(place, file)?,
        };
        as_it_is(way)
    }

    /// Writes it. Who reads a pipe of a private one slowly is not waited for without end: its process has something to end with.
    ///
    /// # Errors
    ///
    /// It cannot be written, or somebody else has put something in its place. A file that was there stays then, but for one that stays the
    /// one that it is.
    pub(crate) fn write(self, bytes: &[u8]) -> io::Result<()> {
        match self.way {
            Way::Through(file) => through(&file, bytes, self.is_private),
            Way::Kept(file) => over(&file, bytes, self.is_private),
            Way::Beside(place, old) => match beside(&place, bytes, self.is_private) {
                // Somebody has made the folder anew.
                Err(_) if place.folder().is_ok_and(|folder| folder.nlink() == 0) => {
                    WholeFile::find(place.path(), self.is_private)?.write(bytes)
                }
                Err(Unplaced::Here(error)) if !is_for_want_of_room(&error) => {
                    match old.filter(|_| place.is_there_as_it_was()) {
                        Some(file) => over(&file, bytes, self.is_private),
                        None => Err(error),
                    }
                }
                Err(Unplaced::Here(error) | Unplaced::Unwritten(error)) => Err(error),
                Ok(()) => Ok(()),
            },
        }
    }
}

/// Writes a file that others may read, as they may the one that is there, if there is one.
///
/// # Errors
///
/// It cannot be written, lends somebody's rights, or is no regular file, device or pipe.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    WholeFile::find(path, false)?.write(bytes)
}

/// The same of what was done until a signal came, if one did: who does not read a pipe is not waited for then.
///
/// # Errors
///
/// As [`replace`], or nobody reads it.
pub(crate) fn replace_after(is_interrupted: bool, path: &Path, bytes: &[u8]) -> io::Result<()> {
    match WholeFile::find(path, false)? {
        WholeFile { way: Way::Through(file), .. } if is_interrupted => through(&file, bytes, true),
        file => file.write(bytes),
    }
}

/// Why a private file cannot be written, if that is so: what the message begins with.
pub(crate) const READ_BY_OTHERS: &str = "others can read it";

/// Others could read it, and who has it open would read on.
fn of_a_private_one(place: Place, file: File) -> io::Result<Way> {
    let data = file.metadata()?;
    if !dress::is_as_own(&place, data.uid()) {
        return Err(of_somebody_else());
    }
    let is_read_by_others = data.mode() & 0o077 != 0;
    match may_be_replaced(&place) {
        Err(error) if is_read_by_others => Err(irreplaceable(READ_BY_OTHERS, &error)),
        Ok(()) if is_read_by_others => Ok(Way::Beside(place.into(), None)),
        Ok(()) if data.nlink() == 1 => Ok(Way::Beside(place.into(), Some(file))),
        _ => Ok(Way::Kept(file)),
    }
}

/// What others may do with one of ours that they may have brought here is for us to say anew, and they may have it open.
fn of_a_public_one(place: Place, file: File) -> io::Result<Way> {
    let data = file.metadata()?;
    if data.mode() & SPECIAL != 0 {
        return Err(io::Error::other("it is a program that runs with another's rights (setuid or setgid)"));
    }
    let is_own = access::is_own(data.uid());
    let may_be = may_be_replaced(&place);
    if is_own && place.is_shared()? {
        return match may_be {
            Ok(()) => Ok(Way::Beside(place.into(), None)),
            // Whoever may mount something may do anything.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                file.set_permissions(Permissions::from_mode(access::anew(&data, &place.folder()?)))?;
                Ok(Way::Kept(file))
            }
            Err(error) => Err(irreplaceable("others may have it open", &error)),
        };
    }
    let is_kept = !is_own && !geteuid().is_root() || data.nlink() > 1 || access::path_has_list(&place.way());
    Ok(if is_kept || may_be.is_err() { Way::Kept(file) } else { Way::Beside(place.into(), Some(file)) })
}

/// The bits of a file that lend its rights to whoever runs it.
const SPECIAL: u32 = 0o6000;

fn irreplaceable(why: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{why}, and it cannot be replaced: {}", plain(error)))
}

/// Whether a new file can be made in the folder of a place.
fn takes_new_ones(place: &Place) -> io::Result<()> {
    Ok(access(&place.way_to_folder(), AccessFlags::W_OK | AccessFlags::X_OK)?)
}

/// Whether another file can be put in the place of one.
fn may_be_replaced(place: &Place) -> io::Result<()> {
    let is_ours = place.found().is_none_or(|found| access::is_own(found.uid()));
    if !is_ours && geteuid().is_root() && !access::may_be_removed(&place.folder()?) {
        return Err(Errno::EPERM.into());
    }
    if place.is_mounted() {
        return Err(Errno::EBUSY.into());
    }
    takes_new_ones(place)
}

fn of_somebody_else() -> io::Error {
    io::Error::other("it belongs to somebody else")
}

/// Why no new file is in its place.
enum Unplaced {
    /// None can be made, or put there.
    Here(io::Error),
    /// It cannot be written, so what is there stays.
    Unwritten(io::Error),
}

impl From<io::Error> for Unplaced {
    fn from(error: io::Error) -> Unplaced {
        Unplaced::Here(error)
    }
}

/// Writes a new file, and puts it in its place.
fn beside(place: &Place, bytes: &[u8], is_private: bool) -> Result<(), Unplaced> {
    let _undisturbed = Undisturbed::begin();
    let found = place.found();
    // What takes the place of nothing is as any new file is, but in a folder like `/tmp`.
    let is_as_any = !is_private && found.is_none() && !place.is_shared()?;
    let of_new_ones = Permissions::from_mode(if is_as_any { 0o666 } else { 0o600 });
    let mut new =
        tempfile::Builder::new().prefix(".relent-").permissions(of_new_ones).tempfile_in(place.way_to_folder())?;
    new.write_all(bytes).and_then(|()| arrived::check(new.as_file())).map_err(Unplaced::Unwritten)?;
    if !is_private && !is_as_any {
        let has_all = Dress::of(place)?.put_on(new.as_file())?;
        // One that others may have brought is replaced in any case.
        if !has_all && !place.is_shared()? {
            return Err(Unplaced::Here(Errno::EPERM.into()));
        }
    }
    let put = match found {
        // Something has come meanwhile; or the file system cannot tell, as it knows no second names.
        None => match new.persist_noclobber(place.way()) {
            Err(error) => over_what_came(place, error.file),
            Ok(_) => Ok(()),
        },
        Some(_) => over_what_came(place, new),
    };
    Ok(put?)
}

/// Puts a new file in the place of what is there by now: another run of ours may have been there meanwhile, but nobody else.
fn over_what_came(place: &Place, new: NamedTempFile) -> io::Result<()> {
    // Some shares say themselves whose all is that is made there.
    let maker = new.as_file().metadata()?.uid();
    let is_shared = place.is_shared()?;
    let is_ours = |owner| access::is_own(owner) || !is_shared && owner == maker;
    let data = fs::symlink_metadata(place.way());
    if data.is_ok_and(|data| !data.is_file() || !(is_ours(data.uid()) || place.is_there_as_it_was())) {
        return Err(io::Error::other("it is being moved"));
    }
    put(place, new)
}

/// Puts a file that was made beside a place there. What stands under its own name then is removed only if it is that very file.
pub(crate) fn put(place: &Place, new: NamedTempFile) -> io::Result<()> {
    let put = place.put(new.path());
    let is_its_own = || Ok::<_, io::Error>(is_one(&new.as_file().metadata()?, &fs::symlink_metadata(new.path())?));
    if put.is_ok() || !is_its_own().unwrap_or(true) {
        new.into_temp_path().keep()?;
    }
    put
}

/// Whether a disk, or what may be on it, is full: then what is there is kept.
fn is_for_want_of_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    [FileTooLarge, QuotaExceeded, StorageFull].contains(&error.kind())
}

/// Writes over what a file holds, once there is room for all of it.
fn over(mut file: &File, bytes: &[u8], is_private: bool) -> io::Result<()> {
    if is_private {
        if !access::is_own(file.metadata()?.uid()) {
            return Err(of_somebody_else());
        }
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    reserve(file, bytes.len() as u64)?;
    // What cannot be written at all leaves what was there.
    let first = loop {
        match file.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            first => break first?,
        }
    };
    let written = file
        .write_all(&bytes[first..])
        .and_then(|()| file.set_len(bytes.len() as u64))
        .and_then(|()| arrived::check(file));
    if written.is_err() {
        // What is no more the one, nor yet the other, is nothing.
        file.set_len(0)?;
    }
    written
}

/// Takes the room that so many bytes need, where the file system can. It asks for no limit of the process's.
#[cfg(target_os = "linux")]
fn reserve(file: &File, length: u64) -> io::Result<()> {
    use rustix::{
        fs::{FallocateFlags, fallocate},
        process::{Resource, getrlimit},
    };
    if getrlimit(Resource::Fsize).current.is_some_and(|most| most < length) {
        return Err(Errno::EFBIG.into());
    }
    let old = file.metadata()?.len();
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, length.max(1)).map_err(io::Error::from) {
        Err(error) if is_for_want_of_room(&error) => {
            file.set_len(old)?;
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Elsewhere nobody can.
#[cfg(not(target_os = "linux"))]
fn reserve(_file: &File, _length: u64) -> io::Result<()> {
    Ok(())
}

/// Writes to who takes it as it comes. On a terminal no line of it looks like a message: names that somebody chose may stand anywhere in it.
fn through(file: &File, bytes: &[u8], is_patience_short: bool) -> io::Result<()> {
    let text = String::from_utf8_lossy(bytes);
    let shown = if_shown(&text, file);
    let bytes = if file.is_terminal() { shown.as_bytes() } else { bytes };
    let patience = if is_patience_short { PATIENCE.try_into().unwrap_or(PollTimeout::MAX) } else { PollTimeout::NONE };
    let (way, mut left) = (stderr::Way::to(file.as_fd()), bytes);
    while !left.is_empty() {
        match has_room(file.as_fd(), patience) {
            Some(false) => return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads it")),
            // There may be less room than for a piece.
            Some(true) => left = &left[way.write_some(file.as_fd(), &left[..left.len().min(PIECE)])?..],
            None => {}
        }
    }
    arrived::check(file)
}

#[cfg(test)]
mod tests;
