//! Clients who each have an upstream of their own, of which there may be millions, all set up alike: one upstream plays each
//! of them in its turn, and of a client and its machines only the few words are kept by which they differ.

use super::{
    cast::{Cast, Role},
    door::Door,
    held::{Flight, Hedging, Hold},
};
use crate::engine::task::Task;
use relent::{
    Breaker, BreakerPass, Budget, BudgetSettings, HedgedCall, Outcome, Timestamp, Upstream, UpstreamAnswer,
    UpstreamCall, UpstreamSaved, Withdrawal,
};
use std::{ops::Range, time::Duration};

/// One client for each population, who plays all of its clients: for clients who each have an upstream of their own without
/// limits and hedges, and nothing under way between the things that happen.
pub(super) struct Players<'u> {
    /// Who plays the client at hand, and those of the other populations.
    player: Player<'u>,
    others: Vec<Player<'u>>,
    place: usize,
    /// Which population each client is of; nothing where there is one.
    of: Vec<u8>,
    at: u32,
    /// How many words a client has.
    stride: usize,
    words: Vec<u64>,
}

#[derive(Clone)]
struct Player<'u> {
    upstream: &'u Upstream,
    budget: Option<&'u Budget>,
    breaker: Option<&'u Breaker>,
    waits_while_open: bool,
    /// Whether the budget may refuse a first attempt.
    refuses_first: bool,
    failures: u32,
    over: bool,
    saved: UpstreamSaved,
    flight: Flight,
    leave: Leave,
}

/// By what leave the attempt under way was begun.
#[derive(Clone, Copy)]
enum Leave {
    None,
    /// Nothing hindered it.
    Free,
    /// The pass of a breaker.
    Pass(BreakerPass),
}

/// What was paid, and what is known of the call; the words of the upstream come after.
const OWN: usize = 2;
const IS_PAID: u64 = 1;
const HAS_STARTED: u64 = 1 << 1;
const IS_OVER: u64 = 1 << 2;
const FAILURES_AT: u32 = 3;
const MOST_FAILURES: u64 = (1 << 29) - 1;
const COST_AT: u32 = 32;

impl<'u> Players<'u> {
    /// `upstreams` has one for each population.
    pub(super) fn new(cast: &Cast<'_>, upstreams: &'u [Vec<Upstream>], clients: u32) -> Players<'u> {
        let upstreams: Vec<&Upstream> = upstreams.iter().filter_map(|own| own.first()).collect();
        let stride = OWN + upstreams.iter().map(|upstream| upstream.words()).max().unwrap_or(0);
        let fresh = |upstream: &&Upstream| {
            let mut words = vec![0; stride];
            upstream.save(&mut words[OWN..]);
            words
        };
        let fresh: Vec<Vec<u64>> = upstreams.iter().map(fresh).collect();
        let mut words = Vec::with_capacity(stride * clients as usize);
        (0..clients).for_each(|client| words.extend_from_slice(&fresh[cast.place(client)]));
        let roles = cast.roles().iter().zip(&upstreams);
        let others: Vec<Player<'u>> =
            roles.map(|(role, upstream)| Player::new(upstream, role.protection.wait_while_open)).collect();
        let of = if cast.only().is_some() { Vec::new() } else { (0..clients).map(|c| cast.place(c) as u8).collect() };
        Players { player: others[0].clone(), others, place: 0, of, at: 0, stride, words }
    }

    #[inline(always)]
    fn range(&self, client: u32) -> Range<usize> {
        let from = client as usize * self.stride;
        from..from + self.stride
    }
}

impl<'u> Player<'u> {
    fn new(upstream: &'u Upstream, waits_while_open: bool) -> Player<'u> {
        let budget = upstream.its_budget();
        let settings = budget.map(Budget::settings);
        Player {
            upstream,
            budget,
            breaker: upstream.its_breaker(),
            waits_while_open,
            refuses_first: matches!(settings, Some(BudgetSettings::Throttle { .. } | BudgetSettings::Custom(_))),
            failures: 0,
            over: false,
            saved: UpstreamSaved::default(),
            flight: Flight::sent(0),
            leave: Leave::None,
        }
    }

    /// Asks as every call does, where something may hinder the attempt.
    #[cold]
    fn ask(&mut self, now: Timestamp, draw: u64, within: Duration) -> UpstreamAnswer {
        let mut call = self.upstream.call().wait_while_open(self.waits_while_open);
        call.load(self.saved);
        let answer = call.ask(now, draw, within);
        (self.saved, self.leave) = match call.save_attempt() {
            Some((saved, pass)) => (saved, pass.map_or(Leave::Free, Leave::Pass)),
            None => (call.save().unwrap_or_default(), Leave::None),
        };
        answer
    }
}

impl<'u> Hold<'u> for Players<'u> {
    fn clients(&self) -> u32 {
        (self.words.len() / self.stride) as u32
    }

    #[inline(always)]
    fn take(&mut self, client: u32) {
        self.at = client;
        if let Some(place) = self.of.get(client as usize).map(|place| usize::from(*place))
            && place != self.place
        {
            self.place = place;
            self.player = self.others[place].clone();
        }
        let range = self.range(client);
        let words = &self.words[range];
        let [mark, own, ref machines @ ..] = *words else { return };
        let player = &mut self.player;
        let paid = (own & IS_PAID != 0).then(|| Withdrawal::new((own >> COST_AT) as u32, mark));
        player.upstream.load(machines);
        player.saved = UpstreamSaved { paid, has_started: own & HAS_STARTED != 0 };
        player.failures = (own >> FAILURES_AT & MOST_FAILURES) as u32;
        player.over = own & IS_OVER != 0;
        player.leave = Leave::None;
    }

