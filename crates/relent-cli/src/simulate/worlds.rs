//! The flags of each world, and the scenario they make.

use super::{
    numbers::{self, Outage, grouped},
    policies::{self, Unsaid},
};
use crate::{
    policy_args::PolicyArgs,
    protection_args::{ProtectionArgs, without_and_with},
    talk::Fault,
};
use relent::{Policy, config::CurveName};
use relent_sim::{
    Access, Arrivals, Batch, Contender, Ethernet, Layers, Network, Newcomers, Rate, RetryAfter, Saturated, Scenario,
    Server, Service, Trouble, TroubleKind, Windows, World, presets,
};
use std::time::Duration;

/// What is said about a server.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// The most requests inside, waiting or being served; more are refused at once. Or unlimited.
    #[arg(long, value_name = "NUMBER", value_parser = numbers::limit, allow_negative_numbers = true)]
    pub queue: Option<numbers::Limit>,

    /// Among how many workers the capacity is divided.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub workers: u32,

    /// Serve the newest request first, or the oldest.
    #[arg(long, value_name = "ORDER", value_parser = ["fifo", "lifo"], default_value = "fifo")]
    pub order: String,

    /// Drop requests whose client has stopped waiting.
    #[arg(long)]
    pub drop_expired: bool,

    /// What a refusal says about coming back: silent, spread, exact, or a duration.
    #[arg(long, value_name = "WHEN", value_parser = RetryAfter::parse, default_value = "silent")]
    pub retry_after: RetryAfter,

    /// A time of trouble: FOR, or AT+FOR, such as 60s+10s.
    #[arg(long, value_name = "[AT+]FOR", value_parser = numbers::outage, allow_hyphen_values = true)]
    pub outage: Vec<Outage>,

    /// What happens in it: stall (requests queue), refuse (connections fail at once), or lose (nobody answers).
    #[arg(long, value_name = "KIND", value_parser = ["stall", "refuse", "lose"])]
    pub outage_kind: Option<String>,

    /// How long the server needs after it to be as fast as before.
    #[arg(long, value_name = "DURATION", value_parser = numbers::duration, allow_hyphen_values = true)]
    pub ramp: Option<Duration>,
}

impl ServerArgs {
    fn server(&self, capacity: f64, exponential: bool, queue: Option<u64>) -> Server {
        Server {
            capacity: Some(capacity),
            workers: self.workers,
            exponential,
            queue: self.queue.map_or(queue, |limit| limit.0),
            lifo: self.order == "lifo",
            drop_expired: self.drop_expired,
            retry_after: self.retry_after,
            ..Server::default()
        }
    }

    fn troubles(&self, usual: TroubleKind) -> Vec<Trouble> {
        let kind = match self.outage_kind.as_deref() {
            Some("stall") => TroubleKind::Stall,
            Some("lose") => TroubleKind::Losing(1.0),
            Some(_) => TroubleKind::Refuse,
            None => usual,
        };
        self.outage
            .iter()
            .map(|outage| Trouble::new(outage.at, outage.lasts, kind).ramp(self.ramp.unwrap_or_default()))
            .collect()
    }
}

/// The flags of `relent simulate herd`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct Herd {
    /// How many clients lose their connection.
    #[arg(long, value_name = "NUMBER", default_value = "100000", value_parser = numbers::count, allow_negative_numbers = true)]
    pub clients: u64,

    /// What the server completes in a second.
    #[arg(long, value_name = "PER_SECOND", default_value = "5000", value_parser = numbers::rate, allow_negative_numbers = true)]
    pub capacity: f64,

    /// How long a message and its answer travel.
    #[arg(long, value_name = "DURATION", default_value = "10ms", value_parser = numbers::duration, allow_hyphen_values = true)]
    pub rtt: Duration,

    /// Within what time the connections are lost.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = numbers::duration, allow_hyphen_values = true)]
    pub window: Duration,

    /// How long a client waits for an answer to one attempt [default: for ever].
    #[arg(long, value_name = "DURATION", value_parser = numbers::duration, allow_hyphen_values = true)]
    pub timeout: Option<Duration>,

    /// The share of clients that do not come back once they were refused, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, allow_negative_numbers = true)]
    pub leaving: f64,

    /// New clients who call while the herd comes back: so many a second, for so long, such as 2500+60s.
    #[arg(long, value_name = "PER_SECOND+FOR", value_parser = numbers::newcomers, allow_negative_numbers = true)]
    pub newcomers: Option<Newcomers>,

    /// How service times are distributed.
    #[arg(long, value_name = "SHAPE", default_value = "deterministic", value_parser = ["deterministic", "exponential"])]
    pub service: String,

    /// The far side. Its queue holds a second of work unless told otherwise.
    #[command(flatten)]
    pub server: ServerArgs,

    /// One more policy, beside that of the flags: FILE#NAME, a profile, or keys and values such as
    /// base=1s,jitter=none,max_attempts=4. May be given several times.
    #[arg(long, value_name = "POLICY")]
    pub compare: Vec<String>,

    /// The same clients, of which a share has another policy than that of the flags already, such as 20%=celery; keys and
    /// values change it: 20%=jitter=full. May be given several times.
    #[arg(long, value_name = "SHARE=POLICY")]
    pub rollout: Vec<String>,

    /// What protects the server.
    #[command(flatten)]
    pub(crate) protection: ProtectionArgs,

    /// The policy; without one, the usual ones are compared. Attempts are not limited unless told.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Clients that the exact engine follows, one by one, in a second or two.
