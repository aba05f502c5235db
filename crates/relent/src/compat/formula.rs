//! Delays that are a formula of the number of the failure: grow, cap, spread, round, clamp.
//!
//! Most systems are one row of parameters here. What tells them apart, and what makes them differ in the last bit or by
//! a whole cap, is the order: a cap before the spread keeps the jitter but lets a delay exceed the cap, a cap after it
//! (`most`) keeps the bound but leaves no jitter once the curve has reached it.

use super::{Random, Unit, growth::Growth, pushback::OnPushback, spread::Spread};
use crate::{Backoff, Step, Verdict};
use core::time::Duration;

/// Delays by a formula: `clamp(round(spread(min(growth(k), cap))))`, in floating point.
///
/// ```
/// use relent::{Policy, compat::{Formula, Growth, Random, Spread}};
///
/// // stamina: min(5, 0.1 * 2^(n-1) + U(0, 1)) seconds
/// static STAMINA: Formula = Formula {
///     first: 0.1,
///     growth: Growth::Power { factor: 2.0 },
///     spread: Spread::Additive { most: 1.0 },
///     most: 5.0,
///     ..Formula::SECONDS
/// };
/// assert_eq!(STAMINA.value(2, &mut 0, Random::Fraction(0.5)), Some(0.7));
/// const POLICY: Policy = Policy::custom(&STAMINA).max_attempts(10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Formula {
    /// The name shown by `explain`; of a profile, the profile's.
    pub name: &'static str,
    /// What the numbers below mean.
    pub unit: Unit,
    /// The first delay, where it is not on the curve. It is neither capped nor spread.
    pub lead: Option<f64>,
    /// The value of the curve at step 0.
    pub first: f64,
    /// How it grows from there.
    pub growth: Growth,
    /// The step of the first failure: 0 where the curve starts with `first`, 1 where it starts a step later, -1 where
    /// the lead comes before it.
    pub offset: i32,
    /// The most the curve may be *before* the spread.
    pub cap: f64,
    /// What becomes of 0 times infinity, far out on a curve that starts with 0: 0 where the original counts in whole
    /// numbers of any size.
    pub nan: f64,
    /// How the value is spread.
    pub spread: Spread,
    /// How the spread value is rounded.
    pub round: Rounding,
    /// The most a delay may be *after* the spread.
    pub most: f64,
    /// The least a delay may be after the spread. It wins over `most`.
    pub least: f64,
    /// What a pushback does.
    pub pushback: OnPushback,
}

/// How a spread value is rounded, in the unit of the formula.
///
/// ```
/// use relent::compat::{Formula, Growth, Random, Rounding};
///
/// let second = |round| {
///     let growth = Growth::Power { factor: 1.6 };
///     Formula { growth, round, ..Formula::MILLIS }.value(2, &mut 0, Random::Draw(0)).unwrap()
/// };
/// assert_eq!((second(Rounding::Exact), second(Rounding::Truncate), second(Rounding::Nearest)), (1.6, 1.0, 2.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Not at all.
    Exact,
    /// Toward zero, as a conversion to an integer does in Go and Java. What is no number becomes 0.
    Truncate,
    /// Down, as JavaScript's `Math.floor`.
    Floor,
    /// To the nearest, halves up, as JavaScript's `Math.round`.
    Nearest,
}

impl Formula {
    /// Seconds, nothing special: what a row of parameters starts from.
    pub const SECONDS: Formula = Formula {
        name: "formula",
        unit: Unit::Seconds,
        lead: None,
        first: 1.0,
        growth: Growth::Constant,
        offset: 0,
        cap: f64::INFINITY,
        nan: 0.0,
        spread: Spread::None,
        round: Rounding::Exact,
        most: f64::INFINITY,
        least: 0.0,
        pushback: OnPushback::Raises,
    };

    /// The same in milliseconds.
    pub const MILLIS: Formula = Formula { unit: Unit::Millis, ..Formula::SECONDS };

    /// The same in ticks of 100 ns.
    pub const TICKS: Formula = Formula { unit: Unit::Ticks, ..Formula::SECONDS };

    /// The same in nanoseconds.
    pub const NANOS: Formula = Formula { unit: Unit::Nanos, ..Formula::SECONDS };

    /// The delay after failure `k` in units, exactly as the original computes it; `None` where the original fails.
    /// `memory` is 0 before the first.
    pub fn value(&self, k: u32, memory: &mut u64, random: Random) -> Option<f64> {
        self.value_of_at_least(k, memory, random, f64::NEG_INFINITY)
    }

    fn value_of_at_least(&self, k: u32, memory: &mut u64, random: Random, least: f64) -> Option<f64> {
        let step = (i64::from(k) - 1 + i64::from(self.offset)).clamp(0, i64::from(u32::MAX)) as u32;
        let grown = self.growth.value(self.first, step, memory)?;
        if let (Some(lead), 0..=1) = (self.lead, k) {
            return Some(lead);
        }
        let grown = if grown.is_nan() { self.nan } else { grown };
        let capped = grown.min(self.cap);
        let spread = self.spread.value(capped.max(least), random)?;
        Some(self.round.value(spread).min(self.most).max(self.least))
    }
}

