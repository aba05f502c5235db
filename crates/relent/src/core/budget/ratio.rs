//! The share of calls that may be retried, over a sliding window.
//!
//! Whenever a retry is granted, the window that ends there holds at most `ratio * calls + min_per_second * window`
//! retries, that one included. Exactly: shares are counted in billionths, not in whole calls a retry; what was not used
//! leaves with its window, so hours without a call save nothing up; retries are forgotten after a window, so no debt
//! outlives it. Where a slot of the window is cut by its edge, its calls do not count and its retries do.
//!
//! The idea is Finagle's (`RetryBudget`), which Linkerd and tower took over; 10 % is the SRE book's figure (chapter 21).

use super::{
    allowance::{Allowance, Withdrawal},
    one_call::{self, OneCall},
    share::BILLION,
    window::{Cut, History, Pair, Window},
};
use crate::core::{outcome::Outcome, time::Timestamp, word::Word};
use core::fmt;

const SLOTS: usize = one_call::CLOSED as usize;

/// The rule, and what it remembers.
#[derive(Debug)]
pub(super) struct Ratio<H = Window<SLOTS>> {
    /// Billionths of a retry a call.
    share: u64,
    /// Billionths of a retry a window.
    floor: u64,
    cut: Cut,
    window: H,
}

impl Ratio {
    /// `share` in billionths, `window` in nanoseconds; both have been checked.
    pub(super) const fn new(share: u64, min_per_second: u32, window: u64) -> Ratio {
        let slot = window.div_ceil(SLOTS as u64);
        Ratio {
            share,
            // A retry a second is a billionth of one in each nanosecond.
            floor: (min_per_second as u64).saturating_mul(window),
            cut: Cut { slot, keep_a: SLOTS - 1, keep_b: SLOTS, anchored: false },
            window: Window::new(),
        }
    }

    #[inline]
    pub(super) fn beside(&self) -> &Word {
        self.window.beside()
    }

    pub(super) fn adopt(&self, old: &Ratio) {
        self.window.adopt(&self.cut, &old.window, &old.cut);
    }

    /// The same rule with nothing counted yet, for one call: if that can be remembered in so little.
    pub(super) fn of_one_call(&self) -> Option<Ratio<OneCall>> {
        let Ratio { share, floor, cut, .. } = *self;
        let fits = self.allowed(1) / BILLION <= one_call::MOST;
        fits.then_some(Ratio { share, floor, cut, window: OneCall::new() })
    }
}

impl<H: History> Ratio<H> {
    #[inline]
    const fn allowed(&self, calls: u64) -> u64 {
        self.floor.saturating_add(self.share.saturating_mul(calls))
    }

    pub(super) fn reset(&self, now: u64) {
        self.window.reset(&self.cut, now);
    }

    #[inline]
    pub(super) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        self.window.words(with);
    }
}

impl<H: History + fmt::Debug + Send + Sync> Allowance for Ratio<H> {
    fn name(&self) -> &str {
        "ratio"
    }

    #[inline]
    fn start(&self, now: Timestamp, _: u64) -> bool {
        self.window.add(&self.cut, now.as_nanos());
        true
    }

    #[inline]
    fn withdraw(&self, now: Timestamp, _: Outcome, _: u64) -> Option<Withdrawal> {
        let slot = self.window.count(&self.cut, now.as_nanos(), |sum| {
            ((sum.b + 1) * BILLION <= self.allowed(sum.a)).then_some(Pair::B)
        })?;
        Some(Withdrawal::new(1, slot))
    }

    fn refund(&self, _: Timestamp, withdrawal: Withdrawal) {
        self.window.take_back(&self.cut, withdrawal.mark());
    }

    fn balance(&self, now: Timestamp) -> f64 {
        let sum = self.window.read(&self.cut, now.as_nanos());
        (self.allowed(sum.a) / BILLION).saturating_sub(sum.b) as f64
    }
}
