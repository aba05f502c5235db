//! What calls run in: on whose clock, until which switch, on which upstream.

use crate::{
    Timer, Upstream, UpstreamCall,
    cancel::Cancel,
    guard::{Guard, Unguarded},
    seal,
};
use core::ops::Deref;

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
