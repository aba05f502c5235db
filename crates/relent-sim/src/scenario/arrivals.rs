//! Who calls, and when: a herd that was cut off, or a stream of calls.

use std::{sync::Arc, time::Duration};

/// Who calls, and when.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// So many clients, each with one call that begins when it is cut off: at time 0, or uniformly within a window.
    Herd {
        /// How many.
        clients: u64,
        /// Within what time they are cut off.
        window: Duration,
    },
    /// Calls from many sources, whether or not earlier ones were answered.
    Open {
        /// Calls a second over time.
        rate: Rate,
        /// Whether the times between calls are exponential rather than even.
        poisson: bool,
        /// Calls that begin later than this are not made, and the run ends.
        until: Duration,
    },
}

/// A rate over time: straight lines between points, the first and last value beyond them. Copies share their points.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    points: Arc<[(f64, f64)]>,
    /// When spikes are over.
    spikes: Arc<[f64]>,
}

impl Rate {
    /// Always the same.
    pub fn constant(per_s: f64) -> Rate {
        Rate::lines(vec![(0.0, per_s)])
    }

    /// Straight lines between `(seconds, calls a second)`, in the order of time. Two points at one time are a step.
    pub fn lines(points: Vec<(f64, f64)>) -> Rate {
        Rate { points: points.into(), spikes: Arc::default() }
    }

    /// The same rate, multiplied within `at..at + lasts`.
    #[must_use]
    pub fn spike(&self, at: Duration, lasts: Duration, times: f64) -> Rate {
        let (from, to) = (at.as_secs_f64(), at.saturating_add(lasts).as_secs_f64());
        let mut points: Vec<(f64, f64)> = self.points.iter().copied().filter(|p| p.0 < from).collect();
        let (a, b) = (self.at(from), self.at(to));
        points.extend([(from, a), (from, a * times)]);
        points.extend(self.points.iter().filter(|p| p.0 > from && p.0 < to).map(|p| (p.0, p.1 * times)));
        points.extend([(to, b * times), (to, b)]);
        points.extend(self.points.iter().copied().filter(|p| p.0 > to));
        let rush = (times > 1.0).then_some(to);
        Rate { points: points.into(), spikes: self.spikes.iter().copied().chain(rush).collect() }
    }

    /// The same rate until a time in seconds, and nothing from then on.
    #[must_use]
    pub(crate) fn until(&self, end: f64) -> Rate {
        let mut points: Vec<(f64, f64)> = self.points.iter().copied().filter(|point| point.0 < end).collect();
        if points.is_empty() {
            points.push((0.0, self.at(0.0)));
        }
        // At the end of a line that a step follows, the rate is that of the line.
        points.extend(self.pieces(end).last().map(|piece| (end, piece.3)));
        points.push((end, 0.0));
        Rate { points: points.into(), spikes: self.spikes.iter().copied().filter(|spike| *spike < end).collect() }
    }

    /// All of these rates together until a time in seconds.
    pub(crate) fn sum(rates: &[Rate], until: f64) -> Rate {
        let pieces: Vec<Vec<(f64, f64, f64, f64)>> = rates.iter().map(|rate| rate.pieces(until)).collect();
        let mut rest: Vec<&[(f64, f64, f64, f64)]> = pieces.iter().map(Vec::as_slice).collect();
        let mut times: Vec<f64> = pieces.iter().flatten().flat_map(|piece| [piece.0, piece.2]).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        let mut points = Vec::new();
        for pair in times.windows(2) {
            let middle = f64::midpoint(pair[0], pair[1]);
            let (mut from, mut to) = (0.0, 0.0);
            for own in &mut rest {
                // No piece is looked at again that is over: rates have as many as a file has room for.
                let over = own.iter().take_while(|piece| piece.2 <= middle).count();
                *own = &own[over..];
                let Some((t0, r0, t1, r1)) = own.first().filter(|piece| piece.0 <= middle) else { continue };
                let at = |time: f64| r0 + (r1 - r0) * (time - t0) / (t1 - t0);
                from += at(pair[0]);
                to += at(pair[1]);
            }
            points.extend([(pair[0], from), (pair[1], to)]);
        }
        if points.is_empty() {
            points.push((0.0, rates.iter().map(|rate| rate.at(0.0)).sum()));
        }
        Rate { points: points.into(), spikes: rates.iter().flat_map(|rate| rate.spikes.iter().copied()).collect() }
    }

