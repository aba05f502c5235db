//! Where a path leads, looked at link by link: who has a say in it.
//!
//! In a folder where everybody may make something, a link may be a trap. Linux follows it only if it is the caller's or the
//! folder's owner's (`fs.protected_symlinks`), and a file there is filled only on the same terms (`fs.protected_regular`);
//! but that is a setting, and in some containers it is off. So what is written to is found here, and opened without
//! following anything more.
//!
//! Each folder is opened in the one before, and what is asked about is what was opened: it does not matter what somebody puts in its
//! place meanwhile.

mod mounted;
mod place;

pub(crate) use mounted::{has_processes, is_of_the_kernel};
pub(crate) use place::{Place, folder_of, is_one};

use crate::access;
use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat},
    io::Errno,
};
use std::{
    collections::VecDeque,
    env,
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Component, Path, PathBuf},
};

/// As many links as the system follows.
pub(crate) const MOST: u32 = 40;

/// What is met on a way.
pub(crate) struct Step<'a> {
    pub(crate) path: &'a Path,
    pub(crate) data: &'a Metadata,
    /// The folder that it stands in.
    pub(crate) folder: &'a Metadata,
    /// Whether the way ends here, unless this is a link.
    pub(crate) is_last: bool,
    /// Whether a link has led there.
    pub(crate) is_behind_a_link: bool,
}

impl Step<'_> {
    /// Whether it is a file or a link to which somebody else may have given this name, where those are not protected.
    pub(crate) fn may_be_another_name(&self) -> bool {
        let is_ours = access::is_own(self.folder.uid()) || self.folder.uid() == 0;
        let may_be = || !is_ours || access::is_open_to_others(self.folder, self.path.parent().unwrap_or(self.path));
        !self.data.is_dir() && self.data.nlink() > 1 && may_be()
    }

    /// What there is to say against a link or a file that is read though nobody named it: it must be of somebody who is `believed`.
    pub(crate) fn is_strange(&self, believed: &dyn Fn(&Metadata) -> bool) -> Option<&'static str> {
        let is_theirs = !self.data.is_dir() && !believed(self.data);
        (is_theirs || self.may_be_another_name()).then_some("it belongs to somebody else")
    }

    /// The same against the folder that it stands in: who can put another in its place, or give another file of ours its name, decides
    /// what is read. The folders above are the caller's to choose, but for those that only a link leads through.
    pub(crate) fn is_exchangeable(&self, believed: &dyn Fn(&Metadata) -> bool) -> Option<&'static str> {
        let (is_folder, path) = (self.data.is_dir(), self.path.parent().unwrap_or(self.path));
        // What is in a folder like `/tmp` stays there, but a file of ours may come there from a folder of theirs. A folder of ours cannot.
        let is_open = || match is_folder {
            true => access::may_be_exchanged(self.folder, path),
            false => access::is_open_to_others(self.folder, path),
        };
        match is_folder && !self.is_behind_a_link {
            true => None,
            false if !believed(self.folder) => Some("its folder belongs to somebody else"),
            false => is_open().then_some("others can write to its folder"),
        }
    }
}

