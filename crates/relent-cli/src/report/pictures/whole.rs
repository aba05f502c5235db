//! The plots of a report that show the scenario as a whole, from further simulations of it.

use super::{
    Picture, Report, data, findings, picture,
    words::{count, percent, seconds},
};
use crate::plot::{Chart, Grid, Mark, Point, Series, Tick, duration_ticks, number_ticks};
use relent_sim::{Figure, Figures, Recovery, RecoveryPoint};

pub(super) fn heat_drain(report: &Report) -> Option<Picture> {
    let heat = report.outcome.extras.heat.as_ref()?;
    heat_map("heat-drain", report, "Drain time in units of the ideal", &heat.drain_over_ideal)
}

pub(super) fn heat_wasted(report: &Report) -> Option<Picture> {
    let heat = report.outcome.extras.heat.as_ref()?;
    heat_map("heat-wasted", report, "Wasted attempts a client", &heat.wasted_per_client)
}

fn heat_map(name: &'static str, report: &Report, what: &str, cells: &[Vec<Option<f64>>]) -> Option<Picture> {
    let heat = report.outcome.extras.heat.as_ref()?;
    let names = |values: &[f64]| values.iter().map(|value| seconds(two_digits(*value))).collect();
    let framed = data::best_cell(heat).and_then(|(row, column)| {
        let (time, wasted) = (heat.drain_over_ideal[row][column]?, heat.wasted_per_client[row][column]?);
        Some((row, column, format!("{} times the ideal, {} wasted", count(time), count(wasted))))
    });
    let grid = Grid {
        title: report.title().to_owned(),
        value_name: format!("{what}: {}", heat.policy),
        columns: ("base".to_owned(), names(&heat.base_s)),
        rows: ("cap".to_owned(), names(&heat.cap_s)),
        cells: cells.to_vec(),
        framed,
    };
    Some(Picture { name, svg: grid.draw() })
}

fn two_digits(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1e-9).log10().floor() - 1.0);
    (value / power).round() * power
}

pub(super) fn hysteresis(report: &Report) -> Option<Picture> {
    let sweeps = &report.outcome.extras.hysteresis;
    let line = |sweep: &relent_sim::Hysteresis, rising: bool| {
        let points = sweep.points.iter().filter(|point| point.rising == rising);
        let mut points: Vec<Point> = points.map(|point| Point::of(point.rho, point.goodput)).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let way = if rising { "going up" } else { "coming back" };
        Series { name: format!("{}, {way}", sweep.policy), points, mark: Mark::Line }
    };
    let series: Vec<Series> = sweeps.iter().flat_map(|sweep| [line(sweep, true), line(sweep, false)]).collect();
    let most = |of: fn(&Point) -> f64| series.iter().flat_map(|series| &series.points).map(of).fold(0.0, f64::max);
    let (x_most, y_most) = (most(|point| point.x), most(|point| point.middle));
    let chart = Chart {
        y_name: "Successes in units of the capacity, while the load rises and while it falls".to_owned(),
        x_name: "calls in units of the capacity".to_owned(),
        x_ticks: number_ticks(x_most, 8),
        y_ticks: number_ticks(y_most, 5),
        series,
        ..Chart::default()
    };
    picture("hysteresis", report, &[chart])
}

