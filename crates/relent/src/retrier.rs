//! Closures on the loop: an operation is handed over and called until it succeeds or the policy gives up.

use crate::{
    Attempt, Cause, Error, Event, Policy, Reason, Timer, Timestamp, Verdict,
    cancel::Cancel,
    error::is_given_up,
    retry::{DefaultTimer, Retry},
};
use core::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

/// A policy with what a program adds to it: what failures mean ([`when`](Retrier::when)), who is told
/// ([`notify`](Retrier::notify)), what ends it from outside ([`cancel`](Retrier::cancel)), whose clock it runs on
/// ([`timer`](Retrier::timer)). Made by the methods of the same names on [`Policy`]; may be kept and used many times.
///
/// ```
/// use relent::{Cause, Policy};
/// use std::{io, time::Duration};
///
/// const READ: Policy = Policy::exponential(Duration::from_millis(1)).max_attempts(5);
///
/// let err = READ
///     .when(|err: &io::Error| err.kind() == io::ErrorKind::TimedOut)
///     .notify(|event| eprintln!("{event}"))
///     .retry_blocking(|attempt| match attempt.number() {
///         1 => Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)),
///         _ => Err(io::Error::from(io::ErrorKind::NotFound)),
///     })
///     .unwrap_err();
/// assert_eq!(err.attempts, 2);
/// ```
#[derive(Clone, Debug)]
pub struct Retrier<W = Always, N = Silent, T = DefaultTimer> {
    policy: Policy,
    hooks: Hooks<W, N, T>,
}

/// What a program adds to a policy.
#[derive(Clone, Debug)]
struct Hooks<W, N, T> {
    when: W,
    notify: N,
    timer: T,
    cancel: Option<Cancel>,
    deadline: Timestamp,
    retries_given_up: bool,
}

#[cfg(feature = "std")]
impl Hooks<Always, Silent, crate::SystemTimer> {
    const NONE: Self = Hooks {
        when: Always,
        notify: Silent,
        timer: crate::SystemTimer,
        cancel: None,
        deadline: Timestamp::MAX,
        retries_given_up: false,
    };
}

#[cfg(feature = "std")]
impl Policy {
    /// Calls `op` until it succeeds or the policy gives up. Every error is taken as transient; see [`Policy::when`].
    ///
    /// The operation is called after the delay, never before, and is told which attempt it is.
    ///
    /// # Errors
    ///
    /// [`Error`] with the reason and the last error.
    ///
    /// ```
    /// # async fn fetch(url: &str) -> Result<String, std::io::Error> { Ok(url.to_owned()) }
    /// # async fn doc(url: &str) -> Result<(), relent::Error<std::io::Error>> {
    /// let body = relent::Policy::default().retry(async |_| fetch(url).await).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry<V, E, F, Fut>(&self, op: F) -> impl Future<Output = Result<V, Error<E>>>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<V, E>>,
    {
        static NONE: Hooks<Always, Silent, crate::SystemTimer> = Hooks::NONE;
        retry(self, &NONE, op)
    }

    /// [`retry`](Policy::retry) on a thread. An attempt timeout is told to the operation, which has to keep it.
    ///
    /// # Errors
    ///
    /// [`Error`] with the reason and the last error.
    ///
    /// ```
    /// let policy = relent::Policy::immediate();
    /// let number = policy.retry_blocking(|attempt| if attempt.number() == 3 { Ok(3) } else { Err("not yet") });
    /// assert_eq!(number.unwrap(), 3);
    /// ```
    #[inline]
    pub fn retry_blocking<V, E, F>(&self, op: F) -> Result<V, Error<E>>
    where
        F: FnMut(Attempt) -> Result<V, E>,
    {
        retry_blocking(self, &Hooks::NONE, op)
    }

    /// This policy as a [`Retrier`], for options of the program's own.
    pub const fn retrier(self) -> Retrier {
        Retrier { policy: self, hooks: Hooks::NONE }
    }

