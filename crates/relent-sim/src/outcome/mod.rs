//! What a simulation yields: one record a policy, side by side, and the series that plots are drawn from.

pub(crate) mod advice;
pub(crate) mod bands;
mod broken;
mod figures;
pub(crate) mod histogram;
mod ideal;
pub(crate) mod run;
pub(crate) mod time_bins;

pub use self::{
    advice::{Advice, Cure, FatalOutage, Harm, Paced, Recommended, Remedied, Remedy, SafeLoad, Safety, Shape, Storm},
    bands::{Band, Bands},
    broken::Broken,
    figures::Figures,
    ideal::Ideal,
};

use crate::scenario::{Engine, Figure};
use std::collections::BTreeMap;

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The scenario's name.
    pub scenario: String,
    /// What was simulated, in a sentence.
    pub title: String,
    /// What the world could do at best, where that has a meaning.
    pub ideal: Option<Ideal>,
    /// One record a policy, in the order of the scenario.
    pub records: Vec<Record>,
    /// Pictures that belong to the scenario rather than to one policy.
    pub extras: Extras,
    /// What to do, if [`advise`](crate::advise) was asked.
    pub advice: Option<Advice>,
    /// Whether the run was cut short (by the user, who then sees what was done).
    pub interrupted: bool,
}

/// What one policy did.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The policy's name in the scenario.
    pub policy: String,
    /// What did the arithmetic.
    pub engine: Engine,
    /// Clients, or calls for open arrivals (mean over the runs, rounded).
    pub clients: u64,
    /// Runs with different luck.
    pub seeds: u32,
    /// The mean of each figure over the runs in which it has a meaning.
    pub mean: Figures,
    /// The standard deviation of a run (n - 1 in the denominator), where there are several.
    pub sd: Figures,
    /// The runs that recovered.
    pub recovered: Option<Share>,
    /// Clients that gave up in all runs together, by reason.
    pub gave_up: BTreeMap<&'static str, u64>,
    /// Why runs were stopped before they were over, if any was.
    pub stopped: Option<String>,
    /// What plots are drawn from: the first run; its `attempts` are those of all runs.
    pub plots: Plots,
    /// How the runs differ, where there are several.
    pub bands: Option<Bands>,
    /// The figures of each run, in the order of the seeds.
    pub runs: Vec<Figures>,
    /// The records of the populations, where the clients are not all alike: each under the name of this one and its own,
    /// `"RUN: POPULATION"`. Their clients, attempts, successes and all that is counted add up to those of this one.
    pub populations: Vec<Record>,
}

impl Record {
    /// This record, and those of its populations.
    pub fn with_populations(&self) -> impl Iterator<Item = &Record> {
        std::iter::once(self).chain(&self.populations)
    }

    /// The mean of a figure over the runs.
    pub const fn get(&self, figure: Figure) -> Option<f64> {
        self.mean.get(figure)
    }

    /// The standard deviation of a figure over the runs, where there are several.
    pub const fn sd(&self, figure: Figure) -> Option<f64> {
        self.sd.get(figure)
    }
}

/// A share of runs, with a Wilson score interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Runs of which it is true.
    pub yes: u32,
    /// All runs.
    pub of: u32,
}

impl Share {
    /// The share itself, 0 to 1.
    pub fn share(self) -> f64 {
        f64::from(self.yes) / f64::from(self.of.max(1))
    }

    /// The standard deviation of a run, which is 1 or 0; `None` of fewer than two.
    pub fn sd(self) -> Option<f64> {
        let (n, p) = (f64::from(self.of), self.share());
        (self.of > 1).then(|| (p * (1.0 - p) * n / (n - 1.0)).sqrt())
    }

    /// The bounds within which the probability lies with 95 % confidence.
    ///
    /// Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA 1927.
    ///
    /// ```
    /// let (low, high) = relent_sim::Share { yes: 20, of: 20 }.wilson();
    /// assert!((low - 0.8389).abs() < 1e-4 && high == 1.0);
    /// ```
    pub fn wilson(self) -> (f64, f64) {
        const Z: f64 = 1.959_963_984_540_054;
        let (n, p) = (f64::from(self.of.max(1)), self.share());
        let centre = p + Z * Z / (2.0 * n);
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        let low = if self.yes == 0 { 0.0 } else { (centre - half) / scale };
        let high = if self.yes >= self.of { 1.0 } else { (centre + half) / scale };
        (low, high)
    }
}

/// The series of one run, for plots. Empty where they have no meaning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plots {
    /// The width of a bin of `load`, in seconds.
    pub bin_s: f64,
    /// Load at the server over time, one entry a bin from time 0.
    pub load: Vec<LoadBin>,
    /// The share of clients that waited no longer than so many seconds: `(share, seconds)`, ascending.
    pub waits: Vec<(f64, f64)>,
    /// How many clients succeeded or gave up after so many attempts: entry `i` is `i` attempts. The last entry holds
    /// everybody beyond.
    pub attempts: Vec<u64>,
    /// The times at which the attempts of up to 200 sampled clients reached the server, in seconds: one list a client.
    pub raster: Vec<Vec<f64>>,
}

