//! The delay after a failure: curve and jitter together, and the little that is remembered from delay to delay.

use super::{
    backoff::Step,
    curve::{ATTEMPT_LIMIT, Shape, fibonacci, slots},
    jitter::{PackedJitter, Range, decorrelated},
    policy::Policy,
    rng,
    time::nanos,
    verdict::Verdict,
};
use core::time::Duration;

/// What an exponential curve with full jitter remembers from its cap on. No number has these bits.
const AT_CAP: u64 = u64::MAX;

impl Policy {
    /// The delays of one call that fails at once each time, up to `max_attempts`; endless without.
    /// Limits of time are the caller's.
    ///
    /// ```
    /// use relent::{Jitter, Policy};
    /// use std::time::Duration;
    ///
    /// let policy = Policy::exponential(Duration::from_millis(100)).jitter(Jitter::None).max_attempts(4);
    /// let delays: Vec<_> = policy.delays(1).map(|d| d.as_millis()).collect();
    /// assert_eq!(delays, [100, 200, 400]);
    /// ```
    #[inline]
    pub const fn delays(&self, seed: u64) -> Delays<'_> {
        Delays::new(self, seed)
    }

    /// What [`Policy::delay`] wants to find in a call's memory before the first failure.
    #[inline]
    pub(crate) const fn first_memory(&self) -> u64 {
        match self.shape {
            Shape::Exponential { base, .. } if !self.is_decorrelated() => (base as f64).to_bits(),
            shape => match shape.base() {
                Some(base) => base,
                None => 0,
            },
        }
    }

    const fn is_decorrelated(&self) -> bool {
        matches!(self.jitter, PackedJitter::DECORRELATED)
    }

    /// Whether there is no delay, whatever is drawn.
    #[inline]
    pub(crate) const fn is_immediate(&self) -> bool {
        matches!(self.shape, Shape::Immediate { .. }) && !self.jitter.adds()
    }

    /// Whether the delay of a custom rule has already taken account of a pushback.
    pub(crate) fn handles_pushback(&self) -> bool {
        matches!(self.shape, Shape::Custom { rule, .. } if rule.handles_pushback())
    }

    /// The delay of the commonest policy, exponential with full jitter, and of no delay at all, without the trouble of a
    /// [`Step`]; `None` for any other policy. What [`Policy::delay`] would say, in a third of the instructions.
    #[inline(always)]
    pub(crate) fn common_delay(&self, memory: &mut u64, draw: u64) -> Option<u64> {
        match self.shape {
            Shape::Immediate { .. } if !self.jitter.adds() => Some(0),
            Shape::Exponential { factor, .. } if matches!(self.jitter, PackedJitter::FULL) => {
                let width = match *memory {
                    AT_CAP => self.cap,
                    bits => {
                        let v = f64::from_bits(bits);
                        let width = whole(v).min(self.cap);
                        *memory = if width < self.cap { (v * factor).to_bits() } else { AT_CAP };
                        width
                    }
                };
                Some(rng::scale(draw, width))
            }
            _ => None,
        }
    }

    /// The delay after failure `step.failures` in nanoseconds, or `None` where the curve itself ends the call.
    /// Updates `step.memory`. Knows nothing of the policy's limits.
    pub(crate) fn delay(&self, step: &mut Step) -> Option<u64> {
        if let Some(delay) = self.common_delay(&mut step.memory, step.draw) {
            return Some(delay);
        }
        if let Shape::Exponential { factor, .. } = self.shape
            && !self.is_decorrelated()
        {
            let v = f64::from_bits(step.memory);
            let w = whole(v);
            if w < self.cap {
                step.memory = (v * factor).to_bits();
            }
            return Some(self.jitter.range(w, self.cap).pick(step.draw));
        }
        self.other_delay(step)
    }

    fn other_delay(&self, step: &mut Step) -> Option<u64> {
        if let Shape::Custom { rule, .. } = self.shape {
            let v = nanos(rule.delay(step)?);
            return Some(self.jitter.range(v, self.cap).pick(step.draw));
        }
        if let Shape::Slots { slot, .. } = self.shape {
            let count = slots(step.failures, slot, self.cap);
            let chosen = rng::scale(step.draw, count).saturating_mul(slot);
            return (step.failures < ATTEMPT_LIMIT).then_some(chosen);
        }
        let delay = self.range(step.failures, step.memory)?.pick(step.draw);
        step.memory = delay;
        Some(delay)
    }

    /// The range of the delay after failure `k`, for the curves whose range needs no more than the previous delay.
    pub(crate) fn range(&self, k: u32, previous: u64) -> Option<Range> {
        if self.is_decorrelated() {
            return Some(decorrelated(self.shape.base()?, previous, self.cap));
        }
        let v = match self.shape {
            Shape::Constant { base, .. } => base,
            Shape::Linear { base, step, .. } => base.saturating_add(step.saturating_mul(u64::from(k) - 1)),
            Shape::Fibonacci { base, .. } => base.saturating_mul(fibonacci(k)),
            Shape::List { delays, repeat, .. } => nanos(*match delays.get(k as usize - 1) {
                None if repeat => delays.last()?,
                other => other?,
            }),
            Shape::Immediate { .. } | Shape::Exponential { .. } | Shape::Slots { .. } | Shape::Custom { .. } => 0,
        };
        Some(self.jitter.range(v, self.cap))
    }
}

