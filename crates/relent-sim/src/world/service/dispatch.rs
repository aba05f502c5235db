//! The exact engine for queues in which the fate of a request depends on what comes after it: newest first, and
//! dropping what nobody waits for any more. An event for each arrival, completion and end of patience.

use super::{
    cast::{Cast, Mixed},
    clients::{Clients, Failure, Layered, Single},
    door::Door,
    reception::MOST_INSIDE,
    starts::Starts,
    work::Work,
};
use crate::{
    engine::{
        control::{TICK, most_attempts, past},
        draws::Purpose,
        task::Task,
    },
    outcome::run::Run,
    scenario::{Arrivals, Service, TroubleKind, speed::Speed},
    time::PreciseTime,
    world::{meter::Judge, meters::Meters},
};
use relent::{Decision, Reason, Verdict};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

/// Things in the order in which they happen at one time: a completion frees its place before an arrival takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Done,
    Impatient,
    Arrives,
}

/// When, what, which client, and its attempts before.
type Happening = (u64, What, u32, u32);

#[derive(Clone, Copy, Debug)]
struct Request {
    client: u32,
    failures: u32,
    work: PreciseTime,
    /// When it came.
    came: u64,
    /// When its client stops waiting.
    patience: u64,
}

/// What a client is doing.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The attempt under way, by the number of those before.
    failures: u32,
    /// Whether that attempt has no answer yet.
    waiting: bool,
    /// When it was sent.
    sent: u64,
}

/// Runs the scenario.
pub(crate) fn run(task: &Task<'_>) -> Run {
    let policy = &task.contender.policy;
    let (cast, starts) = Cast::new(task);
    let layers = task.service.layers;
    if cast.only().is_none() {
        let clients = Mixed::new(task.contender, task.draws, starts.len());
        return World::new(task, clients, cast, starts).run();
    }
    if layers <= 1 {
        let clients = Single::new(policy, task.draws, starts.len());
        return World::new(task, clients, cast, starts).run();
    }
    let times = task.control.each(starts.len()).map(|client| starts.of(client));
    let clients = Layered::new(policy, task.draws, (starts.len(), times), layers, task.service.say_overloaded);
    World::new(task, clients, cast, starts).run()
}

/// The bytes of so many clients, of whom so many wait at once; of these nobody knows but at a herd.
pub(crate) fn memory(service: &Service, clients: u64, wait: u64) -> u64 {
    let at_work = u64::from(service.server.workers).min(clients);
    let coming = clients.saturating_add(at_work).saturating_mul(size_of::<Reverse<Happening>>() as u64);
    // A map has room for twice as many, and what leads to them.
    let serving = at_work.saturating_mul(3 * size_of::<((u32, u32), PreciseTime)>() as u64);
    let own = clients.saturating_mul(size_of::<State>() as u64);
    let waiting = wait.saturating_mul(size_of::<Request>() as u64);
    [serving, own, waiting].into_iter().fold(coming, u64::saturating_add)
}

/// Whether an attempt may fail that has been served: then its client comes back before its patience would have ended.
fn fails(service: &Service) -> bool {
    service.server.failure > 0.0 || service.troubles.iter().any(|t| matches!(t.kind, TroubleKind::Failing(_)))
}

struct World<'a, C> {
    task: &'a Task<'a>,
    coming: BinaryHeap<Reverse<Happening>>,
    clients: C,
    cast: Cast<'a>,
    starts: Starts,
    states: Vec<State>,
    door: Door,
    speed: Speed,
    work: Work,
    waiting: VecDeque<Request>,
    /// The work of those that wait.
    backlog: PreciseTime,
    /// Requests at the workers, and when they will be done.
    serving: BTreeMap<(u32, u32), PreciseTime>,
    idle: u32,
    busy: PreciseTime,
    meter: Meters,
    until: Option<u64>,
}

