//! A failure: whether and when another attempt is made, or what the error says.

use super::{Retry, State, Woken};
use crate::{
    Decision, Error, Outcome, Policy, Reason, Story, Timer, Timestamp, Verdict, error::is_given_up, guard::Guard,
    hooks::Plain,
};
use core::{borrow::Borrow, time::Duration};

impl<P: Borrow<Policy>, T: Timer, G: Guard> Retry<P, T, G> {
    /// Waits before the next attempt after a transient failure.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the failure has been counted (at its first poll) and the rest of the delay is not
    /// waited for: an attempt made then is the next one, made early.
    ///
    /// # Errors
    ///
    /// Gives the error back, with the reason, when it is not to be retried.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let policy = relent::Policy::default().max_attempts(2);
    /// let mut retry = policy.start();
    /// retry.back_off("refused").await.unwrap();
    /// let err = retry.back_off("refused again").await.unwrap_err();
    /// assert_eq!((err.attempts, err.last), (2, Some("refused again")));
    /// # });
    /// ```
    pub async fn back_off<E: Plain<M>, M>(&mut self, error: E) -> Result<(), Error<E>> {
        let verdict = self.default_verdict::<E>();
        self.back_off_as(error, verdict).await
    }

    /// Waits before the next attempt after a failure that means `verdict`.
    ///
    /// # Cancel safety
    ///
    /// As [`back_off`](Retry::back_off).
    ///
    /// # Errors
    ///
    /// Gives the error back, with the reason, when it is not to be retried.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// use relent::{Policy, Verdict};
    /// use std::time::Duration;
    ///
    /// let policy = Policy::default();
    /// let mut retry = policy.start();
    /// retry.back_off_as("busy", Verdict::After(Duration::from_secs(30))).await.unwrap();
    /// assert_eq!(retry.back_off_as("gone", false).await.unwrap_err().last, Some("gone"));
    /// # });
    /// ```
    pub async fn back_off_as<E>(&mut self, error: E, verdict: impl Into<Verdict>) -> Result<(), Error<E>> {
        let delay = match self.failed(verdict.into()) {
            Ok(delay) => delay,
            Err(reason) => return Err(self.give_up(reason, Some(error))),
        };
        match self.sleep(delay).await {
            Woken::InTime => Ok(()),
            Woken::Not(reason) => Err(self.give_up(reason, Some(error))),
        }
    }

    /// [`back_off`](Retry::back_off) on a thread.
    ///
    /// # Errors
    ///
    /// Gives the error back, with the reason, when it is not to be retried.
    ///
    /// ```
    /// let policy = relent::Policy::immediate().max_attempts(2);
    /// let mut retry = policy.start();
    /// retry.back_off_blocking("refused").unwrap();
    /// assert_eq!(retry.back_off_blocking("refused again").unwrap_err().attempts, 2);
    /// ```
    #[cfg(feature = "std")]
    #[inline]
    pub fn back_off_blocking<E: Plain<M>, M>(&mut self, error: E) -> Result<(), Error<E>> {
        let verdict = self.default_verdict::<E>();
        self.back_off_as_blocking(error, verdict)
    }

    /// [`back_off_as`](Retry::back_off_as) on a thread.
    ///
    /// # Errors
    ///
    /// Gives the error back, with the reason, when it is not to be retried.
    ///
    /// ```
    /// let policy = relent::Policy::default();
    /// let err = policy.start().back_off_as_blocking("gone", false).unwrap_err();
    /// assert_eq!(err.to_string(), "permanent failure after 1 attempt: gone");
    /// ```
    #[cfg(feature = "std")]
    pub fn back_off_as_blocking<E>(&mut self, error: E, verdict: impl Into<Verdict>) -> Result<(), Error<E>> {
        match self.failed(verdict.into()).map(|delay| self.sleep_blocking(delay)) {
            Ok(Woken::InTime) => Ok(()),
            Ok(Woken::Not(reason)) | Err(reason) => Err(self.give_up(reason, Some(error))),
        }
    }

    fn default_verdict<E>(&self) -> Verdict {
        Verdict::from(!is_given_up::<E>() || self.state.as_ref().is_some_and(|state| state.retries_given_up))
    }

    /// So many attempts failed of which nobody looked at the clock.
    pub(crate) fn has_failed(&mut self, failures: u32) {
        if failures > 0 {
            self.state().saved.failures = failures;
        }
    }

    /// Takes note of a failure that happened now; the delay, or why there is none.
    #[inline]
    pub(crate) fn failed(&mut self, verdict: Verdict) -> Result<Duration, Reason> {
        if self.goes_on_at_once(verdict) { Ok(Duration::ZERO) } else { self.decide(verdict) }
    }

    /// Takes note of a failure after which there is nothing to wait for and nothing to decide: no delay, no limit of
    /// time, nobody who could end it. False if it is not such a one.
    #[inline]
    pub(crate) fn goes_on_at_once(&mut self, verdict: Verdict) -> bool {
        let policy = self.policy.borrow();
        if G::GUARDS || verdict != Verdict::Transient || !policy.is_immediate() {
            return false;
        }
        let state = self.state.get_or_insert_with(|| State::new(None));
        let failures = state.saved.failures.saturating_add(1);
        let made = state.before_change.saturating_add(failures);
        let goes_on = !state.is_timed && state.cancel.is_none() && made < policy.max_attempts;
        if goes_on {
            state.saved.failures = failures;
            state.attempt_started = None;
        }
        goes_on
    }

