//! Curves: how the delay grows from failure to failure, before jitter.

use super::{
    backoff::Backoff,
    time::{Millis, nanos},
};
use core::time::Duration;

/// How the delay after failure `k` (1 after the first) grows, before jitter and cap.
///
/// ```
/// use relent::{Curve, Policy};
/// use std::time::Duration;
///
/// let policy = Policy::exponential(Duration::from_secs(1)).factor(1.5);
/// assert_eq!(policy.settings().curve, Curve::Exponential { base: Duration::from_secs(1), factor: 1.5 });
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Curve {
    /// No delay at all. A loop that may spin has to be asked for by this name: no other curve may have a base of zero.
    Immediate,
    /// The same delay each time.
    Constant {
        /// The delay.
        base: Duration,
    },
    /// `base + (k-1) * step`.
    Linear {
        /// The first delay.
        base: Duration,
        /// What each further failure adds.
        step: Duration,
    },
    /// `base * factor^(k-1)`.
    Exponential {
        /// The first delay.
        base: Duration,
        /// The multiplier, at least 1.
        factor: f64,
    },
    /// `base` times 1, 1, 2, 3, 5, 8 ...
    Fibonacci {
        /// The first delay.
        base: Duration,
    },
    /// A uniform whole number of slots, `0..2^min(k,10)`; gives up after the 16th attempt. Truncated binary
    /// exponential backoff of IEEE 802.3, clause 4.2.3.2.5. It is its own jitter.
    Slots {
        /// The length of a slot: 51.2 µs for 10 Mb/s Ethernet.
        slot: Duration,
    },
    /// These delays in turn, as payment providers publish them for their notifications.
    List {
        /// The delays.
        delays: &'static [Duration],
        /// Whether the last one repeats; if not, the call gives up when the list ends.
        repeat: bool,
    },
    /// A rule of the user's own, or of another system.
    Custom(&'static dyn Backoff),
}

/// Rules of one name are one rule: a policy read from a file equals the one that was written.
impl PartialEq for Curve {
    fn eq(&self, other: &Curve) -> bool {
        use Curve::*;
        match (*self, *other) {
            (Immediate, Immediate) => true,
            (Constant { base: a }, Constant { base: b }) => a == b,
            (Linear { base: a, step: s }, Linear { base: b, step: t }) => (a, s) == (b, t),
            (Exponential { base: a, factor: f }, Exponential { base: b, factor: g }) => (a, f) == (b, g),
            (Fibonacci { base: a }, Fibonacci { base: b }) => a == b,
            (Slots { slot: a }, Slots { slot: b }) => a == b,
            (List { delays: a, repeat: r }, List { delays: b, repeat: s }) => (a, r) == (b, s),
            (Custom(a), Custom(b)) => a.name() == b.name(),
            _ => false,
        }
    }
}

impl Curve {
    /// The first delay in nanoseconds, where the curve has one.
    pub(crate) const fn base_nanos(self) -> Option<u64> {
        match self {
            Curve::Constant { base }
            | Curve::Linear { base, .. }
            | Curve::Exponential { base, .. }
            | Curve::Fibonacci { base } => Some(nanos(base)),
            Curve::Immediate | Curve::Slots { .. } | Curve::List { .. } | Curve::Custom(_) => None,
        }
    }
}

/// A curve as a policy stores it: durations as nanoseconds, in 24 bytes. The tag takes one byte of eight; the timeout of
/// the call, which is the same in every variant, stands in four of the others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Immediate { timeout: Millis },
    Constant { timeout: Millis, base: u64 },
    Linear { timeout: Millis, base: u64, step: u64 },
    Exponential { timeout: Millis, base: u64, factor: f64 },
    Fibonacci { timeout: Millis, base: u64 },
    Slots { timeout: Millis, slot: u64 },
    List { timeout: Millis, delays: &'static [Duration], repeat: bool },
    Custom { timeout: Millis, rule: &'static dyn Backoff },
}

const _: () = assert!(size_of::<Shape>() <= 24);

impl Shape {
    pub(crate) const fn curve(self) -> Curve {
        const fn ns(nanos: u64) -> Duration {
            Duration::from_nanos(nanos)
        }
        match self {
            Shape::Immediate { .. } => Curve::Immediate,
            Shape::Constant { base, .. } => Curve::Constant { base: ns(base) },
            Shape::Linear { base, step, .. } => Curve::Linear { base: ns(base), step: ns(step) },
            Shape::Exponential { base, factor, .. } => Curve::Exponential { base: ns(base), factor },
            Shape::Fibonacci { base, .. } => Curve::Fibonacci { base: ns(base) },
            Shape::Slots { slot, .. } => Curve::Slots { slot: ns(slot) },
            Shape::List { delays, repeat, .. } => Curve::List { delays, repeat },
            Shape::Custom { rule, .. } => Curve::Custom(rule),
        }
    }

    pub(crate) const fn of(curve: Curve, timeout: Millis) -> Shape {
        match curve {
            Curve::Immediate => Shape::Immediate { timeout },
            Curve::Constant { base } => Shape::Constant { timeout, base: nanos(base) },
            Curve::Linear { base, step } => Shape::Linear { timeout, base: nanos(base), step: nanos(step) },
            Curve::Exponential { base, factor } => Shape::Exponential { timeout, base: nanos(base), factor },
            Curve::Fibonacci { base } => Shape::Fibonacci { timeout, base: nanos(base) },
            Curve::Slots { slot } => Shape::Slots { timeout, slot: nanos(slot) },
            Curve::List { delays, repeat } => Shape::List { timeout, delays, repeat },
            Curve::Custom(rule) => Shape::Custom { timeout, rule },
        }
    }

    pub(crate) const fn timeout(self) -> Millis {
        match self {
            Shape::Immediate { timeout }
            | Shape::Constant { timeout, .. }
            | Shape::Linear { timeout, .. }
            | Shape::Exponential { timeout, .. }
            | Shape::Fibonacci { timeout, .. }
            | Shape::Slots { timeout, .. }
            | Shape::List { timeout, .. }
            | Shape::Custom { timeout, .. } => timeout,
        }
    }

    /// The first delay, where the curve has one.
    pub(crate) const fn base(self) -> Option<u64> {
        match self {
            Shape::Constant { base, .. }
            | Shape::Linear { base, .. }
            | Shape::Exponential { base, .. }
            | Shape::Fibonacci { base, .. } => Some(base),
            Shape::Immediate { .. } | Shape::Slots { .. } | Shape::List { .. } | Shape::Custom { .. } => None,
        }
    }
}

/// The collisions after which the range of slots stops doubling (IEEE 802.3, `backoffLimit`).
const BACKOFF_LIMIT: u32 = 10;

/// The attempts after which a frame is discarded (IEEE 802.3, `attemptLimit`).
pub(crate) const ATTEMPT_LIMIT: u32 = 16;

/// How many slots there are to choose from after `failures` collisions, such that none lies past the cap.
pub(crate) fn slots(failures: u32, slot: u64, cap: u64) -> u64 {
    let doubled = 1 << failures.min(BACKOFF_LIMIT);
    doubled.min((cap / slot.max(1)).saturating_add(1))
}

/// The `k`-th Fibonacci number, 1 for `k` of 1 and 2; saturates from the 94th on.
pub(crate) fn fibonacci(k: u32) -> u64 {
    let (mut current, mut next) = (0u64, 1u64);
    for _ in 0..k.min(94) {
        (current, next) = (next, current.saturating_add(next));
    }
    current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fibonacci_numbers() {
        let first: [u64; 9] = core::array::from_fn(|i| fibonacci(i as u32 + 1));
        assert_eq!(first, [1, 1, 2, 3, 5, 8, 13, 21, 34]);
        assert_eq!(fibonacci(93), 12_200_160_415_121_876_738);
        assert_eq!(fibonacci(94), u64::MAX);
        assert_eq!(fibonacci(u32::MAX), u64::MAX);
    }

    #[derive(Debug)]
    struct Named(&'static str);

    impl Backoff for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn delay(&self, _: &mut crate::Step) -> Option<Duration> {
            None
        }
    }

    /// Each differs from all others, in its kind or in one of its parts, and is equal to itself.
    #[test]
    fn curves_are_equal_where_they_say_the_same() {
        const ONE: Duration = Duration::from_secs(1);
        const TWO: Duration = Duration::from_secs(2);
        let curves = [
            Curve::Immediate,
            Curve::Constant { base: ONE },
            Curve::Constant { base: TWO },
            Curve::Linear { base: ONE, step: ONE },
            Curve::Linear { base: ONE, step: TWO },
            Curve::Linear { base: TWO, step: ONE },
            Curve::Exponential { base: ONE, factor: 2.0 },
            Curve::Exponential { base: ONE, factor: 3.0 },
            Curve::Exponential { base: TWO, factor: 2.0 },
            Curve::Fibonacci { base: ONE },
            Curve::Fibonacci { base: TWO },
            Curve::Slots { slot: ONE },
            Curve::Slots { slot: TWO },
            Curve::List { delays: &[ONE], repeat: false },
            Curve::List { delays: &[ONE], repeat: true },
            Curve::List { delays: &[TWO], repeat: false },
            Curve::List { delays: &[ONE, ONE], repeat: false },
            Curve::Custom(&Named("a")),
            Curve::Custom(&Named("b")),
        ];
        for (i, a) in curves.iter().enumerate() {
            for (j, b) in curves.iter().enumerate() {
                assert_eq!(a == b, i == j, "{a:?} and {b:?}");
            }
        }
        assert_eq!(Curve::Custom(&Named("a")), Curve::Custom(&Named("a")), "a rule is known by its name");
    }

    #[test]
    fn slots_double_until_the_tenth_collision_and_stay_inside_the_cap() {
        assert_eq!([1, 2, 3, 10, 11, 15].map(|k| slots(k, 51_200, u64::MAX)), [2, 4, 8, 1024, 1024, 1024]);
        assert_eq!(slots(10, 100, 350), 4);
        assert_eq!(slots(10, 0, 350), 351);
    }
}
