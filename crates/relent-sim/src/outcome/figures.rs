//! The figures of a run: one value a name.

use crate::scenario::Figure;

/// One value a figure, `None` where the figure has no meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures([Option<f64>; Figure::ALL.len()]);

impl Figures {
    /// No figure at all.
    pub const NONE: Figures = Figures([None; Figure::ALL.len()]);

    /// The value of a figure.
    pub const fn get(&self, figure: Figure) -> Option<f64> {
        self.0[figure as usize]
    }

    /// The same figures with one more. A value that is not a finite number has no meaning and is left out.
    #[must_use]
    pub const fn with(mut self, figure: Figure, value: f64) -> Figures {
        self.0[figure as usize] = if value.is_finite() { Some(value) } else { None };
        self
    }

    /// The same figures without one, where it has no meaning.
    #[must_use]
    pub(crate) const fn without(mut self, figure: Figure) -> Figures {
        self.0[figure as usize] = None;
        self
    }

    /// [`with`](Figures::with) where there may be nothing to add.
    #[must_use]
    pub const fn with_some(self, figure: Figure, value: Option<f64>) -> Figures {
        match value {
            Some(value) => self.with(figure, value),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_no_figure() {
        let figures = Figures::NONE.with(Figure::DrainS, f64::NAN).with(Figure::P50S, 1.5);
        assert_eq!(figures.get(Figure::DrainS), None);
        assert_eq!(figures.get(Figure::P50S), Some(1.5));
    }
}
