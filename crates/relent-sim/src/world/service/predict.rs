//! The exact engine for queues in which the fate of a request is known when it arrives: one event an attempt.

use super::{
    cast::{Cast, Mixed, Role},
    clients::{Clients, Failure, Layered, Single},
    held::{Fate, near},
    own::{Kit, Own},
    players::{Both, Breakers, Budgets, Players, Rates, TOGETHER, Upstreams, Without, upstream_of_one},
    reception::{Attempt, Reception},
    starts::Starts,
};
use crate::{
    engine::{
        calendar::{Event, Queue},
        control::{TICK, most_attempts, past},
        draws::{Draws, Purpose},
        task::Task,
    },
    outcome::run::Run,
};
use relent::{Decision, Reason, Upstream, UpstreamAnswer, rng::mix};
use std::time::Duration;

/// Runs the scenario with this queue of events.
pub(crate) fn run<Q: Queue>(task: &Task<'_>, queue: Q) -> Run {
    let policy = &task.contender.policy;
    let (cast, starts) = Cast::new(task);
    let layers = task.service.layers;
    if layers > 1 {
        let times = task.control.each(starts.len()).map(|client| starts.of(client));
        let clients = Layered::new(policy, task.draws, (starts.len(), times), layers, task.service.say_overloaded);
        return World::<_, _, _, false>::new(task, queue, clients, Without, cast, starts).run();
    }
    if cast.only().is_none() {
        let clients = Mixed::new(task.contender, task.draws, starts.len());
        return World::<_, _, _, false>::new(task, queue, clients, Without, cast, starts).run();
    }
    let clients = Single::new(policy, task.draws, starts.len());
    let world = World::<_, _, _, false>::new(task, queue, clients, Without, cast, starts);
    if world.is_plain() { world.with::<_, true>(Without).run() } else { world.run() }
}

