//! Clients who hedge and have nothing else of an upstream, over a constant way: one event an attempt.
//!
//! What becomes of an attempt is known when it is sent, so it is known then whether, and when, a second one starts beside it;
//! and when that is sent, what becomes of both. Second attempts start in the order of the first ones, so they stand in
//! [lanes](super::flights) and are no events. When they start, and what a failure of one means for the other, is decided by
//! relent's own [`HedgedCall`], made anew: a hedge after a fixed time remembers nothing.

use super::{
    cast::{Cast, Mixed, Role},
    clients::{Clients, Failure, Single},
    door::Door,
    flights::{Flights, Flying, NEVER},
    held::{Fate, Flight},
    players::common_way,
    reception::{Attempt, Reception},
    starts::Starts,
};
use crate::{
    engine::{
        calendar::{Event, Never, Queue},
        control::{TICK, most_attempts, past},
        task::Task,
    },
    outcome::run::Run,
    scenario::Protection,
    time::nanos,
};
use relent::{Decision, Hedge, HedgeStep, HedgedCall, Reason, Timestamp, Verdict};

/// Whether clients are such: some of them hedge after a fixed time, and none have anything else; and what one is told does not
/// depend on who else has given up.
pub(super) fn only_hedge(task: &Task<'_>, cast: &Cast<'_>) -> bool {
    let is_such = |role: &Role<'_>| {
        let Protection { budget: None, breaker: None, limit: None, hedge, .. } = role.protection else { return false };
        hedge.is_none_or(|hedge| hedge.quantile.is_none())
    };
    let tells_alike = Door::new(task.service, task.contender).tells_alike();
    cast.roles().iter().all(is_such) && common_way(cast).is_some() && tells_alike
}

/// Runs the scenario of clients who [only hedge](only_hedge).
pub(super) fn run<Q: Queue>(task: &Task<'_>, queue: Q, (cast, starts): (Cast<'_>, Starts)) -> Run {
    if cast.only().is_none() {
        let clients = Mixed::new(task.contender, task.draws, starts.len());
        return World::<_, _, false>::new(task, queue, clients, cast, starts).run();
    }
    let clients = Single::new(&task.contender.policy, task.draws, starts.len());
    let world = World::<_, _, false>::new(task, queue, clients, cast, starts);
    if world.is_plain() { world.plainly().run() } else { world.run() }
}

/// `PLAIN` is a world in which much of what could happen does not, as in [`predict`](super::predict).
struct World<'a, Q, C, const PLAIN: bool> {
    task: &'a Task<'a>,
    queue: Q,
    /// First attempts of those that will get a second one beside them, by when that starts; and when they will be noticed.
    firsts: Flights<u64>,
    clients: C,
    cast: Cast<'a>,
    /// Of each population.
    hedges: Vec<Option<Hedge>>,
    starts: Starts,
    server: Reception,
    way: u64,
}

/// What becomes of an attempt, when it was sent, and when its end is noticed.
#[derive(Clone, Copy)]
struct End {
    noticed: u64,
    sent: u64,
    fate: Fate,
    is_hedge: bool,
}

/// A client, and how many attempts it made before; hedges are none.
#[derive(Clone, Copy)]
struct Caller {
    client: u32,
    place: usize,
    failures: u32,
}

impl<'a, Q, C> World<'a, Q, C, false> {
    /// The same, for the compiler that knows that it is plain.
    fn plainly(self) -> World<'a, Q, C, true> {
        let World { task, queue, firsts, clients, cast, hedges, starts, server, way } = self;
        World { task, queue, firsts, clients, cast, hedges, starts, server, way }
    }
}

impl<'a, Q: Queue, C: Clients, const PLAIN: bool> World<'a, Q, C, PLAIN> {
    fn new(task: &'a Task<'a>, queue: Q, clients: C, cast: Cast<'a>, starts: Starts) -> Self {
        let hedge = |role: &Role<'_>| role.protection.hedge.and_then(|settings| settings.hedge().ok());
        World {
            task,
            queue,
            firsts: Flights::new(),
            clients,
            hedges: cast.roles().iter().map(hedge).collect(),
            server: Reception::new(task, starts.len() as u64, cast.populations()),
            way: common_way(&cast).unwrap_or_default(),
            cast,
            starts,
        }
    }

