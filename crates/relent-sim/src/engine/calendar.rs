//! The queue of coming events: who arrives at the server when.
//!
//! A ring of buckets of about four milliseconds. Putting an event in is a write to the bucket's chunk that is being
//! filled; a bucket is sorted when its time comes. Full chunks are in a pool that all buckets share, so that memory
//! follows the number of events. An event is eight bytes: its place in the bucket's time, the client, and the attempts
//! behind it, so sorting the numbers sorts by time and then by client. Events beyond the ring wait in an overflow. The
//! results are those of a binary heap, event for event; `Heap` is that heap, for tests.

use super::radix_sort::{Events, Sorter};
use std::{
    cmp::Reverse, collections::BTreeMap, collections::BinaryHeap, collections::binary_heap::PeekMut, ops::Range,
};

/// An arrival at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    /// Nanoseconds from the start.
    pub(crate) time: u64,
    /// Which client.
    pub(crate) client: u32,
    /// Attempts that this client made before.
    pub(crate) failures: u32,
}

/// Events out in the order of time, then client.
pub(crate) trait Queue {
    /// Adds an event. Its time is not before that of the last one taken out.
    fn push(&mut self, event: Event);
    /// Takes out the next event.
    fn pop(&mut self) -> Option<Event>;
    /// Takes out the next event if its time and client come before these. If not, nothing is added from now on whose time is
    /// before that one. Events that are [put off](PutOff) may be left out.
    fn pop_before(&mut self, time: u64, client: u32, put_off: &mut impl PutOff) -> Option<Event>;
    /// Whose events will be among the next, as far as that is known: so many at most. For bringing near what is kept of them;
    /// others may come before.
    fn coming(&self, most: usize, with: impl FnMut(u32));
}

/// Says of events that come whether nothing will happen then but that they are put in again at a later time, whatever
/// happens until then. That spares taking them out in their order.
pub(crate) trait PutOff {
    /// Whether there may be such from this time on.
    fn is_asked(&self, from: u64) -> bool;
    /// The later time.
    fn until(&mut self, event: Event) -> Option<u64>;
}

/// Nothing is.
pub(crate) struct Never;

impl PutOff for Never {
    fn is_asked(&self, _: u64) -> bool {
        false
    }
    fn until(&mut self, _: Event) -> Option<u64> {
        None
    }
}

/// 2^22 ns: a bucket is 4.2 ms wide. Narrower ones sort faster, but their ends no longer fit into the fast caches.
const SLOT_BITS: u32 = 22;
/// The ring reaches 17 s ahead.
const RING: u64 = 1 << 12;
const CLIENT_BITS: u32 = 32;
const FAILURE_BITS: u32 = 10;
/// Marks an event whose number of failures did not fit.
const SPILLED: u64 = (1 << FAILURE_BITS) - 1;

/// The ring of buckets.
pub(crate) struct Calendar {
    ring: Buckets,
    /// The slot being taken out, its events from `next` on, and late arrivals in it.
    slot: u64,
    current: Vec<u64>,
    next: usize,
    late: BinaryHeap<Reverse<u64>>,
    sorter: Sorter,
    /// Those of a bucket who are asked whether they are put off.
    asked: Asked,
    /// Events beyond the ring, by revolution of the ring.
    overflow: BTreeMap<u64, Vec<Event>>,
    spilled: BTreeMap<u32, u32>,
    waiting: u64,
}

impl Calendar {
    pub(crate) fn new() -> Calendar {
        Calendar {
            ring: Buckets::new(),
            slot: 0,
            current: Vec::new(),
            next: 0,
            late: BinaryHeap::new(),
            sorter: Sorter::new(),
            asked: Asked(Vec::new()),
            overflow: BTreeMap::new(),
            spilled: BTreeMap::new(),
            waiting: 0,
        }
    }

    #[inline]
    fn pack(&mut self, event: Event) -> u64 {
        let offset = event.time & ((1 << SLOT_BITS) - 1);
        let mut failures = u64::from(event.failures);
        if failures >= SPILLED {
            self.spilled.insert(event.client, event.failures);
            failures = SPILLED;
        }
        offset << (CLIENT_BITS + FAILURE_BITS) | u64::from(event.client) << FAILURE_BITS | failures
    }

    #[inline]
    fn unpack(&self, packed: u64) -> Event {
        let client = (packed >> FAILURE_BITS) as u32;
        let failures = match packed & SPILLED {
            SPILLED => self.spilled[&client],
            failures => failures as u32,
        };
        let offset = packed >> (CLIENT_BITS + FAILURE_BITS);
        Event { time: (self.slot - 1) << SLOT_BITS | offset, client, failures }
    }

