//! Who called: what is known of the request that a handler is working on, for the calls that it makes in turn.

use crate::{Arrival, Timestamp, layer::TimeLeft};
use core::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// What the caller of the request under way has said: which attempt of its call it is, and how much [`TimeLeft`] it has.
///
/// Behind an [`AdmissionLayer`](super::AdmissionLayer) the handler's task knows both, by [`current`](Caller::current), so that
/// calls made there go on with the deadline and the number of the attempt: a call without time left is not begun, and the
/// far side sees a retry as one, through every hop. What the request said is an extension of it too:
///
/// ```
/// use relent::layer::Caller;
///
/// fn handle(request: http::Request<()>) -> String {
///     let caller = request.extensions().get::<Caller>().copied().unwrap_or_default();
///     match caller.time_left() {
///         Some(time) => format!("attempt {}, with {:?} left", caller.attempt(), time.left()),
///         None => format!("attempt {}, in no hurry", caller.attempt()),
///     }
/// }
/// # assert_eq!(handle(http::Request::new(())), "attempt 1, in no hurry");
/// ```
///
/// A task that the handler spawns is another task: take it along by [`scope`](Caller::scope).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    attempt: u32,
    left: Option<TimeLeft>,
}

/// A first attempt that is in no hurry.
impl Default for Caller {
    fn default() -> Caller {
        Caller { attempt: 1, left: None }
    }
}

thread_local! {
    /// Set while a future inside a scope is polled.
    static CURRENT: Cell<Option<Caller>> = const { Cell::new(None) };
}

impl Caller {
    /// Of a request that arrived at `now`.
    pub fn new(now: Timestamp, arrival: &Arrival) -> Caller {
        Caller { attempt: arrival.attempt.max(1), left: arrival.left.map(|left| TimeLeft::at(now + left)) }
    }

    /// The caller of the request that this task is working on; `None` outside of a scope.
    ///
    /// ```
    /// use relent::{Arrival, Timestamp, layer::Caller};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let caller = Caller::new(Timestamp::ZERO, &Arrival { attempt: 2, ..Arrival::default() });
    /// caller.scope(async { assert_eq!(Caller::current().unwrap().attempt(), 2) }).await;
    /// assert_eq!(Caller::current(), None);
    /// # });
    /// ```
    #[inline]
    pub fn current() -> Option<Caller> {
        CURRENT.get()
    }

    /// Whether a call made now is made for a retry, so that it is one for the far side.
    #[inline]
    pub(in crate::layer) fn is_retry() -> bool {
        Caller::current().is_some_and(|caller| caller.attempt > 1)
    }

    /// Which attempt of its call the request is, from 1.
    #[inline]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The number that attempt `own` of a call has which is made for this caller: the far side counts those before, too.
    ///
    /// ```
    /// use relent::{Arrival, Timestamp, layer::Caller};
    ///
    /// let caller = Caller::new(Timestamp::ZERO, &Arrival { attempt: 3, ..Arrival::default() });
    /// assert_eq!((caller.attempt_below(1), caller.attempt_below(2)), (3, 4));
    /// ```
    #[inline]
    pub fn attempt_below(&self, own: u32) -> u32 {
        (self.attempt - 1).saturating_add(own.max(1))
    }

    /// How much time it has left; `None` if it has not said.
    #[inline]
    pub fn time_left(&self) -> Option<TimeLeft> {
        self.left
    }

    /// Runs a future for this caller, in a task that was spawned for its request.
    ///
    /// ```
    /// use relent::layer::Caller;
    ///
    /// async fn handle() {
    ///     let caller = Caller::current().unwrap_or_default();
    ///     tokio::spawn(caller.scope(async { /* calls made here have the caller's deadline */ })).await.unwrap();
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(handle());
    /// ```
    pub fn scope<F: Future>(self, future: F) -> CallerScope<F> {
        CallerScope { caller: self, future }
    }

    /// Runs a function for this caller.
    ///
    /// ```
    /// use relent::{Arrival, Timestamp, layer::Caller};
    ///
    /// let caller = Caller::new(Timestamp::ZERO, &Arrival { attempt: 2, ..Arrival::default() });
    /// assert_eq!(caller.within(|| Caller::current().unwrap().attempt()), 2);
    /// assert_eq!(Caller::current(), None);
    /// ```
    #[inline]
    pub fn within<R>(self, run: impl FnOnce() -> R) -> R {
        /// Also after a panic: the thread goes on with other requests.
        struct Restore(Option<Caller>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(Some(self)));
        match self.left {
            Some(left) => left.within(run),
            None => run(),
        }
    }
}

pin_project_lite::pin_project! {
    /// A future that runs for a [`Caller`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct CallerScope<F> {
        caller: Caller,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for CallerScope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.caller.within(|| this.future.poll(cx))
    }
}
