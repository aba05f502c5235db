//! Delays in whole numbers, each interval computed from the one before it.
//!
//! Truncating at each step is what makes these differ from a formula: 500 ms times 1.5 is 2530 ms after four steps on
//! the JVM, and 2531 in floating point. Where the growth stops, and whether the first interval is capped, differs too.

use super::{Random, Unit, memory, pushback::OnPushback};
use crate::{Backoff, Step, Verdict};
use core::time::Duration;

/// Delays in whole units: an interval that grows from failure to failure, spread.
///
/// ```
/// use relent::compat::{Compound, Random};
///
/// // cenkalti/backoff's defaults: 500 ms, times 1.5, up to 60 s, plus or minus half.
/// let rule = Compound::CENKALTI;
/// let mut memory = 0;
/// assert_eq!(rule.value(&mut memory, Random::Fraction(0.5)), Some(500_000_000));
/// assert_eq!(rule.value(&mut memory, Random::Fraction(0.5)), Some(750_000_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compound {
    /// The name shown by `explain`; of a profile, the profile's.
    pub name: &'static str,
    /// What the numbers below mean.
    pub unit: Unit,
    /// The first interval. The cap does not apply to it.
    pub first: i64,
    /// What each further one is multiplied by.
    pub factor: f64,
    /// The most an interval may be, from the second on, before it is spread.
    pub cap: i64,
    /// How the cap is held.
    pub capped: Capped,
    /// How an interval is spread.
    pub spread: WholeSpread,
    /// The least a delay may be.
    pub least: i64,
    /// The most a delay may be after the spread. It wins over `least`.
    pub most: i64,
    /// What a pushback does.
    pub pushback: OnPushback,
}

/// How a growing interval is held at its cap.
///
/// ```
/// use relent::compat::{Capped, Compound, Random, WholeSpread};
///
/// let fourth = |capped| {
///     let rule = Compound { first: 5, factor: 2.0, cap: 11, capped, spread: WholeSpread::None, ..Compound::CENKALTI };
///     let mut memory = 0;
///     [(); 4].map(|()| rule.value(&mut memory, Random::Draw(0)).unwrap())[3]
/// };
/// assert_eq!((fourth(Capped::After), fourth(Capped::Never)), (11, 40));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capped {
    /// The next interval is the cap if this one is `cap / factor` or more. So a factor below 1 shrinks.
    Before,
    /// The next interval is the cap if it is more than the cap.
    After,
    /// The next interval is the cap if this one is `cap / factor` (rounded down) or more. For whole factors.
    Quotient,
    /// Not at all: the interval grows to the end of its type, and only the delay is limited.
    Never,
}

/// How a whole interval `v` is spread, with `r` the random fraction in `[0, 1)`.
///
/// ```
/// use relent::compat::{Random, WholeSpread};
///
/// assert_eq!(WholeSpread::None.value(100, Random::Fraction(0.0)), Some(100));
/// assert_eq!(WholeSpread::Margin(0.5).value(100, Random::Fraction(0.0)), Some(50));
/// assert_eq!(WholeSpread::By(10).value(100, Random::Fraction(0.0)), Some(110), "the longest");
/// assert_eq!(WholeSpread::UpTo.value(0, Random::Fraction(0.0)), None, "the original fails");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WholeSpread {
    /// Not at all.
    None,
    /// A whole number from `v - share * v` to `v + share * v`, the latter included: cenkalti's.
    Margin(f64),
    /// One of `1..=v`.
    UpTo,
    /// Random bits modulo `v`, so one of `0..v`.
    Remainder,
    /// `v + (1 - 2r) * most`: a random number of 0 gives the *longest* delay.
    By(i64),
    /// The same, added up in floating point, which can be one more.
    ByInFloat(i64),
    /// `v * (1 + (1 - 2r) * share)`.
    Share(f64),
    /// `low + r * (high - low)`, whatever `v` is.
    InRange {
        /// The least.
        low: i64,
        /// The most.
        high: i64,
    },
    /// The same, added up in floating point, which can be one more.
    InRangeInFloat {
        /// The least.
        low: i64,
        /// The most.
        high: i64,
    },
}

