//! What a program adds to a policy: what failures mean, who is told, and on whose clock, until which switch, on which
//! upstream.

use crate::{
    Event, Failure, Reason, Timer, Timestamp, Upstream, UpstreamCall, Verdict,
    cancel::Cancel,
    guard::{Guard, Unguarded},
    seal,
};
use core::ops::Deref;

/// What a failure means. Implemented by functions from `&E` to a [`Verdict`] or `bool`, and by [`Always`]; by nothing
/// else.
///
/// ```
/// use relent::{Judge, Policy, Retrier};
/// use std::num::ParseIntError;
///
/// /// Reads a number, and leaves it to the caller to say what is worth another attempt.
/// fn attempts<W: Judge<ParseIntError>>(retrier: Retrier<W>) -> u32 {
///     retrier.retry_blocking(|_| "x".parse::<u8>()).unwrap_err().attempts
/// }
///
/// let policy = Policy::immediate().max_attempts(3);
/// assert_eq!(attempts(policy.when(|_: &ParseIntError| true)), 3);
/// assert_eq!(attempts(policy.when(|_: &ParseIntError| false)), 1);
/// ```
///
/// What it asks is named by nobody outside, so that it may ask more one day:
///
/// ```compile_fail,E0603
/// use relent::{Judge, Verdict, seal::Seal};
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what a `{E}` means",
    label = "the operation fails with `{E}`",
    note = "`when` takes a function from `&{E}` to a `Verdict`, or to a `bool`: may it be retried?"
)]
pub trait Judge<E>: Heeds<E, ()> {
    /// Whether it is what judges where nobody said what failures mean.
    #[doc(hidden)]
    const IS_DEFAULT: bool = false;

    #[doc(hidden)]
    fn judge(&mut self, error: &E, _: seal::Seal) -> Verdict;

    /// Why what failed must not be made again, whatever the failure means: with this error, or at its timeout.
    #[doc(hidden)]
    fn stop(&mut self, _error: Option<&E>, _: seal::Seal) -> Option<Reason> {
        None
    }
}

impl<E, V: Into<Verdict>, W: FnMut(&E) -> V> Judge<E> for W {
    #[inline]
    fn judge(&mut self, error: &E, _: seal::Seal) -> Verdict {
        self(error).into()
    }
}

/// Every error is transient, but one that an inner policy gave up on. What judges unless [`when`](crate::Retrier::when)
/// says otherwise.
///
/// ```
/// use relent::{Always, Policy, Retrier, Silent, SystemTimer};
///
/// /// The type of what nothing was added to.
/// const PLAIN: Retrier<Always, Silent, SystemTimer> = Policy::immediate().retrier();
/// assert_eq!(PLAIN.retry_blocking(|_| Ok::<_, ()>(1)).unwrap(), 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Always;

impl<E> Judge<E> for Always {
    const IS_DEFAULT: bool = true;

    #[inline]
    fn judge(&mut self, _: &E, _: seal::Seal) -> Verdict {
        Verdict::Transient
    }
}

/// That no verdict is passed over. A [`Failure`] carries one, so it is not for [`Always`] to judge, which takes
/// everything as transient: such a call does not compile. Pass [`Failure::verdict`] to [`when`](crate::Retrier::when):
///
/// ```
/// use relent::{Failure, Policy};
///
/// let err = Policy::immediate()
///     .when(Failure::verdict)
///     .retry_blocking(|_| Err::<(), _>(Failure::permanent("gone")))
///     .unwrap_err();
/// assert_eq!(err.attempts, 1);
/// ```
///
/// ```compile_fail,E0283
/// # use relent::{Failure, Policy};
/// let err = Policy::immediate().retry_blocking(|_| Err::<(), _>(Failure::permanent("gone"))).unwrap_err();
/// ```
///
/// ```compile_fail,E0283
/// # use relent::{Failure, Policy};
/// let err = Policy::immediate().start().back_off_blocking(Failure::permanent("gone")).unwrap_err();
/// ```
pub trait Heeds<E, M> {}

