//! What calls of layers ask of services and settings, because they are sent between threads, and what their parts share.

use super::terms::Options;
use crate::{Error, Timer, seal::Seal, setting::Setting};
use std::{fmt, future::Future, pin::Pin};
use tower_service::Service;

pub(super) const SEAL: Seal = Seal(());

/// A service whose calls can be sent between threads, one for each attempt.
pub(super) trait Called<Req>:
    Service<Req, Response: Send + 'static, Error: fmt::Display + Send + 'static, Future: Send + 'static>
    + Clone
    + Send
    + 'static
{
}

impl<S, Req> Called<Req> for S where
    S: Service<Req, Response: Send + 'static, Error: fmt::Display + Send + 'static, Future: Send + 'static>
        + Clone
        + Send
        + 'static
{
}

/// A setting whose calls can be sent between threads.
pub(super) trait Sent:
    Setting<Timer: Timer<Sleep: Send> + Sync, Guard: Send + 'static> + Clone + Send + Sync + 'static
{
}

impl<C> Sent for C where
    C: Setting<Timer: Timer<Sleep: Send> + Sync, Guard: Send + 'static> + Clone + Send + Sync + 'static
{
}

/// The rest of a call: what is only allocated where something is in its way.
pub(super) type Rest<V, E> = Pin<Box<dyn Future<Output = Result<V, Error<E>>> + Send>>;

/// The name under which a call is seen, if anybody looks.
#[inline]
pub(super) fn seen_as(options: &Options) -> Option<&'static str> {
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    return options.observed.filter(|_| crate::observe::is_anybody_there());
    #[cfg(not(any(feature = "metrics", feature = "tracing")))]
    options.observed
}
