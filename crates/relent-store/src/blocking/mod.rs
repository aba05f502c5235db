//! The same on a thread, without a runtime of the caller's.

mod lease;
mod share;

pub use self::{lease::BlockingGuard, share::BlockingShared};

use crate::{
    Done, Effect, Engine, Error, Kept, Key, Memory, Once, OnceError, Replaced, Scope, Store, Stored, Version, Versioned,
};
use relent::Cancel;
use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

/// An engine whose operations need no runtime: memory and SQLite, and any other that is [`Hosted`](crate::Hosted).
pub trait NoRuntime: Engine {}

impl NoRuntime for Memory {}

#[cfg(feature = "sqlite")]
impl NoRuntime for crate::in_sqlite::Sqlite {}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    let (mut future, waker) = (pin!(future), Waker::from(Arc::new(Unpark(thread::current()))));
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return answer;
        }
        thread::park();
    }
}

/// A store on a thread: see [`Store::blocking`].
#[derive(Clone, Debug)]
pub struct Blocking<E: Engine>(Store<E>);

impl<E: NoRuntime> Store<E> {
    /// The same store, for threads without a runtime. On a thread of a runtime, these block it.
    ///
    /// ```
    /// use relent_store::{Key, Memory, Replaced, Store, Version};
    ///
    /// let (store, key) = (Store::new(Memory::new()).blocking(), Key::new("stock")?);
    /// let Replaced::Replaced(version) = store.replace(&key, Version::ABSENT, Some(b"3"))? else { panic!() };
    /// assert_eq!(store.read(&key)?.version, version);
    /// # Ok::<_, relent_store::Error>(())
    /// ```
    pub fn blocking(&self) -> Blocking<E> {
        Blocking(self.clone())
    }
}

impl<E: NoRuntime> Blocking<E> {
    /// [`Store::read`].
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn read(&self, key: &Key) -> Result<Versioned, Error> {
        wait(self.0.read(key))
    }

    /// [`Store::replace`].
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn replace(&self, key: &Key, version: Version, value: Option<&[u8]>) -> Result<Replaced, Error> {
        wait(self.0.replace(key, version, value))
    }

    /// [`Store::update`].
    ///
    /// # Errors
    ///
    /// As [`Store::update`].
    pub fn update<X>(
        &self,
        key: &Key,
        policy: relent::Policy,
        change: impl FnMut(Option<&[u8]>) -> Result<Vec<u8>, X>,
    ) -> Result<Versioned, crate::UpdateError<X>> {
        wait(self.0.update(key, policy, change))
    }

    /// [`Store::first_time`].
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn first_time(&self, scope: &Scope, key: &Key, keep: Duration) -> Result<bool, Error> {
        wait(self.0.first_time(scope, key, keep))
    }

    /// [`Store::purge`].
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub fn purge(&self, batch: u32) -> Result<u64, Error> {
        wait(self.0.purge(batch))
    }
}

impl<E: NoRuntime> Once<'_, E> {
    /// [`run`](Once::run) on a thread; another gives the signs of life. An operation that runs when the claim is lost runs to its
    /// end, and is not tried again.
    ///
    /// # Errors
    ///
    /// [`OnceError`].
    ///
    /// ```
    /// use relent_store::{Key, Memory, Scope, Store};
    ///
    /// let (store, scope, key) = (Store::new(Memory::new()), Scope::new("pay")?, Key::new("7")?);
    /// for turn in 0..3 {
    ///     let done = store.once(&scope, &key).run_blocking(|_| Ok::<_, String>("receipt")).unwrap();
    ///     assert_eq!(done.is_replayed, turn > 0);
    /// }
    /// # Ok::<_, relent_store::Error>(())
    /// ```
    pub fn run_blocking<V, X>(self, mut op: impl FnMut(Effect) -> Result<V, X>) -> Result<Done, OnceError<X>>
    where
        V: Into<Stored>,
    {
        let (claim, unknown) = match wait(self.claim())? {
            crate::once::Claimed::Done(done) => return Ok(done),
            crate::once::Claimed::Ours { claim, unknown } => (claim, unknown),
        };
        let (fence, over, lost) = (claim.fence, Cancel::new(), Cancel::new());
        let outcome = thread::scope(|scope| {
            scope.spawn(|| {
                while !over.wait(self.lease_time() / 3) {
                    if let Ok(Kept::Fenced) = wait(self.store().extend(&claim, self.lease_time())) {
                        return lost.cancel();
                    }
                }
            });
            // Also when the operation panics, or else the other thread would never end.
            struct Ends<'a>(&'a Cancel);
            impl Drop for Ends<'_> {
                fn drop(&mut self) {
                    self.0.cancel();
                }
            }
            let _ends = Ends(&over);
            let retrier = self.retry_policy().cancel(&lost);
            retrier.retry_blocking(|attempt| op(Effect { attempt, fence, unknown }))
        });
        match outcome {
            Ok(value) => wait(self.keep_result(&claim, value.into())),
            Err(_) if lost.is_cancelled() => {
                let _ = self.store().counted(Kept::Fenced);
                Err(OnceError::Fenced(None))
            }
            Err(err) => Err(wait(self.failed(&claim, unknown.is_some(), err))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn names() -> (Scope, Key) {
        (Scope::new("pay").unwrap(), Key::new("7").unwrap())
    }

    #[test]
    fn of_many_threads_one_acts() {
        let (store, (scope, key), count) = (Store::new(Memory::new()), names(), AtomicU32::new(0));
        let waits = relent::Policy::constant(Duration::from_millis(2)).unlimited_attempts();
        thread::scope(|threads| {
            for _ in 0..16 {
                threads.spawn(|| {
                    let once = store.once(&scope, &key).wait(waits);
                    once.run_blocking(|_| Ok::<_, String>(count.fetch_add(1, Ordering::SeqCst).to_string())).unwrap()
                });
            }
        });
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_long_operation_keeps_its_claim() {
        let (store, (scope, key)) = (Store::new(Memory::new()), names());
        let slow = store.once(&scope, &key).lease(Duration::from_millis(150));
        let done = slow.run_blocking(|_| {
            thread::sleep(Duration::from_millis(600));
            let other = store.once(&scope, &key).rerun().run_blocking(|_| Ok::<_, String>("twice"));
            assert!(matches!(other, Err(OnceError::Busy { .. })), "{other:?}");
            Ok::<_, String>("once")
        });
        assert_eq!(done.unwrap().bytes(), b"once");
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn threads_without_a_runtime_use_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(crate::in_sqlite::Sqlite::open(folder.path().join("state.db")).unwrap()).blocking();
        let (_, key) = names();
        let policy =
            relent::Policy::exponential(Duration::from_millis(1)).cap(Duration::from_millis(20)).unlimited_attempts();
        thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    let add = |value: Option<&[u8]>| Ok::<_, String>(vec![value.map_or(0, |value| value[0]) + 1]);
                    (0..5).for_each(|_| drop(store.update(&key, policy, add).unwrap()));
                });
            }
        });
        assert_eq!(store.read(&key).unwrap().value.as_deref(), Some(&[40][..]));
    }
}
