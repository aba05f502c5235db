//! Clients who each have machines of their own, in a world in which little can happen: an attempt is refused at the door,
//! which is a transient failure, or it succeeds, which ends the call.
//!
//! Then little can become of the machines, too. A breaker sees nothing but failures, so that how often they were is known from
//! the number of the attempt; after its first trip each attempt is a probe that trips it again. A budget sees one call and its
//! retries, a rate one permit after the other. So what is kept of a client is two words, or one, or nothing. What they decide
//! is what the machines of relent's core decide, which the tests hold them against; who has [others](super::players) has more
//! kept of it.

mod breaker;
mod budget;
mod rate;

pub(super) use self::{
    breaker::{Breaking, InARow, InWindow},
    budget::Slots,
    rate::Due,
};

use super::{cast::Role, players::Upstreams};
use relent::{Outcome, Reason, Refused, Timestamp, Upstream, UpstreamAnswer};
use std::time::Duration;

/// What is kept of a client.
pub(in super::super) trait Kept: Copy + Default {
    /// Some word of it.
    fn word(&self) -> u64;
}

impl Kept for () {
    fn word(&self) -> u64 {
        0
    }
}

impl Kept for u64 {
    #[inline(always)]
    fn word(&self) -> u64 {
        *self
    }
}

impl Kept for u128 {
    #[inline(always)]
    fn word(&self) -> u64 {
        *self as u64
    }
}

impl<A: Kept, B: Kept> Kept for (A, B) {
    #[inline(always)]
    fn word(&self) -> u64 {
        self.0.word() ^ self.1.word()
    }
}

/// What clients have of their own, all of them alike.
pub(super) trait Machine {
    /// What is kept of a client; at first the default.
    type State: Kept;
    /// Why it refuses an attempt that comes too early.
    const REASON: Reason;

    /// The attempt that was sent at `sent`, after so many failures, has failed. Says until when the next one cannot be made,
    /// if that is known already.
    fn failed(&self, state: &mut Self::State, failures: u32, sent: u64, now: u64, draw: impl Fn() -> u64) -> u64;
    /// Whether it may make another attempt.
    fn pay(&self, state: &mut Self::State, failures: u32, now: u64) -> bool;
    /// When the client makes the attempt that it wants to make at `time`, of whose machines is known that they let nothing
    /// through until `until`; `None` if it is refused then.
    fn next(
        &self,
        state: &mut Self::State,
        until: u64,
        time: u64,
        draw: impl Fn() -> u64,
        within: impl Fn() -> Duration,
    ) -> Option<u64>;
}

/// What clients have of their own, by kind: the compiler is told which.
pub(super) enum Kit {
    Budget(Slots),
    InARow(Breaking<InARow>),
    InWindow(Breaking<InWindow>),
    BudgetInARow(Both<Slots, Breaking<InARow>>),
    BudgetInWindow(Both<Slots, Breaking<InWindow>>),
    Rate(Due),
}

