//! What was done on an upstream since the start.

use super::Upstream;
use crate::core::{
    budget::Budget,
    verdict::Reason,
    word::{Apart, Word},
};

/// A success costs one of them one addition. What belongs together is added up when it is read, so that no moment shows
/// attempts without their calls.
#[derive(Debug)]
pub(super) struct Counts {
    /// First attempts; apart from what every call only reads. Those that are told to a budget with a window are counted
    /// beside it.
    pub(super) started: Apart<Word>,
    pub(super) retries: Word,
    pub(super) hedges: Word,
    first_open: Word,
    first_shed: Word,
    first_budget: Word,
    later_open: Word,
    later_shed: Word,
    later_budget: Word,
}

impl Counts {
    pub(super) const fn new() -> Counts {
        Counts {
            started: Apart(Word::new(0)),
            retries: Word::new(0),
            hedges: Word::new(0),
            first_open: Word::new(0),
            first_shed: Word::new(0),
            first_budget: Word::new(0),
            later_open: Word::new(0),
            later_shed: Word::new(0),
            later_budget: Word::new(0),
        }
    }

    pub(super) fn refused(&self, reason: Reason, is_first: bool) {
        let word = match (reason, is_first) {
            (Reason::Open, true) => &self.first_open,
            (Reason::Open, false) => &self.later_open,
            (Reason::Budget, true) => &self.first_budget,
            (Reason::Budget, false) => &self.later_budget,
            (_, true) => &self.first_shed,
            (_, false) => &self.later_shed,
        };
        word.add(1);
    }

    /// Calls that were refused before their first attempt, by reason: open, shed, budget.
    pub(super) fn first(&self) -> [u64; 3] {
        [self.first_open.get(), self.first_shed.get(), self.first_budget.get()]
    }

    /// Retries that were refused, by reason: open, shed, budget.
    pub(super) fn later(&self) -> [u64; 3] {
        [self.later_open.get(), self.later_shed.get(), self.later_budget.get()]
    }

    /// As another one has counted, on whose upstream so many calls started.
    pub(super) fn adopt(&self, old: &Counts, started: u64) {
        self.started.set(started);
        for (new, old) in self.words().into_iter().zip(old.words()) {
            new.set(old.get());
        }
    }

    fn words(&self) -> [&Word; 8] {
        [
            &self.retries,
            &self.hedges,
            &self.first_open,
            &self.first_shed,
            &self.first_budget,
            &self.later_open,
            &self.later_shed,
            &self.later_budget,
        ]
    }
}

impl Upstream {
    /// A first attempt was let through.
    #[inline]
    pub(super) fn count_call(&self) {
        self.budget.as_ref().and_then(Budget::beside).unwrap_or(&self.counts.started).add(1);
    }

    /// First attempts that were let through.
    pub(super) fn started(&self) -> u64 {
        let beside = self.budget.as_ref().and_then(Budget::beside).map_or(0, Word::get);
        self.counts.started.get().wrapping_add(beside)
    }
}
