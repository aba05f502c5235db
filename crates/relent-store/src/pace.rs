//! The arithmetic of a rate that processes share: the generic cell rate algorithm, in one row of a store.
//!
//! Kept is how much of the pace has been used ahead of the store's clock, in nanoseconds, and when that was written. So a clock
//! that leaps back gives nobody a longer wait than there was, and one that leaps forward a burst at most. Redis and Postgres say
//! the same in their own languages; all numbers stay below 2^53, which a script's are exact to.

use crate::{Booked, Booking, SharedRate, Time};
use std::time::Duration;

/// Nanoseconds: 26 days. What a burst may be ahead, and what may be waited for.
const MOST: u64 = 1 << 51;

/// Nanoseconds: a day.
const LONGEST_GAP: u64 = 86_400_000_000_000;

/// How much of the pace has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Ahead of `at`, in nanoseconds.
    pub(crate) owed: u64,
    pub(crate) at: Time,
}

/// A booking in whole numbers that every engine can add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) gap: u64,
    pub(crate) burst: u32,
    /// How far ahead permits may be at once: all of a burst but its first.
    pub(crate) ahead: u64,
    pub(crate) permits: u32,
    pub(crate) within: u64,
    pub(crate) back: u32,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Asked {
    pub(crate) fn of(booking: &Booking) -> Asked {
        let Booking { rate: SharedRate { gap, burst }, permits, within, back } = *booking;
        let (gap, burst) = (nanos(gap).clamp(1, LONGEST_GAP), burst.max(1));
        let ahead = gap.saturating_mul(u64::from(burst - 1)).min(MOST);
        Asked { gap, burst, ahead, permits, within: nanos(within).min(MOST), back }
    }

    /// The same that books nothing, and gives nothing back.
    pub(crate) fn looks(self) -> Asked {
        Asked { permits: 0, back: 0, ..self }
    }

    /// What a server says it has granted; `None` where that is no answer to this: more than was asked for, or later.
    #[cfg(any(test, feature = "redis", feature = "postgres"))]
    pub(crate) fn granted(&self, booked: Booked) -> Option<Booked> {
        let Booked { permits, at_once, wait } = booked;
        let is_in_time = permits == at_once || nanos(wait) <= self.within;
        (at_once <= permits && permits <= self.permits && is_in_time).then_some(booked)
    }

    pub(crate) fn rate(&self) -> SharedRate {
        SharedRate { gap: Duration::from_nanos(self.gap), burst: self.burst }
    }
}

