//! Standard input, the same from the start in each attempt.
//!
//! A file is rewound. A pipe is recorded as the command reads it, and the record is played to the next attempt before
//! the rest of the pipe. What the command does not read stays where it is: on Linux a piece is *copied* into the
//! command's pipe (`tee(2)`), which holds one piece and so has room again when that was read; only then is it taken. Of
//! a socket, and elsewhere, one piece is taken ahead, and what is lost by that is said. A terminal or device is handed
//! on as it is.

use super::{
    args::StdinMode,
    spool::{Kept, Spool},
};
use crate::talk::{Fault, plain};
use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags},
};
use std::{
    fs::File,
    io::{self, IsTerminal, Seek, SeekFrom, Stdin, Write, stdin},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileTypeExt,
    },
    process::{ChildStdin, Stdio},
};

/// How much is read and passed on at once.
const PIECE: usize = 1 << 16;

/// Where the attempts' standard input comes from.
pub(super) enum Input {
    /// Ours, as it is: a terminal, a device, or because it was asked for.
    Ours {
        /// Whether it is a terminal, which one process group at a time may read.
        terminal: bool,
    },
    /// None.
    Null,
    /// A file, and where it stood at the beginning.
    File(File, u64),
    /// A pipe or socket.
    Pipe(Recording),
}

/// What has come through a pipe so far.
pub(super) struct Recording {
    source: Stdin,
    record: Spool,
    ended: bool,
    /// Whether a piece can be copied without being taken.
    copies: bool,
}

impl Input {
    /// Of which at most `most` bytes are kept for another attempt.
    pub(super) fn new(mode: StdinMode, most: u64) -> Input {
        let source = stdin();
        let ours = Input::Ours { terminal: source.is_terminal() };
        match mode {
            StdinMode::Null => Input::Null,
            StdinMode::Inherit => ours,
            StdinMode::Replay => Input::replayed(source, most).unwrap_or(ours),
        }
    }

    fn replayed(source: Stdin, most: u64) -> Option<Input> {
        let mut file = File::from(source.as_fd().try_clone_to_owned().ok()?);
        let kind = file.metadata().ok()?.file_type();
        if kind.is_file() || kind.is_block_device() {
            let start = file.stream_position().ok()?;
            Some(Input::File(file, start))
        } else if kind.is_fifo() || kind.is_socket() {
            let copies = kind.is_fifo() && cfg!(target_os = "linux");
            Some(Input::Pipe(Recording { source, record: Spool::new(most), ended: false, copies }))
        } else {
            None
        }
    }

    /// What to start the next attempt with.
    pub(super) fn stdio(&mut self) -> Result<Stdio, Fault> {
        match self {
            Input::Ours { .. } => Ok(Stdio::inherit()),
            Input::Null => Ok(Stdio::null()),
            Input::Pipe(_) => Ok(Stdio::piped()),
            Input::File(file, start) => {
                file.seek(SeekFrom::Start(*start))
                    .map_err(|error| Fault::new(format!("cannot rewind standard input: {}", plain(&error))))?;
                Ok(Stdio::inherit())
            }
        }
    }

    /// Whether there can be another attempt: not when there was more than could be kept.
    pub(super) fn is_whole(&self) -> bool {
        !matches!(self, Input::Pipe(recording) if recording.record.is_given_up())
    }

    /// Whether the command shares our terminal as its standard input.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Input::Ours { terminal: true })
    }

    /// Begins to feed an attempt.
    pub(super) fn feed(&mut self, sink: Option<ChildStdin>) -> Option<Feed<'_>> {
        match (self, sink) {
            (Input::Pipe(recording), Some(sink)) => {
                make_nonblocking(&sink);
                recording.copies &= holds_one_piece(&sink);
                Some(Feed { recording, sink, at: 0, copied: 0, is_closed: false })
            }
            _ => None,
        }
    }
}

/// The pipe of one attempt, and how far into the record it is.
pub(super) struct Feed<'a> {
    recording: &'a mut Recording,
    sink: ChildStdin,
    at: u64,
    /// How much of our input stands in the command's pipe as a copy, and is not taken yet.
    copied: usize,
    /// Whether nothing more can be passed on.
    is_closed: bool,
}

/// What to wait for before the next [`Feed::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// The command's pipe has room.
    Room,
    /// Our standard input has more.
    More,
    /// Nothing: all was passed on, or the command has closed its input.
    Nothing,
}

