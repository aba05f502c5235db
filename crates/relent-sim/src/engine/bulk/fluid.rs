//! Expectations: clients as a fluid. Mean field, so the luck of single clients is not in it.

use super::flow::{Clients, Grid};

/// Where fluid begins and ends to arrive, by slot and level.
pub(crate) struct Fluid {
    levels: usize,
    mask: u64,
    /// What changes in the rate of arrival from one slot to the next.
    changes: Vec<f64>,
    rates: Vec<f64>,
}

impl Fluid {
    pub(crate) fn new(levels: usize, grid: Grid) -> Fluid {
        Fluid {
            levels,
            mask: grid.slots - 1,
            changes: vec![0.0; grid.slots as usize * levels],
            rates: vec![0.0; levels],
        }
    }

    fn change(&mut self, slot: u64, level: usize, by: f64) {
        self.changes[(slot & self.mask) as usize * self.levels + level] += by;
    }

    /// From `edge` slots on, the rate is `by` more; a slot that the edge cuts has its share.
    fn edge(&mut self, slot: u64, level: usize, edge: f64, by: f64) {
        let whole = edge.floor();
        let cut = edge - whole;
        self.change(slot + whole as u64, level, by * (1.0 - cut));
        self.change(slot + whole as u64 + 1, level, by * cut);
    }
}

/// Rates below this are rounding errors.
const NOTHING: f64 = 1e-9;

impl Clients for Fluid {
    fn choose(&mut self, here: &[f64], places: f64, let_in: &mut [f64]) {
        let all: f64 = here.iter().sum();
        for (here, entered) in here.iter().zip(let_in) {
            *entered = here * (places / all);
        }
    }

    fn send(&mut self, slot: u64, level: usize, clients: f64, from: f64, width: f64) {
        // Coming from all over a slot spreads the range by half a slot to both sides; its middle is half a slot later.
        let width = width.max(1e-3);
        let rate = clients / width;
        let from = (from + 0.5).max(1.0);
        self.edge(slot, level, from, rate);
        self.edge(slot, level, from + width, -rate);
    }

    fn take(&mut self, slot: u64, here: &mut [f64]) {
        let first = (slot & self.mask) as usize * self.levels;
        let changes = self.changes[first..first + self.levels].iter_mut();
        for ((change, rate), here) in changes.zip(&mut self.rates).zip(here) {
            *rate += std::mem::take(change);
            *here = if *rate > NOTHING { *rate } else { 0.0 };
        }
    }

    fn floor(&self, clients: f64) -> f64 {
        clients
    }

    fn luck(&mut self) -> Option<f64> {
        None
    }

    fn nobody(&self) -> f64 {
        0.5
    }
}
