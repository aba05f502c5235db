//! A policy as these engines see it: for each number of failures, the range its next delay is drawn from.

use crate::engine::draws::remembers_draws;
use relent::{Curve, Policy};

/// The delays of a policy by the number of failures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Levels {
    /// The range of the delay after failure `i + 1`, in nanoseconds: the least and the width.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// Whether the last range goes for all failures beyond; else the call gives up after the last.
    pub(crate) endless: bool,
}

/// Failures that are told apart at most.
const MOST: usize = 4096;

impl Levels {
    /// The levels, or why there are none.
    pub(crate) fn new(policy: &Policy) -> Result<Levels, &'static str> {
        if remembers_draws(policy) {
            return Err("a delay of this policy depends on the one before, so clients cannot be counted by attempts");
        }
        let settings = policy.settings();
        if matches!(settings.curve, Curve::Slots { .. }) {
            return Err("slots are not spread evenly");
        }
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for row in policy.schedule().take(MOST + 1) {
            let low = crate::time::nanos(row.delay.min);
            ranges.push((low, crate::time::nanos(row.delay.max) - low));
        }
        if settings.max_attempts.is_some_and(|most| most as usize <= MOST) {
            return Ok(Levels { ranges, endless: false });
        }
        let list_ends = ranges.len() <= MOST;
        if list_ends {
            return Ok(Levels { ranges, endless: false });
        }
        if settings.max_attempts.is_some() {
            return Err("more than 4096 attempts a client cannot be told apart");
        }
        let last = ranges[MOST];
        let same = ranges.iter().rposition(|range| *range != last).map_or(0, |i| i + 1);
        if same == MOST {
            return Err("the delay still grows after 4096 attempts: it needs a cap");
        }
        ranges.truncate(same + 1);
        Ok(Levels { ranges, endless: true })
    }

    /// The longest delay.
    pub(crate) fn longest(&self) -> u64 {
        self.ranges.iter().map(|(low, width)| low.saturating_add(*width)).max().unwrap_or(0)
    }

    /// How many numbers of failures are told apart, none included.
    pub(crate) const fn len(&self) -> usize {
        self.ranges.len() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::Jitter;
    use std::time::Duration;

    #[test]
    fn a_capped_curve_has_as_many_levels_as_it_grows() {
        let ms = Duration::from_millis;
        let policy = Policy::exponential(ms(100)).cap(ms(1000)).unlimited_attempts();
        let levels = Levels::new(&policy).unwrap();
        let widths: Vec<u64> = levels.ranges.iter().map(|range| range.1 / 1_000_000).collect();
        assert_eq!(widths, [100, 200, 400, 800, 1000]);
        assert!(levels.endless);
        let limited = Levels::new(&policy.max_attempts(3)).unwrap();
        assert_eq!((limited.ranges.len(), limited.endless), (2, false));
        assert!(Levels::new(&policy.jitter(Jitter::Decorrelated)).is_err());
        assert!(Levels::new(&Policy::linear(ms(1)).cap(ms(100_000_000)).unlimited_attempts()).is_err());
        assert_eq!(Levels::new(&policy.max_attempts(1000)).unwrap().ranges.len(), 999);
        assert!(Levels::new(&policy.max_attempts(10_000)).is_err());
    }
}
