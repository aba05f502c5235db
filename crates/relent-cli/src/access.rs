//! Who else may do what a file's group may: with an access list (a POSIX ACL), anybody in it; without one, whoever is in the group.

use nix::unistd::{getegid, geteuid};
use std::{fs::File, path::Path};

/// Whether a group is the user's alone: it has the user's number, as many systems make one for each, root's included. One that all
/// users have in common is theirs as well.
pub(crate) fn is_own_group(group: u32) -> bool {
    group == getegid().as_raw() && group == geteuid().as_raw()
}

/// Whether a file has one.
#[cfg(target_os = "linux")]
pub(crate) fn has_list(file: &File) -> bool {
    is_one(rustix::fs::fgetxattr(file, NAME, &mut [0; 256]))
}

/// Whether what a path leads to has one.
#[cfg(target_os = "linux")]
pub(crate) fn path_has_list(path: &Path) -> bool {
    is_one(rustix::fs::getxattr(path, NAME, &mut [0; 256]))
}

#[cfg(target_os = "linux")]
const NAME: &str = "system.posix_acl_access";

/// One that is too long is one.
#[cfg(target_os = "linux")]
fn is_one(length: rustix::io::Result<usize>) -> bool {
    length.is_ok_and(|length| length > 0) || length == Err(rustix::io::Errno::RANGE)
}

/// Elsewhere nobody is asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_list(_file: &File) -> bool {
    false
}

/// Elsewhere nobody is asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn path_has_list(_path: &Path) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::fs::{XattrFlags, setxattr};

    #[test]
    fn a_list_is_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!has_list(file.as_file()) && !path_has_list(file.path()));
        // Version 2: the owner, user 65534, the group, the most for both, others.
        let entries = [(1, 6, u32::MAX), (2, 6, 65_534), (4, 4, u32::MAX), (16, 6, u32::MAX), (32, 4, u32::MAX)];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, who) in entries {
            list.extend(u16::to_le_bytes(tag).into_iter().chain(u16::to_le_bytes(rights)).chain(who.to_le_bytes()));
        }
        if let Err(error) = setxattr(file.path(), NAME, &list, XattrFlags::empty()) {
            eprintln!("SKIPPED a_list_is_seen: the temporary folder takes none: {error}");
            return;
        }
        assert!(has_list(file.as_file()) && path_has_list(file.path()));
    }
}
