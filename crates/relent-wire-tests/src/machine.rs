//! Work of an exact capacity: one piece after the other, each of so long. It knows no timer's rounding, so that what a
//! server gets done can be held against what it could have.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// Does one piece of work after the other. What was begun is done, whether or not somebody still waits for it.
#[derive(Debug)]
pub struct Machine {
    piece: Duration,
    free_at: Mutex<Instant>,
    begun: AtomicU64,
}

impl Machine {
    /// So many pieces a second.
    pub fn new(capacity: f64) -> Machine {
        Machine {
            piece: Duration::from_secs_f64(1.0 / capacity),
            free_at: Mutex::new(Instant::now()),
            begun: AtomicU64::new(0),
        }
    }

    /// Waits until a piece is done that was begun behind all others.
    pub async fn work(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let done = {
            let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            *free_at = (*free_at).max(Instant::now()) + self.piece;
            *free_at
        };
        sleep_until(done).await;
    }

    /// How many pieces were begun.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}
