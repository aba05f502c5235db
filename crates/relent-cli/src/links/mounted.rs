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

/// Whether a file is one of the kernel's, which keeps nothing: to open it, to read it or to close it can do something by itself, as to throw a
/// trace away (magic.h of Linux).
#[cfg(target_os = "linux")]
pub(crate) fn is_of_the_kernel(file: &Path) -> bool {
    // Their number is not as long everywhere, and may have a sign.
    rustix::fs::statfs(file).is_ok_and(|mounted| match mounted.f_type as u32 {
        // proc, sysfs, tracefs, debugfs, securityfs, configfs.
        0x9fa0 | 0x6265_6572 | 0x7472_6163 | 0x6462_6720 | 0x7363_6673 | 0x6265_6570 => true,
        // cgroup, cgroup2, resctrl, bpf, pstore, efivarfs.
        0x0027_e0eb | 0x6367_7270 | 0x0765_5821 | 0xcafe_4a11 | 0x6165_676c | 0xde5e_81e4 => true,
        // selinuxfs, smackfs, binfmt_misc, fusectl, mqueue, nsfs.
        0xf97c_ff8c | 0x4341_5d53 | 0x4249_4e4d | 0x6573_5543 | 0x1980_0202 | 0x6e73_6673 => true,
        // nfsd, rpc_pipefs, xenfs, binderfs, devpts, hugetlbfs.
        0x6e66_7364 | 0x6759_6969 | 0xabba_1974 | 0x6c6f_6f70 | 0x1cd1 | 0x9584_58f6 => true,
        _ => false,
    })
}

/// Elsewhere they are not known.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_of_the_kernel(_file: &Path) -> bool {
    false
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
