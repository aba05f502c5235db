//! Delays drawn from the delay before, jitter included: one long draw makes all later ones long.

use super::{Random, Unit, growth::power, memory, pushback::OnPushback};
use crate::{Backoff, Step, Verdict};
use core::time::Duration;

/// Delays each of which is drawn from the one before it.
///
/// ```
/// use relent::compat::{Chained, Link, Random, Unit};
///
/// let rule = Chained { unit: Unit::Seconds, first: 0.1, cap: 10.0, link: Link::Decorrelated, ..Chained::SECONDS };
/// let mut memory = 0;
/// assert_eq!(rule.value(1, &mut memory, Random::Fraction(0.5)), Some(0.2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chained {
    /// The name shown by `explain`; of a profile, the profile's.
    pub name: &'static str,
    /// What the numbers below mean.
    pub unit: Unit,
    /// The least delay of those that have one, and where the chain starts.
    pub first: f64,
    /// The most a delay may be.
    pub cap: f64,
    /// How a delay follows from the one before.
    pub link: Link,
    /// What a pushback does.
    pub pushback: OnPushback,
}

/// How a delay follows from the one before, `p`.
///
/// ```
/// use relent::compat::{Chained, Link, Random};
///
/// let rule = Chained { first: 0.1, cap: 10.0, link: Link::Decorrelated, ..Chained::SECONDS };
/// let mut memory = 0;
/// let longest = Random::Fraction(1.0);
/// let delays = [1, 2, 3].map(|k| rule.value(k, &mut memory, longest).unwrap());
/// assert!((delays[2] - 2.7).abs() < 1e-9, "each up to three times the one before: {delays:?}");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Link {
    /// `min(cap, U[first, 3p))`, with `p = first` before the first: the cap clips, so many delays are exactly the cap.
    Decorrelated,
    /// `first`, then `p + m` with `m` one of the whole numbers `0..min(3p, cap) - p`: never shorter than the one before.
    Rising,
    /// `first`, then one of the whole numbers `0..p * 2^k`: the draws compound. From where `p * 2^k` reaches the cap
    /// on, the cap for ever. Fails after a draw of 0.
    Compounding,
    /// `min(m * factor^(k-1), cap)`, with `m` drawn once, before the first delay, from `[first, first + width)`.
    DrawnOnce {
        /// How much `m` may vary.
        width: f64,
        /// The multiplier.
        factor: f64,
    },
    /// The smoothed form, "decorrelated jitter V2": `(x - p) / 1.4 * first`, at most the cap, with
    /// `x = factor^t * tanh(sqrt(4t))`, `t = k - 1 + r`, and `p` the `x` before. Ticks are whole.
    Smoothed {
        /// The growth of the curve.
        factor: f64,
    },
}

impl Chained {
    /// A tenth of a second up to ten, by the AWS blog's rule: what a row of parameters starts from.
    pub const SECONDS: Chained = Chained {
        name: "chained",
        unit: Unit::Seconds,
        first: 0.1,
        cap: 10.0,
        link: Link::Decorrelated,
        pushback: OnPushback::Raises,
    };

    /// The delay after failure `k` in units, exactly as the original computes it; `None` where the original fails.
    /// `memory` is 0 before the first.
    pub fn value(&self, k: u32, memory: &mut u64, random: Random) -> Option<f64> {
        let before = memory::recall(*memory);
        let (value, kept) = match (self.link, before) {
            (Link::Decorrelated, before) => {
                let before = before.unwrap_or(self.first);
                let value = (self.first + (before * 3.0 - self.first) * random.fraction()).min(self.cap);
                (value, value)
            }
            (Link::DrawnOnce { width, factor }, before) => {
                let drawn = before.unwrap_or_else(|| self.first + width * random.fraction());
                ((drawn * power(factor, k.saturating_sub(1))).min(self.cap), drawn)
            }
            (Link::Smoothed { factor }, before) => self.smoothed(factor, k, before.unwrap_or(0.0), random),
            (Link::Rising | Link::Compounding, None) => (self.first, self.first),
            (Link::Rising, Some(before)) => {
                // Whole numbers: a third of the cap, rounded down, is enough for the cap.
                let high = if before >= (self.cap / 3.0).floor() { self.cap } else { before * 3.0 };
                let width = (high - before).abs();
                let value = before + random.below(width as u64) as f64;
                (value, value)
            }
            (Link::Compounding, Some(before)) => {
                let value = self.compounded(k, before, random)?;
                (value, value)
            }
        };
        memory::remember(memory, kept);
        Some(value)
    }

