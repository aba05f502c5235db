//! What one call holds of an upstream: a permit, a withdrawal, a place in the queue. Whatever becomes of the call, each is
//! told its end exactly once.

use super::Upstream;
use crate::core::{
    breaker::BreakerPass, budget::allowance::Withdrawal, limiter::Place, outcome::Outcome, time::Timestamp,
    verdict::Reason,
};
use core::{fmt, ops::Deref, task::Waker};

/// One call on an upstream, for event loops and simulators: told the time and the draws, it says whether an attempt may
/// start. Executors are made of it.
///
/// The handle is whatever dereferences to the upstream: `&Upstream`, `Arc<Upstream>`. The order:
///
/// 1. [`ask`](UpstreamCall::ask) before every attempt, until it says go, or refuses.
/// 2. [`outcome`](UpstreamCall::outcome) when the attempt has ended.
/// 3. After a failure that the policy would retry: [`pay`](UpstreamCall::pay), and if that is granted, the delay, and 1.
///
/// Dropped at any time, or [given back](UpstreamCall::give_back), it counts as neither success nor failure: permits are
/// given back, and what was paid for a retry that never started is refunded.
///
/// ```
/// use relent::{Breaker, Budget, Decision, Outcome, Policy, Timestamp, Upstream, UpstreamAnswer, Verdict};
/// use std::time::Duration;
///
/// let bank = Upstream::new("bank").budget(Budget::ratio(0.1)).breaker(Breaker::consecutive(2));
/// let policy = Policy::default();
/// let (mut now, mut draw) = (Timestamp::from_nanos(1), 7);
///
/// let mut call = bank.call();
/// let mut retries = policy.call(now, 42);
/// let reason = loop {
///     match call.ask(now, draw, Duration::ZERO) {
///         UpstreamAnswer::Go => {} // The attempt starts here, and fails.
///         UpstreamAnswer::Wait(wait) | UpstreamAnswer::Queue(wait) => {
///             now = now + wait;
///             continue;
///         }
///         UpstreamAnswer::Refused(refused) => break refused.reason,
///     }
///     let failed = Outcome::Failure(Verdict::Transient);
///     call.outcome(now, failed, draw);
///     match retries.on_failure(now, Verdict::Transient) {
///         Decision::GiveUp(reason) => break reason,
///         Decision::Retry(delay) if call.pay(now, failed, draw) => now = now + delay,
///         Decision::Retry(_) => break relent::Reason::Budget,
///     }
///     draw = relent::rng::mix(draw);
/// };
/// assert_eq!(reason, relent::Reason::Open);
/// assert_eq!(bank.snapshot_at(now).attempts, 2);
/// ```
#[must_use = "a call that is dropped gives back what it holds"]
pub struct UpstreamCall<H: Deref<Target = Upstream>> {
    pub(super) upstream: H,
    pub(super) pass: Option<BreakerPass>,
    pub(super) paid: Option<Withdrawal>,
    pub(super) phase: Phase,
    /// Whether its first attempt was let through.
    pub(super) has_started: bool,
    pub(super) is_hedge: bool,
    pub(super) waits_while_open: bool,
    /// Whether it waits for leave, and since when.
    pub(super) is_waiting: bool,
    pub(super) asked: Timestamp,
    /// The latest time it was told: for it, time does not go back.
    pub(super) now: Timestamp,
    /// When the attempt under way began; when what is booked is due; until when it may queue.
    pub(super) mark: Timestamp,
    /// Where it stands among those who queue and are woken: 0 is nowhere. What it was granted or has booked stands at a [`Place`].
    pub(super) place: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// A permit of a rate that is due later.
    Booked,
    Queued,
    Flying,
}

impl Upstream {
    /// One call on this upstream, borrowed: see [`UpstreamCall`].
    ///
    /// ```
    /// # use relent::{Timestamp, Upstream};
    /// let bank = Upstream::new("bank");
    /// let mut call = bank.call();
    /// assert!(call.go_at_once(Timestamp::ZERO));
    /// assert!(call.is_under_way());
    /// ```
    #[inline]
    pub fn call(&self) -> UpstreamCall<&Upstream> {
        UpstreamCall::new(self)
    }
}

impl<H: Deref<Target = Upstream>> UpstreamCall<H> {
    /// One call on this upstream. Nothing is counted before it asks.
    ///
    /// ```
    /// use relent::{Upstream, UpstreamCall};
    /// use std::sync::Arc;
    ///
    /// let bank = Arc::new(Upstream::new("bank"));
    /// let call = UpstreamCall::new(bank.clone());
    /// assert_eq!(call.upstream().name(), "bank");
    /// ```
    #[inline]
    pub fn new(upstream: H) -> UpstreamCall<H> {
        UpstreamCall {
            upstream,
            pass: None,
            paid: None,
            phase: Phase::Idle,
            has_started: false,
            is_hedge: false,
            waits_while_open: false,
            is_waiting: false,
            asked: Timestamp::ZERO,
            now: Timestamp::ZERO,
            mark: Timestamp::ZERO,
            place: 0,
        }
    }

