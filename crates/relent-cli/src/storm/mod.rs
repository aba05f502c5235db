//! `relent storm`: real clients, real sockets, a real server on loopback, and the same herd simulated beside it.
//!
//! Every policy has a server and a herd of its own, and they start one after the other, so that the rush of one is over
//! before the next begins. Two threads do all of it: one has the servers, one the clients; this one watches. What is
//! measured is counted by the simulator's own counters ([`relent_sim::Observed`]), so that both have the same figures.

mod args;
mod beside;
mod far_side;
mod herd;
mod live;
mod plan;
mod server;
mod sight;

pub use args::Args;

use crate::{
    descriptors, dumps,
    ear::Ear,
    talk::{Fault, plain},
};
use beside::{Agreement, Measured};
use herd::Herd;
use live::{Live, Tally};
use plan::Plan;
use relent::{Cancel, Upstream};
use relent_sim::{Contender, Protection};
use server::Servers;
use sight::{Sight, What, Witness};
use std::{
    io,
    process::ExitCode,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Between the starts of two herds, whose rush takes less.
const APART: Duration = Duration::from_millis(1500);

/// Before the first herd starts: its tasks are made meanwhile.
const HEAD_START: Duration = Duration::from_millis(200);

/// What is kept of one herd at most; a policy that makes more attempts has shown what it does.
const MOST_SEEN: usize = 3_000_000;

const EXIT_UNLIKE: u8 = 1;
const EXIT_INTERRUPTED: u8 = 130;

/// Storms.
///
/// # Errors
///
/// The flags make no sense, there are not enough files, or a file cannot be written.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Fault> {
    // Its target may have a user and a password.
    dumps::forbid();
    let plan = Plan::new(args)?;
    for contender in &plan.contenders {
        args.hush.policy(&contender.name, &contender.policy);
    }
    let ends = if plan.target.is_some() { 1 } else { 2 };
    // One herd rushes while those before it have what the server's queue holds.
    let sockets = u64::from(plan.clients) * (plan.contenders.len() as u64).min(2);
    let besides = descriptors::make_room("storm", sockets, ends, |most| {
        format!("; or take fewer clients: all policies together may have {most}")
    })?;
    let ear = Ear::open().map_err(|error| cannot("watch for Ctrl-C", &error))?;
    let round_trip = round_trip().map_err(|error| cannot("call a server on loopback", &error))?;
    let mut measured = Storm::start(&plan, besides).map_err(|error| cannot("start", &error))?.watch(args, &plan, &ear);
    // Nothing is left but to tell it, and whoever reads may take as long as they like, unless a signal came before.
    ear.let_through();
    measured.is_interrupted = ear.heard().is_some();
    for (contender, why) in plan.contenders.iter().zip(&measured.broken) {
        if let Some((count, why)) = why {
            args.hush.warn(format!("{}: {count} attempts did not come through: {why}", contender.name));
        }
    }
    let is_cut = measured.is_interrupted;
    let agreement = beside::tell(args, &plan, measured, round_trip)?;
    Ok(match agreement {
        _ if is_cut => {
            args.hush.note("interrupted: this is what was done");
            ExitCode::from(EXIT_INTERRUPTED)
        }
        Agreement::Fails => ExitCode::from(EXIT_UNLIKE),
        Agreement::Holds => ExitCode::SUCCESS,
    })
}

fn cannot(what: &str, error: &io::Error) -> Fault {
    Fault::new(format!("cannot {what}: {}", plain(error)))
        .hint("a storm needs ports on 127.0.0.1, two threads and open files (ulimit -n)")
}

/// A storm that goes on.
struct Storm {
    /// When each herd is let loose.
    begins: Vec<Instant>,
    /// What ends each.
    cancels: Vec<Cancel>,
    news: Receiver<Sight>,
    /// The servers end with the storm.
    _servers: Option<Servers>,
    clients: JoinHandle<()>,
}

impl Storm {
    /// The silent connections of others may have the files that there are besides.
    fn start(plan: &Plan, besides: u64) -> io::Result<Storm> {
        let (tell, news) = channel();
        let first = Instant::now() + HEAD_START;
        let begins: Vec<Instant> = (0..plan.contenders.len()).map(|nth| first + APART * nth as u32).collect();
        let witness = |herd: usize| Witness { herd, begins: begins[herd], news: tell.clone() };
        let servers = match &plan.target {
            Some(_) => None,
            None => Some(Servers::start(servers(plan, besides, witness))?),
        };
        let own = |herd: usize| servers.as_ref()?.far_side(herd);
        let far = |herd: usize| match &plan.target {
            Some(far) => Ok(far.clone()),
            None => own(herd).ok_or_else(|| io::Error::other("a server is missing")),
        };
        let cancels: Vec<Cancel> = plan.contenders.iter().map(|_| Cancel::new()).collect();
        let herds = plan.contenders.iter().enumerate().map(|(nth, contender)| {
            Ok(Herd {
                clients: plan.clients,
                policy: contender.policy,
                upstreams: upstreams(plan, contender),
                far: far(nth)?,
                seed: plan.seed,
                witness: witness(nth),
                speaks_for_server: plan.target.is_some(),
                cancel: cancels[nth].clone(),
            })
        });
        let clients = herd::let_loose(herds.collect::<io::Result<_>>()?)?;
        Ok(Storm { begins, cancels, news, _servers: servers, clients })
    }