impl Backoff for Formula {
    fn name(&self) -> &str {
        self.name
    }

    fn delay(&self, step: &mut Step) -> Option<Duration> {
        // A curve that needs no memory keeps there how many failures a pushback has made it forget.
        let forgotten = if self.growth.remembers() { 0 } else { step.memory as u32 };
        let k = step.failures.saturating_sub(forgotten);
        let pushback = match step.verdict {
            Verdict::After(pushback) => Some(pushback),
            _ => None,
        };
        let least = match pushback {
            Some(pushback) if self.pushback == OnPushback::Stretched => self.unit.of(pushback),
            _ => f64::NEG_INFINITY,
        };
        let own = self.value_of_at_least(k, &mut step.memory, Random::Draw(step.draw), least)?;
        let own = self.unit.duration(own);
        let Some(pushback) = pushback else { return Some(own) };
        if self.pushback == OnPushback::Restarts {
            step.memory = if self.growth.remembers() { 0 } else { u64::from(step.failures) };
        }
        Some(self.pushback.delay(own, pushback))
    }

    fn handles_pushback(&self) -> bool {
        self.pushback != OnPushback::Raises
    }
}

impl Rounding {
    fn value(self, value: f64) -> f64 {
        match self {
            Rounding::Exact => value,
            Rounding::Truncate if value.is_nan() => 0.0,
            Rounding::Truncate => value.trunc(),
            Rounding::Floor => value.floor(),
            Rounding::Nearest => (value + 0.5).floor(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_CAP: u32 = 40;

    fn ends(rule: Formula) -> (f64, f64) {
        let end = |draw| rule.value(AT_CAP, &mut 0, Random::Draw(draw)).unwrap();
        (end(0), end(u64::MAX))
    }

    const DOUBLING: Formula = Formula { growth: Growth::Power { factor: 2.0 }, ..Formula::SECONDS };

    /// Google Cloud, tenacity, stamina, urllib3 and others: everybody waits the identical time.
    #[test]
    fn a_cap_after_the_spread_leaves_no_jitter_there() {
        let rule = Formula { spread: Spread::AdditiveWhole { most: 1000, per: 1000.0 }, most: 64.0, ..DOUBLING };
        assert_eq!(ends(rule), (64.0, 64.0));
    }

    #[test]
    fn a_cap_before_the_spread_is_exceeded() {
        let rule = Formula { cap: 64.0, spread: Spread::Between { low: 0.8, width: 0.4 }, ..DOUBLING };
        assert!(ends(rule).1 > 76.0);
    }

    #[test]
    fn the_least_wins_over_the_most() {
        assert_eq!(ends(Formula { least: 7.0, most: 5.0, ..DOUBLING }), (7.0, 7.0));
    }

    #[test]
    fn zero_stays_zero_unless_the_original_says_otherwise() {
        let value = |nan| Formula { first: 0.0, nan, most: 30.0, ..DOUBLING }.value(5000, &mut 0, Random::Draw(0));
        assert_eq!(value(0.0), Some(0.0));
        assert_eq!(value(f64::INFINITY), Some(30.0));
    }

    #[test]
    fn a_lead_comes_first_and_unspread() {
        let rule = Formula { lead: Some(3.0), spread: Spread::FULL, ..DOUBLING };
        assert_eq!(rule.value(1, &mut 0, Random::Draw(0)), Some(3.0));
        assert_eq!(rule.value(2, &mut 0, Random::Fraction(1.0)), Some(2.0));
    }

    #[test]
    fn a_pushback_can_start_the_curve_again() {
        let once = |growth| {
            let rule = Formula { growth, pushback: OnPushback::Restarts, ..Formula::SECONDS };
            let mut memory = 0;
            let mut delay = |failures, verdict| {
                let mut step = Step { failures, elapsed: Duration::ZERO, verdict, draw: 0, memory };
                let delay = rule.delay(&mut step).unwrap().as_secs();
                memory = step.memory;
                delay
            };
            let pushback = Verdict::After(Duration::from_secs(7));
            let failures = [Verdict::Transient, Verdict::Transient, pushback, Verdict::Transient, Verdict::Transient];
            (1..).zip(failures).map(|(k, verdict)| delay(k, verdict)).collect::<Vec<_>>()
        };
        assert_eq!(once(Growth::Power { factor: 2.0 }), [1, 2, 7, 1, 2]);
        assert_eq!(once(Growth::Product { factor: 2.0, limit: 60.0 }), [1, 2, 7, 1, 2]);
    }

    #[test]
    fn a_stretched_pushback_is_spread_too() {
        let rule = Formula {
            spread: Spread::Above { share: 0.2, limit: f64::INFINITY },
            pushback: OnPushback::Stretched,
            ..DOUBLING
        };
        let verdict = Verdict::After(Duration::from_secs(60));
        let mut step = Step { failures: 1, elapsed: Duration::ZERO, verdict, draw: 1 << 63, memory: 0 };
        assert_eq!(rule.delay(&mut step), Some(Duration::from_secs(66)));
    }
}
