//! A batch of packets by window strategies: each packet is sent in one slot of each window until it is alone there.

use crate::{
    engine::{
        control::{Control, INTERRUPTED, most_attempts, past_attempts},
        draws::{Draws, Purpose},
    },
    outcome::{Figures, Plots, run::Run},
    scenario::{Batch, Figure, Windows},
};
use relent::rng::scale;
use std::collections::BTreeMap;

/// The sizes of the windows, one after the other.
struct Sizes {
    windows: Windows,
    packets: u64,
    k: u32,
    size: f64,
    tooth: u64,
}

/// No window is larger: by then packets are alone.
const LARGEST: f64 = (1u64 << 40) as f64;

impl Sizes {
    const fn new(windows: Windows, packets: u64) -> Sizes {
        Sizes { windows, packets, k: 0, size: 1.0, tooth: 1 }
    }

    fn next(&mut self) -> u64 {
        let k = f64::from(self.k);
        self.k += 1;
        let size = match self.windows {
            Windows::Beb => k.exp2(),
            Windows::Exponential(factor) => factor.powf(k).floor(),
            Windows::Quadratic => (k + 1.0) * (k + 1.0),
            Windows::LogBackoff => self.grow(|size| size.log2()),
            Windows::LogLogBackoff => self.grow(|size| size.log2().log2()),
            Windows::Sawtooth => self.next_tooth() as f64,
            Windows::Fixed => self.packets as f64,
        };
        size.min(LARGEST) as u64
    }

    /// `size * (1 + 1/slowness)`, at most doubling, which is what the first windows do.
    fn grow(&mut self, slowness: impl Fn(f64) -> f64) -> f64 {
        let size = self.size;
        let slowness = slowness(size);
        self.size = size * if slowness > 1.0 { 1.0 + 1.0 / slowness } else { 2.0 };
        size.floor()
    }

    /// 1, then 2, 1, then 4, 2, 1 ...
    fn next_tooth(&mut self) -> u64 {
        let size = self.size as u64;
        if size == 1 {
            self.tooth = self.tooth.saturating_mul(2);
            self.size = self.tooth as f64;
        } else {
            self.size = (size / 2) as f64;
        }
        size
    }
}

pub(crate) fn run(batch: &Batch, windows: Windows, draws: Draws, control: &Control) -> Run {
    let n = batch.packets;
    let mut sizes = Sizes::new(windows, n);
    let mut left: Vec<(u32, u64)> = (0..n as u32).map(|packet| (packet, 0)).collect();
    let mut begins = 0u64;
    let (mut makespan, mut attempts) = (0u64, 0u64);
    let mut by_attempts = vec![0];
    let mut stopped = None;
    let mut alone = Alone::default();
    let most = most_attempts(n);
    for window in 1.. {
        let size = sizes.next();
        attempts += left.len() as u64;
        if !control.tick(left.len() as u64) {
            stopped = Some(INTERRUPTED.to_owned());
            break;
        }
        for (packet, slot) in &mut left {
            *slot = scale(draws.world(u64::from(*packet), window, Purpose::Channel), size);
        }
        let before = left.len();
        if let Some(last) = alone.take_out(&mut left, size) {
            makespan = begins + last + 1;
        }
        by_attempts.push((before - left.len()) as u64);
        begins += size;
        if left.is_empty() {
            break;
        }
        if attempts >= most {
            stopped = Some(past_attempts(most));
            break;
        }
    }
    let mut figures = Figures::NONE
        .with(Figure::AttemptsPerClient, attempts as f64 / n as f64)
        .with(Figure::WastedPerClient, (attempts - (n - left.len() as u64)) as f64 / n as f64)
        .with(Figure::AttemptsPerPacket, attempts as f64 / n as f64)
        .with(Figure::MaxAttempts, (by_attempts.len() - 1) as f64)
        .with(Figure::SuccessShare, (n - left.len() as u64) as f64 / n as f64);
    if left.is_empty() {
        figures = figures
            .with(Figure::MakespanOverN, makespan as f64 / n as f64)
            .with(Figure::SuccessPerSlot, n as f64 / makespan as f64);
    }
    Run {
        clients: n,
        figures,
        recovered: None,
        stopped,
        plots: Plots { attempts: by_attempts, ..Plots::default() },
        gave_up: BTreeMap::new(),
        health: Vec::new(),
        notes: Vec::new(),
        populations: Vec::new(),
    }
}

/// Finds the packets that are alone in their slots.
#[derive(Default)]
struct Alone {
    /// How many packets chose each slot, for windows that are small against the packets.
    counts: Vec<u32>,
}

impl Alone {
    /// Takes the packets that are alone out; returns the last of their slots.
    fn take_out(&mut self, left: &mut Vec<(u32, u64)>, size: u64) -> Option<u64> {
        if size > 8 * left.len() as u64 {
            return Alone::by_sorting(left);
        }
        self.counts.clear();
        self.counts.resize(size as usize, 0);
        for (_, slot) in left.iter() {
            self.counts[*slot as usize] += 1;
        }
        let mut last = None;
        left.retain(|(_, slot)| {
            let alone = self.counts[*slot as usize] == 1;
            if alone {
                last = last.max(Some(*slot));
            }
            !alone
        });
        last
    }

    fn by_sorting(left: &mut Vec<(u32, u64)>) -> Option<u64> {
        left.sort_unstable_by_key(|(packet, slot)| (*slot, *packet));
        let slots: Vec<u64> = left.iter().map(|(_, slot)| *slot).collect();
        let mut last = None;
        let mut place = 0;
        left.retain(|(_, slot)| {
            let shared = (place > 0 && slots[place - 1] == *slot) || slots.get(place + 1) == Some(slot);
            place += 1;
            if !shared {
                last = last.max(Some(*slot));
            }
            shared
        });
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_literature() {
        let sizes = |windows| {
            let mut sizes = Sizes::new(windows, 100);
            [(); 7].map(|()| sizes.next())
        };
        assert_eq!(sizes(Windows::Beb), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(sizes(Windows::Exponential(1.5)), [1, 1, 2, 3, 5, 7, 11]);
        assert_eq!(sizes(Windows::Quadratic), [1, 4, 9, 16, 25, 36, 49]);
        assert_eq!(sizes(Windows::Sawtooth), [1, 2, 1, 4, 2, 1, 8]);
        assert_eq!(sizes(Windows::Fixed), [100; 7]);
        assert_eq!(sizes(Windows::LogBackoff), [1, 2, 4, 6, 8, 11, 14]);
        for windows in Windows::ALL {
            assert_eq!(Windows::parse(&windows.name()), Some(windows));
        }
        assert_eq!([Windows::parse("exp=1"), Windows::parse("exp=x"), Windows::parse("")], [None; 3]);
    }

    #[test]
    fn both_ways_to_find_who_is_alone_agree() {
        let packets: Vec<(u32, u64)> = [5, 1, 5, 3, 9, 3, 3, 0].into_iter().zip(0..).map(|(s, p)| (p, s)).collect();
        let (mut counted, mut sorted) = (packets.clone(), packets);
        assert_eq!(Alone::default().take_out(&mut counted, 10), Some(9));
        assert_eq!(Alone::by_sorting(&mut sorted), Some(9));
        sorted.sort_unstable();
        assert_eq!(counted, sorted);
        assert_eq!(counted.len(), 5);
    }
}
