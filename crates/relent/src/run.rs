//! How closures are run, async and blocking: the first attempt with as little as possible around it, the rest apart.

#[cfg(feature = "std")]
use crate::hedged::hedged;
use crate::{
    Attempt, Cause, Error, Event, Outcome, Policy, Reason, Timer, Timestamp, Upstream, Verdict,
    cancel::Cancel,
    error::is_given_up,
    failed::Fault,
    guard::Guard,
    hooks::{Hooks, Judge, Watch},
    retry::{Retry, Woken},
    seal::Seal,
    setting::Setting,
};
use core::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

pub(crate) const SEAL: Seal = Seal(());

impl<W, N, S: Setting> Hooks<W, N, S> {
    /// Whether nothing is to be done before the first attempt or while it runs.
    #[inline]
    pub(crate) fn is_plain(&self, policy: &Policy) -> bool {
        !policy.has_spread()
            && !policy.bounds_attempts()
            && self.deadline == Timestamp::MAX
            && self.setting.switch(SEAL).is_none()
            && !self.setting.is_hedged(SEAL)
    }

    /// When the call began, if anything depends on it. A call that succeeds at once should not pay for a clock.
    #[inline]
    pub(crate) fn began<E>(&self, policy: &Policy, guard: &S::Guard) -> Option<Timestamp>
    where
        N: Watch<E>,
    {
        let is_timed =
            N::WATCHES || policy.is_timed() || self.deadline != Timestamp::MAX || self.upstream_is_timed(guard);
        if is_timed || self.setting.switch(SEAL).is_some() { Some(self.setting.timer(SEAL).now()) } else { None }
    }

    #[inline]
    fn upstream_is_timed(&self, guard: &S::Guard) -> bool {
        S::Guard::GUARDS && guard.upstream(SEAL).is_some_and(Upstream::is_timed)
    }

    /// A first attempt that was let through at once has succeeded.
    #[inline]
    pub(crate) fn succeeded(&self, guard: &mut S::Guard, began: Option<Timestamp>) {
        if S::Guard::GUARDS {
            let times_success = guard.upstream(SEAL).is_some_and(Upstream::times_success);
            let now = if times_success { self.setting.timer(SEAL).now() } else { began.unwrap_or_default() };
            guard.outcome(now, Outcome::Success, began.unwrap_or_default().as_nanos());
        }
    }

    /// What can be said of a first failure without a call to keep count: that it was the last, or what it means.
    #[inline]
    fn at_once<E>(&mut self, policy: &Policy, began: Option<Timestamp>, error: E) -> Result<First<E>, Error<E>>
    where
        W: Judge<E>,
    {
        let verdict = judge(&mut self.when, &error, self.retries_given_up);
        let reason = verdict.reason().or(if policy.max_attempts == 1 { Some(Reason::Attempts) } else { None });
        match reason {
            Some(reason) if !S::Guard::GUARDS && began.is_none() && verdict.pushback().is_none() => {
                Err(Error::at_once(reason, error))
            }
            _ => Ok(First { began, failures: 0, error, verdict }),
        }
    }
}

/// An attempt that failed before there was a call to keep count: the first, or one that was made at once after it.
pub(crate) struct First<E> {
    pub(crate) began: Option<Timestamp>,
    /// How many failed before it.
    pub(crate) failures: u32,
    pub(crate) error: E,
    pub(crate) verdict: Verdict,
}

#[inline]
pub(crate) fn judge<E, W: Judge<E>>(when: &mut W, error: &E, retries_given_up: bool) -> Verdict {
    if is_given_up::<E>() && !retries_given_up { Verdict::Permanent } else { when.judge(error, SEAL) }
}

pub(crate) fn call<'a, S: Setting>(
    policy: &'a Policy,
    setting: &'a S,
    deadline: Timestamp,
    began: Option<Timestamp>,
    guard: S::Guard,
) -> Retry<&'a Policy, &'a S::Timer, S::Guard> {
    let retry = Retry::guarded(policy, setting.timer(SEAL), began, guard);
    let retry = if deadline == Timestamp::MAX { retry } else { retry.deadline_at(deadline) };
    match setting.switch(SEAL) {
        #[cfg(feature = "std")]
        Some(cancel) => retry.cancel(cancel),
        _ => retry,
    }
}

