//! What the page's script draws, as JSON: series, words, and which figures there are.

use super::{Report, findings, words};
use crate::json::{Object, array, quoted};
use relent::Curve;
use relent_sim::{
    Arrivals, Band, Bands, Figure, Heat, Hysteresis, LoadBin, Matrix, Outcome, Record, Recovery, Service, Sizes, World,
};

/// Dots of the arrival raster of one policy, at most.
const MOST_DOTS: usize = 20_000;

/// Single runs of one policy that are shown, at most.
const MOST_RUNS: usize = 256;

/// Everything the script needs besides the records.
pub(super) fn data(report: &Report) -> String {
    let (scenario, outcome) = (report.scenario, report.outcome);
    let axes: Vec<Figure> = findings::axes(outcome).map_or_else(Vec::new, |(cost, time)| vec![cost, time]);
    let findings = findings::findings(scenario, outcome);
    let policies = outcome.records.iter().zip(&findings).map(|(record, finding)| {
        let contender = scenario.contenders.iter().find(|contender| contender.name == record.policy);
        let mut object = series(record, !is_open(report), &axes);
        object.text("words", &words::policy(contender)).text("tone", finding.tone.as_str());
        object.text("label", &finding.label).raw("why", &array(finding.why.iter().map(|why| quoted(why))));
        object.finish()
    });
    let mut page = Object::new();
    page.text("headline", &findings::headline(outcome, &findings)).raw("policies", &array(policies));
    page.raw("figures", &figures(outcome)).raw("ideal", &ideal(report));
    if let Some((cost, time)) = findings::axes(outcome) {
        page.raw("axes", &array([cost, time].map(|axis| quoted(axis.name()))));
        page.raw("axis_words", &array([cost, time].map(|axis| quoted(findings::in_words(axis)))));
    }
    if let World::Service(service) = &scenario.world {
        page.raw("troubles", &troubles(service));
    }
    page.flag("herd", is_herd(report));
    if !outcome.extras.hysteresis.is_empty() {
        page.raw("hysteresis", &array(outcome.extras.hysteresis.iter().map(hysteresis)));
    }
    if let Some(map) = &outcome.extras.heat {
        page.raw("heat", &heat(report, map));
    }
    if !outcome.extras.recovery.is_empty() {
        page.raw("recovery", &array(outcome.extras.recovery.iter().map(recovery)));
    }
    if let Some(map) = &outcome.extras.sizes {
        page.raw("sizes", &sizes(report, map))
            .float("size", size(&scenario.world).map_or(f64::NAN, |size| size as f64));
    }
    if let Some(matrix) = &outcome.extras.layers {
        page.raw("layers", &layers(matrix));
    }
    let checks = outcome.extras.checks.iter().map(|(name, measured, expected)| {
        let mut check = Object::new();
        check.text("name", name).float("measured", *measured).float("expected", expected.unwrap_or(f64::NAN));
        check.finish()
    });
    page.raw("checks", &array(checks));
    page.finish()
}

/// Whether the clients are a herd that drains, for which the ideal is known.
pub(super) const fn is_herd(report: &Report) -> bool {
    matches!(&report.scenario.world, World::Service(Service { arrivals: Arrivals::Herd { .. }, .. }))
}

/// Whether calls come whether or not earlier ones were answered.
pub(super) const fn is_open(report: &Report) -> bool {
    matches!(&report.scenario.world, World::Service(Service { arrivals: Arrivals::Open { .. }, .. }))
}

/// What is drawn of one policy; `axes` are the figures of which single runs are shown.
fn series(record: &Record, herd: bool, axes: &[Figure]) -> Object {
    let plots = &record.plots;
    let lane = |of: fn(&LoadBin) -> f64| numbers(plots.load.iter().map(of));
    let mut load = Object::new();
    load.raw("first", &lane(|bin| bin.first)).raw("retries", &lane(|bin| bin.retries));
    load.raw("rejected", &lane(|bin| bin.rejected)).raw("served", &lane(|bin| bin.served));
    load.raw("connected", &lane(|bin| bin.connected)).raw("gave_up", &lane(|bin| bin.gave_up));
    // Calls of an open stream do not know each other, so nothing can be seen in their order.
    let clients = if herd { &plots.raster[..] } else { &[] };
    let dots: usize = clients.iter().map(Vec::len).sum();
    let every = dots.div_ceil(MOST_DOTS).max(1);
    let raster = clients.iter().step_by(every).map(|client| numbers(client.iter().copied()));
    let mut object = Object::new();
    object.text("name", &record.policy).float("bin", plots.bin_s).raw("load", &load.finish());
    object.raw("waits", &array(plots.waits.iter().map(|(share, wait)| numbers([*share, *wait]))));
    object.raw("attempts", &numbers(plots.attempts.iter().map(|count| *count as f64)));
    object.raw("raster", &array(raster));
    if let Some(all) = &record.bands {
        object.raw("bands", &bands(all));
    }
    let run = |figure: Figure| {
        let has = record.get(figure).is_some();
        let values = record.runs.iter().take(MOST_RUNS).map(|run| run.get(figure).unwrap_or(f64::NAN));
        has.then(|| format!("{}:{}", quoted(figure.name()), numbers(values)))
    };
    object.raw("runs", &format!("{{{}}}", axes.iter().copied().filter_map(run).collect::<Vec<_>>().join(",")));
    object
}

