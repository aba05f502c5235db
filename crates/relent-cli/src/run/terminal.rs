//! The terminal, lent to the command for as long as an attempt takes.
//!
//! An attempt is a process group of its own, and only one group may read from a terminal. So when standard input is
//! one, the command becomes its foreground group, as a shell would make it: Ctrl-C and Ctrl-Z reach it, prompts work.
//! Between attempts the terminal is ours.
//!
//! In a pipeline (`relent run -- make | less`) the terminal belongs to the other programs of the pipeline too, so there
//! it is lent only to a command that has asked for it and was stopped for that.
//!
//! Where our group is one of another namespace, it has no number here by which it could be given the terminal back. There the command
//! stays in our group, and what one has the other has, if what it leaves can be found without a group of its own.

use super::{group::Group, orphans, processes, signals::Signals, unstopped::Unstopped};
use nix::{
    sys::{
        signal::{Signal, kill, killpg},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::{Pid, getpgrp, getpid, getsid, tcgetpgrp, tcsetpgrp},
};
use std::{
    fs::{File, OpenOptions},
    io::{IsTerminal, stdin},
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    thread,
    time::Duration,
};

/// Within so long, a few times over, who was told to stop has done so.
const MOMENT: Duration = Duration::from_millis(20);

/// The terminal while it is lent.
#[derive(Debug)]
pub(super) struct Lent {
    ours: Pid,
    to: Pid,
    /// Those of our group whom somebody has stopped before it was lent first.
    stopped: Vec<Pid>,
    /// What relent says meanwhile it says from the background, which stops nobody.
    _quiet: Unstopped,
}

impl Lent {
    /// Lends it to a group, if it is ours to lend.
    pub(super) fn to(group: &Group) -> Option<Lent> {
        let members = processes::of_group(getpgrp()).unwrap_or_default();
        Lent::again(group, members.into_iter().filter(|pid| processes::is_stopped(*pid)).collect())
    }

    /// Lends it once more, after it was [given back](Lent::give_back).
    pub(super) fn again(group: &Group, stopped: Vec<Pid>) -> Option<Lent> {
        let lent = Lent::to_silent(group, stopped)?;
        // It may have asked for the terminal before it was given it, and been stopped for that.
        let _ = group.pass_on(Signal::SIGCONT);
        Some(lent)
    }

    /// Lends it, and leaves who is stopped as it is.
    fn to_silent(group: &Group, stopped: Vec<Pid>) -> Option<Lent> {
        let ours = getpgrp();
        // Who had it last, may be, is there no more.
        if is_of_others() || !is_ours() && foreground().is_none_or(processes::is_anybody_in) {
            return None;
        }
        let lent = Lent { ours, to: group.leader(), stopped, _quiet: Unstopped::now() };
        give(lent.to);
        Some(lent)
    }

    /// Takes it back for now.
    pub(super) fn give_back(self) -> Vec<Pid> {
        self.stopped.clone()
    }

    /// If the command was stopped (Ctrl-Z), stops relent with it, and goes on with it when it is told to: without the terminal, if
    /// that is somebody else's by then (`bg`).
    pub(super) fn follow_stop(self, group: &Group, signals: &Signals) -> Option<Lent> {
        let Some(signal) = stopped_by(group) else { return Some(self) };
        let before = self.give_back();
        // Without relent it would be of our group, which Ctrl-Z stops as a whole: a script around us, too. By whichever signal: relents
        // within, and other programs, answer Ctrl-Z by stopping themselves.
        let was_stopped = signals.stop_all();
        let lent = Lent::to_silent(group, before);
        // Where nobody looks after us, Ctrl-Z stops nobody; but what can be refused by nobody was meant by somebody.
        if was_stopped || signal != Signal::SIGSTOP {
            let _ = group.pass_on(Signal::SIGCONT);
        }
        if !was_stopped && signal != Signal::SIGSTOP {
            // Relents in the command's group stop themselves a moment later.
            for _ in 0..5 {
                thread::sleep(MOMENT);
                let _ = group.pass_on(Signal::SIGCONT);
            }
        }
        lent
    }
}

impl Drop for Lent {
    /// Takes it back, unless a shell has given it to others: who takes it from a shell ends that.
    fn drop(&mut self) {
        if foreground().is_none_or(|group| is_of_the_command(group, self.to)) {
            give(self.ours);
        }
        // Others of our group may have wanted it meanwhile, and been stopped for that.
        match processes::of_group(self.ours).filter(|_| !self.stopped.is_empty()) {
            None => drop(killpg(self.ours, Signal::SIGCONT)),
            Some(members) => members.iter().filter(|pid| !self.stopped.contains(pid)).for_each(|pid| {
                let _ = kill(*pid, Signal::SIGCONT);
            }),
        }
    }
}

/// Whether a group is the command's, or one that it has made, as shells do; or that of nobody. Where nothing is shown it is taken for
/// the command's.
fn is_of_the_command(group: Pid, leader: Pid) -> bool {
    group == leader
        || !processes::is_anybody_in(group)
        || processes::of_group(group)
            .is_none_or(|members| members.is_empty() || members.iter().any(|pid| processes::is_below(*pid, getpid())))
}

/// Whether a group is of a command of another relent of our group, as of a script that runs two at a time.
fn is_lent_beside_us(group: Pid) -> bool {
    let (theirs, ours) = (processes::of_group(group), processes::of_group(getpgrp()));
    let is_below_one = |pid: &Pid| ours.iter().flatten().any(|one| processes::is_below(*pid, *one));
    theirs.iter().flatten().any(is_below_one)
}

/// Nobody can give the command the terminal that it wants and is stopped for.
#[derive(Debug)]
pub(super) struct Unattainable;

/// Lends it to a group that was stopped because it wanted it. If it is not ours to lend, as in a background job, relent
/// stops too, so that the shell sees what it would see without relent, and both go on when the job is called.
pub(super) fn on_demand(group: &Group, signals: &Signals) -> Result<Option<Lent>, Unattainable> {
    let Some(signal @ (Signal::SIGTTIN | Signal::SIGTTOU)) = stopped_by(group) else { return Ok(None) };
    if is_of_others() {
        return Err(Unattainable);
    }
    if is_ours() {
        return Ok(Lent::to(group));
    }
    // Without a terminal it is a stop like any other. Who has lent it beside us tells us to go on, and we the command, when it is back.
    if terminal().is_none() || foreground().is_some_and(is_lent_beside_us) {
        return Ok(None);
    }
    // All of our group, as the system would do it without relent.
    let was_stopped = signals.is_stopped_by(|| killpg(getpgrp(), signal));
    if is_ours() {
        return Ok(Lent::to(group));
    }
    if !was_stopped {
        return Err(Unattainable);
    }
    let _ = group.pass_on(Signal::SIGCONT);
    Ok(None)
}

/// Whether there is a terminal, and our group is of another namespace of processes: all of those are the same here.
pub(super) fn is_of_others() -> bool {
    getpgrp().as_raw() == 0 && terminal().is_some()
}

/// Whether commands stay in our group, since they would not have the terminal in one of their own, and what they leave is found all the
/// same.
pub(super) fn is_by_our_group() -> bool {
    is_of_others() && orphans::are_listed()
}

/// Whether the terminal is our group's.
fn is_ours() -> bool {
    foreground() == Some(getpgrp())
}

/// Whether there is no terminal any more, where there was one: it was closed, or the connection that it came by.
pub(super) fn is_gone() -> bool {
    foreground().is_none()
}

/// Whether the first of our session has ended: the system has told those then that had the terminal, a moment before.
pub(super) fn is_session_over() -> bool {
    let Some(first) = getsid(None).ok().filter(|first| first.as_raw() > 0) else { return false };
    for _ in 0..5 {
        if processes::has_ended(first) {
            return true;
        }
        thread::sleep(MOMENT);
    }
    false
}

/// The group that has the terminal.
fn foreground() -> Option<Pid> {
    terminal().and_then(|terminal| tcgetpgrp(terminal).ok())
}

/// The terminal: standard input if it is one, else the one that the session has, which a command may open itself.
fn terminal() -> Option<File> {
    match stdin().is_terminal() {
        true => stdin().as_fd().try_clone_to_owned().ok().map(File::from),
        false => OpenOptions::new().read(true).write(true).custom_flags(nix::libc::O_NOCTTY).open("/dev/tty").ok(),
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
    let _unstopped = Unstopped::now();
    let _ = terminal().map(|terminal| tcsetpgrp(terminal, group));
}
