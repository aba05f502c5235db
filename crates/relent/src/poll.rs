//! Polling: asking until something is done, at a policy's times.
//!
//! A job that takes its time, a payment that is being settled, a page that may have changed: whoever asks in a fixed
//! interval asks too seldom while something happens, and too often while nothing does. Here the interval grows while
//! nothing changes, as a policy says, begins anew when something does, and is never shorter than the far side asked for.
//!
//! That it is not done yet is no failure: nobody is notified, no budget pays, a breaker counts a success. What fails is
//! the asking, and that is retried as in any other call. The limits of the policy hold for the whole: nothing that the
//! far side answers lifts them.

use crate::{
    Attempt, Error, Heeds, Judge, Outcome, Policy, Reason, Retrier, Retry, Setting, Timer, Verdict, Watch,
    failed::Fault,
    guard::Guard,
    hooks::Hooks,
    retry::Woken,
    run::{Ears, Going, SEAL, attempt_once},
};
#[cfg(feature = "std")]
use crate::{Plain, SystemTimer};
use core::{borrow::Borrow, future::Future, ops::ControlFlow, time::Duration};

/// What somebody who was asked "is it done?" has answered: see [`Policy::poll`].
///
/// ```
/// use relent::Answer;
///
/// fn read(status: &str) -> Answer<&str, String> {
///     match status {
///         "succeeded" => Answer::Done("receipt"),
///         "declined" => Answer::Failed("the card was declined".to_owned()),
///         _ => Answer::Still,
///     }
/// }
/// assert_eq!(read("processing"), Answer::Still);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T, E> {
    /// It is done, and this came of it.
    Done(T),
    /// It has failed, and asking again will not change that.
    Failed(E),
    /// Not yet, and nothing has changed: the next interval is longer, as the policy says.
    Still,
    /// As [`Still`](Answer::Still), and not to be asked again before this long from now. It raises an interval and never
    /// shortens it, and has the limits of a pushback: beyond [`max_pushback`](Policy::max_pushback) or `max_elapsed` the
    /// poll ends at once, with reason [`PushbackTooLong`](Reason::PushbackTooLong).
    StillAfter(Duration),
    /// Not yet, but something has changed: the intervals begin anew.
    Changed,
    /// As [`Changed`](Answer::Changed), and not to be asked again before this long from now.
    ChangedAfter(Duration),
}

impl<T, E> Answer<T, E> {
    /// The same answer, with another value where it is done.
    ///
    /// ```
    /// use relent::Answer;
    ///
    /// assert_eq!(Answer::<_, ()>::Done(20).map(|n| n + 1), Answer::Done(21));
    /// assert_eq!(Answer::<u8, ()>::Still.map(|n| n + 1), Answer::Still);
    /// ```
    pub fn map<T2>(self, map: impl FnOnce(T) -> T2) -> Answer<T2, E> {
        match self {
            Answer::Done(value) => Answer::Done(map(value)),
            Answer::Failed(error) => Answer::Failed(error),
            Answer::Still => Answer::Still,
            Answer::StillAfter(wait) => Answer::StillAfter(wait),
            Answer::Changed => Answer::Changed,
            Answer::ChangedAfter(wait) => Answer::ChangedAfter(wait),
        }
    }
}

