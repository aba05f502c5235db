//! Where a path leads, looked at link by link: who has a say in it.
//!
//! In a folder where everybody may make something, a link may be a trap. Linux follows it only if it is the caller's or the
//! folder's owner's (`fs.protected_symlinks`), and a file there is filled only on the same terms (`fs.protected_regular`);
//! but that is a setting, and in some containers it is off. So what is written to is found here, and opened without
//! following anything more.
//!
//! Each folder is opened in the one before, and what is asked about is what was opened: it does not matter what somebody puts in its
//! place meanwhile.

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
const MOST: u32 = 40;

/// What is met on a way.
pub(crate) struct Step<'a> {
    pub(crate) path: &'a Path,
    pub(crate) data: &'a Metadata,
    /// The folder that it stands in.
    pub(crate) folder: &'a Metadata,
    /// Whether the way ends here, unless this is a link.
    pub(crate) is_last: bool,
}

impl Step<'_> {
    /// Whether it is a file or a link to which somebody else may have given this name, where those are not protected.
    pub(crate) fn may_be_another_name(&self) -> bool {
        let is_ours = access::is_own(self.folder.uid()) || self.folder.uid() == 0;
        !self.data.is_dir() && self.data.nlink() > 1 && (!is_ours || self.folder.mode() & 0o022 != 0)
    }
}

/// Where a way ends: a name in a folder that was opened.
#[derive(Debug)]
pub(crate) struct Place {
    folder: File,
    name: OsString,
    path: PathBuf,
    found: Option<Metadata>,
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
        match theirs(&Step { path: &self.path, data: opened, folder: &self.folder()?, is_last: true }) {
            Some(problem) => Err(io::Error::new(io::ErrorKind::PermissionDenied, problem)),
            None => Ok(()),
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
                if !here.is_behind && next.starts_with("/proc") {
                    if left.is_empty() {
                        return Ok(None);
                    }
                    here.enter_a_process(name, next)?;
                    continue;
                }
                let is_last = left.is_empty();
                let (found, data) = match found(here.folder(), name, &next) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound && is_last => {
                        if is_folder {
                            return Err(Errno::ISDIR.into());
                        }
                        let path = if links == 0 { path.to_owned() } else { next };
                        return Ok(Some(here.place(name.to_owned(), path, None)));
                    }
                    found => found?,
                };
                let step = Step { path: &next, data: &data, folder: &here.data()?, is_last };
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
                        return Ok(Some(here.place(name.to_owned(), path, Some(data))));
                    }
                    here.enter(found, next, &data)?;
                    continue;
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
    Ok(Some(here.place(".".into(), path, Some(data))))
}

/// What was gone through, each folder opened in the one before.
struct Way {
    path: PathBuf,
    folders: Vec<File>,
    /// Whether the way has gone on behind a link of a process's, whose folder has no other path that is known.
    is_behind: bool,
}

