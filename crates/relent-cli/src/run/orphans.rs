//! Processes whose parent has died and that came to us.

pub(super) use here::{adopt, all, are_hidden, are_left, are_listed, reap};

#[cfg(target_os = "linux")]
mod here {
    use crate::{run::processes, system_text};
    use nix::{
        errno::Errno,
        sys::{
            prctl::{get_child_subreaper, set_child_subreaper},
            wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid},
        },
        unistd::Pid,
    };
    use std::{
        io,
        path::PathBuf,
        sync::{
            OnceLock,
            atomic::{AtomicBool, Ordering},
        },
    };

    /// From now on orphans come to us rather than to init.
    pub(in crate::run) fn adopt() {
        // Where it is not allowed, groups are all there is.
        let _ = set_child_subreaper(true);
    }

    /// Takes note of orphans that have ended, but not of those that somebody else waits for. Returns whose numbers are free.
    pub(in crate::run) fn reap(is_anothers: &dyn Fn(Pid) -> bool) -> Vec<Pid> {
        let mut reaped = Vec::new();
        let mut reap = |pid: Pid| {
            // A status that has no name is one, too.
            if !matches!(waitpid(pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive)) {
                reaped.push(pid);
            }
        };
        if are_listed() {
            if has_any_ended() {
                all().unwrap_or_default().into_iter().filter(|pid| !is_anothers(*pid)).for_each(reap);
            }
            return reaped;
        }
        while let Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) = waitid(Id::All, PEEK)
            && !is_anothers(pid)
        {
            reap(pid);
        }
        reaped
    }

    fn has_any_ended() -> bool {
        // Not by nix, to which an end by a signal for real time is an error.
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG)
            .is_ok_and(|status| status.is_some())
    }

    const PEEK: WaitPidFlag = WaitPidFlag::WEXITED.union(WaitPidFlag::WNOHANG).union(WaitPidFlag::WNOWAIT);

    /// Whether something lives on that has come since there were these children, as far as that is shown: else whether there is any.
    pub(in crate::run) fn are_left(before: &[Pid]) -> bool {
        let lives = |pid: &Pid| !before.contains(pid) && waitid(Id::Pid(*pid), PEEK) == Ok(WaitStatus::StillAlive);
        match are_listed() {
            true => all().map_or(true, |all| all.iter().any(lives)),
            false => waitid(Id::All, PEEK) != Err(Errno::ECHILD),
        }
    }

    /// Our children, where they are listed; the leader of an attempt is one until it was waited for.
    pub(in crate::run) fn all() -> io::Result<Vec<Pid>> {
        if waitid(Id::All, PEEK) == Err(Errno::ECHILD) || !are_listed() {
            return Ok(Vec::new());
        }
        let children = children().map_or(Ok(String::new()), system_text::read)?;
        Ok(children.split_whitespace().filter_map(|pid| pid.parse().ok().map(Pid::from_raw)).collect())
    }

    /// Where the system shows which those are.
    fn children() -> Option<PathBuf> {
        Some(processes::shown()?.join("thread-self/children"))
    }

    /// Whether all of them come to us and the system shows them.
    pub(in crate::run) fn are_listed() -> bool {
        static ARE_LISTED: OnceLock<bool> = OnceLock::new();
        let come_to_us = || get_child_subreaper() == Ok(true);
        *ARE_LISTED.get_or_init(|| come_to_us() && children().is_some_and(|path| path.exists()))
    }

    /// Whether we have children and the system does not show which, as without a `/proc` of ours. So once: it stays so.
    pub(in crate::run) fn are_hidden() -> bool {
        static IS_SAID: AtomicBool = AtomicBool::new(false);
        waitid(Id::All, PEEK) != Err(Errno::ECHILD) && !are_listed() && !IS_SAID.swap(true, Ordering::Relaxed)
    }
}

/// Elsewhere orphans go to init, and groups are all there is.
#[cfg(not(target_os = "linux"))]
mod here {
    use nix::unistd::Pid;
    use std::io;

    pub(in crate::run) fn adopt() {}

    pub(in crate::run) fn reap(_: &dyn Fn(Pid) -> bool) -> Vec<Pid> {
        Vec::new()
    }

    /// Where orphans go to init nobody knows.
    pub(in crate::run) fn are_left(_: &[Pid]) -> bool {
        false
    }

    pub(in crate::run) fn all() -> io::Result<Vec<Pid>> {
        Ok(Vec::new())
    }

    pub(in crate::run) fn are_listed() -> bool {
        false
    }

    pub(in crate::run) fn are_hidden() -> bool {
        false
    }
}
