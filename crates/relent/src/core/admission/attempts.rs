//! How many of a client's (or a server's) attempts were first ones, second ones and so on: `1=930,2=50,3=12`.

use crate::core::{time::Timestamp, word::Word};
use core::fmt;

/// Counts by attempt number, 1 to 7, and 8 and more together.
///
/// Written and read as the header `Relent-Attempts` has it. What a stranger sends is bounded: at most 64 entries, each
/// count at most `u32::MAX`.
///
/// ```
/// use relent::Attempts;
///
/// let client = Attempts::parse("1=930,2=50,3=12").unwrap();
/// assert_eq!(client.of(2), 50);
/// assert!((client.retry_share() - 62.0 / 992.0).abs() < 1e-9);
/// assert_eq!(client.to_string(), "1=930,2=50,3=12");
/// assert_eq!(Attempts::parse("1=many"), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    counts: [u32; KINDS],
}

const KINDS: usize = 8;
/// More entries than this are no histogram.
const MOST_ENTRIES: usize = 64;

impl Attempts {
    /// Reads `1=930,2=50,3=12`. `None` for anything else: an attempt of zero, no number, more than 64 entries.
    pub fn parse(text: &str) -> Option<Attempts> {
        let mut attempts = Attempts::default();
        for (entry, part) in text.split(',').enumerate() {
            let (attempt, count) = part.split_once('=')?;
            let attempt = number(attempt)?;
            if attempt == 0 || entry >= MOST_ENTRIES {
                return None;
            }
            attempts.add(attempt, number(count)?);
        }
        Some(attempts)
    }

    /// Counts `count` more attempts of this number.
    ///
    /// ```
    /// # use relent::Attempts;
    /// let mut attempts = Attempts::default();
    /// attempts.add(1, 90);
    /// attempts.add(2, 10);
    /// assert_eq!(attempts.to_string(), "1=90,2=10");
    /// ```
    pub fn add(&mut self, attempt: u32, count: u32) {
        let at = kind(attempt);
        self.counts[at] = self.counts[at].saturating_add(count);
    }

    /// How many were attempt number `attempt`; 8 stands for 8 and more.
    pub fn of(&self, attempt: u32) -> u32 {
        self.counts[kind(attempt)]
    }

    /// How many there were.
    ///
    /// ```
    /// # use relent::Attempts;
    /// assert_eq!(Attempts::parse("1=90,2=10").unwrap().total(), 100);
    /// ```
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// The share that were retries, from 0 to 1; 0 if there were none at all.
    pub fn retry_share(&self) -> f64 {
        match self.total() {
            0 => 0.0,
            total => (total - u64::from(self.counts[0])) as f64 / total as f64,
        }
    }
}

/// Digits only, so that neither `+1` nor ` 1` is read; what is too large is the largest.
fn number(text: &str) -> Option<u32> {
    if text.is_empty() || text.len() > 20 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u32::MAX))
}

const fn kind(attempt: u32) -> usize {
    if attempt >= KINDS as u32 { KINDS - 1 } else { attempt.saturating_sub(1) as usize }
}

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (at, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            write!(f, "{separator}{}={count}", at + 1)?;
            separator = ",";
        }
        Ok(())
    }
}

/// Attempts of the last ten seconds, in six slices, shared by threads.
#[derive(Debug)]
pub(super) struct Recent {
    /// The newest slice: a clock that goes back counts there.
    newest: Word,
    cells: [[Word; KINDS]; SLICES],
}

const SLICES: usize = 6;
const SLICE: u64 = 2_000_000_000;
const COUNT_BITS: u32 = 32;

impl Recent {
    pub(super) const fn new() -> Recent {
        Recent { newest: Word::new(0), cells: [const { [const { Word::new(0) }; KINDS] }; SLICES] }
    }

    pub(super) fn add(&self, now: Timestamp, attempt: u32) {
        let slot = (now.as_nanos() / SLICE).max(self.newest.get());
        if slot > self.newest.get() {
            self.newest.raise(slot);
        }
        let cell = &self.cells[slot as usize % SLICES][kind(attempt)];
        let tag = slot & u64::from(u32::MAX);
        let mut found = cell.get();
        loop {
            let is_same = found >> COUNT_BITS == tag;
            let count = if is_same { found & u64::from(u32::MAX) } else { 0 };
            let next = tag << COUNT_BITS | (count + 1).min(u64::from(u32::MAX));
            match cell.exchange(found, next) {
                Ok(()) => return,
                Err(other) => found = other,
            }
        }
    }

    /// As another one has counted.
    pub(super) fn adopt(&self, old: &Recent) {
        self.newest.set(old.newest.get());
        for (new, old) in self.cells.iter().flatten().zip(old.cells.iter().flatten()) {
            new.set(old.get());
        }
    }

    pub(super) fn at(&self, now: Timestamp) -> Attempts {
        let newest = (now.as_nanos() / SLICE).max(self.newest.get());
        let mut attempts = Attempts::default();
        for slot in newest.saturating_sub(SLICES as u64 - 1)..=newest {
            for (kind, cell) in self.cells[slot as usize % SLICES].iter().enumerate() {
                let word = cell.get();
                if word >> COUNT_BITS == slot & u64::from(u32::MAX) {
                    attempts.add(kind as u32 + 1, word as u32);
                }
            }
        }
        attempts
    }
}
