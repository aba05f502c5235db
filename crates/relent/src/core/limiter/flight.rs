//! A limit that moves and what is in flight under it, in one atomic word.

use super::answer::LimitAnswer;
use crate::core::word::Word;

/// A limit is kept in 1024ths.
pub(super) const FINE: u64 = 1024;
const IN_FLIGHT: u64 = u32::MAX as u64;

#[derive(Debug)]
pub(super) struct Flight {
    /// The limit in the upper half, what is in flight in the lower.
    word: Word,
}

impl Flight {
    pub(super) const fn new(limit: u32) -> Flight {
        Flight { word: Word::new((limit as u64 * FINE) << 32) }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        with(&self.word);
    }

    #[inline]
    pub(super) fn acquire(&self) -> LimitAnswer {
        let granted = self.word.update(|word| ((word & IN_FLIGHT) < (word >> 32) / FINE).then(|| word + 1));
        if granted.is_some() { LimitAnswer::Granted } else { LimitAnswer::Shed }
    }

    #[inline]
    pub(super) fn release(&self) {
        self.word.update(|word| (word & IN_FLIGHT > 0).then(|| word - 1));
    }

    /// Changes the limit, in 1024ths; `next` is told it and what is in flight.
    pub(super) fn move_limit(&self, next: impl Fn(u64, u64) -> u64) {
        self.word.update(|word| Some(next(word >> 32, word & IN_FLIGHT).min(IN_FLIGHT) << 32 | word & IN_FLIGHT));
    }

    /// In 1024ths.
    pub(super) fn limit(&self) -> u64 {
        self.word.get() >> 32
    }

    pub(super) fn in_flight(&self) -> u32 {
        (self.word.get() & IN_FLIGHT) as u32
    }

    pub(super) fn adopt(&self, old: &Flight, least: u32, most: u32) {
        let word = old.word.get();
        let limit = (word >> 32).clamp(u64::from(least) * FINE, u64::from(most) * FINE);
        self.word.set(limit << 32 | word & IN_FLIGHT);
    }

    pub(super) fn land(&self) {
        self.word.update(|word| Some(word & !IN_FLIGHT));
    }

    pub(super) fn reset(&self, limit: u32) {
        self.word.set((u64::from(limit) * FINE) << 32);
    }
}