/// Who judges and who is told.
pub(crate) struct Ears<'h, W, N> {
    pub(crate) when: &'h mut W,
    pub(crate) notify: &'h mut N,
    pub(crate) retries_given_up: bool,
}

impl<W, N> Ears<'_, W, N> {
    /// Takes note of a failure: the delay before the next attempt, or the error that ends the call. The last error the
    /// operation returned is kept in `last`.
    #[inline]
    pub(crate) fn failed<E, T: Timer, G: Guard>(
        &mut self,
        retry: &mut Retry<&Policy, &T, G>,
        attempt: Attempt,
        fault: Fault<E>,
        last: &mut Option<E>,
    ) -> Result<Duration, Error<E>>
    where
        W: Judge<E>,
        N: Watch<E>,
    {
        let (verdict, timed_out) = match fault {
            Fault::Cancelled => return Err(retry.cancelled(last.take())),
            Fault::TimedOut(limit, verdict) => (verdict, Some(limit)),
            #[cfg(feature = "std")]
            Fault::Judged(error, verdict) => {
                *last = Some(error);
                (verdict, None)
            }
            Fault::Error(error) => {
                let verdict = judge(self.when, &error, self.retries_given_up);
                *last = Some(error);
                (verdict, None)
            }
        };
        let stop = self.when.stop(if timed_out.is_some() { None } else { last.as_ref() }, SEAL);
        if !N::WATCHES && stop.is_none() && retry.goes_on_at_once(verdict) {
            return Ok(Duration::ZERO);
        }
        self.decide(retry, attempt, verdict, (timed_out, stop), last)
    }

    #[inline(never)]
    fn decide<E, T: Timer, G: Guard>(
        &mut self,
        retry: &mut Retry<&Policy, &T, G>,
        attempt: Attempt,
        verdict: Verdict,
        (timed_out, stop): (Option<Duration>, Option<Reason>),
        last: &mut Option<E>,
    ) -> Result<Duration, Error<E>>
    where
        N: Watch<E>,
    {
        let outcome = if timed_out.is_some() { Outcome::TimedOut } else { Outcome::Failure(verdict) };
        match retry.decide_after(verdict, outcome, stop) {
            Err(reason) => {
                retry.timed_out(timed_out);
                Err(retry.give_up(reason, last.take()))
            }
            Ok(delay) => {
                let cause = match (timed_out, &*last) {
                    (None, Some(error)) => Cause::Error(error),
                    (limit, _) => Cause::TimedOut(limit.unwrap_or_default()),
                };
                let elapsed = retry.elapsed_at_failure();
                self.notify.watch(&Event { attempt, error: cause, verdict, delay, elapsed }, SEAL);
                Ok(delay)
            }
        }
    }
}

/// The future owns its policy and hooks, so that it can be spawned, and holds the operation once: what follows a first
/// failure borrows it.
#[expect(clippy::manual_async_fn, reason = "an `async fn` copies its arguments into variables")]
pub(crate) fn retry<W, N, S, V, E, F, Fut>(
    policy: Policy,
    mut hooks: Hooks<W, N, S>,
    mut op: F,
) -> impl Future<Output = Result<V, Error<E>>>
where
    W: Judge<E>,
    N: Watch<E>,
    S: Setting,
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<V, E>>,
{
    async move {
        // Nothing of this is held over the first attempt but what must be: each way out drops the guard itself, since one
        // that is dropped at the end needs a flag in the future.
        let mut guard = hooks.setting.guard(SEAL);
        let first = 'first: {
            if !hooks.is_plain(&policy) {
                break 'first None;
            }
            let began = hooks.began::<E>(&policy, &guard);
            if !guard.go_at_once(began.unwrap_or_default()) {
                break 'first None;
            }
            match op(Attempt::new(1, None)).await {
                Ok(value) => {
                    hooks.succeeded(&mut guard, began);
                    drop(guard);
                    return Ok(value);
                }
                Err(error) => match hooks.at_once(&policy, began, error) {
                    Ok(failed) => Some(failed),
                    Err(error) => {
                        drop(guard);
                        return Err(error);
                    }
                },
            }
        };
        apart(go_on(&policy, &mut hooks, first, &mut op, guard)).await
    }
}

