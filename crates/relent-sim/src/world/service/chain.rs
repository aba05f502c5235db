//! The exact engine for chains of layers that each have a policy, a timeout and a deadline.
//!
//! Every layer has calls of its own. A call makes attempts, one after another; an attempt is a call of the layer below, or, of
//! the last layer, a request to the server. Who stops waiting for an attempt does not end it: the calls below go on until
//! they succeed, give up, or are past the time that they were told.

use super::{
    door::Door,
    manners::Manners,
    reception::MOST_INSIDE,
    starts::Starts,
    work::{Line, Work},
};
use crate::{
    engine::{
        control::{TICK, most_attempts, past},
        draws::Purpose,
        task::Task,
        travel::Ways,
    },
    outcome::run::Run,
    scenario::{Arrivals, Layer},
    time::nanos,
    world::{
        bounds::Bounds,
        meter::{Judge, Meter},
    },
};
use relent::{Call, Decision, Policy, Reason, Timestamp, Verdict, rng::mix};
use std::{cmp::Reverse, collections::BinaryHeap};

/// A place among the calls, and which of those that have had it. A call that is over is nobody's any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    place: u32,
    round: u32,
}

/// An attempt of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Attempt {
    of: Id,
    number: u32,
}

/// What comes of an attempt.
type Fate = Result<(), Verdict>;

/// Things in the order in which they happen at one time.
#[derive(Clone, Copy, Debug)]
enum What {
    /// The answer reaches who asked.
    Answer(Attempt, Fate),
    /// Who asked stops waiting.
    Impatient(Attempt),
    /// A request of a client reaches the server: how many it made before, when it was sent, and until when it is waited for.
    Arrives(Attempt, u32, u64, u64),
    /// A call from above reaches a layer.
    Begins(Attempt),
    /// The next attempt is made.
    Again(Attempt),
}

struct Happening {
    time: u64,
    client: u32,
    /// The order in which they were foreseen.
    order: u64,
    what: What,
}

impl Happening {
    const fn key(&self) -> (u64, u8, u32, u64) {
        let kind = match self.what {
            What::Answer(..) => 0,
            What::Impatient(_) => 1,
            What::Arrives(..) => 2,
            What::Begins(_) => 3,
            What::Again(_) => 4,
        };
        (self.time, kind, self.client, self.order)
    }
}

impl PartialEq for Happening {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Happening {}

impl PartialOrd for Happening {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Happening {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// A call of a layer.
struct Node<'a> {
    round: u32,
    layer: u8,
    client: u32,
    /// The attempt of the layer above that it is.
    above: Option<Attempt>,
    call: Call<&'a Policy>,
    /// The attempt under way or next, from 1.
    number: u32,
    waiting: bool,
    /// When the call is over, whatever becomes of it.
    ends: u64,
    /// Until when it waits for the attempt under way.
    patience: u64,
}

/// The bytes of all that may be under way between so many layers; a list that grows takes twice its room.
pub(crate) fn memory(clients: u64, layers: u64) -> u64 {
    let call = size_of::<Option<Node<'_>>>() + 2 * size_of::<u32>();
    let each = call.max(size_of::<Happening>()) as u64;
    most_under_way(clients, layers).saturating_mul(each).saturating_add(clients.saturating_mul(64))
}

/// So many calls and answers may be under way. Callers that give up leave theirs behind, which nothing else bounds.
fn most_under_way(clients: u64, layers: u64) -> u64 {
    const AT_LEAST: u64 = 1_000_000;
    AT_LEAST.max(clients.saturating_mul(layers).saturating_mul(6))
}

/// What calls of a layer have in common.
struct Stage<'a> {
    layer: &'a Layer,
    policy: &'a Policy,
    timeout: u64,
    deadline: u64,
    one_way: u64,
    bounds: Bounds,
    attempts: u64,
}

/// Runs the scenario.
pub(crate) fn run(task: &Task<'_>) -> Run {
    let layers = &task.contender.layers;
    let stage = |(nth, layer): (usize, &'_ Layer)| {
        let policy = layer.policy.as_ref().unwrap_or(&task.contender.policy);
        let own = task.service.timeout.filter(|_| nth == 0);
        (layer.patience(policy).into_iter().chain(own).min(), layer.limit(policy))
    };
    let times: Vec<_> = layers.iter().enumerate().map(stage).collect();
    let stages = layers.iter().zip(times).map(|(layer, (timeout, deadline))| {
        let policy = layer.policy.as_ref().unwrap_or(&task.contender.policy);
        Stage {
            layer,
            policy,
            timeout: timeout.map_or(u64::MAX, nanos),
            deadline: deadline.map_or(u64::MAX, nanos),
            one_way: nanos(layer.rtt) / 2,
            bounds: Bounds::new(policy, 1),
            attempts: 0,
        }
    });
    World::new(task, stages.collect()).run()
}

struct World<'a> {
    task: &'a Task<'a>,
    stages: Vec<Stage<'a>>,
    coming: BinaryHeap<Reverse<Happening>>,
    foreseen: u64,
    nodes: Vec<Option<Node<'a>>>,
    rounds: Vec<u32>,
    free: Vec<u32>,
    /// The requests and the calls of each client so far.
    requests: Vec<u32>,
    calls: Vec<u32>,
    starts: Starts,
    manners: Manners,
    ways: Ways,
    door: Door,
    line: Line,
    work: Work,
    meter: Meter,
    until: Option<u64>,
}

