//! The herd: each client a task that runs relent's loop, a new socket for each attempt, until it is served.

use crate::server::SERVED;
use relent::{Policy, SystemTimer, Timer, Timestamp, rng::mix};
use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime,
    task::JoinSet,
    time::timeout,
};

/// What the herd did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// When the last client had its answer.
    pub(crate) drained: Duration,
    /// Attempts of all clients.
    pub(crate) attempts: u64,
}

/// The system's clock with the seed that the simulator gives to this client.
#[derive(Clone, Copy, Debug)]
struct Seeded(u64);

impl Timer for Seeded {
    type Sleep = <SystemTimer as Timer>::Sleep;

    fn now(&self) -> Timestamp {
        SystemTimer.now()
    }

    fn sleep(&self, delay: Duration) -> Self::Sleep {
        SystemTimer.sleep(delay)
    }

    fn seed(&self) -> u64 {
        self.0
    }
}

/// Lets the herd loose and waits until all have been served.
///
/// # Errors
///
/// If a connection fails otherwise than by a refusal, or not all are served within `limit`.
pub(crate) fn run(server: SocketAddr, policy: Policy, count: u32, seed: u64, limit: Duration) -> io::Result<Sent> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let herd = async {
        let begun = Instant::now();
        let mut clients = JoinSet::new();
        for client in 0..u64::from(count) {
            clients.spawn(client_until_served(server, policy, mix(seed ^ mix(client))));
        }
        let mut attempts = 0;
        while let Some(client) = clients.join_next().await {
            attempts += u64::from(client.map_err(io::Error::other)??);
        }
        Ok(Sent { drained: begun.elapsed(), attempts })
    };
    let late = |_| io::Error::new(ErrorKind::TimedOut, format!("not all clients were served within {limit:?}"));
    runtime.block_on(async { timeout(limit, herd).await.map_err(late) })?
}

/// One client; how many attempts it made.
async fn client_until_served(server: SocketAddr, policy: Policy, seed: u64) -> io::Result<u32> {
    let mut retry = policy.start_with(Seeded(seed));
    loop {
        if is_served(server).await? {
            return Ok(retry.attempt().number());
        }
        retry.back_off(io::Error::from(ErrorKind::ConnectionRefused)).await.map_err(io::Error::other)?;
    }
}

async fn is_served(server: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(b"?").await?;
    Ok(stream.read_u8().await? == SERVED)
}
