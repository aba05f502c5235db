//! What a path names by a descriptor of this process, as `/dev/stdout` and `/dev/fd/3` do: who opened it has chosen where it is
//! written to. Opened once more, a file would be written from its beginning, and what another user has opened, or a socket, not at all.

use std::{fs::File, io, path::Path};

/// What this process has open by a descriptor that a path names, to be written to: a file or a device where it stands, a pipe or a terminal
/// by a descriptor of our own, where the system opens it once more. `None`: the path names no such thing.
///
/// # Errors
///
/// It is closed or open for reading alone, nobody reads from the pipe, or the system does not hand it out.
#[cfg(target_os = "linux")]
pub(crate) fn to_write(path: &Path) -> io::Result<Option<File>> {
    use nix::{errno::Errno, fcntl::OFlag};
    use std::{
        fs::{self, OpenOptions},
        io::IsTerminal,
        os::unix::fs::{FileTypeExt, OpenOptionsExt},
    };
    let Some(number) = number(path) else { return Ok(None) };
    let way = format!("/proc/self/fd/{number}");
    let Ok(data) = fs::metadata(&way) else { return Ok(None) };
    let flags = flags(number)?;
    // What goes with no program that takes our place did not come with us either.
    if flags.contains(OFlag::O_CLOEXEC) {
        return Err(io::Error::other("the caller has not opened it"));
    }
    if flags & OFlag::O_ACCMODE == OFlag::O_RDONLY {
        return Err(io::Error::other("it is closed, or open for reading alone"));
    }
    let kind = data.file_type();
    if kind.is_file() {
        return match handed_out(number) {
            // Wherever it stands, what is written goes to its end.
            Err(_) if flags.contains(OFlag::O_APPEND) => OpenOptions::new().append(true).open(way).map(Some),
            found => found.map(Some),
        };
    }
    let here = handed_out(number);
    let has_no_place = here.as_ref().is_ok_and(|file| kind.is_fifo() || file.is_terminal());
    if is_of_each_opening(&data) || kind.is_block_device() || (here.is_ok() && !has_no_place) {
        return here.map(Some);
    }
    let at_once = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    match OpenOptions::new().write(true).custom_flags(at_once.bits()).open(way) {
        Err(error) if kind.is_fifo() && error.raw_os_error() == Some(Errno::ENXIO as i32) => Err(error),
        Err(_) => here.map(Some),
        Ok(again) => {
            // Writing waits for the reader as it does elsewhere.
            rustix::fs::fcntl_setfl(&again, rustix::fs::OFlags::empty())?;
            Ok(Some(again))
        }
    }
}

/// Whether it may be another thing when it is opened again: the master of a terminal (`/dev/ptmx`), and the terminal of a session, which may
/// be another's by now (`/dev/tty`).
#[cfg(target_os = "linux")]
pub(crate) fn is_of_each_opening(data: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    data.file_type().is_char_device() && [0, 2].map(|minor| nix::sys::stat::makedev(5, minor)).contains(&data.rdev())
}

/// How it is open here.
#[cfg(target_os = "linux")]
fn flags(number: i32) -> io::Result<nix::fcntl::OFlag> {
    let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
    let flags = told.lines().find_map(|line| i32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags
        .map(nix::fcntl::OFlag::from_bits_retain)
        .ok_or_else(|| io::Error::other("the system does not say how it is open"))
}

/// The very thing that is open here, to be written to where that stands.
#[cfg(target_os = "linux")]
fn handed_out(number: i32) -> io::Result<File> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    use std::os::fd::AsFd;
    let found = match number {
        1 => io::stdout().as_fd().try_clone_to_owned(),
        2 => io::stderr().as_fd().try_clone_to_owned(),
        number => pidfd_open(getpid(), PidfdFlags::empty())
            .and_then(|us| pidfd_getfd(us, number, PidfdGetfdFlags::empty()))
            .map_err(|_| {
                io::Error::other(
                    "the system does not hand out what is open (as in some containers); name the file itself",
                )
            }),
    };
    Ok(found?.into())
}

