//! Jitter: how a delay is spread, so that clients that failed together do not come back together.
//!
//! The rule behind every range here is that **spread survives the cap**. Clipping a drawn delay at the cap puts all
//! clients that reached it back in step, which is the very moment when there are most of them. So the cap bounds the
//! *range* a delay is drawn from, and at the cap the range is as wide as the jitter says.

use super::rng::scale;
use core::time::Duration;

/// How a delay is spread. With `v` the curve's delay and `U[a,b)` uniform:
///
/// | jitter | delay |
/// |---|---|
/// | `None` | `min(v, cap)` |
/// | `Full` | `U[0, min(v, cap))` |
/// | `Equal` | `w/2 + U[0, w/2)`, `w = min(v, cap)` |
/// | `Proportional(x)` | `w * U[1-x, 1+x)`, `w = min(v, cap/(1+x))` |
/// | `Additive(a)` | `w + U[0, a)`, `w = min(v, cap - a)` |
/// | `Decorrelated` | `U[base, min(cap, 3 * previous))`, previous starts at base |
///
/// Full, equal and decorrelated jitter: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
/// There the decorrelated draw is clipped at the cap, which puts 31.6 % of all delays exactly on it; here its range is.
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::time::Duration;
///
/// let second = Duration::from_secs(1);
/// let policy = Policy::constant(4 * second).jitter(Jitter::Proportional(0.25));
/// let delay = policy.schedule().next().unwrap().delay;
/// assert_eq!((delay.min, delay.mean, delay.max), (3 * second, 4 * second, 5 * second));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Jitter {
    /// No spread. Clients that fail together retry together.
    None,
    /// Anything from zero to the curve's delay. The widest spread and the least load; the default.
    #[default]
    Full,
    /// Half of the curve's delay for certain, the other half at random.
    Equal,
    /// The curve's delay, more or less by this share of it: 0 to 1, so that `Proportional(0.2)` is ±20 %.
    Proportional(f64),
    /// The curve's delay and up to this much more: 146 years (2^62 ns) at most, to which what is longer is shortened.
    Additive(Duration),
    /// Grows from the previous delay rather than by the curve, of which only the base counts.
    Decorrelated,
}

/// The range a delay is drawn from: `low` for certain and a uniform `0..width` more, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: u64,
    pub(crate) width: u64,
}

impl Range {
    #[inline]
    pub(crate) const fn pick(self, draw: u64) -> u64 {
        self.low.saturating_add(scale(draw, self.width))
    }

    /// The supremum: `pick` stays below it unless the width is zero.
    pub(crate) const fn high(self) -> u64 {
        self.low.saturating_add(self.width)
    }
}

/// A jitter in eight bytes, so that a policy stays within 64.
///
/// Proportional jitter sets the top bit over the bits of its share (a positive float, whose own top bit is zero);
/// additive jitter is its nanoseconds, below 2^62; the others are the numbers from 2^62 on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedJitter(u64);

const PROPORTIONAL: u64 = 1 << 63;
const NAMED: u64 = 1 << 62;

impl PackedJitter {
    pub(crate) const NONE: PackedJitter = PackedJitter(NAMED);
    pub(crate) const FULL: PackedJitter = PackedJitter(NAMED + 1);
    pub(crate) const EQUAL: PackedJitter = PackedJitter(NAMED + 2);
    pub(crate) const DECORRELATED: PackedJitter = PackedJitter(NAMED + 3);

    pub(crate) const fn pack(jitter: Jitter) -> PackedJitter {
        match jitter {
            Jitter::None => PackedJitter::NONE,
            Jitter::Full => PackedJitter::FULL,
            Jitter::Equal => PackedJitter::EQUAL,
            Jitter::Decorrelated => PackedJitter::DECORRELATED,
            Jitter::Proportional(share) => PackedJitter(PROPORTIONAL | share.to_bits()),
            Jitter::Additive(most) => {
                let nanos = super::time::nanos(most);
                PackedJitter(if nanos < NAMED { nanos } else { NAMED - 1 })
            }
        }
    }

    pub(crate) const fn unpack(self) -> Jitter {
        match self {
            PackedJitter::NONE => Jitter::None,
            PackedJitter::FULL => Jitter::Full,
            PackedJitter::EQUAL => Jitter::Equal,
            PackedJitter::DECORRELATED => Jitter::Decorrelated,
            PackedJitter(bits) if bits & PROPORTIONAL != 0 => {
                Jitter::Proportional(f64::from_bits(bits & !PROPORTIONAL))
            }
            PackedJitter(nanos) => Jitter::Additive(Duration::from_nanos(nanos)),
        }
    }

    /// Whether there may be a delay where the curve has none.
    pub(crate) const fn adds(self) -> bool {
        self.0 > 0 && self.0 < NAMED
    }