impl Compound {
    /// The defaults of cenkalti/backoff.
    pub const CENKALTI: Compound = Compound {
        name: "compound",
        unit: Unit::Nanos,
        first: 500_000_000,
        factor: 1.5,
        cap: 60_000_000_000,
        capped: Capped::Before,
        spread: WholeSpread::Margin(0.5),
        least: i64::MIN,
        most: i64::MAX,
        pushback: OnPushback::Raises,
    };

    /// The next delay in units, exactly as the original computes it; `None` where the original fails. It can be
    /// negative where the original's can. `memory` is 0 before the first.
    pub fn value(&self, memory: &mut u64, random: Random) -> Option<i64> {
        let interval = memory::recall_whole(*memory).unwrap_or(self.first);
        memory::remember_whole(memory, self.next(interval));
        Some(self.spread.value(interval, random)?.max(self.least).min(self.most))
    }

    /// The interval after this one. Casts from floating point saturate.
    fn next(&self, interval: i64) -> i64 {
        let grown = (interval as f64 * self.factor) as i64;
        match self.capped {
            Capped::Before if interval as f64 >= self.cap as f64 / self.factor => self.cap,
            Capped::Quotient if interval >= self.cap / (self.factor as i64).max(1) => self.cap,
            Capped::After => grown.min(self.cap),
            Capped::Before | Capped::Quotient | Capped::Never => grown,
        }
    }
}

impl Backoff for Compound {
    fn name(&self) -> &str {
        self.name
    }

    fn delay(&self, step: &mut Step) -> Option<Duration> {
        let own = self.unit.whole(self.value(&mut step.memory, Random::Draw(step.draw))?);
        let Verdict::After(pushback) = step.verdict else { return Some(own) };
        if self.pushback == OnPushback::Restarts {
            step.memory = 0;
        }
        Some(self.pushback.delay(own, pushback))
    }

    fn handles_pushback(&self) -> bool {
        self.pushback != OnPushback::Raises
    }
}