#[cfg(feature = "std")]
impl Policy {
    /// Asks until it is done, has failed, or the policy gives up: the first time at once (or after its
    /// [`spread`](Policy::spread)), then after each of its delays.
    ///
    /// The delays grow while nothing changes, and begin anew when something does. A jitter that never comes near zero
    /// suits best: [`Jitter::Equal`](crate::Jitter::Equal), or proportional. `max_attempts` counts what was asked,
    /// `max_elapsed` and `timeout` bound the whole, `attempt_timeout` each question.
    ///
    /// An error is one of asking, and is retried at the same delays; see [`Retrier::poll`] for what it means.
    ///
    /// ```
    /// use relent::{Answer, Jitter, Policy};
    /// use std::time::Duration;
    ///
    /// const RECEIPT: Policy = Policy::exponential(Duration::from_secs(1))
    ///     .cap(Duration::from_secs(30))
    ///     .jitter(Jitter::Equal)
    ///     .unlimited_attempts()
    ///     .timeout(Duration::from_secs(600));
    ///
    /// # let states = std::cell::RefCell::new(["queued", "queued", "settled"].into_iter());
    /// # let state = || -> Result<&str, std::io::Error> { Ok(states.borrow_mut().next().unwrap()) };
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// let receipt = RECEIPT
    ///     .poll(async |_| {
    ///         Ok(match state()? {
    ///             "settled" => Answer::Done("receipt 17"),
    ///             "declined" => Answer::Failed(std::io::Error::other("declined")),
    ///             _ => Answer::Still,
    ///         })
    ///     })
    ///     .await;
    /// assert_eq!(receipt.unwrap(), "receipt 17");
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`], with reason [`Permanent`](Reason::Permanent) and its error where it has failed; with the reason why the
    /// policy gave up where it is not done by then, and with the last error if the last question got none but an error.
    pub async fn poll<T, E, F, Fut, M>(self, ask: F) -> Result<T, Error<E>>
    where
        E: Plain<M>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<Answer<T, E>, E>>,
    {
        poll(&self, &mut Hooks::none(SystemTimer), ask).await
    }

    /// [`poll`](Policy::poll) on a thread.
    ///
    /// ```
    /// use relent::{Answer, Policy};
    /// use std::time::Duration;
    ///
    /// let job = Policy::constant(Duration::from_millis(1));
    /// let rows = job.poll_blocking(|question| {
    ///     Ok::<_, std::io::Error>(if question.number() < 3 { Answer::Still } else { Answer::Done(40) })
    /// })?;
    /// assert_eq!(rows, 40);
    /// # Ok::<(), relent::Error<std::io::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`poll`](Policy::poll).
    pub fn poll_blocking<T, E, F, M>(&self, ask: F) -> Result<T, Error<E>>
    where
        E: Plain<M>,
        F: FnMut(Attempt) -> Result<Answer<T, E>, E>,
    {
        poll_blocking(self, &mut Hooks::none(SystemTimer), ask)
    }
}

impl<W, N, S: Setting> Retrier<W, N, S> {
    /// [`Policy::poll`] with what was added to the policy: `when` says what an error of asking means and `notify` is told
    /// of it, `cancel` and `deadline` end the poll, and each question is a call on the upstream of [`on`](Retrier::on).
    ///
    /// ```
    /// use relent::{Answer, Cancel, Policy, Reason};
    /// use std::{io, time::Duration};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// let switch = Cancel::new();
    /// let mut seen = 1;
    /// let refresh = Policy::exponential(Duration::from_secs(1)).unlimited_attempts();
    /// let ended = refresh
    ///     .when(|err: &io::Error| err.kind() != io::ErrorKind::PermissionDenied)
    ///     .cancel(&switch)
    ///     .poll(|_| {
    /// #       if seen == 3 { switch.cancel(); }
    ///         seen += 1; // A newer version is there: the next question comes soon.
    ///         async { Ok::<Answer<(), io::Error>, _>(Answer::Changed) }
    ///     })
    ///     .await;
    /// assert_eq!(ended.unwrap_err().reason, Reason::Cancelled);
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Policy::poll`].
    pub async fn poll<T, E, F, Fut, M>(self, ask: F) -> Result<T, Error<E>>
    where
        W: Judge<E> + Heeds<E, M>,
        N: Watch<E>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<Answer<T, E>, E>>,
    {
        let (policy, mut hooks) = self.into_parts();
        poll(&policy, &mut hooks, ask).await
    }

    /// [`poll`](Retrier::poll) on a thread.
    ///
    /// ```
    /// use relent::{Answer, Policy, Reason};
    /// use std::{io, time::Duration};
    ///
    /// let job = Policy::constant(Duration::from_millis(1)).when(|err: &io::Error| err.kind() == io::ErrorKind::TimedOut);
    /// let ended = job.poll_blocking(|question| match question.number() {
    ///     1 => Err(io::ErrorKind::TimedOut.into()),
    ///     2 => Ok(Answer::<(), _>::Still),
    ///     _ => Err(io::ErrorKind::NotFound.into()),
    /// });
    /// let err = ended.unwrap_err();
    /// assert_eq!((err.reason, err.attempts), (Reason::Permanent, 3));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Policy::poll`].
    #[cfg(feature = "std")]
    pub fn poll_blocking<T, E, F, M>(self, ask: F) -> Result<T, Error<E>>
    where
        W: Judge<E> + Heeds<E, M>,
        N: Watch<E>,
        F: FnMut(Attempt) -> Result<Answer<T, E>, E>,
    {
        let (policy, mut hooks) = self.into_parts();
        poll_blocking(&policy, &mut hooks, ask)
    }
}

