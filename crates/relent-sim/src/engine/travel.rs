//! How long each message travels.

use super::draws;
use crate::scenario::Network;

/// A network whose constant delay is at hand as a number: it is asked for three times an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    pub(crate) constant: Option<u64>,
    network: Network,
}

impl Ways {
    pub(crate) fn new(network: Network) -> Ways {
        let constant = match network {
            Network::Constant(delay) => Some(crate::time::nanos(delay)),
            _ => None,
        };
        Ways { constant, network }
    }

    /// The delay for a draw, in nanoseconds.
    #[inline]
    pub(crate) fn delay(&self, draw: impl FnOnce() -> u64) -> u64 {
        match self.constant {
            Some(delay) => delay,
            None => self.network.random(draw()),
        }
    }
}

impl Network {
    /// The delay for a draw, in nanoseconds.
    #[inline]
    pub(crate) fn delay(&self, draw: impl FnOnce() -> u64) -> u64 {
        match self {
            Network::Constant(delay) => delay.as_nanos() as u64,
            _ => self.random(draw()),
        }
    }

    fn random(&self, draw: u64) -> u64 {
        let nanos = match *self {
            Network::Constant(delay) => delay.as_nanos() as f64,
            Network::Normal { mean, sd } => (mean.as_nanos() as f64 + sd.as_nanos() as f64 * draws::normal(draw)).abs(),
            Network::Exponential(mean) => mean.as_nanos() as f64 * draws::exponential(draw),
            Network::LogNormal { median, sigma } => median.as_nanos() as f64 * (sigma * draws::normal(draw)).exp(),
        };
        (nanos + 0.5) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::draws::Stream;
    use std::time::Duration;

    #[test]
    fn delays_have_the_mean_they_say() {
        let ms = Duration::from_millis;
        for network in [
            Network::round_trip(ms(20)),
            Network::Normal { mean: ms(10), sd: ms(2) },
            Network::Normal { mean: ms(1), sd: ms(5) },
            Network::Exponential(ms(10)),
            Network::LogNormal { median: ms(10), sigma: 0.5 },
        ] {
            let mut draws = Stream::new(3);
            let n = 200_000;
            let mean = (0..n).map(|_| network.delay(|| draws.next()) as f64).sum::<f64>() / f64::from(n);
            let expected = network.mean_ns();
            assert!((mean / expected - 1.0).abs() < 0.01, "{network:?}: {mean} is not {expected}");
        }
    }
}
