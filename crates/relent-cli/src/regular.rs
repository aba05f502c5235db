//! Opening files that somebody named, or that happen to be there: never waiting for the other end of a named pipe, never
//! taking a terminal or a device for a file.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// What else may be meant where a file is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Or {
    /// Nothing: what is no regular file is refused.
    Nothing,
    /// A device that swallows or shows what is written, as `/dev/null` and `/dev/stderr`.
    Device,
}

/// Opens a regular file for reading, at once.
///
/// # Errors
///
/// It cannot be opened, or is no regular file.
pub fn read(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(at_once()).open(path)?;
    check(file, Or::Nothing)
}

/// Opens a file for writing, at once, and empties it; a new one only its owner can read and write.
///
/// # Errors
///
/// It cannot be opened, or is no regular file and nothing else that was allowed.
pub fn write_private(path: &Path, or: Or) -> io::Result<File> {
    let open = OpenOptions::new().write(true).create(true).mode(0o600).custom_flags(at_once()).open(path);
    let file = open.map_err(|error| match error.raw_os_error() {
        Some(nix::libc::ENXIO) => io::Error::other("it is a named pipe that nobody reads, and no file"),
        _ => error,
    })?;
    let file = check(file, or)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

fn at_once() -> i32 {
    nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY
}

fn check(file: File, or: Or) -> io::Result<File> {
    use std::os::unix::fs::FileTypeExt;
    let kind = file.metadata()?.file_type();
    let what = match () {
        () if kind.is_file() || (kind.is_char_device() && or == Or::Device) => return Ok(file),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(io::Error::other(format!("it is {what}, and no file")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, io::Read, os::unix::fs::PermissionsExt};

    #[test]
    fn special_files_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read(&pipe).unwrap_err().to_string(), "it is a named pipe, and no file");
        let unread = write_private(&pipe, Or::Device).unwrap_err().to_string();
        assert_eq!(unread, "it is a named pipe that nobody reads, and no file");
        assert_eq!(read(folder.path()).unwrap_err().to_string(), "it is a folder, and no file");
        assert_eq!(read(Path::new("/dev/null")).unwrap_err().to_string(), "it is a device, and no file");
        assert!(write_private(Path::new("/dev/null"), Or::Device).is_ok());
        assert!(write_private(Path::new("/dev/null"), Or::Nothing).is_err());
    }

    #[test]
    fn a_new_file_is_private_and_an_old_one_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let new = write_private(&path, Or::Nothing).unwrap();
        assert_eq!(new.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "longer than before").unwrap();
        write_private(&path, Or::Nothing).unwrap();
        let mut text = String::new();
        read(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "");
    }
}
