//! The exact engine for clients that have an upstream: attempts are asked for when they are sent, and their outcomes told
//! when they are noticed, so there are up to three events an attempt. Where every client is a process of its own and the way
//! is constant, nobody else could come in between, and there is one.
//!
//! The machines are relent's own, joined by its own [`UpstreamCall`]: one a client, and one more for a hedge.

use super::{
    cast::{Cast, Mixed, Role},
    clients::{Clients, Failure, Single},
    door::Door,
    predict::{MOST_INSIDE, Starts},
    work::{Line, Work},
};
use crate::{
    engine::{
        calendar::{Event, Queue},
        control::{TICK, most_attempts, past},
        draws::Purpose,
        task::Task,
    },
    outcome::run::Run,
    scenario::Arrivals,
    time::nanos,
    world::{meter::Judge, meters::Meters},
};
use relent::{
    Decision, HedgeStep, HedgedCall, Outcome, Reason, Timestamp, Upstream, UpstreamAnswer, UpstreamCall, Verdict,
    rng::mix,
};
use std::time::Duration;

/// What happens, as the low bits of an event's number.
const SENDS: u32 = 0;
const ARRIVES: u32 = 1;
const NOTICED: u32 = 2;
const HEDGE_SENDS: u32 = 3;
const HEDGE_ARRIVES: u32 = 4;
const HEDGE_NOTICED: u32 = 5;
/// The other bits are those of the attempt, so that what happens too late is told from what happens now.
const KIND_BITS: u32 = 3;
const ROUNDS: u32 = 1 << 6;

/// Draws of a hedge are apart from those of the attempt that it doubles.
const HEDGED: u32 = 1 << 30;
/// How often a place in a client's queue is asked for until its time is over.
const ASKS: u32 = 16;

/// What will be noticed of an attempt.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Success,
    Failure(Outcome, Verdict),
}

/// One attempt under way, of which the upstream holds something.
struct Flight<'u> {
    call: UpstreamCall<&'u Upstream>,
    sent: u64,
    fate: Fate,
}

struct Client<'u> {
    first: Flight<'u>,
    failures: u32,
    asked: u32,
    over: bool,
    hedging: Option<Box<(HedgedCall, Option<Flight<'u>>)>>,
}

/// Runs the scenario with this queue of events.
pub(crate) fn run<Q: Queue>(task: &Task<'_>, queue: Q) -> Run {
    let (cast, starts) = Cast::new(task);
    let upstreams: Vec<Vec<Upstream>> = cast.roles().iter().map(upstreams_of).collect();
    // Clients of a population go to its processes in turn.
    let mut gone = vec![0usize; upstreams.len()];
    let client = |client: usize| {
        let place = cast.place(client as u32);
        let nth = gone[place];
        gone[place] += 1;
        let own = &upstreams[place];
        let call = own[nth % own.len()].call().wait_while_open(cast.roles()[place].protection.wait_while_open);
        let first = Flight { call, sent: 0, fate: Fate::Success };
        Client { first, failures: 0, asked: 0, over: false, hedging: None }
    };
    let states = (0..starts.len()).map(client).collect();
    if cast.only().is_none() {
        let clients = Mixed::new(task.contender, task.draws, starts.len());
        return World::new(task, queue, clients, cast, starts, states).run();
    }
    let clients = Single::new(&task.contender.policy, task.draws, starts.len());
    World::new(task, queue, clients, cast, starts, states).run()
}

/// The upstreams of a population; one without any machine where it has none.
fn upstreams_of(role: &Role<'_>) -> Vec<Upstream> {
    let processes = role.processes.min(role.clients).max(1);
    (0..processes).map(|_| role.protection.upstream().unwrap_or_else(|| Upstream::new("none"))).collect()
}

struct World<'a, 'u, Q, C> {
    task: &'a Task<'a>,
    queue: Q,
    clients: C,
    cast: Cast<'a>,
    states: Vec<Client<'u>>,
    starts: Starts,
    door: Door,
    line: Line,
    work: Work,
    meter: Meters,
    /// The constant way of all, if there is one: then requests arrive in the order in which they are sent.
    way: Option<u64>,
    until: Option<u64>,
    /// Whether what will be noticed may be noticed at once, since nothing else depends on it meanwhile.
    foresees: bool,
}

