//! One of the command's output streams: read as it comes, searched, and kept or passed on.

use super::{
    patterns::{Found, Patterns, Search},
    pipes::{is_later, make_nonblocking, unread},
    spool::{Kept, Spool},
};
use crate::{
    output,
    stderr::{PIECE as ROOM, can_be_written_to, has_room, write_some},
    talk::{self, Fault, plain},
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    fs::File,
    io::{self, Read, Stderr, Stdout},
    ops::Range,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

/// Where what is heard goes.
pub(super) enum Target {
    Keep(Spool),
    Out,
    Err,
    Nowhere,
}

/// One of the command's output streams.
pub(super) struct Stream<'a> {
    pipe: File,
    target: Target,
    /// Patterns, looked for in all that is read as long as there is somebody who waits for that.
    search: Option<Search<'a>>,
    /// Where of the piece what was read begins and ends that was not searched yet.
    unsearched: Range<usize>,
    is_open: bool,
    /// How much there is to be read yet of what is the command's, once that has ended: what comes then is read as far as it can be kept.
    left: Option<usize>,
    /// Why what comes then is no more read, if it could not be kept.
    cut: Option<Fault>,
    /// Whether some of it was left out, as there is no room for it.
    is_short: bool,
    /// Whether there is room for all of it: as far as is known, the command has succeeded.
    is_whole: bool,
    /// Whether nobody reads any more what goes out.
    nobody_reads: bool,
    /// Whether there was more than can be kept, so that it went out before the attempt was judged.
    went_out: bool,
    /// Room for what is read: little, until somebody writes much.
    piece: Vec<u8>,
    /// What has still to go out before more is read: what was kept, and what was read after it.
    kept: Option<(Spool, u64)>,
    rest: Vec<u8>,
    stdout: Stdout,
    stderr: Stderr,
}

/// How much is read at once, at most.
const PIECE: usize = 1 << 16;

/// For how long is searched or written at once: a pattern that counts far takes its time for each byte, and so does what was kept of gigabytes.
const AT_ONCE: Duration = Duration::from_millis(50);

/// How much is read at first. Most commands say little, and memory that is never touched costs no time.
const FIRST_PIECE: usize = 1 << 12;

