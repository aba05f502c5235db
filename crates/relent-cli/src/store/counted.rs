//! What a store counts of an upstream, told.

use crate::{json::Object, redact};
use relent::duration::Human;
use relent_store::{Held, Key, Shared, SharedRate};
use std::time::Duration;

/// A name of a store's, as it is told: it may be a URL, of wide signs, too, which it does not show as such.
pub(crate) fn told(name: &impl ToString, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match redact::text(&text) {
        same if same == text => redact::text(&name.to_string()).into_owned(),
        less => less.into_owned(),
    }
}

/// As the members of a JSON object.
pub(crate) fn members<'a>(object: &'a mut Object, name: &Key, shared: &Shared) -> &'a mut Object {
    let held = shared.held.map(|held| if held == Held::Open { "open" } else { "closed" });
    object
        .text("name", &told(name, name.as_bytes()))
        .number("calls", shared.calls)
        .number("retries", shared.retries)
        .number("failures", shared.failures)
        .number("successes", shared.successes)
        .number("run", shared.run)
        .number("processes", shared.processes)
        .number("open", shared.open)
        .option("held", held);
    if let Some(rate) = shared.rate {
        object.number("permits", shared.permits).float("rate", rate.per_second()).number("burst", rate.burst.into());
    }
    object
}

/// `100/s`, or `1 each 12s` where it is less than one a second.
pub(crate) fn rate(rate: SharedRate) -> String {
    if rate.gap > Duration::from_secs(1) {
        return format!("1 each {}", Human(rate.gap));
    }
    format!("{}/s", (rate.per_second() * 100.0).round() / 100.0)
}

/// How many permits of a rate were taken over ten seconds.
pub(crate) fn permits(shared: &Shared) -> String {
    shared.rate.map_or_else(|| "-".to_owned(), |of| format!("{} at {}", shared.permits, rate(of)))
}

/// Whose hand is on its breaker, if somebody's is.
pub(crate) fn hand(shared: &Shared) -> Option<&'static str> {
    shared.held.map(|held| match held {
        Held::Open => "held open",
        Held::Closed => "held closed",
    })
}