    fn is_plain(&self) -> bool {
        let Some(role) = self.cast.only() else { return false };
        let is_herd = self.server.until.is_none() && !self.starts.is_joined();
        is_herd && role.manners.is_plain() && self.server.door.is_plain()
    }

    fn run(mut self) -> Run {
        let clients = self.starts.len() as u64;
        for client in self.task.control.each(self.starts.len()) {
            let time = self.cast.first_attempt(&self.task.draws, &self.starts, client);
            self.queue.push(Event { time, client, failures: 0 });
        }
        let stopped = self.task.control.stopped().or_else(|| self.events());
        let ended = self.server.ended(clients);
        let is_over = ended == clients || self.server.until.is_some() || stopped.is_some();
        assert!(is_over, "{ended} of {clients} clients ended");
        self.server.meter.all.in_flight = clients - ended;
        self.server.finish(self.task, &self.cast, &self.starts, stopped)
    }

    fn events(&mut self) -> Option<String> {
        let most = most_attempts(self.starts.len() as u64).saturating_mul(4);
        let mut events = 0u64;
        loop {
            let (second, whose) = self.firsts.next();
            let next = if (second, whose) == NEVER {
                self.queue.pop()
            } else {
                self.queue.pop_before(second, whose, &mut Never)
            };
            let time = match next {
                Some(event) => event.time,
                None if (second, whose) == NEVER => return None,
                None => second,
            };
            if !PLAIN && self.server.until.is_some_and(|until| time >= until) {
                return None;
            }
            if time > self.task.limit {
                return Some(past(self.task.limit));
            }
            match next {
                Some(Event { client, failures, .. }) => self.send(time, self.caller(client, failures)),
                None => {
                    let first = self.firsts.pop()?;
                    self.hedge(time, first);
                }
            }
            events += 1;
            if events.is_multiple_of(TICK)
                && let Some(stops) = self.server.stops(self.task, events, most)
            {
                return Some(stops);
            }
        }
    }

    #[inline(always)]
    fn caller(&self, client: u32, failures: u32) -> Caller {
        Caller { client, place: if PLAIN { 0 } else { self.cast.place(client) }, failures }
    }