/// How the runs differ.
fn bands(bands: &Bands) -> String {
    let band = |values: &mut dyn Iterator<Item = Band>| {
        let values: Vec<Band> = values.collect();
        let line = |of: fn(&Band) -> f64| numbers(values.iter().map(of));
        let mut object = Object::new();
        object.raw("low", &line(|band| band.low)).raw("mean", &line(|band| band.mean));
        object.raw("high", &line(|band| band.high)).finish()
    };
    let mut object = Object::new();
    object.number("runs", bands.runs.into()).float("bin", bands.bin_s);
    object.raw("attempts", &band(&mut bands.attempts.iter().copied()));
    object.raw("connected", &band(&mut bands.connected.iter().copied()));
    object.raw("shares", &numbers(bands.waits.iter().map(|wait| wait.0)));
    object.raw("waits", &band(&mut bands.waits.iter().map(|wait| wait.1)));
    object.finish()
}

/// The figures that any policy has, with their title and meaning.
fn figures(outcome: &Outcome) -> String {
    let has = |figure: &Figure| outcome.records.iter().any(|record| record.get(*figure).is_some());
    array(Figure::ALL.into_iter().filter(has).map(|figure| {
        let mut object = Object::new();
        object.text("name", figure.name()).text("title", figure.title()).text("meaning", meaning(figure));
        object.text("best", best(figure)).finish()
    }))
}

fn ideal(report: &Report) -> String {
    let Some(ideal) = report.outcome.ideal.filter(|_| is_herd(report)) else {
        let capacity = report.outcome.ideal.map_or(f64::NAN, |ideal| ideal.capacity_per_s);
        return Object::new().float("capacity", capacity).finish();
    };
    let mut figures = Object::new();
    for figure in Figure::ALL {
        if let Some(value) = ideal.figure(figure) {
            figures.float(figure.name(), value);
        }
    }
    let mut object = Object::new();
    object.number("clients", ideal.clients).float("capacity", ideal.capacity_per_s);
    object.float("begins", ideal.begins_s).float("drain", ideal.drain_s).raw("figures", &figures.finish());
    object.finish()
}

fn troubles(service: &Service) -> String {
    array(service.troubles.iter().map(|trouble| {
        let mut object = Object::new();
        object.float("from", trouble.at.as_secs_f64()).float("to", (trouble.at + trouble.lasts).as_secs_f64());
        object.text("what", &words::trouble_name(trouble)).finish()
    }))
}

fn hysteresis(sweep: &Hysteresis) -> String {
    let points = sweep.points.iter().map(|point| {
        let mut object = Object::new();
        object.float("rho", point.rho).flag("rising", point.rising);
        object.float("goodput", point.goodput).float("load", point.load).finish()
    });
    let mut object = Object::new();
    object.text("policy", &sweep.policy).raw("points", &array(points));
    object.finish()
}

fn recovery(curve: &Recovery) -> String {
    let numbers_of = |of: fn(&relent_sim::RecoveryPoint) -> Option<f64>| {
        numbers(curve.points.iter().map(|point| of(point).unwrap_or(f64::NAN)))
    };
    let mut object = Object::new();
    object.text("policy", &curve.policy).float("outage", curve.outage_s).float("patience", curve.patience_s);
    object.float("threshold", curve.threshold.unwrap_or(f64::NAN));
    object.raw("rho", &numbers_of(|point| Some(point.rho))).raw("time", &numbers_of(|point| point.recovery_s));
    object.raw("expected", &numbers_of(|point| point.expected_s)).finish()
}

