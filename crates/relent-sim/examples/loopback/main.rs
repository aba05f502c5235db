//! Is the simulated world like the real one? A thousand real clients on loopback against the simulator.
//!
//! `cargo xtask loopback`, or `cargo run -p relent-sim --example loopback`
//!
//! A herd of [`CLIENTS`] clients, all cut off at once, reconnects to a TCP [`server`] that has the capacity and the
//! queue of the model. The [`clients`] run relent's loop on tokio's clock and open a socket for each attempt. The
//! exact engine simulates the same herd with the same seeds, and the drain time and the attempts of the two are
//! compared: a difference of more than 10 % in either, under any policy, is an error.
//!
//! What the model is not told: connecting, the scheduler, timers that wake late, and the order in which clients of one
//! instant arrive. It takes twenty seconds, never more than [`LIMIT`] a run.

mod clients;
mod server;

use crate::server::{Counts, Server};
use relent::{Jitter, Policy};
use relent_sim::{Engine, Figure, Network, Problem, Scenario, Service, World, simulate};
use std::{
    fmt, io,
    io::Write as _,
    process::ExitCode,
    time::{Duration, Instant},
};

const CLIENTS: u32 = 1000;

/// Requests that the server completes in a second.
const CAPACITY: u32 = 250;

/// The most requests inside the server; those beyond are refused.
const QUEUE: usize = 250;

/// The seeds of the runs under a policy with jitter. Without, luck plays no part and one run is enough.
const SEEDS: u32 = 2;

/// The longest that one run may take.
const LIMIT: Duration = Duration::from_secs(8);

/// The greatest difference between measured and simulated.
const TOLERANCE: f64 = 0.10;

const EXPONENTIAL: Policy =
    Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(2)).unlimited_attempts();

const CONSTANT: Policy = Policy::constant(Duration::from_millis(300)).unlimited_attempts();

const POLICIES: [(&str, Policy); 3] = [
    ("exponential, no jitter", EXPONENTIAL.jitter(Jitter::None)),
    ("exponential, full jitter", EXPONENTIAL.jitter(Jitter::Full)),
    ("constant, no jitter", CONSTANT.jitter(Jitter::None)),
];

/// What is compared.
#[derive(Clone, Copy, Debug, Default)]
struct Herd {
    drain_s: f64,
    attempts: f64,
}

/// Why there is nothing to compare.
#[derive(Debug)]
enum Fault {
    Io(io::Error),
    Simulator(Problem),
    Unlike(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Io(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Io(error) => write!(
                f,
                "{error}\nhint: the herd needs {} open files (ulimit -n), a port on 127.0.0.1 and a machine that is \
                 not busy",
                2 * CLIENTS + 100
            ),
            Fault::Simulator(problem) => write!(f, "{problem}"),
            Fault::Unlike(what) => f.write_str(what),
        }
    }
}

fn main() -> ExitCode {
    match compare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            let _ = writeln!(io::stderr(), "error: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn compare() -> Result<(), Fault> {
    let begun = Instant::now();
    let mut out = io::stdout().lock();
    let rtt = round_trip()?;
    let ideal = f64::from(CLIENTS) / f64::from(CAPACITY);
    writeln!(out, "{CLIENTS} clients, {CAPACITY} requests/s, {QUEUE} inside at most; round trip alone {rtt:.1?}")?;
    writeln!(out, "ideal: drain {ideal:.2} s, 1 attempt a client\n")?;
    writeln!(out, "{:<27}{:>31}{:>31}", "", "drain s", "attempts/client")?;
    let columns = format!("{:>11}{:>11}{:>9}", "measured", "simulated", "differ");
    writeln!(out, "{:<27}{columns}{columns}", "policy")?;
    let mut worst = 0.0f64;
    for (name, policy) in POLICIES {
        let seeds = if policy.settings().jitter == Jitter::None { 1 } else { SEEDS };
        let measured = measured(policy, seeds)?;
        let simulated = simulated(policy, seeds, rtt)?;
        let drain = measured.drain_s / simulated.drain_s - 1.0;
        let attempts = measured.attempts / simulated.attempts - 1.0;
        worst = worst.max(drain.abs()).max(attempts.abs());
        writeln!(
            out,
            "{name:<27}{:>11.2}{:>11.2}{:>+8.1}%{:>11.2}{:>11.2}{:>+8.1}%",
            measured.drain_s,
            simulated.drain_s,
            100.0 * drain,
            measured.attempts,
            simulated.attempts,
            100.0 * attempts
        )?;
        out.flush()?;
    }
    writeln!(out, "\nthe greatest difference is {:.1} %; took {:.1?}", 100.0 * worst, begun.elapsed())?;
    if worst > TOLERANCE {
        let tolerance = 100.0 * TOLERANCE;
        return Err(Fault::Unlike(format!(
            "measured and simulated differ by more than {tolerance} %\nhint: on a machine that is busy with other \
             things clients and server are late; try again when it is idle"
        )));
    }
    Ok(())
}

/// The mean of a run for each seed, on loopback.
fn measured(policy: Policy, seeds: u32) -> Result<Herd, Fault> {
    let mut sum = Herd::default();
    for seed in first_seed()..first_seed() + u64::from(seeds) {
        let server = Server::start(QUEUE, Duration::from_secs(1) / CAPACITY)?;
        let sent = clients::run(server.address(), policy, CLIENTS, seed, LIMIT)?;
        let Counts { served, refused } = server.stop()?;
        if served != u64::from(CLIENTS) || served + refused != sent.attempts {
            let attempts = sent.attempts;
            let what = format!("{attempts} attempts were made, but the server served {served} and refused {refused}");
            return Err(Fault::Unlike(what));
        }
        sum.drain_s += sent.drained.as_secs_f64();
        sum.attempts += sent.attempts as f64 / f64::from(CLIENTS);
    }
    Ok(Herd { drain_s: sum.drain_s / f64::from(seeds), attempts: sum.attempts / f64::from(seeds) })
}

/// The mean of a run for each seed, by the exact engine.
fn simulated(policy: Policy, seeds: u32, rtt: Duration) -> Result<Herd, Fault> {
    let mut service = Service::herd(u64::from(CLIENTS), f64::from(CAPACITY));
    service.server.queue = Some(QUEUE as u64);
    service.network = Network::round_trip(rtt);
    let scenario = Scenario::new("loopback", World::Service(service)).policy("policy", policy).seeds(seeds);
    let outcome = simulate(&scenario.engine(Engine::Exact)).map_err(Fault::Simulator)?;
    let figure = |figure| outcome.records[0].get(figure).expect("a herd has this figure");
    Ok(Herd { drain_s: figure(Figure::DrainS), attempts: figure(Figure::AttemptsPerClient) })
}

/// The seed of the first run, which is that of the simulator's.
fn first_seed() -> u64 {
    Scenario::new("", World::Service(Service::herd(1, 1.0))).first_seed
}

/// The round trip of one client that has the server for itself: the median of some, less the service.
fn round_trip() -> Result<Duration, Fault> {
    const ROUNDS: usize = 51;
    let policy = Policy::immediate().max_attempts(1);
    let server = Server::start(1, Duration::ZERO)?;
    let mut rounds = Vec::new();
    for seed in 0..ROUNDS {
        rounds.push(clients::run(server.address(), policy, 1, seed as u64, LIMIT)?.drained);
    }
    server.stop()?;
    rounds.sort_unstable();
    Ok(rounds[ROUNDS / 2])
}
