//! How much a server gets done, measured where it must be at work: while there is a queue.

use super::measured::Measured;
use crate::core::word::Word;

/// The rate of completions while there is a queue, and whether the queue stands.
pub(super) struct Meter {
    /// When the interval began, plus 1; 0 is "no queue".
    started: Word,
    done: Word,
    /// The shortest wait of the interval.
    shortest: Word,
    pub(super) rate: Measured,
    pub(super) overloaded: Word,
}

/// Over how long it is measured.
const INTERVAL: u64 = 100_000_000;

/// A queue whose shortest wait is longer than this stands: 5 ms, as CoDel has it.
const TARGET: u64 = 5_000_000;

/// An interval with fewer completions goes on.
const LEAST_DONE: u64 = 16;

impl Meter {
    pub(super) const fn new() -> Meter {
        Meter {
            started: Word::new(0),
            done: Word::new(0),
            shortest: Word::new(u64::MAX),
            rate: Measured::new(),
            overloaded: Word::new(0),
        }
    }

    pub(super) fn completed(&self, now: u64, waited: u64, is_queued: bool, first: f64) {
        if !is_queued {
            self.overloaded.set(0);
            self.started.set(0);
            return;
        }
        let started = self.started.get();
        if started == 0 {
            self.begin(started, now);
            return;
        }
        let done = self.done.add(1) + 1;
        if waited < self.shortest.get() {
            self.shortest.set(waited);
        }
        let took = now.saturating_sub(started - 1);
        if took < INTERVAL || done < LEAST_DONE {
            return;
        }
        let shortest = self.shortest.get();
        if self.begin(started, now) {
            let sample = done as f64 * 1e9 / took as f64;
            let rate = self.rate.or(first);
            self.rate.set((rate + (sample - rate) / 4.0).clamp(1e-3, 1e9));
            self.overloaded.set(u64::from(shortest > TARGET));
        }
    }

    fn begin(&self, started: u64, now: u64) -> bool {
        let is_mine = self.started.swap_if(started, now.saturating_add(1));
        if is_mine {
            self.done.set(0);
            self.shortest.set(u64::MAX);
        }
        is_mine
    }
}
