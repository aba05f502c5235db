//! The pacer: a server gives each refused client its own time to come back, so that a herd returns as a queue.
//!
//! Why: told "later", clients come back whenever their backoff says, together or too thin, and are refused again and
//! again. Told their own time, laid out at the server's capacity, a herd of N is drained in N / capacity with one refused
//! attempt each. The nearest prior art is Breakwater (Cho et al., OSDI 2020), whose credits need a connection that stays;
//! a turn is a credit with a time on it, for clients that leave. Shuffling clients over a fixed time (full jitter) needs
//! about four times the attempts, because it knows neither their number nor the capacity.
//!
//! Turns are one atomic word: `next = max(next, now) + 1 / capacity; wait = next - now`. Another one counts how much of what came
//! due was used, so that what was promised to those who never come is not kept for nobody.

mod build;
mod lapsed;
mod learned;
mod measured;
mod meter;
#[cfg(all(test, loom))]
mod models;
mod settings;
#[cfg(all(test, feature = "std", not(loom)))]
mod tests;
mod turns;

pub use self::settings::PacerSettings;

use self::{lapsed::Lapsed, learned::Learned, meter::Meter, turns::Turns};
use super::time::{Timestamp, nanos};
use core::{fmt, time::Duration};

/// What a server does with an attempt that a pacer has looked at.
///
/// ```
/// use relent::{Pacer, Timestamp, Turn};
///
/// fn answer(pacer: &Pacer, has_room: bool) -> String {
///     match pacer.arrive(Timestamp::ZERO, 1, has_room) {
///         Turn::Now => "200".to_owned(),
///         turn @ Turn::In(_) => format!("503, Relent-Turn: {}", turn.millis().unwrap_or_default()),
///         Turn::Overloaded => "503, Relent-Retry: no".to_owned(),
///     }
/// }
/// let pacer = Pacer::capacity(100.0);
/// assert_eq!([answer(&pacer, true), answer(&pacer, false)], ["200", "503, Relent-Turn: 10"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Take the work.
    Now,
    /// Refuse, and say: come back after exactly this long. In milliseconds on the wire, rounded up.
    In(Duration),
    /// Refuse, and say "do not retry": there is no turn before the horizon.
    Overloaded,
}

impl Turn {
    /// The wait as `Relent-Turn` and `Retry-After-Ms` have it: whole milliseconds, rounded up.
    ///
    /// ```
    /// # use relent::Turn;
    /// # use std::time::Duration;
    /// assert_eq!(Turn::In(Duration::from_micros(1500)).millis(), Some(2));
    /// assert_eq!(Turn::In(Duration::from_micros(1500)).seconds(), Some(1));
    /// assert_eq!(Turn::Now.millis(), None);
    /// ```
    pub const fn millis(self) -> Option<u64> {
        match self {
            Turn::In(wait) => Some(nanos(wait).div_ceil(1_000_000)),
            _ => None,
        }
    }

    /// The wait for clients that know `Retry-After` only: whole seconds, rounded up, at least one.
    ///
    /// A herd that came in one instant comes in a lump a second then. A server whose queue holds a second of work takes
    /// each lump whole and is never idle; with less room, what does not fit is refused a second time.
    ///
    /// ```
    /// # use relent::Turn;
    /// # use std::time::Duration;
    /// assert_eq!(Turn::In(Duration::from_millis(2100)).seconds(), Some(3));
    /// assert_eq!(Turn::In(Duration::from_millis(1)).seconds(), Some(1));
    /// assert_eq!(Turn::Overloaded.seconds(), None);
    /// ```
    pub const fn seconds(self) -> Option<u64> {
        match self {
            Turn::In(wait) => {
                let seconds = nanos(wait).div_ceil(1_000_000_000);
                Some(if seconds == 0 { 1 } else { seconds })
            }
            _ => None,
        }
    }
}

/// Gives each refused client its own time to come back.
///
/// ```
/// use relent::{Pacer, Timestamp, Turn};
/// use std::time::Duration;
///
/// static PACER: Pacer = Pacer::capacity(5000.0).horizon(Duration::from_secs(60));
///
/// let now = Timestamp::ZERO;
/// assert_eq!(PACER.arrive(now, 1, true), Turn::Now, "there is room and nobody waits");
/// assert_eq!(PACER.arrive(now, 1, false), Turn::In(Duration::from_micros(200)));
/// assert_eq!(PACER.arrive(now, 1, true), Turn::In(Duration::from_micros(400)), "that room is promised");
/// assert_eq!(PACER.arrive(now + Duration::from_micros(200), 2, true), Turn::Now, "who comes back at their time");
/// ```
///
/// ```compile_fail
/// const NEVER: relent::Pacer = relent::Pacer::capacity(0.0);
/// ```
pub struct Pacer {
    turns: Turns,
    gap: u64,
    settings: PacerSettings,
    lapsed: Lapsed,
    learned: Learned,
    meter: Meter,
}

