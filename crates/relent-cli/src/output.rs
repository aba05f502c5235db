//! Standard output, for all that write to it: one that is closed, or open for reading alone, is an error. So is standard input, for those who
//! read it.
//!
//! Rust opens `/dev/null` in the place of a standard output that is closed, before `main`, and takes one that refuses what
//! is written for one that swallows it. So it is held still earlier by something that refuses ([`hold`]), which commands that
//! inherit it notice, too, as they would without relent; and whoever writes here asks first (`open`).

use crate::{
    arrived,
    stderr::{PATIENCE, PIECE, can_be_written_to, has_room, write_some},
    waits::Waits,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::fs::{self, Mode, OFlags};
use std::{
    fs::File,
    io::{self, StdoutLock, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd},
        unix::fs::FileTypeExt,
    },
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

/// Puts something that only reads, nothing, in the place of a standard input and output that are closed. It is for the time
/// before `main`: it opens a file, or a pipe, and does nothing else.
pub fn hold() {
    for _ in 0..2 {
        // The lowest free number is given, so it tells what was closed.
        match fs::open("/dev/null", OFlags::RDONLY, Mode::empty()) {
            Ok(null) if null.as_raw_fd() < 2 => {
                HAD_NO_INPUT.fetch_or(null.into_raw_fd() == 0, Ordering::Relaxed);
            }
            Ok(_) => return,
            Err(_) => return hold_without_devices(),
        }
    }
}

/// Where there is no such device, as in a bare root, by a pipe that nobody writes to; standard error, too, since Rust would end the process.
fn hold_without_devices() {
    while let Ok((end, _)) = rustix::pipe::pipe()
        && end.as_raw_fd() <= 2
    {
        HAD_NO_INPUT.fetch_or(end.into_raw_fd() == 0, Ordering::Relaxed);
    }
}

/// Whether standard input was closed.
static HAD_NO_INPUT: AtomicBool = AtomicBool::new(false);

/// Standard input, to be read by whoever was told to: nothing that cannot be read is taken for something empty.
///
/// # Errors
///
/// It is closed, or there is no room for another descriptor. One that is open for writing alone is an error when it is read.
pub(crate) fn input() -> io::Result<File> {
    match HAD_NO_INPUT.load(Ordering::Relaxed) {
        true => Err(io::Error::other("it is closed")),
        false => Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?)),
    }
}

/// Standard output, to be written to.
///
/// # Errors
///
/// It cannot be: it is closed, or open for reading alone.
pub(crate) fn open() -> io::Result<Waits<StdoutLock<'static>>> {
    check().map(|()| Waits(io::stdout().lock()))
}

/// Whether standard output is a pipe whose reader is gone.
pub(crate) fn nobody_reads() -> bool {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let is_seen = poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0);
    is_seen
        && fds[0].revents().is_some_and(|seen| seen.intersects(PollFlags::POLLERR | PollFlags::POLLHUP))
        && is_pipe(&stdout)
}

/// Whether it is a pipe or a socket.
pub(crate) fn is_pipe(fd: impl AsFd) -> bool {
    let file = fd.as_fd().try_clone_to_owned().map(File::from);
    let kind = file.and_then(|file| file.metadata()).map(|data| data.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

/// Writes it all at once.
///
/// # Errors
///
/// It cannot be written to, or nobody reads.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = open()?;
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Looks whether what was written there has arrived, as far as the system tells.
///
/// # Errors
///
/// It has not: its file system took it, and had no room for it.
pub(crate) fn has_arrived() -> io::Result<()> {
    arrived::check(io::stdout())
}

fn check() -> io::Result<()> {
    match can_be_written_to(io::stdout().as_fd()) {
        true => Ok(()),
        false => Err(io::Error::other("it is closed")),
    }
}

/// Writes all of it, and says whether that was possible. When the call is `over`, a reader who lets the pipe be full for as long as
/// is waited for one does not get the rest. Who else writes there, on a thread, is not waited for.
///
/// # Errors
///
/// It cannot be written to, as [`open`], or nobody reads.
pub(crate) fn write_until(bytes: &[u8], over: Option<Instant>) -> io::Result<bool> {
    write_as_it_has(bytes, over, has_room)
}

/// The same for who does something meanwhile: it `has_room`, or has none after a while, or that is not known.
pub(crate) fn write_as_it_has(
    bytes: &[u8],
    over: Option<Instant>,
    has_room: impl Fn(BorrowedFd<'_>, PollTimeout) -> Option<bool>,
) -> io::Result<bool> {
    check()?;
    let stdout = io::stdout();
    let (mut left, mut since) = (bytes, Instant::now());
    while !left.is_empty() {
        let patience = over.map(|over| over.saturating_duration_since(since).max(PATIENCE));
        let most = patience.map(|patience| patience.saturating_sub(since.elapsed()));
        let timeout = most.map_or(PollTimeout::NONE, |most| most.try_into().unwrap_or(PollTimeout::MAX));
        let has_room = has_room(stdout.as_fd(), timeout) != Some(false);
        if !has_room || most.is_some_and(|most| most.is_zero()) {
            return Ok(false);
        }
        match write_some(stdout.as_fd(), &left[..left.len().min(PIECE)])? {
            0 => {}
            written => (left, since) = (&left[written..], Instant::now()),
        }
    }
    Ok(true)
}
