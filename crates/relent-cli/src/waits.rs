//! Reading and writing that wait, also where somebody has said of what is used that it does not (`O_NONBLOCK`): the program that has started
//! relent, or one that had the same terminal before.
//!
//! It is not said otherwise, since all that share it would see that.

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use std::{
    fs::File,
    io::{self, Read, Write},
    os::{fd::AsFd, unix::fs::FileTypeExt},
    thread,
    time::Duration,
};

/// Something that is read from, or written to, as if it waited.
pub(crate) struct Waits<T>(pub(crate) T);

impl<T: Read + AsFd> Read for Waits<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = waiting(&mut self.0, PollFlags::POLLIN, |from| from.read(into))?;
        if count == 0 && !into.is_empty() {
            has_ended(&self.0)?;
        }
        Ok(count)
    }
}

impl<T: Write + AsFd> Write for Waits<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        waiting(&mut self.0, PollFlags::POLLOUT, |to| to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        waiting(&mut self.0, PollFlags::POLLOUT, Write::flush)
    }
}

/// Whether what is read has ended where that says so: a terminal that went away does, too.
///
/// # Errors
///
/// It has not: there may have been more.
pub(crate) fn has_ended(input: impl AsFd) -> io::Result<()> {
    let mut fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    let has_hung_up = poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0)
        && fds[0].revents().is_some_and(|seen| seen.contains(PollFlags::POLLHUP));
    let is_device = || {
        let file = input.as_fd().try_clone_to_owned().map(File::from);
        file.and_then(|file| file.metadata()).is_ok_and(|data| data.file_type().is_char_device())
    };
    match has_hung_up && is_device() {
        true => Err(io::Error::other("the terminal has gone away")),
        false => Ok(()),
    }
}

fn waiting<T: AsFd, D>(with: &mut T, ready: PollFlags, mut act: impl FnMut(&mut T) -> io::Result<D>) -> io::Result<D> {
    let mut pause = Duration::ZERO;
    loop {
        match act(with) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
        // It may be ready, but not for as much as this, or somebody else came first.
        thread::sleep(pause);
        pause = Duration::from_millis(1);
        match poll(&mut [PollFd::new(with.as_fd(), ready)], PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, OFlag, fcntl};

    /// A pipe of which neither end waits.
    fn pipe() -> (io::PipeReader, io::PipeWriter) {
        let (reader, writer) = io::pipe().unwrap();
        for end in [reader.as_fd(), writer.as_fd()] {
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        }
        (reader, writer)
    }

    #[test]
    fn what_does_not_wait_is_waited_for() {
        let (mut reader, mut writer) = pipe();
        assert_eq!(reader.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let bytes: Vec<u8> = (0..300_000u32).map(|number| number as u8).collect();
        assert_eq!(writer.write_all(&bytes).unwrap_err().kind(), io::ErrorKind::WouldBlock);

        let (reader, writer) = pipe();
        thread::scope(|scope| {
            let read = scope.spawn(move || {
                let mut read = Vec::new();
                Waits(reader).read_to_end(&mut read).map(|_| read)
            });
            scope.spawn(|| {
                let mut writer = Waits(writer);
                writer.write_all(&bytes).and_then(|()| writer.flush()).unwrap();
            });
            assert_eq!(read.join().unwrap().unwrap(), bytes);
        });
    }

    #[test]
    fn who_went_away_is_not_waited_for() {
        let (reader, mut writer) = pipe();
        while writer.write(&[0; 4096]).is_ok() {}
        let gone = thread::spawn(|| Waits(writer).write(&[0]).unwrap_err().kind());
        drop(reader);
        assert_eq!(gone.join().unwrap(), io::ErrorKind::BrokenPipe);
    }

    /// What was typed before may be a part of it.
    #[test]
    fn a_terminal_that_has_gone_away_has_not_ended() {
        /// As reading says of one that was hung up.
        struct Nothing(std::os::fd::OwnedFd);

        impl Read for Nothing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Ok(0)
            }
        }

        impl AsFd for Nothing {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.0.as_fd()
            }
        }

        let terminal = nix::pty::openpty(None, None).unwrap();
        let mut here = Waits(Nothing(terminal.slave));
        assert_eq!(here.read(&mut [0]).unwrap(), 0, "the end was typed");
        drop(terminal.master);
        assert_eq!(here.read(&mut []).unwrap(), 0);
        assert_eq!(here.read(&mut [0]).unwrap_err().to_string(), "the terminal has gone away");
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        assert_eq!(Waits(reader).read(&mut [0]).unwrap(), 0);
    }
}
