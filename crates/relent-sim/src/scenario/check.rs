//! Impossible scenarios, and what is wrong with them.

use super::table::MOST_OF_A_TEXT;
use super::{Access, Arrivals, Network, Rate, Windows};
use super::{Contender, Picture, Problem, RetryAfter, Scenario, Service, TroubleKind, World};
use relent::{Curve, Jitter, Policy, Settings, duration::Human};
use std::{collections::BTreeSet, time::Duration};

/// The most clients whose names fit.
const MOST_CLIENTS: f64 = u32::MAX as f64;
/// The most clients of all: those of the fluid engine.
const MOST: u64 = 1 << 50;

/// `Err` with the key, the problem and the hint unless it holds.
fn must(holds: bool, key: &str, problem: impl Into<String>, hint: &str) -> Result<(), Problem> {
    if holds { Ok(()) } else { Err(Problem::new(key, problem, hint)) }
}

impl Scenario {
    /// Whether the scenario makes sense.
    ///
    /// # Errors
    ///
    /// [`Problem`] names what does not.
    pub fn check(&self) -> Result<(), Problem> {
        must(self.seeds > 0, "seeds", "there are no runs", "use 1 or more")?;
        must(self.seeds <= 1_000_000, "seeds", "there are more than a million runs", "fewer say as much")?;
        must(!self.limit.is_zero(), "limit", "the limit of time is zero", "leave it out for a day")?;
        for picture in Picture::ALL.into_iter().filter(|picture| self.pictures.get(*picture) == Some(true)) {
            let key = format!("pictures.{}", picture.name());
            self.fits(picture).map_err(|reason| Problem::new(key, reason, "leave it out"))?;
        }
        let own_rules = matches!(self.world, World::Batch(_) | World::Saturated(_));
        must(own_rules || !self.contenders.is_empty(), "policy", "there is no policy", "add a [policy.NAME]")?;
        self.check_names()?;
        must(
            matches!(self.world, World::Service(_)) || !self.is_of_many_policies(),
            "population",
            "populations and layers are clients of a server, and there is none",
            "leave them out",
        )?;
        match &self.world {
            World::Service(service) => {
                service.check()?;
                service.check_times(self.limit)?;
                self.contenders.iter().try_for_each(|contender| service.check_contender(contender))?;
                self.check_drain(service)
            }
            World::OptimisticWriters(writers) => {
                must(writers.clients > 0, "clients.count", "there are no clients", "use 1 or more")?;
                must(
                    (writers.clients as f64) < MOST_CLIENTS,
                    "clients.count",
                    "there are too many clients",
                    "use fewer",
                )?;
                check_network(&writers.network)
            }
            World::Layers(layers) => {
                must(layers.calls > 0, "clients.count", "there are no calls", "use 1 or more")?;
                must((layers.calls as f64) < MOST_CLIENTS, "clients.count", "there are too many calls", "use fewer")?;
                must((1..=16).contains(&layers.depth), "layers.depth", "the depth is not between 1 and 16", "use 3")?;
                check_share("server.failure", layers.failure)
            }
            World::Batch(batch) => {
                must(batch.packets > 0, "batch.n", "there are no packets", "use 1 or more")?;
                must(batch.packets <= 10_000_000, "batch.n", "there are more than ten million packets", "use fewer")?;
                must(!batch.windows.is_empty(), "batch.window", "there is no window strategy", "use \"beb\"")?;
                let growing = |windows: &Windows| match windows {
                    Windows::Exponential(factor) => *factor >= Windows::LEAST_FACTOR,
                    _ => true,
                };
                must(batch.windows.iter().all(growing), "batch.window", "the factor is less than 1.01", "use exp=1.5")?;
                let twice = (1..batch.windows.len()).find(|i| batch.windows[..*i].contains(&batch.windows[*i]));
                let problem = || format!("{} is there twice", batch.windows[twice.unwrap_or(0)].name());
                must(twice.is_none(), "batch.window", problem(), "leave one of them out")
            }
            World::Ethernet(ethernet) => {
                let least = 1 + u64::from(ethernet.capture);
                must(ethernet.stations >= least, "ethernet.stations", "there are too few stations", "use 2 or more")?;
                must(
                    ethernet.stations <= 100_000,
                    "ethernet.stations",
                    "there are more than a hundred thousand stations",
                    "802.3 has at most 1024",
                )?;
                must(
                    (1..=1 << 20).contains(&ethernet.frame_slots),
                    "ethernet.frame_slots",
                    "a frame does not occupy between 1 and 2^20 slots",
                    "a frame of 64 bytes occupies 1",
                )?;
                must(!ethernet.slot.is_zero(), "ethernet.slot", "the slot is zero", "10 Mb/s has 51.2us")?;
                within(ethernet.slot, self.limit, "ethernet.slot", "the slot")?;
                self.contenders.iter().try_for_each(check_parting)
            }
            World::Saturated(saturated) => {
                must(saturated.stations > 0, "channel.stations", "there are no stations", "use 1 or more")?;
                must(
                    saturated.stations <= 1_000_000,
                    "channel.stations",
                    "there are more than a million stations",
                    "use fewer",
                )?;
                must(saturated.slots > 0, "channel.slots", "there are no slots", "use 1000000")?;
                must(
                    saturated.slots <= 10_000_000_000,
                    "channel.slots",
                    "there are more than ten billion slots",
                    "a million gives three digits",
                )?;
                match saturated.access {
                    Access::Persistent(p) => must(
                        p > 0.0 && p <= 1.0,
                        "channel.p",
                        "the probability is not above 0 and at most 1",
                        "use 1/stations",
                    ),
                    Access::Dcf { window, stages } => {
                        must(
                            (1..=1 << 20).contains(&window),
                            "channel.window",
                            "the window is not between 1 and 2^20",
                            "use 32",
                        )?;
                        must(stages <= 20, "channel.stages", "there are more than 20 stages", "use 5")
                    }
                }
            }
        }
    }
}

