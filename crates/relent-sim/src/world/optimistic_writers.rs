//! Optimistic concurrency: writers of one row, as in the AWS post on exponential backoff and jitter.
//!
//! Each client reads the version of the row, and at once sends a write that names it. The write counts if nobody else's
//! came in between; else the client backs off and reads again. The server takes no time and has no limit.
//!
//! Source: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015, and its simulator.

use super::{
    bounds::Bounds,
    meter::{Judge, Meter},
    service::clients::{Clients, Failure, Single},
};
use crate::{
    engine::{
        control::{Control, INTERRUPTED, TICK, most_attempts, past, past_attempts},
        draws::{Draws, Purpose},
    },
    outcome::run::Run,
    scenario::{Contender, Figure, OptimisticWriters},
};
use relent::{Decision, Timestamp, Verdict};
use std::{cmp::Reverse, collections::BinaryHeap};

/// A read or a write that reaches the server: when, which client, its attempts before, and whether it is a write.
type Message = (u64, u32, u32, bool);

pub(crate) fn run(
    writers: &OptimisticWriters,
    contender: &Contender,
    draws: Draws,
    limit: u64,
    control: &Control,
) -> Run {
    let clients = writers.clients;
    // Tables over the number of writers would err in one direction if all their cells met the same luck.
    let draws = draws.apart(clients);
    let mut row = Row {
        writers,
        draws,
        version: 0,
        seen: vec![0; clients as usize],
        coming: BinaryHeap::with_capacity(clients as usize),
        clients: Single::new(&contender.policy, draws, clients as usize),
        bounds: Bounds::new(&contender.policy, 1),
        meter: Meter::new(clients, false),
        last: 0,
    };
    let mut stopped = None;
    for client in 0..clients as u32 {
        if u64::from(client).is_multiple_of(TICK) && control.is_over() {
            stopped = Some(INTERRUPTED.to_owned());
            break;
        }
        let spread = contender.policy.call(Timestamp::ZERO, draws.call(u64::from(client))).spread();
        let time = crate::time::nanos(spread).saturating_add(row.delay(client, 1, Purpose::Out));
        row.coming.push(Reverse((time, client, 0, false)));
    }
    let stopped = stopped.or_else(|| row.messages(limit, control));
    let (calls, last) = (row.meter.attempts, row.last);
    let mut run = row.meter.finish(&Judge::default(), clients, 0, None, stopped);
    run.figures = run.figures.with(Figure::Calls, calls as f64).with(Figure::TimeMs, last as f64 / 1e6);
    run
}

struct Row<'a> {
    writers: &'a OptimisticWriters,
    draws: Draws,
    version: u64,
    /// The version that each client read.
    seen: Vec<u64>,
    coming: BinaryHeap<Reverse<Message>>,
    clients: Single<'a>,
    bounds: Bounds,
    meter: Meter,
    /// When the last reply arrived.
    last: u64,
}

impl Row<'_> {
    fn delay(&self, client: u32, attempt: u32, purpose: Purpose) -> u64 {
        self.writers.network.delay(|| self.draws.world(u64::from(client), attempt, purpose))
    }

    fn messages(&mut self, limit: u64, control: &Control) -> Option<String> {
        let most = most_attempts(self.writers.clients);
        let (mut messages, mut told) = (0_u64, 0);
        while let Some(Reverse((now, client, failures, writes))) = self.coming.pop() {
            // Reads are work as well, and all of them may come before the first write.
            if messages.is_multiple_of(TICK) {
                if !control.tick(self.meter.attempts - told) {
                    return Some(INTERRUPTED.to_owned());
                }
                told = self.meter.attempts;
            }
            messages += 1;
            if now > limit {
                return Some(past(limit));
            }
            match writes {
                true => self.write(now, client, failures),
                false => self.read(now, client, failures),
            }
            if self.meter.attempts >= most {
                return Some(past_attempts(most));
            }
        }
        None
    }

    fn read(&mut self, now: u64, client: u32, failures: u32) {
        self.seen[client as usize] = self.version;
        let there_and_back =
            self.delay(client, failures + 1, Purpose::Back) + self.delay(client, failures + 1, Purpose::OutAgain);
        self.coming.push(Reverse((now.saturating_add(there_and_back), client, failures, true)));
    }

    fn write(&mut self, now: u64, client: u32, failures: u32) {
        self.meter.arrived(now, client, failures);
        self.meter.served(now);
        let reply = now.saturating_add(self.delay(client, failures + 1, Purpose::BackAgain));
        self.last = self.last.max(reply);
        if self.version == self.seen[client as usize] {
            self.version += 1;
            self.meter.connected(reply, 0, failures + 1);
            return;
        }
        self.meter.rejected(now);
        let failure = Failure { client, place: 0, failures, started: 0, now: reply, verdict: Verdict::Transient };
        match self.clients.fail(failure) {
            Decision::Retry(delay) => {
                self.bounds.check(failures + 1, crate::time::nanos(delay), Verdict::Transient);
                let out = self.delay(client, failures + 2, Purpose::Out);
                let time = reply.saturating_add(crate::time::nanos(delay)).saturating_add(out);
                self.coming.push(Reverse((time, client, failures + 1, false)));
            }
            Decision::GiveUp(reason) => self.meter.gave_up(reply, reason, failures + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{presets, scenario::World};

    /// All of them read before the first of them writes.
    #[test]
    fn who_stops_it_waits_for_no_client() {
        let scenario = presets::aws(100_000);
        let World::OptimisticWriters(writers) = &scenario.world else { panic!("it is that world") };
        let control = Control::default();
        control.stop();
        let run = run(writers, &scenario.contenders[0], Draws::new(1, None), u64::MAX, &control);
        assert_eq!(run.stopped.as_deref(), Some(INTERRUPTED));
        assert_eq!(run.figures.get(Figure::Calls), Some(0.0));
    }
}
