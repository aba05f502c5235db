//! The layer that retries, and its options.

use super::{
    Head, Repeat, Terms,
    call::{Runs, State},
    tally::Tally,
    terms::Route,
};
use crate::{Error, Policy, Retrier, seal::Seal, wire::Rules};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tower_layer::Layer;
use tower_service::Service;

impl Policy {
    /// This policy as a layer: see [`Retrier::layer`].
    ///
    /// ```
    /// use relent::Policy;
    /// use std::{io, time::Duration};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// const READ: Policy = Policy::exponential(Duration::from_millis(100)).max_attempts(2);
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// let service = READ.layer().layer(service_fn(async |_: u32| Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut))));
    /// assert_eq!(service.oneshot(7).await.unwrap_err().attempts, 2);
    /// # });
    /// ```
    pub fn layer(self) -> RetryLayer<Retrier> {
        self.retrier().layer()
    }
}

impl<W, N, S> Retrier<W, N, S> {
    /// This retrier as a tower layer: every call of the service it is put around is made as [`retry`](Retrier::retry) would,
    /// on the same upstream. Requests are repeated as [`Repeat`](crate::layer::Repeat) says; see [`layer`](crate::layer) for HTTP.
    ///
    /// Of the service it is put around, every request may be the first of many: what it holds is cloned for each call, and no
    /// clone is called before it is ready.
    ///
    /// A first attempt that nothing hinders, and that succeeds, allocates nothing.
    ///
    /// ```
    /// use relent::{Policy, Reason, Upstream};
    /// use std::{io, time::Duration};
    /// use tower::{Service, ServiceBuilder, ServiceExt};
    ///
    /// static BANK: Upstream = Upstream::new("bank");
    /// const READ: Policy = Policy::constant(Duration::from_millis(1)).max_attempts(3);
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let mut service = ServiceBuilder::new()
    ///     .layer(READ.on(&BANK).when(|err: &io::Error| err.kind() != io::ErrorKind::NotFound).layer())
    ///     .service_fn(async |request: u32| if request == 7 { Ok(1) } else { Err(io::Error::other("down")) });
    /// assert_eq!(service.ready().await?.call(7).await?, 1);
    ///
    /// let err = service.ready().await?.call(8).await.unwrap_err();
    /// assert_eq!((err.reason, err.attempts), (Reason::Attempts, 3));
    /// # Ok::<(), relent::Error<io::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn layer(mut self) -> RetryLayer<Retrier<W, N, S>> {
        self.hooks.spares_last = true;
        let mut terms = Terms::default();
        if self.hooks.retries_given_up {
            terms.change().retries_given_up = true;
        }
        RetryLayer { retrier: self, terms }
    }
}

/// A layer that retries: what [`Retrier::layer`] makes.
///
/// Its options are about HTTP, but for [`body_limit`](RetryLayer::body_limit) and
/// [`time_last_attempt`](RetryLayer::time_last_attempt).
///
/// ```
/// use http::{Request, Response};
/// use relent::{Policy, layer::RetryLayer};
/// use std::time::Duration;
/// use tower::{Layer, ServiceExt, service_fn};
///
/// const SECOND: Duration = Duration::from_secs(1);
/// const READ: Policy = Policy::constant(SECOND).max_attempts(3);
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// let layer: RetryLayer = READ.layer().path("/pay", READ.max_attempts(1)).histogram().record();
/// let busy = service_fn(async |request: Request<String>| {
///     // The histogram, for the server.
///     assert!(request.headers().contains_key("relent-attempts"));
///     Ok::<_, std::io::Error>(Response::builder().status(503).body(String::new()).unwrap())
/// });
/// for (path, record) in [("/rates", "attempts=3; reason=attempts"), ("/pay/7", "attempts=1; reason=attempts")] {
///     let answer = layer.layer(busy).oneshot(Request::get(path).body(String::new()).unwrap()).await.unwrap();
///     assert_eq!((answer.status().as_u16(), &answer.headers()["relent"]), (503, &record.parse().unwrap()));
/// }
/// # });
/// ```
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct RetryLayer<T = Retrier> {
    pub(crate) retrier: T,
    pub(crate) terms: Terms,
}

impl<W, N, S> RetryLayer<Retrier<W, N, S>> {
    /// Gives the last attempt the policy's attempt timeout too. Otherwise it has what is left until the deadline, because
    /// nothing comes after it: an answer that is late is better than none.
    ///
    /// ```
    /// use relent::{Policy, Reason};
    /// use std::{future::pending, io, time::Duration};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// const READ: Policy = Policy::immediate().max_attempts(2).attempt_timeout(Duration::from_secs(1));
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// let silent = service_fn(async |_: u32| pending::<io::Result<()>>().await);
    /// let begin = tokio::time::Instant::now();
    /// let err = READ.layer().time_last_attempt().layer(silent).oneshot(7).await.unwrap_err();
    /// assert_eq!((err.reason, begin.elapsed().as_secs()), (Reason::Attempts, 2));
    /// # });
    /// ```
    pub fn time_last_attempt(mut self) -> Self {
        self.retrier.hooks.spares_last = false;
        self
    }
}

