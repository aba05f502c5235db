//! Kills, pauses and negative controls on stores: the tests of the same name, longer.

use crate::{
    needs,
    shell::{self, Outcome},
};

/// Each engine that outlives a process, and its share of the kills, in parts of ten.
const ENGINES: &[(&str, u32)] = &[("sqlite", 5), ("redis", 3), ("postgres", 2)];

pub(crate) fn faults(args: &[&str]) -> Outcome {
    let (mut kills, mut engine, mut seed) = (1000, None, None);
    let mut rest = args.iter();
    while let Some(flag) = rest.next() {
        let value = *rest.next().ok_or_else(|| format!("{flag} needs a value\nhint: cargo xtask help"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{flag} takes a number, not '{value}'"));
        match *flag {
            "--kills" => {
                kills = u32::try_from(number()?).map_err(|_| format!("{value} are too many to be killed"))?;
            }
            "--seed" => seed = Some(number()?.to_string()),
            "--engine" if ENGINES.iter().any(|(name, _)| *name == value) => engine = Some(value),
            "--engine" => return Err(format!("--engine takes sqlite, redis or postgres, not '{value}'")),
            _ => return Err(format!("faults takes --kills, --engine and --seed, not '{flag}'")),
        }
    }
    needs::install(&[])?;
    let all: u32 =
        ENGINES.iter().filter(|(name, _)| engine.is_none_or(|only| only == *name)).map(|(_, part)| part).sum();
    for (name, part) in ENGINES.iter().filter(|(name, _)| engine.is_none_or(|only| only == *name)) {
        let kills = (u64::from(kills) * u64::from(*part)).div_ceil(u64::from(all)).to_string();
        let mut env = vec![("RELENT_FAULT_KILLS", kills.as_str())];
        env.extend(seed.as_deref().map(|seed| ("RELENT_SEED", seed)));
        let on = format!("on_{name}");
        let test =
            ["test", "--locked", "-p", "relent-store", "--test", "it", "--", "--nocapture", "--test-threads", "1"];
        // The controls run each time, so that nobody trusts a judge who sees nothing.
        shell::cargo_with(&env, &[&test[..], &["faults::controls", "--skip", "faults::kills"]].concat())?;
        let skip: Vec<&str> =
            ENGINES.iter().filter(|(other, _)| other != name).flat_map(|(other, _)| ["--skip", other]).collect();
        shell::cargo_with(&env, &[&test[..], &["faults::kills"], &skip].concat())?;
        eprintln!("{kills} kills {on}: nothing accepted was lost");
    }
    Ok(())
}
