//! Random numbers of a run: each depends on (seed, client, attempt, purpose) alone.
//!
//! So one seed gives the same luck whatever the order of events, the engine's queue or the number of threads, and
//! policies side by side meet the same network and the same server.

use crate::scenario::Forced;
use relent::{
    Curve, Jitter, Policy,
    rng::{draw, mix, unit},
};

/// What a draw is for. Draws for different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// When a client of a herd is cut off, or an open call arrives.
    Start = 1,
    /// The way to the server.
    Out,
    /// The way back.
    Back,
    /// The way of a write after its read (optimistic concurrency), and back.
    OutAgain,
    /// The way back of a write.
    BackAgain,
    /// The time a service takes.
    Service,
    /// Whether an attempt fails at the server.
    Failure,
    /// What a `Retry-After` says.
    Told,
    /// Whether a call writes.
    Writes,
    /// A slot of a shared channel.
    Channel,
    /// Whether a request gets lost.
    Loss,
    /// Whether a client that was refused stays away.
    Leaves,
    /// What an upstream's machines decide by.
    Upstream,
}

/// The luck of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    seed: u64,
    pub(crate) forced: Option<Forced>,
}

impl Draws {
    pub(crate) const fn new(seed: u64, forced: Option<Forced>) -> Draws {
        Draws { seed, forced }
    }

    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// The luck of a world of its own: what happens there says nothing about worlds of other numbers.
    pub(crate) const fn apart(self, world: u64) -> Draws {
        Draws { seed: mix(self.seed ^ mix(!world)), forced: self.forced }
    }

    /// The seed of a client's call.
    #[inline]
    pub(crate) const fn call(&self, client: u64) -> u64 {
        mix(self.seed ^ mix(client))
    }

    /// The draw of a client's attempt for a purpose.
    #[inline]
    pub(crate) const fn world(&self, client: u64, attempt: u32, purpose: Purpose) -> u64 {
        draw(mix(self.call(client) ^ ((purpose as u64) << 56)), attempt)
    }
}

/// An exponentially distributed number of mean 1.
pub(crate) fn exponential(draw: u64) -> f64 {
    -(1.0 - unit(draw)).ln()
}

/// A number of the standard normal distribution (Box and Muller, 1958).
pub(crate) fn normal(draw: u64) -> f64 {
    let radius = (2.0 * exponential(draw)).sqrt();
    radius * (std::f64::consts::TAU * unit(mix(draw))).cos()
}

/// The seed of a test, which is told and can be given.
#[cfg(test)]
pub(crate) fn test_seed() -> u64 {
    let seed = std::env::var("RELENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("RELENT_SEED={seed}");
    seed
}

/// A generator for draws that come in an order of their own (a channel's stations, slot by slot).
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    seed: u64,
    drawn: u64,
}

impl Stream {
    pub(crate) const fn new(seed: u64) -> Stream {
        Stream { seed, drawn: 0 }
    }

    #[inline]
    pub(crate) const fn next(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.seed.wrapping_add(relent::rng::GAMMA.wrapping_mul(self.drawn)))
    }

    #[inline]
    pub(crate) const fn unit(&mut self) -> f64 {
        unit(self.next())
    }

    /// Uniform in `0..width`.
    #[inline]
    pub(crate) const fn below(&mut self, width: u64) -> u64 {
        relent::rng::scale(self.next(), width)
    }
}

/// Whether what a call remembers depends on its draws.
pub(crate) fn remembers_draws(policy: &Policy) -> bool {
    let settings = policy.settings();
    settings.jitter == Jitter::Decorrelated || matches!(settings.curve, Curve::Custom(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: impl Iterator<Item = f64>) -> (f64, f64) {
        let values: Vec<f64> = values.collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n)
    }

    #[test]
    fn distributions_have_their_moments() {
        let draws = Draws::new(7, None);
        let draws = || (0..200_000).map(move |client| draws.world(client, 1, Purpose::Out));
        let (mean, variance) = moments(draws().map(exponential));
        assert!((mean - 1.0).abs() < 0.01 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        let (mean, variance) = moments(draws().map(normal));
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn purposes_attempts_and_clients_do_not_share_draws() {
        let draws = Draws::new(1, None);
        let mut drawn = Vec::new();
        for client in 0..100 {
            for attempt in 0..10 {
                drawn.extend([Purpose::Out, Purpose::Back, Purpose::Service].map(|p| draws.world(client, attempt, p)));
            }
        }
        drawn.sort_unstable();
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