impl<'a> World<'a> {
    fn new(task: &'a Task<'a>, stages: Vec<Stage<'a>>) -> World<'a> {
        let until = match &task.service.arrivals {
            Arrivals::Open { until, .. } => Some(nanos(*until)),
            Arrivals::Herd { .. } => None,
        };
        let starts = Starts::new(task.service, task.draws, task.control);
        let count = starts.len();
        let mut door = Door::new(task.service, task.contender);
        door.outside = if until.is_none() { count as u64 } else { 0 };
        World {
            task,
            coming: BinaryHeap::new(),
            foreseen: 0,
            nodes: Vec::new(),
            rounds: Vec::new(),
            free: Vec::new(),
            requests: vec![0; count],
            calls: vec![0; count],
            starts,
            manners: Manners::new(task.service, stages.first().map_or(&task.contender.policy, |stage| stage.policy)),
            ways: Ways::new(task.service.network),
            door,
            line: Line::new(task.service),
            work: Work::new(&task.service.server),
            meter: Meter::new(count as u64, until.is_some()),
            stages,
            until,
        }
    }

    fn run(mut self) -> Run {
        let clients = self.starts.len() as u64;
        for client in self.task.control.each(self.starts.len()) {
            let start = self.starts.of(client);
            let id = self.begin(start, client, 0, None, u64::MAX);
            let spread = self.node(id).map_or(0, |node| nanos(node.call.spread()));
            self.push(start.saturating_add(spread), client, What::Again(Attempt { of: id, number: 1 }));
        }
        let stopped = self.task.control.stopped().or_else(|| self.happenings());
        // Of one that has not begun nothing is shown.
        if self.until.is_some() && (stopped.is_none() || self.meter.attempts > 0) {
            self.meter.began((0..clients as u32).map(|client| self.starts.of(client)));
        }
        let ended = self.meter.connected + self.meter.gave_up_total();
        assert!(ended <= clients, "every client ends once: {ended} of {clients}");
        assert!(ended == clients || self.until.is_some() || stopped.is_some(), "{ended} of {clients} clients ended");
        self.meter.in_flight = clients - ended;
        let judge = Judge::new(self.task.service, self.task.contender);
        let mut run = self.meter.finish(&judge, clients, self.line.busy.nanos(), self.until, stopped);
        let attempts = |stage: &Stage<'_>| (format!("attempts of {}", stage.layer.name), stage.attempts, clients);
        run.notes = self.stages.iter().map(attempts).collect();
        run
    }

    fn happenings(&mut self) -> Option<String> {
        // What layers do among each other is work, too.
        let most = most_attempts(self.starts.len() as u64).saturating_mul(4);
        let mut events = 0u64;
        let most_under_way = most_under_way(self.starts.len() as u64, self.stages.len() as u64);
        while let Some(Reverse(Happening { time, client, what, .. })) = self.coming.pop() {
            if self.until.is_some_and(|until| time >= until) {
                break;
            }
            if time > self.task.limit {
                return Some(past(self.task.limit));
            }
            match what {
                What::Answer(attempt, fate) => self.answered(time, attempt, fate),
                What::Impatient(attempt) => self.impatient(time, attempt),
                What::Arrives(attempt, failures, sent, patience) => {
                    self.arrive(time, client, (attempt, failures), (sent, patience));
                }
                What::Begins(above) => self.called(time, client, above),
                What::Again(attempt) => self.attempt(time, attempt),
            }
            events += 1;
            if events.is_multiple_of(TICK) {
                let stops = self.task.control.stops(events, most);
                if stops.is_some() {
                    return stops;
                }
                if let Some(stops) = self.make_room() {
                    return Some(stops);
                }
                if self.line.inside(0) > MOST_INSIDE {
                    return Some(format!("more than {MOST_INSIDE} requests are inside the server"));
                }
                if (self.nodes.len() - self.free.len() + self.coming.len()) as u64 > most_under_way {
                    return Some(format!("more than {most_under_way} calls and answers are under way between layers"));
                }
            }
        }
        None
    }

    /// Takes room for all that may come until the next look: each brings two at most.
    fn make_room(&mut self) -> Option<String> {
        let control = self.task.control;
        let begin = (TICK as usize).saturating_sub(self.free.len());
        let _ = control.has_room(&mut self.coming, 2 * TICK as usize)
            && control.has_room(&mut self.nodes, begin)
            && control.has_room(&mut self.rounds, begin)
            && control.has_room(&mut self.free, TICK as usize);
        self.line.make_room(self.door.queue(), control);
        self.door.make_room(control);
        control.stopped()
    }

    fn push(&mut self, time: u64, client: u32, what: What) {
        self.foreseen += 1;
        self.coming.push(Reverse(Happening { time, client, order: self.foreseen, what }));
    }

    fn node(&mut self, id: Id) -> Option<&mut Node<'a>> {
        self.nodes.get_mut(id.place as usize)?.as_mut().filter(|node| node.round == id.round)
    }

