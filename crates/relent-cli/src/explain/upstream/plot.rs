//! An upstream as a chart: attempts a call against the share of attempts that fail, or how long its breaker is open.

use super::{OnUpstream, allowed, opened};
use crate::{
    plot::{Chart, Point, Series, Tick, count_ticks, duration_ticks, number_ticks},
    redact,
};

/// The chart of its budget, or else of its breaker; `None` if neither has one.
pub(in crate::explain) fn chart(on: &OnUpstream) -> Option<Chart> {
    budget(on).or_else(|| breaker(on))
}

/// Steps of the horizontal axis.
const STEPS: u32 = 50;

/// Its name as it is told: it may look like what it stands for.
fn name(on: &OnUpstream) -> String {
    redact::text(&on.described.name).into_owned()
}

fn budget(on: &OnUpstream) -> Option<Chart> {
    let budget = on.settings.budget?;
    // What is bounded only at some shares has no line there.
    let points = |attempts: &dyn Fn(f64) -> Option<f64>| -> Vec<Point> {
        let shares = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS));
        shares.filter_map(|share| Some(Point::of(share * 100.0, attempts(share)?))).collect()
    };
    let most = allowed::most(&on.policy);
    let allowed = points(&|share| allowed::attempts(&on.settings, most, on.load, share));
    let wanted = points(&|share| allowed::wanted(most, share));
    let is_bounded =
        allowed::retries_a_second(&budget, on.load).is_some() || on.settings.amplification(&on.policy) != most;
    if !is_bounded {
        return None;
    }
    let series = vec![
        Series { name: "the policy alone".to_owned(), points: wanted, ..Series::default() },
        Series { name: format!("on {}", name(on)), points: allowed, ..Series::default() },
    ];
    let most = series.iter().flat_map(|series| &series.points).map(|point| point.high).fold(0.0, f64::max).min(20.0);
    let percent = |tick: u32| Tick { at: f64::from(tick), label: format!("{tick} %") };
    Some(Chart {
        title: format!("{}: attempts a call at {} calls a second", name(on), super::figure(on.load)),
        x_name: "share of attempts that fail".to_owned(),
        y_name: "Attempts a call".to_owned(),
        x_ticks: [0, 25, 50, 75, 100].map(percent).to_vec(),
        y_ticks: number_ticks(most, 4),
        y_limit: Some(number_ticks(most, 4).last().map_or(most, |tick| tick.at)),
        series,
        ..Chart::default()
    })
}

/// The open times by trip: as bands, because of their jitter.
pub(super) fn breaker(on: &OnUpstream) -> Option<Chart> {
    let times = opened::times(&on.settings.breaker?);
    if times.len() < 2 {
        return None;
    }
    let point = |(nth, (least, most)): (usize, &(std::time::Duration, std::time::Duration))| {
        let (low, high) = (least.as_secs_f64(), most.as_secs_f64());
        Point { x: nth as f64 + 1.0, low, middle: (low + high) / 2.0, high }
    };
    let points: Vec<Point> = times.iter().enumerate().map(point).collect();
    let most = points.iter().map(|point| point.high).fold(0.0, f64::max);
    Some(Chart {
        title: format!("{}: how long the breaker is open", name(on)),
        x_name: "trip".to_owned(),
        y_name: "Open for: mean, and the band from least to greatest".to_owned(),
        x_ticks: count_ticks(1, times.len() as u32, 12),
        y_ticks: duration_ticks(most, 4),
        series: vec![Series { name: name(on), points, ..Series::default() }],
        ..Chart::default()
    })
}
