//! The store as programs use it: an engine, and a policy for its own trouble.

use crate::{
    Abandon, About, Any, Begin, Claim, Clock, Delta, Engine, Error, ErrorKind, Held, Holder, Kept, Key, Kind, Listed,
    Nonce, Replaced, Scope, Shared, Started, Stored, Version, Versioned,
    gate::Gate,
    notice::{Notice, Notices},
    patience::{self, PATIENCE},
    race::yield_once,
};
use relent::Policy;
use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// How many bytes a value or a result may have, unless it is said otherwise: a mebibyte.
const DEFAULT_VALUE: usize = 1 << 20;

/// How many bytes a value or a result may have at most, whatever is said: 16 mebibytes. Engines read no more, so that what
/// is in a file or comes from a server takes no more memory than that.
pub const MAX_VALUE: usize = 16 << 20;

/// A store: state that outlives a process or is shared. A clone is the same store.
///
/// What fails for a moment (a server that restarts, a lock, a serialization failure) is tried again by a policy of the
/// store's own, within a deadline; what is left is an [`Error`]. While the store is away, all operations together ask it ten times a
/// second, and the others wait. Each is done once however often it is sent.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use relent_store::{Key, Scope, Store};
///
/// let store = Store::open("memory:").await?;
/// let (scope, key) = (Scope::new("payments")?, Key::new("order-7")?);
/// for _ in 0..3 {
///     let paid = store.once(&scope, &key).run(async |_| Ok::<_, String>("receipt 7")).await.unwrap();
///     assert_eq!(paid.bytes(), b"receipt 7");
/// }
/// # Ok::<_, relent_store::Error>(())
/// # }).unwrap();
/// ```
pub struct Store<E: Engine = Any> {
    inner: Arc<Inner<E>>,
}

struct Inner<E> {
    engine: E,
    settings: Settings,
    /// Who may ask it while it is away.
    gate: Gate,
    notices: Notices,
    is_away: AtomicBool,
    /// How many operations were answered.
    answered: AtomicU64,
    /// How many leaps of the clock were told of.
    leaps: AtomicU64,
}

#[derive(Clone, Copy)]
struct Settings {
    policy: Policy,
    max_value: usize,
}

impl<E: Engine> Clone for Store<E> {
    fn clone(&self) -> Store<E> {
        Store { inner: self.inner.clone() }
    }
}

impl<E: Engine> fmt::Debug for Store<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("policy", &self.inner.settings.policy).finish_non_exhaustive()
    }
}

impl Store {
    /// The store that a URL names: `memory:`, `sqlite:state.db`, `redis://host`, `rediss://host`, `postgres://user@host/db`,
    /// as far as this build has these engines. See [`Any::open`] for what may stand behind a `?`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a URL that makes no sense, [`ErrorKind::Unsupported`] for an engine that is not in this
    /// build; else what the engine says when it is opened. A server that does not answer is waited for, up to the deadline.
    pub async fn open(url: &str) -> Result<Store, Error> {
        Store::open_with(url, PATIENCE).await
    }

    /// [`open`](Store::open), with this [policy](Store::patience) for opening it and for every operation.
    ///
    /// # Errors
    ///
    /// As [`open`](Store::open).
    pub async fn open_with(url: &str, policy: Policy) -> Result<Store, Error> {
        let engine = patience::ask(&policy, &Gate::default(), || Any::open(url)).await?;
        Ok(Store::built(engine, Settings { policy, max_value: DEFAULT_VALUE }))
    }
}

impl<E: Engine> Store<E> {
    /// A store on this engine.
    pub fn new(engine: E) -> Store<E> {
        Store::built(engine, Settings { policy: PATIENCE, max_value: DEFAULT_VALUE })
    }

    fn built(engine: E, settings: Settings) -> Store<E> {
        let inner = Inner {
            engine,
            settings,
            gate: Gate::default(),
            notices: Notices::default(),
            is_away: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            leaps: AtomicU64::new(0),
        };
        Store { inner: Arc::new(inner) }
    }

    /// The same engine, with this policy for its trouble. Give it a [`timeout`](Policy::timeout): that is the deadline of
    /// each operation. By default it is ten seconds, an attempt three.
    ///
    /// ```
    /// use relent::Policy;
    /// use relent_store::{Memory, Store};
    /// use std::time::Duration;
    ///
    /// let hasty = Policy::constant(Duration::from_millis(10)).timeout(Duration::from_millis(200));
    /// let store = Store::new(Memory::new()).patience(hasty);
    /// ```
    #[must_use]
    pub fn patience(self, policy: Policy) -> Store<E>
    where
        E: Clone,
    {
        let settings = Settings { policy, ..self.inner.settings };
        Store::built(self.inner.engine.clone(), settings)
    }

