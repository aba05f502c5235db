//! Closures on the loop: an operation is handed over and called until it succeeds or the policy gives up.

use crate::{
    Attempt, Error, Event, Policy, Timer, Timestamp, Upstream, Verdict,
    hooks::{Always, Heeds, Hooks, Judge, Silent, Watch},
    retry::DefaultTimer,
    run,
    seal::Seal,
    setting::{On, Setting},
};
#[cfg(feature = "std")]
use crate::{Cancel, SystemTimer, hooks::Plain, setting::Until};
use core::{future::Future, ops::Deref};

/// A policy with what a program adds to it: what failures mean ([`when`](Retrier::when)), who is told
/// ([`notify`](Retrier::notify)), what ends it from outside ([`cancel`](Retrier::cancel)), whose clock it runs on
/// ([`timer`](Retrier::timer)). Made by the methods of the same names on [`Policy`].
///
/// A call takes it whole, so that its future can be spawned and its hooks may be `FnMut`. It is `Copy` where its hooks
/// are, so that one in a struct serves many calls: functions are, and closures that capture references. With a switch it
/// is `Clone`.
///
/// ```
/// use relent::Policy;
/// use std::{io, time::Duration};
///
/// const READ: Policy = Policy::exponential(Duration::from_millis(1)).max_attempts(5);
///
/// let mut told = 0;
/// let err = READ
///     .when(|err: &io::Error| err.kind() == io::ErrorKind::TimedOut)
///     .notify(|_| told += 1)
///     .retry_blocking(|attempt| match attempt.number() {
///         1 => Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)),
///         _ => Err(io::Error::from(io::ErrorKind::NotFound)),
///     })
///     .unwrap_err();
/// assert_eq!((err.attempts, told), (2, 1));
/// ```
///
/// Kept and used many times, and spawned:
///
/// ```
/// use relent::{Policy, Retrier, Verdict};
///
/// struct Client {
///     retrier: Retrier<fn(&String) -> Verdict>,
/// }
///
/// impl Client {
///     async fn get(&self) -> Result<u32, relent::Error<String>> {
///         self.retrier.retry(async |_| Ok(1)).await
///     }
/// }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let client = Client { retrier: Policy::default().when(|_| Verdict::Transient) };
/// assert_eq!(client.get().await.unwrap() + client.get().await.unwrap(), 2);
/// let task = tokio::spawn(Policy::default().when(|_: &String| false).retry(async |_| Ok(3)));
/// assert_eq!(task.await.unwrap().unwrap(), 3);
/// # });
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a retrier does nothing until it is given an operation"]
pub struct Retrier<W = Always, N = Silent, S = DefaultTimer> {
    pub(crate) policy: Policy,
    pub(crate) hooks: Hooks<W, N, S>,
}

