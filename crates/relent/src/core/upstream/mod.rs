//! The upstream: everything that protects one far side, shared by all calls on it, in one order.
//!
//! Breaker, limiter, attempt, verdict, limits of the policy, budget, delay: the orders people get wrong are the reason
//! that there is but one. What one call holds of it is in its [`UpstreamCall`](call::UpstreamCall).

pub(crate) mod ask;
pub(crate) mod call;
pub(crate) mod change;
mod counts;
pub(crate) mod saved;
pub(crate) mod snapshot;
#[cfg(all(test, feature = "std", not(loom)))]
mod tests;

use self::{change::UpstreamChange, counts::Counts};
use super::{
    breaker::{Breaker, BreakerChange, BreakerState},
    budget::{Budget, settings::BudgetSettings},
    hedge::Hedge,
    limiter::{Limit, LimitNext, settings::LimitSettings},
    time::Timestamp,
};
use crate::lobby::Lobby;
use core::fmt;

/// A far side that our calls can hurt, and what protects it: a budget, a breaker, a limit, a hedge, or none of them.
///
/// One serves all policies and all threads: as a `static`, borrowed, or in an `Arc`. Builders are `const`, and nothing is
/// allocated for an attempt. Give it to a policy by [`Policy::on`](crate::Policy::on):
///
/// ```
/// use relent::{Breaker, Budget, Policy, Reason, Upstream};
/// use std::time::Duration;
///
/// static BANK: Upstream = Upstream::new("bank")
///     .budget(Budget::ratio(0.1))
///     .breaker(Breaker::consecutive(5).open_for(Duration::from_secs(30)));
/// const READ: Policy = Policy::immediate().max_attempts(5);
///
/// let down = READ.on(&BANK).retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
/// assert_eq!((down.reason, down.attempts), (Reason::Attempts, 5));
/// let refused = READ.on(&BANK).retry_blocking(|_| Ok::<_, &str>(1)).unwrap_err();
/// assert_eq!((refused.reason, refused.attempts), (Reason::Open, 0));
/// assert!(refused.again_in.unwrap() <= Duration::from_secs(30));
/// ```
///
/// Event loops and simulators drive an [`UpstreamCall`](crate::UpstreamCall), which is told the time.
pub struct Upstream {
    name: Name,
    budget: Option<Budget>,
    breaker: Option<Breaker>,
    limit: Option<Limit>,
    hedge: Option<Hedge>,
    listener: Option<Listener>,
    counts: Counts,
    lobby: Lobby,
}

/// Who is told of changes, where it can be written in a `const`.
type Listener = &'static (dyn Fn(&UpstreamChange<'_>) + Send + Sync);

enum Name {
    Fixed(&'static str),
    #[cfg(feature = "std")]
    Owned(crate::lobby::Text),
}

impl Upstream {
    /// An upstream that nothing protects yet. The name is for people, logs and metrics.
    ///
    /// ```
    /// use relent::{Policy, Upstream};
    ///
    /// static MAIL: Upstream = Upstream::new("mail");
    /// assert_eq!(Policy::immediate().on(&MAIL).retry_blocking(|_| Ok::<_, ()>(1)).unwrap(), 1);
    /// assert_eq!(MAIL.snapshot().attempts, 1);
    /// ```
    pub const fn new(name: &'static str) -> Upstream {
        Upstream::of(Name::Fixed(name))
    }

    /// As [`new`](Upstream::new), with a name that was read from somewhere.
    ///
    /// ```
    /// assert_eq!(relent::Upstream::named("bank".to_owned()).name(), "bank");
    /// ```
    #[cfg(feature = "std")]
    pub fn named(name: impl Into<std::sync::Arc<str>>) -> Upstream {
        Upstream::of(Name::Owned(name.into()))
    }

