//! The signals that end a run, those that are only passed on, and the one that says a child has changed.
//!
//! Each wakes a poll through a socket. A signal that was ignored when relent started (`nohup`, a background job of a
//! plain shell) stays ignored.

use crate::ignored::{Ignored, outlive_limits_of_files};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{Signal, raise},
};
use signal_hook::{flag, low_level::pipe};
use std::{
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The signals that end a run.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// The signals that are the command's business.
const PASSED: [Signal; 6] =
    [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGALRM, Signal::SIGWINCH, Signal::SIGTSTP, Signal::SIGCONT];

/// What was caught and not yet taken.
pub(super) struct Signals {
    wake: UnixStream,
    waker: UnixStream,
    pending: Vec<(Signal, Arc<AtomicBool>)>,
    finishing: Arc<AtomicBool>,
}

impl Signals {
    /// Catches them from now on.
    pub(super) fn catch() -> io::Result<Signals> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        // A burst of signals must not block a handler.
        waker.set_nonblocking(true)?;
        let finishing = Arc::new(AtomicBool::new(false));
        let mut pending = Vec::with_capacity(ENDING.len() + PASSED.len());
        let ignored = Ignored::now();
        for signal in ENDING.into_iter().chain(PASSED).filter(|signal| !ignored.has(*signal)) {
            let (number, caught) = (signal as i32, Arc::new(AtomicBool::new(false)));
            if ENDING.contains(&signal) {
                flag::register_conditional_default(number, Arc::clone(&finishing))?;
            }
            flag::register(number, Arc::clone(&caught))?;
            pipe::register(number, waker.try_clone()?)?;
            pending.push((signal, caught));
        }
        if !ignored.has(Signal::SIGXFSZ) {
            outlive_limits_of_files();
        }
        pipe::register(Signal::SIGCHLD as i32, waker.try_clone()?)?;
        Ok(Signals { wake, waker, pending, finishing })
    }

    /// What ends a wait when it is written to.
    pub(super) fn waker(&self) -> io::Result<UnixStream> {
        self.waker.try_clone()
    }

    /// The signals that came since this was last asked.
    pub(super) fn take(&self) -> impl Iterator<Item = Signal> {
        let mut bytes = [0; 64];
        while matches!((&self.wake).read(&mut bytes), Ok(read) if read > 0) {}
        self.pending.iter().filter(|(_, caught)| caught.swap(false, Ordering::SeqCst)).map(|(signal, _)| *signal)
    }

    /// Waits for a signal that ends the run, at most this long. A child that changes ends the wait too.
    pub(super) fn wait(&self, most: Duration) -> Option<Signal> {
        let mut fds = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        // An interrupted wait has something to take.
        let _ = poll(&mut fds, poll_timeout(Some(most)));
        let mut ending = None;
        for signal in self.take() {
            if signal == Signal::SIGTSTP {
                // Nobody but us is there to be stopped.
                let _ = raise(Signal::SIGSTOP);
            } else if is_ending(signal) {
                ending = ending.or(Some(signal));
            }
        }
        ending
    }

    /// From now on a signal ends relent itself at once, as it would any program: nothing is left to clean up but the
    /// writing of what there is.
    pub(super) fn let_through(&self) {
        self.finishing.store(true, Ordering::SeqCst);
    }
}

/// Whether a signal ends a run.
pub(super) fn is_ending(signal: Signal) -> bool {
    ENDING.contains(&signal)
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
