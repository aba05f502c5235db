//! Outcomes as JSON: an array with one object a policy, figures by name.

mod advice;
mod plots;

use super::object::{Object, array};
use crate::{
    outcome::{Outcome, Record},
    scenario::Figure,
};

impl Outcome {
    /// An array with one object a policy: its figures, each with `_sd` where several seeds ran, null where a figure
    /// has no meaning; `recovered` as a share of the runs with the bounds of its Wilson interval; then how safe the
    /// policy is and what is recommended, null where nothing can be said or nobody asked. Where there are populations,
    /// `populations` has an object for each, named `"RUN: POPULATION"`.
    pub fn to_json(&self) -> String {
        self.array(false)
    }

    /// The same with the series that plots are drawn from, under `plots`: those of the first run, under `bands` how the
    /// runs differ, and under `pictures` those of the scenario as a whole that were drawn.
    pub fn to_json_with_plots(&self) -> String {
        self.array(true)
    }

    /// The same of what was observed, each object with its simulated twin under `simulated`: the record of that place,
    /// `null` where there is none.
    pub fn to_json_beside(&self, simulated: &Outcome) -> String {
        let records = self.records.iter().enumerate().map(|(place, record)| {
            let mut object = self.object(place, record, false);
            let twin = simulated.records.get(place);
            let twin = twin.map(|twin| simulated.object(place, twin, false).finish());
            object.value("simulated", twin.as_deref().unwrap_or("null"));
            object.finish()
        });
        lines(records)
    }

    fn array(&self, plots: bool) -> String {
        let records = self.records.iter().enumerate();
        lines(records.map(|(place, record)| self.object(place, record, plots).finish()))
    }

    fn object(&self, place: usize, record: &Record, plots: bool) -> Object {
        let mut object = Object::spaced();
        object.text("scenario", &self.scenario);
        object.text("policy", &record.policy).text("engine", record.engine.as_str());
        object.value("clients", record.clients).value("seeds", record.seeds);
        for figure in Figure::ALL {
            object.float(figure.name(), record.get(figure));
            if record.seeds > 1 {
                object.float(&format!("{}_sd", figure.name()), record.sd(figure));
            }
        }
        let share = record.recovered;
        object.float("recovered", share.map(|share| share.share()));
        if record.seeds > 1 {
            object.float("recovered_sd", share.and_then(|share| share.sd()));
        }
        object.float("recovered_low", share.map(|share| share.wilson().0));
        object.float("recovered_high", share.map(|share| share.wilson().1));
        let mut reasons = Object::spaced();
        for (reason, count) in &record.gave_up {
            reasons.float(reason, Some(*count as f64 / f64::from(record.seeds.max(1))));
        }
        object.value("gave_up_by_reason", reasons.finish());
        if let Some(success) = record.get(Figure::SuccessShare) {
            let calls = (record.clients as f64 * f64::from(record.seeds)).max(1.0);
            let mut given_up = Object::spaced();
            for (reason, count) in &record.gave_up {
                given_up.float(reason, *count as f64 / calls);
            }
            let mut fates = Object::spaced();
            fates.float("succeeded", success).value("gave_up", given_up.finish());
            fates.float("still_trying", record.get(Figure::StillTrying));
            object.value("calls_by_fate", fates.finish());
        }
        match &record.stopped {
            Some(reason) => object.text("stopped", reason),
            None => object.value("stopped", "null"),
        };
        advice::advice(self, place, &mut object);
        self.checks(record, &mut object);
        if plots {
            object.value("plots", plots::plots(self, record));
        }
        if !record.populations.is_empty() {
            let own = record.populations.iter().map(|own| self.object(usize::MAX, own, plots).finish());
            object.value("populations", array(own));
        }
        object
    }

    /// Numbers that theory knows too: `"checks": {"collisions": {"measured": 1.64, "expected": 1.6416}}`.
    fn checks(&self, record: &Record, object: &mut Object) {
        let mut checks = Object::spaced();
        let prefix = format!("{}: ", record.policy);
        for (name, measured, expected) in &self.extras.checks {
            let Some(name) = name.strip_prefix(&prefix) else { continue };
            let mut check = Object::spaced();
            check.float("measured", Some(*measured)).float("expected", *expected);
            checks.value(name, check.finish());
        }
        if !checks.is_empty() {
            object.value("checks", checks.finish());
        }
    }
}

fn lines(objects: impl Iterator<Item = String>) -> String {
    let objects: Vec<String> = objects.map(|object| format!("  {object}")).collect();
    format!("[\n{}\n]\n", objects.join(",\n"))
}
