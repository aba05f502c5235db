//! What is mounted where a path leads through, and decides how it goes on.

use std::{fs::File, os::fd::BorrowedFd, path::Path};

/// Whether a folder is of a `/proc`, wherever that is mounted: its links are the system's, and lead where their text does not.
#[cfg(target_os = "linux")]
pub(super) fn is_of_processes(folder: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(folder).is_ok_and(|mounted| is_proc(&mounted))
}

/// The same of one that is named.
#[cfg(target_os = "linux")]
pub(crate) fn has_processes(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|mounted| is_proc(&mounted))
}

#[cfg(target_os = "linux")]
fn is_proc(mounted: &rustix::fs::StatFs) -> bool {
    mounted.f_type == rustix::fs::PROC_SUPER_MAGIC
}

/// Whether the system follows no link there (`nosymfollow`), whoever asks.
#[cfg(target_os = "linux")]
pub(super) fn leads_nowhere(link: &File) -> bool {
    rustix::fs::fstatfs(link).is_ok_and(|mounted| {
        // `ST_NOSYMFOLLOW` of statfs(2), in a number that is not as long everywhere.
        mounted.f_flags & 0x2000 != 0
    })
}

/// Elsewhere there is none.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_processes(_folder: &Path) -> bool {
    false
}

/// Elsewhere there is none.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_of_processes(_folder: BorrowedFd<'_>) -> bool {
    false
}

/// Elsewhere there is none.
#[cfg(not(target_os = "linux"))]
pub(super) fn leads_nowhere(_link: &File) -> bool {
    false
}
