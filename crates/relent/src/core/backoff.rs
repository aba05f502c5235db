//! The door for delays that the built-in curves do not cover: other systems' formulas, and the user's own.

use super::verdict::Verdict;
use core::{fmt, panic::RefUnwindSafe, time::Duration};

/// A rule for delays of the user's own, which a [`Policy`](crate::Policy) can carry
/// ([`Policy::custom`](crate::Policy::custom)).
///
/// The rule is shared by all calls and never changes; what a call must remember from delay to delay goes into the
/// eight bytes of [`Step::memory`]. The policy's limits (attempts, elapsed, pushback) apply on top; its `cap` is the
/// longest delay, so a rule that must not be cut has a policy without one.
///
/// ```
/// use relent::{Backoff, Policy, Step};
/// use std::time::Duration;
///
/// /// 1, 4, 9, 16 ... seconds.
/// #[derive(Debug)]
/// struct Quadratic;
///
/// impl Backoff for Quadratic {
///     fn name(&self) -> &str {
///         "quadratic"
///     }
///     fn delay(&self, step: &mut Step) -> Option<Duration> {
///         let k = u64::from(step.failures);
///         Some(Duration::from_secs(k.saturating_mul(k)))
///     }
/// }
///
/// const POLICY: Policy = Policy::custom(&Quadratic).max_attempts(4);
/// let delays: Vec<u64> = POLICY.delays(1).map(|d| d.as_secs()).collect();
/// assert_eq!(delays, [1, 4, 9]);
/// ```
pub trait Backoff: fmt::Debug + Send + Sync + RefUnwindSafe {
    /// A short name, shown by `explain` and written into policy files as `compat`.
    fn name(&self) -> &str;

    /// The delay after failure `step.failures`, or `None` to stop.
    fn delay(&self, step: &mut Step) -> Option<Duration>;

    /// Whether the rule itself says what a pushback ([`Verdict::After`]) does to its delay. By default it does not,
    /// and the delay is raised to the pushback. Some systems shorten a pushback, or add jitter to it.
    fn handles_pushback(&self) -> bool {
        false
    }

    /// The time since the call began after which the rule itself stops, if it has one: for those who explain it. A
    /// delay that was decided on before may pass it.
    fn stops_after(&self) -> Option<Duration> {
        None
    }
}

/// What a [`Backoff`] knows when it is asked for a delay.
///
/// ```
/// use relent::{Backoff, Step, Verdict, rng::scale};
/// use std::time::Duration;
///
/// /// Between one and three times the delay before, at least a second.
/// #[derive(Debug)]
/// struct Wander;
///
/// impl Backoff for Wander {
///     fn name(&self) -> &str {
///         "wander"
///     }
///     fn delay(&self, step: &mut Step) -> Option<Duration> {
///         let before = step.memory.max(1_000_000_000);
///         step.memory = before + scale(step.draw, 2 * before);
///         Some(Duration::from_nanos(step.memory))
///     }
/// }
///
/// let mut step =
///     Step { failures: 1, elapsed: Duration::ZERO, verdict: Verdict::Transient, draw: 1 << 63, memory: 0 };
/// assert_eq!(Wander.delay(&mut step), Some(Duration::from_secs(2)));
/// assert_eq!(Wander.delay(&mut step), Some(Duration::from_secs(4)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Failures so far, 1 after the first.
    pub failures: u32,
    /// Time since the call began.
    pub elapsed: Duration,
    /// What the failure means. Some systems wait longer when throttled.
    pub verdict: Verdict,
    /// The random number of this failure. [`scale`](crate::rng::scale) and [`unit`](crate::rng::unit) turn it into a range.
    pub draw: u64,
    /// Eight bytes of the rule's own, 0 before the first delay of a call.
    pub memory: u64,
}
