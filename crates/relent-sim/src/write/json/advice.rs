//! Advice as JSON: how safe a policy is, and what is recommended in its place.

use super::super::object::{Object, array};
use crate::{
    outcome::{Outcome, Paced, Recommended, Record, Remedied, Remedy, Safety, Storm},
    scenario::Figure,
};

/// How safe the policy of a record is, and what is recommended in its place; null where nothing can be said.
pub(super) fn advice(outcome: &Outcome, place: usize, object: &mut Object) {
    let advice = outcome.advice.as_ref();
    safety(advice.and_then(|advice| advice.policies.get(place)).unwrap_or(&Safety::default()), object);
    match advice.and_then(|advice| advice.recommended.as_ref()) {
        Some(recommended) => object.value("recommended", recommended_object(recommended)),
        None => object.value("recommended", "null"),
    };
    match advice.and_then(|advice| advice.paced.as_ref()) {
        Some(paced) => object.value("paced", paced_object(paced)),
        None => object.value("paced", "null"),
    };
    object.value("remedies", remedies(outcome, place));
    object.value("harms", harms(outcome, place));
}

/// What the populations of a policy do with each other one changed.
fn harms(outcome: &Outcome, place: usize) -> String {
    let all = outcome.advice.iter().flat_map(|advice| &advice.harms);
    let own = all.filter(|harm| outcome.records.get(place).is_some_and(|record| record.policy == harm.policy));
    array(own.map(|harm| {
        let mut object = Object::spaced();
        object.text("of", &harm.to).text("by", &harm.by).value("left_out", harm.left_out);
        figures(&harm.record, &mut object);
        object.finish()
    }))
}

/// The pacer as TOML, whose clients are told, and their figures.
fn paced_object(paced: &Paced) -> String {
    let mut object = Object::spaced();
    object.text("toml", &paced.toml()).text("clients_of", &paced.policy);
    object.float("capacity", paced.pacer.capacity).float("horizon_s", paced.pacer.horizon.as_secs_f64());
    object.float("kept", paced.pacer.kept);
    object.float("max_pushback_s", paced.max_pushback.map(|most| most.as_secs_f64()));
    figures(&paced.record, &mut object);
    object.finish()
}

/// The figures that have a meaning.
fn figures(record: &Record, object: &mut Object) {
    for figure in Figure::ALL.into_iter().filter(|figure| record.get(*figure).is_some()) {
        object.float(figure.name(), record.get(figure));
    }
}

/// The changes that help a policy, with its figures under each.
fn remedies(outcome: &Outcome, place: usize) -> String {
    let all = outcome.advice.iter().flat_map(|advice| &advice.remedies);
    let own = all.filter(|remedied| outcome.records.get(place).is_some_and(|record| record.policy == remedied.policy));
    array(own.map(|Remedied { whose, remedy, record, .. }| {
        let mut object = Object::spaced();
        match whose {
            Some(whose) => object.text("whose", whose),
            None => object.value("whose", "null"),
        };
        match remedy {
            Remedy::OneLayer => object.text("change", "one layer"),
            Remedy::Deadlines => object.text("change", "deadlines"),
            Remedy::Limit(rate) => object.text("change", "limit").float("to", *rate),
            Remedy::Attempts(most) => object.text("change", "max_attempts").value("to", most),
            Remedy::Queue(room) => object.text("change", "queue").value("to", room),
            Remedy::Capacity(capacity) => object.text("change", "capacity").float("to", *capacity),
            Remedy::Budget(ratio) => object.text("change", "budget").float("to", *ratio),
            Remedy::Breaker(open) => object.text("change", "breaker").float("to", open.as_secs_f64()),
            Remedy::Pacer(capacity) => object.text("change", "pacer").float("to", *capacity),
        };
        figures(record, &mut object);
        object.finish()
    }))
}

fn safety(safety: &Safety, object: &mut Object) {
    let safe = match safety.storm {
        Some(Storm::Above(safe)) => Some(safe),
        _ => None,
    };
    let outage = safety.fatal_outage.unwrap_or_default();
    let seconds = |duration: Option<std::time::Duration>| duration.map(|duration| duration.as_secs_f64());
    object.float("calls_per_s", safety.calls_per_s).float("offered_load", safety.load);
    object.float("safe_load", safe.map(|safe| safe.share)).float("safe_load_per_s", safe.map(|safe| safe.per_s));
    match safety.storm {
        Some(Storm::Never(cure)) => object.text("cured_by", cure.as_str()),
        _ => object.value("cured_by", "null"),
    };
    object.float("recovery_by_theory_s", safety.recovery_by_theory_s);
    object.float("fatal_outage_s", seconds(outage.fatal)).float("survived_outage_s", seconds(outage.survived));
    object.float("fatal_outage_by_theory_s", seconds(outage.theory));
}

/// The policy as seconds, flags and TOML, and its own figures.
fn recommended_object(recommended: &Recommended) -> String {
    let settings = recommended.policy.settings();
    let mut object = Object::spaced();
    object.text("flags", &recommended.flags()).text("toml", &recommended.toml());
    object.float("spread_s", Some(settings.spread.as_secs_f64()));
    object.float("base_s", Some(recommended.base().as_secs_f64()));
    object.float("cap_s", settings.cap.map(|cap| cap.as_secs_f64()));
    object.float("margin", Some(recommended.margin)).value("queue_room", recommended.queue_room);
    match &recommended.as_good {
        Some(policy) => object.text("as_good", policy),
        None => object.value("as_good", "null"),
    };
    object.text("engine", recommended.record.engine.as_str());
    figures(&recommended.record, &mut object);
    object.finish()
}
