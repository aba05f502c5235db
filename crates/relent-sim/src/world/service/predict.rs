//! The exact engine for queues in which the fate of a request is known when it arrives: one event an attempt.

use super::{
    cast::{Cast, Mixed, Role},
    clients::{Clients, Failure, Layered, Single},
    door::Door,
    held::{Fate, near},
    players::{Both, Breakers, Budgets, Players, Rates, TOGETHER, Upstreams, Without, upstream_of_one},
    starts::Starts,
    work::{Line, Work},
};
use crate::{
    engine::{
        calendar::{Event, Queue},
        control::{TICK, most_attempts, past},
        draws::{Draws, Purpose},
        task::Task,
    },
    outcome::run::Run,
    scenario::Arrivals,
    world::{meter::Judge, meters::Meters},
};
use relent::{Decision, Reason, Timestamp, Upstream, UpstreamAnswer, Verdict, rng::mix};
use std::time::Duration;

/// Runs the scenario with this queue of events.
pub(crate) fn run<Q: Queue>(task: &Task<'_>, queue: Q) -> Run {
    let policy = &task.contender.policy;
    let (cast, starts) = Cast::new(task);
    let layers = task.service.layers;
    if layers > 1 {
        let times = (0..starts.len()).map(|client| starts.of(client as u32));
        let clients = Layered::new(policy, task.draws, times, layers, task.service.say_overloaded);
        return World::<_, _, _, false>::new(task, queue, clients, Without, cast, starts).run();
    }
    if cast.only().is_none() {
        let clients = Mixed::new(task.contender, task.draws, starts.len());
        return World::<_, _, _, false>::new(task, queue, clients, Without, cast, starts).run();
    }
    let clients = Single::new(policy, task.draws, starts.len());
    let world = World::<_, _, _, false>::new(task, queue, clients, Without, cast, starts);
    if world.is_plain() { world.plainly(|without| without).run() } else { world.run() }
}

/// Runs the scenario of clients who [can be played](super::players::can_be_played), with an upstream each.
pub(super) fn run_played<Q: Queue>(task: &Task<'_>, queue: Q, (cast, starts): (Cast<'_>, Starts)) -> Run {
    let upstreams: Vec<Upstream> = cast.roles().iter().map(upstream_of_one).collect();
    let players = Players::new(&cast, &upstreams, starts.len() as u32);
    let machines = players.machines();
    if cast.only().is_none() {
        let clients = Mixed::new(task.contender, task.draws, starts.len());
        return World::<_, _, _, false>::new(task, queue, clients, players, cast, starts).run();
    }
    let clients = Single::new(&task.contender.policy, task.draws, starts.len());
    let world = World::<_, _, _, false>::new(task, queue, clients, players, cast, starts);
    match machines.filter(|_| world.is_plain()) {
        Some([true, false, false]) => world.plainly(Players::of::<Budgets>).run(),
        Some([false, true, false]) => world.plainly(Players::of::<Breakers>).run(),
        Some([true, true, false]) => world.plainly(Players::of::<Both>).run(),
        Some([false, false, true]) => world.plainly(Players::of::<Rates>).run(),
        _ => world.run(),
    }
}

/// `PLAIN` is a world in which much of what could happen does not: a herd, a constant network, no end of patience, a
/// door that is only ever full. The compiler then leaves out half of an attempt.
///
/// An event is the arrival of an attempt at the server; where there are upstreams, which are asked before it is sent, it is
/// the sending, and the way is constant.
struct World<'a, Q, C, U, const PLAIN: bool> {
    task: &'a Task<'a>,
    queue: Q,
    clients: C,
    upstreams: U,
    cast: Cast<'a>,
    starts: Starts,
    door: Door,
    line: Line,
    work: Work,
    meter: Meters,
    /// The constant way of all, where the world is plain, or there are upstreams.
    way: u64,
    /// The end of open arrivals.
    until: Option<u64>,
    /// What has been asked of upstreams.
    asked: u64,
}

impl<'a, Q, C, U> World<'a, Q, C, U, false> {
    /// The same, for the compiler that knows that it is plain, and more of the upstreams.
    fn plainly<V>(self, of: impl FnOnce(U) -> V) -> World<'a, Q, C, V, true> {
        let World { task, queue, clients, upstreams, cast, starts, door, line, work, meter, way, until, asked } = self;
        let upstreams = of(upstreams);
        World { task, queue, clients, upstreams, cast, starts, door, line, work, meter, way, until, asked }
    }
}

