//! A chart before it is drawn: axes with ticks, and series of points with a band.

use relent::duration::Human;
use std::time::Duration;

/// A chart: two axes from zero (or the first point) on, and the series they hold.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// What it shows, in a few words.
    pub title: String,
    /// What the horizontal axis counts.
    pub x_name: String,
    /// What the vertical axis measures.
    pub y_name: String,
    /// Where the horizontal axis is labelled.
    pub x_ticks: Vec<Tick>,
    /// Where the vertical axis is labelled. It ends at the last tick, if that is above every point.
    pub y_ticks: Vec<Tick>,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Where the vertical axis ends, though points lie above: they are drawn at its end.
    pub y_limit: Option<f64>,
    /// Where the horizontal axis begins and ends, whatever the points: charts that stand together share it.
    pub x_limits: Option<(f64, f64)>,
    /// A remark on what the chart cannot show.
    pub note: String,
    /// Times that are marked, from and to, with what happens in them.
    pub shaded: Vec<(f64, f64, String)>,
}

/// A labelled place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Where it is, in the axis' own unit.
    pub at: f64,
    /// What is written there.
    pub label: String,
}

/// A line with a band around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<Point>,
    /// How it is drawn.
    pub mark: Mark,
}

/// How a series is drawn in a file. On a terminal everything is a line with its band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// A line through the points, and the band around it.
    #[default]
    Line,
    /// A line that is never dashed, with gaps where there is nothing.
    Solid,
    /// The band alone, filled.
    Area,
    /// A large dot a point, with the series' name beside it.
    Dot,
    /// A small upright stroke a point.
    Speck,
    /// A dashed line in the colour of text, or a single place, with its name: what the others are compared with.
    Reference,
}

/// A point of a series: where, the line's value, and the band's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where it is.
    pub x: f64,
    /// The band's lower end.
    pub low: f64,
    /// The line.
    pub middle: f64,
    /// The band's upper end.
    pub high: f64,
}

impl Point {
    /// A point without a band.
    pub fn of(x: f64, y: f64) -> Point {
        Point { x, low: y, middle: y, high: y }
    }
}

impl Chart {
    /// The ends of the horizontal axis: the first and the last point or tick.
    pub fn x_range(&self) -> (f64, f64) {
        if let Some(limits) = self.x_limits {
            return limits;
        }
        let points = || self.series.iter().flat_map(|series| &series.points).map(|point| point.x);
        let xs = || points().chain(self.x_ticks.iter().map(|tick| tick.at));
        let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
        match low.is_finite() {
            true if low < high => (low, high),
            true => (low - 0.5, low + 0.5),
            false => (0.0, 1.0),
        }
    }

    /// The upper end of the vertical axis, which begins at zero. Never zero.
    pub fn y_most(&self) -> f64 {
        if let Some(limit) = self.y_limit {
            return limit;
        }
        let points = self.series.iter().flat_map(|series| &series.points).map(|point| point.high);
        let most = points.chain(self.y_ticks.last().map(|tick| tick.at)).fold(0.0, f64::max);
        if most > 0.0 { most } else { 1.0 }
    }
}

/// Ticks for durations in seconds, from zero to at least `most` seconds, at most `count` steps and as few as are round.
pub fn duration_ticks(most: f64, count: usize) -> Vec<Tick> {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 3600.0;
    const DAY: f64 = 86_400.0;
    const ROUND: [f64; 17] = [
        1.0,
        2.0,
        5.0,
        10.0,
        15.0,
        30.0,
        MINUTE,
        2.0 * MINUTE,
        5.0 * MINUTE,
        10.0 * MINUTE,
        15.0 * MINUTE,
        30.0 * MINUTE,
        HOUR,
        2.0 * HOUR,
        6.0 * HOUR,
        12.0 * HOUR,
        DAY,
    ];
    let wanted = most / count as f64;
    let step = if wanted <= 1.0 {
        decimal_step(wanted.max(1e-9))
    } else {
        ROUND.into_iter().find(|&round| round >= wanted).unwrap_or_else(|| decimal_step(wanted / DAY) * DAY)
    };
    ticks(most, step, |at| Human(Duration::try_from_secs_f64(at).unwrap_or(Duration::MAX)).to_string())
}

