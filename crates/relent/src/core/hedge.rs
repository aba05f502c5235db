//! The hedge: a second attempt that starts before the first has failed, so that a slow answer is not waited for.
//!
//! Why: one slow machine in a hundred makes the tail of every call that meets it. Dean and Barroso, "The Tail at Scale",
//! 2013: a second request after the 95th percentile of latency costs 5 % more load and cuts the tail. The order of
//! things (a transient failure starts the next at once, any other ends all) is gRPC A6's.
//!
//! It decides when. The caller pays each hedge from the budget, and hedges only what is safe to run twice.

use super::{
    latency::Latencies,
    settings::Invalid,
    time::{Timestamp, nanos},
    verdict::Verdict,
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
/// assert_eq!(call.on_failure(Verdict::Transient), HedgeStep::Start);
/// ```
///
/// ```compile_fail
/// const NEVER: relent::Hedge = relent::Hedge::quantile(f64::NAN);
/// ```
pub struct Hedge {
    settings: HedgeSettings,
    latencies: Latencies,
}

/// Everything a [`Hedge`] is told, by name.
///
/// ```
/// use relent::HedgeSettings;
///
/// let settings = HedgeSettings { quantile: Some(0.95), ..HedgeSettings::default() };
/// assert!(settings.hedge().is_ok());
/// assert_eq!(HedgeSettings::default().hedge().unwrap_err().key, "after");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HedgeSettings {
    /// A hedge starts this long after the attempt before it.
    pub after: Option<Duration>,
    /// A hedge starts after this quantile of the latencies observed: above 0 and below 1.
    pub quantile: Option<f64>,
    /// The most hedges of one call, the first attempt not included: 1 to 255.
    pub at_most: u32,
    /// No quantile is taken of fewer latencies than this: 1 to 2048.
    pub min_samples: u32,
}

impl HedgeSettings {
    const DEFAULT: HedgeSettings = HedgeSettings { after: None, quantile: None, at_most: 1, min_samples: 100 };

    /// The hedge of these settings.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the setting that makes no sense, why, and what to write instead.
    pub const fn hedge(self) -> Result<Hedge, Invalid> {
        match self.check() {
            Ok(()) => Ok(Hedge { settings: self, latencies: Latencies::new() }),
            Err(invalid) => Err(invalid),
        }
    }

    const fn check(&self) -> Result<(), Invalid> {
        match (self.after, self.quantile) {
            (None, None) => return no("after", "nothing says when a hedge starts", "say after or quantile"),
            (Some(Duration::ZERO), _) => {
                return no("after", "a hedge would start with the first attempt", "50ms starts it 50 ms later");
            }
            (_, Some(quantile)) if !(quantile > 0.0 && quantile < 1.0) => {
                return no("quantile", "the quantile is not between 0 and 1", "0.95 hedges one call in twenty");
            }
            _ => {}
        }
        if self.at_most == 0 || self.at_most > 255 {
            return no(
                "at_most",
                "the hedges of a call are not 1 to 255",
                "1 is one more attempt; leave hedge out for none",
            );
        }
        if self.min_samples == 0 || self.min_samples > 2048 {
            return no("min_samples", "the least samples are not 1 to 2048", "100 is the default");
        }
        Ok(())
    }
}

/// Says neither `after` nor `quantile` yet; one hedge, 100 samples.
impl Default for HedgeSettings {
    fn default() -> HedgeSettings {
        HedgeSettings::DEFAULT
    }
}

const fn no(key: &'static str, problem: &'static str, hint: &'static str) -> Result<(), Invalid> {
    Err(Invalid { key, problem, hint })
}

impl Hedge {
    const fn must(self) -> Hedge {
        match self.settings.check() {
            Ok(()) => self,
            Err(invalid) => panic!("{}", invalid.problem),
        }
    }

