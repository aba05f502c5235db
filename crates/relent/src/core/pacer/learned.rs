//! How many turns are kept: clients leave, and a turn that nobody comes back at is a gap.

use super::measured::Measured;
use crate::core::word::Word;

/// The share of turns that is kept, learned.
pub(super) struct Learned {
    /// Turns that were given to newcomers and not yet counted.
    issued: Word,
    /// Clients that came back once and were not yet counted.
    pub(super) returned: Word,
    /// The share.
    pub(super) kept: Measured,
}

/// So many turns that came due replace what was known; fewer count in proportion.
const ENOUGH: u64 = 4096;

/// How often it is looked whether enough have come due.
const LOOK: u64 = 64;

/// Turns are never more than eight times as dense.
const LEAST_KEPT: f64 = 0.125;

impl Learned {
    pub(super) const fn new() -> Learned {
        Learned { issued: Word::new(0), returned: Word::new(0), kept: Measured::new() }
    }

    /// A turn was given. `is_first` says that every earlier one has come due; `outstanding` are those that have not.
    pub(super) fn issue(&self, is_first: bool, outstanding: u64, first: f64) {
        let issued = self.issued.add(1);
        let due = if is_first { issued } else { (issued + 1).saturating_sub(outstanding) };
        if is_first && due > 0 || due >= ENOUGH && issued.is_multiple_of(LOOK) {
            self.learn(due, first);
        }
    }

    fn learn(&self, due: u64, first: f64) {
        let issued = self.issued.get();
        // Whoever takes the turns that came due off the count is the one who learns from them.
        if issued < due || !self.issued.swap_if(issued, issued - due) {
            return;
        }
        let returned = self.returned.get();
        self.returned.add(returned.wrapping_neg());
        let share = (returned as f64 / due as f64).clamp(LEAST_KEPT, 1.0);
        let weight = (due as f64 / ENOUGH as f64).min(1.0);
        self.kept.set(self.kept.or(first) * (1.0 - weight) + share * weight);
    }
}
