//! Shares as whole numbers, which can be counted with.

/// A whole, in the parts that shares are kept to.
pub(super) const BILLION: u64 = 1_000_000_000;

/// To the nearest billionth.
pub(super) const fn billionths(share: f64) -> u64 {
    (share * BILLION as f64 + 0.5) as u64
}