impl<E, V: Into<Verdict>, W: FnMut(&E) -> V> Heeds<E, ()> for W {}

impl<E: Plain<M>, M> Heeds<E, M> for Always {}

/// An error that carries no verdict: every type but [`Failure`], of which the compiler cannot tell which of two
/// implementations is meant. It names both: one is [`PassFailureVerdictToWhen`].
///
/// ```
/// use relent::Plain;
///
/// /// Takes every error but a `Failure`, whose verdict it would pass over.
/// fn fail<E: Plain<M>, M>(error: E) -> E {
///     error
/// }
/// assert_eq!(fail("reset"), "reset");
/// ```
pub trait Plain<M> {}

impl<E> Plain<()> for E {}

impl<E> Plain<PassFailureVerdictToWhen> for Failure<E> {}

/// What to do where the compiler speaks of this type: `.when(Failure::verdict)` before `retry`, and
/// `back_off_as(failure.error, failure.verdict)` in a loop.
///
/// ```
/// use relent::{Failure, Policy};
///
/// let err = Policy::immediate()
///     .when(Failure::verdict)
///     .retry_blocking(|_| Err::<(), _>(Failure::permanent("gone")))
///     .unwrap_err();
/// assert_eq!(err.attempts, 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub enum PassFailureVerdictToWhen {}

/// Who is told of retries. Implemented by functions of an [`Event`], and by [`Silent`]; by nothing else.
///
/// ```
/// use relent::{Always, Policy, Retrier, Watch};
///
/// /// Runs under whatever watcher the caller has.
/// fn attempts<N: Watch<&'static str>>(retrier: Retrier<Always, N>) -> u32 {
///     retrier.retry_blocking(|_| Err::<(), _>("down")).unwrap_err().attempts
/// }
///
/// let mut told = 0;
/// let policy = Policy::immediate().max_attempts(3);
/// assert_eq!(attempts(policy.notify(|_: &relent::Event<'_, &str>| told += 1)), 3);
/// assert_eq!(told, 2, "of each retry");
/// ```
///
/// ```compile_fail,E0046
/// struct Mine;
/// impl relent::Watch<u8> for Mine {} // What is missing cannot be written.
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be told of the failures of an operation that fails with `{E}`",
    note = "`notify` takes a function of `&Event<'_, {E}>`"
)]
pub trait Watch<E> {
    /// Whether somebody watches. If nobody does, the clock is not read before the first failure.
    #[doc(hidden)]
    const WATCHES: bool = true;

    #[doc(hidden)]
    fn watch(&mut self, event: &Event<'_, E>, _: seal::Seal);
}

impl<E, N: FnMut(&Event<'_, E>)> Watch<E> for N {
    #[inline]
    fn watch(&mut self, event: &Event<'_, E>, _: seal::Seal) {
        self(event);
    }
}

/// Nobody is told.
///
/// ```
/// use relent::{Always, Policy, Retrier, Silent};
///
/// fn attempts(quiet: Retrier<Always, Silent>) -> u32 {
///     quiet.retry_blocking(|_| Err::<(), _>("down")).unwrap_err().attempts
/// }
/// assert_eq!(attempts(Policy::immediate().max_attempts(2).retrier()), 2);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl<E> Watch<E> for Silent {
    const WATCHES: bool = false;

    #[inline]
    fn watch(&mut self, _: &Event<'_, E>, _: seal::Seal) {}
}

/// What calls run in: a [`Timer`], alone, with a switch ([`Until`]), on an upstream ([`On`]). Implemented by these; by
/// nothing else. What is absent costs nothing.
///
/// ```
/// use relent::{Always, Policy, Retrier, Setting, Silent, SystemTimer, Upstream};
///
/// /// Takes a retrier on any clock, with or without a switch or an upstream.
/// fn ping<S: Setting>(retrier: Retrier<Always, Silent, S>) -> bool {
///     retrier.retry_blocking(|_| Ok::<_, ()>(true)).unwrap_or(false)
/// }
///
/// static BANK: Upstream = Upstream::new("bank");
/// assert!(ping(Policy::immediate().retrier()));
/// assert!(ping(Policy::immediate().on(&BANK)));
/// ```
pub trait Setting: Sized {
    #[doc(hidden)]
    type Timer: Timer;