    /// Says what a failure means: see [`Retrier::when`].
    pub fn when<E, V: Into<Verdict>, W: Fn(&E) -> V>(self, when: W) -> Retrier<W> {
        self.retrier().when(when)
    }

    /// Tells about each retry before its delay: see [`Retrier::notify`].
    pub fn notify<E, N: Fn(&Event<'_, E>)>(self, notify: N) -> Retrier<Always, N> {
        self.retrier().notify(notify)
    }

    /// Lets a switch end the call: see [`Retrier::cancel`].
    pub fn cancel(self, cancel: &Cancel) -> Retrier {
        self.retrier().cancel(cancel)
    }
}

impl Policy {
    /// Runs on a clock and sleeper of the program's own: see [`Timer`].
    pub fn timer<T: Timer>(self, timer: T) -> Retrier<Always, Silent, T> {
        let hooks = Hooks {
            when: Always,
            notify: Silent,
            timer,
            cancel: None,
            deadline: Timestamp::MAX,
            retries_given_up: false,
        };
        Retrier { policy: self, hooks }
    }
}

impl<W, N, T> Retrier<W, N, T> {
    /// Says what a failure means, by a function from the error to a [`Verdict`], or to a `bool`: may it be retried?
    /// An attempt that was dropped at its timeout is transient, and the function is not asked.
    #[must_use]
    pub fn when<E, V: Into<Verdict>, W2: Fn(&E) -> V>(self, when: W2) -> Retrier<W2, N, T> {
        let Hooks { notify, timer, cancel, deadline, retries_given_up, .. } = self.hooks;
        Retrier { policy: self.policy, hooks: Hooks { when, notify, timer, cancel, deadline, retries_given_up } }
    }

    /// Calls `notify` before each delay, with the real delay to come. Not called for the failure that ends the call,
    /// which is in the [`Error`].
    #[must_use]
    pub fn notify<E, N2: Fn(&Event<'_, E>)>(self, notify: N2) -> Retrier<W, N2, T> {
        let Hooks { when, timer, cancel, deadline, retries_given_up, .. } = self.hooks;
        Retrier { policy: self.policy, hooks: Hooks { when, notify, timer, cancel, deadline, retries_given_up } }
    }

    /// Runs on a clock and sleeper of the program's own.
    #[must_use]
    pub fn timer<T2: Timer>(self, timer: T2) -> Retrier<W, N, T2> {
        let Hooks { when, notify, cancel, deadline, retries_given_up, .. } = self.hooks;
        Retrier { policy: self.policy, hooks: Hooks { when, notify, timer, cancel, deadline, retries_given_up } }
    }

    /// Lets a switch end the call: a sleeper wakes at once, an async attempt is dropped, a blocking one ends by itself.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.hooks.cancel = Some(cancel.clone());
        self
    }

    /// A point in time at which the answer is worth nothing any more: no attempt starts at or after it, an async
    /// attempt is dropped at it, a blocking one is told what is left.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn deadline(self, at: std::time::Instant) -> Self {
        self.deadline_at(crate::rt::timestamp(at))
    }

    /// [`deadline`](Retrier::deadline) on the clock of the [`timer`](Retrier::timer).
    #[must_use]
    pub fn deadline_at(mut self, at: Timestamp) -> Self {
        self.hooks.deadline = at;
        self
    }

    /// Also retries what an inner policy gave up on. The attempts of the two multiply, which is why it is not done
    /// unasked.
    #[must_use]
    pub fn retry_given_up(mut self) -> Self {
        self.hooks.retries_given_up = true;
        self
    }

    /// The policy.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Calls `op` until it succeeds or the policy gives up.
    ///
    /// # Errors
    ///
    /// [`Error`] with the reason and the last error.
    pub fn retry<V, E, F, Fut>(&self, op: F) -> impl Future<Output = Result<V, Error<E>>>
    where
        W: Judge<E>,
        N: Watch<E>,
        T: Timer,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<V, E>>,
    {
        retry(&self.policy, &self.hooks, op)
    }

    /// [`retry`](Retrier::retry) on a thread. An attempt timeout is told to the operation, which has to keep it.
    ///
    /// # Errors
    ///
    /// [`Error`] with the reason and the last error.
    #[cfg(feature = "std")]
    pub fn retry_blocking<V, E, F>(&self, op: F) -> Result<V, Error<E>>
    where
        W: Judge<E>,
        N: Watch<E>,
        T: Timer,
        F: FnMut(Attempt) -> Result<V, E>,
    {
        retry_blocking(&self.policy, &self.hooks, op)
    }
}