/// As [`retry`], with hooks that the caller keeps.
#[cfg(any(feature = "tracing", feature = "metrics"))]
pub(crate) async fn retry_with<W, N, S, V, E, F, Fut>(
    policy: &Policy,
    hooks: &mut Hooks<W, N, S>,
    mut op: F,
) -> Result<V, Error<E>>
where
    W: Judge<E>,
    N: Watch<E>,
    S: Setting,
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<V, E>>,
{
    let guard = hooks.setting.guard(SEAL);
    go_on(policy, hooks, None, &mut op, guard).await
}

impl<E> First<E> {
    /// The attempt that follows at once, where there is nothing else to decide of this failure.
    #[inline]
    fn next_at_once<W: Judge<E>, N, S>(&mut self, policy: &Policy, hooks: &mut Hooks<W, N, S>) -> Option<Attempt> {
        let has_more = self.verdict == Verdict::Transient && self.failures.saturating_add(1) < policy.max_attempts;
        if !has_more || hooks.when.stop(Some(&self.error), SEAL).is_some() {
            return None;
        }
        self.failures += 1;
        Some(Attempt::new(self.failures + 1, None))
    }

    #[inline]
    fn failed<W: Judge<E>, N, S>(&mut self, error: E, hooks: &mut Hooks<W, N, S>) {
        self.verdict = judge(&mut hooks.when, &error, hooks.retries_given_up);
        self.error = error;
    }
}

/// Whether nobody looks at what is between two attempts, and nothing is: then there is no call to set up, but a loop
/// that counts.
#[inline]
fn rushes<E, N: Watch<E>, S: Setting>(policy: &Policy, first: &First<E>) -> bool {
    !N::WATCHES && !S::Guard::GUARDS && policy.is_immediate() && first.began.is_none()
}

/// In a box, so that it neither weighs on the future of calls that never come to it, nor on the code of their poll.
#[cfg(feature = "std")]
#[cold]
#[inline(never)]
fn apart<F: Future>(future: F) -> Apart<F> {
    Apart(Box::pin(future))
}

/// Its poll is no part of the poll that it is called from, which else would be as large, and keep in memory what fits
/// into registers.
#[cfg(feature = "std")]
struct Apart<F>(core::pin::Pin<Box<F>>);

#[cfg(feature = "std")]
impl<F: Future> Future for Apart<F> {
    type Output = F::Output;

    #[inline(never)]
    fn poll(mut self: core::pin::Pin<&mut Self>, cx: &mut core::task::Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().poll(cx)
    }
}

/// Where nothing can be allocated it is part of the future.
#[cfg(not(feature = "std"))]
fn apart<F: Future>(future: F) -> F {
    future
}

/// What a call needs that has something to wait for, in a future as on a thread.
pub(crate) struct Going<'a, W, N, S: Setting, E> {
    pub(crate) ears: Ears<'a, W, N>,
    pub(crate) retry: Retry<&'a Policy, &'a S::Timer, S::Guard>,
    pub(crate) setting: &'a S,
    /// The last error, if there was one yet.
    pub(crate) last: Option<E>,
    /// How long to wait before the next attempt.
    pub(crate) delay: Duration,
}

