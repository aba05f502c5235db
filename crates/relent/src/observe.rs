//! Calls that are seen: in logs (feature `tracing`) and in figures (feature `metrics`).
//!
//! ```
//! use relent::{Policy, Upstream};
//! use std::time::Duration;
//!
//! static BANK: Upstream = Upstream::new("bank");
//! const READ: Policy = Policy::exponential(Duration::from_millis(1)).max_attempts(3);
//!
//! let balance = READ.on(&BANK).observe("read").retry_blocking(|attempt| match attempt.number() {
//!     1 => Err("connection reset"),
//!     _ => Ok(17),
//! });
//! assert_eq!(balance.unwrap(), 17);
//! ```
//!
//! One word on the call, [`observe`](Policy::observe), and what it is called by: the policy's name, which with that of the
//! upstream is on everything that is told. Calls without it pay nothing, whatever features are on, and so does nobody
//! who neither listens nor records. Nothing is set up here: who listens is the program's to say, by a subscriber of
//! `tracing` and a recorder of `metrics`. A recorder that has no fields of its own is heard where it is installed for
//! all, and taken for none where it is set for one thread.
//!
//! # Logs
//!
//! A span `call` for each call (target `relent`, level `INFO`), around everything that the operation logs, with the fields
//! `policy`, `upstream`, `attempts`, `outcome` and `reason`; an event for each retry (`WARN`) with `attempt`, `delay`,
//! `error` and `reason`; one for each change of a breaker, from [`Upstream::observe`].
//!
//! # Figures
//!
//! | name | labels | |
//! |---|---|---|
//! | `relent_calls_total` | upstream, policy, outcome, reason | calls: `success`, `failure`, `dropped`; why they failed |
//! | `relent_attempts_total` | upstream, policy, verdict | attempts: `success`, `timeout`, a verdict, or `dropped` |
//! | `relent_retries_total` | upstream, policy | attempts that were decided upon after another |
//! | `relent_call_attempts` | upstream, policy | attempts of a call |
//! | `relent_call_delay_seconds` | upstream, policy | what a call waited between its attempts |
//! | `relent_call_elapsed_seconds` | upstream, policy | how long a call took |
//! | `relent_budget_balance` | upstream | what is left of the budget |
//! | `relent_breaker_state` | upstream | 0 closed, 1 half-open or in its ramp, 2 open |
//! | `relent_limiter_limit` | upstream | what may be in flight, or a second |
//! | `relent_shed_total` | reason | requests refused by an admission whose layer is observed |
//!
//! A breaker stays at 2 when its open time is over, until a call asks it. [`ATTEMPTS`] and [`SECONDS`] are buckets that
//! suit the histograms; the dashboard and the alerts in `docs/grafana` count on them.

#[cfg(feature = "metrics")]
mod figures;
mod seen;
#[cfg(feature = "tracing")]
mod spans;
mod told;

use self::seen::Seen;
pub(crate) use self::seen::is_anybody_there;
use crate::{
    Always, Answer, Attempt, Error, Event, Heeds, Judge, Policy, Reason, Retrier, Setting, Silent, SystemTimer,
    Upstream, Verdict, Watch,
    hooks::Hooks,
    poll,
    run::{self, SEAL},
    seal::Seal,
};
use core::{fmt::Display, future::Future};

/// Buckets for `relent_call_attempts`.
pub const ATTEMPTS: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 10.0];

/// Buckets for what is in seconds: `relent_call_delay_seconds` and `relent_call_elapsed_seconds`.
pub const SECONDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];

