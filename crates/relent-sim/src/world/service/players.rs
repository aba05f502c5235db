//! Clients who each have an upstream of their own, of which there may be millions, all set up alike: one upstream plays each
//! of them in its turn, and of a client and its machines only the few words are kept by which they differ.
//!
//! Nobody but the client itself changes what it has, so all that follows from a failure is done when the failure is known:
//! the policy decides, the retry is paid for, and the wait for an open breaker or a rate is added to the delay.

use super::{
    cast::{Cast, Role},
    chances::Chances,
    door::Door,
    habits::Habits,
};
use crate::engine::{control::Control, task::Task};
use relent::{
    Breaker, BreakerPass, BreakerState, Budget, BudgetSettings, Limit, LimitSettings, Outcome, Timestamp, Upstream,
    UpstreamAnswer, UpstreamSaved, Withdrawal,
};
use std::{marker::PhantomData, ops::Range, time::Duration};

/// What the clients' upstreams say. One client is at hand: [`take`](Upstreams::take) and [`put_back`](Upstreams::put_back) go
/// together, and all else is about that client. A client whose call is over need not be put back.
pub(super) trait Upstreams {
    /// Whether there are none, and nobody is asked.
    const ARE_NONE: bool;
    /// Whether so much is kept of all clients that it is worth bringing near.
    const IS_FAR: bool = true;

    /// Brings near what is kept of this client.
    fn bring_near(&self, client: u32) -> u64;
    /// Something happens to this client, of this population, after so many failures.
    fn take(&mut self, client: u32, place: usize, failures: u32);
    fn put_back(&mut self);

    /// Whether an attempt may start now; the draw, and how long the client would wait.
    fn ask(&mut self, now: u64, draw: impl Fn(u64) -> u64, within: impl Fn(u64) -> Duration) -> UpstreamAnswer;
    /// Whether the client that has just been told to wait waits for a breaker.
    fn is_put_off(&self) -> bool;
    /// How the attempt that was sent at `sent` has failed.
    fn failed(&mut self, sent: u64, now: u64, failure: Outcome, draw: impl Fn() -> u64);
    /// Whether it may make another attempt.
    fn pay(&mut self, now: u64, failure: Outcome, draw: impl Fn() -> u64) -> bool;
    /// When the client that would ask at `time` need not ask before, as far as that is known; and how many questions that
    /// spares, all of which a breaker would have refused unless there is a rate.
    fn next(&mut self, time: u64, draw: impl Fn(u64) -> u64, within: impl Fn(u64) -> Duration) -> (u64, u64);
}

/// Clients without upstreams.
pub(super) struct Without;

impl Upstreams for Without {
    const ARE_NONE: bool = true;

    fn bring_near(&self, _: u32) -> u64 {
        0
    }
    fn take(&mut self, _: u32, _: usize, _: u32) {}
    fn put_back(&mut self) {}
    fn ask(&mut self, _: u64, _: impl Fn(u64) -> u64, _: impl Fn(u64) -> Duration) -> UpstreamAnswer {
        UpstreamAnswer::Go
    }
    fn is_put_off(&self) -> bool {
        false
    }
    fn failed(&mut self, _: u64, _: u64, _: Outcome, _: impl Fn() -> u64) {}
    fn pay(&mut self, _: u64, _: Outcome, _: impl Fn() -> u64) -> bool {
        true
    }
    fn next(&mut self, time: u64, _: impl Fn(u64) -> u64, _: impl Fn(u64) -> Duration) -> (u64, u64) {
        (time, 0)
    }
}

/// One client for each population, who plays all of its clients: for clients who each have an upstream of their own without
/// hedges, and without limits but rates, and nothing under way between the things that happen.
///
/// `M` says which machines there are, as far as the compiler is told.
pub(super) struct Players<'u, M = Any> {
    /// Who plays the client at hand, and those of all populations.
    player: Player<'u>,
    players: Vec<Player<'u>>,
    /// The population of the client at hand.
    place: usize,
    at: u32,
    /// How many words a client has, and where those of the first are: so that few lines of the cache have to be fetched.
    stride: usize,
    first: usize,
    words: Vec<u64>,
    machines: PhantomData<M>,
}

/// Which machines the clients may have: what the others would do is left out where there is one population without them.
pub(super) trait Machines {
    const BUDGET: bool = false;
    const BREAKER: bool = false;
    const RATE: bool = false;
    /// Whether there may be several populations.
    const MIXED: bool = false;
}