/// Follows a path, and asks of each folder, file and link what there is to say against it: where it leads, which is the path
/// itself if there is no link on the way. What is not there ends the way, if it is the last part. `None`: it ends in `/proc`, at what
/// has no path of its own, which only the system finds.
///
/// # Errors
///
/// A part of the way is not there or cannot be looked at, there are too many links, or there was something to say.
pub(crate) fn walk(path: &Path, objects: &dyn Fn(&Step<'_>) -> Option<&'static str>) -> io::Result<Option<PathBuf>> {
    Ok(follow(path, objects)?.map(|place| place.path))
}

/// The same, and what was found there.
pub(crate) fn follow(path: &Path, objects: &dyn Fn(&Step<'_>) -> Option<&'static str>) -> io::Result<Option<Place>> {
    let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<VecDeque<OsString>>();
    let mut here = Way::begin(path, objects)?;
    let is_folder = path.as_os_str().as_bytes().ends_with(b"/");
    let (mut left, mut links) = (parts(path), 0);
    while let Some(part) = left.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => here = Way::root()?,
            Some(Component::ParentDir) => here.up()?,
            Some(Component::Normal(name)) => {
                let next = here.path.join(name);
                if next.starts_with("/proc") || mounted::is_of_processes(here.folder()) {
                    if left.is_empty() && !is_folder {
                        return Ok(None);
                    }
                    here.enter_a_process(name, next, links > 0, objects)?;
                    continue;
                }
                let is_last = left.is_empty();
                let (found, data) = match found(here.folder(), name, &next) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound && is_last => {
                        if is_folder {
                            return Err(Errno::ISDIR.into());
                        }
                        let path = if links == 0 { path.to_owned() } else { next };
                        return Ok(Some(here.place(name.to_owned(), path, None, None)));
                    }
                    found => found?,
                };
                let is_behind_a_link = links > 0;
                let step = Step { path: &next, data: &data, folder: &here.data()?, is_last, is_behind_a_link };
                if let Some(problem) = objects(&step) {
                    let is_named = links == 0 && is_last;
                    let text = if is_named { problem.into() } else { format!("{problem}: {}", next.display()) };
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
                }
                if !data.is_symlink() {
                    if is_last {
                        if is_folder && !data.is_dir() {
                            return Err(Errno::NOTDIR.into());
                        }
                        let path = if links == 0 { path.to_owned() } else { next };
                        return Ok(Some(here.place(name.to_owned(), path, Some(data), Some(found))));
                    }
                    here.enter(found, next, &data)?;
                    continue;
                }
                if mounted::leads_nowhere(&found) {
                    return Err(io::Error::other("no link is followed there (nosymfollow)"));
                }
                links += 1;
                if links > MOST {
                    return Err(io::Error::other("too many links lead to it"));
                }
                let mut to = parts(&leads_to(here.folder(), name, &found)?);
                to.append(&mut left);
                left = to;
            }
            _ => {}
        }
    }
    // The root, or a folder by `.` or `..`.
    let data = here.data()?;
    let path = if links == 0 { path.to_owned() } else { here.path.clone() };
    Ok(Some(here.place(".".into(), path, Some(data), None)))
}

/// What was gone through, each folder opened in the one before.
struct Way {
    path: PathBuf,
    folders: Vec<File>,
}

impl Way {
    /// From the working folder, about which is asked as about all on the way there, or from the root.
    fn begin(path: &Path, objects: &dyn Fn(&Step<'_>) -> Option<&'static str>) -> io::Result<Way> {
        if path.is_absolute() {
            return Way::root();
        }
        let here = env::current_dir().map_err(of_the_way)?;
        way_here(&here, false, objects)?;
        Ok(Way { path: here, folders: vec![openat(CWD, ".", FOLDER, Mode::empty())?.into()] })
    }

    fn root() -> io::Result<Way> {
        let root = openat(CWD, "/", FOLDER, Mode::empty())?;
        Ok(Way { path: "/".into(), folders: vec![root.into()] })
    }

    fn folder(&self) -> BorrowedFd<'_> {
        self.folders.last().expect("it begins somewhere").as_fd()
    }

    fn data(&self) -> io::Result<Metadata> {
        self.folders.last().expect("it begins somewhere").metadata()
    }

    fn enter(&mut self, found: File, path: PathBuf, data: &Metadata) -> io::Result<()> {
        if !data.is_dir() {
            return Err(Errno::NOTDIR.into());
        }
        self.folders.push(found);
        self.path = path;
        Ok(())
    }

    /// Back to where it came from. What is above that was not gone through, and is found by the system.
    fn up(&mut self) -> io::Result<()> {
        match self.folders.len() {
            1 => self.folders = vec![openat(self.folder(), "..", FOLDER, Mode::empty())?.into()],
            _ => drop(self.folders.pop()),
        }
        self.path.pop();
        Ok(())
    }

