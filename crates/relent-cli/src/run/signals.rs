//! The signals that end a run, those that are only passed on, and the one that says a child has changed.
//!
//! Each wakes a poll through a socket. A signal that was ignored when relent started (`nohup`, a background job of a
//! plain shell) stays ignored.

use crate::{
    ear::{ENDING, Ear, ends_once},
    ignored::{Ignored, outlive_limits_of_files},
};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{Signal, killpg, raise},
    unistd::{getpgid, getpgrp, getppid, getsid},
};
use signal_hook::{flag, low_level::pipe};
use std::{
    cell::{Cell, RefCell},
    env,
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// The signals that are the command's business.
const PASSED: [Signal; 6] =
    [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGALRM, Signal::SIGWINCH, Signal::SIGTSTP, Signal::SIGCONT];

/// The signals by which people, and programs for them, end others.
const FROM_PEOPLE: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGQUIT];

/// Those that come so soon after another are the same wish: who ends a run may signal its group, or all of its processes, besides.
const ECHO: Duration = Duration::from_millis(200);

/// What was caught and not yet taken.
pub(super) struct Signals {
    wake: UnixStream,
    waker: UnixStream,
    pending: Vec<(Signal, Arc<AtomicBool>)>,
    finishing: Arc<AtomicBool>,
    /// When one by which people end others was taken first.
    asked: Cell<Option<Instant>>,
    /// Which of those came at once after another, to be passed on as a part of the same wish.
    besides: RefCell<Vec<Signal>>,
    /// Which of those were told to the command, or by it, or are to be.
    heard: RefCell<Vec<Signal>>,
    /// For those who wait for a store.
    ear: Ear,
}

