//! The best that can be: clients who know everything, so that each makes one attempt, at the right moment.

use crate::{
    scenario::{Arrivals, Figure, Network, Service, TroubleKind, speed::Speed},
    time::{PreciseTime, nanos},
};

/// What clients who know everything would need: everybody served as fast as the server can, one attempt each. Outages,
/// the rate limit and its burst, latency and the way there and back are part of it, so that no policy is quicker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ideal {
    /// Clients (or calls).
    pub clients: u64,
    /// What the server completes in a second.
    pub capacity_per_s: f64,
    /// From when on answers can come, in seconds: after an outage that begins the scenario, the ways, and the latency.
    pub begins_s: f64,
    /// How long after that the last client has its answer, in seconds.
    pub drain_s: f64,
    /// Attempts a client: more than one only where attempts fail by chance.
    pub attempts: f64,
    /// What is served at once, by a burst that a rate limit allows.
    pub at_once: f64,
    /// Over how long the clients come, in seconds: who comes later has waited for less.
    pub window_s: f64,
}

impl Ideal {
    /// The ideal of a world in which clients call a server; `None` where nothing limits what it does.
    pub(crate) fn of(service: &Service) -> Option<Ideal> {
        let capacity_per_s = service.capacity()?;
        let clients = to_be_served(service, capacity_per_s);
        let attempts = if service.server.failure < 1.0 { 1.0 / (1.0 - service.server.failure) } else { f64::INFINITY };
        let way = match service.network {
            Network::Constant(delay) => delay.as_secs_f64(),
            // Some message is nearly always quick.
            _ => 0.0,
        };
        let refused = service.troubles.iter().filter(|trouble| trouble.at.is_zero());
        let refused =
            refused.filter(|trouble| matches!(trouble.kind, TroubleKind::Refuse | TroubleKind::Losing(1.0..)));
        let opens = refused.map(|trouble| trouble.lasts.as_secs_f64()).fold(way, f64::max);
        let answer = way + service.server.latency.as_secs_f64();
        let burst = service.server.rate_limit.map_or(0.0, |limit| limit.burst as f64);
        let done = work_done(service, opens, clients * attempts).max(limit_passed(service, opens, clients * attempts));
        let window_s = match &service.arrivals {
            Arrivals::Herd { window, .. } => window.as_secs_f64(),
            Arrivals::Open { .. } => 0.0,
        };
        // The last of so many comes this late, on average.
        let last = window_s * clients / (clients + 1.0) + way;
        let slowest = service.server.capacity.map_or(burst, |_| 0.0);
        let stalled =
            Speed::new(&service.troubles).finish(seconds(opens), PreciseTime::from_nanos(1)).nanos() as f64 / 1e9;
        let begins_s = stalled.max(opens) + answer;
        let ends = done.max(last) + answer;
        Some(Ideal {
            clients: clients as u64,
            capacity_per_s,
            begins_s,
            drain_s: (ends - begins_s).max(0.0),
            attempts,
            at_once: slowest.min(clients),
            window_s,
        })
    }

    /// What a figure of a herd would be at best; `None` where the best is not known.
    ///
    /// ```
    /// use relent_sim::{Figure, Scenario, Service, World, simulate};
    /// let herd = Scenario::new("herd", World::Service(Service::herd(1000, 50.0))).policy("once", relent::Policy::default());
    /// let ideal = simulate(&herd).unwrap().ideal.unwrap();
    /// // 1000 / 50 seconds of work, and 10 ms for the way there and back.
    /// assert!((ideal.figure(Figure::DrainS).unwrap() - 20.01).abs() < 1e-9);
    /// assert_eq!(ideal.figure(Figure::DrainOverIdeal), Some(1.0));
    /// ```
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        let value = match figure {
            Figure::AttemptsPerClient | Figure::Load | Figure::LoadOverGoodput => self.attempts,
            Figure::Utilisation
            | Figure::GoodputShare
            | Figure::DrainOverIdeal
            | Figure::PeakOverCapacity
            | Figure::SuccessShare
            | Figure::MaxAttempts => 1.0,
            Figure::Amplification => self.attempts,
            Figure::WastedWork
            | Figure::RefusedBudget
            | Figure::RefusedOpen
            | Figure::RefusedShed
            | Figure::RefusedOverloaded
            | Figure::RefusedTurn
            | Figure::PutOff => 0.0,
            Figure::WastedPerClient => self.attempts - 1.0,
            Figure::GaveUp | Figure::GaveUpShare | Figure::StillTrying => 0.0,
            Figure::DrainS => self.begins_s + self.drain_s,
            Figure::MaxS => self.wait(1.0),
            Figure::Fairness => self.wait(1.0) / self.wait(0.5),
            Figure::P50S => self.wait(0.5),
            Figure::P90S => self.wait(0.9),
            Figure::P99S => self.wait(0.99),
            Figure::Peak1Ms => self.capacity_per_s / 1000.0,
            Figure::Peak100Ms => self.capacity_per_s / 10.0,
            Figure::Peak1S | Figure::Goodput => self.capacity_per_s,
            Figure::RecoveryS => self.drain_s,
            _ => return None,
        };
        value.is_finite().then_some(value)
    }

    /// How long the client waits at this share of all.
    fn wait(&self, share: f64) -> f64 {
        let clients = self.clients as f64;
        let done = match clients > self.at_once {
            true => ((share * clients - self.at_once) / (clients - self.at_once)).max(0.0),
            false => 0.0,
        };
        // Who comes later has waited for less, and who comes after an outage need not wait for its end.
        let least = if self.window_s > 0.0 { 0.0 } else { self.begins_s };
        (self.begins_s + done * self.drain_s - share * self.window_s).max(least)
    }
}

/// The calls to be served until nobody waits: without those who leave because there was no room for them at once, and
/// with the newcomers until then.
fn to_be_served(service: &Service, capacity: f64) -> f64 {
    let all = service.arrivals.clients();
    let at_once = service.server.queue.map_or(all, |room| all.min(room as f64));
    let stay = all - service.leaving * (all - at_once);
    let newcomers = service.newcomers.map_or(0.0, |newcomers| {
        let until = newcomers.until.as_secs_f64();
        let caught_up = if newcomers.rate < capacity { stay / (capacity - newcomers.rate) } else { until };
        newcomers.rate * caught_up.min(until)
    });
    stay + newcomers
}

/// When the server has done so many requests, with all that stops or slows it, in seconds.
fn work_done(service: &Service, opens: f64, requests: f64) -> f64 {
    let Some(capacity) = service.server.capacity else { return opens };
    let each = f64::from(service.server.workers) / capacity;
    let rounds = match service.server.exponential || service.writes.is_some() {
        true => requests / f64::from(service.server.workers) * service.mean_cost(),
        // Workers are done together, so the last round takes a whole service time.
        false => (requests / f64::from(service.server.workers) - 1e-9).ceil(),
    };
    let work = PreciseTime::from_float(rounds * each * 1e9);
    Speed::new(&service.troubles).finish(seconds(opens), work).nanos() as f64 / 1e9
}

/// When so many requests have passed the rate limit, in seconds.
fn limit_passed(service: &Service, opens: f64, requests: f64) -> f64 {
    service.server.rate_limit.map_or(opens, |limit| opens + (requests - limit.burst as f64).max(0.0) / limit.rate)
}

fn seconds(seconds: f64) -> PreciseTime {
    PreciseTime::from_nanos(nanos(std::time::Duration::try_from_secs_f64(seconds).unwrap_or(std::time::Duration::MAX)))
}
