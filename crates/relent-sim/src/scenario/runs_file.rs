//! What scenario files say about who is compared: `[[run]]`, or all policies.

use super::{
    Contender, Protection, chain_file as chain, population_file as population,
    population_file::Draft,
    protection_file as protection,
    server_file::retry_after,
    table::{MOST_OF_A_LIST, Result, Table},
};
use relent::config::Config;
use std::collections::BTreeSet;

/// The most populations and layers of all who are compared, each of whom has all of them.
const MOST_OF_ALL: usize = 10_000;

/// The policies that run: those of `[[run]]`, or all of them in the order of the file.
pub(super) fn contenders(
    root: &Table<'_>,
    config: &Config,
    server: &Protection,
    all: &[Draft],
) -> Result<Vec<Contender>> {
    let mut contenders = Vec::new();
    let layers = chain::layers(root, config)?;
    let check_all = |count: usize, what: &str| {
        let each = all.len() + layers.len();
        if count * each <= MOST_OF_ALL {
            return Ok(());
        }
        let problem =
            format!("{count} {what} of {each} populations and layers each are more than {MOST_OF_ALL} in all");
        Err(root.wrong(root.span("population"), problem, "compare fewer at a time"))
    };
    let alone = population::alone(all, server);
    let runs = root.bounded_list("run", MOST_OF_A_LIST, "tables [[run]]")?;
    check_all(runs.len(), "runs")?;
    for value in runs {
        let table = root.table_of("a run", value)?;
        let own = table.text("name")?;
        let mut contender = match (table.text("policy")?, &alone) {
            (Some(name), _) => {
                let span = table.span("policy");
                let policy = config.policy(name).map_err(|bad| table.wrong(span, bad.problem, bad.hint))?;
                let protection = protection::of_run(&table, config, name, server)?;
                let contender = Contender::new(own.unwrap_or(name), policy).protected(protection);
                population::of_run(&table, config, contender, name, all)?
            }
            // Who there is has policies already.
            (None, Some(alone)) => {
                let protection = protection::of_run(&table, config, "", server)?;
                let named = Contender::new(own.unwrap_or(&alone.name), alone.policy).protected(protection);
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
    if let Some(alone) = alone {
        return Ok(vec![population::among(alone, all)]);
    }
    let Some(table) = root.table("policy")? else { return Ok(contenders) };
    let (named, taken): (BTreeSet<&str>, _) = (config.names().collect(), population::taken(root));
    let mut compared = table.entries();
    compared.retain(|(name, ..)| named.contains(name) && !taken.contains(name));
    if let Some((.., span)) = compared.get(MOST_OF_A_LIST) {
        return Err(table.too_many(span.clone(), MOST_OF_A_LIST, "policies, and no [[run]] says which are compared"));
    }
    check_all(compared.len(), "policies")?;
    for (name, _, span) in compared {
        let policy = config.policy(name).map_err(|bad| table.wrong(span, bad.problem, bad.hint))?;
        let contender = Contender::new(name, policy).protected(protection::of_policy(config, Some(name), server));
        contenders.push(Contender { layers: layers.clone(), ..population::among(contender, all) });
    }
    if contenders.is_empty() {
        let unnamed = config.draft(None).and_then(|draft| draft.policy());
        let policy = unnamed.map_err(|bad| table.wrong(root.span("policy"), bad.problem, bad.hint))?;
        let contender = Contender::new("policy", policy).protected(protection::of_policy(config, None, server));
        contenders.push(Contender { layers, ..population::among(contender, all) });
    }
    Ok(contenders)
}
