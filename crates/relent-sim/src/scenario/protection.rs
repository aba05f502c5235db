//! What protects the far side: machines of relent's own, at the server and at its clients.

use relent::{
    AdmissionSettings, BreakerSettings, BudgetSettings, HedgeSettings, LimitSettings, PacerSettings, Upstream,
};

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
