//! The upstream of a call: leave for each attempt, what became of it, and what hedges it.

use super::{Retry, State, Woken, waiting::sleep};
#[cfg(feature = "std")]
use crate::{Attempt, Timestamp, Verdict};
use crate::{
    NotReady, Outcome, Policy, Reason, Timer, UpstreamAnswer, cancel::Cancel, core::time::nanos, guard::Guard,
    rng::draw,
};
use core::{
    borrow::Borrow,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

impl<P: Borrow<Policy>, T: Timer, G: Guard> Retry<P, T, G> {
    /// Waits until the upstream lets the attempt start, for before the first attempt, and after a
    /// [`back_off`](Retry::back_off) that was dropped. At once where the attempt may start already, and where there is no
    /// upstream.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a place in the queue or a permit of a rate is kept for when it is called again, or given
    /// back when the call is dropped.
    ///
    /// # Errors
    ///
    /// [`NotReady`], with the reason (`open`, `shed`, `budget`, `elapsed`, `cancelled`) and when it is worth asking again.
    ///
    /// ```
    /// use relent::{Breaker, Policy, Reason, Upstream};
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    ///
    /// let (policy, bank) = (Policy::immediate(), Upstream::new("bank").breaker(Breaker::consecutive(5)));
    /// assert!(policy.start().on(&bank).ready().await.is_ok());
    /// bank.hold_open();
    /// assert_eq!(policy.start().on(&bank).ready().await.unwrap_err().0.reason, Reason::Open);
    /// # });
    /// ```
    pub async fn ready(&mut self) -> Result<(), NotReady> {
        let woken = if self.guard.is_under_way() { self.may_start() } else { self.admit().await };
        self.readiness(woken)
    }

    /// [`ready`](Retry::ready) on a thread.
    ///
    /// # Errors
    ///
    /// As [`ready`](Retry::ready).
    ///
    /// ```
    /// use relent::{Limit, Policy, Upstream};
    ///
    /// let (policy, gateway) = (Policy::immediate(), Upstream::new("gateway").limit(Limit::rate(100).burst(10)));
    /// let mut retry = policy.start().on(&gateway);
    /// assert!(retry.ready_blocking().is_ok());
    /// ```
    #[cfg(feature = "std")]
    pub fn ready_blocking(&mut self) -> Result<(), NotReady> {
        let woken = if self.guard.is_under_way() { self.may_start() } else { self.admit_blocking() };
        self.readiness(woken)
    }

    fn readiness(&mut self, woken: Woken) -> Result<(), NotReady> {
        match woken {
            Woken::InTime => Ok(()),
            Woken::Not(reason) => Err(NotReady(self.give_up(reason, None))),
        }
    }

    /// The attempt has succeeded: tells the upstream, and hands the value through. Without an upstream there is nobody to
    /// tell.
    ///
    /// ```
    /// use relent::{Policy, Upstream};
    ///
    /// let (policy, bank) = (Policy::immediate(), Upstream::new("bank"));
    /// let mut retry = policy.start().on(&bank);
    /// retry.ready_blocking()?;
    /// assert_eq!(retry.succeed(42), 42);
    /// # Ok::<(), relent::NotReady>(())
    /// ```
    #[inline]
    pub fn succeed<V>(&mut self, value: V) -> V {
        self.succeeded();
        value
    }

    #[inline]
    pub(crate) fn succeeded(&mut self) {
        if G::GUARDS {
            let now = self.timer.now();
            let draw = self.draw();
            self.guard.outcome(now, Outcome::Success, draw);
        }
    }

    /// When hedges of the attempt under way are due, if any.
    #[cfg(feature = "std")]
    pub(crate) fn hedge_plan(&self, now: Timestamp) -> Option<crate::HedgedCall> {
        self.guard.upstream(crate::seal::Seal(()))?.its_hedge().map(|hedge| hedge.start(now))
    }

    #[cfg(feature = "std")]
    pub(crate) fn split_off(&mut self) -> G {
        self.guard.split_off()
    }

    /// One attempt more beside those under way, the `number`-th being the last so far, if the policy has one left, the budget pays,
    /// and breaker and limiter let it through at once.
    #[cfg(feature = "std")]
    pub(crate) fn hedge(&mut self, now: Timestamp, number: u32) -> Option<(Attempt, G)> {
        let most = self.policy.borrow().max_attempts;
        let state = self.state.as_ref()?;
        let call = state.call(self.policy.borrow());
        if number >= most || !call.may_start(now) {
            return None;
        }
        let limit = call.attempt_limit(now);
        let mut guard = self.guard.hedge();
        let (first, second) = (self.draw(), self.draw());
        let is_paid = guard.pay(now, Outcome::Failure(Verdict::Transient), first);
        let may = is_paid && guard.ask(now, second, Duration::ZERO) == UpstreamAnswer::Go;
        may.then(|| (Attempt::new(number.saturating_add(1), limit), guard))
    }

    /// Hedges that failed are attempts like others.
    #[cfg(feature = "std")]
    pub(crate) fn count_hedges(&mut self, hedges: u32) {
        let failures = &mut self.state().saved.failures;
        *failures = failures.saturating_add(hedges);
    }

    /// A number for the upstream, apart from those of the delays.
    pub(crate) fn draw(&mut self) -> u64 {
        const APART: u64 = 0x7570_7374_7265_616D;
        let state = self.begin();
        state.draws = state.draws.wrapping_add(1);
        draw(state.seed ^ APART, state.draws)
    }

    pub(crate) fn ask_upstream(&mut self) -> UpstreamAnswer {
        let draw = self.draw();
        let now = self.timer.now();
        let policy = self.policy.borrow();
        let waiting = self.guard.waiting_since();
        let Some(state) = &mut self.state else { return UpstreamAnswer::Go };
        let waited = nanos(waiting.map_or(Duration::ZERO, |since| now.since(since)));
        let pushback = Duration::from_nanos(policy.max_pushback.nanos().saturating_sub(waited));
        let within = state.call(policy).left(now).min(pushback);
        state.failed_at = now;
        let answer = self.guard.ask(now, draw, within);
        match answer {
            UpstreamAnswer::Go => state.attempt_started = Some(now),
            UpstreamAnswer::Refused(refused) => state.again = Some(refused.again),
            UpstreamAnswer::Wait(_) | UpstreamAnswer::Queue(_) => {}
        }
        answer
    }

    /// Waits until the upstream lets the attempt start.
    pub(super) async fn admit(&mut self) -> Woken {
        let mut answer = None;
        loop {
            // What is cancelled asks no more: an attempt that is let through counts.
            if self.state.as_ref().is_some_and(State::is_cancelled) {
                return Woken::Not(Reason::Cancelled);
            }
            match answer.take().unwrap_or_else(|| self.ask_upstream()) {
                UpstreamAnswer::Go => return self.may_start(),
                UpstreamAnswer::Refused(refused) => return Woken::Not(refused.reason),
                UpstreamAnswer::Wait(wait) => {
                    let cancel = self.state.as_ref().and_then(|state| state.cancel.clone());
                    sleep(&self.timer, wait, cancel.as_ref()).await;
                }
                UpstreamAnswer::Queue(most) => answer = Some(self.queue(most).await),
            }
        }
    }

    /// Stands in the queue until there is an answer, the time is over, or the switch is thrown.
    async fn queue(&mut self, most: Duration) -> UpstreamAnswer {
        let cancel = self.state.as_ref().and_then(|state| state.cancel.clone());
        let mut sleep = pin!(self.timer.sleep(most));
        let mut cancelled = pin!(cancel.as_ref().map(Cancel::cancelled));
        poll_fn(|cx| {
            if cancelled.as_mut().as_pin_mut().is_some_and(|cancelled| cancelled.poll(cx).is_ready()) {
                return Poll::Ready(UpstreamAnswer::Queue(Duration::ZERO));
            }
            self.guard.stand_in_line(cx.waker());
            let answer = self.ask_upstream();
            if !matches!(answer, UpstreamAnswer::Queue(_)) {
                return Poll::Ready(answer);
            }
            sleep.as_mut().poll(cx).map(|_| answer)
        })
        .await
    }

    /// Is woken when there may be room at the upstream.
    #[cfg(feature = "std")]
    pub(crate) fn stand_in_line(&mut self, waker: &core::task::Waker) {
        self.guard.stand_in_line(waker);
    }

    /// Holds nothing of the upstream any more.
    #[cfg(feature = "std")]
    pub(crate) fn give_back(&mut self) {
        self.guard.give_back();
    }

    #[cfg(feature = "std")]
    pub(crate) fn admit_blocking(&mut self) -> Woken {
        let mut answer = None;
        loop {
            let cancel = self.state.as_ref().and_then(|state| state.cancel.clone());
            if cancel.as_ref().is_some_and(Cancel::is_cancelled) {
                return Woken::Not(Reason::Cancelled);
            }
            match answer.take().unwrap_or_else(|| self.ask_upstream()) {
                UpstreamAnswer::Go => return self.may_start(),
                UpstreamAnswer::Refused(refused) => return Woken::Not(refused.reason),
                UpstreamAnswer::Wait(wait) => self.timer.sleep_blocking(wait, cancel.as_ref()),
                UpstreamAnswer::Queue(most) => {
                    crate::rt::wait(async { answer = Some(self.queue(most).await) }, cancel.as_ref());
                }
            }
        }
    }

    #[inline]
    pub(super) fn tell_upstream(&mut self, outcome: Outcome) {
        if G::GUARDS {
            let draw = self.draw();
            let now = self.state().failed_at;
            self.guard.outcome(now, outcome, draw);
        }
    }

    /// Whether the budget pays for the retry that was decided.
    #[inline]
    pub(super) fn pay(&mut self, outcome: Outcome) -> bool {
        // What comes after a success is a call of its own.
        if !G::GUARDS || outcome == Outcome::Success {
            return true;
        }
        let draw = self.draw();
        let now = self.state().failed_at;
        self.guard.pay(now, outcome, draw)
    }
}
