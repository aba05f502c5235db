//! The whole of a call that keeps failing: how many attempts, how long it waits, how long it takes at worst.

use relent::{Bounds, Jitter, Policy, Timestamp, rng::mix};
use std::time::Duration;

/// A call that keeps failing, from its first attempt to its giving up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WholeCall {
    /// The most attempts it makes; `None` is no end.
    pub(super) most_attempts: Option<u32>,
    /// The attempts it makes on average if they take no time; `None` is no end.
    pub(super) mean_attempts: Option<f64>,
    /// The sum of all delays; `None` is no end.
    pub(super) waits: Option<Bounds>,
    /// The longest it can take, attempts and the wait before the first included; `None` if nothing limits it.
    pub(super) worst: Option<Duration>,
}

/// The most that is waited before the first attempt: what the limits of time leave of the spread.
pub(super) fn spread(policy: &Policy) -> Duration {
    let latest = latest_start(policy).unwrap_or(Duration::MAX);
    policy.settings().spread.min(latest)
}

/// Rows that are added up one by one; those after them are taken to be like the last. Decorrelated jitter settles
/// after a few dozen, and its rows are dear.
fn most_rows(policy: &Policy) -> u32 {
    match policy.settings().jitter {
        Jitter::Decorrelated => 200,
        _ => 5_000,
    }
}

impl WholeCall {
    pub(super) fn of(policy: &Policy) -> WholeCall {
        let settings = policy.settings();
        let (rows, sums) = sums(policy);
        let (latest, limit) = (latest_start(policy), limit(policy));
        if rows.is_none() && latest.is_none() {
            return WholeCall { most_attempts: None, mean_attempts: None, waits: None, worst: None };
        }
        let attempts = rows.map(|rows| rows.saturating_add(1));
        let spread = spread(policy);
        let longest = sums.max.saturating_add(spread);
        let limited = latest.zip(limit).filter(|(latest, _)| rows.is_none() || longest > *latest);
        let (mean_attempts, waits) = match limited {
            None => (attempts.map(f64::from), sums),
            Some((latest, limit)) => {
                let (attempts, mean) = means_within(policy, latest);
                (Some(attempts), Bounds { min: Duration::ZERO, mean, max: sums.max.min(limit) })
            }
        };
        // Without a limit of attempts the least delays make the most of them.
        let most_attempts = attempts.or_else(|| latest.and_then(|latest| most_within(policy, latest)));
        let worst = settings.attempt_timeout.and_then(|timeout| {
            let by_attempts = attempts.map(|count| longest.saturating_add(timeout.saturating_mul(count)));
            let by_time = settings.max_elapsed.map(|limit| limit.saturating_add(timeout));
            by_attempts.into_iter().chain(by_time).min()
        });
        let worst = worst.into_iter().chain(settings.timeout).min();
        WholeCall { most_attempts, mean_attempts, waits: Some(waits), worst }
    }
}

/// The limit of time of a whole call, by `max_elapsed` and `timeout`; `None` is no limit.
pub(super) fn limit(policy: &Policy) -> Option<Duration> {
    let settings = policy.settings();
    settings.max_elapsed.into_iter().chain(settings.timeout).min()
}

/// No attempt starts later than this: at `max_elapsed` one may, at `timeout` none does.
pub(super) fn latest_start(policy: &Policy) -> Option<Duration> {
    let settings = policy.settings();
    let by_timeout = settings.timeout.map(|timeout| timeout.saturating_sub(Duration::from_nanos(1)));
    settings.max_elapsed.into_iter().chain(by_timeout).min()
}

/// The number of delays, `None` if there is no end to them, and their sums.
fn sums(policy: &Policy) -> (Option<u32>, Bounds) {
    let (most_rows, mut rows) = (most_rows(policy), 0);
    let mut last = None;
    for row in policy.schedule().take(most_rows as usize) {
        rows += 1;
        last = Some(row);
    }
    let Some(last) = last else { return (Some(0), Bounds::default()) };
    if rows < most_rows {
        return (Some(rows), last.total);
    }
    let Some(most) = policy.settings().max_attempts else { return (None, last.total) };
    let more = most - 1 - rows;
    let add = |total: Duration, delay: Duration| total.saturating_add(delay.saturating_mul(more));
    let (total, delay) = (last.total, last.delay);
    let all =
        Bounds { min: add(total.min, delay.min), mean: add(total.mean, delay.mean), max: add(total.max, delay.max) };
    (Some(most - 1), all)
}

/// The attempts that can begin within a limit of time, `None` if delays can be zero for ever.
fn most_within(policy: &Policy, limit: Duration) -> Option<u32> {
    let late = policy.schedule().take(most_rows(policy) as usize).find(|row| row.total.min > limit)?;
    Some(late.attempt - 1)
}

