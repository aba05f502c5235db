//! The shortest outage that a policy does not survive, found by trying.
//!
//! The scenario has one trouble; how long it lasts is varied, everything else stays: the same engine, the same calls,
//! the same luck. An outage is survived if all runs recover, and fatal if one does not. Between the longest that was
//! survived and the shortest that was fatal lies the answer.
//!
//! Tried runs end sooner after the trouble than the scenario's own where those would take too long, but not before every
//! call could be made several times over: whether a storm takes hold is decided by then. The scenario's own runs are
//! taken at their word, too, so the answer never contradicts them.

use super::safe_load;
use crate::{
    engine::{control::Control, draws::Draws, task::Task},
    outcome::{
        FatalOutage, Record,
        advice::{Safety, Storm},
        run::Run,
    },
    scenario::{Arrivals, Contender, Figure, Population, Scenario, Service, Trouble, TroubleKind, World},
    simulate::{check_memory, plan::Plan},
    world::service::{self},
};
use relent::Policy;
use std::time::Duration;

/// Two lengths that differ by less than this share are the same.
const CLOSE: f64 = 0.05;
/// The most lengths that are tried.
const MOST_TRIES: u32 = 24;
/// Runs a length, at least and at most.
const RUNS: (u32, u32) = (3, 5);
/// Outages longer than this many times the scenario's own are not tried.
const LONGEST: f64 = 16.0;

/// How many attempts a search may make, and beside how many others.
#[derive(Clone, Copy)]
pub(super) struct Means {
    pub(super) most_attempts: f64,
    pub(super) threads: usize,
}

/// Looks for the shortest fatal outage.
pub(super) fn search(
    scenario: &Scenario,
    service: &Service,
    contender: &Contender,
    record: &Record,
    safety: &Safety,
    means: Means,
    control: &Control,
) -> Option<FatalOutage> {
    let [trouble] = service.troubles[..] else { return None };
    let (load, runs) = (safety.load?, record.recovered.filter(|_| record.stopped.is_none())?);
    let own = trouble.lasts.as_secs_f64();
    let recovers = runs.yes == runs.of;
    if own == 0.0 || load >= 1.0 || control.is_stopped() {
        return None;
    }
    let theory = theory(service, &contender.policy, trouble, safety);
    let always_heals = match safety.storm {
        Some(Storm::Above(safe)) => load < safe.share,
        Some(Storm::Never(_)) => true,
        Some(Storm::Always) => return None,
        None => false,
    };
    if always_heals {
        // A storm that is not over when the run ends would only be longer or shorter.
        return recovers.then_some(FatalOutage { survived: Some(trouble.lasts), ..FatalOutage::default() });
    }
    if contender.populations.iter().any(Population::is_own) {
        // They come when they come, whatever the run is like.
        return None;
    }
    let timeouts = safe_load::callers(service, contender);
    let timeouts = timeouts.iter().filter_map(|(service, policy)| safe_load::timeout(service, policy));
    let patience = timeouts.map(|timeout| timeout.as_secs_f64()).reduce(f64::min).unwrap_or(1.0);
    let mut bracket = Bracket {
        survived: if recovers { own } else { 0.0 },
        fatal: if recovers { f64::INFINITY } else { own },
        most: own * LONGEST,
        least_step: patience / 20.0,
    };
    let mut trial = Trial { scenario, service, contender, trouble, safety, left: means.most_attempts, means, control };
    let too_dear = narrow(&mut bracket, theory, &mut trial).is_none();
    (!control.is_stopped()).then(|| FatalOutage {
        survived: (bracket.survived > 0.0).then(|| Duration::from_secs_f64(bracket.survived)),
        fatal: bracket.fatal.is_finite().then(|| Duration::from_secs_f64(bracket.fatal)),
        theory: theory.map(Duration::from_secs_f64),
        too_dear,
    })
}

/// What is known: the longest survived, the shortest fatal.
#[derive(Debug)]
struct Bracket {
    survived: f64,
    fatal: f64,
    most: f64,
    least_step: f64,
}

impl Bracket {
    fn is_narrow(&self) -> bool {
        if self.fatal.is_infinite() {
            return self.survived >= self.most;
        }
        self.fatal - self.survived <= self.least_step.max(CLOSE * self.fatal)
    }

    /// The next length to try when there is no better idea: far apart by ratio, close by halves.
    fn next(&self) -> f64 {
        if self.fatal.is_infinite() {
            (self.survived * 2.0).min(self.most)
        } else if self.survived < self.fatal / 4.0 {
            (self.survived.max(self.fatal / 16.0) * self.fatal).sqrt()
        } else {
            f64::midpoint(self.survived, self.fatal)
        }
    }

    fn learn(&mut self, lasts: f64, survived: bool) {
        if survived {
            self.survived = self.survived.max(lasts);
        } else {
            self.fatal = self.fatal.min(lasts);
        }
    }
}