#[cfg(feature = "std")]
impl Policy {
    /// Calls `op` until it succeeds or the policy gives up. Every error is taken as transient; see [`Policy::when`].
    ///
    /// The operation is called after the delay, never before, and is told which attempt it is. The future owns the
    /// policy, so it can be kept and spawned.
    ///
    /// # Where a closure cannot borrow what it needs
    ///
    /// The operation is called again while nothing of it is known to be over, so what its future borrows mutably, or
    /// from the closure itself, the compiler may refuse: E0373 (`may outlive the current function`), E0521 (`borrowed
    /// data escapes`), `captured variable cannot escape FnMut closure body`. An `async |_| ...` closure, rather than
    /// `|_| async { ... }`, is allowed most of it. The loop is allowed all, for it is code in place, and does the same:
    ///
    /// ```
    /// # struct Connection { sent: u32 }
    /// # impl Connection {
    /// #     async fn send(&mut self) -> Result<u32, &'static str> {
    /// #         self.sent += 1;
    /// #         if self.sent < 3 { Err("busy") } else { Ok(self.sent) }
    /// #     }
    /// # }
    /// use relent::{Error, Policy};
    ///
    /// async fn send(policy: &Policy, connection: &mut Connection) -> Result<u32, Error<&'static str>> {
    ///     let mut retry = policy.start();
    ///     loop {
    ///         match connection.send().await {
    ///             Ok(sent) => return Ok(sent),
    ///             Err(err) => retry.back_off(err).await?,
    ///         }
    ///     }
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// assert_eq!(send(&Policy::immediate(), &mut Connection { sent: 0 }).await.unwrap(), 3);
    /// # });
    /// ```
    ///
    /// The loop does not drop an attempt at its timeout: [`Attempt::timeout`] says what is left for it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the call: the attempt under way is dropped, or the rest of the delay not waited for.
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
    #[inline]
    pub fn retry<V, E, F, Fut, M>(self, op: F) -> impl Future<Output = Result<V, Error<E>>>
    where
        E: Plain<M>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<V, E>>,
    {
        run::retry(self, Hooks::none(SystemTimer), op)
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
    pub fn retry_blocking<V, E, F, M>(&self, op: F) -> Result<V, Error<E>>
    where
        E: Plain<M>,
        F: FnMut(Attempt) -> Result<V, E>,
    {
        run::retry_blocking(self, &mut Hooks::none(SystemTimer), op)
    }

    /// This policy as a [`Retrier`], for options of the program's own.
    ///
    /// ```
    /// let retrier = relent::Policy::immediate().retrier().retry_given_up();
    /// assert_eq!(*retrier.policy(), relent::Policy::immediate());
    /// ```
    pub const fn retrier(self) -> Retrier {
        Retrier { policy: self, hooks: Hooks::none(SystemTimer) }
    }

    /// Says what a failure means: see [`Retrier::when`].
    ///
    /// ```
    /// let policy = relent::Policy::default();
    /// let err = policy.when(|err: &&str| *err != "gone").retry_blocking(|_| Err::<(), _>("gone")).unwrap_err();
    /// assert_eq!(err.attempts, 1);
    /// ```
    pub fn when<E, V: Into<Verdict>, W: FnMut(&E) -> V>(self, when: W) -> Retrier<W> {
        self.retrier().when(when)
    }

    /// Tells about each retry before its delay: see [`Retrier::notify`].
    ///
    /// ```
    /// let policy = relent::Policy::immediate().max_attempts(3);
    /// let mut told = vec![];
    /// let _ = policy.notify(|event| told.push(event.attempt.number())).retry_blocking(|_| Err::<(), _>("down"));
    /// assert_eq!(told, [1, 2]);
    /// ```
    pub fn notify<E, N: FnMut(&Event<'_, E>)>(self, notify: N) -> Retrier<Always, N> {
        self.retrier().notify(notify)
    }

    /// Lets a switch end the call: see [`Retrier::cancel`].
    ///
    /// ```
    /// use relent::{Cancel, Policy, Reason};
    ///
    /// let cancel = Cancel::new();
    /// cancel.cancel();
    /// let err = Policy::default().cancel(&cancel).retry_blocking(|_| Ok::<(), ()>(())).unwrap_err();
    /// assert_eq!((err.reason, err.attempts), (Reason::Cancelled, 0), "a switch that is thrown lets nothing start");
    /// ```
    pub fn cancel(self, cancel: &Cancel) -> Retrier<Always, Silent, Until<SystemTimer>> {
        self.retrier().cancel(cancel)
    }

    /// Ends the call at a point in time: see [`Retrier::deadline`].
    ///
    /// ```
    /// use relent::{Policy, Reason};
    /// use std::time::Instant;
    ///
    /// let err = Policy::default().deadline(Instant::now()).retry_blocking(|_| Ok::<(), ()>(())).unwrap_err();
    /// assert_eq!((err.reason, err.attempts), (Reason::Elapsed, 0));
    /// ```
    pub fn deadline(self, at: std::time::Instant) -> Retrier {
        self.retrier().deadline(at)
    }

    /// [`deadline`](Policy::deadline) on the clock of the timer: see [`Retrier::deadline_at`].
    ///
    /// ```
    /// use relent::{Policy, SystemTimer, Timer};
    /// use std::time::Duration;
    ///
    /// let retrier = Policy::default().deadline_at(SystemTimer.now() + Duration::from_secs(10));
    /// assert_eq!(retrier.retry_blocking(|_| Ok::<_, ()>(1)).unwrap(), 1);
    /// ```
    pub fn deadline_at(self, at: Timestamp) -> Retrier {
        self.retrier().deadline_at(at)
    }
}

impl<W, N, U, S> Retrier<W, N, On<U, S>> {
    /// Says that the operation is safe to run twice at a time: where its upstream has a [hedge](crate::Hedge), a second attempt
    /// starts before the first has failed. The first success wins and the others are dropped; a transient failure of one
    /// starts the next at once, a permanent one ends all. Each is paid from the budget, and counts as an attempt. For async
    /// operations; a thread runs one at a time.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// use relent::{Budget, Hedge, Policy, Upstream};
    /// use std::time::Duration;
    ///
    /// let search = Upstream::new("search").hedge(Hedge::after(Duration::from_millis(50))).budget(Budget::ratio(0.1));
    /// let answer = Policy::default().on(&search).hedged().retry(async |attempt| {
    ///     let takes = if attempt.number() == 1 { 10_000 } else { 20 };
    ///     tokio::time::sleep(Duration::from_millis(takes)).await;
    ///     Ok::<_, &str>(attempt.number())
    /// });
    /// let begin = tokio::time::Instant::now();
    /// assert_eq!(answer.await.unwrap(), 2);
    /// assert_eq!(begin.elapsed(), Duration::from_millis(70));
    /// # });
    /// ```
    pub fn hedged(mut self) -> Self {
        self.hooks.setting.is_hedged = true;
        self
    }

