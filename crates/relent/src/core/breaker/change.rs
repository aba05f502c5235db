//! How the state of a breaker changes, and for how long it is open.
//!
//! A change of state is claimed by one compare-exchange that marks the word as busy; its winner writes down the times
//! and unmarks it. Nobody waits for that: who finds a busy word takes it as the new state and changes nothing.

use super::{
    Breaker,
    settings::BreakerQuirks,
    state::{BreakerState, Packed},
    window::Mark,
};
use crate::core::{
    rng::scale,
    time::{Timestamp, nanos},
    word::pause,
};

/// A breaker went from one state to another.
///
/// ```
/// use relent::{Breaker, BreakerState, Timestamp};
/// use std::time::Duration;
///
/// let bank = Breaker::consecutive(1);
/// let permit = bank.permit(Timestamp::ZERO, 0).unwrap();
/// let change = permit.failed(Timestamp::ZERO, Duration::ZERO, 0).unwrap();
/// assert_eq!((change.from, change.to), (BreakerState::Closed, BreakerState::Open));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerChange {
    /// The state before.
    pub from: BreakerState,
    /// The state now.
    pub to: BreakerState,
}

impl Breaker {
    /// A probe that failed, or was slow, may be among those that close it.
    pub(super) fn close(&self, word: Packed, now: Timestamp, failed: bool, slow: bool) -> Option<BreakerChange> {
        let to = if self.settings.ramp.is_zero() { BreakerState::Closed } else { BreakerState::Ramp };
        let generation = self.change(word, to, 0, now, Timestamp::MAX, None)?;
        if self.settings.quirks == BreakerQuirks::Cockatiel {
            let mark = Mark { generation, failed, slow };
            self.window.record(self.shape, now, mark, || self.packed().generation() == generation);
        }
        Some(BreakerChange { from: word.state(), to })
    }

    pub(super) fn trip(&self, word: Packed, now: Timestamp, draw: u64) -> Option<BreakerChange> {
        let now = now.max(Timestamp::from_nanos(self.since.get()));
        let level = self.next_level(word, now);
        let strictly = u64::from(self.settings.quirks == BreakerQuirks::Gobreaker);
        let until = now.plus_nanos(self.open_nanos(level, draw).saturating_add(strictly));
        self.change(word, BreakerState::Open, 0, now, until, Some(level))?;
        Some(BreakerChange { from: word.state(), to: BreakerState::Open })
    }

    /// The first trip is of level 0, and so is one after a long time closed; every other grows.
    fn next_level(&self, word: Packed, now: Timestamp) -> u32 {
        let closed_for = now.since(Timestamp::from_nanos(self.since.get()));
        let was_closed = word.state() != BreakerState::HalfOpen;
        if self.level.get() == 0 || was_closed && nanos(closed_for) >= self.longest_open() {
            return 0;
        }
        self.level().saturating_add(1)
    }

    /// The level of the last trip.
    fn level(&self) -> u32 {
        u32::try_from(self.level.get().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    fn longest_open(&self) -> u64 {
        let most = self.settings.open_at_most.map_or(nanos(self.settings.open_for).saturating_mul(10), nanos);
        most.max(nanos(self.settings.open_for))
    }

    pub(super) fn open_nanos(&self, level: u32, draw: u64) -> u64 {
        let settings = &self.settings;
        let first = nanos(settings.open_for);
        let mut base = first;
        if settings.factor > 1.0 && level > 0 {
            // The jitter keeps its width at the longest open time: it bounds the range and does not clip the draw.
            let most = (self.longest_open() as f64 / (1.0 + settings.jitter)) as u64;
            base = growth(first, settings.factor, level, most).max(first);
        }
        base.saturating_add(scale(draw, (base as f64 * settings.jitter) as u64))
    }

    /// Changes the word, if it still is the old one.
    #[inline]
    pub(super) fn swap_if(&self, old: u64, new: u64) -> bool {
        if self.alone {
            self.word.set(new);
            return true;
        }
        self.word.swap_if(old, new)
    }

    /// Claims a change from `word`, writes it down, and says the new generation; `None` if somebody else was first.
    pub(super) fn change(
        &self,
        word: Packed,
        to: BreakerState,
        counts: u64,
        now: Timestamp,
        until: Timestamp,
        level: Option<u32>,
    ) -> Option<u32> {
        let next = Packed::new(to, word.generation().wrapping_add(1), counts);
        if word.is_busy() || !self.swap_if(word.0, next.busy().0) {
            return None;
        }
        // While the word is busy nobody else writes these.
        self.since.set(self.since.get().max(now.as_nanos()));
        self.until.set(until.as_nanos());
        if let Some(level) = level {
            self.level.set(u64::from(level) + 1);
            self.trips.set(self.trips.get().wrapping_add(1));
        }
        self.window.restart(self.shape, now);
        self.word.set(next.0);
        Some(next.generation())
    }

    /// Goes on where `old` was, for settings that were read again: what did not change keeps its state.
    ///
    /// State, since when, failures in a row and the number of trips are taken over. An open time that is now
    /// shorter ends sooner, never later. The window is taken over if it is the same window. Probes in flight belong
    /// to the old breaker: they are let through anew.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// let old = Breaker::consecutive(5);
    /// old.hold_open(Timestamp::ZERO);
    /// let new = Breaker::consecutive(3).adopt(&old);
    /// assert_eq!(new.state(), BreakerState::HeldOpen);
    /// ```
    #[must_use]
    pub fn adopt(self, old: &Breaker) -> Breaker {
        let word = old.settled();
        let counts = if word.state() == BreakerState::HalfOpen { 0 } else { word.failures() };
        let now = Timestamp::from_nanos(old.since.get());
        let longest = now.plus_nanos(self.open_nanos(old.level(), u64::MAX));
        let until = match word.state() {
            BreakerState::Open => old.until().min(longest),
            BreakerState::HalfOpen => self.settings.probe_again_after.map_or(Timestamp::MAX, |time| now + time),
            _ => old.until(),
        };
        self.since.set(old.since.get());
        self.until.set(until.as_nanos());
        self.level.set(old.level.get());
        self.trips.set(old.trips.get());
        self.refused.set(old.refused.get());
        if self.shape.is_like(old.shape) {
            self.window.copy(&old.window);
        }
        self.word.set(Packed::new(word.state(), word.generation(), counts).0);
        self
    }

    pub(super) fn settled(&self) -> Packed {
        loop {
            let word = self.packed();
            if !word.is_busy() {
                return word;
            }
            pause();
        }
    }

    #[inline]
    pub(super) fn packed(&self) -> Packed {
        Packed(self.word.get())
    }

    pub(super) fn until(&self) -> Timestamp {
        Timestamp::from_nanos(self.until.get())
    }
}

/// `first * factor^level`, at most `most`, in as many steps as the level has bits.
fn growth(first: u64, factor: f64, level: u32, most: u64) -> u64 {
    let (mut power, mut square, mut left) = (1.0f64, factor, level);
    while left > 0 {
        if left & 1 == 1 {
            power *= square;
        }
        square *= square;
        left >>= 1;
    }
    let grown = first as f64 * power;
    // Infinity is cut by the conversion, and is more than `most` in any case.
    (grown as u64).min(most)
}