    const fn of(name: Name) -> Upstream {
        Upstream {
            name,
            budget: None,
            breaker: None,
            limit: None,
            hedge: None,
            listener: None,
            counts: Counts::new(),
            lobby: Lobby::new(),
        }
    }

    /// How many retries all calls may make together.
    ///
    /// ```
    /// # use relent::{Budget, Upstream};
    /// static BANK: Upstream = Upstream::new("bank").budget(Budget::ratio(0.1).min_per_second(10));
    /// ```
    #[must_use]
    pub const fn budget(mut self, budget: Budget) -> Upstream {
        self.budget = Some(budget);
        self
    }

    /// Stops attempts while the far side fails.
    ///
    /// ```
    /// # use relent::{Breaker, Upstream};
    /// static BANK: Upstream = Upstream::new("bank").breaker(Breaker::share(0.5).min_calls(100));
    /// ```
    #[must_use]
    pub const fn breaker(mut self, breaker: Breaker) -> Upstream {
        self.breaker = Some(breaker);
        self
    }

    /// How many attempts may be made in a time or at a time.
    ///
    /// A [rate](Limit::rate) is waited for, within the limits of the policy: `max_elapsed`, the deadline or timeout, and
    /// `max_pushback`. A [concurrency](Limit::concurrency) that is full fails at once, unless it has a
    /// [queue](Limit::queue).
    ///
    /// ```
    /// # use relent::{Limit, Upstream};
    /// static GATEWAY: Upstream = Upstream::new("gateway").limit(Limit::rate(100).burst(10));
    /// ```
    #[must_use]
    pub const fn limit(mut self, limit: Limit) -> Upstream {
        self.limit = Some(limit);
        self
    }

    /// When a second attempt starts before the first has failed, for calls that are
    /// [safe to run twice](crate::Retrier::hedged).
    ///
    /// ```
    /// # use relent::{Budget, Hedge, Upstream};
    /// static SEARCH: Upstream = Upstream::new("search").hedge(Hedge::quantile(0.95)).budget(Budget::ratio(0.1));
    /// ```
    #[must_use]
    pub const fn hedge(mut self, hedge: Hedge) -> Upstream {
        self.hedge = Some(hedge);
        self
    }

