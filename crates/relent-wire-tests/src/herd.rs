//! A herd: so many clients that all come in one moment to a server that can take so many a second, each attempt over a
//! connection of its own.

use crate::{
    client::{self, Connection},
    machine::Machine,
    serve::Server,
};
use axum::{Router, routing::get};
use http::HeaderMap;
use relent::{Admission, Jitter, Limit, Order, Pacer, Policy, Verdict, layer::AdmissionLayer, wire};
use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::Barrier, task::JoinSet};

/// What clients do who are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The server gives turns, and they keep them.
    Paced,
    /// They go by a backoff with full jitter.
    FullJitter,
    /// They go by a backoff without jitter.
    NoJitter,
}

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Herd {
    /// How many clients.
    pub clients: usize,
    /// Requests a second that the server gets done.
    pub capacity: f64,
    /// Requests that may be inside at a time.
    pub room: u32,
    /// Who is not through by then is not waited for.
    pub at_most: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Clients that were served.
    pub served: usize,
    /// From the first attempt to the last answer.
    pub took: Duration,
    /// Attempts of all clients that were served.
    pub attempts: u64,
    /// The most of one of them.
    pub most: u32,
    /// Permits that were not given back.
    pub lost: u32,
    /// Connections that failed.
    pub broken: u64,
}

impl Outcome {
    /// The attempts of a client, on average.
    pub fn mean(&self) -> f64 {
        self.attempts as f64 / self.served.max(1) as f64
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { served, took, most, broken, .. } = self;
        write!(f, "{served} served in {:.2} s, {:.2} attempts each, at most {most}", took.as_secs_f64(), self.mean())?;
        if *broken > 0 { write!(f, ", {broken} connections broke") } else { Ok(()) }
    }
}

/// The backoff of those who are not told when to come.
const BACKOFF: Policy = Policy::exponential(Duration::from_millis(100))
    .cap(Duration::from_secs(10))
    .max_attempts(100_000)
    .max_pushback(Duration::from_secs(600));

impl Herd {
    /// How long it takes at best.
    pub fn ideal(&self) -> Duration {
        Duration::from_secs_f64(self.clients as f64 / self.capacity)
    }

    /// The server of the herd, and its layer.
    pub fn server(&self, is_paced: bool) -> (Server, AdmissionLayer, Arc<Machine>) {
        let machine = Arc::new(Machine::new(self.capacity));
        let door =
            Admission::new().order(Order::RetriesFirst).limit(Limit::concurrency(self.room)).max_retry_share(1.0);
        let pacer = Pacer::capacity(self.capacity).horizon(Duration::from_secs(600));
        let layer = AdmissionLayer::new(if is_paced { door.pacer(pacer) } else { door });
        let at_work = machine.clone();
        let handler = move || {
            let machine = at_work.clone();
            async move {
                machine.work().await;
                "done"
            }
        };
        (Server::start(Router::new().route("/", get(handler)).layer(layer.clone())), layer, machine)
    }

    /// Runs it.
    ///
    /// # Panics
    ///
    /// If a client's task does.
    pub async fn run(&self, manner: Manner) -> Outcome {
        let (server, layer, _machine) = self.server(manner == Manner::Paced);
        let mut tasks = JoinSet::new();
        // All are connected before the first one asks: it is the server that is looked at, not how quick a system connects.
        let start = Arc::new(Barrier::new(self.clients + 1));
        for _ in 0..self.clients {
            tasks.spawn(client(server.address(), manner, start.clone()));
        }
        start.wait().await;
        let begin = Instant::now();
        let mut outcome = Outcome::default();
        let until = tokio::time::Instant::now() + self.at_most;
        while let Ok(Some(ended)) = tokio::time::timeout_at(until, tasks.join_next()).await {
            let (attempts, broken) = ended.expect("a client does not panic");
            outcome.broken += broken;
            outcome.served += 1;
            outcome.attempts += u64::from(attempts);
            outcome.most = outcome.most.max(attempts);
            outcome.took = begin.elapsed();
        }
        tasks.shutdown().await;
        outcome.lost = self.lost(&layer).await;
        outcome
    }

    /// What is in flight after everybody has gone: connections that were cut need a moment to be noticed.
    async fn lost(&self, layer: &AdmissionLayer) -> u32 {
        let begin = Instant::now();
        loop {
            let left = layer.snapshot().limit.and_then(|limit| limit.in_flight).unwrap_or(0);
            if left == 0 || begin.elapsed() > Duration::from_secs(5) {
                return left;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Comes until it is served: how many attempts it took, and how many connections broke.
async fn client(address: SocketAddr, manner: Manner, start: Arc<Barrier>) -> (u32, u64) {
    let policy = if manner == Manner::NoJitter { BACKOFF.jitter(Jitter::None) } else { BACKOFF };
    let mut first = Connection::open(address).await.ok();
    start.wait().await;
    let (mut retry, mut broken) = (policy.start(), 0);
    for number in 1.. {
        let headers = [("relent-attempt", number.to_string())];
        let answer = match first.take() {
            Some(mut connection) => connection.get("/", &headers).await,
            None => client::get(address, "/", &headers).await,
        };
        let verdict = match answer {
            Ok(answer) if answer.status().is_success() => return (number, broken),
            Ok(answer) if manner == Manner::Paced => told(answer.status(), answer.headers()),
            Ok(_) => Verdict::Transient,
            Err(_) => {
                broken += 1;
                Verdict::Transient
            }
        };
        if let Err(err) = retry.back_off_as("refused", verdict).await {
            unreachable!("{err}");
        }
    }
    unreachable!("there are more numbers than attempts")
}

fn told(status: http::StatusCode, headers: &HeaderMap) -> Verdict {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    wire::verdict(status, headers, now).unwrap_or(Verdict::Transient)
}
