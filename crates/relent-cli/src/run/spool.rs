//! Bytes kept for later: in memory to a limit, then in a temporary file that has no name.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// How much is kept in memory.
const MEMORY: usize = 1 << 20;

/// The bytes so far.
#[derive(Debug, Default)]
pub(super) struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
    len: u64,
}

impl Spool {
    /// How many bytes there are.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Adds bytes at the end.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() && self.memory.len() + bytes.len() > MEMORY {
            let file = nameless()?;
            file.write_all_at(&self.memory, 0)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &self.file {
            Some(file) => file.write_all_at(bytes, self.len)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Reads bytes from a place; 0 at the end.
    pub(super) fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        match &self.file {
            Some(file) => file.read_at(into, at),
            None => {
                let rest = usize::try_from(at).ok().and_then(|at| self.memory.get(at..)).unwrap_or_default();
                let count = rest.len().min(into.len());
                into[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
        }
    }

    /// Writes everything out.
    pub(super) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        if self.file.is_none() {
            return out.write_all(&self.memory);
        }
        let mut buffer = vec![0; 1 << 16];
        let mut at = 0;
        loop {
            let count = self.read_at(at, &mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            out.write_all(&buffer[..count])?;
            at += count as u64;
        }
    }
}

/// A new file in the temporary folder, unlinked at once: it is gone with the process, however that ends.
fn nameless() -> io::Result<File> {
    let (file, path) = private_file("spool")?;
    fs::remove_file(path)?;
    Ok(file)
}

/// A new file in the temporary folder that only this user can open.
pub(super) fn private_file(purpose: &str) -> io::Result<(File, PathBuf)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    const TRIES: u32 = 100;
    let folder = env::temp_dir();
    let mut last = io::ErrorKind::AlreadyExists.into();
    for _ in 0..TRIES {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("relent-{purpose}-{}-{count}", process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(chunks: usize, chunk: usize) -> (Spool, Vec<u8>) {
        let (mut spool, mut all) = (Spool::default(), Vec::new());
        for k in 0..chunks {
            let bytes: Vec<u8> = (0..chunk).map(|i| (i * 7 + k) as u8).collect();
            spool.append(&bytes).unwrap();
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
            let mut out = Vec::new();
            spool.write_to(&mut out).unwrap();
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
}