/// A [`Retrier`] whose calls are seen, under a name: see [`observe`](self). Made last, so that it sees everything.
///
/// ```
/// use relent::{Answer, Policy, observe::Observed};
/// use std::{io, time::Duration};
///
/// const READ: Observed = Policy::constant(Duration::from_secs(1)).max_attempts(3).observe("read");
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// let down = READ.retry(async |_| Err::<(), _>(io::Error::other("down"))).await;
/// assert_eq!(down.unwrap_err().attempts, 3);
/// let asked = READ.poll(async |question| match question.number() {
///     1 => Ok::<_, io::Error>(Answer::Still),
///     _ => Ok(Answer::Done("sent")),
/// });
/// assert_eq!(asked.await.unwrap(), "sent");
/// # });
/// // On a thread.
/// assert_eq!(READ.retry_blocking(|_| Ok::<_, io::Error>(17)).unwrap(), 17);
/// assert_eq!(READ.poll_blocking(|_| Ok::<_, io::Error>(Answer::Done(17))).unwrap(), 17);
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a retrier does nothing until it is given an operation"]
pub struct Observed<W = Always, N = Silent, S = SystemTimer> {
    pub(crate) retrier: Retrier<W, N, S>,
    pub(crate) policy: &'static str,
}

impl Policy {
    /// The same policy, whose calls are seen in logs and figures as those of `policy`: see [`observe`](self).
    ///
    /// ```
    /// let policy = relent::Policy::immediate().max_attempts(2);
    /// let err = policy.observe("read").retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    /// assert_eq!(err.attempts, 2);
    /// ```
    pub const fn observe(self, policy: &'static str) -> Observed {
        Observed { retrier: self.retrier(), policy }
    }
}

impl<W, N, S> Retrier<W, N, S> {
    /// The same calls, seen in logs and figures as those of `policy`: see [`observe`](self).
    ///
    /// ```
    /// use relent::{Breaker, Policy, Upstream};
    ///
    /// static BANK: Upstream = Upstream::new("bank").breaker(Breaker::consecutive(5));
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let read = Policy::immediate().on(&BANK).observe("read");
    /// assert_eq!(read.retry(async |_| Ok::<_, String>(1)).await.unwrap(), 1);
    /// # });
    /// ```
    pub fn observe(self, policy: &'static str) -> Observed<W, N, S> {
        Observed { retrier: self, policy }
    }
}

impl Upstream {
    /// Tells of each change of the breaker from now on: an event of `tracing`, and `relent_breaker_state`. To be called
    /// once, where the upstream is set up; [observed](self) calls set the figures of their upstream without it.
    ///
    /// ```
    /// use relent::{Breaker, Upstream};
    ///
    /// static BANK: Upstream = Upstream::new("bank").breaker(Breaker::consecutive(5));
    /// BANK.observe();
    /// ```
    pub fn observe(&self) {
        self.listen(|change| {
            #[cfg(feature = "tracing")]
            spans::changed(change);
            #[cfg(feature = "metrics")]
            figures::changed(change);
        });
    }
}

impl<W, N, S: Setting> Observed<W, N, S> {
    /// [`Retrier::retry`], seen.
    pub async fn retry<V, E, F, Fut, M>(self, mut op: F) -> Result<V, Error<E>>
    where
        W: Judge<E> + Heeds<E, M>,
        N: Watch<E>,
        E: Display,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<V, E>>,
    {
        let (policy, hooks) = self.retrier.into_parts();
        if !is_anybody_there() {
            return run::retry(policy, hooks, op).await;
        }
        let seen = Seen::begin(self.policy, &hooks.setting);
        let mut hooks = eyes(&seen, hooks);
        let result = seen.within(run::retry_with(&policy, &mut hooks, |nth| seen.attempt(op(nth)))).await;
        seen.end(&hooks.setting, result)
    }

    /// [`Retrier::retry_blocking`], seen.
    ///
    /// # Errors
    ///
    /// As [`Retrier::retry_blocking`].
    pub fn retry_blocking<V, E, F, M>(self, mut op: F) -> Result<V, Error<E>>
    where
        W: Judge<E> + Heeds<E, M>,
        N: Watch<E>,
        E: Display,
        F: FnMut(Attempt) -> Result<V, E>,
    {
        let (policy, mut hooks) = self.retrier.into_parts();
        if !is_anybody_there() {
            return run::retry_blocking(&policy, &mut hooks, op);
        }
        let seen = Seen::begin(self.policy, &hooks.setting);
        let mut hooks = eyes(&seen, hooks);
        let op = |nth| seen.attempt_blocking(|| op(nth));
        let result = seen.within_blocking(|| run::retry_blocking(&policy, &mut hooks, op));
        seen.end(&hooks.setting, result)
    }

