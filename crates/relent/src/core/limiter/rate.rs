//! A rate, by the generic cell rate algorithm: one atomic word, the time at which the next permit is due.
//!
//! Source: ITU-T I.371, "GCRA"; the "virtual scheduling" form. governor is the crate known for it. Here the word is
//! the caller's own time, so a paused or a simulated clock paces as the real one does, and a burst of 1 really paces:
//! nothing is admitted on top of it, neither at first nor after idle hours.

use super::answer::LimitAnswer;
use crate::core::{time::Timestamp, word::Word};
use core::time::Duration;

#[derive(Debug)]
pub(super) struct Rate {
    /// Nanoseconds from one permit to the next.
    pub(super) gap: u64,
    /// How far ahead of time permits may be: all of a burst but its first.
    pub(super) ahead: u64,
    /// When the next permit is due, at a steady pace.
    due: Word,
}

impl Rate {
    /// Rounded up to the nanosecond: never more than asked for.
    pub(super) const fn new(permits: u32, per: u64, burst: u32) -> Rate {
        let gap = per.div_ceil(permits as u64);
        Rate { gap, ahead: gap.saturating_mul(burst as u64 - 1), due: Word::new(0) }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        with(&self.due);
    }

    #[inline]
    pub(super) fn acquire(&self, now: Timestamp) -> LimitAnswer {
        match self.book(now, 0) {
            Ok(_) => LimitAnswer::Granted,
            Err(wait) => LimitAnswer::Wait(Duration::from_nanos(wait)),
        }
    }

    /// Takes the next permit if it is due within so long, and says how long that is.
    #[inline]
    pub(super) fn book(&self, now: Timestamp, within: u64) -> Result<u64, u64> {
        let now = now.as_nanos();
        let mut due = self.due.get();
        loop {
            let wait = due.saturating_sub(self.ahead).saturating_sub(now);
            if wait > within {
                return Err(wait);
            }
            match self.due.exchange(due, due.max(now).saturating_add(self.gap)) {
                Ok(()) => return Ok(wait),
                Err(other) => due = other,
            }
        }
    }

    pub(super) fn give_back(&self) {
        self.due.update(|due| Some(due.saturating_sub(self.gap)));
    }

    /// Permits that could be had at once.
    pub(super) fn available(&self, now: Timestamp) -> u64 {
        let early = now.as_nanos().saturating_add(self.ahead).saturating_add(self.gap);
        early.saturating_sub(self.due.get().max(now.as_nanos())) / self.gap
    }

    /// What was used of the burst stays used, in permits.
    pub(super) fn adopt(&self, old: &Rate, now: Timestamp) {
        let used = u128::from(old.due.get().saturating_sub(now.as_nanos()));
        let used = (used * u128::from(self.gap)).div_ceil(u128::from(old.gap));
        self.due.set(now.as_nanos().saturating_add(u64::try_from(used).unwrap_or(u64::MAX)));
    }

    pub(super) fn reset(&self) {
        self.due.set(0);
    }
}
