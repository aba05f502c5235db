//! The terminal, lent to the command for as long as an attempt takes.
//!
//! An attempt is a process group of its own, and only one group may read from a terminal. So when standard input is
//! one, the command becomes its foreground group, as a shell would make it: Ctrl-C and Ctrl-Z reach it, prompts work.
//! Between attempts the terminal is ours.

use super::group::Group;
use nix::{
    sys::{
        signal::{SigSet, Signal, raise},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp},
};
use std::io::stdin;

/// The terminal while it is lent.
#[derive(Debug)]
pub(super) struct Lent {
    ours: Pid,
}

impl Lent {
    /// Lends it to a group, if it is ours to lend.
    pub(super) fn to(group: &Group) -> Option<Lent> {
        let ours = getpgrp();
        if tcgetpgrp(stdin()) != Ok(ours) {
            return None;
        }
        give(group.leader());
        // It may have asked for the terminal before it was given it, and been stopped for that.
        group.signal(Signal::SIGCONT);
        Some(Lent { ours })
    }

    /// If the command was stopped (Ctrl-Z), stops relent with it, and goes on with it when it is told to.
    pub(super) fn follow_stop(&self, group: &Group) {
        let peek = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
        if let Ok(WaitStatus::Stopped(..)) = waitid(Id::Pid(group.leader()), peek) {
            give(self.ours);
            let _ = raise(Signal::SIGSTOP);
            if tcgetpgrp(stdin()) == Ok(self.ours) {
                give(group.leader());
            }
            group.signal(Signal::SIGCONT);
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        give(self.ours);
    }
}

/// Makes a group the terminal's foreground group. Doing so from the background would stop us, so that signal is held
/// back meanwhile.
fn give(group: Pid) {
    let mut held = SigSet::empty();
    held.add(Signal::SIGTTOU);
    let _ = held.thread_block();
    let _ = tcsetpgrp(stdin(), group);
    let _ = held.thread_unblock();
}
