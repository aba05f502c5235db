//! Two counts over a sliding window of time, which change in one step with what was decided by them.
//!
//! The window is cut into slots. The open slot is one atomic word: a gate bit, the low bits of the slot's number, and
//! its two counts. The sums of the closed slots stand still until the slot is turned, so a decision reads them, decides,
//! and changes the open slot by compare-exchange, which fails if anybody else counted or turned meanwhile. Turning
//! happens once a slot, closes the gate, and takes the same time after a second and after a year.
//!
//! What is counted in any case, a call, is one addition without a look before it: the look would fetch the cache's line to
//! read, the compare-exchange again to write. Additions do not heed the gate; who opens it carries over what was added
//! while it was closed, so that none is lost. One that comes while a slot turns counts in either of the two.
//!
//! Time is the latest that any caller told: a clock that steps back stays in the open slot until it has caught up.

use crate::core::{
    cells::PATIENCE,
    word::{Apart, Word, pause},
};

const GATE: u64 = 1 << 63;
const COUNT: u64 = (1 << 26) - 1;
/// One more of the first count.
const ONE: u64 = 1 << 26;
/// The first count goes no further. What is left above it is for threads that have added and not taken back yet.
const FULL: u64 = COUNT - u16::MAX as u64;
const TAG_SHIFT: u32 = 52;
const TAG: u64 = (1 << 11) - 1;

/// How a window is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The length of a slot, in nanoseconds.
    pub(crate) slot: u64,
    /// Of how many closed slots the first count remembers what happened, at most `R`.
    pub(crate) keep_a: usize,
    /// The same for the second count.
    pub(crate) keep_b: usize,
    /// Whether a slot starts when its predecessor is turned, as Finagle's do, and not at a multiple of its length.
    pub(crate) anchored: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) a: u64,
    pub(crate) b: u64,
}

impl Pair {
    pub(crate) const A: Pair = Pair { a: 1, b: 0 };
    pub(crate) const B: Pair = Pair { a: 0, b: 1 };

    const fn of_open(word: u64) -> Pair {
        Pair { a: (word >> 26) & COUNT, b: word & COUNT }
    }

    const fn of_closed(word: u64) -> Pair {
        Pair { a: word >> 32, b: word & u32::MAX as u64 }
    }

    const fn closed(self) -> u64 {
        self.a << 32 | self.b
    }
}

/// What is known of the last time: two counts, which change in one step with what was decided by them.
pub(super) trait History {
    /// Counts one more of the first count, whatever the sums. Not if a slot is full.
    fn add(&self, cut: &Cut, now: u64);

    /// Counts what `decide` makes of the sums, and says in which slot. `None` if `decide` says no, or a slot is full.
    fn count(&self, cut: &Cut, now: u64, decide: impl FnMut(Pair) -> Option<Pair>) -> Option<u64>;

    /// Takes one back from the second count of a slot, if it is still remembered.
    fn take_back(&self, cut: &Cut, number: u64);

    /// Forgets everything.
    fn reset(&self, cut: &Cut, now: u64);

    /// All that it remembers.
    fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word));

    /// What has been counted.
    fn read(&self, cut: &Cut, now: u64) -> Pair {
        let mut seen = Pair::default();
        self.count(cut, now, |sums| {
            seen = sums;
            None
        });
        seen
    }
}

/// A window of one open and up to `R` closed slots.
#[derive(Debug)]
pub(crate) struct Window<const R: usize> {
    /// The open slot; and a word for others, beside it: whoever counts in both fetches one line of the cache.
    open: Apart<(Word, Word)>,
    /// The first moment after the open slot.
    end: Word,
    /// The sums of the closed slots that are remembered.
    sums: Word,
    /// The number of the open slot.
    number: Word,
    closed: [Word; R],
}

impl<const R: usize> Window<R> {
    pub(crate) const fn new() -> Window<R> {
        Window {
            open: Apart((Word::new(0), Word::new(0))),
            end: Word::new(0),
            sums: Word::new(0),
            number: Word::new(0),
            closed: [const { Word::new(0) }; R],
        }
    }

    #[inline]
    fn open(&self) -> &Word {
        &self.open.0.0
    }

    /// A word that is none of the window's, in a line of the cache that whoever counts has fetched.
    #[inline]
    pub(super) fn beside(&self) -> &Word {
        &self.open.0.1
    }

    /// Takes over what another window counted, scaled by `new / old`; the same length keeps every slot.
    pub(crate) fn adopt(&self, cut: &Cut, other: &Window<R>, other_cut: &Cut) {
        let Some(theirs) = other.close_gate() else { return };
        if let Some(found) = self.close_gate() {
            let mut mine = found;
            let (open, sums) = (Pair::of_open(theirs), Pair::of_closed(other.sums.get()));
            self.number.set(other.number.get());
            self.end.set(other.end.get());
            if cut.slot == other_cut.slot {
                self.sums.set(sums.closed());
                for (to, from) in self.closed.iter().zip(&other.closed) {
                    to.set(from.get());
                }
                mine = theirs;
            } else {
                let scale = |count: u64| u128::from(count) * u128::from(cut.slot);
                let (old, most) = (u128::from(other_cut.slot), u128::from(COUNT));
                let a = (scale(sums.a + open.a) / old).min(most) as u64;
                let b = scale(sums.b + open.b).div_ceil(old).min(most) as u64;
                self.sums.set(0);
                self.closed.iter().for_each(|slot| slot.set(0));
                mine = (mine & (TAG << TAG_SHIFT)) | a << 26 | b;
            }
            self.open_gate(found, mine);
        }
        other.open_gate(theirs, theirs);
    }

