//! What scenario files say about populations: `[[population]]`, and the `rollout` of a run.

use super::{
    Arrivals, Contender, Part, Population, Protection,
    clients_file::{arrivals, network_of, writes},
    protection_file as protection,
    table::{Result, Table},
};
use relent::config::{BadSetting, Config};
use std::{collections::BTreeSet, time::Duration};
use toml::{Spanned, de::DeValue};

/// A population as it stands in the file, before it is known which run it is in.
pub(super) struct Draft {
    /// Without a policy of its own it has that of each run, and is called so.
    has_policy: bool,
    population: Population,
}

/// The keys of a population.
const KEYS: [&str; 18] = [
    "name",
    "share",
    "policy",
    "upstream",
    "count",
    "window",
    "at",
    "rate",
    "spikes",
    "arrivals",
    "for",
    "timeout",
    "writes",
    "leaving",
    "processes",
    "clients_per_process",
    "network",
    "wait_while_open",
];

/// All `[[population]]` of a file, with the policies that they name.
pub(super) fn populations(root: &Table<'_>, config: &Config) -> Result<Vec<Draft>> {
    let mut drafts = Vec::new();
    let (mut left, mut rest) = (1.0, None);
    for value in root.bounded_list("population", Population::MOST, "tables [[population]]")? {
        let table = root.table_of("a population", value)?;
        table.known(&KEYS)?;
        let Some(name) = table.text("name")? else {
            return Err(table.wrong(value.span(), "a population has no name", "name = \"mobile\""));
        };
        let named = table.text("policy")?;
        let policy = match named {
            Some(policy) => {
                let span = table.span("policy");
                config.policy(policy).map_err(|bad| table.wrong(span, bad.problem, bad.hint))?
            }
            None => relent::Policy::default(),
        };
        let mut population = Population::share(name, 0.0, policy);
        if table.has("rate") || table.has("count") {
            if table.has("share") {
                let problem = "a population has a share of the clients, or a count or rate of its own, not both";
                return Err(table.wrong(table.span("share"), problem, "leave one of them out"));
            }
            population.part = Part::Own(arrivals(&table)?, table.duration("at")?.unwrap_or(Duration::ZERO));
            if let (Part::Own(Arrivals::Open { .. }, _), true) = (&population.part, table.has("at")) {
                let problem = "a stream of calls has no time at which it comes";
                return Err(table.wrong(
                    table.span("at"),
                    problem,
                    "rate = [[\"60s\", 0], [\"60s\", 450]] begins later",
                ));
            }
        } else if let Some(share) = table.number("share")? {
            left -= share;
            population.part = Part::Share(share);
        } else if rest.replace(drafts.len()).is_some() {
            return Err(table.wrong(value.span(), "two populations say nothing of their share", "share = 0.2"));
        }
        population.network = table.table("network")?.map(network_of).transpose()?;
        population.timeout = table.duration("timeout")?;
        population.writes = writes(&table)?;
        population.leaving = table.number("leaving")?;
        population.processes = protection::processes(&table)?;
        population.protection = match named {
            Some(policy) => protection::of_run(&table, config, policy, &Protection::default())?,
            None if table.has("upstream") || table.has("wait_while_open") => {
                let problem = "this population has the policy of each run, and the upstream with it";
                return Err(table.wrong(value.span(), problem, "policy = \"NAME\", or leave the upstream out"));
            }
            None => Protection::default(),
        };
        table.finish()?;
        drafts.push(Draft { has_policy: named.is_some(), population });
    }
    if let Some(draft) = rest.and_then(|rest| drafts.get_mut(rest)) {
        // What rounding leaves over is nobody.
        draft.population.part = Part::Share(if (-1e-9..0.0).contains(&left) { 0.0 } else { left });
    }
    Ok(drafts)
}

/// When those come who have times of their own; `None` if all have a share of `[clients]`.
pub(super) fn together(drafts: &[Draft]) -> Option<Arrivals> {
    let populations: Vec<Population> = drafts.iter().map(|draft| draft.population.clone()).collect();
    populations.iter().any(Population::is_own).then(|| Arrivals::together(&populations))
}

