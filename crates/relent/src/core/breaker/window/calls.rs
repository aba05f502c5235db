//! Windows of calls: a ring of bits, one for each of the last calls, exactly.

use super::{CELLS, Counted, Mark, Seen, Window};
use crate::core::word::Word;

/// Outcomes in a cell: its lower half. The upper half is the generation.
const BITS: u32 = 32;
/// Where the second kind of bits begins.
const HALF: usize = CELLS / 2;
/// How it is said where the ring is: 24 bits of generation, 40 of how many outcomes came so far.
const GENERATION_AT: u32 = 40;
const CAME: u64 = (1 << GENERATION_AT) - 1;
/// So many that came are counted on from fewer. What is left above it is for threads that have added meanwhile.
pub(in super::super) const MANY: u64 = 1 << 31;

/// How a ring is laid out.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Ring {
    /// How many calls it holds.
    most: u32,
    /// From how many on a share means something.
    least: u32,
    /// 2^64 / `most`, rounded up.
    inverse: u64,
}

impl Ring {
    pub(super) const fn new(most: u32, least: u32) -> Ring {
        // A ring for no calls is refused later.
        let divisor = if most == 0 { 1 } else { most as u64 };
        Ring { most, least, inverse: (u64::MAX / divisor).wrapping_add(1) }
    }

    /// Where an outcome goes before which so many came: the rest of a division, as two multiplications, which is exact for
    /// 32 bits (Lemire, Kaser, Kurz: Faster remainder by direct computation, 2019).
    #[inline]
    fn place(self, came: u64) -> usize {
        let fraction = self.inverse.wrapping_mul(came);
        ((u128::from(fraction) * u128::from(self.most)) >> 64) as usize
    }

    pub(super) const fn holds_as_many(self, other: Ring) -> bool {
        self.most == other.most
    }

    fn cells(self) -> usize {
        (self.most as usize).div_ceil(BITS as usize).min(HALF)
    }
}

/// The same generation, of which so many outcomes came.
#[cfg(test)]
pub(super) const fn with_came(latest: u64, outcomes: u64) -> u64 {
    latest & !CAME | outcomes
}

impl Window {
    pub(super) fn cells_of_calls(&self, ring: Ring, counts_slow: bool) -> impl Iterator<Item = &Word> {
        let slow = if counts_slow { ring.cells() } else { 0 };
        self.cells[..ring.cells()].iter().chain(&self.cells[HALF..HALF + slow])
    }

    #[inline]
    pub(super) fn count_success_of_calls(&self, ring: Ring, generation: u32) -> Counted {
        // One addition, as in windows of time. Where another generation is counted, it is taken back; should others have
        // come in that moment, the last of them has lost its place to the next.
        let found = self.add_one(&self.latest);
        let came = found & CAME;
        if found >> GENERATION_AT != u64::from(generation) || came >= MANY {
            return self.count_apart(ring, found, generation);
        }
        self.put_success(ring, came, generation);
        if came + 1 == u64::from(ring.least) { self.look_at_calls(ring, generation) } else { Counted::Quietly }
    }

    #[inline]
    fn put_success(&self, ring: Ring, came: u64, generation: u32) {
        let place = ring.place(came);
        self.put(place, 0, false, generation, &|| true);
        self.put(place, HALF, false, generation, &|| true);
    }

    /// What was added to another generation is taken back; where too many came, they are counted on from fewer.
    #[cold]
    fn count_apart(&self, ring: Ring, found: u64, generation: u32) -> Counted {
        if found >> GENERATION_AT != u64::from(generation) {
            self.latest.update(|latest| {
                (latest >> GENERATION_AT == found >> GENERATION_AT && latest & CAME > 0).then(|| latest - 1)
            });
            return Counted::Not;
        }
        self.begin_again(ring, generation);
        self.put_success(ring, found & CAME, generation);
        Counted::Quietly
    }

    /// So many rounds of the ring fewer came: the ring stays full, and each place where it is.
    fn begin_again(&self, ring: Ring, generation: u32) {
        let most = u64::from(ring.most);
        let rounds = (MANY / most - 1) * most;
        self.latest.update(|latest| {
            (latest >> GENERATION_AT == u64::from(generation) && latest & CAME >= MANY).then(|| latest - rounds)
        });
    }

    #[cold]
    fn look_at_calls(&self, ring: Ring, generation: u32) -> Counted {
        Counted::Loudly(self.sum_calls(ring, generation))
    }

    pub(super) fn record_call(&self, ring: Ring, mark: Mark, is_current: impl Fn() -> bool) -> Option<Seen> {
        let generation = u64::from(mark.generation);
        let mut found = self.latest.get();
        let came = loop {
            let mut from = found;
            if found >> GENERATION_AT != generation {
                if !is_current() {
                    return None;
                }
                from = generation << GENERATION_AT;
            }
            match self.exchange(&self.latest, found, from + 1) {
                Ok(()) => break from & CAME,
                Err(other) => found = other,
            }
        };
        if came >= MANY {
            self.begin_again(ring, mark.generation);
        }
        let place = ring.place(came);
        self.put(place, 0, mark.failed, mark.generation, &is_current);
        self.put(place, HALF, mark.slow, mark.generation, &is_current);
        // A success lowers every share, so it can trip only by making the volume full.
        let is_filling = came + 1 == u64::from(ring.least);
        (mark.is_trouble() || is_filling).then(|| self.sum_calls(ring, mark.generation))
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

    pub(super) fn sum_calls(&self, ring: Ring, generation: u32) -> Seen {
        let latest = self.latest.get();
        if latest >> GENERATION_AT != u64::from(generation) {
            return Seen::default();
        }
        let calls = (latest & CAME).min(u64::from(ring.most));
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
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;
    use crate::core::rng::mix;

    #[test]
    fn a_place_is_the_rest_of_a_division() {
        for most in 1..=1024 {
            let ring = Ring::new(most, 1);
            let at_random = (0..200).map(|seed| mix(seed ^ u64::from(most) << 20) & u64::from(u32::MAX));
            let ends = [0, 1, MANY - 1, MANY, u64::from(u32::MAX)];
            let around = (1..4).flat_map(|times| [times * u64::from(most) - 1, times * u64::from(most)]);
            for came in at_random.chain(ends).chain(around) {
                assert_eq!(ring.place(came) as u64, came % u64::from(most), "{came} of {most}");
            }
        }
    }
}
