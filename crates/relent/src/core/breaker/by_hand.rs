//! A breaker that somebody holds open or closed.

use super::{Breaker, state::BreakerState};
use crate::core::{time::Timestamp, word::pause};

impl Breaker {
    /// Holds it open by hand: nothing is let through until [`release`](Breaker::release).
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let (bank, now) = (Breaker::consecutive(5), Timestamp::ZERO);
    /// bank.hold_open(now);
    /// assert!(bank.permit(now + Duration::from_secs(3600), 0).is_err());
    /// bank.release(now);
    /// assert_eq!(bank.state(), BreakerState::Closed);
    /// ```
    pub fn hold_open(&self, now: Timestamp) {
        self.by_hand(BreakerState::HeldOpen, now);
    }

    /// Holds it closed by hand: everything is let through, and nothing is counted, until
    /// [`release`](Breaker::release).
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// # use std::time::Duration;
    /// let (bank, now) = (Breaker::consecutive(1), Timestamp::ZERO);
    /// bank.hold_closed(now);
    /// bank.permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// assert_eq!(bank.state(), BreakerState::HeldClosed, "the failure was not counted");
    /// ```
    pub fn hold_closed(&self, now: Timestamp) {
        self.by_hand(BreakerState::HeldClosed, now);
    }

    /// Closes it by hand, held or not, with nothing counted: from here on it decides for itself again.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp};
    /// let (bank, now) = (Breaker::consecutive(5), Timestamp::ZERO);
    /// bank.hold_open(now);
    /// bank.release(now);
    /// assert_eq!(bank.state(), BreakerState::Closed);
    /// ```
    pub fn release(&self, now: Timestamp) {
        self.by_hand(BreakerState::Closed, now);
    }

    fn by_hand(&self, to: BreakerState, now: Timestamp) {
        while self.change(self.packed(), to, 0, now, Timestamp::MAX, None).is_none() {
            pause();
        }
    }
}
