//! An upstream explained to machines.

use super::{OnUpstream, allowed, opened};
use crate::{
    json::{Object, array},
    redact,
};
use relent::{UpstreamSettings, Warning};

/// The member `upstream` of a policy's object. Times are in milliseconds.
fn report(on: &OnUpstream) -> String {
    let mut object = Object::new();
    object.text("name", &redact::text(&on.described.name)).float("load", on.load).number("layers", on.layers.into());
    for (key, value) in on.described.draft.to_string().lines().filter_map(|line| line.split_once(" = ")) {
        object.text(key, value.trim_matches('"'));
    }
    let budget = on.settings.budget.as_ref();
    object.float("retries_per_second", budget.and_then(|budget| allowed::retries_a_second(budget, on.load)));
    object.raw("retries_at_once", &budget.and_then(allowed::at_once).map_or("null".to_owned(), |n| n.to_string()));
    object.float("attempts_per_call", allowed::attempts(&on.settings, allowed::most(&on.policy), on.load, 1.0));
    object.float("amplification", on.settings.amplification(&on.policy));
    object.float("amplification_without", UpstreamSettings::default().amplification(&on.policy));
    if let Some(breaker) = &on.settings.breaker {
        object.raw("trips_after", &opened::failures(breaker).map_or("null".to_owned(), |n| n.to_string()));
        let millis = |time: std::time::Duration| crate::explain::report::millis(time);
        let times = opened::times(breaker);
        object.raw("open_min_ms", &array(times.iter().map(|(least, _)| millis(*least))));
        object.raw("open_max_ms", &array(times.iter().map(|(_, most)| millis(*most))));
    }
    let warning = |warning: &Warning| crate::explain::report::warning(warning);
    object.raw("warnings", &array(on.warnings().iter().map(warning)));
    object.finish()
}

/// The object of a policy with its upstream in it.
pub(in crate::explain) fn with(policy: &str, on: &OnUpstream) -> String {
    let open = policy.strip_suffix('}').unwrap_or(policy);
    format!("{open},\"upstream\":{}}}", report(on))
}
