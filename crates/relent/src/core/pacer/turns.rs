//! The turns that were given, as the time of the last one.

use crate::core::word::{Apart, Word};

/// `last = max(last, now) + gap`, by many threads at once.
///
/// To look at the last turn and then change it fetches the cache's line twice where threads share it. Most turns need no
/// look: turns only grow, so where one that was given some time ago is still to come, the next is after the last by one
/// addition; and what was given some time ago is kept apart, where few write.
pub(super) struct Turns {
    last: Apart<Word>,
    /// Some turn that was given, rarely more than [`BEHIND`] before the last.
    known: Word,
}

/// How many turns what is known of the last may be behind it.
const BEHIND: u64 = if cfg!(loom) { 1 } else { 64 };

/// So near to the horizon nobody adds without a look: room for what is not known, and for as many threads thrice over.
const NEAR: u64 = 4 * BEHIND;

/// No turn that is kept is later than this, some 292 years: so far from the end of time that no addition goes beyond it.
const LATEST: u64 = u64::MAX / 2;

/// A turn that was given.
pub(super) struct Given {
    pub(super) at: u64,
    /// Every turn before it had come due.
    pub(super) is_first: bool,
}

impl Turns {
    pub(super) const fn new() -> Turns {
        Turns { last: Apart(Word::new(0)), known: Word::new(0) }
    }

    /// When the last turn is, or was.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.last.get()
    }

    /// The next turn. `None` beyond the horizon.
    #[inline]
    pub(super) fn give(&self, now: u64, gap: u64, horizon: u64) -> Option<Given> {
        let known = self.known.get();
        let near = known.saturating_add(gap.saturating_mul(NEAR));
        if known <= now || near > LATEST || near - now > horizon {
            return self.give_with_a_look(now, gap, horizon);
        }
        let at = self.last.add(gap) + gap;
        self.learn(known, at, gap);
        // More threads at once than there is room for near the horizon: a turn that nobody gets.
        (at - now <= horizon).then_some(Given { at, is_first: false })
    }

    fn give_with_a_look(&self, now: u64, gap: u64, horizon: u64) -> Option<Given> {
        let mut found = self.last.get();
        loop {
            let at = found.max(now).saturating_add(gap);
            if at - now > horizon || at > LATEST && now <= LATEST {
                return None;
            }
            let last = at.min(LATEST);
            match self.last.exchange(found, last) {
                Ok(()) => {
                    self.learn(self.known.get(), last, gap);
                    return Some(Given { at, is_first: found <= now });
                }
                Err(other) => found = other,
            }
        }
    }

    #[inline]
    fn learn(&self, known: u64, at: u64, gap: u64) {
        if at.saturating_sub(known) >= gap.saturating_mul(BEHIND) {
            self.known.raise(at);
        }
    }

    /// Reads every word once.
    #[cfg(all(test, loom))]
    pub(super) fn touch(&self) {
        _ = (self.last.get(), self.known.get());
    }

    /// As another one has given them.
    pub(super) fn adopt(&self, old: &Turns) {
        // What is known is never later than the last.
        let known = old.known.get();
        self.last.set(old.last.get());
        self.known.set(known);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::{model, sync::Arc, thread};

    fn turns(first: u64) -> Arc<Turns> {
        let turns = Turns::new();
        for _ in 0..first {
            turns.give(0, 10, u64::MAX);
        }
        turns.touch();
        Arc::new(turns)
    }

    #[test]
    fn no_turn_is_given_twice_and_none_is_left_out() {
        for first in [1, 2] {
            model(move || {
                let turns = turns(first);
                let other = turns.clone();
                let other = thread::spawn(move || [0; 2].map(|now| other.give(now, 10, u64::MAX).unwrap().at));
                let mine = turns.give(5, 10, u64::MAX).unwrap().at;
                let [a, b] = other.join().unwrap();
                let mut all = [mine, a, b];
                all.sort_unstable();
                assert_eq!(all, [1, 2, 3].map(|turn| 10 * (first + turn)));
                assert_eq!(turns.last(), 10 * (first + 3));
            });
        }
    }

    /// One thread knows that there are turns to come, for the other they have all come due.
    #[test]
    fn a_backlog_that_ends_is_begun_once() {
        model(|| {
            let turns = turns(1);
            let other = turns.clone();
            let other = thread::spawn(move || other.give(9, 10, u64::MAX).unwrap().at);
            let mine = turns.give(12, 10, u64::MAX).unwrap().at;
            let other = other.join().unwrap();
            assert!([(22, 32), (30, 20)].contains(&(mine, other)), "{mine} {other}");
        });
    }

    #[test]
    fn nobody_comes_after_the_horizon() {
        model(|| {
            let turns = turns(1);
            let other = turns.clone();
            let give = |turns: &Turns| [0; 2].map(|now| turns.give(now, 10, 40).map(|given| given.at));
            let other = thread::spawn(move || give(&other));
            let mine = give(&turns);
            let mut all = [mine, other.join().unwrap()].concat();
            all.sort_unstable();
            assert_eq!(all, [None, Some(20), Some(30), Some(40)]);
        });
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn turns_are_laid_up_to_the_horizon_and_none_is_left_out() {
        let turns = Turns::new();
        for turn in 1..=1000 {
            let given = turns.give(5, 10, 10_000).unwrap();
            assert_eq!((given.at, given.is_first), (5 + 10 * turn, turn == 1));
            assert!(turns.last() - turns.known.get() < 10 * BEHIND, "what is known is not far behind");
        }
        assert!(turns.give(5, 10, 10_000).is_none());
        assert_eq!(turns.give(15, 10, 10_000).unwrap().at, 10_015);
    }

    #[test]
    fn a_turn_that_comes_due_now_ends_the_backlog() {
        let turns = Turns::new();
        assert!(turns.give(10_000, 10, u64::MAX).unwrap().is_first);
        assert_eq!(turns.known.get(), 10_010);
        let given = turns.give(10_010, 10, u64::MAX).unwrap();
        assert_eq!((given.at, given.is_first), (10_020, true));
        assert!(!turns.give(10_019, 10, u64::MAX).unwrap().is_first);
    }

    /// A gap that was large once leaves what is known far behind the last turn.
    #[test]
    fn turns_never_wrap_at_the_end_of_time() {
        let turns = Turns::new();
        assert_eq!(turns.give(10_000, 10, u64::MAX).unwrap().at, 10_010);
        assert_eq!(turns.give(10_000, LATEST - 10_015, u64::MAX).unwrap().at, LATEST - 5);
        assert_eq!(turns.known.get(), 10_010);
        let given: Vec<_> = (0..1000).filter_map(|_| turns.give(10_000, 3, u64::MAX)).map(|given| given.at).collect();
        assert_eq!(given, [LATEST - 2]);
        assert!([10_000, LATEST].iter().all(|&now| turns.give(now, 3, u64::MAX).is_none()));
        let given = [LATEST + 10, u64::MAX - 1, u64::MAX].map(|now| turns.give(now, 3, 5).unwrap().at);
        assert_eq!(given, [LATEST + 13, u64::MAX, u64::MAX]);
        assert!(turns.last() <= LATEST && turns.give(10_000, 3, u64::MAX).is_none());
    }
}
