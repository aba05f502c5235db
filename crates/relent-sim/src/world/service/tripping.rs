//! Clients who share breakers and have nothing else of an upstream, in a world in which nothing happens but that attempts are
//! refused at the door or succeed.
//!
//! What clients have under way stands in [lanes](super::flights). Two things spare most of the work that breakers make. While
//! one is open, or as many probes are under way as may be, it is known until when it lets nobody through: who would ask
//! meanwhile is put off before its turn. And what was sent before a breaker tripped tells it nothing when it ends. Everything
//! that a breaker decides is decided by relent's own [`Breaker`].

use super::{
    cast::{Cast, Role},
    clients::{Clients, Failure, Single},
    door::Door,
    flights::{Flights, Flying, NEVER, shrink},
    held::{Fate, Flight},
    players::common_way,
    predict::{patience, upstream_draw},
    reception::{Attempt, Reception},
    starts::Starts,
};
use crate::{
    engine::{
        calendar::{Event, PutOff, Queue},
        control::{TICK, most_attempts, past},
        draws::Draws,
        task::Task,
    },
    outcome::run::Run,
    scenario::{Arrivals, Protection},
    time::nanos,
};
use relent::{
    Breaker, BreakerChange, BreakerPass, BreakerState, Decision, Reason, Refused, Timestamp, Upstream, Verdict,
};
use std::{collections::VecDeque, time::Duration};

/// Whether clients are such, and their world.
pub(super) fn only_trip(task: &Task<'_>, cast: &Cast<'_>, starts: &Starts) -> bool {
    let Some(role) = cast.only() else { return false };
    let Protection { budget: None, breaker: Some(breaker), limit: None, hedge: None, .. } = role.protection else {
        return false;
    };
    let is_herd = matches!(task.service.arrivals, Arrivals::Herd { .. }) && !starts.is_joined();
    let is_plain = role.manners.is_plain() && Door::new(task.service, task.contender).is_plain();
    is_herd && is_plain && common_way(cast).is_some() && breaker.ramp.is_zero()
}

/// Runs the scenario of clients who [only trip](only_trip) the breakers of these upstreams, which they share in turn.
pub(super) fn run<Q: Queue>(
    task: &Task<'_>,
    queue: Q,
    (cast, starts): (Cast<'_>, Starts),
    upstreams: &[Upstream],
) -> Run {
    let clients = Single::new(&task.contender.policy, task.draws, starts.len());
    let settings = task.contender.protection.breaker.unwrap_or_default();
    let world = World {
        task,
        queue,
        served: Flights::new(),
        refused: VecDeque::new(),
        clients,
        hosts: upstreams.iter().filter_map(Upstream::its_breaker).map(Host::new).collect(),
        shut_until: 0,
        waits_while_open: task.contender.protection.wait_while_open,
        put_off: 0,
        is_drawn: settings.jitter > 0.0,
        probes_alone: (settings.probes == 1 || settings.close_after == 1) && settings.probe_again_after.is_none(),
        open_for: nanos(settings.open_for),
        server: Reception::new(task, starts.len() as u64, cast.populations()),
        way: common_way(&cast).unwrap_or_default(),
        cast,
        starts,
    };
    world.run()
}

struct World<'a, 'u, Q> {
    task: &'a Task<'a>,
    queue: Q,
    /// What will succeed, and what will fail, which is refused at once, so that it ends in the order in which it was sent. With
    /// each attempt goes how often its breaker had tripped, or that it is a probe.
    served: Flights<u32>,
    refused: VecDeque<Failing>,
    clients: Single<'a>,
    hosts: Vec<Host<'u>>,
    /// The last of the times until which breakers let nobody through.
    shut_until: u64,
    waits_while_open: bool,
    /// How often clients found their breaker shut, and waited.
    put_off: u64,
    /// Whether it is drawn how long a breaker is open.
    is_drawn: bool,
    /// Whether nobody is let through while a probe is under way.
    probes_alone: bool,
    open_for: u64,
    cast: Cast<'a>,
    starts: Starts,
    server: Reception,
    way: u64,
}

/// An attempt under way that will fail.
#[derive(Clone, Copy)]
struct Failing {
    ends: u64,
    client: u32,
    failures: u32,
    memory: u32,
}

/// The breaker of a process.
struct Host<'u> {
    breaker: &'u Breaker,
    /// How often it has tripped.
    trips: u32,
    /// Until then it lets nobody through, and refuses all until `again`, or for `again_in` if that is less.
    shut_until: u64,
    again: u64,
    again_in: u64,
    /// The probes under way.
    probes: Vec<(u32, BreakerPass)>,
}

/// The number that goes with a probe.
const PROBE: u32 = u32::MAX;

impl<'u> Host<'u> {
    const fn new(breaker: &'u Breaker) -> Host<'u> {
        Host { breaker, trips: 0, shut_until: 0, again: 0, again_in: u64::MAX, probes: Vec::new() }
    }
}

/// Who asks, how long they wait, and what chance says.
struct Asking<'a, 'b> {
    draws: Draws,
    role: &'b Role<'a>,
    starts: &'b Starts,
    waits_while_open: bool,
}

impl Asking<'_, '_> {
    fn draw(&self, Event { time, client, failures }: Event) -> u64 {
        upstream_draw(&self.draws, client, failures + 1, time)
    }

