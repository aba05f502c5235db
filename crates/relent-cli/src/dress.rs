//! What a new file is dressed in before it is put in its place: the owner, the group and the permissions of the one that was there, or what
//! the mask leaves of a new one's.

use crate::{access, ear::Undisturbed, links::Place};
use nix::{errno::Errno, unistd::fchown};
use std::{
    fs::{self, File, Metadata, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};
use tempfile::NamedTempFile;

/// What a file will have.
#[derive(Debug)]
pub(crate) struct Dress {
    mode: u32,
    /// The owner and the group of the one that was there.
    of: Option<(u32, u32)>,
    /// Whether it has no list that its folder gives to new ones.
    has_no_list: bool,
}

impl Dress {
    /// What there is in a place now is replaced; of one with an access list, which is not kept, the group gets nothing, and everybody no more
    /// than whom that names. A new one gets the
    /// list of its folder, but for one like `/tmp`: whose that is has no say in who reads it.
    ///
    /// # Errors
    ///
    /// The folder cannot be asked about.
    pub(crate) fn of(place: &Place) -> io::Result<Dress> {
        let is_shared = place.is_shared()?;
        let Some(old) = place.found() else {
            let mode = if is_shared { 0o666 & !access::mask() } else { access::of_new_ones(&place.way_to_folder()) };
            return Ok(Dress { mode, of: None, has_no_list: is_shared });
        };
        // What others may do with a file of ours that they may have brought here is for us to say anew.
        let mode = if is_shared { access::anew(old, &place.folder()?) } else { old.mode() & 0o777 };
        let mode = access::without_list(&place.way(), mode);
        Ok(Dress { mode, of: Some((old.uid(), old.gid())), has_no_list: true })
    }

    /// The same, but no more for others than they may do with the file that is there now, if there is one, and nothing if that is another's by now.
    pub(crate) fn no_more_than(&self, there: &Path) -> Dress {
        let now = fs::symlink_metadata(there).ok().filter(Metadata::is_file);
        let most = now.map_or(0o777, |now| match self.of {
            Some(before) if before != (now.uid(), now.gid()) => 0o700,
            _ => access::without_list(there, now.mode() & 0o777),
        });
        Dress { mode: self.mode & (0o700 | most), ..*self }
    }

    /// Whether the group will be another, which may do less then. Who may give what to whom is the system's to say: what is not as `made`
    /// already is tried on a new file, which goes at once.
    ///
    /// # Errors
    ///
    /// It cannot be given to the owner, or otherwise dressed.
    pub(crate) fn loses_its_group(&self, place: &Place, made: &Metadata) -> io::Result<bool> {
        if self.of.is_none_or(|(owner, group)| owner == made.uid() && access::is_same_group(group, made.gid())) {
            return Ok(false);
        }
        let _undisturbed = Undisturbed::begin();
        let has_all = self.put_on(new_one(place)?.as_file())?;
        Ok(!has_all && access::without_group(self.mode) != self.mode)
    }

    /// Dresses a file that was just made, for nobody else until then. Whether all is as it was to be: without the group, nobody
    /// but the owner may do more than both that and everybody could, and permissions that cannot be changed are what the file system says of what is made for one alone.
    ///
    /// # Errors
    ///
    /// It cannot be given to the owner, or its list stays though it is ours.
    pub(crate) fn put_on(&self, file: &File) -> io::Result<bool> {
        let (made, mut mode, mut has_group) = (file.metadata()?, self.mode, true);
        if self.has_no_list {
            as_far_as_it_is_ours(access::take_list(file), made.uid())?;
        }
        if let Some((_, group)) = self.of
            && !access::is_same_group(made.gid(), group)
            && fchown(file, None, Some(group.into())).is_err()
        {
            (mode, has_group) = (access::without_group(mode), false);
        }
        let dress = || unless_it_is_not_let(file.set_permissions(Permissions::from_mode(mode)));
        match self.of.map(|(owner, _)| owner).filter(|owner| *owner != made.uid()) {
            None => dress()?,
            // If it cannot be given away, nobody else has ever been let into it: its name may be in somebody else's hands by now.
            Some(owner) if access::may_change_others() => {
                fchown(file, Some(owner.into()), None)?;
                dress()?;
            }
            Some(_) if !access::may_give_away() => return Err(Errno::EPERM.into()),
            Some(owner) => {
                // What is dressed first is for a moment the caller's own, and who could write to it then would still hold it if it stayed so:
                // whether it can be given away is tried while it is for nobody else.
                if mode & 0o022 != 0 {
                    fchown(file, Some(owner.into()), None)?;
                    fchown(file, Some(made.uid().into()), None)?;
                }
                dress()?;
                if let Err(error) = fchown(file, Some(owner.into()), None) {
                    let _ = file.set_permissions(made.permissions());
                    return Err(error.into());
                }
            }
        }
        Ok(has_group && file.metadata()?.mode() & 0o777 == mode)
    }
}

/// Some shares say themselves whose all is that is made there, and who may do what with it.
fn as_far_as_it_is_ours(done: io::Result<()>, owner: u32) -> io::Result<()> {
    if access::is_own(owner) { done } else { unless_it_is_not_let(done) }
}

/// Some file systems know no permissions, or say themselves what they are, and let nobody change them.
fn unless_it_is_not_let(done: io::Result<()>) -> io::Result<()> {
    let error = done.as_ref().err().and_then(io::Error::raw_os_error).map(Errno::from_raw);
    match error {
        Some(Errno::EPERM | Errno::EACCES | Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(()),
        _ => done,
    }
}

/// Whether what belongs to a user is as good as the caller's own in a place: it is, or what the caller makes there belongs to that user, as
/// on some shares. In a folder like `/tmp` that is nobody's word.
pub(crate) fn is_as_own(place: &Place, owner: u32) -> bool {
    access::is_own(owner)
        || place.is_shared().is_ok_and(|is_shared| !is_shared)
            && of_new_ones(place).is_some_and(|new| new.uid() == owner)
}

/// Whom a new file belongs to that is to be for nobody else, and what others may do with it.
pub(crate) fn of_new_ones(place: &Place) -> Option<Metadata> {
    let _undisturbed = Undisturbed::begin();
    new_one(place).ok()?.as_file().metadata().ok()
}

fn new_one(place: &Place) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".relent-").tempfile_in(place.way_to_folder())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
pub(crate) mod tests;
