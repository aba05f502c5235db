//! What a breaker is told after an attempt, and what it makes of it.

use super::{
    Breaker, BreakerChange, BreakerPass,
    settings::BreakerQuirks,
    state::{BreakerState, Packed, Probes},
    window::{Counted, Mark, Recorded, Seen, least_calls},
};
use crate::core::time::Timestamp;
use core::time::Duration;

/// How an attempt ended.
#[derive(Clone, Copy)]
struct Outcome {
    now: Timestamp,
    failed: bool,
    slow: bool,
    draw: u64,
}

impl Breaker {
    /// An attempt succeeded at `now`, after `took`. The draw is for the jitter, should too many slow calls trip it.
    /// Says whether that changed the state.
    #[inline]
    pub fn succeeded(&self, pass: BreakerPass, now: Timestamp, took: Duration, draw: u64) -> Option<BreakerChange> {
        if self.plain && self.is_at_ease(pass) { None } else { self.succeeded_in_window(pass, now, took, draw) }
    }

    /// Apart, so that it does not weigh on a breaker that has no window.
    fn succeeded_in_window(
        &self,
        pass: BreakerPass,
        now: Timestamp,
        took: Duration,
        draw: u64,
    ) -> Option<BreakerChange> {
        let outcome = Outcome { now, failed: false, slow: self.is_slow(took), draw };
        if self.is_at_ease(pass) && !outcome.slow {
            match self.window.count_success(&self.shape, now, pass.generation) {
                Counted::Quietly => return None,
                Counted::Loudly(seen) => {
                    return self.tell_recorded(pass, outcome, Recorded { seen: Some(seen), cleared: false });
                }
                Counted::Not => {}
            }
        }
        self.tell(pass, outcome)
    }

    /// Closed, and with no failure in a row to forget: a success touches the window at most.
    #[inline]
    fn is_at_ease(&self, pass: BreakerPass) -> bool {
        self.packed() == Packed::new(BreakerState::Closed, pass.generation, 0)
    }

    /// An attempt failed at `now`, after `took`, in a way that counts against the far side: transient, after,
    /// overloaded, or an attempt timeout. A permanent failure is told by [`succeeded`](Breaker::succeeded): the far
    /// side answered. The draw is for the jitter of the open time. Says whether that changed the state.
    pub fn failed(&self, pass: BreakerPass, now: Timestamp, took: Duration, draw: u64) -> Option<BreakerChange> {
        let slow = self.is_slow(took);
        self.tell(pass, Outcome { now, failed: true, slow, draw })
    }

    /// An attempt has no outcome: it was cancelled, dropped, or lost to another. Counts as neither.
    ///
    /// ```
    /// # use relent::{Breaker, Timestamp};
    /// # use std::time::Duration;
    /// let (bank, mut now) = (Breaker::consecutive(1).open_for(Duration::from_secs(1)), Timestamp::ZERO);
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// now = now + Duration::from_secs(1);
    /// let probe = bank.pass(now, 0).unwrap();
    /// assert!(bank.pass(now, 0).is_err(), "one probe at a time");
    /// bank.give_back(probe);
    /// assert!(bank.pass(now, 0).is_ok());
    /// ```
    pub fn give_back(&self, pass: BreakerPass) {
        if !pass.is_probe {
            return;
        }
        loop {
            let word = self.packed();
            if !self.is_probe_of(pass, word) {
                return;
            }
            let probes = word.probes();
            let fewer = word.with_probes(Probes { in_flight: probes.in_flight.saturating_sub(1), ..probes });
            if self.swap_if(word.0, fewer.0) {
                return;
            }
        }
    }

    #[inline]
    fn is_slow(&self, took: Duration) -> bool {
        self.settings.slow_after.is_some_and(|after| took > after)
    }

    fn is_probe_of(&self, pass: BreakerPass, word: Packed) -> bool {
        pass.is_probe
            && word.state() == BreakerState::HalfOpen
            && word.generation() == pass.generation
            && !word.is_busy()
    }

