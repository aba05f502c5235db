//! What is asked of a breaker before an attempt: leave, and what a caller holds who has it.

use super::{
    Breaker, BreakerChange,
    state::{BreakerState, Packed, Probes},
};
use crate::core::{
    refused::Refused,
    rng::unit,
    time::{Timestamp, nanos},
    verdict::Reason,
};
use core::time::Duration;

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
    pub(super) generation: u32,
    pub(super) is_probe: bool,
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

    fn refuse(&self, again: Timestamp) -> Refused {
        match self.alone {
            true => self.refused.set(self.refused.get().wrapping_add(1)),
            false => _ = self.refused.add(1),
        }
        Refused { reason: Reason::Open, again }
    }
}