    /// When who is refused now will ask again, if it will.
    #[inline(always)]
    fn again(&self, event: Event, refused: Refused, draw: u64) -> Option<u64> {
        if !self.waits_while_open || refused.again == Timestamp::MAX {
            return None;
        }
        let again = refused.asks_again(Timestamp::from_nanos(event.time), draw).as_nanos();
        let is_patient = self.role.ends.is_none() && self.role.waits == Duration::MAX;
        let within = || nanos(patience(self.role, self.starts, event.client)(event.time));
        (is_patient || again - event.time <= within()).then_some(again)
    }

    /// The same of a breaker that is shut.
    #[inline(always)]
    fn shut_out(&self, event: Event, host: &Host<'_>) -> Option<u64> {
        let again = host.again.min(event.time.saturating_add(host.again_in));
        let refused = Refused::new(Reason::Open, Timestamp::from_nanos(again));
        self.again(event, refused, self.draw(event))
    }
}

/// The clients who would ask a breaker that is shut then.
struct ShutOut<'a, 'b, 'u> {
    asking: Asking<'a, 'b>,
    hosts: &'b [Host<'u>],
    shut_until: u64,
    put_off: u64,
}

impl PutOff for ShutOut<'_, '_, '_> {
    #[inline(always)]
    fn is_asked(&self, from: u64) -> bool {
        from < self.shut_until
    }

    #[inline(always)]
    fn until(&mut self, event: Event) -> Option<u64> {
        let host = &self.hosts[host_of(event.client, self.hosts.len())];
        if event.time >= host.shut_until {
            return None;
        }
        let again = self.asking.shut_out(event, host)?;
        self.put_off += 1;
        Some(again)
    }
}

/// Clients go to the processes in turn.
#[inline(always)]
const fn host_of(client: u32, hosts: usize) -> usize {
    if hosts == 1 { 0 } else { (client % hosts as u32) as usize }
}

