//! The loop: the primitive that closures, the ticker and the rest are made of.
//!
//! A loop of the user's own needs no closure, so it can borrow and mutate what it likes, and decide what a failure
//! means where it happens.

mod admission;
mod failing;
mod state;
mod waiting;

pub(crate) use self::waiting::Woken;

use self::state::State;
#[cfg(feature = "std")]
use crate::cancel::Cancel;
use crate::{
    Attempt, Policy, Timer, Timestamp, Upstream, UpstreamCall,
    guard::{Guard, Unguarded},
};
use core::{borrow::Borrow, ops::Deref, time::Duration};

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
    ///
    /// ```
    /// # use relent::{Breaker, Policy, Upstream};
    /// # use std::time::Duration;
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(1).open_for(Duration::from_millis(5)));
    /// let _ = Policy::immediate().max_attempts(1).on(&bank).retry_blocking(|_| Err::<(), _>("down"));
    /// let policy = Policy::immediate();
    /// let mut retry = policy.start().on(&bank).wait_while_open();
    /// retry.ready_blocking()?; // After the five milliseconds, instead of failing at once.
    /// assert_eq!(retry.succeed("up"), "up");
    /// # Ok::<(), relent::NotReady>(())
    /// ```
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
            // Retries without a delay have not begun anything, and it has begun before them.
            let is_the_start = state.made() == 0;
            state.begin_at(now, is_the_start);
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
    /// worked that long is a new trouble, and limits of time count from then. Without, only [`reset`](Retry::reset) forgets, and a connection that is
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
}
