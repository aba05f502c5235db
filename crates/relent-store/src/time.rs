//! A store's clock.

use relent::{SystemTimer, Timer};
use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A point in time on a store's clock: milliseconds since 1970, where that clock shows the time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// This much later. Never passes the end of all time.
    #[must_use]
    pub fn after(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(millis(duration)))
    }

    /// The time from `earlier` to this; zero if that is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// As UTC, to the second: `2026-11-22T07:30:00Z`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, seconds) = (self.0 / 86_400_000, self.0 / 1000 % 86_400);
        // Days to a date in the Gregorian calendar, whose eras of 400 years begin in March.
        let shifted = days + 719_468;
        let (era, day) = (shifted / 146_097, shifted % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let date = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + u64::from(month <= 2);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Whole milliseconds, rounded up; at most 2^52, so that every engine can add to them.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).min(1 << 52)
}

/// Where an engine that has no clock of its own gets the time. A clone is the same clock.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// The time of day, watched by the monotonic clock.
    System(Arc<Mutex<Watched>>),
    Monotonic(u64),
    Manual(Arc<AtomicU64>),
}

#[derive(Debug, Default)]
struct Watched {
    /// The time of day when it was last read, and the monotonic clock then.
    last: Option<(u64, u64)>,
    jump: Jump,
    leaps: u64,
}

/// A leap of the time of day that the monotonic clock did not make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Jump {
    /// What the time would have been.
    before: u64,
    by: u64,
}

/// What a leap must at least be, in milliseconds, to be one.
const LEAP: u64 = 1000;

impl Clock {
    /// The machine's time of day, which all its processes share. Leaps forward are noticed by the monotonic clock.
    pub fn system() -> Clock {
        Clock(Kind::System(Arc::default()))
    }

    /// The time of day when this was called, and from then on the clock that calls run on, which never leaps; tokio's,
    /// where that is paused. For what stays in one process.
    pub fn monotonic() -> Clock {
        let wall = wall();
        Clock(Kind::Monotonic(wall.saturating_sub(monotonic())))
    }

    /// A clock that stands still until it is set: for tests.
    ///
    /// ```
    /// use relent_store::{Clock, Time};
    ///
    /// let clock = Clock::manual(Time(1000));
    /// clock.set(Time(5000));
    /// assert_eq!(clock.now(), Time(5000));
    /// ```
    pub fn manual(start: Time) -> Clock {
        Clock(Kind::Manual(Arc::new(AtomicU64::new(start.0))))
    }

    /// Sets a [manual](Clock::manual) clock. Does nothing to others.
    pub fn set(&self, time: Time) {
        if let Kind::Manual(now) = &self.0 {
            now.store(time.0, Ordering::SeqCst);
        }
    }

    /// Moves a [manual](Clock::manual) clock on. Does nothing to others.
    pub fn advance(&self, by: Duration) {
        if let Kind::Manual(now) = &self.0 {
            now.fetch_add(millis(by), Ordering::SeqCst);
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.read().time
    }

    /// The machine's time of day.
    pub(crate) fn wall() -> Time {
        Time(wall())
    }

    pub(crate) fn read(&self) -> Now {
        match &self.0 {
            Kind::Monotonic(epoch) => Now::at(epoch + monotonic()),
            Kind::Manual(now) => Now::at(now.load(Ordering::SeqCst)),
            Kind::System(watched) => seen(watched).see(wall(), monotonic()),
        }
    }

    /// How often it was seen to leap forward, and by how much the last time.
    pub(crate) fn leaps(&self) -> (u64, Duration) {
        match &self.0 {
            Kind::System(watched) => {
                let watched = seen(watched);
                (watched.leaps, Duration::from_millis(watched.jump.by))
            }
            _ => (0, Duration::ZERO),
        }
    }

    /// Somebody set the machine's time of day to this much later.
    #[cfg(test)]
    pub(crate) fn leap(&self, by: Duration) {
        if let Kind::System(watched) = &self.0 {
            seen(watched).see(wall() + millis(by), monotonic());
        }
    }
}

fn seen(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watched {
    fn see(&mut self, wall: u64, monotonic: u64) -> Now {
        if let Some((last_wall, last_monotonic)) = self.last {
            let expected = last_wall + monotonic.saturating_sub(last_monotonic);
            if wall > expected + LEAP {
                // A second leap adds to the first for what was written before it.
                self.jump = Jump { before: expected, by: wall - expected };
                self.leaps += 1;
            }
        }
        self.last = Some((wall, monotonic));
        Now { time: Time(wall), jump: self.jump }
    }
}

fn wall() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn monotonic() -> u64 {
    SystemTimer.now().as_nanos() / 1_000_000
}

/// The time, and what is known about how it was come by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) time: Time,
    jump: Jump,
}

impl Now {
    pub(crate) fn at(millis: u64) -> Now {
        Now { time: Time(millis), jump: Jump::default() }
    }

    /// How long what was written at `from` and ends at `until` still holds. A clock that leapt back does not make it
    /// longer than it was, one that leapt forward does not cut it short.
    pub(crate) fn left(self, from: Time, until: Time) -> Duration {
        let shift = if self.jump.by > 0 && from.0 <= self.jump.before { self.jump.by } else { 0 };
        let left = until.0.saturating_add(shift).saturating_sub(self.time.0);
        Duration::from_millis(left.min(until.0.saturating_sub(from.0)))
    }

    /// What was over by then is over, whatever the clock did.
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "for engines that look through an index"))]
    pub(crate) fn surely_past(self) -> Time {
        Time(self.time.0.saturating_sub(self.jump.by))
    }

    /// Whether what is written says by itself for how long it holds.
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "for an engine that compares in its own language"))]
    pub(crate) fn has_no_leap(self) -> bool {
        self.jump.by == 0
    }

    /// Whether the clock leapt back over the time at which something was written, so that it has to be written anew.
    pub(crate) fn is_before(self, from: Time) -> bool {
        self.time < from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shown_as_a_date() {
        assert_eq!(Time(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Time(951_782_400_000).to_string(), "2000-02-29T00:00:00Z");
        assert_eq!(Time(1_795_332_455_999).to_string(), "2026-11-22T07:27:35Z");
        let _ = Time(u64::MAX).to_string();
    }

    #[test]
    fn a_leap_forward_keeps_what_was_left_and_no_more() {
        let mut clock = Watched::default();
        let start = clock.see(1_000_000, 0).time;
        let until = start.after(Duration::from_secs(30));
        let later = clock.see(1_010_000 + 3_600_000, 10_000);
        assert_eq!(later.left(start, until), Duration::from_secs(20));
        assert_eq!(clock.see(1_030_000 + 3_600_000, 30_000).left(start, until), Duration::ZERO, "one grace");
        // What was written after the leap is as it says.
        let written = later.time;
        assert_eq!(later.left(written, written.after(Duration::from_secs(5))), Duration::from_secs(5));
    }

    #[test]
    fn a_leap_back_makes_nothing_longer() {
        let mut clock = Watched::default();
        let start = clock.see(10_000_000, 0).time;
        let back = clock.see(10_000_000 - 3_600_000, 1000);
        assert_eq!(back.left(start, start.after(Duration::from_secs(30))), Duration::from_secs(30));
        assert!(back.is_before(start));
    }
}