impl Way {
    /// From the working folder, about which is asked as about all on the way there, or from the root.
    fn begin(path: &Path, objects: &dyn Fn(&Step<'_>) -> Option<&'static str>) -> io::Result<Way> {
        if path.is_absolute() {
            return Way::root();
        }
        let here = env::current_dir()?;
        way_here(&here, objects)?;
        Ok(Way { path: here, folders: vec![openat(CWD, ".", FOLDER, Mode::empty())?.into()], is_behind: false })
    }

    fn root() -> io::Result<Way> {
        let root = openat(CWD, "/", FOLDER, Mode::empty())?;
        Ok(Way { path: "/".into(), folders: vec![root.into()], is_behind: false })
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
        match self.is_behind {
            true => self.path.push(".."),
            false => drop(self.path.pop()),
        }
        Ok(())
    }

    /// What is in `/proc` is the system's, and leads where it says.
    fn enter_a_process(&mut self, name: &OsStr, path: PathBuf) -> io::Result<()> {
        let folder = openat(self.folder(), name, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?;
        self.is_behind = is_of_a_process(&path);
        if self.is_behind {
            // What is above it is above where it leads.
            self.folders.clear();
        }
        self.folders.push(folder.into());
        self.path = path;
        Ok(())
    }

    fn place(mut self, name: OsString, path: PathBuf, found: Option<Metadata>) -> Place {
        Place { folder: self.folders.pop().expect("it begins somewhere"), name, path, found }
    }
}

/// What has this name in a folder, and what it is.
#[cfg(target_os = "linux")]
fn found(folder: BorrowedFd<'_>, name: &OsStr, _path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = File::from(openat(folder, name, flags, Mode::empty())?);
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

/// Asks of each folder on the way to the working folder what there is to say against it. It has no links. What may not be looked at
/// from here, as the folder of whoever has changed the user, is not asked about: it is gone through already.
fn way_here(here: &Path, objects: &dyn Fn(&Step<'_>) -> Option<&'static str>) -> io::Result<()> {
    let seen = |folder: &Path| match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        data => data.map(Some),
    };
    let folders: Vec<&Path> = here.ancestors().collect();
    for pair in folders.windows(2).rev().filter(|pair| !pair[0].starts_with("/proc")) {
        let (Some(data), Some(folder)) = (seen(pair[0])?, seen(pair[1])?) else { continue };
        if let Some(problem) = objects(&Step { path: pair[0], data: &data, folder: &folder, is_last: false }) {
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
    // What has no path is found by the system, and nobody's to exchange.
    let Some(place) = way(there)? else { return fs::create_dir_all(folder) };
    let mut here = openat(CWD, place.way(), FOLDER, Mode::empty())?;
    place.is_where_it_was(&File::from(here.try_clone()?).metadata()?)?;
    for part in missing.components() {
        let name = part.as_os_str();
        if let Component::Normal(name) = part {
            match mkdirat(&here, name, mode) {
                Err(Errno::EXIST) | Ok(()) => {}
                Err(error) => return Err(error.into()),
            }
        }
        here = openat(&here, name, FOLDER, Mode::empty())?;
        let owner = File::from(here.try_clone()?).metadata()?.uid();
        if !access::is_own(owner) && owner != 0 {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "somebody else was quicker to make a folder there",
            ));
        }
    }
    Ok(())
}

/// A folder, opened to make something in it, and no link.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(TO_ENTER);

/// One may be entered that cannot be listed.
#[cfg(target_os = "linux")]
const TO_ENTER: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const TO_ENTER: OFlags = OFlags::RDONLY;

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        os::unix::fs::{PermissionsExt, chown, lchown, symlink},
        sync::atomic::{AtomicBool, Ordering::Relaxed},
    };

    #[test]
    fn a_way_is_followed_as_the_system_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        symlink("a/../a/b", root.join("short")).unwrap();
        symlink(root.join("short/new"), root.join("dangling")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let to = |path: &str| to_write(&root.join(path)).map(|place| place.unwrap().path);
        let at = |path: &Path| to_write(path).map(|place| place.map(|place| place.path));
        assert_eq!(to("short/file").unwrap(), root.join("a/b/file"));
        assert_eq!(to("short/./../b/file").unwrap(), root.join("a/b/file"));
        assert_eq!(to("dangling").unwrap(), root.join("a/b/new"));
        assert_eq!(to("new").unwrap(), root.join("new"));
        assert_eq!(to("no/new").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(to("round").unwrap_err().to_string(), "too many links lead to it");
        for same in ["/dev/null", "Cargo.toml", "./src/../Cargo.toml"] {
            assert_eq!(at(Path::new(same)).unwrap(), Some(PathBuf::from(same)));
        }
        for no_path in ["/dev/stdout", "/proc/self/fd/1", "/proc/self/comm"] {
            assert_eq!(at(Path::new(no_path)).unwrap(), None);
        }
        assert_eq!(to("new/").unwrap_err().raw_os_error(), Some(nix::libc::EISDIR));
        assert_eq!(to("short/file/").unwrap_err().raw_os_error(), Some(nix::libc::ENOTDIR));
        assert!(to("short/").is_ok());
        let above = to_write(Path::new("/proc/self/cwd/../relent-cli/Cargo.toml")).unwrap().unwrap();
        assert!(is_one(above.found().unwrap(), &fs::metadata("Cargo.toml").unwrap()));
        let behind = Path::new("/proc/self/cwd/src/../Cargo.toml");
        assert_eq!(at(behind).unwrap(), Some(behind.to_owned()));
        assert_eq!(at(Path::new("/proc/self/cwd/no/new")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// As when somebody moves it, or what is above it.
    #[test]
    fn a_working_folder_that_is_not_where_it_was_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(way_here(folder.path(), &|_| None).is_ok());
        assert_eq!(way_here(&folder.path().join("gone/here"), &|_| None).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// It takes root to give something away. No setting of the system has to protect links.
    #[test]
    fn what_a_neighbour_left_in_a_shared_folder_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (own, at) = (tempfile::tempdir().unwrap(), |name: &str| folder.path().join(name));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let victim = own.path().join("victim");
        fs::write(&victim, "old").unwrap();
        fs::write(at("theirs"), "theirs").unwrap();
        for (name, target) in
            [("link", &victim), ("folder", &own.path().to_owned()), ("nowhere", &own.path().join("x"))]
        {
            symlink(target, at(name)).unwrap();
            if lchown(at(name), Some(65_534), Some(65_534)).is_err() {
                eprintln!("SKIPPED what_a_neighbour_left_in_a_shared_folder_is_not_written_to: it takes root");
                return;
            }
        }
        chown(at("theirs"), Some(65_534), Some(65_534)).unwrap();
        for name in ["link", "folder/victim", "nowhere", "theirs"] {
            let refused = to_write(&at(name)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{name}: {refused}");
            assert!(crate::regular::write_private(&at(name), crate::regular::Or::Nothing).is_err(), "{name}");
            assert!(crate::regular::replace(&at(name), b"new").is_err(), "{name}");
        }
        assert!(made(&at("folder/new/er")).is_err());
        // Whoever owns a folder makes links in it that the system follows for everybody.
        fs::create_dir(at("pics")).unwrap();
        symlink(&victim, at("pics/plot.svg")).unwrap();
        chown(at("pics"), Some(65_534), Some(65_534)).unwrap();
        assert!(to_write(&at("pics/plot.svg")).is_err() && to_write(&at("pics/new.svg")).is_err());
        assert!(made(&at("pics")).is_err() && made(&at("pics/new")).is_err());
        assert!(crate::regular::replace(&at("pics/plot.svg"), b"new").is_err());
        assert!(made(&at("new/er")).is_ok() && made(&at("new/../new/er/est")).is_ok() && at("new/er/est").is_dir());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
        assert_eq!(fs::read_to_string(at("theirs")).unwrap(), "theirs");
        assert!(!own.path().join("x").exists());
        // Nor by the way of a process.
        let behind = |name: &str| Path::new("/proc/self/root").join(at(name).strip_prefix("/").unwrap());
        for name in ["link", "folder/victim", "nowhere", "theirs"] {
            assert!(to_write(&behind(name)).is_err(), "{name}");
        }
        assert_eq!(to_write(&behind("new")).unwrap().unwrap().path, behind("new"));
        // A link of one's own, and one in a folder that is not shared, is followed.
        symlink(&victim, at("mine")).unwrap();
        assert!(to_write(&at("mine")).is_ok());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(to_write(&at("link")).is_ok());
    }

    fn made(folder: &Path) -> io::Result<()> {
        make_folders(folder, Mode::from_raw_mode(0o700), &to_write)
    }

    /// A folder is the neighbour's own, and the link in it: the system follows that, since the folder's owner made it.
    #[test]
    fn a_link_of_who_owns_a_shared_folder_is_not_written_through() {
        let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let shared = folder.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        let (link, victim) = (shared.join("link"), own.path().join("victim"));
        fs::write(&victim, "old").unwrap();
        symlink(&victim, &link).unwrap();
        let nobody = Some(65_534);
        if lchown(&link, nobody, nobody).is_err() {
            eprintln!("SKIPPED a_link_of_who_owns_a_shared_folder_is_not_written_through: it takes root");
            return;
        }
        chown(&shared, nobody, nobody).unwrap();
        assert!(crate::regular::write_private(&link, crate::regular::Or::Nothing).is_err());
        assert!(crate::regular::replace(&link, b"new").is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
        assert!(to_write(&shared.join("new")).is_ok());
    }

    /// What is done again and again while a neighbour, however quick, exchanges what is there.
    fn in_spite_of(exchange: impl Fn() + Sync, work: impl Fn()) {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    exchange();
                }
            });
            (0..2_000).for_each(|_| work());
            is_over.store(true, Relaxed);
        });
    }

    /// A shared folder in one of ours, in it a neighbour's link to a victim that is ours.
    fn trap(what: &str, victim: &Path) -> Option<(tempfile::TempDir, PathBuf)> {
        let own = tempfile::tempdir().unwrap();
        let folder = own.path().join("shared");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
        symlink(victim, folder.join("hidden")).unwrap();
        if lchown(folder.join("hidden"), Some(65_534), Some(65_534)).is_err() {
            eprintln!("SKIPPED {what}: it takes root");
            return None;
        }
        Some((own, folder))
    }

    #[test]
    fn no_folder_is_made_through_a_link_that_comes_and_goes() {
        let victim = tempfile::tempdir().unwrap();
        let what = "no_folder_is_made_through_a_link_that_comes_and_goes";
        let Some((_own, folder)) = trap(what, victim.path()) else { return };
        let (link, hidden) = (folder.join("there"), folder.join("hidden"));
        let exchange = || {
            // Where a folder was made it stands in the link's way.
            let _ = fs::remove_dir(link.join("new")).and_then(|()| fs::remove_dir(&link));
            if fs::rename(&hidden, &link).is_ok() {
                fs::rename(&link, &hidden).unwrap();
            }
        };
        in_spite_of(exchange, || drop(made(&link.join("new"))));
        assert_eq!(fs::read_dir(victim.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_that_comes_and_goes_is_not_written_through() {
        let own = tempfile::tempdir().unwrap();
        let victim = own.path().join("victim");
        fs::write(&victim, "old").unwrap();
        let what = "a_link_that_comes_and_goes_is_not_written_through";
        let Some((_own, folder)) = trap(what, &victim) else { return };
        let (report, hidden) = (folder.join("report"), folder.join("hidden"));
        let exchange = || {
            fs::rename(&hidden, &report).unwrap();
            fs::rename(&report, &hidden).unwrap();
            let _ = fs::remove_file(&report);
        };
        in_spite_of(exchange, || {
            let _ = crate::regular::replace(&report, b"new");
            let _ = crate::regular::write_private(&report, crate::regular::Or::Nothing);
        });
        assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
    }

    /// Who owns a sticky folder can move what is in it, however quickly.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_folder_that_becomes_a_link_is_not_written_through() {
        use rustix::fs::{RenameFlags, renameat_with};
        let victim = tempfile::tempdir().unwrap();
        fs::write(victim.path().join("out"), "old").unwrap();
        let what = "a_folder_that_becomes_a_link_is_not_written_through";
        let Some((_own, folder)) = trap(what, victim.path()) else { return };
        let (sub, hidden) = (folder.join("sub"), folder.join("hidden"));
        fs::create_dir(&sub).unwrap();
        chown(&folder, Some(65_534), Some(65_534)).unwrap();
        // A folder of ours there, which its owner exchanges, is written to while it is one.
        let exchange = || renameat_with(CWD, &hidden, CWD, &sub, RenameFlags::EXCHANGE).unwrap();
        let is_written = AtomicBool::new(false);
        let write = || {
            let out = sub.join("out");
            let is_replaced = crate::regular::replace(&out, b"new").is_ok();
            let is_private = crate::regular::write_private(&out, crate::regular::Or::Nothing).is_ok();
            let is_made = made(&sub.join("new")).is_ok();
            is_written.fetch_or(is_replaced || is_private || is_made, Relaxed);
        };
        in_spite_of(exchange, write);
        assert!(is_written.swap(false, Relaxed), "it was never a folder");
        // One of theirs is not.
        for theirs in [&sub, &hidden] {
            lchown(theirs, Some(65_534), Some(65_534)).unwrap();
        }
        write();
        in_spite_of(exchange, write);
        assert!(!is_written.load(Relaxed));
        assert_eq!(fs::read_to_string(victim.path().join("out")).unwrap(), "old");
        assert_eq!(fs::read_dir(victim.path()).unwrap().count(), 1);
    }

    /// A link of ours may have got its place from anybody, where the system lets them.
    #[test]
    fn a_link_with_two_names_is_not_followed_in_a_shared_folder() {
        let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = own.path().join("link");
        symlink("victim", &link).unwrap();
        fs::hard_link(&link, folder.path().join("out")).unwrap();
        let out = folder.path().join("out");
        assert!(to_write(&out).is_ok());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let text = to_write(&out).unwrap_err().to_string();
        assert!(text.starts_with("the link has another name elsewhere"), "{text}");
        fs::remove_file(&link).unwrap();
        assert!(to_write(&out).is_ok());
    }
}
