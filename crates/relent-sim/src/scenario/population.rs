//! Several populations of clients on one server: mobile and batch, or a rollout of a policy to some of them.

use super::{Arrivals, Contender, Network, Problem, Protection, Rate, Service, Writes};
use relent::Policy;
use std::time::Duration;

/// Some of the clients of a service: with a policy of their own and, where they differ in more than that, their own way to
/// the server, patience, writes and times at which they come.
///
/// ```
/// use relent::{Jitter, Policy};
/// use relent_sim::{Contender, Figure, Population, Scenario, Service, World, simulate};
/// use std::time::Duration;
///
/// let new = Policy::exponential(Duration::from_millis(100)).cap(Duration::from_secs(10)).unlimited_attempts();
/// let old = new.jitter(Jitter::None);
/// let mut service = Service::herd(1000, 100.0);
/// service.server.queue = Some(100);
/// let rollout = Contender::new("a fifth", old)
///     .with(Population::share("old", 0.8, old))
///     .with(Population::share("new", 0.2, new));
/// let outcome = simulate(&Scenario::new("rollout", World::Service(service)).contender(rollout)).unwrap();
///
/// let all = &outcome.records[0];
/// assert_eq!(all.populations[1].policy, "a fifth: new");
/// assert_eq!(all.clients, all.populations.iter().map(|population| population.clients).sum());
/// let attempts = |record: &relent_sim::Record| record.get(Figure::AttemptsPerClient).unwrap();
/// assert!(attempts(&all.populations[1]) < attempts(&all.populations[0]));
/// ```
#[derive(Clone, Debug)]
pub struct Population {
    /// The name.
    pub name: String,
    /// Who they are among the clients.
    pub part: Part,
    /// Their policy.
    pub policy: Policy,
    /// The budget, breaker, limit and hedge of their upstream. What is at the server's door is the contender's.
    pub protection: Protection,
    /// The one-way delay of a message, if not that of the service.
    pub network: Option<Network>,
    /// How long one attempt waits for its answer, if not as long as the service says.
    pub timeout: Option<Duration>,
    /// The share of their calls that write, if not that of the service.
    pub writes: Option<Writes>,
    /// The share of them that does not come back once it was refused, if not that of the service.
    pub leaving: Option<f64>,
    /// How many processes they are in, each with an upstream of its own: one for each client of a herd, one for all calls
    /// of a stream, unless told.
    pub processes: Option<u64>,
}

/// Who of the clients a population is.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// This share of the service's clients, 0 to 1, evenly among the others.
    Share(f64),
    /// Clients who come at times of their own, all of them so much later. Those of the service are then all populations
    /// [`together`](Arrivals::together).
    Own(Arrivals, Duration),
}

/// Shares may miss one by this: thirds have no end.
const ROUNDING: f64 = 1e-6;

impl Population {
    /// The most of a service.
    pub(super) const MOST: usize = 64;

    /// A share of the clients, 0 to 1, under a policy of its own.
    pub fn share(name: impl Into<String>, share: f64, policy: Policy) -> Population {
        Population::new(name, Part::Share(share), policy)
    }

    /// Clients with arrivals of their own.
    pub fn own(name: impl Into<String>, arrivals: Arrivals, policy: Policy) -> Population {
        Population::new(name, Part::Own(arrivals, Duration::ZERO), policy)
    }

    fn new(name: impl Into<String>, part: Part, policy: Policy) -> Population {
        Population {
            name: name.into(),
            part,
            policy,
            protection: Protection::default(),
            network: None,
            timeout: None,
            writes: None,
            leaving: None,
            processes: None,
        }
    }

    /// Whether they come at times of their own.
    pub(crate) const fn is_own(&self) -> bool {
        matches!(self.part, Part::Own(..))
    }

    /// The service as these clients meet it.
    pub(crate) fn service(&self, all: &Service) -> Service {
        Service {
            network: self.network.unwrap_or(all.network),
            timeout: self.timeout.or(all.timeout),
            writes: self.writes.or(all.writes),
            leaving: self.leaving.unwrap_or(all.leaving),
            ..all.clone()
        }
    }