    #[inline(always)]
    fn put_back(&mut self) {
        let range = self.range(self.at);
        let [mark, own, machines @ ..] = &mut self.words[range] else { return };
        let player = &self.player;
        let mut word = u64::from(player.failures).min(MOST_FAILURES) << FAILURES_AT;
        if let Some(paid) = player.saved.paid {
            *mark = paid.mark();
            word |= IS_PAID | u64::from(paid.cost()) << COST_AT;
        }
        word |= if player.saved.has_started { HAS_STARTED } else { 0 };
        word |= if player.over { IS_OVER } else { 0 };
        *own = word;
        player.upstream.save(machines);
    }

    #[inline(always)]
    fn bring_near(&self, client: u32) -> u64 {
        let range = self.range(client);
        self.words[range.start] ^ self.words[range.end - 1]
    }

    #[inline(always)]
    fn failures(&self) -> u32 {
        self.player.failures
    }

    #[inline(always)]
    fn fail(&mut self) {
        self.player.failures += 1;
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.player.over
    }

    #[inline(always)]
    fn breaker(&self) -> Option<&'u Breaker> {
        self.player.breaker
    }

    #[inline(always)]
    fn flight(&mut self) -> &mut Flight {
        &mut self.player.flight
    }

    /// What an [`UpstreamCall`] does where nothing hinders the attempt is done here at once.
    #[inline(always)]
    fn ask(&mut self, now: Timestamp, draw: u64, within: Duration) -> UpstreamAnswer {
        let player = &mut self.player;
        let pass = match player.breaker.map(Breaker::pass_closed) {
            None => Leave::Free,
            Some(Some(pass)) => Leave::Pass(pass),
            Some(None) => return player.ask(now, draw, within),
        };
        let is_first = !player.saved.has_started && player.saved.paid.is_none();
        match (player.budget, player.saved.paid) {
            (None, _) => {}
            _ if is_first && player.refuses_first => return player.ask(now, draw, within),
            (Some(budget), None) if is_first => _ = budget.start(now, 0),
            (Some(budget), Some(paid)) => budget.retry(now, paid),
            (Some(_), None) => return player.ask(now, draw, within),
        }
        player.saved.has_started = true;
        player.leave = pass;
        UpstreamAnswer::Go
    }

    #[inline(always)]
    fn is_under_way(&self) -> bool {
        !matches!(self.player.leave, Leave::None)
    }

    #[inline(always)]
    fn outcome(&mut self, now: Timestamp, outcome: Outcome, draw: u64) {
        let player = &mut self.player;
        if let Some(budget) = player.budget {
            budget.outcome(now, outcome, player.saved.paid.take());
        }
        if outcome == Outcome::Success {
            player.saved.has_started = false;
        }
        let leave = std::mem::replace(&mut player.leave, Leave::None);
        if let (Leave::Pass(pass), Some(breaker)) = (leave, player.breaker) {
            let took = now.since(Timestamp::from_nanos(player.flight.sent));
            match outcome {
                Outcome::Dropped => breaker.give_back(pass),
                failed if failed.is_load() => _ = breaker.failed(pass, now, took, draw),
                _ => _ = breaker.succeeded(pass, now, took, draw),
            }
        }
    }

    #[inline(always)]
    fn pay(&mut self, now: Timestamp, failure: Outcome, draw: u64) -> bool {
        let player = &mut self.player;
        let Some(budget) = player.budget else { return true };
        if player.saved.paid.is_none() {
            player.saved.paid = budget.withdraw(now, failure, draw);
            player.saved.has_started &= player.saved.paid.is_some();
        }
        player.saved.paid.is_some()
    }

    fn end(&mut self, now: Timestamp) {
        if self.is_under_way() {
            self.outcome(now, Outcome::Dropped, 0);
        }
        let player = &mut self.player;
        player.over = true;
        if let (Some(budget), Some(paid)) = (player.budget, player.saved.paid.take()) {
            budget.refund(now, paid);
        }
    }

    fn asked_in_vain(&mut self) -> u32 {
        0
    }

    fn begin_hedging(&mut self, _: Option<HedgedCall>) {}

    fn its_hedge(&self) -> Option<&'u relent::Hedge> {
        None
    }

    fn hedging(&mut self) -> Option<&mut Hedging<'u>> {
        None
    }

    fn second_flight(&mut self) -> Option<&mut Flight> {
        None
    }

    fn hedge(&self) -> Option<UpstreamCall<&'u Upstream>> {
        None
    }
}

/// The upstream that plays those of all clients of a population, each of which makes one call.
pub(super) fn upstream_of_one(role: &Role<'_>) -> Upstream {
    let upstream = role.protection.upstream().unwrap_or_else(|| Upstream::new("none"));
    match upstream.its_budget().map(Budget::for_one_call) {
        Some(budget) => upstream.budget(budget),
        None => upstream,
    }
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

/// Whether clients can be played: they foresee what they will be told, and no limit keeps them waiting for a place.
pub(super) fn can_be_played(task: &Task<'_>, cast: &Cast<'_>) -> bool {
    foresees(task, cast) && cast.roles().iter().all(|role| role.protection.limit.is_none())
}