    /// Closes the slots that are over.
    #[cold]
    #[inline(never)]
    fn turn(&self, cut: &Cut, now: u64) -> Option<()> {
        let found = self.close_gate()?;
        let (mut word, end) = (found, self.end.get());
        if now >= end {
            let steps = (now - end) / cut.slot + 1;
            let (first, ring) = (self.number.get(), R as u64);
            let number = first.wrapping_add(steps);
            for step in 0..steps.min(ring) {
                let counted = if step == 0 && steps <= ring { Pair::of_open(word).closed() } else { 0 };
                self.closed[(first.wrapping_add(step) % ring) as usize].set(counted);
            }
            let sum = |keep: usize, part: fn(Pair) -> u64| -> u64 {
                let ages = 1..=(keep as u64).min(number);
                ages.map(|age| part(Pair::of_closed(self.closed[((number - age) % ring) as usize].get()))).sum()
            };
            self.sums.set(Pair { a: sum(cut.keep_a, |p| p.a), b: sum(cut.keep_b, |p| p.b) }.closed());
            self.number.set(number);
            let next = if cut.anchored { now } else { end.saturating_add((steps - 1).saturating_mul(cut.slot)) };
            self.end.set(next.saturating_add(cut.slot));
            word = (number & TAG) << TAG_SHIFT;
        }
        self.open_gate(found, word);
        Some(())
    }

    /// Holds the open slot until [`open_gate`](Window::open_gate). Says what was in it.
    fn close_gate(&self) -> Option<u64> {
        let mut patience = PATIENCE;
        let mut word = self.open().get();
        loop {
            if word & GATE == 0 {
                match self.open().exchange(word, word | GATE) {
                    Ok(()) => return Some(word),
                    Err(other) => word = other,
                }
            } else {
                patience = patience.checked_sub(1)?;
                pause();
                word = self.open().get();
            }
        }
    }

    /// Lets go of the open slot, which was `held` and is now `word`, with what was added to it meanwhile.
    fn open_gate(&self, held: u64, word: u64) {
        self.open().update(|now| {
            let added = (now >> 26).wrapping_sub(held >> 26) & COUNT;
            let sum = (Pair::of_open(word).a + added).min(FULL);
            Some(word & !(COUNT << 26) | sum << 26)
        });
    }

    /// A slot that is full stays so.
    #[cold]
    fn take_back_what_is_too_much(&self) {
        // Not while the gate is closed: who opens it counts what was added, and cuts it.
        self.open().update(|word| (word & GATE == 0 && Pair::of_open(word).a > FULL).then(|| word - ONE));
    }
}

impl<const R: usize> History for Window<R> {
    #[inline]
    fn add(&self, cut: &Cut, now: u64) {
        let now = if now == u64::MAX { now - 1 } else { now };
        if now >= self.end.get() {
            // Should whoever turns it have been put to sleep, this counts in the slot that is open when it wakes.
            _ = self.turn(cut, now);
        }
        let found = self.open().add(ONE);
        if Pair::of_open(found).a >= FULL {
            self.take_back_what_is_too_much();
        }
    }

    /// `None`, too, if another thread was put to sleep while it turned the slot. A slot is full at 67 million.
    #[inline]
    fn count(&self, cut: &Cut, now: u64, mut decide: impl FnMut(Pair) -> Option<Pair>) -> Option<u64> {
        let now = if now == u64::MAX { now - 1 } else { now };
        let mut patience = PATIENCE;
        loop {
            if now >= self.end.get() {
                self.turn(cut, now)?;
            }
            let word = self.open().get();
            if word & GATE != 0 {
                patience = patience.checked_sub(1)?;
                pause();
                continue;
            }
            let (open, sums, number) = (Pair::of_open(word), Pair::of_closed(self.sums.get()), self.number.get());
            let add = decide(Pair { a: sums.a + open.a, b: sums.b + open.b })?;
            if open.a + add.a > FULL || open.b + add.b > COUNT {
                return None;
            }
            if self.open().exchange(word, word + (add.a << 26) + add.b).is_ok() {
                return Some(number);
            }
        }
    }

    fn take_back(&self, cut: &Cut, number: u64) {
        // Of the open slot it is one step, for which no gate is closed: whoever holds one may be put to sleep, and what others
        // take back meanwhile would stay spent.
        loop {
            let word = self.open().get();
            if word & GATE != 0 || self.number.get() != number {
                break;
            }
            if Pair::of_open(word).b == 0 || self.open().exchange(word, word - 1).is_ok() {
                return;
            }
        }
        let Some(held) = self.close_gate() else { return };
        let mut word = held;
        let age = self.number.get().wrapping_sub(number);
        if age == 0 {
            word -= u64::from(Pair::of_open(word).b > 0);
        } else if age <= cut.keep_b as u64 {
            let slot = &self.closed[(number % R as u64) as usize];
            let held = Pair::of_closed(slot.get());
            if held.b > 0 {
                slot.set(held.closed() - 1);
                self.sums.set(self.sums.get() - 1);
            }
        }
        self.open_gate(held, word);
    }

    /// Lets the open slot begin at `now`.
    fn reset(&self, cut: &Cut, now: u64) {
        let Some(word) = self.close_gate() else { return };
        let next = word.wrapping_add(1 << TAG_SHIFT) & (TAG << TAG_SHIFT);
        self.sums.set(0);
        self.closed.iter().for_each(|slot| slot.set(0));
        self.end.set(if cut.anchored {
            now.saturating_add(cut.slot)
        } else {
            (now / cut.slot + 1).saturating_mul(cut.slot)
        });
        self.number.set(self.number.get().wrapping_add(R as u64 + 1));
        self.open_gate(word, next);
    }

    fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        [self.open(), &self.end, &self.sums, &self.number].into_iter().chain(&self.closed).for_each(with);
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, feature = "std", not(loom)))]
mod tests;
