//! Finagle's `RetryBudget`, its negative balance included.
//!
//! Calls deposit 1000, a retry takes `1000 / ratio`, both in the current tenth of `ttl`; a reserve of
//! `min_per_second * ttl` retries is always there. A withdrawal can outlive the deposits that paid for it: then the
//! balance is negative and eats later deposits. Source: twitter/finagle 4feb34cb9, twitter/util `WindowedAdder`.

use super::{
    allowance::{Allowance, Withdrawal},
    window::{Cut, History, Pair, Window},
};
use crate::core::{outcome::Outcome, time::Timestamp, word::Word};

/// Nine closed slices beside the open one.
const CLOSED: usize = 9;

#[derive(Debug)]
pub(super) struct Finagle {
    deposit: i64,
    cost: i64,
    reserve: i64,
    cut: Cut,
    window: Window<CLOSED>,
}

impl Finagle {
    pub(super) const fn new(ttl: u64, min_per_second: u32, ratio: f64) -> Finagle {
        let cost = if ratio == 0.0 { 1 } else { (1000.0 / ratio) as i64 };
        Finagle {
            deposit: if ratio == 0.0 { 0 } else { 1000 },
            cost,
            reserve: (min_per_second as i64).saturating_mul((ttl / 1_000_000_000) as i64).saturating_mul(cost),
            cut: Cut { slot: ttl / 10, keep_a: CLOSED, keep_b: CLOSED, anchored: true },
            window: Window::new(),
        }
    }

    #[inline]
    const fn tokens(&self, sum: Pair) -> i64 {
        let (deposits, taken) = (self.deposit * sum.a as i64, self.cost.saturating_mul(sum.b as i64));
        deposits.saturating_sub(taken).saturating_add(self.reserve)
    }

    pub(super) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        self.window.words(with);
    }

    #[inline]
    pub(super) fn beside(&self) -> &Word {
        self.window.beside()
    }

    pub(super) fn adopt(&self, old: &Finagle) {
        self.window.adopt(&self.cut, &old.window, &old.cut);
    }

    pub(super) fn reset(&self, now: u64) {
        self.window.reset(&self.cut, now);
    }
}

impl Allowance for Finagle {
    fn name(&self) -> &str {
        "finagle"
    }

    #[inline]
    fn start(&self, now: Timestamp, _: u64) -> bool {
        self.window.add(&self.cut, now.as_nanos());
        true
    }

    #[inline]
    fn withdraw(&self, now: Timestamp, _: Outcome, _: u64) -> Option<Withdrawal> {
        let slice =
            self.window.count(&self.cut, now.as_nanos(), |sum| (self.tokens(sum) >= self.cost).then_some(Pair::B))?;
        Some(Withdrawal::new(u32::try_from(self.cost).unwrap_or(u32::MAX), slice))
    }

    fn refund(&self, _: Timestamp, withdrawal: Withdrawal) {
        self.window.take_back(&self.cut, withdrawal.mark());
    }

    /// May be negative, as Finagle's.
    fn balance(&self, now: Timestamp) -> f64 {
        (self.tokens(self.window.read(&self.cut, now.as_nanos())) / self.cost) as f64
    }
}
