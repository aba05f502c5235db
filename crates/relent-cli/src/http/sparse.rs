//! Copies a file as it is on the disk: what is a hole stays one, so that the copy takes no more room than what it is of.

use rustix::{
    fs::{SeekFrom as Where, seek},
    io::Errno,
};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

/// How much is copied at once.
const PIECE: u64 = 1 << 20;

/// Copies so much from the start of a file to the start of an empty one, and asks before each piece whether to go on; whether all
/// of it is there now.
pub(super) fn copy(from: &mut File, to: &mut File, length: u64, goes_on: impl Fn() -> bool) -> io::Result<bool> {
    let mut at = 0;
    while let Some((begin, end)) = data(from, at, length)? {
        from.seek(SeekFrom::Start(begin))?;
        to.seek(SeekFrom::Start(begin))?;
        at = begin;
        while at < end {
            if !goes_on() {
                return Ok(false);
            }
            match io::copy(&mut from.by_ref().take(PIECE.min(end - at)), to)? {
                0 => return Err(shorter()),
                copied => at += copied,
            }
        }
    }
    if from.metadata()?.len() < length {
        return Err(shorter());
    }
    to.set_len(length)?;
    Ok(true)
}

/// Where there is something next, and where that ends, within this length.
fn data(file: &File, at: u64, length: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= length {
        return Ok(None);
    }
    let begin = match seek(file, Where::Data(at)) {
        Ok(begin) => begin,
        Err(Errno::NXIO) => return Ok(None),
        // Where nobody knows of holes there is something everywhere.
        Err(Errno::INVAL) => return Ok(Some((at, length))),
        Err(error) => return Err(error.into()),
    };
    let end = match seek(file, Where::Hole(begin)) {
        Ok(end) => end,
        Err(Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok((begin < length).then(|| (begin, end.min(length))))
}

fn shorter() -> io::Error {
    io::Error::other("it became shorter while it was copied")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        cell::Cell,
        os::unix::fs::{FileExt, MetadataExt},
    };

    fn files() -> (File, File) {
        (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap())
    }

    #[test]
    fn holes_stay_holes() {
        const LENGTH: u64 = (64 << 20) + 3;
        let (mut from, mut to) = files();
        from.set_len(LENGTH).unwrap();
        for at in [0, 20 << 20, (40 << 20) + 5] {
            from.write_all_at(b"data", at).unwrap();
        }
        assert!(copy(&mut from, &mut to, LENGTH, || true).unwrap());
        let mut bytes = [Vec::new(), Vec::new()];
        for (file, bytes) in [&mut from, &mut to].into_iter().zip(&mut bytes) {
            file.rewind().and_then(|()| file.read_to_end(bytes)).unwrap();
        }
        assert!(bytes[0] == bytes[1], "the same is in both");
        let taken = to.metadata().unwrap().blocks() * 512;
        assert!(taken < 4 << 20, "{taken} bytes on disk");
        // Nothing but a hole, and nothing at all.
        for length in [1 << 40, 0] {
            let (mut from, mut to) = files();
            from.set_len(length).unwrap();
            assert!(copy(&mut from, &mut to, length, || true).unwrap());
            let data = to.metadata().unwrap();
            assert_eq!((data.len(), data.blocks()), (length, 0));
        }
    }

    #[test]
    fn it_can_be_stopped_between_pieces() {
        let (mut from, mut to) = files();
        from.write_all_at(&vec![1; 3 << 20], 0).unwrap();
        let asked = Cell::new(0);
        assert!(!copy(&mut from, &mut to, 3 << 20, || asked.replace(asked.get() + 1) < 2).unwrap());
        assert_eq!(to.metadata().unwrap().len(), 2 << 20);
    }

    #[test]
    fn what_becomes_shorter_is_no_hole() {
        for length in [0, 10] {
            let (mut from, mut to) = files();
            from.write_all_at(&vec![1; length], 0).unwrap();
            assert!(copy(&mut from, &mut to, 20, || true).is_err(), "{length}");
        }
    }
}