    /// Their calls a second when the run ends; none of a herd, whose time is over then.
    pub(crate) fn steady(&self, all: &Service) -> f64 {
        let last = |arrivals: &Arrivals| match arrivals {
            Arrivals::Open { rate, until, .. } => rate.at(until.as_secs_f64() * (1.0 - 1e-9)),
            Arrivals::Herd { .. } => 0.0,
        };
        match &self.part {
            Part::Share(share) => share * last(&all.arrivals),
            Part::Own(arrivals, _) => last(arrivals),
        }
    }

    /// How their figures are called in the outcome of a contender.
    pub(crate) fn name_in(&self, contender: &str) -> String {
        format!("{contender}: {}", self.name)
    }
}

impl Contender {
    /// The same contender with one more population. Where there is any, the populations are all of the clients.
    #[must_use]
    pub fn with(mut self, population: Population) -> Contender {
        self.populations.push(population);
        self
    }

    /// The same contender without one of its populations that come by themselves, and the service whose clients the others
    /// are; `None` where it has no such population, or no other.
    pub(crate) fn without(&self, name: &str, service: &Service) -> Option<(Contender, Service)> {
        let (out, populations): (Vec<Population>, Vec<Population>) =
            self.populations.iter().cloned().partition(|population| population.name == name);
        if out.is_empty() || populations.is_empty() || !populations.iter().chain(&out).all(Population::is_own) {
            return None;
        }
        let arrivals = Arrivals::together(&populations);
        Some((Contender { populations, ..self.clone() }, Service { arrivals, ..service.clone() }))
    }

    /// The same contender, one population of which does as another does.
    pub(crate) fn with_one_as(&self, name: &str, other: &Population) -> Contender {
        let mut contender = self.clone();
        for population in contender.populations.iter_mut().filter(|population| population.name == name) {
            (population.policy, population.protection) = (other.policy, other.protection);
        }
        contender
    }

    /// The work of a call's first attempt on average, over all of its clients.
    pub(crate) fn mean_cost(&self, service: &Service) -> f64 {
        let weight = |population: &Population| match &population.part {
            Part::Share(share) => *share,
            Part::Own(arrivals, _) => arrivals.clients(),
        };
        let all: f64 = self.populations.iter().map(weight).sum();
        let work = |population: &Population| weight(population) * population.service(service).mean_cost();
        if all > 0.0 { self.populations.iter().map(work).sum::<f64>() / all } else { service.mean_cost() }
    }

    /// Whether all of its clients have one policy, are alone with the server and have no machines: what theory knows.
    pub(crate) fn is_plain(&self) -> bool {
        self.populations.is_empty() && self.layers.is_empty() && !self.protection.is_any()
    }

    /// Whether its clients are all alike, but for their policies.
    pub(crate) fn is_alike(&self) -> bool {
        self.populations.iter().all(|population| {
            let Population { network, timeout, writes, leaving, .. } = population;
            !population.is_own() && network.is_none() && timeout.is_none() && writes.is_none() && leaving.is_none()
        })
    }

    /// Whether any of its clients have an upstream.
    pub(crate) fn has_upstream(&self) -> bool {
        match self.populations.is_empty() {
            true => self.protection.has_upstream(),
            false => self.populations.iter().any(|population| population.protection.has_upstream()),
        }
    }

    /// Whether it, or one of its populations, is called so in the outcome.
    pub(super) fn has_record(&self, name: &str) -> bool {
        let own = |rest: &str| self.populations.iter().any(|population| population.name == rest);
        name.strip_prefix(&self.name).is_some_and(|rest| rest.is_empty() || rest.strip_prefix(": ").is_some_and(own))
    }