/// The policies that populations and layers have, whatever the run.
pub(super) fn taken<'a>(root: &Table<'a>) -> BTreeSet<&'a str> {
    let named = |value: &'a Spanned<DeValue<'a>>| match value.get_ref().as_table()?.get("policy")?.get_ref() {
        DeValue::String(name) => Some(name.as_ref()),
        _ => None,
    };
    root.list("population").into_iter().chain(root.list("layer")).filter_map(named).collect()
}

/// The contender among these populations: who names no policy has that of the contender.
pub(super) fn among(mut contender: Contender, drafts: &[Draft]) -> Contender {
    for draft in drafts {
        let mut population = draft.population.clone();
        if !draft.has_policy {
            population.policy = contender.policy;
            population.protection = Protection { pacer: None, admission: None, ..contender.protection };
        }
        contender.populations.push(population);
    }
    contender
}

/// Who is called as all populations together and has none of them yet, if each has a policy of its own, so that nobody has that
/// of a run.
pub(super) fn alone(drafts: &[Draft], server: &Protection) -> Option<Contender> {
    let first = drafts.first().filter(|_| drafts.iter().all(|draft| draft.has_policy))?;
    let names: Vec<&str> = drafts.iter().map(|draft| draft.population.name.as_str()).collect();
    Some(Contender::new(names.join(" + "), first.population.policy).protected(*server))
}

/// What a run says besides: `rollout = { share = 0.2, policy = "new" }`, and `populations = { batch = "new" }`.
pub(super) fn of_run(
    run: &Table<'_>,
    config: &Config,
    contender: Contender,
    old: &str,
    drafts: &[Draft],
) -> Result<Contender> {
    if let Some(table) = run.table("rollout")? {
        if !drafts.is_empty() {
            let problem = "a rollout makes two populations, and there are others";
            return Err(run.wrong(
                run.span("rollout"),
                problem,
                "populations = { NAME = \"POLICY\" } changes one of them",
            ));
        }
        return rollout(run, &table, config, contender, old).and_then(|contender| table.finish().map(|()| contender));
    }
    let mut contender = among(contender, drafts);
    let Some(table) = run.table("populations")? else { return Ok(contender) };
    for (name, value, span) in table.entries() {
        let policy = table.text_of(value)?;
        let found = contender.populations.iter_mut().find(|population| population.name == name);
        let Some(population) = found else {
            let names: Vec<&str> = drafts.iter().map(|draft| draft.population.name.as_str()).collect();
            let bad = BadSetting::unknown("population", name, &names);
            return Err(table.wrong(span, bad.problem, bad.hint));
        };
        let read = config.policy(policy).map_err(|bad| table.wrong(value.span(), bad.problem, bad.hint))?;
        population.policy = read;
        population.protection = protection::of_policy(config, Some(policy), &Protection::default());
    }
    Ok(contender)
}

fn rollout(
    run: &Table<'_>,
    table: &Table<'_>,
    config: &Config,
    mut contender: Contender,
    old: &str,
) -> Result<Contender> {
    let Some(share) = table.number("share")? else {
        return Err(run.wrong(run.span("rollout"), "it is not said how far the rollout is", "share = 0.2"));
    };
    let Some(name) = table.text("policy")? else {
        return Err(run.wrong(run.span("rollout"), "it is not said what is rolled out", "policy = \"NAME\""));
    };
    if name == old {
        return Err(table.wrong(
            table.span("policy"),
            format!("{name:?} is what is there already"),
            "name the new policy",
        ));
    }
    let new = config.policy(name).map_err(|bad| table.wrong(table.span("policy"), bad.problem, bad.hint))?;
    let mut before = Population::share(old, 1.0 - share, contender.policy);
    before.protection = Protection { pacer: None, admission: None, ..contender.protection };
    let mut after = Population::share(name, share, new);
    after.protection = protection::of_policy(config, Some(name), &Protection::default());
    contender.populations = vec![before, after];
    Ok(contender)
}
