//! Who waits at an upstream and who listens to it: what needs `std`, and is therefore apart from the machines.
//!
//! Nobody is called, woken, or dropped under a lock.

use crate::{UpstreamChange, sync::wake_all};
use core::{fmt, task::Waker};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A name that was read from somewhere.
pub(crate) type Text = Arc<str>;

pub(crate) type Listener = Arc<dyn Fn(&UpstreamChange<'_>) + Send + Sync>;

/// Listeners, and the wakers of those who queue, the oldest first.
pub(crate) struct Lobby {
    listeners: Mutex<Vec<Listener>>,
    queue: Mutex<Queue>,
}

struct Queue {
    tickets: u64,
    waiting: BTreeMap<u64, Waker>,
}

/// What is behind the locks is whole at every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lobby {
    pub(crate) const fn new() -> Lobby {
        let queue = Queue { tickets: 0, waiting: BTreeMap::new() };
        Lobby { listeners: Mutex::new(Vec::new()), queue: Mutex::new(queue) }
    }

    pub(crate) fn listen(&self, listener: Listener) {
        lock(&self.listeners).push(listener);
    }

    pub(crate) fn tell(&self, change: &UpstreamChange<'_>) {
        let listeners = lock(&self.listeners).clone();
        for listener in listeners {
            listener(change);
        }
    }

    /// Those who listen to the old one listen to this one too.
    pub(crate) fn adopt(&self, old: &Lobby) {
        let listeners = lock(&old.listeners).clone();
        lock(&self.listeners).extend(listeners);
    }

    /// Stands in the queue, first with ticket 0; who comes back with their ticket has their old place.
    pub(crate) fn enter(&self, ticket: u64, waker: &Waker) -> u64 {
        let waker = waker.clone();
        let (ticket, old) = {
            let mut queue = lock(&self.queue);
            queue.tickets += u64::from(ticket == 0);
            let ticket = if ticket == 0 { queue.tickets } else { ticket };
            (ticket, queue.waiting.insert(ticket, waker))
        };
        drop(old);
        ticket
    }

    pub(crate) fn leave(&self, ticket: u64) {
        if ticket == 0 {
            return;
        }
        let waker = lock(&self.queue).waiting.remove(&ticket);
        drop(waker);
    }

    pub(crate) fn wake(&self, newest: bool) {
        let woken = {
            let mut queue = lock(&self.queue);
            if newest { queue.waiting.pop_last() } else { queue.waiting.pop_first() }
        };
        // A waker that panics must not keep a permit from coming back.
        drop(wake_all(woken.map(|(_, waker)| waker)));
    }
}

impl fmt::Debug for Lobby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lobby").finish_non_exhaustive()
    }
}
