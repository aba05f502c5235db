//! The signals that end a run, and the one that says a child has changed.
//!
//! Each wakes a poll through a socket. A signal that was ignored when relent started (`nohup`, a background job of a
//! plain shell) stays ignored.

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::Signal,
};
use signal_hook::{flag, low_level::pipe};
use std::{
    fs::File,
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The signals that end a run.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// What was caught and not yet taken.
pub(super) struct Signals {
    wake: UnixStream,
    pending: Arc<AtomicUsize>,
    finishing: Arc<AtomicBool>,
}

impl Signals {
    /// Catches them from now on.
    pub(super) fn catch() -> io::Result<Signals> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let signals = Signals { wake, pending: Arc::default(), finishing: Arc::default() };
        let ignored = ignored_at_start();
        for signal in ENDING.into_iter().filter(|signal| ignored & bit(*signal) == 0) {
            let number = signal as i32;
            flag::register_conditional_default(number, Arc::clone(&signals.finishing))?;
            flag::register_usize(number, Arc::clone(&signals.pending), number as usize)?;
            pipe::register(number, waker.try_clone()?)?;
        }
        pipe::register(Signal::SIGCHLD as i32, waker)?;
        Ok(signals)
    }

    /// The signal that came since this was last asked, if one did.
    pub(super) fn take(&self) -> Option<Signal> {
        let mut bytes = [0; 64];
        while matches!((&self.wake).read(&mut bytes), Ok(read) if read > 0) {}
        match self.pending.swap(0, Ordering::SeqCst) {
            0 => None,
            number => Signal::try_from(number as i32).ok(),
        }
    }

    /// Waits for a signal at most this long. A child that changes ends the wait too.
    pub(super) fn wait(&self, most: Duration) -> Option<Signal> {
        let mut fds = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        // An interrupted wait has something to take.
        let _ = poll(&mut fds, poll_timeout(Some(most)));
        self.take()
    }

    /// From now on a signal ends relent itself at once, as it would any program: nothing is left to clean up but the
    /// writing of what there is.
    pub(super) fn let_through(&self) {
        self.finishing.store(true, Ordering::SeqCst);
    }
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

fn bit(signal: Signal) -> u64 {
    1 << (signal as i32 - 1)
}

/// The mask of ignored signals, where the system tells it (Linux).
fn ignored_at_start() -> u64 {
    // In one read: the file is made anew for each.
    let mut status = [0; 4096];
    let length = File::open("/proc/self/status").and_then(|mut file| file.read(&mut status)).unwrap_or(0);
    let status = String::from_utf8_lossy(&status[..length]);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