    /// Waits for an open breaker until it lets probes through, and a spread more, instead of failing at once; within
    /// `max_elapsed`, the deadline or timeout, and `max_pushback`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// use relent::{Breaker, Policy, Upstream};
    /// use std::time::Duration;
    ///
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(1).open_for(Duration::from_secs(30)));
    /// let patient = Policy::immediate().on(&bank).wait_while_open();
    /// let value = patient.retry(async |attempt| if attempt.is_retry() { Ok(1) } else { Err("down") }).await;
    /// assert_eq!(value.unwrap(), 1);
    /// # });
    /// ```
    pub fn wait_while_open(mut self) -> Self {
        self.hooks.setting.waits_while_open = true;
        self
    }
}

#[cfg(feature = "std")]
impl Policy {
    /// Makes all calls on an upstream: see [`Retrier::on`].
    ///
    /// ```
    /// use relent::{Limit, Policy, Upstream};
    ///
    /// static GATEWAY: Upstream = Upstream::new("gateway").limit(Limit::rate(100).burst(10));
    /// assert_eq!(Policy::default().on(&GATEWAY).retry_blocking(|_| Ok::<_, ()>(1)).unwrap(), 1);
    /// ```
    pub fn on<U: Deref<Target = Upstream> + Clone>(self, upstream: U) -> Retrier<Always, Silent, On<U, SystemTimer>> {
        self.retrier().on(upstream)
    }
}

impl Policy {
    /// Runs on a clock and sleeper of the program's own: see [`Timer`].
    ///
    /// ```
    /// use relent::{Policy, SystemTimer};
    ///
    /// let value = Policy::default().timer(SystemTimer).retry_blocking(|_| Ok::<_, ()>(1));
    /// assert_eq!(value.unwrap(), 1);
    /// ```
    pub fn timer<T: Timer>(self, timer: T) -> Retrier<Always, Silent, T> {
        Retrier { policy: self, hooks: Hooks::none(timer) }
    }
}

impl<W, N, S: Setting> Retrier<W, N, S> {
    /// Says what a failure means, by a function from the error to a [`Verdict`], or to a `bool`: may it be retried?
    /// An attempt that was dropped at its timeout is transient, and the function is not asked. Nor is it asked about what
    /// is the [`Error`] of another policy: that is permanent, unless [`retry_given_up`](Retrier::retry_given_up) says
    /// otherwise.
    ///
    /// ```
    /// use relent::{Policy, Verdict};
    ///
    /// let retrier = Policy::default().retrier().when(|_: &&str| Verdict::Overloaded);
    /// assert_eq!(retrier.retry_blocking(|_| Err::<(), _>("busy")).unwrap_err().reason, relent::Reason::Overloaded);
    /// ```
    pub fn when<E, V: Into<Verdict>, W2: FnMut(&E) -> V>(self, when: W2) -> Retrier<W2, N, S> {
        Retrier { policy: self.policy, hooks: self.hooks.map(|_, notify, setting| (when, notify, setting)) }
    }