    /// A late arrival, if it comes before the others.
    #[inline(never)]
    fn pop_late(&mut self, first: Option<u64>) -> Option<u64> {
        let late = self.late.peek_mut()?;
        first.is_none_or(|first| late.0 < first).then(|| PeekMut::pop(late).0)
    }

    /// Goes to the next slot that holds events, but not beyond this one.
    #[cold]
    fn advance(&mut self, last: u64, put_off: &mut impl PutOff) -> bool {
        if self.waiting == 0 && self.overflow.is_empty() {
            return false;
        }
        loop {
            if self.waiting == 0
                && let Some((&revolution, _)) = self.overflow.first_key_value()
            {
                self.slot = self.slot.max((revolution * RING - 1).min(last));
            }
            if self.slot >= last {
                return false;
            }
            self.slot += 1;
            if self.slot.is_multiple_of(RING)
                && let Some(events) = self.overflow.remove(&(self.slot / RING))
            {
                for event in events {
                    self.push_ring(event);
                }
            }
            let bucket = (self.slot % RING) as usize;
            if self.ring.is_empty(bucket) {
                continue;
            }
            self.next = 0;
            if !put_off.is_asked((self.slot - 1) << SLOT_BITS) {
                self.ring.take(bucket, &mut self.sorter, &mut self.current);
                self.waiting -= self.current.len() as u64;
                return true;
            }
            self.take_without(bucket, put_off);
            if !(self.current.is_empty() && self.late.is_empty()) {
                return true;
            }
        }
    }

    /// Takes a bucket, and puts in again at once who is put off.
    #[inline(never)]
    fn take_without(&mut self, bucket: usize, put_off: &mut impl PutOff) {
        let mut asked = std::mem::replace(&mut self.asked, Asked(Vec::new()));
        self.ring.take_all(bucket, &mut asked.0);
        let all = asked.0.len();
        self.waiting -= all as u64;
        let mut kept = 0;
        for place in 0..all {
            let event = self.unpack(asked.0[place]);
            match put_off.until(event) {
                Some(time) => self.push(Event { time, ..event }),
                None => {
                    asked.0[kept] = asked.0[place];
                    kept += 1;
                }
            }
        }
        asked.0.truncate(kept);
        if self.current.capacity() > LARGE {
            self.current = Vec::new();
        }
        self.current.clear();
        self.sorter.sort(kept, &asked, &mut self.current);
        if asked.0.capacity() <= LARGE {
            self.asked = asked;
        }
    }

    #[inline(always)]
    fn push_ring(&mut self, event: Event) {
        let packed = self.pack(event);
        self.ring.push((slot_of(event.time) % RING) as usize, packed);
        self.waiting += 1;
    }
}

/// Events of a chunk: half a kilobyte. Chunks lie anywhere in memory, so that smaller ones cost more misses, and larger
/// ones more memory.
const CHUNK: usize = 64;

/// The end of a chain of chunks.
const END: u32 = u32::MAX;

/// A vector of more events than this is not kept.
const LARGE: usize = 1 << 16;

/// Buckets as chains of chunks out of one pool.
///
/// The last chunk of each bucket, the one that is being filled, is not in the pool but beside those of the other
/// buckets: events go to a random bucket, and the ends of all of them together are small enough for the caches.
struct Buckets {
    /// How many events each bucket has.
    counts: Vec<u32>,
    filling: Vec<u64>,
    /// The last full chunk of each bucket.
    full: Vec<u32>,
    pool: Vec<u64>,
    /// For each chunk of the pool the one before it in its bucket, or the next free one.
    links: Vec<u32>,
    free: u32,
}

impl Buckets {
    fn new() -> Buckets {
        let ring = RING as usize;
        Buckets {
            counts: vec![0; ring],
            filling: vec![0; ring * CHUNK],
            full: vec![END; ring],
            pool: Vec::new(),
            links: Vec::new(),
            free: END,
        }
    }

    fn is_empty(&self, bucket: usize) -> bool {
        self.counts[bucket] == 0
    }

    #[inline(always)]
    fn push(&mut self, bucket: usize, event: u64) {
        let count = &mut self.counts[bucket];
        let place = *count as usize % CHUNK;
        *count += 1;
        self.filling[bucket * CHUNK + place] = event;
        if place == CHUNK - 1 {
            self.put_away(bucket);
        }
    }

