//! Attempts under way whose ends are known, in the order in which they will be noticed.
//!
//! Ends become known in the order in which attempts are sent, and most come in that order too: what is refused at once comes
//! back after one round trip, what waits in the server's line comes back as the line goes, and patience ends after one time
//! for all. So they stand in a few lanes, each of which is in order, where the next one is that of the first in a lane.
//! What fits behind none of them waits in a heap.

use super::held::Fate;
use relent::BreakerPass;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// An attempt under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flying {
    /// When its end will be noticed.
    pub(super) time: u64,
    pub(super) sent: u64,
    pub(super) client: u32,
    pub(super) failures: u32,
    /// The leave of a breaker, if there is one.
    pub(super) pass: Option<BreakerPass>,
    pub(super) fate: Fate,
}

impl Flying {
    /// In which order flights end: by time, then by client.
    #[inline(always)]
    const fn key(&self) -> Key {
        (self.time, self.client)
    }
}

type Key = (u64, u32);

/// Nothing comes as late.
pub(super) const NEVER: Key = (u64::MAX, u32::MAX);

const LANES: usize = 3;

/// A lane with room for more than this gives back what it no longer needs, so that it stays in the caches.
const LARGE: usize = 1 << 12;

pub(super) struct Flights {
    lanes: [VecDeque<Flying>; LANES],
    /// The ends of the lanes; of an empty one something that is not after what comes next.
    firsts: [Key; LANES],
    lasts: [Key; LANES],
    others: BinaryHeap<Reverse<Other>>,
    /// The next of all, and where it is: in a lane, or with the others.
    next: Key,
    place: usize,
}

impl Flights {
    pub(super) const fn new() -> Flights {
        Flights {
            lanes: [const { VecDeque::new() }; LANES],
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

    /// Its end is not before that of the last one that was taken out.
    #[inline(always)]
    pub(super) fn push(&mut self, flying: Flying) {
        let key = flying.key();
        // The lane whose end it is closest to: so each lane gets what comes in one order.
        let mut place = LANES;
        let mut closest = (0, 0);
        for (lane, last) in self.lasts.iter().enumerate() {
            if *last <= key && *last >= closest {
                (place, closest) = (lane, *last);
            }
        }
        match self.lanes.get_mut(place) {
            Some(lane) => {
                if lane.is_empty() {
                    self.firsts[place] = key;
                }
                lane.push_back(flying);
                self.lasts[place] = key;
            }
            None => self.others.push(Reverse(Other(flying))),
        }
        if key < self.next {
            (self.next, self.place) = (key, place);
        }
    }

    /// Takes out the next.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Flying> {
        let flying = match self.lanes.get_mut(self.place) {
            Some(lane) => {
                let flying = lane.pop_front();
                self.firsts[self.place] = lane.front().map_or(NEVER, Flying::key);
                if lane.capacity() > LARGE {
                    shrink(lane);
                }
                flying
            }
            None => self.others.pop().map(|other| other.0.0),
        };
        (self.next, self.place) = (self.others.peek().map_or(NEVER, |other| other.0.0.key()), LANES);
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
fn shrink(lane: &mut VecDeque<Flying>) {
    if lane.len() < lane.capacity() / 8 {
        lane.shrink_to(lane.len() * 2);
    }
}

/// One that fits into no lane.
struct Other(Flying);

impl PartialEq for Other {
    fn eq(&self, other: &Other) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for Other {}

impl PartialOrd for Other {
    fn partial_cmp(&self, other: &Other) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Other {
    fn cmp(&self, other: &Other) -> std::cmp::Ordering {
        self.0.key().cmp(&other.0.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::draws::Stream;
    use relent::Verdict;
    use std::collections::BTreeMap;

    fn flying(time: u64, client: u32) -> Flying {
        Flying {
            time,
            sent: time / 2,
            client,
            failures: client % 7,
            pass: None,
            fate: Fate::Failure(Verdict::Transient),
        }
    }

    /// Three orders and now and then none of them, against a sorted map.
    #[test]
    fn they_end_in_the_order_of_time_and_client() {
        let seed = std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        println!("RELENT_SEED={seed}");
        let mut draws = Stream::new(seed);
        let (mut flights, mut sorted) = (Flights::new(), BTreeMap::new());
        let (mut now, mut line, mut elsewhere) = (0, 0, 0);
        for round in 0..200_000_u32 {
            // A rush, and then fewer.
            if draws.below(100) < if round < 60_000 { 70 } else { 45 } {
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
                flights.push(flying(time, client));
                sorted.insert((time, client), round);
                elsewhere = elsewhere.max(flights.others.len());
            } else {
                let expected = sorted.pop_first().map(|(key, _)| key);
                assert_eq!(flights.next(), expected.unwrap_or(NEVER));
                let next = flights.pop();
                assert_eq!(next.map(|next| next.key()), expected);
                if let Some(next) = next {
                    assert_eq!((next.sent, next.failures), (next.time / 2, next.client % 7));
                    now = next.time + draws.below(2);
                }
            }
        }
        assert!(elsewhere > 0, "some fitted into no lane");
        assert!(
            flights.lanes.iter().all(|lane| lane.capacity() <= LARGE.max(16 * lane.len())),
            "a rush leaves no room"
        );
        while let Some((key, _)) = sorted.pop_first() {
            assert_eq!(flights.pop().map(|next| next.key()), Some(key));
        }
        assert!(flights.pop().is_none());
        assert_eq!(flights.next(), NEVER);
    }
}
