//! Stations that always have something to send: slotted ALOHA, and the 802.11 DCF as Bianchi models it.
//!
//! A slot here is Bianchi's: idle, a success or a collision, whatever it lasts. In each slot all counters fall by one.

use super::theory;
use crate::{
    engine::{
        control::{Control, INTERRUPTED},
        draws::{Draws, Stream},
    },
    outcome::{Figures, Plots, run::Run},
    scenario::{Access, Figure, Saturated},
};
use std::{cmp::Reverse, collections::BTreeMap, collections::BinaryHeap};

pub(crate) fn run(saturated: &Saturated, draws: Draws, control: &Control) -> Run {
    let mut stations = Stations::new(saturated, draws);
    let mut coming: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    for station in 0..saturated.stations as u32 {
        coming.push(Reverse((stations.wait(station, 0), station)));
    }
    let (mut sent, mut heard, mut busy, mut slots) = (0u64, 0u64, 0u64, saturated.slots);
    let mut senders = Vec::new();
    let mut stopped = None;
    while let Some(&Reverse((slot, _))) = coming.peek()
        && slot < saturated.slots
    {
        senders.clear();
        while let Some(&Reverse((other, station))) = coming.peek()
            && other == slot
        {
            coming.pop();
            senders.push(station);
        }
        sent += senders.len() as u64;
        heard += u64::from(senders.len() == 1);
        busy += 1;
        for station in &senders {
            let failures = stations.after(*station, senders.len() > 1);
            coming.push(Reverse((slot + 1 + stations.wait(*station, failures), *station)));
        }
        if !control.tick(senders.len() as u64) {
            (stopped, slots) = (Some(INTERRUPTED.to_owned()), slot + 1);
            break;
        }
    }
    let figures = Figures::NONE
        .with(Figure::AttemptsPerPacket, sent as f64 / heard as f64)
        .with(Figure::SuccessPerSlot, heard as f64 / slots as f64);
    Run {
        clients: saturated.stations,
        figures,
        recovered: None,
        stopped,
        plots: Plots::default(),
        gave_up: BTreeMap::new(),
        health: Vec::new(),
        notes: notes(saturated, slots, sent, heard, busy),
        populations: Vec::new(),
    }
}

/// What Bianchi's model says more than successes a slot: counts, and of how many.
fn notes(saturated: &Saturated, slots: u64, sent: u64, heard: u64, busy: u64) -> Vec<(String, u64, u64)> {
    if !matches!(saturated.access, Access::Dcf { .. }) || sent == 0 {
        return Vec::new();
    }
    let collided = busy - heard;
    let time = (slots - busy) * theory::SLOT_US + heard * theory::SUCCESS_US + collided * theory::COLLISION_US;
    [
        ("tau", sent, slots.saturating_mul(saturated.stations)),
        ("collision", sent - heard, sent),
        ("throughput", heard * theory::PAYLOAD_US, time),
    ]
    .map(|(name, count, of)| (name.to_owned(), count, of))
    .to_vec()
}

/// What theory says about a note.
pub(crate) fn noted(saturated: &Saturated, name: &str) -> Option<f64> {
    let Access::Dcf { window, stages } = saturated.access else { return None };
    let solved = theory::bianchi(saturated.stations, window, stages);
    match name {
        "tau" => Some(solved.tau),
        "collision" => Some(solved.collision),
        "throughput" => Some(solved.throughput(saturated.stations)),
        _ => None,
    }
}

/// The successes a slot that theory expects.
pub(crate) fn expected(saturated: &Saturated) -> f64 {
    match saturated.access {
        Access::Persistent(p) => theory::aloha(saturated.stations, p),
        Access::Dcf { window, stages } => theory::bianchi(saturated.stations, window, stages).success,
    }
}

struct Stations {
    access: Access,
    failures: Vec<u32>,
    draws: Vec<Stream>,
}

impl Stations {
    fn new(saturated: &Saturated, draws: Draws) -> Stations {
        let stations = saturated.stations as usize;
        Stations {
            access: saturated.access,
            failures: vec![0; stations],
            draws: (0..stations as u64).map(|station| Stream::new(draws.call(station))).collect(),
        }
    }

    /// The slots that a station lets pass before it sends.
    fn wait(&mut self, station: u32, failures: u32) -> u64 {
        let draws = &mut self.draws[station as usize];
        match self.access {
            Access::Dcf { window, stages } => draws.below(window << failures.min(stages)),
            Access::Persistent(p) if p >= 1.0 => 0,
            // The number of failures before the first success, by inversion.
            Access::Persistent(p) => ((1.0 - draws.unit()).ln() / (1.0 - p).ln()) as u64,
        }
    }

    /// The failures that count for a station's next wait.
    fn after(&mut self, station: u32, collided: bool) -> u32 {
        let failures = &mut self.failures[station as usize];
        *failures = if collided { *failures + 1 } else { 0 };
        *failures
    }
}
