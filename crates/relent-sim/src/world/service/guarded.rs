//! The exact engine for clients that have an upstream: attempts are asked for when they are sent, and their outcomes told
//! when they are noticed, so there are up to three events an attempt. Where every client is a process of its own and the way
//! is constant, nobody else could come in between, and there is one. Where they share, what is noticed over a constant way
//! comes nearly in the order of the attempts, and [stands in lanes](super::flights) instead of being an event.
//!
//! The machines are relent's own, joined by its own [`UpstreamCall`]: one a client, and one more for a hedge.

use super::{
    cast::{Cast, Mixed, Role},
    chances::Chances,
    clients::{Clients, Failure, Single},
    flights::NEVER,
    hedged::{self, only_hedge},
    held::{All, Fate, Flight, Hold, TOGETHER, near},
    players::{can_be_played, common_way, foresees},
    predict::{patience, run_played, upstream_draw},
    reception::{Attempt, Reception},
    sharers::{Host, Sharers, can_share},
    starts::Starts,
    tripping::{self, only_trip},
};
use crate::{
    engine::{
        calendar::{Event, PutOff, Queue},
        control::{Control, TICK, most_attempts, past},
        draws::Purpose,
        task::Task,
    },
    outcome::run::Run,
    scenario::Protection,
    time::nanos,
    world::meter::Meter,
};
use relent::{Breaker, Decision, HedgeStep, HedgedCall, Outcome, Reason, Timestamp, Upstream, UpstreamAnswer, Verdict};
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

/// Where flights are kept, the number of an event is that of the attempts before; this one is the end of a flight.
const LANDS: u32 = u32::MAX;

/// How often a place in a client's queue is asked for until its time is over.
const ASKS: u32 = 16;

/// Runs the scenario with this queue of events.
pub(crate) fn run<Q: Queue>(task: &Task<'_>, queue: Q) -> Run {
    let (cast, starts) = Cast::new(task);
    let kept = match () {
        () if can_be_played(task, &cast) && cast.only().is_some() => Kept::Own,
        () if can_be_played(task, &cast) => Kept::Players,
        () if only_hedge(task, &cast) => Kept::Hedgers,
        () if only_trip(task, &cast, &starts) => Kept::Trippers,
        () if can_share(&cast) => Kept::Sharers,
        () => Kept::All,
    };
    run_as(task, queue, (cast, starts), kept)
}

/// How clients are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// What can come of a client's own machines, where that is little; else as below.
    Own,
    /// One client plays all of their population, each with an upstream of its own.
    Players,
    /// Of one who only hedges nothing is kept but its first attempt, until the second is sent.
    Hedgers,
    /// As below, of those who share nothing but breakers.
    Trippers,
    /// What they have under way is kept in the order in which it ends.
    Sharers,
    /// Everything of everybody.
    All,
}

pub(super) fn run_as<Q: Queue>(task: &Task<'_>, queue: Q, (cast, starts): (Cast<'_>, Starts), kept: Kept) -> Run {
    let clients = starts.len() as u32;
    match kept {
        Kept::Own | Kept::Players => return run_played(task, queue, (cast, starts), kept == Kept::Own),
        Kept::Hedgers => return hedged::run(task, queue, (cast, starts)),
        Kept::Trippers | Kept::Sharers | Kept::All => {}
    }
    let upstreams: Vec<Vec<Upstream>> = cast.roles().iter().map(|role| upstreams_of(role, task.control)).collect();
    if let (Kept::Trippers, [upstreams]) = (kept, &upstreams[..]) {
        return tripping::run(task, queue, (cast, starts), upstreams);
    }
    let hosts = if kept == Kept::Sharers { Host::all(&cast, &upstreams) } else { Vec::new() };
    if let Some(held) = Sharers::new(&cast, &hosts, clients, task.control) {
        return run_with(task, queue, cast, starts, held);
    }
    let held = All::new(&cast, &upstreams, starts.len(), task.control);
    run_with(task, queue, cast, starts, held)
}

