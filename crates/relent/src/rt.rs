//! Where calls get the time, their sleep and their entropy.
//!
//! A [`Timer`] is what an executor needs of the outside world. [`SystemTimer`] is the one used unless another is
//! given: a thread of relent's own wakes the sleepers, so that any executor will do, with or without a timer of its own.
//! With the feature `tokio` the clock is tokio's, and where that is paused, so is the sleep.

use crate::{Timestamp, core::atomic::Counter, rng::mix};
use core::{future::Future, time::Duration};

/// A clock and a way to sleep: what smol, embassy, or a test puts in place of the system's.
///
/// ```
/// use relent::{Policy, Timer, Timestamp};
/// use std::{cell::Cell, future::{Ready, ready}, time::Duration};
///
/// /// Sleeps in no time at all, and remembers.
/// #[derive(Default)]
/// struct Fake(Cell<Duration>);
///
/// impl Timer for Fake {
///     type Sleep = Ready<()>;
///     fn now(&self) -> Timestamp {
///         Timestamp::ZERO + self.0.get()
///     }
///     fn sleep(&self, delay: Duration) -> Ready<()> {
///         self.0.set(self.0.get() + delay);
///         ready(())
///     }
/// }
///
/// let fake = Fake::default();
/// let policy = Policy::constant(Duration::from_secs(60)).jitter(relent::Jitter::None).max_attempts(3);
/// policy.timer(&fake).retry_blocking(|_| Err::<(), _>("down")).unwrap_err();
/// assert_eq!(fake.0.get(), Duration::from_secs(120));
/// ```
pub trait Timer {
    /// A future that is ready when the delay has passed. What it yields does not matter.
    type Sleep: Future;

    /// The time now. Must not go back.
    fn now(&self) -> Timestamp;

    /// Sleeps for `delay`, counted from this call.
    fn sleep(&self, delay: Duration) -> Self::Sleep;

    /// A seed for a call, different at each call. By default made of a counter and the time, which tells calls apart
    /// but not machines that start in one moment: where there is entropy, use it.
    fn seed(&self) -> u64 {
        #[cfg(not(loom))]
        static COUNTER: Counter = Counter::new();
        #[cfg(loom)]
        loom::lazy_static! { static ref COUNTER: Counter = Counter::new(); }
        mix(mix(COUNTER.next() as u64) ^ self.now().as_nanos())
    }

    /// Sleeps on this thread, and wakes early if `cancel` is thrown. By default waits for [`sleep`](Timer::sleep).
    #[cfg(feature = "std")]
    fn sleep_blocking(&self, delay: Duration, cancel: Option<&crate::Cancel>) {
        wait(self.sleep(delay), cancel);
    }
}

impl<T: Timer + ?Sized> Timer for &T {
    type Sleep = T::Sleep;

    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn sleep(&self, delay: Duration) -> T::Sleep {
        (**self).sleep(delay)
    }

    fn seed(&self) -> u64 {
        (**self).seed()
    }

    #[cfg(feature = "std")]
    fn sleep_blocking(&self, delay: Duration, cancel: Option<&crate::Cancel>) {
        (**self).sleep_blocking(delay, cancel);
    }
}

#[cfg(feature = "std")]
pub(crate) use blocking::wait;
#[cfg(feature = "std")]
pub use system::{Sleep, SystemTimer};

#[cfg(feature = "std")]
pub(crate) use system::timestamp;

#[cfg(feature = "tokio")]
pub(crate) use paused::begin_blocking;

/// Without tokio no clock stands still.
#[cfg(all(feature = "std", not(feature = "tokio")))]
pub(crate) fn begin_blocking() {}

/// The time since 1970 by the machine's clock, with which dates in headers are compared.
#[cfg(feature = "tower")]
pub(crate) fn since_1970() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(feature = "std")]
mod system {
    use super::Timer;
    use crate::{
        Cancel, Timestamp, alarm,
        rng::{GAMMA, mix},
    };
    use core::{
        future::Future,
        pin::Pin,
        sync::atomic::{AtomicU64, Ordering},
        task::{Context, Poll},
        time::Duration,
    };
    use std::{
        hash::{BuildHasher, RandomState},
        sync::OnceLock,
        time::Instant,
    };

    /// The machine's monotonic clock, and a thread that wakes sleepers. With the feature `tokio`, where tokio's clock is
    /// paused, that clock and its timer.
    ///
    /// Nothing is asked of a runtime but a waker: it may have its timer disabled, and there may be none at all. What
    /// was asleep when tokio's clock was paused goes on by the machine's.
    ///
    /// Blocking code under a paused clock sleeps in real time, as nobody could move the clock meanwhile. The time that
    /// it takes, counted from its first sleep, is added to what the clock says, so that its limits of time hold.
    ///
    /// ```
    /// use relent::{SystemTimer, Timer};
    ///
    /// let begin = SystemTimer.now();
    /// SystemTimer.sleep_blocking(std::time::Duration::from_millis(2), None);
    /// assert!(SystemTimer.now().since(begin).as_millis() >= 2);
    /// ```
    #[derive(Clone, Copy, Debug, Default)]
    pub struct SystemTimer;

    impl Timer for SystemTimer {
        type Sleep = Sleep;

        fn now(&self) -> Timestamp {
            #[cfg(feature = "tokio")]
            return timestamp(super::paused::now());
            #[cfg(not(feature = "tokio"))]
            timestamp(Instant::now())
        }

