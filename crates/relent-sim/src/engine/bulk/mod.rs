//! The engines that do not know their clients by name: *count* and *fluid*.
//!
//! Both go through time in slots of about a millisecond and keep, for each slot to come, how many clients will arrive
//! there with how many failures behind them. *Count* draws whole clients; *fluid* moves expectations. The memory does
//! not depend on the number of clients. Both need policies whose next delay depends on the number of failures alone
//! and is uniform; [`refusal`] says what they cannot do.

mod count;
mod flow;
mod fluid;
mod levels;
mod tally;

pub(crate) use self::{
    count::Count,
    flow::{Grid, run},
    fluid::Fluid,
    levels::Levels,
};

use crate::scenario::{Arrivals, Contender, Network, RetryAfter, Service, TroubleKind};

/// Why these engines cannot model something.
pub(crate) fn refusal(service: &Service, contender: &Contender) -> Option<&'static str> {
    let server = &service.server;
    let own = contender.policy.settings();
    let reasons = [
        (matches!(service.arrivals, Arrivals::Open { .. }), "it knows herds only, not open arrivals"),
        (!matches!(service.network, Network::Constant(_)), "it knows constant network delays only"),
        (service.timeout.is_some() || own.attempt_timeout.is_some(), "it does not know timeouts"),
        (service.writes.is_some(), "it does not tell reads from writes"),
        (service.layers > 1 || !contender.layers.is_empty(), "it does not know layers"),
        (
            server.capacity.is_none() || server.rate_limit.is_some(),
            "it needs a server with a capacity, not a rate limit",
        ),
        (server.workers > 1, "it knows one worker only"),
        (!server.latency.is_zero(), "it does not know latency apart from the queue"),
        (server.lifo || server.drop_expired, "it serves in the order of arrival only"),
        (server.failure > 0.0 || server.refuse_for_good, "it knows full queues only, no other failures"),
        (
            service.troubles.iter().any(|t| t.kind != TroubleKind::Refuse || !t.at.is_zero() || !t.ramp.is_zero()),
            "it knows outages that begin the scenario and refuse connections, no others",
        ),
        (contender.retry_after.unwrap_or(server.retry_after) != RetryAfter::Silent, "it does not know Retry-After"),
        (contender.protection.is_any(), "it knows no budgets, breakers, limits, hedges, admission or pacers"),
        (service.leaving > 0.0 || service.newcomers.is_some(), "it does not know clients that leave, or newcomers"),
        (!contender.populations.is_empty(), "it does not know populations"),
        (own.max_elapsed.is_some() || own.timeout.is_some(), "it does not know how long a call has lasted"),
        (
            !own.spread.is_zero() && matches!(service.arrivals, Arrivals::Herd { window, .. } if !window.is_zero()),
            "it knows a window or a spread, not both at once",
        ),
    ];
    reasons.into_iter().find_map(|(applies, reason)| applies.then_some(reason))
}
