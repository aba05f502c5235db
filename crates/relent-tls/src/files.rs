//! Files of certificates (PEM), which somebody else may have put there: no pipe is waited for, and nothing is read without end.

use rustls::pki_types::{CertificateDer, pem::PemObject};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// The most bytes of a file.
pub(crate) const LONGEST: u64 = 16 << 20;

/// The certificates of a regular file of at most 16 MiB: at least one.
///
/// # Errors
///
/// It cannot be opened, is no regular file, longer, has no certificate in it, or one that cannot be read.
///
/// ```
/// let none = relent_tls::certificates("/dev/null".as_ref()).unwrap_err();
/// assert_eq!(none.to_string(), "it is no regular file");
/// ```
pub fn certificates(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let text = text(file, LONGEST)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(io::Error::other)?;
    if found.is_empty() {
        return Err(io::Error::other("there is no certificate in it"));
    }
    match found.iter().all(crate::is_readable) {
        true => Ok(found),
        false => Err(io::Error::other("it has a certificate that cannot be read")),
    }
}

/// What is in a regular file that is not longer than this.
pub(crate) fn text(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut text)?;
    match text.len() as u64 > most {
        true => Err(io::Error::other("it is too long for a file of certificates")),
        false => Ok(text),
    }
}

/// Opens for reading, whatever it is, without waiting for who writes.
#[cfg(unix)]
fn open(file: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    File::options().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or_default()).open(file)
}

#[cfg(not(unix))]
fn open(file: &Path) -> io::Result<File> {
    File::open(file)
}