impl Pace {
    /// Takes as many permits as can be had in time.
    pub(crate) fn book(self, now: Time, asked: &Asked) -> (Pace, Booked) {
        let Asked { gap, ahead, permits, within, back, .. } = *asked;
        let gone = now.0.saturating_sub(self.at.0).saturating_mul(1_000_000);
        let owed = self.owed.saturating_sub(gone).saturating_sub(gap.saturating_mul(back.into()));
        // The permit after `n` others comes when `owed + n * gap` is no more than this.
        let until = |room: u64| room.checked_sub(owed).map_or(0, |room| room / gap + 1);
        let permits = until(ahead + within).min(permits.into());
        let at_once = until(ahead).min(permits);
        let wait = Duration::from_nanos((owed + at_once * gap).saturating_sub(ahead));
        let pace = Pace { owed: owed + permits * gap, at: now };
        (pace, Booked { permits: permits as u32, at_once: at_once as u32, wait })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    fn ask(gap: Duration, burst: u32, permits: u32, within: Duration, back: u32) -> Asked {
        Asked::of(&Booking { rate: SharedRate { gap, burst }, permits, within, back })
    }

    fn booked(permits: u32, at_once: u32, wait: Duration) -> Booked {
        Booked { permits, at_once, wait }
    }

    #[test]
    fn permits_come_at_once_then_one_each_gap_then_none() {
        let start = Pace::default();
        let now = Time(1000);
        let (pace, first) = start.book(now, &ask(10 * MS, 3, 5, Duration::ZERO, 0));
        assert_eq!(first, booked(3, 3, 10 * MS));
        let (pace, then) = pace.book(now, &ask(10 * MS, 3, 5, 25 * MS, 0));
        assert_eq!(then, booked(2, 0, 10 * MS));
        let (pace, none) = pace.book(now, &ask(10 * MS, 3, 5, 25 * MS, 0));
        assert_eq!(none, booked(0, 0, 30 * MS));
        let (pace, some) = pace.book(Time(1035), &ask(10 * MS, 3, 5, Duration::ZERO, 0));
        assert_eq!(some, booked(1, 1, 5 * MS));
        let (_, all) = pace.book(Time(900_000), &ask(10 * MS, 3, 9, Duration::ZERO, 0));
        assert_eq!(all, booked(3, 3, 10 * MS), "idle hours are worth a burst");
    }

    #[test]
    fn what_was_not_used_can_be_had_again() {
        let now = Time(1000);
        let (pace, _) = Pace::default().book(now, &ask(10 * MS, 4, 4, Duration::ZERO, 0));
        let (pace, again) = pace.book(now, &ask(10 * MS, 4, 4, Duration::ZERO, 3));
        assert_eq!(again, booked(3, 3, 10 * MS));
        let (_, most) = pace.book(now, &ask(10 * MS, 4, 9, Duration::ZERO, u32::MAX));
        assert_eq!(most.permits, 4, "more than a burst never comes back");
    }

    #[test]
    fn a_clock_that_leaps_back_makes_no_wait_longer() {
        let (pace, _) = Pace::default().book(Time(10_000_000), &ask(10 * MS, 1, 1, Duration::ZERO, 0));
        assert_eq!(pace.book(Time(5_000), &ask(10 * MS, 1, 1, Duration::ZERO, 0)).1, booked(0, 0, 10 * MS));
    }

    #[test]
    fn what_was_not_asked_for_is_no_answer() {
        let asked = ask(10 * MS, 3, 2, 25 * MS, 0);
        for (granted, answer) in [
            (booked(2, 0, 25 * MS), true),
            (booked(2, 2, Duration::MAX), true),
            (booked(0, 0, Duration::MAX), true),
            (booked(1, 0, 26 * MS), false),
            (booked(2, 1, Duration::MAX), false),
            (booked(3, 3, MS), false),
            (booked(1, 2, MS), false),
        ] {
            assert_eq!(asked.granted(granted).is_some(), answer, "{granted:?}");
        }
    }

    proptest! {
        /// Whatever is asked, no more than the rate is granted, and no number leaves what scripts can count.
        #[test]
        fn never_more_than_the_rate(
            gap in 1u64..200_000_000, burst in 1u32..50,
            steps in proptest::collection::vec((0u64..300, 0u32..60, 0u64..400), 1..80),
        ) {
            let (mut pace, mut now, mut sum) = (Pace::default(), Time(1_800_000_000_000), 0u64);
            let (start, mut latest) = (now, now);
            for (later, permits, within) in steps {
                now = Time(now.0 + later);
                let asked = ask(Duration::from_nanos(gap), burst, permits, Duration::from_millis(within), 0);
                let told;
                (pace, told) = pace.book(now, &asked);
                prop_assert!(told.at_once <= told.permits && told.permits <= permits);
                prop_assert_eq!(asked.granted(told), Some(told));
                prop_assert!(pace.owed < 1 << 53);
                sum += u64::from(told.permits);
                // Whoever waited longest has booked furthest ahead.
                latest = latest.max(Time(now.0 + within));
                let allowed = (latest.0 - start.0) * 1_000_000 / gap + u64::from(burst);
                prop_assert!(sum <= allowed, "{sum} of {allowed}");
            }
        }

        #[test]
        fn no_booking_is_too_much(
            gap in any::<Duration>(), burst in any::<u32>(), permits in any::<u32>(), within in any::<Duration>(),
            back in any::<u32>(), at in any::<u64>(), now in any::<u64>(), owed in 0u64..1 << 53,
        ) {
            let pace = Pace { owed, at: Time(at) };
            let (pace, told) = pace.book(Time(now), &ask(gap, burst, permits, within, back));
            prop_assert!(told.at_once <= told.permits && told.permits <= permits);
            prop_assert!(pace.owed < 1 << 54);
        }
    }
}
