//! How fast the engines are: attempts a second on one core, for a herd under exponential backoff with full jitter.
//!
//! `cargo run --release -p relent-sim --example speed [CLIENTS [ENGINE]]`

use relent::{Jitter, Policy};
use relent_sim::{Control, Engine, Figure, Scenario, Service, World, simulate_with};
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
    let mut service = Service::herd(clients, clients as f64 / 20.0);
    service.server.queue = Some(clients / 20);
    let policy = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).jitter(Jitter::Full);
    let scenario =
        Scenario::new("speed", World::Service(service)).policy("full", policy.unlimited_attempts()).engine(engine);
    let begun = Instant::now();
    let outcome = simulate_with(&scenario, 1, &Control::default())?;
    let took = begun.elapsed();
    let attempts = outcome.records[0].get(Figure::AttemptsPerClient).unwrap_or(0.0) * clients as f64;
    let per_second = attempts / took.as_secs_f64() / 1e6;
    writeln!(
        io::stdout(),
        "{engine}, {clients} clients: {attempts:.0} attempts in {took:.2?}, {per_second:.1} million a second; memory {} MiB",
        peak_memory().unwrap_or(0) >> 20
    )?;
    Ok(())
}

/// The most memory this process has had, in bytes.
fn peak_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