/// Narrows the bracket: first beside what theory expects, then by halves. `None` if that would be too much work.
fn narrow(bracket: &mut Bracket, theory: Option<f64>, trial: &mut Trial<'_>) -> Option<()> {
    let around = theory.into_iter().flat_map(|theory| [theory * 0.97, theory * 1.03]);
    for guess in around {
        if !bracket.is_narrow() && bracket.survived < guess && guess < bracket.fatal {
            let survived = trial.survives(guess)?;
            bracket.learn(guess, survived);
        }
    }
    for _ in 0..MOST_TRIES {
        if bracket.is_narrow() {
            break;
        }
        // Whole milliseconds are enough, and read better.
        let next = (bracket.next() * 1e3).round() / 1e3;
        if next <= bracket.survived || next >= bracket.fatal {
            break;
        }
        let survived = trial.survives(next)?;
        bracket.learn(next, survived);
    }
    Some(())
}

struct Trial<'a> {
    scenario: &'a Scenario,
    service: &'a Service,
    contender: &'a Contender,
    trouble: Trouble,
    safety: &'a Safety,
    /// Attempts that may still be simulated.
    left: f64,
    means: Means,
    control: &'a Control,
}

impl Trial<'_> {
    /// Whether an outage of this length is survived in every run; `None` if trying is too much work.
    fn survives(&mut self, lasts: f64) -> Option<bool> {
        let service = self.world(lasts)?;
        if !self.fits(&service) {
            return None;
        }
        for seed in 0..self.scenario.seeds.clamp(RUNS.0, RUNS.1) {
            let expected = service.arrivals.clients() * self.amplification();
            if expected > self.left || self.control.is_stopped() {
                return None;
            }
            let run = self.run(&service, seed);
            self.left -= run.figures.get(Figure::AttemptsPerClient).unwrap_or(1.0) * run.clients as f64;
            if run.stopped.is_some() {
                return None;
            }
            if run.recovered != Some(true) {
                return Some(false);
            }
        }
        Some(true)
    }

    /// The scenario's world with an outage of this length, and as much time after it as tells.
    fn world(&self, lasts: f64) -> Option<Service> {
        let Arrivals::Open { rate, poisson, until } = &self.service.arrivals else { return None };
        let lasts = Duration::try_from_secs_f64(lasts).ok()?;
        let (own_end, steady) = (self.trouble.at.saturating_add(self.trouble.lasts), rate.points().len() == 1);
        // While the rate is even, a minute of calm before the storm says no more than some seconds.
        let at = if steady { self.trouble.at.min(CALM.max(4 * self.call())) } else { self.trouble.at };
        let after = until.saturating_sub(own_end).min(ENOUGH.saturating_add(6 * self.call()));
        let until = at.saturating_add(lasts).saturating_add(after);
        Some(Service {
            arrivals: Arrivals::Open { rate: rate.clone(), poisson: *poisson, until },
            troubles: vec![Trouble { at, lasts, ..self.trouble }],
            ..self.service.clone()
        })
    }

    /// How long a call lasts of which every attempt times out, about; a minute and a half at most.
    fn call(&self) -> Duration {
        let call = |(service, policy): &(Service, Policy)| {
            let timeout = safe_load::timeout(service, policy).unwrap_or(Duration::from_secs(1));
            let starts = safe_load::starts(policy, 0, timeout).take(64);
            let last = starts.take_while(|start| *start < 90.0).last().unwrap_or(0.0);
            (Duration::from_secs_f64(last) + timeout).min(Duration::from_secs(90))
        };
        let callers = safe_load::callers(self.service, self.contender);
        callers.iter().map(call).max().unwrap_or(Duration::from_secs(90))
    }

    /// Attempts a call at most, on average.
    fn amplification(&self) -> f64 {
        match self.safety.storm {
            Some(Storm::Above(safe)) if safe.attempts.is_finite() => safe.attempts,
            _ => {
                let most = |policy: &Policy| policy.settings().max_attempts.map_or(8.0, f64::from).min(8.0);
                let callers = safe_load::callers(self.service, self.contender);
                let below = self.contender.layers.iter().skip(1);
                let below = below.map(|layer| most(&layer.policy.unwrap_or(self.contender.policy)));
                callers.iter().map(|(_, policy)| most(policy)).fold(1.0, f64::max) * below.product::<f64>()
            }
        }
    }

    /// Whether there is memory for such runs, beside those of the other policies.
    fn fits(&self, service: &Service) -> bool {
        let Means { threads, .. } = self.means;
        let alone = Scenario::new("trial", World::Service(service.clone())).contender(self.contender.clone());
        let scenario = alone.seeds(threads as u32);
        check_memory(&scenario, &[Plan::Exact], threads).is_ok()
    }

    fn run(&self, service: &Service, seed: u32) -> Run {
        let draws = Draws::new(self.scenario.first_seed.wrapping_add(u64::from(seed)), self.scenario.forced);
        let limit = crate::time::nanos(self.scenario.limit);
        service::run(&Task { service, contender: self.contender, draws, limit, control: self.control })
    }
}