/// Any machines.
pub(super) struct Any;
impl Machines for Any {
    const BUDGET: bool = true;
    const BREAKER: bool = true;
    const RATE: bool = true;
    const MIXED: bool = true;
}

/// A budget alone.
pub(super) struct Budgets;
impl Machines for Budgets {
    const BUDGET: bool = true;
}

/// A breaker alone.
pub(super) struct Breakers;
impl Machines for Breakers {
    const BREAKER: bool = true;
}

/// A budget and a breaker.
pub(super) struct Both;
impl Machines for Both {
    const BUDGET: bool = true;
    const BREAKER: bool = true;
}

/// A rate alone.
pub(super) struct Rates;
impl Machines for Rates {
    const RATE: bool = true;
}

#[derive(Clone, Copy)]
struct Player<'u> {
    upstream: &'u Upstream,
    budget: Option<&'u Budget>,
    breaker: Option<&'u Breaker>,
    rate: Option<&'u Limit>,
    chances: Chances,
    waits_while_open: bool,
    habits: Habits,
    /// How many words come before those of the upstream.
    own: usize,
    saved: UpstreamSaved,
    leave: Leave,
    is_put_off: bool,
}

/// By what leave the attempt under way was begun.
#[derive(Clone, Copy)]
enum Leave {
    /// Nothing hindered it.
    Free,
    /// The pass of a breaker.
    Pass(BreakerPass),
}

impl<'u> Players<'u, Any> {
    /// `upstreams` has one for each population.
    pub(super) fn new(cast: &Cast<'_>, upstreams: &'u [Upstream], clients: usize, control: &Control) -> Players<'u> {
        let players: Vec<Player<'u>> =
            cast.roles().iter().zip(upstreams).map(|(role, upstream)| Player::new(role, upstream)).collect();
        let most = players.iter().map(|player| player.own + player.upstream.words()).max().unwrap_or(0).max(1);
        let stride = if most <= LINE { most.next_power_of_two() } else { most.next_multiple_of(LINE) };
        let fresh = |player: &Player<'_>| {
            let mut words = vec![0; stride];
            player.upstream.save(&mut words[player.own..]);
            words
        };
        let fresh: Vec<Vec<u64>> = players.iter().map(fresh).collect();
        let mut words: Vec<u64> = Vec::with_capacity(LINE + stride * clients);
        let first = words.as_ptr().align_offset(LINE * size_of::<u64>()).min(LINE);
        words.resize(first, 0);
        control.each(clients).for_each(|client| words.extend_from_slice(&fresh[cast.place(client)]));
        Players { player: players[0], players, place: 0, at: 0, stride, first, words, machines: PhantomData }
    }

    /// The same, for the compiler that knows which machines there are.
    pub(super) fn of<M: Machines>(self) -> Players<'u, M> {
        let Players { player, players, place, at, stride, first, words, .. } = self;
        Players { player, players, place, at, stride, first, words, machines: PhantomData }
    }

    /// Whether each client has a budget, a breaker, a rate, where all are alike.
    pub(super) fn machines(&self) -> Option<[bool; 3]> {
        let [player] = &self.players[..] else { return None };
        Some([player.budget.is_some(), player.breaker.is_some(), player.rate.is_some()])
    }
}

impl<M> Players<'_, M> {
    #[inline(always)]
    fn range(&self, client: u32) -> Range<usize> {
        let from = self.first + client as usize * self.stride;
        from..from + self.stride
    }
}

impl<'u> Player<'u> {
    fn new(role: &Role<'_>, upstream: &'u Upstream) -> Player<'u> {
        let (budget, rate) = (upstream.its_budget(), upstream.its_limit());
        let habits = Habits::of(budget);
        Player {
            upstream,
            budget,
            breaker: upstream.its_breaker(),
            rate,
            chances: Chances::of(role),
            waits_while_open: role.protection.wait_while_open,
            habits,
            own: if habits.recalls { PAID } else { 0 } + usize::from(rate.is_some()),
            saved: UpstreamSaved::default(),
            leave: Leave::Free,
            is_put_off: false,
        }
    }

    /// Asks as every call does, where something may hinder the attempt.
    #[cold]
    fn ask(&mut self, now: u64, draw: u64, within: Duration) -> UpstreamAnswer {
        let mut call = self.upstream.call().wait_while_open(self.waits_while_open);
        call.load(self.saved);
        let time = Timestamp::from_nanos(now);
        let refused = |breaker: Option<&Breaker>| breaker.map_or(0, |breaker| breaker.snapshot(time).refused);
        let before = refused(self.breaker);
        let answer = call.ask(time, draw, within);
        self.is_put_off = refused(self.breaker) != before;
        match call.save_attempt() {
            Some((saved, pass)) => (self.saved, self.leave) = (saved, pass.map_or(Leave::Free, Leave::Pass)),
            None => self.saved = call.save().unwrap_or_default(),
        }
        answer
    }

    fn is_closed(&self) -> bool {
        self.breaker.is_none_or(|breaker| breaker.pass_closed().is_some())
    }

    fn asks_by_chance(&self) -> bool {
        self.chances.before || self.chances.breaker && !self.is_closed()
    }
}

