//! What a store counts of an upstream, told.

use crate::json::Object;
use relent_store::{Held, Key, Shared};

/// As the members of a JSON object.
pub(crate) fn members<'a>(object: &'a mut Object, name: &Key, shared: &Shared) -> &'a mut Object {
    let held = shared.held.map(|held| if held == Held::Open { "open" } else { "closed" });
    object
        .text("name", &name.to_string())
        .number("calls", shared.calls)
        .number("retries", shared.retries)
        .number("failures", shared.failures)
        .number("successes", shared.successes)
        .number("run", shared.run)
        .number("processes", shared.processes)
        .number("open", shared.open)
        .option("held", held)
}

/// Whose hand is on its breaker, if somebody's is.
pub(crate) fn hand(shared: &Shared) -> Option<&'static str> {
    shared.held.map(|held| match held {
        Held::Open => "held open",
        Held::Closed => "held closed",
    })
}
