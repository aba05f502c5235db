//! The story of a call: when its attempts ran. Bounded, so that a call that retries for a year stays small.

use crate::{Timestamp, duration::Human};
use core::{fmt, time::Duration};

/// How many attempts are remembered: the last ones.
const KEPT: usize = 8;

/// When the attempts of a call ran: the last eight of them, to seven digits.
///
/// Times count from the beginning of the call. Where nothing made it necessary to read the clock then (no limit of time,
/// nobody who watches), they count from the first failure, and of the first attempt no more is known than that it
/// failed. Where no delay made it necessary to read it later, nothing is claimed of those attempts either.
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::time::Duration;
///
/// let policy = Policy::constant(Duration::from_millis(2)).jitter(Jitter::None).max_attempts(2);
/// let err = policy.retry_blocking(|_| Err::<(), _>("refused")).unwrap_err();
/// let first = err.timeline().attempts().next().unwrap();
/// assert_eq!((first.attempt, first.started, first.took), (1, None, None));
/// assert!(first.waited.unwrap() >= Duration::from_millis(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    began: Timestamp,
    count: u32,
    /// The attempt in which times begin.
    counts_from: u32,
    /// In seconds: when an attempt started after the call began, and how long it took. If the start is not known, NaN
    /// and when it ended; if that is not known either, NaN twice.
    spans: [(f32, f32); KEPT],
}

/// One attempt of a [`Timeline`].
///
/// ```
/// let err = relent::Policy::immediate().max_attempts(2).retry_blocking(|_| Err::<(), _>("refused")).unwrap_err();
/// let attempts: Vec<u32> = err.timeline().attempts().map(|past| past.attempt).collect();
/// assert_eq!(attempts, [1, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Past {
    /// Which attempt it was; the first is 1.
    pub attempt: u32,
    /// When it started, after the call began; `None` if nobody looked at the clock then.
    pub started: Option<Duration>,
    /// How long it took, if that is known.
    pub took: Option<Duration>,
    /// How long the call waited after it, if another attempt followed.
    pub waited: Option<Duration>,
    ended: Option<Duration>,
}

const UNKNOWN: (f32, f32) = (f32::NAN, f32::NAN);

impl Timeline {
    /// One attempt, of which nothing is known.
    pub(crate) const ONE_UNTIMED: Timeline =
        Timeline { began: Timestamp::ZERO, count: 1, counts_from: 1, spans: [UNKNOWN; KEPT] };

    #[inline]
    pub(crate) const fn new(began: Timestamp) -> Timeline {
        Timeline { began, count: 0, counts_from: 1, spans: [UNKNOWN; KEPT] }
    }

    #[inline]
    pub(crate) fn push(&mut self, started: Option<Timestamp>, ended: Timestamp) {
        self.spans[self.count as usize % KEPT] = match started {
            Some(started) => (seconds(self.began, started), seconds(started, ended)),
            None => (f32::NAN, seconds(self.began, ended)),
        };
        self.count = self.count.saturating_add(1);
    }

    /// Attempts whose times nobody asked for.
    #[inline]
    fn push_untimed(&mut self, attempts: u32) {
        for _ in 0..attempts.min(KEPT as u32) {
            self.count = self.count.saturating_add(1);
            self.spans[(self.count as usize - 1) % KEPT] = UNKNOWN;
        }
        self.count = self.count.saturating_add(attempts.saturating_sub(KEPT as u32));
    }