const MOST_FOLLOWED: u64 = 2_000_000;

impl Herd {
    /// `counts` says that an engine was asked for which does not follow clients one by one.
    pub(super) fn scenario(&self, counts: bool) -> Result<Scenario, Fault> {
        let second = self.capacity.clamp(1.0, 1e15) as u64;
        let service = Service {
            arrivals: Arrivals::Herd { clients: self.clients, window: self.window },
            network: Network::round_trip(self.rtt),
            timeout: self.timeout,
            server: self.server.server(self.capacity, self.service == "exponential", Some(second)),
            troubles: self.server.troubles(TroubleKind::Refuse),
            leaving: self.leaving,
            newcomers: self.newcomers,
            processes: self.protection.processes,
            ..Service::herd(self.clients, self.capacity)
        };
        let pacer = service.pacer();
        let mut scenario = Scenario::new("herd", World::Service(service));
        scenario.title = format!(
            "{}; the server takes {} a second",
            match self.clients {
                1 => "1 client loses its connection".to_owned(),
                clients => format!("{} clients lose their connection", grouped(clients as f64)),
            },
            grouped(self.capacity)
        );
        let unsaid = Unsaid { curve: CurveName::Exponential, max_attempts: None };
        let given = policies::given(&self.policy, unsaid)?;
        let rollouts = policies::rolled_out(&self.rollout, given.as_ref())?;
        let protection = self.protection.protection(&self.policy, self.capacity)?;
        let named = match (given, policies::compared(&self.compare)?) {
            // The best that a policy alone can do, and what else can be done.
            (None, others) if others.is_empty() && protection.is_any() => {
                policies::usual().into_iter().filter(|contender| contender.name == "full").collect()
            }
            (None, others) if others.is_empty() => {
                // Millions are counted, not followed, and no counting knows who has which turn.
                let follows = self.clients <= MOST_FOLLOWED && !counts;
                let paced = pacer.filter(|_| follows).map(policies::paced);
                policies::usual().into_iter().chain(paced).collect()
            }
            (given, others) => given.into_iter().chain(rollouts).chain(others).collect(),
        };
        scenario.contenders = without_and_with(named, &protection);
        Ok(seeded(scenario, &self.policy))
    }
}

/// The flags of `relent simulate open`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct Open {
    /// Calls a second.
    #[arg(long, value_name = "PER_SECOND", default_value = "450", value_parser = numbers::rate, allow_negative_numbers = true)]
    pub rate: f64,

    /// What the server completes in a second.
    #[arg(long, value_name = "PER_SECOND", default_value = "1000", value_parser = numbers::rate, allow_negative_numbers = true)]
    pub capacity: f64,

    /// How long a client waits for an answer to one attempt.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = numbers::duration, allow_hyphen_values = true)]
    pub timeout: Duration,

    /// How long calls come [default: 330s after the end of the outage or spike, 120s without].
    #[arg(long = "for", value_name = "DURATION", value_parser = numbers::duration, allow_hyphen_values = true)]
    pub lasts: Option<Duration>,

    /// How long a message and its answer travel.
    #[arg(long, value_name = "DURATION", default_value = "10ms", value_parser = numbers::duration, allow_hyphen_values = true)]
    pub rtt: Duration,

    /// A time in which calls come at another rate, such as 120s+5s=30.
    #[arg(long, value_name = "AT+FOR=PER_SECOND", value_parser = numbers::spike, allow_hyphen_values = true)]
    pub spike: Vec<numbers::Spike>,

    /// Whether calls come at random or evenly.
    #[arg(long, value_name = "SHAPE", default_value = "poisson", value_parser = ["poisson", "constant"])]
    pub arrivals: String,

    /// How service times are distributed.
    #[arg(long, value_name = "SHAPE", default_value = "exponential", value_parser = ["deterministic", "exponential"])]
    pub service: String,

    /// The far side.
    #[command(flatten)]
    pub server: ServerArgs,

    /// One more policy, beside that of the flags: FILE#NAME, a profile, or keys and values such as
    /// base=1s,jitter=none,max_attempts=4. May be given several times.
    #[arg(long, value_name = "POLICY")]
    pub compare: Vec<String>,

    /// The same clients, of which a share has another policy than that of the flags already, such as 20%=celery; keys and
    /// values change it: 20%=jitter=full. May be given several times.
    #[arg(long, value_name = "SHARE=POLICY")]
    pub rollout: Vec<String>,

    /// What protects the server.
    #[command(flatten)]
    pub(crate) protection: ProtectionArgs,

    /// The policy. Retries are made at once unless told otherwise, up to 4 attempts.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

