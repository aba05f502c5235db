//! A limit on what is in flight that finds itself: one more for each round of successes, a tenth less for a failure.
//!
//! Source: Chiu and Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance", 1989; the
//! constants are those of Netflix's concurrency-limits (`AIMDLimit`). As in TCP, what started before a cut does not
//! cut again: twenty attempts that fail together are one sign of overload, not twenty.

use super::{
    answer::LimitAnswer,
    flight::{FINE, Flight},
};
use crate::core::{
    outcome::Outcome,
    time::{Timestamp, nanos},
    word::Word,
};
use core::time::Duration;

#[derive(Debug)]
pub(super) struct Aimd {
    pub(super) start: u32,
    least: u32,
    most: u32,
    /// What slower successes count as: a failure.
    slow_after: u64,
    pub(super) flight: Flight,
    /// When the limit was cut last.
    cut: Word,
}

impl Aimd {
    pub(super) const fn new(start: u32, least: u32, most: u32, slow_after: Duration) -> Aimd {
        Aimd { start, least, most, slow_after: nanos(slow_after), flight: Flight::new(start), cut: Word::new(0) }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        self.flight.words(with);
        with(&self.cut);
    }

    #[inline]
    pub(super) fn acquire(&self) -> LimitAnswer {
        self.flight.acquire()
    }

    pub(super) fn release(&self, now: Timestamp, outcome: Outcome, latency: Duration) {
        if outcome.is_load() || outcome.is_answered() && nanos(latency) > self.slow_after {
            self.cut(now.as_nanos(), nanos(latency));
        } else if outcome.is_answered() {
            let most = u64::from(self.most) * FINE;
            // Half of the limit must be in use: an idle client learns nothing about what it could do.
            self.flight.move_limit(|limit, flying| match flying * 2 * FINE >= limit {
                true => (limit + (FINE * FINE / limit.max(1)).max(1)).min(most),
                false => limit,
            });
        }
        self.flight.release();
    }

    fn cut(&self, now: u64, latency: u64) {
        let started = now.saturating_sub(latency);
        let is_first = self.cut.update(|cut| (cut == 0 || started >= cut).then_some(now.max(1)));
        if is_first.is_some() {
            let least = u64::from(self.least) * FINE;
            self.flight.move_limit(|limit, _| (limit * 9 / 10).max(least));
        }
    }

    pub(super) fn adopt(&self, old: &Aimd) {
        self.flight.adopt(&old.flight, self.least, self.most);
        self.cut.set(old.cut.get());
    }

    pub(super) fn reset(&self) {
        self.flight.reset(self.start);
        self.cut.set(0);
    }
}