/// Runs the scenario of clients who [can be played](super::players::can_be_played), with an upstream each. What is kept of
/// them is [what can come of it](super::own), if that is little and `in_brief`, or else everything.
pub(super) fn run_played<Q: Queue>(
    task: &Task<'_>,
    queue: Q,
    (cast, starts): (Cast<'_>, Starts),
    in_brief: bool,
) -> Run {
    let upstreams: Vec<Upstream> = cast.roles().iter().map(upstream_of_one).collect();
    let count = starts.len() as u32;
    let Some(role) = cast.only() else {
        let clients = Mixed::new(task.contender, task.draws, starts.len());
        let players = Players::new(&cast, &upstreams, starts.len(), task.control);
        return World::<_, _, _, false>::new(task, queue, clients, players, cast, starts).run();
    };
    let kit = upstreams.first().and_then(|upstream| Kit::of(role, upstream, task.limit));
    let clients = Single::new(&task.contender.policy, task.draws, starts.len());
    let world = World::<_, _, _, false>::new(task, queue, clients, Without, cast, starts);
    let is_plain = world.is_plain();
    match kit.filter(|_| is_plain && in_brief) {
        Some(Kit::Budget(machine)) => return world.with::<_, true>(Own::new(machine, count)).run(),
        Some(Kit::InARow(machine)) => return world.with::<_, true>(Own::new(machine, count)).run(),
        Some(Kit::InWindow(machine)) => return world.with::<_, true>(Own::new(machine, count)).run(),
        Some(Kit::BudgetInARow(machine)) => return world.with::<_, true>(Own::new(machine, count)).run(),
        Some(Kit::BudgetInWindow(machine)) => return world.with::<_, true>(Own::new(machine, count)).run(),
        Some(Kit::Rate(machine)) => return world.with::<_, true>(Own::new(machine, count)).run(),
        None => {}
    }
    let players = Players::new(&world.cast, &upstreams, count as usize, task.control);
    match players.machines().filter(|_| is_plain) {
        Some([true, false, false]) => world.with::<_, true>(players.of::<Budgets>()).run(),
        Some([false, true, false]) => world.with::<_, true>(players.of::<Breakers>()).run(),
        Some([true, true, false]) => world.with::<_, true>(players.of::<Both>()).run(),
        Some([false, false, true]) => world.with::<_, true>(players.of::<Rates>()).run(),
        _ => world.with::<_, false>(players).run(),
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
    server: Reception,
    /// The constant way of all, where the world is plain, or there are upstreams.
    way: u64,
    /// What has been asked of upstreams.
    asked: u64,
}

impl<'a, Q, C, U> World<'a, Q, C, U, false> {
    /// The same with these upstreams, for the compiler that may know that it is plain.
    fn with<V, const PLAIN: bool>(self, upstreams: V) -> World<'a, Q, C, V, PLAIN> {
        let World { task, queue, clients, upstreams: _, cast, starts, server, way, asked } = self;
        World { task, queue, clients, upstreams, cast, starts, server, way, asked }
    }
}

impl<'a, Q: Queue, C: Clients, U: Upstreams, const PLAIN: bool> World<'a, Q, C, U, PLAIN> {
    fn new(task: &'a Task<'a>, queue: Q, clients: C, upstreams: U, cast: Cast<'a>, starts: Starts) -> Self {
        World {
            task,
            queue,
            clients,
            upstreams,
            server: Reception::new(task, starts.len() as u64, cast.populations()),
            starts,
            way: cast.roles().first().and_then(|role| role.ways.constant).unwrap_or_default(),
            cast,
            asked: 0,
        }
    }

    fn is_plain(&self) -> bool {
        let Some(role) = self.cast.only() else { return false };
        let alone = !self.starts.is_joined();
        let is_constant = role.ways.constant.is_some();
        alone && self.server.until.is_none() && is_constant && role.manners.is_plain() && self.server.door.is_plain()
    }

    fn run(mut self) -> Run {
        let clients = self.starts.len() as u64;
        self.send_first_attempts();
        let events = |world: &mut Self| if U::ARE_NONE { world.events() } else { world.events_of_upstreams() };
        let stopped = self.task.control.stopped().or_else(|| events(&mut self));
        let ended = self.server.ended(clients);
        let in_flight = &mut self.server.meter.all.in_flight;
        if !U::ARE_NONE {
            *in_flight = clients - ended;
        }
        let left = *in_flight;
        assert!(ended + left == clients || stopped.is_some(), "every client ends once: {ended} + {left} of {clients}");
        self.server.finish(self.task, &self.cast, &self.starts, stopped)
    }

    fn send_first_attempts(&mut self) {
        let draws = &self.task.draws;
        for client in self.task.control.each(self.starts.len()) {
            let (sent, role) = (self.cast.first_attempt(draws, &self.starts, client), self.cast.role(client));
            let out = if U::ARE_NONE { role.ways.delay(|| draws.world(u64::from(client), 1, Purpose::Out)) } else { 0 };
            self.queue.push(Event { time: sent.saturating_add(out), client, failures: 0 });
        }
    }

    /// Lets things happen until there is nothing left or a limit is hit, which is returned.
    fn events(&mut self) -> Option<String> {
        let most = most_attempts(self.starts.len() as u64);
        let mut left = 0u64;
        while let Some(event) = self.queue.pop() {
            if !PLAIN && self.server.until.is_some_and(|until| event.time >= until) {
                self.server.meter.tell(self.cast.place(event.client), |meter| meter.in_flight += 1);
                left += 1;
                if left.is_multiple_of(TICK)
                    && let Some(stops) = self.task.control.stopped()
                {
                    return Some(stops);
                }
                continue;
            }
            if event.time > self.task.limit {
                return Some(past(self.task.limit));
            }
            self.arrive(event);
            let attempts = self.server.meter.all.attempts;
            if attempts.is_multiple_of(TICK)
                && let Some(stops) = self.server.stops(self.task, attempts, most)
            {
                return Some(stops);
            }
        }
        None
    }

    /// As [`events`](World::events), where there are upstreams.
    fn events_of_upstreams(&mut self) -> Option<String> {
        let most = most_attempts(self.starts.len() as u64).saturating_mul(4);
        let (mut looked, mut far) = (0, 0);
        while let Some(event) = self.queue.pop() {
            if !PLAIN && self.server.until.is_some_and(|until| event.time >= until) {
                break;
            }
            if event.time > self.task.limit {
                return Some(past(self.task.limit));
            }
            if !U::IS_FAR {
                // Nothing has to come.
            } else if far == 0 {
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
                if let Some(stops) = self.server.stops(self.task, looked * TICK, most) {
                    return Some(stops);
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
                if PLAIN || self.server.until.is_none_or(|until| arrives < until) {
                    self.arrive(Event { time: arrives, ..event });
                }
            }
            UpstreamAnswer::Wait(wait) | UpstreamAnswer::Queue(wait) => {
                if self.upstreams.is_put_off() {
                    self.server.meter.tell(place, |meter| meter.put_off(1));
                }
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
        self.server.meter.tell(place, |meter| meter.refused_by_client(reason));
        self.gave_up(place, now, reason, failures + u32::from(made_one));
    }

    fn gave_up(&mut self, place: usize, now: u64, reason: Reason, attempts: u32) {
        if self.server.until.is_none() {
            self.server.door.outside = self.server.door.outside.saturating_sub(1);
        }
        self.server.meter.tell(place, |meter| meter.gave_up(now, reason, attempts));
    }

    #[inline(always)]
    fn place(&self, client: u32) -> usize {
        if PLAIN { 0 } else { self.cast.place(client) }
    }

    /// Whether what will be noticed then is too late for this run. If so, the run ends there at the latest.
    #[inline(always)]
    fn is_too_late(&mut self, noticed: u64, client: u32) -> bool {
        let late = noticed > self.task.limit || !PLAIN && self.server.until.is_some_and(|until| noticed >= until);
        if late {
            self.queue.push(Event { time: noticed, client, failures: 0 });
        }
        late
    }

    #[inline(always)]
    fn arrive(&mut self, event: Event) {
        let Event { time: now, client, failures } = event;
        let (place, number) = (self.place(client), failures + 1);
        let back = self.way(client, number, Purpose::Back);
        let sent = now - self.way(client, number, Purpose::Out).min(now);
        let attempt = Attempt { client, place, failures, is_hedge: false, sent };
        let (noticed, fate) = match PLAIN {
            true => self.server.arrive_plainly(now, attempt, back),
            false => self.server.arrive(now, attempt, &self.cast.roles()[place], back),
        };
        match fate {
            Fate::Success => self.connected(event, sent, noticed),
            failed => self.failed(event, sent, noticed, failed),
        }
    }

    #[inline(always)]
    fn connected(&mut self, event: Event, sent: u64, noticed: u64) {
        let Event { client, failures, .. } = event;
        if !U::ARE_NONE && self.is_too_late(noticed, client) {
            return;
        }
        let (place, started) = (self.place(client), self.starts.of(client));
        if PLAIN {
            return self.server.meter.all.connected(noticed, started, failures + 1);
        }
        self.server.meter.tell(place, |meter| meter.judged(sent, failures == 0, true));
        if U::ARE_NONE && self.server.until.is_some_and(|until| noticed > until) {
            self.server.meter.tell(place, |meter| meter.in_flight += 1);
            return;
        }
        self.server.meter.tell(place, |meter| meter.connected(noticed, started, failures + 1));
        if self.starts.is_joined() && !(failures == 0 && self.starts.is_newcomer(client)) {
            self.server.meter.tell(place, |meter| meter.drained(noticed));
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
            self.server.meter.tell(place, |meter| meter.judged(sent, failures == 0, false));
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
                let asks = PLAIN || self.server.until.is_none_or(|until| wanted < until);
                if asks && self.cast.roles()[place].protection.limit.is_none() {
                    self.server.meter.tell(place, |meter| meter.put_off(spared));
                }
                self.upstreams.put_back();
                self.queue.push(Event { time, client, failures: attempt });
            }
            Decision::GiveUp(_) if U::ARE_NONE && self.server.until.is_some_and(|until| noticed >= until) => {
                self.server.meter.tell(place, |meter| meter.in_flight += 1);
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
pub(super) fn upstream_draw(draws: &Draws, client: u32, attempt: u32, salt: u64) -> u64 {
    mix(draws.world(u64::from(client), attempt, Purpose::Upstream) ^ salt)
}

/// How long a client waits before an attempt that it wants to make then.
#[inline(always)]
pub(super) fn patience<'a>(role: &'a Role<'_>, starts: &'a Starts, client: u32) -> impl Fn(u64) -> Duration + 'a {
    move |then| {
        let Some(end) = role.ends else { return role.waits };
        let gone = Duration::from_nanos(then.saturating_sub(starts.of(client)));
        role.waits.min(end.saturating_sub(gone))
    }
}
