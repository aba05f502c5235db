//! The loop: the primitive that closures, the ticker and the rest are made of.
//!
//! A loop of the user's own needs no closure, so it can borrow and mutate what it likes, and decide what a failure
//! means where it happens.

use crate::{
    Attempt, Call, Decision, Error, NotReady, Outcome, Policy, Reason, Saved, Story, Timeline, Timer, Timestamp,
    Upstream, UpstreamAnswer, UpstreamCall, Verdict,
    cancel::Cancel,
    core::time::nanos,
    error::is_given_up,
    guard::{Guard, Unguarded},
    hooks::Plain,
    rng::draw,
};
use core::{
    borrow::Borrow,
    future::{Future, poll_fn},
    ops::Deref,
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
///
/// It owns its policy or borrows it: [`into_owned`](Retry::into_owned) makes one that can be kept in a struct beside it.
#[derive(Debug)]
#[must_use = "a call that nobody backs off is an attempt like any other"]
pub struct Retry<P = Policy, T = DefaultTimer, G = Unguarded> {
    policy: P,
    timer: T,
    /// What it holds of its upstream.
    guard: G,
    /// Nothing is set up for a first attempt that may succeed.
    state: Option<State>,
}

/// What a call has been through.
#[derive(Debug)]
struct State {
    started: Timestamp,
    /// Whether the clock was read when the call began, or was reset.
    knows_start: bool,
    seed: u64,
    saved: Saved,
    deadline: Timestamp,
    timeline: Timeline,
    /// When the attempt that is under way started, if anybody looked at the clock.
    attempt_started: Option<Timestamp>,
    /// When the last attempt failed, as far as it matters.
    failed_at: Timestamp,
    healthy: Duration,
    pushback: Option<Duration>,
    /// How long the last attempt was given, if it was dropped at its timeout.
    timed_out: Option<Duration>,
    cancel: Option<Cancel>,
    /// Whether it matters what time it is, even where nothing is waited for.
    is_timed: bool,
    /// Whether the call has its seed, and a beginning if nobody needed to know that before.
    has_begun: bool,
    retries_given_up: bool,
    /// When it is worth asking an upstream again that has refused.
    again: Option<Timestamp>,
    /// Draws for the upstream so far.
    draws: u32,
    /// Attempts before something changed, from which on delays count anew: see [`Answer::Changed`](crate::Answer).
    before_change: u32,
}

impl State {
    fn new(began: Option<Timestamp>) -> State {
        let now = began.unwrap_or_default();
        State {
            started: now,
            knows_start: began.is_some(),
            seed: 0,
            saved: Saved::default(),
            deadline: Timestamp::MAX,
            timeline: Timeline::new(now),
            attempt_started: began,
            failed_at: now,
            healthy: Duration::MAX,
            pushback: None,
            timed_out: None,
            cancel: None,
            is_timed: began.is_some(),
            has_begun: false,
            retries_given_up: false,
            again: None,
            draws: 0,
            before_change: 0,
        }
    }

    /// Attempts that have ended.
    const fn made(&self) -> u32 {
        self.before_change.saturating_add(self.saved.failures)
    }

    fn call<'p>(&self, policy: &'p Policy) -> Call<&'p Policy> {
        policy.resume(self.started, self.seed, self.saved).deadline_at(self.deadline)
    }

    fn begin_at(&mut self, now: Timestamp, is_the_start: bool) {
        self.started = now;
        self.timeline.begin(now);
        self.attempt_started = is_the_start.then_some(now);
        self.knows_start = is_the_start;
        self.failed_at = now;
    }

    /// The failures are forgotten, and the jitter is new.
    fn forget(&mut self, now: Timestamp) {
        self.begin_curve_anew();
        self.before_change = 0;
        self.timeline = Timeline::new(now);
        self.begin_at(now, true);
    }

    /// The next delay is the first again, and the jitter is new. No limit is lifted.
    fn begin_curve_anew(&mut self) {
        self.before_change = self.made();
        self.seed = draw(self.seed, u32::MAX);
        self.saved = Saved::default();
    }

    /// Whether there is no more to tell of the call than that one attempt failed.
    fn has_little_to_tell(&self) -> bool {
        self.saved.failures == 1 && !self.has_begun && !self.knows_start && self.pushback.is_none()
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(Cancel::is_cancelled)
    }

    /// Counts an attempt that ended at `failed_at`, and asks the policy.
    fn decide(&mut self, policy: &Policy, verdict: Verdict) -> Decision {
        self.pushback = verdict.pushback().or(self.pushback);
        let mut call = self.call(policy);
        let decision = call.on_failure(self.failed_at, verdict);
        self.saved = call.save();
        self.timeline.catch_up(self.made().saturating_sub(1));
        self.timeline.push(self.attempt_started, self.failed_at);
        match decision {
            // Of attempts before a change the call does not know.
            Decision::Retry(_) if self.made() >= policy.max_attempts && policy.max_attempts != u32::MAX => {
                Decision::GiveUp(Reason::Attempts)
            }
            decision => decision,
        }
    }
}

