//! What a window counts of an upstream on which one call is made, in three words: a simulator keeps millions of them.
//!
//! In each of 25 slots there is at most that call and a few of its retries, so a slot is five bits, and closing slots is a
//! shift. Everything is counted and forgotten as by a [`Window`](super::window::Window), which the tests hold it against;
//! what is decided by the sums is decided by the same code.
//!
//! It is for one thread: of two that change it at a time, one may be lost.

use super::window::{Cut, History, Pair};
use crate::core::word::Word;

/// Closed slots.
pub(super) const CLOSED: u32 = 24;
/// Retries that a slot, and a window, can have.
pub(super) const MOST: u64 = 15;

/// The call, and four bits of retries.
const BITS: u32 = 5;
const CALL: u128 = 1 << 4;
const SLOT: u128 = (1 << BITS) - 1;
const SLOTS: u128 = (1 << (BITS * (CLOSED + 1))) - 1;
/// The number of the open slot is above the two sums.
const NUMBER_AT: u32 = 14;
const SUM_AT: u32 = 7;
const SUM: u64 = (1 << SUM_AT) - 1;

#[derive(Debug)]
pub(super) struct OneCall {
    low: Word,
    high: Word,
    /// The number of the open slot, and the sums of calls and retries that count.
    head: Word,
}

/// What the words say.
struct Seen {
    /// The open slot in the lowest bits, the oldest in the highest.
    slots: u128,
    number: u64,
    sums: Pair,
}

impl OneCall {
    pub(super) const fn new() -> OneCall {
        OneCall { low: Word::new(0), high: Word::new(0), head: Word::new(0) }
    }

    #[inline]
    fn get(&self) -> Seen {
        let head = self.head.get();
        Seen {
            slots: u128::from(self.high.get()) << 64 | u128::from(self.low.get()),
            number: head >> NUMBER_AT,
            sums: Pair { a: head >> SUM_AT & SUM, b: head & SUM },
        }
    }

    #[inline]
    fn set(&self, Seen { slots, number, sums }: &Seen) {
        self.low.set(*slots as u64);
        self.high.set((*slots >> 64) as u64);
        self.head.set(number << NUMBER_AT | sums.a << SUM_AT | sums.b);
    }
}

impl Seen {
    /// Closes the slots that are over.
    #[inline]
    fn turn(&mut self, cut: &Cut, now: u64) {
        let number = now / cut.slot + 1;
        if number <= self.number {
            return;
        }
        let steps = (number - self.number).min(u64::from(CLOSED) + 1) as u32;
        self.number = number;
        // Calls are forgotten one slot before retries are.
        let calls = if cut.keep_a < CLOSED as usize { CLOSED.saturating_sub(steps) } else { CLOSED + 1 - steps };
        self.forget_calls(calls);
        self.forget_retries(CLOSED + 1 - steps);
        self.slots = if steps > CLOSED { 0 } else { self.slots << (BITS * steps) & SLOTS };
    }

    /// Calls of slots of this age and older do not count any more.
    #[inline]
    fn forget_calls(&mut self, age: u32) {
        let mut old = self.slots >> (BITS * age);
        while old != 0 {
            let at = old.trailing_zeros() / BITS * BITS;
            if old >> at & CALL != 0 {
                self.sums.a -= 1;
                self.slots &= !(CALL << (BITS * age + at));
            }
            old &= !(SLOT << at);
        }
    }

    #[inline]
    fn forget_retries(&mut self, age: u32) {
        let mut old = self.slots >> (BITS * age);
        while old != 0 {
            let at = old.trailing_zeros() / BITS * BITS;
            self.sums.b -= (old >> at) as u64 & MOST;
            old &= !(SLOT << at);
        }
    }
}

impl History for OneCall {
    #[inline]
    fn add(&self, cut: &Cut, now: u64) {
        self.count(cut, now, |_| Some(Pair::A));
    }

