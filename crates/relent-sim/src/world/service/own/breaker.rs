//! A [breaker](relent::Breaker) of one call that sees nothing but failures: when it trips for the first time, and that it trips
//! at each probe after that. What depends on the settings, for how long it is open, is asked of the breaker itself.

use super::{Kept, Machine};
use crate::time::nanos;
use relent::{Breaker, BreakerQuirks, BreakerSettings, BreakerWindow, Reason, Refused, Timestamp};
use std::time::Duration;

/// What trips a breaker for the first time.
pub(in super::super) trait Trips {
    type State: Kept;

    /// Another failure after so many. How often it has tripped after the first time, if this trips it.
    fn trips(&self, state: &mut Self::State, failures: u32, now: u64) -> Option<u32>;
}

/// So many failures in a row.
pub(in super::super) struct InARow(u32);

impl Trips for InARow {
    type State = ();

    #[inline(always)]
    fn trips(&self, (): &mut (), failures: u32, _: u64) -> Option<u32> {
        failures.saturating_add(1).checked_sub(self.0)
    }
}

/// So many failures in a window of time, or in a row: ten slices of eight bits each, and above them the number of the newest.
pub(in super::super) struct InWindow {
    /// The length of a slice, in nanoseconds.
    slice: u64,
    most: u32,
    in_a_row: u32,
}

const BITS: u32 = 8;
const SLICES: u32 = 10;
const ALL: u128 = (1 << NUMBER_AT) - 1;
const NUMBER_AT: u32 = BITS * SLICES;
/// The number of the slice of a breaker that has tripped: below it is after how many failures it did.
const TRIPPED: u64 = (1 << (u128::BITS - NUMBER_AT)) - 1;

impl InWindow {
    /// The sum of all slices, which is less than 256.
    #[inline]
    fn sum(slices: u128) -> u32 {
        let sum = |bytes: u64| bytes.wrapping_mul(0x0101_0101_0101_0101) >> 56;
        (sum(slices as u64) + sum((slices >> 64) as u64)) as u32
    }
}

impl Trips for InWindow {
    type State = u128;

    #[inline(always)]
    fn trips(&self, state: &mut u128, failures: u32, now: u64) -> Option<u32> {
        let newest = (*state >> NUMBER_AT) as u64;
        if newest == TRIPPED {
            return failures.checked_sub(*state as u32);
        }
        let number = now / self.slice;
        let gone = number - newest;
        let slices = if gone < u64::from(SLICES) { *state << (BITS * gone as u32) & ALL } else { 0 } + 1;
        let so_many = failures + 1;
        if so_many >= self.in_a_row || so_many >= self.most && InWindow::sum(slices) >= self.most {
            *state = u128::from(TRIPPED) << NUMBER_AT | u128::from(failures);
            return Some(0);
        }
        *state = slices | u128::from(number) << NUMBER_AT;
        None
    }
}

/// A breaker, and what trips it.
pub(in super::super) struct Breaking<T> {
    trips: T,
    breaker: Breaker,
    is_drawn: bool,
    waits: bool,
}

impl Breaking<InARow> {
    /// If failures in a row trip it, or so many of the last calls: all that it sees are failures.
    pub(super) fn in_a_row(breaker: &Breaker, waits: bool) -> Option<Self> {
        let settings = breaker.settings();
        let of_last = match settings.window {
            BreakerWindow::Calls(calls) => of_window(&settings, MIN_CALLS.min(calls)),
            BreakerWindow::Time(_) if settings.share.is_some() || settings.failures.is_some() => return None,
            BreakerWindow::Time(_) => None,
        };
        let most = settings.consecutive.into_iter().chain(of_last).min()?;
        reopens(&settings).then(|| Breaking::new(InARow(most), breaker, waits))
    }
}

impl Breaking<InWindow> {
    /// If the window is one of time, and so few failures trip it that they fit.
    pub(super) fn in_window(breaker: &Breaker, waits: bool, limit: u64) -> Option<Self> {
        let settings = breaker.settings();
        let BreakerWindow::Time(time) = settings.window else { return None };
        let slice = nanos(time) / u64::from(SLICES);
        let most = of_window(&settings, MIN_CALLS)?;
        let fits = most < 1 << BITS && slice > 0 && limit / slice < TRIPPED;
        let in_a_row = settings.consecutive.unwrap_or(u32::MAX);
        (fits && reopens(&settings)).then(|| Breaking::new(InWindow { slice, most, in_a_row }, breaker, waits))
    }
}

/// From how many calls on a share means something, if nobody says.
const MIN_CALLS: u32 = 20;

/// How many failures in the window trip it: where all calls have failed, any share is reached when there are enough of them.
fn of_window(settings: &BreakerSettings, min_calls: u32) -> Option<u32> {
    let by_share = settings.share.map(|_| settings.min_calls.unwrap_or(min_calls));
    by_share.into_iter().chain(settings.failures).min()
}

/// Whether each probe that fails opens it again, and only failures trip it.
const fn reopens(settings: &BreakerSettings) -> bool {
    matches!(settings.quirks, BreakerQuirks::None) && settings.reopen_share.is_none() && settings.slow_after.is_none()
}

impl<T> Breaking<T> {
    fn new(trips: T, breaker: &Breaker, waits: bool) -> Breaking<T> {
        Breaking { trips, breaker: breaker.fresh(), is_drawn: breaker.settings().jitter > 0.0, waits }
    }
}

impl<T: Trips> Machine for Breaking<T> {
    type State = T::State;
    const REASON: Reason = Reason::Open;

    #[inline(always)]
    fn failed(&self, state: &mut T::State, failures: u32, _: u64, now: u64, draw: impl Fn() -> u64) -> u64 {
        let Some(level) = self.trips.trips(state, failures, now) else { return 0 };
        let draw = if self.is_drawn { draw() } else { 0 };
        now.saturating_add(nanos(self.breaker.open_time(level, draw)))
    }

    #[inline(always)]
    fn pay(&self, _: &mut T::State, _: u32, _: u64) -> bool {
        true
    }

    #[inline(always)]
    fn next(
        &self,
        _: &mut T::State,
        until: u64,
        time: u64,
        draw: impl Fn() -> u64,
        within: impl Fn() -> Duration,
    ) -> Option<u64> {
        if until <= time {
            return Some(time);
        }
        let refused = Refused::new(Reason::Open, Timestamp::from_nanos(until));
        let again = refused.asks_again(Timestamp::from_nanos(time), draw()).as_nanos();
        let waits = self.waits && refused.again != Timestamp::MAX && again - time <= nanos(within());
        waits.then_some(again)
    }
}