impl<P: Borrow<Policy>, T: Timer, G: Guard> Retry<P, T, G> {
    /// Polls in a loop of the user's own: takes an answer, and waits before the next question. `Some` when it is done.
    /// An error of asking is for [`back_off`](Retry::back_off).
    ///
    /// ```
    /// use relent::{Answer, Error, Policy};
    /// use std::{io, time::Duration};
    ///
    /// struct Job {
    ///     asked: u32,
    /// }
    ///
    /// impl Job {
    ///     async fn state(&mut self) -> io::Result<Answer<&'static str, io::Error>> {
    ///         self.asked += 1;
    ///         Ok(if self.asked < 3 { Answer::Still } else { Answer::Done("report.pdf") })
    ///     }
    ///
    ///     async fn wait(&mut self, policy: Policy) -> Result<&'static str, Error<io::Error>> {
    ///         let mut poll = policy.start();
    ///         loop {
    ///             match self.state().await {
    ///                 Ok(answer) => if let Some(file) = poll.heed(answer).await? { return Ok(file) },
    ///                 Err(err) => poll.back_off(err).await?,
    ///             }
    ///         }
    ///     }
    /// }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// let mut job = Job { asked: 0 };
    /// assert_eq!(job.wait(Policy::constant(Duration::from_secs(1))).await.unwrap(), "report.pdf");
    /// # });
    /// ```
    ///
    /// # Cancel safety
    ///
    /// As [`back_off`](Retry::back_off): the answer has been counted, and the rest of the delay is not waited for.
    ///
    /// # Errors
    ///
    /// [`Error`], where it has failed, and where the policy allows no further question.
    pub async fn heed<V, E>(&mut self, answer: Answer<V, E>) -> Result<Option<V>, Error<E>> {
        let delay = match self.take(answer)? {
            ControlFlow::Break(value) => return Ok(Some(value)),
            ControlFlow::Continue(delay) => delay,
        };
        match self.sleep(delay).await {
            Woken::InTime => Ok(None),
            Woken::Not(reason) => Err(self.give_up(reason, None)),
        }
    }

    /// [`heed`](Retry::heed) on a thread.
    ///
    /// ```
    /// use relent::{Answer, Error, Policy};
    /// use std::{io, time::Duration};
    ///
    /// fn state(asked: u32) -> io::Result<Answer<&'static str, io::Error>> {
    ///     Ok(if asked < 3 { Answer::Still } else { Answer::Done("report.pdf") })
    /// }
    ///
    /// fn wait(policy: Policy) -> Result<&'static str, Error<io::Error>> {
    ///     let mut poll = policy.start();
    ///     loop {
    ///         match state(poll.attempt().number()) {
    ///             Ok(answer) => if let Some(file) = poll.heed_blocking(answer)? { return Ok(file) },
    ///             Err(err) => poll.back_off_blocking(err)?,
    ///         }
    ///     }
    /// }
    /// assert_eq!(wait(Policy::constant(Duration::from_millis(1))).unwrap(), "report.pdf");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`heed`](Retry::heed).
    #[cfg(feature = "std")]
    pub fn heed_blocking<V, E>(&mut self, answer: Answer<V, E>) -> Result<Option<V>, Error<E>> {
        let delay = match self.take(answer)? {
            ControlFlow::Break(value) => return Ok(Some(value)),
            ControlFlow::Continue(delay) => delay,
        };
        match self.sleep_blocking(delay) {
            Woken::InTime => Ok(None),
            Woken::Not(reason) => Err(self.give_up(reason, None)),
        }
    }