impl<'a, Q: Queue, C: Clients, U: Upstreams, const PLAIN: bool> World<'a, Q, C, U, PLAIN> {
    fn new(task: &'a Task<'a>, queue: Q, clients: C, upstreams: U, cast: Cast<'a>, starts: Starts) -> Self {
        let until = match &task.service.arrivals {
            Arrivals::Open { until, .. } => Some(crate::time::nanos(*until)),
            Arrivals::Herd { .. } => None,
        };
        let count = starts.len() as u64;
        let mut door = Door::new(task.service, task.contender);
        door.outside = if until.is_none() { count } else { 0 };
        World {
            task,
            queue,
            clients,
            upstreams,
            starts,
            door,
            line: Line::new(task.service),
            work: Work::new(&task.service.server),
            meter: Meters::new(count, until.is_some(), cast.populations()),
            way: cast.roles().first().and_then(|role| role.ways.constant).unwrap_or_default(),
            cast,
            until,
            asked: 0,
        }
    }

    fn is_plain(&self) -> bool {
        let Some(role) = self.cast.only() else { return false };
        let alone = !self.starts.is_joined();
        let is_constant = role.ways.constant.is_some();
        alone && self.until.is_none() && is_constant && role.manners.is_plain() && self.door.is_plain()
    }

    fn run(mut self) -> Run {
        let clients = self.starts.len() as u64;
        self.send_first_attempts();
        let stopped = if U::ARE_NONE { self.events() } else { self.events_of_upstreams() };
        if self.until.is_some() {
            let (cast, starts) = (&self.cast, &self.starts);
            self.meter.began((0..clients as u32).map(|client| (cast.place(client), starts.of(client))));
        }
        if !U::ARE_NONE {
            self.meter.all.in_flight = clients - (self.meter.all.connected + self.meter.all.gave_up_total());
        }
        let all = &self.meter.all;
        let (ended, left) = (all.connected + all.gave_up_total(), all.in_flight);
        assert!(ended + left == clients || stopped.is_some(), "every client ends once: {ended} + {left} of {clients}");
        self.meter.finish(
            &Judge::new(self.task.service, self.task.contender),
            self.task.contender,
            &self.cast.clients(),
            self.line.busy.nanos(),
            self.until,
            stopped,
        )
    }

    fn send_first_attempts(&mut self) {
        let draws = &self.task.draws;
        for client in 0..self.starts.len() as u32 {
            let (start, role) = (self.starts.of(client), self.cast.role(client));
            let spread = role.policy.call(Timestamp::ZERO, draws.call(u64::from(client))).spread();
            let sent = start.saturating_add(crate::time::nanos(spread));
            let out = if U::ARE_NONE { role.ways.delay(|| draws.world(u64::from(client), 1, Purpose::Out)) } else { 0 };
            self.queue.push(Event { time: sent.saturating_add(out), client, failures: 0 });
        }
    }

