//! What models of several machines share.

use loom::thread;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Wake,
};

/// A model with room for an upstream or an admission, which is more than loom's stacks have.
pub(crate) fn model(body: fn()) {
    const WORDS: usize = 1 << 16;
    loom::model(move || {
        let thread = thread::Builder::new().stack_size(WORDS).spawn(body).unwrap();
        thread.join().unwrap();
    });
}

/// Counts how often somebody is woken. What it tells is looked at when all threads have ended.
#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn woken(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