impl<W, N, S: Setting> Hooks<W, N, S> {
    /// From before a first attempt.
    #[inline]
    pub(crate) fn set_out<'a, E>(
        &'a mut self,
        policy: &'a Policy,
        began: Option<Timestamp>,
        guard: S::Guard,
    ) -> Going<'a, W, N, S, E> {
        let Hooks { when, notify, setting, deadline, retries_given_up, .. } = self;
        let setting = &*setting;
        let ears = Ears { when, notify, retries_given_up: *retries_given_up };
        let mut retry = call(policy, setting, *deadline, began, guard);
        let delay = if policy.has_spread() { retry.spread_delay() } else { Duration::ZERO };
        Going { ears, retry, setting, last: None, delay }
    }

    /// From a first failure on, or from before a first attempt.
    #[inline]
    fn going<'a, E>(
        &'a mut self,
        policy: &'a Policy,
        first: Option<First<E>>,
        guard: S::Guard,
    ) -> Result<Going<'a, W, N, S, E>, Error<E>>
    where
        W: Judge<E>,
        N: Watch<E>,
    {
        let Some(First { began, failures, error, verdict }) = first else {
            let began = self.began::<E>(policy, &guard);
            return Ok(self.set_out(policy, began, guard));
        };
        let mut going = self.set_out(policy, began, guard);
        going.retry.has_failed(failures);
        going.last = Some(error);
        going.delay = going.ears.decide_first(&mut going.retry, verdict, &mut going.last)?;
        Ok(going)
    }
}

/// All that calls without trouble have no need of: limits, cancellation, a spread, and whatever comes after a first
/// failure.
pub(crate) async fn go_on<W, N, S, V, E, F, Fut>(
    policy: &Policy,
    hooks: &mut Hooks<W, N, S>,
    first: Option<First<E>>,
    op: &mut F,
    guard: S::Guard,
) -> Result<V, Error<E>>
where
    W: Judge<E>,
    N: Watch<E>,
    S: Setting,
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<V, E>>,
{
    let mut first = first;
    if let Some(first) = first.as_mut().filter(|first| rushes::<E, N, S>(policy, first)) {
        while let Some(attempt) = first.next_at_once(policy, hooks) {
            match op(attempt).await {
                Ok(value) => return Ok(value),
                Err(error) => first.failed(error, hooks),
            }
        }
    }
    let spares_last = hooks.spares_last;
    let Going { mut ears, mut retry, setting, mut last, mut delay } = hooks.going(policy, first, guard)?;
    loop {
        let is_at_once = !S::Guard::GUARDS && retry.begin_at_once(delay);
        let woken = if is_at_once { retry.may_start() } else { retry.sleep(delay).await };
        if let Woken::Not(reason) = woken {
            return Err(retry.give_up(reason, last));
        }
        let attempt = if spares_last { retry.unhurried() } else { retry.attempt() };
        let fault = match attempt_once(op, &mut retry, attempt, setting, &mut ears).await {
            Ok(value) => return Ok(retry.succeed(value)),
            Err(fault) => fault,
        };
        delay = ears.failed(&mut retry, attempt, fault, &mut last)?;
    }
}

/// One attempt, within its limits, with the hedges that are due.
#[cfg_attr(not(feature = "std"), expect(unused_variables, reason = "who hedges allocates"))]
pub(crate) async fn attempt_once<W, N, S, V, E, F, Fut>(
    op: &mut F,
    retry: &mut Retry<&Policy, &S::Timer, S::Guard>,
    attempt: Attempt,
    setting: &S,
    ears: &mut Ears<'_, W, N>,
) -> Result<V, Fault<E>>
where
    W: Judge<E>,
    S: Setting,
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<V, E>>,
{
    match (attempt.timeout(), setting.switch(SEAL)) {
        #[cfg(feature = "std")]
        (_, switch) if S::Guard::GUARDS && setting.is_hedged(SEAL) => {
            let retries_given_up = ears.retries_given_up;
            let judge = |error: &E| judge(ears.when, error, retries_given_up);
            apart(hedged(op, retry, attempt, (setting.timer(SEAL), switch), judge)).await
        }
        (None, None) => op(attempt).await.map_err(Fault::Error),
        (limit, cancel) => bounded(op(attempt), limit, setting.timer(SEAL), cancel).await,
    }
}

impl<W, N> Ears<'_, W, N> {
    fn decide_first<E, T: Timer, G: Guard>(
        &mut self,
        retry: &mut Retry<&Policy, &T, G>,
        verdict: Verdict,
        last: &mut Option<E>,
    ) -> Result<Duration, Error<E>>
    where
        W: Judge<E>,
        N: Watch<E>,
    {
        let stop = self.when.stop(last.as_ref(), SEAL);
        if !N::WATCHES && stop.is_none() && retry.goes_on_at_once(verdict) {
            return Ok(Duration::ZERO);
        }
        self.decide(retry, retry.attempt(), verdict, (None, stop), last)
    }
}

