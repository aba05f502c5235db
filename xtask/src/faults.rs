//! Kills, pauses, crowds and negative controls on stores: the tests of the same name, longer.

use crate::{
    needs,
    shell::{self, Outcome},
};

/// Each engine that outlives a process, and its share of the kills, in parts of ten.
const ENGINES: &[(&str, u32)] = &[("sqlite", 5), ("redis", 3), ("postgres", 2)];

/// A hundred thousand calls over a thousand keys by eight processes; then again, while 24 processes are killed.
const CROWD: &str = "100000,1000,8,24";

pub(crate) fn faults(args: &[&str]) -> Outcome {
    let (mut kills, mut engine, mut seed, mut is_crowd) = (1000, None, None, false);
    let mut rest = args.iter();
    while let Some(flag) = rest.next() {
        if *flag == "--once" {
            is_crowd = true;
            continue;
        }
        let value = *rest.next().ok_or_else(|| format!("{flag} needs a value\nhint: cargo xtask help"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{flag} takes a number, not '{value}'"));
        match *flag {
            "--kills" => {
                kills = u32::try_from(number()?).map_err(|_| format!("{value} are too many to be killed"))?;
            }
            "--seed" => seed = Some(number()?.to_string()),
            "--engine" if ENGINES.iter().any(|(name, _)| *name == value) => engine = Some(value),
            "--engine" => return Err(format!("--engine takes sqlite, redis or postgres, not '{value}'")),
            _ => return Err(format!("faults takes --once, --kills, --engine and --seed, not '{flag}'")),
        }
    }
    needs::install(&[])?;
    let engines: Vec<_> = ENGINES.iter().filter(|(name, _)| engine.is_none_or(|only| only == *name)).collect();
    let all: u32 = engines.iter().map(|(_, part)| part).sum();
    for (name, part) in engines {
        let kills = (u64::from(kills) * u64::from(*part)).div_ceil(u64::from(all)).to_string();
        let mut env = vec![("RELENT_FAULT_KILLS", kills.as_str())];
        env.extend(seed.as_deref().map(|seed| ("RELENT_SEED", seed)));
        env.extend(is_crowd.then_some(("RELENT_CROWD", CROWD)));
        let run = if is_crowd { "faults::crowd" } else { "faults::kills" };
        let test =
            ["test", "--locked", "-p", "relent-store", "--test", "it", "--", "--nocapture", "--test-threads", "1"];
        // The controls run each time, so that nobody trusts a judge who sees nothing.
        let control = if is_crowd { "faults::crowd::a_crowd_of_strangers" } else { "faults::controls" };
        shell::cargo_with(&env, &[&test[..], &[control]].concat())?;
        let others = ENGINES.iter().filter(|(other, _)| other != name);
        let others: Vec<String> = others.map(|(other, _)| format!("on_{other}")).collect();
        let skip: Vec<&str> = others.iter().flat_map(|other| ["--skip", other]).collect();
        shell::cargo_with(&env, &[&test[..], &[run], &skip].concat())?;
        if is_crowd {
            eprintln!("{CROWD} (calls, keys, processes, kills) on {name}: each effect happened once");
        } else {
            eprintln!("{kills} kills on {name}: nothing accepted was lost");
        }
    }
    Ok(())
}
