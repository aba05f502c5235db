//! The last calls, or the last time, in cells of fixed number: how many were there, failed, were slow.
//!
//! Every cell carries the generation of the breaker that it was written in. So a new state begins with an empty window
//! without anything being cleared, and an outcome of an old state can never be counted in a new one.
//!
//! Why not a running sum: two threads that leave it wrong once leave it wrong for ever. Sums are taken when a failure
//! (or the call that makes the volume full) asks for them, and the cells are few.

pub(super) mod calls;
pub(super) mod time;

use self::calls::Ring;
use super::settings::{BreakerQuirks, BreakerSettings, BreakerWindow};
use crate::core::{
    time::{Timestamp, nanos},
    word::{Apart, Word},
};

const CELLS: usize = 64;
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
    Calls(Ring),
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
            BreakerWindow::Calls(most) if shares => Shape::Calls(Ring::new(most, least_calls(settings))),
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

impl Shape {
    /// Whether what the cells of the one hold means the same in the other.
    pub(super) fn is_like(self, other: Shape) -> bool {
        match (self, other) {
            (Shape::None, Shape::None) => true,
            (Shape::Calls(ring), Shape::Calls(other)) => ring.holds_as_many(other),
            (
                Shape::Time { slice, slices, stride, lazy, cleared },
                Shape::Time { slice: a, slices: b, stride: c, lazy: d, cleared: e },
            ) => (slice, slices, stride, lazy, cleared) == (a, b, c, d, e),
            (Shape::OneCall { slice }, Shape::OneCall { slice: other }) => slice == other,
            _ => false,
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
    /// Calls: the generation, and how many came. Time: the newest slice.
    pub(super) latest: Apart<Word>,
    /// When the newest slice began.
    started: Word,
    /// Generation (24 bits) and slice (40) of the last failure or slow call.
    trouble: Word,
    /// Of one thread: which slice is the newest, and what those before it hold.
    before: [Word; 4],
    pub(super) cells: Apart<[Word; CELLS]>,
}

impl Window {
    pub(super) const fn new() -> Window {
        Window {
            alone: false,
            latest: Apart(Word::new(0)),
            started: Word::new(0),
            trouble: Word::new(0),
            before: [const { Word::new(0) }; 4],
            cells: Apart([const { Word::new(0) }; CELLS]),
        }
    }

    /// What is remembered in this shape, with slow calls or without.
    pub(super) fn words<'a>(&'a self, shape: Shape, counts_slow: bool, with: &mut impl FnMut(&'a Word)) {
        let slow = usize::from(counts_slow);
        match shape {
            Shape::None => {}
            Shape::Calls(ring) => {
                with(&self.latest);
                self.cells_of_calls(ring, counts_slow).for_each(with);
            }
            Shape::Time { stride, .. } => {
                [&self.latest.0, &self.started, &self.trouble].into_iter().for_each(&mut *with);
                self.cells[..((2 + slow) * stride).min(CELLS)].iter().for_each(&mut *with);
                if self.alone {
                    self.before.iter().for_each(with);
                }
            }
            Shape::OneCall { .. } => self.words_of_one_call(with),
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
            Shape::Calls(ring) => Recorded { seen: self.record_call(ring, mark, is_current), cleared: false },
            Shape::OneCall { slice } => {
                Recorded { seen: self.record_of_one_call(slice, now.as_nanos(), mark), cleared: false }
            }
            Shape::Time { slice, slices, stride, lazy, cleared } => {
                let (slot, turned) = self.slot(slice, lazy, now.as_nanos());
                let worth_a_look = self.record_time(slot, slices, stride, mark, is_current);
                let seen = worth_a_look.then(|| self.sum(slot, slices, stride, mark.generation));
                Recorded { seen, cleared: cleared && turned }
            }
        }
    }

    /// Counts a success of the breaker's own generation where nothing else is to be done: no slice turns, and no other
    /// generation is in the cell. Almost every outcome is that.
    #[inline]
    pub(super) fn count_success(&self, shape: &Shape, now: Timestamp, generation: u32) -> Counted {
        match *shape {
            Shape::Calls(ring) => self.count_success_of_calls(ring, generation),
            Shape::Time { slice, slices, stride, lazy: false, .. } => {
                self.count_success_in_time((slice, slices, stride), now.as_nanos(), generation)
            }
            _ => Counted::Not,
        }
    }

    pub(super) fn seen(&self, shape: Shape, generation: u32, now: Timestamp) -> Seen {
        match shape {
            Shape::None => Seen::default(),
            Shape::Calls(ring) => self.sum_calls(ring, generation),
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
        [&self.latest.0, &self.started, &self.trouble]
            .into_iter()
            .chain(self.cells.iter())
            .for_each(|word| _ = word.get());
    }

    /// As if so many had come in the generation that is counted.
    #[cfg(all(test, any(loom, feature = "std")))]
    pub(super) fn came(&self, outcomes: u64) {
        self.latest.update(|latest| Some(calls::with_came(latest, outcomes)));
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
}
