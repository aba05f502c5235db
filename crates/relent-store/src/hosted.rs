//! An engine on a runtime of its own.

use crate::{
    Abandon, About, Acquired, Any, Begin, Claim, Delta, Engine, Error, ErrorKind, Held, Holder, Holding, Kept, Key,
    Kind, Lease, Listed, NoRuntime, Nonce, Renewed, Replaced, Scope, Shared, Started, Store, Stored, Version,
    Versioned,
};
use std::{fmt, future::Future, sync::Arc, thread, time::Duration};
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::JoinHandle,
};

/// An engine whose operations run on a thread with a runtime of its own, so that programs without one can use Redis and Postgres,
/// too. A clone is the same engine; the thread ends with the last.
///
/// ```
/// use relent_store::{Hosted, Key, Replaced, Store, Version};
///
/// # let url = "memory:";
/// let store = Store::open_hosted(url)?; // "redis://..", "postgres://.."
/// let key = Key::new("stock")?;
/// assert!(matches!(store.blocking().replace(&key, Version::ABSENT, Some(b"3"))?, Replaced::Replaced(_)));
/// let lease = store.lease(&Key::new("nightly")?).acquire_blocking().unwrap();
/// assert!(!lease.is_lost());
/// # Ok::<_, relent_store::Error>(())
/// ```
pub struct Hosted<E: Engine + Clone = Any> {
    engine: E,
    host: Arc<Host>,
}

struct Host {
    runtime: Handle,
    /// Dropped, it ends the thread.
    _is_needed: oneshot::Sender<()>,
}

impl Host {
    fn start() -> Result<Host, Error> {
        let cannot = |_| Error::new(ErrorKind::Unavailable, "no thread can be started");
        let runtime = Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let (handle, (_is_needed, over)) = (runtime.handle().clone(), oneshot::channel::<()>());
        let run = move || drop(runtime.block_on(over));
        thread::Builder::new().name("relent-store-host".into()).spawn(run).map_err(cannot)?;
        Ok(Host { runtime: handle, _is_needed })
    }

    /// Runs it there. What is dropped here ends there.
    async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T, Error> {
        let mut work = Ended(self.runtime.spawn(work));
        (&mut work.0).await.map_err(|_| Error::new(ErrorKind::Unavailable, "the store was closed").maybe_happened())
    }
}

/// Work that ends when nobody waits for it.
struct Ended<T>(JoinHandle<T>);

impl<T> Drop for Ended<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<E: Engine + Clone> Clone for Hosted<E> {
    fn clone(&self) -> Hosted<E> {
        Hosted { engine: self.engine.clone(), host: self.host.clone() }
    }
}

impl<E: Engine + Clone + fmt::Debug> fmt::Debug for Hosted<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hosted").field(&self.engine).finish()
    }
}

impl<E: Engine + Clone> Hosted<E> {
    /// What `open` opens, on a runtime of its own; `open` runs there, too.
    ///
    /// # Errors
    ///
    /// Those of `open`, and [`ErrorKind::Unavailable`] where no thread can be started.
    ///
    /// ```
    /// use relent_store::{Hosted, Memory};
    ///
    /// let engine = Hosted::open(async { Ok(Memory::new()) })?;
    /// # drop(engine);
    /// # Ok::<_, relent_store::Error>(())
    /// ```
    pub fn open(open: impl Future<Output = Result<E, Error>> + Send + 'static) -> Result<Hosted<E>, Error> {
        let host = Host::start()?;
        let engine = crate::blocking::wait(host.run(open))??;
        Ok(Hosted { engine, host: Arc::new(host) })
    }

