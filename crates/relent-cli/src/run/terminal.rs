//! The terminal, lent to the command for as long as an attempt takes.
//!
//! An attempt is a process group of its own, and only one group may read from a terminal. So when standard input is
//! one, the command becomes its foreground group, as a shell would make it: Ctrl-C and Ctrl-Z reach it, prompts work.
//! Between attempts the terminal is ours.
//!
//! In a pipeline (`relent run -- make | less`) the terminal belongs to the other programs of the pipeline too, so there
//! it is lent only to a command that has asked for it and was stopped for that.

use super::group::Group;
use nix::{
    sys::{
        signal::{SigSet, Signal, killpg, raise},
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

    /// Lends it to a group that was stopped because it wanted it.
    pub(super) fn on_demand(group: &Group) -> Option<Lent> {
        match stopped_by(group) {
            Some(Signal::SIGTTIN | Signal::SIGTTOU) => Lent::to(group),
            _ => None,
        }
    }

    /// If the command was stopped (Ctrl-Z), stops relent with it, and goes on with it when it is told to.
    pub(super) fn follow_stop(&self, group: &Group) {
        if stopped_by(group).is_some() {
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
        // Others of our group may have wanted it meanwhile, and been stopped for that.
        let _ = killpg(self.ours, Signal::SIGCONT);
    }
}

/// The signal that has stopped the leader of a group since this was last asked.
fn stopped_by(group: &Group) -> Option<Signal> {
    match waitid(Id::Pid(group.leader()), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG) {
        Ok(WaitStatus::Stopped(_, signal)) => Some(signal),
        _ => None,
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
