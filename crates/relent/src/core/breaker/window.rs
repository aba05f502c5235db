//! The last calls, or the last time, in cells of fixed number: how many were there, failed, were slow.
//!
//! Every cell carries the generation of the breaker that it was written in. So a new state begins with an empty window
//! without anything being cleared, and an outcome of an old state can never be counted in a new one.
//!
//! Why not a running sum: two threads that leave it wrong once leave it wrong for ever. Sums are taken when a failure
//! (or the call that makes the volume full) asks for them, and the cells are few.

use super::settings::{BreakerQuirks, BreakerSettings, BreakerWindow};
use crate::core::{
    time::{Timestamp, nanos},
    word::{Apart, Word},
};

const CELLS: usize = 64;
/// Outcomes in a cell of a window of calls: its lower half. The upper half is the generation.
const BITS: u32 = 32;
/// Where the second kind of bits begins.
const HALF: usize = CELLS / 2;
/// How a window of calls says where it is: 24 bits of generation, 20 of the count, 20 of the next place.
const GENERATION_AT: u32 = 40;
const COUNT_AT: u32 = 20;
const PLACE: u64 = (1 << COUNT_AT) - 1;
/// Bits of the count in a cell of a window of time; above it is the tag.
pub(super) const COUNT_BITS: u32 = 24;
pub(super) const MOST_COUNT: u64 = (1 << COUNT_BITS) - 1;
/// A cell counts no further. What is left above it is for threads that have added and not taken back yet.
pub(super) const FULL: u64 = MOST_COUNT - u16::MAX as u64;

/// What a window has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) slow: u64,
}

/// An outcome, as a window sees it.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) generation: u32,
    pub(super) failed: bool,
    pub(super) slow: bool,
}

impl Mark {
    const fn is_trouble(self) -> bool {
        self.failed || self.slow
    }
}

/// What recording an outcome has shown.
pub(super) struct Recorded {
    /// What the window holds now, if that may trip.
    pub(super) seen: Option<Seen>,
    /// The window was cleared as a whole, by time.
    pub(super) cleared: bool,
}

/// What became of a success that was counted in the shortest way there is.
pub(super) enum Counted {
    /// It was, and can trip nothing.
    Quietly,
    /// It was, and the window may trip: this is what it holds.
    Loudly(Seen),
    /// It was not: [`Window::record`] must do it.
    Not,
}

/// How a window is laid out in its cells, worked out once.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    None,
    Calls {
        most: u32,
        least: u32,
    },
    Time {
        slice: u64,
        slices: u64,
        stride: usize,
        lazy: bool,
        cleared: bool,
    },
    /// As [`Time`](Shape::Time), of one call.
    OneCall {
        slice: u64,
    },
}

impl Shape {
    pub(super) const fn of(settings: &BreakerSettings) -> Shape {
        let shares = settings.share.is_some() || settings.failures.is_some() || settings.slow_after.is_some();
        let cleared = matches!(settings.quirks, BreakerQuirks::Gobreaker);
        match settings.window {
            BreakerWindow::Calls(most) if shares => Shape::Calls { most, least: least_calls(settings) },
            BreakerWindow::Time(time) if shares || cleared => Shape::of_time(settings, nanos(time)),
            _ => Shape::None,
        }
    }

    const fn of_time(settings: &BreakerSettings, time: u64) -> Shape {
        match settings.quirks {
            BreakerQuirks::None => {
                Shape::Time { slice: time / 10, slices: 10, stride: 16, lazy: false, cleared: false }
            }
            BreakerQuirks::Gobreaker => {
                Shape::Time { slice: time.saturating_add(1), slices: 1, stride: 1, lazy: true, cleared: true }
            }
            BreakerQuirks::Cockatiel => {
                let (most, stride) = if settings.slow_after.is_some() { (16, 16) } else { (32, 32) };
                let wanted = time.div_ceil(1_000_000_000);
                let slices = if wanted < 5 {
                    5
                } else if wanted > most {
                    most
                } else {
                    wanted
                };
                // Whole milliseconds, rounded half up, as its clock has them.
                let slice = (time / 1_000_000 * 2 + slices) / (2 * slices) * 1_000_000;
                Shape::Time { slice: if slice == 0 { 1 } else { slice }, slices, stride, lazy: true, cleared: false }
            }
        }
    }
}

/// From how many calls on a share means something.
pub(super) const fn least_calls(settings: &BreakerSettings) -> u32 {
    match (settings.min_calls, settings.window) {
        (Some(least), _) => least,
        (None, BreakerWindow::Calls(calls)) if calls < 20 => calls,
        (None, _) => 20,
    }
}

#[derive(Debug)]
pub(super) struct Window {
    /// Whether it is used by one thread, so that nobody comes in between.
    pub(super) alone: bool,
    /// Calls: the generation (24 bits), how many are in it (20) and where the next goes (20). Time: the newest slice.
    pub(super) latest: Word,
    /// When the newest slice began.
    started: Word,
    /// Generation (24 bits) and slice (40) of the last failure or slow call.
    trouble: Word,
    pub(super) cells: Apart<[Word; CELLS]>,
}