    /// Calls `notify` before each delay, with the real delay to come. Not called for the failure that ends the call,
    /// which is in the [`Error`].
    ///
    /// ```
    /// use relent::{Event, Policy};
    ///
    /// let retrier = Policy::immediate().max_attempts(2).retrier().notify(|event: &Event<'_, &str>| eprintln!("{event}"));
    /// assert_eq!(retrier.retry_blocking(|_| Err::<(), _>("down")).unwrap_err().attempts, 2);
    /// ```
    pub fn notify<E, N2: FnMut(&Event<'_, E>)>(self, notify: N2) -> Retrier<W, N2, S> {
        Retrier { policy: self.policy, hooks: self.hooks.map(|when, _, setting| (when, notify, setting)) }
    }

    fn set<S2>(self, set: impl FnOnce(S) -> S2) -> Retrier<W, N, S2> {
        Retrier { policy: self.policy, hooks: self.hooks.map(|when, notify, setting| (when, notify, set(setting))) }
    }

    /// Runs on a clock and sleeper of the program's own.
    ///
    /// ```
    /// use relent::{Policy, SystemTimer};
    ///
    /// let value = Policy::default().when(|_: &()| true).timer(SystemTimer).retry_blocking(|_| Ok(1));
    /// assert_eq!(value.unwrap(), 1);
    /// ```
    pub fn timer<T: Timer>(self, timer: T) -> Retrier<W, N, S::With<T>> {
        self.set(|setting| setting.with(timer, Seal(())))
    }

    /// Makes all calls on an upstream: before every attempt its breaker and limiter are asked, after every failure that the
    /// policy would retry its budget. The handle is a reference to a `static` or to any other [`Upstream`], or an `Arc` of
    /// one. Another upstream takes the place of this one.
    ///
    /// Reasons `open` and `shed` end a call before an attempt: the first (`attempts` is 0) or a later one. So does `budget`
    /// after one. [`again_in`](crate::Story::again_in) says when it is worth asking again.
    ///
    /// ```
    /// use relent::{Budget, Policy, Reason, Upstream};
    ///
    /// let bank = Upstream::new("bank").budget(Budget::ratio(0.1).min_per_second(1));
    /// let policy = Policy::immediate().max_attempts(5);
    /// let mut attempts = 0;
    /// for _ in 0..100 {
    ///     let _ = policy.on(&bank).retry_blocking(|_| { attempts += 1; Err::<(), _>("down") });
    /// }
    /// assert!(attempts <= 100 + 10 + 10, "a tenth more, and one a second for ten seconds");
    /// let err = policy.on(&bank).retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    /// assert_eq!((err.reason, err.last), (Reason::Budget, Some("down")));
    /// ```
    pub fn on<U: Deref<Target = Upstream> + Clone>(self, upstream: U) -> Retrier<W, N, On<U, S::Alone>> {
        self.set(|setting| On::new(upstream, setting.alone(Seal(()))))
    }

    /// Lets a switch end the call: a sleeper wakes at once, an async attempt is dropped, a blocking one ends by itself. A
    /// switch that is thrown already lets nothing start.
    ///
    /// ```
    /// use relent::{Cancel, Policy, Reason};
    ///
    /// let cancel = Cancel::new();
    /// let retrier = Policy::default().retrier().cancel(&cancel);
    /// let err = retrier.retry_blocking(|_| { cancel.cancel(); Err::<(), _>("down") }).unwrap_err();
    /// assert_eq!((err.reason, err.attempts), (Reason::Cancelled, 1));
    /// ```
    #[cfg(feature = "std")]
    pub fn cancel(self, cancel: &Cancel) -> Retrier<W, N, S::Switched> {
        self.set(|setting| setting.switched(cancel.clone(), Seal(())))
    }

