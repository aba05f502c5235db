//! A storm: so many requests a second for so long, whatever the answers are; and how many are answered in time.

use crate::client::Connection;
use std::{fmt, net::SocketAddr, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval_at, timeout},
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// How many connections the requests come over.
    pub connections: u32,
    /// Requests a second of all of them.
    pub rate: f64,
    /// How long it lasts.
    pub lasts: Duration,
    /// An answer that takes longer is of no use: the connection is cut.
    pub patience: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Requests that were sent.
    pub sent: u64,
    /// Answered in time.
    pub served: u64,
    /// Refused.
    pub refused: u64,
    /// Not answered in time, or not at all.
    pub failed: u64,
    /// How long it took from the first request to the last answer.
    pub took: Duration,
}

impl Outcome {
    /// The answers a second that were of use.
    pub fn goodput(&self) -> f64 {
        self.served as f64 / self.took.as_secs_f64()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { sent, served, refused, failed, .. } = self;
        write!(f, "{sent} sent, {served} served, {refused} refused, {failed} too late")
    }
}

impl Storm {
    /// Runs it.
    pub async fn run(&self, address: SocketAddr) -> Outcome {
        let mut tasks = JoinSet::new();
        let begin = Instant::now();
        let gap = Duration::from_secs_f64(f64::from(self.connections) / self.rate);
        for k in 0..self.connections {
            let first = begin + gap * k / self.connections;
            tasks.spawn(self.one(address, first, gap));
        }
        let mut all = Outcome::default();
        while let Some(Ok(one)) = tasks.join_next().await {
            all.sent += one.sent;
            all.served += one.served;
            all.refused += one.refused;
            all.failed += one.failed;
        }
        all.took = begin.elapsed();
        all
    }

    fn one(&self, address: SocketAddr, first: Instant, gap: Duration) -> impl Future<Output = Outcome> + use<> {
        let Storm { lasts, patience, .. } = *self;
        async move {
            let (mut outcome, mut connection) = (Outcome::default(), None);
            let mut ticks = interval_at(first, gap);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while ticks.tick().await < first + lasts {
                let request = async {
                    let mut open = match connection.take() {
                        Some(open) => open,
                        None => Connection::open(address).await?,
                    };
                    let answer = open.get("/", &[]).await?;
                    connection = Some(open);
                    std::io::Result::Ok(answer.status())
                };
                outcome.sent += 1;
                match timeout(patience, request).await {
                    Ok(Ok(status)) if status.is_success() => outcome.served += 1,
                    Ok(Ok(_)) => outcome.refused += 1,
                    Ok(Err(_)) | Err(_) => outcome.failed += 1,
                }
            }
            outcome
        }
    }
}