impl Open {
    pub(super) fn scenario(&self) -> Result<Scenario, Fault> {
        let troubles = self.server.troubles(TroubleKind::Stall);
        let troubled = troubles.iter().map(|trouble| trouble.at.saturating_add(trouble.lasts));
        let spiked = self.spike.iter().map(|spike| spike.time.at.saturating_add(spike.time.lasts));
        let ends = troubled.chain(spiked).max();
        let usual = ends.map_or(Duration::from_secs(120), |end| end.saturating_add(Duration::from_secs(330)));
        let until = self.lasts.unwrap_or(usual);
        let spiked =
            |rate: Rate, spike: &numbers::Spike| rate.spike(spike.time.at, spike.time.lasts, spike.rate / self.rate);
        let rate = self.spike.iter().fold(Rate::constant(self.rate), spiked);
        let service = Service {
            arrivals: Arrivals::Open { rate, poisson: self.arrivals == "poisson", until },
            network: Network::round_trip(self.rtt),
            timeout: Some(self.timeout),
            server: self.server.server(self.capacity, self.service == "exponential", None),
            troubles,
            processes: self.protection.processes,
            ..Service::herd(1, self.capacity)
        };
        let mut scenario = Scenario::new("open", World::Service(service));
        scenario.title =
            format!("{} calls a second; the server takes {} a second", grouped(self.rate), grouped(self.capacity));
        let given = policies::at_once_unless_told(&self.policy)?;
        let rollouts = policies::rolled_out(&self.rollout, Some(&given))?;
        let mut named = vec![given];
        named.extend(rollouts);
        named.extend(policies::compared(&self.compare)?);
        scenario.contenders = without_and_with(named, &self.protection.protection(&self.policy, self.capacity)?);
        Ok(seeded(scenario, &self.policy))
    }
}

/// The flags of `relent simulate aws`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct Aws {
    /// How many writers.
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = numbers::count, allow_negative_numbers = true)]
    pub clients: u64,

    /// A policy instead of the post's five.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

impl Aws {
    pub(super) fn scenario(&self) -> Result<Scenario, Fault> {
        let mut scenario = presets::aws(self.clients).seeds(100);
        let unsaid = Unsaid { curve: CurveName::Exponential, max_attempts: None };
        if let Some(contender) = policies::given(&self.policy, unsaid)? {
            scenario.contenders = vec![contender];
        }
        Ok(seeded(scenario, &self.policy))
    }
}

/// The flags of `relent simulate layers`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct LayersArgs {
    /// How many layers retry.
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    pub depth: u32,

    /// The probability that an attempt at the bottom fails, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, allow_negative_numbers = true)]
    pub failure: f64,

    /// How many calls come in at the top.
    #[arg(long, visible_alias = "clients", value_name = "NUMBER", default_value = "100000", value_parser = numbers::count, allow_negative_numbers = true)]
    pub calls: u64,

    /// A layer that gives up says "overloaded, do not retry" to the one above.
    #[arg(long)]
    pub overloaded: bool,

    /// The policy of each layer. Retries are made at once unless told otherwise, up to 4 attempts.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

impl LayersArgs {
    pub(super) fn scenario(&self) -> Result<Scenario, Fault> {
        let layers =
            Layers { calls: self.calls, depth: self.depth, failure: self.failure, say_overloaded: self.overloaded };
        let mut scenario = Scenario::new("layers", World::Layers(layers));
        scenario.title = format!("{} layers that each retry, above a failure of {}", self.depth, self.failure);
        scenario.contenders = vec![policies::at_once_unless_told(&self.policy)?];
        Ok(seeded(scenario, &self.policy))
    }
}