    /// The same engine, with values and results of up to so many bytes; a mebibyte unless told, and [`MAX_VALUE`] at
    /// most.
    #[must_use]
    pub fn max_value(self, bytes: usize) -> Store<E>
    where
        E: Clone,
    {
        let settings = Settings { max_value: bytes.min(MAX_VALUE), ..self.inner.settings };
        Store::built(self.inner.engine.clone(), settings)
    }

    /// The engine, for operations without the store's patience.
    pub fn engine(&self) -> &E {
        &self.inner.engine
    }

    /// Calls `listener` for what an operator should know: the store went away or came back, somebody was fenced, a lease
    /// was lost. Each is told once, not once a call. A panic of a listener ends nothing but itself.
    ///
    /// ```
    /// # let store = relent_store::Store::new(relent_store::Memory::new());
    /// store.listen(|notice| eprintln!("store: {notice}"));
    /// ```
    pub fn listen(&self, listener: impl Fn(&Notice) + Send + Sync + 'static) {
        self.inner.notices.listen(Arc::new(listener));
    }

    pub(crate) fn tell(&self, notice: Notice) {
        self.inner.notices.tell(&notice);
    }

    /// How often somebody who came with an old fence was refused, since this store was opened: `relent_fenced_total`.
    pub fn fenced(&self) -> u64 {
        self.inner.notices.fenced()
    }

    /// Runs `op` until it succeeds, by the store's policy.
    pub(crate) async fn ask<T, F, Fut>(&self, op: F) -> Result<T, Error>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let inner = &*self.inner;
        let answered = inner.answered.load(Ordering::Relaxed);
        let answer = patience::ask(&inner.settings.policy, &inner.gate, op).await;
        let (leaps, by) = inner.engine.clock().map(Clock::leaps).unwrap_or_default();
        if leaps > inner.leaps.load(Ordering::Relaxed) && inner.leaps.fetch_max(leaps, Ordering::Relaxed) < leaps {
            self.tell(Notice::ClockLeapt(by));
        }
        match &answer {
            Ok(_) => {
                inner.answered.fetch_add(1, Ordering::Relaxed);
                if inner.is_away.load(Ordering::Relaxed) && inner.is_away.swap(false, Ordering::Relaxed) {
                    self.tell(Notice::Back);
                }
            }
            Err(error) => {
                // While others are answered it is not away, however long this one waited before.
                let is_silent = inner.answered.load(Ordering::Relaxed) == answered;
                if error.is_transient() && is_silent && !inner.is_away.swap(true, Ordering::Relaxed) {
                    self.tell(Notice::Away(error.clone()));
                }
            }
        }
        answer
    }

    pub(crate) fn check_size(&self, bytes: &[u8]) -> Result<(), Error> {
        let most = self.inner.settings.max_value;
        if bytes.len() <= most {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Invalid, format!("the value has {} bytes, which is more than {most}", bytes.len()))
            .hint("keep large things elsewhere and their name here, or raise `Store::max_value`"))
    }

    /// [`Engine::begin`], with the store's patience.
    ///
    /// # Errors
    ///
    /// What the engine says when it cannot; so for all operations.
    pub async fn begin(&self, begin: &Begin) -> Result<Started, Error> {
        self.ask(|| self.engine().begin(begin)).await
    }

    /// [`Engine::complete`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if the result is larger than [`max_value`](Store::max_value).
    pub async fn complete(&self, claim: &Claim, stored: &Stored, keep: Duration) -> Result<Kept, Error> {
        self.check_size(stored.bytes())?;
        let kept = self.ask(|| self.engine().complete(claim, stored, keep)).await?;
        Ok(self.counted(kept))
    }

    /// [`Engine::abandon`].
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub async fn abandon(&self, claim: &Claim, why: Abandon) -> Result<Kept, Error> {
        let kept = self.ask(|| self.engine().abandon(claim, why)).await?;
        // A record that was forgotten is not there when the question is repeated: no reason to count.
        Ok(kept)
    }

    /// [`Engine::extend`].
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Kept, Error> {
        self.ask(|| self.engine().extend(claim, lease)).await
    }

    pub(crate) fn counted(&self, kept: Kept) -> Kept {
        if kept == Kept::Fenced {
            self.tell(Notice::Fenced);
        }
        kept
    }

    /// Who holds a lease.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub async fn holder(&self, name: &Key) -> Result<Option<Holder>, Error> {
        self.ask(|| self.engine().holder(name)).await
    }

    /// A value and its version.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub async fn read(&self, key: &Key) -> Result<Versioned, Error> {
        self.ask(|| self.engine().read(key)).await
    }

    /// Replaces a value that is still at `version`, or removes it; see [`update`](Store::update) for the loop around it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if the value is larger than [`max_value`](Store::max_value). [`ErrorKind::Contended`], and
    /// [it may have happened](Error::may_have_happened), if an answer was lost and somebody else has changed the value by the time it was
    /// asked for again: what was there in between nobody knows.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use relent_store::{Key, Memory, Replaced, Store, Version};
    ///
    /// let (store, key) = (Store::new(Memory::new()), Key::new("stock").unwrap());
    /// let Replaced::Replaced(first) = store.replace(&key, Version::ABSENT, Some(b"3")).await? else { panic!() };
    /// assert!(matches!(store.replace(&key, first, Some(b"2")).await?, Replaced::Replaced(_)));
    /// assert!(matches!(store.replace(&key, first, Some(b"1")).await?, Replaced::Conflict(_)));
    /// # Ok::<_, relent_store::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn replace(&self, key: &Key, version: Version, value: Option<&[u8]>) -> Result<Replaced, Error> {
        self.check_size(value.unwrap_or_default())?;
        let nonce = Nonce::random();
        // Whether an attempt before may have done it: one that was given up, too.
        let is_unsure = AtomicBool::new(false);
        let replace = || async {
            let was_unsure = is_unsure.swap(true, Ordering::Relaxed);
            let answer = self.engine().replace(key, version, value, nonce).await;
            let may_have = answer.as_ref().is_err_and(Error::may_have_happened);
            is_unsure.store(was_unsure || may_have, Ordering::Relaxed);
            answer
        };
        match self.ask(replace).await? {
            Replaced::Conflict(_) if is_unsure.into_inner() => Err(Error::new(
                ErrorKind::Contended,
                "an answer was lost, and somebody else has changed the value since: whether it was changed is not known",
            )
            .maybe_happened()),
            replaced => Ok(replaced),
        }
    }

    /// Whether a key is seen for the first time within `keep`. For effects that are in the engine's own database, do it in
    /// their transaction: `in_sqlite::first_time`, `in_postgres::first_time`.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub async fn first_time(&self, scope: &Scope, key: &Key, keep: Duration) -> Result<bool, Error> {
        let nonce = Nonce::random();
        self.ask(|| self.engine().first_time(scope, key, keep, nonce)).await
    }

    /// [`Engine::merge`], with the store's patience.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub async fn merge(&self, delta: &Delta) -> Result<Shared, Error> {
        self.ask(|| self.engine().merge(delta)).await
    }

    /// Holds an upstream's breaker by hand for all processes, or lets it go (`None`).
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub async fn hold(&self, upstream: &Key, held: Option<Held>) -> Result<(), Error> {
        self.ask(|| self.engine().hold(upstream, held)).await
    }

    /// Removes all that has expired, in batches of `batch` with other work between them. How many things it were.
    ///
    /// # Errors
    ///
    /// What the engine says; what was removed until then stays so.
    pub async fn purge(&self, batch: u32) -> Result<u64, Error> {
        let mut sum = 0;
        loop {
            let gone = self.ask(|| self.engine().purge(batch.max(1))).await?;
            sum += gone;
            if gone == 0 {
                return Ok(sum);
            }
            yield_once().await;
        }
    }

    /// What there is, at most `most` of it, without the values.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub async fn list(&self, kind: Kind, most: u32) -> Result<Vec<Listed>, Error> {
        self.ask(|| self.engine().list(kind, most)).await
    }

    /// What the engine promises with its present settings.
    ///
    /// # Errors
    ///
    /// What the engine says.
    pub async fn about(&self) -> Result<About, Error> {
        self.ask(|| self.engine().about()).await
    }
}