    /// Calls `listener` at each change of the breaker's state, on the thread whose attempt changed it, and whose call ends if it
    /// panics. Under `std`, [`listen`](Upstream::listen) adds others at run time.
    ///
    /// ```
    /// use relent::{Breaker, Upstream, UpstreamChange};
    ///
    /// fn log(change: &UpstreamChange<'_>) {
    ///     eprintln!("{change}");
    /// }
    /// static BANK: Upstream = Upstream::new("bank").breaker(Breaker::consecutive(5)).listener(&log);
    /// ```
    #[must_use]
    pub const fn listener(mut self, listener: &'static (dyn Fn(&UpstreamChange<'_>) + Send + Sync)) -> Upstream {
        self.listener = Some(listener);
        self
    }

    /// Calls `listener` at each change of the breaker's state from now on. It must not take long: the call that changed
    /// the state waits for it, and ends if it panics.
    ///
    /// ```
    /// use relent::{Breaker, Policy, Upstream};
    /// use std::sync::{Arc, Mutex};
    ///
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(1));
    /// let told = Arc::new(Mutex::new(vec![]));
    /// let tell = told.clone();
    /// bank.listen(move |change| tell.lock().unwrap().push(change.to_string()));
    /// let _ = Policy::immediate().max_attempts(1).on(&bank).retry_blocking(|_| Err::<(), _>("down"));
    /// assert_eq!(*told.lock().unwrap(), ["bank: closed -> open"]);
    /// ```
    #[cfg(feature = "std")]
    pub fn listen(&self, listener: impl Fn(&UpstreamChange<'_>) + Send + Sync + 'static) {
        self.lobby.listen(std::sync::Arc::new(listener));
    }

    /// The name.
    ///
    /// ```
    /// # use relent::Upstream;
    /// assert_eq!(Upstream::new("bank").name(), "bank");
    /// ```
    pub fn name(&self) -> &str {
        match &self.name {
            Name::Fixed(name) => name,
            #[cfg(feature = "std")]
            Name::Owned(name) => name,
        }
    }

    /// The budget, if there is one: [`Upstream::budget`] without the building.
    ///
    /// ```
    /// # use relent::{Budget, Upstream};
    /// let bank = Upstream::new("bank").budget(Budget::aws_quota_2_1());
    /// assert_eq!(bank.its_budget().unwrap().name(), "aws_quota");
    /// ```
    pub const fn its_budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// The breaker, if there is one.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Upstream};
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(5));
    /// assert_eq!(bank.its_breaker().unwrap().state(), BreakerState::Closed);
    /// ```
    pub const fn its_breaker(&self) -> Option<&Breaker> {
        self.breaker.as_ref()
    }

    /// The limit, if there is one.
    ///
    /// ```
    /// # use relent::{Limit, Upstream};
    /// assert_eq!(Upstream::new("bank").limit(Limit::rate(100)).its_limit().unwrap().name(), "rate");
    /// ```
    pub const fn its_limit(&self) -> Option<&Limit> {
        self.limit.as_ref()
    }

    /// The hedge, if there is one.
    ///
    /// ```
    /// # use relent::{Hedge, Upstream};
    /// # use std::time::Duration;
    /// let bank = Upstream::new("bank").hedge(Hedge::after(Duration::from_millis(50)));
    /// assert_eq!(bank.its_hedge().unwrap().delay(), Some(Duration::from_millis(50)));
    /// ```
    pub const fn its_hedge(&self) -> Option<&Hedge> {
        self.hedge.as_ref()
    }

    /// Holds the breaker open by hand at `now`: nothing is let through until [`release_at`](Upstream::release_at).
    /// `false` if there is no breaker, and so nothing to hold.
    ///
    /// ```
    /// # use relent::{Breaker, Timestamp, Upstream};
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(5));
    /// assert!(bank.hold_open_at(Timestamp::ZERO));
    /// assert!(!Upstream::new("mail").hold_open_at(Timestamp::ZERO), "there is nothing to hold");
    /// ```
    pub fn hold_open_at(&self, now: Timestamp) -> bool {
        self.by_hand(now, Breaker::hold_open, BreakerState::HeldOpen)
    }

    /// Holds the breaker closed by hand at `now`: everything is let through and nothing counted. `false` without one.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp, Upstream};
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(5));
    /// bank.hold_closed_at(Timestamp::ZERO);
    /// assert_eq!(bank.its_breaker().unwrap().state(), BreakerState::HeldClosed);
    /// ```
    pub fn hold_closed_at(&self, now: Timestamp) -> bool {
        self.by_hand(now, Breaker::hold_closed, BreakerState::HeldClosed)
    }

    /// Lets the breaker decide for itself again at `now`: closed, with nothing counted. `false` without one.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Timestamp, Upstream};
    /// let (bank, now) = (Upstream::new("bank").breaker(Breaker::consecutive(5)), Timestamp::ZERO);
    /// bank.hold_open_at(now);
    /// bank.release_at(now);
    /// assert_eq!(bank.its_breaker().unwrap().state(), BreakerState::Closed);
    /// ```
    pub fn release_at(&self, now: Timestamp) -> bool {
        self.by_hand(now, Breaker::release, BreakerState::Closed)
    }

    fn by_hand(&self, now: Timestamp, hold: fn(&Breaker, Timestamp), to: BreakerState) -> bool {
        let Some(breaker) = &self.breaker else { return false };
        let from = breaker.state();
        hold(breaker, now);
        if from != to {
            self.changed(Some(BreakerChange { from, to }), now);
        }
        true
    }

    /// Goes on where `old` was, for a configuration that was read again: breaker, budget, limit and hedge that did not
    /// change keep their state, and what did is rescaled (see [`Budget::adopt`], [`Breaker::adopt`], [`Limit::adopt`]);
    /// counts and the listeners that were added at run time are taken over.
    ///
    /// Attempts in flight belong to `old` and give their permits back there, so this one starts with none in flight.
    /// Until they have ended, both together may hold more than the limit.
    ///
    /// ```
    /// use relent::{Breaker, BreakerState, Timestamp, Upstream};
    /// use std::time::Duration;
    ///
    /// let (old, now) = (Upstream::new("bank").breaker(Breaker::consecutive(5)), Timestamp::ZERO);
    /// old.hold_open_at(now);
    /// let new = Upstream::new("bank").breaker(Breaker::consecutive(3)).adopt(&old, now);
    /// assert_eq!(new.snapshot_at(now).breaker.unwrap().state, BreakerState::HeldOpen);
    /// ```
    #[must_use]
    pub fn adopt(mut self, old: &Upstream, now: Timestamp) -> Upstream {
        if let (Some(new), Some(old)) = (&self.budget, &old.budget) {
            new.adopt(old);
            new.land();
        }
        if let Some(old) = &old.breaker {
            self.breaker = self.breaker.take().map(|new| new.adopt(old));
        }
        if let (Some(new), Some(old)) = (&self.limit, &old.limit) {
            new.adopt(old, now);
            new.land();
        }
        if let (Some(new), Some(old)) = (&self.hedge, &old.hedge) {
            new.take_over(old);
        }
        self.counts.adopt(&old.counts, old.started());
        self.lobby.adopt(&old.lobby);
        self
    }

    /// Tells listeners; never under a lock, and after everything is counted.
    #[inline]
    fn changed(&self, change: Option<BreakerChange>, at: Timestamp) {
        if let Some(change) = change {
            self.tell(change, at);
        }
    }

    #[cold]
    fn tell(&self, change: BreakerChange, at: Timestamp) {
        let BreakerChange { from, to } = change;
        let until = match (to, &self.breaker) {
            (BreakerState::Open, Some(breaker)) => Some(breaker.worth_asking_at(at)),
            _ => None,
        };
        let change = UpstreamChange { upstream: self.name(), from, to, at, until };
        if let Some(listener) = self.listener {
            listener(&change);
        }
        self.lobby.tell(&change);
    }

    /// Wakes whoever of the queue is next, where there is one and room for it.
    #[inline]
    fn wake_next(&self, now: Timestamp) {
        if self.limit.as_ref().is_some_and(Limit::has_queue)
            && let Some(next) = self.next(now)
        {
            self.lobby.wake(matches!(next, LimitNext::Newest));
        }
    }

    #[cfg(all(test, loom))]
    pub(crate) const fn lobby_for_models(&self) -> &Lobby {
        &self.lobby
    }

    /// Whom of those who queue to wake now, for event loops that keep their queue themselves: whoever that is asks
    /// again. `None` if nobody waits or there is no room.
    ///
    /// ```
    /// # use relent::{Limit, LimitNext, Timestamp, Upstream, UpstreamAnswer};
    /// # use std::time::Duration;
    /// let far = Upstream::new("far").limit(Limit::concurrency(1).queue(1, Duration::from_secs(1)));
    /// let (now, within) = (Timestamp::ZERO, Duration::from_secs(1));
    /// let (mut first, mut second) = (far.call(), far.call());
    /// assert_eq!(first.ask(now, 0, within), UpstreamAnswer::Go);
    /// assert_eq!(second.ask(now, 0, within), UpstreamAnswer::Queue(within));
    /// first.give_back();
    /// assert_eq!(far.next(now), Some(LimitNext::Oldest));
    /// assert_eq!(second.ask(now, 0, within), UpstreamAnswer::Go);
    /// ```
    pub fn next(&self, now: Timestamp) -> Option<LimitNext> {
        self.limit.as_ref()?.next(now)
    }

    /// Whether it matters what time it is when a first attempt starts.
    #[inline]
    pub(crate) const fn is_timed(&self) -> bool {
        self.budget.is_some() || self.limit.is_some() || self.hedge.is_some() || self.times_breaker()
    }

    /// Whether it matters when a successful attempt ends.
    #[inline]
    pub(crate) const fn times_success(&self) -> bool {
        let by_limit = match &self.limit {
            Some(limit) => !matches!(limit.settings(), LimitSettings::Rate { .. }),
            None => false,
        };
        by_limit || self.hedge.is_some() || self.times_breaker()
    }

    const fn times_breaker(&self) -> bool {
        match &self.breaker {
            Some(breaker) => breaker.is_timed(),
            None => false,
        }
    }

    /// Whether the budget draws before a first attempt.
    #[inline]
    const fn draws_at_start(&self) -> bool {
        match &self.budget {
            Some(budget) => {
                matches!(budget.settings(), BudgetSettings::Throttle { .. } | BudgetSettings::Custom(_))
            }
            None => false,
        }
    }
}