    /// A hedge starts this long after the attempt before it.
    ///
    /// # Panics
    ///
    /// If it is zero. In a `const`, the panic is a compile error. The same holds for every builder.
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// const HEDGE: Hedge = Hedge::after(Duration::from_millis(50));
    /// assert_eq!(HEDGE.delay(), Some(Duration::from_millis(50)));
    /// ```
    pub const fn after(time: Duration) -> Hedge {
        let settings = HedgeSettings { after: Some(time), ..HedgeSettings::DEFAULT };
        Hedge { settings, latencies: Latencies::new() }.must()
    }

    /// A hedge starts after this quantile of the latencies [observed](Hedge::observe): above 0 and below 1. None
    /// starts before there are enough of them (100, see [`min_samples`](Hedge::min_samples)), unless a fixed time is
    /// given too, by [`or_after`](Hedge::or_after).
    ///
    /// # Panics
    ///
    /// If it is not above 0 and below 1.
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// let hedge = Hedge::quantile(0.95).min_samples(10);
    /// assert_eq!(hedge.delay(), None, "nothing is known yet");
    /// for _ in 0..10 {
    ///     hedge.observe(Duration::from_millis(20));
    /// }
    /// let learned = hedge.delay().unwrap();
    /// assert!(learned >= Duration::from_millis(19) && learned <= Duration::from_millis(22), "{learned:?}");
    /// ```
    pub const fn quantile(quantile: f64) -> Hedge {
        let settings = HedgeSettings { quantile: Some(quantile), ..HedgeSettings::DEFAULT };
        Hedge { settings, latencies: Latencies::new() }.must()
    }

    /// The time to take while there are not enough samples for the quantile.
    ///
    /// # Panics
    ///
    /// If it is zero.
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// let hedge = Hedge::quantile(0.95).or_after(Duration::from_millis(100));
    /// assert_eq!(hedge.delay(), Some(Duration::from_millis(100)), "until there are samples");
    /// ```
    #[must_use]
    pub const fn or_after(mut self, time: Duration) -> Hedge {
        self.settings.after = Some(time);
        self.must()
    }

    /// The most hedges of one call, the first attempt not included: 1 to 255. Default 1.
    ///
    /// # Panics
    ///
    /// If it is not 1 to 255.
    ///
    /// ```
    /// # use relent::{Hedge, Timestamp};
    /// # use std::time::Duration;
    /// let (hedge, now) = (Hedge::after(Duration::from_millis(50)).at_most(2), Timestamp::ZERO);
    /// let mut call = hedge.start(now);
    /// call.begun(now);
    /// call.begun(now);
    /// assert_eq!((call.in_flight(), call.due()), (3, None));
    /// ```
    #[must_use]
    pub const fn at_most(mut self, hedges: u32) -> Hedge {
        self.settings.at_most = hedges;
        self.must()
    }

    /// No quantile is taken of fewer latencies than this: 1 to 2048. Default 100.
    ///
    /// # Panics
    ///
    /// If it is not 1 to 2048.
    ///
    /// ```
    /// # use relent::Hedge;
    /// # use std::time::Duration;
    /// let hedge = Hedge::quantile(0.5).min_samples(2);
    /// hedge.observe(Duration::from_millis(20));
    /// assert_eq!(hedge.delay(), None);
    /// hedge.observe(Duration::from_millis(20));
    /// assert!(hedge.delay().is_some());
    /// ```
    #[must_use]
    pub const fn min_samples(mut self, samples: u32) -> Hedge {
        self.settings.min_samples = samples;
        self.must()
    }

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
        let delay = self.delay();
        HedgedCall { delay, due: delay.map(|delay| now + delay), left: self.settings.at_most, in_flight: 1 }
    }

    /// The same latencies under settings that were read again.
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
        Hedge { latencies: old.latencies, ..self }
    }

    #[inline]
    pub(super) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        if self.settings.quantile.is_some() {
            self.latencies.words(with);
        }
    }

    /// [`adopt`](Hedge::adopt) of one that others may still look at.
    pub(crate) fn take_over(&self, old: &Hedge) {
        self.latencies.copy(&old.latencies);
    }
}