    #[inline]
    fn count(&self, cut: &Cut, now: u64, mut decide: impl FnMut(Pair) -> Option<Pair>) -> Option<u64> {
        let mut seen = self.get();
        seen.turn(cut, now.min(u64::MAX - 1));
        let add = decide(seen.sums);
        let number = seen.number;
        let counted = add.filter(|add| {
            let (call, retries) = ((seen.slots & CALL != 0) as u64, seen.slots as u64 & MOST);
            call + add.a <= 1 && retries + add.b <= MOST && seen.sums.b + add.b <= SUM
        });
        if let Some(add) = counted {
            seen.slots += u128::from(add.a) * CALL + u128::from(add.b);
            seen.sums = Pair { a: seen.sums.a + add.a, b: seen.sums.b + add.b };
        }
        self.set(&seen);
        counted.map(|_| number)
    }

    fn take_back(&self, _: &Cut, number: u64) {
        let mut seen = self.get();
        let age = seen.number.wrapping_sub(number);
        if age <= u64::from(CLOSED) {
            let at = BITS * age as u32;
            if (seen.slots >> at) as u64 & MOST > 0 {
                seen.slots -= 1 << at;
                seen.sums.b -= 1;
                self.set(&seen);
            }
        }
    }

    fn reset(&self, cut: &Cut, now: u64) {
        let number = now.min(u64::MAX - 1) / cut.slot + 1;
        self.set(&Seen { slots: 0, number, sums: Pair::default() });
    }

    #[inline]
    fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        [&self.low, &self.high, &self.head].into_iter().for_each(with);
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;
    use crate::core::budget::window::Window;

    /// One call at some time, and retries for as long as the sums allow some: at random times, some of them given back.
    #[test]
    fn it_counts_and_forgets_as_a_window_does() {
        for seed in 0..3000u64 {
            let mut state = seed;
            let mut draw = |below: u64| {
                state = crate::core::rng::mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
                crate::core::rng::scale(state, below)
            };
            let slot = 1 + draw(1000);
            let cut = Cut { slot, keep_a: CLOSED as usize - 1, keep_b: CLOSED as usize, anchored: false };
            let (small, large) = (OneCall::new(), Window::<{ CLOSED as usize }>::new());
            let most = 1 + draw(MOST);
            let (mut now, mut told) = (draw(slot * 60), None);
            let starts = draw(20);
            for step in 0..60 {
                let far = [1, 3, 40][draw(3) as usize];
                now = (now + draw(slot * far)).saturating_sub(draw(2));
                let one = |sum: Pair| (sum.b < most * (1 + sum.a) / 2).then_some(Pair::B);
                let (theirs, mine) = match step == starts {
                    true => (large.count(&cut, now, |_| Some(Pair::A)), small.count(&cut, now, |_| Some(Pair::A))),
                    false => (large.count(&cut, now, one), small.count(&cut, now, one)),
                };
                assert_eq!(mine, theirs, "seed {seed}, step {step}");
                told = mine.or(told);
                if let Some(number) = told
                    && draw(4) == 0
                {
                    large.take_back(&cut, number);
                    small.take_back(&cut, number);
                }
                assert_eq!(small.read(&cut, now), large.read(&cut, now), "seed {seed}, step {step}");
            }
        }
    }

    #[test]
    fn the_ends_of_time_and_of_a_slot_are_no_trouble() {
        let cut = Cut { slot: 41_667, keep_a: CLOSED as usize - 1, keep_b: CLOSED as usize, anchored: false };
        let small = OneCall::new();
        for now in [0, u64::MAX, 0, u64::MAX - 1] {
            assert!(small.count(&cut, now, |_| Some(Pair::B)).is_some());
        }
        for _ in 0..100 {
            small.count(&cut, u64::MAX, |_| Some(Pair::B));
        }
        assert_eq!(small.read(&cut, u64::MAX), Pair { a: 0, b: MOST }, "what does not fit is refused");
        small.reset(&cut, 0);
        assert_eq!(small.read(&cut, 0), Pair::default());
    }
}
