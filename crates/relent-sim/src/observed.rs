//! A herd that was seen in the real world, measured as a simulated one is: the same counters make the same figures.
//!
//! Whoever watches real clients and a real server tells what happens in the order of time; the [`Record`] that comes of it
//! stands beside that of the simulated herd.

use crate::{
    outcome::{Ideal, Outcome, Record},
    scenario::{Contender, Engine, Scenario, Service, World},
    simulate,
    time::nanos,
    world::meter::{Judge, Meter},
};
use relent::{Reason, Verdict};
use std::time::Duration;

/// Something that happened to a herd.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seen {
    /// An attempt of a client of the herd (they are counted from zero) reached the server, after so many that had failed.
    Arrived {
        /// The client.
        client: u32,
        /// Its attempts before this one.
        failures: u32,
    },
    /// The server turned an attempt away, and told its client this.
    Refused(Verdict),
    /// An attempt failed in another way.
    Failed,
    /// The server completed an attempt.
    Served,
    /// A client got its answer, with this attempt.
    Connected {
        /// Attempts it made, this one included.
        attempts: u32,
    },
    /// A client gave up.
    GaveUp {
        /// Why.
        reason: Reason,
        /// Attempts it made.
        attempts: u32,
    },
}

/// What has been seen of a herd.
///
/// ```
/// use relent::{Policy, Verdict};
/// use relent_sim::{Contender, Figure, Observed, Seen, Service};
/// use std::time::Duration;
///
/// let mut observed = Observed::new(1);
/// observed.see(Duration::from_millis(1), Seen::Arrived { client: 0, failures: 0 });
/// observed.see(Duration::from_millis(1), Seen::Refused(Verdict::Transient));
/// observed.see(Duration::from_millis(90), Seen::Arrived { client: 0, failures: 1 });
/// observed.see(Duration::from_millis(100), Seen::Served);
/// observed.see(Duration::from_millis(101), Seen::Connected { attempts: 2 });
///
/// let record = observed.record(&Service::herd(1, 100.0), &Contender::new("one", Policy::default()), None);
/// assert_eq!((record.get(Figure::AttemptsPerClient), record.get(Figure::DrainS)), (Some(2.0), Some(0.101)));
/// ```
pub struct Observed {
    meter: Meter,
    clients: u64,
    served: u64,
    now: u64,
}

impl Observed {
    /// A herd of so many clients, of which nothing has been seen yet.
    pub fn new(clients: u64) -> Observed {
        Observed { meter: Meter::new(clients, false), clients, served: 0, now: 0 }
    }

    /// Something happened so long after the herd was let loose. What is told late counts at the latest time told.
    pub fn see(&mut self, at: Duration, seen: Seen) {
        self.now = self.now.max(nanos(at));
        let (meter, now) = (&mut self.meter, self.now);
        match seen {
            // Of others nothing is known.
            Seen::Arrived { client, .. } if u64::from(client) >= self.clients => {}
            Seen::Arrived { client, failures } => meter.arrived(now, client, failures),
            Seen::Refused(told) => {
                meter.rejected(now);
                meter.refused_by_server(told);
            }
            Seen::Failed => meter.rejected(now),
            Seen::Served => {
                meter.served(now);
                self.served += 1;
            }
            Seen::Connected { attempts } => meter.connected(now, 0, attempts),
            Seen::GaveUp { reason, attempts } => {
                if matches!(reason, Reason::Budget | Reason::Open | Reason::Shed) {
                    meter.refused_by_client(reason);
                }
                meter.gave_up(now, reason, attempts);
            }
        }
    }

    /// Its record, as that of one run. `stopped` says why it was not watched to its end, if so.
    pub fn record(self, service: &Service, contender: &Contender, stopped: Option<String>) -> Record {
        let judge = Judge::new(service, contender);
        let busy = service.capacity().map_or(0.0, |capacity| self.served as f64 / capacity * 1e9);
        let run = self.meter.finish(&judge, self.clients, busy as u64, None, stopped);
        simulate::record(contender, Engine::Real, &[Some(run.keep(0))])
    }
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed").field("clients", &self.clients).field("now", &self.now).finish_non_exhaustive()
    }
}

impl Outcome {
    /// The outcome of a scenario whose records were seen rather than simulated, in the order of its contenders.
    pub fn observed(scenario: &Scenario, records: Vec<Record>, interrupted: bool) -> Outcome {
        let ideal = match &scenario.world {
            World::Service(service) => Ideal::of(service),
            _ => None,
        };
        Outcome {
            scenario: scenario.name.clone(),
            title: scenario.title.clone(),
            ideal,
            records,
            extras: crate::outcome::Extras::default(),
            advice: None,
            interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Figure;
    use relent::Policy;

    /// A number that was made up would else be a place in a list.
    #[test]
    fn of_clients_beyond_the_herd_nothing_is_kept() {
        let mut observed = Observed::new(2);
        for client in [0, 2, 1, u32::MAX] {
            observed.see(Duration::from_millis(1), Seen::Arrived { client, failures: 0 });
        }
        let record = observed.record(&Service::herd(2, 100.0), &Contender::new("one", Policy::default()), None);
        assert_eq!((record.get(Figure::AttemptsPerClient), record.plots.raster.len()), (Some(1.0), 2));
    }
}