impl Window {
    pub(super) const fn new() -> Window {
        Window {
            alone: false,
            latest: Word::new(0),
            started: Word::new(0),
            trouble: Word::new(0),
            cells: Apart([const { Word::new(0) }; CELLS]),
        }
    }

    /// What is remembered in this shape, with slow calls or without.
    #[inline]
    pub(super) fn words<'a>(&'a self, shape: Shape, counts_slow: bool, with: &mut impl FnMut(&'a Word)) {
        let slow = usize::from(counts_slow);
        match shape {
            Shape::None => {}
            Shape::Calls { most, .. } => {
                let (failed, slow) = self.cells.split_at(HALF);
                let cells = (most as usize).div_ceil(BITS as usize).min(HALF);
                with(&self.latest);
                failed[..cells].iter().chain(if counts_slow { &slow[..cells] } else { &[] }).for_each(with);
            }
            Shape::Time { stride, .. } => {
                [&self.latest, &self.started, &self.trouble].into_iter().for_each(&mut *with);
                self.cells[..((2 + slow) * stride).min(CELLS)].iter().for_each(with);
            }
            Shape::OneCall { .. } => [&self.latest, &self.cells[0], &self.cells[1]].into_iter().for_each(with),
        }
    }

    /// A new state begins: a window that is cleared as a whole starts now.
    pub(super) fn restart(&self, shape: Shape, now: Timestamp) {
        if let Shape::Time { lazy: true, cleared, .. } = shape {
            self.started.set(if cleared { now.as_nanos() } else { 0 });
        }
    }

    /// Counts an outcome of the generation that `is_current` says is still the breaker's.
    #[inline]
    pub(super) fn record(&self, shape: Shape, now: Timestamp, mark: Mark, is_current: impl Fn() -> bool) -> Recorded {
        match shape {
            Shape::None => Recorded { seen: None, cleared: false },
            Shape::Calls { most, least } => {
                let seen = self.record_call(most, least, mark, is_current);
                Recorded { seen, cleared: false }
            }
            Shape::OneCall { slice } => {
                Recorded { seen: self.record_of_one_call(slice, now.as_nanos(), mark), cleared: false }
            }
            Shape::Time { slice, slices, stride, lazy, cleared } => {
                let (slot, turned) = self.slot(slice, lazy, now.as_nanos());
                let worth_a_look = self.record_time(slot, slices, stride, mark, is_current);
                let seen = worth_a_look.then(|| self.sum_time(slot, slices, stride, mark.generation));
                Recorded { seen, cleared: cleared && turned }
            }
        }
    }

    /// Counts a success of the breaker's own generation where nothing else is to be done: no slice turns, and no other
    /// generation is in the cell. Almost every outcome is that.
    #[inline]
    pub(super) fn count_success(&self, shape: &Shape, now: Timestamp, generation: u32) -> Counted {
        match *shape {
            Shape::Calls { most, least } => self.count_success_of_calls(most, least, generation),
            Shape::Time { slice, slices, stride, lazy: false, .. } => {
                self.count_success_in_time((slice, slices, stride), now.as_nanos(), generation)
            }
            _ => Counted::Not,
        }
    }

    pub(super) fn seen(&self, shape: Shape, generation: u32, now: Timestamp) -> Seen {
        match shape {
            Shape::None => Seen::default(),
            Shape::Calls { .. } => self.sum_calls(generation),
            Shape::OneCall { slice } => self.seen_of_one_call(slice, generation, now.as_nanos()),
            Shape::Time { slice, slices, stride, lazy, .. } => {
                let latest = self.latest.get();
                let slot = if lazy { latest } else { (now.as_nanos() / slice).max(latest) };
                self.sum_time(slot, slices, stride, generation)
            }
        }
    }

    /// Reads every word once.
    #[cfg(all(test, loom))]
    pub(super) fn touch(&self) {
        [&self.latest, &self.started, &self.trouble]
            .into_iter()
            .chain(self.cells.iter())
            .for_each(|word| _ = word.get());
    }

    /// The same contents as another window of the same shape.
    pub(super) fn copy(&self, other: &Window) {
        self.latest.set(other.latest.get());
        self.started.set(other.started.get());
        self.trouble.set(other.trouble.get());
        for (to, from) in self.cells.iter().zip(other.cells.iter()) {
            to.set(from.get());
        }
    }

    /// As [`Word::exchange`].
    #[inline]
    fn exchange(&self, word: &Word, old: u64, new: u64) -> Result<(), u64> {
        if self.alone {
            word.set(new);
            return Ok(());
        }
        word.exchange(old, new)
    }

