//! A ticker: a stream, or an iterator, that ticks at a policy's times.
//!
//! The first tick comes at once, then one after each delay, and it ends when the policy does, or when its switch is
//! thrown. Ticks are not queued: the next delay begins when the next tick is asked for. On an upstream each tick is an
//! attempt, which its breaker and limiter let through.

use crate::{
    Attempt, Cancel, Cancelled, Outcome, Policy, Reason, SystemTimer, Timer, Upstream, UpstreamAnswer, UpstreamCall,
    Verdict,
    guard::{Guard, Unguarded},
    retry::{Retry, Woken},
};
use core::{
    future::{Future, poll_fn},
    ops::Deref,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

impl Policy {
    /// Ticks at this policy's times: the first at once, the next after each delay, none after the last attempt.
    ///
    /// ```
    /// use relent::Policy;
    /// use std::time::Duration;
    ///
    /// let policy = Policy::constant(Duration::from_millis(1)).max_attempts(3);
    /// let ticks: Vec<u32> = policy.ticker().into_iter().map(|tick| tick.number()).collect();
    /// assert_eq!(ticks, [1, 2, 3]);
    /// ```
    pub fn ticker(&self) -> Ticker {
        self.ticker_with(SystemTimer)
    }

    /// [`ticker`](Policy::ticker) on a clock and sleeper of the user's own.
    ///
    /// ```
    /// # use relent::{Policy, SystemTimer};
    /// let ticks = Policy::immediate().max_attempts(3).ticker_with(SystemTimer);
    /// assert_eq!(ticks.into_iter().count(), 3);
    /// ```
    pub fn ticker_with<T: Timer + Clone>(&self, timer: T) -> Ticker<T> {
        let retry = self.start_with(timer.clone()).into_owned();
        Ticker { retry, timer, state: State::First, cancelled: None, outcome: FAILED, reason: None }
    }
}

/// Ticks at a policy's times. On a thread it is iterated over; async code calls [`tick`](Ticker::tick), or uses it as a
/// `Stream` (feature `stream`).
///
/// It has a policy of its own, so that it can be kept in a struct, or be moved to a thread:
///
/// ```
/// use relent::{Policy, Ticker};
///
/// struct Poller {
///     ticker: Ticker,
/// }
///
/// let poller = Poller { ticker: Policy::default().ticker() };
/// let first = std::thread::spawn(move || poller.ticker.into_iter().next());
/// assert_eq!(first.join().unwrap().unwrap().number(), 1);
/// ```
#[must_use = "a ticker does nothing unless it is asked"]
pub struct Ticker<T: Timer = SystemTimer, G = Unguarded> {
    retry: Retry<Policy, T, G>,
    timer: T,
    state: State<T>,
    /// Waits for the switch, as soon as anybody sleeps.
    cancelled: Option<Cancelled>,
    /// What became of the last tick, as far as anybody has said.
    outcome: Outcome,
    /// Why it has ended.
    reason: Option<Reason>,
}

/// Whoever asks for another tick without a word has not succeeded yet.
const FAILED: Outcome = Outcome::Failure(Verdict::Transient);

enum State<T: Timer> {
    First,
    Ticked,
    Sleeping(Pin<Box<T::Sleep>>),
    /// The upstream is to be asked.
    Asking,
    /// It has said when to ask again.
    Waiting(Pin<Box<T::Sleep>>),
    /// It has a queue, and this is how long to stand in it.
    Queued(Pin<Box<T::Sleep>>),
    Ended,
}

impl<T: Timer> Ticker<T> {
    /// The same ticker, each of whose ticks is an attempt on an upstream: before it the breaker and the limiter are asked, and a
    /// rate is waited for. To ask for the next tick says that the last has failed, and that tick is paid from the budget as a
    /// retry is; after [`succeed`](Ticker::succeed) it is a call of its own, which costs nothing. It ends when the
    /// upstream refuses, and [`reason`](Ticker::reason) says why.
    ///
    /// ```
    /// use relent::{Breaker, Policy, Reason, Upstream};
    /// use std::time::Duration;
    ///
    /// static FEED: Upstream = Upstream::new("feed").breaker(Breaker::consecutive(2));
    ///
    /// let mut ticks = Policy::constant(Duration::from_millis(1)).ticker().on(&FEED).into_iter();
    /// assert_eq!(ticks.next().unwrap().number(), 1);
    /// ticks.succeed(());
    /// assert_eq!(ticks.by_ref().count(), 2, "two failures in a row open the breaker");
    /// assert_eq!(ticks.reason(), Some(Reason::Open));
    /// assert_eq!((FEED.snapshot().calls, FEED.snapshot().retries), (2, 1));
    /// ```
    pub fn on<U: Deref<Target = Upstream> + Clone>(self, upstream: U) -> Ticker<T, UpstreamCall<U>> {
        let Ticker { retry, timer, state, cancelled, outcome, reason } = self;
        Ticker { retry: retry.on(upstream), timer, state, cancelled, outcome, reason }
    }
}

impl<T: Timer, U: Deref<Target = Upstream>> Ticker<T, UpstreamCall<U>> {
    /// Waits for an open breaker instead of ending: see [`Retrier::wait_while_open`](crate::Retrier::wait_while_open).
    ///
    /// ```
    /// use relent::{Breaker, Policy, Upstream};
    /// use std::time::Duration;
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    ///
    /// let feed = Upstream::new("feed").breaker(Breaker::consecutive(1).open_for(Duration::from_secs(30)));
    /// let mut ticker = Policy::immediate().max_attempts(2).ticker().on(&feed).wait_while_open();
    /// assert_eq!(ticker.tick().await.unwrap().number(), 1);
    /// assert_eq!(ticker.tick().await.unwrap().number(), 2, "half a minute later");
    /// # });
    /// ```
    pub fn wait_while_open(mut self) -> Self {
        self.retry = self.retry.wait_while_open();
        self
    }
}

impl<T: Timer, G: Guard> Ticker<T, G> {
    /// The same ticker, which ends when `cancel` is thrown: a sleeper wakes at once, and a switch that is thrown already
    /// lets nothing tick, the first tick included.
    ///
    /// ```
    /// use relent::{Cancel, Policy};
    ///
    /// let (policy, cancel) = (Policy::default(), Cancel::new());
    /// let mut ticks = policy.ticker().cancel(&cancel).into_iter();
    /// assert_eq!(ticks.next().unwrap().number(), 1);
    /// cancel.cancel();
    /// assert!(ticks.next().is_none());
    /// ```
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancelled = Some(cancel.cancelled());
        self.retry = self.retry.cancel(cancel);
        self
    }

    /// What the last tick was for has succeeded: tells the upstream, and hands the value through. Without an upstream
    /// there is nobody to tell. The policy goes on where it is.
    ///
    /// ```
    /// use relent::{Budget, Policy, Upstream};
    ///
    /// let feed = Upstream::new("feed").budget(Budget::ratio(0.1));
    /// let mut ticks = Policy::immediate().max_attempts(3).ticker().on(&feed).into_iter();
    /// while let Some(tick) = ticks.next() {
    ///     ticks.succeed(tick);
    /// }
    /// assert_eq!((feed.snapshot().calls, feed.snapshot().retries), (3, 0));
    /// ```
    pub fn succeed<V>(&mut self, value: V) -> V {
        if matches!(self.state, State::Ticked) && self.outcome != Outcome::Success {
            self.outcome = Outcome::Success;
            self.retry.succeeded();
        }
        value
    }

    /// Why it has ended; `None` while it goes on.
    ///
    /// ```
    /// use relent::{Policy, Reason};
    ///
    /// let mut ticks = Policy::immediate().max_attempts(1).ticker().into_iter();
    /// assert_eq!((ticks.by_ref().count(), ticks.reason()), (1, Some(Reason::Attempts)));
    /// ```
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The next tick, when it is time; `None` when the policy has ended, the upstream refuses or the switch is thrown.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, no tick is lost, and its delay goes on: the next call waits for what
    /// is left of it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let policy = relent::Policy::immediate().max_attempts(2);
    /// let mut ticker = policy.ticker();
    /// while let Some(tick) = ticker.tick().await {
    ///     println!("attempt {}", tick.number());
    /// }
    /// # });
    /// ```
    pub async fn tick(&mut self) -> Option<Attempt> {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// The next tick, polled: what [`tick`](Ticker::tick) and the stream are made of.
    ///
    /// ```
    /// use std::task::{Context, Poll, Waker};
    ///
    /// let policy = relent::Policy::default();
    /// let mut ticker = policy.ticker();
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert!(ticker.poll_tick(&mut context).is_ready());
    /// ```
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Option<Attempt>> {
        loop {
            if self.is_over() {
                return Poll::Ready(self.end(Reason::Cancelled));
            }
            match &mut self.state {
                State::First if G::GUARDS => self.state = State::Asking,
                State::First => return Poll::Ready(Some(self.tick_now())),
                State::Ticked => match self.last_is_over() {
                    Err(reason) => return Poll::Ready(self.end(reason)),
                    Ok(delay) if delay.is_zero() => {
                        if let Some(ticked) = self.wakes(false) {
                            return Poll::Ready(ticked);
                        }
                    }
                    Ok(delay) => self.state = State::Sleeping(Box::pin(self.timer.sleep(delay))),
                },
                State::Asking => {
                    let answer = self.retry.ask_upstream();
                    if let Some(ticked) = self.heeds(answer) {
                        return Poll::Ready(ticked);
                    }
                }
                State::Sleeping(sleep) => {
                    ready!(or_cancelled(&mut self.cancelled, sleep, cx));
                    if self.is_over() {
                        continue;
                    }
                    if let Some(ticked) = self.wakes(true) {
                        return Poll::Ready(ticked);
                    }
                }
                State::Waiting(sleep) => {
                    ready!(or_cancelled(&mut self.cancelled, sleep, cx));
                    self.state = State::Asking;
                }
                State::Queued(sleep) => {
                    // First in line, then asked: what comes free in between is not missed.
                    self.retry.stand_in_line(cx.waker());
                    match self.retry.ask_upstream() {
                        UpstreamAnswer::Queue(_) => {
                            ready!(or_cancelled(&mut self.cancelled, sleep, cx));
                            self.state = State::Asking;
                        }
                        answer => {
                            if let Some(ticked) = self.heeds(answer) {
                                return Poll::Ready(ticked);
                            }
                        }
                    }
                }
                State::Ended => return Poll::Ready(None),
            }
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Ended) || self.cancelled.as_ref().is_some_and(Cancelled::is_cancelled)
    }

    /// What the upstream says: a tick or an end, or else what to wait for.
    fn heeds(&mut self, answer: UpstreamAnswer) -> Option<Option<Attempt>> {
        let sleep = |time| Box::pin(self.timer.sleep(time));
        self.state = match answer {
            UpstreamAnswer::Go => return Some(self.may_tick()),
            UpstreamAnswer::Refused(refused) => return Some(self.end(refused.reason)),
            UpstreamAnswer::Wait(wait) => State::Waiting(sleep(wait)),
            UpstreamAnswer::Queue(most) => State::Queued(sleep(most)),
        };
        None
    }

    /// The next tick is asked for: the delay before it.
    fn last_is_over(&mut self) -> Result<Duration, Reason> {
        if !G::GUARDS {
            return self.retry.failed(Verdict::Transient);
        }
        let outcome = core::mem::replace(&mut self.outcome, FAILED);
        self.retry.decide_after(Verdict::Transient, outcome, None)
    }

    fn tick_now(&mut self) -> Attempt {
        self.state = State::Ticked;
        self.retry.attempt()
    }

    /// The tick, unless it has become too late for it, as where a sleeper overslept.
    fn may_tick(&mut self) -> Option<Attempt> {
        match self.retry.may_start() {
            Woken::InTime => Some(self.tick_now()),
            Woken::Not(reason) => self.end(reason),
        }
    }

    /// The delay is over: the tick, or its end, unless the upstream is to be asked.
    fn wakes(&mut self, has_waited: bool) -> Option<Option<Attempt>> {
        self.retry.begin_attempt(has_waited);
        if G::GUARDS && self.retry.may_start() == Woken::InTime {
            self.state = State::Asking;
            return None;
        }
        Some(self.may_tick())
    }

    fn end(&mut self, reason: Reason) -> Option<Attempt> {
        self.reason.get_or_insert(reason);
        self.state = State::Ended;
        self.cancelled = None;
        self.retry.give_back();
        None
    }
}

/// Until the time is over, or the switch is thrown.
fn or_cancelled<S: Future>(
    cancelled: &mut Option<Cancelled>,
    sleep: &mut Pin<Box<S>>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    if cancelled.as_mut().is_some_and(|cancelled| Pin::new(cancelled).poll(cx).is_ready()) {
        return Poll::Ready(());
    }
    sleep.as_mut().poll(cx).map(|_| ())
}

impl<T: Timer, G: Guard> IntoIterator for Ticker<T, G> {
    type Item = Attempt;
    type IntoIter = Ticks<T, G>;

    fn into_iter(self) -> Ticks<T, G> {
        Ticks(self)
    }
}

/// The ticks of a [`Ticker`] on a thread, which sleeps between them.
///
/// ```
/// use relent::{Policy, Ticks};
///
/// let mut ticks: Ticks = Policy::immediate().max_attempts(2).ticker().into_iter();
/// assert_eq!(ticks.next().unwrap().number(), 1);
/// assert_eq!(ticks.next().unwrap().number(), 2);
/// assert!(ticks.next().is_none());
/// ```
pub struct Ticks<T: Timer = SystemTimer, G = Unguarded>(Ticker<T, G>);

impl<T: Timer, G: Guard> Ticks<T, G> {
    /// As [`Ticker::succeed`].
    ///
    /// ```
    /// let mut ticks = relent::Policy::immediate().ticker().into_iter();
    /// let tick = ticks.next().unwrap();
    /// assert_eq!(ticks.succeed(tick.number()), 1);
    /// ```
    pub fn succeed<V>(&mut self, value: V) -> V {
        self.0.succeed(value)
    }

    /// As [`Ticker::reason`].
    ///
    /// ```
    /// assert_eq!(relent::Policy::immediate().ticker().into_iter().reason(), None);
    /// ```
    pub fn reason(&self) -> Option<Reason> {
        self.0.reason()
    }
}

impl<T: Timer, G: Guard> Iterator for Ticks<T, G> {
    type Item = Attempt;

    fn next(&mut self) -> Option<Attempt> {
        let ticker = &mut self.0;
        if ticker.is_over() {
            return ticker.end(Reason::Cancelled);
        }
        let woken = match ticker.state {
            State::First if G::GUARDS => ticker.retry.admit_blocking(),
            State::First => Woken::InTime,
            _ => match ticker.last_is_over() {
                Ok(delay) => ticker.retry.sleep_blocking(delay),
                Err(reason) => Woken::Not(reason),
            },
        };
        match woken {
            Woken::InTime => Some(ticker.tick_now()),
            Woken::Not(reason) => ticker.end(reason),
        }
    }
}

#[cfg(feature = "stream")]
impl<T: Timer + Unpin, G: Guard + Unpin> futures_core::Stream for Ticker<T, G> {
    type Item = Attempt;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Attempt>> {
        self.poll_tick(cx)
    }
}

impl<T: Timer, G: Guard> core::fmt::Debug for Ticker<T, G> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ticker").field("attempt", &self.retry.attempt().number()).finish_non_exhaustive()
    }
}

impl<T: Timer, G: Guard> core::fmt::Debug for Ticks<T, G> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Ticks").field(&self.0).finish()
    }
}
