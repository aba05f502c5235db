//! The clients: each a task that runs relent's own loop, with a new connection for each attempt, until it has its answer.

use super::{
    far_side::{Failed, FarSide},
    sight::{What, Witness},
};
use relent::{Cancel, Policy, Reason, SystemTimer, Timer, Timestamp, Upstream, Verdict, rng::mix};
use relent_sim::Seen;
use std::{
    io,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{task::JoinSet, time};

/// One herd.
#[derive(Debug)]
pub(super) struct Herd {
    pub(super) clients: u32,
    pub(super) policy: Policy,
    /// What protects the far side, one a process; clients are dealt out to them in turn.
    pub(super) upstreams: Vec<Arc<Upstream>>,
    pub(super) far: FarSide,
    /// The seed that the simulator gives to the herd.
    pub(super) seed: u64,
    pub(super) witness: Witness,
    /// Whether the clients tell what the server would: it is somebody else's.
    pub(super) speaks_for_server: bool,
    /// Ends it.
    pub(super) cancel: Cancel,
}

/// Lets the herds loose, on a thread of their own, each at its time; it ends when all of their clients have.
///
/// # Errors
///
/// There is no thread to be had.
pub(super) fn let_loose(herds: Vec<Herd>) -> io::Result<JoinHandle<()>> {
    let runtime = crate::runtime::builder()?.build()?;
    thread::Builder::new().name("clients".to_owned()).spawn(move || {
        runtime.block_on(async {
            let mut clients = JoinSet::new();
            for herd in herds {
                let herd = Arc::new(herd);
                for client in 0..herd.clients {
                    clients.spawn(live(herd.clone(), client));
                }
            }
            while clients.join_next().await.is_some() {}
        });
    })
}

async fn live(herd: Arc<Herd>, client: u32) {
    tokio::select! {
        biased;
        () = herd.cancel.cancelled() => {}
        () = until_served(&herd, client) => {}
    }
}

async fn until_served(herd: &Herd, client: u32) {
    time::sleep_until(herd.witness.begins.into()).await;
    let upstream = herd.upstreams[client as usize % herd.upstreams.len()].clone();
    let timer = Seeded(mix(herd.seed ^ mix(u64::from(client))));
    let mut retry = herd.policy.start_with(timer).on(upstream);
    retry.spread().await;
    loop {
        if let Err(refused) = retry.ready().await {
            return herd.gave_up(refused.0.reason, refused.0.attempts);
        }
        let attempt = retry.attempt();
        let verdict = match herd.attempt(client, attempt.number(), attempt.timeout()).await {
            Ok(()) => {
                retry.succeed(());
                return herd.witness.see(herd.witness.now(), Seen::Connected { attempts: attempt.number() });
            }
            Err(verdict) => verdict,
        };
        if let Err(error) = retry.back_off_as((), verdict).await {
            return herd.gave_up(error.reason, error.attempts);
        }
    }
}

impl Herd {
    fn gave_up(&self, reason: Reason, attempts: u32) {
        self.witness.see(self.witness.now(), Seen::GaveUp { reason, attempts });
    }

    async fn attempt(&self, client: u32, attempt: u32, limit: Option<Duration>) -> Result<(), Verdict> {
        let witness = &self.witness;
        let sent = || {
            if self.speaks_for_server {
                witness.see(witness.now(), Seen::Arrived { client, failures: attempt - 1 });
            }
        };
        let call = self.far.call(client, attempt, sent);
        let answer = match limit {
            None => call.await,
            Some(limit) => {
                time::timeout(limit, call).await.unwrap_or_else(|_| Err(Failed::Broken("timed out".to_owned())))
            }
        };
        match answer {
            Ok(()) if self.speaks_for_server => witness.see(witness.now(), Seen::Served),
            Ok(()) => {}
            Err(Failed::Refused(verdict)) => {
                if self.speaks_for_server {
                    witness.see(witness.now(), Seen::Refused(verdict));
                }
                return Err(verdict);
            }
            Err(Failed::Broken(why)) => {
                witness.tell(witness.now(), What::Broken(why));
                return Err(Verdict::Transient);
            }
        }
        Ok(())
    }
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
