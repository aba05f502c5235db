//! What a limit says, by name: what text is parsed into, what is checked, and what `explain` prints.

use crate::core::{invalid::Invalid, time::nanos};
use core::time::Duration;

const DAY: u64 = 24 * 3600 * 1_000_000_000;
const CENTURY: u64 = 36_525 * DAY;

/// Everything a [`Limit`](crate::Limit) says, by name.
///
/// ```
/// use relent::LimitSettings;
///
/// let invalid = LimitSettings::Concurrency { limit: 0, queue: 0, longest: Default::default() }.limit().unwrap_err();
/// assert_eq!((invalid.key, invalid.problem), ("concurrency", "nothing may be in flight"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LimitSettings {
    /// [`Limit::rate`](crate::Limit::rate).
    Rate {
        /// Permits in `per`, 1 to a million.
        rate: u32,
        /// 1 ms to a day.
        per: Duration,
        /// How many permits may come at once: 1 or more, and no more than come due in a century.
        burst: u32,
    },
    /// [`Limit::concurrency`](crate::Limit::concurrency).
    Concurrency {
        /// Attempts in flight, 1 or more.
        limit: u32,
        /// How many may wait for one of them to end; 0 is no queue.
        queue: u32,
        /// How long each may wait.
        longest: Duration,
    },
    /// [`Limit::aimd`](crate::Limit::aimd).
    Aimd {
        /// The limit at first.
        start: u32,
        /// The limit at least, 1 or more.
        min: u32,
        /// The limit at most, a million or less.
        max: u32,
        /// Successes that take longer count as failures.
        slow_after: Duration,
    },
    /// [`Limit::gradient`](crate::Limit::gradient).
    Gradient {
        /// The limit at first, when the latency without load is known.
        start: u32,
        /// The limit at most, 3 to a million.
        max: u32,
    },
    /// [`Limit::aws_adaptive`](crate::Limit::aws_adaptive).
    AwsAdaptive,
}

impl LimitSettings {
    pub(super) const fn problem(&self) -> Option<Invalid> {
        match *self {
            LimitSettings::Rate { rate, per, burst } => {
                if rate == 0 || rate > 1_000_000 {
                    return bad("rate", "the rate is not between 1 and a million", "100 is a hundred a second");
                }
                if burst == 0 {
                    return bad("burst", "no permit may come at once", "1 lets each come when it is due");
                }
                if nanos(per) < 1_000_000 || nanos(per) > DAY {
                    return bad("per", "the rate is not over 1 ms to a day", "1s is the default");
                }
                // So that times stay within 64 bits of nanoseconds.
                if nanos(per).div_ceil(rate as u64).saturating_mul(burst as u64) > CENTURY {
                    return bad(
                        "burst",
                        "the burst is what comes due in more than a century",
                        "1 lets each come when it is due",
                    );
                }
                None
            }
            LimitSettings::Concurrency { limit: 0, .. } => {
                bad("concurrency", "nothing may be in flight", "1 lets one attempt after the other through")
            }
            LimitSettings::Concurrency { limit, .. } if limit > 1_000_000 => {
                bad("concurrency", "more than a million may be in flight", "leave it out for no limit")
            }
            LimitSettings::Concurrency { queue, longest, .. } => {
                if queue > 0 && longest.is_zero() {
                    return bad("queue", "nobody may wait in the queue", "give the longest wait too, such as 100ms");
                }
                None
            }
            LimitSettings::Aimd { start, min, max, slow_after } => {
                if min == 0 {
                    return bad("min", "the least limit is zero", "1 keeps finding out whether it got better");
                }
                if max > 1_000_000 {
                    return bad("max", "more than a million may be in flight", "200 is usual");
                }
                if start < min || start > max {
                    return bad("aimd", "the limit does not start between its least and its most", "20 is usual");
                }
                if slow_after.is_zero() {
                    return bad(
                        "slow_after",
                        "every success counts as slow",
                        "leave it out if latency does not matter",
                    );
                }
                None
            }
            LimitSettings::Gradient { start, max } => {
                if max < 3 || max > 1_000_000 {
                    return bad("max", "the limit is not between 3 and a million", "Envoy's most is 1000");
                }
                if start < 3 || start > max {
                    return bad("gradient", "the limit does not start between 3 and its most", "20 is usual");
                }
                None
            }
            LimitSettings::AwsAdaptive => None,
        }
    }
}

const fn bad(key: &'static str, problem: &'static str, hint: &'static str) -> Option<Invalid> {
    Some(Invalid { key, problem, hint })
}