    /// What is in `/proc` is the system's, and leads where it says. Behind a link to what a process has, the way begins anew, as in
    /// the working folder.
    fn enter_a_process(
        &mut self,
        name: &OsStr,
        path: PathBuf,
        is_behind_a_link: bool,
        objects: &dyn Fn(&Step<'_>) -> Option<&'static str>,
    ) -> io::Result<()> {
        let flags = FOLDER.difference(OFlags::NOFOLLOW);
        let folder = File::from(openat(self.folder(), name, flags, Mode::empty())?);
        self.path = path;
        if is_of_a_process(&self.path) {
            self.path = path_of(&folder)?;
            way_here(&self.path, is_behind_a_link, objects)?;
            self.folders.clear();
        }
        self.folders.push(folder);
        Ok(())
    }

    fn place(mut self, name: OsString, path: PathBuf, found: Option<Metadata>, looked_at: Option<File>) -> Place {
        Place { folder: self.folders.pop().expect("it begins somewhere"), name, path, found, looked_at }
    }
}

/// What has this name in a folder, and what it is.
#[cfg(target_os = "linux")]
fn found(folder: BorrowedFd<'_>, name: &OsStr, _path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut found = File::from(openat(folder, name, flags, Mode::empty())?);
    if found.metadata()?.is_dir() {
        // Only now is there what is mounted when somebody comes.
        found = openat(folder, name, FOLDER, Mode::empty())?.into();
    }
    let data = found.metadata()?;
    Ok((found, data))
}

/// Where a link leads that was found so.
#[cfg(target_os = "linux")]
fn leads_to(_folder: BorrowedFd<'_>, _name: &OsStr, found: &File) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let to = rustix::fs::readlinkat(found, "", Vec::new())?;
    Ok(OsString::from_vec(to.into_bytes()).into())
}

/// Where nothing can be opened just to be looked at, a link is told by its name.
#[cfg(not(target_os = "linux"))]
fn found(folder: BorrowedFd<'_>, name: &OsStr, path: &Path) -> io::Result<(File, Metadata)> {
    let data = fs::symlink_metadata(path)?;
    match data.is_dir() {
        true => {
            let found = File::from(openat(folder, name, FOLDER, Mode::empty())?);
            let data = found.metadata()?;
            Ok((found, data))
        }
        false => Ok((File::from(folder.try_clone_to_owned()?), data)),
    }
}

#[cfg(not(target_os = "linux"))]
fn leads_to(folder: BorrowedFd<'_>, name: &OsStr, _found: &File) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let to = rustix::fs::readlinkat(folder, name, Vec::new())?;
    Ok(OsString::from_vec(to.into_bytes()).into())
}

/// Whether it is a link of the system's to what a process has: its folder, its root, its program or what it has open.
fn is_of_a_process(path: &Path) -> bool {
    let is_in = |name| path.parent().is_some_and(|folder| folder.ends_with(name));
    ["cwd", "root", "exe"].iter().any(|name| path.ends_with(name)) || ["fd", "map_files", "ns"].iter().any(is_in)
}

/// The path of a folder that was opened, as far as it has one here.
fn path_of(folder: &File) -> io::Result<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
    match fs::symlink_metadata(&path) {
        Ok(data) if is_one(&data, &folder.metadata()?) => Ok(path),
        // Who has changed the user may be in a folder to which it may not go.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(path),
        _ => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the folder behind the link of a process has no path here: it was removed, or is in another namespace",
        )),
    }
}

/// What cannot be found of the way to the working folder is not what was asked for in it.
fn of_the_way(error: io::Error) -> io::Error {
    const NO_PATH: &str =
        "the folder that it is looked for from has no path here: it, or what it is on, was moved, removed or unmounted";
    if error.kind() == io::ErrorKind::NotFound { io::Error::new(error.kind(), NO_PATH) } else { error }
}

