//! Client-side throttling: attempts are refused here, the first too, as often as the far side refuses them anyway.
//!
//! `p = max(0, (requests - k * accepts) / (requests + 1))` over a window. Requests count what is refused here, so that the
//! share adapts; accepts are what the far side answered. Source: Google, "Site Reliability Engineering", chapter 21.

use super::{
    allowance::{Allowance, Withdrawal},
    window::{Cut, History, Pair, Window},
};
use crate::core::{outcome::Outcome, rng::unit, time::Timestamp, word::Word};

const SLOTS: usize = 24;

/// The probability with which a client refuses an attempt of its own: `max(0, (requests - k * accepts) / (requests + 1))`.
///
/// Source: Google, "Site Reliability Engineering", chapter 21, "Client-Side Throttling".
///
/// ```
/// assert_eq!(relent::rejection(100.0, 0.0, 2.0), 100.0 / 101.0);
/// assert_eq!(relent::rejection(100.0, 50.0, 2.0), 0.0);
/// ```
pub const fn rejection(requests: f64, accepts: f64, k: f64) -> f64 {
    let p = (requests - k * accepts) / (requests + 1.0);
    if p > 0.0 { p } else { 0.0 }
}

#[derive(Debug)]
pub(super) struct Throttle {
    k: f64,
    at_most: f64,
    cut: Cut,
    window: Window<SLOTS>,
}

impl Throttle {
    pub(super) const fn new(k: f64, window: u64, at_most: f64) -> Throttle {
        let slot = window.div_ceil(SLOTS as u64);
        let cut = Cut { slot, keep_a: SLOTS - 1, keep_b: SLOTS - 1, anchored: false };
        Throttle { k, at_most, cut, window: Window::new() }
    }

    fn refuses_with(&self, sum: Pair) -> f64 {
        rejection(sum.a as f64, sum.b as f64, self.k).min(self.at_most)
    }

    /// Counts an attempt, and says whether it may be made.
    #[inline]
    fn admits(&self, now: Timestamp, draw: u64) -> bool {
        let mut p = 0.0;
        self.window.count(&self.cut, now.as_nanos(), |sum| {
            p = self.refuses_with(sum);
            Some(Pair::A)
        });
        unit(draw) >= p
    }

    pub(super) fn rejection(&self, now: Timestamp) -> f64 {
        self.refuses_with(self.window.read(&self.cut, now.as_nanos()))
    }

    pub(super) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        self.window.words(with);
    }

    #[inline]
    pub(super) fn beside(&self) -> &Word {
        self.window.beside()
    }

    pub(super) fn adopt(&self, old: &Throttle) {
        self.window.adopt(&self.cut, &old.window, &old.cut);
    }

    pub(super) fn reset(&self, now: u64) {
        self.window.reset(&self.cut, now);
    }
}

impl Allowance for Throttle {
    fn name(&self) -> &str {
        "throttle"
    }

    #[inline]
    fn start(&self, now: Timestamp, draw: u64) -> bool {
        self.admits(now, draw)
    }

    #[inline]
    fn withdraw(&self, now: Timestamp, _: Outcome, draw: u64) -> Option<Withdrawal> {
        self.admits(now, draw).then_some(Withdrawal::new(0, 0))
    }

    #[inline]
    fn outcome(&self, now: Timestamp, outcome: Outcome, _: Option<Withdrawal>) {
        if outcome.is_answered() {
            self.window.count(&self.cut, now.as_nanos(), |_| Some(Pair::B));
        }
    }

    /// Requests are what the application wanted; what came of them does not matter.
    fn refund(&self, _: Timestamp, _: Withdrawal) {}

    /// The share of attempts that would be let through now, 0 to 1.
    fn balance(&self, now: Timestamp) -> f64 {
        1.0 - self.rejection(now)
    }
}
