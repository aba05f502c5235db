//! What the system shows of processes, where it shows ours: in another namespace than `/proc` was mounted for, its numbers are those of
//! strangers.

use nix::unistd::{Pid, getpid};
use std::{fs, path::PathBuf, sync::OnceLock};

/// Where it shows processes; `None` where it shows none, or those of another namespace.
pub(super) fn shown() -> Option<PathBuf> {
    static ARE_OURS: OnceLock<bool> = OnceLock::new();
    let are_ours = || fs::read_to_string("/proc/self/status").is_ok_and(|status| is_of(&status, getpid()));
    ARE_OURS.get_or_init(are_ours).then(|| PathBuf::from("/proc"))
}

/// Where it shows one of them.
pub(super) fn folder(pid: Pid) -> Option<PathBuf> {
    Some(shown()?.join(pid.to_string()))
}

/// Whether a process is known there by the number that it has itself, and by no other (`NSpid`, since Linux 4.1).
fn is_of(status: &str, pid: Pid) -> bool {
    let numbers = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let all = numbers("NSpid:").or_else(|| numbers("Pid:")).unwrap_or_default();
    all.split_whitespace().map(str::parse).eq([Ok(pid.as_raw())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_two_numbers_is_in_another_namespace() {
        let is_of = |status: &str| is_of(status, Pid::from_raw(7));
        assert!(is_of("Name:\tx\nPid:\t7\nPPid:\t1\nNSpid:\t7\n") && is_of("Name:\tx\nPid:\t7\n"));
        for other in
            ["", "Pid:\t8\n", "Pid:\t7\nNSpid:\t7\t7\n", "Pid:\t9\nNSpid:\t9\t7\n", "Pid:\t7\nNSpid:\t\n", "PPid:\t7\n"]
        {
            assert!(!is_of(other), "{other:?}");
        }
        #[cfg(target_os = "linux")]
        assert!(folder(getpid()).is_some_and(|folder| folder.join("comm").exists()));
    }
}