/// Asks of each folder on the way to the working folder what there is to say against it. It has no links. What may not be looked at
/// from here, as the folder of whoever has changed the user, is not asked about: it is gone through already.
fn way_here(
    here: &Path,
    is_behind_a_link: bool,
    objects: &dyn Fn(&Step<'_>) -> Option<&'static str>,
) -> io::Result<()> {
    let seen = |folder: &Path| match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        data => data.map(Some).map_err(of_the_way),
    };
    let folders: Vec<&Path> = here.ancestors().collect();
    for pair in folders.windows(2).rev().filter(|pair| !pair[0].starts_with("/proc")) {
        let (Some(data), Some(folder)) = (seen(pair[0])?, seen(pair[1])?) else { continue };
        let step = Step { path: pair[0], data: &data, folder: &folder, is_last: false, is_behind_a_link };
        if let Some(problem) = objects(&step) {
            let text = format!("{problem}: {}", pair[0].display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    Ok(())
}

/// Where a path leads, for who writes there: no link or file on the way is a neighbour's trap.
///
/// # Errors
///
/// A link, a folder, or the file, belongs to somebody else and stands in a folder where everybody may make something; or the way ends.
pub(crate) fn to_write(path: &Path) -> io::Result<Option<Place>> {
    follow(path, &theirs)
}

/// A socket that is there, and is no neighbour's trap: who listens there can be told what is meant for it. `None`: the system alone finds it.
///
/// # Errors
///
/// As [`to_write`], or it is not there: somebody else could make it next.
pub(crate) fn to_connect(path: &Path) -> io::Result<Option<File>> {
    match to_write(path) {
        Ok(Some(place)) if place.found().is_none() => Err(Errno::NOENT.into()),
        // In another namespace, behind a link of a process's: what is above it there cannot be asked about here.
        Err(error) if error.kind() == io::ErrorKind::NotFound && error.raw_os_error().is_none() => Ok(None),
        looked => Ok(looked?.and_then(Place::looked_at)),
    }
}

/// What there is to say against writing to what is met on a way.
fn theirs(step: &Step<'_>) -> Option<&'static str> {
    let (owner, is_link) = (step.data.uid(), step.data.is_symlink());
    let is_shared = access::is_shared(step.folder, step.path.parent().unwrap_or(step.path));
    // Who owns the folder may have a file in it, but has no say in where else is written; root has.
    let is_the_folders = access::is_same(owner, step.folder.uid()) && (owner == 0 || step.data.is_file());
    // Where links are not protected, anybody may have given one of ours another name.
    let is_another_name = is_link && step.data.nlink() > 1;
    match is_shared && (is_another_name || !(access::is_own(owner) || is_the_folders)) {
        true if is_another_name => {
            Some("the link has another name elsewhere, and the folder is one that others may write to")
        }
        true if is_link => Some("the link belongs to somebody else, in a folder that others may write to"),
        true if step.is_last && !step.data.is_dir() => {
            Some("it belongs to somebody else, in a folder that others may write to")
        }
        // What stands in it is theirs, links included.
        true if owner != 0 => Some("the folder belongs to somebody else, in a folder that others may write to"),
        _ => None,
    }
}

/// Makes a folder, and those on the way there that are not there, each in the one that was made before and looked at: through no
/// link that comes meanwhile. `way` says where what is there of it leads, or what there is to say against it.
///
/// # Errors
///
/// There was something to say; a folder cannot be made, or what took its place is none of ours.
pub(crate) fn make_folders(
    folder: &Path,
    mode: Mode,
    way: &dyn Fn(&Path) -> io::Result<Option<Place>>,
) -> io::Result<()> {
    let there = folder.ancestors().find(|part| fs::symlink_metadata(part).is_ok());
    let missing = there.map_or(folder, |there| folder.strip_prefix(there).unwrap_or(folder));
    let there = there.unwrap_or(Path::new("."));
    // What a process has open or stands in is entered as what it leads to.
    let mut there = there.as_os_str().to_owned();
    there.push("/");
    let place = way(Path::new(&there))?.ok_or(Errno::NOTDIR)?;
    let mut here = openat(CWD, place.way(), FOLDER, Mode::empty())?;
    place.is_where_it_was(&File::from(here.try_clone()?).metadata()?)?;
    for part in missing.components() {
        let name = part.as_os_str();
        let is_made = match part {
            Component::Normal(name) => match mkdirat(&here, name, mode) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(error) => return Err(error.into()),
            },
            _ => false,
        };
        let above = File::from(here);
        here = openat(&above, name, FOLDER, Mode::empty())?;
        let there = File::from(here.try_clone()?);
        let (owner, data) = (there.metadata()?.uid(), above.metadata()?);
        let is_shared = access::is_shared(&data, Path::new(&format!("/proc/self/fd/{}", above.as_raw_fd())));
        // On some shares all belongs to one user, whoever makes it.
        let is_the_systems = is_made && !is_shared && access::is_same(owner, data.uid());
        if access::is_own(owner) && is_made {
            access::let_owner_in(&there);
        }
        if access::is_own(owner) && is_made && is_shared {
            // Who owns a folder like `/tmp` has no say in who may do what in this one.
            let made =
                File::from(openat(&here, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?);
            access::take_lists_of_a_folder(&made, mode.bits() & most_of(&made, &data)?)?;
        }
        if !access::is_own(owner) && owner != 0 && !is_the_systems {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "somebody else was quicker to make a folder there",
            ));
        }
    }
    Ok(())
}

/// What may be done at most with a folder that was just made in one like `/tmp`: whoever that belongs to may have put another of ours in its place
/// by now, with which nobody is to do more than before.
fn most_of(made: &File, above: &Metadata) -> io::Result<u32> {
    let has_list = || access::path_has_list(Path::new(&format!("/proc/self/fd/{}", made.as_raw_fd())));
    Ok(match access::is_own(above.uid()) || above.uid() == 0 {
        true => 0o777,
        false if has_list() => 0o700,
        false => 0o700 | made.metadata()?.mode() & 0o777,
    })
}

/// A folder, opened to make something in it, and no link.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(TO_ENTER);

/// One may be entered that cannot be listed.
#[cfg(target_os = "linux")]
const TO_ENTER: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const TO_ENTER: OFlags = OFlags::RDONLY;

#[cfg(test)]
mod tests;
