//! A server at full speed with faults injected, and whether it is the same afterwards: memory flat, all places back.
//!
//! `cargo xtask soak --seconds 600`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program talks")]

use axum::{Router, extract::Query, http::StatusCode, routing::get};
use relent::{Admission, Limit, Order, Pacer, Priority, layer::AdmissionLayer};
use relent_wire_tests::{client, machine::Machine, serve::Server};
use std::{
    collections::HashMap,
    fs,
    net::SocketAddr,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    task::JoinSet,
    time::{Instant, interval, sleep, timeout},
};

const CLIENTS: u64 = 200;
/// What the last three tenths have least may be so much more than what the first half had most.
const GROWTH: f64 = 1.1;
/// And so much, which is a moment's bodies.
const MOMENT: u64 = 16 << 20;

#[derive(Default)]
struct Tally {
    served: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    cut: AtomicU64,
}

/// A number that follows another, as random as this needs.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(relent::rng::GAMMA);
    relent::rng::mix(*state)
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (mut seconds, mut seed) = (60u64, 1u64);
    while let (Some(name), value) = (args.next(), args.next()) {
        let number = value.and_then(|value| value.parse().ok());
        match (name.as_str(), number) {
            ("--seconds", Some(number)) => seconds = number,
            ("--seed", Some(number)) => seed = number,
            _ => {
                eprintln!("error: {name} is not known, or has no number\nhint: soak [--seconds 60] [--seed 1]");
                return ExitCode::from(2);
            }
        }
    }
    // Handlers that panic are a part of it.
    std::panic::set_hook(Box::new(|_| {}));
    println!("soak: {seconds} s, seed {seed}, {CLIENTS} clients");
    let problems = soak(Duration::from_secs(seconds.max(1)), seed).await;
    for problem in &problems {
        eprintln!("error: {problem}");
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn soak(lasts: Duration, seed: u64) -> Vec<String> {
    let machine = Arc::new(Machine::new(2000.0));
    let door = Admission::new()
        .order(Order::RetriesFirst)
        .limit(Limit::concurrency(50).queue(50, Duration::from_millis(200)))
        .pacer(Pacer::measured(1000.0).horizon(Duration::from_millis(200)).learning());
    let layer =
        AdmissionLayer::new(door).body_at_most(Duration::from_millis(100)).priority(|_, uri, _| match uri.query() {
            Some("kind=health") => Priority::Vital,
            _ => Priority::Normal,
        });
    let app = Router::new().route("/", get(move |query| handle(machine.clone(), query))).layer(layer.clone());
    let server = Server::start(app);
    let tally = Arc::new(Tally::default());
    let until = Instant::now() + lasts;
    let mut tasks = JoinSet::new();
    for k in 0..CLIENTS {
        let seed = relent::rng::mix(seed ^ relent::rng::mix(k));
        tasks.spawn(abuse(server.address(), tally.clone(), until, seed));
    }
    let mut problems = Vec::new();
    let (mut early, mut late) = (0, u64::MAX);
    let mut ticks = interval(lasts / 10);
    ticks.tick().await;
    for tenth in 1..=10 {
        ticks.tick().await;
        let memory = resident();
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Tally { served, refused, failed, cut } = &*tally;
        println!(
            "{:>4.0} s: {} served, {} refused, {} failed, {} cut; {} MB; {} in flight",
            lasts.as_secs_f64() * f64::from(tenth) / 10.0,
            of(served),
            of(refused),
            of(failed),
            of(cut),
            memory >> 20,
            layer.snapshot().limit.and_then(|limit| limit.in_flight).unwrap_or(0),
        );
        match tenth {
            ..=5 => early = memory.max(early),
            8.. => late = memory.min(late),
            _ => {}
        }
    }
    if late as f64 > early as f64 * GROWTH + MOMENT as f64 {
        problems.push(format!("memory grew from {} to {} MB", early >> 20, late >> 20));
    }
    while tasks.join_next().await.is_some() {}
    let begin = Instant::now();
    while let Some(limit) = layer.snapshot().limit {
        if limit.in_flight == Some(0) && limit.queued == 0 {
            break;
        }
        if begin.elapsed() > Duration::from_secs(10) {
            problems.push(format!("places are lost: {limit:?}"));
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    let snapshot = layer.snapshot();
    println!("{snapshot:?}");
    if tally.served.load(Ordering::Relaxed) == 0 {
        problems.push("nobody was served".into());
    }
    problems
}

/// What handlers do: work, fail, panic, take long, stream.
async fn handle(machine: Arc<Machine>, Query(query): Query<HashMap<String, String>>) -> (StatusCode, Vec<u8>) {
    machine.work().await;
    match query.get("kind").map(String::as_str) {
        Some("fail") => (StatusCode::INTERNAL_SERVER_ERROR, vec![]),
        Some("busy") => (StatusCode::SERVICE_UNAVAILABLE, vec![]),
        Some("panic") => panic!("as handlers do"),
        Some("slow") => {
            sleep(Duration::from_millis(50)).await;
            (StatusCode::OK, vec![])
        }
        Some("large") => (StatusCode::OK, vec![b'x'; 1 << 20]),
        _ => (StatusCode::OK, vec![b'x'; 100]),
    }
}

/// One client: asks in all ways that there are, keeps turns only sometimes, and goes away in the middle.
async fn abuse(address: SocketAddr, tally: Arc<Tally>, until: Instant, mut state: u64) {
    let mut attempt = 1;
    while Instant::now() < until {
        let kind =
            ["", "fail", "busy", "panic", "slow", "large", "health", "", "", ""][(next(&mut state) % 10) as usize];
        let path = format!("/?kind={kind}");
        if next(&mut state).is_multiple_of(8) {
            cut(address, &path, next(&mut state)).await;
            tally.cut.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let mut headers = vec![("relent-attempt", attempt.to_string())];
        if next(&mut state).is_multiple_of(3) {
            headers.push(("relent-deadline", (next(&mut state) % 300).to_string()));
        }
        let patience = Duration::from_millis(5 + next(&mut state) % 500);
        match timeout(patience, client::get(address, &path, &headers)).await {
            Ok(Ok(answer)) if answer.status().is_success() => {
                tally.served.fetch_add(1, Ordering::Relaxed);
                attempt = 1;
            }
            Ok(Ok(answer)) => {
                tally.refused.fetch_add(1, Ordering::Relaxed);
                let turn = answer.headers().get("relent-turn").and_then(|turn| turn.to_str().ok()?.parse().ok());
                attempt = if turn.is_some() { attempt + 1 } else { 1 };
                let wait = turn.unwrap_or(next(&mut state) % 20);
                if !next(&mut state).is_multiple_of(4) {
                    sleep(Duration::from_millis(wait)).await;
                }
            }
            Ok(Err(_)) | Err(_) => {
                tally.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Sends a part of a request, or all of it, and is gone without having read anything, or after a while.
async fn cut(address: SocketAddr, path: &str, draw: u64) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nRelent-Attempt: 2\r\n\r\n");
    let length = if draw.is_multiple_of(2) { request.len() } else { (draw >> 8) as usize % request.len() };
    if let Ok(mut stream) = TcpStream::connect(address).await {
        let _ = stream.write_all(&request.as_bytes()[..length]).await;
        sleep(Duration::from_millis((draw >> 32) % 150)).await;
    }
}

/// Bytes of memory in use; 0 where that cannot be known.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()).unwrap_or(0) << 10
}
