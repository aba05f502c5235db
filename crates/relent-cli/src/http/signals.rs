//! What ends a request from outside: a signal, a reader that goes away.

use crate::{ear::Ear, ignored::Ignored, runtime::on_a_thread};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::Signal as Number,
};
use std::{
    fs, future, io,
    os::{fd::AsFd, unix::fs::FileTypeExt},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ends when the user or the system interrupts, with the signal and what to exit with. A signal that was ignored when
/// we started (`nohup`) stays ignored. What the ear heard before counts, too.
pub(super) async fn interrupted(ear: &Ear) -> (&'static str, u8) {
    let ignored = Ignored::now();
    let caught = |number: Number| match ignored.has(number) {
        true => None,
        false => signal(SignalKind::from_raw(number as i32)).ok(),
    };
    let (mut hangup, mut interrupt) = (caught(Number::SIGHUP), caught(Number::SIGINT));
    let (mut quit, mut terminate) = (caught(Number::SIGQUIT), caught(Number::SIGTERM));
    if let Some(signal) = ear.heard() {
        return named(signal);
    }
    tokio::select! {
        () = received(&mut hangup) => named(Number::SIGHUP),
        () = received(&mut interrupt) => named(Number::SIGINT),
        () = received(&mut quit) => named(Number::SIGQUIT),
        () = received(&mut terminate) => named(Number::SIGTERM),
    }
}

/// A signal's name, and what a process exits with that it ended.
fn named(signal: Number) -> (&'static str, u8) {
    (signal.as_str(), u8::try_from(128 + signal as i32).unwrap_or(u8::MAX))
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => future::pending().await,
    }
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
