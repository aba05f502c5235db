//! The plots of a report that show what its policies did.

use super::{
    super::advice,
    Picture, Report, data, findings, picture,
    words::{self, count},
};
use crate::plot::{Chart, Mark, Point, Series, Tick, duration_ticks, number_ticks};
use relent_sim::{Band, Figure, LoadBin, Record, Trouble, World};

/// Load beyond so many times the capacity is cut off: the first rush of a herd would dwarf everything else.
const TIMES_CAPACITY: f64 = 6.0;
/// Steps of a load over time, at most.
const STEPS: usize = 320;

/// When the last policy is done, as far as there is load.
fn end(report: &Report) -> f64 {
    let ends = report.outcome.records.iter().map(|record| record.plots.bin_s * record.plots.load.len() as f64);
    ends.fold(0.0, f64::max)
}

fn time_ticks(end: f64) -> Vec<Tick> {
    duration_ticks(end, 8).into_iter().filter(|tick| tick.at <= end).collect()
}

pub(super) fn load(report: &Report) -> Option<Picture> {
    let records = report.outcome.records.iter().map(|record| (record.policy.clone(), record));
    loads(report, "load", records.collect())
}

/// What each change does that helps: the load of the policy as it is, and with the change.
pub(super) fn remedies(report: &Report) -> Option<Picture> {
    let advice = report.outcome.advice.as_ref().filter(|advice| !advice.remedies.is_empty())?;
    let mut records = Vec::new();
    let is_alone = report.outcome.records.len() == 1;
    let named = |policy: &str, change: String| if is_alone { change } else { format!("{policy}: {change}") };
    for before in &report.outcome.records {
        let own = advice.remedies.iter().filter(|remedied| remedied.policy == before.policy);
        let after = own.map(|remedied| (named(&before.policy, advice::change(remedied)), &remedied.record));
        let after: Vec<(String, &Record)> = after.collect();
        if !after.is_empty() {
            records.push((named(&before.policy, "as it is".to_owned()), before));
            records.extend(after);
        }
    }
    loads(report, "remedies", records)
}

fn loads(report: &Report, name: &'static str, mut records: Vec<(String, &Record)>) -> Option<Picture> {
    let ends = records.iter().map(|(_, record)| record.plots.bin_s * record.plots.load.len() as f64);
    let end = ends.fold(0.0, f64::max);
    records.retain(|(_, record)| record.plots.load.iter().any(|bin| bin.first + bin.retries > 0.0));
    let rates: Vec<(f64, Vec<LoadBin>)> = records.iter().map(|(_, record)| rates(record, end)).collect();
    let reached = rates.iter().flat_map(|(_, rates)| rates).map(|bin| bin.first + bin.retries).fold(0.0, f64::max);
    let capacity = report.outcome.ideal.map(|ideal| ideal.capacity_per_s);
    let limit = capacity.map_or(reached, |capacity| reached.clamp(1.3 * capacity, TIMES_CAPACITY * capacity));
    let is_open = data::is_open(report);
    let ideal = report.outcome.ideal.filter(|_| data::is_herd(report)).map(|ideal| ideal.begins_s + ideal.drain_s);
    let ideal = ideal.filter(|at| *at < end);
    let upright = |at: f64| Series {
        points: vec![Point::of(at, 0.0), Point::of(at, limit)],
        mark: Mark::Reference,
        ..Series::default()
    };
    let what = "Attempts a second that reach the server, and what it gets done";
    let what = if ideal.is_some() { format!("{what}; dashed, upright: the ideal end") } else { what.to_owned() };
    let chart = |((title, record), (width, rates)): (&(String, &Record), &(f64, Vec<LoadBin>))| {
        let peak = rates.iter().map(|bin| bin.first + bin.retries).fold(0.0, f64::max);
        // The peak of the table, whatever the width of a step here.
        let over = record.get(Figure::PeakOverCapacity).filter(|_| peak > limit * 1.001).map(count);
        Chart {
            title: title.clone(),
            y_name: what.clone(),
            x_name: "time".to_owned(),
            x_ticks: time_ticks(end),
            y_ticks: count_ticks(limit),
            series: lanes(rates, *width, is_open, capacity, end).into_iter().chain(ideal.map(upright)).collect(),
            y_limit: Some(limit),
            x_limits: Some((0.0, end)),
            note: over.map_or_else(String::new, |times| format!("peak: {times} times the capacity")),
            shaded: troubles(report),
        }
    };
    let charts: Vec<Chart> = records.iter().zip(&rates).map(chart).collect();
    picture(name, report, &charts)
}

