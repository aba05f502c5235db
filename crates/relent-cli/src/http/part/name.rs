//! What stands beside FILE is named after it.

use sha2::{Digest, Sha256};
use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
};

/// `.FILE.part`. A FILE whose name is so long that not every system would take this one is cut, and known by a digest of all of it.
pub(super) fn beside(name: &OsStr, before: &str, after: &str) -> OsString {
    // Names have 255 bytes at most, and 143 where they are kept in cipher (eCryptfs); and some stands before and behind this.
    const LONGEST: usize = 128;
    let mut beside = OsString::from(before);
    match name.as_bytes() {
        bytes if bytes.len() > LONGEST => {
            let digest: String = Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            // Half a character would be none.
            let cut = &bytes[..LONGEST / 2];
            let end = match std::str::from_utf8(cut) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => cut.len(),
            };
            beside.push(OsStr::from_bytes(&cut[..end]));
            beside.push(format!("~{digest}"));
        }
        _ => beside.push(name),
    }
    beside.push(after);
    beside
}