    /// As [`Word::add`].
    #[inline]
    fn add_one(&self, word: &Word) -> u64 {
        if self.alone {
            let old = word.get();
            word.set(old.wrapping_add(1));
            return old;
        }
        word.add(1)
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

    // Windows of calls.

    #[inline]
    fn count_success_of_calls(&self, most: u32, least: u32, generation: u32) -> Counted {
        let mut found = self.latest.get();
        let (place, count) = loop {
            if found >> GENERATION_AT != u64::from(generation) {
                return Counted::Not;
            }
            let (next, count) = following(found, most);
            match self.exchange(&self.latest, found, next) {
                Ok(()) => break ((found & PLACE) as usize, count),
                Err(other) => found = other,
            }
        };
        self.put(place, 0, false, generation, &|| true);
        self.put(place, HALF, false, generation, &|| true);
        if count == u64::from(least) { self.look_at_calls(generation) } else { Counted::Quietly }
    }

    #[cold]
    fn look_at_calls(&self, generation: u32) -> Counted {
        Counted::Loudly(self.sum_calls(generation))
    }

    fn record_call(&self, most: u32, least: u32, mark: Mark, is_current: impl Fn() -> bool) -> Option<Seen> {
        let generation = u64::from(mark.generation);
        let mut found = self.latest.get();
        let (place, count) = loop {
            let mut from = found;
            if found >> GENERATION_AT != generation {
                if !is_current() {
                    return None;
                }
                from = generation << GENERATION_AT;
            }
            let (next, count) = following(from, most);
            match self.exchange(&self.latest, found, next) {
                Ok(()) => break ((from & PLACE) as usize, count),
                Err(other) => found = other,
            }
        };
        self.put(place, 0, mark.failed, mark.generation, &is_current);
        self.put(place, HALF, mark.slow, mark.generation, &is_current);
        // A success lowers every share, so it can trip only by making the volume full.
        let is_filling = count == u64::from(least);
        (mark.is_trouble() || is_filling).then(|| self.sum_calls(mark.generation))
    }

    #[inline]
    fn put(&self, place: usize, from: usize, set: bool, generation: u32, is_current: &impl Fn() -> bool) {
        let cell = &self.cells[(from + place / BITS as usize) % CELLS];
        let bit = 1u64 << (place as u32 % BITS);
        let mut found = cell.get();
        loop {
            let mut bits = found & u64::from(u32::MAX);
            if found >> BITS != u64::from(generation) {
                if !set || !is_current() {
                    return;
                }
                bits = 0;
            }
            let wanted = if set { bits | bit } else { bits & !bit };
            let word = u64::from(generation) << BITS | wanted;
            if word == found {
                return;
            }
            match self.exchange(cell, found, word) {
                Ok(()) => return,
                Err(other) => found = other,
            }
        }
    }

    fn sum_calls(&self, generation: u32) -> Seen {
        let latest = self.latest.get();
        if latest >> GENERATION_AT != u64::from(generation) {
            return Seen::default();
        }
        let calls = latest >> COUNT_AT & PLACE;
        let cells = (calls as usize).div_ceil(BITS as usize).min(HALF);
        let ones = |from: usize| {
            self.cells[from..from + cells]
                .iter()
                .map(Word::get)
                .filter(|word| word >> BITS == u64::from(generation))
                .map(|word| u64::from((word as u32).count_ones()))
                .sum::<u64>()
        };
        Seen { calls, failures: ones(0).min(calls), slow: ones(HALF).min(calls) }
    }

    // Windows of time.

    #[inline]
    fn count_success_in_time(&self, (slice, slices, stride): (u64, u64, usize), now: u64, generation: u32) -> Counted {
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
        Counted::Loudly(self.sum_time(slot, slices, stride, generation))
    }

    /// Whether something failed or was slow within the window that ends with this slice.
    #[inline]
    fn is_troubled(&self, slot: u64, slices: u64, generation: u32) -> bool {
        let last = self.trouble.get();
        last != 0 && last >> 40 == u64::from(generation) && trouble(slot, generation).saturating_sub(last) < slices
    }

    /// The slice that `now` falls into, never one before the newest; and whether it has just begun.
    #[inline]
    fn slot(&self, slice: u64, lazy: bool, now: u64) -> (u64, bool) {
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
    fn record_time(&self, slot: u64, slices: u64, stride: usize, mark: Mark, is_current: impl Fn() -> bool) -> bool {
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

    fn sum_time(&self, slot: u64, slices: u64, stride: usize, generation: u32) -> Seen {
        let mut seen = Seen::default();
        for back in 0..slices.min(slot.saturating_add(1)) {
            let slot = slot - back;
            let (at, tag) = (slot as usize & (stride - 1), tag(generation, slot));
            let count = |kind: usize| {
                let at = kind * stride + at;
                let word = if at < CELLS { self.cells[at].get() } else { 0 };
                if word >> COUNT_BITS == tag { word & MOST_COUNT } else { 0 }
            };
            seen.calls += count(0);
            seen.failures += count(1);
            seen.slow += count(2);
        }
        Seen { failures: seen.failures.min(seen.calls), slow: seen.slow.min(seen.calls), ..seen }
    }
}

/// A window of calls with one more in it, and how many it then holds.
#[inline]
fn following(found: u64, most: u32) -> (u64, u64) {
    let (count, place) = (found >> COUNT_AT & PLACE, found & PLACE);
    let next = if place + 1 >= u64::from(most) { 0 } else { place + 1 };
    let count = (count + 1).min(u64::from(most));
    (found >> GENERATION_AT << GENERATION_AT | count << COUNT_AT | next, count)
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
