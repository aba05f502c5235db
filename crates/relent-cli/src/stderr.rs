//! Standard error, for all that is said: who lets it fill up and does not read holds relent up for a second, and not again
//! before there is room.
//!
//! A stopped pager or a hung connection would else decide when a run ends: no `--timeout` and no signal counts in a write
//! that waits.

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::write,
};
use std::{
    fmt::Arguments,
    io::{self, StderrLock, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// What fits where there is room at all: a pipe that can be written to takes so much at once.
pub(crate) const PIECE: usize = 4096;

/// How long somebody who reads slowly is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// Standard error, to be written to. What there is no room for is not said.
pub(crate) fn open() -> Said {
    Said(io::stderr().lock())
}

pub(crate) struct Said(StderrLock<'static>);

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        static IS_DEAF: AtomicBool = AtomicBool::new(false);
        let patience = if IS_DEAF.load(Ordering::Relaxed) {
            PollTimeout::ZERO
        } else {
            PATIENCE.try_into().unwrap_or(PollTimeout::MAX)
        };
        // A signal ends the wait: there may be something else to do.
        let has_room = has_room(self.0.as_fd(), patience)
            .unwrap_or_else(|| has_room(self.0.as_fd(), PollTimeout::ZERO) == Some(true));
        IS_DEAF.store(!has_room, Ordering::Relaxed);
        if has_room { self.0.write(&bytes[..bytes.len().min(PIECE)]) } else { Ok(bytes.len()) }
    }

    /// All of it or nothing of it, but what is longer than fits.
    fn write_fmt(&mut self, text: Arguments<'_>) -> io::Result<()> {
        self.write_all(text.to_string().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes what it can; nothing, if a signal came first or there is no room.
pub(crate) fn write_some(out: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    match write(out, bytes) {
        Err(Errno::EINTR | Errno::EAGAIN) => Ok(0),
        written => Ok(written?),
    }
}

/// Whether something can be written without waiting, or fails at once; `None` if a signal came first.
pub(crate) fn has_room(out: BorrowedFd<'_>, patience: PollTimeout) -> Option<bool> {
    match poll(&mut [PollFd::new(out, PollFlags::POLLOUT)], patience) {
        Ok(ready) => Some(ready > 0),
        Err(Errno::EINTR) => None,
        Err(_) => Some(true),
    }
}
