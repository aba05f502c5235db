//! How long, and how often, a store is asked that does not answer.

use crate::{
    Error, ErrorKind,
    gate::{Gate, Pass},
    race::{Either, race},
};
use relent::{Policy, Retry, SystemTimer, Timer, Verdict, duration::Human};
use std::{future::Future, pin::pin, time::Duration};

/// How an operation on the store is retried: from 10 ms on, up to a second apart, for ten seconds, an attempt for three.
pub(crate) const PATIENCE: Policy = Policy::exponential(Duration::from_millis(10))
    .cap(Duration::from_secs(1))
    .max_attempts(u32::MAX)
    .attempt_timeout(Duration::from_secs(3))
    .timeout(STANDS);

/// How long somebody stands in the line before a store that is away, where the policy names no end.
const STANDS: Duration = Duration::from_secs(10);

/// Runs `op` until it is answered, by the policy, and where the store is away, in turn.
pub(crate) async fn ask<T, F, Fut>(policy: &Policy, gate: &Gate, op: F) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    let mut asking = Asking { policy, gate, retry: policy.start(), is_unsure: false, op };
    let error = match gate.pass() {
        Some(pass) => match asking.attempt(pass).await {
            Ok(answer) => return Ok(answer),
            Err(error) if !error.is_transient() => return Err(error),
            Err(error) => Some(error),
        },
        None => None,
    };
    // In a box, so that it weighs on no operation that is answered at once.
    Box::pin(asking.go_on(error)).await
}

/// An operation, and what has become of it so far.
struct Asking<'a, F> {
    policy: &'a Policy,
    gate: &'a Gate,
    retry: Retry<&'a Policy>,
    /// Whether an attempt may have done it.
    is_unsure: bool,
    op: F,
}

impl<T, F, Fut> Asking<'_, F>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    /// After the error of the first attempt, or before it.
    async fn go_on(mut self, mut error: Option<Error>) -> Result<T, Error> {
        loop {
            // Who was told that others were quicker was answered, and asks at will.
            let stands = error.as_ref().is_some_and(is_away);
            if let Some(failed) = &error
                && self.retry.back_off_as((), Verdict::Transient).await.is_err()
            {
                return Err(self.given_up(Some(failed.clone())));
            }
            let pass = match self.gate.pass().filter(|_| !stands) {
                Some(pass) => pass,
                None => match race(pin!(self.gate.turn()), pin!(SystemTimer.sleep(self.left()))).await {
                    Either::First(pass) => pass,
                    Either::Second(()) => return Err(self.given_up(error)),
                },
            };
            match self.attempt(pass).await {
                Err(failed) if failed.is_transient() => error = Some(failed),
                answer => return answer.map_err(|error| self.given_up(Some(error))),
            }
        }
    }

    async fn attempt(&mut self, pass: Pass) -> Result<T, Error> {
        let answer = match self.retry.attempt().timeout() {
            None => (self.op)().await,
            Some(limit) => match race(pin!((self.op)()), pin!(SystemTimer.sleep(limit))).await {
                Either::First(answer) => answer,
                Either::Second(()) => Err(late(limit)),
            },
        };
        match &answer {
            Err(error) if is_away(error) => self.gate.found_away(pass),
            _ => self.gate.answered(pass),
        }
        self.is_unsure |= answer.as_ref().is_err_and(Error::may_have_happened);
        answer
    }

    /// How long there is time to stand in the line.
    fn left(&self) -> Duration {
        let settings = self.policy.settings();
        let most = settings.timeout.into_iter().chain(settings.max_elapsed).min().unwrap_or(STANDS);
        most.saturating_sub(self.retry.elapsed().unwrap_or_default())
    }

    /// What is told in the end: the last error, or that nobody got to ask.
    fn given_up(&self, last: Option<Error>) -> Error {
        let error = last.unwrap_or_else(|| {
            let what = "the store is away, and there was no time to wait for it";
            Error::new(ErrorKind::Unavailable, what).hint("is it reachable?")
        });
        if self.is_unsure { error.maybe_happened() } else { error }
    }
}

/// Whether it says that the store is not there for anybody.
fn is_away(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout)
}

/// What an attempt says that was dropped at its timeout. It may come true.
fn late(limit: Duration) -> Error {
    let what = format!("the store did not answer within {:.1}", Human(limit));
    Error::new(ErrorKind::Timeout, what).hint("is it reachable, and is it overloaded?")
}
