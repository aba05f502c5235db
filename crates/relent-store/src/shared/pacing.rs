//! What one process may use of a rate that all share, until the next merge.

use crate::{Booked, Booking, SharedRate};
use relent::{Permits, Timestamp};
use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// When it is worth asking again, at the earliest; a store is asked no more often.
pub(super) const SOON: Duration = Duration::from_millis(10);

/// A store that takes longer is not waited for any longer ahead.
const SLOWEST: u64 = 3_000_000_000;

/// Permits that the store granted to this process. A decision is made under a lock that is held for a few instructions; nothing
/// waits for the store.
#[derive(Debug)]
pub(super) struct Pacing {
    rate: SharedRate,
    /// How often processes tell each other, in nanoseconds.
    every: u64,
    hand: Mutex<Hand>,
    /// Somebody wants permits, and none were asked for.
    pub(super) wanted: Notify,
}

/// What is at hand. Times are nanoseconds on the clock that calls run on.
#[derive(Debug, Default)]
struct Hand {
    at_once: u32,
    /// How many come one each gap, and when the next one does.
    later: u32,
    next: u64,
    /// When those are due that were booked, and are free again.
    free: BTreeSet<u64>,
    /// Permits used, and asked for in vain, since the last merge.
    used: u32,
    missed: u32,
    /// Whether permits were asked for at the last merge.
    has_asked: bool,
    /// When the store was last heard of, and by when it is again.
    heard: u64,
    again: u64,
    /// Until when this process has earned permits alone.
    alone: u64,
    /// How long it takes from one answer to the next: so far ahead permits are asked for, and three times as long the store is not missed.
    cycle: u64,
    /// Whether the store was away since it was last heard of, which is no slowness.
    was_away: bool,
    processes: u64,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Pacing {
    pub(super) fn new(rate: SharedRate, every: Duration) -> Pacing {
        // Who comes wants to call.
        let hand = Hand { missed: 1, processes: 1, ..Hand::default() };
        Pacing { rate, every: nanos(every), hand: Mutex::new(hand), wanted: Notify::new() }
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gap(&self) -> u64 {
        nanos(self.rate.gap).max(1)
    }

    /// What to ask for until the next merge: as much as was wanted since the last, and one more. Who wanted nothing, or leaves,
    /// gives back what is left.
    pub(super) fn booking(&self, is_last: bool) -> Booking {
        let mut hand = self.hand();
        let ahead = hand.cycle.max(self.every);
        let most = (ahead / self.gap()).saturating_add(self.rate.burst.into()).saturating_add(1);
        let wants = match hand.used.saturating_add(hand.missed) {
            0 => 0,
            _ if is_last => 0,
            wants => u32::try_from(most).unwrap_or(u32::MAX).min(wants.saturating_add(1)),
        };
        let free = u32::try_from(hand.free.len()).unwrap_or(u32::MAX);
        let has = hand.at_once.saturating_add(hand.later).saturating_add(free);
        let back = has.saturating_sub(wants);
        let of_later = back.min(hand.later);
        let of_free = free.min(back - of_later);
        (0..of_free).for_each(|_| _ = hand.free.pop_last());
        (hand.later, hand.at_once) = (hand.later - of_later, hand.at_once - (back - of_later - of_free));
        (hand.used, hand.missed, hand.has_asked) = (0, 0, wants > 0);
        let within = Duration::from_nanos(ahead);
        Booking { rate: self.rate, permits: wants.saturating_sub(has), within, back }
    }

    /// The store is away: this process has its share alone, as soon as it would have had it before.
    pub(super) fn is_away(&self) {
        let mut hand = self.hand();
        (hand.cycle, hand.was_away) = (0, true);
    }

    /// What the store granted.
    pub(super) fn learn(&self, now: Timestamp, booked: Booked, processes: u64) {
        let (now, gap, mut hand) = (now.as_nanos(), self.gap(), self.hand());
        hand.lapse(now, self.every);
        let (due, free) = (hand.due(now, gap), hand.free_by(now));
        hand.free = hand.free.split_off(&now.saturating_add(1));
        (hand.at_once, hand.later) = (hand.at_once.saturating_add(due).saturating_add(free), hand.later - due);
        hand.next = hand.next.saturating_add(gap.saturating_mul(due.into()));
        if hand.later == 0 {
            hand.next = now.saturating_add(nanos(booked.wait));
        }
        hand.at_once = hand.at_once.saturating_add(booked.at_once);
        hand.later = hand.later.saturating_add(booked.permits - booked.at_once);
        let took =
            if hand.heard == 0 || std::mem::take(&mut hand.was_away) { 0 } else { now.saturating_sub(hand.heard) };
        // One that is quick now and then is not quick.
        hand.cycle = took.max(hand.cycle / 2).min(SLOWEST);
        let wait =
            if hand.has_asked && booked.permits == 0 { nanos(booked.wait).saturating_sub(self.every) } else { 0 };
        (hand.heard, hand.alone) = (now, 0);
        hand.again = now.saturating_add(wait.max(self.every));
        hand.processes = processes.max(1);
    }
}

impl Hand {
    /// How many of those that come later are there.
    fn due(&self, now: u64, gap: u64) -> u32 {
        match now.checked_sub(self.next) {
            Some(past) if self.later > 0 => (past / gap).saturating_add(1).min(self.later.into()) as u32,
            _ => 0,
        }
    }

    /// What is free again, and was due more than an interval ago, is nobody's.
    fn lapse(&mut self, now: u64, every: u64) {
        self.free = self.free.split_off(&now.saturating_sub(every));
    }

    /// How many that were booked are free again, and due.
    fn free_by(&self, now: u64) -> u32 {
        u32::try_from(self.free.range(..=now).count()).unwrap_or(u32::MAX)
    }

    /// While the store is not heard of, this process goes on with its share of the rate.
    fn earn_alone(&mut self, now: u64, every: u64, gap: u64, burst: u32) {
        let from = self.heard.saturating_add(every.max(self.cycle).saturating_mul(3)).max(self.alone);
        let share = gap.saturating_mul(self.processes);
        let earned = now.saturating_sub(from) / share;
        if earned == 0 {
            return;
        }
        self.alone = from.saturating_add(earned.saturating_mul(share));
        let most = (u64::from(burst) / self.processes).max(1) as u32;
        self.at_once = self.at_once.saturating_add(u32::try_from(earned).unwrap_or(u32::MAX)).min(most);
    }
}

impl Permits for Pacing {
    fn book(&self, now: Timestamp, within: Duration) -> Result<Duration, Duration> {
        let (now, gap, mut hand) = (now.as_nanos(), self.gap(), self.hand());
        hand.lapse(now, self.every);
        if hand.at_once == 0 && hand.later == 0 && hand.free.is_empty() {
            hand.earn_alone(now, self.every, gap, self.rate.burst);
        }
        if hand.at_once > 0 {
            (hand.at_once, hand.used) = (hand.at_once - 1, hand.used.saturating_add(1));
            return Ok(Duration::ZERO);
        }
        let free = hand.free.first().copied();
        if let Some(due) = free.or((hand.later > 0).then_some(hand.next)) {
            let wait = Duration::from_nanos(due.saturating_sub(now));
            if wait > within {
                return Err(wait);
            }
            hand.used = hand.used.saturating_add(1);
            if free.is_some() {
                hand.free.remove(&due);
            } else {
                (hand.later, hand.next) = (hand.later - 1, due.saturating_add(gap));
            }
            return Ok(wait);
        }
        // Who may wait asks twice: once for a permit that comes later.
        if within.is_zero() {
            hand.missed = hand.missed.saturating_add(1);
        }
        if !hand.has_asked {
            // Nobody wanted any. It is asked for now, and not at the next interval.
            self.wanted.notify_one();
            return Err(SOON);
        }
        Err(Duration::from_nanos(hand.again.saturating_sub(now)).max(SOON))
    }

    /// Others have booked what follows, and come when they were told to: it is there for who asks next when it is due, and not before.
    fn give_back(&self, due: Timestamp) {
        let (due, mut hand) = (due.as_nanos(), self.hand());
        if due < hand.heard.saturating_sub(self.every) {
            return;
        }
        hand.used = hand.used.saturating_sub(1);
        // Of two for one moment, one was at hand.
        if !hand.free.insert(due) {
            hand.at_once = hand.at_once.saturating_add(1);
        }
    }

    fn available(&self, now: Timestamp) -> u64 {
        let (hand, now) = (self.hand(), now.as_nanos());
        u64::from(hand.at_once) + u64::from(hand.due(now, self.gap())) + u64::from(hand.free_by(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const NO: Duration = Duration::ZERO;

    fn pacing(burst: u32) -> Pacing {
        Pacing::new(SharedRate { gap: 10 * MS, burst }, 100 * MS)
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    fn booked(permits: u32, at_once: u32, wait: Duration) -> Booked {
        Booked { permits, at_once, wait }
    }

    #[test]
    fn permits_are_used_when_they_are_due() {
        let pacing = pacing(1);
        assert_eq!((pacing.booking(false).permits, pacing.booking(false).permits), (2, 0), "nothing was wanted since");
        pacing.learn(at(0), booked(3, 1, 10 * MS), 1);
        assert_eq!(pacing.available(at(0)), 1);
        assert_eq!(pacing.book(at(0), NO), Ok(NO));
        assert_eq!(pacing.book(at(0), NO), Err(10 * MS));
        assert_eq!(pacing.book(at(0), 50 * MS), Ok(10 * MS));
        assert_eq!(pacing.available(at(25)), 1);
        assert_eq!(pacing.book(at(25), NO), Ok(NO));
        assert!(pacing.book(at(25), NO).is_err());
        assert_eq!(
            pacing.booking(false),
            Booking { permits: 5, back: 0, ..pacing.booking(false) },
            "three, one, one more"
        );
    }

    #[test]
    fn what_nobody_wanted_goes_back() {
        let pacing = pacing(9);
        pacing.learn(at(0), booked(5, 3, 10 * MS), 1);
        let _ = pacing.booking(false);
        assert_eq!(pacing.booking(false).back, 2, "one was wanted at first, and one more");
        let Booking { permits, back, .. } = pacing.booking(false);
        assert_eq!((permits, back, pacing.available(at(1000))), (0, 0, 0));
        pacing.learn(at(0), booked(5, 3, 10 * MS), 1);
        assert_eq!(pacing.book(at(0), NO), Ok(NO));
        pacing.give_back(at(0));
        assert_eq!(pacing.booking(true).back, 5);
    }

    #[test]
    fn what_is_given_back_is_there_when_it_is_due() {
        let pacing = pacing(1);
        let _ = pacing.booking(false);
        pacing.learn(at(0), booked(5, 1, 10 * MS), 1);
        let waits = [(); 5].map(|()| pacing.book(at(0), 50 * MS).unwrap().as_millis());
        assert_eq!(waits, [0, 10, 20, 30, 40]);
        [10, 40, 20].into_iter().for_each(|due| pacing.give_back(at(due)));
        assert_eq!((pacing.available(at(0)), pacing.available(at(20))), (0, 2));
        assert_eq!(pacing.book(at(5), NO), Err(5 * MS));
        let waits = [(); 4].map(|()| pacing.book(at(5), 50 * MS).ok());
        assert_eq!(waits, [Some(5 * MS), Some(15 * MS), Some(35 * MS), None]);
        // What is free counts as what is at hand: it is due at the next merge, or goes back.
        [10, 40].into_iter().for_each(|due| pacing.give_back(at(due)));
        pacing.learn(at(30), booked(0, 0, NO), 1);
        assert_eq!((pacing.available(at(30)), pacing.available(at(40))), (1, 2));
        assert_eq!(pacing.booking(true).back, 2);
        // Two that were at hand in one moment.
        pacing.learn(at(50), booked(2, 2, NO), 1);
        assert_eq!([(); 2].map(|()| pacing.book(at(50), NO)), [Ok(NO); 2]);
        [50, 50].into_iter().for_each(|due| pacing.give_back(at(due)));
        assert_eq!(pacing.available(at(50)), 2);
        // What comes back late is nobody's: the interval is of 100 ms.
        let _ = pacing.booking(true);
        pacing.learn(at(2000), booked(0, 0, 10 * MS), 1);
        [60, 1000, 1899].into_iter().for_each(|due| pacing.give_back(at(due)));
        assert_eq!(pacing.available(at(2000)), 0);
        pacing.give_back(at(1950));
        assert_eq!((pacing.book(at(2040), NO), pacing.book(at(2060), NO).is_err()), (Ok(NO), true));
        pacing.give_back(at(1950));
        assert!(pacing.book(at(2060), NO).is_err(), "it was free for an interval");
    }

    #[test]
    fn who_has_nothing_is_told_when_to_ask_again() {
        let pacing = pacing(1);
        let _ = pacing.booking(false);
        pacing.learn(at(0), booked(0, 0, 5000 * MS), 1);
        assert_eq!(pacing.book(at(0), NO), Err(4900 * MS), "it can be booked by then");
        let _ = (pacing.booking(false), pacing.booking(false));
        pacing.learn(at(0), booked(0, 0, NO), 1);
        assert_eq!(pacing.book(at(0), NO), Err(SOON), "it was idle");
        assert_eq!(pacing.booking(false).permits, 2);
    }

    #[test]
    fn without_its_store_a_process_has_its_share() {
        let pacing = pacing(1);
        let _ = pacing.booking(false);
        pacing.learn(at(1000), booked(0, 0, 10 * MS), 4);
        let granted = (1000..=3300).filter(|now| pacing.book(at(*now), NO).is_ok()).count();
        assert_eq!(granted, 50, "a quarter of a hundred a second, for two seconds after three intervals");
    }

    /// A store that answers late is asked for more at a time, and missed later: who had its share alone meanwhile would have it twice.
    #[test]
    fn a_store_that_answers_late_is_asked_further_ahead() {
        let pacing = pacing(1);
        let _ = pacing.booking(false);
        pacing.learn(at(1000), booked(0, 0, 10 * MS), 4);
        assert_eq!(pacing.booking(false).within, 100 * MS);
        pacing.learn(at(1700), booked(0, 0, 10 * MS), 4);
        let alone = |from, till| (from..=till).filter(|now| pacing.book(at(*now), NO).is_ok()).count();
        assert_eq!(alone(1700, 3800), 0, "three times as long as it took");
        let Booking { permits, within, .. } = pacing.booking(false);
        assert_eq!((permits, within), (72, 700 * MS));
        pacing.learn(at(2400), booked(3, 0, 10 * MS), 4);
        assert_eq!([2409, 2410, 2430].map(|now| pacing.available(at(now))), [0, 1, 3]);
        for (now, within) in [(2500, 350), (2600, 175), (2700, 100), (90_000, 3000)] {
            pacing.learn(at(now), booked(0, 0, 10 * MS), 4);
            assert_eq!(pacing.booking(false).within, within * MS, "{now}");
        }
        // To be away is not to be slow.
        pacing.is_away();
        pacing.learn(at(180_000), booked(0, 0, 10 * MS), 4);
        assert_eq!((pacing.booking(false).within, alone(180_000, 180_500)), (100 * MS, 5));
    }
}