/// How many words what was paid is.
const PAID: usize = 2;

/// How many words a line of the cache has.
const LINE: usize = 8;

impl<'u, M: Machines> Players<'u, M> {
    #[inline(always)]
    fn budget(&self) -> Option<&'u Budget> {
        if M::BUDGET { self.player.budget } else { None }
    }

    #[inline(always)]
    fn breaker(&self) -> Option<&'u Breaker> {
        if M::BREAKER { self.player.breaker } else { None }
    }

    #[inline(always)]
    fn rate(&self) -> Option<&'u Limit> {
        if M::RATE { self.player.rate } else { None }
    }
}

impl<M: Machines> Upstreams for Players<'_, M> {
    const ARE_NONE: bool = false;

    #[inline(always)]
    fn bring_near(&self, client: u32) -> u64 {
        self.words[self.range(client)].iter().step_by(LINE).fold(0, |all, word| all ^ word)
    }

    #[inline(always)]
    fn take(&mut self, client: u32, place: usize, failures: u32) {
        self.at = client;
        if M::MIXED && place != self.place {
            (self.place, self.player) = (place, self.players[place]);
        }
        let range = self.range(client);
        let (own, machines) = self.words[range].split_at(self.player.own);
        self.player.upstream.load(machines);
        let has_started = failures > 0;
        let mut paid = (has_started && self.budget().is_some()).then(|| Withdrawal::new(1, 0));
        if M::BUDGET
            && self.player.habits.recalls
            && has_started
            && let [cost, mark, ..] = own
        {
            paid = Some(Withdrawal::new(*cost as u32, *mark));
        }
        let booked = match own.last() {
            Some(booked) if self.rate().is_some() => booked.checked_sub(1).map(Timestamp::from_nanos),
            _ => None,
        };
        self.player.saved = UpstreamSaved { paid, has_started, booked };
    }

    #[inline(always)]
    fn put_back(&mut self) {
        let (range, has_rate) = (self.range(self.at), self.rate().is_some());
        let player = &self.player;
        let (own, machines) = self.words[range].split_at_mut(player.own);
        player.upstream.save(machines);
        if M::BUDGET
            && player.habits.recalls
            && let Some(paid) = player.saved.paid
            && let [cost, mark, ..] = own
        {
            (*cost, *mark) = (u64::from(paid.cost()), paid.mark());
        }
        if has_rate && let Some(booked) = own.last_mut() {
            *booked = player.saved.booked.map_or(0, |due| due.as_nanos().saturating_add(1));
        }
    }

    /// What an [`UpstreamCall`](relent::UpstreamCall) does where nothing hinders the attempt is done here at once.
    #[inline(always)]
    fn ask(&mut self, now: u64, draw: impl Fn(u64) -> u64, within: impl Fn(u64) -> Duration) -> UpstreamAnswer {
        let (budget, breaker, rate) = (self.budget(), self.breaker(), self.rate());
        let player = &mut self.player;
        let slowly = |player: &mut Player<'_>| {
            let drawn = if player.asks_by_chance() { draw(now) } else { 0 };
            player.ask(now, drawn, within(now))
        };
        let time = Timestamp::from_nanos(now);
        if rate.is_some() && player.saved.booked.is_none_or(|due| due > time) {
            return slowly(player);
        }
        if budget.is_some() && player.saved.paid.is_none() && (player.habits.refuses_first || player.saved.has_started)
        {
            return slowly(player);
        }
        if let Some(breaker) = breaker {
            let pass = match breaker.pass_closed() {
                Some(pass) => Some(pass),
                // A ramp lets some through by chance. Who is refused asks once more, and is told how long to wait.
                None => breaker.pass(time, if breaker.state() == BreakerState::Ramp { draw(now) } else { 0 }).ok(),
            };
            let Some(pass) = pass else { return slowly(player) };
            player.leave = Leave::Pass(pass);
        }
        match (budget, player.saved.paid) {
            (Some(budget), Some(paid)) if player.habits.recalls => budget.retry(time, paid),
            (Some(budget), None) => _ = budget.start(time, 0),
            _ => {}
        }
        (player.saved.has_started, player.saved.booked) = (true, None);
        UpstreamAnswer::Go
    }

    fn is_put_off(&self) -> bool {
        self.player.is_put_off
    }

    #[inline(always)]
    fn failed(&mut self, sent: u64, now: u64, failure: Outcome, draw: impl Fn() -> u64) {
        let (budget, breaker) = (self.budget(), self.breaker());
        let player = &mut self.player;
        let time = Timestamp::from_nanos(now);
        let paid = player.saved.paid.take();
        if let Some(budget) = budget
            && player.habits.hears
        {
            budget.outcome(time, failure, paid);
        }
        if let (Leave::Pass(pass), Some(breaker)) = (player.leave, breaker) {
            let took = Duration::from_nanos(now - sent.min(now));
            let draw = if player.chances.jitter { draw() } else { 0 };
            match failure.is_load() {
                true => _ = breaker.failed(pass, time, took, draw),
                false => _ = breaker.succeeded(pass, time, took, draw),
            }
        }
    }

    #[inline(always)]
    fn pay(&mut self, now: u64, failure: Outcome, draw: impl Fn() -> u64) -> bool {
        let Some(budget) = self.budget() else { return true };
        let draw = if self.player.chances.before { draw() } else { 0 };
        self.player.saved.paid = budget.withdraw(Timestamp::from_nanos(now), failure, draw);
        self.player.saved.paid.is_some()
    }

    #[inline(always)]
    fn next(&mut self, time: u64, draw: impl Fn(u64) -> u64, within: impl Fn(u64) -> Duration) -> (u64, u64) {
        let at = Timestamp::from_nanos(time);
        if let Some(rate) = self.rate() {
            if self.breaker().is_none()
                && let Some(wait) = rate.book(at, within(time))
            {
                let due = at + wait;
                self.player.saved.booked = Some(due);
                return (due.as_nanos(), u64::from(!wait.is_zero()));
            }
            return (time, 0);
        }
        if self.player.waits_while_open
            && let Some(breaker) = self.breaker()
            && breaker.worth_asking_at(at) > at
            && let Err(refused) = breaker.pass(at, 0)
        {
            let wait = refused.wait(at, draw(time));
            if wait <= within(time) {
                return (time.saturating_add(crate::time::nanos(wait)), 1);
            }
        }
        (time, 0)
    }
}

