//! When the calls of a stream come.

use super::{
    control::{Control, TICK},
    draws::{self, Draws, Purpose},
};
use crate::scenario::Rate;
use std::time::Duration;

impl Rate {
    /// The times of the calls of one run, in nanoseconds: even steps of the integral, or exponential ones. Not all of a run that is stopped.
    pub(crate) fn times(&self, until: Duration, poisson: bool, draws: &Draws, control: &Control) -> Vec<u64> {
        let pieces = self.pieces(until.as_secs_f64());
        let expected: f64 = pieces.iter().map(|(t0, r0, t1, r1)| (r0 + r1) / 2.0 * (t1 - t0)).sum();
        let mut times = Vec::new();
        // Luck seldom brings more. If there is no room for so many at once, the list grows as it can.
        let _ = times.try_reserve_exact((expected + 4.0 * expected.max(1.0).sqrt()) as usize);
        let step = |call: usize| match poisson {
            true => draws::exponential(draws.world(call as u64, 0, Purpose::Start)),
            false => 1.0,
        };
        // Even calls begin half a step after the start, so that no two streams begin with a rush.
        let mut due = if poisson { step(0) } else { 0.5 };
        let mut done = 0.0;
        for (t0, r0, t1, r1) in pieces {
            let area = (r0 + r1) / 2.0 * (t1 - t0);
            while due < done + area {
                let seconds = t0 + place(due - done, r0, (r1 - r0) / (t1 - t0));
                times.push((seconds * 1e9) as u64);
                due += step(times.len());
                if (times.len() as u64).is_multiple_of(TICK) && !control.tick(0) {
                    return times;
                }
            }
            done += area;
        }
        times
    }
}

/// Where the area under `rate + slope * x` reaches `area`.
fn place(area: f64, rate: f64, slope: f64) -> f64 {
    // The stable form of the quadratic formula, good for a slope of zero.
    2.0 * area / (rate + (rate * rate + 2.0 * slope * area).max(0.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_calls_follow_a_ramp() {
        let draws = Draws::new(1, None);
        let rate = Rate::lines(vec![(0.0, 0.0), (10.0, 100.0), (10.0, 20.0)]);
        let times = rate.times(Duration::from_secs(20), false, &draws, &Control::default());
        assert_eq!(times.len(), 700);
        assert!(times.is_sorted());
        let before = |seconds: f64| times.iter().filter(|t| (**t as f64) < seconds * 1e9).count() as f64;
        for (seconds, expected) in [(2.0, 20.0), (5.0, 125.0), (10.0, 500.0), (15.0, 600.0)] {
            assert!((before(seconds) - expected).abs() <= 1.0, "{} by {seconds}", before(seconds));
        }
    }

    #[test]
    fn no_more_room_is_taken_than_calls_come() {
        for poisson in [false, true] {
            let rate = Rate::constant(1e5);
            let times = rate.times(Duration::from_secs(2), poisson, &Draws::new(1, None), &Control::default());
            assert!(times.capacity() < 202_000, "{} for {}", times.capacity(), times.len());
        }
    }

    #[test]
    fn who_is_stopped_draws_no_more() {
        let control = Control::default();
        let count = || Rate::constant(1e6).times(Duration::from_secs(1), true, &Draws::new(1, None), &control).len();
        assert!(count() > 900_000);
        control.stop();
        assert_eq!(count() as u64, TICK);
    }

    #[test]
    fn poisson_calls_have_the_mean_and_variance_of_poisson() {
        let rate = Rate::constant(100.0);
        let counts: Vec<f64> = (0..2000)
            .map(|seed| {
                rate.times(Duration::from_secs(1), true, &Draws::new(seed, None), &Control::default()).len() as f64
            })
            .collect();
        let mean = counts.iter().sum::<f64>() / 2000.0;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / 1999.0;
        assert!((mean - 100.0).abs() < 1.0 && (variance - 100.0).abs() < 13.0, "{mean} {variance}");
    }
}