impl Feed<'_> {
    pub(super) fn wants(&self) -> Wants {
        if self.is_closed {
            Wants::Nothing
        } else if self.copied > 0 || self.at < self.recording.record.len() {
            Wants::Room
        } else if self.recording.ended {
            Wants::Nothing
        } else {
            Wants::More
        }
    }

    /// What to poll: the command's end always, to notice when it is closed.
    pub(super) fn polls(&self) -> (PollFd<'_>, Option<PollFd<'_>>) {
        match self.wants() {
            Wants::Room => (PollFd::new(self.sink.as_fd(), PollFlags::POLLOUT), None),
            _ => {
                let source = PollFd::new(self.recording.source.as_fd(), PollFlags::POLLIN);
                (PollFd::new(self.sink.as_fd(), PollFlags::empty()), Some(source))
            }
        }
    }

    /// Moves one piece; false when there is no more to be done for this attempt. Tells `say` what the user should know.
    pub(super) fn step(&mut self, say: &dyn Fn(&str)) -> Result<bool, Fault> {
        match self.wants() {
            Wants::Room if self.copied > 0 => self.take_copied(say)?,
            Wants::Room => self.pass_on()?,
            Wants::More if self.recording.copies => self.copy()?,
            Wants::More => self.recording.take_in(PIECE, say).map(drop)?,
            Wants::Nothing => {}
        }
        Ok(self.wants() != Wants::Nothing)
    }

    /// Nothing more is passed on: takes what the command has read of a copy, leaves the rest, and says what it could not leave.
    pub(super) fn finish(mut self, say: &dyn Fn(&str)) -> Result<Taken, Fault> {
        if self.copied > 0 {
            self.copied = self.copied.saturating_sub(unread(&self.sink));
            self.take_copied(say)?;
            return Ok(Taken::default());
        }
        let behind = usize::try_from(self.recording.record.len().saturating_sub(self.at)).unwrap_or(usize::MAX);
        Ok(Taken { behind, pipe: other_end(&self.sink) })
    }

    /// The command's input is closed: nothing more is passed on.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    fn pass_on(&mut self) -> Result<(), Fault> {
        let mut piece = vec![0; PIECE];
        let count = self.recording.record.read_at(self.at, &mut piece).map_err(cannot_record)?;
        match self.sink.write(&piece[..count]) {
            Ok(written) => self.at += written as u64,
            Err(error) if is_later(&error) => {}
            // The command has closed its input; it need not read all of it.
            Err(_) => self.close(),
        }
        Ok(())
    }

    /// What was copied was read: it is taken, and recorded.
    fn take_copied(&mut self, say: &dyn Fn(&str)) -> Result<(), Fault> {
        while self.copied > 0 {
            match self.recording.take_in(self.copied, say)? {
                0 => break,
                count => {
                    self.copied = self.copied.saturating_sub(count);
                    self.at += count as u64;
                }
            }
        }
        self.copied = 0;
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn copy(&mut self) -> Result<(), Fault> {
        use rustix::{
            io::Errno,
            pipe::{SpliceFlags, tee},
        };
        match tee(&self.recording.source, &self.sink, PIECE, SpliceFlags::NONBLOCK) {
            Ok(0) => self.recording.ended = true,
            Ok(count) => self.copied = count,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::PIPE) => self.close(),
            // What cannot be copied is taken.
            Err(_) => self.recording.copies = false,
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn copy(&mut self) -> Result<(), Fault> {
        self.recording.copies = false;
        Ok(())
    }
}

/// What was taken of our standard input for a command that may not have read all of it.
#[derive(Default)]
pub(super) struct Taken {
    /// How much of it never came into the command's pipe.
    behind: usize,
    /// The pipe, which the command may still be reading when the last of it was passed on.
    pipe: Option<OwnedFd>,
}

impl Taken {
    /// How much the command has not read so far.
    pub(super) fn unread(&self) -> usize {
        self.behind.saturating_add(self.pipe.as_ref().map_or(0, unread))
    }
}

impl Recording {
    /// Takes at most this much, and keeps it; how much it was.
    fn take_in(&mut self, most: usize, say: &dyn Fn(&str)) -> Result<usize, Fault> {
        let mut piece = vec![0; most.min(PIECE)];
        match nix::unistd::read(self.source.as_fd(), &mut piece) {
            Ok(0) => self.ended = true,
            Ok(count) => {
                match self.record.append(&piece[..count]).map_err(cannot_record)? {
                    Kept::All => {}
                    Kept::NearlyTooMuch(most) => {
                        say(&format!(
                            "half of the {most} of standard input that are kept for another attempt are used"
                        ));
                    }
                    Kept::TooMuch(most) => say(&format!(
                        "standard input is longer than the {most} that are kept (--max-kept): there is no other attempt"
                    )),
                }
                return Ok(count);
            }
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => {}
            Err(error) => return Err(Fault::new(format!("cannot read standard input: {}", plain(&error.into())))),
        }
        Ok(0)
    }
}

/// Makes a pipe so small that it has room exactly when it is empty.
#[cfg(target_os = "linux")]
fn holds_one_piece(sink: &ChildStdin) -> bool {
    rustix::pipe::fcntl_setpipe_size(sink, 1).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn holds_one_piece(_sink: &ChildStdin) -> bool {
    false
}

/// The end of the command's pipe that the command reads, so that its end can be closed and how much stands in it still be seen.
#[cfg(target_os = "linux")]
fn other_end(sink: &ChildStdin) -> Option<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", sink.as_raw_fd());
    open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn other_end(_sink: &ChildStdin) -> Option<OwnedFd> {
    None
}

/// How much stands in the command's pipe.
fn unread(pipe: impl AsFd) -> usize {
    rustix::io::ioctl_fionread(pipe).ok().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// Reads and writes of a pipe that is ours alone return at once from now on.
pub(super) fn make_nonblocking(pipe: impl AsFd) {
    // It cannot fail on a pipe, and if it did, the poll before each read and write would still serve.
    let _ = fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
}

pub(super) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn cannot_record(error: io::Error) -> Fault {
    Fault::new(format!("cannot keep standard input for another attempt: {}", plain(&error)))
        .hint("give it as a file (< FILE), name a larger folder in TMPDIR, or use --stdin inherit")
}
