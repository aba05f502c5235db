//! How a value in floating point is spread: the jitter of the other systems, each in the order of its operations.

use super::Random;

/// How the value of a [`Formula`](super::Formula) is spread, with `r` the random fraction in `[0, 1)` and `v` the value
/// of the curve after its cap.
///
/// ```
/// use relent::compat::{Formula, Random, Spread};
///
/// let delay = |spread| Formula { spread, ..Formula::SECONDS }.value(1, &mut 0, Random::Fraction(0.5)).unwrap();
/// assert_eq!(delay(Spread::None), 1.0);
/// assert_eq!(delay(Spread::Additive { most: 1.0 }), 1.5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Not at all: all clients wait the same time.
    None,
    /// `low + (v - low) * r`: from `low` up to the value. With `low` 0 this is full jitter.
    From {
        /// The least. It stands for the value where the value is less.
        low: f64,
    },
    /// `v/2 + v/2 * r`: equal jitter.
    Half,
    /// `v * (low + width * r)`: a share of the value.
    Between {
        /// The least share.
        low: f64,
        /// How much it may vary; negative varies downwards.
        width: f64,
    },
    /// `v * (1 + share * (2r - 1))`: around the value.
    Around {
        /// How far to each side, as a share of the value.
        share: f64,
    },
    /// `v + min(v * share * r, limit - v)`: above the value, clipped. At the limit nothing is left of it.
    Above {
        /// The most that is added, as a share of the value.
        share: f64,
        /// What the sum may not pass.
        limit: f64,
    },
    /// `v + most * r`: the same width everywhere.
    Additive {
        /// The most that is added.
        most: f64,
    },
    /// `v + m / per`, with `m` one of the whole numbers `0..=most`: whole milliseconds on top of seconds.
    AdditiveWhole {
        /// The greatest `m`.
        most: u64,
        /// How many `m` make one unit.
        per: f64,
    },
    /// One of the whole numbers `0..=v`. The original fails if the value is negative.
    Whole,
    /// `v + m`, with `m` one of the whole numbers `0..v`: from once to twice the value.
    Twice,
    /// `v * (low + trunc((high - low) * r))`: a random delay, times the number of the failure.
    Times {
        /// The least.
        low: f64,
        /// The most, where it is more than `low`.
        high: f64,
    },
}

impl Spread {
    /// Full jitter: from 0 up to the value.
    pub const FULL: Spread = Spread::From { low: 0.0 };

    /// A value spread, or `None` where the original fails.
    pub fn value(self, v: f64, random: Random) -> Option<f64> {
        let r = || random.fraction();
        Some(match self {
            Spread::None => v,
            Spread::From { low } => low + (v.max(low) - low) * r(),
            Spread::Half => v / 2.0 + v / 2.0 * r(),
            Spread::Between { low, width } => v * (low + width * r()),
            Spread::Around { share } => v * (1.0 + share * (2.0 * r() - 1.0)),
            Spread::Above { share, limit } => v + (v * share * r()).min(limit - v),
            Spread::Additive { most } => v + most * r(),
            Spread::AdditiveWhole { most, per } => v + random.below(most.saturating_add(1)) as f64 / per,
            Spread::Whole if v < 0.0 => return None,
            Spread::Whole => random.below((v as u64).saturating_add(1)) as f64,
            Spread::Twice => v + random.below(v as u64) as f64,
            Spread::Times { low, high } => v * (low + (r() * (high - low).max(0.0)).trunc()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(spread: Spread, v: f64) -> (f64, f64) {
        let end = |draw| spread.value(v, Random::Draw(draw)).unwrap();
        (end(0), end(u64::MAX))
    }

    #[test]
    fn ranges_are_those_of_the_documentation() {
        let close = |(low, high): (f64, f64), expected: (f64, f64)| {
            assert_eq!(low, expected.0);
            assert!((high - expected.1).abs() < 1e-9 * expected.1, "{high} against {}", expected.1);
        };
        close(ends(Spread::None, 8.0), (8.0, 8.0));
        close(ends(Spread::FULL, 8.0), (0.0, 8.0));
        close(ends(Spread::From { low: 2.0 }, 8.0), (2.0, 8.0));
        close(ends(Spread::Half, 8.0), (4.0, 8.0));
        close(ends(Spread::Between { low: 1.0, width: -0.25 }, 8.0), (8.0, 6.0));
        close(ends(Spread::Around { share: 0.25 }, 8.0), (6.0, 10.0));
        close(ends(Spread::Above { share: 0.5, limit: 10.0 }, 8.0), (8.0, 10.0));
        close(ends(Spread::Above { share: 0.5, limit: 10.0 }, 10.0), (10.0, 10.0));
        close(ends(Spread::Additive { most: 1.0 }, 8.0), (8.0, 9.0));
        close(ends(Spread::AdditiveWhole { most: 1000, per: 1000.0 }, 8.0), (8.0, 9.0));
        close(ends(Spread::Whole, 8.0), (0.0, 8.0));
        close(ends(Spread::Twice, 8.0), (8.0, 15.0));
        close(ends(Spread::Times { low: 1.0, high: 11.0 }, 3.0), (3.0, 30.0));
    }

    #[test]
    fn a_value_below_the_least_is_the_least() {
        assert_eq!(ends(Spread::From { low: 3.0 }, 1.0), (3.0, 3.0));
    }

    #[test]
    fn a_range_of_less_than_nothing_fails_as_in_the_original() {
        assert_eq!(Spread::Whole.value(-1.0, Random::Draw(0)), None);
    }
}