fn run_with<'u, Q: Queue>(task: &Task<'_>, queue: Q, cast: Cast<'_>, starts: Starts, held: impl Hold<'u>) -> Run {
    if cast.only().is_none() {
        let clients = Mixed::new(task.contender, task.draws, starts.len());
        return World::<_, _, _, false>::new(task, queue, clients, cast, starts, held).run();
    }
    let clients = Single::new(&task.contender.policy, task.draws, starts.len());
    let world = World::<_, _, _, false>::new(task, queue, clients, cast, starts, held);
    if world.is_plain() { World::<_, _, _, true>::from(world).run() } else { world.run() }
}

/// Clients who would ask and have to wait, as a function of the time, the client and its failures.
struct Waiting<A, F> {
    is_asked: A,
    waits: F,
}

impl<A: Fn(u64) -> bool, F: FnMut(u64, u32, u32) -> Option<u64>> PutOff for Waiting<A, F> {
    #[inline(always)]
    fn is_asked(&self, from: u64) -> bool {
        (self.is_asked)(from)
    }

    #[inline(always)]
    fn until(&mut self, Event { time, client, failures }: Event) -> Option<u64> {
        (self.waits)(time, client, failures)
    }
}

/// The upstreams of a population; one without any machine where it has none.
fn upstreams_of(role: &Role<'_>, control: &Control) -> Vec<Upstream> {
    let mut processes = role.processes.min(role.clients).max(1);
    if processes == role.clients && remembers_nothing(role.protection) {
        processes = 1;
    }
    let one = || {
        let upstream = role.protection.upstream().unwrap_or_else(|| Upstream::new("none"));
        let breaker = upstream.its_breaker().map(Breaker::for_one_thread);
        breaker.into_iter().fold(upstream, Upstream::breaker)
    };
    // A list that grows leaves its former places behind, which are many megabytes.
    let mut all = Vec::new();
    let _ = all.try_reserve_exact(processes as usize);
    all.extend(control.each(processes as usize).map(|_| one()));
    all
}

/// Whether upstreams of this kind are the same before and after a call, so that one is as good as many.
const fn remembers_nothing(protection: &Protection) -> bool {
    let Protection { budget: None, breaker: None, limit: None, hedge: Some(hedge), .. } = protection else {
        return false;
    };
    hedge.quantile.is_none()
}

/// `PLAIN` is a world in which much of what could happen does not, as in [`predict`](super::predict).
struct World<'a, Q, C, S, const PLAIN: bool> {
    task: &'a Task<'a>,
    queue: Q,
    clients: C,
    cast: Cast<'a>,
    held: S,
    chances: Vec<Chances>,
    starts: Starts,
    server: Reception,
    /// The constant way of all, if there is one: then requests arrive in the order in which they are sent.
    way: Option<u64>,
    /// Whether what will be noticed may be noticed at once, since nothing else depends on it meanwhile.
    foresees: bool,
    /// How often clients would have asked only to wait, and were not let to.
    put_off: u64,
}

impl<'a, Q, C, S> From<World<'a, Q, C, S, false>> for World<'a, Q, C, S, true> {
    fn from(world: World<'a, Q, C, S, false>) -> Self {
        let World { task, queue, clients, cast, held, chances, starts, server, way, foresees, put_off } = world;
        World { task, queue, clients, cast, held, chances, starts, server, way, foresees, put_off }
    }
}

impl<'a, 'u, Q: Queue, C: Clients, S: Hold<'u>, const PLAIN: bool> World<'a, Q, C, S, PLAIN> {
    fn new(task: &'a Task<'a>, queue: Q, clients: C, cast: Cast<'a>, starts: Starts, held: S) -> Self {
        World {
            task,
            queue,
            clients,
            held,
            chances: cast.roles().iter().map(Chances::of).collect(),
            way: common_way(&cast),
            server: Reception::new(task, starts.len() as u64, cast.populations()),
            starts,
            foresees: foresees(task, &cast),
            put_off: 0,
            cast,
        }
    }