/// Everything about a pacer at one moment.
///
/// ```
/// use relent::{Pacer, Timestamp};
/// use std::time::Duration;
///
/// let (pacer, now) = (Pacer::capacity(100.0), Timestamp::ZERO);
/// for _ in 0..50 {
///     pacer.arrive(now, 1, false);
/// }
/// let seen = pacer.snapshot(now);
/// assert_eq!((seen.backlog, seen.capacity, seen.overloaded), (Duration::from_millis(500), 100.0, false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PacerSnapshot {
    /// How far away the last turn is.
    pub backlog: Duration,
    /// Requests a second, by hand or measured.
    pub capacity: f64,
    /// The share of turns that is thought to be kept.
    pub kept: f64,
    /// Whether requests wait longer than they should, where the capacity is measured.
    pub overloaded: bool,
}

impl Pacer {
    const fn of(settings: PacerSettings) -> Pacer {
        Pacer {
            turns: Turns::new(),
            gap: gap(settings.capacity, settings.kept),
            settings,
            lapsed: Lapsed::new(),
            learned: Learned::new(),
            meter: Meter::new(),
        }
    }

    /// Everything the pacer was told, by name.
    ///
    /// ```
    /// # use relent::Pacer;
    /// assert_eq!(Pacer::capacity(5000.0).settings().capacity, 5000.0);
    /// ```
    pub const fn settings(&self) -> PacerSettings {
        self.settings
    }

    /// An attempt arrives: `attempt` is 1 for a newcomer, and `has_room` says whether the server could take it.
    ///
    /// Newcomers do not take room that is promised: while turns are outstanding they get one at the end, unless turns have
    /// lapsed: of those that nobody came for within two seconds, as many newcomers are let in. Who comes back takes the room
    /// there is. So clients that never say which attempt they make are served at the capacity, too, two seconds later.
    ///
    /// ```
    /// # use relent::{Pacer, Timestamp, Turn};
    /// # use std::time::Duration;
    /// let (pacer, now) = (Pacer::capacity(100.0), Timestamp::ZERO);
    /// let turn = Duration::from_millis(10);
    /// assert_eq!(pacer.arrive(now, 1, false), Turn::In(turn));
    /// assert_eq!(pacer.arrive(now, 1, true), Turn::In(2 * turn), "a newcomer does not take what is promised");
    /// assert_eq!(pacer.arrive(now + turn, 2, true), Turn::Now, "who comes back does");
    /// ```
    #[inline]
    pub fn arrive(&self, now: Timestamp, attempt: u32, has_room: bool) -> Turn {
        let comes_back = attempt > 1;
        // Who was refused twice is known to stay, and says nothing of those who were refused once.
        if attempt == 2 && self.settings.learned {
            self.learned.returned.add(1);
        }
        if has_room && (self.turns.last() <= now.as_nanos() || self.is_let_in(now, comes_back)) {
            return Turn::Now;
        }
        match self.give(now, !comes_back) {
            Some(wait) => Turn::In(wait),
            None => Turn::Overloaded,
        }
    }

    /// While turns are outstanding: who comes back, and a newcomer for whom one has lapsed.
    #[inline]
    fn is_let_in(&self, now: Timestamp, comes_back: bool) -> bool {
        let gap = self.gap(false);
        if comes_back {
            self.lapsed.used(now.as_nanos(), gap);
        }
        comes_back || self.lapsed.take(now.as_nanos(), gap)
    }

    /// The next free turn, for a client that is refused: how long it should wait. `None` beyond the horizon.
    ///
    /// ```
    /// # use relent::{Pacer, Timestamp};
    /// # use std::time::Duration;
    /// let (pacer, now) = (Pacer::capacity(10.0).horizon(Duration::from_millis(150)), Timestamp::ZERO);
    /// assert_eq!(pacer.turn(now), Some(Duration::from_millis(100)));
    /// assert_eq!(pacer.turn(now), None, "200 ms is beyond the horizon");
    /// ```
    #[inline]
    pub fn turn(&self, now: Timestamp) -> Option<Duration> {
        self.give(now, true)
    }

    #[inline]
    fn give(&self, now: Timestamp, is_newcomer: bool) -> Option<Duration> {
        let (now, horizon) = (now.as_nanos(), nanos(self.settings.horizon));
        let gap = self.gap(is_newcomer);
        let given = self.turns.give(now, gap, horizon)?;
        if given.is_first {
            self.lapsed.begin(now);
        }
        let wait = given.at - now;
        if self.settings.learned && is_newcomer {
            self.learned.issue(given.is_first, wait / gap, self.settings.kept);
        }
        Some(Duration::from_nanos(wait))
    }

