//! What stands between a call and its upstream, if it has one. What is absent costs nothing.

use crate::{Outcome, Timestamp, Upstream, UpstreamAnswer, UpstreamCall, seal::Seal};
use core::{ops::Deref, task::Waker, time::Duration};

/// What a call holds of an upstream: an [`UpstreamCall`], or nothing ([`Unguarded`]). Implemented by these; by nothing
/// else.
///
/// ```
/// use relent::{Error, Guard, Policy, Retry, Timer, Upstream};
///
/// /// Works for a loop on an upstream and for one on none.
/// fn twice<T: Timer, G: Guard>(mut retry: Retry<Policy, T, G>) -> Result<u32, Error<&'static str>> {
///     retry.ready_blocking()?;
///     retry.back_off_blocking("not yet")?;
///     let attempt = retry.attempt().number();
///     Ok(retry.succeed(attempt))
/// }
///
/// let policy = Policy::immediate();
/// assert_eq!(twice(policy.start().into_owned()).unwrap(), 2);
/// static BANK: Upstream = Upstream::new("bank");
/// assert_eq!(twice(policy.start().into_owned().on(&BANK)).unwrap(), 2);
/// ```
pub trait Guard: Sized {
    #[doc(hidden)]
    const GUARDS: bool;

    #[doc(hidden)]
    fn upstream(&self, _: Seal) -> Option<&Upstream>;

    #[doc(hidden)]
    fn go_at_once(&mut self, now: Timestamp) -> bool;

    #[doc(hidden)]
    fn ask(&mut self, now: Timestamp, draw: u64, within: Duration) -> UpstreamAnswer;

    #[doc(hidden)]
    fn waiting_since(&self) -> Option<Timestamp>;

    #[doc(hidden)]
    fn is_under_way(&self) -> bool;

    #[doc(hidden)]
    fn outcome(&mut self, now: Timestamp, outcome: Outcome, draw: u64);

    #[doc(hidden)]
    fn pay(&mut self, now: Timestamp, failure: Outcome, draw: u64) -> bool;

    #[doc(hidden)]
    fn give_back(&mut self);

    #[doc(hidden)]
    fn renew(&mut self);

    #[doc(hidden)]
    fn stand_in_line(&mut self, waker: &Waker);

    #[doc(hidden)]
    #[must_use]
    fn hedge(&self) -> Self;

    #[doc(hidden)]
    #[must_use]
    fn split_off(&mut self) -> Self;
}

/// A call on no upstream.
///
/// ```
/// use relent::{Policy, Retry, SystemTimer, Unguarded};
///
/// /// A loop that is kept in a struct, and acts on no upstream.
/// struct Connection {
///     retry: Retry<Policy, SystemTimer, Unguarded>,
/// }
///
/// let connection = Connection { retry: Policy::default().start().into_owned() };
/// assert_eq!(connection.retry.attempt().number(), 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Unguarded;

impl Guard for Unguarded {
    const GUARDS: bool = false;

    fn upstream(&self, _: Seal) -> Option<&Upstream> {
        None
    }

    #[inline]
    fn go_at_once(&mut self, _: Timestamp) -> bool {
        true
    }

    fn ask(&mut self, _: Timestamp, _: u64, _: Duration) -> UpstreamAnswer {
        UpstreamAnswer::Go
    }

    fn waiting_since(&self) -> Option<Timestamp> {
        None
    }

    fn is_under_way(&self) -> bool {
        true
    }

    #[inline]
    fn outcome(&mut self, _: Timestamp, _: Outcome, _: u64) {}

    fn pay(&mut self, _: Timestamp, _: Outcome, _: u64) -> bool {
        true
    }

    #[inline]
    fn give_back(&mut self) {}

    #[inline]
    fn renew(&mut self) {}

    fn stand_in_line(&mut self, _: &Waker) {}

    fn hedge(&self) -> Unguarded {
        Unguarded
    }

    fn split_off(&mut self) -> Unguarded {
        Unguarded
    }
}

impl<H: Deref<Target = Upstream> + Clone> Guard for UpstreamCall<H> {
    const GUARDS: bool = true;

    #[inline]
    fn upstream(&self, _: Seal) -> Option<&Upstream> {
        Some(UpstreamCall::upstream(self))
    }

    #[inline]
    fn go_at_once(&mut self, now: Timestamp) -> bool {
        UpstreamCall::go_at_once(self, now)
    }

    fn ask(&mut self, now: Timestamp, draw: u64, within: Duration) -> UpstreamAnswer {
        UpstreamCall::ask(self, now, draw, within)
    }

    fn waiting_since(&self) -> Option<Timestamp> {
        UpstreamCall::waiting_since(self)
    }

    fn is_under_way(&self) -> bool {
        UpstreamCall::is_under_way(self)
    }

    #[inline]
    fn outcome(&mut self, now: Timestamp, outcome: Outcome, draw: u64) {
        UpstreamCall::outcome(self, now, outcome, draw);
    }

    fn pay(&mut self, now: Timestamp, failure: Outcome, draw: u64) -> bool {
        UpstreamCall::pay(self, now, failure, draw)
    }

    fn give_back(&mut self) {
        UpstreamCall::give_back(self);
    }

    fn renew(&mut self) {
        UpstreamCall::renew(self);
    }

    fn stand_in_line(&mut self, waker: &Waker) {
        UpstreamCall::stand_in_line(self, waker);
    }

    fn hedge(&self) -> UpstreamCall<H> {
        UpstreamCall::hedge(self)
    }

    fn split_off(&mut self) -> UpstreamCall<H> {
        UpstreamCall::split_off(self)
    }
}