/// On the machine's clock (or tokio's, where that is paused): that of [`SystemTimer`](crate::SystemTimer), on which calls run
/// unless they are given another.
#[cfg(feature = "std")]
impl Upstream {
    /// [`hold_open_at`](Upstream::hold_open_at) now.
    ///
    /// ```
    /// use relent::{Breaker, Policy, Reason, Upstream};
    ///
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(5));
    /// bank.hold_open();
    /// let err = Policy::default().on(&bank).retry_blocking(|_| Ok::<_, ()>(1)).unwrap_err();
    /// assert_eq!((err.reason, err.again_in), (Reason::Open, None), "nobody knows how long");
    /// bank.release();
    /// assert_eq!(Policy::default().on(&bank).retry_blocking(|_| Ok::<_, ()>(1)).unwrap(), 1);
    /// ```
    pub fn hold_open(&self) -> bool {
        self.hold_open_at(now())
    }

    /// [`hold_closed_at`](Upstream::hold_closed_at) now.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Upstream};
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(5));
    /// assert!(bank.hold_closed());
    /// assert_eq!(bank.snapshot().breaker.unwrap().state, BreakerState::HeldClosed);
    /// ```
    pub fn hold_closed(&self) -> bool {
        self.hold_closed_at(now())
    }

    /// [`release_at`](Upstream::release_at) now.
    ///
    /// ```
    /// # use relent::{Breaker, BreakerState, Upstream};
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(5));
    /// bank.hold_open();
    /// bank.release();
    /// assert_eq!(bank.snapshot().breaker.unwrap().state, BreakerState::Closed);
    /// ```
    pub fn release(&self) -> bool {
        self.release_at(now())
    }

    /// [`snapshot_at`](Upstream::snapshot_at) now.
    ///
    /// ```
    /// use relent::{Budget, Policy, Upstream};
    ///
    /// let bank = Upstream::new("bank").budget(Budget::ratio(0.1));
    /// let _ = Policy::immediate().max_attempts(3).on(&bank).retry_blocking(|_| Err::<(), _>("down"));
    /// let now = bank.snapshot();
    /// assert_eq!((now.calls, now.attempts, now.retries), (1, 3, 2));
    /// assert_eq!(now.balance, Some(8.0), "ten in ten seconds, less two");
    /// ```
    pub fn snapshot(&self) -> snapshot::UpstreamSnapshot {
        self.snapshot_at(now())
    }
}

#[cfg(feature = "std")]
fn now() -> Timestamp {
    use crate::Timer;
    crate::SystemTimer.now()
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("name", &self.name())
            .field("budget", &self.budget)
            .field("breaker", &self.breaker)
            .field("limit", &self.limit)
            .field("hedge", &self.hedge)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