    /// Turns are denser only for those of whom some will leave: who comes back has shown to stay.
    #[inline]
    fn gap(&self, is_newcomer: bool) -> u64 {
        if !self.settings.measured && !self.settings.learned && is_newcomer {
            return self.gap;
        }
        let capacity =
            if self.settings.measured { self.meter.rate.or(self.settings.capacity) } else { self.settings.capacity };
        let kept = match (is_newcomer, self.settings.learned) {
            (false, _) => 1.0,
            (true, false) => self.settings.kept,
            (true, true) => self.learned.kept.or(self.settings.kept),
        };
        gap(capacity, kept)
    }

    /// How far away the last turn is: zero if nobody waits for one.
    ///
    /// ```
    /// # use relent::{Pacer, Timestamp};
    /// # use std::time::Duration;
    /// let (pacer, now) = (Pacer::capacity(10.0), Timestamp::ZERO);
    /// pacer.turn(now);
    /// assert_eq!(pacer.backlog(now), Duration::from_millis(100));
    /// assert_eq!(pacer.backlog(now + Duration::from_secs(1)), Duration::ZERO);
    /// ```
    pub fn backlog(&self, now: Timestamp) -> Duration {
        Timestamp::from_nanos(self.turns.last()).since(now)
    }

    /// A request was completed that had waited in the queue for `waited`; `is_queued` says whether others still wait.
    ///
    /// The capacity is the rate of completions while there is a queue: without one, it is the load that is measured.
    /// Does nothing for a capacity set by hand.
    ///
    /// ```
    /// # use relent::{Pacer, Timestamp};
    /// # use std::time::Duration;
    /// let pacer = Pacer::measured(100.0);
    /// let now = Timestamp::from_nanos(1_000_000_000);
    /// pacer.completed(now, Duration::from_millis(2), false);
    /// assert!(!pacer.is_overloaded(), "nobody waits long");
    /// ```
    pub fn completed(&self, now: Timestamp, waited: Duration, is_queued: bool) {
        if self.settings.measured {
            self.meter.completed(now.as_nanos(), nanos(waited), is_queued, self.settings.capacity);
        }
    }

    /// Whether every request of the last tenth of a second waited longer than 5 ms, as CoDel (RFC 8289) asks: then a
    /// queue stands. Always false for a capacity set by hand.
    ///
    /// ```
    /// # use relent::Pacer;
    /// assert!(!Pacer::capacity(5000.0).is_overloaded());
    /// ```
    pub fn is_overloaded(&self) -> bool {
        self.meter.overloaded.get() != 0
    }

    /// Reads every word of its turns once.
    #[cfg(all(test, loom))]
    pub(in crate::core) fn touch(&self) {
        self.turns.touch();
        self.lapsed.touch();
    }

    /// Everything at one moment.
    ///
    /// ```
    /// # use relent::{Pacer, Timestamp};
    /// assert_eq!(Pacer::capacity(5000.0).snapshot(Timestamp::ZERO).capacity, 5000.0);
    /// ```
    pub fn snapshot(&self, now: Timestamp) -> PacerSnapshot {
        PacerSnapshot {
            backlog: self.backlog(now),
            capacity: if self.settings.measured {
                self.meter.rate.or(self.settings.capacity)
            } else {
                self.settings.capacity
            },
            kept: if self.settings.learned { self.learned.kept.or(self.settings.kept) } else { self.settings.kept },
            overloaded: self.is_overloaded(),
        }
    }

    /// Goes on where `old` was, for settings that were read again: turns that were promised stay promised.
    ///
    /// ```
    /// # use relent::{Pacer, Timestamp};
    /// # use std::time::Duration;
    /// let (old, now) = (Pacer::capacity(10.0), Timestamp::ZERO);
    /// old.turn(now);
    /// let new = Pacer::capacity(1000.0).adopt(&old);
    /// assert_eq!(new.turn(now), Some(Duration::from_millis(101)), "after the turn that was promised");
    /// ```
    #[must_use]
    pub fn adopt(self, old: &Pacer) -> Pacer {
        self.turns.adopt(&old.turns);
        self.lapsed.adopt(&old.lapsed);
        if self.settings.learned && old.settings.learned {
            self.learned.kept.adopt(&old.learned.kept);
        }
        if self.settings.measured && old.settings.measured {
            self.meter.rate.adopt(&old.meter.rate);
        }
        self
    }
}

impl fmt::Debug for Pacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacer")
            .field("settings", &self.settings)
            .field("last", &self.turns.last())
            .finish_non_exhaustive()
    }
}

/// From turn to turn: at least a nanosecond.
const fn gap(capacity: f64, kept: f64) -> u64 {
    let gap = (1e9 / capacity * kept + 0.5) as u64;
    if gap == 0 { 1 } else { gap }
}