/// What happened at the server in one bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadBin {
    /// First attempts that arrived.
    pub first: f64,
    /// Retries that arrived.
    pub retries: f64,
    /// Arrivals that were turned away or failed.
    pub rejected: f64,
    /// Attempts that the server completed, in the bin of their completion, whether or not anybody still waited.
    pub served: f64,
    /// Clients that got their answer in this bin.
    pub connected: f64,
    /// Clients that gave up in this bin.
    pub gave_up: f64,
}

/// Pictures of a scenario as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// Load raised slowly and lowered again.
    pub hysteresis: Vec<Hysteresis>,
    /// The time that an outage takes to heal, by load.
    pub recovery: Vec<Recovery>,
    /// Base x cap.
    pub heat: Option<Heat>,
    /// More and fewer clients.
    pub sizes: Option<Sizes>,
    /// Layers x attempts a layer.
    pub layers: Option<Matrix>,
    /// Named numbers with their closed form, where there is one: `(name, measured, expected)`.
    pub checks: Vec<(String, f64, Option<f64>)>,
}

/// Goodput while the load rises and while it falls: what does not come back the way it went is metastable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hysteresis {
    /// The policy's name.
    pub policy: String,
    /// Points in the order of time.
    pub points: Vec<HysteresisPoint>,
}

/// One step of a hysteresis sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HysteresisPoint {
    /// First attempts in units of the capacity.
    pub rho: f64,
    /// Whether the load was rising.
    pub rising: bool,
    /// Successes in units of the capacity.
    pub goodput: f64,
    /// Attempts in units of the capacity.
    pub load: f64,
}

/// How long a system needs to be healthy again after an outage, by the load: the closer to the load that retries
/// multiply to the capacity, the longer; beyond, for ever.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovery {
    /// The policy's name.
    pub policy: String,
    /// How long the outage lasts, in seconds.
    pub outage_s: f64,
    /// How long it was waited for, in seconds.
    pub patience_s: f64,
    /// The safe load, in units of the capacity, from which on retries can keep a server busy in vain: 1 / attempts,
    /// where clients alone retry. `None` where every load is safe, or none.
    pub threshold: Option<f64>,
    /// By load, ascending.
    pub points: Vec<RecoveryPoint>,
}

/// The recovery at one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryPoint {
    /// First attempts in units of the capacity.
    pub rho: f64,
    /// Seconds from the end of the outage until calls succeed again; `None` is not while it was waited for.
    pub recovery_s: Option<f64>,
    /// The same by theory, where there is one.
    pub expected_s: Option<f64>,
}

/// The same world with more and fewer clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sizes {
    /// The numbers of clients, ascending.
    pub clients: Vec<u64>,
    /// What is shown of each.
    pub figures: Vec<Figure>,
    /// Runs of each policy with each number of clients.
    pub runs: u32,
    /// Policies, each with the means of its figures by number of clients.
    pub policies: Vec<(String, Vec<Figures>)>,
    /// What theory says about the first of `figures`, by number of clients, where it does.
    pub expected: Vec<Option<f64>>,
}

/// A map over base and cap, by the fluid engine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// The policy that was varied.
    pub policy: String,
    /// The bases, in seconds, ascending: the columns.
    pub base_s: Vec<f64>,
    /// The caps, in seconds, ascending: the rows.
    pub cap_s: Vec<f64>,
    /// `drain_over_ideal[row][column]`; `None` where the cap is shorter than the base or the limit of time was hit.
    pub drain_over_ideal: Vec<Vec<Option<f64>>>,
    /// `wasted_per_client[row][column]`, `None` as above.
    pub wasted_per_client: Vec<Vec<Option<f64>>>,
}

/// Calls at the bottom of a chain for one call at its top.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// The probability that an attempt at the bottom fails.
    pub failure: f64,
    /// Layers that retry: the rows.
    pub depths: Vec<u32>,
    /// Attempts a layer: the columns.
    pub attempts: Vec<u32>,
    /// `amplification[row][column]`.
    pub amplification: Vec<Vec<f64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_deviates_as_its_runs_do() {
        assert_eq!([(3, 3), (0, 3), (1, 1)].map(|(yes, of)| Share { yes, of }.sd()), [Some(0.0), Some(0.0), None]);
        // 1, 0: a mean of a half, off by a half each.
        assert!((Share { yes: 1, of: 2 }.sd().unwrap() - 0.5f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn wilson_intervals_hold_the_share_and_stay_inside() {
        for (yes, of) in [(0, 5), (1, 5), (3, 5), (5, 5), (50, 100), (0, 0)] {
            let share = Share { yes, of };
            let (low, high) = share.wilson();
            assert!(
                0.0 <= low && low <= share.share() && share.share() <= high && high <= 1.0,
                "{share:?} {low} {high}"
            );
        }
        // Newcombe 1998, table I: 81 of 263.
        let (low, high) = Share { yes: 81, of: 263 }.wilson();
        assert!((low - 0.2553).abs() < 1e-4 && (high - 0.3662).abs() < 1e-4, "{low} {high}");
    }
}
