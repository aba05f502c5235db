//! What a program adds to a policy: what failures mean, who is told, and on whose clock, until which switch.

use crate::{Event, Failure, Timer, Timestamp, Verdict, cancel::Cancel};

/// What a failure means. Implemented by functions from `&E` to a [`Verdict`] or `bool`, and by [`Always`]; by nothing
/// else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what a `{E}` means",
    label = "the operation fails with `{E}`",
    note = "`when` takes a function from `&{E}` to a `Verdict`, or to a `bool`: may it be retried?"
)]
pub trait Judge<E>: Heeds<E, ()> {
    #[doc(hidden)]
    fn judge(&mut self, error: &E, _: seal::Seal) -> Verdict;
}

impl<E, V: Into<Verdict>, W: FnMut(&E) -> V> Judge<E> for W {
    #[inline]
    fn judge(&mut self, error: &E, _: seal::Seal) -> Verdict {
        self(error).into()
    }
}

/// Every error is transient, but one that an inner policy gave up on. What judges unless [`when`](crate::Retrier::when)
/// says otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct Always;

impl<E> Judge<E> for Always {
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
pub trait Plain<M> {}

impl<E> Plain<()> for E {}

impl<E> Plain<PassFailureVerdictToWhen> for Failure<E> {}

/// What to do where the compiler speaks of this type: `.when(Failure::verdict)` before `retry`, and
/// `back_off_as(failure.error, failure.verdict)` in a loop.
#[derive(Clone, Copy, Debug)]
pub enum PassFailureVerdictToWhen {}

/// Who is told of retries. Implemented by functions of an [`Event`], and by [`Silent`]; by nothing else.
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl<E> Watch<E> for Silent {
    const WATCHES: bool = false;

    #[inline]
    fn watch(&mut self, _: &Event<'_, E>, _: seal::Seal) {}
}

/// What calls run in: a [`Timer`], alone or with a switch ([`Until`]). Implemented by these; by nothing else. What is
/// absent costs nothing.
pub trait Setting {
    #[doc(hidden)]
    type Timer: Timer;

    #[doc(hidden)]
    type With<T: Timer>: Setting<Timer = T>;

    #[doc(hidden)]
    fn timer(&self, _: seal::Seal) -> &Self::Timer;

    #[doc(hidden)]
    fn switch(&self, _: seal::Seal) -> Option<&Cancel>;

    #[doc(hidden)]
    fn with<T: Timer>(self, timer: T, _: seal::Seal) -> Self::With<T>;

    #[doc(hidden)]
    fn into_timer(self, _: seal::Seal) -> Self::Timer;
}

impl<S: Timer> Setting for S {
    type Timer = S;
    type With<T: Timer> = T;

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

    fn into_timer(self, _: seal::Seal) -> S {
        self
    }
}

/// A timer, until a switch is thrown: what [`cancel`](crate::Retrier::cancel) makes of a timer.
#[derive(Clone, Debug)]
pub struct Until<T> {
    pub(crate) timer: T,
    pub(crate) cancel: Cancel,
}

impl<S: Timer> Setting for Until<S> {
    type Timer = S;
    type With<T: Timer> = Until<T>;

    fn timer(&self, _: seal::Seal) -> &S {
        &self.timer
    }

    fn switch(&self, _: seal::Seal) -> Option<&Cancel> {
        Some(&self.cancel)
    }

    fn with<T: Timer>(self, timer: T, _: seal::Seal) -> Until<T> {
        Until { timer, cancel: self.cancel }
    }

    fn into_timer(self, _: seal::Seal) -> S {
        self.timer
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
}

impl<T> Hooks<Always, Silent, T> {
    pub(crate) const fn none(timer: T) -> Self {
        Hooks { when: Always, notify: Silent, setting: timer, deadline: Timestamp::MAX, retries_given_up: false }
    }
}

pub(crate) mod seal {
    /// Cannot be made outside of this crate, so that what is called with it cannot be either.
    #[derive(Clone, Copy, Debug)]
    pub struct Seal(pub(crate) ());
}