impl<'a, C: Clients> World<'a, C> {
    fn new(task: &'a Task<'a>, clients: C, cast: Cast<'a>, starts: Starts) -> World<'a, C> {
        let until = match &task.service.arrivals {
            Arrivals::Open { until, .. } => Some(crate::time::nanos(*until)),
            Arrivals::Herd { .. } => None,
        };
        let count = starts.len();
        let mut door = Door::new(task.service, task.contender);
        door.outside = if until.is_none() { count as u64 } else { 0 };
        World {
            task,
            // One for each client, and one for each worker.
            coming: BinaryHeap::with_capacity(count + count.min(task.service.server.workers as usize)),
            clients,
            states: vec![State::default(); count],
            door,
            speed: Speed::new(&task.service.troubles),
            work: Work::new(&task.service.server),
            waiting: VecDeque::with_capacity(task.service.most_waiting() as usize),
            backlog: PreciseTime::ZERO,
            serving: BTreeMap::new(),
            idle: task.service.server.workers,
            busy: PreciseTime::ZERO,
            meter: Meters::new(count as u64, until.is_some(), cast.populations()),
            cast,
            starts,
            until,
        }
    }

    fn run(mut self) -> Run {
        let clients = self.starts.len() as u64;
        for client in self.task.control.each(self.starts.len()) {
            let sent = self.cast.first_attempt(&self.task.draws, &self.starts, client);
            self.coming.push(Reverse((sent.saturating_add(self.out(client, 1)), What::Arrives, client, 0)));
        }
        let stopped = self.task.control.stopped().or_else(|| self.happenings());
        // Of one that has not begun nothing is shown.
        if self.until.is_some() && (stopped.is_none() || self.meter.all.attempts > 0) {
            let (cast, starts) = (&self.cast, &self.starts);
            self.meter.began((0..clients as u32).map(|client| (cast.place(client), starts.of(client))));
        }
        let ended = self.meter.all.connected + self.meter.all.gave_up_total();
        assert!(ended <= clients, "every client ends once: {ended} of {clients}");
        assert!(ended == clients || self.until.is_some() || stopped.is_some(), "{ended} of {clients} clients ended");
        self.meter.all.in_flight = clients - ended;
        self.meter.finish(
            &Judge::new(self.task.service, self.task.contender),
            self.task.contender,
            &self.cast.clients(),
            self.busy.nanos(),
            self.until,
            stopped,
        )
    }

    fn happenings(&mut self) -> Option<String> {
        let most = most_attempts(self.starts.len() as u64);
        while let Some(Reverse((now, what, client, failures))) = self.coming.pop() {
            if self.until.is_some_and(|until| now >= until) {
                break;
            }
            if now > self.task.limit {
                return Some(past(self.task.limit));
            }
            match what {
                What::Arrives => self.arrive(now, client, failures),
                What::Impatient => self.lose_patience(now, client, failures),
                What::Done => self.serve_next(client, failures),
            }
            if what == What::Arrives && self.meter.all.attempts.is_multiple_of(TICK) {
                let stops = self.task.control.stops(self.meter.all.attempts, most);
                if stops.is_some() {
                    return stops;
                }
                if let Some(stops) = self.make_room() {
                    return Some(stops);
                }
                if self.inside() > MOST_INSIDE / 5 {
                    // Each of them is a request, and the end of somebody's patience.
                    return Some(format!("more than {} requests are inside the server", MOST_INSIDE / 5));
                }
            }
        }
        None
    }

    /// Takes room for all that may come and wait until the next look.
    fn make_room(&mut self) -> Option<String> {
        let control = self.task.control;
        let waiting = self.waiting.len() as u64;
        // Who waits for ever is there once.
        let for_ever = self.cast.roles().iter().all(|role| role.manners.timeout == u64::MAX);
        let most = if for_ever { self.starts.len() as u64 } else { u64::MAX };
        let enter = most.min(self.door.queue()).saturating_sub(waiting).min(TICK);
        let begin = u64::from(self.idle).min(TICK);
        let fail = if fails(self.task.service) && !for_ever { waiting + TICK } else { 0 };
        let _ = control.has_room(&mut self.waiting, enter as usize)
            && control.has_room(&mut self.coming, (begin + fail) as usize);
        self.door.make_room(control);
        control.stopped()
    }

    fn out(&self, client: u32, attempt: u32) -> u64 {
        self.cast.role(client).ways.delay(|| self.task.draws.world(u64::from(client), attempt, Purpose::Out))
    }

    fn back(&self, client: u32, attempt: u32) -> u64 {
        self.cast.role(client).ways.delay(|| self.task.draws.world(u64::from(client), attempt, Purpose::Back))
    }

    fn inside(&self) -> u64 {
        self.waiting.len() as u64 + u64::from(self.task.service.server.workers - self.idle)
    }

    fn arrive(&mut self, now: u64, client: u32, failures: u32) {
        let attempt = failures + 1;
        let place = self.cast.place(client);
        self.meter.tell(place, |meter| meter.arrived(now, client, failures));
        let sent = now - self.out(client, attempt).min(now);
        self.states[client as usize] = State { failures, waiting: true, sent };
        let timeout = self.cast.role(client).manners.timeout;
        let patience = sent.saturating_add(timeout);
        if self.door.loses(&self.task.draws, client, attempt, now) {
            self.meter.tell(place, |meter| meter.rejected(now));
            self.coming.push(Reverse((patience, What::Impatient, client, failures)));
            return;
        }
        if !self.door.admits(now, self.inside(), attempt, patience.saturating_sub(now)) {
            self.refuse(now, client, failures, patience);
            return;
        }
        if self.until.is_none() || failures > 0 {
            self.door.outside = self.door.outside.saturating_sub(1);
        }
        let (cost, _) = self.cast.role(client).manners.of(&self.task.draws, client);
        let work = self.work.take(&self.task.draws, client, attempt, cost);
        self.waiting.push_back(Request { client, failures, work, came: now, patience });
        self.backlog = self.backlog.plus(work);
        if timeout != u64::MAX {
            self.coming.push(Reverse((patience, What::Impatient, client, failures)));
        }
        if self.idle > 0 {
            self.begin(PreciseTime::from_nanos(now));
        }
    }

    fn refuse(&mut self, now: u64, client: u32, failures: u32, patience: u64) {
        let place = self.cast.place(client);
        self.meter.tell(place, |meter| meter.rejected(now));
        if failures == 0 && self.until.is_some() {
            self.door.outside += 1;
        }
        let free_at = PreciseTime::from_nanos(now).plus(self.backlog.shared_by(self.task.service.server.workers));
        let verdict = self.door.refusal(&self.task.draws, client, failures + 1, now, free_at);
        if self.task.contender.protection.has_gate() {
            self.meter.tell(place, |meter| meter.refused_by_server(verdict));
        }
        let noticed = now.saturating_add(self.back(client, failures + 1));
        match noticed <= patience {
            true => self.failed(noticed, client, failures, verdict),
            false => self.failed(patience, client, failures, Verdict::Transient),
        }
    }

    /// A worker is free: the next request that is still worth it begins.
    fn begin(&mut self, now: PreciseTime) {
        let server = &self.task.service.server;
        loop {
            let next = if server.lifo { self.waiting.pop_back() } else { self.waiting.pop_front() };
            let Some(request) = next else { return };
            self.backlog = self.backlog.minus(request.work);
            if server.drop_expired && now.nanos() >= request.patience {
                continue;
            }
            self.idle -= 1;
            self.busy = self.busy.plus(request.work);
            self.meter.worked(self.cast.place(request.client), request.work);
            let done = self.speed.finish(now, request.work);
            self.door.entered(request.came, request.work.nanos(), done.nanos());
            self.serving.insert((request.client, request.failures), done);
            let done = done.nanos();
            self.coming.push(Reverse((done, What::Done, request.client, request.failures)));
            self.answer(done.saturating_add(crate::time::nanos(server.latency)), request);
            return;
        }
    }

    fn serve_next(&mut self, client: u32, failures: u32) {
        self.idle += 1;
        let done = self.serving.remove(&(client, failures)).expect("what is done was begun");
        self.begin(done);
    }

    /// The server will have completed a request; its fate is known once it has begun.
    fn answer(&mut self, done: u64, request: Request) {
        let Request { client, failures, patience, .. } = request;
        let place = self.cast.place(client);
        self.meter.tell(place, |meter| meter.served(done));
        let reply = done.saturating_add(self.back(client, failures + 1));
        let state = self.states[client as usize];
        if reply > patience || !state.waiting || state.failures != failures {
            return;
        }
        if self.door.fails(&self.task.draws, client, failures + 1, done) {
            self.meter.tell(place, |meter| meter.rejected(done));
            let (_, repeatable) = self.cast.role(client).manners.of(&self.task.draws, client);
            self.failed(reply, client, failures, if repeatable { Verdict::Transient } else { Verdict::Permanent });
            return;
        }
        self.states[client as usize].waiting = false;
        self.meter.tell(place, |meter| meter.judged(state.sent, failures == 0, true));
        if self.until.is_none_or(|until| reply <= until) {
            let started = self.starts.of(client);
            self.meter.tell(place, |meter| meter.connected(reply, started, failures + 1));
            if self.starts.is_joined() && !(failures == 0 && self.starts.is_newcomer(client)) {
                self.meter.tell(place, |meter| meter.drained(reply));
            }
        }
    }

    fn lose_patience(&mut self, now: u64, client: u32, failures: u32) {
        let state = self.states[client as usize];
        if state.waiting && state.failures == failures {
            let (_, repeatable) = self.cast.role(client).manners.of(&self.task.draws, client);
            self.failed(now, client, failures, if repeatable { Verdict::Transient } else { Verdict::Permanent });
        }
    }

    fn failed(&mut self, now: u64, client: u32, failures: u32, verdict: Verdict) {
        let state = &mut self.states[client as usize];
        state.waiting = false;
        let sent = state.sent;
        let place = self.cast.place(client);
        self.meter.tell(place, |meter| meter.judged(sent, failures == 0, false));
        let started = self.starts.of(client);
        let mut decision = self.clients.fail(Failure { client, place, failures, started, now, verdict });
        if matches!(decision, Decision::Retry(_))
            && self.cast.role(client).manners.leaves(&self.task.draws, client, failures)
        {
            decision = Decision::GiveUp(Reason::Cancelled);
        }
        match decision {
            Decision::Retry(delay) => {
                self.cast.role(client).bounds.check(failures + 1, crate::time::nanos(delay), verdict);
                let time = now.saturating_add(crate::time::nanos(delay)).saturating_add(self.out(client, failures + 2));
                self.coming.push(Reverse((time, What::Arrives, client, failures + 1)));
            }
            Decision::GiveUp(_) if self.until.is_some_and(|until| now >= until) => {}
            Decision::GiveUp(reason) => {
                if self.until.is_none() {
                    self.door.outside = self.door.outside.saturating_sub(1);
                }
                self.meter.tell(place, |meter| meter.gave_up(now, reason, failures + 1));
            }
        }
    }
}
