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
        let slow: Vec<(u64, u64, f64)> = troubles.iter().filter_map(slowness).collect();
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

fn slowness(trouble: &Trouble) -> Option<(u64, u64, f64)> {
    let speed = match trouble.kind {
        TroubleKind::Stall => 0.0,
        TroubleKind::Slow(share) => share,
        TroubleKind::Refuse | TroubleKind::Failing(_) => return None,
    };
    Some((trouble.begins_ns(), trouble.ends_ns(), speed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn work_waits_for_the_end_of_a_stall_and_crawls_through_a_brown_out() {
        let at = |at: u64, lasts: u64, kind| Trouble {
            at: Duration::from_nanos(at),
            lasts: Duration::from_nanos(lasts),
            kind,
        };
        let speed = Speed::new(&[at(100, 50, TroubleKind::Stall), at(200, 100, TroubleKind::Slow(0.5))]);
        let finish = |start, work| speed.finish(PreciseTime::from_nanos(start), PreciseTime::from_nanos(work)).nanos();
        assert_eq!(finish(0, 100), 100);
        assert_eq!(finish(0, 101), 151);
        assert_eq!(finish(120, 10), 160);
        assert_eq!(finish(190, 20), 220);
        assert_eq!(finish(190, 70), 310);
        assert_eq!(finish(400, 5), 405);
    }
}
