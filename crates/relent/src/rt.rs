//! Where calls get the time, their sleep and their entropy.
//!
//! A [`Timer`] is what an executor needs of the outside world. [`SystemTimer`] is the one used unless another is
//! given: on a tokio runtime (feature `tokio`) it is tokio's, so that a paused clock is obeyed; anywhere else a thread
//! of relent's own wakes the sleepers, so that any executor will do.

use crate::{Timestamp, core::atomic::Counter, mix};
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
        blocking::wait(self.sleep(delay), cancel);
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
pub use system::{Sleep, SystemTimer};

#[cfg(feature = "std")]
pub(crate) use system::timestamp;

#[cfg(feature = "std")]
mod system {
    use super::{Timer, thread};
    use crate::{Cancel, GAMMA, Timestamp, mix};
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

    /// The machine's monotonic clock; tokio's clock and timer on a tokio runtime, with the feature `tokio`.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct SystemTimer;

    impl Timer for SystemTimer {
        type Sleep = Sleep;

        fn now(&self) -> Timestamp {
            #[cfg(feature = "tokio")]
            return timestamp(tokio::time::Instant::now().into_std());
            #[cfg(not(feature = "tokio"))]
            timestamp(Instant::now())
        }

        fn sleep(&self, delay: Duration) -> Sleep {
            #[cfg(feature = "tokio")]
            if tokio::runtime::Handle::try_current().is_ok() {
                return Sleep(Kind::Tokio(Box::pin(tokio::time::sleep(delay))));
            }
            Sleep(Kind::Thread(thread::Sleep::new(Instant::now().checked_add(delay))))
        }

        /// From the operating system's entropy once a process, then a counter, and the time, so that processes that
        /// were forked from one do not go on with the same seeds.
        fn seed(&self) -> u64 {
            static STATE: OnceLock<AtomicU64> = OnceLock::new();
            let state = STATE.get_or_init(|| AtomicU64::new(RandomState::new().hash_one(GAMMA)));
            mix(state.fetch_add(GAMMA, Ordering::Relaxed) ^ mix(self.now().as_nanos()))
        }

        fn sleep_blocking(&self, delay: Duration, cancel: Option<&Cancel>) {
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

    /// The sleep of a [`SystemTimer`].
    #[derive(Debug)]
    pub struct Sleep(Kind);

    #[derive(Debug)]
    enum Kind {
        #[cfg(feature = "tokio")]
        Tokio(Pin<Box<tokio::time::Sleep>>),
        Thread(thread::Sleep),
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
    pub(super) fn wait<F: Future>(future: F, cancel: Option<&Cancel>) {
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

/// One thread that wakes sleepers, for executors without a timer that we know.
#[cfg(feature = "std")]
mod thread {
    use core::{
        future::Future,
        pin::Pin,
        task::{Context, Poll, Waker},
    };
    use std::{
        collections::BTreeMap,
        sync::{Condvar, Mutex, MutexGuard, Once, PoisonError},
        time::{Duration, Instant},
    };

    #[derive(Default)]
    struct Sleepers {
        next: u64,
        by_end: BTreeMap<(Instant, u64), Waker>,
    }

    static SLEEPERS: Mutex<Sleepers> = Mutex::new(Sleepers { next: 0, by_end: BTreeMap::new() });
    static CHANGED: Condvar = Condvar::new();

    /// Ready at a point in time; never, if that lies beyond what the clock can say.
    #[derive(Debug)]
    pub(super) struct Sleep {
        end: Option<Instant>,
        number: Option<u64>,
    }

    impl Sleep {
        pub(super) fn new(end: Option<Instant>) -> Sleep {
            Sleep { end, number: None }
        }
    }

    impl Future for Sleep {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            let Some(end) = self.end else { return Poll::Pending };
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            start();
            let mut sleepers = sleepers();
            let number = *self.number.get_or_insert_with(|| {
                sleepers.next += 1;
                sleepers.next
            });
            sleepers.by_end.insert((end, number), cx.waker().clone());
            if sleepers.by_end.first_key_value().is_some_and(|(key, _)| *key == (end, number)) {
                CHANGED.notify_one();
            }
            Poll::Pending
        }
    }

    impl Drop for Sleep {
        fn drop(&mut self) {
            if let (Some(end), Some(number)) = (self.end, self.number) {
                sleepers().by_end.remove(&(end, number));
            }
        }
    }

    fn sleepers() -> MutexGuard<'static, Sleepers> {
        SLEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start() {
        static START: Once = Once::new();
        START.call_once(|| {
            std::thread::Builder::new()
                .name("relent-timer".to_owned())
                .spawn(run)
                .expect("a process that cannot start a thread cannot sleep without a runtime");
        });
    }

    fn run() {
        let mut guard = sleepers();
        loop {
            let now = Instant::now();
            let due = due(&mut guard, now);
            if !due.is_empty() {
                // A waker may run anything, so it is called without the lock.
                drop(guard);
                due.into_iter().for_each(Waker::wake);
                guard = sleepers();
                continue;
            }
            let wait = guard.by_end.first_key_value().map_or(Duration::MAX, |((end, _), _)| *end - now);
            guard = CHANGED.wait_timeout(guard, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
    fn due(sleepers: &mut Sleepers, now: Instant) -> Vec<Waker> {
        let mut due = Vec::new();
        while let Some(entry) = sleepers.by_end.first_entry().filter(|entry| entry.key().0 <= now) {
            due.push(entry.remove());
        }
        due
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, time::Instant, vec::Vec};

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

    #[test]
    fn the_timer_thread_wakes_sleepers_in_order_of_their_time() {
        let order = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for millis in [30, 10, 20] {
                let order = &order;
                scope.spawn(move || {
                    blocking::wait(thread::Sleep::new(Some(Instant::now() + Duration::from_millis(millis))), None);
                    order.lock().unwrap().push(millis);
                });
            }
        });
        assert_eq!(order.into_inner().unwrap(), [10, 20, 30]);
    }
}