impl<T> RetryLayer<T> {
    fn with(mut self, change: impl FnOnce(&mut super::terms::Options)) -> Self {
        change(self.terms.change());
        self
    }

    #[cfg(any(feature = "metrics", feature = "tracing"))]
    pub(crate) fn observed(self, name: &'static str) -> Self {
        self.with(|options| options.observed = Some(name))
    }

    /// What statuses mean, before everything else: see [`Rules`].
    ///
    /// ```
    /// use http::StatusCode;
    /// use relent::{Policy, wire::Rules};
    ///
    /// let layer = Policy::default().layer().rules(Rules::default().retry_on(StatusCode::CONFLICT));
    /// # let _ = layer;
    /// ```
    pub fn rules(self, rules: Rules) -> Self {
        self.with(|options| options.rules = rules)
    }

    /// Requests larger than so many bytes are sent once: where they would be sent again, the call ends with reason
    /// [`TooLarge`](crate::Reason::TooLarge). 1 MiB unless said.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use relent::{Policy, Reason};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// let down = service_fn(async |_: Request<String>| {
    ///     Err::<Response<String>, _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    /// });
    /// let request = Request::put("/notes/7").body("longer than that".to_owned()).unwrap();
    /// let err = Policy::default().layer().body_limit(8).layer(down).oneshot(request).await.unwrap_err();
    /// assert_eq!((err.reason, err.attempts), (Reason::TooLarge, 1));
    /// # });
    /// ```
    pub fn body_limit(self, bytes: u64) -> Self {
        self.with(|options| options.body_limit = bytes)
    }

    /// Sends every request again, whatever its method, though it may have been carried out: for servers that know repeats by
    /// themselves.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use relent::Policy;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// static CAME: AtomicU32 = AtomicU32::new(0);
    /// let busy = service_fn(async |_: Request<String>| {
    ///     CAME.fetch_add(1, Ordering::Relaxed);
    ///     Ok::<_, std::io::Error>(Response::builder().status(503).body(String::new()).unwrap())
    /// });
    /// let layer = Policy::default().max_attempts(3).layer();
    /// let order = || Request::post("/orders").body("one".to_owned()).unwrap();
    /// layer.clone().layer(busy).oneshot(order()).await.unwrap();
    /// assert_eq!(CAME.swap(0, Ordering::Relaxed), 1);
    /// layer.repeat_unsafe().layer(busy).oneshot(order()).await.unwrap();
    /// assert_eq!(CAME.load(Ordering::Relaxed), 3);
    /// # });
    /// ```
    pub fn repeat_unsafe(self) -> Self {
        self.with(|options| options.repeats_unsafe = true)
    }

    /// Gives each request whose method is not idempotent an `Idempotency-Key`, the same for all attempts of its call, unless it
    /// has one. So it is sent again like one that is idempotent: only for servers that heed the key.
    ///
    /// ```
    /// use relent::Policy;
    ///
    /// let layer = Policy::default().layer().idempotency_keys();
    /// # let _ = layer;
    /// ```
    pub fn idempotency_keys(self) -> Self {
        self.with(|options| options.has_keys = true)
    }

    /// Tells servers how many attempts of each number this layer made in the last minute, in `Relent-Attempts`: servers under a
    /// storm know by it what share of their load is retries.
    pub fn histogram(self) -> Self {
        self.with(|options| options.tally = Some(Arc::new(Tally::default())))
    }

    /// Writes what became of a call into the headers of its answer: `relent: attempts=2; reason=budget`.
    pub fn record(self) -> Self {
        self.with(|options| options.records = true)
    }

    /// Another policy for requests whose method is not safe, which is every method but `GET`, `HEAD`, `OPTIONS` and `TRACE`. Of
    /// this rule and those of [`path`](RetryLayer::path) and [`choose`](RetryLayer::choose), the first that has a request counts.
    ///
    /// ```
    /// use relent::Policy;
    /// use std::time::Duration;
    ///
    /// const SECOND: Duration = Duration::from_secs(1);
    /// const READ: Policy = Policy::exponential(SECOND).max_attempts(5);
    /// const WRITE: Policy = Policy::exponential(SECOND).max_attempts(2);
    /// let layer = READ.layer().path("/reports", Policy::constant(SECOND).max_attempts(3)).writes(WRITE);
    /// # let _ = layer;
    /// ```
    pub fn writes(self, policy: Policy) -> Self {
        self.with(|options| options.routes.push(Route::Writes(policy)))
    }