/// What no engine would read again is not written by other ways than the store's either.
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
pub(crate) fn check_most(bytes: &[u8]) -> Result<(), Error> {
    if bytes.len() <= MAX_VALUE {
        return Ok(());
    }
    let what = format!("the value has {} bytes, which is more than {MAX_VALUE}", bytes.len());
    Err(Error::new(ErrorKind::Invalid, what).hint("keep large things elsewhere and their name here"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;
    use std::sync::Mutex;

    #[tokio::test]
    async fn a_clock_that_leaps_forward_is_told_of_once() {
        let (clock, told) = (Clock::system(), Arc::new(Mutex::new(Vec::new())));
        let store = Store::new(Memory::on(clock.clone()));
        let listener = told.clone();
        store.listen(move |notice| listener.lock().unwrap().push(notice.clone()));
        let key = Key::new("k").unwrap();
        store.read(&key).await.unwrap();
        assert!(told.lock().unwrap().is_empty());
        clock.leap(Duration::from_secs(3600));
        for _ in 0..3 {
            store.read(&key).await.unwrap();
        }
        let told = std::mem::take(&mut *told.lock().unwrap());
        let [Notice::ClockLeapt(by)] = &told[..] else { panic!("{told:?}") };
        assert!(by.abs_diff(Duration::from_secs(3600)) < Duration::from_secs(10), "{by:?}");
        assert!(told[0].to_string().starts_with("the machine's clock leapt forward by"), "{}", told[0]);
    }
}
