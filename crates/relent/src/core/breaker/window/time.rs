//! Windows of time: counts in slices, each under the tag of its generation and slice.

use super::{CELLS, Counted, Mark, Seen, Window};
use crate::core::word::Word;
use core::ops::Range;

/// Bits of the count in a cell; above it is the tag.
pub(in super::super) const COUNT_BITS: u32 = 24;
pub(in super::super) const MOST_COUNT: u64 = (1 << COUNT_BITS) - 1;
/// A cell counts no further. What is left above it is for threads that have added and not taken back yet.
pub(in super::super) const FULL: u64 = MOST_COUNT - u16::MAX as u64;

impl Window {
    #[inline]
    pub(super) fn count_success_in_time(
        &self,
        (slice, slices, stride): (u64, u64, usize),
        now: u64,
        generation: u32,
    ) -> Counted {
        if now.saturating_sub(self.started.get()) >= slice {
            return Counted::Not;
        }
        let slot = self.latest.get();
        let cell = &self.cells[slot as usize & (stride - 1) & (CELLS - 1)];
        let tag = tag(generation, slot);
        // One addition takes the cell's line from another thread once; a look before a compare-exchange takes it twice.
        // It may have been the cell of another slice or generation: then it counts there until it is taken back.
        let found = self.add_one(cell);
        if found >> COUNT_BITS != tag || found & MOST_COUNT >= FULL {
            take_back(cell, found >> COUNT_BITS);
            return Counted::Not;
        }
        if self.is_troubled(slot, slices, generation) {
            return self.look_at_time(slot, slices, stride, generation);
        }
        Counted::Quietly
    }

    #[cold]
    fn look_at_time(&self, slot: u64, slices: u64, stride: usize, generation: u32) -> Counted {
        Counted::Loudly(self.sum(slot, slices, stride, generation))
    }

    /// Whether something failed or was slow within the window that ends with this slice.
    #[inline]
    fn is_troubled(&self, slot: u64, slices: u64, generation: u32) -> bool {
        let last = self.trouble.get();
        last != 0 && last >> 40 == u64::from(generation) && trouble(slot, generation).saturating_sub(last) < slices
    }

    /// The slice that `now` falls into, never one before the newest; and whether it has just begun.
    #[inline]
    pub(super) fn slot(&self, slice: u64, lazy: bool, now: u64) -> (u64, bool) {
        let started = self.started.get();
        if now.saturating_sub(started) < slice && !(lazy && started == 0) {
            return (self.latest.get(), false);
        }
        if lazy {
            // Whoever turns the window adds one; a thread in between still counts in the slice before.
            let turned = self.started.swap_if(started, now.max(1));
            return (if turned { self.latest.add(1) + 1 } else { self.latest.get() }, turned);
        }
        let slot = now / slice;
        self.latest.raise(slot);
        self.started.raise(slot * slice);
        (self.latest.get(), true)
    }

    #[inline]
    pub(super) fn record_time(
        &self,
        slot: u64,
        slices: u64,
        stride: usize,
        mark: Mark,
        is_current: impl Fn() -> bool,
    ) -> bool {
        let at = slot as usize & (stride - 1);
        let tag = tag(mark.generation, slot);
        if !self.bump(at, tag, &is_current) {
            return false;
        }
        if mark.is_trouble() {
            if mark.failed {
                self.bump(stride + at, tag, &is_current);
            }
            if mark.slow {
                self.bump(2 * stride + at, tag, &is_current);
            }
            self.trouble.set(trouble(slot, mark.generation));
            return true;
        }
        self.is_troubled(slot, slices, mark.generation)
    }

    /// What the window holds that ends with the newest slice.
    #[inline]
    pub(super) fn sum(&self, slot: u64, slices: u64, stride: usize, generation: u32) -> Seen {
        if !self.alone {
            return self.sum_time(slot, slices, stride, generation);
        }
        // Nobody else writes, so the slices before stay as they are until the next one begins.
        let [which, calls, failures, slow] = &self.before;
        let key = trouble(slot, generation);
        if which.get() != key {
            let seen = self.sum_slices(slot, 1..slices, stride, generation);
            which.set(key);
            calls.set(seen.calls);
            failures.set(seen.failures);
            slow.set(seen.slow);
        }
        let before = Seen { calls: calls.get(), failures: failures.get(), slow: slow.get() };
        before.and(self.slice(slot, stride, generation)).bounded()
    }

    pub(super) fn sum_time(&self, slot: u64, slices: u64, stride: usize, generation: u32) -> Seen {
        self.sum_slices(slot, 0..slices, stride, generation).bounded()
    }

    /// The sum of slices of such an age.
    fn sum_slices(&self, slot: u64, ages: Range<u64>, stride: usize, generation: u32) -> Seen {
        let slots = ages.filter_map(|age| slot.checked_sub(age));
        slots.fold(Seen::default(), |seen, slot| seen.and(self.slice(slot, stride, generation)))
    }

    #[inline]
    fn slice(&self, slot: u64, stride: usize, generation: u32) -> Seen {
        let (at, tag) = (slot as usize & (stride - 1), tag(generation, slot));
        let count = |kind: usize| {
            let at = kind * stride + at;
            let word = if at < CELLS { self.cells[at].get() } else { 0 };
            if word >> COUNT_BITS == tag { word & MOST_COUNT } else { 0 }
        };
        Seen { calls: count(0), failures: count(1), slow: count(2) }
    }

    /// Counts one in a cell; false if the outcome is of a generation that is over.
    #[inline]
    fn bump(&self, at: usize, tag: u64, is_current: &impl Fn() -> bool) -> bool {
        let cell = &self.cells[at % CELLS];
        let mut found = cell.get();
        loop {
            let next = if found >> COUNT_BITS == tag {
                if found & MOST_COUNT >= FULL {
                    return true;
                }
                found + 1
            } else if is_current() {
                tag << COUNT_BITS | 1
            } else {
                return false;
            };
            match self.exchange(cell, found, next) {
                Ok(()) => return true,
                Err(other) => found = other,
            }
        }
    }
}

impl Seen {
    const fn and(self, more: Seen) -> Seen {
        Seen { calls: self.calls + more.calls, failures: self.failures + more.failures, slow: self.slow + more.slow }
    }

    /// Of two threads one may have counted a failure whose call the other has not counted yet.
    fn bounded(self) -> Seen {
        Seen { failures: self.failures.min(self.calls), slow: self.slow.min(self.calls), ..self }
    }
}

/// 24 bits of the generation and 40 of the slice, counted from 1: zero is no trouble, in the first slice too.
#[inline]
const fn trouble(slot: u64, generation: u32) -> u64 {
    (generation as u64) << 40 | slot.wrapping_add(1) & ((1 << 40) - 1)
}

/// 12 bits of the generation and 28 of the slice.
const fn tag(generation: u32, slot: u64) -> u64 {
    (generation as u64 & 0xFFF) << 28 | slot & 0xFFF_FFFF
}

/// Takes back one that was counted where something else is counted.
#[cold]
fn take_back(cell: &Word, tag: u64) {
    cell.update(|word| (word >> COUNT_BITS == tag && word & MOST_COUNT > 0).then(|| word - 1));
}
