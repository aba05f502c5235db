//! The machines at a server's door: relent's own admission and pacer, told what happens when it happens.
//!
//! The door may be simulated, or one to which real clients come: the time is told.

use crate::{
    engine::control::{Control, TICK},
    scenario::{Protection, Server},
};
use relent::{Admission, Admit, Arrival, Pacer, Room, Timestamp, Turn, Verdict};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    time::Duration,
};

/// The machines at a server's door, and what the last refusal said.
///
/// ```
/// use relent::{PacerSettings, Verdict};
/// use relent_sim::{Gate, Knock, Protection, Server};
/// use std::time::Duration;
///
/// let pacer = Some(PacerSettings { capacity: 10.0, ..PacerSettings::default() });
/// let mut gate = Gate::new(&Protection { pacer, ..Protection::default() }, &Server::default()).unwrap();
/// let knock = Knock { inside: 0, room: 1, has_token: true, attempt: 1, left: u64::MAX };
/// assert!(gate.decide(0, knock));
/// assert!(!gate.decide(0, Knock { inside: 1, ..knock }));
/// assert!(matches!(gate.told(), Some(Verdict::Turn(_))));
/// ```
#[derive(Debug)]
pub struct Gate {
    pacer: Option<Pacer>,
    admission: Option<Admission>,
    whole_seconds: bool,
    told: Option<Verdict>,
    /// Whether a machine learns from answers.
    learns: bool,
    workers: u64,
    answers: Answers,
}

/// When, how long the request will have waited, and how long it will have been inside.
type Answer = (u64, u64, u64);

/// The bytes that a machine which learns keeps of each request inside; a list that grows takes half as much room again.
pub(crate) fn memory(protection: &Protection) -> u64 {
    let learns = protection.admission.is_some() || protection.pacer.is_some_and(|pacer| pacer.measured);
    if learns { 3 * size_of::<Answer>() as u64 / 2 } else { 0 }
}

/// Answers to come. Almost all of them come in the order in which their requests were let in.
#[derive(Debug, Default)]
struct Answers {
    in_order: VecDeque<Answer>,
    others: BinaryHeap<Reverse<Answer>>,
}

impl Answers {
    fn push(&mut self, answer: Answer) {
        match self.in_order.back() {
            Some(last) if *last > answer => self.others.push(Reverse(answer)),
            _ => self.in_order.push_back(answer),
        }
    }

    /// Takes out the next, if it comes until `now`.
    fn pop_until(&mut self, now: u64) -> Option<Answer> {
        let first = self.in_order.front().copied();
        let other = self.others.peek().map(|other| other.0);
        match (first, other) {
            (Some(first), Some(other)) if other < first => (other.0 <= now).then(|| self.others.pop())?.map(|it| it.0),
            (Some(first), _) => (first.0 <= now).then(|| self.in_order.pop_front())?,
            (None, Some(other)) => (other.0 <= now).then(|| self.others.pop())?.map(|it| it.0),
            (None, None) => None,
        }
    }

    /// So many may come out of order until others are asked.
    fn make_room(&mut self, more: usize, control: &Control) {
        let _ = control.has_room(&mut self.in_order, more) && control.has_room(&mut self.others, more);
    }

    fn len(&self) -> u64 {
        (self.in_order.len() + self.others.len()) as u64
    }
}

/// What is known of a request at the door.
#[derive(Clone, Copy, Debug)]
pub struct Knock {
    /// Requests inside.
    pub inside: u64,
    /// The most that may be.
    pub room: u64,
    /// Whether the rate limit lets it in.
    pub has_token: bool,
    /// Which attempt of its call it is, from 1.
    pub attempt: u32,
    /// For how long its client still waits; `u64::MAX` is for ever.
    pub left: u64,
}

impl Gate {
    /// The machines of a protection, in front of a server; `None` if there are none.
    pub fn new(protection: &Protection, server: &Server) -> Option<Gate> {
        let pacer = protection.pacer.and_then(|settings| settings.pacer().ok());
        let admission = protection.admission.and_then(|settings| settings.admission().ok());
        protection.has_gate().then(|| Gate {
            learns: admission.is_some() || protection.pacer.is_some_and(|pacer| pacer.measured),
            pacer,
            admission,
            whole_seconds: protection.whole_seconds,
            told: None,
            workers: u64::from(server.workers),
            answers: Answers::default(),
        })
    }

    /// Whether a request is let in at `now`, in nanoseconds; if not, what its client is [told](Gate::told) is kept.
    pub fn decide(&mut self, now: u64, knock: Knock) -> bool {
        self.answers_until(now);
        let time = Timestamp::from_nanos(now);
        let most = if knock.has_token { knock.room } else { knock.inside };
        let turn = match (&self.admission, &self.pacer) {
            (None, None) => return true,
            (None, Some(pacer)) => pacer.arrive(time, knock.attempt, knock.inside < most),
            (Some(admission), pacer) => {
                let left = (knock.left < u64::MAX).then_some(Duration::from_nanos(knock.left));
                let arrival = Arrival { attempt: knock.attempt, left, ..Arrival::default() };
                match admission.decide(time, &arrival, Room { used: knock.inside, most }, pacer.as_ref()) {
                    Admit::Accept => Turn::Now,
                    Admit::Turn(wait) => Turn::In(wait),
                    Admit::Overloaded(_) => Turn::Overloaded,
                    Admit::Shed(after) => {
                        self.told = Some(Verdict::After(after));
                        return false;
                    }
                }
            }
        };
        self.told = match turn {
            Turn::Now => None,
            Turn::Overloaded => Some(Verdict::Overloaded),
            // A header has milliseconds at best.
            Turn::In(_) if self.whole_seconds => Some(Verdict::Turn(Duration::from_secs(turn.seconds().unwrap_or(1)))),
            Turn::In(_) => Some(Verdict::Turn(Duration::from_millis(turn.millis().unwrap_or(1)))),
        };
        turn == Turn::Now
    }

    /// What the client of the last refusal is told; nothing if nobody is there to say anything.
    pub fn told(&mut self) -> Option<Verdict> {
        self.told.take()
    }

    /// Nobody is there to say anything.
    pub(crate) fn say_nothing(&mut self) {
        self.told = None;
    }

    /// A request was let in at `now` that needs so much work, and will be done at `done`, all in nanoseconds.
    pub fn entered(&mut self, now: u64, work: u64, done: u64) {
        if self.learns {
            let inside = done.saturating_sub(now);
            self.answers.push((done, inside.saturating_sub(work), inside));
        }
    }

    /// Takes room for those who may enter until the next look.
    pub(super) fn make_room(&mut self, control: &Control) {
        if self.learns {
            self.answers.make_room(TICK as usize, control);
        }
    }

    /// Tells the machines of the answers until now.
    fn answers_until(&mut self, now: u64) {
        while let Some((done, waited, inside)) = self.answers.pop_until(now) {
            if let Some(pacer) = &self.pacer {
                let is_queued = self.answers.len() >= self.workers && waited > 0;
                pacer.completed(Timestamp::from_nanos(done), Duration::from_nanos(waited), is_queued);
            }
            if let Some(admission) = &self.admission {
                admission.completed(Duration::from_nanos(inside));
            }
        }
    }
}
