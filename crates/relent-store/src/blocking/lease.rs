//! A lease that is held by a thread.

use super::{NoRuntime, wait};
use crate::{
    Error, Fence, Kept, Key, LeaseError, Leasing, Notice, Store,
    lease::{Held, acquired, renew},
    race::race,
};
use relent::Cancel;
use std::{fmt, pin::pin, thread};

impl<E: NoRuntime> Leasing<E> {
    /// [`acquire`](Leasing::acquire) on a thread; another one renews it. On a thread of a runtime, this blocks it.
    ///
    /// # Errors
    ///
    /// [`LeaseError`].
    ///
    /// ```
    /// use relent_store::{Key, LeaseError, Memory, Store};
    ///
    /// let (store, nightly) = (Store::new(Memory::new()), Key::new("nightly").unwrap());
    /// let guard = store.lease(&nightly).acquire_blocking()?;
    /// assert!(matches!(store.lease(&nightly).acquire_blocking(), Err(LeaseError::Held { .. })));
    /// drop(guard);
    /// assert!(store.lease(&nightly).acquire_blocking().is_ok());
    /// # Ok::<_, LeaseError>(())
    /// ```
    pub fn acquire_blocking(self) -> Result<BlockingGuard<E>, LeaseError> {
        let (store, held) = wait(acquired(self))?;
        let over = Cancel::new();
        let thread = thread::Builder::new().name("relent-lease".into()).spawn({
            let (store, held, over) = (store.clone(), held.clone(), over.clone());
            move || {
                wait(race(pin!(renew(store, held)), pin!(over.cancelled())));
            }
        });
        let thread = match thread {
            Ok(thread) => Some(thread),
            Err(_) => {
                let _ = wait(held.release(&store));
                return Err(LeaseError::Store(Error::new(crate::ErrorKind::Unavailable, "no thread can be started")));
            }
        };
        Ok(BlockingGuard { store, held, over, thread })
    }
}

/// A lease that is held by a thread: [`Guard`](crate::Guard) without a runtime. Dropping it releases the lease before it returns, within
/// the store's deadline.
#[must_use = "a guard that is dropped releases the lease"]
pub struct BlockingGuard<E: NoRuntime> {
    store: Store<E>,
    held: Held,
    over: Cancel,
    /// What renews it; nothing once it is released.
    thread: Option<thread::JoinHandle<()>>,
}

impl<E: NoRuntime> BlockingGuard<E> {
    /// What is held.
    pub fn name(&self) -> &Key {
        self.held.name()
    }

    /// The fence: greater than that of every holder before. Give it to what the lease protects.
    pub fn fence(&self) -> Fence {
        self.held.fence()
    }

    /// A switch that is thrown when the lease is lost, a tenth of its time before it ends.
    pub fn lost(&self) -> &Cancel {
        self.held.lost()
    }

    /// Whether the lease is lost, by the switch or by the clock.
    pub fn is_lost(&self) -> bool {
        self.held.is_lost()
    }

    /// Lets go, and says whether it was still held.
    ///
    /// # Errors
    ///
    /// What the store says; then the lease ends by itself.
    pub fn release(mut self) -> Result<Kept, Error> {
        self.let_go()
    }

    fn let_go(&mut self) -> Result<Kept, Error> {
        let Some(thread) = self.thread.take() else { return Ok(Kept::Kept) };
        self.over.cancel();
        if thread.join().is_err() {
            self.store.tell(Notice::LeaseLost(self.held.name().to_string()));
        }
        wait(self.held.release(&self.store))
    }
}

impl<E: NoRuntime> fmt::Debug for BlockingGuard<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingGuard")
            .field("name", self.name())
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}

impl<E: NoRuntime> Drop for BlockingGuard<E> {
    fn drop(&mut self) {
        let _ = self.let_go();
    }
}
