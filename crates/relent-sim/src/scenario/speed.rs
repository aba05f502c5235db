//! How fast the server works over time: outages and brown-outs.

use crate::{
    scenario::{Trouble, TroubleKind},
    time::PreciseTime,
};

/// Piecewise constant speed: from each time on, in units of the nominal capacity.
#[derive(Clone, Debug, Default)]
pub(crate) struct Speed {
    steps: Vec<(u64, f64)>,
}

impl Speed {
    pub(crate) fn new(troubles: &[Trouble]) -> Speed {
        let slow: Vec<(u64, u64, f64)> = troubles.iter().flat_map(slowness).collect();
        let mut times: Vec<u64> = slow.iter().flat_map(|(from, until, _)| [*from, *until]).collect();
        times.sort_unstable();
        times.dedup();
        let speed_at = |time: u64| {
            let within = slow.iter().filter(|(from, until, _)| (*from..*until).contains(&time));
            within.map(|(_, _, speed)| *speed).fold(1.0, f64::min)
        };
        Speed { steps: times.into_iter().map(|time| (time, speed_at(time))).collect() }
    }

    /// When work of this length is done that begins at `start`.
    #[inline]
    pub(crate) fn finish(&self, start: PreciseTime, work: PreciseTime) -> PreciseTime {
        if self.steps.is_empty() { start.plus(work) } else { self.finish_in_steps(start, work) }
    }

    fn finish_in_steps(&self, start: PreciseTime, work: PreciseTime) -> PreciseTime {
        let next = self.steps.partition_point(|step| PreciseTime::from_nanos(step.0) <= start);
        let mut speed = if next == 0 { 1.0 } else { self.steps[next - 1].1 };
        let (mut now, mut left) = (start, work);
        for &(time, next_speed) in &self.steps[next..] {
            let time = PreciseTime::from_nanos(time);
            let done = time.minus(now).times(speed);
            if done >= left {
                break;
            }
            (now, left, speed) = (time, left.minus(done), next_speed);
        }
        if speed == 1.0 { now.plus(left) } else { now.plus(left.times(1.0 / speed)) }
    }
}

/// Steps in which the speed rises after a trouble.
const RAMP: u64 = 20;

/// When the server is slow because of a trouble, and how slow: while it lasts, and while the speed rises after it.
fn slowness(trouble: &Trouble) -> Vec<(u64, u64, f64)> {
    let speed = match trouble.kind {
        TroubleKind::Stall => Some(0.0),
        TroubleKind::Slow(share) => Some(share),
        TroubleKind::Refuse | TroubleKind::Failing(_) | TroubleKind::Losing(_) => None,
    };
    let (stops, ends) = (trouble.stops_ns(), trouble.ends_ns());
    let at = |step: u64| stops + scale_of(ends - stops, step);
    let rising = (0..if ends > stops { RAMP } else { 0 }).map(|step| {
        // The middle of the step, so that the work done is that of a straight line.
        (at(step), at(step + 1), (step as f64 + 0.5) / RAMP as f64)
    });
    speed.map(|speed| (trouble.begins_ns(), stops, speed)).into_iter().chain(rising).collect()
}

fn scale_of(length: u64, step: u64) -> u64 {
    (u128::from(length) * u128::from(step) / u128::from(RAMP)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn work_waits_for_the_end_of_a_stall_and_crawls_through_a_brown_out() {
        let at = |at: u64, lasts: u64, kind| Trouble::new(Duration::from_nanos(at), Duration::from_nanos(lasts), kind);
        let speed = Speed::new(&[at(100, 50, TroubleKind::Stall), at(200, 100, TroubleKind::Slow(0.5))]);
        let finish = |start, work| speed.finish(PreciseTime::from_nanos(start), PreciseTime::from_nanos(work)).nanos();
        assert_eq!(finish(0, 100), 100);
        assert_eq!(finish(0, 101), 151);
        assert_eq!(finish(120, 10), 160);
        assert_eq!(finish(190, 20), 220);
        assert_eq!(finish(190, 70), 310);
        assert_eq!(finish(400, 5), 405);
    }

    #[test]
    fn after_a_ramp_half_of_the_work_is_done_that_could_be() {
        let outage = Trouble::new(Duration::ZERO, Duration::from_secs(1), TroubleKind::Refuse);
        let speed = Speed::new(&[outage.ramp(Duration::from_secs(10))]);
        let second = |s: u64| PreciseTime::from_nanos(s * 1_000_000_000);
        let done = |work: u64| speed.finish(second(1), second(work)).nanos() as f64 / 1e9;
        assert!((done(5) - 11.0).abs() < 1e-6, "{}", done(5));
        assert!((done(7) - 13.0).abs() < 1e-6, "{}", done(7));
        assert_eq!(speed.finish(second(20), second(3)), second(23));
    }
}