/// What a failure means. Implemented by functions from `&E` to a [`Verdict`] or `bool`, and by [`Always`].
pub trait Judge<E> {
    /// The verdict on an error.
    fn judge(&self, error: &E) -> Verdict;
}

impl<E, V: Into<Verdict>, W: Fn(&E) -> V> Judge<E> for W {
    fn judge(&self, error: &E) -> Verdict {
        self(error).into()
    }
}

/// Every error is transient, but one that an inner policy gave up on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Always;

impl<E> Judge<E> for Always {
    fn judge(&self, _: &E) -> Verdict {
        Verdict::Transient
    }
}

/// Who is told of retries. Implemented by functions of an [`Event`], and by [`Silent`].
pub trait Watch<E> {
    /// Whether somebody watches. If nobody does, the clock is not read before the first failure.
    const WATCHES: bool = true;

    /// A failure that will be retried.
    fn watch(&self, event: &Event<'_, E>);
}

impl<E, N: Fn(&Event<'_, E>)> Watch<E> for N {
    fn watch(&self, event: &Event<'_, E>) {
        self(event);
    }
}

/// Nobody is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl<E> Watch<E> for Silent {
    const WATCHES: bool = false;

    fn watch(&self, _: &Event<'_, E>) {}
}

/// How an attempt failed.
enum Fault<E> {
    Error(E),
    TimedOut(Duration),
    Cancelled,
}

impl<W, N, T: Timer> Hooks<W, N, T> {
    /// When the call began, if anything depends on it. A call that succeeds at once should not pay for a clock.
    #[inline]
    fn began<E>(&self, policy: &Policy) -> Option<Timestamp>
    where
        N: Watch<E>,
    {
        let is_timed = N::WATCHES || policy.is_timed() || self.deadline != Timestamp::MAX;
        is_timed.then(|| self.timer.now())
    }

    /// What the first attempt is told.
    #[cfg(feature = "std")]
    #[inline]
    fn first_attempt(&self, policy: &Policy, began: Option<Timestamp>) -> Attempt {
        let limit =
            began.and_then(|now| crate::Call::new(policy, now, 0).deadline_at(self.deadline).attempt_limit(now));
        Attempt::new(1, limit)
    }

    #[cold]
    fn retry<'a>(&'a self, policy: &'a Policy, began: Option<Timestamp>) -> Retry<'a, &'a T> {
        let mut retry = Retry::new(policy, &self.timer, began).deadline_at(self.deadline);
        retry.begin();
        match &self.cancel {
            #[cfg(feature = "std")]
            Some(cancel) => retry.cancel(cancel),
            _ => retry,
        }
    }