    /// The points.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// The rate at a time.
    pub fn at(&self, seconds: f64) -> f64 {
        let after = self.points.iter().position(|p| p.0 > seconds);
        match after {
            _ if self.points.is_empty() => 0.0,
            Some(0) => self.points[0].1,
            None => self.points[self.points.len() - 1].1,
            Some(i) => {
                let ((t0, r0), (t1, r1)) = (self.points[i - 1], self.points[i]);
                r0 + (r1 - r0) * (seconds - t0) / (t1 - t0)
            }
        }
    }

    /// The greatest rate up to a time.
    pub fn most(&self, until: f64) -> f64 {
        let within = self.points.iter().filter(|p| p.0 <= until).map(|p| p.1);
        within.fold(self.at(0.0).max(self.at(until)), f64::max)
    }

    /// When the last rush is over that is over before `until`: a spike, or more calls than the capacity.
    pub(crate) fn rush_ends(&self, until: f64, capacity: Option<f64>) -> Option<f64> {
        let beyond = |(t0, r0, t1, r1): &(f64, f64, f64, f64)| {
            let capacity = capacity?;
            match (*r0 > capacity, *r1 > capacity) {
                (_, true) => Some(*t1),
                (true, false) => Some(t0 + (t1 - t0) * (r0 - capacity) / (r0 - r1)),
                (false, false) => None,
            }
        };
        let over = self.pieces(until).iter().filter_map(beyond).collect::<Vec<_>>();
        self.spikes.iter().copied().chain(over).filter(|end| *end < until).reduce(f64::max)
    }

    /// The calls expected until a time: the integral.
    pub fn total(&self, until: f64) -> f64 {
        self.pieces(until).iter().map(|(t0, r0, t1, r1)| (r0 + r1) / 2.0 * (t1 - t0)).sum()
    }

    /// The straight pieces of `0..until`: from, rate, to, rate.
    pub(crate) fn pieces(&self, until: f64) -> Vec<(f64, f64, f64, f64)> {
        let mut pieces = Vec::new();
        let (mut t0, mut r0) = (0.0, self.at(0.0));
        for &(t, r) in self.points.iter().filter(|p| p.0 >= 0.0 && p.0 <= until) {
            if t > t0 {
                pieces.push((t0, r0, t, r));
            }
            (t0, r0) = (t, r);
        }
        if until > t0 {
            pieces.push((t0, r0, until, self.at(until)));
        }
        pieces
    }
}

impl Arrivals {
    /// Clients of a herd, or calls expected of a stream.
    pub fn clients(&self) -> f64 {
        match self {
            Arrivals::Herd { clients, .. } => *clients as f64,
            Arrivals::Open { rate, until, .. } => rate.total(until.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_multiplies_within_its_time() {
        let rate = Rate::constant(10.0).spike(Duration::from_secs(5), Duration::from_secs(2), 3.0);
        assert_eq!([4.9, 5.0, 6.9, 7.1].map(|t| rate.at(t)), [10.0, 30.0, 30.0, 10.0]);
        assert!((rate.total(10.0) - 140.0).abs() < 1e-9);
        assert_eq!(rate.most(10.0), 30.0);
    }

    /// Were all points of each rate looked at between any two of all, it would take minutes.
    #[test]
    fn rates_of_many_points_are_added_up() {
        let rate = |nth: u32| Rate::lines((0..20_000).map(|i| (f64::from(i * 100 + nth), f64::from(nth))).collect());
        let sum = Rate::sum(&(0..20).map(rate).collect::<Vec<_>>(), 2e6);
        assert_eq!(sum.points().len(), 2 * 20 * 20_000);
        assert_eq!([0.0, 5050.5, 1_999_999.5].map(|time| sum.at(time)), [190.0; 3]);
    }
}
