//! Clients that call a server: the exact engines.
//!
//! [`predict`] serves every queue in which the fate of a request is known when it arrives (first come, first served):
//! one event an attempt, also for clients who each have a budget, a breaker or a rate of their own, [`own`] and [`players`].
//! [`dispatch`] serves the others (newest first, dropping expired work) with an event for each thing that happens. [`guarded`] is the first
//! of them for clients that share budgets, breakers and limits, or hedge, whom it keeps in one of two ways: [`sharers`], or
//! everything of everybody, [`held`]. For those who share breakers alone there is [`tripping`]; for those who hedge and do nothing else there is [`hedged`], again with one event an
//! attempt. What becomes of an attempt at the server is the same for all of them, [`reception`].

pub(crate) mod cast;
pub(crate) mod chain;
mod chances;
pub(crate) mod clients;
pub(crate) mod dispatch;
pub(crate) mod door;
mod flights;
pub(crate) mod gate;
pub(crate) mod guarded;
mod habits;
mod hedged;
mod held;
pub(crate) mod manners;
mod own;
mod players;
mod predict;
mod reception;
mod sharers;
mod starts;
mod tripping;
pub(crate) mod work;

use crate::{
    engine::{calendar::Calendar, task::Task},
    outcome::run::Run,
    scenario::Service,
};

/// One run: by [`predict`] where that can be foreseen, else by [`dispatch`].
pub(crate) fn run(task: &Task<'_>) -> Run {
    if !task.contender.layers.is_empty() {
        return chain::run(task);
    }
    if task.contender.has_upstream() {
        return guarded::run(task, Calendar::new());
    }
    if needs_dispatch(task.service) { dispatch::run(task) } else { predict::run(task, Calendar::new()) }
}

/// Whether the fate of a request depends on what comes after it.
pub(crate) const fn needs_dispatch(service: &Service) -> bool {
    service.server.capacity.is_some() && (service.server.lifo || service.server.drop_expired)
}

#[cfg(test)]
mod tests;
