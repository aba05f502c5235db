//! How long a message travels.

use std::time::Duration;

/// The distribution of a one-way delay, drawn anew for every message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Network {
    /// Always the same.
    Constant(Duration),
    /// `|N(mean, sd)|`: the absolute value of a normal variable.
    Normal {
        /// The mean of the normal variable.
        mean: Duration,
        /// Its standard deviation.
        sd: Duration,
    },
    /// Exponential with this mean.
    Exponential(Duration),
    /// Log-normal.
    LogNormal {
        /// Half of the messages are faster.
        median: Duration,
        /// The standard deviation of the logarithm; 0.5 is a usual spread, 1 a wide one.
        sigma: f64,
    },
}

impl Network {
    /// A constant round trip, half of it each way.
    pub const fn round_trip(rtt: Duration) -> Network {
        Network::Constant(Duration::from_nanos((rtt.as_nanos() / 2) as u64))
    }

    /// The mean of a one-way delay in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        match *self {
            Network::Constant(delay) | Network::Exponential(delay) => delay.as_nanos() as f64,
            Network::Normal { mean, sd } => folded_normal_mean(mean.as_nanos() as f64, sd.as_nanos() as f64),
            Network::LogNormal { median, sigma } => median.as_nanos() as f64 * (sigma * sigma / 2.0).exp(),
        }
    }
}

/// The mean of `|N(mean, sd)|`.
fn folded_normal_mean(mean: f64, sd: f64) -> f64 {
    if sd == 0.0 {
        return mean;
    }
    let z = mean / sd;
    // Beyond 4 standard deviations folding moves the mean by less than 1e-5 of the deviation.
    if z > 4.0 {
        return mean;
    }
    let draws = 4096;
    (0..draws).map(|i| (mean + sd * quantile((f64::from(i) + 0.5) / f64::from(draws))).abs()).sum::<f64>()
        / f64::from(draws)
}

/// The quantile of the standard normal distribution, to about 4e-4 (Abramowitz and Stegun 26.2.23).
fn quantile(p: f64) -> f64 {
    let t = (-2.0 * p.min(1.0 - p).ln()).sqrt();
    let numerator = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let denominator = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let z = t - numerator / denominator;
    if p < 0.5 { -z } else { z }
}