    /// The range for a curve's delay `v`. Not for decorrelated jitter, which [`decorrelated`] serves.
    pub(crate) fn range(self, v: u64, cap: u64) -> Range {
        match self.unpack() {
            Jitter::None | Jitter::Decorrelated => Range { low: v.min(cap), width: 0 },
            Jitter::Full => Range { low: 0, width: v.min(cap) },
            Jitter::Equal => {
                let w = v.min(cap);
                Range { low: w - w / 2, width: w / 2 }
            }
            Jitter::Proportional(share) => {
                // The product may round up by one part in 2^53, so the cap is held once more below.
                let w = v.min((cap as f64 / (1.0 + share)) as u64).min(cap);
                let low = ((w as f64 * (1.0 - share)) as u64).min(w);
                let high = ((w as f64 * (1.0 + share)) as u64).clamp(low, cap);
                Range { low, width: high - low }
            }
            Jitter::Additive(most) => {
                let most = super::time::nanos(most).min(cap);
                Range { low: v.min(cap - most), width: most }
            }
        }
    }
}

/// The range of decorrelated jitter: from `base` to three times the previous delay, at most `cap`.
pub(crate) fn decorrelated(base: u64, previous: u64, cap: u64) -> Range {
    let high = previous.saturating_mul(3).min(cap).max(base);
    Range { low: base, width: high - base }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No amount that is added is taken for another kind of jitter, however large it is.
    #[test]
    fn an_additive_jitter_stays_one() {
        let most = NAMED - 1;
        for nanos in [0, 1, most - 2, most - 1, most, NAMED, NAMED + 1, NAMED + 3, u64::MAX] {
            let packed = PackedJitter::pack(Jitter::Additive(Duration::from_nanos(nanos)));
            assert_eq!(packed.unpack(), Jitter::Additive(Duration::from_nanos(nanos.min(most))));
        }
        assert_eq!(
            PackedJitter::pack(Jitter::Additive(Duration::MAX)).unpack(),
            Jitter::Additive(Duration::from_nanos(most))
        );
    }

    #[test]
    fn packing_keeps_every_jitter() {
        for jitter in [
            Jitter::None,
            Jitter::Full,
            Jitter::Equal,
            Jitter::Decorrelated,
            Jitter::Proportional(0.0),
            Jitter::Proportional(0.2),
            Jitter::Proportional(1.0),
            Jitter::Additive(Duration::ZERO),
            Jitter::Additive(Duration::from_nanos(1)),
            Jitter::Additive(Duration::from_secs(86_400)),
        ] {
            assert_eq!(PackedJitter::pack(jitter).unpack(), jitter);
        }
    }

    #[test]
    fn ranges_are_those_of_the_table() {
        let range = |jitter, v, cap| {
            let range = PackedJitter::pack(jitter).range(v, cap);
            (range.low, range.high())
        };
        let ns = Duration::from_nanos;
        assert_eq!(range(Jitter::None, 400, 1000), (400, 400));
        assert_eq!(range(Jitter::None, 4000, 1000), (1000, 1000));
        assert_eq!(range(Jitter::Full, 400, 1000), (0, 400));
        assert_eq!(range(Jitter::Full, 4000, 1000), (0, 1000));
        assert_eq!(range(Jitter::Equal, 400, 1000), (200, 400));
        assert_eq!(range(Jitter::Equal, 4000, 1000), (500, 1000));
        assert_eq!(range(Jitter::Proportional(0.5), 400, 1200), (200, 600));
        assert_eq!(range(Jitter::Proportional(0.5), 4000, 1200), (400, 1200));
        assert_eq!(range(Jitter::Additive(ns(100)), 400, 1000), (400, 500));
        assert_eq!(range(Jitter::Additive(ns(100)), 4000, 1000), (900, 1000));
    }

    /// Above 2^53 a float may be greater than the integer it was made of. Found by fuzzing.
    #[test]
    fn no_float_lifts_a_huge_cap() {
        for cap in [(1 << 53) + 1, (1 << 60) + 200, u64::MAX - 1, u64::MAX] {
            for share in [0.0, 1e-17, 0.3, 1.0] {
                let range = PackedJitter::pack(Jitter::Proportional(share)).range(u64::MAX, cap);
                assert!(range.high() <= cap, "{share} of {cap}");
            }
        }
    }

    #[test]
    fn decorrelated_ranges() {
        assert_eq!(decorrelated(100, 100, 1000), Range { low: 100, width: 200 });
        assert_eq!(decorrelated(100, 900, 1000), Range { low: 100, width: 900 });
        assert_eq!(decorrelated(100, u64::MAX, u64::MAX), Range { low: 100, width: u64::MAX - 100 });
        assert_eq!(decorrelated(100, 0, 1000), Range { low: 100, width: 0 });
    }
}
