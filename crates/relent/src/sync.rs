//! Locks, as this crate takes them: `std`'s, or loom's in a build for its models (see `core/atomic.rs`).
//!
//! Nothing that is foreign happens under a lock: no waker is woken, cloned or dropped there, because a waker may own
//! anything, and what it owns may want the same lock when it is dropped.

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use core::{any::Any, task::Waker};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::PoisonError,
};

/// Locks, though somebody may have panicked meanwhile: what is behind the lock is whole at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lock that can be made in a `const`, with loom too, whose own is made at its first use.
#[cfg(not(loom))]
pub(crate) struct Lock<T>(Mutex<T>);

#[cfg(loom)]
pub(crate) struct Lock<T> {
    inner: std::sync::OnceLock<Mutex<T>>,
    first: std::sync::Mutex<Option<T>>,
}

impl<T> Lock<T> {
    #[cfg(not(loom))]
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }

    #[cfg(loom)]
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock { inner: std::sync::OnceLock::new(), first: std::sync::Mutex::new(Some(value)) }
    }

    /// As the function of this name.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(not(loom))]
        let inner = &self.0;
        #[cfg(loom)]
        let inner = self.inner.get_or_init(|| {
            let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
            Mutex::new(first.expect("it is made once"))
        });
        lock(inner)
    }
}

/// Wakes all, even if one panics; the first panic, for whoever wants to go on with it.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) -> Result<(), Box<dyn Any + Send>> {
    let mut outcome = Ok(());
    for waker in wakers {
        let woken = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        match outcome {
            Ok(()) => outcome = woken,
            // What it says may itself panic when it is dropped.
            Err(_) => core::mem::forget(woken),
        }
    }
    outcome
}