    /// Another policy for requests to a path and everything under it: `/pay` has `/pay` and `/pay/7`, but not `/payments`.
    pub fn path(self, path: impl Into<String>, policy: Policy) -> Self {
        let path = path.into();
        self.with(|options| options.routes.push(Route::Path(path, policy)))
    }

    /// Another policy for requests that `rule` gives one.
    ///
    /// ```
    /// use relent::Policy;
    ///
    /// let patient = Policy::default().max_attempts(20);
    /// let layer = Policy::default().layer().choose(move |head| head.headers.contains_key("x-batch").then_some(patient));
    /// # let _ = layer;
    /// ```
    pub fn choose(self, rule: impl Fn(&Head<'_>) -> Option<Policy> + Send + Sync + 'static) -> Self {
        self.with(|options| options.routes.push(Route::Rule(Arc::new(rule))))
    }

    /// Looks at a service's errors as a type of the program's own, or of another library, and at what they were made of. What is
    /// known unasked: the errors of `std::io`, of hyper, h2 and reqwest (with the features of their names), and boxed ones.
    ///
    /// ```
    /// use relent::Policy;
    ///
    /// # type TransportError = std::io::Error;
    /// let layer = Policy::default().layer().errors::<TransportError>();
    /// # let _ = layer;
    /// ```
    pub fn errors<E: std::error::Error + 'static>(self) -> Self {
        self.with(|options| options.sources.push(|error| error.downcast_ref::<E>().map(|error| error as _)))
    }

    /// Says that the client inside follows no redirects. Then it is known of a `POST` that could not connect that it never left,
    /// and it may be sent again; a client that follows redirects may have been redirected to where it cannot connect, after
    /// the `POST` was carried out.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use relent::Policy;
    /// use std::io;
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// let nobody_there = service_fn(async |_: Request<String>| {
    ///     Err::<Response<String>, _>(io::Error::from(io::ErrorKind::ConnectionRefused))
    /// });
    /// let layer = Policy::default().max_attempts(3).layer().without_redirects();
    /// let order = Request::post("/orders").body("one".to_owned()).unwrap();
    /// assert_eq!(layer.layer(nobody_there).oneshot(order).await.unwrap_err().attempts, 3);
    /// # });
    /// ```
    pub fn without_redirects(self) -> Self {
        self.with(|options| options.follows_redirects = false)
    }
}

impl<S, T: Clone> Layer<S> for RetryLayer<T> {
    type Service = RetryService<S, T>;

    fn layer(&self, inner: S) -> RetryService<S, T> {
        RetryService { inner, retrier: self.retrier.clone(), terms: self.terms.clone() }
    }
}

/// A service whose calls are retried: what a [`RetryLayer`] makes of a service.
///
/// Its error is relent's, with the reason and the inner service's last error. An answer that is a failure is no error: the last
/// one is handed over as it came.
///
/// ```
/// use relent::{Policy, layer::RetryService};
/// use tower::Layer;
///
/// struct Client {
///     user: &'static str,
/// }
///
/// let mut service: RetryService<Client> = Policy::default().layer().layer(Client { user: "ann" });
/// assert_eq!(service.get_ref().user, "ann");
/// service.get_mut().user = "bob";
/// assert_eq!(service.into_inner().user, "bob");
/// ```
#[derive(Clone, Debug)]
pub struct RetryService<S, T = Retrier> {
    inner: S,
    retrier: T,
    terms: Terms,
}

impl<S, T> RetryService<S, T> {
    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The service inside.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service inside.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The service inside.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, T, Req> Service<Req> for RetryService<S, T>
where
    S: Service<Req>,
    Req: Repeat<S::Response>,
    T: Runs<S, Req>,
{
    type Response = S::Response;
    type Error = Error<S::Error>;
    type Future = RetryFuture<S, T, Req>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error<S::Error>>> {
        self.inner.poll_ready(cx).map_err(Error::before_the_first)
    }

    #[inline]
    fn call(&mut self, request: Req) -> RetryFuture<S, T, Req> {
        RetryFuture { state: self.retrier.start(&mut self.inner, request, &self.terms, Seal(())) }
    }
}

pin_project_lite::pin_project! {
    /// A call of a [`RetryService`]. Dropped, it ends the attempt under way, and gives back what it holds of its upstream.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryFuture<S, T, Req>
    where
        S: Service<Req>,
        Req: Repeat<S::Response>,
        T: Runs<S, Req>,
    {
        #[pin]
        state: State<S, T, Req>,
    }
}

impl<S, T, Req> Future for RetryFuture<S, T, Req>
where
    S: Service<Req>,
    Req: Repeat<S::Response>,
    T: Runs<S, Req>,
{
    type Output = Result<S::Response, Error<S::Error>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().state.poll(cx)
    }
}

impl<S, T, Req> fmt::Debug for RetryFuture<S, T, Req>
where
    S: Service<Req>,
    Req: Repeat<S::Response>,
    T: Runs<S, Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryFuture").finish_non_exhaustive()
    }
}