fn sizes(report: &Report, sizes: &Sizes) -> String {
    let lines = |figure: Figure| {
        array(sizes.policies.iter().map(|(policy, values)| {
            let values = numbers(values.iter().map(|figures| figures.get(figure).unwrap_or(f64::NAN)));
            Object::new().text("policy", policy).raw("values", &values).finish()
        }))
    };
    let plots = sizes.figures.iter().map(|figure| {
        let mut object = Object::new();
        object.text("figure", figure.name()).text("words", findings::in_words(*figure));
        object.raw("lines", &lines(*figure)).finish()
    });
    let mut object = Object::new();
    object.raw("clients", &numbers(sizes.clients.iter().map(|clients| *clients as f64)));
    object.text("noun", noun(&report.scenario.world)).number("runs", sizes.runs.into()).raw("plots", &array(plots));
    object.raw("expected", &numbers(sizes.expected.iter().map(|value| value.unwrap_or(f64::NAN))));
    object.finish()
}

fn heat(report: &Report, heat: &Heat) -> String {
    let cells = |rows: &[Vec<Option<f64>>]| {
        array(rows.iter().map(|row| numbers(row.iter().map(|cell| cell.unwrap_or(f64::NAN)))))
    };
    let mut object = Object::new();
    object.text("policy", &heat.policy);
    let own = report.scenario.contenders.iter().find(|contender| contender.name == heat.policy);
    if let Some((base, cap)) = own.and_then(|contender| base_and_cap(&contender.policy)) {
        object.raw("own", &numbers([base, cap]));
    }
    if let Some((row, column)) = best_cell(heat) {
        object.raw("best", &numbers([row as f64, column as f64]));
    }
    object.raw("base", &numbers(heat.base_s.iter().copied())).raw("cap", &numbers(heat.cap_s.iter().copied()));
    object.raw("drain", &cells(&heat.drain_over_ideal)).raw("wasted", &cells(&heat.wasted_per_client));
    object.finish()
}

/// The best cell of a map: of those that take hardly longer than the quickest, the one that wastes least.
pub(super) fn best_cell(heat: &Heat) -> Option<(usize, usize)> {
    const HARDLY: f64 = 1.05;
    let cells = || {
        let rows = heat.drain_over_ideal.iter().zip(&heat.wasted_per_client).enumerate();
        rows.flat_map(|(r, (times, wastes))| {
            let cells = times.iter().zip(wastes).enumerate();
            cells.filter_map(move |(c, (time, wasted))| Some(((r, c), (*time)?, (*wasted)?)))
        })
    };
    let quickest = cells().map(|(_, time, _)| time).fold(f64::INFINITY, f64::min);
    let quick = cells().filter(|(_, time, _)| *time <= quickest * HARDLY);
    quick.min_by(|a, b| a.2.total_cmp(&b.2)).map(|(place, ..)| place)
}

/// Where a policy itself is on its map.
pub(super) fn base_and_cap(policy: &relent::Policy) -> Option<(f64, f64)> {
    let settings = policy.settings();
    let base = match settings.curve {
        Curve::Exponential { base, .. } | Curve::Linear { base, .. } | Curve::Fibonacci { base } => base,
        _ => return None,
    };
    Some((base.as_secs_f64(), settings.cap?.as_secs_f64()))
}

/// What there are more or fewer of.
pub(super) const fn noun(world: &World) -> &'static str {
    match world {
        World::OptimisticWriters(_) => "writers",
        World::Batch(_) => "packets",
        World::Ethernet(_) | World::Saturated(_) => "stations",
        _ => "clients",
    }
}

/// How many clients, writers, packets or stations there are.
fn size(world: &World) -> Option<u64> {
    match world {
        World::Service(Service { arrivals: Arrivals::Herd { clients, .. }, .. }) => Some(*clients),
        World::OptimisticWriters(occ) => Some(occ.clients),
        World::Batch(batch) => Some(batch.packets),
        World::Ethernet(ethernet) => Some(ethernet.stations),
        World::Saturated(saturated) => Some(saturated.stations),
        _ => None,
    }
}

fn layers(matrix: &Matrix) -> String {
    let mut object = Object::new();
    object.float("failure", matrix.failure);
    object.raw("depths", &numbers(matrix.depths.iter().map(|depth| f64::from(*depth))));
    object.raw("attempts", &numbers(matrix.attempts.iter().map(|attempts| f64::from(*attempts))));
    object.raw("amplification", &array(matrix.amplification.iter().map(|row| numbers(row.iter().copied()))));
    object.finish()
}