/// One attempt, no longer than its limit and no longer than nobody cancels.
async fn bounded<T: Timer, V, E>(
    op: impl Future<Output = Result<V, E>>,
    limit: Option<Duration>,
    timer: &T,
    cancel: Option<&Cancel>,
) -> Result<V, Fault<E>> {
    let mut op = pin!(op);
    let mut end = pin!(limit.map(|limit| timer.sleep(limit)));
    let mut cancelled = pin!(cancel.map(Cancel::cancelled));
    poll_fn(|cx| {
        if cancelled.as_mut().as_pin_mut().is_some_and(|cancelled| cancelled.poll(cx).is_ready()) {
            return Poll::Ready(Err(Fault::Cancelled));
        }
        if let Poll::Ready(result) = op.as_mut().poll(cx) {
            return Poll::Ready(result.map_err(Fault::Error));
        }
        match (end.as_mut().as_pin_mut(), limit) {
            (Some(end), Some(limit)) => end.poll(cx).map(|_| Err(Fault::TimedOut(limit, Verdict::Transient))),
            _ => Poll::Pending,
        }
    })
    .await
}

#[cfg(feature = "std")]
#[inline]
pub(crate) fn retry_blocking<W, N, S, V, E, F>(
    policy: &Policy,
    hooks: &mut Hooks<W, N, S>,
    mut op: F,
) -> Result<V, Error<E>>
where
    W: Judge<E>,
    N: Watch<E>,
    S: Setting,
    F: FnMut(Attempt) -> Result<V, E>,
{
    if policy.has_spread() || hooks.deadline != Timestamp::MAX || hooks.setting.switch(SEAL).is_some() {
        let guard = hooks.setting.guard(SEAL);
        return go_on_blocking(policy, hooks, None, op, guard);
    }
    let mut guard = hooks.setting.guard(SEAL);
    let began = hooks.began::<E>(policy, &guard);
    if !guard.go_at_once(began.unwrap_or_default()) {
        return go_on_blocking(policy, hooks, None, op, guard);
    }
    match op(Attempt::first(policy.first_limit())) {
        Ok(value) => {
            hooks.succeeded(&mut guard, began);
            Ok(value)
        }
        Err(error) => match hooks.at_once(policy, began, error) {
            Ok(first) => go_on_blocking(policy, hooks, Some(first), op, guard),
            Err(error) => Err(error),
        },
    }
}

/// All that comes before a first attempt with a spread, a switch or a deadline, or after a first failure: out of the way
/// of calls that have none.
#[cfg(feature = "std")]
#[cold]
fn go_on_blocking<W, N, S, V, E, F>(
    policy: &Policy,
    hooks: &mut Hooks<W, N, S>,
    first: Option<First<E>>,
    mut op: F,
    guard: S::Guard,
) -> Result<V, Error<E>>
where
    W: Judge<E>,
    N: Watch<E>,
    S: Setting,
    F: FnMut(Attempt) -> Result<V, E>,
{
    let mut first = first;
    if let Some(first) = first.as_mut().filter(|first| rushes::<E, N, S>(policy, first)) {
        while let Some(attempt) = first.next_at_once(policy, hooks) {
            match op(attempt) {
                Ok(value) => return Ok(value),
                Err(error) => first.failed(error, hooks),
            }
        }
    }
    let Going { mut ears, mut retry, mut last, mut delay, .. } = hooks.going(policy, first, guard)?;
    loop {
        if let Woken::Not(reason) = retry.sleep_blocking(delay) {
            return Err(retry.give_up(reason, last));
        }
        let attempt = retry.attempt();
        match op(attempt) {
            Ok(value) => return Ok(retry.succeed(value)),
            Err(error) => delay = ears.failed(&mut retry, attempt, Fault::Error(error), &mut last)?,
        }
    }
}
