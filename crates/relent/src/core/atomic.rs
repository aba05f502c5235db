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
