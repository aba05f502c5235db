//! A ticker: a stream, or an iterator, that ticks at a policy's times.
//!
//! The first tick comes at once, then one after each delay, and it ends when the policy does. Ticks are not queued: the
//! next delay begins when the next tick is asked for.

use crate::{Attempt, Cancel, Policy, SystemTimer, Timer, Verdict, retry::Retry};
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
    pub fn ticker(&self) -> Ticker<'_> {
        self.ticker_with(SystemTimer)
    }

    /// [`ticker`](Policy::ticker) on a clock and sleeper of the user's own.
    pub fn ticker_with<T: Timer + Clone>(&self, timer: T) -> Ticker<'_, T> {
        Ticker { retry: self.start_with(timer.clone()), timer, state: State::First }
    }
}

/// Ticks at a policy's times. On a thread it is iterated over; async code calls [`tick`](Ticker::tick), or uses it as a
/// `Stream` (feature `stream`).
pub struct Ticker<'a, T: Timer = SystemTimer> {
    retry: Retry<'a, T>,
    timer: T,
    state: State<T>,
}

enum State<T: Timer> {
    First,
    Ticked,
    Sleeping(Pin<Box<T::Sleep>>),
    Ended,
}

impl<T: Timer> Ticker<'_, T> {
    /// The same ticker, which ends when `cancel` is thrown. The first tick comes even then.
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.retry = self.retry.cancel(cancel);
        self
    }

    /// The next tick, when it is time; `None` when the policy has ended.
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
        let cancel = self.retry.switch();
        let mut cancelled = cancel.as_ref().map(Cancel::cancelled);
        poll_fn(|cx| {
            let tick = self.poll_tick(cx);
            let is_over = tick.is_pending() && cancelled.as_mut().is_some_and(|c| Pin::new(c).poll(cx).is_ready());
            if is_over { Poll::Ready(self.end()) } else { tick }
        })
        .await
    }

    /// The next tick, polled.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Option<Attempt>> {
        loop {
            match &mut self.state {
                State::First => {
                    self.state = State::Ticked;
                    return Poll::Ready(Some(self.retry.attempt()));
                }
                State::Ticked => match self.retry.failed(Verdict::Transient) {
                    Err(_) => self.state = State::Ended,
                    Ok(delay) if delay.is_zero() => return Poll::Ready(self.ticked()),
                    Ok(delay) => self.state = State::Sleeping(Box::pin(self.timer.sleep(delay))),
                },
                State::Sleeping(sleep) => {
                    if sleep.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    return Poll::Ready(self.ticked());
                }
                State::Ended => return Poll::Ready(None),
            }
        }
    }

    fn ticked(&mut self) -> Option<Attempt> {
        self.state = State::Ticked;
        self.retry.begin_attempt(true);
        Some(self.retry.attempt())
    }

    fn end(&mut self) -> Option<Attempt> {
        self.state = State::Ended;
        None
    }
}

impl<'a, T: Timer> IntoIterator for Ticker<'a, T> {
    type Item = Attempt;
    type IntoIter = Ticks<'a, T>;

    fn into_iter(self) -> Ticks<'a, T> {
        Ticks(self)
    }
}

/// The ticks of a [`Ticker`] on a thread, which sleeps between them.
#[derive(Debug)]
pub struct Ticks<'a, T: Timer = SystemTimer>(Ticker<'a, T>);

impl<T: Timer> Iterator for Ticks<'_, T> {
    type Item = Attempt;

    fn next(&mut self) -> Option<Attempt> {
        let ticker = &mut self.0;
        match ticker.state {
            State::First => {
                ticker.state = State::Ticked;
                Some(ticker.retry.attempt())
            }
            State::Ended => None,
            State::Ticked | State::Sleeping(_) => match ticker.retry.failed(Verdict::Transient) {
                Ok(delay) if ticker.retry.sleep_blocking(delay) => Some(ticker.retry.attempt()),
                _ => ticker.end(),
            },
        }
    }
}

#[cfg(feature = "stream")]
impl<T: Timer + Unpin> futures_core::Stream for Ticker<'_, T> {
    type Item = Attempt;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Attempt>> {
        self.poll_tick(cx)
    }
}

impl<T: Timer> core::fmt::Debug for Ticker<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ticker").field("attempt", &self.retry.attempt().number()).finish_non_exhaustive()
    }
}