    /// Lets things happen until there is nothing left or a limit is hit, which is returned.
    fn events(&mut self) -> Option<String> {
        let most = most_attempts(self.starts.len() as u64);
        while let Some(event) = self.queue.pop() {
            if !PLAIN && self.until.is_some_and(|until| event.time >= until) {
                self.meter.tell(self.cast.place(event.client), |meter| meter.in_flight += 1);
                continue;
            }
            if event.time > self.task.limit {
                return Some(past(self.task.limit));
            }
            self.arrive(event);
            if self.meter.all.attempts.is_multiple_of(TICK) {
                let stops = self.task.control.stops(self.meter.all.attempts, most);
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

    /// As [`events`](World::events), where there are upstreams.
    fn events_of_upstreams(&mut self) -> Option<String> {
        let most = most_attempts(self.starts.len() as u64).saturating_mul(4);
        let (mut looked, mut far) = (0, 0);
        while let Some(event) = self.queue.pop() {
            if !PLAIN && self.until.is_some_and(|until| event.time >= until) {
                break;
            }
            if event.time > self.task.limit {
                return Some(past(self.task.limit));
            }
            if far == 0 {
                let mut words = self.upstreams.bring_near(event.client);
                self.queue.coming(TOGETHER, |client| {
                    words ^= self.upstreams.bring_near(client);
                    far += 1;
                });
                near(words);
            } else {
                far -= 1;
            }
            self.asked += 1;
            self.send(event);
            if self.asked / TICK > looked {
                looked = self.asked / TICK;
                let stops = self.task.control.stops(looked * TICK, most);
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

    /// The client wants to make an attempt.
    #[inline(always)]
    fn send(&mut self, event: Event) {
        let Event { time: now, client, failures } = event;
        let (place, draws) = (self.place(client), self.task.draws);
        self.upstreams.take(client, place, failures);
        let within = patience(&self.cast.roles()[place], &self.starts, client);
        match self.upstreams.ask(now, |salt| upstream_draw(&draws, client, failures + 1, salt), within) {
            UpstreamAnswer::Go => {
                let arrives = now.saturating_add(self.way);
                if PLAIN || self.until.is_none_or(|until| arrives < until) {
                    self.arrive(Event { time: arrives, ..event });
                }
            }
            UpstreamAnswer::Wait(wait) | UpstreamAnswer::Queue(wait) => {
                self.upstreams.put_back();
                self.queue.push(Event { time: now.saturating_add(crate::time::nanos(wait)), ..event });
            }
            UpstreamAnswer::Refused(refused) => self.refused_by_upstream(event, now, refused.reason, false),
        }
    }

    /// The call is given up, since its upstream refuses another attempt.
    #[cold]
    fn refused_by_upstream(&mut self, event: Event, now: u64, reason: Reason, made_one: bool) {
        let Event { client, failures, .. } = event;
        let place = self.place(client);
        self.meter.tell(place, |meter| meter.refused_by_client(reason));
        self.gave_up(place, now, reason, failures + u32::from(made_one));
    }

    fn gave_up(&mut self, place: usize, now: u64, reason: Reason, attempts: u32) {
        if self.until.is_none() {
            self.door.outside = self.door.outside.saturating_sub(1);
        }
        self.meter.tell(place, |meter| meter.gave_up(now, reason, attempts));
    }

    #[inline(always)]
    fn place(&self, client: u32) -> usize {
        if PLAIN { 0 } else { self.cast.place(client) }
    }

    /// Whether what will be noticed then is too late for this run. If so, the run ends there at the latest.
    #[inline(always)]
    fn is_too_late(&mut self, noticed: u64, client: u32) -> bool {
        let late = noticed > self.task.limit || !PLAIN && self.until.is_some_and(|until| noticed >= until);
        if late {
            self.queue.push(Event { time: noticed, client, failures: 0 });
        }
        late
    }

    #[inline(always)]
    fn arrive(&mut self, event: Event) {
        let Event { time: now, client, failures } = event;
        let draws = &self.task.draws;
        let attempt = failures + 1;
        let place = self.place(client);
        match PLAIN {
            true => self.meter.all.arrived(now, client, failures),
            false => self.meter.tell(place, |meter| meter.arrived(now, client, failures)),
        }
        let back = self.way(client, attempt, Purpose::Back);
        let inside = self.line.inside(now);
        if PLAIN {
            if !self.door.has_room(inside) {
                self.meter.all.rejected(now);
                self.failed(event, now - self.way, now.saturating_add(back), Fate::Failure(Verdict::Transient));
                return;
            }
            let work = self.work.take(draws, client, attempt, 1.0);
            let done = self.line.enter(now, work);
            self.meter.all.served(done);
            let reply = done.saturating_add(back);
            if U::ARE_NONE || !self.is_too_late(reply, client) {
                self.meter.all.connected(reply, self.starts.of(client), attempt);
            }
            return;
        }
        let manners = &self.cast.role(client).manners;
        let sent = now - self.way(client, attempt, Purpose::Out).min(now);
        let patience = sent.saturating_add(manners.timeout);
        if self.door.loses(draws, client, attempt, now) {
            self.meter.tell(place, |meter| meter.rejected(now));
            let (_, repeatable) = manners.of(draws, client);
            let again = if repeatable { Verdict::Transient } else { Verdict::Permanent };
            self.failed(event, sent, patience, Fate::TimedOut(again));
            return;
        }
        if !self.door.admits(now, inside, attempt, patience.saturating_sub(now)) {
            self.meter.tell(place, |meter| meter.rejected(now));
            let free_at = self.line.free_at();
            if failures == 0 && self.until.is_some() {
                self.door.outside += 1;
            }
            let verdict = self.door.refusal(draws, client, attempt, now, free_at);
            if self.task.contender.protection.has_gate() {
                self.meter.tell(place, |meter| meter.refused_by_server(verdict));
            }
            let noticed = now.saturating_add(back);
            let (noticed, fate) = match noticed <= patience {
                true => (noticed, Fate::Failure(verdict)),
                false => (patience, Fate::TimedOut(Verdict::Transient)),
            };
            self.failed(event, sent, noticed, fate);
            return;
        }
        if self.until.is_none() || failures > 0 {
            self.door.outside = self.door.outside.saturating_sub(1);
        }
        let (cost, repeatable) = manners.of(draws, client);
        let work = self.work.take(draws, client, attempt, cost);
        let done = self.line.enter(now, work);
        self.door.entered(now, work.nanos(), done);
        self.meter.worked(place, work);
        self.meter.tell(place, |meter| meter.served(done));
        let reply = done.saturating_add(back);
        let again = if repeatable { Verdict::Transient } else { Verdict::Permanent };
        if reply > patience {
            self.failed(event, sent, patience, Fate::TimedOut(again));
        } else if self.door.fails(draws, client, attempt, done) {
            self.meter.tell(place, |meter| meter.rejected(now));
            self.failed(event, sent, reply, Fate::Failure(again));
        } else if U::ARE_NONE || !self.is_too_late(reply, client) {
            let started = self.starts.of(client);
            self.meter.tell(place, |meter| meter.judged(sent, failures == 0, true));
            if U::ARE_NONE && self.until.is_some_and(|until| reply > until) {
                self.meter.tell(place, |meter| meter.in_flight += 1);
            } else {
                self.meter.tell(place, |meter| meter.connected(reply, started, attempt));
                if self.starts.is_joined() && !(failures == 0 && self.starts.is_newcomer(client)) {
                    self.meter.tell(place, |meter| meter.drained(reply));
                }
            }
        }
    }

    /// How long a message travels.
    #[inline(always)]
    fn way(&self, client: u32, attempt: u32, purpose: Purpose) -> u64 {
        if PLAIN {
            return self.way;
        }
        self.cast.role(client).ways.delay(|| self.task.draws.world(u64::from(client), attempt, purpose))
    }

    #[inline(always)]
    fn failed(&mut self, event: Event, sent: u64, noticed: u64, fate: Fate) {
        let Event { client, failures, .. } = event;
        let (place, draws) = (self.place(client), self.task.draws);
        if !U::ARE_NONE {
            if self.is_too_late(noticed, client) {
                return;
            }
            let draw = || upstream_draw(&draws, client, failures + 1, !noticed);
            self.upstreams.failed(sent, noticed, fate.outcome(), draw);
        }
        if !PLAIN {
            self.meter.tell(place, |meter| meter.judged(sent, failures == 0, false));
        }
        let verdict = fate.verdict();
        let started = self.starts.of(client);
        let mut decision = self.clients.fail(Failure { client, place, failures, started, now: noticed, verdict });
        let role = &self.cast.roles()[place];
        if !PLAIN && matches!(decision, Decision::Retry(_)) && role.manners.leaves(&self.task.draws, client, failures) {
            decision = Decision::GiveUp(Reason::Cancelled);
        }
        match decision {
            Decision::Retry(delay) => {
                let attempt = failures + 1;
                let delay = crate::time::nanos(delay);
                role.bounds.check(attempt, delay, verdict);
                let wanted = noticed.saturating_add(delay);
                if U::ARE_NONE {
                    let out = self.way(client, attempt + 1, Purpose::Out);
                    self.queue.push(Event { time: wanted.saturating_add(out), client, failures: attempt });
                    return;
                }
                let draw = || upstream_draw(&draws, client, attempt, noticed.rotate_left(32));
                if !self.upstreams.pay(noticed, fate.outcome(), draw) {
                    return self.refused_by_upstream(event, noticed, Reason::Budget, true);
                }
                let draw = |salt| upstream_draw(&draws, client, attempt + 1, salt);
                let (time, spared) = self.upstreams.next(wanted, draw, patience(role, &self.starts, client));
                self.asked += spared;
                self.upstreams.put_back();
                self.queue.push(Event { time, client, failures: attempt });
            }
            Decision::GiveUp(_) if U::ARE_NONE && self.until.is_some_and(|until| noticed >= until) => {
                self.meter.tell(place, |meter| meter.in_flight += 1);
            }
            Decision::GiveUp(reason) => {
                if !U::ARE_NONE && matches!(reason, Reason::Budget | Reason::Open | Reason::Shed) {
                    return self.refused_by_upstream(event, noticed, reason, true);
                }
                self.gave_up(place, noticed, reason, failures + 1);
            }
        }
    }
}

/// A draw of chance for what an upstream's machines decide.
#[inline]
fn upstream_draw(draws: &Draws, client: u32, attempt: u32, salt: u64) -> u64 {
    mix(draws.world(u64::from(client), attempt, Purpose::Upstream) ^ salt)
}

/// How long a client waits before an attempt that it wants to make then.
#[inline(always)]
fn patience<'a>(role: &'a Role<'_>, starts: &'a Starts, client: u32) -> impl Fn(u64) -> Duration + 'a {
    move |then| {
        let Some(end) = role.ends else { return role.waits };
        let gone = Duration::from_nanos(then.saturating_sub(starts.of(client)));
        role.waits.min(end.saturating_sub(gone))
    }
}

/// A run with more requests inside the server than this would run out of memory.
pub(crate) const MOST_INSIDE: u64 = 50_000_000;