impl<'a, 'u, Q: Queue, C: Clients> World<'a, 'u, Q, C> {
    fn new(task: &'a Task<'a>, queue: Q, clients: C, cast: Cast<'a>, starts: Starts, states: Vec<Client<'u>>) -> Self {
        let until = match &task.service.arrivals {
            Arrivals::Open { until, .. } => Some(nanos(*until)),
            Arrivals::Herd { .. } => None,
        };
        let count = starts.len() as u64;
        let mut door = Door::new(task.service, task.contender);
        door.outside = if until.is_none() { count } else { 0 };
        let mut ways = cast.roles().iter().map(|role| role.ways.constant);
        let first = ways.next().flatten();
        let way = first.filter(|_| ways.all(|way| way == first));
        let is_alone =
            cast.roles().iter().all(|role| role.processes >= role.clients && role.protection.hedge.is_none());
        World {
            task,
            queue,
            clients,
            states,
            starts,
            line: Line::new(task.service),
            work: Work::new(&task.service.server),
            meter: Meters::new(count, until.is_some(), cast.populations()),
            cast,
            foresees: is_alone && way.is_some() && door.tells_alike(),
            door,
            way,
            until,
        }
    }

    fn run(mut self) -> Run {
        let clients = self.states.len() as u64;
        for client in 0..self.states.len() as u32 {
            let seed = self.task.draws.call(u64::from(client));
            let spread = self.cast.role(client).policy.call(Timestamp::ZERO, seed).spread();
            let time = self.starts.of(client).saturating_add(nanos(spread));
            self.queue.push(Event { time, client, failures: SENDS });
        }
        let stopped = self.events();
        if self.until.is_some() {
            let (cast, starts) = (&self.cast, &self.starts);
            self.meter.began((0..clients as u32).map(|client| (cast.place(client), starts.of(client))));
        }
        let ended = self.meter.all.connected + self.meter.all.gave_up_total();
        assert!(ended <= clients, "every client ends once: {ended} of {clients}");
        assert!(ended == clients || self.until.is_some() || stopped.is_some(), "{ended} of {clients} clients ended");
        self.meter.all.in_flight = clients - ended;
        let judge = Judge::new(self.task.service, self.task.contender);
        let busy = self.line.busy.nanos();
        self.meter.finish(&judge, self.task.contender, &self.cast.clients(), busy, self.until, stopped)
    }

    fn events(&mut self) -> Option<String> {
        let most = most_attempts(self.states.len() as u64).saturating_mul(4);
        let mut events = 0u64;
        while let Some(Event { time, client, failures: what }) = self.queue.pop() {
            if self.until.is_some_and(|until| time >= until) {
                break;
            }
            if time > self.task.limit {
                return Some(past(self.task.limit));
            }
            self.happens(time, client, what);
            events += 1;
            if events.is_multiple_of(TICK) {
                let stops = self.task.control.stops(events, most);
                if stops.is_some() {
                    return stops;
                }
                if self.line.inside(0) > MOST_INSIDE {
                    return Some(format!("more than {MOST_INSIDE} requests are inside the server"));
                }
            }
        }
        None
    }

    fn happens(&mut self, now: u64, client: u32, what: u32) {
        let state = &self.states[client as usize];
        let (kind, round) = (what & ((1 << KIND_BITS) - 1), what >> KIND_BITS);
        let is_current = round == state.failures % ROUNDS && !state.over;
        match kind {
            // What the server does, it does whether or not somebody waits.
            ARRIVES | HEDGE_ARRIVES => self.arrive(now, client, kind == HEDGE_ARRIVES, is_current),
            _ if !is_current => {}
            SENDS => self.send(now, client),
            NOTICED => self.noticed(now, client, false),
            HEDGE_SENDS => {
                self.hedge(now, client);
            }
            HEDGE_NOTICED => self.noticed(now, client, true),
            _ => unreachable!("there are six kinds"),
        }
    }