    /// Takes note of a failure: the delay before the next attempt, or the error that ends the call. The last error
    /// the operation returned is kept in `last`.
    #[inline]
    fn failed<E>(
        &self,
        retry: &mut Retry<'_, &T>,
        attempt: Attempt,
        fault: Fault<E>,
        last: &mut Option<E>,
    ) -> Result<Duration, Error<E>>
    where
        W: Judge<E>,
        N: Watch<E>,
    {
        let (verdict, timed_out) = match fault {
            Fault::Cancelled => return Err(retry.give_up(Reason::Cancelled, last.take())),
            Fault::TimedOut(limit) => (Verdict::Transient, Some(limit)),
            Fault::Error(error) => {
                let is_final = is_given_up::<E>() && !self.retries_given_up;
                let verdict = if is_final { Verdict::Permanent } else { self.when.judge(&error) };
                *last = Some(error);
                (verdict, None)
            }
        };
        if !N::WATCHES && retry.goes_on_at_once(verdict) {
            return Ok(Duration::ZERO);
        }
        self.decide(retry, attempt, verdict, timed_out, last)
    }

    #[inline(never)]
    fn decide<E>(
        &self,
        retry: &mut Retry<'_, &T>,
        attempt: Attempt,
        verdict: Verdict,
        timed_out: Option<Duration>,
        last: &mut Option<E>,
    ) -> Result<Duration, Error<E>>
    where
        N: Watch<E>,
    {
        match retry.decide(verdict) {
            Err(reason) => {
                retry.timed_out = timed_out;
                Err(retry.give_up(reason, last.take()))
            }
            Ok(delay) => {
                let cause = match (timed_out, &*last) {
                    (None, Some(error)) => Cause::Error(error),
                    (limit, _) => Cause::TimedOut(limit.unwrap_or_default()),
                };
                let elapsed = retry.elapsed_at_failure();
                self.notify.watch(&Event { attempt, error: cause, verdict, delay, elapsed });
                Ok(delay)
            }
        }
    }
}

/// No more variables than it needs, since each is stored: a first attempt that succeeds costs little else.
#[expect(clippy::manual_async_fn, reason = "an `async fn` copies its arguments into variables")]
fn retry<W, N, T, V, E, F, Fut>(
    policy: &Policy,
    hooks: &Hooks<W, N, T>,
    mut op: F,
) -> impl Future<Output = Result<V, Error<E>>>
where
    W: Judge<E>,
    N: Watch<E>,
    T: Timer,
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<V, E>>,
{
    async move {
        let began = hooks.began(policy);
        let rest = if began.is_none() && hooks.cancel.is_none() && !policy.has_spread() {
            match unbounded(pin!(op(Attempt::new(1, None)))).await {
                Ok(value) => return Ok(value),
                Err(fault) => go_on(policy, hooks, None, Some(fault), op),
            }
        } else {
            go_on(policy, hooks, began, None, op)
        };
        let mut rest = pin!(rest);
        poll_fn(|cx| poll_apart(rest.as_mut(), cx)).await
    }
}

/// Polls out of line, so that the code of the rest does not weigh on calls that never come to it.
#[inline(never)]
fn poll_apart<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    future.poll(cx)
}

/// All that calls without trouble have no need of: limits, cancellation, a spread, and whatever comes after a first
/// failure.
async fn go_on<W, N, T, V, E, F, Fut>(
    policy: &Policy,
    hooks: &Hooks<W, N, T>,
    began: Option<Timestamp>,
    mut failed: Option<Fault<E>>,
    mut op: F,
) -> Result<V, Error<E>>
where
    W: Judge<E>,
    N: Watch<E>,
    T: Timer,
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<V, E>>,
{
    let mut retry = hooks.retry(policy, began);
    if policy.has_spread() {
        retry.spread().await;
    }
    let mut attempt = retry.attempt();
    let mut last = None;
    loop {
        let fault = match failed.take() {
            Some(fault) => fault,
            None => {
                let outcome = match (attempt.timeout(), &hooks.cancel) {
                    (None, None) => unbounded(pin!(op(attempt))).await,
                    (limit, _) => bounded(op(attempt), limit, hooks).await,
                };
                match outcome {
                    Ok(value) => return Ok(value),
                    Err(fault) => fault,
                }
            }
        };
        let delay = hooks.failed(&mut retry, attempt, fault, &mut last)?;
        if !retry.begin_at_once(delay) && !retry.sleep(delay).await {
            return Err(retry.give_up(Reason::Cancelled, last));
        }
        attempt = retry.attempt();
    }
}

