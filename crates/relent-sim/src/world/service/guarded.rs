//! The exact engine for clients that have an upstream: attempts are asked for when they are sent, and their outcomes told
//! when they are noticed, so there are up to three events an attempt. Where every client is a process of its own and the way
//! is constant, nobody else could come in between, and there is one.
//!
//! The machines are relent's own, joined by its own [`UpstreamCall`]: one a client, and one more for a hedge.

use super::{
    clients::{Clients, Failure, Single},
    door::Door,
    predict::{MOST_INSIDE, Manners, Starts},
    work::{Line, Work},
};
use crate::{
    engine::{
        calendar::{Event, Queue},
        control::{TICK, most_attempts, past},
        draws::Purpose,
        task::Task,
        travel::Ways,
    },
    outcome::run::Run,
    scenario::Arrivals,
    time::nanos,
    world::{
        bounds::Bounds,
        meter::{Judge, Meter},
    },
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
    let starts = Starts::new(task.service, task.draws);
    let processes = task.service.processes().min(starts.len() as u64).max(1);
    let upstreams: Vec<Upstream> =
        (0..processes).map(|_| task.contender.protection.upstream().expect("its settings were checked")).collect();
    let waits = task.contender.protection.wait_while_open;
    let client = |i: usize| {
        let call = upstreams[i % upstreams.len()].call().wait_while_open(waits);
        let first = Flight { call, sent: 0, fate: Fate::Success };
        Client { first, failures: 0, asked: 0, over: false, hedging: None }
    };
    let states = (0..starts.len()).map(client).collect();
    let clients = Single::new(&task.contender.policy, task.draws, starts.len());
    World::new(task, queue, clients, starts, states).run()
}

struct World<'a, 'u, Q> {
    task: &'a Task<'a>,
    queue: Q,
    clients: Single<'a>,
    states: Vec<Client<'u>>,
    starts: Starts,
    manners: Manners,
    door: Door,
    line: Line,
    work: Work,
    meter: Meter,
    bounds: Bounds,
    ways: Ways,
    until: Option<u64>,
    /// Whether what will be noticed may be noticed at once, since nothing else depends on it meanwhile.
    foresees: bool,
    /// When a call ends, counted from its beginning, and how long it waits at most.
    ends: Option<Duration>,
    waits: Duration,
}

impl<'a, 'u, Q: Queue> World<'a, 'u, Q> {
    fn new(task: &'a Task<'a>, queue: Q, clients: Single<'a>, starts: Starts, states: Vec<Client<'u>>) -> Self {
        let until = match &task.service.arrivals {
            Arrivals::Open { until, .. } => Some(nanos(*until)),
            Arrivals::Herd { .. } => None,
        };
        let count = starts.len() as u64;
        let mut door = Door::new(task.service, task.contender);
        door.outside = if until.is_none() { count } else { 0 };
        let ways = Ways::new(task.service.network);
        let is_alone = task.service.processes() >= count && task.contender.protection.hedge.is_none();
        let settings = task.contender.policy.settings();
        World {
            task,
            queue,
            clients,
            states,
            starts,
            manners: Manners::new(task.service, &task.contender.policy),
            line: Line::new(task.service),
            work: Work::new(&task.service.server),
            meter: Meter::new(count, until.is_some()),
            bounds: Bounds::new(&task.contender.policy, 1),
            foresees: is_alone && ways.constant.is_some() && door.tells_alike(),
            door,
            ways,
            until,
            ends: [settings.max_elapsed, settings.timeout].into_iter().flatten().min(),
            waits: settings.max_pushback.unwrap_or(Duration::MAX),
        }
    }

    fn run(mut self) -> Run {
        let clients = self.states.len() as u64;
        for client in 0..self.states.len() as u32 {
            let seed = self.task.draws.call(u64::from(client));
            let spread = self.task.contender.policy.call(Timestamp::ZERO, seed).spread();
            let time = self.starts.of(client).saturating_add(nanos(spread));
            self.queue.push(Event { time, client, failures: SENDS });
        }
        let stopped = self.events();
        if self.until.is_some() {
            self.meter.began((0..clients as u32).map(|client| self.starts.of(client)));
        }
        let ended = self.meter.connected + self.meter.gave_up_total();
        assert!(ended <= clients, "every client ends once: {ended} of {clients}");
        assert!(ended == clients || self.until.is_some() || stopped.is_some(), "{ended} of {clients} clients ended");
        self.meter.in_flight = clients - ended;
        let judge = Judge::new(self.task.service, self.task.contender);
        self.meter.finish(&judge, clients, self.line.busy.nanos(), self.until, stopped)
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
        let Some(end) = self.ends else { return self.waits };
        let gone = Duration::from_nanos(now.saturating_sub(self.starts.of(client)));
        self.waits.min(end.saturating_sub(gone))
    }

