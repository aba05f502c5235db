//! How much a server gets done, measured where it must be at work: while there is a queue.

use super::measured::Measured;
use crate::core::word::Word;

/// The rate of completions while there is a queue, and whether the queue stands.
pub(super) struct Meter {
    /// When the interval began, plus 1; 0 is "no queue".
    started: Word,
    done: Word,
    /// The shortest wait of the interval.
    shortest: Word,
    pub(super) rate: Measured,
    pub(super) overloaded: Word,
}

/// Over how long it is measured.
const INTERVAL: u64 = 100_000_000;

/// A queue whose shortest wait is longer than this stands: 5 ms, as CoDel has it.
const TARGET: u64 = 5_000_000;

/// An interval with fewer completions goes on.
const LEAST_DONE: u64 = 16;

impl Meter {
    pub(super) const fn new() -> Meter {
        Meter {
            started: Word::new(0),
            done: Word::new(0),
            shortest: Word::new(u64::MAX),
            rate: Measured::new(),
            overloaded: Word::new(0),
        }
    }

    pub(super) fn completed(&self, now: u64, waited: u64, is_queued: bool, first: f64) {
        if !is_queued {
            self.overloaded.set(0);
            self.started.set(0);
            return;
        }
        let started = self.started.get();
        if started == 0 {
            self.begin(started, now);
            return;
        }
        let done = self.done.add(1) + 1;
        if waited < self.shortest.get() {
            self.shortest.set(waited);
        }
        let took = now.saturating_sub(started - 1);
        if took < INTERVAL || done < LEAST_DONE {
            return;
        }
        let shortest = self.shortest.get();
        if self.begin(started, now) {
            let sample = done as f64 * 1e9 / took as f64;
            let rate = self.rate.or(first);
            self.rate.set((rate + (sample - rate) / 4.0).clamp(1e-3, 1e9));
            self.overloaded.set(u64::from(shortest > TARGET));
        }
    }

    fn begin(&self, started: u64, now: u64) -> bool {
        let is_mine = self.started.swap_if(started, now.saturating_add(1));
        if is_mine {
            self.done.set(0);
            self.shortest.set(u64::MAX);
        }
        is_mine
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// So many completions, evenly over this interval, the last at its end; who waited least waited this long.
    fn interval(meter: &Meter, begin: u64, took: u64, done: u64, least: u64) {
        for k in 1..=done {
            let waited = if k == done.div_ceil(2) { least } else { least + 9 * MS };
            meter.completed(begin + took * k / done, waited, true, 50.0);
        }
    }

    #[test]
    fn an_interval_is_over_after_a_tenth_of_a_second_and_sixteen_completions() {
        // When, how many, and whether something is known then.
        for (took, done, is_over) in
            [(100, 16, true), (99, 16, false), (100, 15, false), (1000, 15, false), (300, 90, true)]
        {
            let meter = Meter::new();
            meter.completed(MS, 0, true, 50.0);
            // All but the last are early, so that it is the last that ends it.
            (1..done).for_each(|_| meter.completed(2 * MS, 0, true, 50.0));
            meter.completed((1 + took) * MS, 0, true, 50.0);
            let seen = done as f64 * 1e3 / took as f64;
            let known = if is_over { 50.0 + (seen - 50.0) / 4.0 } else { 50.0 };
            assert_eq!(meter.rate.or(50.0), known, "{done} in {took} ms");
        }
    }

    #[test]
    fn a_queue_stands_while_even_the_shortest_wait_is_long() {
        let meter = Meter::new();
        meter.completed(0, 0, true, 50.0);
        for (number, (least, stands)) in
            [(6 * MS, 1), (TARGET, 0), (TARGET + 1, 1), (0, 0), (90 * MS, 1)].into_iter().enumerate()
        {
            interval(&meter, number as u64 * INTERVAL, INTERVAL, 40, least);
            assert_eq!(meter.overloaded.get(), stands, "{least} ns in interval {number}");
        }
        meter.completed(6 * INTERVAL, 0, false, 50.0);
        assert_eq!(meter.overloaded.get(), 0, "nobody waits any more");
    }

    /// What an idle server did is no capacity: a queue that comes later is measured from its own beginning.
    #[test]
    fn an_interval_ends_with_its_queue() {
        let meter = Meter::new();
        meter.completed(0, 0, true, 50.0);
        interval(&meter, 0, 50 * MS, 15, 0);
        meter.completed(60 * MS, 0, false, 50.0);
        let begin = 3600 * 1000 * MS;
        meter.completed(begin, 0, true, 50.0);
        interval(&meter, begin, INTERVAL, 40, 0);
        assert_eq!(meter.rate.or(50.0), 50.0 + (400.0 - 50.0) / 4.0);
    }
}
