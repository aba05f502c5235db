//! Where a way ends: a place that was looked at, and how it is reached after that.

use super::{Step, theirs};
use crate::access;
use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
};

/// Exchanges what stands under two names once more. What another run has put there meanwhile in the place of ours stays: then what is somebody
/// else's is left under the name of the new file.
#[cfg(target_os = "linux")]
fn put_back(new: &Path, way: &Path, ours: &Metadata) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let exchange = || renameat_with(CWD, new, CWD, way, RenameFlags::EXCHANGE);
    exchange()?;
    if fs::symlink_metadata(new).is_ok_and(|data| !is_one(&data, ours)) {
        exchange()?;
    }
    Ok(())
}

/// Where a way ends: a name in a folder that was opened.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) folder: File,
    pub(super) name: OsString,
    pub(super) path: PathBuf,
    pub(super) found: Option<Metadata>,
    pub(super) looked_at: Option<File>,
}

impl Place {
    /// The path that was given, or, where there was a link on the way, the one that it led to.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What was there, if anything was.
    pub(crate) fn found(&self) -> Option<&Metadata> {
        self.found.as_ref()
    }

    /// The very thing that was there, opened just to be looked at, where the system can do so (Linux).
    pub(super) fn looked_at(self) -> Option<File> {
        self.looked_at.filter(|_| cfg!(target_os = "linux"))
    }

    /// The folder that it stands in.
    pub(crate) fn folder(&self) -> io::Result<Metadata> {
        self.folder.metadata()
    }

    /// Looks whether what was opened there is what was found, or, where nothing was, is nobody else's.
    ///
    /// # Errors
    ///
    /// It is not.
    pub(crate) fn is_where_it_was(&self, opened: &Metadata) -> io::Result<()> {
        let moved = || io::Error::other("it is being moved");
        if let Some(found) = &self.found {
            return if is_one(found, opened) { Ok(()) } else { Err(moved()) };
        }
        if !is_one(&fs::symlink_metadata(self.way())?, opened) {
            return Err(moved());
        }
        let folder = self.folder()?;
        let step = Step { path: &self.path, data: opened, folder: &folder, is_last: true, is_behind_a_link: false };
        match theirs(&step) {
            Some(problem) => Err(io::Error::new(io::ErrorKind::PermissionDenied, problem)),
            None => Ok(()),
        }
    }

    /// Looks whether a new file may take the place of what is there by now: another run of ours may have been there meanwhile, or whoever made
    /// what was found, but nobody else. `maker` is whom the new one belongs to, as some shares have it.
    ///
    /// # Errors
    ///
    /// Somebody else has, or the folder is no more where it was.
    pub(crate) fn takes_a_new_one(&self, maker: u32) -> io::Result<()> {
        let moved = |what: &str| io::Error::other(format!("{what} is being moved"));
        // Who may not look there any more has seen it.
        let is_elsewhere = match fs::metadata(folder_of(&self.path)) {
            Ok(data) => !is_one(&data, &self.folder()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            Err(_) => false,
        };
        if is_elsewhere {
            return Err(moved("its folder"));
        }
        let Some(data) = fs::symlink_metadata(self.way()).ok().filter(|_| !self.is_there_as_it_was()) else {
            return Ok(());
        };
        self.has_no_other_name(&data)?;
        let is_the_same = |owner| maker == owner || self.found.as_ref().is_some_and(|found| found.uid() == owner);
        let may_go = match self.is_shared()? {
            true => self.is_nobody_elses(&data),
            false => access::is_own(data.uid()) || is_the_same(data.uid()),
        };
        if may_go { Ok(()) } else { Err(moved("it")) }
    }

    /// Whether it is what was found here, or a file of the caller's with no other name.
    fn is_nobody_elses(&self, data: &Metadata) -> bool {
        let is_own = || data.is_file() && data.nlink() == 1 && access::is_own(data.uid());
        self.found.as_ref().is_some_and(|found| is_one(found, data)) || is_own()
    }

    /// Puts a new file of this folder in the place of what is there by now. In a folder like `/tmp` nothing of anybody else's is lost, whenever
    /// that came.
    ///
    /// # Errors
    ///
    /// Somebody else's is there, or the system does not do it.
    pub(crate) fn put(&self, new: &Path) -> io::Result<()> {
        match self.is_shared()? {
            true => self.put_among_others(new),
            false => fs::rename(new, self.way()),
        }
    }

    #[cfg(target_os = "linux")]
    fn put_among_others(&self, new: &Path) -> io::Result<()> {
        use rustix::{
            fs::{CWD, RenameFlags, renameat_with},
            io::Errno,
        };
        let (way, ours) = (self.way(), fs::symlink_metadata(new)?);
        let rename = |flags| renameat_with(CWD, new, CWD, &way, flags);
        loop {
            match rename(RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                // Some file systems know nothing of that.
                Err(Errno::INVAL | Errno::NOSYS) => return fs::rename(new, way),
                done => return Ok(done?),
            }
            match rename(RenameFlags::EXCHANGE) {
                Err(Errno::NOENT) => {}
                Err(Errno::INVAL | Errno::NOSYS) => return fs::rename(new, way),
                done => break done?,
            }
        }
        // Looked at where nobody else can exchange it any more; whose it is may take it elsewhere, which leaves nothing to be done.
        let done = fs::symlink_metadata(new).and_then(|data| match self.is_nobody_elses(&data) {
            true => fs::remove_file(new),
            false => put_back(new, &way, &ours).and(Err(io::Error::other("it is being moved"))),
        });
        done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
    }

    /// Elsewhere the look before has to do.
    #[cfg(not(target_os = "linux"))]
    fn put_among_others(&self, new: &Path) -> io::Result<()> {
        fs::rename(new, self.way())
    }

    /// Whether what was found is there still.
    pub(crate) fn is_there_as_it_was(&self) -> bool {
        let now = fs::symlink_metadata(self.way());
        self.found.as_ref().is_some_and(|found| now.is_ok_and(|now| is_one(found, &now)))
    }

    /// Whether what is there is mounted by itself, as containers have it: nothing else takes its place.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_mounted(&self) -> bool {
        use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
        statx(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty())
            .is_ok_and(|data| data.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    }

    /// Elsewhere nothing is.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn is_mounted(&self) -> bool {
        false
    }