/// One attempt that nothing can end but itself.
fn unbounded<V, E>(mut op: Pin<&mut impl Future<Output = Result<V, E>>>) -> impl Future<Output = Result<V, Fault<E>>> {
    poll_fn(move |cx| op.as_mut().poll(cx).map_err(Fault::Error))
}

/// One attempt, no longer than its limit and no longer than nobody cancels.
async fn bounded<W, N, T, V, E, Fut>(op: Fut, limit: Option<Duration>, hooks: &Hooks<W, N, T>) -> Result<V, Fault<E>>
where
    T: Timer,
    Fut: Future<Output = Result<V, E>>,
{
    let mut op = pin!(op);
    let mut end = pin!(limit.map(|limit| hooks.timer.sleep(limit)));
    let mut cancelled = pin!(hooks.cancel.as_ref().map(Cancel::cancelled));
    poll_fn(|cx| {
        if cancelled.as_mut().as_pin_mut().is_some_and(|cancelled| cancelled.poll(cx).is_ready()) {
            return Poll::Ready(Err(Fault::Cancelled));
        }
        if let Poll::Ready(result) = op.as_mut().poll(cx) {
            return Poll::Ready(result.map_err(Fault::Error));
        }
        match (end.as_mut().as_pin_mut(), limit) {
            (Some(end), Some(limit)) => end.poll(cx).map(|_| Err(Fault::TimedOut(limit))),
            _ => Poll::Pending,
        }
    })
    .await
}

#[cfg(feature = "std")]
#[inline]
fn retry_blocking<W, N, T, V, E, F>(policy: &Policy, hooks: &Hooks<W, N, T>, mut op: F) -> Result<V, Error<E>>
where
    W: Judge<E>,
    N: Watch<E>,
    T: Timer,
    F: FnMut(Attempt) -> Result<V, E>,
{
    let began = hooks.began(policy);
    if policy.has_spread() || hooks.cancel.is_some() {
        return go_on_blocking(policy, hooks, began, None, op);
    }
    match run(&mut op, hooks.first_attempt(policy, began)) {
        Ok(value) => Ok(value),
        Err(fault) => go_on_blocking(policy, hooks, began, Some(fault), op),
    }
}

/// All that comes before a first attempt with a spread or a switch, or after a first failure: out of the way of calls
/// that have neither.
#[cfg(feature = "std")]
#[cold]
fn go_on_blocking<W, N, T, V, E, F>(
    policy: &Policy,
    hooks: &Hooks<W, N, T>,
    began: Option<Timestamp>,
    mut failed: Option<Fault<E>>,
    mut op: F,
) -> Result<V, Error<E>>
where
    W: Judge<E>,
    N: Watch<E>,
    T: Timer,
    F: FnMut(Attempt) -> Result<V, E>,
{
    let mut retry = hooks.retry(policy, began);
    let mut last = None;
    let mut delay = retry.spread_delay();
    let mut attempt = retry.attempt();
    loop {
        let fault = match failed.take() {
            Some(fault) => fault,
            None => {
                if !retry.sleep_blocking(delay) {
                    return Err(retry.give_up(Reason::Cancelled, last));
                }
                attempt = retry.attempt();
                match run(&mut op, attempt) {
                    Ok(value) => return Ok(value),
                    Err(fault) => fault,
                }
            }
        };
        delay = hooks.failed(&mut retry, attempt, fault, &mut last)?;
    }
}

#[cfg(feature = "std")]
#[inline]
fn run<V, E>(op: &mut impl FnMut(Attempt) -> Result<V, E>, attempt: Attempt) -> Result<V, Fault<E>> {
    op(attempt).map_err(Fault::Error)
}