/// `Err` unless a time is over before the run is.
fn within(time: Duration, limit: Duration, key: &str, what: &str) -> Result<(), Problem> {
    let problem = || format!("{what} is {}, and no run goes on longer than {}", Human(time), Human(limit));
    must(time < limit, key, problem(), "shorten it, or raise the limit")
}

impl Scenario {
    /// Whether a run has several policies at once: of populations, or of layers.
    pub(crate) fn is_of_many_policies(&self) -> bool {
        self.contenders.iter().any(|contender| !contender.populations.is_empty() || !contender.layers.is_empty())
    }

    fn check_names(&self) -> Result<(), Problem> {
        let has_long = self.contenders.iter().any(|contender| contender.name.len() > MOST_OF_A_TEXT);
        must(!has_long, "policy", "a policy has a name of more than 1000 bytes", "say it in fewer words")?;
        let mut names = BTreeSet::new();
        let twice = self.contenders.iter().find(|contender| !names.insert(&contender.name));
        let problem = || format!("two policies run as {:?}", twice.map_or("", |contender| &contender.name));
        must(twice.is_none(), "run", problem(), "give each a name = \"...\" of its own")
    }

    /// Clients that never give up all have to be served.
    fn check_drain(&self, service: &Service) -> Result<(), Problem> {
        let Arrivals::Herd { clients, .. } = service.arrivals else { return Ok(()) };
        let Some(capacity) = service.capacity() else { return Ok(()) };
        let never_ends = |policy: &Policy| {
            let settings = policy.settings();
            settings.max_attempts.is_none() && settings.max_elapsed.is_none() && settings.timeout.is_none()
        };
        let endless = |contender: &Contender| match contender.populations.is_empty() {
            true => never_ends(&contender.policy),
            false => contender.populations.iter().any(|population| never_ends(&population.policy)),
        };
        let best = clients as f64 / capacity;
        let in_time = best <= self.limit.as_secs_f64();
        let problem = || {
            let best = Human(Duration::try_from_secs_f64(best.round()).unwrap_or(Duration::MAX));
            format!("it takes {best} to serve {clients} clients, and no run goes on longer than {}", Human(self.limit))
        };
        let some = service.refuses() || !self.contenders.iter().any(endless);
        must(some || in_time, "clients.count", problem(), "raise the capacity or the limit, or use fewer clients")
    }
}

