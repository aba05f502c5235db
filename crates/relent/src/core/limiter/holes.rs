//! Permits of a rate that were booked and are free again before their time, while others have booked what follows.

use crate::core::{cells::Cells, word::Word};

/// How many times 64 permits are looked after, from that of the next on. Of a line that is longer, those that come later lapse.
const BLOCKS: usize = 5;

/// Which permits are free, by their numbers: which block of 64 is the first that is looked after, and a bit for each permit of it
/// and of those that follow.
#[derive(Debug)]
pub(super) struct Holes(Cells<{ BLOCKS + 1 }>);

impl Holes {
    pub(super) const fn new() -> Holes {
        Holes(Cells::new())
    }

    /// This one is free, if that can be kept. What stands before `now` has lapsed, and makes room.
    pub(super) fn put(&self, number: u64, now: u64) {
        self.0.with(|[first, blocks @ ..]| {
            let is_within_reach = |first: u64| (first..first + BLOCKS as u64).contains(&(number / 64));
            if !is_within_reach(*first) {
                forget(first, blocks, now);
            }
            if is_within_reach(*first) {
                blocks[place(number / 64)] |= 1 << (number % 64);
            }
        });
    }

    /// The next one from `now` to `last`, which is taken if it comes no later than `latest`.
    pub(super) fn take(&self, now: u64, last: u64, latest: Option<u64>) -> Option<u64> {
        self.0.with(|[first, blocks @ ..]| {
            forget(first, blocks, now);
            let next = numbers(*first, *blocks).find(|number| (now..=last).contains(number))?;
            if latest.is_some_and(|latest| next <= latest) {
                blocks[place(next / 64)] &= !(1 << (next % 64));
            }
            Some(next)
        })?
    }

    /// How many there are from `now` to `last`.
    pub(super) fn count(&self, now: u64, last: u64) -> u64 {
        let count = |[first, blocks @ ..]: &mut [u64; BLOCKS + 1]| {
            numbers(*first, *blocks).filter(|number| (now..=last).contains(number)).count() as u64
        };
        self.0.with(count).unwrap_or(0)
    }

    pub(super) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        self.0.words(with);
    }

    pub(super) fn clear(&self) {
        self.0.with(|all| *all = [0; BLOCKS + 1]);
    }
}

const fn place(block: u64) -> usize {
    (block % BLOCKS as u64) as usize
}

/// Leaves out all before `now`, so that no clock that goes back brings it back.
fn forget(first: &mut u64, blocks: &mut [u64; BLOCKS], now: u64) {
    let (block, bit) = (now / 64, now % 64);
    (*first..block).take(BLOCKS).for_each(|block| blocks[place(block)] = 0);
    *first = block.max(*first);
    if *first == block {
        blocks[place(block)] &= u64::MAX << bit;
    }
}

/// All that are free, the next first.
fn numbers(first: u64, blocks: [u64; BLOCKS]) -> impl Iterator<Item = u64> {
    (first..first + BLOCKS as u64).flat_map(move |block| {
        let free = blocks[place(block)];
        (0..64).filter(move |bit| free >> bit & 1 == 1).map(move |bit| block * 64 + bit)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_next_that_is_free_is_taken_once() {
        let holes = Holes::new();
        for number in [800, 700, 849, 700] {
            holes.put(number, 690);
        }
        assert_eq!(holes.count(690, 2000), 3);
        assert_eq!(holes.take(690, 2000, Some(699)), Some(700), "it is too late, and stays");
        assert_eq!(holes.take(690, 2000, Some(700)), Some(700));
        assert_eq!(holes.take(690, 799, Some(2000)), None);
        assert_eq!(holes.take(690, 2000, Some(2000)), Some(800));
        assert_eq!(holes.take(849, 2000, Some(2000)), Some(849));
        assert_eq!(holes.take(690, 2000, Some(2000)), None);
    }

    #[test]
    fn what_has_lapsed_and_what_is_too_far_ahead_is_free_for_nobody() {
        let holes = Holes::new();
        // 640 to 703 is the first block, and the fifth ends with 959.
        for number in [639, 640, 959, 960, u64::MAX / 64 * 64 - 1] {
            holes.put(number, 640);
        }
        assert_eq!(holes.count(0, u64::MAX), 2);
        assert_eq!(holes.take(641, u64::MAX, Some(u64::MAX)), Some(959));
        assert_eq!(holes.take(960, u64::MAX, None), None);
        holes.put(970, 965);
        assert_eq!((holes.take(971, u64::MAX, None), holes.take(967, u64::MAX, None)), (None, None), "it has lapsed");
        // A number that has the same place is not taken for one of before.
        holes.put(1000, 700);
        holes.put(1000 + 321, 1000 + 100);
        assert_eq!(holes.count(0, u64::MAX), 1);
        holes.clear();
        assert_eq!(holes.count(0, u64::MAX), 0);
        // Clocks that go back, and the end of time.
        holes.put(9, u64::MAX);
        holes.put(u64::MAX, u64::MAX);
        assert_eq!(holes.take(0, u64::MAX, Some(u64::MAX)), Some(u64::MAX));
    }
}