/// The flags of `relent simulate ethernet`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct EthernetArgs {
    /// How many stations.
    #[arg(long, value_name = "NUMBER", default_value = "2", value_parser = numbers::count, allow_negative_numbers = true)]
    pub stations: u64,

    /// How many slots a frame occupies.
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = numbers::count, allow_negative_numbers = true)]
    pub frame_slots: u64,

    /// The length of a slot.
    #[arg(long, value_name = "DURATION", default_value = "51.2us", value_parser = numbers::duration, allow_hyphen_values = true)]
    pub slot: Duration,

    /// The first station always has another frame.
    #[arg(long)]
    pub capture: bool,

    /// A policy instead of truncated binary exponential backoff.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

impl EthernetArgs {
    pub(super) fn scenario(&self) -> Result<Scenario, Fault> {
        let ethernet =
            Ethernet { stations: self.stations, frame_slots: self.frame_slots, slot: self.slot, capture: self.capture };
        let mut scenario = Scenario::new("ethernet", World::Ethernet(ethernet));
        scenario.title = format!("{} stations with a frame each", self.stations);
        scenario.seeds = (1_000_000 / self.stations.max(1)).clamp(1, 10_000) as u32;
        if self.slot.is_zero() {
            return Err(Fault::new("--slot: the slot is zero").hint("10 Mb/s has 51.2us"));
        }
        let unsaid = Unsaid { curve: CurveName::Exponential, max_attempts: Some(16) };
        let beb = || Contender::new("802.3", Policy::slots(self.slot));
        scenario.contenders = vec![policies::given(&self.policy, unsaid)?.unwrap_or_else(beb)];
        Ok(seeded(scenario, &self.policy))
    }
}

/// The flags of `relent simulate batch`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct BatchArgs {
    /// How many packets.
    #[arg(long, visible_alias = "clients", value_name = "NUMBER", default_value = "256", value_parser = numbers::count, allow_negative_numbers = true)]
    pub n: u64,

    /// How windows grow: beb, exp=1.5, quad, lb, llb, stb, fixed; several with commas [default: all].
    #[arg(long, value_name = "STRATEGY", value_delimiter = ',', value_parser = numbers::windows)]
    pub window: Vec<Windows>,

    /// Make the luck the same in every run.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

impl BatchArgs {
    pub(super) fn scenario(&self) -> Scenario {
        let windows = if self.window.is_empty() { Windows::ALL.to_vec() } else { self.window.clone() };
        let mut scenario = Scenario::new("batch", World::Batch(Batch { packets: self.n, windows }));
        scenario.title = format!("{} packets that begin together on a slotted channel", self.n);
        scenario.seeds = (400_000 / self.n.max(1)).clamp(1, 10_000) as u32;
        scenario.first_seed = self.seed;
        scenario
    }
}

/// The flags of `relent simulate channel`.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct Channel {
    /// How many stations.
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = numbers::count, allow_negative_numbers = true)]
    pub stations: u64,

    /// Slotted ALOHA with this probability of sending in a slot, instead of DCF.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub aloha: Option<f64>,

    /// DCF: the first window.
    #[arg(long, value_name = "SLOTS", default_value_t = 32)]
    pub window: u64,

    /// DCF: how often the window doubles.
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    pub stages: u32,

    /// How many slots to simulate.
    #[arg(long, value_name = "NUMBER", default_value = "1000000", value_parser = numbers::count, allow_negative_numbers = true)]
    pub slots: u64,

    /// Make the luck the same in every run.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

impl Channel {
    pub(super) fn scenario(&self) -> Scenario {
        let access = match self.aloha {
            Some(p) => Access::Persistent(p),
            None => Access::Dcf { window: self.window, stages: self.stages },
        };
        let world = Saturated { stations: self.stations, access, slots: self.slots };
        let mut scenario = Scenario::new("channel", World::Saturated(world));
        scenario.title = format!("{} stations that always have something to send", self.stations);
        scenario.first_seed = self.seed;
        scenario
    }
}

/// Simulations are the same in every run unless told: their seed is 1.
fn seeded(mut scenario: Scenario, policy: &PolicyArgs) -> Scenario {
    scenario.first_seed = policy.seed.unwrap_or(1);
    scenario
}