/// How a wait before an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    InTime,
    /// Not to start an attempt any more, for this reason.
    Not(Reason),
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
    #[inline]
    pub fn start(&self) -> Retry<&Policy> {
        self.start_with(crate::SystemTimer)
    }
}

impl Policy {
    /// [`start`](Policy::start) with a clock and sleeper of the user's own.
    ///
    /// ```
    /// use relent::{Policy, SystemTimer};
    ///
    /// let policy = Policy::immediate();
    /// let mut retry = policy.start_with(SystemTimer);
    /// retry.back_off_blocking("refused").unwrap();
    /// assert_eq!(retry.attempt().number(), 2);
    /// ```
    #[inline]
    pub fn start_with<T: Timer>(&self, timer: T) -> Retry<&Policy, T> {
        let began = if self.is_timed() { Some(timer.now()) } else { None };
        Retry::new(self, timer, began)
    }
}

impl<T, G> Retry<&Policy, T, G> {
    /// The same call with a policy of its own, to be kept where the policy it was started from does not live long
    /// enough.
    ///
    /// ```
    /// use relent::{Policy, Retry};
    ///
    /// struct Connection {
    ///     retry: Retry,
    /// }
    ///
    /// fn open(policy: Policy) -> Connection {
    ///     Connection { retry: policy.start().into_owned() }
    /// }
    /// assert_eq!(open(Policy::default()).retry.attempt().number(), 1);
    /// ```
    pub fn into_owned(self) -> Retry<Policy, T, G> {
        Retry { policy: *self.policy, timer: self.timer, guard: self.guard, state: self.state }
    }
}

impl<P: Borrow<Policy>, T: Timer> Retry<P, T> {
    /// A call that began at `began`, if it matters.
    #[inline]
    pub(crate) fn new(policy: P, timer: T, began: Option<Timestamp>) -> Retry<P, T> {
        Retry::guarded(policy, timer, began, Unguarded)
    }

    /// The same call, on an upstream: before each attempt its breaker and limiter are asked, by [`ready`](Retry::ready) before the
    /// first and by [`back_off`](Retry::back_off) before all others; [`succeed`](Retry::succeed) and `back_off` tell the outcome. Dropped
    /// without either, it counts as neither success nor failure, and everything is given back.
    ///
    /// ```
    /// use relent::{Breaker, Error, Policy, Upstream};
    /// use std::{io, net::TcpStream};
    ///
    /// static DB: Upstream = Upstream::new("db").breaker(Breaker::consecutive(5));
    ///
    /// fn connect(policy: &Policy) -> Result<TcpStream, Error<io::Error>> {
    ///     let mut retry = policy.start().on(&DB);
    ///     loop {
    ///         retry.ready_blocking()?;
    ///         match TcpStream::connect("127.0.0.1:1") {
    ///             Ok(stream) => return Ok(retry.succeed(stream)),
    ///             Err(err) => retry.back_off_blocking(err)?,
    ///         }
    ///     }
    /// }
    /// assert_eq!(connect(&Policy::immediate().max_attempts(3)).unwrap_err().attempts, 3);
    /// assert_eq!(DB.snapshot().attempts, 3);
    /// ```
    pub fn on<U: Deref<Target = Upstream> + Clone>(mut self, upstream: U) -> Retry<P, T, UpstreamCall<U>> {
        self.keep_time();
        let Retry { policy, timer, state, .. } = self;
        Retry { policy, timer, guard: UpstreamCall::new(upstream), state }
    }
}