impl Kit {
    /// What each client of this role has, in a run until `limit`; nothing if more must be kept of it.
    pub(super) fn of(role: &Role<'_>, upstream: &Upstream, limit: u64) -> Option<Kit> {
        let (budget, breaker, rate) = (upstream.its_budget(), upstream.its_breaker(), upstream.its_limit());
        let waits = role.protection.wait_while_open;
        let slots = || Slots::of(budget?, limit);
        let in_a_row = || Breaking::in_a_row(breaker?, waits);
        let in_window = || Breaking::in_window(breaker?, waits, limit);
        Some(match (budget.is_some(), breaker.is_some(), rate) {
            (true, false, None) => Kit::Budget(slots()?),
            (false, true, None) => match in_a_row() {
                Some(breaking) => Kit::InARow(breaking),
                None => Kit::InWindow(in_window()?),
            },
            (true, true, None) => match in_a_row() {
                Some(breaking) => Kit::BudgetInARow(Both(slots()?, breaking)),
                None => Kit::BudgetInWindow(Both(slots()?, in_window()?)),
            },
            (false, false, Some(rate)) => Kit::Rate(Due::of(rate)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
impl Kit {
    /// Which of the kinds it is.
    pub(super) const fn kind(&self) -> usize {
        match self {
            Kit::Budget(_) => 0,
            Kit::InARow(_) => 1,
            Kit::InWindow(_) => 2,
            Kit::BudgetInARow(_) => 3,
            Kit::BudgetInWindow(_) => 4,
            Kit::Rate(_) => 5,
        }
    }
}

/// A budget, and another machine.
pub(super) struct Both<B, M>(B, M);

impl<B: Machine, M: Machine> Machine for Both<B, M> {
    type State = (B::State, M::State);
    const REASON: Reason = M::REASON;

    #[inline(always)]
    fn failed(&self, state: &mut Self::State, failures: u32, sent: u64, now: u64, draw: impl Fn() -> u64) -> u64 {
        self.1.failed(&mut state.1, failures, sent, now, draw)
    }

    #[inline(always)]
    fn pay(&self, state: &mut Self::State, failures: u32, now: u64) -> bool {
        self.0.pay(&mut state.0, failures, now)
    }

    #[inline(always)]
    fn next(
        &self,
        state: &mut Self::State,
        until: u64,
        time: u64,
        draw: impl Fn() -> u64,
        within: impl Fn() -> Duration,
    ) -> Option<u64> {
        self.1.next(&mut state.1, until, time, draw, within)
    }
}

/// All clients, one of whom is at hand.
pub(super) struct Own<M: Machine> {
    machine: M,
    /// None where nothing is kept.
    states: Vec<M::State>,
    at: u32,
    failures: u32,
    state: M::State,
    /// Until when the machines of the client at hand let nothing through.
    until: u64,
    /// Whose next attempt will be refused, a bit each; none as long as nobody's will.
    doomed: Vec<u64>,
}

impl<M: Machine> Own<M> {
    pub(super) fn new(machine: M, clients: u32) -> Own<M> {
        let kept = if size_of::<M::State>() > 0 { clients as usize } else { 0 };
        let states = vec![M::State::default(); kept];
        Own { machine, states, at: 0, failures: 0, state: M::State::default(), until: 0, doomed: Vec::new() }
    }

    const fn bit_of(client: u32) -> (usize, u64) {
        (client as usize / 64, 1 << (client % 64))
    }

    #[cold]
    fn doom(&mut self) {
        let (word, bit) = Own::<M>::bit_of(self.at);
        if self.doomed.len() <= word {
            self.doomed.resize(word + 1, 0);
        }
        self.doomed[word] |= bit;
    }

    /// Whether the client at hand is refused now.
    #[inline(always)]
    fn is_doomed(&mut self) -> bool {
        if self.doomed.is_empty() {
            return false;
        }
        let (word, bit) = Own::<M>::bit_of(self.at);
        self.doomed.get(word).is_some_and(|word| word & bit != 0)
    }
}

impl<M: Machine> Upstreams for Own<M> {
    const ARE_NONE: bool = false;
    const IS_FAR: bool = size_of::<M::State>() > 0;

    #[inline(always)]
    fn bring_near(&self, client: u32) -> u64 {
        self.states[client as usize].word()
    }

    #[inline(always)]
    fn take(&mut self, client: u32, _: usize, failures: u32) {
        (self.at, self.failures) = (client, failures);
    }

    #[inline(always)]
    fn put_back(&mut self) {
        if Self::IS_FAR {
            self.states[self.at as usize] = self.state;
        }
    }

    /// Whoever would have to wait has waited.
    #[inline(always)]
    fn ask(&mut self, _: u64, _: impl Fn(u64) -> u64, _: impl Fn(u64) -> Duration) -> UpstreamAnswer {
        match self.is_doomed() {
            true => UpstreamAnswer::Refused(Refused::new(M::REASON, Timestamp::MAX)),
            false => UpstreamAnswer::Go,
        }
    }

    fn is_put_off(&self) -> bool {
        false
    }

    #[inline(always)]
    fn failed(&mut self, sent: u64, now: u64, _: Outcome, draw: impl Fn() -> u64) {
        if Self::IS_FAR {
            self.state = self.states[self.at as usize];
        }
        self.until = self.machine.failed(&mut self.state, self.failures, sent, now, draw);
    }

    #[inline(always)]
    fn pay(&mut self, now: u64, _: Outcome, _: impl Fn() -> u64) -> bool {
        self.machine.pay(&mut self.state, self.failures, now)
    }

    #[inline(always)]
    fn next(&mut self, time: u64, draw: impl Fn(u64) -> u64, within: impl Fn(u64) -> Duration) -> (u64, u64) {
        match self.machine.next(&mut self.state, self.until, time, || draw(time), || within(time)) {
            Some(next) => (next, u64::from(next > time)),
            None => {
                self.doom();
                (time, 0)
            }
        }
    }
}
