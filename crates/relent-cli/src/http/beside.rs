//! A thread beside for each connection, for what servers say: one that never stops saying something must keep neither limits of
//! time and signals from being heard, nor the next attempt from reaching another server.
//!
//! The client reads the head of an answer, hints (1xx) and the sizes of chunks as long as there is something to read, and lets
//! nothing else run meanwhile. So the connection is read there; who waits for the answer does so here.

use crate::{runtime, talk::plain};
use std::{io, sync::Arc, thread};
use tokio::{runtime::Handle, sync::oneshot};

/// The thread, and what runs on it, for as long as somebody has it: an attempt, or a response that is not read to its end.
#[derive(Clone, Debug)]
pub(super) struct Beside(Arc<Thread>);

#[derive(Debug)]
struct Thread {
    runtime: Handle,
    /// That it is closed tells the thread to end.
    _wanted: oneshot::Sender<()>,
}

impl Beside {
    /// Starts it; why not, if that is not possible.
    pub(super) fn start() -> Result<Beside, String> {
        let cannot = |error: io::Error| format!("cannot start a thread for the connection: {}", plain(&error));
        // Each piece of work is short of breath: sockets are looked after even if one has much to say.
        let runtime = runtime::builder().and_then(|mut builder| builder.event_interval(1).build()).map_err(cannot)?;
        let (wanted, is_over) = oneshot::channel::<()>();
        let handle = runtime.handle().clone();
        let work = move || {
            let _ = runtime.block_on(is_over);
            // Names that are being looked up are not waited for.
            runtime.shutdown_background();
        };
        thread::Builder::new().name("connection".to_owned()).spawn(work).map_err(cannot)?;
        Ok(Beside(Arc::new(Thread { runtime: handle, _wanted: wanted })))
    }

    /// What comes of it; sockets that it opens, and what it starts by the way, belong to the thread.
    pub(super) async fn run<F: Future>(&self, work: F) -> F::Output {
        let mut work = Box::pin(work);
        std::future::poll_fn(move |context| {
            let _there = self.0.runtime.enter();
            work.as_mut().poll(context)
        })
        .await
    }
}
