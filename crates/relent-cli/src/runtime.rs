//! tokio's runtime, for all that wait. Where a process may have too few files for it, that is an error, where tokio would panic.

use std::{
    io,
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, PoisonError},
    thread,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
};

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

/// A runtime that is left to end by itself wherever it is dropped, also where nothing may be waited for.
pub(crate) struct Left(Option<Runtime>);

impl Left {
    pub(crate) fn new(runtime: Runtime) -> Left {
        Left(Some(runtime))
    }

    /// Runs it until this is over.
    pub(crate) fn block_on<F: Future>(&self, work: F) -> Option<F::Output> {
        self.0.as_ref().map(|runtime| runtime.block_on(work))
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        // Names that are being looked up are not waited for.
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Does what may wait on a thread of its own, which is left to end by itself if nobody waits for it any more. tokio's own way
/// panics where the system has no thread to give.
///
/// # Errors
///
/// There is no thread.
pub(crate) fn on_a_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<oneshot::Receiver<T>> {
    #[cfg(test)]
    if tests::NO_THREADS.get() {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let (tell, told) = oneshot::channel();
    let work = move || {
        let _ = tell.send(work());
    };
    thread::Builder::new().name(name.to_owned()).spawn(work)?;
    Ok(told)
}

/// The same for what has to be done in any case: here, if there is no thread. `None`: it has panicked.
pub(crate) async fn aside<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let kept = Arc::new(Mutex::new(Some(work)));
    let of_thread = kept.clone();
    match on_a_thread(name, move || taken(&of_thread).map(|work| work())) {
        Ok(told) => told.await.ok().flatten(),
        Err(_) => taken(&kept).map(|work| work()),
    }
}

fn taken<T>(kept: &Mutex<Option<T>>) -> Option<T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::ThreadId;

    thread_local! {
        /// Whether the system has no thread to give, for a test.
        pub(super) static NO_THREADS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }

    #[tokio::test]
    async fn what_has_to_be_done_is_done_without_a_thread() {
        let here = thread::current().id();
        let who = || aside("x", || thread::current().id());
        assert!(who().await.is_some_and(|who: ThreadId| who != here));
        NO_THREADS.set(true);
        assert!(who().await == Some(here) && on_a_thread("x", || ()).is_err());
        NO_THREADS.set(false);
    }

    #[tokio::test]
    async fn a_runtime_is_dropped_anywhere() {
        let left = Left::new(builder().unwrap().build().unwrap());
        drop(left);
    }
}
