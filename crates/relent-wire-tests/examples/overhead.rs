//! What an admission costs an axum server: requests a second over 64 connections, bare and with it, in turns.
//!
//! `cargo run --release -p relent-wire-tests --example overhead`
#![expect(clippy::print_stdout, reason = "a program talks")]

use axum::{Router, routing::get};
use relent::{Admission, Limit, Pacer, layer::AdmissionLayer};
use relent_wire_tests::{client::Connection, serve::Server};
use std::{net::SocketAddr, time::Duration};
use tokio::{task::JoinSet, time::Instant};

const CONNECTIONS: usize = 64;
const TURN: Duration = Duration::from_millis(500);
const ROUNDS: usize = 15;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = || Router::new().route("/", get(async || "hello"));
    let door = Admission::new().limit(Limit::concurrency(1000)).pacer(Pacer::capacity(1e6));
    let bare = Server::start(app());
    let guarded = Server::start(app().layer(AdmissionLayer::new(door)));
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        // Each goes first as often as the other.
        for which in [round % 2, 1 - round % 2] {
            let server = if which == 0 { &bare } else { &guarded };
            rates[which].push(rate(server.address()).await?);
        }
    }
    let mut shares: Vec<f64> = rates[0].iter().zip(&rates[1]).map(|(bare, guarded)| guarded / bare).collect();
    println!("bare: {:.0} requests a second", median(&mut rates[0]));
    println!("with admission: {:.0}", median(&mut rates[1]));
    println!("share, the median of {ROUNDS} pairs: {:.3}", median(&mut shares));
    Ok(())
}

fn median(of: &mut [f64]) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

async fn rate(address: SocketAddr) -> std::io::Result<f64> {
    let mut tasks = JoinSet::new();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(address).await?);
    }
    let begin = Instant::now();
    for mut connection in connections {
        tasks.spawn(async move {
            let mut served = 0;
            while begin.elapsed() < TURN {
                served += u64::from(connection.get("/", &[]).await.is_ok_and(|answer| answer.status().is_success()));
            }
            served
        });
    }
    let mut served = 0;
    while let Some(Ok(more)) = tasks.join_next().await {
        served += more;
    }
    Ok(served as f64 / begin.elapsed().as_secs_f64())
}
