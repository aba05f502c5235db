//! What root gives away by opening a file.
//!
//! As root SQLite gives what has the name of a log, of its index or of a journal to whoever the file belongs to, and to the file's group, also
//! what was there before (`robustFchown` in its `os_unix.c`). Who may write to the folder can have given that name to what root has there for
//! itself. So SQLite opens them without the right to give anything away, and what it has made is given by [`parts`](super::parts).

#[cfg(target_os = "linux")]
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Does something by which nothing is given away by this thread.
pub(super) fn kept<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_os = "linux")]
    let _back = Back::keeping();
    work()
}

/// What the thread gets back.
#[cfg(target_os = "linux")]
struct Back(CapabilitySets);

#[cfg(target_os = "linux")]
impl Back {
    /// `None`: it may give nothing away, or SQLite does not.
    fn keeping() -> Option<Back> {
        let before = capabilities(None).ok().filter(|_| rustix::process::geteuid().is_root())?;
        let mut without = before;
        without.effective.remove(CapabilitySet::CHOWN);
        (without.effective != before.effective).then_some(())?;
        set_capabilities(None, without).ok()?;
        Some(Back(before))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Back {
    fn drop(&mut self) {
        let _ = set_capabilities(None, self.0);
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::chown, panic::catch_unwind};

    #[test]
    fn nothing_is_given_away_meanwhile_and_everything_may_be_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let give = || chown(&file, None, Some(12_345)).is_ok();
        if !give() {
            eprintln!("SKIPPED nothing_is_given_away_meanwhile_and_everything_may_be_afterwards: it takes root");
            return;
        }
        assert!(!kept(|| chown(&file, None, Some(54_321)).is_ok()));
        let within = || {
            kept(|| {});
            chown(&file, None, Some(54_321)).is_ok()
        };
        assert!(!kept(within), "to the end");
        assert!(give());
        assert!(catch_unwind(|| kept(|| panic!("on purpose"))).is_err() && give());
    }
}
