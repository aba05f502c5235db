//! Something that happens once: an idempotency record and a retry policy as one.

use crate::{
    Abandon, Begin, Claim, Engine, Error, Fence, Fingerprint, Kept, Key, Nonce, OnUnknown, Scope, Started, Store,
    Stored, Time,
    race::{Either, race},
};
use relent::{Attempt, Policy, SystemTimer, Timer};
use std::{fmt, future::Future, pin::pin, time::Duration};

/// Something to be done once for a key, however often and by however many processes it is asked for.
///
/// Made by [`Store::once`]. The first to come does it; who comes later gets what came of it; who comes meanwhile is told
/// that it is [busy](OnceError::Busy), or [waits](Once::wait). Where the process died in the middle, nobody knows whether it
/// happened: that is [`OnceError::Unknown`], unless it may be [run again](Once::rerun) or can be
/// [looked up](Once::reconcile).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use relent::Policy;
/// use relent_store::{Fingerprint, Key, Memory, OnceError, Scope, Store};
///
/// let store = Store::new(Memory::new());
/// let (scope, key) = (Scope::of(["bank", "pay"])?, Key::new("order-7")?);
/// let pay = |cents: &'static str| {
///     let once = store.once(&scope, &key).fingerprint(Fingerprint::of([cents])).retry(Policy::immediate());
///     once.run(async |effect| if effect.attempt.number() < 3 { Err("busy") } else { Ok("receipt 7") })
/// };
/// assert!(!pay("100").await.unwrap().is_replayed);
/// assert!(pay("100").await.unwrap().is_replayed);
/// assert!(matches!(pay("200").await, Err(OnceError::Mismatch)));
/// # Ok::<_, relent_store::Error>(())
/// # }).unwrap();
/// ```
#[must_use = "nothing is done until it is run"]
pub struct Once<'a, E: Engine> {
    store: &'a Store<E>,
    begin: Begin,
    retry: Policy,
    wait: Option<Policy>,
    on_failure: Option<Abandon>,
}

/// One attempt at an effect, as the operation sees it.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// Which attempt it is.
    pub attempt: Attempt,
    /// The fence of the claim: a far side that remembers the greatest it saw can refuse who comes late.
    pub fence: Fence,
    /// Since when it has been unknown whether an earlier run happened.
    pub unknown: Option<Time>,
}

/// It has been done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// What came of it.
    pub stored: Stored,
    /// Whether it was done before, and not now.
    pub is_replayed: bool,
}

impl Done {
    /// The bytes of what came of it.
    pub fn bytes(&self) -> &[u8] {
        self.stored.bytes()
    }
}

/// Why something was not done, or nobody knows whether it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum OnceError<X> {
    /// The effect failed, and is as if never asked; or, where its last attempt was dropped at its timeout, unknown.
    Failed(relent::Error<X>),
    /// Somebody else is at it.
    Busy {
        /// Until that claim ends, if nothing is heard of it.
        retry_after: Duration,
    },
    /// The key was used for another request.
    Mismatch,
    /// Somebody was at it and went silent: it may have happened.
    Unknown {
        /// When that claim began.
        since: Time,
    },
    /// It was done, but the claim had passed to somebody else meanwhile, who may have done it, too. Or the claim passed while
    /// it was being done (`None`).
    Fenced(Option<Stored>),
    /// It was done, and the store could not be told. The next to ask is told that it is unknown.
    NotKept {
        /// What came of it.
        stored: Stored,
        /// Why the store could not be told.
        error: Error,
    },
    /// It was not done, because the store could not be asked.
    Store(Error),
}

impl<X: fmt::Display> fmt::Display for OnceError<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnceError::Failed(err) => err.fmt(f),
            OnceError::Busy { retry_after } => {
                write!(f, "somebody else is at it, for {} at most", relent::duration::Human(*retry_after))
            }
            OnceError::Mismatch => f.write_str("the key was used for another request"),
            OnceError::Unknown { since } => write!(f, "it was begun at {since}, and may have happened"),
            OnceError::Fenced(_) => f.write_str("the claim passed to somebody else meanwhile"),
            OnceError::NotKept { error, .. } => write!(f, "it was done, but could not be recorded: {error}"),
            OnceError::Store(error) => error.fmt(f),
        }
    }
}

impl<X: fmt::Debug + fmt::Display> std::error::Error for OnceError<X> {}

impl<E: Engine> Store<E> {
    /// Something to be done once, whoever asks and however often: see [`Once`].
    pub fn once<'a>(&'a self, scope: &'a Scope, key: &'a Key) -> Once<'a, E> {
        Once::new(self, scope, key)
    }
}