        fn sleep(&self, delay: Duration) -> Sleep {
            #[cfg(feature = "tokio")]
            if super::paused::is_paused() {
                return Sleep(Kind::Tokio(Box::pin(tokio::time::sleep(delay))));
            }
            Sleep(Kind::Thread(alarm::Sleep::until(Instant::now().checked_add(delay))))
        }

        /// From the operating system's entropy once a process, then a counter, and the time, so that processes that
        /// were forked from one do not go on with the same seeds.
        fn seed(&self) -> u64 {
            static STATE: OnceLock<AtomicU64> = OnceLock::new();
            let state = STATE.get_or_init(|| AtomicU64::new(RandomState::new().hash_one(GAMMA)));
            mix(state.fetch_add(GAMMA, Ordering::Relaxed) ^ mix(self.now().as_nanos()))
        }

        fn sleep_blocking(&self, delay: Duration, cancel: Option<&Cancel>) {
            super::begin_blocking();
            match cancel {
                Some(cancel) => {
                    cancel.wait(delay);
                }
                None => std::thread::sleep(delay),
            }
        }
    }

    /// A point on the machine's clock as a timestamp. The epoch lies far back, because a paused clock may be older
    /// than the first time somebody asked.
    pub(crate) fn timestamp(instant: Instant) -> Timestamp {
        static EPOCH: OnceLock<Instant> = OnceLock::new();
        const PAST: Duration = Duration::from_secs(3600 * 24 * 365 * 100);
        let epoch = *EPOCH.get_or_init(Instant::now);
        match instant.checked_duration_since(epoch) {
            Some(after) => Timestamp::ZERO + PAST + after,
            None => Timestamp::ZERO + PAST.saturating_sub(epoch.duration_since(instant)),
        }
    }

    /// The sleep of a [`SystemTimer`]. It counts from when it was made; dropping it takes its waker back.
    ///
    /// ```
    /// use relent::{SystemTimer, Timer};
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let before = SystemTimer.now();
    /// SystemTimer.sleep(Duration::from_millis(2)).await;
    /// assert!(SystemTimer.now().since(before) >= Duration::from_millis(2));
    /// # });
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Sleep(Kind);

    #[derive(Debug)]
    enum Kind {
        #[cfg(feature = "tokio")]
        Tokio(Pin<Box<tokio::time::Sleep>>),
        Thread(alarm::Sleep),
    }

    impl Future for Sleep {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            match &mut self.0 {
                #[cfg(feature = "tokio")]
                Kind::Tokio(sleep) => sleep.as_mut().poll(cx),
                Kind::Thread(sleep) => Pin::new(sleep).poll(cx),
            }
        }
    }
}

/// Tokio's clock, which a test may pause.
#[cfg(feature = "tokio")]
mod paused {
    use std::{cell::Cell, time::Instant};

    fn tokio_now() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    /// Whether the clock stands still while the machine's moves. Tokio has no question for this, nor for whether the
    /// timer of its runtime is enabled, without which it panics; a clock that is paused has one.
    pub(super) fn is_paused() -> bool {
        let (before, real) = (tokio_now(), Instant::now());
        if tokio_now() != before {
            return false;
        }
        while Instant::now() == real {}
        tokio_now() == before && tokio::runtime::Handle::try_current().is_ok()
    }

    thread_local! {
        /// What a clock said when blocking code first slept under it, and when that was.
        static BLOCKED: Cell<Option<(Instant, Instant)>> = const { Cell::new(None) };
    }

    /// Blocking code sleeps: from now on, time passes even under a clock that stands still.
    pub(crate) fn begin_blocking() {
        let clock = tokio_now();
        if BLOCKED.get().is_none_or(|(stood_at, _)| stood_at != clock) {
            BLOCKED.set(Some((clock, Instant::now())));
        }
    }

    /// The clock, and, while it stands where it stood when blocking code first slept, the time since.
    pub(super) fn now() -> Instant {
        let clock = tokio_now();
        match BLOCKED.get() {
            Some((stood_at, since)) if stood_at == clock => clock + since.elapsed(),
            _ => clock,
        }
    }
}

/// Waiting for a future on this thread.
#[cfg(feature = "std")]
mod blocking {
    use crate::Cancel;
    use core::{
        future::Future,
        pin::pin,
        task::{Context, Poll},
    };
    use std::{
        sync::Arc,
        task::{Wake, Waker},
        thread::{self, Thread},
    };

    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// Waits for the future, or for the switch.
    pub(crate) fn wait<F: Future>(future: F, cancel: Option<&Cancel>) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        let mut cancelled = pin!(cancel.map(Cancel::cancelled));
        loop {
            let is_cancelled =
                cancelled.as_mut().as_pin_mut().is_some_and(|cancelled| cancelled.poll(&mut context).is_ready());
            if is_cancelled || matches!(future.as_mut().poll(&mut context), Poll::Ready(_)) {
                return;
            }
            thread::park();
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, time::Instant};

    #[test]
    fn seeds_differ() {
        let seeds: BTreeSet<u64> = (0..10_000).map(|_| SystemTimer.seed()).collect();
        assert_eq!(seeds.len(), 10_000);
    }

    #[test]
    fn a_clock_older_than_the_epoch_still_has_differences() {
        let now = Instant::now();
        let before = now.checked_sub(Duration::from_secs(60)).unwrap_or(now);
        assert_eq!(timestamp(now).since(timestamp(before)), now.duration_since(before));
    }
}
