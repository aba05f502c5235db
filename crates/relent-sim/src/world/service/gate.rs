//! The machines at a server's door: relent's own admission and pacer, told what happens when it happens.

use crate::scenario::{Protection, Server};
use relent::{Admission, Admit, Arrival, Pacer, Room, Timestamp, Turn, Verdict};
use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

/// The machines, and what the last refusal said.
#[derive(Debug)]
pub(crate) struct Gate {
    pacer: Option<Pacer>,
    admission: Option<Admission>,
    whole_seconds: bool,
    pub(crate) told: Option<Verdict>,
    /// Whether a machine learns from answers.
    learns: bool,
    workers: u64,
    /// Answers to come: when, how long the request will have waited, and how long it will have been inside.
    answers: BinaryHeap<Reverse<(u64, u64, u64)>>,
}

/// What is known of a request at the door.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Knock {
    /// Requests inside.
    pub(crate) inside: u64,
    /// The most that may be.
    pub(crate) room: u64,
    /// Whether the rate limit lets it in.
    pub(crate) has_token: bool,
    pub(crate) attempt: u32,
    /// For how long its client still waits; `u64::MAX` is for ever.
    pub(crate) left: u64,
}

impl Gate {
    pub(crate) fn new(protection: &Protection, server: &Server) -> Option<Gate> {
        let pacer = protection.pacer.and_then(|settings| settings.pacer().ok());
        let admission = protection.admission.and_then(|settings| settings.admission().ok());
        protection.has_gate().then(|| Gate {
            learns: admission.is_some() || protection.pacer.is_some_and(|pacer| pacer.measured),
            pacer,
            admission,
            whole_seconds: protection.whole_seconds,
            told: None,
            workers: u64::from(server.workers),
            answers: BinaryHeap::new(),
        })
    }

    /// Whether a request is let in; if not, what its client is told is kept.
    pub(crate) fn decide(&mut self, now: u64, knock: Knock) -> bool {
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

    /// A request was let in that needs so much work, and will be done then.
    pub(crate) fn entered(&mut self, now: u64, work: u64, done: u64) {
        if self.learns {
            let inside = done.saturating_sub(now);
            self.answers.push(Reverse((done, inside.saturating_sub(work), inside)));
        }
    }

    /// Tells the machines of the answers until now.
    fn answers_until(&mut self, now: u64) {
        while let Some(&Reverse((done, waited, inside))) = self.answers.peek()
            && done <= now
        {
            self.answers.pop();
            if let Some(pacer) = &self.pacer {
                let is_queued = self.answers.len() as u64 >= self.workers && waited > 0;
                pacer.completed(Timestamp::from_nanos(done), Duration::from_nanos(waited), is_queued);
            }
            if let Some(admission) = &self.admission {
                admission.completed(Duration::from_nanos(inside));
            }
        }
    }
}