    /// Runs an operation there.
    async fn there<T, Fut>(&self, op: impl FnOnce(E) -> Fut + Send + 'static) -> Result<T, Error>
    where
        T: Send + 'static,
        Fut: Future<Output = Result<T, Error>> + Send,
    {
        let engine = self.engine.clone();
        self.host.run(async move { op(engine).await }).await.flatten()
    }
}

impl<E: Engine + Clone> NoRuntime for Hosted<E> {}

impl Store<Hosted> {
    /// The store that a URL names, on a thread with a runtime of its own: for programs that have none. Its blocking forms work for
    /// every engine.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn open_hosted(url: &str) -> Result<Store<Hosted>, Error> {
        let url = url.to_owned();
        // Opened with the patience of a store; the engine alone is hosted.
        let engine = Hosted::open(async move { Store::open(&url).await.map(|store| store.engine().clone()) })?;
        Ok(Store::new(engine))
    }
}

impl<E: Engine + Clone> Engine for Hosted<E> {
    async fn begin(&self, begin: &Begin) -> Result<Started, Error> {
        let begin = begin.clone();
        self.there(|engine| async move { engine.begin(&begin).await }).await
    }

    async fn complete(&self, claim: &Claim, stored: &Stored, keep: Duration) -> Result<Kept, Error> {
        let (claim, stored) = (claim.clone(), stored.clone());
        self.there(move |engine| async move { engine.complete(&claim, &stored, keep).await }).await
    }

    async fn abandon(&self, claim: &Claim, why: Abandon) -> Result<Kept, Error> {
        let claim = claim.clone();
        self.there(move |engine| async move { engine.abandon(&claim, why).await }).await
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Kept, Error> {
        let claim = claim.clone();
        self.there(move |engine| async move { engine.extend(&claim, lease).await }).await
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, Error> {
        let lease = lease.clone();
        self.there(|engine| async move { engine.acquire(&lease).await }).await
    }

    async fn renew(&self, holding: &Holding, ttl: Duration) -> Result<Renewed, Error> {
        let holding = holding.clone();
        self.there(move |engine| async move { engine.renew(&holding, ttl).await }).await
    }

    async fn release(&self, holding: &Holding) -> Result<Kept, Error> {
        let holding = holding.clone();
        self.there(|engine| async move { engine.release(&holding).await }).await
    }

    async fn holder(&self, name: &Key) -> Result<Option<Holder>, Error> {
        let name = name.clone();
        self.there(|engine| async move { engine.holder(&name).await }).await
    }

    async fn read(&self, key: &Key) -> Result<Versioned, Error> {
        let key = key.clone();
        self.there(|engine| async move { engine.read(&key).await }).await
    }

    async fn replace(
        &self,
        key: &Key,
        version: Version,
        value: Option<&[u8]>,
        nonce: Nonce,
    ) -> Result<Replaced, Error> {
        let (key, value) = (key.clone(), value.map(<[u8]>::to_vec));
        self.there(move |engine| async move { engine.replace(&key, version, value.as_deref(), nonce).await }).await
    }

    async fn first_time(&self, scope: &Scope, key: &Key, keep: Duration, nonce: Nonce) -> Result<bool, Error> {
        let (scope, key) = (scope.clone(), key.clone());
        self.there(move |engine| async move { engine.first_time(&scope, &key, keep, nonce).await }).await
    }

    async fn merge(&self, delta: &Delta) -> Result<Shared, Error> {
        let delta = delta.clone();
        self.there(|engine| async move { engine.merge(&delta).await }).await
    }

    async fn hold(&self, upstream: &Key, held: Option<Held>) -> Result<(), Error> {
        let upstream = upstream.clone();
        self.there(move |engine| async move { engine.hold(&upstream, held).await }).await
    }

    async fn purge(&self, most: u32) -> Result<u64, Error> {
        self.there(move |engine| async move { engine.purge(most).await }).await
    }

    async fn list(&self, kind: Kind, most: u32) -> Result<Vec<Listed>, Error> {
        self.there(move |engine| async move { engine.list(kind, most).await }).await
    }

    async fn about(&self) -> Result<About, Error> {
        self.there(|engine| async move { engine.about().await }).await
    }

    async fn freed(&self, name: &Key, most: Duration) {
        let (name, engine) = (name.clone(), self.engine.clone());
        // Where it cannot be heard of, whoever waits asks again.
        let _ = self.host.run(async move { engine.freed(&name, most).await }).await;
    }
}