    /// A point in time at which the answer is worth nothing any more: no attempt starts at or after it, an async
    /// attempt is dropped at it, a blocking one is told what is left.
    ///
    /// ```
    /// use relent::{Policy, Reason};
    /// use std::time::{Duration, Instant};
    ///
    /// let soon = Instant::now() + Duration::from_secs(1);
    /// let policy = Policy::constant(Duration::from_secs(5)).jitter(relent::Jitter::None);
    /// let err = policy.retrier().deadline(soon).retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
    /// assert_eq!((err.reason, err.attempts), (Reason::Elapsed, 1));
    /// ```
    #[cfg(feature = "std")]
    pub fn deadline(self, at: std::time::Instant) -> Self {
        self.deadline_at(crate::rt::timestamp(at))
    }

    /// [`deadline`](Retrier::deadline) on the clock of the [`timer`](Retrier::timer). [`Timestamp::MAX`] is none.
    ///
    /// ```
    /// use relent::{Policy, Timestamp};
    ///
    /// let retrier = Policy::default().retrier().deadline_at(Timestamp::MAX);
    /// assert_eq!(retrier.retry_blocking(|_| Ok::<_, ()>(1)).unwrap(), 1);
    /// ```
    pub fn deadline_at(mut self, at: Timestamp) -> Self {
        self.hooks.deadline = at;
        self
    }

    /// Also retries what an inner policy gave up on. The attempts of the two multiply, which is why it is not done
    /// unasked.
    ///
    /// ```
    /// use relent::Policy;
    ///
    /// let twice = Policy::immediate().max_attempts(2);
    /// let mut attempts = 0;
    /// let _ = twice.retrier().retry_given_up().retry_blocking(|_| {
    ///     twice.retry_blocking(|_| { attempts += 1; Err::<(), _>("down") })
    /// });
    /// assert_eq!(attempts, 4);
    /// ```
    pub fn retry_given_up(mut self) -> Self {
        self.hooks.retries_given_up = true;
        self
    }

    /// The policy.
    ///
    /// ```
    /// # use relent::Policy;
    /// assert_eq!(*Policy::immediate().retrier().policy(), Policy::immediate());
    /// ```
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn into_parts(self) -> (Policy, Hooks<W, N, S>) {
        (self.policy, self.hooks)
    }

    /// Calls `op` until it succeeds or the policy gives up. The future owns the retrier, so it can be kept and spawned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the call: the attempt under way is dropped, or the rest of the delay not waited for.
    ///
    /// # Errors
    ///
    /// [`Error`] with the reason and the last error.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let retrier = relent::Policy::immediate().when(|_: &&str| true);
    /// let value = retrier.retry(async |attempt| if attempt.is_retry() { Ok(1) } else { Err("not yet") }).await;
    /// assert_eq!(value.unwrap(), 1);
    /// # });
    /// ```
    #[inline]
    pub fn retry<V, E, F, Fut, M>(self, op: F) -> impl Future<Output = Result<V, Error<E>>>
    where
        W: Judge<E> + Heeds<E, M>,
        N: Watch<E>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<V, E>>,
    {
        run::retry(self.policy, self.hooks, op)
    }

    /// [`retry`](Retrier::retry) on a thread. An attempt timeout is told to the operation, which has to keep it.
    ///
    /// # Errors
    ///
    /// [`Error`] with the reason and the last error.
    ///
    /// ```
    /// let retrier = relent::Policy::immediate().when(|_: &&str| true);
    /// let value = retrier.retry_blocking(|attempt| if attempt.is_retry() { Ok(1) } else { Err("not yet") });
    /// assert_eq!(value.unwrap(), 1);
    /// ```
    #[cfg(feature = "std")]
    #[inline]
    pub fn retry_blocking<V, E, F, M>(mut self, op: F) -> Result<V, Error<E>>
    where
        W: Judge<E> + Heeds<E, M>,
        N: Watch<E>,
        F: FnMut(Attempt) -> Result<V, E>,
    {
        run::retry_blocking(&self.policy, &mut self.hooks, op)
    }
}
