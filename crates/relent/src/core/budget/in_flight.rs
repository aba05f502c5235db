//! The share of what is in flight that may be retries.
//!
//! Envoy (`retry_budget`): a retry is allowed while `retries < max(trunc(share * active), floor)`. failsafe-go: while
//! `retries < floor`, or `retries / active <= share`. What is active is every attempt in flight, and every retry that has
//! been decided; whether retries that still sleep count is a choice, because Envoy leaves it open (envoyproxy/envoy#30205).

use super::{
    allowance::{Allowance, Withdrawal},
    share::BILLION,
};
use crate::core::{outcome::Outcome, time::Timestamp, word::Word};

#[derive(Debug)]
pub(super) struct InFlight {
    share: u64,
    floor: u64,
    /// Whether a sleeping retry counts.
    sleeping: bool,
    /// Whether a share that is reached exactly still allows one, as in failsafe-go.
    inclusive: bool,
    /// Active in the upper half, retries among them in the lower.
    flying: Word,
}

const ACTIVE: u64 = 1 << 32;
const RETRIES: u64 = u32::MAX as u64;

impl InFlight {
    pub(super) const fn new(share: u64, floor: u32, sleeping: bool, inclusive: bool) -> InFlight {
        InFlight { share, floor: floor as u64, sleeping, inclusive, flying: Word::new(0) }
    }

    #[inline]
    const fn allows(&self, flying: u64) -> bool {
        let (active, retries) = (flying >> 32, flying & RETRIES);
        if retries < self.floor {
            return true;
        }
        // At most 2^32 times a billion. In whole billionths, one of three is the third that a share was made of.
        match (self.inclusive, active) {
            (true, 0) => true,
            (true, _) => retries * BILLION / active <= self.share,
            (false, _) => retries < self.share * active / BILLION,
        }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        with(&self.flying);
    }

    fn add(&self, retry: bool) {
        self.flying.update(|flying| Some(added(flying, retry)));
    }

    fn leave(&self, retry: bool) {
        self.flying.update(|flying| {
            let gone = ACTIVE.min(flying & !RETRIES);
            Some(flying - gone - u64::from(retry && flying & RETRIES > 0))
        });
    }

    /// What is in flight stays in flight.
    pub(super) fn adopt(&self, old: &InFlight) {
        self.flying.set(old.flying.get());
    }

    pub(super) fn reset(&self) {
        self.flying.set(0);
    }
}

const fn added(flying: u64, retry: bool) -> u64 {
    if retry && flying & RETRIES == RETRIES || flying >> 32 == RETRIES {
        return flying;
    }
    flying + ACTIVE + retry as u64
}

impl Allowance for InFlight {
    fn name(&self) -> &str {
        "in_flight"
    }

    #[inline]
    fn start(&self, _: Timestamp, _: u64) -> bool {
        self.add(false);
        true
    }

    #[inline]
    fn withdraw(&self, _: Timestamp, _: Outcome, _: u64) -> Option<Withdrawal> {
        if self.sleeping {
            self.flying.update(|flying| self.allows(flying).then(|| added(flying, true)))?;
        } else if !self.allows(self.flying.get()) {
            return None;
        }
        Some(Withdrawal::new(1, 0))
    }

    fn retry(&self, _: Timestamp, _: Withdrawal) {
        if !self.sleeping {
            self.add(true);
        }
    }

    #[inline]
    fn outcome(&self, _: Timestamp, _: Outcome, paid: Option<Withdrawal>) {
        self.leave(paid.is_some());
    }

    fn refund(&self, _: Timestamp, _: Withdrawal) {
        if self.sleeping {
            self.leave(true);
        }
    }

    fn balance(&self, _: Timestamp) -> f64 {
        let (mut flying, mut more) = (self.flying.get(), 0_u32);
        // Each retry makes the share larger too; the floor or the share ends it. Counted only so far.
        while more < 10_000 && self.allows(flying) {
            (flying, more) = (added(flying, true), more + 1);
        }
        f64::from(more)
    }
}
