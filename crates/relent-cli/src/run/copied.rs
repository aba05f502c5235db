//! A piece of our standard input that the command gets before it is taken (`tee(2)`), by way of a pipe of our own: what the
//! command got is known so, whoever else takes it meanwhile.

use super::pipes::{holds_one_piece, is_later, unread};
use crate::at_once::AtOnce;
use std::{
    io::{self, PipeReader, PipeWriter, Read, Write, pipe},
    process::ChildStdin,
};

/// What makes copies.
pub(super) struct Copier {
    /// A pipe that holds one piece.
    reader: PipeReader,
    writer: PipeWriter,
    /// What came into the command's pipe. It is read before that: whoever has written it to our input may change what stands there
    /// (`vmsplice(2)`), and in each pipe that it was copied to.
    passed: Vec<u8>,
}

/// What became of a copy.
pub(super) enum Copied {
    Done,
    /// There was nothing to be copied.
    Later,
    /// Something stands in the command's pipe that the command has written there.
    Full,
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
        holds_one_piece(&writer).then_some(Copier { reader, writer, passed: Vec::new() })
    }

    /// How much of our input stands in the command's pipe and is not taken yet.
    pub(super) fn passed(&self) -> usize {
        self.passed.len()
    }

    /// Copies the next piece to the command's pipe, which is empty and holds one, too.
    #[cfg(target_os = "linux")]
    pub(super) fn copy(&mut self, source: &AtOnce, sink: &ChildStdin) -> io::Result<Copied> {
        use rustix::{
            io::Errno,
            pipe::{SpliceFlags, tee},
        };
        if unread(sink) > 0 {
            return Ok(Copied::Full);
        }
        let mut copy = match tee(source, &self.writer, PIECE, SpliceFlags::NONBLOCK) {
            Ok(0) => return Ok(Copied::Ended),
            Ok(count) => vec![0; count],
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Copied::Later),
            Err(_) => return Ok(Copied::Never),
        };
        self.reader.read_exact(&mut copy)?;
        match { sink }.write(&copy) {
            Ok(count) => {
                copy.truncate(count);
                self.passed = copy;
                Ok(Copied::Done)
            }
            Err(error) if is_later(&error) => Ok(Copied::Full),
            Err(_) => Ok(Copied::Unread),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn copy(&mut self, _source: &AtOnce, _sink: &ChildStdin) -> io::Result<Copied> {
        Ok(Copied::Never)
    }

    /// The first bytes of the copy, so many as the command has read; the rest is forgotten.
    pub(super) fn take(&mut self, most: usize) -> Vec<u8> {
        let mut copy = std::mem::take(&mut self.passed);
        copy.truncate(most);
        copy
    }
}

/// How much is copied at once, at most.
#[cfg(target_os = "linux")]
const PIECE: usize = 1 << 16;
