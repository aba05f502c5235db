//! One atomic word: what the machines that calls share keep their state in.
//!
//! Everything that is decided about a [`Word`] is decided by compare-exchange: what was checked is what is changed, so no
//! two threads are granted the same token.

use super::atomic::{AtomicU64, Ordering};
use core::fmt;

/// Eight bytes that change in one step. Can be made in a `const`, with loom too.
pub(crate) struct Word {
    #[cfg(not(loom))]
    inner: AtomicU64,
    #[cfg(loom)]
    inner: core::mem::ManuallyDrop<std::sync::OnceLock<AtomicU64>>,
    #[cfg(loom)]
    first: u64,
}

impl Word {
    #[cfg(not(loom))]
    pub(crate) const fn new(value: u64) -> Word {
        Word { inner: AtomicU64::new(value) }
    }

    /// Loom's atomics can only be made inside a model, so they are made at the first use. They are never dropped, because
    /// a builder of a `const` may not drop anything.
    #[cfg(loom)]
    pub(crate) const fn new(value: u64) -> Word {
        Word { inner: core::mem::ManuallyDrop::new(std::sync::OnceLock::new()), first: value }
    }

    #[cfg(not(loom))]
    #[inline]
    fn atomic(&self) -> &AtomicU64 {
        &self.inner
    }

    #[cfg(loom)]
    fn atomic(&self) -> &AtomicU64 {
        self.inner.get_or_init(|| AtomicU64::new(self.first))
    }

    /// Sees what was written before the value was set.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.atomic().load(Ordering::Acquire)
    }

    /// Shows what was written before.
    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.atomic().store(value, Ordering::Release);
    }

    /// Changes the value if it still is `old`; otherwise says what it is. May fail for no reason.
    #[inline]
    pub(crate) fn exchange(&self, old: u64, new: u64) -> Result<(), u64> {
        self.atomic().compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    /// Changes the value to what `next` makes of it, until nobody came in between. `None` leaves it.
    #[inline]
    pub(crate) fn update(&self, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let mut old = self.get();
        loop {
            let new = next(old)?;
            match self.exchange(old, new) {
                Ok(()) => return Some(new),
                Err(other) => old = other,
            }
        }
    }

    /// Whether the value was `old` and is now `new`. Never fails for no reason.
    #[inline]
    pub(crate) fn swap_if(&self, old: u64, new: u64) -> bool {
        self.atomic().compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Counts, and wraps. The value before.
    #[inline]
    pub(crate) fn add(&self, more: u64) -> u64 {
        self.atomic().fetch_add(more, Ordering::AcqRel)
    }

    /// Raises the value to this one, if it is less.
    #[inline]
    pub(crate) fn raise(&self, value: u64) {
        self.atomic().fetch_max(value, Ordering::AcqRel);
    }
}

/// Words in lines of the processor's cache that nothing else is in: what one thread writes here takes nothing away from
/// another that only reads what stands beside it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Apart<T>(pub(crate) T);

impl<T> core::ops::Deref for Apart<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

/// Lets others go on, in a loop that waits for one of them.
#[inline]
pub(crate) fn pause() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    core::hint::spin_loop();
}