    #[doc(hidden)]
    type With<T: Timer>: Setting<Timer = T>;

    #[doc(hidden)]
    type Switched: Setting<Timer = Self::Timer>;

    #[doc(hidden)]
    type Alone: Setting<Timer = Self::Timer>;

    #[doc(hidden)]
    type Guard: Guard;

    #[doc(hidden)]
    fn timer(&self, _: seal::Seal) -> &Self::Timer;

    #[doc(hidden)]
    fn switch(&self, _: seal::Seal) -> Option<&Cancel>;

    #[doc(hidden)]
    fn with<T: Timer>(self, timer: T, _: seal::Seal) -> Self::With<T>;

    #[doc(hidden)]
    fn switched(self, cancel: Cancel, _: seal::Seal) -> Self::Switched;

    #[doc(hidden)]
    fn alone(self, _: seal::Seal) -> Self::Alone;

    #[doc(hidden)]
    fn guard(&self, _: seal::Seal) -> Self::Guard;

    #[doc(hidden)]
    fn is_hedged(&self, _: seal::Seal) -> bool {
        false
    }

    /// For one call that is not safe to run twice at a time.
    #[doc(hidden)]
    fn unhedge(&mut self, _: seal::Seal) {}
}

impl<S: Timer> Setting for S {
    type Timer = S;
    type With<T: Timer> = T;
    type Switched = Until<S>;
    type Alone = S;
    type Guard = Unguarded;

    #[inline]
    fn timer(&self, _: seal::Seal) -> &S {
        self
    }

    #[inline]
    fn switch(&self, _: seal::Seal) -> Option<&Cancel> {
        None
    }

    fn with<T: Timer>(self, timer: T, _: seal::Seal) -> T {
        timer
    }

    fn switched(self, cancel: Cancel, _: seal::Seal) -> Until<S> {
        Until { timer: self, cancel }
    }

    fn alone(self, _: seal::Seal) -> S {
        self
    }

    #[inline]
    fn guard(&self, _: seal::Seal) -> Unguarded {
        Unguarded
    }
}

/// A timer, until a switch is thrown: what [`cancel`](crate::Retrier::cancel) makes of a timer.
///
/// ```
/// use relent::{Always, Cancel, Policy, Reason, Retrier, Silent, SystemTimer, Until};
///
/// struct Worker {
///     retrier: Retrier<Always, Silent, Until<SystemTimer>>,
/// }
///
/// let cancel = Cancel::new();
/// let worker = Worker { retrier: Policy::default().cancel(&cancel) };
/// cancel.cancel();
/// let err = worker.retrier.retry_blocking(|_| Ok::<_, ()>(1)).unwrap_err();
/// assert_eq!(err.reason, Reason::Cancelled);
/// ```
#[derive(Clone, Debug)]
pub struct Until<T> {
    pub(crate) timer: T,
    pub(crate) cancel: Cancel,
}

impl<S: Timer> Setting for Until<S> {
    type Timer = S;
    type With<T: Timer> = Until<T>;
    type Switched = Until<S>;
    type Alone = Until<S>;
    type Guard = Unguarded;

    fn timer(&self, _: seal::Seal) -> &S {
        &self.timer
    }

    fn switch(&self, _: seal::Seal) -> Option<&Cancel> {
        Some(&self.cancel)
    }

    fn with<T: Timer>(self, timer: T, _: seal::Seal) -> Until<T> {
        Until { timer, cancel: self.cancel }
    }

    fn switched(self, cancel: Cancel, _: seal::Seal) -> Until<S> {
        Until { timer: self.timer, cancel }
    }

    fn alone(self, _: seal::Seal) -> Until<S> {
        self
    }

