//! What ends a request from outside: a signal, a reader that goes away.

use crate::{ear::Ear, runtime::on_a_thread};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::Signal as Number,
};
use std::{
    fs, future, io,
    os::{fd::AsFd, unix::fs::FileTypeExt},
    task::Poll,
};
use tokio::signal::unix::{SignalKind, signal};

/// Ends when the user or the system interrupts, with the signal and what to exit with. A signal that was ignored when
/// we started (`nohup`) stays ignored. What the ear heard before counts, too.
pub(super) async fn interrupted(ear: &Ear) -> (&'static str, u8) {
    let caught = |number: Number| signal(SignalKind::from_raw(number as i32)).ok().map(|signal| (number, signal));
    let mut all: Vec<_> = Ear::heeded().filter_map(caught).collect();
    if let Some(signal) = ear.heard() {
        return named(signal);
    }
    future::poll_fn(|cx| {
        let came = all.iter_mut().find_map(|(number, signal)| signal.poll_recv(cx).is_ready().then_some(*number));
        came.map_or(Poll::Pending, |number| Poll::Ready(named(number)))
    })
    .await
}

/// A signal's name, and what a process exits with that it ended.
fn named(signal: Number) -> (&'static str, u8) {
    (signal.as_str(), u8::try_from(128 + signal as i32).unwrap_or(u8::MAX))
}

/// Ends when nobody reads from stdout any more; never where that cannot be known.
pub(super) async fn reader_gone() {
    let stdout = io::stdout();
    let copy = stdout.as_fd().try_clone_to_owned().map(fs::File::from);
    let is_pipe =
        |file: &fs::File| file.metadata().is_ok_and(|data| data.file_type().is_fifo() || data.file_type().is_socket());
    let Some(pipe) = copy.ok().filter(is_pipe) else { return future::pending().await };
    let is_gone = on_a_thread("reader", move || {
        let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
        let polled = poll(&mut fds, PollTimeout::NONE);
        let ended = PollFlags::POLLERR | PollFlags::POLLHUP;
        polled.is_ok() && fds[0].revents().is_some_and(|events| events.intersects(ended))
    });
    let is_gone = match is_gone {
        Ok(is_gone) => is_gone.await.unwrap_or_default(),
        Err(_) => false,
    };
    if !is_gone {
        future::pending().await
    }
}
