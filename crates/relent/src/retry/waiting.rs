//! The wait before an attempt, and its beginning.

use super::Retry;
use crate::{Policy, Reason, Timer, cancel::Cancel, guard::Guard};
use core::{
    borrow::Borrow,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

/// How a wait before an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    InTime,
    /// Not to start an attempt any more, for this reason.
    Not(Reason),
}

impl<P: Borrow<Policy>, T: Timer, G: Guard> Retry<P, T, G> {
    /// Waits for the policy's `spread`, for before the first attempt; at once where it has none.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped; waiting again waits as long again.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// use std::time::Duration;
    ///
    /// let policy = relent::Policy::default().spread(Duration::from_secs(10));
    /// let mut retry = policy.start();
    /// retry.spread().await;
    /// # });
    /// ```
    pub async fn spread(&mut self) {
        let spread = self.spread_delay();
        if !self.begin_at_once(spread) {
            let cancel = self.state.as_ref().and_then(|state| state.cancel.clone());
            sleep(&self.timer, spread, cancel.as_ref()).await;
            self.begin_attempt(true);
        }
    }

    pub(crate) fn spread_delay(&mut self) -> Duration {
        self.begin();
        let policy = self.policy.borrow();
        self.state.as_ref().map_or(Duration::ZERO, |state| state.call(policy).spread())
    }

    /// Whether the attempt may start now: the switch is not thrown, the deadline not past.
    pub(crate) fn may_start(&self) -> Woken {
        match &self.state {
            Some(state) if state.is_cancelled() => Woken::Not(Reason::Cancelled),
            Some(state) if state.is_timed => {
                let now = state.attempt_started.unwrap_or(state.failed_at);
                let is_in_time = state.call(self.policy.borrow()).may_start(now);
                if is_in_time { Woken::InTime } else { Woken::Not(Reason::Elapsed) }
            }
            _ => Woken::InTime,
        }
    }

    /// Sleeps and starts the next attempt, if it may start then.
    #[inline]
    pub(crate) async fn sleep(&mut self, delay: Duration) -> Woken {
        if !self.begin_at_once(delay) {
            let cancel = self.state.as_ref().and_then(|state| state.cancel.clone());
            sleep(&self.timer, delay, cancel.as_ref()).await;
            self.begin_attempt(true);
        }
        match self.may_start() {
            Woken::InTime if G::GUARDS => self.admit().await,
            woken => woken,
        }
    }

    /// Starts the next attempt if there is no delay before it.
    #[inline]
    pub(crate) fn begin_at_once(&mut self, delay: Duration) -> bool {
        if delay.is_zero() {
            self.begin_attempt(false);
        }
        delay.is_zero()
    }

    /// [`sleep`](Retry::sleep) on a thread.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) fn sleep_blocking(&mut self, delay: Duration) -> Woken {
        if !delay.is_zero() {
            let cancel = self.state.as_ref().and_then(|state| state.cancel.as_ref());
            self.timer.sleep_blocking(delay, cancel);
        } else if self.state.as_ref().is_some_and(|state| state.is_timed) {
            crate::rt::begin_blocking();
        }
        self.begin_attempt(!delay.is_zero());
        match self.may_start() {
            Woken::InTime if G::GUARDS => self.admit_blocking(),
            woken => woken,
        }
    }

    /// The next attempt starts now.
    #[inline]
    pub(crate) fn begin_attempt(&mut self, has_waited: bool) {
        let Some(state) = &mut self.state else { return };
        state.attempt_started = None;
        state.timed_out = None;
        if has_waited || state.is_timed {
            state.failed_at = self.timer.now();
            state.attempt_started = Some(state.failed_at);
        }
    }
}

/// Sleeps, or until the switch is thrown.
pub(super) async fn sleep<T: Timer>(timer: &T, delay: Duration, cancel: Option<&Cancel>) {
    let mut sleep = pin!(timer.sleep(delay));
    let mut cancelled = pin!(cancel.map(Cancel::cancelled));
    poll_fn(|cx| {
        if cancelled.as_mut().as_pin_mut().is_some_and(|cancelled| cancelled.poll(cx).is_ready()) {
            return Poll::Ready(());
        }
        sleep.as_mut().poll(cx).map(|_| ())
    })
    .await;
}
