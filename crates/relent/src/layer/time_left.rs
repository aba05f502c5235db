//! How much time the caller has left: read by servers from requests, known to their handlers, passed on by clients.

use crate::{SystemTimer, Timer, Timestamp};
use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// Until when an answer is of use to whoever waits for it.
///
/// A server's layer puts it into the extensions of a request, and runs the handler [within](TimeLeft::scope) it; a client's
/// layer ends its calls then, and tells the next server what is left. It is the least of all that are known: the client's own
/// limits, the extension of its request, and that of the handler around it.
///
/// ```
/// use relent::layer::TimeLeft;
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let left = TimeLeft::new(Duration::from_secs(2));
/// assert!(TimeLeft::current().is_none());
/// left.scope(async {
///     assert_eq!(TimeLeft::current(), Some(left));
/// })
/// .await;
/// # });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeLeft {
    until: Timestamp,
}

thread_local! {
    static CURRENT: Cell<Option<TimeLeft>> = const { Cell::new(None) };
}

impl TimeLeft {
    /// So much from now on.
    pub fn new(left: Duration) -> TimeLeft {
        TimeLeft { until: SystemTimer.now() + left }
    }

    /// Until then, on the clock of [`SystemTimer`].
    ///
    /// ```
    /// use relent::{SystemTimer, Timer, layer::TimeLeft};
    /// use std::time::Duration;
    ///
    /// let until = SystemTimer.now() + Duration::from_secs(2);
    /// assert_eq!(TimeLeft::at(until).until(), until);
    /// ```
    pub const fn at(until: Timestamp) -> TimeLeft {
        TimeLeft { until }
    }

    /// When the answer is of no use any more, on the clock of [`SystemTimer`].
    ///
    /// ```
    /// use relent::{SystemTimer, Timer, layer::TimeLeft};
    /// use std::time::Duration;
    ///
    /// let left = TimeLeft::new(Duration::from_secs(2));
    /// assert!(left.until().since(SystemTimer.now()) > Duration::from_secs(1));
    /// ```
    pub const fn until(&self) -> Timestamp {
        self.until
    }

    /// What is left now; zero if it is over.
    ///
    /// ```
    /// use relent::layer::TimeLeft;
    /// use std::time::Duration;
    ///
    /// assert_eq!(TimeLeft::new(Duration::ZERO).left(), Duration::ZERO);
    /// assert!(TimeLeft::new(Duration::from_secs(9)).left() > Duration::from_secs(8));
    /// ```
    pub fn left(&self) -> Duration {
        self.until.since(SystemTimer.now())
    }

    /// That of the future that is being polled on this thread, if it runs [within](TimeLeft::scope) one.
    pub fn current() -> Option<TimeLeft> {
        CURRENT.get()
    }

    /// Runs `future` with this as its [current](TimeLeft::current) one, or with the one around it if that ends sooner. What it
    /// spawns does not run within it.
    pub fn scope<F: Future>(self, future: F) -> Within<F> {
        Within { until: self, future }
    }

    /// Runs a function as [`scope`](TimeLeft::scope) runs a future.
    #[inline]
    pub(super) fn within<R>(self, run: impl FnOnce() -> R) -> R {
        let outer = CURRENT.get();
        let _restore = Restore(outer);
        CURRENT.set(Some(outer.map_or(self, |outer| outer.min(self))));
        run()
    }
}

pin_project_lite::pin_project! {
    /// A future that knows until when it is waited for: see [`TimeLeft::scope`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Within<F> {
        until: TimeLeft,
        #[pin]
        future: F,
    }
}

/// Puts back what was there before, also when a poll panics.
struct Restore(Option<TimeLeft>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let future = this.future;
        this.until.within(|| future.poll(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        task::Waker,
    };

    fn poll<F: Future>(future: F) -> Poll<F::Output> {
        std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_sooner_of_two_counts_and_the_outer_comes_back() {
        let (soon, late) = (TimeLeft::at(Timestamp::from_nanos(5)), TimeLeft::at(Timestamp::from_nanos(9)));
        for (outer, inner) in [(soon, late), (late, soon)] {
            let seen = poll(outer.scope(async {
                let seen = inner.scope(async { TimeLeft::current() }).await;
                (seen, TimeLeft::current())
            }));
            assert_eq!(seen, Poll::Ready((Some(soon), Some(outer))));
            assert_eq!(TimeLeft::current(), None);
        }
    }

    #[test]
    fn a_panic_leaves_nothing_behind() {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            poll(TimeLeft::new(Duration::ZERO).scope(async { panic!("on purpose") }))
        }));
        assert!(outcome.is_err());
        assert_eq!(TimeLeft::current(), None);
    }
}
