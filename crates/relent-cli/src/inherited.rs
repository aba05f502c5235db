//! Files that a path names by a descriptor of this process, as `/dev/stdout` and `/dev/fd/3` do: who opened them has chosen where they are
//! written to. Opened once more, they would be written from their beginning.

use std::{fs::File, io, path::Path};

/// The regular file that this process has open by a descriptor that a path names, as it is open there. `None`: it names no such thing.
///
/// # Errors
///
/// The system does not hand it out.
#[cfg(target_os = "linux")]
pub(crate) fn named(path: &Path) -> io::Result<Option<File>> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    use std::{
        fs::{self, OpenOptions},
        os::fd::AsFd,
    };
    let is_file = || fs::metadata(path).is_ok_and(|data| data.is_file());
    let Some(number) = number(path).filter(|_| is_file()) else { return Ok(None) };
    let found = match number {
        1 => io::stdout().as_fd().try_clone_to_owned()?,
        2 => io::stderr().as_fd().try_clone_to_owned()?,
        number => {
            let got = || pidfd_getfd(pidfd_open(getpid(), PidfdFlags::empty())?, number, PidfdGetfdFlags::empty());
            // Some containers forbid it: then it is written to at its end.
            match got() {
                Ok(found) => found,
                Err(_) => return OpenOptions::new().append(true).open(path).map(Some),
            }
        }
    };
    Ok(Some(found.into()))
}

/// Which descriptor of ours it is. The last link is the system's alone to follow.
#[cfg(target_os = "linux")]
fn number(path: &Path) -> Option<i32> {
    use crate::links::{MOST, folder_of};
    use std::fs;
    // By the number that `/proc` knows this process by, which is another in a namespace.
    let ours = Path::new("/proc").join(fs::read_link("/proc/self").ok()?);
    let mut path = path.to_owned();
    for _ in 0..MOST {
        let folder = folder_of(&path).canonicalize().ok()?;
        if folder.starts_with(&ours) && folder.ends_with("fd") {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = folder.join(fs::read_link(folder.join(path.file_name()?)).ok()?);
    }
    None
}

/// Elsewhere such paths are devices, which the system duplicates.
#[cfg(not(target_os = "linux"))]
pub(crate) fn named(_path: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::{
        fs,
        io::{Seek, Write},
        os::fd::AsRawFd,
    };

    #[test]
    fn what_is_open_is_written_to_where_it_stands() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("log"), folder.path().join("link"));
        let mut log = File::create(&path).unwrap();
        log.write_all(b"before ").unwrap();
        let fd = log.as_raw_fd();
        std::os::unix::fs::symlink(format!("/dev/fd/{fd}"), &link).unwrap();
        let ways = [format!("/dev/fd/{fd}"), format!("/proc/self/fd/{fd}"), format!("/proc/thread-self/fd/{fd}")];
        for way in ways.iter().map(Path::new).chain([link.as_path()]) {
            named(way).unwrap().unwrap_or_else(|| panic!("{}", way.display())).write_all(b"x").unwrap();
        }
        log.write_all(b" after").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before xxxx after");
        assert_eq!(log.stream_position().unwrap(), 17);
    }

    #[test]
    fn what_names_no_file_of_ours_is_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (pipe, _other) = io::pipe().unwrap();
        let way = format!("/dev/fd/{}", pipe.as_raw_fd());
        for path in
            [&file.path().display().to_string(), &way, "/dev/null", "/dev/fd/9999", "/proc/1/fd/1", "/dev/fd", ""]
        {
            assert!(named(Path::new(path)).unwrap().is_none(), "{path}");
        }
    }
}