    fn push(&mut self, time: u64, client: u32, kind: u32) {
        let round = self.states[client as usize].failures % ROUNDS;
        self.queue.push(Event { time, client, failures: kind | round << KIND_BITS });
    }

    fn draw(&self, client: u32, attempt: u32, salt: u64) -> u64 {
        mix(self.task.draws.world(u64::from(client), attempt, Purpose::Upstream) ^ salt)
    }

    /// The client wants to make an attempt.
    fn send(&mut self, now: u64, client: u32) {
        let attempt = self.states[client as usize].failures + 1;
        let (draw, within) = (self.draw(client, attempt, now), self.patience(now, client));
        let state = &mut self.states[client as usize];
        match state.first.call.ask(Timestamp::from_nanos(now), draw, within) {
            UpstreamAnswer::Go => {
                state.first.sent = now;
                state.asked = 0;
                let hedge = state.first.call.upstream().its_hedge();
                let machine = hedge.map(|hedge| hedge.start(Timestamp::from_nanos(now)));
                let due = machine.as_ref().and_then(HedgedCall::due);
                state.hedging = machine.map(|machine| Box::new((machine, None)));
                if let Some(due) = due {
                    self.push(due.as_nanos(), client, HEDGE_SENDS);
                }
                self.depart(now, client, false);
            }
            UpstreamAnswer::Wait(wait) => self.push(now.saturating_add(nanos(wait)), client, SENDS),
            UpstreamAnswer::Queue(wait) => {
                // Who waits in line is woken when there is a place; here it looks every now and then.
                let left = ASKS.saturating_sub(state.asked).max(1);
                state.asked += 1;
                self.push(now.saturating_add((nanos(wait) / u64::from(left)).max(1)), client, SENDS);
            }
            UpstreamAnswer::Refused(refused) => self.give_up(now, client, refused.reason, false),
        }
    }

    /// How long a client waits before an attempt.
    fn patience(&self, now: u64, client: u32) -> Duration {
        let role = self.cast.role(client);
        let Some(end) = role.ends else { return role.waits };
        let gone = Duration::from_nanos(now.saturating_sub(self.starts.of(client)));
        role.waits.min(end.saturating_sub(gone))
    }

    fn depart(&mut self, now: u64, client: u32, is_hedge: bool) {
        let attempt = self.attempt(client, is_hedge);
        let arrives = now.saturating_add(self.way(client, attempt, Purpose::Out));
        // Over a constant way requests arrive in the order in which they are sent.
        if self.way.is_some() && self.until.is_none_or(|until| arrives < until) {
            self.arrive(arrives, client, is_hedge, true);
        } else {
            self.push(arrives, client, if is_hedge { HEDGE_ARRIVES } else { ARRIVES });
        }
    }

    fn attempt(&self, client: u32, is_hedge: bool) -> u32 {
        let attempt = self.states[client as usize].failures + 1;
        if is_hedge { attempt | HEDGED } else { attempt }
    }

    fn way(&self, client: u32, attempt: u32, purpose: Purpose) -> u64 {
        self.cast.role(client).ways.delay(|| self.task.draws.world(u64::from(client), attempt, purpose))
    }

