//! Whole clients without names, moved by luck.

use super::flow::{Clients, Grid};
use crate::engine::draws::{Stream, normal};

/// Counters by slot and level.
pub(crate) struct Count {
    levels: usize,
    mask: u64,
    ring: Vec<u32>,
    draws: Stream,
}

impl Count {
    pub(crate) fn new(seed: u64, levels: usize, grid: Grid) -> Count {
        let cells = grid.slots as usize * levels;
        Count { levels, mask: grid.slots - 1, ring: vec![0; cells], draws: Stream::new(relent::rng::mix(seed ^ COUNT)) }
    }
}

/// Keeps the draws of this engine apart from those of the exact one.
const COUNT: u64 = 0x0063_6f75_6e74;

/// Above this many clients a slot, slots are filled by the normal approximation to the binomial.
const CROWDED: f64 = 256.0;

/// Above this many clients at once, those who go to a slot or two are counted together, too: one by one, a thousand million take
/// seconds.
const MULTITUDE: f64 = 65_536.0;

impl Clients for Count {
    fn choose(&mut self, here: &[f64], places: f64, let_in: &mut [f64]) {
        let mut left: f64 = here.iter().sum();
        let mut places = places;
        if places > CROWDED {
            for (here, entered) in here.iter().zip(let_in.iter_mut()) {
                *entered = self.hypergeometric(*here, left, places);
                left -= here;
                places -= *entered;
            }
            return;
        }
        while places >= 1.0 {
            let mut chosen = self.draws.below(left as u64) as f64;
            for (here, entered) in here.iter().zip(let_in.iter_mut()) {
                let remaining = here - *entered;
                if chosen < remaining {
                    *entered += 1.0;
                    break;
                }
                chosen -= remaining;
            }
            left -= 1.0;
            places -= 1.0;
        }
    }

    fn send(&mut self, slot: u64, level: usize, clients: f64, from: f64, width: f64) {
        if clients > CROWDED * width.max(1.0) && width >= 1.0 {
            return self.send_crowd(slot, level, clients, from, width);
        }
        if clients > MULTITUDE && width < 1.0 {
            return self.send_multitude(slot, level, clients, from, width);
        }
        // In units of 2^-32 of a slot: the start of the range, a uniform part of its width, and of the slot.
        let from = (from * F32) as u64;
        let width = (width * F32) as u64;
        for _ in 0..clients as u64 {
            let draw = self.draws.next();
            let place = from + relent::rng::scale(draw, width) + (draw & 0xffff_ffff);
            let slot = (slot + (place >> 32).max(1)) & self.mask;
            self.ring[slot as usize * self.levels + level] += 1;
        }
    }

    fn take(&mut self, slot: u64, here: &mut [f64]) {
        let first = (slot & self.mask) as usize * self.levels;
        for (cell, here) in self.ring[first..first + self.levels].iter_mut().zip(here) {
            *here = f64::from(*cell);
            *cell = 0;
        }
    }

    fn floor(&self, clients: f64) -> f64 {
        (clients + 1e-6).floor()
    }

    fn luck(&mut self) -> Option<f64> {
        Some(self.draws.unit())
    }

    fn nobody(&self) -> f64 {
        0.5
    }
}

/// The share of those who come before `x` if each comes after a uniform part of `width` and one of 1.
fn shares(x: f64, width: f64) -> f64 {
    let (short, long) = (width.min(1.0), width.max(1.0));
    let beyond = short + long - x;
    if x <= 0.0 {
        0.0
    } else if beyond <= 0.0 {
        1.0
    } else if x < short {
        x * x / (2.0 * short * long)
    } else if beyond < short {
        1.0 - beyond * beyond / (2.0 * short * long)
    } else {
        (x - short / 2.0) / long
    }
}

const F32: f64 = (1u64 << 32) as f64;

impl Count {
    /// Slot by slot, each its share of those who are left.
    fn send_crowd(&mut self, slot: u64, level: usize, clients: f64, from: f64, width: f64) {
        let (mut left, end) = (clients, from.max(1.0) + width);
        let mut at = from.max(1.0);
        while at < end && left >= 1.0 {
            let next = (at.floor() + 1.0).min(end);
            let share = ((next - at) / (end - at)).min(1.0);
            let here = if next >= end { left } else { self.binomial(left, share) };
            let place = (slot + at as u64) & self.mask;
            self.ring[place as usize * self.levels + level] += here as u32;
            left -= here;
            at = next;
        }
    }

    /// To less than a slot's width, and from somewhere in a slot: two draws, whose sum is a trapezoid.
    fn send_multitude(&mut self, slot: u64, level: usize, clients: f64, from: f64, width: f64) {
        let (mut left, mut before, mut at) = (clients, 0.0, from.floor());
        while left >= 1.0 {
            let until = shares(at + 1.0 - from, width);
            let here = if until >= 1.0 { left } else { self.binomial(left, (until - before) / (1.0 - before)) };
            let place = (slot + (at as u64).max(1)) & self.mask;
            self.ring[place as usize * self.levels + level] += here as u32;
            (left, before, at) = (left - here, until, at + 1.0);
        }
    }

    fn binomial(&mut self, n: f64, p: f64) -> f64 {
        let value = n * p + (n * p * (1.0 - p)).sqrt() * normal(self.draws.next());
        value.round().clamp(0.0, n)
    }

    /// How many of `marked` among `all` are among `drawn`.
    fn hypergeometric(&mut self, marked: f64, all: f64, drawn: f64) -> f64 {
        if all <= 1.0 || marked >= all {
            return drawn.min(marked);
        }
        let p = marked / all;
        let variance = drawn * p * (1.0 - p) * (all - drawn) / (all - 1.0);
        let value = (drawn * p + variance.max(0.0).sqrt() * normal(self.draws.next())).round();
        value.clamp((drawn - (all - marked)).max(0.0), drawn.min(marked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where those who are counted together arrive is where they would have arrived one by one.
    #[test]
    fn a_multitude_goes_where_each_of_it_would() {
        for (from, width) in [(0.0, 0.0), (0.3, 0.0), (0.3, 0.2), (0.0, 0.9), (1.75, 0.6), (5.5, 0.001)] {
            let slots = |times: u32, clients: f64| {
                let mut count = Count::new(7, 2, Grid { slots: 16, slot_bits: 0 });
                for _ in 0..times {
                    count.send(3, 1, clients, from, width);
                }
                let mut here = [0.0, 0.0];
                (0..16).map(|slot| (count.take(slot, &mut here), here[1]).1).collect::<Vec<f64>>()
            };
            let (together, apart) = (slots(1, 1e6), slots(20, 5e4));
            assert_eq!(together.iter().sum::<f64>(), 1e6, "{from} {width}: {together:?}");
            for (together, apart) in together.iter().zip(&apart) {
                // Six standard deviations of the difference of two binomials.
                let sigma = (2.0 * apart * (1.0 - apart / 1e6)).sqrt().max(1.0);
                assert!((together - apart).abs() <= 6.0 * sigma, "{from} {width}: {together} for {apart}");
            }
        }
    }

    /// As many as a counter holds take no time to speak of.
    #[test]
    fn thousands_of_millions_are_sent_at_once() {
        let mut count = Count::new(1, 1, Grid { slots: 16, slot_bits: 0 });
        count.send(0, 0, 4e9, 0.5, 0.5);
        assert!(count.ring.iter().map(|cell| u64::from(*cell)).sum::<u64>() == 4_000_000_000);
    }
}
