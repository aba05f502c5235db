//! Reading what is there, and waiting for nobody: that something can be read does not say that nobody else comes first.
//!
//! Standard input may be shared, with other processes and by a named pipe with other users. Who reads it between our look and
//! our read would have that read wait for more, and no `--timeout` and no signal counts in a read that waits.

use nix::errno::Errno;
use rustix::net::{RecvFlags, recv};
use std::{
    fs::File,
    io::{self, PipeReader, PipeWriter, Read, pipe},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::FileTypeExt,
    },
};

/// Something that is read without waiting: an error ([`io::ErrorKind::WouldBlock`]) if there is nothing now.
///
/// Its own settings stay as they are (`O_NONBLOCK`): those who share it would see them.
pub(crate) struct AtOnce {
    file: File,
    way: Way,
}

/// How something is read without waiting.
enum Way {
    /// What is in a pipe is moved into a pipe of our own.
    Moved(PipeReader, PipeWriter),
    Socket,
    /// It waits for nobody, or cannot be read in another way.
    Plain,
}

impl AtOnce {
    pub(crate) fn new(file: File) -> AtOnce {
        let way = match file.metadata().map(|data| data.file_type()) {
            Ok(kind) if kind.is_socket() => Way::Socket,
            Ok(kind) if kind.is_fifo() && cfg!(target_os = "linux") => {
                pipe().map_or(Way::Plain, |(reader, writer)| Way::Moved(reader, writer))
            }
            _ => Way::Plain,
        };
        AtOnce { file, way }
    }
}

impl AsFd for AtOnce {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Read for AtOnce {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.way {
            Way::Socket => Ok(recv(&self.file, into, RecvFlags::DONTWAIT)?.1),
            Way::Moved(reader, writer) => match moved(&self.file, writer, into.len()) {
                Ok(count) => reader.read_exact(&mut into[..count]).map(|()| count),
                // A system that moves nothing.
                Err(Errno::EINVAL | Errno::ENOSYS | Errno::EPERM) => {
                    self.way = Way::Plain;
                    self.file.read(into)
                }
                Err(error) => Err(error.into()),
            },
            Way::Plain => self.file.read(into),
        }
    }
}

/// Moves what is in a pipe now into another, which is empty; how much it was.
#[cfg(target_os = "linux")]
fn moved(from: &File, to: &PipeWriter, most: usize) -> nix::Result<usize> {
    use rustix::pipe::{SpliceFlags, splice};
    splice(from, None, to, None, most, SpliceFlags::NONBLOCK).map_err(|error| Errno::from_raw(error.raw_os_error()))
}

#[cfg(not(target_os = "linux"))]
fn moved(_from: &File, _to: &PipeWriter, _most: usize) -> nix::Result<usize> {
    Err(Errno::ENOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Write, os::unix::net::UnixStream};

    /// One that is empty is told from one that has ended; what is there comes in order, and what is not asked for stays.
    #[test]
    fn what_is_there_is_read_and_nobody_is_waited_for() {
        let (reader, writer) = pipe().unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        let ends: [(std::os::fd::OwnedFd, Box<dyn Write>); 2] =
            [(reader.into(), Box::new(writer)), (near.into(), Box::new(far))];
        for (end, mut other) in ends {
            let shared = File::from(end.try_clone().unwrap());
            let mut source = AtOnce::new(end.into());
            let mut piece = [0; 4];
            assert_eq!(source.read(&mut piece).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            other.write_all(b"012345").unwrap();
            assert_eq!((source.read(&mut piece).unwrap(), &piece), (4, b"0123"));
            assert_eq!((&shared).read(&mut piece).unwrap(), 2, "somebody else comes first");
            assert_eq!(source.read(&mut piece).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            drop(other);
            assert_eq!(source.read(&mut piece).unwrap(), 0);
            let flags = nix::fcntl::fcntl(&shared, nix::fcntl::FcntlArg::F_GETFL).unwrap();
            assert_eq!(flags & nix::libc::O_NONBLOCK, 0, "others would see that");
        }
    }

    /// As much as a pipe holds, whatever the pieces that it was written in.
    #[cfg(target_os = "linux")]
    #[test]
    fn all_of_a_full_pipe_is_read() {
        let (reader, mut writer) = pipe().unwrap();
        let all: Vec<u8> = (0..30_000u32).map(|at| (at % 251) as u8).collect();
        for piece in all.chunks(4099) {
            writer.write_all(piece).unwrap();
        }
        let mut source = AtOnce::new(File::from(std::os::fd::OwnedFd::from(reader)));
        let (mut read, mut piece) = (Vec::new(), [0; 1000]);
        while let Ok(count @ 1..) = source.read(&mut piece) {
            read.extend_from_slice(&piece[..count]);
        }
        assert!(read == all, "{} of {}", read.len(), all.len());
    }
}
