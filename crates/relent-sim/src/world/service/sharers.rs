//! Clients who share upstreams, or could: what happens to one is seen by the others, so that everything happens in its order.
//!
//! The upstreams are few and stay in the caches. Of a client nothing is kept but what it has paid for its next attempt, where
//! somebody asks for that; how many attempts it has made goes with its events, and what it has under way goes with its
//! [flight](super::flights). So a client has paid if it has made an attempt before, and there is a budget.

use super::{
    cast::{Cast, Role},
    flights::{Flights, Flying, NEVER},
    habits::Habits,
    held::{Fate, Flight, Hedging, Hold},
    players::common_way,
};
use crate::engine::control::Control;
use relent::{
    Breaker, BreakerPass, BreakerState, Budget, HedgedCall, Outcome, Timestamp, Upstream, UpstreamAnswer, UpstreamCall,
    UpstreamSaved, Withdrawal,
};
use std::{cell::Cell, collections::BTreeMap, time::Duration};

/// The clients, whose upstreams have neither limits nor hedges.
pub(super) struct Sharers<'u> {
    hosts: &'u [Host<'u>],
    /// Which of them each client has; nothing where they go round.
    of: Vec<u32>,
    clients: u32,
    /// What each client has paid for its next attempt: nothing where nobody asks.
    paid: Vec<u64>,
    /// What does not fit there.
    dear: BTreeMap<u32, Withdrawal>,
    /// Whether every attempt asks for it.
    recalls: bool,
    /// Whether nobody's machines care how attempts end, or hinder them: there is nothing but budgets that count first
    /// attempts and retries.
    only_counts: bool,
    /// When the last of the open breakers for which somebody waits lets probes through.
    open_until: u64,
    /// How many first attempts there will be, and how many attempts under way will fail.
    firsts: u32,
    failing: u64,
    /// The leave of a breaker, if there is one, goes with it.
    flights: Flights<Option<BreakerPass>>,
    now: Client<'u>,
}

/// The client at hand.
struct Client<'u> {
    id: u32,
    failures: u32,
    host: &'u Host<'u>,
    flight: Flight,
    leave: Leave,
}

/// By what leave the attempt under way was begun.
#[derive(Clone, Copy)]
enum Leave {
    None,
    /// Nothing hindered it.
    Free,
    /// The breaker is closed: just now, and until something else happens.
    Closed,
    /// The pass of a breaker.
    Pass(BreakerPass),
}

/// The machines of a process.
pub(super) struct Host<'u> {
    upstream: &'u Upstream,
    budget: Option<&'u Budget>,
    breaker: Option<&'u Breaker>,
    waits_while_open: bool,
    /// When its breaker, which has opened, lets probes through.
    open_until: Cell<Timestamp>,
    habits: Habits,
}

impl<'u> Host<'u> {
    /// Those of the processes of all populations.
    pub(super) fn all(cast: &Cast<'_>, upstreams: &'u [Vec<Upstream>]) -> Vec<Host<'u>> {
        let own = cast.roles().iter().zip(upstreams);
        own.flat_map(|(role, own)| own.iter().map(|up| Host::new(up, role.protection.wait_while_open))).collect()
    }

    fn new(upstream: &'u Upstream, waits_while_open: bool) -> Host<'u> {
        let budget = upstream.its_budget();
        let habits = Habits::of(budget);
        let breaker = upstream.its_breaker();
        let open_until = Cell::new(Timestamp::ZERO);
        Host { upstream, budget, breaker, waits_while_open, open_until, habits }
    }

    /// Whether what was paid is asked for again: who is refused by a breaker gets it back.
    const fn asks_what_was_paid(&self) -> bool {
        self.budget.is_some() && (self.habits.recalls || self.breaker.is_some())
    }
}

/// A withdrawal in one word: nothing, what it cost above its mark, or one that is kept elsewhere.
const NOTHING: u64 = 0;
const DEAR: u64 = u64::MAX;
const COST_AT: u32 = 48;
const COSTS: u32 = (1 << 16) - 2;

/// `None` if it does not fit. Those of a cost of nothing are told from nothing.
#[inline(always)]
const fn packed(paid: Withdrawal) -> Option<u64> {
    let fits = paid.mark() < 1 << COST_AT && paid.cost() < COSTS;
    if fits { Some((paid.cost() as u64 + 1) << COST_AT | paid.mark()) } else { None }
}

