//! Cancellation: a switch that ends calls from outside, waking whoever sleeps.

use crate::sync::{Arc, Condvar, Mutex, lock, wake_all};
use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{collections::BTreeMap, panic::resume_unwind, sync::PoisonError, time::Instant};

/// A switch that ends calls from outside. Clones are the same switch.
///
/// Once it is thrown it stays so: sleepers wake at once, async attempts that are running are dropped, blocking ones
/// run to their end, and every call on it gives up with [`Reason::Cancelled`](crate::Reason::Cancelled).
///
/// ```
/// use relent::{Cancel, Policy, Reason};
/// use std::{thread, time::{Duration, Instant}};
///
/// let cancel = Cancel::new();
/// let switch = cancel.clone();
/// let hour = Policy::constant(Duration::from_secs(3600));
/// let begin = Instant::now();
/// let call = thread::spawn(move || hour.cancel(&cancel).retry_blocking(|_| Err::<(), _>("down")));
/// switch.cancel();
/// assert_eq!(call.join().unwrap().unwrap_err().reason, Reason::Cancelled);
/// assert!(begin.elapsed() < Duration::from_secs(60));
/// ```
#[derive(Clone)]
pub struct Cancel(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    thrown: Condvar,
}

#[derive(Default)]
struct State {
    is_cancelled: bool,
    next: u64,
    sleepers: BTreeMap<u64, Waker>,
}

impl Cancel {
    /// A switch that has not been thrown.
    ///
    /// ```
    /// let cancel = relent::Cancel::new();
    /// assert!(!cancel.is_cancelled());
    /// ```
    pub fn new() -> Cancel {
        Cancel(Arc::new(Inner { state: Mutex::new(State::default()), thrown: Condvar::new() }))
    }

