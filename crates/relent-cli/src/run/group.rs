//! The process group of one attempt, and whatever else it left behind.
//!
//! Each attempt has a group of its own, so that all of it can be told to end at once. What leaves the group (`setsid`,
//! a daemon) is found too, on Linux: relent adopts the orphans of its command (`PR_SET_CHILD_SUBREAPER`).

use super::signals::Signals;
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use std::time::{Duration, Instant};

/// The processes of one attempt.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    /// Children that relent had before: those of a shell that became relent, or left by an attempt that succeeded.
    others: Vec<Pid>,
}

/// How often it is looked whether those that were told to end have ended.
const LOOK: Duration = Duration::from_millis(20);

impl Group {
    /// The group that a child leads, started when there were `others` already.
    pub(super) fn of(child: u32, others: Vec<Pid>) -> Group {
        Group { leader: Pid::from_raw(i32::try_from(child).expect("process ids are positive i32")), others }
    }

    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    /// Sends a signal to all of the group, and wakes what is stopped so that it can act on it.
    pub(super) fn signal(&self, signal: Signal) {
        // A group that is gone needs no signal.
        let _ = killpg(self.leader, signal);
        let _ = killpg(self.leader, Signal::SIGCONT);
    }

    /// Sends a signal to all of the group and to all orphans that have left it.
    pub(super) fn signal_rest(&self, signal: Signal) {
        self.signal(signal);
        for orphan in self.orphans() {
            let _ = kill(orphan, signal);
        }
    }

    /// Ends whatever is left of an attempt whose leader was waited for: TERM, and KILL after the grace. Returns the
    /// signal that came to relent meanwhile.
    pub(super) fn sweep(&self, grace: Duration, signals: &Signals) -> Option<Signal> {
        if !self.is_left() {
            return None;
        }
        self.signal_rest(Signal::SIGTERM);
        let caught = self.wait_until_gone(grace, signals);
        if self.is_left() {
            self.signal_rest(Signal::SIGKILL);
            return caught.or(self.wait_until_gone(Duration::from_secs(1), signals));
        }
        caught
    }

    fn wait_until_gone(&self, most: Duration, signals: &Signals) -> Option<Signal> {
        let started = Instant::now();
        let mut caught = None;
        while self.is_left() && started.elapsed() < most {
            caught = caught.or(signals.wait(LOOK));
        }
        caught
    }

    /// Whether any process of the attempt is left, after its leader was waited for.
    fn is_left(&self) -> bool {
        orphans::reap(None);
        !matches!(killpg(self.leader, None), Err(Errno::ESRCH)) || !self.orphans().is_empty()
    }

    fn orphans(&self) -> Vec<Pid> {
        let mut orphans = orphans::all();
        orphans.retain(|orphan| *orphan != self.leader && !self.others.contains(orphan));
        orphans
    }
}

/// Processes whose parent has died and that came to us.
#[cfg(target_os = "linux")]
pub(super) mod orphans {
    use nix::{
        errno::Errno,
        sys::{
            prctl::set_child_subreaper,
            wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid},
        },
        unistd::Pid,
    };
    use std::fs;

    /// From now on orphans come to us rather than to init.
    pub(in crate::run) fn adopt() {
        // Where it is not allowed, groups are all there is.
        let _ = set_child_subreaper(true);
    }

    /// Takes note of orphans that have ended, but not of `leader`, whose end somebody else waits for.
    pub(in crate::run) fn reap(leader: Option<Pid>) {
        let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        while let Ok(status) = waitid(Id::All, peek) {
            match status {
                WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) if Some(pid) != leader => {
                    let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
                }
                _ => return,
            }
        }
    }

    /// Our children, once the leader of an attempt was waited for.
    pub(in crate::run) fn all() -> Vec<Pid> {
        let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        if waitid(Id::All, peek) == Err(Errno::ECHILD) {
            return Vec::new();
        }
        let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        children.split_whitespace().filter_map(|pid| pid.parse().ok().map(Pid::from_raw)).collect()
    }
}

/// Elsewhere orphans go to init, and groups are all there is.
#[cfg(not(target_os = "linux"))]
pub(super) mod orphans {
    use nix::unistd::Pid;

    pub(in crate::run) fn adopt() {}

    pub(in crate::run) fn reap(_leader: Option<Pid>) {}

    pub(in crate::run) fn all() -> Vec<Pid> {
        Vec::new()
    }
}
