//! Whether what was written has arrived: some file systems (NFS, CIFS, FUSE, with a quota or a full disk) take each write and say only when
//! a file is closed that there was no room for it. No disk is waited for where the system itself would not wait for it at the end.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd},
};

/// Looks whether what was written to a file, by this descriptor or another, has arrived: by closing a second one of it, which tells what
/// closing the first would.
///
/// # Errors
///
/// It has not. Where there is no second descriptor, that is not known.
pub(crate) fn check(file: impl AsFd) -> io::Result<()> {
    undisturbed(|| close_another(file.as_fd()))
}

/// Looks whether all that was written to a temporary file is there to be read back.
///
/// # Errors
///
/// It is not.
pub(crate) fn is_kept(file: &File, length: u64) -> io::Result<()> {
    check(file)?;
    match file.metadata()?.len() < length {
        true => Err(io::Error::other("its file system has lost a part of it")),
        false => Ok(()),
    }
}

fn close_another(file: BorrowedFd<'_>) -> io::Result<()> {
    #[cfg(test)]
    if let Some(why) = tests::REFUSES.get() {
        return Err(why.into());
    }
    match file.try_clone_to_owned() {
        Ok(another) => Ok(nix::unistd::close(another)?),
        Err(_) => Ok(()),
    }
}

/// A signal that came meanwhile says nothing of what arrives.
fn undisturbed(mut close: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match close() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            closed => return closed,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    thread_local! {
        /// Why closing is refused, for a test.
        pub(crate) static REFUSES: std::cell::Cell<Option<io::ErrorKind>> = const { std::cell::Cell::new(None) };
    }

    /// What comes of this where a file system says so late that it has no room.
    pub(crate) fn refused<T>(work: impl FnOnce() -> T) -> T {
        refused_for(io::ErrorKind::QuotaExceeded, work)
    }

    /// The same for another reason.
    pub(crate) fn refused_for<T>(why: io::ErrorKind, work: impl FnOnce() -> T) -> T {
        REFUSES.set(Some(why));
        let done = work();
        REFUSES.set(None);
        done
    }

    #[test]
    fn what_closing_says_is_heard_and_signals_are_none_of_that() {
        let mut answers = vec![Err(io::ErrorKind::QuotaExceeded), Err(io::ErrorKind::Interrupted)];
        let mut close = || answers.pop().unwrap_or(Ok(())).map_err(io::Error::from);
        assert_eq!(undisturbed(&mut close).unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        assert!(undisturbed(close).is_ok());
        let file = tempfile::tempfile().unwrap();
        assert!(check(&file).is_ok() && check(&file).is_ok(), "the file itself stays open");
        assert!(file.metadata().is_ok());
    }

    #[test]
    fn what_is_shorter_than_what_was_written_was_lost() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10).unwrap();
        assert!(is_kept(&file, 10).is_ok() && is_kept(&file, 11).is_err());
        assert!(refused(|| is_kept(&file, 10)).is_err());
    }
}