/// Ticks for the whole numbers between two, both ends included where they fall on a round step.
pub fn count_ticks(from: u32, to: u32, count: usize) -> Vec<Tick> {
    let step = decimal_step((f64::from(to.saturating_sub(from)) / count as f64).max(1.0)) as u32;
    let first = if step == 1 { from } else { from.next_multiple_of(step) };
    let tick = |at: u32| Tick { at: f64::from(at), label: at.to_string() };
    (first..=to).step_by(step as usize).map(tick).collect()
}

/// Ticks for plain numbers from zero to at least `most`.
pub fn number_ticks(most: f64, count: usize) -> Vec<Tick> {
    let step = decimal_step((most / count as f64).max(1e-9));
    ticks(most, step, |at| format!("{at}"))
}

fn ticks(most: f64, step: f64, label: impl Fn(f64) -> String) -> Vec<Tick> {
    let steps = (most / step - 1e-9).ceil().clamp(1.0, 1000.0) as u32;
    let tick = |n: u32| {
        // Multiples of 0.1 have more decimals than they should; labels do not.
        let at = (f64::from(n) * step * 1e9).round() / 1e9;
        Tick { at, label: label(at) }
    };
    (0..=steps).map(tick).collect()
}

/// The least of 1, 2 or 5 times a power of ten that is not below `wanted`.
fn decimal_step(wanted: f64) -> f64 {
    let power = 10f64.powf(wanted.log10().floor());
    let round = [1.0, 2.0, 5.0, 10.0].into_iter().find(|round| round * power >= wanted * (1.0 - 1e-9));
    round.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Vec<Tick>) -> Vec<String> {
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn durations_have_round_ticks() {
        assert_eq!(labels(duration_ticks(64.0, 5)), ["0s", "15s", "30s", "45s", "1m", "1m15s"]);
        assert_eq!(labels(duration_ticks(0.25, 5)), ["0s", "50ms", "100ms", "150ms", "200ms", "250ms"]);
        assert_eq!(labels(duration_ticks(600.0, 5)), ["0s", "2m", "4m", "6m", "8m", "10m"]);
        assert_eq!(labels(duration_ticks(7200.0, 4)), ["0s", "30m", "1h", "1h30m", "2h"]);
        assert_eq!(labels(duration_ticks(3e-6, 3)), ["0s", "1us", "2us", "3us"]);
        assert_eq!(duration_ticks(1e10, 5).len(), 4, "{:?}", duration_ticks(1e10, 5));
    }

    #[test]
    fn numbers_have_round_ticks() {
        assert_eq!(labels(number_ticks(200.0, 4)), ["0", "50", "100", "150", "200"]);
        assert_eq!(labels(number_ticks(7.0, 4)), ["0", "2", "4", "6", "8"]);
        assert_eq!(labels(number_ticks(0.0, 4)).len(), 2);
    }

    #[test]
    fn counts_have_whole_ticks() {
        assert_eq!(labels(count_ticks(2, 8, 12)), ["2", "3", "4", "5", "6", "7", "8"]);
        assert_eq!(labels(count_ticks(2, 30, 8)), ["5", "10", "15", "20", "25", "30"]);
        assert_eq!(labels(count_ticks(2, 2, 8)), ["2"]);
        assert!(count_ticks(3, 2, 8).is_empty());
    }

    #[test]
    fn ranges_are_never_empty() {
        let mut chart = Chart::default();
        assert_eq!(chart.y_most(), 1.0);
        assert_eq!(chart.x_range(), (0.0, 1.0));
        chart.series = vec![Series { name: String::new(), points: vec![Point::of(2.0, 0.0)], ..Series::default() }];
        assert_eq!(chart.x_range(), (1.5, 2.5));
        assert_eq!(chart.y_most(), 1.0);
    }
}
