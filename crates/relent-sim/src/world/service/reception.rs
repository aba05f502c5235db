//! What becomes of an attempt that arrives at a server whose queue is first come, first served: the door, the line behind it,
//! and what is counted there. Its fate, and when its client will notice it, are known at once.

use super::{
    cast::{Cast, Role},
    door::Door,
    held::Fate,
    starts::Starts,
    work::{Line, Work},
};
use crate::{
    engine::{draws::Draws, task::Task},
    outcome::run::Run,
    scenario::Arrivals,
    time::nanos,
    world::{meter::Judge, meters::Meters},
};
use relent::Verdict;

/// A run with more requests inside the server than this would run out of memory.
pub(crate) const MOST_INSIDE: u64 = 50_000_000;

/// A server, and what is counted of all that arrive there.
pub(super) struct Reception {
    pub(super) door: Door,
    pub(super) line: Line,
    work: Work,
    pub(super) meter: Meters,
    draws: Draws,
    /// The end of open arrivals.
    pub(super) until: Option<u64>,
}

/// An attempt that arrives.
#[derive(Clone, Copy)]
pub(super) struct Attempt {
    pub(super) client: u32,
    /// The population of its client.
    pub(super) place: usize,
    /// The attempts of its call before.
    pub(super) failures: u32,
    /// Whether it is made beside another.
    pub(super) is_hedge: bool,
    pub(super) sent: u64,
}

/// Draws of a hedge are apart from those of the attempt that it doubles.
const HEDGED: u32 = 1 << 30;

impl Attempt {
    /// The number by which chance knows it.
    #[inline(always)]
    pub(super) const fn number(&self) -> u32 {
        if self.is_hedge { (self.failures + 1) | HEDGED } else { self.failures + 1 }
    }
}

impl Reception {
    /// Where so many clients of so many populations will call.
    pub(super) fn new(task: &Task<'_>, clients: u64, populations: usize) -> Reception {
        let until = match &task.service.arrivals {
            Arrivals::Open { until, .. } => Some(nanos(*until)),
            Arrivals::Herd { .. } => None,
        };
        let mut door = Door::new(task.service, task.contender);
        door.outside = if until.is_none() { clients } else { 0 };
        Reception {
            door,
            line: Line::new(task.service),
            work: Work::new(&task.service.server),
            meter: Meters::new(clients, until.is_some(), populations),
            draws: task.draws,
            until,
        }
    }

    /// It arrives now, and an answer travels for so long.
    #[inline(always)]
    pub(super) fn arrive(&mut self, now: u64, attempt: Attempt, role: &Role<'_>, back: u64) -> (u64, Fate) {
        let Attempt { client, place, failures, is_hedge, sent } = attempt;
        let (number, draws) = (attempt.number(), self.draws);
        let counted = if is_hedge { failures.max(1) } else { failures };
        self.meter.tell(place, |meter| meter.arrived(now, client, counted));
        let patience = sent.saturating_add(role.manners.timeout);
        let inside = self.line.inside(now);
        if self.door.loses(&draws, client, number, now) {
            self.meter.tell(place, |meter| meter.rejected(now));
            return (patience, Fate::TimedOut(again(role, &draws, client)));
        }
        if !self.door.admits(now, inside, failures + 1, patience.saturating_sub(now)) {
            return self.refused(now, attempt, (now.saturating_add(back), patience));
        }
        if self.until.is_none() || failures > 0 {
            self.door.outside = self.door.outside.saturating_sub(1);
        }
        let (cost, _) = role.manners.of(&draws, client);
        let work = self.work.take(&draws, client, number, cost);
        let done = self.line.enter(now, work);
        self.door.entered(now, work.nanos(), done);
        self.meter.worked(place, work);
        self.meter.tell(place, |meter| meter.served(done));
        let reply = done.saturating_add(back);
        if reply > patience {
            (patience, Fate::TimedOut(again(role, &draws, client)))
        } else if self.door.fails(&draws, client, number, done) {
            self.meter.tell(place, |meter| meter.rejected(now));
            (reply, Fate::Failure(again(role, &draws, client)))
        } else {
            (reply, Fate::Success)
        }
    }

    #[inline(always)]
    fn refused(&mut self, now: u64, attempt: Attempt, (noticed, patience): (u64, u64)) -> (u64, Fate) {
        let Attempt { client, place, failures, .. } = attempt;
        self.meter.tell(place, |meter| meter.rejected(now));
        if failures == 0 && self.until.is_some() {
            self.door.outside += 1;
        }
        let verdict = self.door.refusal(&self.draws, client, attempt.number(), now, self.line.free_at());
        if self.door.has_gate() {
            self.meter.tell(place, |meter| meter.refused_by_server(verdict));
        }
        match noticed <= patience {
            true => (noticed, Fate::Failure(verdict)),
            false => (patience, Fate::TimedOut(Verdict::Transient)),
        }
    }

    /// The same where the door is [plain](Door::is_plain), all clients are alike, and they wait for ever.
    #[inline(always)]
    pub(super) fn arrive_plainly(&mut self, now: u64, attempt: Attempt, back: u64) -> (u64, Fate) {
        let Attempt { client, failures, is_hedge, .. } = attempt;
        self.meter.all.arrived(now, client, if is_hedge { failures.max(1) } else { failures });
        let inside = self.line.inside(now);
        if !self.door.has_room(inside) {
            self.meter.all.rejected(now);
            return (now.saturating_add(back), Fate::Failure(Verdict::Transient));
        }
        let work = self.work.take(&self.draws, client, attempt.number(), 1.0);
        let done = self.line.enter(now, work);
        self.meter.all.served(done);
        (done.saturating_add(back), Fate::Success)
    }
}

impl Reception {
    /// Looks after so many events whether the run must stop, and why.
    #[cold]
    pub(super) fn stops(&mut self, task: &Task<'_>, events: u64, most: u64) -> Option<String> {
        let stops = task.control.stops(events, most).or_else(|| {
            self.line.make_room(self.door.queue(), task.control);
            self.door.make_room(task.control);
            task.control.stopped()
        });
        if stops.is_some() {
            return stops;
        }
        let is_full = self.line.inside(0) > MOST_INSIDE;
        is_full.then(|| format!("more than {MOST_INSIDE} requests are inside the server"))
    }

    /// How many of so many clients have an end, each of them one.
    pub(super) fn ended(&self, clients: u64) -> u64 {
        let ended = self.meter.all.connected + self.meter.all.gave_up_total();
        assert!(ended <= clients, "every client ends once: {ended} of {clients}");
        ended
    }

    /// What came of it all.
    pub(super) fn finish(mut self, task: &Task<'_>, cast: &Cast<'_>, starts: &Starts, stopped: Option<String>) -> Run {
        // Of one that has not begun nothing is shown.
        if self.until.is_some() && (stopped.is_none() || self.meter.all.attempts > 0) {
            self.meter.began((0..starts.len() as u32).map(|client| (cast.place(client), starts.of(client))));
        }
        let judge = Judge::new(task.service, task.contender);
        let busy = self.line.busy.nanos();
        self.meter.finish(&judge, task.contender, &cast.clients(), busy, self.until, stopped)
    }
}

/// What is known of an attempt without an answer: whether it may be made again.
#[inline(always)]
fn again(role: &Role<'_>, draws: &Draws, client: u32) -> Verdict {
    let (_, repeatable) = role.manners.of(draws, client);
    if repeatable { Verdict::Transient } else { Verdict::Permanent }
}
