//! Bytes kept for later: in memory to a limit, then in a temporary file that has no name, up to a bound.

use crate::{arrived, size::Size};
use std::{cell::Cell, fs::File, io, os::unix::fs::FileExt};

/// How much is kept in memory.
const MEMORY: usize = 1 << 20;

/// The bytes so far.
#[derive(Debug, Default)]
pub(super) struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
    len: u64,
    /// The most that is kept.
    most: u64,
    is_given_up: bool,
    /// How much of it has surely come to the file.
    arrived: Cell<u64>,
}

/// What has become of bytes that were to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    All,
    /// All of them, but half of the bound is used now.
    NearlyTooMuch(Size),
    /// There are more than may be kept, now or before: they count and are forgotten.
    TooMuch(Size),
}

impl Spool {
    /// A spool that keeps at most this much.
    pub(super) fn new(most: u64) -> Spool {
        Spool { most, ..Spool::default() }
    }

    /// How many bytes there are, or were.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether there was more than may be kept.
    pub(super) fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// Adds bytes at the end. Those that are too many are not kept, and then it is all of them that are forgotten the
    /// next time: what there is can still be written out.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<Kept> {
        let before = self.len;
        let after = before.saturating_add(bytes.len() as u64);
        if self.is_given_up || after > self.most {
            let is_new = !std::mem::replace(&mut self.is_given_up, true);
            self.len = after;
            self.memory = Vec::new();
            self.file = None;
            return Ok(if is_new { Kept::TooMuch(Size(self.most)) } else { Kept::All });
        }
        if self.file.is_none() && !self.has_memory(bytes.len()) {
            let file = tempfile::tempfile()?;
            file.write_all_at(&self.memory, 0)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &self.file {
            Some(file) => file.write_all_at(bytes, self.len)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.len = after;
        let half = self.most / 2;
        let is_half = before < half && after >= half && half >= MEMORY as u64;
        Ok(if is_half { Kept::NearlyTooMuch(Size(self.most)) } else { Kept::All })
    }

    /// Whether so many more bytes are kept in memory: not where the system gives none.
    fn has_memory(&mut self, count: usize) -> bool {
        self.memory.len() + count <= MEMORY && self.memory.try_reserve(count).is_ok()
    }

    /// The most that is kept.
    pub(super) fn most(&self) -> Size {
        Size(self.most)
    }

    /// How many more bytes can be kept.
    pub(super) fn room(&self) -> usize {
        let room = if self.is_given_up { 0 } else { self.most.saturating_sub(self.len) };
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// Reads bytes from a place; 0 at the end.
    ///
    /// # Errors
    ///
    /// They cannot be read, or the file system has lost some of them.
    pub(super) fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        match &self.file {
            Some(file) if at < self.len => {
                if at + into.len() as u64 > self.arrived.get() && self.arrived.get() < self.len {
                    arrived::is_kept(file, self.len)?;
                    self.arrived.set(self.len);
                }
                match file.read_at(into, at)? {
                    0 if !into.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
                    count => Ok(count),
                }
            }
            Some(_) => Ok(0),
            None => {
                let rest = usize::try_from(at).ok().and_then(|at| self.memory.get(at..)).unwrap_or_default();
                let count = rest.len().min(into.len());
                into[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(chunks: usize, chunk: usize) -> (Spool, Vec<u8>) {
        let (mut spool, mut all) = (Spool::new(u64::MAX), Vec::new());
        for k in 0..chunks {
            let bytes: Vec<u8> = (0..chunk).map(|i| (i * 7 + k) as u8).collect();
            assert_eq!(spool.append(&bytes).unwrap(), Kept::All);
            all.extend(bytes);
        }
        (spool, all)
    }

    #[test]
    fn gives_back_what_it_got_from_memory_and_from_disk() {
        for (chunks, chunk) in [(0, 0), (3, 100), (30, 50_001), (1, MEMORY), (1, MEMORY + 1)] {
            let (spool, all) = filled(chunks, chunk);
            assert_eq!(spool.file.is_some(), all.len() > MEMORY);
            assert_eq!(spool.len(), all.len() as u64);
            let (mut out, mut piece) = (Vec::new(), [0; 1 << 16]);
            while let count @ 1.. = spool.read_at(out.len() as u64, &mut piece).unwrap() {
                out.extend_from_slice(&piece[..count]);
            }
            assert!(out == all, "{chunks} chunks of {chunk}");
        }
    }

    #[test]
    fn reads_from_any_place() {
        let (spool, all) = filled(30, 50_001);
        let mut buffer = [0; 10];
        assert_eq!(spool.read_at(1_200_000, &mut buffer).unwrap(), 10);
        assert_eq!(buffer[..], all[1_200_000..1_200_010]);
        assert_eq!(spool.read_at(all.len() as u64, &mut buffer).unwrap(), 0);
        let (spool, _) = filled(1, 5);
        assert_eq!(spool.read_at(3, &mut buffer).unwrap(), 2);
        assert_eq!(spool.read_at(u64::MAX, &mut buffer).unwrap(), 0);
    }

    #[test]
    fn what_its_file_system_has_lost_is_an_error() {
        let (mut spool, _) = filled(30, 50_001);
        let mut buffer = [0; 10];
        assert!(arrived::tests::refused(|| spool.read_at(0, &mut buffer)).is_err());
        assert_eq!(spool.read_at(10, &mut buffer).unwrap(), 10);
        spool.file.as_ref().unwrap().set_len(1_400_000).unwrap();
        assert!(spool.read_at(1_400_000, &mut buffer).is_err());
        // What came after that was looked at.
        spool.append(b"more").unwrap();
        assert!(arrived::tests::refused(|| spool.read_at(spool.len() - 4, &mut buffer)).is_err());
    }

    #[test]
    fn what_is_too_much_is_said_once_and_takes_no_room() {
        let mut spool = Spool::new(4 << 20);
        let piece = vec![1; 1 << 20];
        let kept: Vec<Kept> = (0..6).map(|_| spool.append(&piece).unwrap()).collect();
        let (half, most) = (Kept::NearlyTooMuch(Size(4 << 20)), Kept::TooMuch(Size(4 << 20)));
        assert_eq!(kept, [Kept::All, half, Kept::All, Kept::All, most, Kept::All]);
        assert!(spool.is_given_up() && spool.memory.is_empty() && spool.file.is_none());
    }
}
