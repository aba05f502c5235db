//! One call in flight for equal requests: what many ask for at a time is asked for once.

use crate::sync::lock;
use std::{
    collections::HashMap,
    fmt,
    future::{Future, poll_fn},
    hash::Hash,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};
use tower_layer::Layer;
use tower_service::Service;

/// A layer that makes one call for all equal requests that are under way: for reads, and keys that many ask for.
///
/// The first to ask makes the call, and the others get a clone of its answer, or share its error. If the first gives up waiting,
/// the next makes the call anew; nobody is left without. A request without a key is a call of its own.
///
/// ```
/// use relent::layer::OneFlightLayer;
/// use std::{io, sync::atomic::{AtomicU32, Ordering}, time::Duration};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// static ASKED: AtomicU32 = AtomicU32::new(0);
/// let accounts = ServiceBuilder::new().layer(OneFlightLayer::new(|id: &u32| Some(*id))).service_fn(async |id: u32| {
///     ASKED.fetch_add(1, Ordering::Relaxed);
///     tokio::time::sleep(Duration::from_millis(10)).await;
///     Ok::<_, io::Error>(id * 100)
/// });
/// let (one, two) = tokio::join!(accounts.clone().oneshot(7), accounts.clone().oneshot(7));
/// assert_eq!((one.unwrap(), two.unwrap(), ASKED.load(Ordering::Relaxed)), (700, 700, 1));
/// # });
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct OneFlightLayer<F> {
    key: F,
}

impl<F> OneFlightLayer<F> {
    /// Requests to which `key` gives the same are equal.
    pub const fn new<Req, K>(key: F) -> OneFlightLayer<F>
    where
        F: Fn(&Req) -> Option<K>,
    {
        OneFlightLayer { key }
    }
}

/// Every service that the layer is put around has flights of its own; clones of a service share them.
impl<S, F: Clone> Layer<S> for OneFlightLayer<F> {
    type Service = OneFlightService<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        OneFlightService { inner, key: self.key.clone(), flights: Arc::default() }
    }
}

/// A service that makes one call for equal requests: what a [`OneFlightLayer`] makes of a service.
#[derive(Clone)]
pub struct OneFlightService<S, F> {
    inner: S,
    key: F,
    /// By the type of keys and answers, which the layer does not know: see [`Flights`].
    flights: Arc<Mutex<Option<Box<dyn std::any::Any + Send>>>>,
}

type Outcome<R, E> = Result<R, Arc<E>>;

/// The calls under way, by their key.
type Flights<K, R, E> = Arc<Mutex<HashMap<K, Arc<Mutex<Flight<R, E>>>>>>;

struct Flight<R, E> {
    outcome: Option<Outcome<R, E>>,
    /// Whether somebody makes the call.
    is_led: bool,
    waiting: Vec<Waker>,
}

/// A caller of a flight, who makes its call or waits for it. If the one who makes it is dropped without an outcome, another
/// takes its place; the last who leaves takes the flight out of the table.
struct Seat<K: Hash + Eq, R, E> {
    key: K,
    flight: Arc<Mutex<Flight<R, E>>>,
    flights: Flights<K, R, E>,
    leads: bool,
    outcome: Option<Outcome<R, E>>,
}

impl<K: Hash + Eq + Clone, R: Clone, E> Seat<K, R, E> {
    fn take(key: K, flights: Flights<K, R, E>) -> Seat<K, R, E> {
        let new = || Arc::new(Mutex::new(Flight { outcome: None, is_led: false, waiting: Vec::new() }));
        let flight = lock(&flights).entry(key.clone()).or_insert_with(new).clone();
        Seat { key, flight, flights, leads: false, outcome: None }
    }

    /// The outcome when it is there, or nothing for whoever has to make the call.
    fn join(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outcome<R, E>>> {
        let waker = cx.waker().clone();
        let mut flight = lock(&self.flight);
        if let Some(outcome) = &flight.outcome {
            return Poll::Ready(Some(outcome.clone()));
        }
        if !flight.is_led {
            (flight.is_led, self.leads) = (true, true);
            return Poll::Ready(None);
        }
        flight.waiting.push(waker);
        Poll::Pending
    }
}

impl<K: Hash + Eq, R, E> Drop for Seat<K, R, E> {
    fn drop(&mut self) {
        let is_over = self.outcome.is_some();
        let mut waiting = Vec::new();
        if self.leads {
            let mut flight = lock(&self.flight);
            (flight.is_led, flight.outcome) = (false, self.outcome.take());
            waiting = std::mem::take(&mut flight.waiting);
        }
        {
            let mut flights = lock(&self.flights);
            // The table's and this one: seats are only taken under this lock.
            let is_last = Arc::strong_count(&self.flight) <= 2;
            let is_listed = flights.get(&self.key).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight));
            if is_listed && (is_over || is_last) {
                flights.remove(&self.key);
            }
        }
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl<S, F, Req, K> Service<Req> for OneFlightService<S, F>
where
    S: Service<Req> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Clone + Send + 'static,
    S::Error: Send + Sync + 'static,
    Req: Send + 'static,
    F: Fn(&Req) -> Option<K>,
    K: Hash + Eq + Clone + Send + 'static,
{
    type Response = S::Response;
    type Error = Arc<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Outcome<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Arc<S::Error>>> {
        self.inner.poll_ready(cx).map_err(Arc::new)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let spare = self.inner.clone();
        let mut service = std::mem::replace(&mut self.inner, spare);
        let Some(key) = (self.key)(&request) else {
            return Box::pin(async move { service.call(request).await.map_err(Arc::new) });
        };
        let flights = self.flights::<K, S::Response, S::Error>();
        Box::pin(async move {
            let mut seat = Seat::take(key, flights);
            if let Some(outcome) = poll_fn(|cx| seat.join(cx)).await {
                return outcome;
            }
            let outcome = service.call(request).await.map_err(Arc::new);
            seat.outcome = Some(outcome.clone());
            outcome
        })
    }
}

impl<S, F> OneFlightService<S, F> {
    /// Types of keys and answers are the service's, so the first call makes the table.
    fn flights<K, R, E>(&self) -> Flights<K, R, E>
    where
        K: Send + 'static,
        R: Send + 'static,
        E: Send + Sync + 'static,
    {
        let mut flights = lock(&self.flights);
        if let Some(made) = flights.as_ref().and_then(|flights| flights.downcast_ref::<Flights<K, R, E>>()) {
            return made.clone();
        }
        let made = Flights::<K, R, E>::default();
        *flights = Some(Box::new(made.clone()));
        made
    }
}

impl<S: fmt::Debug, F> fmt::Debug for OneFlightService<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneFlightService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