impl<'a, E: Engine> Once<'a, E> {
    fn new(store: &'a Store<E>, scope: &Scope, key: &Key) -> Once<'a, E> {
        let begin = Begin {
            scope: scope.clone(),
            key: key.clone(),
            fingerprint: Fingerprint::NONE,
            nonce: Nonce::random(),
            lease: Duration::from_secs(60),
            keep: Duration::from_secs(24 * 3600),
            on_unknown: OnUnknown::Tell,
        };
        Once { store, begin, retry: Policy::immediate().max_attempts(1), wait: None, on_failure: None }
    }

    /// What the request is: the same key with another fingerprint is a [`OnceError::Mismatch`]. Not compared by default.
    pub fn fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.begin.fingerprint = fingerprint;
        self
    }

    /// How long after the last sign of life a claim is unknown: a minute by default. Whoever is at it gives a sign three
    /// times in that time.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.begin.lease = lease.max(Duration::from_millis(1));
        self
    }

    /// For how long it is remembered: a day by default.
    pub fn keep(mut self, keep: Duration) -> Self {
        self.begin.keep = keep;
        self
    }

    /// By which policy a failed effect is tried again. That says that it may be: because its far side knows the key, or
    /// because it did not happen when it fails. By default there is one attempt.
    pub fn retry(mut self, policy: Policy) -> Self {
        self.retry = policy;
        self
    }

    /// Waits by this policy while somebody else is at it, instead of failing at once.
    pub fn wait(mut self, policy: Policy) -> Self {
        self.wait = Some(policy);
        self
    }

    /// Runs it again where nobody knows whether it happened: for effects that do no harm twice, or that look first ([`Effect::unknown`]). If it
    /// fails then, it stays unknown whether the earlier run happened.
    pub fn rerun(mut self) -> Self {
        self.begin.on_unknown = OnUnknown::TakeOver;
        self
    }

    /// What an effect that failed for good leaves: nothing ([`Abandon::Forget`]), or doubt ([`Abandon::Unknown`]), which it leaves in any case where
    /// there was doubt before that nobody has [looked into](Once::reconcile). By
    /// default nothing, but doubt where its last attempt was dropped at its timeout. What should be replayed as a failure is
    /// returned as [`Stored::failure`].
    pub fn on_failure(mut self, leaves: Abandon) -> Self {
        self.on_failure = Some(leaves);
        self
    }

    /// Where nobody knows whether it happened, `look` finds out: `Some` is what came of it, `None` that it did not happen,
    /// and it is run.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
    /// use relent_store::{Abandon, Key, Memory, Scope, Store};
    ///
    /// let store = Store::new(Memory::new());
    /// let (scope, key) = (Scope::new("pay")?, Key::new("7")?);
    /// let lost = store.once(&scope, &key).on_failure(Abandon::Unknown).run(async |_| Err::<&str, _>("connection lost"));
    /// lost.await.unwrap_err();
    /// let look = async |_since| Ok::<_, String>(Some("receipt that was there"));
    /// let done = store.once(&scope, &key).reconcile(look).run(async |_| Ok::<_, String>("second")).await.unwrap();
    /// assert_eq!(done.bytes(), b"receipt that was there");
    /// # Ok::<_, relent_store::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn reconcile<L>(mut self, look: L) -> Reconciled<'a, E, L> {
        self.begin.on_unknown = OnUnknown::TakeOver;
        Reconciled { once: self, look }
    }

    /// Does it, if it has not been done.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped while it begins or while the effect runs leaves the claim to end by itself: others are told that
    /// somebody is at it until its lease ends, and then that the outcome is unknown. With a short `lease` that is soon.
    ///
    /// # Errors
    ///
    /// [`OnceError`].
    pub async fn run<V, X, F, Fut>(self, op: F) -> Result<Done, OnceError<X>>
    where
        V: Into<Stored>,
        F: FnMut(Effect) -> Fut,
        Fut: Future<Output = Result<V, X>>,
    {
        match self.claim().await? {
            Claimed::Done(done) => Ok(done),
            // Whoever fails knows of what it did itself, and not of an earlier run.
            Claimed::Ours { claim, unknown } => self.effect(&claim, unknown, unknown.is_some(), op).await,
        }
    }

    pub(crate) async fn claim<X>(&self) -> Result<Claimed, OnceError<X>> {
        let mut waiting = self.wait.as_ref().map(Policy::start);
        loop {
            let retry_after = match self.store.begin(&self.begin).await.map_err(OnceError::Store)? {
                Started::Started { fence, unknown } => {
                    let claim = Claim { scope: self.begin.scope.clone(), key: self.begin.key.clone(), fence };
                    return Ok(Claimed::Ours { claim, unknown });
                }
                Started::Replay(stored) => return Ok(Claimed::Done(Done { stored, is_replayed: true })),
                Started::Mismatch => return Err(OnceError::Mismatch),
                Started::Unknown { since } => return Err(OnceError::Unknown { since }),
                Started::Busy { retry_after } => retry_after,
            };
            let Some(waiting) = &mut waiting else { return Err(OnceError::Busy { retry_after }) };
            waiting.back_off(()).await.map_err(|_| OnceError::Busy { retry_after })?;
        }
    }

    async fn effect<V, X, F, Fut>(
        &self,
        claim: &Claim,
        unknown: Option<Time>,
        is_in_doubt: bool,
        mut op: F,
    ) -> Result<Done, OnceError<X>>
    where
        V: Into<Stored>,
        F: FnMut(Effect) -> Fut,
        Fut: Future<Output = Result<V, X>>,
    {
        let fence = claim.fence;
        let running = self.retry.retrier().retry(move |attempt| op(Effect { attempt, fence, unknown }));
        match self.while_alive(claim, running).await? {
            Ok(value) => self.keep_result(claim, value.into()).await,
            Err(err) => Err(self.failed(claim, is_in_doubt, err).await),
        }
    }

    pub(crate) async fn failed<X>(&self, claim: &Claim, is_in_doubt: bool, err: relent::Error<X>) -> OnceError<X> {
        let leaves = if err.timed_out.is_some() { Abandon::Unknown } else { Abandon::Forget };
        let leaves = if is_in_doubt { Abandon::Unknown } else { self.on_failure.unwrap_or(leaves) };
        // If the store cannot be told, the lease ends by itself, and the outcome is unknown.
        let _ = self.store.abandon(claim, leaves).await;
        OnceError::Failed(err)
    }

    pub(crate) fn store(&self) -> &Store<E> {
        self.store
    }

    pub(crate) fn lease_time(&self) -> Duration {
        self.begin.lease
    }

    pub(crate) fn retry_policy(&self) -> Policy {
        self.retry
    }

    /// Runs `work` and gives signs of life; ends it when the claim is lost.
    async fn while_alive<T, X>(&self, claim: &Claim, work: impl Future<Output = T>) -> Result<T, OnceError<X>> {
        let alive = async {
            loop {
                SystemTimer.sleep(self.begin.lease / 3).await;
                // A store that is away is no reason to stop: what is done is fenced if it comes too late.
                if let Ok(Kept::Fenced) = self.store.extend(claim, self.begin.lease).await {
                    return;
                }
            }
        };
        match race(pin!(work), pin!(alive)).await {
            Either::First(done) => Ok(done),
            Either::Second(()) => {
                let _ = self.store.counted(Kept::Fenced);
                Err(OnceError::Fenced(None))
            }
        }
    }

    pub(crate) async fn keep_result<X>(&self, claim: &Claim, stored: Stored) -> Result<Done, OnceError<X>> {
        match self.store.complete(claim, &stored, self.begin.keep).await {
            Ok(Kept::Kept) => Ok(Done { stored, is_replayed: false }),
            Ok(Kept::Fenced) => Err(OnceError::Fenced(Some(stored))),
            Err(error) => {
                // The next to ask is to be told soon, not after the lease.
                let _ = self.store.engine().abandon(claim, Abandon::Unknown).await;
                Err(OnceError::NotKept { stored, error })
            }
        }
    }
}

