//! Attempts under way whose ends are known, in the order in which they will be noticed.
//!
//! Ends become known in the order in which attempts are sent, and most come in that order too: what is refused at once comes
//! back after one round trip, what waits in the server's line comes back as the line goes, and patience ends after one time
//! for all. So they stand in a few lanes, each of which is in order, where the next one is that of the first in a lane.
//! What fits behind none of them waits in a heap.

use super::held::{Fate, Flight};
use relent::Verdict;
use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, VecDeque},
};

/// An attempt under way, and what else is remembered of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flying<M> {
    pub(super) client: u32,
    pub(super) failures: u32,
    pub(super) memory: M,
    pub(super) flight: Flight,
}

/// In which order flights end: by time, then by client.
type Key = (u64, u32);

/// Nothing comes as late.
pub(super) const NEVER: Key = (u64::MAX, u32::MAX);

const LANES: usize = 3;

/// A lane with room for more than this gives back what it no longer needs, so that it stays in the caches.
const LARGE: usize = 1 << 12;

pub(super) struct Flights<M> {
    lanes: [Lane<M>; LANES],
    /// The ends of the lanes; of an empty one the last that it had.
    firsts: [Key; LANES],
    lasts: [Key; LANES],
    others: BinaryHeap<Reverse<Other<M>>>,
    /// The next of all, and where it is: in a lane, or with the others.
    next: Key,
    place: usize,
}

/// Flights in order, each in half a line of the cache. What a server told with a time in it stands beside them.
struct Lane<M> {
    flights: VecDeque<Packed<M>>,
    told: VecDeque<Fate>,
}

/// A flight whose attempt was sent in the first 36 years, as all are but those of absurd worlds.
#[derive(Clone, Copy)]
struct Packed<M> {
    time: u64,
    /// When it was sent, and above it what became of it.
    sent: u64,
    client: u32,
    failures: u32,
    memory: M,
}

const FATE_AT: u32 = 60;
const TOLD: u64 = 7;
/// What becomes of an attempt, by number; the last is one with a time in it.
const FATES: [Fate; TOLD as usize] = [
    Fate::Success,
    Fate::Failure(Verdict::Transient),
    Fate::Failure(Verdict::Permanent),
    Fate::Failure(Verdict::Overloaded),
    Fate::TimedOut(Verdict::Transient),
    Fate::TimedOut(Verdict::Permanent),
    Fate::TimedOut(Verdict::Overloaded),
];

#[inline(always)]
const fn number_of(fate: Fate) -> u64 {
    match fate {
        Fate::Success => 0,
        Fate::Failure(Verdict::Transient) => 1,
        Fate::Failure(Verdict::Permanent) => 2,
        Fate::Failure(Verdict::Overloaded) => 3,
        Fate::TimedOut(Verdict::Transient) => 4,
        Fate::TimedOut(Verdict::Permanent) => 5,
        Fate::TimedOut(Verdict::Overloaded) => 6,
        Fate::Failure(_) | Fate::TimedOut(_) => TOLD,
    }
}

impl<M: Copy> Lane<M> {
    const fn new() -> Lane<M> {
        Lane { flights: VecDeque::new(), told: VecDeque::new() }
    }

    #[inline(always)]
    fn push(&mut self, time: u64, flying: Flying<M>) {
        let Flying { client, failures, memory, flight: Flight { sent, fate } } = flying;
        let number = number_of(fate);
        if number == TOLD {
            self.told.push_back(fate);
        }
        self.flights.push_back(Packed { time, sent: number << FATE_AT | sent, client, failures, memory });
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Flying<M>> {
        let Packed { sent, client, failures, memory, .. } = self.flights.pop_front()?;
        let fate = match FATES.get((sent >> FATE_AT) as usize) {
            Some(fate) => *fate,
            None => self.told.pop_front()?,
        };
        if self.flights.capacity() > LARGE {
            shrink(&mut self.flights);
            shrink(&mut self.told);
        }
        let sent = sent & ((1 << FATE_AT) - 1);
        Some(Flying { client, failures, memory, flight: Flight { sent, fate } })
    }

    #[inline(always)]
    fn first(&self) -> Key {
        self.flights.front().map_or(NEVER, |first| (first.time, first.client))
    }
}

impl<M: Copy> Flights<M> {
    pub(super) const fn new() -> Flights<M> {
        Flights {
            lanes: [const { Lane::new() }; LANES],
            firsts: [NEVER; LANES],
            lasts: [(0, 0); LANES],
            others: BinaryHeap::new(),
            next: NEVER,
            place: LANES,
        }
    }

    /// The time and the client of the next, or [`NEVER`].
    #[inline(always)]
    pub(super) const fn next(&self) -> Key {
        self.next
    }

