//! Where a path leads, looked at link by link: who has a say in it.
//!
//! In a folder where everybody may make something, a link may be a trap. Linux follows it only if it is the caller's or the
//! folder's owner's (`fs.protected_symlinks`), and a file there is filled only on the same terms (`fs.protected_regular`);
//! but that is a setting, and in some containers it is off. So what is written to is found here, and opened without
//! following anything more.

use crate::access;
use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat},
    io::Errno,
};
use std::{
    collections::VecDeque,
    env,
    ffi::OsString,
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
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

/// Follows a path, and asks of each folder, file and link what there is to say against it: where it leads, which is the path
/// itself if there is no link on the way. What is not there ends the way, if it is the last part. `None`: it ends in `/proc`, at what
/// has no path of its own, which only the system finds.
///
/// # Errors
///
/// A part of the way is not there or cannot be looked at, there are too many links, or there was something to say.
pub(crate) fn walk(path: &Path, objects: &dyn Fn(&Step<'_>) -> Option<&'static str>) -> io::Result<Option<PathBuf>> {
    let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<VecDeque<OsString>>();
    let mut here = if path.is_absolute() { PathBuf::from("/") } else { env::current_dir()? };
    if !path.is_absolute() {
        way_here(&here, objects)?;
    }
    let (mut left, mut links) = (parts(path), 0);
    // Whether the way has gone on behind a link of a process's, whose folder has no other path that is known.
    let mut is_behind = false;
    let found = |links: u32, end: PathBuf| Ok(Some(if links == 0 { path.to_owned() } else { end }));
    while let Some(part) = left.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => (here, is_behind) = (PathBuf::from("/"), false),
            Some(Component::ParentDir) if is_behind => here.push(".."),
            Some(Component::ParentDir) => {
                here.pop();
            }
            Some(Component::Normal(name)) => {
                let next = here.join(name);
                if !is_behind && next.starts_with("/proc") {
                    if left.is_empty() {
                        return Ok(None);
                    }
                    is_behind = is_of_a_process(&next);
                    match fs::symlink_metadata(&next)?.is_symlink() && !is_behind {
                        // `self`, which is none of those.
                        true => here.push(fs::read_link(&next)?),
                        false => here = next,
                    }
                    continue;
                }
                let data = match fs::symlink_metadata(&next) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound && left.is_empty() => {
                        return found(links, next);
                    }
                    data => data?,
                };
                let folder = if is_behind { fs::metadata(&here)? } else { fs::symlink_metadata(&here)? };
                let step = Step { path: &next, data: &data, folder: &folder, is_last: left.is_empty() };
                if let Some(problem) = objects(&step) {
                    let is_named = links == 0 && step.is_last;
                    let text = if is_named { problem.into() } else { format!("{problem}: {}", next.display()) };
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
                }
                if !data.is_symlink() {
                    here = next;
                    continue;
                }
                links += 1;
                if links > MOST {
                    return Err(io::Error::other("too many links lead to it"));
                }
                let mut to = parts(&fs::read_link(&next)?);
                to.append(&mut left);
                left = to;
            }
            _ => {}
        }
    }
    found(links, here)
}

/// Whether it is a link of the system's to what a process has: its folder, its root, its program or what it has open.
fn is_of_a_process(path: &Path) -> bool {
    let is_in = |name| path.parent().is_some_and(|folder| folder.ends_with(name));
    ["cwd", "root", "exe"].iter().any(|name| path.ends_with(name)) || ["fd", "map_files", "ns"].iter().any(is_in)
}