    /// What comes of an answer: the value, or how long to wait before the next question.
    fn take<V, E>(&mut self, answer: Answer<V, E>) -> Result<ControlFlow<V, Duration>, Error<E>> {
        let (verdict, has_changed) = match answer {
            Answer::Done(value) => return Ok(ControlFlow::Break(self.succeed(value))),
            Answer::Failed(error) => return Err(self.has_ended(error)),
            Answer::Still => (Verdict::Transient, false),
            Answer::StillAfter(wait) => (Verdict::After(wait), false),
            Answer::Changed => (Verdict::Transient, true),
            Answer::ChangedAfter(wait) => (Verdict::After(wait), true),
        };
        match self.ask_again(verdict, has_changed) {
            Ok(delay) => Ok(ControlFlow::Continue(delay)),
            Err(reason) => Err(self.give_up(reason, None)),
        }
    }

    /// What was asked for has failed. The far side has answered, which is a success of the asking.
    fn has_ended<E>(&mut self, error: E) -> Error<E> {
        let reason = self.decide_after(Verdict::Permanent, Outcome::Success, None).err();
        self.give_up(reason.unwrap_or(Reason::Permanent), Some(error))
    }
}

pub(crate) async fn poll<W, N, S, V, E, F, Fut>(
    policy: &Policy,
    hooks: &mut Hooks<W, N, S>,
    mut ask: F,
) -> Result<V, Error<E>>
where
    W: Judge<E>,
    N: Watch<E>,
    S: Setting,
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<Answer<V, E>, E>>,
{
    let Going { mut ears, mut retry, setting, mut last, mut delay } = begin(policy, hooks);
    loop {
        if let Woken::Not(reason) = retry.sleep(delay).await {
            return Err(retry.give_up(reason, last));
        }
        let attempt = retry.attempt();
        let asked = attempt_once(&mut ask, &mut retry, attempt, setting, &mut ears).await;
        match ears.answered(&mut retry, attempt, asked, &mut last)? {
            ControlFlow::Break(value) => return Ok(value),
            ControlFlow::Continue(wait) => delay = wait,
        }
    }
}

#[cfg(feature = "std")]
pub(crate) fn poll_blocking<W, N, S, V, E, F>(
    policy: &Policy,
    hooks: &mut Hooks<W, N, S>,
    mut ask: F,
) -> Result<V, Error<E>>
where
    W: Judge<E>,
    N: Watch<E>,
    S: Setting,
    F: FnMut(Attempt) -> Result<Answer<V, E>, E>,
{
    let Going { mut ears, mut retry, mut last, mut delay, .. } = begin(policy, hooks);
    loop {
        if let Woken::Not(reason) = retry.sleep_blocking(delay) {
            return Err(retry.give_up(reason, last));
        }
        let attempt = retry.attempt();
        let asked = ask(attempt).map_err(Fault::Error);
        match ears.answered(&mut retry, attempt, asked, &mut last)? {
            ControlFlow::Break(value) => return Ok(value),
            ControlFlow::Continue(wait) => delay = wait,
        }
    }
}

/// A poll is timed from its beginning, whatever its policy says: it is there to wait.
fn begin<'a, W, N, S: Setting, E>(policy: &'a Policy, hooks: &'a mut Hooks<W, N, S>) -> Going<'a, W, N, S, E> {
    let (began, guard) = (hooks.setting.timer(SEAL).now(), hooks.setting.guard(SEAL));
    hooks.set_out(policy, Some(began), guard)
}

impl<W, N> Ears<'_, W, N> {
    /// What comes of a question. An answer forgets the error of a question before.
    fn answered<V, E, T: Timer, G: Guard>(
        &mut self,
        retry: &mut Retry<&Policy, &T, G>,
        attempt: Attempt,
        asked: Result<Answer<V, E>, Fault<E>>,
        last: &mut Option<E>,
    ) -> Result<ControlFlow<V, Duration>, Error<E>>
    where
        W: Judge<E>,
        N: Watch<E>,
    {
        match asked {
            Ok(answer) => {
                *last = None;
                retry.take(answer)
            }
            Err(fault) => self.failed(retry, attempt, fault, last).map(ControlFlow::Continue),
        }
    }
}
