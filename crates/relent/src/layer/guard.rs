//! An upstream around a service, without retries: for who composes layers by themselves.

use super::{RetryLayer, RetryService};
use crate::{
    Breaker, Budget, Limit, Policy, Retrier, SystemTimer, Upstream,
    hooks::{Always, Silent},
    setting::On,
};
use std::{ops::Deref, sync::Arc};
use tower_layer::Layer;

/// An upstream as a layer of its own: breaker, limit and budget are asked before each call and told its outcome, and nothing is
/// retried.
///
/// One machine alone is an upstream that has nothing else: [`breaker`](GuardLayer::breaker), [`limit`](GuardLayer::limit),
/// [`budget`](GuardLayer::budget). Retries and hedges are a [`RetryLayer`](super::RetryLayer), which has the order right
/// by itself: around a `GuardLayer`, it would take a refusal for a failure.
///
/// ```
/// use relent::{Breaker, Reason, layer::GuardLayer};
/// use std::{io, time::Duration};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let mut service = ServiceBuilder::new()
///     .layer(GuardLayer::breaker(Breaker::consecutive(1).open_for(Duration::from_secs(30))))
///     .service_fn(async |_: u32| Err::<(), _>(io::Error::other("down")));
/// assert_eq!(service.ready().await.unwrap().call(1).await.unwrap_err().attempts, 1);
/// assert_eq!(service.ready().await.unwrap().call(1).await.unwrap_err().reason, Reason::Open);
/// # });
/// ```
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct GuardLayer<U = Arc<Upstream>> {
    layer: RetryLayer<Guarded<U>>,
}

/// One attempt on an upstream.
type Guarded<U> = Retrier<Always, Silent, On<U, SystemTimer>>;

impl<U: Deref<Target = Upstream> + Clone> GuardLayer<U> {
    /// All that an upstream has: a reference to a `static`, or an `Arc`.
    pub fn new(upstream: U) -> GuardLayer<U> {
        GuardLayer { layer: Policy::immediate().max_attempts(1).retrier().on(upstream).layer() }
    }
}

impl GuardLayer {
    /// A breaker alone.
    pub fn breaker(breaker: Breaker) -> GuardLayer {
        GuardLayer::new(Arc::new(Upstream::new("").breaker(breaker)))
    }

    /// A limit alone. A rate is waited for, within the policy's `max_pushback` of two minutes; a full concurrency fails at once unless
    /// it has a queue.
    ///
    /// ```
    /// use relent::{Limit, Reason, layer::GuardLayer};
    /// use std::{future::pending, io};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// let silent = service_fn(async |_: u32| pending::<io::Result<()>>().await);
    /// let service = GuardLayer::limit(Limit::concurrency(1)).layer(silent);
    /// let _under_way = tokio::spawn(service.clone().oneshot(1));
    /// tokio::task::yield_now().await;
    /// assert_eq!(service.oneshot(2).await.unwrap_err().reason, Reason::Shed);
    /// # });
    /// ```
    pub fn limit(limit: Limit) -> GuardLayer {
        GuardLayer::new(Arc::new(Upstream::new("").limit(limit)))
    }

    /// A budget alone, of a kind that refuses first attempts: [`Budget::throttle`].
    ///
    /// ```
    /// use relent::{Budget, Reason, layer::GuardLayer};
    /// use std::io;
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// let service = GuardLayer::budget(Budget::throttle(2.0))
    ///     .layer(service_fn(async |_: u32| Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut))));
    /// let mut refused = 0;
    /// for call in 0..100 {
    ///     let err = service.clone().oneshot(call).await.unwrap_err();
    ///     refused += u32::from(err.reason == Reason::Budget);
    /// }
    /// assert!(refused > 50, "the more fails the less is sent: {refused}");
    /// # });
    /// ```
    pub fn budget(budget: Budget) -> GuardLayer {
        GuardLayer::new(Arc::new(Upstream::new("").budget(budget)))
    }
}

impl<U> GuardLayer<U> {
    /// The upstream.
    ///
    /// ```
    /// use relent::{Breaker, BreakerState, layer::GuardLayer};
    ///
    /// let layer = GuardLayer::breaker(Breaker::consecutive(5));
    /// let breaker = layer.upstream().snapshot().breaker.unwrap();
    /// assert_eq!(breaker.state, BreakerState::Closed);
    /// ```
    pub fn upstream(&self) -> &U {
        &self.layer.retrier.hooks.setting.upstream
    }
}

impl<S, U: Clone> Layer<S> for GuardLayer<U> {
    type Service = RetryService<S, Guarded<U>>;

    fn layer(&self, inner: S) -> Self::Service {
        self.layer.layer(inner)
    }
}