    /// Says late from when times count.
    #[inline]
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.began = now;
        self.counts_from = self.count.saturating_add(1);
    }

    /// Takes note of attempts that nobody has told of: nobody asked for their times.
    pub(crate) fn catch_up(&mut self, attempts: u32) {
        self.push_untimed(attempts.saturating_sub(self.count));
    }

    /// The attempts remembered, oldest first.
    ///
    /// ```
    /// let policy = relent::Policy::immediate().max_attempts(20);
    /// let err = policy.retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    /// assert_eq!(err.timeline().attempts().count(), 8);
    /// ```
    pub fn attempts(&self) -> impl Iterator<Item = Past> + '_ {
        let first = self.count.saturating_sub(KEPT as u32);
        (first..self.count).map(|index| self.past(index))
    }

    /// How many attempts were made before the ones that are remembered.
    ///
    /// ```
    /// let policy = relent::Policy::immediate().max_attempts(20);
    /// let err = policy.retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    /// assert_eq!(err.timeline().forgotten(), 12);
    /// ```
    pub const fn forgotten(&self) -> u32 {
        self.count.saturating_sub(KEPT as u32)
    }

    /// From the first failure, which is where times begin if the start is not known, to the last; if both are known.
    pub(crate) fn since_first_failure(&self) -> Option<Duration> {
        let last = self.count.checked_sub(1).filter(|_| self.counts_from == 1)?;
        self.past(last).ended
    }

    fn past(&self, index: u32) -> Past {
        let span = |index: u32| self.spans[index as usize % KEPT];
        let known = |seconds: f32| (!seconds.is_nan()).then(|| duration(seconds));
        let (started, then) = span(index);
        let (took, ended) = if started.is_nan() { (None, then) } else { (known(then), started + then) };
        let next = (index + 1 < self.count).then(|| span(index + 1).0);
        Past {
            attempt: index + 1,
            started: known(started),
            took,
            // Where the clock was not read there was no delay.
            waited: next.map(|next| known(next - ended).unwrap_or_default()),
            ended: known(ended),
        }
    }
}

#[inline]
fn seconds(from: Timestamp, to: Timestamp) -> f32 {
    // Signed, because that conversion is one instruction; 292 years will do.
    to.as_nanos().saturating_sub(from.as_nanos()) as i64 as f32 * 1e-9
}

fn duration(seconds: f32) -> Duration {
    Duration::try_from_secs_f32(seconds).unwrap_or_default()
}

/// One line an attempt: `attempt 1 at 0s took 30ms, then waited 84.2ms`.
impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.forgotten() > 0 {
            writeln!(f, "attempts 1 to {} are not remembered", self.forgotten())?;
        }
        for (line, past) in self.attempts().enumerate() {
            if line > 0 {
                writeln!(f)?;
            }
            write!(f, "attempt {}", past.attempt)?;
            match (past.started, past.took, past.ended) {
                (Some(started), Some(took), _) => write!(f, " at {:.1} took {:.1}", Human(started), Human(took))?,
                (_, _, Some(ended)) => write!(f, " failed at {:.1}", Human(ended))?,
                _ => f.write_str(" failed")?,
            }
            if let (Some(waited), Some(_)) = (past.waited, past.ended) {
                write!(f, ", then waited {:.1}", Human(waited))?;
            }
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use std::{string::ToString, vec::Vec};

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn tells_each_attempt_and_the_wait_after_it() {
        let mut timeline = Timeline::new(at(1000));
        timeline.push(Some(at(1000)), at(1030));
        timeline.push(Some(at(1130)), at(1140));
        assert_eq!(timeline.to_string(), "attempt 1 at 0s took 30ms, then waited 100ms\nattempt 2 at 130ms took 10ms");
    }

    #[test]
    fn claims_nothing_of_what_nobody_looked_at() {
        let mut timeline = Timeline::new(at(1000));
        timeline.push(None, at(1000));
        timeline.push(Some(at(1100)), at(1140));
        assert_eq!(timeline.to_string(), "attempt 1 failed at 0s, then waited 100ms\nattempt 2 at 100ms took 40ms");

        let mut timeline = Timeline::new(at(1000));
        timeline.push_untimed(2);
        timeline.push(None, at(1000));
        assert_eq!(timeline.to_string(), "attempt 1 failed\nattempt 2 failed\nattempt 3 failed at 0s");
        timeline.push_untimed(20);
        assert_eq!((timeline.forgotten(), timeline.attempts().last().unwrap().attempt), (15, 23));
    }

    #[test]
    fn keeps_the_last_eight() {
        let mut timeline = Timeline::new(at(0));
        for k in 0..20 {
            timeline.push(Some(at(10 * k)), at(10 * k + 1));
        }
        let kept: Vec<u32> = timeline.attempts().map(|past| past.attempt).collect();
        assert_eq!(kept, [13, 14, 15, 16, 17, 18, 19, 20]);
        assert_eq!(timeline.forgotten(), 12);
        assert!(timeline.to_string().starts_with("attempts 1 to 12 are not remembered\n"));
    }
}
