//! Atomics, as this crate takes them: `core`'s, or [loom](https://docs.rs/loom)'s in a build for its models.
//!
//! A model is a test in a module `models` (`#[cfg(all(test, loom))]`) beside the code it is about. `loom::model` runs it
//! once for every order in which its threads could act and every value that the memory model lets them see.
//! `cargo xtask loom` runs them all.
//!
//! Not every target has every atomic: ask `cfg(target_has_atomic = "64")` for 64 bits and `"ptr"` for anything but
//! loading and storing.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::*;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::*;

#[cfg(all(not(loom), not(target_has_atomic = "64")))]
pub(crate) use halves::AtomicU64;

/// Where the target has no atomics of 64 bits: two halves, which change one after the other. Nothing breaks if two
/// change one at a time, but one of the changes may be lost: there, budgets and their like belong to one thread, and not
/// to its interrupts too.
#[cfg(all(not(loom), not(target_has_atomic = "64")))]
mod halves {
    use super::{AtomicU32, Ordering};

    #[derive(Debug)]
    pub(crate) struct AtomicU64 {
        high: AtomicU32,
        low: AtomicU32,
    }

    impl AtomicU64 {
        pub(crate) const fn new(value: u64) -> AtomicU64 {
            AtomicU64 { high: AtomicU32::new((value >> 32) as u32), low: AtomicU32::new(value as u32) }
        }

        pub(crate) fn load(&self, _: Ordering) -> u64 {
            u64::from(self.high.load(Ordering::Acquire)) << 32 | u64::from(self.low.load(Ordering::Acquire))
        }

        pub(crate) fn store(&self, value: u64, _: Ordering) {
            self.high.store((value >> 32) as u32, Ordering::Release);
            self.low.store(value as u32, Ordering::Release);
        }

        pub(crate) fn compare_exchange(&self, old: u64, new: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
            let is = self.load(Ordering::Acquire);
            if is != old {
                return Err(is);
            }
            self.store(new, Ordering::Release);
            Ok(is)
        }

        pub(crate) fn compare_exchange_weak(&self, old: u64, new: u64, a: Ordering, b: Ordering) -> Result<u64, u64> {
            self.compare_exchange(old, new, a, b)
        }

        pub(crate) fn fetch_add(&self, more: u64, _: Ordering) -> u64 {
            let is = self.load(Ordering::Acquire);
            self.store(is.wrapping_add(more), Ordering::Release);
            is
        }

        pub(crate) fn fetch_max(&self, value: u64, _: Ordering) -> u64 {
            let is = self.load(Ordering::Acquire);
            self.store(is.max(value), Ordering::Release);
            is
        }
    }
}

/// Declares a `const fn` that makes atomics. Those of loom cannot be made by a `const fn`, so there it is a plain one,
/// and a `static` becomes a `loom::lazy_static!` or a value of the model.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* $vis:vis const fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $($rest)*
        #[cfg(loom)]
        $(#[$meta])*
        $vis fn $($rest)*
    };
}

/// Counts.
#[derive(Debug)]
pub(crate) struct Counter(AtomicUsize);

impl Counter {
    const_unless_loom! {
        pub(crate) const fn new() -> Counter {
            Counter(AtomicUsize::new(0))
        }
    }

    /// Another number at each call, but where the target can only load and store: there an interrupt may get the same
    /// as what it interrupts.
    pub(crate) fn next(&self) -> usize {
        #[cfg(target_has_atomic = "ptr")]
        return self.0.fetch_add(1, Ordering::Relaxed);
        #[cfg(not(target_has_atomic = "ptr"))]
        {
            let number = self.0.load(Ordering::Relaxed);
            self.0.store(number.wrapping_add(1), Ordering::Relaxed);
            number
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::{model, sync::Arc, thread};

    #[test]
    fn a_counter_gives_no_number_twice() {
        model(|| {
            let counter = Arc::new(Counter::new());
            let other = counter.clone();
            let other = thread::spawn(move || other.next());
            let mine = counter.next();
            assert_ne!(mine, other.join().unwrap());
        });
    }
}