    /// Watches until all herds are done, their time is over, or somebody interrupts.
    fn watch(self, args: &Args, plan: &Plan, ear: &Ear) -> Measured {
        const LOOK: Duration = Duration::from_millis(20);
        let mut tallies = vec![Tally::default(); plan.contenders.len()];
        let mut seen = vec![Vec::new(); plan.contenders.len()];
        let mut stopped: Vec<Option<String>> = vec![None; plan.contenders.len()];
        let mut live = Live::new(args.hush.quiet || args.json);
        loop {
            let is_over = match self.news.recv_timeout(LOOK) {
                Ok(sight) => {
                    self.note(plan, sight, &mut tallies, &mut seen);
                    // What has come meanwhile, in one go.
                    self.news
                        .try_iter()
                        .take(100_000)
                        .for_each(|sight| self.note(plan, sight, &mut tallies, &mut seen));
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            for (nth, tally) in tallies.iter().enumerate().filter(|(_, tally)| !tally.is_done(plan)) {
                let why = match () {
                    () if self.begins[nth].elapsed() > plan.limit => late(plan.limit),
                    () if seen[nth].len() >= MOST_SEEN => "more attempts than are counted".to_owned(),
                    () if ear.heard().is_some() => "interrupted".to_owned(),
                    () => continue,
                };
                debug_assert!(tally.connected <= u64::from(plan.clients));
                stopped[nth].get_or_insert(why);
                self.cancels[nth].cancel();
            }
            let elapsed = self.begins.iter().map(Instant::elapsed);
            live.draw(plan, &elapsed.zip(&tallies).collect::<Vec<_>>());
            let is_done = tallies.iter().zip(&stopped).all(|(tally, stopped)| tally.is_done(plan) || stopped.is_some());
            if is_over || is_done {
                break;
            }
        }
        live.end();
        self.cancels.iter().for_each(Cancel::cancel);
        // Its tasks end at once; if it has died, what was seen is all there is.
        let _ = self.clients.join();
        let broken = tallies.iter().map(|tally| tally.why.clone().map(|why| (tally.broken, why))).collect();
        Measured { seen, stopped, broken, is_interrupted: false }
    }

    fn note(&self, plan: &Plan, sight: Sight, tallies: &mut [Tally], seen: &mut [Vec<(Duration, relent_sim::Seen)>]) {
        tallies[sight.herd].see(&sight, plan);
        let seen = &mut seen[sight.herd];
        if let What::Seen(what) = sight.what
            && seen.len() < MOST_SEEN
        {
            seen.push((sight.at, what));
        }
    }
}

fn late(limit: Duration) -> String {
    format!("it was watched for {}", relent::duration::Human(limit))
}

fn servers(plan: &Plan, besides: u64, witness: impl Fn(usize) -> Witness) -> Vec<server::Plan> {
    let server = |(herd, contender): (usize, &Contender)| server::Plan {
        capacity: plan.capacity.unwrap_or(f64::MAX),
        queue: plan.queue.map_or(u64::MAX, u64::from),
        protection: contender.protection,
        clients: u64::from(plan.clients),
        files: besides / plan.contenders.len() as u64,
        witness: witness(herd),
    };
    plan.contenders.iter().enumerate().map(server).collect()
}

fn upstreams(plan: &Plan, contender: &Contender) -> Vec<Arc<Upstream>> {
    let one = || Arc::new(contender.protection.upstream().unwrap_or_else(|| Upstream::new("server")));
    match contender.protection.has_upstream() {
        true => (0..plan.processes).map(|_| one()).collect(),
        // Nothing to share, and nothing to keep apart.
        false => vec![one()],
    }
}

/// The round trip of one client that has a server for itself: the median of some.
fn round_trip() -> io::Result<Duration> {
    const ROUNDS: usize = 31;
    let (news, seen): (Sender<Sight>, Receiver<Sight>) = channel();
    let witness = Witness { herd: 0, begins: Instant::now(), news };
    let (protection, clients, files) = (Protection::default(), 1, u64::MAX);
    let plan = server::Plan { capacity: 1e9, queue: u64::MAX, protection, clients, files, witness };
    let servers = Servers::start(vec![plan])?;
    let far = servers.far_side(0).ok_or(io::ErrorKind::NotFound)?;
    let runtime = crate::runtime::builder()?.build()?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        if runtime.block_on(far.call(0, 1, || {})).is_ok() {
            rounds.push(begun.elapsed());
        }
    }
    drop((servers, seen));
    rounds.sort_unstable();
    rounds.get(rounds.len() / 2).copied().ok_or_else(|| io::Error::other("nothing answers on loopback"))
}