    #[inline(always)]
    fn role(&self, caller: Caller) -> &Role<'a> {
        &self.cast.roles()[caller.place]
    }

    /// What becomes of an attempt that is sent now; nothing if it arrives after the end of all.
    #[inline(always)]
    fn depart(&mut self, sent: u64, Caller { client, place, failures }: Caller, is_hedge: bool) -> Option<End> {
        let arrives = sent.saturating_add(self.way);
        let attempt = Attempt { client, place, failures, is_hedge, sent };
        let (noticed, fate) = match PLAIN {
            true => self.server.arrive_plainly(arrives, attempt, self.way),
            false if self.server.until.is_some_and(|until| arrives >= until) => return None,
            false => self.server.arrive(arrives, attempt, &self.cast.roles()[place], self.way),
        };
        Some(End { noticed, sent, fate, is_hedge })
    }

    /// The client makes an attempt.
    #[inline(always)]
    fn send(&mut self, now: u64, caller: Caller) {
        let Some(end) = self.depart(now, caller, false) else { return };
        let Some(mut call) = self.hedges_of(caller, now) else { return self.ended(caller, None, &[end]) };
        let due = call.due().map_or(u64::MAX, Timestamp::as_nanos);
        let second = match end.fate {
            _ if end.noticed > due => due,
            Fate::Success => return self.ended(caller, None, &[end]),
            failed if call.on_failure(Timestamp::from_nanos(end.noticed), failed.verdict()) == HedgeStep::Start => {
                end.noticed
            }
            _ => return self.ended(caller, None, &[end]),
        };
        let Caller { client, failures, .. } = caller;
        let flight = Flight { sent: now, fate: end.fate };
        self.firsts.push(second, Flying { client, failures, memory: end.noticed, flight });
    }

    /// What a client with an attempt under way decides by, if it may make another one beside it.
    #[inline(always)]
    fn hedges_of(&self, caller: Caller, sent: u64) -> Option<HedgedCall> {
        let hedge = self.hedges[caller.place].as_ref()?;
        if !PLAIN {
            let (_, repeatable) = self.role(caller).manners.of(&self.task.draws, caller.client);
            if !repeatable {
                return None;
            }
        }
        Some(hedge.start(Timestamp::from_nanos(sent)))
    }

    /// The client makes a second attempt beside the first, or in the place of it.
    #[inline(always)]
    fn hedge(&mut self, now: u64, first: Flying<u64>) {
        let Flying { client, failures, memory: noticed, flight: Flight { sent, fate } } = first;
        let caller = self.caller(client, failures);
        let first = End { noticed, sent, fate, is_hedge: false };
        let Some(mut call) = self.hedges_of(caller, sent) else { return };
        // What is noticed before a second attempt starts beside it has failed.
        let is_alone = noticed <= now;
        if is_alone {
            call.on_failure(Timestamp::from_nanos(noticed), fate.verdict());
            if !PLAIN {
                self.server.meter.tell(caller.place, |meter| meter.judged(sent, failures == 0, false));
            }
        }
        call.begun(Timestamp::from_nanos(now));
        match self.depart(now, caller, true) {
            None if is_alone => {}
            None => self.ended(caller, Some(call), &[first]),
            Some(second) if is_alone => self.ended(caller, Some(call), &[second]),
            // Of two at one time, the first is noticed first.
            Some(second) if first.noticed <= second.noticed => self.ended(caller, Some(call), &[first, second]),
            Some(second) => self.ended(caller, Some(call), &[second, first]),
        }
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

    /// These ends of attempts will be noticed, in this order, until one of them ends the others.
    #[inline(always)]
    fn ended(&mut self, caller: Caller, mut call: Option<HedgedCall>, ends: &[End]) {
        let Caller { client, place, failures } = caller;
        for end in ends {
            let End { noticed, sent, fate, is_hedge } = *end;
            if self.is_too_late(noticed, client) {
                return;
            }
            let succeeded = matches!(fate, Fate::Success);
            if !PLAIN {
                let is_first = failures == 0 && !is_hedge;
                self.server.meter.tell(place, |meter| meter.judged(sent, is_first, succeeded));
            }
            if succeeded {
                return self.connected(noticed, caller);
            }
            let (time, verdict) = (Timestamp::from_nanos(noticed), fate.verdict());
            let waits = call.as_mut().is_some_and(|call| call.on_failure(time, verdict) == HedgeStep::Wait);
            if !waits {
                let verdict = call.map_or(verdict, |call| call.verdict(time, verdict));
                return self.failed(noticed, caller, verdict);
            }
        }
    }

    #[inline(always)]
    fn connected(&mut self, now: u64, Caller { client, place, failures }: Caller) {
        let (started, attempts) = (self.starts.of(client), failures + 1);
        if PLAIN {
            return self.server.meter.all.connected(now, started, attempts);
        }
        self.server.meter.tell(place, |meter| meter.connected(now, started, attempts));
        if self.starts.is_joined() && !(attempts == 1 && self.starts.is_newcomer(client)) {
            self.server.meter.tell(place, |meter| meter.drained(now));
        }
    }

    #[inline(always)]
    fn failed(&mut self, now: u64, caller: Caller, verdict: Verdict) {
        let Caller { client, place, failures } = caller;
        let started = self.starts.of(client);
        let decision = self.clients.fail(Failure { client, place, failures, started, now, verdict });
        let role = self.role(caller);
        let reason = match decision {
            Decision::Retry(_) if !PLAIN && role.manners.leaves(&self.task.draws, client, failures) => {
                Reason::Cancelled
            }
            Decision::Retry(delay) => {
                let delay = nanos(delay);
                role.bounds.check(failures + 1, delay, verdict);
                self.queue.push(Event { time: now.saturating_add(delay), client, failures: failures + 1 });
                return;
            }
            Decision::GiveUp(reason) => reason,
        };
        if self.server.until.is_none() {
            self.server.door.outside = self.server.door.outside.saturating_sub(1);
        }
        self.server.meter.tell(place, |meter| meter.gave_up(now, reason, failures + 1));
    }
}
