//! What is answered instead of a failure: what was answered before.

use moka::sync::Cache;
use std::{
    fmt,
    future::Future,
    hash::Hash,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_layer::Layer;
use tower_service::Service;

/// A layer that remembers answers, and answers with the last one where a call fails. Feature `moka`.
///
/// How many are remembered and for how long is the cache's to say, so that nothing is older than the program can bear. Every call
/// is made, and only a failure is answered from the cache; a call without a key is neither remembered nor answered so.
///
/// ```
/// use moka::sync::Cache;
/// use relent::layer::StaleLayer;
/// use std::{io, sync::atomic::{AtomicBool, Ordering}, time::Duration};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// static DOWN: AtomicBool = AtomicBool::new(false);
/// let cache = Cache::builder().max_capacity(1_000).time_to_live(Duration::from_secs(600)).build();
/// let mut rates = ServiceBuilder::new()
///     .layer(StaleLayer::new(cache, |currency: &&'static str| Some(*currency)))
///     .service_fn(async |_: &'static str| if DOWN.load(Ordering::Relaxed) { Err(io::Error::other("down")) } else { Ok(1.1) });
///
/// assert_eq!(rates.ready().await.unwrap().call("EUR").await.unwrap(), 1.1);
/// DOWN.store(true, Ordering::Relaxed);
/// assert_eq!(rates.ready().await.unwrap().call("EUR").await.unwrap(), 1.1);
/// assert!(rates.ready().await.unwrap().call("USD").await.is_err());
/// # });
/// ```
///
/// For HTTP a 503 is an answer, and who gets an old one should know:
///
/// ```
/// use moka::sync::Cache;
/// use relent::layer::StaleLayer;
/// use tower::{Layer, Service, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let layer = StaleLayer::new(Cache::new(100), |_: &u16| Some("rates"))
///     .failures(|(status, _): &(u16, bool)| *status >= 500)
///     .mark(|(_, is_old)| *is_old = true);
/// // A service that answers with the status that it is asked for, and says that the answer is new.
/// let mut service = layer.layer(service_fn(async |status: u16| Ok::<_, std::io::Error>((status, false))));
/// assert_eq!(service.ready().await.unwrap().call(200).await.unwrap(), (200, false));
/// assert_eq!(service.ready().await.unwrap().call(503).await.unwrap(), (200, true));
/// # });
/// ```
#[must_use = "a layer does nothing until it is put around a service"]
pub struct StaleLayer<K, R, F> {
    memory: Memory<K, R>,
    key: F,
}

struct Memory<K, R> {
    cache: Cache<K, R>,
    /// Whether an answer is a failure.
    is_failure: fn(&R) -> bool,
    /// Says in an answer that it is an old one.
    mark: fn(&mut R),
}

impl<K, R> Clone for Memory<K, R> {
    fn clone(&self) -> Self {
        Memory { cache: self.cache.clone(), ..*self }
    }
}

impl<K, R, F> StaleLayer<K, R, F>
where
    K: Hash + Eq + Send + Sync + 'static,
    R: Clone + Send + Sync + 'static,
{
    /// Remembers answers in `cache` under the keys that `key` gives requests.
    pub fn new<Req>(cache: Cache<K, R>, key: F) -> StaleLayer<K, R, F>
    where
        F: Fn(&Req) -> Option<K>,
    {
        StaleLayer { memory: Memory { cache, is_failure: |_| false, mark: |_| () }, key }
    }

    /// Which answers are failures too: for HTTP, where a 503 is an answer.
    pub fn failures(mut self, is_failure: fn(&R) -> bool) -> Self {
        self.memory.is_failure = is_failure;
        self
    }

    /// Marks answers that were remembered, for whoever must know: for HTTP, by a header.
    pub fn mark(mut self, mark: fn(&mut R)) -> Self {
        self.memory.mark = mark;
        self
    }
}

impl<K, R, F: Clone> Clone for StaleLayer<K, R, F> {
    fn clone(&self) -> Self {
        StaleLayer { memory: self.memory.clone(), key: self.key.clone() }
    }
}

impl<S, K, R, F: Clone> Layer<S> for StaleLayer<K, R, F> {
    type Service = StaleService<S, StaleLayer<K, R, F>>;

    fn layer(&self, inner: S) -> Self::Service {
        StaleService { inner, layer: self.clone() }
    }
}

/// A service that has its last answers: what a [`StaleLayer`] makes of a service.
#[derive(Clone)]
pub struct StaleService<S, L> {
    inner: S,
    layer: L,
}

impl<S, K, R, F, Req> Service<Req> for StaleService<S, StaleLayer<K, R, F>>
where
    S: Service<Req, Response = R>,
    K: Hash + Eq + Send + Sync + 'static,
    R: Clone + Send + Sync + 'static,
    F: Fn(&Req) -> Option<K>,
{
    type Response = R;
    type Error = S::Error;
    type Future = StaleFuture<S::Future, K, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let memory = (self.layer.key)(&request).map(|key| (key, self.layer.memory.clone()));
        StaleFuture { call: self.inner.call(request), memory }
    }
}

pin_project_lite::pin_project! {
    /// A call of a [`StaleService`].
    #[must_use = "futures do nothing unless polled"]
    pub struct StaleFuture<T, K, R> {
        #[pin]
        call: T,
        memory: Option<(K, Memory<K, R>)>,
    }
}

impl<T, K, R, E> Future for StaleFuture<T, K, R>
where
    T: Future<Output = Result<R, E>>,
    K: Hash + Eq + Send + Sync + 'static,
    R: Clone + Send + Sync + 'static,
{
    type Output = Result<R, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<R, E>> {
        let this = self.project();
        let outcome = ready!(this.call.poll(cx));
        let Some((key, memory)) = this.memory.take() else { return Poll::Ready(outcome) };
        Poll::Ready(match outcome {
            Ok(answer) if !(memory.is_failure)(&answer) => {
                memory.cache.insert(key, answer.clone());
                Ok(answer)
            }
            failure => match memory.cache.get(&key) {
                Some(mut old) => {
                    (memory.mark)(&mut old);
                    Ok(old)
                }
                None => failure,
            },
        })
    }
}

impl<K, R, F> fmt::Debug for StaleLayer<K, R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaleLayer").finish_non_exhaustive()
    }
}

impl<S: fmt::Debug, L> fmt::Debug for StaleService<S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaleService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<T, K, R> fmt::Debug for StaleFuture<T, K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaleFuture").finish_non_exhaustive()
    }
}