    /// Its populations as contenders of their own, under the names that they have in the outcome.
    pub fn apart(&self) -> impl Iterator<Item = Contender> {
        self.populations.iter().map(|population| Contender {
            name: population.name_in(&self.name),
            policy: population.policy,
            retry_after: self.retry_after,
            protection: Protection {
                pacer: self.protection.pacer,
                admission: self.protection.admission,
                whole_seconds: self.protection.whole_seconds,
                ..population.protection
            },
            populations: Vec::new(),
            layers: Vec::new(),
        })
    }
}

impl Service {
    /// Populations that make no sense here.
    pub(crate) fn check_populations(&self, contender: &Contender) -> Result<(), Problem> {
        let populations = &contender.populations;
        if populations.is_empty() {
            return Ok(());
        }
        let name = &contender.name;
        let fail = |problem: String, hint: &str| Err(Problem::new("population", problem, hint));
        if populations.len() > Population::MOST {
            let problem = format!("{name:?} has more than {} populations", Population::MOST);
            return fail(problem, "fewer say as much");
        }
        if let Some(twice) =
            (1..populations.len()).find(|i| populations[..*i].iter().any(|p| p.name == populations[*i].name))
        {
            return fail(
                format!("two populations are called {:?}", populations[twice].name),
                "give each a name of its own",
            );
        }
        if self.layers > 1 {
            return fail("populations are simulated without layers".into(), "leave out one of them");
        }
        if self.newcomers.is_some() {
            return fail("populations are simulated without newcomers".into(), "make them a population of their own");
        }
        let own = populations.iter().filter(|population| population.is_own()).count();
        if own > 0 && own < populations.len() {
            return fail(
                "some populations have a share of the clients, others a count or rate of their own".into(),
                "give all of them a share, or all a count or rate",
            );
        }
        for population in populations {
            let service = population.service(self);
            let leaving = (0.0..=1.0).contains(&service.leaving);
            if !leaving {
                return fail(format!("{} is not a share between 0 and 1", service.leaving), "0.1 is 10 %");
            }
            service.check_network_and_writes()?;
            match &population.part {
                Part::Share(share) if !(0.0..=1.0).contains(share) => {
                    return fail(format!("{share} is not a share between 0 and 1"), "0.1 is 10 %");
                }
                Part::Own(arrivals, _) => Service { arrivals: arrivals.clone(), ..service }.check_arrivals()?,
                Part::Share(_) => {}
            }
        }
        if own == 0 {
            let sum: f64 = populations.iter().filter_map(Population::its_share).sum();
            return match (sum - 1.0).abs() <= ROUNDING {
                true => Ok(()),
                false => fail(
                    format!("the shares of the populations of {name:?} add up to {sum}, not to 1"),
                    "leave out the share of one, which is then the rest",
                ),
            };
        }
        let together = Arrivals::together(populations);
        let (all, told) = (together.clients(), self.arrivals.clients());
        let is_same = matches!(together, Arrivals::Open { .. }) == self.is_open();
        match is_same && (all - told).abs() <= 1.0 + ROUNDING * all {
            true => Ok(()),
            false => fail(
                format!("the populations of {name:?} are {all:.0} clients or calls, and the service has {told:.0}"),
                "the arrivals of the service are Arrivals::together of its populations",
            ),
        }
    }
}

impl Population {
    const fn its_share(&self) -> Option<f64> {
        match self.part {
            Part::Share(share) => Some(share),
            Part::Own(..) => None,
        }
    }
}

/// The least time within which a herd comes that joins a stream: a rate has no place for all at once.
const RUSH: Duration = Duration::from_millis(10);

