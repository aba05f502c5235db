//! Policies inside policies: what an inner one gave up on, an outer one does not retry.
//!
//! Three layers of four attempts each would otherwise make 64. The outer policy has to notice whatever the inner error
//! was wrapped in on its way up (`anyhow`, a `Box`, a variant of the caller's enum), and must not be deceived by an
//! inner failure that the operation recovered from. So it asks two things when an attempt has failed: did an inner call
//! give up while this attempt ran, and is the error that it left still alive? An error that was handled is dropped; one
//! that travels up lives inside the outer error, where its [`Trace`] tells of it.
//!
//! A call that gives up leaves the number of its trace in a thread-local; an attempt compares what stood there before
//! and after it ran, for a future at each poll. So success costs two thread-local reads, and writes nothing.

#[cfg(feature = "std")]
pub(crate) use with_threads::{Mark, Scope, Trace};

#[cfg(not(feature = "std"))]
pub(crate) use without_threads::{Scope, Trace};

/// Whether `E` is itself the error of a policy that gave up.
#[inline]
pub(crate) fn is_given_up<E>() -> bool {
    // What is smaller cannot be one, which the compiler sees.
    size_of::<E>() >= size_of::<crate::Error<()>>() && has_our_name::<E>()
}

fn has_our_name<E>() -> bool {
    let ours = core::any::type_name::<crate::Error<()>>();
    let path = &ours[..=ours.find('<').expect("a generic type is shown with its arguments")];
    core::any::type_name::<E>().starts_with(path)
}

#[cfg(feature = "std")]
mod with_threads {
    use std::{
        cell::Cell,
        collections::BTreeSet,
        sync::{
            Mutex, PoisonError,
            atomic::{AtomicU64, Ordering},
        },
    };

    const NONE: u64 = 0;

    thread_local! {
        /// The number of the trace that was left last on this thread.
        static LAST: Cell<u64> = const { Cell::new(NONE) };
    }

    static NEXT: AtomicU64 = AtomicU64::new(NONE + 1);
    static ALIVE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

    /// What one attempt has heard from inner calls: the trace that was left last while it ran.
    #[derive(Debug)]
    pub(crate) struct Scope(u64);

    impl Scope {
        #[inline]
        pub(crate) const fn new() -> Scope {
            Scope(NONE)
        }

        #[inline]
        pub(crate) fn enter<R>(&mut self, run: impl FnOnce() -> R) -> R {
            let before = LAST.get();
            let result = run();
            let after = LAST.get();
            if after != before {
                self.0 = after;
            }
            result
        }

        /// Whether an inner call gave up and its error is still alive.
        #[inline]
        pub(crate) fn has_given_up(&self) -> bool {
            self.0 != NONE && is_alive(self.0)
        }
    }

    /// What stood in the thread-local before an attempt that runs on this thread from beginning to end.
    #[derive(Clone, Copy)]
    pub(crate) struct Mark(u64);

    impl Mark {
        #[inline]
        pub(crate) fn set() -> Mark {
            Mark(LAST.get())
        }

        /// Whether an inner call has given up since, and its error is still alive.
        #[inline]
        pub(crate) fn has_given_up(self) -> bool {
            let last = LAST.get();
            last != self.0 && is_alive(last)
        }
    }

    /// Lives in an error and tells, as long as it lives, that a call was given up.
    pub(crate) struct Trace(u64);

    impl Trace {
        pub(crate) fn leave() -> Trace {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let mut alive = alive();
            if alive.is_empty() {
                // Stays, so that the set need not be allocated anew for each error.
                alive.insert(NONE);
            }
            alive.insert(number);
            drop(alive);
            LAST.set(number);
            Trace(number)
        }
    }

    impl Drop for Trace {
        fn drop(&mut self) {
            alive().remove(&self.0);
        }
    }

    #[cold]
    fn is_alive(trace: u64) -> bool {
        alive().contains(&trace)
    }

    fn alive() -> std::sync::MutexGuard<'static, BTreeSet<u64>> {
        ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without threads there is no thread-local to leave a word in: only an error that *is* [`crate::Error`] is recognised.
#[cfg(not(feature = "std"))]
mod without_threads {
    #[derive(Debug)]
    pub(crate) struct Scope;

    impl Scope {
        pub(crate) const fn new() -> Scope {
            Scope
        }

        pub(crate) fn enter<R>(&mut self, run: impl FnOnce() -> R) -> R {
            run()
        }

        pub(crate) fn has_given_up(&self) -> bool {
            false
        }
    }

    pub(crate) struct Trace;

    impl Trace {
        pub(crate) fn leave() -> Trace {
            Trace
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_policy_is_known_by_its_type() {
        assert!(is_given_up::<crate::Error<&str>>());
        assert!(is_given_up::<crate::Error<crate::Error<u8>>>());
        assert!(!is_given_up::<&str>());
        assert!(!is_given_up::<crate::Failure<&str>>());
    }
}
