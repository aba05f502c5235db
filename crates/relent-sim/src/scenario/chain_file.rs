//! What scenario files say about layers with rules of their own: `[[layer]]`, and the `layers` of a run.

use super::{
    Layer,
    table::{Result, Table},
};
use relent::config::{BadSetting, Config};
use std::time::Duration;

/// All `[[layer]]` of a file, from the client to the server.
pub(super) fn layers(root: &Table<'_>, config: &Config) -> Result<Vec<Layer>> {
    let mut layers = Vec::new();
    for value in root.bounded_list("layer", Layer::MOST, "tables [[layer]]")? {
        let table = root.table_of("a layer", value)?;
        let Some(name) = table.text("name")? else {
            return Err(table.wrong(value.span(), "a layer has no name", "name = \"gateway\""));
        };
        layers.push(read(&table, config, Layer::new(name))?);
        table.finish()?;
    }
    Ok(layers)
}

/// A layer with what the table says; what it does not say stays.
fn read(table: &Table<'_>, config: &Config, layer: Layer) -> Result<Layer> {
    let policy = match table.text("policy")? {
        Some(policy) => {
            let span = table.span("policy");
            Some(config.policy(policy).map_err(|bad| table.wrong(span, bad.problem, bad.hint))?)
        }
        None => layer.policy,
    };
    let time = |key: &'static str, usual: Option<Duration>| match table.duration(key)? {
        Some(time) if time.is_zero() => {
            Err(table.wrong(table.span(key), format!("the {key} is zero"), "leave it out for none"))
        }
        time => Ok(time.or(usual)),
    };
    Ok(Layer {
        policy,
        timeout: time("timeout", layer.timeout)?,
        deadline: time("deadline", layer.deadline)?,
        passes_deadline: table.flag("passes_deadline")?.unwrap_or(layer.passes_deadline),
        say_overloaded: table.flag("say_overloaded")?.unwrap_or(layer.say_overloaded),
        rtt: table.duration("rtt")?.unwrap_or(layer.rtt),
        name: layer.name,
    })
}

/// The layers of a run: `layers = { gateway = { policy = "once" } }` changes what it names.
pub(super) fn of_run(run: &Table<'_>, config: &Config, all: &[Layer]) -> Result<Vec<Layer>> {
    let mut layers = all.to_vec();
    let Some(table) = run.table("layers")? else { return Ok(layers) };
    for (name, value, span) in table.entries() {
        let Some(layer) = layers.iter_mut().find(|layer| layer.name == name) else {
            let names: Vec<&str> = all.iter().map(|layer| layer.name.as_str()).collect();
            let bad = BadSetting::unknown("layer", name, &names);
            return Err(table.wrong(span, bad.problem, bad.hint));
        };
        let own = table.table_of("a layer", value)?;
        *layer = read(&own, config, layer.clone())?;
        own.finish()?;
    }
    Ok(layers)
}
