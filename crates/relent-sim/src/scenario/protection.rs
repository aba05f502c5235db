//! What protects the far side: machines of relent's own, at the server and at its clients.

use super::Service;
use relent::{
    AdmissionSettings, BreakerSettings, BudgetSettings, HedgeSettings, LimitSettings, PacerSettings, Upstream,
};
use std::time::Duration;

/// The machines that protect the far side from the clients of one contender. They are relent's own, and they are all off
/// unless said.
#[derive(Clone, Copy, Debug, Default)]
pub struct Protection {
    /// At the server: gives each refused client its own time to come back.
    pub pacer: Option<PacerSettings>,
    /// At the server: decides which attempts are worth the work.
    pub admission: Option<AdmissionSettings>,
    /// Whether the clients know `Retry-After` only, which has whole seconds, so that their turns are rounded up.
    pub whole_seconds: bool,
    /// At the clients, one for each process: how many retries they may make together.
    pub budget: Option<BudgetSettings>,
    /// At the clients: stops attempts while the far side fails.
    pub breaker: Option<BreakerSettings>,
    /// At the clients: how many attempts are made, in a time or at a time.
    pub limit: Option<LimitSettings>,
    /// At the clients: when a second attempt starts before the first has failed.
    pub hedge: Option<HedgeSettings>,
    /// Whether a client waits for an open breaker, rather than fail at once.
    pub wait_while_open: bool,
}

impl Protection {
    /// Whether the clients have an upstream at all.
    pub const fn has_upstream(&self) -> bool {
        self.budget.is_some() || self.breaker.is_some() || self.limit.is_some() || self.hedge.is_some()
    }

    /// Whether the server has a machine at its door.
    pub const fn has_gate(&self) -> bool {
        self.pacer.is_some() || self.admission.is_some()
    }

    /// Whether there is any machine.
    pub const fn is_any(&self) -> bool {
        self.has_upstream() || self.has_gate()
    }

    /// The upstream of one process; `None` if there is none, or its settings make no sense, which a scenario's check says.
    pub fn upstream(&self) -> Option<Upstream> {
        let mut upstream = Upstream::new("upstream");
        if let Some(budget) = self.budget {
            upstream = upstream.budget(budget.budget().ok()?);
        }
        if let Some(breaker) = self.breaker {
            upstream = upstream.breaker(breaker.breaker().ok()?);
        }
        if let Some(limit) = self.limit {
            upstream = upstream.limit(limit.limit().ok()?);
        }
        if let Some(hedge) = self.hedge {
            upstream = upstream.hedge(hedge.hedge().ok()?);
        }
        self.has_upstream().then_some(upstream)
    }
}

/// New clients who call while a herd comes back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Newcomers {
    /// How many a second, at random.
    pub rate: f64,
    /// For how long they come.
    pub until: Duration,
}

impl Service {
    /// How many processes the clients are in: each has an upstream of its own. Clients of a herd are one each, calls of a
    /// stream are all of one, unless told.
    pub fn processes(&self) -> u64 {
        let usual = if self.is_open() { 1 } else { self.clients() as u64 };
        self.processes.unwrap_or(usual).max(1)
    }

    /// Clients of the herd and newcomers, or calls expected of a stream.
    pub fn clients(&self) -> f64 {
        self.arrivals.clients() + self.newcomers.map_or(0.0, |newcomers| newcomers.rate * newcomers.until.as_secs_f64())
    }
}