/// The calm before the outage, if there is more.
const CALM: Duration = Duration::from_secs(15);
/// The time after the outage, if there is more, besides that of some calls.
const ENOUGH: Duration = Duration::from_secs(15);

/// The outage after which the queue holds as much work as clients wait for: where `backlog(D) = T`.
///
/// It holds for a server that stalls, a queue without a limit and retries at once. Delays put retries off until after the
/// outage, where they can still do harm, so that it would promise too much.
fn theory(service: &Service, policy: &Policy, trouble: Trouble, safety: &Safety) -> Option<f64> {
    let Arrivals::Open { rate, .. } = &service.arrivals else { return None };
    let Some(Storm::Above(safe)) = safety.storm else { return None };
    let load = safety.load?;
    let timeout = safe_load::timeout(service, policy)?;
    let at_once = safe_load::starts(policy, 0, timeout).take(64).enumerate().all(|(retries, start)| {
        let soonest = timeout.as_secs_f64() * retries as f64;
        start - soonest <= 0.05 * timeout.as_secs_f64()
    });
    let simple = service.layers <= 1 && service.writes.is_none() && service.server.queue.is_none();
    let stalls = trouble.kind == TroubleKind::Stall && rate.points().len() == 1;
    if !(at_once && simple && stalls) || load < safe.share || load >= 1.0 {
        return None;
    }
    let patience = safe_load::patience(service, timeout);
    // A stall this long is too long whatever happens.
    let (mut low, mut high) = (0.0, patience / load);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if safe_load::backlog(policy, timeout, load, middle) > patience { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        scenario::{Rate, Server},
        simulate::simulate,
    };

    const SEC: Duration = Duration::from_secs(1);

    fn found(most_attempts: f64) -> (FatalOutage, f64) {
        let service = Service {
            arrivals: Arrivals::Open { rate: Rate::constant(600.0), poisson: true, until: 60 * SEC },
            timeout: Some(SEC),
            server: Server { capacity: Some(1000.0), exponential: true, ..Server::default() },
            troubles: vec![Trouble::new(10 * SEC, 10 * SEC, TroubleKind::Stall)],
            ..Service::herd(1, 1.0)
        };
        let contender = Contender::new("p", Policy::immediate().max_attempts(4));
        let scenario = Scenario::new("storm", World::Service(service.clone())).contender(contender.clone());
        let record = simulate(&scenario).unwrap().records.remove(0);
        let safety = safe_load::safety(&scenario, &service, &contender);
        let control = Control::default();
        let found =
            search(&scenario, &service, &contender, &record, &safety, Means { most_attempts, threads: 1 }, &control);
        (found.unwrap(), control.progress().2 as f64)
    }

    #[test]
    fn dear_searches_are_cut_short_and_say_so() {
        let (free, _) = found(f64::INFINITY);
        assert!(!free.too_dear && free.survived > Some(SEC), "{free:?}");
        let (none, spent) = found(1000.0);
        assert_eq!((none.too_dear, none.survived, none.fatal, spent), (true, None, Some(10 * SEC), 0.0));
        for most in [2e5, 4e5, 8e5] {
            let (some, spent) = found(most);
            assert!(spent <= most && some.fatal.unwrap() >= free.fatal.unwrap(), "{most}: {some:?} {spent}");
        }
    }

    #[test]
    fn brackets_are_narrowed_from_either_side_and_end() {
        for (survived, fatal, truth) in [(0.0, 10.0, 1.3), (1.0, f64::INFINITY, 7.7), (0.0, 600.0, 599.0)] {
            let mut bracket = Bracket { survived, fatal, most: 16.0, least_step: 0.05 };
            let mut tries = 0;
            while !bracket.is_narrow() {
                let next = bracket.next();
                assert!(bracket.survived < next && next < bracket.fatal, "{bracket:?} {next}");
                bracket.learn(next, next < truth);
                tries += 1;
                assert!(tries <= MOST_TRIES, "{bracket:?}");
            }
            assert!(bracket.survived < truth && truth <= bracket.fatal, "{bracket:?}");
            assert!(bracket.fatal - bracket.survived <= 0.05f64.max(CLOSE * bracket.fatal), "{bracket:?}");
        }
        let mut endless = Bracket { survived: 1.0, fatal: f64::INFINITY, most: 16.0, least_step: 0.05 };
        while !endless.is_narrow() {
            endless.learn(endless.next(), true);
        }
        assert_eq!(endless.survived, 16.0);
    }
}
