//! Latencies in a small histogram of fixed size, and a quantile of them that costs one load.
//!
//! Sixteen cells an octave over 24 octaves, from 16 us to 4.7 min: a quantile is at most 6 % above what it should be, and
//! never below. Old latencies are forgotten by halving everything when 4,096 are in it. The idea of log-linear cells is
//! HdrHistogram's (Tene); the halving is what makes it follow a service that changes.

use super::word::Word;

/// Cells an octave.
const FINE_BITS: u32 = 4;
const FINE: u64 = 1 << FINE_BITS;
/// What is less than 16 us is one cell.
const LEAST_BITS: u32 = 14;
const OCTAVES: usize = 24;
const CELLS: usize = OCTAVES * FINE as usize;
const FULL: u64 = 4096;
/// How often the quantile is worked out anew.
const EVERY: u64 = 32;

pub(crate) struct Latencies {
    total: Word,
    /// The quantile in nanoseconds plus 1; 0 is "not known yet".
    known: Word,
    cells: [Word; CELLS],
}

impl Latencies {
    pub(crate) const fn new() -> Latencies {
        Latencies { total: Word::new(0), known: Word::new(0), cells: [const { Word::new(0) }; CELLS] }
    }

    pub(crate) fn observe(&self, nanos: u64, quantile: f64, least: u64) {
        self.cells[cell(nanos)].add(1);
        let total = self.total.add(1) + 1;
        if total >= FULL && self.total.swap_if(total, total / 2) {
            self.halve();
        }
        if total >= least && (total.is_multiple_of(EVERY) || total == least) {
            self.known.set(self.quantile(quantile).saturating_add(1));
        }
    }

    pub(crate) fn known(&self) -> Option<u64> {
        self.known.get().checked_sub(1)
    }

    pub(crate) fn copy(&self, old: &Latencies) {
        for (new, old) in self.cells.iter().zip(&old.cells) {
            new.set(old.get());
        }
        self.total.set(old.total.get());
        self.known.set(old.known.get());
    }

    /// How many are in it, the older ones counted less.
    pub(crate) fn samples(&self) -> u64 {
        self.total.get()
    }

    /// What a thread counts meanwhile is kept.
    fn halve(&self) {
        for cell in &self.cells {
            let mut found = cell.get();
            while let Err(other) = cell.exchange(found, found / 2) {
                found = other;
            }
        }
    }

    /// The upper end of the cell in which the quantile is.
    fn quantile(&self, quantile: f64) -> u64 {
        let total: u64 = self.cells.iter().map(Word::get).sum();
        let rank = ((total as f64 * quantile) as u64).min(total.saturating_sub(1));
        let mut below = 0;
        for (at, cell) in self.cells.iter().enumerate() {
            below += cell.get();
            if below > rank {
                return upper(at);
            }
        }
        upper(CELLS - 1)
    }
}

fn cell(nanos: u64) -> usize {
    let nanos = nanos.max(1 << LEAST_BITS);
    let octave = nanos.ilog2();
    let fine = nanos >> (octave - FINE_BITS) & (FINE - 1);
    (((octave - LEAST_BITS) as usize) * FINE as usize + fine as usize).min(CELLS - 1)
}

fn upper(at: usize) -> u64 {
    let (octave, fine) = (at as u32 / FINE as u32 + LEAST_BITS, at as u64 % FINE);
    (FINE + fine + 1) << (octave - FINE_BITS)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_at_most_a_sixteenth_too_much() {
        let latencies = Latencies::new();
        for k in 1..=1000u64 {
            latencies.observe(k * 1_000_000, 0.95, 100);
        }
        for (share, expected) in [(0.0, 1e6), (0.5, 5e8), (0.95, 9.5e8), (1.0, 1e9)] {
            let found = latencies.quantile(share) as f64;
            assert!(found >= expected && found <= expected * 1.07, "{share}: {found}");
        }
    }

    #[test]
    fn every_latency_has_a_cell() {
        for nanos in [0, 1, 1 << 14, 1 << 40, u64::MAX] {
            assert!(cell(nanos) < CELLS);
        }
        for at in 1..CELLS {
            assert_eq!(cell(upper(at - 1)), at);
        }
    }

    #[test]
    fn old_latencies_are_forgotten() {
        let latencies = Latencies::new();
        for _ in 0..10_000 {
            latencies.observe(1_000_000, 0.5, 10);
        }
        for _ in 0..10_000 {
            latencies.observe(64_000_000, 0.5, 10);
        }
        assert!(latencies.known() > Some(60_000_000));
        assert!(latencies.samples() < FULL);
    }
}