impl<P, T, U: Deref<Target = Upstream>> Retry<P, T, UpstreamCall<U>> {
    /// Waits for an open breaker instead of failing at once: see [`Retrier::wait_while_open`](crate::Retrier::wait_while_open).
    pub fn wait_while_open(mut self) -> Self {
        self.guard = self.guard.wait_while_open(true);
        self
    }
}

impl<P: Borrow<Policy>, T: Timer, G: Guard> Retry<P, T, G> {
    #[inline]
    pub(crate) fn guarded(policy: P, timer: T, began: Option<Timestamp>, guard: G) -> Retry<P, T, G> {
        let state = match began {
            None if G::GUARDS => {
                let now = timer.now();
                let mut state = State::new(Some(now));
                state.begin_at(now, false);
                Some(state)
            }
            None => None,
            began => Some(State::new(began)),
        };
        Retry { policy, timer, guard, state }
    }

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
        self.guard.upstream(crate::hooks::seal::Seal(()))?.its_hedge().map(|hedge| hedge.start(now))
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
    async fn admit(&mut self) -> Woken {
        let mut answer = self.ask_upstream();
        loop {
            match answer {
                _ if self.state.as_ref().is_some_and(State::is_cancelled) => return Woken::Not(Reason::Cancelled),
                UpstreamAnswer::Go => return self.may_start(),
                UpstreamAnswer::Refused(refused) => return Woken::Not(refused.reason),
                UpstreamAnswer::Wait(wait) => {
                    let cancel = self.state.as_ref().and_then(|state| state.cancel.clone());
                    sleep(&self.timer, wait, cancel.as_ref()).await;
                    answer = self.ask_upstream();
                }
                UpstreamAnswer::Queue(most) => answer = self.queue(most).await,
            }
        }
    }

