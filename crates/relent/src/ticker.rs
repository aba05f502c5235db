//! A ticker: a stream, or an iterator, that ticks at a policy's times.
//!
//! The first tick comes at once, then one after each delay, and it ends when the policy does, or when its switch is
//! thrown. Ticks are not queued: the next delay begins when the next tick is asked for.

use crate::{
    Attempt, Cancel, Cancelled, Policy, SystemTimer, Timer, Verdict,
    retry::{Retry, Woken},
};
use core::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
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
    pub fn ticker_with<T: Timer + Clone>(&self, timer: T) -> Ticker<T> {
        Ticker { retry: self.start_with(timer.clone()).into_owned(), timer, state: State::First, cancelled: None }
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
pub struct Ticker<T: Timer = SystemTimer> {
    retry: Retry<Policy, T>,
    timer: T,
    state: State<T>,
    /// Waits for the switch, as soon as anybody sleeps.
    cancelled: Option<Cancelled>,
}

enum State<T: Timer> {
    First,
    Ticked,
    Sleeping(Pin<Box<T::Sleep>>),
    Ended,
}

impl<T: Timer> Ticker<T> {
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

    /// The next tick, when it is time; `None` when the policy has ended or the switch is thrown.
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
        if self.is_over() {
            return Poll::Ready(self.end());
        }
        if matches!(self.state, State::First) {
            return Poll::Ready(Some(self.first()));
        }
        if matches!(self.state, State::Ticked) {
            match self.retry.failed(Verdict::Transient) {
                Err(_) => return Poll::Ready(self.end()),
                Ok(delay) if delay.is_zero() => return Poll::Ready(self.ticked(false)),
                Ok(delay) => self.state = State::Sleeping(Box::pin(self.timer.sleep(delay))),
            }
        }
        if self.cancelled.as_mut().is_some_and(|cancelled| Pin::new(cancelled).poll(cx).is_ready()) {
            return Poll::Ready(self.end());
        }
        match &mut self.state {
            State::Sleeping(sleep) => match sleep.as_mut().poll(cx) {
                Poll::Ready(_) => Poll::Ready(self.ticked(true)),
                Poll::Pending => Poll::Pending,
            },
            _ => Poll::Ready(None),
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Ended) || self.cancelled.as_ref().is_some_and(Cancelled::is_cancelled)
    }

    fn first(&mut self) -> Attempt {
        self.state = State::Ticked;
        self.retry.attempt()
    }

    /// The tick after a delay; none if it has become too late for it, as where a sleeper overslept.
    fn ticked(&mut self, has_waited: bool) -> Option<Attempt> {
        self.retry.begin_attempt(has_waited);
        if self.retry.may_start() != Woken::InTime {
            return self.end();
        }
        self.state = State::Ticked;
        Some(self.retry.attempt())
    }

    fn end(&mut self) -> Option<Attempt> {
        self.state = State::Ended;
        self.cancelled = None;
        None
    }
}

impl<T: Timer> IntoIterator for Ticker<T> {
    type Item = Attempt;
    type IntoIter = Ticks<T>;

    fn into_iter(self) -> Ticks<T> {
        Ticks(self)
    }
}

/// The ticks of a [`Ticker`] on a thread, which sleeps between them.
pub struct Ticks<T: Timer = SystemTimer>(Ticker<T>);

impl<T: Timer> Iterator for Ticks<T> {
    type Item = Attempt;

    fn next(&mut self) -> Option<Attempt> {
        let ticker = &mut self.0;
        if ticker.is_over() {
            return ticker.end();
        }
        if matches!(ticker.state, State::First) {
            return Some(ticker.first());
        }
        match ticker.retry.failed(Verdict::Transient) {
            Ok(delay) if ticker.retry.sleep_blocking(delay) == Woken::InTime => Some(ticker.retry.attempt()),
            _ => ticker.end(),
        }
    }
}

#[cfg(feature = "stream")]
impl<T: Timer + Unpin> futures_core::Stream for Ticker<T> {
    type Item = Attempt;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Attempt>> {
        self.poll_tick(cx)
    }
}

impl<T: Timer> core::fmt::Debug for Ticker<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ticker").field("attempt", &self.retry.attempt().number()).finish_non_exhaustive()
    }
}

impl<T: Timer> core::fmt::Debug for Ticks<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Ticks").field(&self.0).finish()
    }
}
