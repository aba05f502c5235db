//! How fast the engines are: attempts a second on one core, for a herd under exponential backoff with full jitter.
//!
//! `cargo run --release -p relent-sim --example speed [CLIENTS [ENGINE [MACHINE]]]`
//!
//! With a machine (budget, breaker, limit, admission, pacer), which is there and hinders nobody as far as it can, the share
//! of the speed without it is told too.

use relent::{AdmissionSettings, Breaker, Budget, Jitter, Limit, PacerSettings, Policy};
use relent_sim::{Contender, Control, Engine, Figure, Protection, Scenario, Service, World, simulate_with};
use std::{
    env,
    error::Error,
    io::{self, Write},
    time::{Duration, Instant},
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let clients = arguments.first().map_or(Ok(1e6), |text| text.parse::<f64>())? as u64;
    let engine = arguments.get(1).and_then(|name| Engine::parse(name)).unwrap_or(Engine::Exact);
    let machine = arguments.get(2).map(String::as_str);
    let bare = measure(clients, engine, Protection::default(), "bare")?;
    if let Some(machine) = machine {
        let share = measure(clients, engine, protection(machine, clients), machine)? / bare;
        writeln!(io::stdout(), "{share:.2} of the speed without")?;
    }
    Ok(())
}

fn protection(machine: &str, clients: u64) -> Protection {
    let none = Protection::default();
    match machine {
        "budget" => Protection { budget: Some(Budget::ratio(1.0).min_per_second(100).settings()), ..none },
        "breaker" => Protection { breaker: Some(Breaker::consecutive(100_000).settings()), ..none },
        "limit" => Protection { limit: Some(Limit::concurrency(5).settings()), ..none },
        "admission" => Protection {
            admission: Some(AdmissionSettings { max_retry_share: 1.0, ..AdmissionSettings::default() }),
            ..none
        },
        "pacer" => {
            let capacity = clients as f64 / 20.0;
            Protection { pacer: Some(PacerSettings { capacity, ..PacerSettings::default() }), ..none }
        }
        _ => none,
    }
}

/// Attempts a second.
fn measure(clients: u64, engine: Engine, protection: Protection, name: &str) -> Result<f64, Box<dyn Error>> {
    let mut service = Service::herd(clients, clients as f64 / 20.0);
    service.server.queue = Some(clients / 20);
    let policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).jitter(Jitter::Full);
    let contender = Contender::new("full", policy.unlimited_attempts()).protected(protection);
    let scenario = Scenario::new("speed", World::Service(service)).contender(contender).engine(engine);
    let begun = Instant::now();
    let outcome = simulate_with(&scenario, 1, &Control::default())?;
    let took = begun.elapsed();
    let attempts = outcome.records[0].get(Figure::AttemptsPerClient).unwrap_or(0.0) * clients as f64;
    let per_second = attempts / took.as_secs_f64() / 1e6;
    writeln!(
        io::stdout(),
        "{engine}, {clients} clients, {name}: {attempts:.0} attempts in {took:.2?}, {per_second:.1} million a second; memory {} MiB",
        peak_memory().unwrap_or(0) >> 20
    )?;
    Ok(per_second)
}

/// The most memory this process has had, in bytes.
fn peak_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
