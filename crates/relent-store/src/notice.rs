//! What an operator should know of, told once.

use crate::Error;
use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Something that an operator should know of. Shown in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The store does not answer, or lost the connection. Told once until it is [`Back`](Notice::Back).
    Away(Error),
    /// The store answers again.
    Back,
    /// Somebody came with an old fence and was refused: it slept through the end of what it held.
    Fenced,
    /// A lease of this process could not be renewed in time, or was taken over.
    LeaseLost(String),
    /// Shared state of an upstream is not shared for now; this process goes on alone with its share.
    Alone(String),
    /// Shared state of an upstream is shared again.
    Together(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Away(error) => write!(f, "the store is away: {error}"),
            Notice::Back => f.write_str("the store is back"),
            Notice::Fenced => f.write_str("somebody who had lost a claim was refused"),
            Notice::LeaseLost(name) => write!(f, "the lease {name} was lost"),
            Notice::Alone(upstream) => write!(f, "upstream {upstream}: the store is away, going on alone"),
            Notice::Together(upstream) => write!(f, "upstream {upstream}: the store is back"),
        }
    }
}

type Listener = Arc<dyn Fn(&Notice) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Notices {
    listeners: Mutex<Vec<Listener>>,
    fenced: AtomicU64,
}

impl Notices {
    pub(crate) fn listen(&self, listener: Listener) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    pub(crate) fn tell(&self, notice: &Notice) {
        if *notice == Notice::Fenced {
            self.fenced.fetch_add(1, Ordering::Relaxed);
        }
        // A listener may listen or be slow: it is not called under the lock.
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in listeners {
            listener(notice);
        }
    }

    pub(crate) fn fenced(&self) -> u64 {
        self.fenced.load(Ordering::Relaxed)
    }
}