impl<'a> Stream<'a> {
    pub(super) fn new(pipe: OwnedFd, target: Target, patterns: &'a Patterns) -> Stream<'a> {
        make_nonblocking(&pipe);
        Stream {
            pipe: pipe.into(),
            target,
            search: (!patterns.is_empty()).then(|| Search::new(patterns)),
            unsearched: 0..0,
            is_open: true,
            left: None,
            cut: None,
            is_short: false,
            is_whole: false,
            nobody_reads: false,
            went_out: false,
            piece: vec![0; FIRST_PIECE],
            kept: None,
            rest: Vec::new(),
            stdout: io::stdout(),
            stderr: io::stderr(),
        }
    }

    /// Adds to what is polled what it waits for, and returns where.
    pub(super) fn poll<'b>(&'b self, fds: &mut Vec<PollFd<'b>>) -> Option<usize> {
        let wanted = match self.out() {
            Some(out) => PollFd::new(out, PollFlags::POLLOUT),
            None if self.is_open && self.is_read() => PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN),
            None => return None,
        };
        fds.push(wanted);
        Some(fds.len() - 1)
    }

    /// Whether there is something to do that nothing has to come for.
    pub(super) fn is_busy(&self) -> bool {
        self.out().is_none() && !self.unsearched.is_empty()
    }

    /// Writes what there is room for, though not for long, or else searches what was read, and reads a piece.
    pub(super) fn step(&mut self, say: &dyn Fn(&str)) -> Result<(), Fault> {
        if self.out().is_none() && self.search_some() {
            self.read_more(say)?;
        }
        let until = Instant::now() + AT_ONCE;
        while let Some(out) = self.out()
            && has_room(out, PollTimeout::ZERO) == Some(true)
            && self.write_some()?
            && Instant::now() < until
        {}
        Ok(())
    }

    /// Reads a piece. What comes once the command has failed does no harm: reading ends with what cannot be kept.
    fn read_more(&mut self, say: &dyn Fn(&str)) -> Result<(), Fault> {
        match self.left {
            Some(0) if !self.is_read() => {}
            Some(0) if !self.is_whole => self.cut = self.read_some(self.room(), say).err(),
            Some(0) | None => drop(self.read_some(PIECE, say)?),
            Some(left) => self.left = Some(left.saturating_sub(self.read_some(left, say)?)),
        }
        Ok(())
    }

    /// Whether what comes is read.
    fn is_read(&self) -> bool {
        self.left != Some(0) || self.room() > 0
    }

    /// How much of what comes later is read.
    fn room(&self) -> usize {
        match &self.target {
            _ if self.cut.is_some() => 0,
            Target::Keep(spool) if !self.is_whole => spool.room(),
            Target::Keep(_) | Target::Out | Target::Err | Target::Nowhere => usize::MAX,
        }
    }

    /// Where what has to go out goes, if there is anything.
    fn out(&self) -> Option<BorrowedFd<'_>> {
        match &self.target {
            _ if self.kept.is_none() && self.rest.is_empty() => None,
            Target::Err => Some(self.stderr.as_fd()),
            Target::Keep(_) | Target::Out | Target::Nowhere => Some(self.stdout.as_fd()),
        }
    }

    /// Writes no more than there is room for; whether there was any.
    fn write_some(&mut self) -> Result<bool, Fault> {
        let mut piece = [0; ROOM];
        let count = match &self.kept {
            Some((spool, at)) => spool.read_at(*at, &mut piece).map_err(cannot_keep)?,
            None => {
                let count = self.rest.len().min(ROOM);
                piece[..count].copy_from_slice(&self.rest[..count]);
                count
            }
        };
        if count == 0 {
            self.kept = None;
            return Ok(true);
        }
        let Some(out) = self.out() else { return Ok(true) };
        let written = match write_some(out, &piece[..count]) {
            Ok(written) => written,
            Err(error) => return self.cannot_write(error).map(|()| true),
        };
        match &mut self.kept {
            Some((_, at)) => *at += written as u64,
            None => drop(self.rest.drain(..written)),
        }
        Ok(written > 0)
    }

    fn cannot_write(&mut self, error: io::Error) -> Result<(), Fault> {
        self.give_up();
        match self.target {
            // Whoever read our stderr is gone; the command's outcome is not changed by that.
            Target::Err => Ok(()),
            // Nobody reads any more (`| head`): the command is to notice as if it wrote there itself.
            _ if error.kind() == io::ErrorKind::BrokenPipe => {
                self.nobody_reads = true;
                self.close()
            }
            _ => Err(talk::unwritten(&error)),
        }
    }

    /// From now on it is only read, so that who writes it is not held up; standard error is passed on yet.
    pub(super) fn is_in_vain(&mut self) {
        (self.search, self.unsearched) = (None, 0..0);
        if !matches!(self.target, Target::Err) {
            self.give_up();
            self.target = Target::Nowhere;
        }
    }

    /// What has still to go out does not.
    fn give_up(&mut self) {
        self.kept = None;
        self.rest = Vec::new();
    }

    /// Searches what was read, though not for long. Whether all of it was searched.
    fn search_some(&mut self) -> bool {
        let Some(search) = &mut self.search else { return true };
        let until = Instant::now() + AT_ONCE;
        while !self.unsearched.is_empty() {
            let bit = self.unsearched.start..self.unsearched.end.min(self.unsearched.start + search.bit);
            self.unsearched.start = bit.end;
            search.feed(&self.piece[bit]);
            if Instant::now() >= until {
                break;
            }
        }
        self.unsearched.is_empty()
    }

    /// Reads a piece of so many bytes at most, if there is one; how many it was. All of the last one was searched.
    fn read_some(&mut self, most: usize, say: &dyn Fn(&str)) -> Result<usize, Fault> {
        let most = most.min(self.piece.len());
        match self.pipe.read(&mut self.piece[..most]) {
            Ok(0) => self.is_open = false,
            Ok(count) => {
                let mut piece = std::mem::take(&mut self.piece);
                let passed = self.pass_on(&piece[..count], say);
                let is_full = count == piece.len();
                // Without memory for more it goes on with what it has.
                if is_full && piece.try_reserve_exact(PIECE - count).is_ok() {
                    piece.resize(PIECE, 0);
                }
                self.piece = piece;
                self.unsearched = if self.search.is_some() { 0..count } else { 0..0 };
                return passed.map(|()| count);
            }
            Err(error) if is_later(&error) => {}
            Err(error) => return Err(Fault::new(format!("cannot read the command's output: {}", plain(&error)))),
        }
        Ok(0)
    }

    /// Whether somebody may write to it yet, whatever of it is still to be read.
    pub(super) fn is_held(&self) -> bool {
        let mut fds = [PollFd::new(self.pipe.as_fd(), PollFlags::empty())];
        let is_seen = poll(&mut fds, PollTimeout::ZERO).is_ok();
        let is_left = is_seen && fds[0].revents().is_some_and(|seen| seen.contains(PollFlags::POLLHUP));
        self.is_open && !is_left
    }

    /// Whether it is read on, as somebody may write to it yet.
    pub(super) fn is_awaited(&self) -> bool {
        self.is_held() && self.is_read()
    }

    /// Whether the command has succeeded, as far as is known: then what comes later is its output, too.
    pub(super) fn is_of_success(&mut self, is_so: bool) {
        self.is_whole = is_so;
    }

    /// What was found in it so far.
    pub(super) fn found(&self) -> Found {
        self.search.as_ref().map(Search::found).unwrap_or_default()
    }

    /// The command has ended, or the moment after that: of what is written from then on there is no more.
    pub(super) fn is_over(&mut self) {
        let unread = if self.is_open { unread(&self.pipe) } else { 0 };
        let Some(left) = self.left else {
            self.left = Some(unread);
            return;
        };
        let more = left.max(unread.min(self.room()));
        self.is_short = unread > more || !self.is_read() && self.is_held();
        self.left = Some(more);
    }

    /// Reads what was left in the pipe when it was [over](Stream::is_over). It goes out, and is searched, while there is somebody who
    /// waits until there is room, or for that.
    pub(super) fn finish(
        mut self,
        say: &dyn Fn(&str),
        mut waits: impl FnMut(Option<BorrowedFd<'_>>) -> bool,
    ) -> Result<Heard, Fault> {
        loop {
            let mut look = Instant::now() + AT_ONCE;
            while let Some(out) = self.out() {
                let is_written = has_room(out, PollTimeout::ZERO) == Some(true) && self.write_some()?;
                // What always has room, as a file, is asked for no longer than anything else.
                let is_time = !is_written || Instant::now() >= look;
                let Some(out) = self.out().filter(|_| is_time) else { continue };
                if !waits((!is_written).then_some(out)) {
                    self.give_up();
                }
                look = Instant::now() + AT_ONCE;
            }
            while !self.search_some() {
                if !waits(None) {
                    (self.search, self.unsearched) = (None, 0..0);
                }
            }
            let left = self.left.unwrap_or_default();
            if !self.is_open || left == 0 {
                break;
            }
            match self.read_some(left, say)? {
                0 => break,
                count => self.left = Some(left.saturating_sub(count)),
            }
        }
        let output = match self.target {
            Target::Keep(spool) => Some(spool),
            Target::Out | Target::Err | Target::Nowhere => None,
        };
        let found = self.search.map(Search::finish).unwrap_or_default();
        Ok(Heard {
            found,
            output,
            cut: self.cut,
            is_short: self.is_short,
            nobody_reads: self.nobody_reads,
            went_out: self.went_out,
        })
    }

    fn close(&mut self) -> Result<(), Fault> {
        self.is_open = false;
        self.pipe =
            File::open("/dev/null").map_err(|error| Fault::new(format!("cannot open /dev/null: {}", plain(&error))))?;
        Ok(())
    }

    fn pass_on(&mut self, piece: &[u8], say: &dyn Fn(&str)) -> Result<(), Fault> {
        self.let_out_what_is_too_much(piece.len(), say)?;
        match &mut self.target {
            Target::Keep(spool) => {
                if let Kept::NearlyTooMuch(most) = spool.append(piece).map_err(cannot_keep)? {
                    say(&format!("half of the {most} of output that are kept until the attempt is judged are used"));
                }
                Ok(())
            }
            // Nobody hears it, as without relent; the command is to go on.
            Target::Err if !can_be_written_to(self.stderr.as_fd()) => Ok(()),
            Target::Nowhere => Ok(()),
            Target::Out | Target::Err => {
                if let Target::Out = self.target {
                    output::open().map(drop).map_err(|error| talk::unwritten(&error))?;
                }
                let none = |_| Fault::new("cannot pass on the command's output: there is no memory for it");
                self.rest.try_reserve(piece.len()).map_err(none)?;
                self.rest.extend_from_slice(piece);
                Ok(())
            }
        }
    }

    /// Begins to pass the output on as it comes, if it is about to be more than can be kept.
    fn let_out_what_is_too_much(&mut self, more: usize, say: &dyn Fn(&str)) -> Result<(), Fault> {
        let Target::Keep(spool) = &self.target else { return Ok(()) };
        if more <= spool.room() {
            return Ok(());
        }
        let most = spool.most();
        let spool = match std::mem::replace(&mut self.target, Target::Out) {
            Target::Keep(spool) => spool,
            Target::Out | Target::Err | Target::Nowhere => return Ok(()),
        };
        self.went_out = true;
        say(&format!(
            "the output is longer than the {most} that are kept (--max-kept): it goes out, and there is no other attempt"
        ));
        match output::open() {
            Ok(_) => self.kept = Some((spool, 0)),
            Err(error) => return Err(talk::unwritten(&error)),
        }
        Ok(())
    }
}

/// What was heard of a stream.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) found: Found,
    /// What was kept.
    pub(super) output: Option<Spool>,
    /// Why what came once the command had ended was left out, if it could not be kept.
    pub(super) cut: Option<Fault>,
    /// Whether some of it was left out, as there was no room for it.
    pub(super) is_short: bool,
    pub(super) nobody_reads: bool,
    pub(super) went_out: bool,
}

fn cannot_keep(error: io::Error) -> Fault {
    Fault::new(format!("cannot keep the command's output: {}", plain(&error)))
        .hint("name a larger folder in TMPDIR, or use --stream")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Write, pipe};

    #[test]
    fn what_waits_for_a_reader_is_held_by_nobody() {
        let patterns = Patterns { retry: None, until: None };
        let (reader, mut writer) = pipe().unwrap();
        writer.write_all(b"unread").unwrap();
        let stream = Stream::new(reader.into(), Target::Err, &patterns);
        assert!(stream.is_held());
        drop(writer);
        assert!(!stream.is_held());
    }
}
