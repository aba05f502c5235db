//! What scenario files say about who is compared: `[[run]]`, or all policies.

use super::{
    Contender, Protection, chain_file as chain, population_file as population,
    population_file::Draft,
    protection_file as protection,
    server_file::retry_after,
    table::{Result, Table},
};
use relent::config::Config;

/// The policies that run: those of `[[run]]`, or all of them in the order of the file.
pub(super) fn contenders(
    root: &Table<'_>,
    config: &Config,
    server: &Protection,
    all: &[Draft],
) -> Result<Vec<Contender>> {
    let mut contenders = Vec::new();
    let layers = chain::layers(root, config)?;
    for value in root.bounded_list("run")? {
        let table = root.table_of("a run", value)?;
        let (own, alone) = (table.text("name")?, population::alone(all, server));
        let mut contender = match (table.text("policy")?, alone) {
            (Some(name), _) => {
                let span = table.span("policy");
                let policy = config.policy(name).map_err(|bad| table.wrong(span, bad.problem, bad.hint))?;
                let protection = protection::of_run(&table, config, name, server)?;
                let contender = Contender::new(own.unwrap_or(name), policy).protected(protection);
                population::of_run(&table, config, contender, name, all)?
            }
            // Who there is has policies already.
            (None, Some(together)) if population::all_have_policies(all) => {
                let named = Contender { populations: Vec::new(), ..together };
                let protection = protection::of_run(&table, config, "", server)?;
                let named = Contender { name: own.unwrap_or(&named.name).to_owned(), protection, ..named };
                population::of_run(&table, config, named, "", all)?
            }
            _ => return Err(table.wrong(value.span(), "a run names no policy", "policy = \"NAME\"")),
        };
        contender.layers = chain::of_run(&table, config, &layers)?;
        if table.has("retry_after") {
            contender.retry_after = Some(retry_after(&table)?);
        }
        contenders.push(contender);
        table.finish()?;
    }
    if !contenders.is_empty() {
        return Ok(contenders);
    }
    if population::all_have_policies(all) {
        return Ok(population::alone(all, server).into_iter().collect());
    }
    let Some(table) = root.table("policy")? else { return Ok(contenders) };
    for (name, _, span) in table.entries() {
        if config.names().any(|known| known == name) && !population::is_taken(root, name) {
            let policy = config.policy(name).map_err(|bad| table.wrong(span, bad.problem, bad.hint))?;
            let contender = Contender::new(name, policy).protected(protection::of_policy(config, Some(name), server));
            contenders.push(Contender { layers: layers.clone(), ..population::among(contender, all) });
        }
    }
    if contenders.is_empty() {
        let unnamed = config.draft(None).and_then(|draft| draft.policy());
        let policy = unnamed.map_err(|bad| table.wrong(root.span("policy"), bad.problem, bad.hint))?;
        let contender = Contender::new("policy", policy).protected(protection::of_policy(config, None, server));
        contenders.push(Contender { layers, ..population::among(contender, all) });
    }
    Ok(contenders)
}
