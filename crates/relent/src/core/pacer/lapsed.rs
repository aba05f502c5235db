//! Turns that nobody came for, and who may have what they leave.
//!
//! Why: a promised turn keeps newcomers out of room that is free. Whoever was promised it may have gone for good; or came, and
//! did not say that it has been here before (curl, browsers), and is a newcomer like others. What is kept for nobody would be
//! lost, and clients that never say which attempt they make would never be served.

use crate::core::word::Word;

/// How much of what came due has been used, as the time at which it came due.
pub(super) struct Lapsed {
    used: Word,
}

/// How late an owner may be: told in whole seconds, over a slow network.
const LATE: u64 = 2_000_000_000;

/// Of what lapsed, this much is still given: those that are told whole seconds come but once a second.
const KEPT: u64 = 1_000_000_000;

impl Lapsed {
    pub(super) const fn new() -> Lapsed {
        Lapsed { used: Word::new(0) }
    }

    /// The first turn was given: what came due before is nobody's.
    pub(super) fn begin(&self, now: u64) {
        self.used.set(now);
    }

    /// A place was taken that had come due, or will.
    #[inline]
    pub(super) fn used(&self, now: u64, gap: u64) {
        let mut found = self.used.get();
        while let Err(other) = self.used.exchange(found, oldest(found, now).saturating_add(gap)) {
            found = other;
        }
    }

    /// Whether a turn has lapsed; if so, it is the caller's.
    #[inline]
    pub(super) fn take(&self, now: u64, gap: u64) -> bool {
        let mut found = self.used.get();
        loop {
            let next = oldest(found, now).saturating_add(gap);
            if next.saturating_add(LATE) > now {
                return false;
            }
            match self.used.exchange(found, next) {
                Ok(()) => return true,
                Err(other) => found = other,
            }
        }
    }

    /// Reads its word once.
    #[cfg(all(test, loom))]
    pub(super) fn touch(&self) {
        _ = self.used.get();
    }

    /// As another one has counted.
    pub(super) fn adopt(&self, old: &Lapsed) {
        self.used.set(old.used.get());
    }
}

/// What lapsed long ago is gone: a server that was idle has no more room for it.
fn oldest(used: u64, now: u64) -> u64 {
    used.max(now.saturating_sub(LATE + KEPT))
}