    /// Throws the switch. Throwing it again changes nothing.
    ///
    /// # Panics
    ///
    /// If the waker of a sleeping task panics; the switch is thrown and all others are woken nevertheless.
    ///
    /// ```
    /// let cancel = relent::Cancel::new();
    /// cancel.cancel();
    /// cancel.cancel();
    /// assert!(cancel.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        let sleepers = {
            let mut state = lock(&self.0.state);
            state.is_cancelled = true;
            std::mem::take(&mut state.sleepers)
        };
        self.0.thrown.notify_all();
        if let Err(panic) = wake_all(sleepers.into_values()) {
            resume_unwind(panic);
        }
    }

    /// Whether the switch has been thrown.
    ///
    /// ```
    /// let cancel = relent::Cancel::new();
    /// assert!(!cancel.is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        lock(&self.0.state).is_cancelled
    }

    /// A future that is ready when the switch is thrown. Any number may wait for one switch, and dropping a future
    /// changes nothing for the others.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let cancel = relent::Cancel::new();
    /// let switch = cancel.clone();
    /// std::thread::spawn(move || switch.cancel());
    /// cancel.cancelled().await;
    /// # });
    /// ```
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { cancel: self.clone(), key: None }
    }

    /// Blocks the thread until the switch is thrown or the time has passed; whether it was thrown. A time beyond what
    /// the clock can say, such as [`Duration::MAX`], is no limit.
    ///
    /// ```
    /// let cancel = relent::Cancel::new();
    /// assert!(!cancel.wait(std::time::Duration::from_millis(1)));
    /// cancel.cancel();
    /// assert!(cancel.wait(std::time::Duration::MAX));
    /// ```
    pub fn wait(&self, most: Duration) -> bool {
        let end = Instant::now().checked_add(most);
        let mut state = lock(&self.0.state);
        while !state.is_cancelled {
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            state = self.0.thrown.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Default for Cancel {
    fn default() -> Cancel {
        Cancel::new()
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// Ready when its [`Cancel`] is thrown: see [`Cancel::cancelled`]. Ready again whenever it is polled after that.
///
/// ```
/// use relent::Cancel;
///
/// let cancel = Cancel::new();
/// let cancelled = cancel.cancelled();
/// cancel.cancel();
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// cancelled.await; // Ready at once, and for everybody who waits.
/// # });
/// ```
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    cancel: Cancel,
    key: Option<u64>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Cloned before the lock and, if it is of no use or replaces another, dropped after it.
        let waker = cx.waker().clone();
        match self.enter(waker) {
            Ok(replaced) => {
                drop(replaced);
                Poll::Pending
            }
            Err(unused) => {
                drop(unused);
                Poll::Ready(())
            }
        }
    }
}

impl Cancelled {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Enters a sleeper or renews its waker, and gives back the one it replaced; gives back the waker if the switch is
    /// thrown.
    fn enter(&mut self, waker: Waker) -> Result<Option<Waker>, Waker> {
        let mut state = lock(&self.cancel.0.state);
        if state.is_cancelled {
            return Err(waker);
        }
        let key = *self.key.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        Ok(state.sleepers.insert(key, waker))
    }

    fn leave(&mut self) -> Option<Waker> {
        let key = self.key.take()?;
        lock(&self.cancel.0.state).sleepers.remove(&key)
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::sync::Arc;
    use std::{
        sync::{
            Mutex as StdMutex,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
    };

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn poll(future: &mut Cancelled, waker: &Waker) -> Poll<()> {
        Pin::new(future).poll(&mut Context::from_waker(waker))
    }

    #[test]
    fn waiting_ends_at_the_time_or_at_the_switch() {
        let cancel = Cancel::new();
        assert!(!cancel.wait(Duration::from_millis(1)));
        cancel.cancel();
        assert!(cancel.wait(Duration::MAX));
        assert!(cancel.clone().is_cancelled());
    }

    #[test]
    fn a_dropped_future_leaves_no_waker_and_those_of_others() {
        let cancel = Cancel::new();
        let counts = [(); 3].map(|()| Arc::new(Count::default()));
        let mut futures = [(); 3].map(|()| Some(cancel.cancelled()));
        for (future, count) in futures.iter_mut().zip(&counts) {
            assert!(poll(future.as_mut().unwrap(), &Waker::from(count.clone())).is_pending());
        }
        assert_eq!(lock(&cancel.0.state).sleepers.len(), 3);
        drop(futures[1].take());
        assert_eq!(lock(&cancel.0.state).sleepers.len(), 2);
        cancel.cancel();
        assert_eq!(counts.map(|count| count.0.load(Ordering::Relaxed)), [1, 0, 1]);
        assert!(poll(futures[0].as_mut().unwrap(), Waker::noop()).is_ready());
        assert!(poll(futures[2].as_mut().unwrap(), Waker::noop()).is_ready());
    }

    #[test]
    fn only_the_last_waker_of_a_future_is_woken() {
        let cancel = Cancel::new();
        let (first, last) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let mut future = cancel.cancelled();
        assert!(poll(&mut future, &Waker::from(first.clone())).is_pending());
        assert!(poll(&mut future, &Waker::from(last.clone())).is_pending());
        assert_eq!(Arc::strong_count(&first), 1, "the first waker is gone");
        cancel.cancel();
        assert_eq!((first.0.load(Ordering::Relaxed), last.0.load(Ordering::Relaxed)), (0, 1));
    }

    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            resume_unwind(Box::new("a waker that panics"));
        }
    }

    #[test]
    fn a_waker_that_panics_keeps_nobody_asleep() {
        let cancel = Cancel::new();
        let (mut bad, mut good) = (cancel.cancelled(), cancel.cancelled());
        let count = Arc::new(Count::default());
        assert!(poll(&mut bad, &Waker::from(Arc::new(Panics))).is_pending());
        assert!(poll(&mut good, &Waker::from(count.clone())).is_pending());
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cancel.cancel())).unwrap_err();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(cancel.is_cancelled());
    }

    /// What a task's waker may be: the last owner of a task that waits for the same switch.
    struct Owner(#[expect(dead_code, reason = "is dropped")] StdMutex<Cancelled>);

    impl Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_waker_that_owns_a_waiting_task_is_dropped_without_the_lock() {
        let (sender, done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let cancel = Cancel::new();
            let owner = || {
                let mut inner = cancel.cancelled();
                assert!(poll(&mut inner, Waker::noop()).is_pending());
                Waker::from(Arc::new(Owner(StdMutex::new(inner))))
            };
            let mut future = cancel.cancelled();
            assert!(poll(&mut future, &owner()).is_pending());
            assert!(poll(&mut future, &owner()).is_pending());
            drop(future);
            let mut future = cancel.cancelled();
            assert!(poll(&mut future, &owner()).is_pending());
            let unused = owner();
            cancel.cancel();
            assert!(poll(&mut future, &unused).is_ready());
            drop((future, unused));
            sender.send(lock(&cancel.0.state).sleepers.len()).unwrap();
        });
        assert_eq!(done.recv_timeout(Duration::from_secs(60)), Ok(0), "a lock is taken twice");
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::modelled::Count;
    use loom::{model, thread};

    fn poll(future: &mut Cancelled, count: &std::sync::Arc<Count>) -> bool {
        let waker = Waker::from(count.clone());
        Pin::new(future).poll(&mut Context::from_waker(&waker)).is_ready()
    }

    #[test]
    fn who_waits_is_woken_or_finds_the_switch_thrown() {
        model(|| {
            let cancel = Cancel::new();
            let waiters = [(); 2].map(|()| {
                let mut future = cancel.cancelled();
                thread::spawn(move || {
                    let count = std::sync::Arc::new(Count::default());
                    let is_ready = poll(&mut future, &count);
                    (is_ready, future, count)
                })
            });
            cancel.cancel();
            for waiter in waiters {
                let (is_ready, mut future, count) = waiter.join().unwrap();
                assert_eq!(count.woken(), usize::from(!is_ready));
                assert!(poll(&mut future, &count));
            }
        });
    }

    #[test]
    fn a_thread_that_waits_is_woken() {
        model(|| {
            let cancel = Cancel::new();
            let switch = cancel.clone();
            let other = thread::spawn(move || switch.cancel());
            assert!(cancel.wait(Duration::MAX));
            other.join().unwrap();
        });
    }

    #[test]
    fn dropping_one_waiter_while_the_switch_is_thrown_leaves_the_other() {
        model(|| {
            let cancel = Cancel::new();
            let (gone, stays) = (std::sync::Arc::new(Count::default()), std::sync::Arc::new(Count::default()));
            let (mut one, mut two) = (cancel.cancelled(), cancel.cancelled());
            assert!(!poll(&mut one, &gone) && !poll(&mut two, &stays));
            let switch = cancel.clone();
            let other = thread::spawn(move || switch.cancel());
            drop(one);
            other.join().unwrap();
            assert!(gone.woken() <= 1);
            assert_eq!(stays.woken(), 1);
            assert!(lock(&cancel.0.state).sleepers.is_empty());
        });
    }
}