/// The mean number of attempts and the mean sum of delays of calls that end by a limit of time, from a fixed set of
/// calls: where delays are cut off depends on all of them, so there is no closed form.
fn means_within(policy: &Policy, limit: Duration) -> (f64, Duration) {
    const CALLS: u64 = 10_000;
    const STEPS: u64 = 1_000_000;
    let (mut calls, mut steps, mut waited) = (0u64, 0u64, 0u128);
    while calls < CALLS && steps < STEPS {
        let seed = mix(calls);
        let spread = policy.call(Timestamp::ZERO, seed).spread();
        let mut sum = spread;
        for delay in policy.delays(seed) {
            let next = sum.saturating_add(delay);
            if next > limit || steps >= STEPS {
                break;
            }
            steps += 1;
            sum = next;
        }
        waited += (sum - spread).as_nanos();
        calls += 1;
    }
    let mean = u64::try_from(waited / u128::from(calls)).unwrap_or(u64::MAX);
    ((calls + steps) as f64 / calls as f64, Duration::from_nanos(mean))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEC: Duration = Duration::from_secs(1);

    #[test]
    fn without_a_limit_of_time_the_sums_are_exact() {
        let call = WholeCall::of(&Policy::default());
        assert_eq!(call.most_attempts, Some(8));
        assert_eq!(call.mean_attempts, Some(8.0));
        assert_eq!(call.waits, Some(Bounds { min: Duration::ZERO, mean: SEC * 127 / 2, max: SEC * 127 }));
        assert_eq!(call.worst, None, "an attempt may take any time");
        let timed = WholeCall::of(&Policy::default().attempt_timeout(2 * SEC));
        assert_eq!(timed.worst, Some(SEC * (127 + 16)));
    }

    #[test]
    fn a_limit_of_time_cuts_off_what_comes_later() {
        let policy = Policy::constant(10 * SEC).jitter(Jitter::None).max_elapsed(35 * SEC).attempt_timeout(SEC);
        let call = WholeCall::of(&policy);
        assert_eq!(call.mean_attempts, Some(4.0), "at 0, 10, 20 and 30 s");
        assert_eq!(call.waits.unwrap().mean, 30 * SEC);
        assert_eq!(call.waits.unwrap().max, 35 * SEC);
        assert_eq!(call.worst, Some(36 * SEC));
        let endless = WholeCall::of(&policy.unlimited_attempts());
        assert_eq!(endless.most_attempts, Some(4));
        assert_eq!(endless.worst, Some(36 * SEC));
    }

    #[test]
    fn a_timeout_limits_the_time_and_ends_attempts() {
        let policy = Policy::constant(10 * SEC).jitter(Jitter::None).timeout(30 * SEC);
        let call = WholeCall::of(&policy);
        assert_eq!(call.mean_attempts, Some(3.0), "at 0, 10 and 20 s, not at 30 s");
        assert_eq!(call.waits.unwrap().mean, 20 * SEC);
        assert_eq!(call.waits.unwrap().max, 30 * SEC);
        assert_eq!(call.worst, Some(30 * SEC));
        let endless = WholeCall::of(&policy.unlimited_attempts());
        assert_eq!((endless.most_attempts, endless.worst), (Some(3), Some(30 * SEC)));
        let short = policy.max_attempts(2).attempt_timeout(SEC);
        assert_eq!(WholeCall::of(&short).worst, Some(12 * SEC), "its attempts end before");
        let both = WholeCall::of(&policy.max_elapsed(20 * SEC).attempt_timeout(5 * SEC));
        assert_eq!((both.mean_attempts, both.worst), (Some(3.0), Some(25 * SEC)));
    }

    /// Limits of time count from before it.
    #[test]
    fn a_spread_takes_of_the_time_that_there_is() {
        let policy =
            Policy::constant(10 * SEC).jitter(Jitter::None).max_attempts(3).spread(5 * SEC).attempt_timeout(SEC);
        let call = WholeCall::of(&policy);
        assert_eq!((call.mean_attempts, call.worst), (Some(3.0), Some(28 * SEC)));
        let call = WholeCall::of(&policy.max_elapsed(20 * SEC));
        assert!(
            (2.0..2.01).contains(&call.mean_attempts.unwrap()),
            "the third begins in time if nothing is waited: {call:?}"
        );
        assert_eq!((call.waits.unwrap().max, call.worst), (20 * SEC, Some(21 * SEC)));
        assert!(call.waits.unwrap().mean < 10_050 * SEC / 1000);
        let short = policy.spread(912 * SEC).max_elapsed(20 * SEC);
        assert_eq!(spread(&short), 20 * SEC);
        let call = WholeCall::of(&short);
        assert!(
            (1.47..1.53).contains(&call.mean_attempts.unwrap()),
            "in half of the calls there is time for two: {call:?}"
        );
    }

    #[test]
    fn what_never_ends_has_no_numbers() {
        let call = WholeCall::of(&Policy::default().unlimited_attempts());
        assert_eq!(call, WholeCall { most_attempts: None, mean_attempts: None, waits: None, worst: None });
    }

    #[test]
    fn every_policy_ends() {
        let nano = Duration::from_nanos(1);
        for jitter in [Jitter::None, Jitter::Full, Jitter::Decorrelated] {
            let policy = Policy::exponential(nano).cap(nano * 2).jitter(jitter).max_attempts(u32::MAX - 1);
            assert_eq!(WholeCall::of(&policy).most_attempts, Some(u32::MAX - 1));
            let call = WholeCall::of(&policy.max_elapsed(3600 * SEC).unlimited_attempts());
            assert!(call.mean_attempts.unwrap() > 1.0);
        }
        assert_eq!(WholeCall::of(&Policy::immediate().max_attempts(1)).waits, Some(Bounds::default()));
    }
}
