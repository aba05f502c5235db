//! The loop: the primitive that closures, the ticker and the rest are made of.
//!
//! A loop of the user's own needs no closure, so it can borrow and mutate what it likes, and decide what a failure
//! means where it happens.

use crate::{
    Attempt, Call, Decision, Error, Policy, Reason, Story, Timer, Timestamp, Verdict, cancel::Cancel,
    error::is_given_up, timeline::Timeline,
};
use core::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

#[cfg(feature = "std")]
pub(crate) type DefaultTimer = crate::SystemTimer;

/// Without `std` there is no timer but the one that is given.
#[cfg(not(feature = "std"))]
pub(crate) type DefaultTimer = ();

/// A call driven by a loop of the user's own: see [`Policy::start`].
///
/// ```
/// use relent::{Error, Policy};
/// use std::{io, net::TcpStream, time::Duration};
///
/// const CONNECT: Policy = Policy::exponential(Duration::from_millis(1)).max_attempts(3);
///
/// fn connect(address: &str) -> Result<TcpStream, Error<io::Error>> {
///     let mut retry = CONNECT.start();
///     loop {
///         match TcpStream::connect(address) {
///             Ok(stream) => return Ok(stream),
///             Err(err) => retry.back_off_blocking(err)?,
///         }
///     }
/// }
///
/// assert_eq!(connect("127.0.0.1:1").unwrap_err().attempts, 3);
/// ```
#[derive(Debug)]
pub struct Retry<'a, T = DefaultTimer> {
    call: Call<'a>,
    timer: T,
    timeline: Timeline,
    /// When the attempt that is under way started, if anybody looked at the clock.
    attempt_started: Option<Timestamp>,
    /// Whether the clock was read when the call began, or was reset.
    knows_start: bool,
    /// When the last attempt failed, as far as it matters.
    failed_at: Timestamp,
    healthy: Duration,
    pushback: Option<Duration>,
    /// How long the last attempt was given, if it was dropped at its timeout.
    pub(crate) timed_out: Option<Duration>,
    cancel: Option<Cancel>,
    /// Whether it matters what time it is, even where nothing is waited for.
    is_timed: bool,
    /// Whether the call has its seed, and a beginning if nobody needed to know that before.
    has_begun: bool,
    retries_given_up: bool,
}

#[cfg(feature = "std")]
impl Policy {
    /// Starts a call whose loop is the user's own. The first attempt is under way from now on.
    ///
    /// Nothing is set up for a first attempt that may succeed: the seed is drawn at the first failure, and so is the
    /// clock read, unless the policy has a limit of time. Then `elapsed` counts from the first failure.
    ///
    /// ```
    /// # async fn connect() -> Result<u8, &'static str> { Ok(1) }
    /// # async fn doc() -> Result<u8, relent::Error<&'static str>> {
    /// # let policy = relent::Policy::default();
    /// let mut retry = policy.start();
    /// let socket = loop {
    ///     match connect().await {
    ///         Ok(socket) => break socket,
    ///         Err(err) => retry.back_off(err).await?,
    ///     }
    /// };
    /// # Ok(socket)
    /// # }
    /// ```
    pub fn start(&self) -> Retry<'_> {
        self.start_with(crate::SystemTimer)
    }
}

impl Policy {
    /// [`start`](Policy::start) with a clock and sleeper of the user's own.
    pub fn start_with<T: Timer>(&self, timer: T) -> Retry<'_, T> {
        let began = self.is_timed().then(|| timer.now());
        Retry::new(self, timer, began)
    }
}

