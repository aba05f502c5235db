//! Two thousand real clients that come at once, by what they do when they are refused; and as many of curl's beside them.
//!
//! `cargo xtask herd`
#![expect(clippy::print_stdout, reason = "a program talks")]

use relent_wire_tests::herd::{Herd, Manner};
use std::{process::Stdio, time::Duration};
use tokio::{process::Command, task::JoinSet, time::Instant};

/// So many processes are enough of a load of their own.
const CURLS: usize = 200;

#[tokio::main]
async fn main() {
    let herd = Herd { clients: 2000, capacity: 500.0, room: 250, at_most: Duration::from_secs(60) };
    println!("{} clients, {} a second, room for {}", herd.clients, herd.capacity, herd.room);
    println!("ideal: {:.2} s", herd.ideal().as_secs_f64());
    for (name, manner) in
        [("turns", Manner::Paced), ("full jitter", Manner::FullJitter), ("no jitter", Manner::NoJitter)]
    {
        println!("{name}: {}", herd.run(manner).await);
    }
    // Slow enough that they come at once, though a system takes seconds to start them.
    let few = Herd { clients: CURLS, capacity: 15.0, room: 15, ..herd };
    println!(
        "{CURLS} clients, {} a second, room for {}: ideal {:.2} s",
        few.capacity,
        few.room,
        few.ideal().as_secs_f64()
    );
    println!("turns: {}", few.run(Manner::Paced).await);
    for is_paced in [true, false] {
        let (server, layer, _machine) = few.server(is_paced);
        let mut tasks = JoinSet::new();
        let begin = Instant::now();
        for _ in 0..few.clients {
            let mut curl = Command::new("curl");
            curl.args(["-s", "-o", "/dev/null", "--fail", "--retry", "30", "--retry-max-time", "60"])
                .arg(server.url("/"));
            tasks.spawn(curl.stdin(Stdio::null()).kill_on_drop(true).status());
        }
        let mut served = 0;
        while let Some(ended) = tasks.join_next().await {
            served += usize::from(matches!(ended, Ok(Ok(status)) if status.success()));
        }
        let took = begin.elapsed().as_secs_f64();
        let snapshot = layer.snapshot();
        let attempts = (snapshot.accepted + snapshot.refused()) as f64 / few.clients as f64;
        let told = if is_paced { "their turn in whole seconds" } else { "a second" };
        println!("curl --retry, told {told}: {served} served in {took:.2} s, {attempts:.2} attempts each");
    }
}
