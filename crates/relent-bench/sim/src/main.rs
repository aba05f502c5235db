//! relent's simulator measured against other discrete-event simulators, all with the same herd, in one run.
//!
//! Every run is a process of its own. Each round gives every case its turn, and the fastest round counts: what else the
//! machine does can only add. All must come to the same number of attempts, or nearly where events of one nanosecond
//! are taken in another order or the random numbers are others.

mod case;
mod desque_peer;
mod heap;
mod herd;
mod machines;
mod nexosim_peer;
mod ours;
mod simpy_peer;

use case::{Case, Taken};
use simpy_peer::SimPy;
use std::{env, fs, process::ExitCode};

const HELP: &str = "\
relent-sim-bench [--quick] [--simpy] [--machines] [--json]

--quick     one round, up to a million clients
--machines  only the herd with budgets, breakers, limits, hedges, admission and pacer
--simpy     SimPy too, installed from PyPI into a temporary folder
--json      a line of JSON a case
";

#[derive(Clone, Copy, Default)]
struct Settings {
    quick: bool,
    simpy: bool,
    machines: bool,
    json: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [first, rest @ ..] = arguments.as_slice()
        && first == "case"
    {
        return case::run_here(rest).map_or(ExitCode::from(2), |()| ExitCode::SUCCESS);
    }
    let mut settings = Settings::default();
    for argument in &arguments {
        match argument.as_str() {
            "--quick" => settings.quick = true,
            "--simpy" => settings.simpy = true,
            "--machines" => settings.machines = true,
            "--json" => settings.json = true,
            "--help" | "-h" => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            unknown => {
                eprintln!("error: unknown argument {unknown}\nhint: {HELP}");
                return ExitCode::from(2);
            }
        }
    }
    match bench(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn bench(settings: Settings) -> Result<(), String> {
    let load = || fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned();
    if !settings.json {
        println!("load before: {}\n", load());
    }
    let clients = if settings.quick { 300_000 } else { 1_000_000 };
    let machines = rounds(settings, &machines::ALL.map(|who| Case::new(who, clients)))?;
    if settings.machines {
        print_machines(settings, &machines);
        return Ok(());
    }
    let peers = peers(settings)?;
    let scale = rounds(settings, &bulk(settings))?;
    let seeds = if settings.quick { 8 } else { 24 };
    let seeds = [1, 2].map(|threads| Case { seeds, threads, ..Case::new("exact", 100_000) });
    let cores = rounds(settings, &seeds)?;
    print(settings, "The herd, one event an attempt", &peers);
    print(settings, "Engines that do not follow each client", &scale);
    print(settings, "Many seeds on two cores", &cores);
    print_machines(settings, &machines);
    if !settings.json {
        println!(
            "two cores: {:.2} times one\n\nload after: {}",
            cores[0].1.nanos as f64 / cores[1].1.nanos as f64,
            load()
        );
    }
    agree(&peers)
}

fn peers(settings: Settings) -> Result<Vec<(Case, Taken)>, String> {
    let mut cases = Vec::new();
    for clients in [100_000, 1_000_000] {
        cases.extend(["exact", "heap", "desque", "nexosim"].map(|who| Case::new(who, clients)));
    }
    let mut taken = rounds(settings, &cases)?;
    if !settings.quick {
        let large = [Case::new("exact", 10_000_000), Case::new("heap", 10_000_000)];
        taken.extend(rounds(settings, &large)?);
    }
    if settings.simpy {
        let simpy = SimPy::install()?;
        for clients in [100_000, 1_000_000].into_iter().take(if settings.quick { 1 } else { 2 }) {
            taken.push((Case::new("SimPy", clients), simpy.measure(clients)?));
        }
    }
    taken.sort_by_key(|(case, _)| case.clients);
    Ok(taken)
}

fn bulk(settings: Settings) -> Vec<Case> {
    let mut cases =
        vec![Case::new("count", 100_000_000), Case::new("fluid", 1_000_000_000), Case::new("heat", 100_000)];
    if !settings.quick {
        cases.insert(1, Case::new("count", 1_000_000_000));
    }
    cases
}

/// The fastest of each case's turns.
fn rounds(settings: Settings, cases: &[Case]) -> Result<Vec<(Case, Taken)>, String> {
    let mut best: Vec<(Case, Taken)> = Vec::new();
    for round in 0..if settings.quick { 1 } else { 3 } {
        for (place, case) in cases.iter().enumerate() {
            // Longer than ten seconds: once is enough.
            let known = best.get(place).map(|(_, taken)| *taken);
            if known.is_some_and(|known| known.nanos > 10_000_000_000) {
                continue;
            }
            let taken = case.measure()?;
            match known {
                None => best.push((*case, taken)),
                Some(known) if taken.nanos < known.nanos => best[place].1 = taken,
                Some(_) => {}
            }
        }
        if !settings.json {
            eprintln!("round {} of {} cases", round + 1, cases.len());
        }
    }
    Ok(best)
}

fn print(settings: Settings, title: &str, taken: &[(Case, Taken)]) {
    if !settings.json {
        println!("## {title}\n");
        println!(
            "| what | clients | attempts | drained, s | time, s | ns an attempt | million a second | bytes a client | MiB | of exact |"
        );
        println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    }
    for (case, Taken { done, nanos, bytes }) in taken {
        let each = *nanos as f64 / done.attempts as f64;
        let per_client = *bytes as f64 / case.clients as f64;
        if settings.json {
            println!(
                r#"{{"what":"{}","clients":{},"seeds":{},"threads":{},"attempts":{},"nanoseconds":{nanos},"bytes":{bytes}}}"#,
                case.who, case.clients, case.seeds, case.threads, done.attempts
            );
            continue;
        }
        let exact = taken.iter().find(|(other, _)| *other == Case::new("exact", case.clients));
        let ratio = exact.map_or(String::new(), |(_, exact)| {
            format!("{:.2}", each / (exact.nanos as f64 / exact.done.attempts as f64))
        });
        let name = match (case.seeds, case.threads) {
            (1, 1) => case.who.to_owned(),
            (seeds, threads) => format!("{}, {seeds} seeds, threads: {threads}", case.who),
        };
        println!(
            "| {name} | {} | {} | {:.3} | {:.4} | {each:.3} | {:.2} | {per_client:.2} | {:.1} | {ratio} |",
            case.clients,
            done.attempts,
            done.drained as f64 / 1e9,
            *nanos as f64 / 1e9,
            1e3 / each,
            *bytes as f64 / f64::from(1 << 20)
        );
    }
    if !settings.json {
        println!();
    }
}

/// How fast the exact engine is with machines: attempts a second in units of those without any.
fn print_machines(settings: Settings, taken: &[(Case, Taken)]) {
    if settings.json {
        return print(settings, "", taken);
    }
    println!("## The herd with machines\n");
    println!(
        "| what | clients | attempts | questions | ns an attempt | million a second | bytes a client | speed of plain | by questions |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let each = |taken: &Taken| taken.nanos as f64 / taken.done.attempts as f64;
    // What a machine refuses or puts off is work too.
    let asked = |taken: &Taken| taken.nanos as f64 / taken.done.questions as f64;
    for (case, one) in taken {
        println!(
            "| {} | {} | {} | {} | {:.1} | {:.2} | {:.1} | {:.2} | {:.2} |",
            case.who,
            case.clients,
            one.done.attempts,
            one.done.questions,
            each(one),
            1e3 / each(one),
            one.bytes as f64 / case.clients as f64,
            each(&taken[0].1) / each(one),
            asked(&taken[0].1) / asked(one)
        );
    }
    println!();
}

/// Everybody simulated the same thing.
fn agree(taken: &[(Case, Taken)]) -> Result<(), String> {
    for (case, theirs) in taken {
        let ours = taken.iter().find(|(other, _)| *other == Case::new("exact", case.clients));
        let Some((_, ours)) = ours else { continue };
        let off = theirs.done.attempts.abs_diff(ours.done.attempts) as f64 / ours.done.attempts as f64;
        if off > 0.01 {
            return Err(format!("{case:?} made {} attempts, not {}", theirs.done.attempts, ours.done.attempts));
        }
    }
    Ok(())
}
