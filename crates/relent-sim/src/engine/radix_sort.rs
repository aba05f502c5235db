//! Sorting of a bucket's events: dealt out by the first digits of their time, then put right by insertion.
//!
//! They are many and their times are spread evenly, so that after dealing each is within a place or two of where it
//! belongs. A sort that compares takes a third of all the time of a large run. The result is the same.

/// The most digits there are: their counters fit into the fast cache.
const MOST_BITS: u32 = 14;
/// Fewer events than this are sorted by comparing.
const FEW: usize = 48;
/// More events of one digit than this are sorted by comparing.
const CROWD: u32 = 24;

/// Events in no order.
pub(crate) trait Events {
    /// Calls a function with each of them, always in the same order: the last one that came first, so that those that
    /// came in order, as a rush at one moment does, are in reverse order, which is quickly sorted.
    fn each(&self, with: impl FnMut(u64));
}

/// Sorts numbers by their upper bits, then by the others.
pub(crate) struct Sorter {
    /// For each digit how many events have it, then where the next one goes.
    counts: Box<[u32; 1 << MOST_BITS]>,
}

impl Sorter {
    pub(crate) fn new() -> Sorter {
        Sorter { counts: Box::new([0; 1 << MOST_BITS]) }
    }

    /// Writes `count` events in order into an empty vector.
    pub(crate) fn sort(&mut self, count: usize, from: &impl Events, to: &mut Vec<u64>) {
        if count < FEW {
            from.each(|event| to.push(event));
            to.sort_unstable();
            return;
        }
        let bits = (count.ilog2() + 1).min(MOST_BITS);
        let digit = |event: u64| (event >> (u64::BITS - bits)) as usize;
        let counts = &mut self.counts[..1 << bits];
        counts.fill(0);
        from.each(|event| counts[digit(event)] += 1);
        let (mut sum, mut most) = (0, 0);
        for count in counts.iter_mut() {
            most = most.max(*count);
            sum += std::mem::replace(count, sum);
        }
        // A rush at one moment.
        if most as usize > count / 2 {
            to.reserve_exact(count);
            from.each(|event| to.push(event));
            to.sort_unstable();
            return;
        }
        to.resize(count, 0);
        from.each(|event| {
            let place = &mut counts[digit(event)];
            to[*place as usize] = event;
            *place += 1;
        });
        if most > CROWD {
            sort_crowds(counts, to);
        }
        swap_neighbours(to);
        insert(to);
    }
}

/// Two passes of bubble sort in one, without a branch that could be guessed wrong: leaves little to be done.
fn swap_neighbours(events: &mut [u64]) {
    let (mut first, mut second) = (0, 0);
    for place in 0..events.len() {
        let event = events[place];
        let lesser = first.min(event);
        first = first.max(event);
        let least = second.min(lesser);
        second = second.max(lesser);
        if place >= 2 {
            events[place - 2] = least;
        }
    }
    if let [.., last_but_one, last] = events {
        *last_but_one = first.min(second);
        *last = first.max(second);
    }
}

/// Sorts the digits that many events share. `ends` has where each digit's events end.
fn sort_crowds(ends: &[u32], events: &mut [u64]) {
    let mut begin = 0;
    for &end in ends {
        if end - begin > CROWD {
            events[begin as usize..end as usize].sort_unstable();
        }
        begin = end;
    }
}

/// Insertion sort, for events that are nearly in order.
fn insert(events: &mut [u64]) {
    let mut before = 0;
    for place in 0..events.len() {
        let event = events[place];
        if event < before {
            let mut hole = place;
            while hole > 0 && events[hole - 1] > event {
                events[hole] = events[hole - 1];
                hole -= 1;
            }
            events[hole] = event;
        } else {
            before = event;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::draws::Stream;

    impl Events for Vec<u64> {
        fn each(&self, with: impl FnMut(u64)) {
            self.iter().rev().copied().for_each(with);
        }
    }

    #[test]
    fn the_order_is_that_of_the_numbers() {
        let seed = crate::engine::draws::test_seed();
        let mut draws = Stream::new(seed);
        let mut sorter = Sorter::new();
        for count in [0, 1, FEW - 1, FEW, FEW + 1, 700, 5000, 100_000] {
            // Times all over the bucket, crowded in a part of it, few, and all the same.
            for times in [1 << 22, 100_000, 5, 1] {
                let events: Vec<u64> = (0..count).map(|_| draws.below(times) << 42 | draws.below(1 << 42)).collect();
                let mut expected = events.clone();
                expected.sort_unstable();
                let mut sorted = Vec::new();
                sorter.sort(count, &events, &mut sorted);
                assert!(sorted == expected, "{count} events of {times} times");
            }
        }
    }
}
