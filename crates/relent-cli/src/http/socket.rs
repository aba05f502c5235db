//! The socket of `--unix-socket`: who listens there is looked at, and what was looked at is connected to, whatever takes its name
//! meanwhile.

use crate::links;
#[cfg(target_os = "linux")]
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::{DupFlags, dup3},
};
use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Mutex,
};

/// A socket of the file system. It is looked at anew for each connection, since a server that starts again makes another.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    /// Where what was looked at last is kept, under one number: the client knows one path for all connections. `None`: the system has no
    /// paths for what is open.
    looked_at: Option<Mutex<OwnedFd>>,
}

impl Socket {
    pub(super) fn new(path: &Path) -> Socket {
        Socket { path: path.to_owned(), looked_at: place().map(Mutex::new) }
    }

    /// What a client connects to.
    pub(super) fn way(&self) -> PathBuf {
        match &self.looked_at {
            Some(fd) => way(fd.lock().unwrap_or_else(std::sync::PoisonError::into_inner).as_raw_fd()),
            None => self.path.clone(),
        }
    }

    /// Looks whose it is. In a folder like `/tmp` anybody could listen in the place of a server that is not up; what is not there is not
    /// asked, since somebody may make it next.
    ///
    /// # Errors
    ///
    /// It is not there, or a neighbour's.
    pub(super) fn look(&self) -> io::Result<()> {
        let found = links::to_connect(&self.path)?;
        #[cfg(target_os = "linux")]
        if let Some(place) = &self.looked_at {
            let found = match found {
                Some(found) => OwnedFd::from(found),
                None => openat(CWD, &self.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?,
            };
            let mut place = place.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            dup3(found, &mut place, DupFlags::CLOEXEC)?;
        }
        #[cfg(not(target_os = "linux"))]
        drop(found);
        Ok(())
    }
}

fn way(fd: i32) -> PathBuf {
    format!("/proc/self/fd/{fd}").into()
}

/// A number that is ours.
#[cfg(target_os = "linux")]
fn place() -> Option<OwnedFd> {
    let root = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    way(root.as_raw_fd()).exists().then_some(root)
}

#[cfg(not(target_os = "linux"))]
fn place() -> Option<OwnedFd> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::{
        fs,
        io::Write,
        os::unix::net::{UnixListener, UnixStream},
    };

    #[test]
    fn what_was_looked_at_is_connected_to_whatever_has_its_name_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let socket = Socket::new(&path);
        assert_eq!(socket.look().unwrap_err().kind(), io::ErrorKind::NotFound);
        for name in ["first", "second"] {
            let theirs = UnixListener::bind(&path).unwrap();
            socket.look().unwrap();
            fs::rename(&path, folder.path().join(name)).unwrap();
            let other = UnixListener::bind(&path).unwrap();
            other.set_nonblocking(true).unwrap();
            UnixStream::connect(socket.way()).unwrap().write_all(b"secret").unwrap();
            assert!(theirs.accept().is_ok() && other.accept().is_err(), "{name}");
            fs::remove_file(&path).unwrap();
        }
    }
}
