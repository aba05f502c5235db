//! Random numbers: one `u64` a failure, each a pure function of the call's seed and the number of the failure.
//!
//! Why not a generator that is passed around: two calls must never share draws, a simulator must be able to ask for
//! the draw of (seed, attempt) in any order, and a draw must cost next to nothing. SplitMix64 gives all three: its
//! state after `k` draws is `seed + k * GAMMA`, so nothing needs to be stored.
//!
//! Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014; the finaliser is
//! Stafford's variant 13.

/// The odd constant by which SplitMix64's state advances: 2^64 divided by the golden ratio.
pub const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's finaliser: a bijection on `u64` in which every input bit moves every output bit.
///
/// Use it to make the seed of a call out of what tells it apart.
///
/// ```
/// let (run, client) = (7, 42);
/// let seed = relent::rng::mix(run ^ relent::rng::mix(client));
/// assert_ne!(seed, relent::rng::mix(run ^ relent::rng::mix(client + 1)));
/// ```
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Draw number `k` of the SplitMix64 stream that starts at `seed`, `k` from 0.
///
/// A call uses draw 0 for its [`spread`](crate::Policy::spread) and draw `k` for the delay after failure `k`.
///
/// ```
/// use relent::rng::{GAMMA, draw, mix};
/// assert_eq!(draw(5, 2), mix(5u64.wrapping_add(GAMMA.wrapping_mul(3))));
/// ```
pub const fn draw(seed: u64, k: u32) -> u64 {
    mix(seed.wrapping_add(GAMMA.wrapping_mul(k as u64 + 1)))
}

/// A uniform integer in `0..width` out of a draw: `(draw * width) >> 64`. Zero if `width` is zero.
///
/// The bias is at most `width / 2^64`. Source: Lemire, "Fast Random Integer Generation in an Interval", 2019.
///
/// ```
/// assert_eq!(relent::rng::scale(u64::MAX / 2, 10), 4);
/// assert_eq!(relent::rng::scale(u64::MAX, 10), 9);
/// ```
pub const fn scale(draw: u64, width: u64) -> u64 {
    ((draw as u128 * width as u128) >> 64) as u64
}

/// A uniform float in `[0, 1)` out of a draw: its top 53 bits.
///
/// ```
/// assert_eq!(relent::rng::unit(1 << 63), 0.5);
/// assert!(relent::rng::unit(u64::MAX) < 1.0);
/// ```
pub const fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of SplitMix64 from seed 1234567, as its reference implementation prints them.
    #[test]
    fn is_splitmix64() {
        let expected =
            [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821];
        for (k, expected) in expected.into_iter().enumerate() {
            assert_eq!(draw(1234567, k as u32), expected);
        }
    }

    #[test]
    fn scaling_stays_inside_and_reaches_both_ends() {
        assert_eq!(scale(0, 7), 0);
        assert_eq!(scale(u64::MAX, 7), 6);
        assert_eq!(scale(u64::MAX, 0), 0);
        assert_eq!(scale(u64::MAX, u64::MAX), u64::MAX - 1);
    }
}