    /// Moves the chunk that a bucket has filled into the pool.
    fn put_away(&mut self, bucket: usize) {
        let chunk = &self.filling[place_of(bucket)];
        let before = self.full[bucket];
        if self.free == END {
            self.full[bucket] = self.links.len() as u32;
            self.pool.extend_from_slice(chunk);
            self.links.push(before);
            return;
        }
        let place = self.free;
        self.free = std::mem::replace(&mut self.links[place as usize], before);
        self.pool[place_of(place as usize)].copy_from_slice(chunk);
        self.full[bucket] = place;
    }

    /// Moves a bucket's events, in order, into a vector.
    fn take(&mut self, bucket: usize, sorter: &mut Sorter, events: &mut Vec<u64>) {
        // The vector of a rush, such as the herd's first, is given back when it is over.
        if events.capacity() > LARGE {
            *events = Vec::new();
        }
        events.clear();
        let count = std::mem::take(&mut self.counts[bucket]) as usize;
        let last = std::mem::replace(&mut self.full[bucket], END);
        let chain = Chain {
            newest: &self.filling[place_of(bucket)][..count % CHUNK],
            last,
            pool: &self.pool,
            links: &self.links,
        };
        sorter.sort(count, &chain, events);
        if let Some(first) = chain.chunks().last() {
            self.links[first as usize] = std::mem::replace(&mut self.free, last);
        }
    }

    /// Moves a bucket's events into a vector, the first that came last.
    fn take_all(&mut self, bucket: usize, events: &mut Vec<u64>) {
        events.clear();
        let count = std::mem::take(&mut self.counts[bucket]) as usize;
        let last = std::mem::replace(&mut self.full[bucket], END);
        let newest = &self.filling[place_of(bucket)][..count % CHUNK];
        let chain = Chain { newest, last, pool: &self.pool, links: &self.links };
        events.reserve(count);
        chain.each(|event| events.push(event));
        if let Some(first) = chain.chunks().last() {
            self.links[first as usize] = std::mem::replace(&mut self.free, last);
        }
    }
}

/// Events of a bucket, the first that came last.
struct Asked(Vec<u64>);

impl Events for Asked {
    #[inline(always)]
    fn each(&self, with: impl FnMut(u64)) {
        self.0.iter().copied().for_each(with);
    }
}

/// Where the events of a chunk are among those of all.
const fn place_of(chunk: usize) -> Range<usize> {
    chunk * CHUNK..(chunk + 1) * CHUNK
}

/// What is in one bucket.
struct Chain<'a> {
    newest: &'a [u64],
    last: u32,
    pool: &'a [u64],
    links: &'a [u32],
}

impl Chain<'_> {
    fn chunks(&self) -> impl Iterator<Item = u32> {
        let mut chunk = self.last;
        std::iter::from_fn(move || {
            let this = chunk;
            (this != END).then(|| {
                chunk = self.links[this as usize];
                this
            })
        })
    }
}

impl Events for Chain<'_> {
    #[inline(always)]
    fn each(&self, mut with: impl FnMut(u64)) {
        self.newest.iter().rev().for_each(|event| with(*event));
        for chunk in self.chunks() {
            self.pool[place_of(chunk as usize)].iter().rev().for_each(|event| with(*event));
        }
    }
}

/// Slots count from 1, so that before the first one is taken out nothing is late.
const fn slot_of(time: u64) -> u64 {
    (time >> SLOT_BITS) + 1
}