/// When there is trouble, and which.
fn troubles(report: &Report) -> Vec<(f64, f64, String)> {
    let World::Service(service) = &report.scenario.world else { return Vec::new() };
    let time = |trouble: &Trouble| {
        let (from, to) = (trouble.at.as_secs_f64(), trouble.at.saturating_add(trouble.lasts).as_secs_f64());
        (from, to, words::trouble_name(trouble))
    };
    service.troubles.iter().map(time).collect()
}

/// Ticks for counts, up to a limit, with thousands apart.
fn count_ticks(limit: f64) -> Vec<Tick> {
    let ticks = number_ticks(limit, 3).into_iter().filter(|tick| tick.at <= limit * 1.001);
    ticks.map(|tick| Tick { label: count(tick.at), ..tick }).collect()
}

/// The width of a bin, and the load as rates a second, in bins joined to at most so many steps.
fn rates(record: &Record, end: f64) -> (f64, Vec<LoadBin>) {
    let plots = &record.plots;
    let joined = ((end / plots.bin_s) / STEPS as f64).ceil().max(1.0) as usize;
    let seconds = joined as f64 * plots.bin_s;
    let bin = |bins: &[LoadBin]| {
        let rate = |of: fn(&LoadBin) -> f64| bins.iter().map(of).sum::<f64>() / seconds;
        LoadBin {
            first: rate(|bin| bin.first),
            retries: rate(|bin| bin.retries),
            rejected: rate(|bin| bin.rejected),
            served: rate(|bin| bin.served),
            connected: rate(|bin| bin.connected),
            gave_up: rate(|bin| bin.gave_up),
        }
    };
    (seconds, plots.load.chunks(joined).map(bin).collect())
}

fn lanes(rates: &[LoadBin], width: f64, is_open: bool, capacity: Option<f64>, end: f64) -> Vec<Series> {
    let steps = |name: &str, mark: Mark, of: &dyn Fn(&LoadBin) -> (f64, f64)| {
        let point = |(nth, bin): (usize, &LoadBin)| {
            let ((low, high), from) = (of(bin), nth as f64 * width);
            [from, (from + width).min(end)].map(|x| Point { x, low, middle: high, high })
        };
        Series { name: name.to_owned(), points: rates.iter().enumerate().flat_map(point).collect(), mark }
    };
    let line = |name: &str, of: fn(&LoadBin) -> f64| {
        let mut series = steps(name, Mark::Solid, &|bin| (of(bin), of(bin)));
        series.points.iter_mut().for_each(|point| point.low = point.high);
        series
    };
    let mut series = vec![
        steps("first attempts", Mark::Area, &|bin| (0.0, bin.first)),
        steps("retries", Mark::Area, &|bin| (bin.first, bin.first + bin.retries)),
    ];
    if is_open {
        series.push(line("answered in time", |bin| bin.connected));
        series.push(line("done in vain", |bin| (bin.served - bin.connected).max(0.0)));
    } else {
        series.push(steps("served", Mark::Area, &|bin| (0.0, bin.served)));
        series.push(line("rejected", |bin| bin.rejected));
    }
    if let Some(capacity) = capacity {
        let points = vec![Point::of(0.0, capacity), Point::of(end, capacity)];
        series.push(Series { name: "capacity".to_owned(), points, mark: Mark::Reference });
    }
    series
}