#[inline(always)]
const fn unpacked(word: u64) -> Withdrawal {
    Withdrawal::new((word >> COST_AT) as u32 - 1, word & ((1 << COST_AT) - 1))
}

impl<'u> Sharers<'u> {
    /// Clients of a population go to its processes in turn. `None` if there are no processes.
    pub(super) fn new(cast: &Cast<'_>, hosts: &'u [Host<'u>], clients: u32, control: &Control) -> Option<Sharers<'u>> {
        let now = Client { id: 0, failures: 0, host: hosts.first()?, flight: Flight::sent(0), leave: Leave::None };
        let of = if cast.only().is_some() { Vec::new() } else { in_turn(cast, clients, control) };
        let asks = hosts.iter().any(Host::asks_what_was_paid);
        let paid = if asks { vec![NOTHING; clients as usize] } else { Vec::new() };
        let recalls = hosts.iter().any(|host| host.habits.recalls);
        let only_counts = hosts.iter().all(|host| host.breaker.is_none() && !host.habits.hears);
        Some(Sharers {
            hosts,
            of,
            clients,
            paid,
            dear: BTreeMap::new(),
            recalls,
            only_counts,
            open_until: 0,
            firsts: clients,
            failing: 0,
            flights: Flights::new(),
            now,
        })
    }

    #[inline(always)]
    fn host(&self, client: u32) -> &'u Host<'u> {
        match self.of.get(client as usize) {
            Some(host) => &self.hosts[*host as usize],
            None if self.hosts.len() == 1 => self.now.host,
            None => &self.hosts[client as usize % self.hosts.len()],
        }
    }

    /// What the client at hand has paid for the attempt that it makes now.
    #[inline(always)]
    fn paid(&self) -> Option<Withdrawal> {
        let client = self.now.id;
        match self.paid.get(client as usize).copied() {
            _ if self.now.failures == 0 => None,
            None | Some(NOTHING) => None,
            Some(DEAR) => self.dear.get(&client).copied(),
            Some(word) => Some(unpacked(word)),
        }
    }

    /// Asks as every call does, where something may hinder the attempt.
    #[inline(never)]
    fn ask_all(&mut self, now: Timestamp, draw: u64, within: Duration) -> UpstreamAnswer {
        let host = self.now.host;
        let mut call = host.upstream.call().wait_while_open(host.waits_while_open);
        call.load(UpstreamSaved { paid: self.paid(), has_started: self.now.failures > 0, booked: None });
        let answer = call.ask(now, draw, within);
        match call.save_attempt() {
            Some((_, pass)) => self.now.leave = pass.map_or(Leave::Free, Leave::Pass),
            // What was paid is as it was if it waits, and is refunded if it is refused.
            None => _ = call.save(),
        }
        answer
    }
}

/// Which process each client is in.
fn in_turn(cast: &Cast<'_>, clients: u32, control: &Control) -> Vec<u32> {
    let processes = cast.roles().iter().map(|role| role.processes.min(role.clients).max(1));
    let mut end = 0;
    let mut turns: Vec<(u64, u64, u64)> = Vec::new();
    for processes in processes {
        turns.push((end, processes, 0));
        end += processes;
    }
    let host = |client: u32| {
        let (begin, processes, nth) = &mut turns[cast.place(client)];
        *nth += 1;
        (*begin + (*nth - 1) % *processes) as u32
    };
    control.each(clients as usize).map(host).collect()
}

impl<'u> Hold<'u> for Sharers<'u> {
    const KEEPS_FLIGHTS: bool = true;

    fn clients(&self) -> u32 {
        self.clients
    }

    #[inline(always)]
    fn take(&mut self, client: u32) {
        self.take_sender(client, 0);
    }

    #[inline(always)]
    fn take_sender(&mut self, client: u32, failures: u32) {
        let host = self.host(client);
        (self.now.id, self.now.failures, self.now.host) = (client, failures, host);
        self.now.leave = Leave::None;
        // Without breakers nobody asks twice for a first attempt.
        self.firsts = self.firsts.saturating_sub(u32::from(failures == 0));
    }

    /// Who succeeds tells no budget that only counts. Who fails pays for a retry, and so do the others, who are refused after
    /// the same time: in the order in which they are sent, once everybody's first attempt is counted.
    #[inline(always)]
    fn foresees(&self, fate: Fate) -> bool {
        self.only_counts && (matches!(fate, Fate::Success) || self.firsts == 0 && self.failing == 0)
    }

    #[inline(always)]
    fn next_to_land(&self) -> Option<(u64, u32)> {
        let next = self.flights.next();
        (next != NEVER).then_some(next)
    }

    #[inline(always)]
    fn land(&mut self) -> Option<Flight> {
        let Flying { client, failures, memory: pass, flight } = self.flights.pop()?;
        self.failing -= u64::from(!matches!(flight.fate, Fate::Success));
        let host = self.host(client);
        let now = &mut self.now;
        (now.id, now.failures, now.host) = (client, failures, host);
        now.flight.sent = flight.sent;
        now.leave = pass.map_or(Leave::Free, Leave::Pass);
        Some(flight)
    }

    /// What was just written is not read again in larger pieces, for which the processor would wait: the leave of a closed
    /// breaker is asked for once more.
    #[inline(always)]
    fn fly(&mut self, time: u64, fate: Fate) {
        let Client { id: client, failures, ref flight, ref leave, .. } = self.now;
        let pass = match *leave {
            Leave::Closed => self.now.host.breaker.and_then(Breaker::pass_closed),
            Leave::Pass(pass) => Some(pass),
            Leave::None | Leave::Free => None,
        };
        self.failing += u64::from(!matches!(fate, Fate::Success));
        self.flights.push(time, Flying { client, failures, memory: pass, flight: Flight { sent: flight.sent, fate } });
    }

    #[inline(always)]
    fn foresees_waits(&self, from: u64) -> bool {
        from < self.open_until
    }

    /// An open breaker lets nobody through before its time, whatever happens.
    #[inline(always)]
    fn waits(
        &self,
        client: u32,
        now: Timestamp,
        draw: impl FnOnce() -> u64,
        within: impl FnOnce() -> Duration,
    ) -> Option<Duration> {
        let host = self.host(client);
        let breaker = host.breaker.filter(|_| host.waits_while_open)?;
        if now >= host.open_until.get() {
            return None;
        }
        let draw = draw();
        let refused = breaker.pass(now, draw).err().filter(|refused| refused.again != Timestamp::MAX)?;
        let wait = refused.wait(now, draw);
        (wait <= within()).then_some(wait)
    }

    #[inline(always)]
    fn put_back(&mut self) {}

    #[inline(always)]
    fn is_far(&self) -> bool {
        self.recalls
    }

    #[inline(always)]
    fn bring_near(&self, client: u32) -> u64 {
        self.paid.get(client as usize).copied().unwrap_or_default()
    }

    #[inline(always)]
    fn failures(&self) -> u32 {
        self.now.failures
    }

    #[inline(always)]
    fn fail(&mut self) {
        self.now.failures += 1;
    }

    /// Nothing happens any more to who has ended.
    #[inline(always)]
    fn is_over(&self) -> bool {
        false
    }

    #[inline(always)]
    fn breaker(&self) -> Option<&'u Breaker> {
        self.now.host.breaker
    }

