//! Everything about a breaker at one moment.

use super::{Breaker, BreakerState};
use crate::core::{time::Timestamp, word::pause};

/// Everything about a breaker at one moment: its parts belong together.
///
/// ```
/// use relent::{Breaker, BreakerState, Timestamp};
/// use std::time::Duration;
///
/// let (bank, now) = (Breaker::consecutive(1).open_for(Duration::from_secs(30)), Timestamp::ZERO);
/// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
/// let seen = bank.snapshot(now);
/// assert_eq!((seen.state, seen.trips), (BreakerState::Open, 1));
/// assert_eq!(seen.until, Some(now + Duration::from_secs(30)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerSnapshot {
    /// The state. An open breaker stays open until it is asked, even when its time is over.
    pub state: BreakerState,
    /// Since when.
    pub since: Timestamp,
    /// When an open breaker lets probes through; `None` in every other state.
    pub until: Option<Timestamp>,
    /// Closed or in a ramp: failures in a row so far.
    pub failures_in_a_row: u64,
    /// Closed or in a ramp: calls in the window, if there is one.
    pub window_calls: u64,
    /// Those of them that failed.
    pub window_failures: u64,
    /// Those of them that were slow.
    pub window_slow: u64,
    /// Half-open: probes in flight.
    pub probes: u32,
    /// Half-open: probes that have succeeded.
    pub probes_succeeded: u32,
    /// Half-open: probes that have failed, or taken longer than a call may take where that [counts](crate::Breaker::or_slow).
    pub probes_failed: u32,
    /// How often it has opened since the start.
    pub trips: u64,
    /// How many attempts it has refused since the start.
    pub refused: u64,
}

impl Breaker {
    /// The state at this moment.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState};
    /// assert_eq!(Breaker::consecutive(5).state(), BreakerState::Closed);
    /// ```
    pub fn state(&self) -> BreakerState {
        self.packed().state()
    }

    /// When it would be worth asking again: `now` if attempts are let through, else the end of the open time.
    /// [`Timestamp::MAX`] if it is held open.
    ///
    /// ```
    /// # use relent::{Breaker, Timestamp};
    /// # use std::time::Duration;
    /// let (bank, now) = (Breaker::consecutive(1).open_for(Duration::from_secs(30)), Timestamp::ZERO);
    /// assert_eq!(bank.worth_asking_at(now), now);
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// assert_eq!(bank.worth_asking_at(now), now + Duration::from_secs(30));
    /// ```
    pub fn worth_asking_at(&self, now: Timestamp) -> Timestamp {
        let word = self.settled();
        match word.state() {
            BreakerState::Open => self.until().max(now),
            BreakerState::HeldOpen => Timestamp::MAX,
            _ => now,
        }
    }

    /// Everything at one moment. `now` says which part of a window of time still counts.
    ///
    /// ```
    /// # use relent::{Breaker, Timestamp};
    /// let (bank, now) = (Breaker::consecutive(5), Timestamp::ZERO);
    /// bank.hold_open(now);
    /// assert!(bank.permit(now, 0).is_err());
    /// assert_eq!(bank.snapshot(now).refused, 1);
    /// ```
    pub fn snapshot(&self, now: Timestamp) -> BreakerSnapshot {
        loop {
            let word = self.settled();
            let (since, until) = (Timestamp::from_nanos(self.since.get()), self.until());
            let (trips, refused) = (self.trips.get(), self.refused.get());
            let state = word.state();
            let counts = matches!(state, BreakerState::Closed | BreakerState::Ramp);
            let seen = if counts { self.window.seen(self.shape, word.generation(), now) } else { Default::default() };
            let probes = if state == BreakerState::HalfOpen { word.probes() } else { Default::default() };
            // Times are written while the word is marked, so an unchanged generation means that they belong to it.
            let after = self.packed();
            if after.is_busy() || after.generation() != word.generation() || after.state() != state {
                pause();
                continue;
            }
            return BreakerSnapshot {
                state,
                since,
                until: (state == BreakerState::Open).then_some(until),
                failures_in_a_row: if counts { word.failures() } else { 0 },
                window_calls: seen.calls,
                window_failures: seen.failures,
                window_slow: seen.slow,
                probes: probes.in_flight,
                probes_succeeded: probes.succeeded,
                probes_failed: probes.failed,
                trips,
                refused,
            };
        }
    }
}
