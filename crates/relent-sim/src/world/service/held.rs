//! What clients hold of their upstreams, and what the upstreams have counted.
//!
//! A million clients are not in the caches, so those that come next are brought near together.

use super::cast::Cast;
use crate::engine::control::Control;
use relent::{Breaker, HedgedCall, Outcome, Timestamp, Upstream, UpstreamAnswer, UpstreamCall, Verdict};
use std::{hint::black_box, time::Duration};

/// What will be noticed of an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Success,
    Failure(Verdict),
    /// What is known of it is that it may be made again, or not.
    TimedOut(Verdict),
}

impl Fate {
    #[inline(always)]
    pub(super) const fn outcome(self) -> Outcome {
        match self {
            Fate::Success => Outcome::Success,
            Fate::Failure(verdict) => Outcome::Failure(verdict),
            Fate::TimedOut(_) => Outcome::TimedOut,
        }
    }

    /// What the policy is told of a failure.
    #[inline(always)]
    pub(super) const fn verdict(self) -> Verdict {
        match self {
            Fate::Success => Verdict::Transient,
            Fate::Failure(verdict) | Fate::TimedOut(verdict) => verdict,
        }
    }
}

/// One attempt under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) sent: u64,
    pub(super) fate: Fate,
}

impl Flight {
    pub(super) const fn sent(sent: u64) -> Flight {
        Flight { sent, fate: Fate::Success }
    }
}

/// What a client that hedges has of it: when, and the second attempt.
pub(super) struct Hedging<'u> {
    pub(super) machine: HedgedCall,
    pub(super) second: Option<(UpstreamCall<&'u Upstream>, Flight)>,
}

/// The clients, one of whom is at hand: [`take`](Hold::take) and [`put_back`](Hold::put_back) go together, and all else is
/// about that client.
pub(super) trait Hold<'u> {
    /// Whether it keeps what clients have under way, and knows when each will notice the end: then no event is made of it.
    const KEEPS_FLIGHTS: bool = false;

    fn clients(&self) -> u32;
    /// Something happens to this client.
    fn take(&mut self, client: u32);
    fn put_back(&mut self);
    /// As [`take`](Hold::take), a client who wants to make an attempt after so many: for who keeps the flights.
    #[inline(always)]
    fn take_sender(&mut self, client: u32, failures: u32) {
        _ = failures;
        self.take(client);
    }
    /// When the next flight ends, and whose it is.
    #[inline(always)]
    fn next_to_land(&self) -> Option<(u64, u32)> {
        None
    }
    /// As [`take`](Hold::take), the client whose flight ends next, and the flight.
    #[inline(always)]
    fn land(&mut self) -> Option<Flight> {
        None
    }
    /// Whether the client at hand may notice at once that this will become of its attempt, where all that fails does so
    /// equally long after it was sent: for who keeps the flights.
    #[inline(always)]
    fn foresees(&self, fate: Fate) -> bool {
        _ = fate;
        false
    }
    /// The client at hand will notice then that this becomes of its attempt.
    #[inline(always)]
    fn fly(&mut self, time: u64, fate: Fate) {
        _ = (time, fate);
    }
    /// Whether it can tell of some clients who ask from this time on that they [will wait](Hold::waits): for who keeps the
    /// flights.
    #[inline(always)]
    fn foresees_waits(&self, from: u64) -> bool {
        _ = from;
        false
    }
    /// How long this client will wait who asks then, if that is certain whatever happens until then: by a draw, and for at most
    /// so long.
    #[inline(always)]
    fn waits(
        &self,
        client: u32,
        now: Timestamp,
        draw: impl FnOnce() -> u64,
        within: impl FnOnce() -> Duration,
    ) -> Option<Duration> {
        _ = (client, now, draw, within);
        None
    }
    /// Whether what is kept of clients is needed for everything, and is far away.
    #[inline(always)]
    fn is_far(&self) -> bool {
        true
    }
    /// Brings near what is kept of this client.
    fn bring_near(&self, client: u32) -> u64;

    fn failures(&self) -> u32;
    fn fail(&mut self);
    fn is_over(&self) -> bool;
    fn breaker(&self) -> Option<&'u Breaker>;
    fn flight(&mut self) -> &mut Flight;

    /// As [`UpstreamCall`] does all of it.
    fn ask(&mut self, now: Timestamp, draw: u64, within: Duration) -> UpstreamAnswer;
    /// Whether who has just been told to wait waits for a breaker: all do, where there are no limits.
    fn is_put_off(&self) -> bool {
        true
    }
    fn is_under_way(&self) -> bool;
    fn outcome(&mut self, now: Timestamp, outcome: Outcome, draw: u64);
    fn pay(&mut self, now: Timestamp, failure: Outcome, draw: u64) -> bool;
    /// The call is over: what its attempts still hold is given back.
    fn end(&mut self, now: Timestamp);

    /// How often it has asked in vain for a place in the queue, this time included.
    fn asked_in_vain(&mut self) -> u32;
    /// An attempt starts, with a hedge or without.
    fn begin_hedging(&mut self, machine: Option<HedgedCall>);
    fn its_hedge(&self) -> Option<&'u relent::Hedge>;
    fn hedging(&mut self) -> Option<&mut Hedging<'u>>;
    fn second_flight(&mut self) -> Option<&mut Flight>;
    /// A call for a hedge of the attempt under way.
    fn hedge(&self) -> Option<UpstreamCall<&'u Upstream>>;
}

