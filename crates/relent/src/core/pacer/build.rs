//! How a pacer is made.

use super::{Pacer, PacerSettings, gap};
use crate::core::invalid::Invalid;
use core::time::Duration;

impl PacerSettings {
    /// The pacer of these settings.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the setting that makes no sense, why, and what to write instead.
    pub const fn pacer(self) -> Result<Pacer, Invalid> {
        match self.check() {
            Ok(()) => Ok(Pacer::of(self)),
            Err(invalid) => Err(invalid),
        }
    }
}

impl Pacer {
    #[track_caller]
    const fn must(mut self) -> Pacer {
        self.gap = gap(self.settings.capacity, self.settings.kept);
        match self.settings.check() {
            Ok(()) => self,
            Err(invalid) => invalid.refuse(),
        }
    }

    /// For a server that gets this many requests a second done: above 0 and up to 10^9.
    ///
    /// # Panics
    ///
    /// If it is not. In a `const`, the panic is a compile error. The same holds for every builder.
    ///
    /// ```compile_fail
    /// const NO: relent::Pacer = relent::Pacer::capacity(f64::NAN);
    /// ```
    ///
    /// ```
    /// # use relent::{Pacer, Timestamp};
    /// # use std::time::Duration;
    /// let (pacer, now) = (Pacer::capacity(1000.0), Timestamp::ZERO);
    /// assert_eq!(pacer.turn(now), Some(Duration::from_millis(1)));
    /// assert_eq!(pacer.turn(now), Some(Duration::from_millis(2)));
    /// ```
    #[track_caller]
    pub const fn capacity(a_second: f64) -> Pacer {
        Pacer::of(PacerSettings { capacity: a_second, ..PacerSettings::DEFAULT }).must()
    }

    /// For a server whose capacity is measured, by [`completed`](Pacer::completed); it starts with this many a second.
    ///
    /// # Panics
    ///
    /// If it is not above 0 and up to 10^9.
    ///
    /// ```compile_fail
    /// const NO: relent::Pacer = relent::Pacer::measured(0.0);
    /// ```
    ///
    /// ```
    /// # use relent::{Pacer, Timestamp};
    /// # use std::time::Duration;
    /// let pacer = Pacer::measured(100.0);
    /// let (mut now, took) = (Timestamp::ZERO, Duration::from_millis(5));
    /// for _ in 0..2000 {
    ///     now = now + took; // 200 a second, with others waiting all the time.
    ///     pacer.completed(now, 20 * took, true);
    /// }
    /// let capacity = pacer.snapshot(now).capacity;
    /// assert!((190.0..210.0).contains(&capacity), "{capacity}");
    /// assert!(pacer.is_overloaded());
    /// ```
    #[track_caller]
    pub const fn measured(first: f64) -> Pacer {
        Pacer::of(PacerSettings { capacity: first, measured: true, ..PacerSettings::DEFAULT }).must()
    }

    /// No turn is further away than this: beyond it, the answer is "overloaded". Default 60 s.
    ///
    /// # Panics
    ///
    /// If it is zero.
    ///
    /// ```compile_fail
    /// # use std::time::Duration;
    /// const NO: relent::Pacer = relent::Pacer::capacity(5000.0).horizon(Duration::ZERO);
    /// ```
    ///
    /// ```
    /// # use relent::{Pacer, Timestamp, Turn};
    /// # use std::time::Duration;
    /// let (pacer, now) = (Pacer::capacity(1.0).horizon(Duration::from_secs(2)), Timestamp::ZERO);
    /// let turns = [(); 3].map(|()| pacer.arrive(now, 1, false));
    /// assert_eq!(turns[1..], [Turn::In(Duration::from_secs(2)), Turn::Overloaded]);
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn horizon(mut self, most: Duration) -> Pacer {
        self.settings.horizon = most;
        self.must()
    }

    /// The share of the turns that is kept: above 0 and up to 1. Turns are laid that much denser: with 0.8, 1.25 times.
    /// Too dense costs clients a second refusal, too thin costs time. Default 1.
    ///
    /// # Panics
    ///
    /// If it is not above 0 and up to 1.
    ///
    /// ```compile_fail
    /// const NO: relent::Pacer = relent::Pacer::capacity(5000.0).kept(1.1);
    /// ```
    ///
    /// ```
    /// # use relent::{Pacer, Timestamp};
    /// # use std::time::Duration;
    /// let pacer = Pacer::capacity(100.0).kept(0.5);
    /// assert_eq!(pacer.turn(Timestamp::ZERO), Some(Duration::from_millis(5)), "every second one will not come");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn kept(mut self, share: f64) -> Pacer {
        self.settings.kept = share;
        self.must()
    }

    /// Learns the share of turns that is kept from those that have come due. A herd that comes in one instant has its
    /// turns before anything can be learned of it: there the share of earlier herds counts.
    ///
    /// ```
    /// # use relent::Pacer;
    /// static PACER: Pacer = Pacer::capacity(5000.0).kept(0.8).learning();
    /// assert!(PACER.settings().learned);
    /// ```
    #[must_use]
    pub const fn learning(mut self) -> Pacer {
        self.settings.learned = true;
        self.must()
    }
}
