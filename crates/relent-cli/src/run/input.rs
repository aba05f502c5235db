//! Standard input, the same from the start in each attempt.
//!
//! A file is rewound. A pipe is recorded while the command reads it, never ahead of it by more than one piece, and the
//! record is played to the next attempt before the rest of the pipe. A terminal or device is handed on as it is.

use super::{args::StdinMode, spool::Spool};
use crate::talk::Fault;
use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags},
};
use std::{
    fs::File,
    io::{self, IsTerminal, Seek, SeekFrom, Stdin, Write, stdin},
    os::{fd::AsFd, unix::fs::FileTypeExt},
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
}

impl Input {
    pub(super) fn new(mode: StdinMode) -> Input {
        let source = stdin();
        let ours = Input::Ours { terminal: source.is_terminal() };
        match mode {
            StdinMode::Null => Input::Null,
            StdinMode::Inherit => ours,
            StdinMode::Replay => Input::replayed(source).unwrap_or(ours),
        }
    }

    fn replayed(source: Stdin) -> Option<Input> {
        let mut file = File::from(source.as_fd().try_clone_to_owned().ok()?);
        let kind = file.metadata().ok()?.file_type();
        if kind.is_file() || kind.is_block_device() {
            let start = file.stream_position().ok()?;
            Some(Input::File(file, start))
        } else if kind.is_fifo() || kind.is_socket() {
            Some(Input::Pipe(Recording { source, record: Spool::default(), ended: false }))
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
                    .map_err(|error| Fault::new(format!("cannot rewind standard input: {error}")))?;
                Ok(Stdio::inherit())
            }
        }
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
                Some(Feed { recording, sink, at: 0 })
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
}

/// What to wait for before the next [`Feed::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// The command's pipe has room.
    Room,
    /// Our standard input has more.
    More,
}

impl Feed<'_> {
    pub(super) fn wants(&self) -> Wants {
        if self.at < self.recording.record.len() { Wants::Room } else { Wants::More }
    }

    /// What to poll: the command's end always, to notice when it is closed.
    pub(super) fn polls(&self) -> (PollFd<'_>, Option<PollFd<'_>>) {
        match self.wants() {
            Wants::Room => (PollFd::new(self.sink.as_fd(), PollFlags::POLLOUT), None),
            Wants::More => {
                let source = PollFd::new(self.recording.source.as_fd(), PollFlags::POLLIN);
                (PollFd::new(self.sink.as_fd(), PollFlags::empty()), Some(source))
            }
        }
    }

    /// Moves one piece; false when there is no more to be done for this attempt.
    pub(super) fn step(&mut self) -> Result<bool, Fault> {
        match self.wants() {
            Wants::Room => Ok(self.pass_on()?),
            Wants::More if self.recording.ended => Ok(false),
            Wants::More => {
                self.recording.take_in()?;
                Ok(!self.recording.ended)
            }
        }
    }

    /// True if the whole of a pipe that has ended was passed on before.
    pub(super) fn is_done(&self) -> bool {
        self.recording.ended && self.wants() == Wants::More
    }

    fn pass_on(&mut self) -> Result<bool, Fault> {
        let mut piece = vec![0; PIECE];
        let count = self.recording.record.read_at(self.at, &mut piece).map_err(cannot_record)?;
        match self.sink.write(&piece[..count]) {
            Ok(written) => self.at += written as u64,
            Err(error) if is_later(&error) => {}
            // The command has closed its input; it need not read all of it.
            Err(_) => return Ok(false),
        }
        Ok(!self.is_done())
    }
}

impl Recording {
    fn take_in(&mut self) -> Result<(), Fault> {
        let mut piece = vec![0; PIECE];
        match nix::unistd::read(self.source.as_fd(), &mut piece) {
            Ok(0) => self.ended = true,
            Ok(count) => self.record.append(&piece[..count]).map_err(cannot_record)?,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => {}
            Err(error) => return Err(Fault::new(format!("cannot read standard input: {error}"))),
        }
        Ok(())
    }
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
    Fault::new(format!("cannot keep standard input for another attempt: {error}"))
        .hint("give it as a file (< FILE), name a larger folder in TMPDIR, or use --stdin inherit")
}