impl<'a, Q: Queue> World<'a, '_, Q> {
    fn run(mut self) -> Run {
        let clients = self.starts.len() as u64;
        for client in self.task.control.each(self.starts.len()) {
            let time = self.cast.first_attempt(&self.task.draws, &self.starts, client);
            self.queue.push(Event { time, client, failures: 0 });
        }
        let stopped = self.task.control.stopped().or_else(|| self.events());
        self.server.meter.all.put_off(self.put_off);
        let ended = self.server.ended(clients);
        assert!(ended == clients || stopped.is_some(), "{ended} of {clients} clients ended");
        self.server.meter.all.in_flight = clients - ended;
        self.server.finish(self.task, &self.cast, &self.starts, stopped)
    }

    fn role(&self) -> &Role<'a> {
        &self.cast.roles()[0]
    }

    fn events(&mut self) -> Option<String> {
        let most = most_attempts(self.starts.len() as u64).saturating_mul(4);
        let mut events = 0u64;
        loop {
            let refused = self.refused.front().map_or(NEVER, |first| (first.ends, first.client));
            let served = self.served.next();
            let (lands, whose) = served.min(refused);
            let asking = Asking {
                draws: self.task.draws,
                role: &self.cast.roles()[0],
                starts: &self.starts,
                waits_while_open: self.waits_while_open,
            };
            let mut shut = ShutOut { asking, hosts: &self.hosts, shut_until: self.shut_until, put_off: 0 };
            let next = self.queue.pop_before(lands, whose, &mut shut);
            self.put_off += shut.put_off;
            let time = match next {
                Some(event) => event.time,
                None if (lands, whose) == NEVER => return None,
                None => lands,
            };
            if time > self.task.limit {
                return Some(past(self.task.limit));
            }
            match next {
                Some(event) => self.send(event),
                None if refused < served => self.fails(),
                None => self.succeeds(time),
            }
            events += 1;
            if events.is_multiple_of(TICK)
                && let Some(stops) = self.server.stops(self.task, events + self.put_off, most)
            {
                return Some(stops);
            }
        }
    }

    #[inline(always)]
    fn asking(&self) -> Asking<'a, '_> {
        let (draws, waits_while_open) = (self.task.draws, self.waits_while_open);
        Asking { draws, role: &self.cast.roles()[0], starts: &self.starts, waits_while_open }
    }

    /// The client wants to make an attempt.
    #[inline(always)]
    fn send(&mut self, event: Event) {
        let place = host_of(event.client, self.hosts.len());
        let host = &self.hosts[place];
        if event.time < host.shut_until {
            let again = self.asking().shut_out(event, host);
            self.refused(event, again);
        } else if host.breaker.pass_closed().is_some() {
            let trips = host.trips;
            self.depart(event, trips);
        } else {
            self.probe(event, place);
        }
    }

    /// The breaker is not closed, and may let a probe through.
    #[inline(never)]
    fn probe(&mut self, event: Event, place: usize) {
        let asking = self.asking();
        let draw = asking.draw(event);
        match self.hosts[place].breaker.pass(Timestamp::from_nanos(event.time), draw) {
            Ok(pass) => {
                let lands = self.depart(event, PROBE);
                let host = &mut self.hosts[place];
                host.probes.push((event.client, pass));
                if self.probes_alone {
                    // Whoever asks is told that it may fail at once.
                    (host.shut_until, host.again, host.again_in) = (lands, u64::MAX, self.open_for);
                    self.shut_until = self.shut_until.max(lands);
                }
            }
            Err(refused) => {
                let again = asking.again(event, refused, draw);
                self.refused(event, again);
            }
        }
    }

    #[inline(always)]
    fn refused(&mut self, event: Event, again: Option<u64>) {
        match again {
            Some(time) => {
                self.put_off += 1;
                self.queue.push(Event { time, ..event });
            }
            None => self.give_up(event.time, Reason::Open, event.failures),
        }
    }

    /// The attempt is made. When its client will know what became of it.
    #[inline(always)]
    fn depart(&mut self, Event { time: sent, client, failures }: Event, memory: u32) -> u64 {
        let attempt = Attempt { client, place: 0, failures, is_hedge: false, sent };
        let (noticed, fate) = self.server.arrive_plainly(sent.saturating_add(self.way), attempt, self.way);
        match fate {
            Fate::Success => {
                self.served.push(noticed, Flying { client, failures, memory, flight: Flight::sent(sent) });
            }
            _ => self.refused.push_back(Failing { ends: noticed, client, failures, memory }),
        }
        noticed
    }

    /// The client whose attempt succeeds next learns of it.
    #[inline(always)]
    fn succeeds(&mut self, now: u64) {
        let Some(Flying { client, failures, memory, flight: Flight { sent, .. } }) = self.served.pop() else { return };
        self.tell(memory, (client, failures), (sent, now), true);
        self.server.meter.all.connected(now, self.starts.of(client), failures + 1);
    }

    /// The client whose attempt fails next learns of it.
    #[inline(always)]
    fn fails(&mut self) {
        let Some(Failing { ends: now, client, failures, memory }) = self.refused.pop_front() else { return };
        shrink(&mut self.refused);
        self.tell(memory, (client, failures), (now.saturating_sub(2 * self.way), now), false);
        let (started, verdict) = (self.starts.of(client), Verdict::Transient);
        match self.clients.fail(Failure { client, place: 0, failures, started, now, verdict }) {
            Decision::Retry(delay) => {
                let delay = nanos(delay);
                self.role().bounds.check(failures + 1, delay, verdict);
                self.queue.push(Event { time: now.saturating_add(delay), client, failures: failures + 1 });
            }
            Decision::GiveUp(reason) => self.give_up(now, reason, failures + 1),
        }
    }

    /// The breaker is told what became of an attempt that it let through.
    #[inline(always)]
    fn tell(&mut self, memory: u32, (client, failures): (u32, u32), (sent, now): (u64, u64), succeeded: bool) {
        let place = host_of(client, self.hosts.len());
        let host = &mut self.hosts[place];
        let pass = match memory {
            PROBE => taken(&mut host.probes, client),
            // What was sent before it tripped tells it nothing.
            trips if trips != host.trips => None,
            _ => host.breaker.pass_closed(),
        };
        let Some(pass) = pass else { return };
        let draw = if self.is_drawn { upstream_draw(&self.task.draws, client, failures + 1, !now) } else { 0 };
        let (time, took) = (Timestamp::from_nanos(now), Duration::from_nanos(now.saturating_sub(sent)));
        let change = match succeeded {
            true => host.breaker.succeeded(pass, time, took, draw),
            false => host.breaker.failed(pass, time, took, draw),
        };
        if let Some(change) = change {
            self.changed(change, place, time);
        }
    }

    #[inline(never)]
    fn changed(&mut self, change: BreakerChange, place: usize, now: Timestamp) {
        let host = &mut self.hosts[place];
        host.shut_until = 0;
        if change.to == BreakerState::Open {
            host.trips += 1;
            let until = host.breaker.worth_asking_at(now).as_nanos();
            (host.shut_until, host.again, host.again_in) = (until, until, u64::MAX);
            self.shut_until = self.shut_until.max(until);
        }
    }

    /// The call is given up, after so many attempts.
    fn give_up(&mut self, now: u64, reason: Reason, attempts: u32) {
        if matches!(reason, Reason::Budget | Reason::Open | Reason::Shed) {
            self.server.meter.all.refused_by_client(reason);
        }
        self.server.door.outside = self.server.door.outside.saturating_sub(1);
        self.server.meter.all.gave_up(now, reason, attempts);
    }
}

/// The pass of this client's probe.
#[cold]
fn taken(probes: &mut Vec<(u32, BreakerPass)>, client: u32) -> Option<BreakerPass> {
    let place = probes.iter().position(|(whose, _)| *whose == client)?;
    Some(probes.swap_remove(place).1)
}
