//! The process group of one attempt, and whatever else it left behind.
//!
//! Each attempt has a group of its own, so that all of it can be told to end at once. What leaves the group (`setsid`,
//! a daemon) is found too, on Linux, once its parent has died: relent adopts the orphans of its command
//! (`PR_SET_CHILD_SUBREAPER`). They come one by one, so they are looked for until none is left.

use super::{
    before::Before,
    kin::Kin,
    leader,
    mark::Mark,
    orphans, processes,
    signals::{Signals, is_from_people},
    ways::{LOOK, SAY_AFTER, Ways},
};
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill, killpg},
    unistd::{Pid, getpgid},
};
use std::{
    collections::HashSet,
    io,
    process::Child,
    thread,
    time::{Duration, Instant},
};

/// The processes of one attempt.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    state: State,
    /// Whether nobody is given any time more.
    is_hurried: bool,
    before: Before,
    /// Who watches over the lease, and is waited for by whoever started it.
    watchman: Option<Pid>,
    /// What tells its orphans from those of others, where there may be such.
    kin: Kin,
    /// Those that were told to end, and by what, so that each is told once: who ignores one signal may heed another.
    told: HashSet<(Pid, Signal)>,
    /// Those that are somebody else's: they changed their user, and cannot be told anything. The group itself is one where none of it is
    /// shown.
    denied: HashSet<Pid>,
    /// Those that one of these has started, or one that does not die, and that have not come to us.
    below: HashSet<Pid>,
    /// Those that were killed again and again, and were there yet.
    undying: Vec<Pid>,
    /// When the first was told, and killed.
    since: Option<Instant>,
    killed: Option<Instant>,
}

/// Whose the number of the leader is, and of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The leader's, which runs.
    Runs,
    /// The leader's, which has ended and is waited for once nothing is signalled any more.
    Kept,
    /// The group's, as long as there is any of it, or else anybody's. Who is left of it is no child of ours that is listed.
    Free,
    /// Anybody's.
    Gone,
}

/// How long processes are killed, one by one as they appear, before it is said that this does not end.
const KILL_FOR: Duration = Duration::from_secs(5);

/// How long who is killed may take to die, before what it has started is killed, too.
const DIES_AFTER: Duration = Duration::from_secs(1);

