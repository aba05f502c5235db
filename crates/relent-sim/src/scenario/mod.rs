//! What is simulated: clients, a network, a far side, trouble, and the policies that are compared.

mod arrivals;
mod assert_file;
mod assertion;
mod chain;
mod chain_file;
mod channel;
mod check;
mod clients_file;
mod engine;
mod figure;
mod file;
mod layers;
mod network;
mod newcomers;
mod optimistic_writers;
mod pictures;
mod population;
mod population_file;
pub mod presets;
mod problem;
mod protection;
mod protection_file;
mod runs_file;
mod server_file;
mod service;
pub(crate) mod speed;
mod table;
mod world_file;

pub use self::{
    arrivals::{Arrivals, Rate},
    assertion::{Assertion, Subject},
    chain::Layer,
    channel::{Access, Batch, Ethernet, Saturated, Windows},
    engine::Engine,
    figure::Figure,
    layers::Layers,
    network::Network,
    newcomers::Newcomers,
    optimistic_writers::OptimisticWriters,
    pictures::{Picture, Pictures},
    population::{Part, Population},
    problem::Problem,
    protection::Protection,
    service::{RateLimit, RetryAfter, Server, Service, Trouble, TroubleKind, Writes},
};

use relent::{PacerSettings, Policy};
use std::time::Duration;

/// A world, and the policies that are tried in it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it shows, in a sentence.
    pub title: String,
    /// What happens.
    pub world: World,
    /// The policies, side by side over the same luck.
    pub contenders: Vec<Contender>,
    /// How many runs each policy gets. They differ in their luck only.
    pub seeds: u32,
    /// The seed of the first run; the others follow on.
    pub first_seed: u64,
    /// The engine, if it is not to be chosen.
    pub engine: Option<Engine>,
    /// No run goes on longer than this (in the world's time).
    pub limit: Duration,
    /// What must hold.
    pub asserts: Vec<Assertion>,
    /// Which pictures of the scenario as a whole to draw.
    pub pictures: Pictures,
    /// Draws that replace those of the core, for comparing with other simulators.
    pub forced: Option<Forced>,
}

/// What happens.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of it")]
pub enum World {
    /// Clients call a server: herds and open arrivals, queues, rate limits, locks, outages, chains.
    Service(Service),
    /// Writers of one row under optimistic concurrency: the AWS post.
    OptimisticWriters(OptimisticWriters),
    /// Calls through layers of services that each retry, without contention.
    Layers(Layers),
    /// A batch of packets on a slotted channel, by window strategies.
    Batch(Batch),
    /// Stations on an 802.3 segment.
    Ethernet(Ethernet),
    /// Stations that always have something to send: slotted ALOHA and the 802.11 DCF.
    Saturated(Saturated),
}

/// A policy that takes part, under the name it has in the output.
#[derive(Clone, Debug)]
pub struct Contender {
    /// The name.
    pub name: String,
    /// The policy. Its core decides every delay.
    pub policy: Policy,
    /// What the server tells the clients of this contender, if not what the scenario says.
    pub retry_after: Option<RetryAfter>,
    /// The machines that protect the far side from them.
    pub protection: Protection,
    /// Who the clients are, where they are not all alike; then these are all of them, and `policy` is of no consequence.
    pub populations: Vec<Population>,
    /// The layers between the clients and the server, the client itself first, where each has rules of its own. None is the
    /// client alone, or the layers of the service.
    pub layers: Vec<Layer>,
}

impl Contender {
    /// A policy under a name.
    pub fn new(name: impl Into<String>, policy: Policy) -> Contender {
        let protection = Protection::default();
        let (populations, layers) = (Vec::new(), Vec::new());
        Contender { name: name.into(), policy, retry_after: None, protection, populations, layers }
    }

    /// The same contender, whose server answers refusals with this.
    #[must_use]
    pub const fn told(mut self, retry_after: RetryAfter) -> Contender {
        self.retry_after = Some(retry_after);
        self
    }

    /// The same contender, whose server gives refused clients their turns.
    #[must_use]
    pub const fn paced(mut self, pacer: PacerSettings) -> Contender {
        self.protection.pacer = Some(pacer);
        self
    }

    /// The same contender, protected like this.
    #[must_use]
    pub const fn protected(mut self, protection: Protection) -> Contender {
        self.protection = protection;
        self
    }
}

impl Scenario {
    /// A scenario without policies, of one run.
    pub fn new(name: impl Into<String>, world: World) -> Scenario {
        Scenario {
            name: name.into(),
            title: String::new(),
            world,
            contenders: Vec::new(),
            seeds: 1,
            first_seed: 1,
            engine: None,
            limit: Duration::from_secs(24 * 3600),
            asserts: Vec::new(),
            pictures: Pictures::default(),
            forced: None,
        }
    }

    /// One more policy.
    #[must_use]
    pub fn policy(self, name: impl Into<String>, policy: Policy) -> Scenario {
        self.contender(Contender::new(name, policy))
    }

    /// One more contender.
    #[must_use]
    pub fn contender(mut self, contender: Contender) -> Scenario {
        self.contenders.push(contender);
        self
    }

    /// So many runs, which differ in their luck.
    #[must_use]
    pub const fn seeds(mut self, seeds: u32) -> Scenario {
        self.seeds = seeds;
        self
    }

    /// This engine, or an error if it cannot model the scenario.
    #[must_use]
    pub const fn engine(mut self, engine: Engine) -> Scenario {
        self.engine = Some(engine);
        self
    }

    /// One more assertion, such as `drain_s <= 60`.
    #[must_use]
    pub fn assert(mut self, assertion: Assertion) -> Scenario {
        self.asserts.push(assertion);
        self
    }

    /// Draws that replace those of the core: `forced(seed, client, k)` for failure `k`, 1 after the first.
    #[must_use]
    pub const fn force_draws(mut self, forced: Forced) -> Scenario {
        self.forced = Some(forced);
        self
    }
}

/// The draw of failure `k` (1 after the first) of a client, in place of the core's own.
pub type Forced = fn(seed: u64, client: u64, k: u32) -> u64;