    fn depart(&mut self, now: u64, client: u32, is_hedge: bool) {
        let attempt = self.attempt(client, is_hedge);
        let arrives = now.saturating_add(self.way(client, attempt, Purpose::Out));
        // Over a constant way requests arrive in the order in which they are sent.
        if self.ways.constant.is_some() && self.until.is_none_or(|until| arrives < until) {
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
        self.ways.delay(|| self.task.draws.world(u64::from(client), attempt, purpose))
    }

    fn arrive(&mut self, now: u64, client: u32, is_hedge: bool, is_awaited: bool) {
        let (attempt, draws) = (self.attempt(client, is_hedge), self.task.draws);
        let failures = self.states[client as usize].failures;
        self.meter.arrived(now, client, if is_hedge { failures.max(1) } else { failures });
        let sent = self.flight(client, is_hedge).map_or(now, |flight| flight.sent);
        let patience = sent.saturating_add(self.manners.timeout);
        let back = self.way(client, attempt, Purpose::Back);
        let (cost, repeatable) = self.manners.of(&draws, client);
        let again = if repeatable { Verdict::Transient } else { Verdict::Permanent };
        let inside = self.line.inside(now);
        let (noticed, fate) = if self.door.loses(&draws, client, attempt, now) {
            self.meter.rejected(now);
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
            self.meter.served(done);
            let reply = done.saturating_add(back);
            if reply > patience {
                (patience, Fate::Failure(Outcome::TimedOut, again))
            } else if self.door.fails(&draws, client, attempt, done) {
                self.meter.rejected(now);
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
        self.meter.rejected(now);
        if self.states[client as usize].failures == 0 && self.until.is_some() {
            self.door.outside += 1;
        }
        let verdict = self.door.refusal(&self.task.draws, client, attempt, now, self.line.free_at());
        if self.task.contender.protection.has_gate() {
            self.meter.refused_by_server(verdict);
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
        self.meter.judged(sent, is_first, matches!(fate, Fate::Success));
        match fate {
            Fate::Success => self.connected(now, client),
            Fate::Failure(outcome, verdict) => self.failed(now, client, outcome, verdict),
        }
    }

    fn connected(&mut self, now: u64, client: u32) {
        let attempts = self.states[client as usize].failures + 1;
        self.end(now, client);
        let started = self.starts.of(client);
        self.meter.connected(now, started, attempts);
        if self.starts.is_joined() && !(attempts == 1 && self.starts.is_newcomer(client)) {
            self.meter.drained(now);
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
        let started = self.starts.of(client);
        let decision = self.clients.fail(Failure { client, failures, started, now, verdict });
        let draw = self.draw(client, failures + 1, now.rotate_left(32));
        match decision {
            Decision::Retry(_) if self.manners.leaves(&self.task.draws, client, failures) => {
                self.give_up(now, client, Reason::Cancelled, true);
            }
            Decision::Retry(delay) => {
                self.bounds.check(failures + 1, nanos(delay), verdict);
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
            self.meter.refused_by_client(reason);
        }
        if self.until.is_none() {
            self.door.outside = self.door.outside.saturating_sub(1);
        }
        let failures = self.states[client as usize].failures;
        self.end(now, client);
        self.meter.gave_up(now, reason, failures + u32::from(made_one));
    }

    /// The client starts a second attempt beside the first, if its upstream lets it. False if nothing is under way.
    fn hedge(&mut self, now: u64, client: u32) -> bool {
        let (attempt, time) = (self.attempt(client, true), Timestamp::from_nanos(now));
        let (draw, other) = (self.draw(client, attempt, now), self.draw(client, attempt, !now));
        let (_, repeatable) = self.manners.of(&self.task.draws, client);
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