/// A float of at least zero as the nearest integer, saturating.
///
/// Below 2^51 (26 days) by adding 2^52, whose last bit is worth one: two instructions, where a cast that saturates is
/// twelve.
#[inline]
pub(crate) fn whole(v: f64) -> u64 {
    const MAGIC: f64 = (1u64 << 52) as f64;
    if v < MAGIC / 2.0 { (v + MAGIC).to_bits() & ((1 << 52) - 1) } else { whole_large(v) }
}

#[cold]
#[inline(never)]
fn whole_large(v: f64) -> u64 {
    v as u64
}

/// The delays of one call that fails at once each time: see [`Policy::delays`].
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::time::Duration;
///
/// let policy = Policy::exponential(Duration::from_secs(1)).jitter(Jitter::None).max_attempts(4);
/// let delays: Vec<u64> = policy.delays(1).map(|delay| delay.as_secs()).collect();
/// assert_eq!(delays, [1, 2, 4]);
/// ```
#[derive(Clone, Debug)]
pub struct Delays<'a> {
    policy: &'a Policy,
    seed: u64,
    failures: u32,
    memory: u64,
    elapsed: u64,
}

impl<'a> Delays<'a> {
    pub(crate) const fn new(policy: &'a Policy, seed: u64) -> Delays<'a> {
        Delays { policy, seed, failures: 0, memory: policy.first_memory(), elapsed: 0 }
    }

    /// The next delay for a draw of the caller's, which tests and vectors force.
    ///
    /// ```
    /// let policy = relent::Policy::default();
    /// let mut delays = policy.delays(0);
    /// assert_eq!(delays.next_with(1 << 63).unwrap().as_millis(), 500);
    /// assert_eq!(delays.next_with(1 << 63).unwrap().as_millis(), 1000);
    /// ```
    #[inline]
    pub fn next_with(&mut self, draw: u64) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.policy.max_attempts {
            return None;
        }
        let delay = match self.policy.common_delay(&mut self.memory, draw) {
            Some(delay) => delay,
            None => self.other_delay(draw)?,
        };
        Some(Duration::from_nanos(delay))
    }

    fn other_delay(&mut self, draw: u64) -> Option<u64> {
        let mut step = Step {
            failures: self.failures,
            elapsed: Duration::from_nanos(self.elapsed),
            verdict: Verdict::Transient,
            draw,
            memory: self.memory,
        };
        let delay = self.policy.delay(&mut step)?;
        self.memory = step.memory;
        self.elapsed = self.elapsed.saturating_add(delay);
        Some(delay)
    }
}

impl Iterator for Delays<'_> {
    type Item = Duration;

    #[inline]
    fn next(&mut self) -> Option<Duration> {
        self.next_with(rng::draw(self.seed, self.failures.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decision, Jitter, Timestamp};

    #[test]
    fn whole_numbers_are_the_nearest() {
        for v in [0.0, 0.4, 1.0, 1.6, 1e9 + 0.25, (1u64 << 50) as f64 + 0.75] {
            assert_eq!(whole(v), (v + 0.5) as u64, "{v}");
        }
        for shift in [51, 52, 53, 62, 63] {
            assert_eq!(whole((1u64 << shift) as f64), 1 << shift);
        }
        assert_eq!(whole(f64::MAX), u64::MAX);
        assert_eq!(whole(f64::INFINITY), u64::MAX);
    }

    /// What is said of a policy is what it does, whoever asks it for its delays.
    #[test]
    fn a_jitter_that_adds_to_no_delay_is_waited_for() {
        let policy = Policy::immediate().jitter(Jitter::Additive(Duration::from_secs(4)));
        assert!(!policy.is_immediate() && Policy::immediate().is_immediate());
        let row = policy.schedule().next().unwrap().delay;
        assert_eq!((row.min, row.mean, row.max), (Duration::ZERO, Duration::from_secs(2), Duration::from_secs(4)));
        let mut delays = policy.delays(0);
        assert_eq!([0, 1 << 63].map(|draw| delays.next_with(draw).unwrap().as_secs()), [0, 2]);
        let decided = policy.call(Timestamp::ZERO, 7).on_failure_with(Timestamp::ZERO, Verdict::Transient, 1 << 63);
        assert_eq!(decided, Decision::Retry(Duration::from_secs(2)));
    }

    #[test]
    fn the_common_delay_is_the_delay() {
        let uncapped = Policy { cap: u64::MAX, ..Policy::exponential(Duration::from_nanos(3)).factor(1.7) };
        for (policy, base, factor) in [(Policy::default(), 1e9, 2.0), (uncapped, 3.0, 1.7)] {
            let mut memory = policy.first_memory();
            for (k, v) in core::iter::successors(Some(base), |v| Some(v * factor)).take(100).enumerate() {
                let draw = rng::mix(k as u64);
                let range = PackedJitter::FULL.range(whole(v), policy.cap);
                assert_eq!(policy.common_delay(&mut memory, draw), Some(range.pick(draw)), "delay {k}");
            }
        }
        let mut memory = 0;
        assert_eq!(Policy::immediate().common_delay(&mut memory, 7), Some(0));
        assert_eq!(Policy::immediate().jitter(Jitter::Additive(Duration::ZERO)).common_delay(&mut memory, 7), Some(0));
        assert_eq!(Policy::constant(Duration::from_secs(1)).common_delay(&mut memory, 7), None);
    }
}
