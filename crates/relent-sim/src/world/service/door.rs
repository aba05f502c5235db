//! What happens to a request at the server's door: refused connections, the rate limit, a full queue, and what is said
//! about coming back. Admission and pacing are at its [`gate`](super::gate).

use super::gate::{Gate, Knock};
use crate::{
    engine::{
        control::Control,
        draws::{Draws, Purpose},
    },
    scenario::{Contender, RetryAfter, Service, TroubleKind},
    time::PreciseTime,
};
use relent::{
    Verdict,
    rng::{scale, unit},
};
use std::time::Duration;

/// The door of a server.
#[derive(Debug)]
pub(crate) struct Door {
    refusing: Vec<(u64, u64)>,
    failing: Vec<(u64, u64, f64)>,
    losing: Vec<(u64, u64, f64)>,
    failure: f64,
    queue: u64,
    limit: Option<Tokens>,
    retry_after: RetryAfter,
    for_good: bool,
    /// The time one request takes at the capacity.
    period: PreciseTime,
    round_trip: u64,
    /// The next time of day that nobody has been told.
    reserved: PreciseTime,
    /// Clients of the herd that have not been let in, or those told to come back.
    pub(crate) outside: u64,
    /// The machines at the door.
    gate: Option<Gate>,
}

/// A token bucket as the time at which it would be full.
#[derive(Clone, Debug)]
struct Tokens {
    period: PreciseTime,
    burst: PreciseTime,
    full_at: PreciseTime,
}

impl Tokens {
    fn take(&mut self, now: PreciseTime) -> bool {
        let full_at = self.full_at.max(now).plus(self.period);
        let admitted = full_at <= now.plus(self.burst);
        if admitted {
            self.full_at = full_at;
        }
        admitted
    }

    fn has(&self, now: PreciseTime) -> bool {
        self.full_at.max(now).plus(self.period) <= now.plus(self.burst)
    }

    /// When there will be a token.
    fn next(&self) -> PreciseTime {
        self.full_at.plus(self.period).minus(self.burst)
    }
}

impl Door {
    pub(crate) fn new(service: &Service, contender: &Contender) -> Door {
        let server = &service.server;
        let refusing = service.troubles.iter().filter(|t| t.kind == TroubleKind::Refuse);
        let failing = service.troubles.iter().filter_map(|t| match t.kind {
            TroubleKind::Failing(share) => Some((t.begins_ns(), t.stops_ns(), share)),
            _ => None,
        });
        let losing = service.troubles.iter().filter_map(|t| match t.kind {
            TroubleKind::Losing(share) => Some((t.begins_ns(), t.stops_ns(), share)),
            _ => None,
        });
        Door {
            refusing: refusing.map(|t| (t.begins_ns(), t.stops_ns())).collect(),
            failing: failing.collect(),
            losing: losing.collect(),
            failure: server.failure,
            queue: server.queue.unwrap_or(u64::MAX),
            limit: server.rate_limit.map(|limit| Tokens {
                period: PreciseTime::period(limit.rate),
                burst: PreciseTime::period(limit.rate).times(limit.burst as f64),
                full_at: PreciseTime::ZERO,
            }),
            retry_after: contender.retry_after.unwrap_or(server.retry_after),
            for_good: server.refuse_for_good,
            period: service.capacity().map_or(PreciseTime::ZERO, PreciseTime::period),
            round_trip: (2.0 * service.network.mean_ns() + 0.5) as u64,
            reserved: PreciseTime::ZERO,
            outside: 0,
            gate: Gate::new(&contender.protection, server),
        }
    }

    /// Whether a request is let in that finds `inside` requests inside.
    #[inline]
    pub(crate) fn admits(&mut self, now: u64, inside: u64, attempt: u32, left: u64) -> bool {
        if self.gate.is_some() {
            return self.gate_admits(now, inside, attempt, left);
        }
        if !self.has_room(inside) || (!self.refusing.is_empty() && self.is_refusing(now)) {
            return false;
        }
        match &mut self.limit {
            None => true,
            Some(tokens) => tokens.take(PreciseTime::from_nanos(now)),
        }
    }

    #[inline(never)]
    fn gate_admits(&mut self, now: u64, inside: u64, attempt: u32, left: u64) -> bool {
        let refuses = self.is_refusing(now);
        let Some(gate) = &mut self.gate else { return false };
        if refuses {
            // Nobody is there to say anything.
            gate.say_nothing();
            return false;
        }
        let now_precise = PreciseTime::from_nanos(now);
        let has_token = self.limit.as_ref().is_none_or(|tokens| tokens.has(now_precise));
        if !gate.decide(now, Knock { inside, room: self.queue, has_token, attempt, left }) {
            return false;
        }
        self.limit.as_mut().is_none_or(|tokens| tokens.take(now_precise))
    }

    /// Takes room for all of whom the machines learn until the next look.
    pub(super) fn make_room(&mut self, control: &Control) {
        if let Some(gate) = &mut self.gate {
            gate.make_room(control);
        }
    }

    /// The room of the queue.
    pub(super) const fn queue(&self) -> u64 {
        self.queue
    }

    /// A request was let in that takes so long, and will be done then.
    #[inline]
    pub(crate) fn entered(&mut self, now: u64, work: u64, done: u64) {
        if let Some(gate) = &mut self.gate {
            gate.entered(now, work, done);
        }
    }