/// Clients that are brought near together.
pub(super) const TOGETHER: usize = 64;

/// The upstream that plays those of all clients of a population, each of which makes one call.
pub(super) fn upstream_of_one(role: &Role<'_>) -> Upstream {
    let upstream = role.protection.upstream().unwrap_or_else(|| Upstream::new("none"));
    let (budget, breaker) = (upstream.its_budget(), upstream.its_breaker());
    let (budget, breaker) = (budget.map(Budget::for_one_call), breaker.map(Breaker::for_one_call));
    let upstream = budget.into_iter().fold(upstream, Upstream::budget);
    breaker.into_iter().fold(upstream, Upstream::breaker)
}

/// The constant way of all clients, if there is one.
pub(super) fn common_way(cast: &Cast<'_>) -> Option<u64> {
    let mut ways = cast.roles().iter().map(|role| role.ways.constant);
    let first = ways.next().flatten();
    first.filter(|_| ways.all(|way| way == first))
}

/// Whether what will be noticed may be noticed at once, since nothing else depends on it meanwhile: every client is a
/// process of its own, and what one is told does not depend on the others.
pub(super) fn foresees(task: &Task<'_>, cast: &Cast<'_>) -> bool {
    let is_alone = |role: &Role<'_>| role.processes >= role.clients && role.protection.hedge.is_none();
    let tells_alike = Door::new(task.service, task.contender).tells_alike();
    cast.roles().iter().all(is_alone) && common_way(cast).is_some() && tells_alike
}

/// Whether clients can be played: they foresee what they will be told, no limit keeps them waiting for a place, and no budget
/// is of the user's own, which may be one for all.
pub(super) fn can_be_played(task: &Task<'_>, cast: &Cast<'_>) -> bool {
    let is_played = |role: &Role<'_>| {
        let is_rate = matches!(role.protection.limit, None | Some(LimitSettings::Rate { .. }));
        is_rate && !matches!(role.protection.budget, Some(BudgetSettings::Custom(_)))
    };
    foresees(task, cast) && cast.roles().iter().all(is_played)
}