    /// [`Retrier::poll`], seen. A question that was answered is an attempt that succeeded, whatever the answer.
    pub async fn poll<V, E, F, Fut, M>(self, mut ask: F) -> Result<V, Error<E>>
    where
        W: Judge<E> + Heeds<E, M>,
        N: Watch<E>,
        E: Display,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<Answer<V, E>, E>>,
    {
        let (policy, mut hooks) = self.retrier.into_parts();
        if !is_anybody_there() {
            return poll::poll(&policy, &mut hooks, ask).await;
        }
        let seen = Seen::begin(self.policy, &hooks.setting);
        let mut hooks = eyes(&seen, hooks);
        let result = seen.within(poll::poll(&policy, &mut hooks, |nth| seen.attempt(ask(nth)))).await;
        seen.end(&hooks.setting, result)
    }

    /// [`Retrier::poll_blocking`], seen.
    ///
    /// # Errors
    ///
    /// As [`Policy::poll`].
    pub fn poll_blocking<V, E, F, M>(self, mut ask: F) -> Result<V, Error<E>>
    where
        W: Judge<E> + Heeds<E, M>,
        N: Watch<E>,
        E: Display,
        F: FnMut(Attempt) -> Result<Answer<V, E>, E>,
    {
        let (policy, mut hooks) = self.retrier.into_parts();
        if !is_anybody_there() {
            return poll::poll_blocking(&policy, &mut hooks, ask);
        }
        let seen = Seen::begin(self.policy, &hooks.setting);
        let mut hooks = eyes(&seen, hooks);
        let ask = |nth| seen.attempt_blocking(|| ask(nth));
        let result = seen.within_blocking(|| poll::poll_blocking(&policy, &mut hooks, ask));
        seen.end(&hooks.setting, result)
    }
}

/// The same hooks, through which `seen` hears what they hear.
fn eyes<'s, E, W, N, S>(
    seen: &'s Seen,
    hooks: Hooks<W, N, S>,
) -> Hooks<Hears<'s, W>, impl FnMut(&Event<'_, E>) + use<'s, E, W, N, S>, S>
where
    N: Watch<E>,
    E: Display,
{
    hooks.map(|when, mut notify, setting| {
        let watch = move |event: &Event<'_, E>| {
            seen.retried(event);
            notify.watch(event, SEAL);
        };
        (Hears { seen, when }, watch, setting)
    })
}

/// Hears what failures mean.
struct Hears<'s, W> {
    seen: &'s Seen,
    when: W,
}

impl<E, W> Heeds<E, ()> for Hears<'_, W> {}

impl<E, W: Judge<E>> Judge<E> for Hears<'_, W> {
    fn judge(&mut self, error: &E, seal: Seal) -> Verdict {
        self.seen.judged(self.when.judge(error, seal))
    }

    fn stop(&mut self, error: Option<&E>, seal: Seal) -> Option<Reason> {
        self.when.stop(error, seal)
    }
}

/// A request that an admission refused.
#[cfg(all(feature = "metrics", feature = "tower"))]
pub(crate) fn refused(rule: crate::core::admission::refusal::Rule) {
    if figures::is_recording() {
        figures::refused(rule);
    }
}

/// A call of a layer, seen.
#[cfg(feature = "tower")]
pub(crate) async fn call_of_layer<V, E, F, Fut, W, N, S>(
    name: &'static str,
    policy: &Policy,
    hooks: Hooks<W, N, S>,
    mut op: F,
    guard: S::Guard,
) -> Result<V, Error<E>>
where
    W: Judge<E>,
    N: Watch<E>,
    S: Setting,
    E: Display,
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<V, E>>,
{
    let seen = Seen::begin(name, &hooks.setting);
    let mut hooks = eyes(&seen, hooks);
    let mut op = |nth| seen.attempt(op(nth));
    let result = seen.within(run::go_on(policy, &mut hooks, None, &mut op, guard)).await;
    seen.end(&hooks.setting, result)
}