impl fmt::Debug for Hedge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedge").field("settings", &self.settings).field("delay", &self.delay()).finish_non_exhaustive()
    }
}

/// What to do after an attempt of a hedged call failed.
///
/// ```
/// use relent::{Hedge, HedgeStep, Timestamp, Verdict};
/// use std::time::Duration;
///
/// let (hedge, now) = (Hedge::after(Duration::from_millis(50)), Timestamp::ZERO);
/// let mut call = hedge.start(now);
/// call.begun(now);
/// assert_eq!(call.on_failure(Verdict::Transient), HedgeStep::Wait, "the other is still in flight");
/// assert_eq!(call.on_failure(Verdict::Transient), HedgeStep::Fail, "that was the last");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HedgeStep {
    /// Start the next attempt at once, if the budget pays for it: then [`HedgedCall::begun`], else
    /// [`HedgedCall::refused`] and, if that says so, fail.
    Start,
    /// Wait for the attempts that are still in flight.
    Wait,
    /// Drop the others: the call has failed with this failure.
    Fail,
}

/// One call whose attempts are hedged: which of them is due, and what a failure of one means for the others.
///
/// The first success wins; the caller drops the others then, and gives back their permits.
///
/// ```
/// use relent::{Hedge, HedgeStep, Timestamp, Verdict};
/// use std::time::Duration;
///
/// let ms = Duration::from_millis(1);
/// let hedge = Hedge::after(50 * ms).at_most(3);
/// let mut call = hedge.start(Timestamp::ZERO);
/// let due = call.due().unwrap();
/// call.begun(due);
/// assert_eq!(call.in_flight(), 2);
/// // The server says when the next may start.
/// call.push_back(due, 500 * ms);
/// assert_eq!(call.due(), Some(due + 500 * ms));
/// // The budget does not pay for it: there will be no other, and two are in flight.
/// assert!(call.refused());
/// assert_eq!(call.due(), None);
/// assert_eq!(call.on_failure(Verdict::Permanent), HedgeStep::Fail);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HedgedCall {
    delay: Option<Duration>,
    due: Option<Timestamp>,
    left: u32,
    in_flight: u32,
}

impl HedgedCall {
    /// When the next hedge is due: ask the budget then. `None`: none will be.
    pub fn due(&self) -> Option<Timestamp> {
        if self.left == 0 || self.in_flight == 0 { None } else { self.due }
    }

    /// An attempt more has started at `now`.
    pub fn begun(&mut self, now: Timestamp) {
        self.left = self.left.saturating_sub(1);
        self.in_flight = self.in_flight.saturating_add(1);
        self.due = self.delay.map(|delay| now + delay);
    }

    /// The budget, the breaker or the limiter did not let the hedge start: there will be no other. Whether attempts
    /// are still in flight.
    pub fn refused(&mut self) -> bool {
        self.left = 0;
        self.in_flight > 0
    }

    /// The far side said when the next hedge may start (`grpc-retry-pushback-ms`): that long from `now`.
    pub fn push_back(&mut self, now: Timestamp, wait: Duration) {
        self.due = Some(now + wait);
    }

    /// An attempt failed.
    pub fn on_failure(&mut self, verdict: Verdict) -> HedgeStep {
        self.in_flight = self.in_flight.saturating_sub(1);
        if !matches!(verdict, Verdict::Transient) {
            self.left = 0;
        }
        match verdict {
            Verdict::Transient if self.left > 0 => HedgeStep::Start,
            // Told to come back later, the call starts no more, but what is in flight may still succeed.
            Verdict::Permanent | Verdict::Overloaded => HedgeStep::Fail,
            _ if self.in_flight > 0 => HedgeStep::Wait,
            _ => HedgeStep::Fail,
        }
    }

