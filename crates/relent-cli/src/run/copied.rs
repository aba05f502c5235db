//! A piece of our standard input that the command gets before it is taken (`tee(2)`), by way of a pipe of our own: what the
//! command got is known so, whoever else takes it meanwhile.

use crate::at_once::AtOnce;
use std::{
    io::{self, PipeReader, PipeWriter, Read, pipe},
    os::fd::AsFd,
    process::ChildStdin,
};

/// What makes copies.
pub(super) struct Copier {
    /// A pipe that holds one piece.
    reader: PipeReader,
    writer: PipeWriter,
    /// How much stands in it.
    held: usize,
    /// How much of that came into the command's pipe.
    passed: usize,
}

/// What became of a copy.
pub(super) enum Copied {
    Done,
    /// There was nothing to be copied, or no room.
    Later,
    /// There is no more.
    Ended,
    /// The command has closed its input.
    Unread,
    /// This cannot be copied.
    Never,
}

impl Copier {
    /// None where there is no pipe that holds one piece alone.
    pub(super) fn new() -> Option<Copier> {
        let (reader, writer) = pipe().ok()?;
        holds_one_piece(&writer).then_some(Copier { reader, writer, held: 0, passed: 0 })
    }

    /// How much of our input stands in the command's pipe and is not taken yet.
    pub(super) fn passed(&self) -> usize {
        self.passed
    }

    /// Copies the next piece to the command's pipe, which is empty and holds one, too.
    #[cfg(target_os = "linux")]
    pub(super) fn copy(&mut self, source: &AtOnce, sink: &ChildStdin) -> io::Result<Copied> {
        use rustix::{
            io::Errno,
            pipe::{SpliceFlags, tee},
        };
        match tee(source, &self.writer, PIECE, SpliceFlags::NONBLOCK) {
            Ok(0) => return Ok(Copied::Ended),
            Ok(count) => self.held = count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Copied::Later),
            Err(_) => return Ok(Copied::Never),
        }
        let failed = match tee(&self.reader, sink, self.held, SpliceFlags::NONBLOCK) {
            Ok(count @ 1..) => {
                self.passed = count;
                return Ok(Copied::Done);
            }
            Ok(0) | Err(Errno::AGAIN | Errno::INTR) => Copied::Later,
            Err(Errno::PIPE) => Copied::Unread,
            Err(_) => Copied::Never,
        };
        self.take(0).map(|_| failed)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn copy(&mut self, _source: &AtOnce, _sink: &ChildStdin) -> io::Result<Copied> {
        Ok(Copied::Never)
    }

    /// The first bytes of the copy, so many as the command has read; the rest is forgotten.
    pub(super) fn take(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut copy = vec![0; self.held];
        self.reader.read_exact(&mut copy)?;
        copy.truncate(most.min(self.passed));
        (self.held, self.passed) = (0, 0);
        Ok(copy)
    }
}

/// How much is copied at once, at most.
#[cfg(target_os = "linux")]
const PIECE: usize = 1 << 16;

/// Makes a pipe so small that it has room exactly when it is empty.
#[cfg(target_os = "linux")]
pub(super) fn holds_one_piece(pipe: impl AsFd) -> bool {
    rustix::pipe::fcntl_setpipe_size(pipe, 1).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn holds_one_piece(_pipe: impl AsFd) -> bool {
    false
}
