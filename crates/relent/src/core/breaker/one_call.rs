//! What a window of time counts where one call is made, in three words: a simulator keeps millions of them.
//!
//! Whatever is no failure ends that call. So all that its breaker is asked after is failures, and a slice of the window is a
//! number of them: twelve bits, ten slices. Turning the window is a shift. Everything is counted and forgotten as by the
//! window that it stands for, which the tests hold it against; what is decided by the sum is decided by the same code.
//!
//! It is for one thread: of two that change it at a time, one may be lost.

use super::{
    settings::{BreakerQuirks, BreakerSettings},
    window::{Mark, Seen, Shape, Window, least_calls},
};
use crate::core::word::Word;

/// Bits of a slice.
const BITS: u32 = 12;
const SLICES: u64 = 10;
const ALL: u128 = (1 << (BITS * SLICES as u32)) - 1;
/// More are never counted: who reaches it has tripped.
const MOST: u32 = (1 << BITS) - 1;
/// Above the number of the newest slice there is the generation.
const GENERATION_AT: u32 = 40;
const NUMBER: u64 = (1 << GENERATION_AT) - 1;

impl Shape {
    /// The shape for one call, if so little is enough: a window of time that trips before its numbers are too large.
    pub(super) const fn of_one_call(self, settings: &BreakerSettings) -> Shape {
        let Shape::Time { slice, slices: SLICES, lazy: false, .. } = self else { return self };
        let by_share = settings.share.is_some() && least_calls(settings) < MOST;
        let by_number = matches!(settings.failures, Some(most) if most < MOST);
        let is_alike = matches!(settings.quirks, BreakerQuirks::None) && settings.slow_after.is_none();
        // Shorter ones have more slices than there are numbers for.
        let is_long = slice >> (u64::BITS - GENERATION_AT) > 0;
        if is_alike && is_long && (by_share || by_number) { Shape::OneCall { slice } } else { self }
    }
}

impl Window {
    /// Counts a failure; whatever else happens is not counted. What the window holds then.
    #[inline]
    pub(super) fn record_of_one_call(&self, slice: u64, now: u64, mark: Mark) -> Option<Seen> {
        if !mark.failed {
            return None;
        }
        let (number, slots) = self.slots(slice, now, mark.generation);
        let slots = slots + u128::from(slots as u64 & u64::from(MOST) < u64::from(MOST));
        self.latest.set(u64::from(mark.generation) << GENERATION_AT | number);
        self.cells[0].set(slots as u64);
        self.cells[1].set((slots >> 64) as u64);
        Some(sum(slots))
    }

    #[inline(always)]
    pub(super) fn words_of_one_call<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        [&self.latest.0, &self.cells[0], &self.cells[1]].into_iter().for_each(with);
    }

    /// What it holds at `now`.
    pub(super) fn seen_of_one_call(&self, slice: u64, generation: u32, now: u64) -> Seen {
        sum(self.slots(slice, now, generation).1)
    }

    /// The number of the newest slice at `now`, and the slices, the newest in the lowest bits.
    #[inline]
    fn slots(&self, slice: u64, now: u64, generation: u32) -> (u64, u128) {
        let found = self.latest.get();
        let (last, number) = (found & NUMBER, (now / slice).max(found & NUMBER) & NUMBER);
        let slots = u128::from(self.cells[1].get()) << 64 | u128::from(self.cells[0].get());
        let turns = number.wrapping_sub(last);
        if found >> GENERATION_AT != u64::from(generation) || turns >= SLICES {
            return (number, 0);
        }
        (number, slots << (BITS * turns as u32) & ALL)
    }
}

/// The sum of all slices: of five at a time, first of neighbours, then of the three pairs.
#[inline]
const fn sum(slots: u128) -> Seen {
    const HALF: u32 = BITS * SLICES as u32 / 2;
    const EVERY_OTHER: u64 = 0xFFF | 0xFFF << (2 * BITS) | 0xFFF << (4 * BITS);
    const fn of_five(slots: u64) -> u64 {
        let pairs = (slots & EVERY_OTHER) + (slots >> BITS & EVERY_OTHER);
        (pairs + (pairs >> (2 * BITS)) + (pairs >> (4 * BITS))) & ((1 << (2 * BITS)) - 1)
    }
    let failures = of_five(slots as u64 & ((1 << HALF) - 1)) + of_five((slots >> HALF) as u64);
    Seen { calls: failures, failures, slow: 0 }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_that_of_all_slices() {
        let full = (0..SLICES as u32).map(|nth| u128::from(MOST) << (BITS * nth)).sum();
        assert_eq!((full, sum(full).failures), (ALL, 10 * u64::from(MOST)));
        for seed in 0..1000 {
            let slices: [u64; SLICES as usize] =
                core::array::from_fn(|nth| crate::core::rng::draw(seed, nth as u32) % (u64::from(MOST) + 1));
            let slots = slices.iter().rev().fold(0, |slots: u128, slice| slots << BITS | u128::from(*slice));
            assert_eq!(sum(slots).failures, slices.iter().sum::<u64>(), "{slices:?}");
        }
    }
}
