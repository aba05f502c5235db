//! tokio's runtime, for all that wait. Where a process may have too few files for it, that is an error, where tokio would panic.

use std::{io, os::unix::net::UnixStream};
use tokio::runtime::Builder;

/// A runtime of one thread, which knows time and sockets, about to be made.
///
/// # Errors
///
/// There are too few descriptors.
pub(crate) fn builder() -> io::Result<Builder> {
    // It takes five, and the first of a process takes for granted the pair by which it hears of signals.
    let pair = UnixStream::pair()?;
    let _more = [pair.0.try_clone()?, pair.0.try_clone()?, pair.0.try_clone()?];
    let mut builder = Builder::new_current_thread();
    builder.enable_all();
    Ok(builder)
}