impl Signals {
    /// Catches them from now on.
    pub(super) fn catch() -> io::Result<Signals> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        // A burst of signals must not block a handler.
        waker.set_nonblocking(true)?;
        let (finishing, ear) = (Arc::new(AtomicBool::new(false)), Ear::default());
        let mut pending = Vec::with_capacity(ENDING.len() + PASSED.len());
        let ignored = Ignored::now();
        for signal in ENDING.iter().copied().chain(PASSED).filter(|signal| !ignored.has(*signal)) {
            let (number, caught) = (signal as i32, Arc::new(AtomicBool::new(false)));
            if ENDING.contains(&signal) {
                ends_once(signal, Arc::clone(&finishing))?;
            }
            flag::register(number, Arc::clone(&caught))?;
            if ENDING.contains(&signal) {
                // After the other, so that `goes_on` misses none.
                ear.listen(signal)?;
            }
            pipe::register(number, waker.try_clone()?)?;
            pending.push((signal, caught));
        }
        if !ignored.has(Signal::SIGXFSZ) {
            outlive_limits_of_files();
        }
        pipe::register(Signal::SIGCHLD as i32, waker.try_clone()?)?;
        let (asked, besides, heard) = (Cell::default(), RefCell::default(), RefCell::default());
        Ok(Signals { wake, waker, pending, finishing, asked, besides, heard, ear })
    }

    /// What ends a wait when it is written to.
    pub(super) fn waker(&self) -> io::Result<UnixStream> {
        self.waker.try_clone()
    }

    /// Whether one that ends a run is there and not taken yet, for who is on another thread.
    pub(super) fn asked_to_end(&self) -> impl Fn() -> bool + Send + 'static {
        let ending = self.pending.iter().filter(|(signal, _)| is_ending(*signal));
        let ending: Vec<_> = ending.map(|(_, caught)| Arc::clone(caught)).collect();
        move || ending.iter().any(|caught| caught.load(Ordering::SeqCst))
    }

    /// What hears those that end a run, whoever takes them.
    pub(super) fn ear(&self) -> Ear {
        self.ear.clone()
    }

    /// Those that were taken have not ended the run: the command that was told a SIGHUP has gone on.
    pub(super) fn goes_on(&self) {
        self.ear.forget();
        let waits = self.pending.iter().find(|(signal, caught)| is_ending(*signal) && caught.load(Ordering::SeqCst));
        if let Some((signal, _)) = waits {
            self.ear.hear(*signal);
        }
    }

    /// The signals that came since this was last asked, but for echoes of one that people sent.
    pub(super) fn take(&self) -> impl Iterator<Item = Signal> {
        let mut bytes = [0; 64];
        while matches!((&self.wake).read(&mut bytes), Ok(read) if read > 0) {}
        let taken = self.pending.iter().filter(|(_, caught)| caught.swap(false, Ordering::SeqCst));
        taken.map(|(signal, _)| *signal).filter(|signal| !self.is_echo(*signal))
    }

    fn is_echo(&self, signal: Signal) -> bool {
        if !is_from_people(signal) {
            return false;
        }
        let before = self.asked.get();
        let is_new = self.was_heard(signal);
        let is_echo = before.is_some_and(|at| at.elapsed() < ECHO);
        if is_echo && is_new {
            self.besides.borrow_mut().push(signal);
        }
        is_echo
    }

    /// One by which people end others has come, to us or to a command that had the terminal. Whether it is the first of its kind.
    pub(super) fn was_heard(&self, signal: Signal) -> bool {
        self.asked.set(self.asked.get().or_else(|| Some(Instant::now())));
        let mut heard = self.heard.borrow_mut();
        let is_new = !heard.contains(&signal);
        if is_new {
            heard.push(signal);
        }
        is_new
    }

    /// Those that came at once after another, each once: the command is told them, too, and they are no second wish.
    pub(super) fn besides(&self) -> Vec<Signal> {
        self.besides.take()
    }

    /// Waits for a signal that ends the run, at most this long. A child that changes ends the wait too.
    pub(super) fn wait(&self, most: Duration) -> Option<Signal> {
        self.wait_beside(Vec::new(), most)
    }

    /// The same, and until there is something of what is polled.
    pub(super) fn wait_beside<'a>(&'a self, mut fds: Vec<PollFd<'a>>, most: Duration) -> Option<Signal> {
        fds.push(PollFd::new(self.as_fd(), PollFlags::POLLIN));
        // An interrupted wait has something to take.
        let _ = poll(&mut fds, poll_timeout(Some(most)));
        let mut ending = None;
        for signal in self.take() {
            if signal == Signal::SIGTSTP {
                // Nobody but us is there to be stopped.
                self.stop();
            } else if is_ending(signal) {
                ending = ending.or(Some(signal));
            }
        }
        ending
    }

    /// Stops relent, as Ctrl-Z stops any program: not where nobody would call it back. Whether it was stopped, and has gone on.
    pub(super) fn stop(&self) -> bool {
        self.is_stopped_by(halt)
    }

    /// The same with all of our group. A shell that has seen the others stop may call all of them back before relent has stopped.
    pub(super) fn stop_all(&self) -> bool {
        self.is_stopped_by(|| {
            self.tell_the_others(Signal::SIGTSTP);
            let is_called_back = self.is_there(Signal::SIGCONT);
            if is_called_back { Ok(()) } else { halt() }
        })
    }

    /// Tells the others of our group what the terminal told the command, which had it in our place.
    pub(super) fn tell_the_others(&self, signal: Signal) {
        let _ = killpg(getpgrp(), signal);
        // Ours was meant for them.
        let _ = self.has(signal);
    }

    /// Whether a signal, sent to relent by this, has stopped it: who goes on after that is told to.
    pub(super) fn is_stopped_by(&self, send: impl FnOnce() -> nix::Result<()>) -> bool {
        let _ = self.has(Signal::SIGCONT);
        let is_sent = send().is_ok();
        is_sent && self.has(Signal::SIGCONT)
    }

    /// Whether one is caught, and not ignored.
    pub(super) fn heeds(&self, signal: Signal) -> bool {
        self.pending.iter().any(|(one, _)| *one == signal)
    }

    fn is_there(&self, signal: Signal) -> bool {
        self.pending.iter().any(|(one, caught)| *one == signal && caught.load(Ordering::SeqCst))
    }

    /// Takes one, if it is there.
    fn has(&self, signal: Signal) -> bool {
        self.pending.iter().any(|(one, caught)| *one == signal && caught.swap(false, Ordering::SeqCst))
    }

    /// The signal that ends the run, even if somebody took it and did nothing about it: nothing is started after one.
    pub(super) fn ending(&self) -> Option<Signal> {
        self.wait(Duration::ZERO).or_else(|| self.ear.heard())
    }

    /// From now on a signal ends relent itself at once, as it would any program: nothing is left to clean up but the
    /// writing of what there is.
    pub(super) fn let_through(&self) {
        self.finishing.store(true, Ordering::SeqCst);
    }
}

