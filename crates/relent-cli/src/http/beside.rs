//! A thread beside, for what servers say: one that never stops saying something must not keep limits of time and signals from
//! being heard.
//!
//! The client reads the head of an answer as long as there is something to read, hints (1xx) without end, too, and lets nothing
//! else run meanwhile. So the connection is read there; who waits for the answer does so here.

use crate::talk::{Fault, plain};
use std::{future, io, thread};
use tokio::runtime::{Builder, Handle};

/// The thread, and what runs on it.
#[derive(Clone, Debug)]
pub(super) struct Beside(Handle);

impl Beside {
    /// Starts it; it ends with the process.
    pub(super) fn start() -> Result<Beside, Fault> {
        let cannot = |error: io::Error| Fault::new(format!("cannot start: {}", plain(&error)));
        // Each piece of work is short of breath: the next connection is looked after even if this one has much to say.
        let runtime = Builder::new_current_thread().enable_all().event_interval(1).build().map_err(cannot)?;
        let handle = runtime.handle().clone();
        let work = move || runtime.block_on(future::pending::<()>());
        thread::Builder::new().name("connection".to_owned()).spawn(work).map_err(cannot)?;
        Ok(Beside(handle))
    }

    /// What comes of it; sockets that it opens, and what it starts by the way, belong to the thread.
    pub(super) async fn run<F: Future>(&self, work: F) -> F::Output {
        let mut work = Box::pin(work);
        future::poll_fn(move |context| {
            let _there = self.0.enter();
            work.as_mut().poll(context)
        })
        .await
    }
}
