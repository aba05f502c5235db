//! An upstream of many processes, told of by a thread.

use super::{NoRuntime, wait};
use crate::{
    Error, ErrorKind, Key, Shared, Sharing, Store,
    race::race,
    shared::{Teller, started},
};
use relent::{Cancel, Upstream};
use std::{fmt, ops::Deref, pin::pin, sync::Arc, thread};

impl<E: NoRuntime> Store<E> {
    /// [`share`](Store::share) on a thread; another one tells what was counted.
    ///
    /// # Errors
    ///
    /// What the store says the first time it is asked.
    ///
    /// ```
    /// use relent::{Breaker, Policy, Upstream};
    /// use relent_store::{Key, Memory, Sharing, Store};
    ///
    /// let store = Store::new(Memory::new());
    /// let bank = Upstream::new("bank").breaker(Breaker::consecutive(5));
    /// let bank = store.share_blocking(&Key::new("bank")?, bank, Sharing::default())?;
    /// assert_eq!(Policy::default().on(bank.clone()).retry_blocking(|_| Ok::<_, String>(1)).unwrap(), 1);
    /// assert_eq!(bank.merge()?.calls, 1);
    /// # Ok::<_, relent_store::Error>(())
    /// ```
    pub fn share_blocking(&self, name: &Key, upstream: Upstream, sharing: Sharing) -> Result<BlockingShared<E>, Error> {
        let (upstream, teller) = wait(started(self, name, upstream, sharing))?;
        let over = Cancel::new();
        let thread = thread::Builder::new().name("relent-share".into()).spawn({
            let (teller, over) = (teller.clone(), over.clone());
            move || {
                wait(race(pin!(teller.run()), pin!(over.cancelled())));
            }
        });
        thread.map_err(|_| Error::new(ErrorKind::Unavailable, "no thread can be started"))?;
        Ok(BlockingShared { upstream, teller, over })
    }
}

/// An upstream that many processes share, without a runtime: as [`SharedUpstream`](crate::SharedUpstream). Made by
/// [`Store::share_blocking`].
pub struct BlockingShared<E: NoRuntime> {
    upstream: Arc<Upstream>,
    teller: Arc<Teller<E>>,
    over: Cancel,
}

impl<E: NoRuntime> BlockingShared<E> {
    /// Tells what was counted now, and not at the next interval; what all know then.
    ///
    /// # Errors
    ///
    /// What the store says; what was counted is told the next time.
    pub fn merge(&self) -> Result<Shared, Error> {
        wait(self.teller.tell(false))
    }

    /// What all were known to know at the last merge.
    pub fn known(&self) -> Shared {
        self.teller.known()
    }

    /// Tells the last, and that this process leaves.
    ///
    /// # Errors
    ///
    /// What the store says; then the last interval is not counted.
    pub fn leave(self) -> Result<Shared, Error> {
        self.over.cancel();
        self.teller.tells_the_last();
        wait(self.teller.tell(true))
    }
}

impl<E: NoRuntime> Deref for BlockingShared<E> {
    type Target = Arc<Upstream>;

    fn deref(&self) -> &Arc<Upstream> {
        &self.upstream
    }
}

impl<E: NoRuntime> fmt::Debug for BlockingShared<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingShared").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

impl<E: NoRuntime> Drop for BlockingShared<E> {
    fn drop(&mut self) {
        self.over.cancel();
        self.teller.leaves();
    }
}
