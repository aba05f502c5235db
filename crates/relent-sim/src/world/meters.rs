//! The counters of a run, and those of each population in it: everything is counted once for all and once for its own.

use super::meter::{Judge, Meter};
use crate::{
    outcome::{Figures, run::Run},
    scenario::Contender,
    time::PreciseTime,
};

pub(crate) struct Meters {
    pub(crate) all: Meter,
    /// One a population; none where the clients are all alike.
    each: Vec<Own>,
}

struct Own {
    meter: Meter,
    busy: PreciseTime,
}

impl Meters {
    pub(crate) fn new(clients: u64, open: bool, populations: usize) -> Meters {
        let own = |_| Own { meter: Meter::new(clients, open), busy: PreciseTime::ZERO };
        Meters { all: Meter::new(clients, open), each: (0..populations).map(own).collect() }
    }

    /// Something happened to a client of this population.
    #[inline(always)]
    pub(crate) fn tell(&mut self, population: usize, what: impl Fn(&mut Meter)) {
        what(&mut self.all);
        if let Some(own) = self.each.get_mut(population) {
            what(&mut own.meter);
        }
    }

    /// A worker was busy with a request of this population.
    #[inline(always)]
    pub(crate) fn worked(&mut self, population: usize, work: PreciseTime) {
        if let Some(own) = self.each.get_mut(population) {
            own.busy = own.busy.plus(work);
        }
    }

    /// Calls of a stream began at these times; each by its population.
    pub(crate) fn began(&mut self, starts: impl Iterator<Item = (usize, u64)>) {
        for (population, start) in starts {
            self.tell(population, |meter| meter.began(std::iter::once(start)));
        }
    }

    /// The figures and series of the run, and of each population.
    pub(crate) fn finish(
        self,
        judge: &Judge,
        contender: &Contender,
        clients: &[u64],
        busy: u64,
        until: Option<u64>,
        stopped: Option<String>,
    ) -> Run {
        let own = contender.apart().zip(&contender.populations).zip(self.each).zip(clients);
        let populations = own.map(|(((own, population), Own { meter, busy }), clients)| {
            let judge = Judge {
                // What the best is for some of them depends on the others.
                ideal_s: None,
                timeout: population.timeout.map_or(judge.timeout, crate::time::nanos),
                protected: judge.protected || own.protection.is_any(),
                ..*judge
            };
            let run = meter.finish(&judge, *clients, busy.nanos(), until, stopped.clone());
            match clients {
                // Of nobody there is nothing to say.
                0 => Run { figures: Figures::NONE, recovered: None, ..run },
                _ => run,
            }
        });
        let populations = populations.collect();
        Run { populations, ..self.all.finish(judge, clients.iter().sum(), busy, until, stopped) }
    }
}
