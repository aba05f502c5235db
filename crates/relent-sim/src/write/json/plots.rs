//! The series that plots are drawn from.

use super::super::object::{Object, array, list, number};
use crate::{
    outcome::{
        Heat, Hysteresis, Matrix, Outcome, Plots, Record, Recovery, Sizes,
        bands::{Band, Bands},
    },
    scenario::Figure,
};

pub(super) fn plots(outcome: &Outcome, record: &Record) -> String {
    let mut object = series(&record.plots);
    object.value("bands", record.bands.as_ref().map_or_else(|| "null".to_owned(), bands));
    object.value("pictures", pictures(outcome, &record.policy));
    object.finish()
}

fn series(plots: &Plots) -> Object {
    let mut object = Object::spaced();
    object.float("bin_s", Some(plots.bin_s));
    object.value("first", list(plots.load.iter().map(|bin| bin.first)));
    object.value("retries", list(plots.load.iter().map(|bin| bin.retries)));
    object.value("rejected", list(plots.load.iter().map(|bin| bin.rejected)));
    object.value("served", list(plots.load.iter().map(|bin| bin.served)));
    object.value("connected", list(plots.load.iter().map(|bin| bin.connected)));
    object.value("gave_up", list(plots.load.iter().map(|bin| bin.gave_up)));
    object.value("wait_share", list(plots.waits.iter().map(|wait| wait.0)));
    object.value("wait_s", list(plots.waits.iter().map(|wait| wait.1)));
    object.value("attempts", list(plots.attempts.iter().map(|count| *count as f64)));
    object.value("raster", array(plots.raster.iter().map(|row| list(row.iter().copied()))));
    object
}

fn bands(bands: &Bands) -> String {
    let band = |values: Vec<Band>| {
        let mut object = Object::spaced();
        object.value("low", list(values.iter().map(|band| band.low)));
        object.value("mean", list(values.iter().map(|band| band.mean)));
        object.value("high", list(values.iter().map(|band| band.high)));
        object.finish()
    };
    let mut object = Object::spaced();
    object.value("runs", bands.runs).float("bin_s", Some(bands.bin_s));
    object.value("attempts", band(bands.attempts.clone()));
    object.value("connected", band(bands.connected.clone()));
    object.value("wait_share", list(bands.waits.iter().map(|wait| wait.0)));
    object.value("wait_s", band(bands.waits.iter().map(|wait| wait.1).collect()));
    object.finish()
}

/// The pictures of the scenario as a whole, as far as they show this policy.
fn pictures(outcome: &Outcome, policy: &str) -> String {
    let extras = &outcome.extras;
    let mut object = Object::spaced();
    if let Some(map) = extras.heat.as_ref().filter(|map| map.policy == policy) {
        object.value("heat", heat(map));
    }
    if let Some(sweep) = extras.hysteresis.iter().find(|sweep| sweep.policy == policy) {
        object.value("hysteresis", hysteresis(sweep));
    }
    if let Some(curve) = extras.recovery.iter().find(|curve| curve.policy == policy) {
        object.value("recovery", recovery(curve));
    }
    if let Some(matrix) = &extras.layers {
        object.value("layers", layers(matrix));
    }
    if let Some(sizes) = &extras.sizes {
        object.value("clients", clients(sizes, policy));
    }
    object.finish()
}

fn heat(map: &Heat) -> String {
    let rows = |rows: &[Vec<Option<f64>>]| array(rows.iter().map(|row| array(row.iter().map(|cell| number(*cell)))));
    let mut object = Object::spaced();
    object.value("base_s", list(map.base_s.iter().copied())).value("cap_s", list(map.cap_s.iter().copied()));
    object.value("drain_over_ideal", rows(&map.drain_over_ideal));
    object.value("wasted_per_client", rows(&map.wasted_per_client));
    object.finish()
}

fn hysteresis(sweep: &Hysteresis) -> String {
    let mut object = Object::spaced();
    object.value("rho", list(sweep.points.iter().map(|point| point.rho)));
    object.value("rising", array(sweep.points.iter().map(|point| point.rising.to_string())));
    object.value("goodput", list(sweep.points.iter().map(|point| point.goodput)));
    object.value("load", list(sweep.points.iter().map(|point| point.load)));
    object.finish()
}

fn recovery(curve: &Recovery) -> String {
    let mut object = Object::spaced();
    object.float("outage_s", Some(curve.outage_s)).float("patience_s", Some(curve.patience_s));
    object.float("threshold", curve.threshold);
    object.value("rho", list(curve.points.iter().map(|point| point.rho)));
    object.value("recovery_s", array(curve.points.iter().map(|point| number(point.recovery_s))));
    object.value("expected_s", array(curve.points.iter().map(|point| number(point.expected_s))));
    object.finish()
}

fn layers(matrix: &Matrix) -> String {
    let mut object = Object::spaced();
    object.float("failure", Some(matrix.failure));
    object.value("depths", list(matrix.depths.iter().map(|depth| f64::from(*depth))));
    object.value("attempts", list(matrix.attempts.iter().map(|attempts| f64::from(*attempts))));
    object.value("amplification", array(matrix.amplification.iter().map(|row| list(row.iter().copied()))));
    object.finish()
}

fn clients(sizes: &Sizes, policy: &str) -> String {
    let mut object = Object::spaced();
    object.value("clients", list(sizes.clients.iter().map(|clients| *clients as f64))).value("runs", sizes.runs);
    let values = sizes.policies.iter().find(|(name, _)| name == policy).map_or(&[][..], |(_, values)| values);
    for figure in &sizes.figures {
        let figure: Figure = *figure;
        object.value(figure.name(), array(values.iter().map(|figures| number(figures.get(figure)))));
    }
    object.value("expected", array(sizes.expected.iter().map(|value| number(*value))));
    object.finish()
}