    fn guard(&self, _: seal::Seal) -> Unguarded {
        Unguarded
    }
}

/// What calls run in, on an upstream: what [`on`](crate::Retrier::on) makes of it.
///
/// ```
/// use relent::{Always, On, Policy, Retrier, Silent, SystemTimer, Upstream};
/// use std::sync::Arc;
///
/// struct Client {
///     retrier: Retrier<Always, Silent, On<Arc<Upstream>, SystemTimer>>,
/// }
///
/// let bank = Arc::new(Upstream::new("bank"));
/// let client = Client { retrier: Policy::immediate().on(bank.clone()) };
/// assert_eq!(client.retrier.retry_blocking(|_| Ok::<_, ()>(1)).unwrap(), 1);
/// assert_eq!(bank.snapshot().attempts, 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct On<U, S> {
    pub(crate) upstream: U,
    pub(crate) inner: S,
    pub(crate) waits_while_open: bool,
    pub(crate) is_hedged: bool,
}

impl<U, S> On<U, S> {
    pub(crate) const fn new(upstream: U, inner: S) -> On<U, S> {
        On { upstream, inner, waits_while_open: false, is_hedged: false }
    }

    fn map<S2>(self, map: impl FnOnce(S) -> S2) -> On<U, S2> {
        let On { upstream, inner, waits_while_open, is_hedged } = self;
        On { upstream, inner: map(inner), waits_while_open, is_hedged }
    }
}

impl<U: Deref<Target = Upstream> + Clone, S: Setting> Setting for On<U, S> {
    type Timer = S::Timer;
    type With<T: Timer> = On<U, S::With<T>>;
    type Switched = On<U, S::Switched>;
    type Alone = S::Alone;
    type Guard = UpstreamCall<U>;

    #[inline]
    fn timer(&self, seal: seal::Seal) -> &S::Timer {
        self.inner.timer(seal)
    }

    #[inline]
    fn switch(&self, seal: seal::Seal) -> Option<&Cancel> {
        self.inner.switch(seal)
    }

    fn with<T: Timer>(self, timer: T, seal: seal::Seal) -> On<U, S::With<T>> {
        self.map(|inner| inner.with(timer, seal))
    }

    fn switched(self, cancel: Cancel, seal: seal::Seal) -> On<U, S::Switched> {
        self.map(|inner| inner.switched(cancel, seal))
    }

    fn alone(self, seal: seal::Seal) -> S::Alone {
        self.inner.alone(seal)
    }

    #[inline]
    fn guard(&self, _: seal::Seal) -> UpstreamCall<U> {
        UpstreamCall::new(self.upstream.clone()).wait_while_open(self.waits_while_open)
    }

    fn is_hedged(&self, _: seal::Seal) -> bool {
        self.is_hedged
    }

    fn unhedge(&mut self, _: seal::Seal) {
        self.is_hedged = false;
    }
}

/// Everything that a program adds to a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hooks<W, N, S> {
    pub(crate) when: W,
    pub(crate) notify: N,
    pub(crate) setting: S,
    pub(crate) deadline: Timestamp,
    pub(crate) retries_given_up: bool,
    /// Whether the last attempt has no attempt timeout: nothing would come after it.
    pub(crate) spares_last: bool,
}

impl<W, N, S> Hooks<W, N, S> {
    /// The same with other functions or another setting.
    pub(crate) fn map<W2, N2, S2>(self, map: impl FnOnce(W, N, S) -> (W2, N2, S2)) -> Hooks<W2, N2, S2> {
        let Hooks { when, notify, setting, deadline, retries_given_up, spares_last } = self;
        let (when, notify, setting) = map(when, notify, setting);
        Hooks { when, notify, setting, deadline, retries_given_up, spares_last }
    }
}

impl<T> Hooks<Always, Silent, T> {
    pub(crate) const fn none(timer: T) -> Self {
        Hooks {
            when: Always,
            notify: Silent,
            setting: timer,
            deadline: Timestamp::MAX,
            retries_given_up: false,
            spares_last: false,
        }
    }
}
