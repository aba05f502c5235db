//! The exact engine for queues in which the fate of a request is known when it arrives: one event an attempt.

use super::{
    cast::{Cast, Mixed},
    clients::{Clients, Failure, Layered, Single},
    door::Door,
    starts::Starts,
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
    world::{meter::Judge, meters::Meters},
};
use relent::{Decision, Reason, Timestamp, Verdict};

/// Runs the scenario with this queue of events.
pub(crate) fn run<Q: Queue>(task: &Task<'_>, queue: Q) -> Run {
    let policy = &task.contender.policy;
    let (cast, starts) = Cast::new(task);
    let layers = task.service.layers;
    if layers > 1 {
        let times = (0..starts.len()).map(|client| starts.of(client as u32));
        let clients = Layered::new(policy, task.draws, times, layers, task.service.say_overloaded);
        return World::<_, _, false>::new(task, queue, clients, cast, starts).run();
    }
    if cast.only().is_none() {
        let clients = Mixed::new(task.contender, task.draws, starts.len());
        return World::<_, _, false>::new(task, queue, clients, cast, starts).run();
    }
    let clients = Single::new(policy, task.draws, starts.len());
    let world = World::<_, _, false>::new(task, queue, clients, cast, starts);
    if world.is_plain() { World::<_, _, true>::from(world).run() } else { world.run() }
}

/// `PLAIN` is a world in which much of what could happen does not: a herd, a constant network, no end of patience, a
/// door that is only ever full. The compiler then leaves out half of an attempt.
struct World<'a, Q, C, const PLAIN: bool> {
    task: &'a Task<'a>,
    queue: Q,
    clients: C,
    cast: Cast<'a>,
    starts: Starts,
    door: Door,
    line: Line,
    work: Work,
    meter: Meters,
    /// The constant way of all, where the world is plain.
    way: u64,
    /// The end of open arrivals.
    until: Option<u64>,
}

impl<'a, Q, C> From<World<'a, Q, C, false>> for World<'a, Q, C, true> {
    fn from(world: World<'a, Q, C, false>) -> Self {
        let World { task, queue, clients, cast, starts, door, line, work, meter, way, until } = world;
        World { task, queue, clients, cast, starts, door, line, work, meter, way, until }
    }
}

impl<'a, Q: Queue, C: Clients, const PLAIN: bool> World<'a, Q, C, PLAIN> {
    fn new(task: &'a Task<'a>, queue: Q, clients: C, cast: Cast<'a>, starts: Starts) -> Self {
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
            starts,
            door,
            line: Line::new(task.service),
            work: Work::new(&task.service.server),
            meter: Meters::new(count, until.is_some(), cast.populations()),
            way: cast.only().and_then(|role| role.ways.constant).unwrap_or_default(),
            cast,
            until,
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
        let stopped = self.events();
        if self.until.is_some() {
            let (cast, starts) = (&self.cast, &self.starts);
            self.meter.began((0..clients as u32).map(|client| (cast.place(client), starts.of(client))));
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
            let out = role.ways.delay(|| draws.world(u64::from(client), 1, Purpose::Out));
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

    #[inline(always)]
    fn arrive(&mut self, event: Event) {
        let Event { time: now, client, failures } = event;
        let draws = &self.task.draws;
        let attempt = failures + 1;
        let place = if PLAIN { 0 } else { self.cast.place(client) };
        match PLAIN {
            true => self.meter.all.arrived(now, client, failures),
            false => self.meter.tell(place, |meter| meter.arrived(now, client, failures)),
        }
        let back = self.way(client, attempt, Purpose::Back);
        let inside = self.line.inside(now);
        if PLAIN {
            if !self.door.has_room(inside) {
                self.meter.all.rejected(now);
                self.failed(event, 0, now.saturating_add(back), Verdict::Transient);
                return;
            }
            let work = self.work.take(draws, client, attempt, 1.0);
            let done = self.line.enter(now, work);
            self.meter.all.served(done);
            self.meter.all.connected(done.saturating_add(back), self.starts.of(client), attempt);
            return;
        }
        let manners = &self.cast.role(client).manners;
        let sent = now - self.way(client, attempt, Purpose::Out).min(now);
        let patience = sent.saturating_add(manners.timeout);
        if self.door.loses(draws, client, attempt, now) {
            self.meter.tell(place, |meter| meter.rejected(now));
            let (_, repeatable) = manners.of(draws, client);
            let again = if repeatable { Verdict::Transient } else { Verdict::Permanent };
            self.failed(event, sent, patience, again);
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
            let (noticed, verdict) =
                if noticed <= patience { (noticed, verdict) } else { (patience, Verdict::Transient) };
            self.failed(event, sent, noticed, verdict);
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
            self.failed(event, sent, patience, again);
        } else if self.door.fails(draws, client, attempt, done) {
            self.meter.tell(place, |meter| meter.rejected(now));
            self.failed(event, sent, reply, again);
        } else {
            let started = self.starts.of(client);
            self.meter.tell(place, |meter| meter.judged(sent, failures == 0, true));
            if self.until.is_some_and(|until| reply > until) {
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
    fn failed(&mut self, event: Event, sent: u64, noticed: u64, verdict: Verdict) {
        let Event { client, failures, .. } = event;
        let place = if PLAIN { 0 } else { self.cast.place(client) };
        if !PLAIN {
            self.meter.tell(place, |meter| meter.judged(sent, failures == 0, false));
        }
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
                let out = self.way(client, attempt + 1, Purpose::Out);
                let time = noticed.saturating_add(delay).saturating_add(out);
                self.queue.push(Event { time, client, failures: attempt });
            }
            Decision::GiveUp(_) if self.until.is_some_and(|until| noticed >= until) => {
                self.meter.tell(place, |meter| meter.in_flight += 1);
            }
            Decision::GiveUp(reason) => {
                if self.until.is_none() {
                    self.door.outside = self.door.outside.saturating_sub(1);
                }
                self.meter.tell(place, |meter| meter.gave_up(noticed, reason, failures + 1));
            }
        }
    }
}

/// A run with more requests inside the server than this would run out of memory.
pub(crate) const MOST_INSIDE: u64 = 50_000_000;
