//! A rate, by the generic cell rate algorithm: one atomic word, the time at which the next permit is due, and beside it those before that are
//! free again.
//!
//! Source: ITU-T I.371, "GCRA"; the "virtual scheduling" form. governor is the crate known for it. Here the word is
//! the caller's own time, so a paused or a simulated clock paces as the real one does, and a burst of 1 really paces:
//! nothing is admitted on top of it, neither at first nor after idle hours.

use super::{answer::LimitAnswer, holes::Holes};
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
    /// Which of those before it were booked and are free again.
    holes: Holes,
}

/// A permit.
pub(super) struct Booked {
    /// How long it has to be waited for.
    pub(super) wait: u64,
    /// When it is due, at a steady pace.
    pub(super) due: u64,
}

impl Rate {
    /// Rounded up to the nanosecond: never more than asked for.
    pub(super) const fn new(permits: u32, per: u64, burst: u32) -> Rate {
        let gap = per.div_ceil(permits as u64);
        Rate { gap, ahead: gap.saturating_mul(burst as u64 - 1), due: Word::new(0), holes: Holes::new() }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        with(&self.due);
        self.holes.words(with);
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
    pub(super) fn book(&self, now: Timestamp, within: u64) -> Result<Booked, u64> {
        let now = now.as_nanos();
        let mut due = self.due.get();
        loop {
            let wait = due.saturating_sub(self.ahead).saturating_sub(now);
            if wait > 0
                && let Some(hole) = self.book_a_hole(now, due, within)
            {
                return hole;
            }
            if wait > within {
                return Err(wait);
            }
            let mine = due.max(now);
            match self.due.exchange(due, mine.saturating_add(self.gap)) {
                Ok(()) => return Ok(Booked { wait, due: mine }),
                Err(other) => due = other,
            }
        }
    }

    /// The same of those before `due` that are free again.
    #[cold]
    fn book_a_hole(&self, now: u64, due: u64, within: u64) -> Option<Result<Booked, u64>> {
        let latest = now.saturating_add(self.ahead).saturating_add(within);
        let (first, last) = self.line(now, due, u64::MAX)?;
        let may_be = self.line(now, due, latest).map(|(_, last)| last);
        let mine = due - (due / self.gap - self.holes.take(first, last, may_be)?) * self.gap;
        let wait = mine.saturating_sub(self.ahead).saturating_sub(now);
        Some(if wait <= within { Ok(Booked { wait, due: mine }) } else { Err(wait) })
    }

    /// The first and the last number of the permits from `now` until then, of those before `due`. They stand in a line, whole gaps apart from
    /// each other, and the number of each is that of the gaps before it.
    fn line(&self, now: u64, due: u64, until: u64) -> Option<(u64, u64)> {
        let (end, all) = (due / self.gap, due.checked_sub(now)? / self.gap);
        let too_late = due.saturating_sub(until).div_ceil(self.gap).max(1);
        (too_late <= all).then(|| (end - all, end - too_late))
    }

    /// What was due then will not be used. If others have booked what follows, they come when they were told to: it is for who asks next,
    /// and lapses if nobody does.
    pub(super) fn give_back(&self, mine: u64, now: Timestamp) {
        let mut due = self.due.get();
        while due == mine.saturating_add(self.gap) {
            match self.due.exchange(due, mine) {
                Ok(()) => return,
                Err(other) => due = other,
            }
        }
        if (now.as_nanos()..due).contains(&mine) {
            self.holes.put(mine / self.gap, now.as_nanos() / self.gap);
        }
    }

    /// The same of one of which it is only known when it could be used: without a burst that is when it was due. With one it is not known which
    /// of them it was, and nothing comes back that somebody else may have booked.
    pub(super) fn give_back_one(&self, used: Timestamp) {
        let mine = used.as_nanos();
        if self.ahead == 0 || self.due.get() == mine.saturating_add(self.gap) {
            // What time it is now is not said, so nothing is known to have lapsed.
            self.give_back(mine, Timestamp::ZERO);
        }
    }

    /// Permits that could be had at once.
    pub(super) fn available(&self, now: Timestamp) -> u64 {
        let (now, due) = (now.as_nanos(), self.due.get());
        let early = now.saturating_add(self.ahead);
        let free = self.line(now, due, early).map_or(0, |(first, last)| self.holes.count(first, last));
        early.saturating_add(self.gap).saturating_sub(due.max(now)) / self.gap + free
    }

    /// What was used of the burst stays used, in permits.
    pub(super) fn adopt(&self, old: &Rate, now: Timestamp) {
        let used = u128::from(old.due.get().saturating_sub(now.as_nanos()));
        let used = (used * u128::from(self.gap)).div_ceil(u128::from(old.gap));
        self.due.set(now.as_nanos().saturating_add(u64::try_from(used).unwrap_or(u64::MAX)));
    }

    pub(super) fn reset(&self) {
        self.due.set(0);
        self.holes.clear();
    }
}
