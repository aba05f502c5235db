//! Latencies in a small histogram of fixed size, and a quantile of them that costs one load.
//!
//! Sixteen cells an octave over 24 octaves, from 16 us to 4.7 min: a quantile is at most 6 % above what it should be, and
//! never below. Old latencies are forgotten by halving everything when 4,096 are in it. The idea of log-linear cells is
//! HdrHistogram's (Tene); the halving is what makes it follow a service that changes. Since no cell ever holds more than
//! all of it, sixteen bits are enough, and four cells share a word: 768 bytes in all.

use super::word::Word;

/// Cells an octave.
const FINE_BITS: u32 = 4;
const FINE: u64 = 1 << FINE_BITS;
/// What is less than 16 us is one cell.
const LEAST_BITS: u32 = 14;
const OCTAVES: usize = 24;
const CELLS: usize = OCTAVES * FINE as usize;
const CELL_BITS: usize = 16;
const CELL_MOST: u64 = (1 << CELL_BITS) - 1;
const CELLS_A_WORD: usize = u64::BITS as usize / CELL_BITS;
const WORDS: usize = CELLS / CELLS_A_WORD;
/// All bits of a word but the highest of each cell: what a shift to the right would take from its neighbour.
const WITHIN_CELLS: u64 = 0x7fff_7fff_7fff_7fff;
const FULL: u64 = 4096;
/// How often the quantile is worked out anew.
const EVERY: u64 = 32;

pub(crate) struct Latencies {
    total: Word,
    /// The quantile in nanoseconds plus 1; 0 is "not known yet".
    known: Word,
    words: [Word; WORDS],
}

impl Latencies {
    pub(crate) const fn new() -> Latencies {
        Latencies { total: Word::new(0), known: Word::new(0), words: [const { Word::new(0) }; WORDS] }
    }

    #[inline]
    pub(in crate::core) fn words<'a>(&'a self, with: &mut impl FnMut(&'a Word)) {
        with(&self.total);
        with(&self.known);
        self.words.iter().for_each(with);
    }

    pub(crate) fn observe(&self, nanos: u64, quantile: f64, least: u64) {
        self.add(cell(nanos));
        let total = self.total.add(1) + 1;
        if total >= FULL && self.total.swap_if(total, total / 2) {
            self.halve();
        }
        if total >= least && (total.is_multiple_of(EVERY) || total == least) {
            self.learn(quantile);
        }
    }

    fn learn(&self, quantile: f64) {
        self.known.set(self.quantile(quantile).saturating_add(1));
    }

    /// A cell is halved long before it is full, unless whoever halves is held up: then it stays full, for what it holds too
    /// much would go to its neighbour.
    fn add(&self, at: usize) {
        let (word, shift) = (&self.words[at / CELLS_A_WORD], at % CELLS_A_WORD * CELL_BITS);
        let mut found = word.get();
        while found >> shift & CELL_MOST < CELL_MOST {
            match word.exchange(found, found + (1 << shift)) {
                Ok(()) => return,
                Err(other) => found = other,
            }
        }
    }

    /// What each cell holds.
    fn cells(&self) -> impl Iterator<Item = u64> {
        let lanes = |word: u64| (0..CELLS_A_WORD).map(move |lane| word >> (lane * CELL_BITS) & CELL_MOST);
        self.words.iter().flat_map(move |word| lanes(word.get()))
    }

    pub(crate) fn known(&self) -> Option<u64> {
        self.known.get().checked_sub(1)
    }

    /// What another one has seen, of which this quantile is taken from now on.
    pub(crate) fn adopt(&self, old: &Latencies, quantile: f64, least: u64) {
        for (new, old) in self.words.iter().zip(&old.words) {
            new.set(old.get());
        }
        let total = old.total.get();
        self.total.set(total);
        if total >= least {
            self.learn(quantile);
        }
    }

    /// How many are in it, the older ones counted less.
    pub(crate) fn samples(&self) -> u64 {
        self.total.get()
    }

    /// What a thread counts meanwhile is kept.
    fn halve(&self) {
        for word in &self.words {
            let mut found = word.get();
            while let Err(other) = word.exchange(found, found >> 1 & WITHIN_CELLS) {
                found = other;
            }
        }
    }

    /// The upper end of the cell in which the quantile is.
    fn quantile(&self, quantile: f64) -> u64 {
        let total: u64 = self.cells().sum();
        let rank = ((total as f64 * quantile) as u64).min(total.saturating_sub(1));
        let mut below = 0;
        for (at, count) in self.cells().enumerate() {
            below += count;
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
    fn a_full_cell_takes_nothing_from_its_neighbours() {
        let latencies = Latencies::new();
        for _ in 0..70_000 {
            latencies.add(5);
        }
        latencies.add(4);
        latencies.add(6);
        let counts = |latencies: &Latencies| latencies.cells().skip(4).take(4).collect::<Vec<_>>();
        assert_eq!(counts(&latencies), [1, CELL_MOST, 1, 0]);
        latencies.halve();
        assert_eq!(counts(&latencies), [0, CELL_MOST / 2, 0, 0]);
        assert_eq!(latencies.cells().count(), CELLS);
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

    /// What is old counts half at each halving, and as much of it is forgotten as is no longer counted.
    #[test]
    fn what_is_said_to_be_in_it_is_in_it() {
        let latencies = Latencies::new();
        for k in 1..=20_000u64 {
            latencies.observe(1_000_000, 0.5, 10);
            assert_eq!(latencies.samples(), latencies.cells().sum::<u64>(), "{k}");
            assert_eq!(latencies.samples(), if k < FULL { k } else { FULL / 2 + (k - FULL) % (FULL / 2) }, "{k}");
        }
    }

    /// The quantile is worked out anew at every 32nd, and when there are enough for the first time.
    #[test]
    fn a_quantile_is_known_from_the_least_on_and_kept_for_a_while() {
        let latencies = Latencies::new();
        for k in 1..=9u64 {
            latencies.observe(1_000_000, 0.5, 10);
            assert_eq!(latencies.known(), None, "{k}");
        }
        latencies.observe(1_000_000, 0.5, 10);
        let first = latencies.known().unwrap();
        assert!((1_000_000..1_070_000).contains(&first), "{first}");
        for k in 11..32 {
            latencies.observe(64_000_000, 0.5, 10);
            assert_eq!(latencies.known(), Some(first), "{k}");
        }
        latencies.observe(64_000_000, 0.5, 10);
        assert!(latencies.known() > Some(64_000_000), "22 of 32");
    }
}