impl Group {
    /// The group that a child leads.
    pub(super) fn of(child: u32, before: Before, mark: Option<Mark>, watchman: Option<Pid>) -> Group {
        let leader = Pid::from_raw(i32::try_from(child).expect("process ids are positive i32"));
        Group {
            leader,
            state: State::Runs,
            is_hurried: false,
            before,
            watchman,
            kin: Kin::of(mark),
            told: HashSet::new(),
            denied: HashSet::new(),
            below: HashSet::new(),
            undying: Vec::new(),
            since: None,
            killed: None,
        }
    }

    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    /// Sends a signal to all of the group, and wakes what is stopped so that it can act on it.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let sent = self.pass_on(signal);
        // Who is gone needs no signal.
        let _ = self.pass_on(Signal::SIGCONT);
        sent
    }

    /// Sends a signal to all of the group, and changes nothing else.
    pub(super) fn pass_on(&self, signal: Signal) -> Result<(), Errno> {
        if self.is_gone() {
            return Ok(());
        }
        // A group with one of ours takes a signal that the leader is not sent: it may be somebody else's by now.
        let leader = if self.state == State::Runs { kill(self.leader, None) } else { Ok(()) };
        let sent = [killpg(self.leader, signal), self.leader_apart(signal), leader];
        if sent.contains(&Err(Errno::EPERM)) { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Whether its number is no longer its own: they were looked for in vain, or where the leader's was let go there is a process again
    /// that has it. No group has its number as long as one of it is there.
    fn is_gone(&self) -> bool {
        match self.state {
            State::Runs | State::Kept => false,
            State::Free => getpgid(Some(self.leader)) != Err(Errno::ESRCH),
            State::Gone => true,
        }
    }

    /// Its leader has ended, and keeps its number for as long as orphans are left to be told, where those are listed.
    pub(super) fn leader_has_ended(&mut self) {
        self.state = State::Kept;
        if !orphans::are_listed() {
            self.let_go();
        }
    }

    /// Waits for the leader. Who is left of its group then, if any, has its number.
    fn let_go(&mut self) {
        leader::let_go(self.leader);
        self.state = State::Free;
    }

    /// Whether it was killed again and again for so long that there is nothing more to be done.
    pub(super) fn does_not_die(&self) -> bool {
        self.killed.is_some_and(|at| at.elapsed() > KILL_FOR)
    }

    /// Ends the leader with the group and all orphans: it is told, if it was not yet, and from then on killed, though not without end:
    /// somebody may trace it. It is waited for a moment at a time, until a signal ends that. Whether they are ours to end.
    pub(super) fn end_leader(
        &mut self,
        child: &mut Child,
        kill_at: Option<Instant>,
        ways: Ways<'_>,
        wait: &mut dyn FnMut() -> Option<Signal>,
    ) -> bool {
        let mut say_at = Some(Instant::now() + SAY_AFTER);
        if self.since.is_none() && self.tell(ways.first).is_err() {
            return false;
        }
        loop {
            let now = Instant::now();
            let kill_at = (ways.latest)().into_iter().chain(kill_at).min();
            let is_time = kill_at.is_some_and(|at| at <= now);
            if say_at.take_if(|at| *at <= now).is_some() {
                ways.say_waiting(kill_at);
            }
            if (self.is_hurried || is_time) && self.kill().is_err() || self.is_anothers() {
                return false;
            }
            self.reap();
            if !matches!(leader::ended(child), Ok(None)) {
                self.leader_has_ended();
                return true;
            }
            if self.is_hurried || self.does_not_die() {
                return true;
            }
            self.is_hurried = wait().is_some();
            self.tell_orphans(ways.first);
        }
    }

    /// Whether the leader is another user's, and cannot be ended by us.
    fn is_anothers(&self) -> bool {
        self.state == State::Runs && kill(self.leader, None) == Err(Errno::EPERM)
    }

    /// Sends it to a leader that has left its group for another: it is still our child.
    fn leader_apart(&self, signal: Signal) -> Result<(), Errno> {
        let has_left = self.state == State::Runs && getpgid(Some(self.leader)).is_ok_and(|group| group != self.leader);
        if has_left { kill(self.leader, signal) } else { Ok(()) }
    }

    /// Tells the group and the orphans to end. Orphans that appear later are told by [`tell_orphans`](Group::tell_orphans).
    pub(super) fn tell(&mut self, signal: Signal) -> Result<(), Errno> {
        self.since.get_or_insert_with(Instant::now);
        // Who is told by the group is not told once more as an orphan; who cannot be is found out there.
        let can_be_told = |pid: &Pid| kill(*pid, None) != Err(Errno::EPERM);
        let group = self.in_the_group().unwrap_or_default();
        self.told.extend(group.iter().filter(|pid| can_be_told(pid)).map(|pid| (*pid, signal)));
        let told = self.signal(signal);
        self.tell_orphans(signal);
        told
    }

    /// Tells those orphans to end that were not told so yet.
    pub(super) fn tell_orphans(&mut self, signal: Signal) {
        for orphan in self.orphans().unwrap_or_default() {
            if self.told.insert((orphan, signal)) {
                self.send_to_orphan(orphan, signal);
            }
        }
    }

    /// Tells those to end that were not told so yet, whether they are of the group or have left it.
    fn tell_the_rest(&mut self, signal: Signal) {
        let Some(group) = self.in_the_group() else {
            // Nobody knows who of it was told.
            let _ = self.tell(signal);
            return;
        };
        let leader = self.leader;
        let send = |pid, signal| processes::send_if(pid, signal, || getpgid(Some(pid)) == Ok(leader));
        for pid in group {
            if self.told.insert((pid, signal)) {
                self.send(pid, signal, send);
            }
        }
        self.tell_orphans(signal);
    }

    /// Those of the group that have not ended, where they are shown.
    fn in_the_group(&self) -> Option<Vec<Pid>> {
        if self.is_gone() { Some(Vec::new()) } else { processes::of_group(self.leader) }
    }

    /// Kills what is there now, and whatever comes later: whoever ends the run was asked twice.
    pub(super) fn hurry(&mut self) -> Result<(), Errno> {
        self.is_hurried = true;
        self.kill()
    }

    /// Kills all of the group and all orphans that have left it, as far as they are there now: nobody of a command that goes on, since it
    /// is another user's.
    pub(super) fn kill(&mut self) -> Result<(), Errno> {
        if self.is_anothers() {
            return Err(Errno::EPERM);
        }
        self.killed.get_or_insert_with(Instant::now);
        let killed = self.pass_on(Signal::SIGKILL);
        for orphan in self.orphans().unwrap_or_default() {
            self.send_to_orphan(orphan, Signal::SIGKILL);
        }
        killed
    }

    /// One that has come to us keeps its number until we wait for it.
    fn send_to_orphan(&mut self, orphan: Pid, signal: Signal) {
        let send = if self.below.contains(&orphan) { processes::send_below } else { kill };
        self.send(orphan, signal, send);
    }

    fn send(&mut self, pid: Pid, signal: Signal, send: impl Fn(Pid, Signal) -> Result<(), Errno>) {
        match send(pid, signal) {
            Err(Errno::EPERM) => {
                self.denied.insert(pid);
                self.told.remove(&(pid, signal));
            }
            _ => {
                let _ = send(pid, Signal::SIGCONT);
            }
        }
    }

    /// Ends whatever is left of an attempt whose leader has ended: it is told, and killed after the grace, when it has to be gone, or when
    /// a second signal comes. `caught` is the one that came before. Returns the one that came to relent meanwhile.
    pub(super) fn sweep(&mut self, caught: Option<Signal>, ways: Ways<'_>, signals: &Signals) -> Option<Signal> {
        if orphans::are_hidden() {
            (ways.say)("what has left the command's group cannot be seen here (/proc), and stays if there is any");
        }
        let was_told = self.since.is_some();
        let began = *self.since.get_or_insert_with(Instant::now);
        // Before anybody is asked for: who has ended hears nothing, and who is shown to nobody does.
        match was_told {
            true => self.tell_the_rest(ways.first),
            false => drop(self.tell(ways.first)),
        }
        let caught = self.wait_until_gone(began, caught, ways, signals);
        self.kill_all(ways.say);
        if !self.denied.is_empty() {
            let who = processes::names(&self.denied.iter().copied().collect::<Vec<_>>());
            (ways.say)(&format!("left running, since it belongs to another user and cannot be ended: {who}"));
        }
        caught
    }

    fn wait_until_gone(
        &mut self,
        began: Instant,
        before: Option<Signal>,
        ways: Ways<'_>,
        signals: &Signals,
    ) -> Option<Signal> {
        let (mut caught, mut is_said) = (None, false);
        let time_left = || {
            let grace = ways.grace.saturating_sub(began.elapsed());
            (ways.latest)().map_or(grace, |latest| grace.min(latest.saturating_duration_since(Instant::now())))
        };
        while !self.is_hurried && !time_left().is_zero() {
            let left = self.left();
            if left.is_empty() {
                break;
            }
            if !is_said && began.elapsed() >= SAY_AFTER {
                let time = relent::duration::Human(time_left());
                let who = processes::names(&left);
                (ways.say)(&format!("waiting for what the attempt left running: {who}; killed in {time:.0} at most"));
                is_said = true;
            }
            if let Some(signal) = signals.wait(LOOK) {
                let is_second = caught.or(before).is_some_and(is_from_people) && is_from_people(signal);
                caught = caught.filter(|caught| is_from_people(*caught)).or(Some(signal));
                if is_second {
                    break;
                }
            }
            for signal in signals.besides() {
                self.tell_the_rest(signal);
            }
            self.tell_orphans(ways.first);
        }
        caught
    }

    /// Kills, round after round without a pause: a tree that forks and leaves its session as it goes is caught by being
    /// looked for more often than it forks.
    fn kill_all(&mut self, say: &dyn Fn(&str)) {
        let began = Instant::now();
        let mut rounds = 0_u32;
        loop {
            let left = self.left();
            if left.is_empty() {
                return;
            }
            if began.elapsed() > KILL_FOR {
                say(&format!("still running, though it was killed again and again: {}", processes::names(&left)));
                self.undying = left;
                return;
            }
            // Who cannot be killed is told of at the end.
            let _ = self.kill();
            rounds += 1;
            match rounds {
                0..=1000 => thread::yield_now(),
                _ => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Those of a command that failed, or was given up, that are known to go on.
    pub(super) fn who_goes_on(&self) -> Vec<Pid> {
        let leader = (self.state == State::Runs).then_some(&self.leader);
        leader.into_iter().chain(&self.denied).chain(&self.undying).copied().collect()
    }

    /// Takes note of those that have ended and whose parent has, too. Who gets the number of one is another.
    pub(super) fn reap(&mut self) {
        for free in orphans::reap(&|pid| pid == self.leader || Some(pid) == self.watchman) {
            self.told.retain(|(pid, _)| *pid != free);
            self.denied.remove(&free);
        }
    }

    /// Those of the attempt that can be ended and have not, after its leader has ended. Those that cannot are taken note of.
    pub(super) fn left(&mut self) -> Vec<Pid> {
        self.reap();
        if self.is_gone() {
            self.state = State::Gone;
        }
        let orphans = self.orphans().map(|mut orphans| {
            let unknown: Vec<Pid> = self.kin.unknown().filter(|pid| !orphans.contains(pid)).collect();
            orphans.extend(unknown);
            orphans
        });
        // Who is left of the group and is no orphan, as where its parent is another user's, or it is in another namespace.
        if self.state == State::Kept && orphans.as_ref().is_ok_and(Vec::is_empty) {
            self.let_go();
        }
        // Those that were somebody else's and have ended are none of our business any more, and those that are not any more are.
        self.denied.retain(|pid| !processes::has_ended(*pid) && kill(*pid, None) == Err(Errno::EPERM));
        let mut left = match orphans {
            Ok(orphans) => orphans,
            // Who cannot be looked for may be there.
            Err(_) if self.state == State::Kept => vec![self.leader],
            Err(_) => Vec::new(),
        };
        if self.state == State::Free {
            let group = self.left_of_the_group();
            left.extend(group.into_iter().filter(|pid| !left.contains(pid)).collect::<Vec<_>>());
        }
        left
    }

    /// Those of the group, whose leader was waited for, that can be ended and have not.
    fn left_of_the_group(&mut self) -> Vec<Pid> {
        let Some(mut left) = processes::of_group(self.leader) else {
            // Where nobody of it is shown the group alone can be asked, by its own number. Who of it has ended answers, too.
            return match killpg(self.leader, None) {
                Ok(()) => vec![self.leader],
                Err(Errno::EPERM) => {
                    self.denied.insert(self.leader);
                    Vec::new()
                }
                Err(_) => {
                    self.state = State::Gone;
                    Vec::new()
                }
            };
        };
        if left.is_empty() {
            self.state = State::Gone;
        }
        left.retain(|pid| match kill(*pid, None) {
            Err(Errno::EPERM) => {
                self.denied.insert(*pid);
                false
            }
            may => may.is_ok(),
        });
        left
    }

    /// Those orphans that are known to be the attempt's.
    fn orphans(&mut self) -> io::Result<Vec<Pid>> {
        let mut orphans = orphans::all()?;
        let is_known = |pid: &Pid| {
            *pid == self.leader || Some(*pid) == self.watchman || self.before.has(*pid) || self.denied.contains(pid)
        };
        orphans.retain(|orphan| !is_known(orphan));
        // Who cannot be ended keeps what it has started from coming to us.
        let mut stay: Vec<Pid> = self.denied.iter().copied().collect();
        if self.killed.is_some_and(|at| at.elapsed() > DIES_AFTER) {
            let leader = (self.state == State::Runs).then_some(self.leader);
            let is_told = |pid: &Pid| self.told.iter().any(|(told, _)| told == pid);
            stay.extend(leader.into_iter().chain(orphans.iter().copied().filter(is_told)));
        }
        let below = processes::below(stay).into_iter().filter(|pid| !is_known(pid) && !orphans.contains(pid));
        self.below = below.collect();
        orphans.extend(&self.below);
        let group = self.leader;
        let is_gone = self.is_gone();
        let all = if self.kin.is_all() { Vec::new() } else { orphans.clone() };
        let mut ours = self.kin.among(orphans, |pid| !is_gone && getpgid(Some(pid)) == Ok(group));
        // What is left alone, as its environment was cleared, may have started what is not.
        let mut others = processes::below(all.into_iter().filter(|pid| !ours.contains(pid)));
        others.retain(|pid| !is_known(pid) && !ours.contains(pid));
        let marked = self.kin.marked(others);
        self.below.extend(&marked);
        ours.extend(marked);
        Ok(ours)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.state == State::Kept {
            leader::let_go(self.leader);
        }
    }
}
