//! Policies inside policies: what an inner one gave up on, an outer one does not retry.
//!
//! Three layers of four attempts each would otherwise make 64. The outer policy has to notice whatever the inner error
//! was wrapped in on its way up (`anyhow`, a `Box`, a variant of the caller's enum), and must not be deceived by an
//! inner failure that the operation recovered from. So it asks two things when an attempt has failed: did an inner call
//! give up while this attempt ran, and is the error that it left still alive? An error that was handled is dropped; one
//! that travels up lives inside the outer error, where its [`Trace`] tells of it.
//!
//! Success costs two thread-local writes. A trace is registered only where an outer attempt is running.

#[cfg(feature = "std")]
pub(crate) use with_threads::{Scope, Trace};

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

    /// No attempt is running on this thread.
    const OUTSIDE: u64 = 0;
    /// An attempt is running, and nothing inside it has given up.
    const QUIET: u64 = 1;

    thread_local! {
        /// `OUTSIDE`, `QUIET`, or the number of the trace that the last inner call to give up has left.
        static SLOT: Cell<u64> = const { Cell::new(OUTSIDE) };
    }

    static NEXT: AtomicU64 = AtomicU64::new(QUIET + 1);
    static ALIVE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

    /// What one attempt has heard from inner calls. Entered while the attempt runs, for a future at each poll.
    #[derive(Debug)]
    pub(crate) struct Scope(u64);

    impl Scope {
        #[inline]
        pub(crate) const fn new() -> Scope {
            Scope(QUIET)
        }

        #[inline]
        pub(crate) fn enter<R>(&mut self, run: impl FnOnce() -> R) -> R {
            let inside = Inside { outer: SLOT.replace(self.0), scope: self };
            let result = run();
            drop(inside);
            result
        }

        /// Whether an inner call gave up and its error is still alive.
        pub(crate) fn has_given_up(&self) -> bool {
            self.0 > QUIET && alive().contains(&self.0)
        }
    }

    /// Puts the outer slot back, even if the operation panics.
    struct Inside<'a> {
        outer: u64,
        scope: &'a mut Scope,
    }

    impl Drop for Inside<'_> {
        #[inline]
        fn drop(&mut self) {
            self.scope.0 = SLOT.replace(self.outer);
        }
    }

    /// Lives in an error and tells, as long as it lives, that a call was given up.
    pub(crate) struct Trace(u64);

    impl Trace {
        /// Leaves a trace if an attempt of an outer call is running here.
        pub(crate) fn leave() -> Trace {
            if SLOT.get() == OUTSIDE {
                return Trace(OUTSIDE);
            }
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            alive().insert(number);
            SLOT.set(number);
            Trace(number)
        }
    }

    impl Drop for Trace {
        fn drop(&mut self) {
            if self.0 != OUTSIDE {
                alive().remove(&self.0);
            }
        }
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
