//! A figure that is not known at first, and learned.

use crate::core::word::Word;

/// A number above zero, as the bits of a float in one word; 0 is "nothing learned yet".
pub(super) struct Measured(Word);

impl Measured {
    pub(super) const fn new() -> Measured {
        Measured(Word::new(0))
    }

    /// What has been learned, or what was said at first.
    pub(super) fn or(&self, first: f64) -> f64 {
        let learned = f64::from_bits(self.0.get());
        if learned > 0.0 { learned } else { first }
    }

    pub(super) fn set(&self, figure: f64) {
        self.0.set(figure.to_bits());
    }

    /// What another one has learned is known here, too.
    pub(super) fn adopt(&self, old: &Measured) {
        self.0.set(old.0.get());
    }
}