impl Queue for Calendar {
    #[inline(always)]
    fn push(&mut self, event: Event) {
        let slot = slot_of(event.time);
        if slot <= self.slot {
            let packed = self.pack(event);
            self.late.push(Reverse(packed));
        } else if slot - self.slot < RING {
            self.push_ring(event);
        } else {
            self.overflow.entry(slot / RING).or_default().push(event);
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Event> {
        loop {
            let first = self.current.get(self.next).copied();
            if !self.late.is_empty()
                && let Some(late) = self.pop_late(first)
            {
                return Some(self.unpack(late));
            }
            if let Some(first) = first {
                self.next += 1;
                return Some(self.unpack(first));
            }
            if !self.advance(u64::MAX, &mut Never) {
                return None;
            }
        }
    }

    #[inline(always)]
    fn pop_before(&mut self, time: u64, client: u32, put_off: &mut impl PutOff) -> Option<Event> {
        let last = slot_of(time);
        loop {
            let bound = match last == self.slot {
                true => {
                    (time & ((1 << SLOT_BITS) - 1)) << (CLIENT_BITS + FAILURE_BITS) | u64::from(client) << FAILURE_BITS
                }
                false => u64::MAX,
            };
            let first = self.current.get(self.next).copied();
            let before = first.unwrap_or(bound).min(bound);
            if !self.late.is_empty()
                && let Some(late) = self.pop_late(Some(before))
            {
                return Some(self.unpack(late));
            }
            match first {
                Some(first) if first < bound => {
                    self.next += 1;
                    return Some(self.unpack(first));
                }
                None if self.advance(last, put_off) => {}
                _ => return None,
            }
        }
    }

    #[inline]
    fn coming(&self, most: usize, mut with: impl FnMut(u32)) {
        self.current[self.next..].iter().take(most).for_each(|packed| with((packed >> FAILURE_BITS) as u32));
    }
}

/// A plain binary heap: the oracle that the ring is tested against.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Heap(BinaryHeap<Reverse<Event>>);

#[cfg(test)]
impl Queue for Heap {
    fn push(&mut self, event: Event) {
        self.0.push(Reverse(event));
    }

    fn pop(&mut self) -> Option<Event> {
        self.0.pop().map(|Reverse(event)| event)
    }

    fn pop_before(&mut self, time: u64, client: u32, _: &mut impl PutOff) -> Option<Event> {
        let next = self.0.peek()?.0;
        ((next.time, next.client) < (time, client)).then(|| self.pop()).flatten()
    }

    fn coming(&self, _: usize, _: impl FnMut(u32)) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::draws::Stream;

    #[test]
    fn the_ring_is_a_heap() {
        let seed = crate::engine::draws::test_seed();
        let mut draws = Stream::new(seed);
        let (mut ring, mut heap) = (Calendar::new(), Heap::default());
        let push = |ring: &mut Calendar, heap: &mut Heap, draws: &mut Stream, now: u64, client: u32| {
            // Delays from nothing to several revolutions of the ring.
            let scale = 1 << draws.below(38);
            let failures = if draws.below(4) == 0 { draws.below(10_000) } else { draws.below(20) } as u32;
            let event = Event { time: now + draws.below(scale), client, failures };
            ring.push(event);
            heap.push(event);
        };
        for client in 0..2_000 {
            push(&mut ring, &mut heap, &mut draws, 0, client);
        }
        let mut left = 50_000;
        while let Some(event) = heap.pop() {
            assert_eq!(ring.pop(), Some(event));
            if left > 0 {
                left -= 1;
                push(&mut ring, &mut heap, &mut draws, event.time, event.client);
            }
        }
        assert_eq!(ring.pop(), None);
    }

    /// Events of even times come back at odd ones, which may be soon.
    struct Even;

    impl PutOff for Even {
        fn is_asked(&self, _: u64) -> bool {
            true
        }

        fn until(&mut self, event: Event) -> Option<u64> {
            let wait = 1 << (event.client % 30);
            event.time.is_multiple_of(2).then_some((event.time + wait) | 1)
        }
    }

    /// The next that is not put off, whoever notices that it is.
    fn pop(queue: &mut impl Queue, bound: u64, client: u32) -> Option<Event> {
        loop {
            let event = queue.pop_before(bound, client, &mut Even)?;
            let Some(time) = Even.until(event) else { return Some(event) };
            queue.push(Event { time, ..event });
        }
    }

    /// What comes from elsewhere in between is taken in its turn, and may add events at its own time.
    #[test]
    fn up_to_a_bound_the_ring_is_a_heap() {
        let seed = crate::engine::draws::test_seed();
        let mut draws = Stream::new(seed);
        let (mut ring, mut heap) = (Calendar::new(), Heap::default());
        let (mut now, mut taken, mut left) = (0, 0, 60_000_u32);
        let push = |ring: &mut Calendar, heap: &mut Heap, draws: &mut Stream, left: &mut u32, now: u64| {
            let Some(fewer) = left.checked_sub(1) else { return };
            *left = fewer;
            let scale = 1 << draws.below(38);
            let event = Event { time: now + draws.below(scale), client: draws.below(50) as u32, failures: fewer % 20 };
            ring.push(event);
            heap.push(event);
        };
        while left > 0 || !heap.0.is_empty() {
            push(&mut ring, &mut heap, &mut draws, &mut left, now);
            // Often a bound is at an event that is there.
            let near = heap.0.peek().map_or(0, |next| next.0.time.saturating_sub(now)) * draws.below(2);
            let scale = 1 << draws.below(36);
            let bound = now + near + draws.below(scale) * draws.below(2);
            let client = draws.below(50) as u32;
            loop {
                let event = pop(&mut heap, bound, client);
                assert_eq!(pop(&mut ring, bound, client), event);
                let Some(event) = event else { break };
                taken += 1;
                if draws.below(2) == 0 {
                    push(&mut ring, &mut heap, &mut draws, &mut left, event.time);
                }
            }
            now = bound;
        }
        assert_eq!(taken, 60_000);
        assert_eq!(ring.pop(), None);
    }
}