/// Numbers to a millionth, which is more than a plot can show; those without meaning become null.
fn numbers(values: impl IntoIterator<Item = f64>) -> String {
    array(values.into_iter().map(|value| match value {
        value if value.is_finite() => ((value * 1e6).round() / 1e6).to_string(),
        _ => "null".into(),
    }))
}

/// What a figure says, for people who meet it for the first time.
const fn meaning(figure: Figure) -> &'static str {
    match figure {
        Figure::AttemptsPerClient => "How often a client tried, the first attempt included",
        Figure::WastedPerClient => "Attempts of a client that brought nothing",
        Figure::DrainS => "Seconds until the last client was connected",
        Figure::DrainOverIdeal => "That time in units of the best that can be",
        Figure::P50S => "Half of the clients waited no longer than this",
        Figure::P90S => "Nine of ten clients waited no longer than this",
        Figure::P99S => "99 of 100 clients waited no longer than this",
        Figure::MaxS => "The longest wait",
        Figure::Peak1Ms => "The most attempts that arrived within one millisecond",
        Figure::Peak100Ms => "The most attempts that arrived within any tenth of a second",
        Figure::Peak1S => "The most attempts that arrived within any second",
        Figure::PeakOverCapacity => "The peak: the busiest tenth of a second in units of what the server can do in it",
        Figure::Utilisation => "The share of the time that the server was busy",
        Figure::GaveUp => "Clients that gave up",
        Figure::RecoveryS => "Seconds from the end of the trouble until all was well again",
        Figure::Goodput => "Successes a second",
        Figure::GoodputShare => "The share of the calls that began in the end phase that succeed",
        Figure::Load => "Attempts for each call in the end phase: the amplification",
        Figure::LoadOverGoodput => "Attempts for each success",
        Figure::SuccessShare => "The share of all calls that succeeded",
        Figure::GaveUpShare => "The share of all calls that were given up",
        Figure::StillTrying => "The share of all calls that were still tried when the run ended",
        Figure::MaxAttempts => "The most attempts that any client made",
        Figure::Calls => "Writes that reached the row",
        Figure::TimeMs => "Milliseconds until the last writer was done",
        Figure::MakespanOverN => "The slot of the last success for each packet",
        Figure::AttemptsPerPacket => "Transmissions for each packet",
        Figure::SuccessPerSlot => "The share of the slots that carry a success",
        Figure::Collisions => "Collisions until the first success",
        Figure::Amplification => "Attempts that reached the server for each first attempt, over the whole run",
        Figure::WastedWork => "The share of the server's answers that nobody waited for any more",
        Figure::Fairness => "The longest wait in units of the median",
        Figure::RefusedBudget => "Retries and hedges a client that its own budget refused",
        Figure::RefusedOpen => "Attempts a client that its own open breaker refused",
        Figure::RefusedShed => "Attempts a client that its own limit or the server shed",
        Figure::RefusedOverloaded => "Attempts a client answered with: overloaded, do not retry",
        Figure::RefusedTurn => "Attempts a client that were given a turn",
        Figure::PutOff => "How often a client found its own breaker open, and waited",
        _ => "",
    }
}

/// Whether less or more is better, or neither.
const fn best(figure: Figure) -> &'static str {
    match figure {
        Figure::Utilisation
        | Figure::Goodput
        | Figure::GoodputShare
        | Figure::SuccessShare
        | Figure::SuccessPerSlot => "more",
        _ => "less",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_explained() {
        for figure in Figure::ALL {
            assert!(meaning(figure).len() > 10, "{figure:?}");
        }
    }

    #[test]
    fn the_best_cell_is_quick_and_thrifty() {
        let heat = Heat {
            drain_over_ideal: vec![vec![Some(1.0), Some(1.04)], vec![None, Some(1.2)]],
            wasted_per_client: vec![vec![Some(90.0), Some(3.0)], vec![None, Some(1.0)]],
            ..Heat::default()
        };
        assert_eq!(best_cell(&heat), Some((0, 1)));
        assert_eq!(best_cell(&Heat::default()), None);
    }

    #[test]
    fn numbers_are_short_and_never_break_json() {
        assert_eq!(numbers([0.1 + 0.2, f64::NAN, 5.0, f64::INFINITY]), "[0.3,null,5,null]");
    }
}
