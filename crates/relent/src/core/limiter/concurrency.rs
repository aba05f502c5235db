//! So many attempts in flight, and if asked for a queue before them, bounded in number and in time.
//!
//! The queue is the caller's: it holds whatever wakes those who wait. The machine counts them, says how long each may
//! wait, and who is next: the oldest, or under overload the newest, because the oldest have waited so long that nobody
//! needs their answer any more. Overload is a queue that has not been empty for 100 ms. Source: Maurer, "Fail at
//! Scale", ACM Queue 2015 (adaptive LIFO).

use super::answer::{LimitAnswer, LimitNext};
use crate::core::{time::Timestamp, word::Word};
use core::time::Duration;

const OVERLOAD: u64 = 100_000_000;
const IN_FLIGHT: u64 = u32::MAX as u64;
const QUEUED: u64 = 1 << 32;

#[derive(Debug)]
pub(super) struct Concurrency {
    limit: u64,
    queue: u64,
    longest: Duration,
    /// Queued in the upper half, in flight in the lower.
    load: Word,
    /// Since when there has been a queue.
    queue_since: Word,
}

impl Concurrency {
    pub(super) const fn new(limit: u32, queue: u32, longest: Duration) -> Concurrency {
        Concurrency { limit: limit as u64, queue: queue as u64, longest, load: Word::new(0), queue_since: Word::new(0) }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        with(&self.load);
        with(&self.queue_since);
    }

    #[inline]
    pub(super) fn acquire(&self, now: Timestamp) -> LimitAnswer {
        let mut load = self.load.get();
        loop {
            let (new, admit) = if load & IN_FLIGHT < self.limit {
                (load + 1, LimitAnswer::Granted)
            } else if load >> 32 < self.queue {
                (load + QUEUED, LimitAnswer::Queue(self.longest))
            } else {
                return LimitAnswer::Shed;
            };
            match self.load.exchange(load, new) {
                Ok(()) => {
                    if admit != LimitAnswer::Granted && load < QUEUED {
                        self.queue_since.set(now.as_nanos());
                    }
                    return admit;
                }
                Err(other) => load = other,
            }
        }
    }

    /// From the queue into flight, if there is room.
    pub(super) fn enter(&self) -> bool {
        self.load.update(|load| (load & IN_FLIGHT < self.limit).then(|| leaves(load) + 1)).is_some()
    }

    /// Out of the queue.
    pub(super) fn leave(&self) {
        self.load.update(|load| (load >= QUEUED).then(|| load - QUEUED));
    }

    #[inline]
    pub(super) fn release(&self) {
        self.load.update(|load| (load & IN_FLIGHT > 0).then(|| load - 1));
    }

    pub(super) fn next(&self, now: Timestamp) -> Option<LimitNext> {
        let load = self.load.get();
        if load < QUEUED || load & IN_FLIGHT >= self.limit {
            return None;
        }
        let lasted = now.as_nanos().saturating_sub(self.queue_since.get());
        Some(if lasted >= OVERLOAD { LimitNext::Newest } else { LimitNext::Oldest })
    }

    pub(super) fn in_flight(&self) -> u32 {
        (self.load.get() & IN_FLIGHT) as u32
    }

    pub(super) fn queued(&self) -> u32 {
        (self.load.get() >> 32) as u32
    }

    /// Who is in flight stays in flight, and comes back here.
    pub(super) fn adopt(&self, old: &Concurrency) {
        self.load.set(old.load.get());
        self.queue_since.set(old.queue_since.get());
    }

    pub(super) fn reset(&self) {
        self.load.set(0);
    }
}

const fn leaves(load: u64) -> u64 {
    if load >= QUEUED { load - QUEUED } else { load }
}