    /// Whether its folder is one like `/tmp`: what is ours there, others may have brought from a folder of theirs.
    ///
    /// # Errors
    ///
    /// The folder cannot be asked about.
    pub(crate) fn is_shared(&self) -> io::Result<bool> {
        Ok(access::is_shared(&self.folder()?, &self.way_to_folder()))
    }

    /// Whether others than the caller and root may put something into its folder: what is ours there, they may have brought or given its name. On a
    /// share whoever owns it is as good as the caller.
    ///
    /// # Errors
    ///
    /// The folder cannot be asked about.
    pub(crate) fn is_open_to_others(&self, is_as_own: impl FnOnce(u32) -> bool) -> io::Result<bool> {
        let folder = self.folder()?;
        let is_somebodys = !access::is_own(folder.uid()) && folder.uid() != 0 && !is_as_own(folder.uid());
        Ok(is_somebodys || access::is_open_to_others(&folder, &self.way_to_folder()))
    }

    /// Looks whether a file that is there has this name alone, where anybody may have given it this one.
    ///
    /// # Errors
    ///
    /// It has another name elsewhere.
    pub(crate) fn has_no_other_name(&self, data: &Metadata) -> io::Result<()> {
        match data.is_file() && data.nlink() > 1 && self.is_shared()? {
            true => Err(io::Error::other("it has another name elsewhere, in a folder that others may write to")),
            false => Ok(()),
        }
    }

    /// A path that leads there for as long as this is kept, whatever is exchanged on the way. It is nothing for people.
    pub(crate) fn way(&self) -> PathBuf {
        self.beside(&self.name)
    }

    /// The same of another name in the folder.
    pub(crate) fn beside(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.way_to_folder().join(name.as_ref())
    }

    /// The same of the folder.
    pub(crate) fn way_to_folder(&self) -> PathBuf {
        let way = PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()));
        // Elsewhere than on Linux, and where that shows nothing, it is found by its name.
        let is_there = || fs::metadata(&way).is_ok_and(|data| self.folder().is_ok_and(|folder| is_one(&data, &folder)));
        match is_there() {
            true => way,
            false => folder_of(&self.path).to_owned(),
        }
    }
}

/// Whether two are one file.
pub(crate) fn is_one(data: &Metadata, other: &Metadata) -> bool {
    (data.dev(), data.ino()) == (other.dev(), other.ino())
}

/// The folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Ours has a neighbour's file under its own name, and what is in its place is ours, or by now another run's.
    #[test]
    fn what_is_exchanged_back_takes_the_place_of_ours_alone() {
        for (is_ours, left) in [(true, ["theirs", "new"]), (false, ["another", "theirs"])] {
            let folder = tempfile::tempdir().unwrap();
            let (way, new) = (folder.path().join("way"), folder.path().join("new"));
            fs::write(&new, "new").unwrap();
            let ours = fs::symlink_metadata(&new).unwrap();
            fs::rename(&new, &way).unwrap();
            fs::write(&new, "theirs").unwrap();
            if !is_ours {
                let other = folder.path().join("other");
                fs::write(&other, "another").unwrap();
                fs::rename(&other, &way).unwrap();
            }
            put_back(&new, &way, &ours).unwrap();
            assert_eq!([&way, &new].map(|path| fs::read_to_string(path).unwrap()), left);
        }
    }
}