    /// How many attempts are in flight.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn at_most_n_hedges_each_after_the_one_before() {
        let hedge = Hedge::after(10 * MS).at_most(2);
        let mut now = Timestamp::ZERO;
        let mut call = hedge.start(now);
        for _ in 0..2 {
            let due = call.due().unwrap();
            assert_eq!(due.since(now), 10 * MS);
            now = due;
            call.begun(now);
        }
        assert_eq!((call.due(), call.in_flight()), (None, 3));
        assert_eq!(call.on_failure(Verdict::Transient), HedgeStep::Wait);
        assert_eq!(call.on_failure(Verdict::Transient), HedgeStep::Wait);
        assert_eq!(call.on_failure(Verdict::Transient), HedgeStep::Fail);
    }

    #[test]
    fn a_failure_of_one_means_something_for_the_others() {
        let hedge = Hedge::after(10 * MS).at_most(2);
        let mut call = hedge.start(Timestamp::ZERO);
        assert_eq!(call.on_failure(Verdict::Transient), HedgeStep::Start, "the next at once");
        assert!(!call.refused(), "nothing is in flight and the budget does not pay: the call fails");
        for verdict in [Verdict::Permanent, Verdict::Overloaded] {
            let mut call = hedge.start(Timestamp::ZERO);
            call.begun(Timestamp::ZERO);
            assert_eq!(call.on_failure(verdict), HedgeStep::Fail, "ends all");
        }
        let mut call = hedge.start(Timestamp::ZERO);
        call.begun(Timestamp::ZERO);
        assert_eq!(call.on_failure(Verdict::After(MS)), HedgeStep::Wait);
        assert_eq!(call.due(), None);
        let mut call = hedge.start(Timestamp::ZERO);
        assert!(call.refused(), "the first attempt goes on");
        assert_eq!(call.due(), None);
    }

    #[test]
    fn a_quantile_needs_samples() {
        let hedge = Hedge::quantile(0.95).min_samples(50);
        for k in 0..49u32 {
            hedge.observe((k + 1) * MS);
            assert_eq!(hedge.start(Timestamp::ZERO).due(), None);
        }
        hedge.observe(50 * MS);
        let due = hedge.start(Timestamp::ZERO).due().unwrap().since(Timestamp::ZERO);
        assert!(due >= 48 * MS && due <= 52 * MS, "{due:?}");
        let other = Hedge::quantile(0.5).or_after(7 * MS);
        assert_eq!(other.delay(), Some(7 * MS));
        assert_eq!(Hedge::quantile(0.9).adopt(hedge).samples(), 50);
    }

    #[test]
    fn nothing_panics_at_the_ends() {
        let hedge = Hedge::quantile(0.999).or_after(Duration::MAX).min_samples(1);
        hedge.observe(Duration::MAX);
        hedge.observe(Duration::ZERO);
        let mut call = hedge.start(Timestamp::MAX);
        for _ in 0..300 {
            call.begun(Timestamp::MAX);
            call.on_failure(Verdict::Transient);
            call.push_back(Timestamp::MAX, Duration::MAX);
        }
        for quantile in [0.0, 1.0, -1.0, f64::NAN] {
            let settings = HedgeSettings { quantile: Some(quantile), ..HedgeSettings::default() };
            assert_eq!(settings.hedge().unwrap_err().key, "quantile");
        }
        let good = HedgeSettings { after: Some(MS), ..HedgeSettings::default() };
        assert_eq!(HedgeSettings { after: Some(Duration::ZERO), ..good }.hedge().unwrap_err().key, "after");
        assert_eq!(HedgeSettings { at_most: 256, ..good }.hedge().unwrap_err().key, "at_most");
        assert_eq!(HedgeSettings { min_samples: 0, ..good }.hedge().unwrap_err().key, "min_samples");
    }
}
