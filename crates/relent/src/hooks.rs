//! What a program adds to a policy: what failures mean and who is told; where it runs is `setting.rs`.

use crate::{Event, Failure, Reason, Timestamp, Verdict, seal};

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
