//! The story of a call: when its attempts ran. Bounded, so that a call that retries for a year stays small.

use crate::{Human, Timestamp};
use core::{fmt, time::Duration};

/// How many attempts are remembered: the last ones.
const KEPT: usize = 8;

/// When the attempts of a call ran: the last eight of them, to seven digits.
///
/// Where nothing makes it necessary to read the clock (no limit of time, nobody who watches, no delay), it is not read,
/// and attempts seem to have taken no time.
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::time::Duration;
///
/// let policy = Policy::constant(Duration::from_millis(2)).jitter(Jitter::None).max_attempts(2);
/// let err = policy.retry_blocking(|_| Err::<(), _>("refused")).unwrap_err();
/// let first = err.timeline().attempts().next().unwrap();
/// assert_eq!(first.attempt, 1);
/// assert!(first.waited.unwrap() >= Duration::from_millis(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    began: Timestamp,
    count: u32,
    /// In seconds: when an attempt started after the call began, and how long it took.
    spans: [(f32, f32); KEPT],
}

/// One attempt of a [`Timeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Past {
    /// Which attempt it was; the first is 1.
    pub attempt: u32,
    /// When it started, after the call began.
    pub started: Duration,
    /// How long it took.
    pub took: Duration,
    /// How long the call waited after it, if another attempt followed.
    pub waited: Option<Duration>,
}

impl Timeline {
    #[inline]
    pub(crate) const fn new(began: Timestamp) -> Timeline {
        Timeline { began, count: 0, spans: [(0.0, 0.0); KEPT] }
    }

    #[inline]
    pub(crate) fn push(&mut self, started: Timestamp, ended: Timestamp) {
        self.spans[self.count as usize % KEPT] = (seconds(self.began, started), seconds(started, ended));
        self.count = self.count.saturating_add(1);
    }

    /// An attempt whose times nobody asked for.
    #[inline]
    pub(crate) fn push_untimed(&mut self) {
        self.spans[self.count as usize % KEPT] = (0.0, 0.0);
        self.count = self.count.saturating_add(1);
    }

    /// The attempts remembered, oldest first.
    pub fn attempts(&self) -> impl Iterator<Item = Past> + '_ {
        let first = self.count.saturating_sub(KEPT as u32);
        (first..self.count).map(|index| self.past(index))
    }

    /// How many attempts were made before the ones that are remembered.
    pub const fn forgotten(&self) -> u32 {
        self.count.saturating_sub(KEPT as u32)
    }

    fn past(&self, index: u32) -> Past {
        let span = |index: u32| self.spans[index as usize % KEPT];
        let (started, took) = span(index);
        let next = (index + 1 < self.count).then(|| span(index + 1).0);
        Past {
            attempt: index + 1,
            started: duration(started),
            took: duration(took),
            waited: next.map(|next| duration(next - started - took)),
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
            write!(f, "attempt {} at {:.1} took {:.1}", past.attempt, Human(past.started), Human(past.took))?;
            if let Some(waited) = past.waited {
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
        timeline.push(at(1000), at(1030));
        timeline.push(at(1130), at(1140));
        assert_eq!(timeline.to_string(), "attempt 1 at 0s took 30ms, then waited 100ms\nattempt 2 at 130ms took 10ms");
    }

    #[test]
    fn keeps_the_last_eight() {
        let mut timeline = Timeline::new(at(0));
        for k in 0..20 {
            timeline.push(at(10 * k), at(10 * k + 1));
        }
        let kept: Vec<u32> = timeline.attempts().map(|past| past.attempt).collect();
        assert_eq!(kept, [13, 14, 15, 16, 17, 18, 19, 20]);
        assert_eq!(timeline.forgotten(), 12);
        assert!(timeline.to_string().starts_with("attempts 1 to 12 are not remembered\n"));
    }
}