    pub(crate) fn decide(&mut self, verdict: Verdict) -> Result<Duration, Reason> {
        self.decide_after(verdict, Outcome::Failure(verdict), None)
    }

    /// `outcome` is what the upstream is told: not every transient failure was an answer. `stop` is why there must not be
    /// a retry, where the policy would make one.
    pub(crate) fn decide_after(
        &mut self,
        verdict: Verdict,
        outcome: Outcome,
        stop: Option<Reason>,
    ) -> Result<Duration, Reason> {
        if let Some(reason) = self.ends_without_clock(verdict) {
            return Err(reason);
        }
        let had_begun = self.state().has_begun;
        self.begin();
        if had_begun || self.state().is_timed {
            let now = self.timer.now();
            self.state().failed_at = now;
        }
        self.tell_upstream(outcome);
        let state = self.state.get_or_insert_with(|| State::new(None));
        if state.is_timed
            && let Some(started) = state.attempt_started
            && state.failed_at.since(started) >= state.healthy
        {
            // The attempt was well: its end is what the new trouble begins with, and what the limits of time count from.
            let now = state.failed_at;
            state.forget(started);
            (state.started, state.failed_at) = (now, now);
        }
        match state.decide(self.policy.borrow(), verdict) {
            _ if state.is_cancelled() => Err(Reason::Cancelled),
            Decision::Retry(_) if stop.is_some() => Err(stop.unwrap_or(Reason::Permanent)),
            Decision::Retry(delay) if self.pay(outcome) => Ok(delay),
            Decision::Retry(_) => Err(Reason::Budget),
            Decision::GiveUp(reason) => Err(reason),
        }
    }

    /// What comes now is the first attempt of another call, at a random moment within so many nanoseconds, and within the
    /// limits of time: how long to wait for it.
    #[cfg(all(feature = "ws", not(loom)))]
    pub(crate) fn begin_another(&mut self, within: u64) -> Duration {
        self.reset();
        self.guard.renew();
        let policy = self.policy.borrow();
        self.state.as_ref().map_or(Duration::ZERO, |state| state.call(policy).spread_over(within))
    }

    /// What was well has ended now: the limits of time count from here. The failures are not forgotten.
    #[cfg(all(feature = "ws", not(loom)))]
    pub(crate) fn was_well(&mut self) {
        self.begin();
        let now = self.timer.now();
        self.state().started = now;
    }

    /// Takes note of an answer that is neither the end nor a failure: to be asked for again, which nobody has to pay for.
    pub(crate) fn ask_again(&mut self, verdict: Verdict, has_changed: bool) -> Result<Duration, Reason> {
        self.begin();
        let now = self.timer.now();
        self.state().failed_at = now;
        self.tell_upstream(Outcome::Success);
        self.guard.renew();
        let state = self.state.get_or_insert_with(|| State::new(None));
        if has_changed {
            state.begin_curve_anew();
        }
        match state.decide(self.policy.borrow(), verdict) {
            _ if state.is_cancelled() => Err(Reason::Cancelled),
            Decision::Retry(delay) => Ok(delay),
            Decision::GiveUp(reason) => Err(reason),
        }
    }

    /// Why a failure ends a call in which nobody has looked at the clock yet, if it does: nor is there a need to now.
    fn ends_without_clock(&mut self, verdict: Verdict) -> Option<Reason> {
        let most = self.policy.borrow().max_attempts;
        let state = self.state();
        if state.is_timed || state.has_begun || state.cancel.is_some() {
            return None;
        }
        let failures = state.saved.failures.saturating_add(1);
        let reason = verdict.reason().or((failures >= most && most != u32::MAX).then_some(Reason::Attempts))?;
        state.pushback = verdict.pushback().or(state.pushback);
        state.saved.failures = failures;
        Some(reason)
    }

    pub(crate) fn give_up<E>(&mut self, reason: Reason, last: Option<E>) -> Error<E> {
        self.guard.give_back();
        let last = match last {
            Some(last) if self.state().has_little_to_tell() => return Error::at_once(reason, last),
            last => last,
        };
        let now = (reason == Reason::Cancelled && self.state().has_begun).then(|| self.timer.now());
        let state = self.state();
        if let Some(now) = now {
            // Which need not be when the last attempt failed.
            state.failed_at = now;
        }
        state.timeline.catch_up(state.made());
        let story = Story {
            attempts: state.made(),
            elapsed: state.knows_start.then(|| state.failed_at.since(state.started)),
            timed_out: state.timed_out,
            pushback: state.pushback,
            again_in: state.again.filter(|at| *at != Timestamp::MAX).map(|at| at.since(state.failed_at)),
            timeline: state.timeline,
        };
        Error::new(reason, last, story)
    }

    /// The attempt that is under way was cancelled.
    pub(crate) fn cancelled<E>(&mut self, last: Option<E>) -> Error<E> {
        self.begin();
        let now = self.timer.now();
        let state = self.state();
        state.saved.failures = state.saved.failures.saturating_add(1);
        state.timeline.catch_up(state.made().saturating_sub(1));
        state.timeline.push(state.attempt_started, now);
        self.give_up(Reason::Cancelled, last)
    }

    /// The last attempt was dropped, after so long.
    pub(crate) fn timed_out(&mut self, limit: Option<Duration>) {
        self.state().timed_out = limit;
    }

    /// The time from the beginning of the call to the last failure, where that is known.
    pub(crate) fn elapsed_at_failure(&self) -> Duration {
        self.state.as_ref().map_or(Duration::ZERO, |state| state.failed_at.since(state.started))
    }
}