pub(super) fn connected(report: &Report) -> Option<Picture> {
    let (end, is_herd) = (end(report), data::is_herd(report));
    let total = |record: &Record| Series { name: record.policy.clone(), points: running(record), mark: Mark::Line };
    let records = report.outcome.records.iter().filter(|record| !record.plots.load.is_empty());
    let mut series: Vec<Series> = records.map(total).collect();
    let most = series.iter().flat_map(|series| &series.points).map(|point| point.high).fold(0.0, f64::max);
    if most == 0.0 {
        return None;
    }
    if let Some(ideal) = report.outcome.ideal.filter(|_| is_herd) {
        let all = ideal.clients as f64;
        let points = vec![Point::of(ideal.begins_s, 0.0), Point::of(ideal.begins_s + ideal.drain_s, all)];
        series.push(Series { name: "ideal".to_owned(), points, mark: Mark::Reference });
    }
    let chart = Chart {
        y_name: if is_herd { "Clients that are connected again" } else { "Calls answered so far" }.to_owned()
            + &runs_in_words(report),
        x_name: "time".to_owned(),
        x_ticks: time_ticks(end),
        shaded: troubles(report),
        y_ticks: number_ticks(most, 5).into_iter().map(|tick| Tick { label: count(tick.at), ..tick }).collect(),
        series,
        ..Chart::default()
    };
    picture("connected", report, &[chart])
}

/// The clients that have their answer: of several runs the mean and the band, else those of the one.
fn running(record: &Record) -> Vec<Point> {
    let after: Vec<Point> = match &record.bands {
        Some(bands) => {
            let points = bands.connected.iter().enumerate();
            points.map(|(nth, band)| point((nth + 1) as f64 * bands.bin_s, *band)).collect()
        }
        None => {
            let mut sum = 0.0;
            let add = |(nth, bin): (usize, &LoadBin)| {
                sum += bin.connected;
                Point::of((nth + 1) as f64 * record.plots.bin_s, sum)
            };
            record.plots.load.iter().enumerate().map(add).collect()
        }
    };
    let most = after.iter().map(|point| point.high).fold(0.0, f64::max);
    thinned(std::iter::once(Point::of(0.0, 0.0)).chain(after).collect(), most * THIN)
}

const fn point(x: f64, band: Band) -> Point {
    Point { x, low: band.low, middle: band.mean, high: band.high }
}

/// What the runs behind lines and bands are, in words.
fn runs_in_words(report: &Report) -> String {
    let runs = report.outcome.records.iter().filter_map(|record| record.bands.as_ref()).map(|bands| bands.runs).max();
    match runs {
        Some(runs @ ..20) => format!(": mean and range of {runs} runs"),
        Some(runs) => format!(": mean of {runs} runs, and where nine of ten are"),
        None => String::new(),
    }
}

/// Points that lie this close to a straight line are not needed to see it, in units of the greatest value.
const THIN: f64 = 0.0005;

/// So few points that a file stays small: those without which every line is the same, but for a tolerance.
fn thinned(points: Vec<Point>, tolerance: f64) -> Vec<Point> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return points };
    let mut kept = vec![*first];
    let mut start = 0;
    for end in 2..points.len() {
        let (from, to) = (points[start], points[end]);
        let bends = |point: &Point| {
            let share = (point.x - from.x) / (to.x - from.x);
            let off = |a: f64, b: f64, value: f64| (a + (b - a) * share - value).abs() > tolerance;
            off(from.low, to.low, point.low)
                || off(from.middle, to.middle, point.middle)
                || off(from.high, to.high, point.high)
        };
        if points[start + 1..end].iter().any(bends) {
            start = end - 1;
            kept.push(points[start]);
        }
    }
    if points.len() > 1 {
        kept.push(*last);
    }
    kept
}

