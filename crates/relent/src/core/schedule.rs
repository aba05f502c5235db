//! The schedule: what a policy will do, as a table.
//!
//! Means are exact where a closed form exists. Two cases are computed: decorrelated jitter once its range has met the
//! cap (the distribution of the previous delay is carried along on a grid), and custom rules (a rule is a black box, so
//! it is run for a fixed set of clients).

use super::{
    bounds::Bounds,
    curve::{ATTEMPT_LIMIT, Shape, slots},
    delay::whole,
    jitter::{PackedJitter, Range, decorrelated},
    policy::Policy,
    trajectories::Trajectories,
};
use core::fmt;

impl Policy {
    /// The table of the policy: per attempt the least, mean and greatest delay before it, and their running sums.
    /// Endless if attempts are not limited.
    ///
    /// ```
    /// for row in relent::Policy::default().schedule() {
    ///     println!("attempt {}: {:?} to {:?}", row.attempt, row.delay.min, row.delay.max);
    /// }
    /// ```
    pub fn schedule(&self) -> Schedule<'_> {
        Schedule::new(self)
    }
}

/// The delay before one attempt, and all delays up to it.
///
/// ```
/// use relent::{Policy, Row};
/// use std::time::Duration;
///
/// let policy = Policy::exponential(Duration::from_secs(1));
/// let Row { attempt, delay, total, .. } = policy.schedule().nth(1).unwrap();
/// assert_eq!((attempt, delay.max, total.max), (3, Duration::from_secs(2), Duration::from_secs(3)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The attempt that starts after the delay: 2 for the first retry.
    pub attempt: u32,
    /// The delay before this attempt.
    pub delay: Bounds,
    /// The sum of all delays so far, which is when this attempt starts if attempts take no time.
    pub total: Bounds,
}

/// The rows of a policy, one a retry: see [`Policy::schedule`].
///
/// ```
/// use relent::Policy;
/// use std::time::Duration;
///
/// let policy = Policy::exponential(Duration::from_secs(1)).max_attempts(4);
/// let last = policy.schedule().last().unwrap();
/// assert_eq!(last.attempt, 4);
/// assert_eq!(last.delay.max, Duration::from_secs(4));
/// assert_eq!(last.total.mean, Duration::from_millis(3500));
/// ```
#[derive(Clone)]
pub struct Schedule<'a> {
    policy: &'a Policy,
    failures: u32,
    memory: u64,
    total: Bounds,
    carried: Carried,
}

/// What must be carried from row to row to know the mean.
#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "lives once, on the stack; a box would need an allocator")]
enum Carried {
    Nothing,
    Decorrelated(Distribution),
    Custom(Trajectories),
}

impl<'a> Schedule<'a> {
    pub(crate) fn new(policy: &'a Policy) -> Schedule<'a> {
        let carried = match (policy.shape, policy.shape.base()) {
            (Shape::Custom { .. }, _) => Carried::Custom(Trajectories::new(policy)),
            (_, Some(base)) if policy.jitter == PackedJitter::DECORRELATED => {
                Carried::Decorrelated(Distribution::new(base, policy.cap))
            }
            _ => Carried::Nothing,
        };
        Schedule { policy, failures: 0, memory: policy.first_memory(), total: Bounds::default(), carried }
    }

    fn bounds(&mut self) -> Option<Bounds> {
        let policy = self.policy;
        match &mut self.carried {
            Carried::Custom(trajectories) => return trajectories.next(policy, self.failures),
            Carried::Decorrelated(distribution) => return Some(distribution.next()),
            Carried::Nothing => {}
        }
        match policy.shape {
            Shape::Exponential { factor, .. } => {
                let v = f64::from_bits(self.memory);
                self.memory = (v * factor).to_bits();
                Some(Bounds::of(policy.jitter.range(whole(v), policy.cap)))
            }
            Shape::Slots { slot, .. } => (self.failures < ATTEMPT_LIMIT).then(|| {
                let greatest = slots(self.failures, slot, policy.cap) - 1;
                let greatest = greatest.saturating_mul(slot);
                Bounds::of_nanos(0, greatest.div_ceil(2), greatest)
            }),
            _ => policy.range(self.failures, 0).map(Bounds::of),
        }
    }
}

impl Iterator for Schedule<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.policy.max_attempts {
            return None;
        }
        let delay = self.bounds()?;
        self.total = self.total.saturating_add(delay);
        Some(Row { attempt: self.failures + 1, delay, total: self.total })
    }
}

