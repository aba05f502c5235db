//! Waits, counted in buckets fine enough for percentiles: exact to one part in 32,768.

/// Buckets for each doubling of the wait.
const FINE_BITS: u32 = 15;
const FINE: usize = 1 << FINE_BITS;

/// Buckets that are added up together where no share ends among them.
const STRETCH: usize = 64;

/// Up to this many waits are kept as they are.
const FEW: usize = 1 << 16;

/// A histogram of durations in nanoseconds whose buckets widen with the duration.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    /// All waits, as long as there are few.
    few: Vec<u64>,
    /// One block of buckets a doubling, allocated when it is first needed.
    blocks: Vec<Vec<u64>>,
    count: u64,
    max: u64,
}

impl Waits {
    pub(crate) const fn new() -> Waits {
        Waits { few: Vec::new(), blocks: Vec::new(), count: 0, max: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.max = self.max.max(nanos);
        if self.count <= FEW as u64 {
            self.few.push(nanos);
            return;
        }
        if !self.few.is_empty() {
            for nanos in std::mem::take(&mut self.few) {
                self.count_in(nanos);
            }
        }
        self.count_in(nanos);
    }

    #[inline]
    fn count_in(&mut self, nanos: u64) {
        let (block, place) = bucket(nanos);
        if self.blocks.get(block).is_none_or(Vec::is_empty) {
            self.grow(block);
        }
        self.blocks[block][place] += 1;
    }

    #[cold]
    fn grow(&mut self, block: usize) {
        if self.blocks.len() <= block {
            self.blocks.resize_with(block + 1, Vec::new);
        }
        self.blocks[block] = vec![0; FINE];
    }

    pub(crate) const fn max(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.max) }
    }

    /// The least waits that at least these shares of all, in ascending order, did not exceed.
    pub(crate) fn percentiles<const N: usize>(&self, shares: [f64; N]) -> [Option<u64>; N] {
        let waits = self.at_shares(&shares);
        std::array::from_fn(|place| waits.get(place).copied())
    }

    /// Waits at shares of 0 to 1: fine at the top, where the tail is.
    pub(crate) fn curve(&self) -> Vec<(f64, f64)> {
        let mut shares: Vec<f64> = (0..=98).map(|percent| f64::from(percent) / 100.0).collect();
        for tail in [100.0, 1000.0, 10_000.0, 100_000.0, 1_000_000.0] {
            if self.count as f64 >= tail {
                shares.extend((1..=9).map(|step| 1.0 - (1.0 - f64::from(step) / 10.0) / tail));
            }
        }
        shares.push(1.0);
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        let waits = self.at_shares(&shares);
        shares.into_iter().zip(waits).map(|(share, wait)| (share, wait as f64 / 1e9)).collect()
    }

    /// Waits at ascending shares.
    fn at_shares(&self, shares: &[f64]) -> Vec<u64> {
        let rank = |share: &f64| ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        if !self.few.is_empty() {
            let mut sorted = self.few.clone();
            sorted.sort_unstable();
            return shares.iter().map(|share| sorted[rank(share) as usize - 1]).collect();
        }
        let mut waits = Vec::with_capacity(shares.len());
        let mut seen = 0;
        let mut shares = shares.iter().map(rank);
        let mut rank = shares.next();
        for (block, places) in self.blocks.iter().enumerate() {
            for (stretch, counts) in places.chunks(STRETCH).enumerate() {
                let after = seen + counts.iter().sum::<u64>();
                if rank.is_none_or(|rank| rank > after) {
                    seen = after;
                    continue;
                }
                for (place, count) in counts.iter().enumerate() {
                    seen += count;
                    while rank.is_some_and(|rank| rank <= seen) {
                        waits.push(middle(block, stretch * STRETCH + place).min(self.max));
                        rank = shares.next();
                    }
                }
            }
        }
        waits
    }
}

#[inline]
const fn bucket(nanos: u64) -> (usize, usize) {
    let block = (u64::BITS - nanos.leading_zeros()).saturating_sub(FINE_BITS) as usize;
    if block == 0 {
        return (0, nanos as usize);
    }
    (block, (nanos >> (block - 1)) as usize & (FINE - 1))
}

const fn middle(block: usize, place: usize) -> u64 {
    if block == 0 {
        return place as u64;
    }
    let width = 1u64 << (block - 1);
    ((FINE as u64 | place as u64) << (block - 1)).saturating_add(width / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_what_they_say() {
        for nanos in [0, 1, 32_767, 32_768, 65_535, 65_536, 1_000_000_007, u64::MAX / 3, u64::MAX] {
            let (block, place) = bucket(nanos);
            let error = middle(block, place).abs_diff(nanos);
            assert!(error <= nanos / (FINE as u64), "{nanos}: {error}");
        }
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut waits = Waits::new();
        assert_eq!(waits.percentiles([0.5]), [None]);
        for nanos in 1..=1000 {
            waits.add(nanos);
        }
        assert_eq!(waits.percentiles([0.0, 0.5, 0.99, 1.0]), [1, 500, 990, 1000].map(Some));
        assert_eq!(waits.max(), Some(1000));
        assert!(waits.curve().windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
    }
}