struct Client<'u> {
    call: UpstreamCall<&'u Upstream>,
    upstream: &'u Upstream,
    flight: Flight,
    failures: u32,
    asked: u32,
    over: bool,
    /// Whether a breaker refused it when it asked.
    is_put_off: bool,
    hedging: Option<Box<Hedging<'u>>>,
}

/// Everything of every client, as it is.
pub(super) struct All<'u> {
    clients: Vec<Client<'u>>,
    at: usize,
}

impl<'u> All<'u> {
    /// Clients of a population go to its processes in turn.
    pub(super) fn new(cast: &Cast<'_>, upstreams: &'u [Vec<Upstream>], clients: usize, control: &Control) -> All<'u> {
        let mut gone = vec![0usize; upstreams.len()];
        let client = |client: u32| {
            let place = cast.place(client);
            let nth = gone[place];
            gone[place] += 1;
            let upstream = &upstreams[place][nth % upstreams[place].len()];
            let call = upstream.call().wait_while_open(cast.roles()[place].protection.wait_while_open);
            Client {
                call,
                upstream,
                flight: Flight::sent(0),
                failures: 0,
                asked: 0,
                over: false,
                is_put_off: false,
                hedging: None,
            }
        };
        let mut all = Vec::with_capacity(clients);
        all.extend(control.each(clients).map(client));
        All { clients: all, at: 0 }
    }

    #[inline(always)]
    fn client(&self) -> &Client<'u> {
        &self.clients[self.at]
    }

    #[inline(always)]
    fn client_mut(&mut self) -> &mut Client<'u> {
        &mut self.clients[self.at]
    }
}

impl<'u> Hold<'u> for All<'u> {
    fn clients(&self) -> u32 {
        self.clients.len() as u32
    }

    #[inline(always)]
    fn take(&mut self, client: u32) {
        self.at = client as usize;
    }

    #[inline(always)]
    fn put_back(&mut self) {}

    #[inline(always)]
    fn bring_near(&self, client: u32) -> u64 {
        let client = &self.clients[client as usize];
        let waits = client.call.waiting_since().map_or(0, Timestamp::as_nanos);
        client.flight.sent ^ u64::from(client.failures) ^ waits ^ u64::from(client.call.is_under_way())
    }

    #[inline(always)]
    fn failures(&self) -> u32 {
        self.client().failures
    }

    #[inline(always)]
    fn fail(&mut self) {
        self.client_mut().failures += 1;
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.client().over
    }

    #[inline(always)]
    fn breaker(&self) -> Option<&'u Breaker> {
        self.client().upstream.its_breaker()
    }

    #[inline(always)]
    fn flight(&mut self) -> &mut Flight {
        &mut self.client_mut().flight
    }

    #[inline(always)]
    fn ask(&mut self, now: Timestamp, draw: u64, within: Duration) -> UpstreamAnswer {
        let client = self.client_mut();
        let breaker = client.upstream.its_breaker().filter(|_| client.upstream.its_limit().is_some());
        let refused = || breaker.map_or(0, |breaker| breaker.snapshot(now).refused);
        let before = refused();
        let answer = client.call.ask(now, draw, within);
        client.is_put_off = match breaker {
            Some(_) => refused() != before,
            None => client.upstream.its_limit().is_none(),
        };
        if answer == UpstreamAnswer::Go {
            client.asked = 0;
        }
        answer
    }

    fn is_put_off(&self) -> bool {
        self.client().is_put_off
    }

    #[inline(always)]
    fn is_under_way(&self) -> bool {
        self.client().call.is_under_way()
    }

    #[inline(always)]
    fn outcome(&mut self, now: Timestamp, outcome: Outcome, draw: u64) {
        self.client_mut().call.outcome(now, outcome, draw);
    }

    #[inline(always)]
    fn pay(&mut self, now: Timestamp, failure: Outcome, draw: u64) -> bool {
        let client = self.client_mut();
        client.hedging = None;
        client.call.pay(now, failure, draw)
    }

    fn end(&mut self, now: Timestamp) {
        let client = self.client_mut();
        client.over = true;
        drop_call(&mut client.call, now);
        let second = client.hedging.take().and_then(|hedging| hedging.second);
        if let Some((mut call, _)) = second {
            drop_call(&mut call, now);
        }
    }

    fn asked_in_vain(&mut self) -> u32 {
        let client = self.client_mut();
        client.asked += 1;
        client.asked
    }

    fn begin_hedging(&mut self, machine: Option<HedgedCall>) {
        self.client_mut().hedging = machine.map(|machine| Box::new(Hedging { machine, second: None }));
    }

    fn its_hedge(&self) -> Option<&'u relent::Hedge> {
        self.client().upstream.its_hedge()
    }

    fn hedging(&mut self) -> Option<&mut Hedging<'u>> {
        self.client_mut().hedging.as_deref_mut()
    }

    fn second_flight(&mut self) -> Option<&mut Flight> {
        Some(&mut self.client_mut().hedging.as_mut()?.second.as_mut()?.1)
    }

    fn hedge(&self) -> Option<UpstreamCall<&'u Upstream>> {
        Some(self.client().call.hedge())
    }
}

/// Nobody waits for its outcome any more.
fn drop_call(call: &mut UpstreamCall<&Upstream>, now: Timestamp) {
    if call.is_under_way() {
        call.outcome(now, Outcome::Dropped, 0);
    }
    call.give_back();
}

/// Clients that are brought near together.
pub(super) const TOGETHER: usize = 16;

/// Keeps what was read to bring it near from being left out.
#[inline(always)]
pub(super) fn near(words: u64) {
    black_box(words);
}
