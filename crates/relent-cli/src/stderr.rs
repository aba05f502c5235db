//! Standard error, for all that is said: who lets it fill up and does not read holds relent up for a second, and not again
//! before there is room; who reads slowly for as long as there is time, and a second beyond.
//!
//! A stopped pager or a hung connection would else decide when a run ends: no `--timeout` and no signal counts in a write
//! that waits.

use crate::{breaks, inherited, screen};
use nix::{
    errno::Errno,
    fcntl::OFlag,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::write,
};
use rustix::{
    fs::{self, OFlags},
    net::{SendFlags, send},
};
use std::{
    fmt::Arguments,
    fs::{File, OpenOptions},
    io::{self, IsTerminal, StderrLock, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    },
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How much is written at once: what a pipe takes that can be written to.
pub(crate) const PIECE: usize = 4096;

/// How long somebody who reads slowly is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// When the command's time is over, if it has a limit.
static TIMES_OUT: OnceLock<Instant> = OnceLock::new();

/// Nobody who reads slowly is waited for much longer than until then, however much there is to say.
pub(crate) fn is_limited(until: Option<Instant>) {
    if let Some(until) = until {
        let _ = TIMES_OUT.set(until);
    }
}

/// How long a reader is waited for now.
fn patience() -> Duration {
    let latest = TIMES_OUT.get().and_then(|at| at.checked_add(PATIENCE));
    latest.map_or(PATIENCE, |at| at.saturating_duration_since(Instant::now()).min(PATIENCE))
}

/// Standard error, to be written to. What there is no room for is not said.
pub(crate) fn open() -> Said {
    Said(io::stderr().lock())
}

pub(crate) struct Said(StderrLock<'static>);

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !can_be_written_to(self.0.as_fd()) {
            return Ok(bytes.len());
        }
        static IS_DEAF: AtomicBool = AtomicBool::new(false);
        let patience = if IS_DEAF.load(Ordering::Relaxed) { Duration::ZERO } else { patience() };
        let began = Instant::now();
        loop {
            let left = patience.saturating_sub(began.elapsed());
            // A signal ends the wait: there may be something else to do.
            let has_room = has_room(self.0.as_fd(), left.try_into().unwrap_or(PollTimeout::MAX))
                .unwrap_or_else(|| has_room(self.0.as_fd(), PollTimeout::ZERO) == Some(true));
            let written = if has_room { write_some(self.0.as_fd(), &bytes[..bytes.len().min(PIECE)])? } else { 0 };
            let is_over = written > 0 || !has_room || left.is_zero();
            if is_over {
                let is_deaf = written == 0 && !bytes.is_empty();
                IS_DEAF.store(is_deaf, Ordering::Relaxed);
                return Ok(if is_deaf { bytes.len() } else { written });
            }
        }
    }

    /// All of it or nothing of it, but what is longer than fits. Nothing of a line begins one of the terminal's own as messages do.
    fn write_fmt(&mut self, text: Arguments<'_>) -> io::Result<()> {
        let text = text.to_string();
        match screen::columns_of(&self.0) {
            Some(columns) => self.write_all(breaks::said(&text, columns).as_bytes()),
            None => self.write_all(text.as_bytes()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes to standard output or standard error what there is room for at once; nothing, if a signal came first or there is no room.
///
/// That something can be written does not say how much, nor that nobody else comes first. So what may wait is written to by a
/// descriptor that does not: the one that is given may be shared with others, whom that would be news to.
pub(crate) fn write_some(out: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    way(out).write_some(out, bytes)
}

impl Way {
    /// The same, by this way to it.
    pub(crate) fn write_some(&self, out: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        let written = match self {
            Way::Own(own) => write(own, bytes),
            Way::Socket => send(out, bytes, SendFlags::DONTWAIT).map_err(|error| Errno::from_raw(error.raw_os_error())),
            Way::Plain => write(out, bytes),
            // Another user's terminal: whoever has room for anything has it for one byte.
            Way::Foreign => write(out, &bytes[..bytes.len().min(1)]),
        };
        match written {
            Err(Errno::EINTR) => Ok(0),
            Err(Errno::EAGAIN) => {
                // There was room, but not for as little as this: nobody is asked for it without a pause.
                thread::sleep(Duration::from_millis(1));
                Ok(0)
            }
            written => Ok(written?),
        }
    }
}

/// How something is written to without waiting.
pub(crate) enum Way {
    /// By a descriptor of our own.
    Own(File),
    Socket,
    /// It waits for nobody.
    Plain,
    /// It may wait, and cannot be opened.
    Foreign,
}

/// How it is done for standard output and standard error, which stay what they are.
fn way(out: BorrowedFd<'_>) -> &'static Way {
    static WAYS: [OnceLock<Way>; 2] = [const { OnceLock::new() }; 2];
    let kept = if out.as_raw_fd() == 1 { &WAYS[0] } else { &WAYS[1] };
    kept.get_or_init(|| Way::to(out))
}

impl Way {
    pub(crate) fn to(out: BorrowedFd<'_>) -> Way {
        let Ok(data) = out.try_clone_to_owned().map(File::from).and_then(|file| file.metadata()) else {
            return Way::Plain;
        };
        let (kind, is_terminal) = (data.file_type(), out.is_terminal());
        if kind.is_socket() {
            return Way::Socket;
        }
        if !kind.is_fifo() && !is_terminal {
            return Way::Plain;
        }
        if inherited::is_of_each_opening(&data) {
            return Way::Foreign;
        }
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let path = format!("/proc/self/fd/{}", out.as_raw_fd());
        let opened = OpenOptions::new().write(true).custom_flags(flags.bits()).open(path);
        let is_same = |own: &File| {
            own.metadata().is_ok_and(|own| (own.dev(), own.ino(), own.rdev()) == (data.dev(), data.ino(), data.rdev()))
        };
        match opened.ok().filter(is_same) {
            Some(own) => Way::Own(own),
            None if is_terminal => Way::Foreign,
            // It takes what it says it has room for.
            None => Way::Plain,
        }
    }
}

/// Whether it is open for more than reading. Of the end of a pipe that is not, the system never says that there is room.
pub(crate) fn can_be_written_to(out: BorrowedFd<'_>) -> bool {
    fs::fcntl_getfl(out).is_ok_and(|flags| flags & OFlags::ACCMODE != OFlags::RDONLY)
}

/// Whether something can be written without waiting, or fails at once; `None` if a signal came first.
pub(crate) fn has_room(out: BorrowedFd<'_>, patience: PollTimeout) -> Option<bool> {
    match poll(&mut [PollFd::new(out, PollFlags::POLLOUT)], patience) {
        Ok(ready) => Some(ready > 0),
        Err(Errno::EINTR) => None,
        Err(_) => Some(true),
    }
}
