//! Standard input, the same from the start in each attempt.
//!
//! A file is rewound. A pipe is recorded as the command reads it, and the record is played to the next attempt before
//! the rest of the pipe. What the command does not read stays where it is: on Linux a piece is *copied* into the
//! command's pipe (`copied.rs`), which holds one piece and so has room again when that was read; only then is it taken. Of
//! a socket, and elsewhere, one piece is taken ahead, and what is lost by that is said. A terminal or device is handed
//! on as it is.
//!
//! Others may read the same pipe. Then it is chance who gets what, but nobody is waited for, and what the command has read is
//! played to the next attempt whoever has taken it.

use super::{
    args::StdinMode,
    copied::{Copied, Copier},
    pipes::{holds_one_piece, is_later, make_nonblocking, unread},
    spool::{Kept, Spool},
};
use crate::{
    at_once::AtOnce,
    talk::{Fault, plain},
};
use nix::poll::{PollFd, PollFlags};
use std::{
    fs::File,
    io::{self, IsTerminal, Read, Seek, SeekFrom, Stdin, Write, stdin},
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
    source: AtOnce,
    record: Spool,
    ended: bool,
    /// What copies a piece without taking it, where that can be done.
    copier: Option<Copier>,
    /// Whether it was said that somebody else reads it, too.
    is_shared: bool,
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
            let copier = kind.is_fifo().then(Copier::new).flatten();
            let (source, record) = (AtOnce::new(file), Spool::new(most));
            Some(Input::Pipe(Recording { source, record, ended: false, copier, is_shared: false }))
        } else {
            None
        }
    }

    /// What to start the next attempt with.
    pub(super) fn stdio(&mut self) -> Result<Stdio, Fault> {
        match self {
            Input::Ours { .. } => Ok(Stdio::inherit()),
            Input::Null => File::open("/dev/null").map(Stdio::from).map_err(|error| {
                Fault::new(format!("--stdin null: cannot open /dev/null: {}", plain(&error)))
                    .hint("a root made by hand needs it: mknod -m 666 /dev/null c 1 3")
            }),
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
                recording.copier.take_if(|_| !holds_one_piece(&sink));
                Some(Feed { recording, sink, at: 0, unkept: Vec::new(), has_unread: false, is_closed: false })
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
    /// What was taken last, if it is not in the record, which has become too long.
    unkept: Vec<u8>,
    /// Whether something may stand in the command's pipe: nothing can be copied behind that.
    has_unread: bool,
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
        } else if self.copied() > 0 || self.at < self.recording.record.len() {
            Wants::Room
        } else if self.recording.ended {
            Wants::Nothing
        } else if self.has_unread && self.recording.copier.is_some() {
            Wants::Room
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
            Wants::Room if self.copied() > 0 => {
                let is_read = unread(&self.sink) == 0;
                self.take_copied(self.copied(), say)?;
                if !is_read {
                    // The command has made its pipe larger: nobody knows any more when it has read what it got.
                    self.recording.copier = None;
                }
            }
            Wants::Room if self.at < self.recording.record.len() => self.pass_on()?,
            Wants::Room => self.has_unread = false,
            Wants::More => self.go_on(say)?,
            Wants::Nothing => {}
        }
        Ok(self.wants() != Wants::Nothing)
    }

    /// Nothing more is passed on: takes what the command has read of a copy, leaves the rest, and says what it could not leave.
    pub(super) fn finish(mut self, say: &dyn Fn(&str)) -> Result<Taken, Fault> {
        let copied = self.copied();
        if copied > 0 {
            self.take_copied(copied.saturating_sub(unread(&self.sink)), say)?;
        }
        let behind = usize::try_from(self.recording.record.len().saturating_sub(self.at)).unwrap_or(usize::MAX);
        // What stands there of a copy was not taken.
        Ok(Taken { behind, pipe: if copied > 0 { None } else { other_end(&self.sink) } })
    }

    /// The command's input is closed: nothing more is passed on.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    fn pass_on(&mut self) -> Result<(), Fault> {
        let record = &self.recording.record;
        let mut piece = room(PIECE);
        let piece = match record.is_given_up() {
            false => {
                let count = record.read_at(self.at, &mut piece).map_err(cannot_record)?;
                &piece[..count]
            }
            true => {
                let left = usize::try_from(record.len() - self.at).unwrap_or(usize::MAX);
                &self.unkept[self.unkept.len().saturating_sub(left)..]
            }
        };
        match self.sink.write(piece) {
            Ok(written) => {
                self.at += written as u64;
                self.has_unread = true;
            }
            Err(error) if is_later(&error) => {}
            // The command has closed its input; it need not read all of it.
            Err(_) => self.close(),
        }
        Ok(())
    }

    /// How much of our input stands in the command's pipe as a copy, and is not taken yet.
    fn copied(&self) -> usize {
        self.recording.copier.as_ref().map_or(0, Copier::passed)
    }

    /// So much of what was copied was read: it is taken, and recorded.
    fn take_copied(&mut self, read: usize, say: &dyn Fn(&str)) -> Result<(), Fault> {
        let Some(copier) = &mut self.recording.copier else { return Ok(()) };
        let copy = copier.take(read);
        let taken = self.recording.take(copy.len())?;
        self.recording.keep(&copy, say)?;
        self.at += copy.len() as u64;
        if taken != copy && !std::mem::replace(&mut self.recording.is_shared, true) {
            say(
                "somebody else reads standard input, too, and gets what the command gets; with --stdin inherit one of them does",
            );
        }
        match new_behind(&copy, &taken) {
            [] => Ok(()),
            new => self.keep_taken(new.to_vec(), say),
        }
    }

    /// Keeps what was taken before the command got it.
    fn keep_taken(&mut self, piece: Vec<u8>, say: &dyn Fn(&str)) -> Result<(), Fault> {
        self.recording.keep(&piece, say)?;
        if self.recording.record.is_given_up() {
            self.unkept = piece;
        }
        Ok(())
    }

    /// Copies or takes what comes next.
    fn go_on(&mut self, say: &dyn Fn(&str)) -> Result<(), Fault> {
        let Some(copier) = &mut self.recording.copier else {
            let piece = self.recording.take_some(PIECE)?;
            return self.keep_taken(piece, say);
        };
        match copier.copy(&self.recording.source, &self.sink).map_err(cannot_record)? {
            Copied::Done | Copied::Later => {}
            Copied::Full => self.has_unread = true,
            Copied::Ended => self.recording.ended = true,
            Copied::Unread => self.close(),
            // What cannot be copied is taken.
            Copied::Never => self.recording.copier = None,
        }
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
    /// Takes at most this much of what is there now.
    fn take_some(&mut self, most: usize) -> Result<Vec<u8>, Fault> {
        let mut piece = room(most);
        let count = match self.source.read(&mut piece) {
            Ok(0) => {
                self.ended = true;
                0
            }
            Ok(count) => count,
            Err(error) if is_later(&error) => 0,
            Err(error) => return Err(Fault::new(format!("cannot read standard input: {}", plain(&error)))),
        };
        piece.truncate(count);
        Ok(piece)
    }

    /// Takes this much, or what there is of it.
    fn take(&mut self, most: usize) -> Result<Vec<u8>, Fault> {
        let mut all = Vec::new();
        while all.len() < most {
            match self.take_some(most - all.len())? {
                piece if piece.is_empty() => break,
                piece => all.extend(piece),
            }
        }
        Ok(all)
    }

    /// Keeps what was read for another attempt.
    fn keep(&mut self, piece: &[u8], say: &dyn Fn(&str)) -> Result<(), Fault> {
        match self.record.append(piece).map_err(cannot_record)? {
            Kept::All => {}
            Kept::NearlyTooMuch(most) => {
                say(&format!("half of the {most} of standard input that are kept for another attempt are used"));
            }
            Kept::TooMuch(most) => say(&format!(
                "standard input is longer than the {most} that are kept (--max-kept): there is no other attempt"
            )),
        }
        Ok(())
    }
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

/// Room for so many bytes, or for fewer where the system gives no memory for them.
fn room(most: usize) -> Vec<u8> {
    const LEAST: usize = 1 << 12;
    let (mut room, mut size) = (Vec::new(), most);
    while size > LEAST && room.try_reserve_exact(size).is_err() {
        size /= 2;
    }
    room.resize(size, 0);
    room
}

fn cannot_record(error: io::Error) -> Fault {
    Fault::new(format!("cannot keep standard input for another attempt: {}", plain(&error)))
        .hint("give it as a file (< FILE), name a larger folder in TMPDIR, or use --stdin inherit")
}

/// What was taken that is new, since others have taken of what was copied: they take from the front, so it begins with an end of the copy.
fn new_behind<'a>(copy: &[u8], taken: &'a [u8]) -> &'a [u8] {
    let copied = (0..=copy.len().min(taken.len())).rev().find(|count| copy.ends_with(&taken[..*count]));
    &taken[copied.unwrap_or(0)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever others take of a copy, and whatever is written meanwhile: nothing comes twice, and nothing is lost.
    #[test]
    fn what_is_new_behind_a_copy_is_told_from_the_copy() {
        let (copy, more) = (b"0123456789", b"abc");
        for others in 0..=copy.len() {
            for written in 0..=more.len() {
                let taken = [&copy[others..], &more[..written]].concat();
                assert_eq!(new_behind(copy, &taken), &more[..written], "{others}, {written}");
            }
        }
        assert_eq!(new_behind(b"", b"abc"), b"abc");
    }
}