    fn tell(&self, pass: BreakerPass, outcome: Outcome) -> Option<BreakerChange> {
        if pass.is_probe { self.tell_probe(pass, outcome) } else { self.tell_closed(pass, outcome) }
    }

    fn tell_closed(&self, pass: BreakerPass, outcome: Outcome) -> Option<BreakerChange> {
        let mark = Mark { generation: pass.generation, failed: outcome.failed, slow: outcome.slow };
        let is_current = || self.counts_in(self.packed(), pass);
        if !is_current() {
            return None;
        }
        let recorded = self.window.record(self.shape, outcome.now, mark, is_current);
        self.tell_recorded(pass, outcome, recorded)
    }

    /// What has been counted may trip.
    fn tell_recorded(&self, pass: BreakerPass, outcome: Outcome, recorded: Recorded) -> Option<BreakerChange> {
        // The others look at their window after a failure only, not when a success makes the volume full.
        let looks = self.settings.quirks == BreakerQuirks::None || outcome.failed || outcome.slow;
        let trips = looks && recorded.seen.is_some_and(|seen| self.is_too_much(seen));
        let mut cleared = recorded.cleared;
        loop {
            let word = self.packed();
            if !self.counts_in(word, pass) || word.is_busy() {
                return None;
            }
            let before = if cleared { 0 } else { word.failures() };
            let failures = if outcome.failed { before.saturating_add(1) } else { 0 };
            let in_a_row = outcome.failed && self.settings.consecutive.is_some_and(|most| failures >= u64::from(most));
            if trips || in_a_row {
                if let Some(change) = self.trip(word, outcome.now, outcome.draw) {
                    return Some(change);
                }
                continue;
            }
            let next = word.with_failures(failures);
            if next == word || self.swap_if(word.0, next.0) {
                return None;
            }
            cleared = false;
        }
    }

    /// Whether outcomes of the pass's generation count in this state.
    fn counts_in(&self, word: Packed, pass: BreakerPass) -> bool {
        word.generation() == pass.generation && matches!(word.state(), BreakerState::Closed | BreakerState::Ramp)
    }

    fn is_too_much(&self, seen: Seen) -> bool {
        let settings = &self.settings;
        if settings.failures.is_some_and(|most| seen.failures >= u64::from(most)) {
            return true;
        }
        if seen.calls == 0 || seen.calls < u64::from(least_calls(settings)) {
            return false;
        }
        let (calls, strict) = (seen.calls as f64, settings.quirks == BreakerQuirks::Cockatiel);
        // By division, so that 3 of 30 is the 0.1 that somebody wrote; cockatiel multiplies.
        let reaches = |count: u64, share: f64| {
            if strict { count as f64 > share * calls } else { count as f64 / calls >= share }
        };
        settings.share.is_some_and(|share| reaches(seen.failures, share))
            || settings.slow_after.is_some() && reaches(seen.slow, settings.slow_share)
    }

    fn tell_probe(&self, pass: BreakerPass, outcome: Outcome) -> Option<BreakerChange> {
        let failed = outcome.failed || outcome.slow;
        loop {
            let word = self.packed();
            if !self.is_probe_of(pass, word) {
                return None;
            }
            let mut probes = word.probes();
            probes.in_flight = probes.in_flight.saturating_sub(1);
            if failed {
                probes.failed += 1;
            } else {
                probes.succeeded += 1;
            }
            let told = probes.succeeded + probes.failed;
            let opens = match self.settings.reopen_share {
                None => failed,
                Some(share) => told >= self.settings.close_after && f64::from(probes.failed) / f64::from(told) >= share,
            };
            if opens {
                if let Some(change) = self.trip(word, outcome.now, outcome.draw) {
                    return Some(change);
                }
            } else if told >= self.settings.close_after {
                if let Some(change) = self.close(word, outcome.now, outcome.failed, outcome.slow) {
                    return Some(change);
                }
            } else if self.swap_if(word.0, word.with_probes(probes).0) {
                return None;
            }
        }
    }
}
