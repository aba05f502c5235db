//! How the runs of one policy differ: along time, and along the clients, the mean and the band that nine of ten runs
//! keep to.
//!
//! Every run measures in bins of its own, which widen as it goes on. Of a run that is over, a [`Trace`] of a few
//! kilobytes is kept; traces are brought to the widest bin among them. They come in the order of the seeds, so that the
//! bands do not depend on the threads.

use super::{LoadBin, Plots};

/// How the runs of one policy differ. Of many runs the first 256 are in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bands {
    /// The runs.
    pub runs: u32,
    /// The width of a bin of `attempts` and `connected`, in seconds.
    pub bin_s: f64,
    /// Attempts that reached the server in each bin.
    pub attempts: Vec<Band>,
    /// Clients that had their answer by the end of each bin.
    pub connected: Vec<Band>,
    /// The share of clients that waited no longer than so many seconds: `(share, seconds)`, ascending.
    pub waits: Vec<(f64, Band)>,
}

/// A value in several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Band {
    /// Below it lies one run in twenty; with fewer than twenty runs, none.
    pub low: f64,
    /// The mean.
    pub mean: f64,
    /// Above it lies one run in twenty; with fewer than twenty runs, none.
    pub high: f64,
}

/// The most runs that are kept.
pub(crate) const MOST_TRACES: u32 = 256;
/// The most bins of a trace: as many as a plot has room for.
const MOST_BINS: usize = 512;

/// What is kept of a run.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    bin_s: f64,
    attempts: Vec<f64>,
    /// Clients that had their answer by the end of each bin.
    connected: Vec<f64>,
    waits: Vec<(f64, f64)>,
}

impl Trace {
    pub(crate) fn of(plots: &Plots) -> Trace {
        let joined = plots.load.len().div_ceil(MOST_BINS).next_power_of_two();
        let mut trace = Trace {
            bin_s: plots.bin_s,
            attempts: plots.load.iter().map(|bin| bin.first + bin.retries).collect(),
            connected: running(&plots.load),
            waits: plots.waits.clone(),
        };
        trace.join(joined);
        trace
    }

    /// Makes one bin of so many.
    fn join(&mut self, bins: usize) {
        if bins <= 1 {
            return;
        }
        self.bin_s *= bins as f64;
        self.attempts = self.attempts.chunks(bins).map(|bins| bins.iter().sum()).collect();
        self.connected = self.connected.chunks(bins).filter_map(|bins| bins.last().copied()).collect();
    }

    fn wait(&self, share: f64) -> Option<f64> {
        let place = self.waits.partition_point(|(other, _)| *other < share);
        self.waits.get(place).map(|(_, wait)| *wait)
    }
}

fn running(load: &[LoadBin]) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |bin: &LoadBin| {
        sum += bin.connected;
        sum
    };
    load.iter().map(add).collect()
}

impl Bands {
    /// What the traces have in common; nothing where there are not at least two.
    pub(crate) fn of(mut traces: Vec<Trace>) -> Option<Bands> {
        if traces.len() < 2 {
            return None;
        }
        let bin_s = traces.iter().map(|trace| trace.bin_s).fold(0.0, f64::max);
        for trace in traces.iter_mut().filter(|trace| trace.bin_s > 0.0) {
            trace.join((bin_s / trace.bin_s).round() as usize);
        }
        let bins = traces.iter().map(|trace| trace.attempts.len()).max().unwrap_or(0);
        let mut values = Vec::with_capacity(traces.len());
        let mut band = |of: &dyn Fn(&Trace) -> Option<f64>| {
            values.clear();
            values.extend(traces.iter().filter_map(of));
            Band::of(&mut values)
        };
        // A run that is over has no more attempts, and keeps the clients that it has.
        let attempts = (0..bins).filter_map(|bin| band(&|trace| Some(trace.attempts.get(bin).copied().unwrap_or(0.0))));
        let attempts = attempts.collect();
        let reached = |trace: &Trace, bin: usize| trace.connected.get(bin).or(trace.connected.last()).copied();
        let connected = (0..bins).filter_map(|bin| band(&|trace| Some(reached(trace, bin).unwrap_or(0.0))));
        let connected = connected.collect();
        let shares =
            traces.iter().map(|trace| &trace.waits).max_by_key(|waits| waits.len()).cloned().unwrap_or_default();
        let waits = shares.iter().filter_map(|(share, _)| Some((*share, band(&|trace| trace.wait(*share))?)));
        let waits = waits.collect();
        Some(Bands { runs: traces.len() as u32, bin_s, attempts, connected, waits })
    }
}