    /// The cap once reached stays: twice the cap is past the cap.
    fn compounded(&self, k: u32, before: f64, random: Random) -> Option<f64> {
        let shift = (1u64 << k.saturating_sub(1).min(62)) as f64;
        if before >= (self.cap / shift).floor() {
            return Some(self.cap);
        }
        let range = before * shift;
        (range >= 1.0).then(|| random.below(range as u64) as f64)
    }

    fn smoothed(&self, factor: f64, k: u32, before: f64, random: Random) -> (f64, f64) {
        let t = f64::from(k.saturating_sub(1)) + random.fraction();
        let x = factor.powf(t) * (4.0 * t).sqrt().tanh();
        let value = if self.first == 0.0 {
            0.0
        } else if x.is_finite() {
            (x - before).max(0.0) / 1.4 * self.first
        } else {
            f64::INFINITY
        };
        let value = if self.unit == Unit::Ticks { value.trunc() } else { value };
        (value.min(self.cap), x)
    }
}

impl Backoff for Chained {
    fn name(&self) -> &str {
        self.name
    }

    fn delay(&self, step: &mut Step) -> Option<Duration> {
        let own = self.value(step.failures, &mut step.memory, Random::Draw(step.draw))?;
        let own = self.unit.duration(own);
        let Verdict::After(pushback) = step.verdict else { return Some(own) };
        Some(self.pushback.delay(own, pushback))
    }

    fn handles_pushback(&self) -> bool {
        self.pushback != OnPushback::Raises
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(rule: Chained, draw: u64) -> Vec<Option<f64>> {
        let mut memory = 0;
        (1..=12).map(|k| rule.value(k, &mut memory, Random::Draw(draw))).collect()
    }

    /// The clip puts the whole tail of the distribution exactly at the cap.
    #[test]
    fn aws_decorrelated_waits_exactly_the_cap() {
        assert_eq!(values(Chained::SECONDS, u64::MAX)[8..], [Some(10.0); 4]);
    }

    #[test]
    fn finagle_compounds_its_draws_and_fails_after_a_zero() {
        let nanos = Chained { unit: Unit::Nanos, first: 1e8, cap: 1e10, ..Chained::SECONDS };
        let rule = Chained { link: Link::Compounding, ..nanos };
        let half = values(rule, 1 << 63);
        assert_eq!(half[..5], [1e8, 1e8, 2e8, 8e8, 1e10].map(Some), "2^(n(n+1)/2), not 2^n");
        assert_eq!(values(rule, 0)[..4], [Some(1e8), Some(0.0), None, None]);
    }

    #[test]
    fn finagle_decorrelated_never_gets_shorter() {
        let rule = Chained { unit: Unit::Nanos, first: 1e8, cap: 1e10, link: Link::Rising, ..Chained::SECONDS };
        let mut memory = 0;
        let mut before = 0.0;
        for k in 1..100 {
            let value = rule.value(k, &mut memory, Random::Draw(crate::rng::mix(u64::from(k)))).unwrap();
            assert!((before..1e10).contains(&value));
            before = value;
        }
    }

    #[test]
    fn the_smoothed_form_ends_at_its_cap() {
        let rule = Chained { link: Link::Smoothed { factor: 2.0 }, ..Chained::SECONDS };
        for draw in [0, 1 << 63, u64::MAX] {
            let mut memory = 0;
            for k in [1, 2, 3, 1023, 1024, 1025, u32::MAX, u32::MAX] {
                let value = rule.value(k, &mut memory, Random::Draw(draw)).unwrap();
                assert!((0.0..=10.0).contains(&value), "{k}: {value}");
            }
        }
    }
}
