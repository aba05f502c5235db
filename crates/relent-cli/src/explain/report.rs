//! A policy explained to machines: one JSON object.

use super::{
    call::WholeCall,
    rows::{Rows, Then, rows},
    setting::Setting,
    subject::{InShort, Subject, as_flags},
};
use crate::json::{Object, array, quoted};
use relent::{Bounds, Row, Warning};
use std::time::Duration;

/// The explanation of one policy, in one line. Durations are in milliseconds, exact to the nanosecond.
pub(super) fn report(subject: &Subject, most: usize) -> String {
    let rows = rows(&subject.policy, most);
    let mut report = Object::new();
    report.text("name", &subject.name).text("policy", &InShort(&subject.policy).to_string());
    report.option("source", subject.source).option("flags", as_flags(&subject.policy).as_deref());
    report.raw("settings", &array(subject.settings.iter().map(setting)));
    report.raw("schedule", &array(rows.shown.iter().map(row))).text("then", then(&rows));
    report.raw("call", &call(&WholeCall::of(&subject.policy)));
    report.raw("warnings", &array(subject.policy.warnings().map(|found| warning(&found))));
    report.raw("notes", &array(subject.notes.iter().map(|note| quoted(note))));
    report.finish()
}

fn setting(setting: &Setting) -> String {
    Object::new().text("key", setting.key).text("value", &setting.value).text("from", &setting.from).finish()
}

fn row(row: &Row) -> String {
    let mut object = Object::new();
    object.number("attempt", row.attempt.into());
    bounds(&mut object, "delay", row.delay);
    bounds(&mut object, "sum", row.total);
    object.finish()
}

fn then(rows: &Rows) -> &'static str {
    match rows.then {
        Then::End => "end",
        Then::Same(_) => "same",
        Then::More(_) => "more",
    }
}

fn call(call: &WholeCall) -> String {
    let mut object = Object::new();
    match call.most_attempts {
        Some(most) => object.number("max_attempts", most.into()),
        None => object.raw("max_attempts", "null"),
    };
    object.float("mean_attempts", call.mean_attempts.unwrap_or(f64::NAN));
    let optional = |duration: Option<Duration>| duration.map_or("null".to_owned(), millis);
    object.raw("mean_wait_ms", &optional(call.waits.map(|waits| waits.mean)));
    object.raw("max_wait_ms", &optional(call.waits.map(|waits| waits.max)));
    object.raw("max_ms", &optional(call.worst));
    object.finish()
}

pub(super) fn warning(warning: &Warning) -> String {
    let level = if warning.is_note() { "note" } else { "warning" };
    let mut object = Object::new();
    object.text("name", warning.name()).text("level", level);
    object.text("text", &warning.to_string()).text("hint", warning.hint());
    object.finish()
}

fn bounds(object: &mut Object, name: &str, bounds: Bounds) {
    for (end, value) in [("min", bounds.min), ("mean", bounds.mean), ("max", bounds.max)] {
        object.raw(&format!("{name}_{end}_ms"), &millis(value));
    }
}

pub(super) fn millis(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let (whole, part) = (nanos / 1_000_000, nanos % 1_000_000);
    if part == 0 { whole.to_string() } else { format!("{whole}.{part:06}").trim_end_matches('0').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_exact() {
        let millis = |nanos| millis(Duration::from_nanos(nanos));
        assert_eq!(millis(1_500_000), "1.5");
        assert_eq!(millis(10_000_000), "10");
        assert_eq!(millis(1), "0.000001");
        assert_eq!(millis(u64::MAX), "18446744073709.551615");
    }
}
