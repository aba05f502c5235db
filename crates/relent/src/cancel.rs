//! Cancellation: a switch that ends calls from outside, waking whoever sleeps.

use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

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
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
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
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Throws the switch. Throwing it again changes nothing.
    pub fn cancel(&self) {
        let sleepers = {
            let mut state = self.state();
            state.is_cancelled = true;
            std::mem::take(&mut state.sleepers)
        };
        self.0.thrown.notify_all();
        for waker in sleepers.into_values() {
            waker.wake();
        }
    }

    /// Whether the switch has been thrown.
    pub fn is_cancelled(&self) -> bool {
        self.state().is_cancelled
    }

    /// A future that is ready when the switch is thrown.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { cancel: self.clone(), key: None }
    }

    /// Blocks the thread until the switch is thrown or the time has passed; whether it was thrown.
    pub fn wait(&self, most: Duration) -> bool {
        let end = Instant::now().checked_add(most);
        let mut state = self.state();
        while !state.is_cancelled {
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            state = self.0.thrown.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// Ready when its [`Cancel`] is thrown.
#[derive(Debug)]
pub struct Cancelled {
    cancel: Cancel,
    key: Option<u64>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let cancel = self.cancel.clone();
        let mut state = cancel.state();
        if state.is_cancelled {
            return Poll::Ready(());
        }
        let key = *self.key.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        state.sleepers.entry(key).or_insert_with(|| cx.waker().clone()).clone_from(cx.waker());
        Poll::Pending
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.cancel.state().sleepers.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_at_the_time_or_at_the_switch() {
        let cancel = Cancel::new();
        assert!(!cancel.wait(Duration::from_millis(1)));
        cancel.cancel();
        assert!(cancel.wait(Duration::MAX));
        assert!(cancel.clone().is_cancelled());
    }

    #[test]
    fn a_dropped_future_leaves_no_waker() {
        let cancel = Cancel::new();
        let mut future = Box::pin(cancel.cancelled());
        let mut context = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert_eq!(cancel.state().sleepers.len(), 1);
        drop(future);
        assert_eq!(cancel.state().sleepers.len(), 0);
    }
}
