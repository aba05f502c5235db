//! What was done on an upstream since the start.

use crate::core::{verdict::Reason, word::Word};

/// A success costs one of them one addition. What belongs together is added up when it is read, so that no moment shows
/// attempts without their calls.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) started: Word,
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
            started: Word::new(0),
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

    pub(super) fn adopt(&self, old: &Counts) {
        for (new, old) in self.words().into_iter().zip(old.words()) {
            new.set(old.get());
        }
    }

    fn words(&self) -> [&Word; 9] {
        [
            &self.started,
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