    /// A call of a layer, which may not last longer than it was told.
    fn begin(&mut self, now: u64, client: u32, layer: u8, above: Option<Attempt>, told: u64) -> Id {
        let stage = &self.stages[usize::from(layer)];
        let ends = now.saturating_add(stage.deadline).min(told);
        let nth = self.calls[client as usize];
        self.calls[client as usize] = nth.wrapping_add(1);
        let own = self.task.draws.call(u64::from(client));
        let seed = if layer == 0 { own } else { mix(own ^ mix(u64::from(layer) << 32 | u64::from(nth))) };
        let mut call = stage.policy.call(Timestamp::from_nanos(now), seed);
        if ends < u64::MAX {
            call = call.deadline_at(Timestamp::from_nanos(ends));
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            self.rounds.push(0);
            (self.nodes.len() - 1) as u32
        });
        let round = &mut self.rounds[place as usize];
        *round = round.wrapping_add(1);
        let round = *round;
        self.nodes[place as usize] =
            Some(Node { round, layer, client, above, call, number: 1, waiting: false, ends, patience: u64::MAX });
        Id { place, round }
    }

    /// A call from above reaches the layer below.
    fn called(&mut self, now: u64, client: u32, above: Attempt) {
        // Who has stopped waiting meanwhile has not told it.
        let (layer, told) = match self.node(above.of).filter(|node| node.number == above.number && node.waiting) {
            Some(node) => (node.layer, node.patience),
            None => return,
        };
        let told = if self.stages[usize::from(layer)].layer.passes_deadline { told } else { u64::MAX };
        let of = self.begin(now, client, layer + 1, Some(above), told);
        self.attempt(now, Attempt { of, number: 1 });
    }

    fn attempt(&mut self, now: u64, attempt: Attempt) {
        let Some(node) = self.node(attempt.of) else { return };
        let (layer, client, ends) = (node.layer, node.client, node.ends);
        if now >= ends {
            self.end(now, attempt.of, Err((Reason::Elapsed, Verdict::Transient)));
            return;
        }
        let last = usize::from(layer) + 1 == self.stages.len();
        let stage = &mut self.stages[usize::from(layer)];
        stage.attempts += 1;
        let patience = now.saturating_add(stage.timeout).min(ends);
        let one_way = stage.one_way;
        if let Some(node) = self.node(attempt.of) {
            (node.number, node.waiting, node.patience) = (attempt.number, true, patience);
        }
        if patience < u64::MAX {
            self.push(patience, client, What::Impatient(attempt));
        }
        if !last {
            self.push(now.saturating_add(one_way), client, What::Begins(attempt));
            return;
        }
        let failures = self.requests[client as usize];
        self.requests[client as usize] = failures.saturating_add(1);
        let out = self.way(client, failures + 1, Purpose::Out);
        self.push(now.saturating_add(out), client, What::Arrives(attempt, failures, now, patience));
    }

    fn way(&self, client: u32, attempt: u32, purpose: Purpose) -> u64 {
        self.ways.delay(|| self.task.draws.world(u64::from(client), attempt, purpose))
    }

    /// A request reaches the server, whether or not anybody waits for its answer.
    fn arrive(&mut self, now: u64, client: u32, (attempt, failures): (Attempt, u32), (sent, patience): (u64, u64)) {
        let (draws, nth) = (self.task.draws, failures + 1);
        self.meter.arrived(now, client, failures);
        let back = self.way(client, nth, Purpose::Back);
        let inside = self.line.inside(now);
        if self.door.loses(&draws, client, nth, now) {
            self.meter.rejected(now);
            self.meter.judged(sent, failures == 0, false);
            return;
        }
        if !self.door.admits(now, inside, nth, patience.saturating_sub(now)) {
            self.meter.rejected(now);
            if failures == 0 && self.until.is_some() {
                self.door.outside += 1;
            }
            let verdict = self.door.refusal(&draws, client, nth, now, self.line.free_at());
            if self.task.contender.protection.has_gate() {
                self.meter.refused_by_server(verdict);
            }
            self.meter.judged(sent, failures == 0, false);
            self.push(now.saturating_add(back), client, What::Answer(attempt, Err(verdict)));
            return;
        }
        if self.until.is_none() || failures > 0 {
            self.door.outside = self.door.outside.saturating_sub(1);
        }
        let (cost, repeatable) = self.manners.of(&draws, client);
        let work = self.work.take(&draws, client, nth, cost);
        let done = self.line.enter(now, work);
        self.door.entered(now, work.nanos(), done);
        self.meter.served(done);
        let reply = done.saturating_add(back);
        let fails = reply <= patience && self.door.fails(&draws, client, nth, done);
        if fails {
            self.meter.rejected(now);
        }
        self.meter.judged(sent, failures == 0, reply <= patience && !fails);
        let again = if repeatable { Verdict::Transient } else { Verdict::Permanent };
        self.push(reply, client, What::Answer(attempt, if fails { Err(again) } else { Ok(()) }));
    }

    fn answered(&mut self, now: u64, attempt: Attempt, fate: Fate) {
        let Some(node) = self.node(attempt.of).filter(|node| node.waiting && node.number == attempt.number) else {
            return;
        };
        node.waiting = false;
        match fate {
            Ok(()) => self.end(now, attempt.of, Ok(())),
            Err(verdict) => self.failed(now, attempt, verdict),
        }
    }

    fn impatient(&mut self, now: u64, attempt: Attempt) {
        let Some(node) = self.node(attempt.of).filter(|node| node.waiting && node.number == attempt.number) else {
            return;
        };
        node.waiting = false;
        let (client, is_over) = (node.client, now >= node.ends);
        if is_over {
            self.end(now, attempt.of, Err((Reason::Elapsed, Verdict::Transient)));
            return;
        }
        let (_, repeatable) = self.manners.of(&self.task.draws, client);
        self.failed(now, attempt, if repeatable { Verdict::Transient } else { Verdict::Permanent });
    }

    /// An attempt failed: the layer decides, by relent's core, whether there is another one.
    fn failed(&mut self, now: u64, attempt: Attempt, verdict: Verdict) {
        let Some(node) = self.node(attempt.of) else { return };
        let (layer, client) = (node.layer, node.client);
        let mut decision = node.call.on_failure(Timestamp::from_nanos(now), verdict);
        if layer == 0 && self.manners.leaves(&self.task.draws, client, attempt.number - 1) {
            decision = match decision {
                Decision::Retry(_) => Decision::GiveUp(Reason::Cancelled),
                given_up => given_up,
            };
        }
        match decision {
            Decision::Retry(delay) => {
                let delay = nanos(delay);
                self.stages[usize::from(layer)].bounds.check(attempt.number, delay, verdict);
                let next = Attempt { number: attempt.number + 1, ..attempt };
                self.push(now.saturating_add(delay), client, What::Again(next));
            }
            Decision::GiveUp(reason) => self.end(now, attempt.of, Err((reason, verdict))),
        }
    }

    /// A call is over: the layer above is answered, or the client has its answer.
    fn end(&mut self, now: u64, id: Id, fate: Result<(), (Reason, Verdict)>) {
        if self.node(id).is_none() {
            return;
        }
        let Some(node) = self.nodes[id.place as usize].take() else { return };
        self.free.push(id.place);
        let Node { client, layer, above, .. } = node;
        if let Some(above) = above {
            let say_overloaded = self.stages[usize::from(layer)].layer.say_overloaded;
            let answer = fate.map_err(|(_, verdict)| match verdict {
                // What must not be repeated is repeated by nobody.
                Verdict::Permanent | Verdict::Overloaded => verdict,
                _ if say_overloaded => Verdict::Overloaded,
                _ => Verdict::Transient,
            });
            let one_way = self.stages[usize::from(layer) - 1].one_way;
            self.push(now.saturating_add(one_way), client, What::Answer(above, answer));
            return;
        }
        let requests = self.requests[client as usize];
        match fate {
            Ok(()) => self.meter.connected(now, self.starts.of(client), requests),
            Err((reason, _)) => {
                if self.until.is_none() {
                    self.door.outside = self.door.outside.saturating_sub(1);
                }
                self.meter.gave_up(now, reason, requests);
            }
        }
    }
}
