//! The random number of one delay, as the other systems want it: a fraction, a whole number, or raw bits.

use crate::rng::{scale, unit};

/// The random number of one delay.
///
/// A call gives its draw. A fraction given directly serves those who must force a number that no draw can be, 1 for
/// instance, or one with more than 53 bits.
///
/// ```
/// use relent::compat::Random;
/// assert_eq!(Random::Draw(1 << 63).fraction(), 0.5);
/// assert_eq!(Random::Fraction(0.5).below(10), 5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Random {
    /// A draw of a call: 64 random bits.
    Draw(u64),
    /// A fraction, usually in `[0, 1)`.
    Fraction(f64),
}

impl Random {
    /// The number as a fraction: the top 53 bits of a draw.
    pub fn fraction(self) -> f64 {
        match self {
            Random::Draw(draw) => unit(draw),
            Random::Fraction(fraction) => fraction,
        }
    }

    /// The number as one of `0..width`, 0 if the width is 0.
    pub fn below(self, width: u64) -> u64 {
        match self {
            Random::Draw(draw) => scale(draw, width),
            Random::Fraction(fraction) => ((fraction * width as f64) as u64).min(width.saturating_sub(1)),
        }
    }

    /// The number as 64 bits.
    ///
    /// ```
    /// # use relent::compat::Random;
    /// assert_eq!(Random::Draw(7).bits(), 7);
    /// ```
    pub fn bits(self) -> u64 {
        match self {
            Random::Draw(draw) => draw,
            Random::Fraction(fraction) => Random::Fraction(fraction).below(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_and_its_fraction_agree() {
        for (draw, fraction) in [(0, 0.0), (1 << 62, 0.25), (1 << 63, 0.5), (u64::MAX, 1.0 - f64::EPSILON / 2.0)] {
            assert_eq!(Random::Draw(draw).fraction(), fraction);
            for width in [0, 1, 2, 7, 1000] {
                assert_eq!(Random::Draw(draw).below(width), Random::Fraction(fraction).below(width));
            }
        }
    }

    #[test]
    fn a_fraction_of_one_stays_below_the_width() {
        assert_eq!(Random::Fraction(1.0).below(10), 9);
        assert_eq!(Random::Fraction(f64::NAN).below(10), 0);
    }
}
