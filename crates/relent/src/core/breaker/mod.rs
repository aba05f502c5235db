//! The breaker: stops attempts on a far side while it fails, and finds out with a few probes when it is well again.
//!
//! Why: attempts that will fail cost the caller time and the far side the strength to recover. Nygard, "Release It!",
//! 2007, has the idea; what is added here is what goes wrong in practice. Half-open lets a bounded number of probes
//! through, and a probe that is dropped gives its place back. Outcomes carry the generation of the state that their
//! attempt started in, so nothing that is slow can close or open a state that it does not know. The open time grows
//! and is spread, so that ten thousand clients do not probe together, and after the probes the load rises in a ramp.
//!
//! It decides and counts. It reads no clock and draws no number: both are arguments.

mod build;
mod by_hand;
mod change;
mod compat;
#[cfg(all(test, loom))]
mod models;
mod one_call;
mod outcome;
mod pass;
mod recovery;
mod settings;
mod snapshot;
mod state;
mod window;

#[cfg(all(test, feature = "std", not(loom)))]
mod property_tests;
#[cfg(all(test, feature = "std", not(loom)))]
mod tests;
#[cfg(all(test, feature = "std", not(loom)))]
mod window_tests;

pub use self::{
    change::BreakerChange,
    pass::{BreakerPass, BreakerPermit},
    settings::{BreakerQuirks, BreakerSettings, BreakerWindow},
    snapshot::BreakerSnapshot,
    state::BreakerState,
};

use self::{
    state::Packed,
    window::{Shape, Window},
};
use super::word::Word;
use core::{fmt, time::Duration};

/// Stops attempts on a far side while it fails.
///
/// All methods take `&self`, so one breaker in a `static` or an `Arc` serves every thread. Builders are `const` and
/// check what they are given: a breaker that makes no sense does not compile.
///
/// ```
/// use relent::{Breaker, BreakerState, Timestamp};
/// use std::time::Duration;
///
/// static BANK: Breaker = Breaker::consecutive(5).open_for(Duration::from_secs(30));
///
/// let mut now = Timestamp::ZERO;
/// for _ in 0..5 {
///     let permit = BANK.permit(now, 0).unwrap();
///     permit.failed(now, Duration::from_millis(20), 0);
/// }
/// assert_eq!(BANK.state(), BreakerState::Open);
/// assert!(BANK.permit(now, 0).is_err());
///
/// now = now + Duration::from_secs(30);
/// let probe = BANK.permit(now, 0).unwrap();
/// assert!(BANK.permit(now, 0).is_err(), "one probe at a time");
/// probe.succeeded(now, Duration::from_millis(20), 0);
/// assert_eq!(BANK.state(), BreakerState::Closed);
/// ```
///
/// ```compile_fail
/// const NEVER: relent::Breaker = relent::Breaker::consecutive(0);
/// ```
///
/// ```compile_fail
/// const NOT_A_SHARE: relent::Breaker = relent::Breaker::share(f64::NAN);
/// ```
///
/// Defaults: open for 30 s, the same at each re-trip, without jitter; one probe at a time, the first that succeeds
/// closes, the first that fails opens again; no ramp. Shares are taken over the last 10 s, from 20 calls on.
pub struct Breaker {
    word: Word,
    /// When the state began. Never goes back.
    since: Word,
    /// When an open state ends, or a half-open one counts its probes as lost.
    until: Word,
    /// How often the open time has grown, and one more; nothing before the first trip.
    level: Word,
    trips: Word,
    refused: Word,
    plain: bool,
    /// Whether it is used by one thread, so that nobody comes in between.
    alone: bool,
    shape: Shape,
    settings: BreakerSettings,
    window: Window,
}

impl Breaker {
    pub(super) const fn of(settings: BreakerSettings) -> Breaker {
        let shape = Shape::of(&settings);
        Breaker {
            word: Word::new(Packed::new(BreakerState::Closed, 0, 0).0),
            since: Word::new(0),
            until: Word::new(0),
            level: Word::new(0),
            trips: Word::new(0),
            refused: Word::new(0),
            plain: matches!(shape, Shape::None),
            alone: false,
            shape,
            settings,
            window: Window::new(),
        }
    }

