//! What is asked of a breaker before an attempt, what it is told after, and how that changes its state.
//!
//! A change of state is claimed by one compare-exchange that marks the word as busy; its winner writes down the times
//! and unmarks it. Nobody waits for that: who finds a busy word takes it as the new state and changes nothing.

use super::{
    Breaker,
    settings::BreakerQuirks,
    state::{BreakerState, Packed, Probes},
    window::{Counted, Mark, Recorded, Seen, least_calls},
};
use crate::core::{
    refused::Refused,
    rng::{scale, unit},
    time::{Timestamp, nanos},
    verdict::Reason,
    word::pause,
};
use core::time::Duration;

/// A breaker went from one state to another.
///
/// ```
/// use relent::{Breaker, BreakerState, Timestamp};
/// use std::time::Duration;
///
/// let bank = Breaker::consecutive(1);
/// let permit = bank.permit(Timestamp::ZERO, 0).unwrap();
/// let change = permit.failed(Timestamp::ZERO, Duration::ZERO, 0).unwrap();
/// assert_eq!((change.from, change.to), (BreakerState::Closed, BreakerState::Open));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerChange {
    /// The state before.
    pub from: BreakerState,
    /// The state now.
    pub to: BreakerState,
}

/// Leave for one attempt, as plain data: for event loops and simulators, who must tell its outcome, or give it back,
/// exactly once. Everyone else has a [`BreakerPermit`], which cannot be forgotten.
///
/// ```
/// use relent::{Breaker, BreakerState, Timestamp};
/// use std::time::Duration;
///
/// let (bank, now) = (Breaker::consecutive(1).open_for(Duration::from_secs(1)), Timestamp::ZERO);
/// let pass = bank.pass(now, 0).unwrap();
/// assert!(!pass.is_probe() && pass.change().is_none());
/// bank.failed(pass, now, Duration::ZERO, 0);
///
/// let now = now + Duration::from_secs(1);
/// let probe = bank.pass(now, 0).unwrap();
/// assert!(probe.is_probe());
/// assert_eq!(probe.change().unwrap().to, BreakerState::HalfOpen);
/// bank.give_back(probe);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a pass whose outcome is not told keeps the place of a probe"]
pub struct BreakerPass {
    generation: u32,
    is_probe: bool,
    change: Option<BreakerChange>,
}

impl BreakerPass {
    /// Whether the attempt is a probe of a half-open breaker.
    pub const fn is_probe(&self) -> bool {
        self.is_probe
    }

    /// The change of state that came with it: open to half-open, or the end of a ramp.
    pub const fn change(&self) -> Option<BreakerChange> {
        self.change
    }
}

/// Leave for one attempt. Dropped without an outcome it is given back and counts as neither success nor failure.
///
/// ```
/// use relent::{Breaker, BreakerState, Timestamp};
/// use std::time::Duration;
///
/// let (bank, now) = (Breaker::consecutive(1), Timestamp::ZERO);
/// let permit = bank.permit(now, 0).unwrap();
/// assert!(permit.pass().is_some());
/// drop(permit); // Cancelled: nothing is counted.
/// bank.permit(now, 0).unwrap().succeeded(now, Duration::ZERO, 0);
/// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
/// assert_eq!(bank.state(), BreakerState::Open);
/// ```
#[derive(Debug)]
#[must_use = "an attempt is made while its permit is held"]
pub struct BreakerPermit<'a> {
    breaker: &'a Breaker,
    pass: Option<BreakerPass>,
}

impl BreakerPermit<'_> {
    /// The attempt succeeded after `took`. As [`Breaker::succeeded`].
    pub fn succeeded(mut self, now: Timestamp, took: Duration, draw: u64) -> Option<BreakerChange> {
        let pass = self.pass.take()?;
        self.breaker.succeeded(pass, now, took, draw)
    }

    /// The attempt failed after `took`. As [`Breaker::failed`].
    pub fn failed(mut self, now: Timestamp, took: Duration, draw: u64) -> Option<BreakerChange> {
        let pass = self.pass.take()?;
        self.breaker.failed(pass, now, took, draw)
    }

    /// The same as plain data.
    pub fn pass(&self) -> Option<BreakerPass> {
        self.pass
    }
}

impl Drop for BreakerPermit<'_> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass {
            self.breaker.give_back(pass);
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy)]
struct Outcome {
    now: Timestamp,
    failed: bool,
    slow: bool,
    draw: u64,
}