/// Asks of each folder on the way to the working folder what there is to say against it. It has no links. What cannot be looked at
/// from here, as the folder of whoever has changed the user, is not asked about: it is gone through already.
fn way_here(here: &Path, objects: &dyn Fn(&Step<'_>) -> Option<&'static str>) -> io::Result<()> {
    let folders: Vec<&Path> = here.ancestors().collect();
    for pair in folders.windows(2).rev().filter(|pair| !pair[0].starts_with("/proc")) {
        let (Ok(data), Ok(folder)) = (fs::symlink_metadata(pair[0]), fs::symlink_metadata(pair[1])) else { continue };
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
pub(crate) fn to_write(path: &Path) -> io::Result<Option<PathBuf>> {
    walk(path, &|step| {
        let owner = step.data.uid();
        let is_shared = access::is_shared(step.folder, step.path.parent().unwrap_or(step.path));
        // Who owns the folder may have what is in it, but has no say in where else is written; root has.
        let is_the_folders = access::is_same(owner, step.folder.uid()) && (owner == 0 || !step.data.is_symlink());
        let is_theirs = is_shared && !access::is_own(owner) && !is_the_folders;
        match is_theirs {
            true if step.data.is_symlink() => {
                Some("the link belongs to somebody else, in a folder that others may write to")
            }
            true if step.is_last && !step.data.is_dir() => {
                Some("it belongs to somebody else, in a folder that others may write to")
            }
            // What stands in it is theirs, links included.
            true if owner != 0 => Some("the folder belongs to somebody else, in a folder that others may write to"),
            _ => None,
        }
    })
}

/// Looks again at where something was found that is open now: somebody may have put another there, or a link on the way.
///
/// # Errors
///
/// What is there is not what was opened, the way leads elsewhere, or there is something to say against it.
pub(crate) fn leads_there_yet(
    real: &Path,
    opened: &Metadata,
    way: impl Fn() -> io::Result<Option<PathBuf>>,
) -> io::Result<()> {
    let (again, now) = (way()?, fs::symlink_metadata(real)?);
    match again.as_deref() == Some(real) && (now.dev(), now.ino()) == (opened.dev(), opened.ino()) {
        true => Ok(()),
        false => Err(io::Error::other("it is being moved")),
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
    way: &dyn Fn(&Path) -> io::Result<Option<PathBuf>>,
) -> io::Result<()> {
    let there = folder.ancestors().find(|part| fs::symlink_metadata(part).is_ok());
    let missing = there.map_or(folder, |there| folder.strip_prefix(there).unwrap_or(folder));
    let there = there.unwrap_or(Path::new("."));
    // What has no path is found by the system, and nobody's to exchange.
    let Some(real) = way(there)? else { return fs::create_dir_all(folder) };
    let mut here = openat(CWD, &real, FOLDER, Mode::empty())?;
    leads_there_yet(&real, &File::from(here.try_clone()?).metadata()?, || way(there))?;
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
        let to = |path: &str| to_write(&root.join(path)).map(Option::unwrap);
        assert_eq!(to("short/file").unwrap(), root.join("a/b/file"));
        assert_eq!(to("short/./../b/file").unwrap(), root.join("a/b/file"));
        assert_eq!(to("dangling").unwrap(), root.join("a/b/new"));
        assert_eq!(to("new").unwrap(), root.join("new"));
        assert_eq!(to("no/new").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(to("round").unwrap_err().to_string(), "too many links lead to it");
        for same in ["/dev/null", "Cargo.toml", "./src/../Cargo.toml"] {
            assert_eq!(to_write(Path::new(same)).unwrap(), Some(PathBuf::from(same)));
        }
        for no_path in ["/dev/stdout", "/proc/self/fd/1", "/proc/self/comm"] {
            assert_eq!(to_write(Path::new(no_path)).unwrap(), None);
        }
        let behind = Path::new("/proc/self/cwd/src/../Cargo.toml");
        assert_eq!(to_write(behind).unwrap(), Some(behind.to_owned()));
        assert_eq!(to_write(Path::new("/proc/self/cwd/no/new")).unwrap_err().kind(), io::ErrorKind::NotFound);
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
        assert_eq!(to_write(&behind("new")).unwrap(), Some(behind("new")));
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

    /// However quick the neighbour is.
    #[test]
    fn no_folder_is_made_through_a_link_that_comes_and_goes() {
        let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let (link, hidden) = (folder.path().join("there"), own.path().join("link"));
        let victim = own.path().join("victim");
        fs::create_dir(&victim).unwrap();
        symlink(&victim, &hidden).unwrap();
        if lchown(&hidden, Some(65_534), Some(65_534)).is_err() {
            eprintln!("SKIPPED no_folder_is_made_through_a_link_that_comes_and_goes: it takes root");
            return;
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    // Where a folder was made it stands in the link's way.
                    let _ = fs::remove_dir(link.join("new")).and_then(|()| fs::remove_dir(&link));
                    if fs::rename(&hidden, &link).is_ok() {
                        fs::rename(&link, &hidden).unwrap();
                    }
                }
            });
            for _ in 0..2_000 {
                let _ = made(&link.join("new"));
            }
            is_over.store(true, Relaxed);
        });
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    }

    /// However quick the neighbour is.
    #[test]
    fn a_link_that_comes_and_goes_is_not_written_through() {
        let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let (report, hidden) = (folder.path().join("report"), own.path().join("link"));
        let victim = own.path().join("victim");
        fs::write(&victim, "old").unwrap();
        symlink(&victim, &hidden).unwrap();
        if lchown(&hidden, Some(65_534), Some(65_534)).is_err() {
            eprintln!("SKIPPED a_link_that_comes_and_goes_is_not_written_through: it takes root");
            return;
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    fs::rename(&hidden, &report).unwrap();
                    fs::rename(&report, &hidden).unwrap();
                    let _ = fs::remove_file(&report);
                }
            });
            for _ in 0..2_000 {
                let _ = crate::regular::replace(&report, b"new");
                let _ = crate::regular::write_private(&report, crate::regular::Or::Nothing);
            }
            is_over.store(true, Relaxed);
        });
        assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
    }
}