impl fmt::Debug for Schedule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("policy", self.policy)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

/// The distribution of a decorrelated delay `d`, which follows `U[base, min(cap, 3 * previous))`.
///
/// Below the cap the mean is exact: `E' = (base + 3 E) / 2`. From the row on where the range can meet the cap, it is
/// `(base + E[min(cap, 3 d)]) / 2` over a grid of geometric cells, with the mass in a cell taken at its centre.
#[derive(Clone)]
struct Distribution {
    base: f64,
    cap: f64,
    mean: f64,
    /// The range of the delay, exactly.
    range: Range,
    limit: u64,
    mass: [f64; Distribution::CELLS],
    /// The ratio of a cell's edges.
    ratio: f64,
}

impl Distribution {
    const CELLS: usize = 256;

    fn new(base: u64, cap: u64) -> Distribution {
        let range = Range { low: base, width: 0 };
        let limit = cap;
        let (base, cap) = (base as f64, cap as f64);
        // The 256th root, by eight square roots.
        let ratio = (0..Self::CELLS.ilog2()).fold(cap / base, |x, _| square_root(x));
        let mut mass = [0.0; Self::CELLS];
        mass[0] = 1.0;
        Distribution { base, cap, mean: base, range, limit, mass, ratio }
    }

    fn next(&mut self) -> Bounds {
        let first = self.range.width == 0;
        let is_exact = self.range.high().saturating_mul(3) <= self.limit;
        let range_mean = if is_exact { 3.0 * self.mean } else { self.mean_range() };
        self.mean = (self.base + range_mean) / 2.0;
        self.range = decorrelated(self.range.low, self.range.high(), self.limit);
        self.step(first);
        Bounds::of_nanos(self.range.low, rounded(self.mean), self.range.high())
    }

    /// `E[min(cap, 3 d)]` over the grid.
    fn mean_range(&self) -> f64 {
        let mut edge = self.base;
        let mut sum = 0.0;
        for mass in self.mass {
            sum += mass * self.range_from(edge);
            edge *= self.ratio;
        }
        sum
    }

    /// The upper end of the range after a delay in the cell that begins at `edge`.
    fn range_from(&self, edge: f64) -> f64 {
        (3.0 * edge * (1.0 + self.ratio) / 2.0).min(self.cap)
    }

    /// Carries the distribution one delay on: each cell's mass is spread evenly from the base to the end of its range.
    fn step(&mut self, first: bool) {
        let mut next = [0.0; Self::CELLS];
        let mut edge = self.base;
        for mass in self.mass {
            let end = if first { (3.0 * self.base).min(self.cap) } else { self.range_from(edge) };
            edge *= self.ratio;
            if mass > 0.0 && end > self.base {
                self.spread_evenly(&mut next, mass, end);
            } else {
                next[0] += mass;
            }
        }
        self.mass = next;
    }

    fn spread_evenly(&self, cells: &mut [f64; Self::CELLS], mass: f64, end: f64) {
        let density = mass / (end - self.base);
        let mut low = self.base;
        for cell in cells {
            let high = (low * self.ratio).min(end);
            *cell += density * (high - low).max(0.0);
            if high >= end {
                break;
            }
            low = high;
        }
    }
}

fn rounded(nanos: f64) -> u64 {
    (nanos + 0.5) as u64
}