impl Arrivals {
    /// All who come, where populations have arrivals of their own: a herd if all are herds, else a stream in which a herd
    /// is a rush.
    ///
    /// ```
    /// use relent::Policy;
    /// use relent_sim::{Arrivals, Population, Rate};
    /// use std::time::Duration;
    ///
    /// let until = Duration::from_secs(60);
    /// let mobile = Arrivals::Open { rate: Rate::constant(100.0), poisson: true, until };
    /// let batch = Arrivals::Herd { clients: 500, window: Duration::from_secs(1) };
    /// let both = [("mobile", mobile), ("batch", batch)].map(|(name, own)| Population::own(name, own, Policy::default()));
    /// assert_eq!(Arrivals::together(&both).clients(), 6500.0);
    /// ```
    pub fn together(populations: &[Population]) -> Arrivals {
        let own = || {
            populations.iter().filter_map(|population| match &population.part {
                Part::Own(arrivals, at) => Some((arrivals, *at)),
                Part::Share(_) => None,
            })
        };
        let ends = own().filter_map(|(arrivals, _)| match arrivals {
            Arrivals::Open { until, .. } => Some(*until),
            Arrivals::Herd { .. } => None,
        });
        let Some(until) = ends.max() else {
            let window = own().map(|(arrivals, at)| at.saturating_add(arrivals.window())).max();
            let clients = own().map(|(arrivals, _)| arrivals.clients() as u64).fold(0, u64::saturating_add);
            return Arrivals::Herd { clients, window: window.unwrap_or_default() };
        };
        let rates = own().map(|(arrivals, at)| match arrivals {
            Arrivals::Open { rate, until: own, .. } => rate.until(own.as_secs_f64()),
            Arrivals::Herd { clients, window } => {
                let window = (*window).max(RUSH);
                let (from, to) = (at.as_secs_f64(), at.saturating_add(window).as_secs_f64());
                let high = *clients as f64 / window.as_secs_f64();
                Rate::lines(vec![(0.0, 0.0), (from, 0.0), (from, high), (to, high), (to, 0.0)])
            }
        });
        let rate = Rate::sum(&rates.collect::<Vec<_>>(), until.as_secs_f64());
        let poisson = own().any(|(arrivals, _)| matches!(arrivals, Arrivals::Open { poisson: true, .. }));
        Arrivals::Open { rate, poisson, until }
    }

    const fn window(&self) -> Duration {
        match self {
            Arrivals::Herd { window, .. } => *window,
            Arrivals::Open { .. } => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_herds_add_up_at_every_time() {
        let stream = |rate: Rate, until| Arrivals::Open { rate, poisson: true, until: Duration::from_secs(until) };
        let spiked = Rate::constant(10.0).spike(Duration::from_secs(5), Duration::from_secs(2), 3.0);
        let herd = Arrivals::Herd { clients: 100, window: Duration::from_secs(4) };
        let mut all = [
            Population::own("a", stream(spiked, 20), Policy::default()),
            Population::own("b", stream(Rate::lines(vec![(0.0, 0.0), (10.0, 50.0)]), 10), Policy::default()),
            Population::own("c", herd, Policy::default()),
        ];
        all[2].part = match all[2].part.clone() {
            Part::Own(arrivals, _) => Part::Own(arrivals, Duration::from_secs(12)),
            part => part,
        };
        let Arrivals::Open { rate, until, .. } = Arrivals::together(&all) else { panic!("it has streams") };
        assert_eq!(until, Duration::from_secs(20));
        for (time, expected) in [
            (0.0, 10.0),
            (4.0, 30.0),
            (5.0, 55.0),
            (6.0, 60.0),
            (7.0, 45.0),
            (9.0, 55.0),
            (11.0, 10.0),
            (13.0, 35.0),
            (17.0, 10.0),
        ] {
            assert!((rate.at(time) - expected).abs() < 1e-9, "{time}: {} is not {expected}", rate.at(time));
        }
        // 20 s of 10, and 2 s of 20 more; a triangle of 50 over 10 s; the herd.
        assert!((rate.total(20.0) - (240.0 + 250.0 + 100.0)).abs() < 1e-6, "{}", rate.total(20.0));
        assert_eq!(rate.rush_ends(20.0, None), Some(7.0), "the spike is still one");
    }

    #[test]
    fn herds_together_are_a_herd() {
        let herd = |clients, window| Arrivals::Herd { clients, window: Duration::from_secs(window) };
        let all =
            [("a", herd(10, 3)), ("b", herd(5, 1))].map(|(name, own)| Population::own(name, own, Policy::default()));
        assert_eq!(Arrivals::together(&all), herd(15, 3));
    }
}
