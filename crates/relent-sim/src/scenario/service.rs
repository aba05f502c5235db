//! Clients that call a server: who, over what network, and what goes wrong.

use super::{Arrivals, Network, Newcomers};
use std::time::Duration;

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
    /// The share of clients that do not come back once they were refused, 0 to 1.
    pub leaving: f64,
    /// New clients who call while a herd comes back.
    pub newcomers: Option<Newcomers>,
    /// How many processes the clients are in, if not the usual number: see [`processes`](Service::processes).
    pub processes: Option<u64>,
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
    /// How long the server needs after it to be as fast as before: caches are cold, and its speed rises evenly from
    /// nothing. Zero is at once.
    pub ramp: Duration,
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
    /// This share of requests is lost on the way, and nobody is told: clients learn it by their timeouts.
    Losing(f64),
}

impl Trouble {
    /// A trouble that is over when it is over.
    pub const fn new(at: Duration, lasts: Duration, kind: TroubleKind) -> Trouble {
        Trouble { at, lasts, kind, ramp: Duration::ZERO }
    }

    /// The same, after which the server becomes as fast as before over so long.
    #[must_use]
    pub const fn ramp(mut self, ramp: Duration) -> Trouble {
        self.ramp = ramp;
        self
    }

    pub(crate) fn begins_ns(&self) -> u64 {
        crate::time::nanos(self.at)
    }

    /// When the cause is over; the server may still be slow.
    pub(crate) fn stops_ns(&self) -> u64 {
        crate::time::nanos(self.at).saturating_add(crate::time::nanos(self.lasts))
    }

    /// When all is as before.
    pub(crate) fn ends_ns(&self) -> u64 {
        crate::time::nanos(self.at)
            .saturating_add(crate::time::nanos(self.lasts))
            .saturating_add(crate::time::nanos(self.ramp))
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
            leaving: 0.0,
            newcomers: None,
            processes: None,
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

    /// The end of the last trouble, in nanoseconds. A rush of calls is one: a spike, or more than the server can do.
    pub(crate) fn trouble_ends(&self) -> Option<u64> {
        let rush = match &self.arrivals {
            Arrivals::Open { rate, until, .. } => rate.rush_ends(until.as_secs_f64(), self.capacity()),
            Arrivals::Herd { .. } => None,
        };
        self.troubles.iter().map(Trouble::ends_ns).chain(rush.map(|end| (end * 1e9) as u64)).max()
    }
}

impl Service {
    /// How many processes the clients are in: each has an upstream of its own. Clients of a herd are one each, calls of a
    /// stream are all of one, unless told.
    pub fn processes(&self) -> u64 {
        let usual = if self.is_open() { 1 } else { self.clients() as u64 };
        self.processes.unwrap_or(usual).max(1)
    }

    /// So many requests of a herd wait at once, about, as far as they are not made again meanwhile: those who have come and are not served. Of
    /// a stream nobody knows.
    pub(crate) fn most_waiting(&self) -> u64 {
        let Arrivals::Herd { clients, window } = self.arrivals else { return 0 };
        let served = self.capacity().map_or(f64::INFINITY, |capacity| capacity * window.as_secs_f64());
        let left = (clients as f64 - served).max(0.0) as u64;
        left.min(self.server.queue.unwrap_or(u64::MAX))
    }

    /// Clients of the herd and newcomers, or calls expected of a stream.
    pub fn clients(&self) -> f64 {
        self.arrivals.clients() + self.newcomers.map_or(0.0, |newcomers| newcomers.rate * newcomers.until.as_secs_f64())
    }
}
