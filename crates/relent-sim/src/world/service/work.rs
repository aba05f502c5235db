//! A first-come-first-served queue whose completions are known at the arrival.

use crate::scenario::speed::Speed;
use crate::{
    engine::control::{Control, TICK},
    engine::draws::{self, Draws, Purpose},
    scenario::{Server, Service},
    time::PreciseTime,
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// The time a request takes at one worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    mean: PreciseTime,
    exponential: bool,
}

impl Work {
    pub(crate) fn new(server: &Server) -> Work {
        let mean = match server.capacity {
            Some(capacity) => PreciseTime::period(capacity / f64::from(server.workers)),
            None => PreciseTime::ZERO,
        };
        Work { mean, exponential: server.exponential }
    }

    /// The time of one attempt; `cost` in units of a read's.
    #[inline]
    pub(crate) fn take(&self, draws: &Draws, client: u32, attempt: u32, cost: f64) -> PreciseTime {
        let mut time = self.mean;
        if self.exponential {
            time = time.times(draws::exponential(draws.world(u64::from(client), attempt, Purpose::Service)));
        }
        if cost == 1.0 { time } else { time.times(cost) }
    }
}

/// Requests inside, as the times of their completion.
#[derive(Debug)]
pub(crate) struct Line {
    speed: Speed,
    latency: u64,
    /// One worker: completions in order.
    single: VecDeque<u64>,
    last: PreciseTime,
    /// Several workers: when each is free, and the completions.
    workers: BinaryHeap<Reverse<PreciseTime>>,
    several: BinaryHeap<Reverse<u64>>,
    /// How many requests are inside, and when the first of them leaves.
    inside: u64,
    leaves: u64,
    /// No capacity: nobody waits, and nobody is counted.
    endless: bool,
    /// Whether it matters how many are inside. Of a queue without a limit that clients have long left, nothing need be
    /// remembered but when its work will be done.
    counts: bool,
    pub(crate) busy: PreciseTime,
}

impl Line {
    pub(crate) fn new(service: &Service) -> Line {
        let server = &service.server;
        let several = if server.workers > 1 { server.workers as usize } else { 0 };
        Line {
            speed: Speed::new(&service.troubles),
            latency: crate::time::nanos(server.latency),
            single: VecDeque::new(),
            last: PreciseTime::ZERO,
            workers: (0..several).map(|_| Reverse(PreciseTime::ZERO)).collect(),
            several: BinaryHeap::new(),
            inside: 0,
            leaves: u64::MAX,
            endless: server.capacity.is_none(),
            counts: server.queue.is_some(),
            busy: PreciseTime::ZERO,
        }
    }

    /// How many requests are inside; a completion at `now` has left.
    #[inline]
    pub(crate) fn inside(&mut self, now: u64) -> u64 {
        if now >= self.leaves {
            self.leave(now);
        }
        self.inside
    }

    /// Takes room for all who may enter until the next look, of a queue with room for so many.
    pub(super) fn make_room(&mut self, queue: u64, control: &Control) {
        if self.counts {
            let more = queue.saturating_sub(self.inside).min(TICK) as usize;
            let _ = match self.workers.is_empty() {
                true => control.has_room(&mut self.single, more),
                false => control.has_room(&mut self.several, more),
            };
        }
    }

    fn leave(&mut self, now: u64) {
        while self.single.front().is_some_and(|done| *done <= now) {
            self.single.pop_front();
        }
        while self.several.peek().is_some_and(|done| done.0 <= now) {
            self.several.pop();
        }
        self.inside = (self.single.len() + self.several.len()) as u64;
        self.leaves = self.single.front().copied().or(self.several.peek().map(|done| done.0)).unwrap_or(u64::MAX);
    }

    /// When all the work inside will be done by the worker that is free first.
    #[inline]
    pub(crate) fn free_at(&self) -> PreciseTime {
        self.workers.peek().map_or(self.last, |free| free.0)
    }

    /// Takes a request in; returns when the server has completed it.
    #[inline]
    pub(crate) fn enter(&mut self, now: u64, work: PreciseTime) -> u64 {
        let now = PreciseTime::from_nanos(now);
        self.busy = self.busy.plus(work);
        if self.endless {
            return self.speed.finish(now, PreciseTime::from_nanos(self.latency)).nanos();
        }
        let done = if let Some(Reverse(free)) = self.workers.pop() {
            let done = self.speed.finish(free.max(now), work);
            self.workers.push(Reverse(done));
            if self.counts {
                self.several.push(Reverse(done.nanos()));
            }
            done
        } else {
            self.last = self.speed.finish(self.last.max(now), work);
            if self.counts {
                self.single.push_back(self.last.nanos());
            }
            self.last
        };
        if !self.counts {
            return done.nanos().saturating_add(self.latency);
        }
        self.inside += 1;
        self.leaves = self.leaves.min(done.nanos());
        done.nanos().saturating_add(self.latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_serves_in_order() {
        let mut service = Service::herd(1, 1e9 / 100.0);
        service.server.queue = Some(9);
        let mut line = Line::new(&service);
        let work = PreciseTime::from_nanos(100);
        assert_eq!([line.enter(0, work), line.enter(10, work), line.enter(500, work)], [100, 200, 600]);
        assert_eq!(line.inside(599), 1);
        assert_eq!(line.inside(600), 0);
    }

    #[test]
    fn several_workers_serve_at_once() {
        let mut service = Service::herd(1, 1.0);
        service.server.workers = 2;
        service.server.queue = Some(9);
        let mut line = Line::new(&service);
        let work = PreciseTime::from_nanos(100);
        assert_eq!([line.enter(0, work), line.enter(0, work), line.enter(0, work)], [100, 100, 200]);
        assert_eq!(line.inside(99), 3);
        assert_eq!(line.inside(100), 1);
        assert_eq!(line.free_at(), PreciseTime::from_nanos(100));
    }
}