    fn is_plain(&self) -> bool {
        let Some(role) = self.cast.only() else { return false };
        let is_alike = role.manners.is_plain() && role.protection.hedge.is_none();
        let is_herd = self.server.until.is_none() && !self.starts.is_joined();
        is_alike && is_herd && self.way.is_some() && self.server.door.is_plain()
    }

    /// Which population a client is of.
    #[inline(always)]
    fn place(&self, client: u32) -> usize {
        if PLAIN { 0 } else { self.cast.place(client) }
    }

    #[inline(always)]
    fn role(&self, client: u32) -> &Role<'a> {
        &self.cast.roles()[self.place(client)]
    }

    #[inline(always)]
    fn tell(&mut self, client: u32, what: impl Fn(&mut Meter)) {
        if PLAIN { what(&mut self.server.meter.all) } else { self.server.meter.tell(self.cast.place(client), what) }
    }

    /// The end of open arrivals.
    #[inline(always)]
    fn until(&self) -> Option<u64> {
        if PLAIN { None } else { self.server.until }
    }

    fn run(mut self) -> Run {
        let clients = u64::from(self.held.clients());
        for client in self.task.control.each(self.starts.len()) {
            let time = self.cast.first_attempt(&self.task.draws, &self.starts, client);
            self.queue.push(Event { time, client, failures: SENDS });
        }
        let stopped = self.task.control.stopped().or_else(|| self.events());
        let ended = self.server.ended(clients);
        let is_over = ended == clients || self.server.until.is_some() || stopped.is_some();
        assert!(is_over, "{ended} of {clients} clients ended");
        self.server.meter.all.in_flight = clients - ended;
        self.server.finish(self.task, &self.cast, &self.starts, stopped)
    }

    fn events(&mut self) -> Option<String> {
        let most = most_attempts(u64::from(self.held.clients())).saturating_mul(4);
        let (mut events, mut far) = (0u64, 0);
        while let Some(Event { time, client, failures: what }) = self.next() {
            if self.until().is_some_and(|until| time >= until) {
                break;
            }
            if time > self.task.limit {
                return Some(past(self.task.limit));
            }
            if what == LANDS && S::KEEPS_FLIGHTS {
                let Some(flight) = self.held.land() else { break };
                self.learns(time, client, false, flight);
            } else {
                if far == 0 && self.held.is_far() {
                    let mut words = 0;
                    self.queue.coming(TOGETHER, |client| words ^= self.held.bring_near(client));
                    near(words);
                    far = TOGETHER;
                }
                far = far.saturating_sub(1);
                if S::KEEPS_FLIGHTS {
                    self.held.take_sender(client, what);
                    self.send(time, client);
                } else {
                    self.held.take(client);
                    self.happens(time, client, what);
                    self.held.put_back();
                }
            }
            events += 1;
            if events.is_multiple_of(TICK)
                && let Some(stops) = self.server.stops(self.task, events + self.put_off, most)
            {
                return Some(stops);
            }
        }
        None
    }

    /// The next event, or the end of the next flight, which is one of the number [`LANDS`].
    #[inline(always)]
    fn next(&mut self) -> Option<Event> {
        if !S::KEEPS_FLIGHTS {
            return self.queue.pop();
        }
        let lands = self.held.next_to_land();
        if lands.is_none() && !self.held.foresees_waits(0) {
            return self.queue.pop();
        }
        let (time, client) = lands.unwrap_or(NEVER);
        let (place, chances) = (|client| if PLAIN { 0 } else { self.cast.place(client) }, &self.chances);
        let mut waiting = Waiting {
            is_asked: |from| self.held.foresees_waits(from),
            waits: |now, client, failures| {
                let place = place(client);
                let is_drawn = chances[place].before || chances[place].breaker;
                let draw = || if is_drawn { upstream_draw(&self.task.draws, client, failures + 1, now) } else { 0 };
                let within = || patience(&self.cast.roles()[place], &self.starts, client)(now);
                let wait = self.held.waits(client, Timestamp::from_nanos(now), draw, within)?;
                self.put_off += 1;
                if PLAIN || self.server.until.is_none_or(|until| now < until) {
                    self.server.meter.tell(place, |meter| meter.put_off(1));
                }
                Some(now.saturating_add(nanos(wait)))
            },
        };
        let next = self.queue.pop_before(time, client, &mut waiting);
        next.or_else(|| lands.map(|(time, client)| Event { time, client, failures: LANDS }))
    }

    fn happens(&mut self, now: u64, client: u32, what: u32) {
        let (kind, round) = (what & ((1 << KIND_BITS) - 1), what >> KIND_BITS);
        let is_current = round == self.held.failures() % ROUNDS && !self.held.is_over();
        if PLAIN {
            match kind {
                _ if !is_current => {}
                SENDS => self.send(now, client),
                _ => self.noticed(now, client, false),
            }
            return;
        }
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

    #[inline(always)]
    fn push(&mut self, time: u64, client: u32, kind: u32) {
        if S::KEEPS_FLIGHTS {
            // Over a constant way requests have no events of their own, but those that arrive after the end of all.
            if kind == SENDS {
                self.queue.push(Event { time, client, failures: self.held.failures() });
            }
            return;
        }
        let round = self.held.failures() % ROUNDS;
        self.queue.push(Event { time, client, failures: kind | round << KIND_BITS });
    }

    fn draw(&self, client: u32, attempt: u32, salt: u64) -> u64 {
        upstream_draw(&self.task.draws, client, attempt, salt)
    }

    /// The client wants to make an attempt.
    fn send(&mut self, now: u64, client: u32) {
        let attempt = self.held.failures() + 1;
        let chances = self.chances[self.place(client)];
        let is_drawn = chances.before || chances.breaker && !self.is_closed();
        let draw = if is_drawn { self.draw(client, attempt, now) } else { 0 };
        let within = patience(self.role(client), &self.starts, client)(now);
        let time = Timestamp::from_nanos(now);
        match self.held.ask(time, draw, within) {
            UpstreamAnswer::Go => {
                self.held.flight().sent = now;
                if !PLAIN {
                    let machine = self.held.its_hedge().map(|hedge| hedge.start(time));
                    let due = machine.as_ref().and_then(HedgedCall::due);
                    self.held.begin_hedging(machine);
                    if let Some(due) = due {
                        self.push(due.as_nanos(), client, HEDGE_SENDS);
                    }
                }
                self.depart(now, client, false);
            }
            UpstreamAnswer::Wait(wait) => {
                if self.held.is_put_off() {
                    self.tell(client, |meter| meter.put_off(1));
                }
                self.push(now.saturating_add(nanos(wait)), client, SENDS);
            }
            UpstreamAnswer::Queue(wait) => {
                // Who waits in line is woken when there is a place; here it looks every now and then.
                let left = (ASKS + 1).saturating_sub(self.held.asked_in_vain()).max(1);
                self.push(now.saturating_add((nanos(wait) / u64::from(left)).max(1)), client, SENDS);
            }
            UpstreamAnswer::Refused(refused) => self.give_up(now, client, refused.reason, false),
        }
    }

    /// Whether the breaker of the client at hand is closed.
    fn is_closed(&self) -> bool {
        self.held.breaker().is_none_or(|breaker| breaker.pass_closed().is_some())
    }

    #[inline(always)]
    fn depart(&mut self, now: u64, client: u32, is_hedge: bool) {
        if PLAIN {
            return self.arrive(now.saturating_add(self.way.unwrap_or_default()), client, false, true);
        }
        let number = self.attempt(client, is_hedge, now).number();
        let arrives = now.saturating_add(self.way(client, number, Purpose::Out));
        // Over a constant way requests arrive in the order in which they are sent.
        if self.way.is_some() && self.until().is_none_or(|until| arrives < until) {
            self.arrive(arrives, client, is_hedge, true);
        } else {
            self.push(arrives, client, if is_hedge { HEDGE_ARRIVES } else { ARRIVES });
        }
    }

    #[inline(always)]
    fn attempt(&self, client: u32, is_hedge: bool, sent: u64) -> Attempt {
        Attempt { client, place: self.place(client), failures: self.held.failures(), is_hedge, sent }
    }

    fn way(&self, client: u32, attempt: u32, purpose: Purpose) -> u64 {
        self.role(client).ways.delay(|| self.task.draws.world(u64::from(client), attempt, purpose))
    }

    #[inline(always)]
    fn arrive(&mut self, now: u64, client: u32, is_hedge: bool, is_awaited: bool) {
        let sent = self.flight(is_hedge).map_or(now, |flight| flight.sent);
        let attempt = self.attempt(client, is_hedge, sent);
        let (noticed, fate) = if PLAIN {
            self.server.arrive_plainly(now, attempt, self.way.unwrap_or_default())
        } else {
            let back = self.way(client, attempt.number(), Purpose::Back);
            self.server.arrive(now, attempt, &self.cast.roles()[attempt.place], back)
        };
        if is_awaited {
            self.answered(noticed, client, is_hedge, fate);
        }
    }

    /// The client will notice this of an attempt.
    #[inline(always)]
    fn answered(&mut self, noticed: u64, client: u32, is_hedge: bool, fate: Fate) {
        let until = self.until();
        if S::KEEPS_FLIGHTS {
            // In a plain world nothing fails but what is refused at the door.
            if PLAIN && noticed <= self.task.limit && self.held.foresees(fate) {
                let sent = self.held.flight().sent;
                self.learns(noticed, client, false, Flight { sent, fate });
            } else {
                self.held.fly(noticed, fate);
            }
        } else if let Some(flight) = self.flight(is_hedge) {
            flight.fate = fate;
            if self.foresees && noticed <= self.task.limit && until.is_none_or(|until| noticed < until) {
                self.noticed(noticed, client, is_hedge);
            } else {
                self.push(noticed, client, if is_hedge { HEDGE_NOTICED } else { NOTICED });
            }
        }
    }

    #[inline(always)]
    fn flight(&mut self, is_hedge: bool) -> Option<&mut Flight> {
        match is_hedge && !PLAIN {
            false => Some(self.held.flight()),
            true => self.held.second_flight(),
        }
    }

    /// The client learns what became of an attempt.
    #[inline(always)]
    fn noticed(&mut self, now: u64, client: u32, is_hedge: bool) {
        if let Some(flight) = self.flight(is_hedge).copied() {
            self.learns(now, client, is_hedge, flight);
        }
    }

    #[inline(always)]
    fn learns(&mut self, now: u64, client: u32, is_hedge: bool, flight: Flight) {
        let is_drawn = self.chances[self.place(client)].jitter;
        let draw = if is_drawn { self.draw(client, self.attempt(client, is_hedge, now).number(), !now) } else { 0 };
        let Flight { sent, mut fate } = flight;
        if PLAIN && !matches!(fate, Fate::Success) {
            // Nothing else fails than what is refused at the door: the compiler is told.
            fate = Fate::Failure(Verdict::Transient);
        }
        let (outcome, time) = (fate.outcome(), Timestamp::from_nanos(now));
        if is_hedge && !PLAIN {
            match self.held.hedging().and_then(|hedging| hedging.second.as_mut()) {
                Some((call, _)) if call.is_under_way() => call.outcome(time, outcome, draw),
                _ => return,
            }
        } else if self.held.is_under_way() {
            self.held.outcome(time, outcome, draw);
        } else {
            return;
        }
        let is_first = self.held.failures() == 0 && !is_hedge;
        let succeeded = matches!(fate, Fate::Success);
        if !PLAIN {
            self.tell(client, |meter| meter.judged(sent, is_first, succeeded));
        }
        match fate {
            Fate::Success => self.connected(now, client),
            Fate::Failure(verdict) | Fate::TimedOut(verdict) => self.failed(now, client, outcome, verdict),
        }
    }

    fn connected(&mut self, now: u64, client: u32) {
        let attempts = self.held.failures() + 1;
        self.held.end(Timestamp::from_nanos(now));
        let started = self.starts.of(client);
        self.tell(client, |meter| meter.connected(now, started, attempts));
        if !PLAIN && self.starts.is_joined() && !(attempts == 1 && self.starts.is_newcomer(client)) {
            self.tell(client, |meter| meter.drained(now));
        }
    }

    #[inline(always)]
    fn failed(&mut self, now: u64, client: u32, mut outcome: Outcome, mut verdict: Verdict) {
        if !PLAIN && let Some(hedging) = self.held.hedging() {
            let time = Timestamp::from_nanos(now);
            let step = hedging.machine.on_failure(time, verdict);
            verdict = hedging.machine.verdict(time, verdict);
            if let Outcome::Failure(failure) = &mut outcome {
                *failure = verdict;
            }
            match step {
                HedgeStep::Start if hedging.second.is_none() => {
                    if self.hedge(now, client) {
                        return;
                    }
                }
                HedgeStep::Wait => return,
                HedgeStep::Start | HedgeStep::Fail => {}
            }
        }
        let failures = self.held.failures();
        let (started, place) = (self.starts.of(client), self.place(client));
        let decision = self.clients.fail(Failure { client, place, failures, started, now, verdict });
        match decision {
            Decision::Retry(_) if !PLAIN && self.role(client).manners.leaves(&self.task.draws, client, failures) => {
                self.give_up(now, client, Reason::Cancelled, true);
            }
            Decision::Retry(delay) => {
                self.role(client).bounds.check(failures + 1, nanos(delay), verdict);
                let is_drawn = self.chances[place].before;
                let draw = if is_drawn { self.draw(client, failures + 1, now.rotate_left(32)) } else { 0 };
                if !self.held.pay(Timestamp::from_nanos(now), outcome, draw) {
                    self.give_up(now, client, Reason::Budget, true);
                    return;
                }
                self.held.fail();
                self.push(now.saturating_add(nanos(delay)), client, SENDS);
            }
            Decision::GiveUp(reason) => self.give_up(now, client, reason, true),
        }
    }

    /// The call is given up, after an attempt that it made or before one that it may not make.
    fn give_up(&mut self, now: u64, client: u32, reason: Reason, made_one: bool) {
        if matches!(reason, Reason::Budget | Reason::Open | Reason::Shed) {
            self.tell(client, |meter| meter.refused_by_client(reason));
        }
        if self.until().is_none() {
            self.server.door.outside = self.server.door.outside.saturating_sub(1);
        }
        let failures = self.held.failures();
        self.held.end(Timestamp::from_nanos(now));
        self.tell(client, |meter| meter.gave_up(now, reason, failures + u32::from(made_one)));
    }

    /// The client starts a second attempt beside the first, if its upstream lets it. False if nothing is under way.
    fn hedge(&mut self, now: u64, client: u32) -> bool {
        let (attempt, time) = (self.attempt(client, true, now).number(), Timestamp::from_nanos(now));
        let (draw, other) = (self.draw(client, attempt, now), self.draw(client, attempt, !now));
        let (_, repeatable) = self.role(client).manners.of(&self.task.draws, client);
        let Some(mut call) = self.held.hedge() else { return false };
        let Some(hedging) = self.held.hedging() else { return false };
        if hedging.second.is_some() {
            return true;
        }
        let is_paid = repeatable && call.pay(time, Outcome::Failure(Verdict::Transient), draw);
        if repeatable && !is_paid {
            self.tell(client, |meter| meter.refused_by_client(Reason::Budget));
        }
        let Some(hedging) = self.held.hedging() else { return false };
        if !(is_paid && call.ask(time, other, Duration::ZERO) == UpstreamAnswer::Go) {
            return hedging.machine.refused();
        }
        hedging.machine.begun(time);
        hedging.second = Some((call, Flight::sent(now)));
        self.depart(now, client, true);
        true
    }
}
