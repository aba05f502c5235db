//! What a storm is: who storms whom, for how long, and the scenario that is simulated beside it.

use super::{
    args::{Args, MOST_POLICIES},
    far_side::FarSide,
};
use crate::{
    policy_args::PolicyArgs,
    protection_args::without_and_with,
    simulate::{Names, numbers::grouped, policies},
    talk::Fault,
};
use relent::config::CurveName;
use relent_sim::{Arrivals, Contender, Engine, Network, Scenario, Service, World};
use std::time::Duration;

/// A storm, planned.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) clients: u32,
    /// What the server completes in a second, and how many it holds; nothing is known of a server that is somebody else's,
    /// unless it was said.
    pub(super) capacity: Option<f64>,
    pub(super) queue: Option<u32>,
    pub(super) target: Option<FarSide>,
    pub(super) contenders: Vec<Contender>,
    pub(super) processes: u64,
    /// How long each is watched.
    pub(super) limit: Duration,
    pub(super) seed: u64,
}

const CAPACITY: f64 = 200.0;
const QUEUE: u32 = 50;

/// What goes without saying about a policy: a herd comes back until it is served.
const UNSAID: policies::Unsaid = policies::Unsaid { curve: CurveName::Exponential, max_attempts: None };

impl Plan {
    /// What the flags say.
    ///
    /// # Errors
    ///
    /// A policy or a protection makes no sense, or the target is not on loopback.
    pub(super) fn new(args: &Args) -> Result<Plan, Fault> {
        let is_target = args.target.is_some();
        if is_target && args.protection.speaks_of_server() {
            return Err(Fault::new(
                "--pacer and --admission protect the storm's own server, and --target names another",
            )
            .hint("leave --target out, or the two; --budget, --breaker and --limiter are the clients' own"));
        }
        let capacity = args.capacity.or((!is_target).then_some(CAPACITY));
        let queue = args.queue.or((!is_target).then_some(QUEUE));
        let ideal = capacity.map_or(5.0, |capacity| f64::from(args.clients) / capacity);
        let usual = Duration::try_from_secs_f64(2.0 * ideal).unwrap_or(Duration::MAX);
        let limit = args.limit.unwrap_or(usual.clamp(Duration::from_secs(5), Duration::from_secs(300)));
        let target = args.target.as_deref().map(|url| FarSide::of_url(url, limit)).transpose()?;
        let contenders = contenders(args, capacity, is_target)?;
        if contenders.len() > MOST_POLICIES {
            return Err(Fault::new(format!("{} policies are too many for one storm", contenders.len()))
                .hint(format!("up to {MOST_POLICIES} storm side by side; with protection each is there twice")));
        }
        Ok(Plan {
            clients: args.clients,
            capacity,
            queue,
            target,
            contenders,
            processes: args.protection.processes.unwrap_or(u64::from(args.clients)).min(u64::from(args.clients)),
            limit,
            seed: args.policies.policy.seed.unwrap_or(1),
        })
    }

    /// The scenario of the storm: the herd takes as long to arrive, and a message and its answer are as long under way, as
    /// was measured.
    pub(super) fn scenario(&self, round_trip: Duration, window: Duration) -> Scenario {
        let mut service = Service::herd(u64::from(self.clients), self.capacity.unwrap_or(1.0));
        service.arrivals = Arrivals::Herd { clients: u64::from(self.clients), window };
        service.server.capacity = self.capacity;
        service.server.queue = self.queue.map(u64::from);
        service.network = Network::round_trip(round_trip);
        service.processes = Some(self.processes);
        let mut scenario = Scenario::new("storm", World::Service(service)).engine(Engine::Exact);
        scenario.title = self.title();
        scenario.contenders.clone_from(&self.contenders);
        scenario.limit = self.limit;
        scenario.first_seed = self.seed;
        scenario
    }

    fn title(&self) -> String {
        let clients = match self.clients {
            1 => "1 client loses its connection".to_owned(),
            clients => format!("{} clients lose their connection", grouped(f64::from(clients))),
        };
        match (self.capacity, self.queue) {
            (Some(capacity), Some(queue)) => {
                format!("{clients}; the server takes {} a second and holds {queue}", grouped(capacity))
            }
            (Some(capacity), None) => format!("{clients}; the server takes {} a second", grouped(capacity)),
            _ => clients,
        }
    }
}

fn contenders(args: &Args, capacity: Option<f64>, is_target: bool) -> Result<Vec<Contender>, Fault> {
    let policy = &args.policies.policy;
    let given = match args.policies.compat.as_slice() {
        [] => policies::given(policy, UNSAID)?.into_iter().collect(),
        names => names
            .iter()
            .map(|name| policies::given(&PolicyArgs { compat: Some(name.clone()), ..policy.clone() }, UNSAID))
            .filter_map(Result::transpose)
            .collect::<Result<Vec<_>, _>>()?,
    };
    let compared = policies::compared(&args.compare)?;
    // These make real attempts, of which a file alone cannot ask for too many.
    let of_file = given.iter().filter(|_| policy.policy.is_some());
    of_file.map(|contender| &contender.policy).try_for_each(|of_file| policy.check_storm(of_file))?;
    for (spec, contender) in args.compare.iter().zip(&compared).filter(|(spec, _)| policies::is_of_file(spec)) {
        PolicyArgs::of_file(spec).check_storm(&contender.policy)?;
    }
    let mut named: Vec<Contender> = given.into_iter().chain(compared).collect();
    let mut names = Names::default();
    named.iter_mut().for_each(|contender| contender.name = names.fit(&contender.name));
    let protection = args.protection.protection(policy, capacity.unwrap_or(CAPACITY))?;
    if protection.hedge.is_some() {
        return Err(Fault::new(
            "the upstream of the policy has a hedge, and clients that reconnect do it once at a time",
        )
        .hint("leave the hedge out of the upstream that the file names"));
    }
    let usual = || {
        let known = policies::usual();
        known.into_iter().filter(|contender| ["none", "full"].contains(&contender.name.as_str())).collect::<Vec<_>>()
    };
    Ok(match (named.is_empty(), protection.is_any(), is_target) {
        (false, ..) => without_and_with(named, &protection),
        (true, true, _) => without_and_with(usual().split_off(1), &protection),
        (true, false, true) => usual(),
        (true, false, false) => {
            let herd = Service::herd(u64::from(args.clients), capacity.unwrap_or(CAPACITY));
            usual().into_iter().chain(herd.pacer().map(policies::paced)).collect()
        }
    })
}
