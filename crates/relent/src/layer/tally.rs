//! The attempts that a client made in its last minute, by their number, and the header that says so.

use crate::{Attempts, Timestamp, sync::lock, wire::attempts_value};
use http::HeaderValue;
use std::{sync::Mutex, time::Duration};

/// The last minute in six parts: what it says is between 50 and 60 seconds old at most.
const PARTS: usize = 6;
const PART: Duration = Duration::from_secs(10);

/// The text is made anew at most this often, so that a busy client does not write it for each request.
const STALE: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(crate) struct Tally(Mutex<Minute>);

#[derive(Default)]
struct Minute {
    parts: [Attempts; PARTS],
    /// The number of the part that is being filled, counted from the epoch.
    part: u64,
    said: Option<HeaderValue>,
    said_at: Timestamp,
}

impl Tally {
    /// Counts an attempt; the header, with this attempt or, if it was said a moment ago, without.
    pub(crate) fn count(&self, now: Timestamp, attempt: u32) -> Option<HeaderValue> {
        let mut minute = lock(&self.0);
        minute.turn(now);
        let part = (minute.part % PARTS as u64) as usize;
        minute.parts[part].add(attempt, 1);
        if minute.said.is_none() || now.since(minute.said_at) >= STALE {
            minute.said = attempts_value(&minute.total());
            minute.said_at = now;
        }
        minute.said.clone()
    }
}

impl Minute {
    fn turn(&mut self, now: Timestamp) {
        let part = now.as_nanos() / PART.as_nanos() as u64;
        let passed = part.saturating_sub(self.part).min(PARTS as u64);
        for gone in 1..=passed {
            self.parts[((self.part + gone) % PARTS as u64) as usize] = Attempts::default();
        }
        if passed == PARTS as u64 {
            self.parts = [Attempts::default(); PARTS];
        }
        self.part = self.part.max(part);
    }

    fn total(&self) -> Attempts {
        let mut total = Attempts::default();
        for part in &self.parts {
            (1..=8).for_each(|attempt| total.add(attempt, part.of(attempt)));
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_secs(1_000 + seconds)
    }

    #[test]
    fn a_minute_is_told_and_no_more() {
        let tally = Tally::default();
        let said = |now, attempt| tally.count(now, attempt).unwrap().to_str().unwrap().to_owned();
        assert_eq!(said(at(0), 1), "1=1");
        assert_eq!(said(at(1), 2), "1=1,2=1");
        assert_eq!(said(at(20), 1), "1=2,2=1");
        assert_eq!(said(at(59), 9), "1=2,2=1,8=1");
        assert_eq!(said(at(80), 1), "1=1,8=1", "what was said after the thirtieth second");
        assert_eq!(said(at(10_000), 3), "3=1");
        assert_eq!(said(at(5), 3), "3=1", "said a moment ago, for a clock that goes back");
        assert_eq!(said(at(10_001), 1), "1=1,3=2", "and nothing is lost");
    }

    #[test]
    fn a_busy_client_does_not_write_it_each_time() {
        let tally = Tally::default();
        let first = tally.count(at(0), 1);
        assert_eq!(tally.count(at(0) + STALE / 2, 1), first);
        assert_eq!(tally.count(at(0) + STALE, 1).unwrap(), "1=3");
    }
}
