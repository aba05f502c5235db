//! Standard output, for all that write to it: one that is closed, or open for reading alone, is an error.
//!
//! Rust opens `/dev/null` in the place of a standard output that is closed, before `main`, and takes one that refuses what
//! is written for one that swallows it. So it is held still earlier by something that refuses ([`hold`]), which commands that
//! inherit it notice, too, as they would without relent; and whoever writes here asks first (`open`).

use rustix::fs::{self, Mode, OFlags};
use std::{
    io::{self, StdoutLock},
    os::fd::{AsRawFd, IntoRawFd},
};

/// Puts something that only reads, nothing, in the place of a standard input and output that are closed. It is for the time
/// before `main`: it opens a file, and does nothing else.
pub fn hold() {
    for _ in 0..2 {
        // The lowest free number is given, so it tells what was closed.
        match fs::open("/dev/null", OFlags::RDONLY, Mode::empty()) {
            Ok(null) if null.as_raw_fd() < 2 => {
                let _ = null.into_raw_fd();
            }
            _ => return,
        }
    }
}

/// Standard output, to be written to.
///
/// # Errors
///
/// It cannot be: it is closed, or open for reading alone.
pub(crate) fn open() -> io::Result<StdoutLock<'static>> {
    let stdout = io::stdout();
    match fs::fcntl_getfl(&stdout) {
        Ok(flags) if flags & OFlags::ACCMODE != OFlags::RDONLY => Ok(stdout.lock()),
        _ => Err(io::Error::other("it is closed")),
    }
}
