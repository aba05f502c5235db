//! The hedge: a second attempt that starts before the first has failed, so that a slow answer is not waited for.
//!
//! Why: one slow machine in a hundred makes the tail of every call that meets it. Dean and Barroso, "The Tail at Scale",
//! 2013: a second request after the 95th percentile of latency costs 5 % more load and cuts the tail. The order of
//! things (a transient failure starts the next at once, any other ends all) is gRPC A6's.
//!
//! It decides when. The caller pays each hedge from the budget, and hedges only what is safe to run twice.

mod build;
mod call;
mod settings;
#[cfg(all(test, feature = "std", not(loom)))]
mod tests;

pub use self::{
    call::{HedgeStep, HedgedCall},
    settings::HedgeSettings,
};

use super::{
    latency::Latencies,
    time::{Timestamp, nanos},
    word::Word,
};
use core::{fmt, time::Duration};

/// When a hedge starts, and what was learned about latencies. `const`, and shared by all calls on one far side.
///
/// ```
/// use relent::{Hedge, HedgeStep, Timestamp, Verdict};
/// use std::time::Duration;
///
/// static HEDGE: Hedge = Hedge::after(Duration::from_millis(50)).at_most(2);
///
/// let now = Timestamp::ZERO;
/// let mut call = HEDGE.start(now); // The first attempt starts now.
/// let due = call.due().unwrap();
/// assert_eq!(due.since(now), Duration::from_millis(50));
/// call.begun(due); // The budget has paid: a second attempt starts.
///
/// // One of the two fails: the next starts at once, if the budget pays for it.
/// assert_eq!(call.on_failure(due, Verdict::Transient), HedgeStep::Start);
/// ```
///
/// ```compile_fail
/// const NEVER: relent::Hedge = relent::Hedge::quantile(f64::NAN);
/// ```
pub struct Hedge {
    settings: HedgeSettings,
    latencies: Latencies,
}

impl Hedge {
    /// Everything the hedge was told, by name.
    ///
    /// ```
    /// # use relent::Hedge;
    /// assert_eq!(Hedge::quantile(0.95).settings().quantile, Some(0.95));
    /// ```
    pub const fn settings(&self) -> HedgeSettings {
        self.settings
    }

    /// An attempt has succeeded after `took`. Attempts that were dropped tell nothing: their latency is unknown.
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// let hedge = Hedge::quantile(0.95);
    /// hedge.observe(Duration::from_millis(20));
    /// assert_eq!(hedge.samples(), 1);
    /// ```
    pub fn observe(&self, took: Duration) {
        if let Some(quantile) = self.settings.quantile {
            self.latencies.observe(nanos(took), quantile, u64::from(self.settings.min_samples));
        }
    }

    /// How long after an attempt its hedge starts; `None` while too little is known.
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// assert_eq!(Hedge::after(Duration::from_millis(50)).delay(), Some(Duration::from_millis(50)));
    /// assert_eq!(Hedge::quantile(0.95).delay(), None);
    /// ```
    pub fn delay(&self) -> Option<Duration> {
        let learned = self.settings.quantile.and_then(|_| self.latencies.known()).map(Duration::from_nanos);
        learned.or(self.settings.after)
    }

    /// How many latencies the quantile is taken of, the older ones counted less.
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// let hedge = Hedge::quantile(0.95);
    /// (0..7).for_each(|_| hedge.observe(Duration::from_millis(20)));
    /// assert_eq!(hedge.samples(), 7);
    /// ```
    pub fn samples(&self) -> u64 {
        self.latencies.samples()
    }

    /// A call whose first attempt starts at `now`.
    pub fn start(&self, now: Timestamp) -> HedgedCall {
        HedgedCall::new(self.delay(), now, self.settings.at_most)
    }

    /// The same latencies under settings that were read again, and of them the quantile that is asked for now.
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// let old = Hedge::quantile(0.95);
    /// old.observe(Duration::from_millis(20));
    /// assert_eq!(Hedge::quantile(0.99).adopt(old).samples(), 1);
    /// ```
    #[must_use]
    pub fn adopt(self, old: Hedge) -> Hedge {
        self.take_over(&old);
        self
    }

    #[inline]
    pub(super) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        if self.settings.quantile.is_some() {
            self.latencies.words(with);
        }
    }

    /// [`adopt`](Hedge::adopt) of one that others may still look at.
    pub(crate) fn take_over(&self, old: &Hedge) {
        if let Some(quantile) = self.settings.quantile {
            self.latencies.adopt(&old.latencies, quantile, u64::from(self.settings.min_samples));
        }
    }
}

impl fmt::Debug for Hedge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedge").field("settings", &self.settings).field("delay", &self.delay()).finish_non_exhaustive()
    }
}
