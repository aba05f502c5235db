//! A thread beside for each connection, for what servers say: one that never stops saying something must keep neither limits of
//! time and signals from being heard, nor the next attempt from reaching another server.
//!
//! The client reads the head of an answer, hints (1xx) and the sizes of chunks as long as there is something to read, and lets
//! nothing else run meanwhile. So the request is sent and the connection read there, in the same order each time; who waits for the
//! answer does so here.

use crate::{runtime, talk::plain};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    thread,
};
use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{JoinError, JoinHandle},
};

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
        // Where there is no thread for it, it is dropped here.
        let runtime = runtime::Left::new(runtime);
        let work = move || {
            let _ = runtime.block_on(is_over);
        };
        thread::Builder::new().name("connection".to_owned()).spawn(work).map_err(cannot)?;
        Ok(Beside(Arc::new(Thread { runtime: handle, _wanted: wanted })))
    }

    /// What comes of it: it runs on the thread from now on, as does what it starts by the way, and ends with whoever waits for it.
    pub(super) fn run<F>(&self, work: F) -> impl Future<Output = F::Output> + use<F>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let task = Task(self.0.runtime.spawn(work));
        async {
            match task.await {
                Ok(output) => output,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // Nobody else ends it but the thread, when nobody has it any more.
                    Err(_) => std::future::pending().await,
                },
            }
        }
    }
}

/// What runs on the thread, for whoever waits for it.
struct Task<T>(JoinHandle<T>);

impl<T> Future for Task<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
