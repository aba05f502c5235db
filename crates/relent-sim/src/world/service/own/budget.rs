//! A [ratio](relent::Budget::ratio) of one call: in two words, how many retries each slot of its window has.
//!
//! A slot is four bits, the window 25 of them; above them is the number of the newest. Every retry that was paid for is made,
//! and a call that is refused one is over, so that nothing is ever given back.

use super::Machine;
use relent::{Budget, BudgetSettings, Reason, Timestamp};
use std::time::Duration;

/// Bits of a slot, and how many slots count: the newest, and those that are closed.
const BITS: u32 = 4;
const SLOTS: u32 = 25;
const ALL: u128 = (1 << (BITS * SLOTS)) - 1;
const NUMBER_AT: u32 = BITS * SLOTS;
/// The most retries that a slot can have.
const MOST: u32 = (1 << BITS) - 1;

pub(in super::super) struct Slots {
    /// The length of a slot, in nanoseconds.
    slot: u64,
    /// Retries in a window.
    most: u32,
}

impl Slots {
    /// The same rule as this budget's, if it allows the same before and after its call is forgotten, and so little that it fits.
    pub(super) fn of(budget: &Budget, limit: u64) -> Option<Slots> {
        let BudgetSettings::Ratio { window, .. } = budget.settings() else { return None };
        let slot = crate::time::nanos(window).div_ceil(u64::from(SLOTS) - 1);
        let fresh = budget.for_one_call();
        let without = fresh.balance(Timestamp::ZERO);
        fresh.start(Timestamp::ZERO, 0);
        let with = fresh.balance(Timestamp::ZERO);
        let fits = with == without && with <= f64::from(MOST) && limit / slot < (1 << (u128::BITS - NUMBER_AT)) - 1;
        fits.then_some(Slots { slot, most: with as u32 })
    }

    /// The sum of all slots.
    #[inline]
    fn sum(slots: u128) -> u32 {
        const EVERY_OTHER: u128 = 0x000F_0F0F_0F0F_0F0F_0F0F_0F0F_0F0F;
        let pairs = (slots & EVERY_OTHER) + (slots >> BITS & EVERY_OTHER);
        // Of eight pairs at a time, in the highest byte: at most 240.
        let sum = |pairs: u64| pairs.wrapping_mul(0x0101_0101_0101_0101) >> 56;
        (sum(pairs as u64) + sum((pairs >> 64) as u64)) as u32
    }
}

impl Machine for Slots {
    type State = u128;
    const REASON: Reason = Reason::Budget;

    #[inline(always)]
    fn failed(&self, _: &mut u128, _: u32, _: u64, _: u64, _: impl Fn() -> u64) -> u64 {
        0
    }

    #[inline(always)]
    fn pay(&self, state: &mut u128, failures: u32, now: u64) -> bool {
        let number = now / self.slot + 1;
        let gone = number - (*state >> NUMBER_AT) as u64;
        let slots = if gone < u64::from(SLOTS) { *state << (BITS * gone as u32) & ALL } else { 0 };
        // It paid for each failure before.
        if failures >= self.most && Slots::sum(slots) >= self.most {
            return false;
        }
        *state = (slots + 1) | u128::from(number) << NUMBER_AT;
        true
    }

    #[inline(always)]
    fn next(&self, _: &mut u128, _: u64, time: u64, _: impl Fn() -> u64, _: impl Fn() -> Duration) -> Option<u64> {
        Some(time)
    }
}