    fn arrive(&mut self, now: u64, client: u32, is_hedge: bool, is_awaited: bool) {
        let (attempt, draws) = (self.attempt(client, is_hedge), self.task.draws);
        let failures = self.states[client as usize].failures;
        let place = self.cast.place(client);
        self.meter.tell(place, |meter| meter.arrived(now, client, if is_hedge { failures.max(1) } else { failures }));
        let sent = self.flight(client, is_hedge).map_or(now, |flight| flight.sent);
        let patience = sent.saturating_add(self.cast.role(client).manners.timeout);
        let back = self.way(client, attempt, Purpose::Back);
        let (cost, repeatable) = self.cast.role(client).manners.of(&draws, client);
        let again = if repeatable { Verdict::Transient } else { Verdict::Permanent };
        let inside = self.line.inside(now);
        let (noticed, fate) = if self.door.loses(&draws, client, attempt, now) {
            self.meter.tell(place, |meter| meter.rejected(now));
            (patience, Fate::Failure(Outcome::TimedOut, again))
        } else if !self.door.admits(now, inside, failures + 1, patience.saturating_sub(now)) {
            self.refused(now, client, attempt, (now.saturating_add(back), patience))
        } else {
            if self.until.is_none() || failures > 0 {
                self.door.outside = self.door.outside.saturating_sub(1);
            }
            let work = self.work.take(&draws, client, attempt, cost);
            let done = self.line.enter(now, work);
            self.door.entered(now, work.nanos(), done);
            self.meter.worked(place, work);
            self.meter.tell(place, |meter| meter.served(done));
            let reply = done.saturating_add(back);
            if reply > patience {
                (patience, Fate::Failure(Outcome::TimedOut, again))
            } else if self.door.fails(&draws, client, attempt, done) {
                self.meter.tell(place, |meter| meter.rejected(now));
                (reply, Fate::Failure(Outcome::Failure(again), again))
            } else {
                (reply, Fate::Success)
            }
        };
        if !is_awaited {
            return;
        }
        if let Some(flight) = self.flight(client, is_hedge) {
            flight.fate = fate;
            if self.foresees && noticed <= self.task.limit && self.until.is_none_or(|until| noticed < until) {
                self.noticed(noticed, client, is_hedge);
            } else {
                self.push(noticed, client, if is_hedge { HEDGE_NOTICED } else { NOTICED });
            }
        }
    }

    fn refused(&mut self, now: u64, client: u32, attempt: u32, (noticed, patience): (u64, u64)) -> (u64, Fate) {
        let place = self.cast.place(client);
        self.meter.tell(place, |meter| meter.rejected(now));
        if self.states[client as usize].failures == 0 && self.until.is_some() {
            self.door.outside += 1;
        }
        let verdict = self.door.refusal(&self.task.draws, client, attempt, now, self.line.free_at());
        if self.task.contender.protection.has_gate() {
            self.meter.tell(place, |meter| meter.refused_by_server(verdict));
        }
        match noticed <= patience {
            true => (noticed, Fate::Failure(Outcome::Failure(verdict), verdict)),
            false => (patience, Fate::Failure(Outcome::TimedOut, Verdict::Transient)),
        }
    }