    /// Stands in the queue until there is an answer, the time is over, or the switch is thrown.
    async fn queue(&mut self, most: Duration) -> UpstreamAnswer {
        let cancel = self.state.as_ref().and_then(|state| state.cancel.clone());
        let mut sleep = pin!(self.timer.sleep(most));
        let mut cancelled = pin!(cancel.as_ref().map(Cancel::cancelled));
        poll_fn(|cx| {
            self.guard.stand_in_line(cx.waker());
            let answer = self.ask_upstream();
            let is_cancelled = cancelled.as_mut().as_pin_mut().is_some_and(|cancelled| cancelled.poll(cx).is_ready());
            if is_cancelled || !matches!(answer, UpstreamAnswer::Queue(_)) {
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
        let mut answer = self.ask_upstream();
        loop {
            let cancel = self.state.as_ref().and_then(|state| state.cancel.clone());
            match answer {
                _ if cancel.as_ref().is_some_and(Cancel::is_cancelled) => return Woken::Not(Reason::Cancelled),
                UpstreamAnswer::Go => return self.may_start(),
                UpstreamAnswer::Refused(refused) => return Woken::Not(refused.reason),
                UpstreamAnswer::Wait(wait) => {
                    self.timer.sleep_blocking(wait, cancel.as_ref());
                    answer = self.ask_upstream();
                }
                UpstreamAnswer::Queue(most) => {
                    crate::rt::wait(async { answer = self.queue(most).await }, cancel.as_ref());
                }
            }
        }
    }

    #[inline]
    fn state(&mut self) -> &mut State {
        self.state.get_or_insert_with(|| State::new(None))
    }

    /// What is left undone for calls that succeed at once.
    #[inline]
    fn begin(&mut self) -> &mut State {
        if !self.state().has_begun {
            self.begin_late();
        }
        self.state()
    }

    #[cold]
    fn begin_late(&mut self) {
        let is_timed = self.state().is_timed;
        let now = if is_timed { None } else { Some(self.timer.now()) };
        let seed = self.timer.seed();
        let state = self.state();
        if let Some(now) = now {
            state.begin_at(now, false);
        }
        state.has_begun = true;
        state.seed = seed;
    }

    /// From now on it matters what time it is.
    fn keep_time(&mut self) {
        let now = self.timer.now();
        let state = self.state();
        if !state.is_timed && !state.has_begun {
            state.begin_at(now, true);
        }
        state.is_timed = true;
    }

    /// The same call, which `cancel` ends: a sleeper wakes at once.
    ///
    /// ```
    /// use relent::{Cancel, Policy, Reason};
    ///
    /// let cancel = Cancel::new();
    /// let policy = Policy::default();
    /// let mut retry = policy.start().cancel(&cancel);
    /// cancel.cancel();
    /// assert_eq!(retry.back_off_blocking("refused").unwrap_err().reason, Reason::Cancelled);
    /// ```
    #[cfg(feature = "std")]
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.state().cancel = Some(cancel.clone());
        self
    }

    /// The same call with a point in time at which its answer is worth nothing any more: no attempt starts at or after
    /// it, and [`attempt`](Retry::attempt) says how much is left.
    ///
    /// ```
    /// use relent::{Policy, Reason};
    /// use std::time::{Duration, Instant};
    ///
    /// let policy = Policy::constant(Duration::from_secs(60)).jitter(relent::Jitter::None);
    /// let mut retry = policy.start().deadline(Instant::now() + Duration::from_secs(1));
    /// assert!(retry.attempt().timeout().unwrap() <= Duration::from_secs(1));
    /// assert_eq!(retry.back_off_blocking("refused").unwrap_err().reason, Reason::Elapsed);
    /// ```
    #[cfg(feature = "std")]
    pub fn deadline(self, at: std::time::Instant) -> Self {
        self.deadline_at(crate::rt::timestamp(at))
    }

    /// [`deadline`](Retry::deadline) on the clock of the timer. [`Timestamp::MAX`] is none.
    ///
    /// ```
    /// use relent::{Jitter, Policy, Reason, SystemTimer, Timer};
    /// use std::time::Duration;
    ///
    /// let soon = SystemTimer.now() + Duration::from_secs(1);
    /// let policy = Policy::constant(Duration::from_secs(60)).jitter(Jitter::None);
    /// let mut retry = policy.start().deadline_at(soon);
    /// assert_eq!(retry.back_off_blocking("refused").unwrap_err().reason, Reason::Elapsed);
    /// ```
    pub fn deadline_at(mut self, at: Timestamp) -> Self {
        if at != Timestamp::MAX {
            self.keep_time();
        }
        self.state().deadline = at;
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
    pub fn reset_after(mut self, healthy: Duration) -> Self {
        self.keep_time();
        self.state().healthy = healthy;
        self
    }

    /// The same call, which also retries what an inner policy gave up on. The attempts of the two multiply.
    ///
    /// ```
    /// use relent::Policy;
    ///
    /// let twice = Policy::immediate().max_attempts(2);
    /// let inner = || twice.retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    /// assert_eq!(twice.start().back_off_blocking(inner()).unwrap_err().attempts, 1, "it has been retried");
    /// assert!(twice.start().retry_given_up().back_off_blocking(inner()).is_ok());
    /// ```
    pub fn retry_given_up(mut self) -> Self {
        self.state().retries_given_up = true;
        self
    }

    /// The attempt that is under way.
    ///
    /// ```
    /// let policy = relent::Policy::immediate();
    /// let mut retry = policy.start();
    /// assert!(!retry.attempt().is_retry());
    /// retry.back_off_blocking("refused").unwrap();
    /// assert_eq!(retry.attempt().number(), 2);
    /// ```
    #[inline]
    pub fn attempt(&self) -> Attempt {
        match &self.state {
            None => Attempt::new(1, None),
            Some(state) => self.attempt_of(state),
        }
    }

    fn attempt_of(&self, state: &State) -> Attempt {
        let call = state.call(self.policy.borrow());
        let now = state.attempt_started.unwrap_or(state.failed_at);
        Attempt::new(state.made().saturating_add(1), if state.is_timed { call.attempt_limit(now) } else { None })
    }

    /// The attempt that is under way, without an attempt timeout if it is the last.
    pub(crate) fn unhurried(&self) -> Attempt {
        let attempt = self.attempt();
        match &self.state {
            Some(state) if attempt.number() == self.policy.borrow().max_attempts => {
                let now = state.attempt_started.unwrap_or(state.failed_at);
                Attempt::new(attempt.number(), state.call(self.policy.borrow()).time_left(now))
            }
            _ => attempt,
        }
    }

    /// The time since the call began, or since it was reset. `None` where the clock was not read then, because no limit
    /// of time made it necessary.
    ///
    /// ```
    /// use relent::Policy;
    /// use std::time::Duration;
    ///
    /// let policy = Policy::immediate();
    /// assert_eq!(policy.start().elapsed(), None);
    /// let policy = policy.max_elapsed(Duration::from_secs(1));
    /// assert!(policy.start().elapsed().is_some());
    /// ```
    pub fn elapsed(&self) -> Option<Duration> {
        let state = self.state.as_ref().filter(|state| state.knows_start)?;
        Some(self.timer.now().since(state.started))
    }

    /// Forgets the failures: the next one is the first again, and limits of time count from now.
    ///
    /// ```
    /// let policy = relent::Policy::immediate();
    /// let mut retry = policy.start();
    /// retry.back_off_blocking("refused").unwrap();
    /// retry.reset();
    /// assert_eq!(retry.attempt().number(), 1);
    /// ```
    pub fn reset(&mut self) {
        self.begin();
        let now = self.timer.now();
        self.state().forget(now);
    }

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
            state.forget(started);
        }
        match state.decide(self.policy.borrow(), verdict) {
            _ if state.is_cancelled() => Err(Reason::Cancelled),
            Decision::Retry(_) if stop.is_some() => Err(stop.unwrap_or(Reason::Permanent)),
            Decision::Retry(delay) if self.pay(outcome) => Ok(delay),
            Decision::Retry(_) => Err(Reason::Budget),
            Decision::GiveUp(reason) => Err(reason),
        }
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

    #[inline]
    fn tell_upstream(&mut self, outcome: Outcome) {
        if G::GUARDS {
            let draw = self.draw();
            let now = self.state().failed_at;
            self.guard.outcome(now, outcome, draw);
        }
    }

    /// Whether the budget pays for the retry that was decided.
    #[inline]
    fn pay(&mut self, outcome: Outcome) -> bool {
        // What comes after a success is a call of its own.
        if !G::GUARDS || outcome == Outcome::Success {
            return true;
        }
        let draw = self.draw();
        let now = self.state().failed_at;
        self.guard.pay(now, outcome, draw)
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

    /// The time from the beginning of the call to the last failure, where that is known.
    pub(crate) fn elapsed_at_failure(&self) -> Duration {
        self.state.as_ref().map_or(Duration::ZERO, |state| state.failed_at.since(state.started))
    }
}

/// Sleeps, or until the switch is thrown.
async fn sleep<T: Timer>(timer: &T, delay: Duration, cancel: Option<&Cancel>) {
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