/// Newton's iteration; `core` has no `sqrt`. For arguments of at least 1.
fn square_root(x: f64) -> f64 {
    let mut root = x;
    loop {
        let next = (root + x / root) / 2.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{curve::Curve, jitter::Jitter, rng, settings::Settings};
    use core::time::Duration;

    const MS: Duration = Duration::from_millis(1);

    fn means(policy: Policy) -> [u128; 8] {
        let policy = policy.max_attempts(9);
        let mut rows = policy.schedule();
        core::array::from_fn(|_| rows.next().unwrap().delay.mean.as_micros())
    }

    #[test]
    fn means_have_their_closed_forms() {
        let base = Policy::exponential(100 * MS).cap(1000 * MS);
        assert_eq!(means(base.jitter(Jitter::None))[..5], [100_000, 200_000, 400_000, 800_000, 1_000_000]);
        assert_eq!(means(base.jitter(Jitter::Full))[..5], [50_000, 100_000, 200_000, 400_000, 500_000]);
        assert_eq!(means(base.jitter(Jitter::Equal))[..5], [75_000, 150_000, 300_000, 600_000, 750_000]);
        let additive = base.jitter(Jitter::Additive(100 * MS));
        assert_eq!(means(additive)[..5], [150_000, 250_000, 450_000, 850_000, 950_000]);
        let proportional = base.jitter(Jitter::Proportional(0.25));
        assert_eq!(means(proportional)[..5], [100_000, 200_000, 400_000, 800_000, 800_000]);
    }

    #[test]
    fn decorrelated_means_follow_the_recursion() {
        let policy = Policy::exponential(1000 * MS).jitter(Jitter::Decorrelated);
        let policy = Settings { cap: None, ..policy.settings() }.policy().unwrap();
        assert_eq!(
            means(policy),
            [2_000_000, 3_500_000, 5_750_000, 9_125_000, 14_187_500, 21_781_250, 33_171_875, 50_257_812]
        );
    }

    /// At the cap the stationary mean must agree with what the delays themselves do.
    #[test]
    fn decorrelated_means_at_the_cap_are_those_of_the_delays() {
        let policy = Policy::exponential(100 * MS).cap(10_000 * MS).jitter(Jitter::Decorrelated).max_attempts(31);
        let mut sums = [0.0; 30];
        let runs = 20_000;
        for seed in 0..runs {
            for (sum, delay) in sums.iter_mut().zip(policy.delays(rng::mix(seed))) {
                *sum += delay.as_secs_f64();
            }
        }
        for (row, sum) in policy.schedule().zip(sums) {
            let (measured, told) = (sum / runs as f64, row.delay.mean.as_secs_f64());
            assert!((measured / told - 1.0).abs() < 0.03, "attempt {}: {measured} against {told}", row.attempt);
        }
    }

    #[test]
    fn slots_have_the_means_of_the_standard() {
        let policy = Policy::slots(Duration::from_micros(1));
        let mut rows = policy.schedule();
        for (c, row) in (1..=15).zip(rows.by_ref()) {
            let expected = ((1u64 << c.min(10)) - 1) as f64 / 2.0;
            assert_eq!(row.delay.mean.as_nanos() as f64, expected * 1000.0, "collision {c}");
        }
        assert_eq!(rows.total.mean, Duration::from_nanos(3_575_500));
        assert_eq!(rows.total.max, Duration::from_micros(7151));
        assert_eq!(rows.next(), None, "the 16th collision discards");
    }

    #[test]
    fn a_list_ends_where_it_ends() {
        static DELAYS: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(30)];
        assert_eq!(Policy::list(&DELAYS).schedule().count(), 2);
        assert_eq!(Policy::list_repeating(&DELAYS).max_attempts(6).schedule().count(), 5);
    }

    #[test]
    fn a_custom_rule_is_run_along_forced_draws() {
        #[derive(Debug)]
        struct Uniform;
        impl crate::Backoff for Uniform {
            fn name(&self) -> &str {
                "uniform"
            }
            fn delay(&self, step: &mut crate::Step) -> Option<Duration> {
                Some(Duration::from_nanos(rng::scale(step.draw, 1_000_000)))
            }
        }
        let policy = Settings { curve: Curve::Custom(&Uniform), ..Policy::custom(&Uniform).settings() };
        let policy = policy.policy().unwrap();
        let row = policy.schedule().next().unwrap();
        assert_eq!(row.delay.min, Duration::ZERO);
        assert_eq!(row.delay.max, Duration::from_nanos(999_999));
        assert!(row.delay.mean.abs_diff(Duration::from_micros(500)) < Duration::from_micros(1));
    }

    #[test]
    fn square_roots() {
        for x in [1.0, 2.0, 100.0, 1e19] {
            assert!((square_root(x) * square_root(x) / x - 1.0).abs() < 1e-14);
        }
    }
}
