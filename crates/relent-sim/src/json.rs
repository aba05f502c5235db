//! Outcomes as JSON: an array with one object a policy, figures by name.

use crate::{
    figure::Figure,
    outcome::{Outcome, Plots, Record},
};
use std::fmt::Write;

impl Outcome {
    /// An array with one object a policy: its figures, each with `_sd` where several seeds ran, null where a figure
    /// has no meaning; `recovered` as a share of the runs with the bounds of its Wilson interval.
    pub fn to_json(&self) -> String {
        let records = self.records.iter().map(|record| format!("  {}", self.object(record, false)));
        format!("[\n{}\n]\n", records.collect::<Vec<_>>().join(",\n"))
    }

    /// The same with the series that plots are drawn from, under `plots`.
    pub fn to_json_with_plots(&self) -> String {
        let records = self.records.iter().map(|record| format!("  {}", self.object(record, true)));
        format!("[\n{}\n]\n", records.collect::<Vec<_>>().join(",\n"))
    }

    fn object(&self, record: &Record, plots: bool) -> String {
        let mut object = Object::new();
        object.text("scenario", &self.scenario);
        object.text("policy", &record.policy).text("engine", record.engine.as_str());
        object.raw("clients", record.clients).raw("seeds", record.seeds);
        for figure in Figure::ALL {
            object.number(figure.name(), record.get(figure));
            if record.seeds > 1 {
                object.number(&format!("{}_sd", figure.name()), record.sd(figure));
            }
        }
        let share = record.recovered;
        object.number("recovered", share.map(|share| share.share()));
        object.number("recovered_low", share.map(|share| share.wilson().0));
        object.number("recovered_high", share.map(|share| share.wilson().1));
        let mut reasons = Object::new();
        for (reason, count) in &record.gave_up {
            reasons.raw(reason, count);
        }
        object.raw("gave_up_by_reason", reasons.finish());
        match &record.stopped {
            Some(reason) => object.text("stopped", reason),
            None => object.raw("stopped", "null"),
        };
        self.checks(record, &mut object);
        if plots {
            object.raw("plots", plots_object(&record.plots));
        }
        object.finish()
    }

    /// Numbers that theory knows too: `"checks": {"collisions": {"measured": 1.64, "expected": 1.6416}}`.
    fn checks(&self, record: &Record, object: &mut Object) {
        let mut checks = Object::new();
        let prefix = format!("{}: ", record.policy);
        for (name, measured, expected) in &self.extras.checks {
            let Some(name) = name.strip_prefix(&prefix) else { continue };
            let mut check = Object::new();
            check.number("measured", Some(*measured)).number("expected", *expected);
            checks.raw(name, check.finish());
        }
        if !checks.is_empty() {
            object.raw("checks", checks.finish());
        }
    }
}

fn plots_object(plots: &Plots) -> String {
    let list = |values: &mut dyn Iterator<Item = f64>| {
        let values: Vec<String> = values.map(|value| number(Some(value))).collect();
        format!("[{}]", values.join(","))
    };
    let mut object = Object::new();
    object.number("bin_s", Some(plots.bin_s));
    object.raw("first", list(&mut plots.load.iter().map(|bin| bin.first)));
    object.raw("retries", list(&mut plots.load.iter().map(|bin| bin.retries)));
    object.raw("rejected", list(&mut plots.load.iter().map(|bin| bin.rejected)));
    object.raw("served", list(&mut plots.load.iter().map(|bin| bin.served)));
    object.raw("connected", list(&mut plots.load.iter().map(|bin| bin.connected)));
    object.raw("gave_up", list(&mut plots.load.iter().map(|bin| bin.gave_up)));
    object.raw("wait_share", list(&mut plots.waits.iter().map(|wait| wait.0)));
    object.raw("wait_s", list(&mut plots.waits.iter().map(|wait| wait.1)));
    object.raw("attempts", list(&mut plots.attempts.iter().map(|count| *count as f64)));
    let rows: Vec<String> = plots.raster.iter().map(|row| list(&mut row.iter().copied())).collect();
    object.raw("raster", format!("[{}]", rows.join(",")));
    object.finish()
}

/// A number, or null.
fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => value.to_string(),
        _ => "null".to_owned(),
    }
}

/// An object under construction, its fields in the order in which they were added.
struct Object {
    fields: String,
}

impl Object {
    const fn new() -> Object {
        Object { fields: String::new() }
    }

    const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    fn raw(&mut self, key: &str, value: impl std::fmt::Display) -> &mut Object {
        if !self.fields.is_empty() {
            self.fields.push_str(", ");
        }
        let _ = write!(self.fields, "{}: {value}", quoted(key));
        self
    }

    fn number(&mut self, key: &str, value: Option<f64>) -> &mut Object {
        self.raw(key, number(value))
    }

    fn text(&mut self, key: &str, value: &str) -> &mut Object {
        self.raw(key, quoted(value))
    }

    fn finish(&self) -> String {
        format!("{{{}}}", self.fields)
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_numbers_without_meaning_are_null() {
        let mut object = Object::new();
        object.text("a\"b", "c\\\n").number("x", Some(f64::NAN)).number("y", Some(1e21)).number("z", None);
        assert_eq!(object.finish(), r#"{"a\"b": "c\\\u000a", "x": null, "y": 1000000000000000000000, "z": null}"#);
    }
}