impl WholeSpread {
    /// An interval spread, or `None` where the original fails: an empty range.
    pub fn value(self, v: i64, random: Random) -> Option<i64> {
        let r = || random.fraction();
        Some(match self {
            WholeSpread::None => v,
            WholeSpread::Margin(0.0) => v,
            WholeSpread::Margin(share) => {
                let delta = share * v as f64;
                let (low, high) = (v as f64 - delta, v as f64 + delta);
                (low + r() * (high - low + 1.0)) as i64
            }
            WholeSpread::UpTo | WholeSpread::Remainder if v <= 0 => return None,
            WholeSpread::UpTo => 1 + random.below(v as u64) as i64,
            WholeSpread::Remainder => (random.bits() % v as u64) as i64,
            WholeSpread::By(most) => v.saturating_add(((1.0 - r() * 2.0) * most as f64) as i64),
            WholeSpread::ByInFloat(most) => (v as f64 + (1.0 - r() * 2.0) * most as f64) as i64,
            WholeSpread::Share(share) => (v as f64 * (1.0 + (1.0 - r() * 2.0) * share)) as i64,
            WholeSpread::InRange { low, high } => low.saturating_add((r() * high.saturating_sub(low) as f64) as i64),
            WholeSpread::InRangeInFloat { low, high } => (r() * (high as f64 - low as f64) + low as f64) as i64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(rule: Compound, draw: u64) -> Vec<Option<i64>> {
        let mut memory = 0;
        (1..=12).map(|_| rule.value(&mut memory, Random::Draw(draw))).collect()
    }

    #[test]
    fn the_first_delay_of_cenkalti_ignores_its_cap() {
        let rule = Compound { first: 2_000_000_000, cap: 1_000_000_000, ..Compound::CENKALTI };
        assert_eq!(values(rule, 1 << 63)[..3], [Some(2_000_000_000), Some(1_000_000_000), Some(1_000_000_000)]);
    }

    #[test]
    fn a_margin_above_one_is_negative_and_waits_not_at_all() {
        let rule = Compound { spread: WholeSpread::Margin(2.0), ..Compound::CENKALTI };
        assert_eq!(values(rule, 0)[0], Some(-500_000_000));
        let mut step = Step { failures: 1, elapsed: Duration::ZERO, verdict: Verdict::Transient, draw: 0, memory: 0 };
        assert_eq!(rule.delay(&mut step), Some(Duration::ZERO));
    }

    #[test]
    fn an_interval_of_nothing_stays_nothing() {
        let rule = Compound { first: 0, ..Compound::CENKALTI };
        assert!(values(rule, u64::MAX).iter().all(|value| *value == Some(0)));
    }

    #[test]
    fn growth_past_the_end_of_the_type_is_held() {
        let rule = Compound { first: i64::MAX / 2, factor: 2.1, cap: i64::MAX, ..Compound::CENKALTI };
        let still = Compound { spread: WholeSpread::None, ..rule };
        assert_eq!(values(still, 0)[..2], [Some(i64::MAX / 2), Some(i64::MAX)]);
        let uncapped = Compound { capped: Capped::Never, spread: WholeSpread::Margin(1.0), ..rule };
        assert!(values(uncapped, u64::MAX).iter().all(Option::is_some));
    }

    /// The greatest draw below 1 is lost where numbers this large are added up in floating point.
    #[test]
    fn adding_in_floating_point_may_round_up_to_the_end() {
        let greatest = Random::Draw(u64::MAX);
        let (low, high) = (1_000_000_000, 3_000_000_000);
        assert_eq!(WholeSpread::InRange { low, high }.value(0, greatest), Some(high - 1));
        assert_eq!(WholeSpread::InRangeInFloat { low, high }.value(0, greatest), Some(high));
        assert_eq!(WholeSpread::By(100_000_000).value(low, greatest), Some(900_000_001));
        assert_eq!(WholeSpread::ByInFloat(100_000_000).value(low, greatest), Some(900_000_000));
        assert_eq!(WholeSpread::ByInFloat(i64::MAX).value(i64::MAX, Random::Draw(0)), Some(i64::MAX));
    }

    #[test]
    fn a_quotient_reaches_the_cap_before_a_product_does() {
        let rule = Compound { first: 5, factor: 2.0, cap: 11, capped: Capped::Quotient, ..Compound::CENKALTI };
        let rule = Compound { spread: WholeSpread::None, ..rule };
        assert_eq!(values(rule, 0)[..3], [Some(5), Some(11), Some(11)], "11 / 2 is 5 in whole numbers");
        let thirds = Compound { factor: 3.0, cap: 100, ..rule };
        assert_eq!(values(thirds, 0)[..5], [Some(5), Some(15), Some(45), Some(100), Some(100)]);
        let shrinks = Compound { factor: 0.5, ..rule };
        assert_eq!(values(shrinks, 0)[..3], [Some(5), Some(2), Some(1)]);
    }

    /// 60 s plus or minus half, where the user asked for at most 60 s.
    #[test]
    fn cenkalti_exceeds_its_cap() {
        assert_eq!(values(Compound { first: 60_000_000_000, ..Compound::CENKALTI }, u64::MAX)[3], Some(90_000_000_001));
    }

    #[test]
    fn an_empty_range_fails_as_in_the_original() {
        for spread in [WholeSpread::UpTo, WholeSpread::Remainder] {
            assert_eq!(spread.value(0, Random::Draw(1)), None);
            assert_eq!(spread.value(-5, Random::Draw(1)), None);
        }
    }

    #[test]
    fn envoy_holds_its_cap_at_half() {
        let rule = Compound {
            unit: Unit::Millis,
            first: 25,
            factor: 2.0,
            cap: 250,
            capped: Capped::Quotient,
            spread: WholeSpread::None,
            ..Compound::CENKALTI
        };
        assert_eq!(values(rule, 0)[..6], [25, 50, 100, 200, 250, 250].map(Some));
    }
}