    #[inline(always)]
    fn flight(&mut self) -> &mut Flight {
        &mut self.now.flight
    }

    /// What an [`UpstreamCall`] does where nothing hinders the attempt is done here at once.
    #[inline(always)]
    fn ask(&mut self, now: Timestamp, draw: u64, within: Duration) -> UpstreamAnswer {
        let Client { failures, host, .. } = self.now;
        let paid = match host.budget {
            Some(_) if failures == 0 && host.habits.refuses_first => return self.ask_all(now, draw, within),
            Some(_) if failures > 0 && host.habits.recalls => match self.paid() {
                None => return self.ask_all(now, draw, within),
                paid => paid,
            },
            _ => None,
        };
        let leave = match host.breaker {
            None => Leave::Free,
            Some(breaker) if breaker.pass_closed().is_some() => Leave::Closed,
            Some(breaker) => match breaker.pass(now, draw) {
                Ok(pass) => Leave::Pass(pass),
                // Who waits keeps what was paid, and asks again and again. Who is refused asks once more for the end of the call.
                Err(refused) => {
                    let wait = refused.wait(now, draw);
                    if host.waits_while_open && refused.again != Timestamp::MAX && wait <= within {
                        return UpstreamAnswer::Wait(wait);
                    }
                    return self.ask_all(now, draw, within);
                }
            },
        };
        match (host.budget, paid) {
            (Some(budget), _) if failures == 0 => _ = budget.start(now, 0),
            (Some(budget), Some(paid)) => budget.retry(now, paid),
            _ => {}
        }
        self.now.leave = leave;
        UpstreamAnswer::Go
    }

