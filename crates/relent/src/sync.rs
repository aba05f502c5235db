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