impl Service {
    /// Whether a client can be turned away for good, whatever its policy.
    fn refuses(&self) -> bool {
        self.server.refuse_for_good || self.leaving > 0.0 || self.writes.is_some_and(|writes| !writes.retried)
    }

    fn check_times(&self, limit: Duration) -> Result<(), Problem> {
        match &self.arrivals {
            Arrivals::Herd { window, .. } => within(*window, limit, "clients.window", "the window")?,
            Arrivals::Open { until, .. } => {
                must(
                    *until <= limit,
                    "clients.for",
                    "clients call for longer than the run may go on",
                    "raise the limit",
                )?;
            }
        }
        within(self.server.latency, limit, "server.latency", "the latency")?;
        let service = self.server.capacity.map_or(0.0, |capacity| f64::from(self.server.workers) / capacity);
        let service = Duration::try_from_secs_f64(service).unwrap_or(Duration::MAX);
        within(service, limit, "server.capacity", "the time that one request takes")?;
        for trouble in &self.troubles {
            must(!trouble.lasts.is_zero(), "trouble", "the trouble lasts no time", "for = \"10s\"")?;
            within(
                trouble.at.saturating_add(trouble.lasts).saturating_add(trouble.ramp),
                limit,
                "trouble",
                "the end of the trouble",
            )?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Problem> {
        self.check_arrivals()?;
        self.check_network_and_writes()?;
        let server = &self.server;
        let above_zero = |rate: f64| rate > 0.0 && rate.is_finite() && rate <= 1e12;
        let hint = "use requests a second, such as 5000";
        must(server.capacity.is_none_or(above_zero), "server.capacity", "the server has no capacity", hint)?;
        must(
            (1..=1_000_000).contains(&server.workers),
            "server.workers",
            "there are no workers, or over a million",
            "use 1",
        )?;
        must(
            server.queue != Some(0),
            "server.queue",
            "the server has no room for any request",
            "leave it out for no limit",
        )?;
        if let Some(limit) = server.rate_limit {
            must(above_zero(limit.rate), "server.rate_limit", "the rate limit lets nothing through", hint)?;
            must(
                limit.burst > 0,
                "server.rate_limit",
                "the rate limit's burst is zero",
                "a burst of 1 lets one in at a time",
            )?;
        }
        check_share("server.failure", server.failure)?;
        check_share("clients.leaving", self.leaving)?;
        if let Some(newcomers) = self.newcomers {
            let key = "clients.newcomers";
            must(above_zero(newcomers.rate), key, "no newcomers come", "rate = 2500, in clients a second")?;
            must(!newcomers.until.is_zero(), key, "newcomers come for no time", "for = \"60s\"")?;
            must(!self.is_open(), key, "a stream of calls has no newcomers", "raise its rate instead")?;
            must(self.layers <= 1, key, "newcomers are simulated without layers", "leave out the layers")?;
            must(
                newcomers.rate * newcomers.until.as_secs_f64() <= 5e8,
                key,
                "there are more than 500000000 newcomers",
                "lower their rate or time",
            )?;
        }
        for trouble in &self.troubles {
            if let TroubleKind::Slow(share) | TroubleKind::Failing(share) | TroubleKind::Losing(share) = trouble.kind {
                check_share("trouble", share)?;
            }
        }
        must(
            (1..=8).contains(&self.layers),
            "layers.depth",
            "the layers are not between 1 and 8",
            "1 is the client alone",
        )
    }

    /// What may differ between populations.
    pub(super) fn check_network_and_writes(&self) -> Result<(), Problem> {
        check_network(&self.network)?;
        if let Some(writes) = self.writes {
            check_share("clients.writes.share", writes.share)?;
            must(
                writes.cost > 0.0 && writes.cost <= 1e9,
                "clients.writes.cost",
                "the cost of a write is not above 0",
                "use 1",
            )?;
        }
        must(
            !self.timeout.is_some_and(|timeout| timeout.is_zero()),
            "clients.timeout",
            "the timeout is zero",
            "leave it out for none",
        )
    }

    /// Machines whose settings make no sense, or that meet a world which does not know them.
    fn check_protection(&self, contender: &Contender, key: &str) -> Result<(), Problem> {
        let protection = &contender.protection;
        let invalid = [
            protection.pacer.and_then(|settings| settings.pacer().err()).map(|invalid| ("server.pacer", invalid)),
            protection
                .admission
                .and_then(|settings| settings.admission().err())
                .map(|invalid| ("server.admission", invalid)),
            protection.budget.and_then(|settings| settings.budget().err()).map(|invalid| (key, invalid)),
            protection.breaker.and_then(|settings| settings.breaker().err()).map(|invalid| (key, invalid)),
            protection.limit.and_then(|settings| settings.limit().err()).map(|invalid| (key, invalid)),
            protection.hedge.and_then(|settings| settings.hedge().err()).map(|invalid| (key, invalid)),
        ];
        if let Some((key, invalid)) = invalid.into_iter().flatten().next() {
            return Err(Problem::new(key, invalid.problem, invalid.hint));
        }
        if !protection.has_upstream() {
            return Ok(());
        }
        let name = &contender.name;
        must(
            self.layers <= 1,
            "layers.depth",
            format!("policy {name:?} has an upstream, and layers are simulated without one"),
            "leave out one of them; relent explain --layers says what layers with budgets make of a call",
        )?;
        must(
            !crate::world::service::needs_dispatch(self),
            "server.order",
            format!("policy {name:?} has an upstream, which is simulated for first come, first served only"),
            "leave out order and drop_expired, or the upstream; admission and pacer know them",
        )?;
        must(
            protection.hedge.is_none_or(|hedge| hedge.at_most == 1),
            key,
            "the simulator knows one hedge a call",
            "at_most = 1",
        )
    }

    pub(super) fn check_arrivals(&self) -> Result<(), Problem> {
        match &self.arrivals {
            Arrivals::Herd { clients, .. } => {
                must(*clients > 0, "clients.count", "there are no clients", "use 1 or more")?;
                must(*clients <= MOST, "clients.count", "there are more clients than can be counted", "use fewer")
            }
            Arrivals::Open { rate, until, .. } => {
                check_rate(rate)?;
                must(!until.is_zero(), "clients.for", "the time is zero", "use 400s")?;
                let calls = rate.total(until.as_secs_f64());
                must(calls >= 1.0, "clients.rate", "no call would be made", "raise the rate or the time")?;
                let many = if calls < 1e15 { format!("{calls:.0}") } else { format!("{calls:.0e}") };
                must(
                    calls <= 5e8,
                    "clients.rate",
                    format!("{many} calls would be made, and at most 500000000 are simulated"),
                    "lower the rate or the time",
                )
            }
        }
    }

    fn check_contender(&self, contender: &Contender) -> Result<(), Problem> {
        self.check_populations(contender)?;
        self.check_chain(contender)?;
        if contender.populations.is_empty() {
            return self.check_policy(contender);
        }
        let mut each = contender.populations.iter().zip(contender.apart());
        each.try_for_each(|(population, own)| population.service(self).check_policy(&own))
    }

    fn check_policy(&self, contender: &Contender) -> Result<(), Problem> {
        let settings = contender.policy.settings();
        let name = &contender.name;
        let key = format!("policy.{name}");
        // Who is always told to wait does not come back at once.
        self.check_protection(contender, &key)?;
        let silent = self.server.failure > 0.0 || !self.troubles.is_empty();
        let told = match contender.retry_after.unwrap_or(self.server.retry_after) {
            RetryAfter::Fixed(after) => !after.is_zero() && !silent,
            _ => false,
        };
        let at_once = has_no_delay(&settings) && self.network.mean_ns() == 0.0 && !told;
        must(
            !(at_once && settings.max_attempts.is_none()),
            &key,
            format!("policy {name:?} retries at once, for ever, over a network without delay"),
            "give it max_attempts or a delay",
        )?;
        let loses = self.troubles.iter().any(|trouble| matches!(trouble.kind, TroubleKind::Losing(_)));
        let waits_for_ever = self.timeout.is_none() && settings.attempt_timeout.is_none();
        must(
            !(loses && waits_for_ever),
            "clients.timeout",
            format!("requests are lost, and under policy {name:?} clients wait for an answer for ever"),
            "give the clients a timeout, or the policy an attempt_timeout",
        )?;
        if let Arrivals::Open { rate, until, .. } = &self.arrivals {
            let end = rate.at(until.as_secs_f64());
            let patient = self.timeout.is_none() && settings.attempt_timeout.is_none();
            let too_much = self.server.capacity.is_some_and(|capacity| end > capacity) && self.server.queue.is_none();
            must(
                !(too_much && patient),
                "clients.rate",
                format!("{end} calls a second are more than the server's capacity, for ever and without a limit"),
                "lower the rate, or give the server a queue limit or the clients a timeout",
            )?;
        }
        Ok(())
    }
}

/// Whether nothing is waited for, whatever is drawn: that is less than the most.
fn has_no_delay(settings: &Settings) -> bool {
    let adds = matches!(settings.jitter, Jitter::Additive(most) if most > Duration::from_nanos(1));
    settings.curve == Curve::Immediate && !adds
}

/// Stations that wait equally long collide again, for ever if nothing ends it.
fn check_parting(contender: &Contender) -> Result<(), Problem> {
    let settings = contender.policy.settings();
    let random = matches!(settings.curve, Curve::Slots { .. } | Curve::Custom(_));
    let drawn = !has_no_delay(&settings) && settings.jitter != Jitter::None;
    let ends = settings.max_attempts.is_some() || settings.max_elapsed.is_some() || settings.timeout.is_some();
    must(
        random || drawn || ends,
        &format!("policy.{}", contender.name),
        format!("under policy {:?} stations that have collided do so for ever", contender.name),
        "give it jitter, or max_attempts",
    )
}

fn check_share(key: &str, share: f64) -> Result<(), Problem> {
    must((0.0..=1.0).contains(&share), key, format!("{share} is not a share between 0 and 1"), "0.1 is 10 %")
}

fn check_rate(rate: &Rate) -> Result<(), Problem> {
    let key = "clients.rate";
    let points = rate.points();
    must(!points.is_empty(), key, "the rate has no points", "use calls a second, such as 450")?;
    let sound = |(time, rate): &(f64, f64)| *time >= 0.0 && time.is_finite() && *rate >= 0.0 && rate.is_finite();
    must(
        points.iter().all(sound),
        key,
        "a rate or its time is negative or not a number",
        "use calls a second, such as 450",
    )?;
    let ordered = points.windows(2).all(|pair| pair[0].0 <= pair[1].0);
    must(ordered, key, "the points of the rate are not in the order of time", "sort them")
}

fn check_network(network: &Network) -> Result<(), Problem> {
    let mean = network.mean_ns();
    must(mean.is_finite() && mean < 1e18, "network", "the network takes for ever", "use a round trip such as 10ms")?;
    match network {
        Network::LogNormal { sigma, .. } => must(
            (0.0..=10.0).contains(sigma),
            "network.sigma",
            "sigma is not between 0 and 10",
            "0.5 is a usual spread",
        ),
        _ => Ok(()),
    }
}
