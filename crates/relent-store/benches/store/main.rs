//! What the store costs beside the same written by hand, in one run: `cargo bench -p relent-store --bench store`.
//!
//! Each row is the median of five rounds, in which both sides take turns. Servers are started on loopback.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark stops where it cannot measure, and prints")]

mod cost;
mod layer;
mod postgres;
mod rate;
mod redis;
#[expect(dead_code, reason = "the tests need more of it")]
#[path = "../../tests/it/servers.rs"]
mod servers;
mod shared;
mod sqlite;
mod work;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(800);
const MINUTE: Duration = Duration::from_secs(60);

static NEXT: AtomicU64 = AtomicU64::new(0);

fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        println!("| work | by hand, 1/s | relent-store, 1/s | ratio | target |\n|---|---:|---:|---:|---:|");
        for (name, wanted) in [("sqlite", 0), ("redis", 1), ("postgres", 2), ("layer", 3), ("shared", 4)] {
            let chosen: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
            if !chosen.is_empty() && !chosen.iter().any(|one| one == name) {
                continue;
            }
            match wanted {
                0 => sqlite::all().await,
                1 => redis::all().await,
                2 => postgres::all().await,
                3 => layer::all().await,
                _ => shared::all().await,
            }
        }
    });
}