impl Band {
    /// The band of some values; none of none.
    fn of(values: &mut [f64]) -> Option<Band> {
        values.sort_by(f64::total_cmp);
        let left_out = values.len() / 20;
        let (low, high) = (values.get(left_out)?, values.get(values.len() - 1 - left_out)?);
        Some(Band { low: *low, mean: values.iter().sum::<f64>() / values.len() as f64, high: *high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plots(bin_s: f64, connected: &[f64], waits: &[(f64, f64)]) -> Plots {
        let bin = |connected: &f64| LoadBin { first: 2.0, retries: 1.0, connected: *connected, ..LoadBin::default() };
        Plots { bin_s, load: connected.iter().map(bin).collect(), waits: waits.to_vec(), ..Plots::default() }
    }

    #[test]
    fn runs_with_bins_of_different_widths_are_brought_to_the_widest() {
        let narrow = plots(0.001, &[1.0, 2.0, 3.0, 4.0], &[(0.5, 1.0), (1.0, 4.0)]);
        let wide = plots(0.002, &[5.0, 1.0, 1.0], &[(0.5, 3.0), (1.0, 8.0)]);
        let bands = Bands::of(vec![Trace::of(&narrow), Trace::of(&wide)]).unwrap();
        assert_eq!((bands.runs, bands.bin_s), (2, 0.002));
        let low_and_high = |bands: &[Band]| bands.iter().map(|band| (band.low, band.high)).collect::<Vec<_>>();
        // The first is over after two bins: it keeps its ten clients.
        assert_eq!(low_and_high(&bands.connected), [(3.0, 5.0), (6.0, 10.0), (7.0, 10.0)]);
        assert_eq!(low_and_high(&bands.attempts), [(3.0, 6.0), (3.0, 6.0), (0.0, 3.0)]);
        assert_eq!(bands.waits[0], (0.5, Band { low: 1.0, mean: 2.0, high: 3.0 }));
        assert_eq!(bands.waits[1].1.mean, 6.0);
    }

    #[test]
    fn nine_of_ten_runs_lie_within() {
        let band = |count: u32| Band::of(&mut (0..count).rev().map(f64::from).collect::<Vec<_>>());
        assert_eq!(band(0), None);
        assert_eq!(band(5), Some(Band { low: 0.0, mean: 2.0, high: 4.0 }), "of few runs all");
        assert_eq!(band(100), Some(Band { low: 5.0, mean: 49.5, high: 94.0 }));
    }

    #[test]
    fn a_trace_is_small_and_loses_nobody() {
        let long = plots(0.004, &[1.0; 2001], &[]);
        let trace = Trace::of(&long);
        assert!(trace.attempts.len() <= MOST_BINS && trace.connected.len() == trace.attempts.len());
        assert_eq!((trace.bin_s, trace.connected.last()), (0.016, Some(&2001.0)));
        assert_eq!(trace.attempts.iter().sum::<f64>(), 6003.0);
    }

    #[test]
    fn one_run_has_no_band() {
        assert_eq!(Bands::of(vec![Trace::of(&plots(0.001, &[1.0], &[]))]), None);
        let nothing = Bands::of(vec![Trace::of(&Plots::default()); 2]).unwrap();
        assert_eq!((nothing.bin_s, nothing.attempts, nothing.waits.len()), (0.0, vec![], 0));
    }
}
