//! What is fixed about the clients of a run.

use crate::{
    engine::draws::{Draws, Purpose},
    scenario::Service,
};
use relent::{Policy, rng::unit};

/// What is fixed about the clients of a run.
pub(crate) struct Manners {
    pub(crate) timeout: u64,
    writes: Option<(f64, bool, f64)>,
    leaving: f64,
}

impl Manners {
    pub(crate) fn new(service: &Service, policy: &Policy) -> Manners {
        let own = policy.settings().attempt_timeout.map_or(u64::MAX, crate::time::nanos);
        Manners {
            timeout: service.timeout.map_or(u64::MAX, crate::time::nanos).min(own),
            writes: service.writes.map(|writes| (writes.share, writes.retried, writes.cost)),
            leaving: service.leaving,
        }
    }

    /// Whether clients wait for ever, only read, and all come back.
    pub(crate) fn is_plain(&self) -> bool {
        self.timeout == u64::MAX && self.writes.is_none() && self.leaving == 0.0
    }

    /// The work of a client's call in units of a read's, and whether it may be repeated.
    #[inline]
    pub(crate) fn of(&self, draws: &Draws, client: u32) -> (f64, bool) {
        match self.writes {
            Some((share, retried, cost)) if unit(draws.world(u64::from(client), 0, Purpose::Writes)) < share => {
                (cost, retried)
            }
            _ => (1.0, true),
        }
    }

    /// Whether a client whose first attempt failed stays away for good, whatever its policy.
    #[inline]
    pub(crate) fn leaves(&self, draws: &Draws, client: u32, failures: u32) -> bool {
        self.leaving > 0.0 && failures == 0 && unit(draws.world(u64::from(client), 0, Purpose::Leaves)) < self.leaving
    }
}
