//! What the other systems make of a pushback once it has been read.
//!
//! Relent's own rule is that a pushback can raise a delay and never shorten it. Not all agree.

use core::time::Duration;

/// What a pushback ([`Verdict::After`](crate::Verdict::After)) does to a delay.
///
/// ```
/// use relent::{Backoff, Step, Verdict, compat::{Formula, OnPushback}};
/// use std::time::Duration;
///
/// let told = |pushback| {
///     let rule = Formula { first: 10.0, pushback, ..Formula::SECONDS };
///     let verdict = Verdict::After(Duration::from_secs(3));
///     rule.delay(&mut Step { failures: 1, elapsed: Duration::ZERO, verdict, draw: 0, memory: 0 }).unwrap().as_secs()
/// };
/// assert_eq!((told(OnPushback::Raises), told(OnPushback::Replaces)), (10, 3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnPushback {
    /// It raises the delay, which is relent's rule, and the only sensible one for a system that knows no pushback.
    Raises,
    /// It replaces the delay, even if it is shorter.
    Replaces,
    /// It replaces the delay, and the next delay is the first again.
    Restarts,
    /// It raises the value of the curve, and is then spread and clamped like it.
    Stretched,
    /// It raises the delay, but by no more than this: told to wait longer, the system comes back too early.
    RaisesByAtMost(Duration),
}

impl OnPushback {
    /// The delay of a system that would wait `own` by itself and was told to wait `pushback`.
    pub(super) fn delay(self, own: Duration, pushback: Duration) -> Duration {
        match self {
            OnPushback::Raises | OnPushback::Stretched => own,
            OnPushback::Replaces | OnPushback::Restarts => pushback,
            OnPushback::RaisesByAtMost(most) => own.max(pushback.min(own.saturating_add(most))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_shortens_a_long_pushback() {
        let second = Duration::from_secs(1);
        let aws = OnPushback::RaisesByAtMost(5 * second);
        assert_eq!(aws.delay(second, Duration::ZERO), second);
        assert_eq!(aws.delay(second, 4 * second), 4 * second);
        assert_eq!(aws.delay(second, 60 * second), 6 * second);
    }
}