    #[inline(always)]
    fn is_under_way(&self) -> bool {
        !matches!(self.now.leave, Leave::None)
    }

    #[inline(always)]
    fn outcome(&mut self, now: Timestamp, outcome: Outcome, draw: u64) {
        let Client { host, leave, .. } = self.now;
        self.now.leave = Leave::None;
        if let Some(budget) = host.budget
            && host.habits.hears
        {
            let paid = if host.habits.recalls { self.paid() } else { None };
            budget.outcome(now, outcome, paid);
        }
        if let (Leave::Pass(pass), Some(breaker)) = (leave, host.breaker) {
            let took = now.since(Timestamp::from_nanos(self.now.flight.sent));
            let change = match outcome {
                Outcome::Dropped => return breaker.give_back(pass),
                failed if failed.is_load() => breaker.failed(pass, now, took, draw),
                _ => breaker.succeeded(pass, now, took, draw),
            };
            if change.is_some_and(|change| change.to == BreakerState::Open) {
                let until = breaker.worth_asking_at(now);
                host.open_until.set(until);
                if host.waits_while_open {
                    self.open_until = self.open_until.max(until.as_nanos());
                }
            }
        }
    }

    #[inline(always)]
    fn pay(&mut self, now: Timestamp, failure: Outcome, draw: u64) -> bool {
        let Some(budget) = self.now.host.budget else { return true };
        let Some(paid) = budget.withdraw(now, failure, draw) else { return false };
        if let Some(place) = self.paid.get_mut(self.now.id as usize) {
            *place = match packed(paid) {
                Some(word) => word,
                None => {
                    self.dear.insert(self.now.id, paid);
                    DEAR
                }
            };
        }
        true
    }

    /// What was paid has been told of or refunded by now.
    fn end(&mut self, now: Timestamp) {
        if self.is_under_way() {
            self.outcome(now, Outcome::Dropped, 0);
        }
    }

    fn asked_in_vain(&mut self) -> u32 {
        0
    }

    fn begin_hedging(&mut self, _: Option<HedgedCall>) {}

    fn its_hedge(&self) -> Option<&'u relent::Hedge> {
        None
    }

    fn hedging(&mut self) -> Option<&mut Hedging<'u>> {
        None
    }

    fn second_flight(&mut self) -> Option<&mut Flight> {
        None
    }

    fn hedge(&self) -> Option<UpstreamCall<&'u Upstream>> {
        None
    }
}

/// Whether clients can be kept as sharers: over a constant way it is known when an attempt is sent what will be noticed of
/// it, and without limits and hedges a client does one thing at a time.
pub(super) fn can_share(cast: &Cast<'_>) -> bool {
    let does_one_thing = |role: &Role<'_>| role.protection.limit.is_none() && role.protection.hedge.is_none();
    common_way(cast).is_some() && cast.roles().iter().all(does_one_thing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_withdrawal_is_a_word_if_it_fits() {
        for (cost, mark) in [(0, 0), (1, 7), (COSTS - 1, (1 << COST_AT) - 1), (14, 1 << 47)] {
            let paid = Withdrawal::new(cost, mark);
            let word = packed(paid).unwrap();
            assert_eq!(unpacked(word), paid);
            assert!(word != NOTHING && word != DEAR);
        }
        for (cost, mark) in [(COSTS, 0), (u32::MAX, 0), (1, 1 << COST_AT), (1, u64::MAX)] {
            assert_eq!(packed(Withdrawal::new(cost, mark)), None);
        }
    }
}