    /// Whether there are machines, which tell clients something.
    #[inline]
    pub(crate) const fn has_gate(&self) -> bool {
        self.gate.is_some()
    }

    /// Whether this door refuses nobody but those for whom there is no room, and tells them nothing.
    pub(crate) fn is_plain(&self) -> bool {
        let fails = !self.failing.is_empty() || self.failure > 0.0;
        let troubled = !self.refusing.is_empty() || !self.losing.is_empty() || fails;
        let tells = self.for_good || !matches!(self.retry_after, RetryAfter::Silent);
        !troubled && !tells && self.limit.is_none() && self.gate.is_none()
    }

    /// Whether what refused clients are told does not depend on who else has given up.
    pub(crate) const fn tells_alike(&self) -> bool {
        !matches!(self.retry_after, RetryAfter::Spread)
    }

    /// Whether there is room for one more than are inside.
    #[inline]
    pub(crate) const fn has_room(&self, inside: u64) -> bool {
        inside < self.queue
    }

    fn is_refusing(&self, now: u64) -> bool {
        self.refusing.iter().any(|(from, until)| (*from..*until).contains(&now))
    }

    /// What the refused client is told. `free_at` is when the work inside will be done.
    #[inline]
    pub(crate) fn refusal(
        &mut self,
        draws: &Draws,
        client: u32,
        attempt: u32,
        now: u64,
        free_at: PreciseTime,
    ) -> Verdict {
        if let Some(told) = self.gate.as_mut().and_then(Gate::told) {
            return told;
        }
        if self.for_good {
            return Verdict::Overloaded;
        }
        match self.retry_after {
            RetryAfter::Silent => Verdict::Transient,
            RetryAfter::Fixed(after) => Verdict::After(after),
            _ if self.is_refusing(now) => Verdict::Transient,
            RetryAfter::Spread => {
                let all = self.period.times(self.outside as f64).nanos();
                let draw = draws.world(u64::from(client), attempt, Purpose::Told);
                Verdict::After(Duration::from_nanos(scale(draw, all)))
            }
            RetryAfter::Exact => {
                let next = self.limit.as_ref().map_or(free_at, |tokens| tokens.next().max(free_at));
                let slot = self.reserved.max(next).max(PreciseTime::from_nanos(now));
                self.reserved = slot.plus(self.period);
                let after = slot.nanos().saturating_sub(now).saturating_sub(self.round_trip);
                Verdict::After(Duration::from_nanos(after))
            }
        }
    }

    /// Whether a request gets lost on its way to the door.
    #[inline]
    pub(crate) fn loses(&self, draws: &Draws, client: u32, attempt: u32, now: u64) -> bool {
        if self.losing.is_empty() {
            return false;
        }
        let share = at(&self.losing, now).fold(0.0, f64::max);
        share > 0.0 && unit(draws.world(u64::from(client), attempt, Purpose::Loss)) < share
    }

    /// Whether an attempt fails after it has been served.
    #[inline]
    pub(crate) fn fails(&self, draws: &Draws, client: u32, attempt: u32, now: u64) -> bool {
        if self.failure == 0.0 && self.failing.is_empty() {
            return false;
        }
        let share = at(&self.failing, now).fold(self.failure, f64::max);
        unit(draws.world(u64::from(client), attempt, Purpose::Failure)) < share
    }
}

/// The shares of the times that `now` is in.
fn at(times: &[(u64, u64, f64)], now: u64) -> impl Iterator<Item = f64> + '_ {
    times.iter().filter(move |(from, until, _)| (*from..*until).contains(&now)).map(|(_, _, share)| *share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{RateLimit, Server};

    fn door(server: Server) -> Door {
        Door::new(&Service { server, ..Service::herd(10, 100.0) }, &Contender::new("any", relent::Policy::default()))
    }

    #[test]
    fn a_token_bucket_lets_a_burst_in_and_then_its_rate() {
        let rate_limit = Some(RateLimit { rate: 10.0, burst: 3 });
        let mut door = door(Server { rate_limit, ..Server::default() });
        let mut admitted = |now_ms: u64| door.admits(now_ms * 1_000_000, 0, 1, u64::MAX);
        assert_eq!([0, 0, 0, 0].map(&mut admitted), [true, true, true, false]);
        assert_eq!([99, 100, 100, 200].map(&mut admitted), [false, true, false, true]);
        assert_eq!([10_000, 10_000, 10_000, 10_000].map(&mut admitted), [true, true, true, false]);
    }

    #[test]
    fn exact_times_are_laid_out_at_the_capacity() {
        let retry_after = RetryAfter::Exact;
        let mut door = door(Server { capacity: Some(100.0), retry_after, queue: Some(1), ..Server::default() });
        let draws = Draws::new(1, None);
        let free_at = PreciseTime::from_nanos(1_000_000_000);
        let mut told = |client| match door.refusal(&draws, client, 1, 0, free_at) {
            Verdict::After(after) => after.as_millis(),
            other => panic!("{other:?}"),
        };
        // Less the round trip of 10 ms that the client needs to come back.
        assert_eq!([0, 1, 2].map(&mut told), [990, 1000, 1010]);
    }
}
