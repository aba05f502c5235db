//! What is simulated: clients, a network, a far side, trouble, and the policies that are compared.

mod check;
mod file;
mod pictures;
pub mod presets;
mod table;

pub use self::{
    check::Problem,
    pictures::{Picture, Pictures},
};

use crate::{
    arrivals::Arrivals,
    assertion::Assertion,
    channel::{Batch, Ethernet, Saturated},
    layers::Layers,
    luck::Forced,
    network::Network,
    occ::Occ,
    outcome::Engine,
};
use relent::Policy;
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
    Occ(Occ),
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
}

impl Contender {
    /// A policy under a name.
    pub fn new(name: impl Into<String>, policy: Policy) -> Contender {
        Contender { name: name.into(), policy, retry_after: None }
    }

    /// The same contender, whose server answers refusals with this.
    #[must_use]
    pub const fn told(mut self, retry_after: RetryAfter) -> Contender {
        self.retry_after = Some(retry_after);
        self
    }
}

/// Clients that call a server.
#[derive(Clone, Debug)]
pub struct Service {
    /// Who calls, and when.
    pub arrivals: Arrivals,
    /// The one-way delay of a message.
    pub network: Network,
    /// How long a client waits for the answer to one attempt; also see the policy's attempt timeout.
    pub timeout: Option<Duration>,
    /// The share of calls that write, if reads and writes differ.
    pub writes: Option<Writes>,
    /// The far side.
    pub server: Server,
    /// Outages, brown-outs and failures.
    pub troubles: Vec<Trouble>,
    /// How many layers between the client and the server retry, each under the same policy: 1 is the client alone.
    pub layers: u32,
    /// Whether a layer that gives up says "overloaded, do not retry" to the one above.
    pub say_overloaded: bool,
}

/// Calls that are not safe to repeat, among others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Writes {
    /// Their share of all calls, 0 to 1.
    pub share: f64,
    /// Whether they are retried when they may have been done: after a timeout or a failure. One that the server refused
    /// was not done, and is retried like a read.
    pub retried: bool,
    /// Their work in units of that of a read.
    pub cost: f64,
}

/// The far side: a queue with workers.
#[derive(Clone, Debug)]
pub struct Server {
    /// What all workers together complete in a second; `None` is as much as comes.
    pub capacity: Option<f64>,
    /// Among how many workers the capacity is divided.
    pub workers: u32,
    /// Whether service times are exponential rather than all the same.
    pub exponential: bool,
    /// The most requests inside (waiting and being served); those beyond are refused at once.
    pub queue: Option<u64>,
    /// Whether the newest request is served first.
    pub lifo: bool,
    /// Whether requests whose client has stopped waiting are dropped when their turn comes.
    pub drop_expired: bool,
    /// How long an answer takes apart from the queue (without a capacity, the service time).
    pub latency: Duration,
    /// Requests are admitted at this rate only.
    pub rate_limit: Option<RateLimit>,
    /// What a refusal says about coming back.
    pub retry_after: RetryAfter,
    /// Whether a refusal says "overloaded, do not retry".
    pub refuse_for_good: bool,
    /// The share of attempts that fail after having been served, 0 to 1.
    pub failure: f64,
}

impl Default for Server {
    fn default() -> Server {
        Server {
            capacity: None,
            workers: 1,
            exponential: false,
            queue: None,
            lifo: false,
            drop_expired: false,
            latency: Duration::ZERO,
            rate_limit: None,
            retry_after: RetryAfter::Silent,
            refuse_for_good: false,
            failure: 0.0,
        }
    }
}

/// A token bucket at the door.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Tokens a second.
    pub rate: f64,
    /// The most tokens there can be: what may come at once.
    pub burst: u64,
}

/// What a refusal says about coming back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RetryAfter {
    /// Nothing.
    Silent,
    /// Always the same.
    Fixed(Duration),
    /// A random time until all who wait could have been served: `U(0, waiting / capacity)`.
    Spread,
    /// A time of the client's own, laid out at the server's capacity.
    Exact,
}

/// A time of trouble.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trouble {
    /// When it begins.
    pub at: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// What it is.
    pub kind: TroubleKind,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TroubleKind {
    /// The server stops working but still takes requests: they queue, and clients time out.
    Stall,
    /// Connections are refused at once.
    Refuse,
    /// A brown-out: the server works at this share of its capacity.
    Slow(f64),
    /// This share of attempts fails after having been served.
    Failing(f64),
}

impl Trouble {
    pub(crate) fn begins_ns(&self) -> u64 {
        crate::nanos(self.at)
    }

    pub(crate) fn ends_ns(&self) -> u64 {
        crate::nanos(self.at).saturating_add(crate::nanos(self.lasts))
    }
}

impl Service {
    /// A herd of `clients`, all cut off at time 0, that calls a server which completes `capacity` requests a second.
    pub fn herd(clients: u64, capacity: f64) -> Service {
        Service {
            arrivals: Arrivals::Herd { clients, window: Duration::ZERO },
            network: Network::round_trip(Duration::from_millis(10)),
            timeout: None,
            writes: None,
            server: Server { capacity: Some(capacity), ..Server::default() },
            troubles: Vec::new(),
            layers: 1,
            say_overloaded: false,
        }
    }

    /// How many calls complete in a second at best: the capacity, of which writes may need more than reads, or the
    /// rate limit, whichever is less.
    pub fn capacity(&self) -> Option<f64> {
        let worked = self.server.capacity.map(|capacity| capacity / self.mean_cost());
        let limited = self.server.rate_limit.map(|limit| limit.rate);
        match (worked, limited) {
            (Some(capacity), Some(rate)) => Some(capacity.min(rate)),
            (capacity, rate) => capacity.or(rate),
        }
    }

    /// The work of a call's first attempt on average, in units of that of a read.
    pub(crate) fn mean_cost(&self) -> f64 {
        self.writes.map_or(1.0, |writes| 1.0 - writes.share + writes.share * writes.cost)
    }

    /// Whether calls come whether or not earlier ones were answered.
    pub const fn is_open(&self) -> bool {
        matches!(self.arrivals, Arrivals::Open { .. })
    }

    /// The end of the last trouble, in nanoseconds.
    pub(crate) fn trouble_ends(&self) -> Option<u64> {
        self.troubles.iter().map(Trouble::ends_ns).max()
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