    /// Waits for an open breaker until it lets probes through, and a spread more, instead of failing at once.
    ///
    /// ```
    /// # use relent::{Breaker, Timestamp, Upstream, UpstreamAnswer};
    /// # use std::time::Duration;
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(1).open_for(Duration::from_secs(30)));
    /// let now = Timestamp::ZERO;
    /// bank.its_breaker().unwrap().permit(now, 0).unwrap().failed(now, Duration::ZERO, 0);
    /// let within = Duration::from_secs(3600);
    /// assert!(matches!(bank.call().ask(now, 0, within), UpstreamAnswer::Refused(_)));
    /// let waits = bank.call().wait_while_open(true).ask(now, 0, within);
    /// assert_eq!(waits, UpstreamAnswer::Wait(Duration::from_secs(30)));
    /// ```
    pub const fn wait_while_open(mut self, wait: bool) -> Self {
        self.waits_while_open = wait;
        self
    }

    /// The upstream.
    ///
    /// ```
    /// # use relent::Upstream;
    /// assert_eq!(Upstream::new("bank").call().upstream().name(), "bank");
    /// ```
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Since when it waits to be let through; `None` if it does not.
    ///
    /// ```
    /// # use relent::{Limit, Timestamp, Upstream, UpstreamAnswer};
    /// # use std::time::Duration;
    /// let (gateway, now) = (Upstream::new("gateway").limit(Limit::rate(100)), Timestamp::ZERO);
    /// assert_eq!(gateway.call().ask(now, 0, Duration::MAX), UpstreamAnswer::Go);
    /// let mut second = gateway.call();
    /// assert_eq!(second.waiting_since(), None);
    /// assert!(matches!(second.ask(now, 0, Duration::MAX), UpstreamAnswer::Wait(_)));
    /// assert_eq!(second.waiting_since(), Some(now));
    /// ```
    pub fn waiting_since(&self) -> Option<Timestamp> {
        self.is_waiting.then_some(self.asked)
    }

    /// Whether an attempt is under way, whose outcome has not been told.
    ///
    /// ```
    /// # use relent::{Outcome, Timestamp, Upstream};
    /// let (bank, now) = (Upstream::new("bank"), Timestamp::ZERO);
    /// let mut call = bank.call();
    /// assert!(!call.is_under_way());
    /// assert!(call.go_at_once(now));
    /// assert!(call.is_under_way());
    /// call.outcome(now, Outcome::Success, 0);
    /// assert!(!call.is_under_way());
    /// ```
    pub fn is_under_way(&self) -> bool {
        self.phase == Phase::Flying
    }

    /// The attempt under way starts at `now`, and not when it was let through: until then something else was waited for, which is no latency
    /// of the far side. Without an attempt it changes nothing.
    ///
    /// ```
    /// # use relent::{Hedge, Outcome, Timestamp, Upstream};
    /// # use std::time::Duration;
    /// let search = Upstream::new("search").hedge(Hedge::quantile(0.95).min_samples(1));
    /// let (mut call, now, second) = (search.call(), Timestamp::ZERO, Duration::from_secs(1));
    /// assert!(call.go_at_once(now));
    /// call.starts(now + 30 * second);
    /// call.outcome(now + 31 * second, Outcome::Success, 0);
    /// assert!(search.its_hedge().unwrap().delay().unwrap() < 2 * second);
    /// ```
    pub fn starts(&mut self, now: Timestamp) {
        if self.phase == Phase::Flying {
            self.mark = self.tell(now);
        }
    }

    /// The attempt under way has ended. `draw` is for the jitter of a breaker that opens. Told again, or without an
    /// attempt, it changes nothing.
    #[inline]
    pub fn outcome(&mut self, now: Timestamp, outcome: Outcome, draw: u64) {
        if self.phase != Phase::Flying {
            return;
        }
        self.phase = Phase::Idle;
        let now = self.tell(now);
        let took = now.since(self.mark);
        let upstream = &*self.upstream;
        if let Some(limit) = &upstream.limit {
            limit.release(now, outcome, took);
            upstream.wake_next(now);
        }
        if let Some(budget) = &upstream.budget {
            budget.outcome(now, outcome, self.paid.take());
        }
        if outcome == Outcome::Success {
            self.has_started = false;
            if let Some(hedge) = &upstream.hedge {
                hedge.observe(took);
            }
        }
        if let (Some(breaker), Some(pass)) = (&upstream.breaker, self.pass.take()) {
            let change = match outcome {
                Outcome::Dropped => {
                    breaker.give_back(pass);
                    None
                }
                failed if failed.is_load() => breaker.failed(pass, now, took, draw),
                _ => breaker.succeeded(pass, now, took, draw),
            };
            upstream.changed(change, now);
        }
    }

    /// The policy would retry after an attempt that ended as `failure` says: may it? Paid from the budget when it is
    /// decided. `false` gives the call up, with reason `budget`.
    pub fn pay(&mut self, now: Timestamp, failure: Outcome, draw: u64) -> bool {
        let now = self.tell(now);
        let upstream = &*self.upstream;
        let Some(budget) = &upstream.budget else { return true };
        if self.paid.is_some() {
            return true;
        }
        self.paid = budget.withdraw(now, failure, draw);
        if self.paid.is_none() {
            upstream.counts.refused(Reason::Budget, false);
            self.has_started = false;
        }
        self.paid.is_some()
    }

    /// Ends the call without an outcome, as dropping it does: an attempt under way counts as neither success nor failure,
    /// and what was paid for a retry that never started is refunded.
    ///
    /// ```
    /// # use relent::{Limit, Timestamp, Upstream};
    /// let (bank, now) = (Upstream::new("bank").limit(Limit::concurrency(1)), Timestamp::ZERO);
    /// let mut call = bank.call();
    /// assert!(call.go_at_once(now));
    /// call.give_back();
    /// assert!(bank.call().go_at_once(now));
    /// ```
    pub fn give_back(&mut self) {
        if self.phase == Phase::Flying {
            self.outcome(self.now, Outcome::Dropped, 0);
        }
        self.give_pass_back();
        self.give_place_back();
        self.is_waiting = false;
        if let (Some(budget), Some(paid)) = (&self.upstream.budget, self.paid.take()) {
            budget.refund(self.now, paid);
        }
    }

    pub(super) fn give_pass_back(&mut self) {
        if let (Some(breaker), Some(pass)) = (&self.upstream.breaker, self.pass.take()) {
            breaker.give_back(pass);
        }
    }

    /// What the limiter granted, booked or queued.
    pub(super) fn give_place_back(&mut self) {
        let phase = core::mem::replace(&mut self.phase, Phase::Idle);
        if let Some(limit) = &self.upstream.limit {
            match phase {
                Phase::Booked => limit.give_place_back(Place(core::mem::take(&mut self.place)), self.now),
                Phase::Queued => {
                    limit.leave();
                    self.upstream.lobby.leave(core::mem::take(&mut self.place));
                }
                Phase::Idle | Phase::Flying => return,
            }
            self.upstream.wake_next(self.now);
        }
    }

    /// Is woken when there may be room. Asks after this, or a place that came free in between is missed.
    pub(crate) fn stand_in_line(&mut self, waker: &Waker) {
        if self.phase == Phase::Queued {
            self.place = self.upstream.lobby.enter(self.place, waker);
        }
    }

    #[inline]
    pub(super) fn tell(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.now
    }

    /// A call of its own for a hedge of this one: paid for and asked about by itself, but no call more.
    ///
    /// ```
    /// use relent::{Budget, Outcome, Timestamp, Upstream, UpstreamAnswer, Verdict};
    /// use std::time::Duration;
    ///
    /// let (search, now) = (Upstream::new("search").budget(Budget::ratio(0.1)), Timestamp::from_nanos(1));
    /// let mut call = search.call();
    /// assert_eq!(call.ask(now, 1, Duration::ZERO), UpstreamAnswer::Go);
    /// let mut hedge = call.hedge();
    /// assert!(hedge.pay(now, Outcome::Failure(Verdict::Transient), 2));
    /// assert_eq!(hedge.ask(now, 3, Duration::ZERO), UpstreamAnswer::Go);
    /// hedge.outcome(now, Outcome::Success, 4);
    /// call.give_back(); // It lost.
    /// assert_eq!((search.snapshot_at(now).calls, search.snapshot_at(now).hedges), (1, 1));
    /// ```
    pub fn hedge(&self) -> UpstreamCall<H>
    where
        H: Clone,
    {
        let mut hedge = UpstreamCall::new(self.upstream.clone());
        (hedge.has_started, hedge.is_hedge, hedge.now) = (true, true, self.now);
        hedge
    }

    /// What it did has succeeded: what it asks for next is the first attempt of another call.
    pub(crate) fn renew(&mut self) {
        self.give_back();
        self.has_started = false;
    }

    /// The attempt under way, as a call of its own; this one has none any more.
    pub(crate) fn split_off(&mut self) -> UpstreamCall<H>
    where
        H: Clone,
    {
        let mut flying = UpstreamCall::new(self.upstream.clone());
        (flying.pass, flying.paid) = (self.pass.take(), self.paid.take());
        flying.phase = core::mem::replace(&mut self.phase, Phase::Idle);
        (flying.has_started, flying.now, flying.mark) = (true, self.now, self.mark);
        flying
    }
}

impl<H: Deref<Target = Upstream>> Drop for UpstreamCall<H> {
    #[inline]
    fn drop(&mut self) {
        // It has a pass alone where a listener that was told of it has panicked.
        if self.phase != Phase::Idle || self.paid.is_some() || self.pass.is_some() {
            self.give_back();
        }
    }
}

impl<H: Deref<Target = Upstream>> fmt::Debug for UpstreamCall<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamCall")
            .field("upstream", &self.upstream.name())
            .field("phase", &self.phase)
            .field("paid", &self.paid)
            .finish_non_exhaustive()
    }
}