pub(super) fn recovery(report: &Report) -> Option<Picture> {
    let curves = &report.outcome.extras.recovery;
    let first = curves.first()?;
    let points = |curve: &Recovery, of: fn(&RecoveryPoint) -> Option<f64>| {
        curve.points.iter().filter_map(|point| Some(Point::of(point.rho, of(point)?))).collect::<Vec<_>>()
    };
    let line = |curve: &Recovery| Series {
        name: curve.policy.clone(),
        points: points(curve, |point| point.recovery_s),
        mark: Mark::Line,
    };
    let mut series: Vec<Series> = curves.iter().map(line).collect();
    // Where it always heals there is no wall, and the time that is waited for says nothing.
    let is_stuck = |curve: &&Recovery| curve.points.iter().any(|point| point.recovery_s.is_none());
    let stuck = curves.iter().filter(is_stuck);
    let mut thresholds: Vec<f64> = stuck.filter_map(|curve| curve.threshold).filter(|at| *at < 1.0).collect();
    thresholds.sort_by(f64::total_cmp);
    thresholds.dedup();
    let slowest =
        series.iter().flat_map(|series| &series.points).map(|point| point.high).fold(first.outage_s, f64::max);
    let most = if curves.iter().any(|curve| is_stuck(&curve)) { first.patience_s } else { slowest };
    series.extend(thresholds.into_iter().map(|at| Series {
        name: as_share(at),
        points: vec![Point::of(at, 0.0), Point::of(at, first.patience_s)],
        mark: Mark::Reference,
    }));
    let chart = Chart {
        y_name: format!(
            "Time to heal after an outage of {}; a line ends where that takes more than {}",
            seconds(first.outage_s),
            seconds(first.patience_s)
        ),
        x_name: "calls in units of the capacity; upright: the safe load".to_owned(),
        x_ticks: number_ticks(1.0, 10),
        y_ticks: duration_ticks(most, 5),
        series,
        ..Chart::default()
    };
    picture("recovery", report, &[chart])
}

/// `1/4`, or the share where it is no such fraction.
fn as_share(share: f64) -> String {
    let parts = 1.0 / share;
    if (parts - parts.round()).abs() < 0.01 { format!("1/{parts:.0}") } else { percent(share) }
}

/// More and fewer clients: the figure of this number.
pub(super) fn clients(report: &Report, name: &'static str, nth: usize) -> Option<Picture> {
    let sizes = report.outcome.extras.sizes.as_ref()?;
    let figure = *sizes.figures.get(nth)?;
    let line = |(policy, values): &(String, Vec<Figures>)| {
        let points = sizes.clients.iter().zip(values);
        let points = points.filter_map(|(clients, figures)| Some(Point::of(*clients as f64, figures.get(figure)?)));
        Series { name: policy.clone(), points: points.collect(), mark: Mark::Line }
    };
    let mut series: Vec<Series> = sizes.policies.iter().map(line).collect();
    let expected = sizes.clients.iter().zip(&sizes.expected).filter(|_| nth == 0);
    let expected = expected.filter_map(|(clients, value)| Some(Point::of(*clients as f64, (*value)?)));
    let theory = Series { name: "by theory".to_owned(), points: expected.collect(), mark: Mark::Line };
    series.extend((!theory.points.is_empty()).then_some(theory));
    let most = |of: fn(&Point) -> f64| series.iter().flat_map(|series| &series.points).map(of).fold(0.0, f64::max);
    let (x_most, y_most) = (most(|point| point.x), most(|point| point.middle));
    let grouped = |ticks: Vec<Tick>| ticks.into_iter().map(|tick| Tick { label: count(tick.at), ..tick }).collect();
    let in_seconds = figure == Figure::DrainS;
    let chart = Chart {
        y_name: findings::in_words(figure).to_owned(),
        x_name: data::noun(&report.scenario.world).to_owned(),
        x_ticks: grouped(number_ticks(x_most, 8).into_iter().filter(|tick| tick.at <= x_most).collect()),
        x_limits: Some((0.0, x_most * 1.02)),
        y_ticks: if in_seconds { duration_ticks(y_most, 5) } else { grouped(number_ticks(y_most, 5)) },
        series,
        ..Chart::default()
    };
    picture(name, report, &[chart])
}

pub(super) fn layers(report: &Report) -> Option<Picture> {
    let matrix = report.outcome.extras.layers.as_ref()?;
    let names = |values: &[u32]| values.iter().map(u32::to_string).collect();
    let grid = Grid {
        title: report.title().to_owned(),
        value_name: "Attempts at the bottom for one call at the top".to_owned(),
        columns: ("attempts a layer".to_owned(), names(&matrix.attempts)),
        rows: ("layers".to_owned(), names(&matrix.depths)),
        cells: matrix.amplification.iter().map(|row| row.iter().copied().map(Some).collect()).collect(),
        framed: None,
    };
    Some(Picture { name: "layers", svg: grid.draw() })
}
