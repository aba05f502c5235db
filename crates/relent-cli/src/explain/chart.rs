//! The schedules of policies as a chart: attempts across, delays up.

use super::{
    rows::rows,
    subject::{InShort, Subject},
};
use crate::plot::{Chart, Point, Series, count_ticks, duration_ticks};
use relent::Row;

/// A chart of the policies' delays, up to `most` attempts.
pub(super) fn chart(subjects: &[Subject], most: usize) -> Chart {
    let series: Vec<Series> = subjects
        .iter()
        .map(|subject| Series {
            name: subject.shown().into_owned(),
            points: rows(&subject.policy, most).shown.iter().map(point).collect(),
            ..Series::default()
        })
        .collect();
    let points = || series.iter().flat_map(|series| &series.points);
    let greatest = points().map(|point| point.high).fold(0.0, f64::max);
    let last = points().map(|point| point.x as u32).max().unwrap_or(2);
    let title = match subjects {
        [subject] if subject.is_named() => format!("{}: {}", subject.shown(), InShort(&subject.policy)),
        [subject] => InShort(&subject.policy).to_string(),
        subjects => subjects.iter().map(Subject::shown).collect::<Vec<_>>().join(" · "),
    };
    Chart {
        title,
        x_name: "attempt".to_owned(),
        y_name: "Delay before each attempt: mean, and the band from least to greatest".to_owned(),
        x_ticks: count_ticks(2, last, 12),
        y_ticks: duration_ticks(greatest, 5),
        series,
        ..Chart::default()
    }
}

fn point(row: &Row) -> Point {
    let seconds = |duration: std::time::Duration| duration.as_secs_f64();
    Point {
        x: f64::from(row.attempt),
        low: seconds(row.delay.min),
        middle: seconds(row.delay.mean),
        high: seconds(row.delay.max),
    }
}