impl<'a, T: Timer> Retry<'a, T> {
    /// A call that began at `began`, if it matters.
    #[inline]
    pub(crate) fn new(policy: &'a Policy, timer: T, began: Option<Timestamp>) -> Retry<'a, T> {
        let now = began.unwrap_or_default();
        Retry {
            call: policy.call(now, 0),
            timeline: Timeline::new(now),
            attempt_started: began,
            knows_start: began.is_some(),
            failed_at: now,
            healthy: Duration::MAX,
            pushback: None,
            timed_out: None,
            cancel: None,
            is_timed: began.is_some(),
            has_begun: false,
            retries_given_up: false,
            timer,
        }
    }

    /// What is left undone for calls that succeed at once.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if !self.has_begun {
            self.begin_late();
        }
    }

    #[cold]
    fn begin_late(&mut self) {
        if !self.is_timed {
            self.begin_at(self.timer.now());
            (self.attempt_started, self.knows_start) = (None, false);
        }
        self.has_begun = true;
        self.call.reseed(self.timer.seed());
    }

    fn begin_at(&mut self, now: Timestamp) {
        self.call.begin(now);
        self.timeline = Timeline::new(now);
        (self.attempt_started, self.knows_start) = (Some(now), true);
        self.failed_at = now;
    }

    /// From now on it matters what time it is.
    fn keep_time(&mut self) {
        if !self.is_timed && !self.has_begun {
            self.begin_at(self.timer.now());
        }
        self.is_timed = true;
    }

    /// The same call, which `cancel` ends: a sleeper wakes at once.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// The same call with a deadline on the timer's clock: no attempt starts at or after it.
    #[must_use]
    pub fn deadline_at(mut self, at: Timestamp) -> Self {
        self.call = self.call.deadline_at(at);
        if at != Timestamp::MAX {
            self.keep_time();
        }
        self
    }

    /// The same call, which forgets its failures when an attempt has lasted for `healthy`: what fails after having
    /// worked that long is a new trouble. Without, only [`reset`](Retry::reset) forgets, and a connection that is
    /// accepted and dropped at once is backed off from like any failure.
    ///
    /// ```
    /// use relent::{Jitter, Policy};
    /// use std::time::Duration;
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    ///
    /// let policy = Policy::exponential(Duration::from_secs(1)).jitter(Jitter::None);
    /// let mut retry = policy.start().reset_after(Duration::from_secs(60));
    /// retry.back_off("refused").await.unwrap();
    /// assert_eq!(retry.attempt().number(), 2);
    ///
    /// tokio::time::sleep(Duration::from_secs(300)).await; // Connected, and lost after five minutes.
    /// retry.back_off("reset by peer").await.unwrap();
    /// assert_eq!(retry.attempt().number(), 2);
    /// # });
    /// ```
    #[must_use]
    pub fn reset_after(mut self, healthy: Duration) -> Self {
        self.healthy = healthy;
        self.keep_time();
        self
    }

    /// The same call, which also retries what an inner policy gave up on. The attempts of the two multiply.
    #[must_use]
    pub fn retry_given_up(mut self) -> Self {
        self.retries_given_up = true;
        self
    }

    /// The attempt that is under way.
    #[inline]
    pub fn attempt(&self) -> Attempt {
        let limit =
            if self.is_timed { self.call.attempt_limit(self.attempt_started.unwrap_or(self.failed_at)) } else { None };
        Attempt::new(self.call.attempt(), limit)
    }

    /// The time since the call began, or since it was reset. Counted from the first failure, and zero before it, if no
    /// limit of time made it necessary to read the clock.
    pub fn elapsed(&self) -> Duration {
        if self.has_begun || self.is_timed { self.call.elapsed(self.timer.now()) } else { Duration::ZERO }
    }

    /// Forgets the failures: the next one is the first again, `max_elapsed` counts from now.
    pub fn reset(&mut self) {
        self.begin();
        self.forget(self.timer.now());
    }

    /// Waits for the policy's `spread`. For before the first attempt.
    pub async fn spread(&mut self) {
        self.begin();
        let spread = self.spread_delay();
        self.sleep(spread).await;
    }

    pub(crate) fn spread_delay(&self) -> Duration {
        self.call.spread()
    }

    /// Waits before the next attempt after a transient failure.
    ///
    /// # Errors
    ///
    /// Gives the error back, with the reason, when it is not to be retried.
    pub async fn back_off<E>(&mut self, error: E) -> Result<(), Error<E>> {
        let verdict = self.default_verdict::<E>();
        self.back_off_as(error, verdict).await
    }

    /// Waits before the next attempt after a failure that means `verdict`.
    ///
    /// # Errors
    ///
    /// Gives the error back, with the reason, when it is not to be retried.
    pub async fn back_off_as<E>(&mut self, error: E, verdict: impl Into<Verdict>) -> Result<(), Error<E>> {
        match self.failed(verdict.into()) {
            Ok(delay) if self.sleep(delay).await => Ok(()),
            Ok(_) => Err(self.give_up(Reason::Cancelled, Some(error))),
            Err(reason) => Err(self.give_up(reason, Some(error))),
        }
    }

    /// [`back_off`](Retry::back_off) on a thread.
    ///
    /// # Errors
    ///
    /// Gives the error back, with the reason, when it is not to be retried.
    #[cfg(feature = "std")]
    pub fn back_off_blocking<E>(&mut self, error: E) -> Result<(), Error<E>> {
        let verdict = self.default_verdict::<E>();
        self.back_off_as_blocking(error, verdict)
    }

    /// [`back_off_as`](Retry::back_off_as) on a thread.
    ///
    /// # Errors
    ///
    /// Gives the error back, with the reason, when it is not to be retried.
    #[cfg(feature = "std")]
    pub fn back_off_as_blocking<E>(&mut self, error: E, verdict: impl Into<Verdict>) -> Result<(), Error<E>> {
        match self.failed(verdict.into()) {
            Ok(delay) if self.sleep_blocking(delay) => Ok(()),
            Ok(_) => Err(self.give_up(Reason::Cancelled, Some(error))),
            Err(reason) => Err(self.give_up(reason, Some(error))),
        }
    }

    fn default_verdict<E>(&self) -> Verdict {
        Verdict::from(self.retries_given_up || !is_given_up::<E>())
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
        let is_free = !self.is_timed && self.has_begun && self.cancel.is_none();
        let goes_on = is_free && verdict == Verdict::Transient && self.call.goes_on_at_once();
        if goes_on {
            self.timeline.push_untimed(1);
        }
        goes_on
    }

    pub(crate) fn decide(&mut self, verdict: Verdict) -> Result<Duration, Reason> {
        self.begin();
        if self.is_timed {
            self.failed_at = self.timer.now();
            if let Some(started) = self.attempt_started
                && self.failed_at.since(started) >= self.healthy
            {
                self.forget(started);
            }
        }
        if let Some(pushback) = verdict.pushback() {
            self.pushback = Some(pushback);
        }
        let decision = match self.call.on_failure(self.failed_at, verdict) {
            _ if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) => Err(Reason::Cancelled),
            Decision::Retry(delay) => Ok(delay),
            Decision::GiveUp(reason) => Err(reason),
        };
        if !self.is_timed && decision == Ok(Duration::ZERO) {
            self.timeline.push_untimed(1);
            return decision;
        }
        if !self.is_timed {
            self.failed_at = self.timer.now();
        }
        self.timeline.push(self.attempt_started, self.failed_at);
        decision
    }

    pub(crate) fn give_up<E>(&mut self, reason: Reason, last: Option<E>) -> Error<E> {
        if reason == Reason::Cancelled {
            // Which need not be when the last attempt failed.
            self.failed_at = self.timer.now();
        }
        let elapsed = self.knows_start.then(|| self.elapsed_at_failure());
        let story = Story {
            attempts: self.call.failures(),
            elapsed,
            timed_out: self.timed_out,
            pushback: self.pushback,
            again_in: None,
            timeline: self.timeline,
        };
        Error::new(reason, last, story)
    }

    /// Sleeps and starts the next attempt; false if the call was cancelled.
    #[inline]
    pub(crate) async fn sleep(&mut self, delay: Duration) -> bool {
        if self.begin_at_once(delay) {
            return true;
        }
        let is_over = sleep(&self.timer, delay, self.cancel.as_ref()).await;
        self.begin_attempt(true);
        !is_over
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
    pub(crate) fn sleep_blocking(&mut self, delay: Duration) -> bool {
        let cancel = self.cancel.as_ref();
        if !delay.is_zero() {
            self.timer.sleep_blocking(delay, cancel);
        } else if self.is_timed {
            crate::rt::begin_blocking();
        }
        let is_over = cancel.is_some_and(Cancel::is_cancelled);
        self.begin_attempt(!delay.is_zero());
        !is_over
    }

    /// The next attempt starts now.
    #[inline]
    pub(crate) fn begin_attempt(&mut self, has_waited: bool) {
        self.attempt_started = None;
        if has_waited || self.is_timed {
            self.failed_at = self.timer.now();
            self.attempt_started = Some(self.failed_at);
        }
    }

    /// The time from the beginning of the call to the last failure.
    pub(crate) fn elapsed_at_failure(&self) -> Duration {
        self.call.elapsed(self.failed_at)
    }

    fn forget(&mut self, now: Timestamp) {
        self.call.reset(now);
        self.timeline = Timeline::new(now);
        (self.attempt_started, self.knows_start) = (Some(now), true);
    }
}

/// Sleeps; true if it was cancelled.
pub(crate) async fn sleep<T: Timer>(timer: &T, delay: Duration, cancel: Option<&Cancel>) -> bool {
    let mut sleep = pin!(timer.sleep(delay));
    let mut cancelled = pin!(cancel.map(Cancel::cancelled));
    poll_fn(|cx| {
        if cancelled.as_mut().as_pin_mut().is_some_and(|cancelled| cancelled.poll(cx).is_ready()) {
            return Poll::Ready(true);
        }
        sleep.as_mut().poll(cx).map(|_| false)
    })
    .await
}