/// Which descriptor of ours it is. The last link is the system's alone to follow.
#[cfg(target_os = "linux")]
fn number(path: &Path) -> Option<i32> {
    use crate::links::{MOST, folder_of, has_processes};
    use std::fs;
    // By the number that `/proc`, wherever that is mounted, knows this process by, which is another in a namespace.
    let is_ours = |mount: &Path, folder: &Path| {
        has_processes(mount)
            && fs::read_link(mount.join("self")).is_ok_and(|number| folder.starts_with(mount.join(number)))
    };
    let mut path = path.to_owned();
    for _ in 0..MOST {
        let folder = folder_of(&path).canonicalize().ok()?;
        if folder.ends_with("fd") && folder.ancestors().any(|mount| is_ours(mount, &folder)) {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = folder.join(fs::read_link(folder.join(path.file_name()?)).ok()?);
    }
    None
}

/// Elsewhere none is known.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_of_each_opening(_data: &std::fs::Metadata) -> bool {
    false
}

/// Elsewhere such paths are devices, which the system duplicates.
#[cfg(not(target_os = "linux"))]
pub(crate) fn to_write(_path: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::{
        fs,
        io::{Read, Seek, Write},
        os::{
            fd::{AsFd, AsRawFd},
            unix::net::UnixStream,
        },
    };

    /// As what the caller has opened.
    fn given(end: &impl AsFd) -> i32 {
        rustix::io::fcntl_setfd(end, rustix::io::FdFlags::empty()).expect("it is open");
        end.as_fd().as_raw_fd()
    }

    #[test]
    fn what_is_open_is_written_to_where_it_stands() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("log"), folder.path().join("link"));
        let mut log = File::create(&path).unwrap();
        log.write_all(b"before ").unwrap();
        let fd = given(&log);
        std::os::unix::fs::symlink(format!("/dev/fd/{fd}"), &link).unwrap();
        let ways = [format!("/dev/fd/{fd}"), format!("/proc/self/fd/{fd}"), format!("/proc/thread-self/fd/{fd}")];
        for way in ways.iter().map(Path::new).chain([link.as_path()]) {
            to_write(way).unwrap().unwrap_or_else(|| panic!("{}", way.display())).write_all(b"x").unwrap();
        }
        log.write_all(b" after").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before xxxx after");
        assert_eq!(log.stream_position().unwrap(), 17);
    }

    /// A socket is opened by nobody, and a pipe has settings that others share.
    #[test]
    fn so_are_pipes_and_sockets() {
        let (reader, writer) = io::pipe().unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        let ends: [(std::os::fd::OwnedFd, Box<dyn Read>); 2] =
            [(writer.into(), Box::new(reader)), (near.into(), Box::new(far))];
        for (end, mut other) in ends {
            let way = format!("/dev/fd/{}", given(&end));
            to_write(Path::new(&way)).unwrap().unwrap().write_all(b"text").unwrap();
            let mut text = [0; 4];
            other.read_exact(&mut text).unwrap();
            assert_eq!(&text, b"text");
        }
    }

    /// Where a device stands, or what it is, may be a matter of its opening.
    #[test]
    fn so_are_devices() {
        let null = File::options().append(true).open("/dev/null").unwrap();
        let out = to_write(Path::new(&format!("/dev/fd/{}", given(&null)))).unwrap().unwrap();
        let flags = rustix::fs::fcntl_getfl(&out).unwrap();
        assert!(flags.contains(rustix::fs::OFlags::APPEND), "it was opened once more: {flags:?}");
    }

    #[test]
    fn what_names_nothing_of_ours_is_none_and_what_is_only_read_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for path in [&file.path().display().to_string(), "/dev/null", "/dev/fd/9999", "/proc/1/fd/1", "/dev/fd", ""] {
            assert!(to_write(Path::new(path)).unwrap().is_none(), "{path}");
        }
        let (pipe, _writer) = io::pipe().unwrap();
        let read = File::open(file.path()).unwrap();
        for fd in [given(&pipe), given(&read)] {
            let error = to_write(Path::new(&format!("/dev/fd/{fd}"))).unwrap_err();
            assert_eq!(error.to_string(), "it is closed, or open for reading alone");
        }
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("pipe");
        nix::unistd::mkfifo(&named, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let both = File::options().read(true).write(true).open(&named).unwrap();
        let writer = File::options().write(true).open(&named).unwrap();
        drop(both);
        assert!(to_write(Path::new(&format!("/dev/fd/{}", given(&writer)))).is_err(), "nobody reads");
    }

    /// A script that forgets to open it would lose all that is written there.
    #[test]
    fn what_we_have_opened_ourselves_is_nobodys_choice() {
        let (near, _far) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        for fd in [near.as_raw_fd(), file.as_raw_fd()] {
            let error = to_write(Path::new(&format!("/dev/fd/{fd}"))).unwrap_err();
            assert_eq!(error.to_string(), "the caller has not opened it");
        }
    }
}