pub(crate) enum Claimed {
    Ours { claim: Claim, unknown: Option<Time> },
    Done(Done),
}

/// A [`Once`] that looks up what is unknown: see [`Once::reconcile`].
#[must_use = "nothing is done until it is run"]
pub struct Reconciled<'a, E: Engine, L> {
    once: Once<'a, E>,
    look: L,
}

impl<E: Engine, L> Reconciled<'_, E, L> {
    /// Does it, if it has not been done, and if what is unknown turns out not to have happened.
    ///
    /// # Errors
    ///
    /// [`OnceError`]; [`OnceError::Unknown`] also if looking failed.
    pub async fn run<R, V, X, Y, LookFut, F, Fut>(self, op: F) -> Result<Done, OnceError<X>>
    where
        L: FnOnce(Time) -> LookFut,
        LookFut: Future<Output = Result<Option<R>, Y>>,
        R: Into<Stored>,
        V: Into<Stored>,
        F: FnMut(Effect) -> Fut,
        Fut: Future<Output = Result<V, X>>,
    {
        let Reconciled { once, look } = self;
        match once.claim().await? {
            Claimed::Done(done) => Ok(done),
            Claimed::Ours { claim, unknown: None } => once.effect(&claim, None, false, op).await,
            Claimed::Ours { claim, unknown: Some(since) } => match once.while_alive(&claim, look(since)).await? {
                Ok(Some(found)) => {
                    let done = once.keep_result(&claim, found.into()).await?;
                    Ok(Done { is_replayed: true, ..done })
                }
                Ok(None) => once.effect(&claim, Some(since), false, op).await,
                Err(_) => {
                    let _ = once.store.abandon(&claim, Abandon::Unknown).await;
                    Err(OnceError::Unknown { since })
                }
            },
        }
    }
}