fn halt() -> nix::Result<()> {
    // The signal of Ctrl-Z itself is caught. This one is not, and the system stops nobody by it whom no shell looks after.
    raise(if is_looked_after() { Signal::SIGSTOP } else { Signal::SIGTTIN })
}

/// Whether our parent is a shell, or what is as one, that sees when we are stopped: of our session, and not of our group. There may be
/// one all the same where it is not. A relent above may have nobody itself.
fn is_looked_after() -> bool {
    if env::var_os("RELENT_ATTEMPT").is_some() {
        return false;
    }
    let parent = getppid();
    let is_of_the_session = || getsid(Some(parent)).is_ok_and(|session| Ok(session) == getsid(None));
    getpgid(Some(parent)).is_ok_and(|group| group != getpgrp()) && is_of_the_session()
}

/// Whether a signal ends a run.
pub(super) fn is_ending(signal: Signal) -> bool {
    ENDING.contains(&signal)
}

/// Whether it is one by which people end others. A second one of these kills.
pub(super) fn is_from_people(signal: Signal) -> bool {
    FROM_PEOPLE.contains(&signal)
}

/// Readable when something came.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// A wait in whole milliseconds, rounded up so that a poll does not end early and spin; longer ones than poll can have
/// end early, which every caller copes with.
pub(super) fn poll_timeout(most: Option<Duration>) -> PollTimeout {
    match most {
        None => PollTimeout::NONE,
        Some(most) => {
            let millis = most.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128);
            PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who signals a group, or from two sides, means one.
    #[test]
    fn what_comes_at_once_after_another_is_its_echo() {
        let signals = Signals::catch().unwrap();
        raise(Signal::SIGTERM).unwrap();
        raise(Signal::SIGINT).unwrap();
        assert_eq!(signals.take().collect::<Vec<_>>(), [Signal::SIGINT]);
        assert_eq!((signals.besides(), signals.besides()), (vec![Signal::SIGTERM], vec![]), "it is passed on");
        raise(Signal::SIGTERM).unwrap();
        raise(Signal::SIGHUP).unwrap();
        assert_eq!(signals.take().collect::<Vec<_>>(), [Signal::SIGHUP]);
        assert_eq!(signals.besides(), [], "once");
        signals.asked.set(Instant::now().checked_sub(ECHO));
        raise(Signal::SIGTERM).unwrap();
        assert_eq!(signals.take().collect::<Vec<_>>(), [Signal::SIGTERM]);
    }

    #[test]
    fn what_the_command_had_from_the_terminal_counts_as_the_first() {
        let signals = Signals::catch().unwrap();
        signals.was_heard(Signal::SIGINT);
        raise(Signal::SIGINT).unwrap();
        assert_eq!((signals.take().next(), signals.besides()), (None, vec![]));
        signals.asked.set(Instant::now().checked_sub(ECHO));
        raise(Signal::SIGINT).unwrap();
        assert_eq!(signals.take().collect::<Vec<_>>(), [Signal::SIGINT]);
    }

    /// What a run went on after is no reason to leave a store that is slow; what came since is.
    #[test]
    fn the_ear_forgets_what_was_passed_on_alone() {
        let signals = Signals::catch().unwrap();
        let ear = signals.ear();
        assert_eq!(ear.heard(), None);
        raise(Signal::SIGHUP).unwrap();
        assert_eq!(signals.take().collect::<Vec<_>>(), [Signal::SIGHUP]);
        assert_eq!(ear.heard(), Some(Signal::SIGHUP));
        signals.goes_on();
        assert_eq!(ear.heard(), None);
        raise(Signal::SIGTERM).unwrap();
        signals.goes_on();
        assert_eq!(ear.heard(), Some(Signal::SIGTERM));
        raise(Signal::SIGUSR1).unwrap();
        assert_eq!(signals.wait(Duration::ZERO), Some(Signal::SIGTERM));
        assert_eq!((signals.wait(Duration::ZERO), signals.ending()), (None, Some(Signal::SIGTERM)));
        signals.goes_on();
        assert_eq!(signals.ending(), None);
    }
}