pub(super) fn waits(report: &Report) -> Option<Picture> {
    // The first nine tenths take half of the width; beyond, each tenth of the rest has the same width.
    let place = |share: f64| match share {
        share if share < 0.9 => share / 0.9 * 2.0,
        share => 1.0 - (1.0 - share.min(0.9999)).log10(),
    };
    let curve = |record: &Record| {
        let points: Vec<Point> = match &record.bands {
            Some(bands) => bands.waits.iter().map(|(share, band)| point(*share, *band)).collect(),
            None => record.plots.waits.iter().map(|(share, wait)| Point::of(*share, *wait)).collect(),
        };
        let shown = points.into_iter().filter(|point| point.x <= 0.9999);
        let points = shown.map(|point| Point { x: place(point.x), ..point }).collect();
        Series { name: record.policy.clone(), points, mark: Mark::Line }
    };
    let mut series: Vec<Series> = report.outcome.records.iter().map(curve).collect();
    let most = series.iter().flat_map(|series| &series.points).map(|point| point.high).fold(0.0, f64::max);
    if most == 0.0 {
        return None;
    }
    if let Some(ideal) = report.outcome.ideal.filter(|_| data::is_herd(report)) {
        let shares = (0..=90).map(|percent| f64::from(percent) / 100.0).chain([0.95, 0.99, 0.999, 0.9999]);
        let points = shares.map(|share| Point::of(place(share), ideal.begins_s + share * ideal.drain_s)).collect();
        series.push(Series { name: "ideal".to_owned(), points, mark: Mark::Reference });
    }
    let named = [(0.0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (0.9, "90 %")];
    let tail = [(0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")];
    let ticks = named.into_iter().chain(tail);
    let chart = Chart {
        y_name: "So many clients wait no longer than this".to_owned() + &runs_in_words(report),
        x_name: "share of the clients".to_owned(),
        x_ticks: ticks.map(|(share, label)| Tick { at: place(share), label: label.to_owned() }).collect(),
        y_ticks: duration_ticks(most, 5),
        x_limits: Some((0.0, place(0.9999) + 0.25)),
        series,
        ..Chart::default()
    };
    picture("waits", report, &[chart])
}

pub(super) fn cost(report: &Report) -> Option<Picture> {
    let (cost, time) = findings::axes(report.outcome)?;
    let dot =
        |name: &str, x: f64, y: f64| Series { name: name.to_owned(), points: vec![Point::of(x, y)], mark: Mark::Dot };
    let records = report.outcome.records.iter();
    let mut series: Vec<Series> =
        records.filter_map(|record| Some(dot(&record.policy, record.get(cost)?, record.get(time)?))).collect();
    if series.len() < 2 {
        return None;
    }
    series.extend(front(&series));
    if let Some(ideal) = report.outcome.ideal.filter(|_| data::is_herd(report)) {
        let best = ideal.figure(cost).zip(ideal.figure(time));
        series.extend(best.map(|(x, y)| Series { mark: Mark::Reference, ..dot("ideal", x, y) }));
    }
    let most = |of: fn(&Point) -> f64| series.iter().flat_map(|series| &series.points).map(of).fold(0.0, f64::max);
    let (x_most, y_most) = (most(|point| point.x), most(|point| point.middle));
    let in_seconds = matches!(time, Figure::DrainS | Figure::RecoveryS | Figure::P99S);
    let chart = Chart {
        y_name: format!(
            "Across: {}. Up: {}. The lower left is where to be.",
            findings::in_words(cost),
            findings::in_words(time)
        ),
        x_name: findings::in_words(cost).to_owned(),
        x_ticks: number_ticks(x_most, 8),
        y_ticks: if in_seconds { duration_ticks(y_most, 6) } else { number_ticks(y_most, 6) },
        series,
        ..Chart::default()
    };
    picture("cost", report, &[chart])
}

/// The steps between the dots that no other one beats in both, if there are several.
fn front(dots: &[Series]) -> Option<Series> {
    let points: Vec<Point> = dots.iter().flat_map(|series| &series.points).copied().collect();
    let beats = |a: &Point, b: &Point| a.x <= b.x && a.middle <= b.middle && (a.x < b.x || a.middle < b.middle);
    let mut best: Vec<Point> =
        points.iter().filter(|point| !points.iter().any(|other| beats(other, point))).copied().collect();
    best.sort_by(|a, b| a.x.total_cmp(&b.x));
    let corner = |pair: &[Point]| [Point::of(pair[1].x, pair[0].middle), pair[1]];
    let steps: Vec<Point> = best.first().copied().into_iter().chain(best.windows(2).flat_map(corner)).collect();
    let name = "not beaten in both".to_owned();
    (best.len() > 1).then_some(Series { name, points: steps, mark: Mark::Solid })
}

pub(super) fn attempts(report: &Report) -> Option<Picture> {
    let records = || report.outcome.records.iter().filter(|record| record.plots.attempts.iter().sum::<u64>() > 0);
    // Beyond the attempts of 99.9 % there is nothing to see.
    let reach = |record: &Record| {
        let all: u64 = record.plots.attempts.iter().sum();
        let mut seen = 0;
        let beyond = |count: &u64| {
            seen += count;
            seen as f64 >= all as f64 * 0.999
        };
        record.plots.attempts.iter().position(beyond).unwrap_or(0)
    };
    let to = records().map(reach).max()?.max(2);
    let shares = |record: &Record| {
        let all: u64 = record.plots.attempts.iter().sum();
        let share = |n: usize| 100.0 * record.plots.attempts.get(n).copied().unwrap_or(0) as f64 / all as f64;
        let points = (1..=to).flat_map(|n| [-0.5, 0.5].map(|half| Point::of(n as f64 + half, share(n)))).collect();
        Series { name: record.policy.clone(), points, mark: Mark::Line }
    };
    let series: Vec<Series> = records().map(shares).collect();
    let most = series.iter().flat_map(|series| &series.points).map(|point| point.high).fold(0.0, f64::max);
    let ticks = number_ticks(to as f64, 12).into_iter().filter(|tick| tick.at >= 1.0 && tick.at <= to as f64);
    let chart = Chart {
        y_name: "Clients that were done, or gave up, after so many attempts (per cent)".to_owned(),
        x_name: "attempts".to_owned(),
        x_ticks: ticks.filter(|tick| tick.at.fract() == 0.0).collect(),
        y_ticks: number_ticks(most, 4),
        series,
        ..Chart::default()
    };
    picture("attempts", report, &[chart])
}

pub(super) fn arrivals(report: &Report) -> Option<Picture> {
    if data::is_open(report) {
        return None;
    }
    let records =
        || report.outcome.records.iter().filter(|record| record.plots.raster.iter().any(|row| !row.is_empty()));
    let last = records().flat_map(|record| record.plots.raster.iter().flatten()).copied().fold(0.0, f64::max);
    let end = end(report).max(last);
    let chart = |record: &Record| {
        let row = |(row, times): (usize, &Vec<f64>)| {
            times.iter().map(move |time| Point::of(*time, row as f64 + 1.0)).collect::<Vec<_>>()
        };
        let points = record.plots.raster.iter().enumerate().flat_map(row).collect();
        Chart {
            title: record.policy.clone(),
            y_name: "Each row is a client, each mark one of its attempts; stripes are clients that act together"
                .to_owned(),
            x_name: "time".to_owned(),
            x_ticks: time_ticks(end),
            series: vec![Series { name: record.policy.clone(), points, mark: Mark::Speck }],
            x_limits: Some((0.0, end)),
            y_limit: Some(record.plots.raster.len().max(1) as f64),
            note: format!("{} clients", record.plots.raster.len()),
            ..Chart::default()
        }
    };
    picture("arrivals", report, &records().map(chart).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_bend_is_left_out() {
        let points = vec![Point::of(0.0, 0.0), Point::of(1.0, 1.0), Point::of(2.0, 2.0), Point::of(3.0, 2.0)];
        assert_eq!(thinned(points, 1e-9), [Point::of(0.0, 0.0), Point::of(2.0, 2.0), Point::of(3.0, 2.0)]);
        // A bend that is slow is still one.
        let round: Vec<Point> = (0..=1000).map(|x| Point::of(f64::from(x), f64::from(x * x) / 1e6)).collect();
        let few = thinned(round.clone(), 0.01);
        assert!((5..20).contains(&few.len()) && few.last() == round.last(), "{few:?}");
        // A band that widens around a straight line bends, too.
        let wide = |x: f64| Point { x, low: 0.0, middle: 1.0, high: 2.0 + x * x };
        assert_eq!(thinned((0..4).map(|x| wide(f64::from(x))).collect(), 0.1).len(), 4);
        assert_eq!(thinned(vec![], 1.0).len(), 0);
    }

    #[test]
    fn the_front_is_made_of_those_that_none_beats() {
        let dots = |places: &[(f64, f64)]| {
            let dot = |(x, y): &(f64, f64)| Series { points: vec![Point::of(*x, *y)], ..Series::default() };
            places.iter().map(dot).collect::<Vec<_>>()
        };
        let steps = front(&dots(&[(1.0, 9.0), (3.0, 9.0), (2.0, 5.0), (4.0, 6.0)])).unwrap();
        assert_eq!(steps.points, [(1.0, 9.0), (2.0, 9.0), (2.0, 5.0)].map(|(x, y)| Point::of(x, y)));
        assert_eq!(front(&dots(&[(1.0, 1.0), (2.0, 2.0)])), None, "one beats all");
    }
}
