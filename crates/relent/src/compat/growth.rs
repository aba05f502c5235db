//! How a curve in floating point grows from step to step.

use super::memory::{recall, remember};

/// How the curve of a [`Formula`](super::Formula) grows, from its `first` value at step 0.
///
/// ```
/// use relent::compat::{Formula, Growth, Random};
///
/// let delays = |growth| {
///     let (rule, mut memory) = (Formula { growth, ..Formula::SECONDS }, 0);
///     [1, 2, 3, 4].map(|k| rule.value(k, &mut memory, Random::Draw(0)).unwrap())
/// };
/// assert_eq!(delays(Growth::Constant), [1.0, 1.0, 1.0, 1.0]);
/// assert_eq!(delays(Growth::Linear { step: 2.0 }), [1.0, 3.0, 5.0, 7.0]);
/// assert_eq!(delays(Growth::Power { factor: 2.0 }), [1.0, 2.0, 4.0, 8.0]);
/// assert_eq!(delays(Growth::Fibonacci), [1.0, 1.0, 2.0, 3.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Growth {
    /// Not at all.
    Constant,
    /// `first + step * n`.
    Linear {
        /// What each step adds. Negative shrinks.
        step: f64,
    },
    /// `first * factor^n`.
    Power {
        /// The multiplier.
        factor: f64,
    },
    /// The value before times `factor`, at most `limit`: one multiplication, and one rounding, after the other, which
    /// differs from the power in the last bits. `first` itself is not limited.
    Product {
        /// The multiplier.
        factor: f64,
        /// The most the value may be, from step 1 on.
        limit: f64,
    },
    /// The value before plus `step`, while it is not past `limit`; then the last one for ever (which is `first - step`
    /// where `first` is past it already), or the end.
    Sum {
        /// What each step adds.
        step: f64,
        /// The most the value may be.
        limit: f64,
        /// Whether the last value repeats.
        repeat: bool,
    },
    /// `first` times 1, 1, 2, 3, 5 ...
    Fibonacci,
}

impl Growth {
    /// The value at `step`. Those that remember take it from `memory` and ignore `step`.
    pub(super) fn value(self, first: f64, step: u32, memory: &mut u64) -> Option<f64> {
        match self {
            Growth::Constant => Some(first),
            Growth::Linear { step: more } => Some(first + more * f64::from(step)),
            Growth::Power { factor } => Some(first * power(factor, step)),
            Growth::Product { factor, limit } => {
                let value = recall(*memory).unwrap_or(first);
                remember(memory, (value * factor).min(limit));
                Some(value)
            }
            Growth::Sum { step: more, limit, repeat } => {
                let value = recall(*memory).unwrap_or(first);
                if value <= limit {
                    remember(memory, value + more);
                    return Some(value);
                }
                remember(memory, value);
                repeat.then_some(value - more)
            }
            Growth::Fibonacci => Some(first * fibonacci(step)),
        }
    }

    pub(super) const fn remembers(self) -> bool {
        matches!(self, Growth::Product { .. } | Growth::Sum { .. })
    }
}

/// By repeated squaring, as Go's `math.Pow` does for whole exponents. The C library's `pow` rounds better, but the
/// original whose results must be equal to the nanosecond is the one in Go, and whole powers of 2 are exact in both.
pub(super) fn power(factor: f64, mut exponent: u32) -> f64 {
    let (mut result, mut square) = (1.0, factor);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

/// The Fibonacci number after `step` others, infinite from about the 1476th on.
fn fibonacci(step: u32) -> f64 {
    let (mut a, mut b) = (1.0, 1.0);
    for _ in 0..step.min(1500) {
        (a, b) = (b, a + b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_exact_where_they_can_be() {
        assert_eq!(power(2.0, 0), 1.0);
        assert_eq!(power(2.0, 1023), 2f64.powi(1023));
        assert_eq!(power(2.0, 1024), f64::INFINITY);
        assert_eq!(power(1.5, 30), 3f64.powi(30) / 2f64.powi(30));
        assert_eq!(power(0.5, u32::MAX), 0.0);
        assert_eq!(power(1.0, u32::MAX), 1.0);
    }

    #[test]
    fn a_product_rounds_at_each_step() {
        let product = Growth::Product { factor: 1.3, limit: f64::INFINITY };
        let mut memory = 0;
        let mut expected = 0.1;
        for k in 0..10 {
            assert_eq!(product.value(0.1, k, &mut memory), Some(expected));
            expected *= 1.3;
        }
    }

    #[test]
    fn a_sum_that_starts_past_its_limit_repeats_one_step_less() {
        let sum = Growth::Sum { step: 2.0, limit: 3.0, repeat: true };
        let mut memory = 0;
        assert_eq!(sum.value(5.0, 0, &mut memory), Some(3.0));
        assert_eq!(sum.value(5.0, 1, &mut memory), Some(3.0));
        let ends = Growth::Sum { step: 2.0, limit: 3.0, repeat: false };
        assert_eq!(ends.value(2.0, 0, &mut 0), Some(2.0));
        assert_eq!(ends.value(5.0, 0, &mut 0), None);
    }

    #[test]
    fn fibonacci_numbers() {
        let values: Vec<f64> = (0..8).map(|k| Growth::Fibonacci.value(1.0, k, &mut 0).unwrap()).collect();
        assert_eq!(values, [1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0]);
        assert_eq!(fibonacci(u32::MAX), f64::INFINITY);
    }
}