    /// A flight that ends then: not before the last one that was taken out.
    #[inline(always)]
    pub(super) fn push(&mut self, time: u64, flying: Flying<M>) {
        let key = (time, flying.client);
        // The lane whose end it is closest to: so each lane gets what comes in one order.
        let mut place = LANES;
        let mut closest = (0, 0);
        if flying.flight.sent < 1 << FATE_AT {
            for (lane, last) in self.lasts.iter().enumerate() {
                if *last <= key && *last >= closest {
                    (place, closest) = (lane, *last);
                }
            }
        }
        match self.lanes.get_mut(place) {
            Some(lane) => {
                lane.push(time, flying);
                self.lasts[place] = key;
                self.firsts[place] = self.firsts[place].min(key);
            }
            None => self.others.push(Reverse(Other(time, flying))),
        }
        if key < self.next {
            (self.next, self.place) = (key, place);
        }
    }

    /// Takes out the next.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Flying<M>> {
        let flying = match self.lanes.get_mut(self.place) {
            Some(lane) => {
                let flying = lane.pop();
                self.firsts[self.place] = lane.first();
                flying
            }
            None => self.others.pop().map(|other| other.0.1),
        };
        (self.next, self.place) = (self.others.peek().map_or(NEVER, |other| other.0.key()), LANES);
        for (lane, first) in self.firsts.iter().enumerate() {
            if *first < self.next {
                (self.next, self.place) = (*first, lane);
            }
        }
        flying
    }
}

/// Gives back what a rush has left behind.
#[inline(always)]
pub(super) fn shrink<T>(lane: &mut VecDeque<T>) {
    if lane.capacity() > LARGE && lane.len() < lane.capacity() / 8 {
        lane.shrink_to(lane.len() * 2);
    }
}

/// One that fits into no lane, and when it ends.
struct Other<M>(u64, Flying<M>);

impl<M> Other<M> {
    const fn key(&self) -> Key {
        (self.0, self.1.client)
    }
}

impl<M> PartialEq for Other<M> {
    fn eq(&self, other: &Other<M>) -> bool {
        self.key() == other.key()
    }
}

impl<M> Eq for Other<M> {}

impl<M> PartialOrd for Other<M> {
    fn partial_cmp(&self, other: &Other<M>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> Ord for Other<M> {
    fn cmp(&self, other: &Other<M>) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::draws::Stream;
    use relent::BreakerPass;
    use std::{collections::BTreeMap, time::Duration};

    fn flying(time: u64, client: u32) -> Flying<u64> {
        let told = [Verdict::After(Duration::MAX), Verdict::Turn(Duration::from_nanos(time)), Verdict::Transient];
        let told = told[client as usize % 3];
        let fates = [Fate::Failure(told), Fate::TimedOut(told)].into_iter().chain(FATES);
        let fate = fates.cycle().nth(client as usize % 1000).unwrap();
        // Some were sent too late for half a line.
        let sent = if client.is_multiple_of(997) { u64::MAX - time } else { time / 2 };
        Flying { client, failures: client.rotate_left(9), memory: !time, flight: Flight { sent, fate } }
    }

    /// Three orders and now and then none of them, against a sorted map.
    #[test]
    fn they_end_in_the_order_of_time_and_client() {
        let seed = crate::engine::draws::test_seed();
        let mut draws = Stream::new(seed);
        let (mut flights, mut sorted) = (Flights::new(), BTreeMap::new());
        let (mut now, mut line, mut elsewhere) = (0, 0, 0);
        for round in 0..100_000_u32 {
            // A rush, and then fewer.
            if draws.below(100) < if round < 40_000 { 70 } else { 45 } {
                line = (now + 500).max(line + draws.below(3));
                let time = match draws.below(8) {
                    0..4 => now + 100,
                    4..6 => line,
                    6 => now + 5000,
                    _ => now + draws.below(9000),
                };
                let client = draws.below(1_000_000) as u32;
                if sorted.contains_key(&(time, client)) {
                    continue;
                }
                flights.push(time, flying(time, client));
                sorted.insert((time, client), round);
                elsewhere = elsewhere.max(flights.others.len());
            } else {
                let expected = sorted.pop_first().map(|(key, _)| key);
                assert_eq!(flights.next(), expected.unwrap_or(NEVER));
                let next = flights.pop();
                let same = expected.map(|(time, client)| flying(time, client));
                assert_eq!(format!("{next:?}"), format!("{same:?}"));
                if let Some((time, _)) = expected {
                    now = time + draws.below(2);
                }
            }
        }
        assert!(elsewhere > 0, "some fitted into no lane");
        let is_tidy = |lane: &Lane<u64>| lane.flights.capacity() <= LARGE.max(16 * lane.flights.len());
        assert!(flights.lanes.iter().all(is_tidy), "a rush leaves no room");
        while let Some((key, _)) = sorted.pop_first() {
            assert_eq!(flights.next(), key);
            assert_eq!(flights.pop().map(|next| next.client), Some(key.1));
        }
        assert!(flights.pop().is_none());
        assert_eq!(flights.next(), NEVER);
    }

    #[test]
    fn fates_are_known_by_their_numbers() {
        for (number, fate) in FATES.into_iter().enumerate() {
            assert_eq!(number_of(fate), number as u64, "{fate:?}");
        }
        assert!(size_of::<Packed<Option<BreakerPass>>>() <= 32, "half a line of the cache");
    }
}
