//! What is asked of pipes, and made of those that are ours.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::{io, os::fd::AsFd};

/// How much stands in a pipe.
pub(super) fn unread(pipe: impl AsFd) -> usize {
    rustix::io::ioctl_fionread(pipe).ok().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// Reads and writes of a pipe that is ours alone return at once from now on.
pub(super) fn make_nonblocking(pipe: impl AsFd) {
    // It cannot fail on a pipe, and if it did, the poll before each read and write would still serve.
    let _ = fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
}

pub(super) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Makes a pipe so small that it has room exactly when it is empty.
#[cfg(target_os = "linux")]
pub(super) fn holds_one_piece(pipe: impl AsFd) -> bool {
    rustix::pipe::fcntl_setpipe_size(pipe, 1).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn holds_one_piece(_pipe: impl AsFd) -> bool {
    false
}
