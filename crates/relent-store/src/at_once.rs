//! Opening what somebody else may have put in the place of a file: no pipe is waited for.

use std::{fs::File, io, path::Path};

/// Opens for reading, whatever it is.
#[cfg(unix)]
pub(crate) fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    File::options().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or_default()).open(path)
}

/// Opens for reading, whatever it is.
#[cfg(not(unix))]
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}
