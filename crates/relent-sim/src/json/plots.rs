//! The series that plots are drawn from.

use super::object::{Object, array, list, number};
use crate::{
    bands::{Band, Bands},
    figure::Figure,
    outcome::{Heat, Hysteresis, Matrix, Outcome, Plots, Record, Recovery, Sizes},
};

pub(super) fn plots(outcome: &Outcome, record: &Record) -> String {
    let mut object = series(&record.plots);
    object.raw("bands", record.bands.as_ref().map_or_else(|| "null".to_owned(), bands));
    object.raw("pictures", pictures(outcome, &record.policy));
    object.finish()
}

fn series(plots: &Plots) -> Object {
    let mut object = Object::new();
    object.number("bin_s", Some(plots.bin_s));
    object.raw("first", list(plots.load.iter().map(|bin| bin.first)));
    object.raw("retries", list(plots.load.iter().map(|bin| bin.retries)));
    object.raw("rejected", list(plots.load.iter().map(|bin| bin.rejected)));
    object.raw("served", list(plots.load.iter().map(|bin| bin.served)));
    object.raw("connected", list(plots.load.iter().map(|bin| bin.connected)));
    object.raw("gave_up", list(plots.load.iter().map(|bin| bin.gave_up)));
    object.raw("wait_share", list(plots.waits.iter().map(|wait| wait.0)));
    object.raw("wait_s", list(plots.waits.iter().map(|wait| wait.1)));
    object.raw("attempts", list(plots.attempts.iter().map(|count| *count as f64)));
    object.raw("raster", array(plots.raster.iter().map(|row| list(row.iter().copied()))));
    object
}

fn bands(bands: &Bands) -> String {
    let band = |values: Vec<Band>| {
        let mut object = Object::new();
        object.raw("low", list(values.iter().map(|band| band.low)));
        object.raw("mean", list(values.iter().map(|band| band.mean)));
        object.raw("high", list(values.iter().map(|band| band.high)));
        object.finish()
    };
    let mut object = Object::new();
    object.raw("runs", bands.runs).number("bin_s", Some(bands.bin_s));
    object.raw("attempts", band(bands.attempts.clone()));
    object.raw("connected", band(bands.connected.clone()));
    object.raw("wait_share", list(bands.waits.iter().map(|wait| wait.0)));
    object.raw("wait_s", band(bands.waits.iter().map(|wait| wait.1).collect()));
    object.finish()
}

/// The pictures of the scenario as a whole, as far as they show this policy.
fn pictures(outcome: &Outcome, policy: &str) -> String {
    let extras = &outcome.extras;
    let mut object = Object::new();
    if let Some(map) = extras.heat.as_ref().filter(|map| map.policy == policy) {
        object.raw("heat", heat(map));
    }
    if let Some(sweep) = extras.hysteresis.iter().find(|sweep| sweep.policy == policy) {
        object.raw("hysteresis", hysteresis(sweep));
    }
    if let Some(curve) = extras.recovery.iter().find(|curve| curve.policy == policy) {
        object.raw("recovery", recovery(curve));
    }
    if let Some(matrix) = &extras.layers {
        object.raw("layers", layers(matrix));
    }
    if let Some(sizes) = &extras.sizes {
        object.raw("clients", clients(sizes, policy));
    }
    object.finish()
}

fn heat(map: &Heat) -> String {
    let rows = |rows: &[Vec<Option<f64>>]| array(rows.iter().map(|row| array(row.iter().map(|cell| number(*cell)))));
    let mut object = Object::new();
    object.raw("base_s", list(map.base_s.iter().copied())).raw("cap_s", list(map.cap_s.iter().copied()));
    object.raw("drain_over_ideal", rows(&map.drain_over_ideal));
    object.raw("wasted_per_client", rows(&map.wasted_per_client));
    object.finish()
}

fn hysteresis(sweep: &Hysteresis) -> String {
    let mut object = Object::new();
    object.raw("rho", list(sweep.points.iter().map(|point| point.rho)));
    object.raw("rising", array(sweep.points.iter().map(|point| point.rising.to_string())));
    object.raw("goodput", list(sweep.points.iter().map(|point| point.goodput)));
    object.raw("load", list(sweep.points.iter().map(|point| point.load)));
    object.finish()
}

fn recovery(curve: &Recovery) -> String {
    let mut object = Object::new();
    object.number("outage_s", Some(curve.outage_s)).number("patience_s", Some(curve.patience_s));
    object.number("threshold", curve.threshold);
    object.raw("rho", list(curve.points.iter().map(|point| point.rho)));
    object.raw("recovery_s", array(curve.points.iter().map(|point| number(point.recovery_s))));
    object.raw("expected_s", array(curve.points.iter().map(|point| number(point.expected_s))));
    object.finish()
}

fn layers(matrix: &Matrix) -> String {
    let mut object = Object::new();
    object.number("failure", Some(matrix.failure));
    object.raw("depths", list(matrix.depths.iter().map(|depth| f64::from(*depth))));
    object.raw("attempts", list(matrix.attempts.iter().map(|attempts| f64::from(*attempts))));
    object.raw("amplification", array(matrix.amplification.iter().map(|row| list(row.iter().copied()))));
    object.finish()
}

fn clients(sizes: &Sizes, policy: &str) -> String {
    let mut object = Object::new();
    object.raw("clients", list(sizes.clients.iter().map(|clients| *clients as f64))).raw("runs", sizes.runs);
    let values = sizes.policies.iter().find(|(name, _)| name == policy).map_or(&[][..], |(_, values)| values);
    for figure in &sizes.figures {
        let figure: Figure = *figure;
        object.raw(figure.name(), array(values.iter().map(|figures| number(figures.get(figure)))));
    }
    object.raw("expected", array(sizes.expected.iter().map(|value| number(*value))));
    object.finish()
}