    fn flight(&mut self, client: u32, is_hedge: bool) -> Option<&mut Flight<'u>> {
        let state = &mut self.states[client as usize];
        match is_hedge {
            false => Some(&mut state.first),
            true => state.hedging.as_mut().and_then(|hedging| hedging.1.as_mut()),
        }
    }

    /// The client learns what became of an attempt.
    fn noticed(&mut self, now: u64, client: u32, is_hedge: bool) {
        let draw = self.draw(client, self.attempt(client, is_hedge), !now);
        let Some(flight) = self.flight(client, is_hedge) else { return };
        if !flight.call.is_under_way() {
            return;
        }
        let (fate, sent) = (flight.fate, flight.sent);
        let outcome = match fate {
            Fate::Success => Outcome::Success,
            Fate::Failure(outcome, _) => outcome,
        };
        flight.call.outcome(Timestamp::from_nanos(now), outcome, draw);
        let is_first = self.states[client as usize].failures == 0 && !is_hedge;
        let succeeded = matches!(fate, Fate::Success);
        self.meter.tell(self.cast.place(client), |meter| meter.judged(sent, is_first, succeeded));
        match fate {
            Fate::Success => self.connected(now, client),
            Fate::Failure(outcome, verdict) => self.failed(now, client, outcome, verdict),
        }
    }

    fn connected(&mut self, now: u64, client: u32) {
        let attempts = self.states[client as usize].failures + 1;
        self.end(now, client);
        let (started, place) = (self.starts.of(client), self.cast.place(client));
        self.meter.tell(place, |meter| meter.connected(now, started, attempts));
        if self.starts.is_joined() && !(attempts == 1 && self.starts.is_newcomer(client)) {
            self.meter.tell(place, |meter| meter.drained(now));
        }
    }

    /// The call is over: what its attempts still hold is given back.
    fn end(&mut self, now: u64, client: u32) {
        let state = &mut self.states[client as usize];
        state.over = true;
        drop_flight(&mut state.first, now);
        let hedge = state.hedging.take().and_then(|hedging| hedging.1);
        if let Some(mut hedge) = hedge {
            drop_flight(&mut hedge, now);
        }
    }

    fn failed(&mut self, now: u64, client: u32, outcome: Outcome, verdict: Verdict) {
        if let Some(hedging) = &mut self.states[client as usize].hedging {
            match hedging.0.on_failure(verdict) {
                HedgeStep::Start if hedging.1.is_none() => {
                    if self.hedge(now, client) {
                        return;
                    }
                }
                HedgeStep::Wait => return,
                HedgeStep::Start | HedgeStep::Fail => {}
            }
        }
        let failures = self.states[client as usize].failures;
        let (started, place) = (self.starts.of(client), self.cast.place(client));
        let decision = self.clients.fail(Failure { client, place, failures, started, now, verdict });
        let draw = self.draw(client, failures + 1, now.rotate_left(32));
        match decision {
            Decision::Retry(_) if self.cast.role(client).manners.leaves(&self.task.draws, client, failures) => {
                self.give_up(now, client, Reason::Cancelled, true);
            }
            Decision::Retry(delay) => {
                self.cast.role(client).bounds.check(failures + 1, nanos(delay), verdict);
                let state = &mut self.states[client as usize];
                state.hedging = None;
                if !state.first.call.pay(Timestamp::from_nanos(now), outcome, draw) {
                    self.give_up(now, client, Reason::Budget, true);
                    return;
                }
                state.failures += 1;
                self.push(now.saturating_add(nanos(delay)), client, SENDS);
            }
            Decision::GiveUp(reason) => self.give_up(now, client, reason, true),
        }
    }

    /// The call is given up, after an attempt that it made or before one that it may not make.
    fn give_up(&mut self, now: u64, client: u32, reason: Reason, made_one: bool) {
        if matches!(reason, Reason::Budget | Reason::Open | Reason::Shed) {
            self.meter.tell(self.cast.place(client), |meter| meter.refused_by_client(reason));
        }
        if self.until.is_none() {
            self.door.outside = self.door.outside.saturating_sub(1);
        }
        let failures = self.states[client as usize].failures;
        self.end(now, client);
        let place = self.cast.place(client);
        self.meter.tell(place, |meter| meter.gave_up(now, reason, failures + u32::from(made_one)));
    }

    /// The client starts a second attempt beside the first, if its upstream lets it. False if nothing is under way.
    fn hedge(&mut self, now: u64, client: u32) -> bool {
        let (attempt, time) = (self.attempt(client, true), Timestamp::from_nanos(now));
        let (draw, other) = (self.draw(client, attempt, now), self.draw(client, attempt, !now));
        let (_, repeatable) = self.cast.role(client).manners.of(&self.task.draws, client);
        let state = &mut self.states[client as usize];
        let Some(hedging) = &mut state.hedging else { return false };
        if hedging.1.is_some() {
            return true;
        }
        let mut call = state.first.call.hedge();
        let granted = repeatable
            && call.pay(time, Outcome::Failure(Verdict::Transient), draw)
            && call.ask(time, other, Duration::ZERO) == UpstreamAnswer::Go;
        if !granted {
            return hedging.0.refused();
        }
        hedging.0.begun(time);
        hedging.1 = Some(Flight { call, sent: now, fate: Fate::Success });
        self.depart(now, client, true);
        true
    }
}

/// Nobody waits for its outcome any more.
fn drop_flight(flight: &mut Flight<'_>, now: u64) {
    if flight.call.is_under_way() {
        flight.call.outcome(Timestamp::from_nanos(now), Outcome::Dropped, 0);
    }
    flight.call.give_back();
}