    /// What it decides by; the counts of trips and of what it refused are not among it.
    #[inline(always)]
    pub(super) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        [&self.word, &self.since, &self.until, &self.level].into_iter().for_each(&mut *with);
        match self.shape {
            Shape::None => {}
            Shape::OneCall { .. } => self.window.words_of_one_call(with),
            shape => self.window.words(shape, self.settings.slow_after.is_some(), with),
        }
    }

    /// Everything the breaker was told, by name.
    ///
    /// ```
    /// # use relent::Breaker;
    /// assert_eq!(Breaker::consecutive(5).settings().consecutive, Some(5));
    /// ```
    pub const fn settings(&self) -> BreakerSettings {
        self.settings
    }

    /// A closed breaker of the same settings that has seen nothing yet.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// let bank = Breaker::consecutive(5);
    /// bank.hold_open(Timestamp::ZERO);
    /// assert_eq!(bank.fresh().state(), BreakerState::Closed);
    /// ```
    #[must_use]
    pub const fn fresh(&self) -> Breaker {
        Breaker::of(self.settings)
    }

    /// A [fresh](Breaker::fresh) one for one thread, as simulators are: it does without the processor's locks. Of two threads
    /// that tell it something at a time, one may not be heard.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let (breaker, now) = (Breaker::consecutive(1).for_one_thread(), Timestamp::ZERO);
    /// breaker.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// assert_eq!(breaker.state(), BreakerState::Open);
    /// ```
    #[must_use]
    pub const fn for_one_thread(&self) -> Breaker {
        let mut fresh = self.fresh();
        (fresh.alone, fresh.window.alone) = (true, true);
        fresh
    }

    /// A [fresh](Breaker::fresh) one for an upstream on which one call is made, and by one thread: a simulator has millions of
    /// them, and [saves](crate::Upstream::save) what each has counted. Whatever is no failure ends that call and is not
    /// counted, so that a window of time is three words; all else stays what it is.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp, Upstream};
    /// # use std::time::Duration;
    /// let (breaker, now) = (Breaker::share(0.5).min_calls(3).for_one_call(), Timestamp::ZERO);
    /// for _ in 0..3 {
    ///     breaker.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// }
    /// assert_eq!(breaker.state(), BreakerState::Open);
    /// assert_eq!(Upstream::new("bank").breaker(breaker).words(), 7);
    /// ```
    #[must_use]
    pub const fn for_one_call(&self) -> Breaker {
        let mut fresh = self.for_one_thread();
        fresh.shape = fresh.shape.of_one_call(&self.settings);
        fresh
    }

    /// Whether [`BreakerPass`]es and outcomes of a closed breaker look at the time or at how long an attempt took. If not, a
    /// caller may pass [`Timestamp::ZERO`](crate::Timestamp::ZERO) to a closed one and spare itself reading a clock.
    ///
    /// ```
    /// # use relent::Breaker;
    /// assert!(!Breaker::consecutive(5).is_timed());
    /// assert!(Breaker::share(0.5).is_timed(), "over the last 10 s");
    /// ```
    pub const fn is_timed(&self) -> bool {
        matches!(self.shape, Shape::Time { .. } | Shape::OneCall { .. }) || self.settings.slow_after.is_some()
    }

    /// How long it is open at the `level`-th re-trip in a row (0 is the first trip) with this draw.
    ///
    /// ```
    /// # use relent::Breaker;
    /// # use std::time::Duration;
    /// let breaker = Breaker::consecutive(5).open_for(Duration::from_secs(10)).factor(2.0).jitter(0.5);
    /// assert_eq!(breaker.open_time(0, 0), Duration::from_secs(10));
    /// assert_eq!(breaker.open_time(1, 0), Duration::from_secs(20));
    /// assert_eq!(breaker.open_time(1, 1 << 63), Duration::from_secs(25));
    /// assert!(breaker.open_time(u32::MAX, u64::MAX) <= Duration::from_secs(100));
    /// ```
    pub fn open_time(&self, level: u32, draw: u64) -> Duration {
        Duration::from_nanos(self.open_nanos(level, draw))
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("state", &self.state())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
