//! A [rate](relent::Limit::rate) of one call: when its next permit is due, in one word.

use super::Machine;
use relent::{Limit, LimitSettings, Reason};
use std::time::Duration;

pub(in super::super) struct Due {
    /// From one permit to the next.
    gap: u64,
    /// How far ahead of time permits may be.
    ahead: u64,
}

impl Due {
    pub(super) fn of(limit: &Limit) -> Option<Due> {
        let LimitSettings::Rate { rate, per, burst } = limit.settings() else { return None };
        let gap = crate::time::nanos(per).div_ceil(u64::from(rate));
        Some(Due { gap, ahead: gap.saturating_mul(u64::from(burst) - 1) })
    }
}

impl Machine for Due {
    type State = u64;
    const REASON: Reason = Reason::Shed;

    /// The first permit was there at once.
    #[inline(always)]
    fn failed(&self, state: &mut u64, failures: u32, sent: u64, _: u64, _: impl Fn() -> u64) -> u64 {
        if failures == 0 {
            *state = sent.saturating_add(self.gap);
        }
        0
    }

    #[inline(always)]
    fn pay(&self, _: &mut u64, _: u32, _: u64) -> bool {
        true
    }

    /// The next permit is booked when it is known when it is wanted.
    #[inline(always)]
    fn next(
        &self,
        state: &mut u64,
        _: u64,
        time: u64,
        _: impl Fn() -> u64,
        within: impl Fn() -> Duration,
    ) -> Option<u64> {
        let wait = state.saturating_sub(self.ahead).saturating_sub(time);
        if wait > 0 && wait > crate::time::nanos(within()) {
            return None;
        }
        *state = (*state).max(time).saturating_add(self.gap);
        Some(time.saturating_add(wait))
    }
}