impl Breaker {
    /// Asks for leave for an attempt at `now`. `draw` is a uniform random number of the caller's: it decides in a ramp.
    ///
    /// # Errors
    ///
    /// [`Refused`], with reason `open` and when to ask again.
    ///
    /// ```
    /// # use relent::{Breaker, Reason, Timestamp};
    /// let (bank, now) = (Breaker::consecutive(5), Timestamp::ZERO);
    /// assert!(bank.permit(now, 0).is_ok());
    /// bank.hold_open(now);
    /// assert_eq!(bank.permit(now, 0).unwrap_err().reason, Reason::Open);
    /// ```
    #[inline]
    pub fn permit(&self, now: Timestamp, draw: u64) -> Result<BreakerPermit<'_>, Refused> {
        self.pass(now, draw).map(|pass| BreakerPermit { breaker: self, pass: Some(pass) })
    }

    /// As [`permit`](Breaker::permit), as plain data.
    ///
    /// # Errors
    ///
    /// [`Refused`], with reason `open` and when to ask again.
    ///
    /// ```
    /// # use relent::{Breaker, Timestamp};
    /// # use std::time::Duration;
    /// let (bank, now) = (Breaker::consecutive(5), Timestamp::ZERO);
    /// let pass = bank.pass(now, 0)?;
    /// bank.failed(pass, now, Duration::from_millis(20), 0);
    /// assert_eq!(bank.snapshot(now).failures_in_a_row, 1);
    /// # Ok::<(), relent::Refused>(())
    /// ```
    #[inline]
    pub fn pass(&self, now: Timestamp, draw: u64) -> Result<BreakerPass, Refused> {
        match self.pass_closed() {
            Some(pass) => Ok(pass),
            None => self.pass_not_closed(now, draw),
        }
    }

    /// Leave for an attempt if the breaker is closed; needs neither a clock nor a draw. `None` means: ask
    /// [`pass`](Breaker::pass).
    ///
    /// ```
    /// # use relent::{Breaker, Timestamp};
    /// let bank = Breaker::consecutive(5);
    /// assert!(bank.pass_closed().is_some());
    /// bank.hold_open(Timestamp::ZERO);
    /// assert!(bank.pass_closed().is_none());
    /// ```
    #[inline]
    pub fn pass_closed(&self) -> Option<BreakerPass> {
        let word = self.packed();
        word.is_closed().then_some(BreakerPass { generation: word.generation(), is_probe: false, change: None })
    }

    #[cold]
    fn pass_not_closed(&self, now: Timestamp, draw: u64) -> Result<BreakerPass, Refused> {
        loop {
            let word = self.packed();
            let pass = BreakerPass { generation: word.generation(), is_probe: false, change: None };
            let passed = match word.state() {
                BreakerState::Closed | BreakerState::HeldClosed => Some(pass),
                BreakerState::HeldOpen => return Err(self.refuse(Timestamp::MAX)),
                BreakerState::Open => self.pass_open(word, now)?,
                BreakerState::HalfOpen => self.pass_half_open(word, now)?,
                BreakerState::Ramp => self.pass_ramp(word, now, draw)?,
            };
            if let Some(pass) = passed {
                return Ok(pass);
            }
        }
    }

    /// `Ok(None)` is: somebody else changed the state, look again.
    fn pass_open(&self, word: Packed, now: Timestamp) -> Result<Option<BreakerPass>, Refused> {
        let until = self.until();
        if word.is_busy() {
            return Err(self.refuse(now + self.settings.open_for));
        }
        if now < until {
            return Err(self.refuse(until));
        }
        Ok(self.begin_probing(word, now))
    }

    fn begin_probing(&self, word: Packed, now: Timestamp) -> Option<BreakerPass> {
        let probes = Probes { in_flight: 1, ..Probes::default() };
        let lost_at = self.settings.probe_again_after.map_or(Timestamp::MAX, |time| now + time);
        let generation = self.change(word, BreakerState::HalfOpen, probes.pack(), now, lost_at, None)?;
        let change = BreakerChange { from: word.state(), to: BreakerState::HalfOpen };
        Some(BreakerPass { generation, is_probe: true, change: (change.from != change.to).then_some(change) })
    }

    fn pass_half_open(&self, word: Packed, now: Timestamp) -> Result<Option<BreakerPass>, Refused> {
        let probes = word.probes();
        let told = probes.succeeded + probes.failed;
        let is_full = probes.in_flight >= self.settings.probes || probes.in_flight + told >= self.settings.close_after;
        if word.is_busy() {
            return Err(self.refuse(now + self.settings.open_for));
        }
        if is_full {
            let until = self.until();
            if now >= until && until != Timestamp::MAX {
                return Ok(self.begin_probing(word, now));
            }
            // Nobody knows when the probes will be back. If one fails now, it is open for that long again.
            return Err(self.refuse(until.min(now + self.settings.open_for)));
        }
        let more = word.with_probes(Probes { in_flight: probes.in_flight + 1, ..probes });
        let pass = BreakerPass { generation: word.generation(), is_probe: true, change: None };
        Ok(self.swap_if(word.0, more.0).then_some(pass))
    }

    fn pass_ramp(&self, word: Packed, now: Timestamp, draw: u64) -> Result<Option<BreakerPass>, Refused> {
        let since = if word.is_busy() { now } else { Timestamp::from_nanos(self.since.get()) };
        let (gone, ramp) = (nanos(now.since(since)), nanos(self.settings.ramp));
        let pass = BreakerPass { generation: word.generation(), is_probe: false, change: None };
        if gone >= ramp && !word.is_busy() {
            // The same generation: what the ramp has counted goes on counting.
            let change = Some(BreakerChange { from: BreakerState::Ramp, to: BreakerState::Closed });
            let closed = self.swap_if(word.0, word.become_closed().0);
            return Ok(closed.then_some(BreakerPass { change, ..pass }));
        }
        let from = self.settings.ramp_from;
        let share = from + (1.0 - from) * (gone as f64 / ramp as f64);
        if unit(draw) < share {
            return Ok(Some(pass));
        }
        // When the ramp has come to this caller's draw.
        let wait = ((unit(draw) - from) / (1.0 - from) * ramp as f64) as u64;
        Err(self.refuse(since.plus_nanos(wait.saturating_add(1)).max(now)))
    }

    /// Changes the word, if it still is the old one.
    #[inline]
    fn swap_if(&self, old: u64, new: u64) -> bool {
        if self.alone {
            self.word.set(new);
            return true;
        }
        self.word.swap_if(old, new)
    }

    fn refuse(&self, again: Timestamp) -> Refused {
        match self.alone {
            true => self.refused.set(self.refused.get().wrapping_add(1)),
            false => _ = self.refused.add(1),
        }
        Refused { reason: Reason::Open, again }
    }

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
                if let Some(change) = self.close(word, outcome) {
                    return Some(change);
                }
            } else if self.swap_if(word.0, word.with_probes(probes).0) {
                return None;
            }
        }
    }

    fn close(&self, word: Packed, outcome: Outcome) -> Option<BreakerChange> {
        let to = if self.settings.ramp.is_zero() { BreakerState::Closed } else { BreakerState::Ramp };
        let generation = self.change(word, to, 0, outcome.now, Timestamp::MAX, None)?;
        if self.settings.quirks == BreakerQuirks::Cockatiel {
            let mark = Mark { generation, failed: outcome.failed, slow: outcome.slow };
            self.window.record(self.shape, outcome.now, mark, || self.packed().generation() == generation);
        }
        Some(BreakerChange { from: word.state(), to })
    }

    fn trip(&self, word: Packed, now: Timestamp, draw: u64) -> Option<BreakerChange> {
        let now = now.max(Timestamp::from_nanos(self.since.get()));
        let level = self.next_level(word, now);
        let strictly = u64::from(self.settings.quirks == BreakerQuirks::Gobreaker);
        let until = now.plus_nanos(self.open_nanos(level, draw).saturating_add(strictly));
        self.change(word, BreakerState::Open, 0, now, until, Some(level))?;
        Some(BreakerChange { from: word.state(), to: BreakerState::Open })
    }

    /// The first trip is of level 0, and so is one after a long time closed; every other grows.
    fn next_level(&self, word: Packed, now: Timestamp) -> u32 {
        let closed_for = now.since(Timestamp::from_nanos(self.since.get()));
        let was_closed = word.state() != BreakerState::HalfOpen;
        if self.trips.get() == 0 || was_closed && nanos(closed_for) >= self.longest_open() {
            return 0;
        }
        u32::try_from(self.level.get()).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn longest_open(&self) -> u64 {
        let most = self.settings.open_at_most.map_or(nanos(self.settings.open_for).saturating_mul(10), nanos);
        most.max(nanos(self.settings.open_for))
    }

    pub(super) fn open_nanos(&self, level: u32, draw: u64) -> u64 {
        let settings = &self.settings;
        let first = nanos(settings.open_for);
        let mut base = first;
        if settings.factor > 1.0 && level > 0 {
            // The jitter keeps its width at the longest open time: it bounds the range and does not clip the draw.
            let most = (self.longest_open() as f64 / (1.0 + settings.jitter)) as u64;
            base = growth(first, settings.factor, level, most).max(first);
        }
        base.saturating_add(scale(draw, (base as f64 * settings.jitter) as u64))
    }

    /// Claims a change from `word`, writes it down, and says the new generation; `None` if somebody else was first.
    fn change(
        &self,
        word: Packed,
        to: BreakerState,
        counts: u64,
        now: Timestamp,
        until: Timestamp,
        level: Option<u32>,
    ) -> Option<u32> {
        let next = Packed::new(to, word.generation().wrapping_add(1), counts);
        if word.is_busy() || !self.swap_if(word.0, next.busy().0) {
            return None;
        }
        // While the word is busy nobody else writes these.
        self.since.set(self.since.get().max(now.as_nanos()));
        self.until.set(until.as_nanos());
        if let Some(level) = level {
            self.level.set(u64::from(level));
            self.trips.set(self.trips.get().wrapping_add(1));
        }
        self.window.restart(self.shape, now);
        self.word.set(next.0);
        Some(next.generation())
    }

    /// Holds it open by hand: nothing is let through until [`release`](Breaker::release).
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let (bank, now) = (Breaker::consecutive(5), Timestamp::ZERO);
    /// bank.hold_open(now);
    /// assert!(bank.permit(now + Duration::from_secs(3600), 0).is_err());
    /// bank.release(now);
    /// assert_eq!(bank.state(), BreakerState::Closed);
    /// ```
    pub fn hold_open(&self, now: Timestamp) {
        self.by_hand(BreakerState::HeldOpen, now);
    }

    /// Holds it closed by hand: everything is let through, and nothing is counted, until
    /// [`release`](Breaker::release).
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let (bank, now) = (Breaker::consecutive(1), Timestamp::ZERO);
    /// bank.hold_closed(now);
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// assert_eq!(bank.state(), BreakerState::HeldClosed, "the failure was not counted");
    /// ```
    pub fn hold_closed(&self, now: Timestamp) {
        self.by_hand(BreakerState::HeldClosed, now);
    }

    /// Closes it by hand, held or not, with nothing counted: from here on it decides for itself again.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// let (bank, now) = (Breaker::consecutive(5), Timestamp::ZERO);
    /// bank.hold_open(now);
    /// bank.release(now);
    /// assert_eq!(bank.state(), BreakerState::Closed);
    /// ```
    pub fn release(&self, now: Timestamp) {
        self.by_hand(BreakerState::Closed, now);
    }

    fn by_hand(&self, to: BreakerState, now: Timestamp) {
        while self.change(self.packed(), to, 0, now, Timestamp::MAX, None).is_none() {
            pause();
        }
    }

    /// Goes on where `old` was, for settings that were read again: what did not change keeps its state.
    ///
    /// State, since when, failures in a row and the number of trips are taken over. An open time that is now
    /// shorter ends sooner, never later. The window is taken over if it is the same window. Probes in flight belong
    /// to the old breaker: they are let through anew.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// let old = Breaker::consecutive(5);
    /// old.hold_open(Timestamp::ZERO);
    /// let new = Breaker::consecutive(3).adopt(&old);
    /// assert_eq!(new.state(), BreakerState::HeldOpen);
    /// ```
    #[must_use]
    pub fn adopt(self, old: &Breaker) -> Breaker {
        let word = old.settled();
        let counts = if word.state() == BreakerState::HalfOpen { 0 } else { word.failures() };
        let now = Timestamp::from_nanos(old.since.get());
        let longest = now.plus_nanos(self.open_nanos(u32::try_from(old.level.get()).unwrap_or(u32::MAX), u64::MAX));
        let until = if word.state() == BreakerState::Open { old.until().min(longest) } else { old.until() };
        self.since.set(old.since.get());
        self.until.set(until.as_nanos());
        self.level.set(old.level.get());
        self.trips.set(old.trips.get());
        self.refused.set(old.refused.get());
        let is_alike = core::mem::discriminant(&self.shape) == core::mem::discriminant(&old.shape);
        if is_alike && self.settings.window == old.settings.window && self.settings.quirks == old.settings.quirks {
            self.window.copy(&old.window);
        }
        self.word.set(Packed::new(word.state(), word.generation(), counts).0);
        self
    }

    pub(super) fn settled(&self) -> Packed {
        loop {
            let word = self.packed();
            if !word.is_busy() {
                return word;
            }
            pause();
        }
    }

    #[inline]
    pub(super) fn packed(&self) -> Packed {
        Packed(self.word.get())
    }

    pub(super) fn until(&self) -> Timestamp {
        Timestamp::from_nanos(self.until.get())
    }
}

/// `first * factor^level`, at most `most`, in as many steps as the level has bits.
fn growth(first: u64, factor: f64, level: u32, most: u64) -> u64 {
    let (mut power, mut square, mut left) = (1.0f64, factor, level);
    while left > 0 {
        if left & 1 == 1 {
            power *= square;
        }
        square *= square;
        left >>= 1;
    }
    let grown = first as f64 * power;
    // Infinity is cut by the conversion, and is more than `most` in any case.
    (grown as u64).min(most)
}
