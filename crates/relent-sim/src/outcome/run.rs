//! One run: one policy, one seed.

use super::{
    Figures, Plots,
    bands::{MOST_TRACES, Trace},
};
use std::collections::BTreeMap;

/// What one run yielded.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) clients: u64,
    pub(crate) figures: Figures,
    pub(crate) recovered: Option<bool>,
    pub(crate) stopped: Option<String>,
    pub(crate) plots: Plots,
    pub(crate) gave_up: BTreeMap<&'static str, u64>,
    /// Open arrivals: attempts by the tenth of a second in which they were sent.
    pub(crate) health: Vec<Health>,
    /// Things that were counted on the way: `(name, how often, of how many)`.
    pub(crate) notes: Vec<(String, u64, u64)>,
    /// The same of each population, where there are several.
    pub(crate) populations: Vec<Run>,
}

impl Run {
    /// What is kept of the run of a seed, counted from zero: the first one's plots are drawn, of others there is a
    /// trace, as far as there is room for one.
    pub(crate) fn keep(mut self, seed: u32) -> Kept {
        self.populations = self.populations.into_iter().map(|own| own.keep(seed).run).collect();
        let trace = (seed < MOST_TRACES).then(|| Trace::of(&self.plots));
        if seed > 0 {
            self.plots = Plots { attempts: std::mem::take(&mut self.plots.attempts), ..Plots::default() };
        }
        self.health = Vec::new();
        Kept { run: self, trace }
    }
}

/// A run that is over, with as much of its plots as will be drawn.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) run: Run,
    pub(crate) trace: Option<Trace>,
}

/// Attempts by the time they were sent, and calls by the time they began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Health {
    /// First attempts.
    pub(crate) first: u64,
    /// All attempts.
    pub(crate) sent: u64,
    /// Those that succeeded.
    pub(crate) succeeded: u64,
    /// Calls that began in this time.
    pub(crate) began: u64,
    /// Those of them that succeeded, whenever that was.
    pub(crate) ended_well: u64,
}
