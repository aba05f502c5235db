//! A lease and the guard that holds it.

use crate::{
    Acquired, Engine, Error, Fence, Heed, Holding, Kept, Key, Lease, Nonce, Owner, Renewed, Store,
    notice::Notice,
    race::{Either, race},
};
use relent::{Cancel, Decision, Policy, SystemTimer, Timer, Timestamp, Verdict};
use std::{
    fmt,
    future::pending,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::task::JoinHandle;

/// A wish for a lease: made by [`Store::lease`], taken by [`acquire`](Leasing::acquire).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use relent::Policy;
/// use relent_store::{Key, LeaseError, Memory, Store};
/// use std::time::Duration;
///
/// let store = Store::new(Memory::new());
/// let nightly = Key::new("nightly").unwrap();
///
/// let guard = store.lease(&nightly).ttl(Duration::from_secs(30)).acquire().await?;
/// assert!(matches!(store.lease(&nightly).acquire().await, Err(LeaseError::Held { .. })));
/// let first = guard.fence();
/// guard.release().await?;
///
/// let patient = Policy::exponential(Duration::from_millis(10)).cap(Duration::from_secs(1));
/// assert!(store.lease(&nightly).wait(patient).acquire().await?.fence() > first);
/// # Ok::<_, LeaseError>(())
/// # }).unwrap();
/// ```
#[must_use = "nothing is held until it is acquired"]
pub struct Leasing<E: Engine> {
    store: Store<E>,
    lease: Lease,
    wait: Option<Policy>,
    cancel: Option<Cancel>,
}

/// Why a lease was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseError {
    /// Somebody else has it.
    Held {
        /// Who.
        by: Owner,
        /// How long, if it is not renewed.
        left: Duration,
    },
    /// The wait was cancelled.
    Cancelled,
    /// The store could not be asked.
    Store(Error),
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaseError::Held { by, left } => {
                write!(f, "{} holds it, for {} at most", by.as_str(), relent::duration::Human(*left))
            }
            LeaseError::Cancelled => f.write_str("cancelled"),
            LeaseError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LeaseError {}

impl From<Error> for LeaseError {
    fn from(error: Error) -> LeaseError {
        LeaseError::Store(error)
    }
}

impl<E: Engine> Store<E> {
    /// A lock that ends by itself: see [`Leasing`].
    pub fn lease(&self, name: &Key) -> Leasing<E> {
        Leasing::new(self.clone(), name.clone())
    }
}

impl<E: Engine> Leasing<E> {
    fn new(store: Store<E>, name: Key) -> Leasing<E> {
        let (owner, nonce, ttl) = (Owner::here(), Nonce::random(), Duration::from_secs(30));
        Leasing { store, lease: Lease { name, owner, nonce, ttl }, wait: None, cancel: None }
    }

    /// How long it holds after the last sign of life: 30 s by default. Whoever holds it renews it three times in that time.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lease.ttl = ttl.max(Duration::from_millis(1));
        self
    }

    /// Who it is, for people: this machine and process by default.
    pub fn owner(mut self, owner: Owner) -> Self {
        self.lease.owner = owner;
        self
    }

    /// Waits for it by this policy, instead of failing at once. Where the engine hears of releases, a wait ends early.
    pub fn wait(mut self, policy: Policy) -> Self {
        self.wait = Some(policy);
        self
    }

    /// Lets a switch end the wait.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Takes the lease, and renews it until the guard is dropped, on the tokio runtime this is called on.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped may leave the lease taken, until it ends by itself.
    ///
    /// # Errors
    ///
    /// [`LeaseError`].
    pub async fn acquire(self) -> Result<Guard<E>, LeaseError> {
        let (store, held) = acquired(self).await?;
        let renewing = tokio::spawn(renew(store.clone(), held.clone()));
        Ok(Guard { store, held, renewing, is_released: false })
    }
}

/// Takes the lease. Nobody renews it yet.
pub(crate) async fn acquired<E: Engine>(leasing: Leasing<E>) -> Result<(Store<E>, Held), LeaseError> {
    let Leasing { store, lease, wait, cancel } = leasing;
    let cancelled = async {
        match &cancel {
            Some(cancel) => cancel.cancelled().await,
            None => pending().await,
        }
    };
    let first = race(pin!(acquire(&store, &lease, wait)), pin!(cancelled)).await;
    match first {
        Either::First(acquired) => {
            let (fence, asked) = acquired?;
            Ok((store, Held::new(lease, fence, asked)))
        }
        Either::Second(()) => Err(LeaseError::Cancelled),
    }
}

/// The fence, and when it was asked for.
async fn acquire<E: Engine>(
    store: &Store<E>,
    lease: &Lease,
    wait: Option<Policy>,
) -> Result<(Fence, Timestamp), LeaseError> {
    let mut heed = Heed::default();
    let mut waiting = wait.as_ref().map(|policy| policy.call(SystemTimer.now(), SystemTimer.seed()));
    let mut until = Timestamp::ZERO;
    loop {
        // Asked again, it holds from when it was granted, which is later: the guard's clock errs on the safe side.
        let asked = SystemTimer.now();
        let (by, left) = match store.ask(|| store.engine().acquire(lease)).await? {
            Acquired::Acquired { fence, .. } => return Ok((fence, asked)),
            Acquired::Held { by, left } => (by, left),
        };
        let Some(call) = &mut waiting else { return Err(LeaseError::Held { by, left }) };
        let now = SystemTimer.now();
        // To look because somebody let go of it is no attempt of the policy's: the wait that it ended goes on.
        if until <= now {
            match call.on_failure(now, Verdict::Transient) {
                Decision::Retry(delay) => until = now + delay,
                Decision::GiveUp(_) => return Err(LeaseError::Held { by, left }),
            }
        }
        heed.freed(store.engine(), &lease.name, until.since(now)).await;
    }
}

/// A lease that is held. It renews itself at a third of its time, and is released when it is dropped.
///
/// What it protects should run beside [`lost`](Guard::lost), which fires *before* the lease ends when it cannot be renewed,
/// and pass on the [`fence`](Guard::fence).
#[must_use = "a guard that is dropped releases the lease"]
pub struct Guard<E: Engine> {
    store: Store<E>,
    held: Held,
    renewing: JoinHandle<()>,
    is_released: bool,
}

/// What is held, and whether it still is. A clone is the same.
#[derive(Clone)]
pub(crate) struct Held(Arc<State>);

struct State {
    holding: Holding,
    ttl: Duration,
    lost: Cancel,
    /// When, on this process's clock, the lease must be taken for lost.
    until: Mutex<Timestamp>,
}

impl Held {
    fn new(lease: Lease, fence: Fence, asked: Timestamp) -> Held {
        let (holding, ttl) = (Holding { name: lease.name, fence }, lease.ttl);
        let until = Mutex::new(asked + (ttl - margin(ttl)));
        Held(Arc::new(State { holding, ttl, lost: Cancel::new(), until }))
    }

    fn until(&self) -> Timestamp {
        *self.0.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn name(&self) -> &Key {
        &self.0.holding.name
    }

    pub(crate) fn fence(&self) -> Fence {
        self.0.holding.fence
    }

    pub(crate) fn lost(&self) -> &Cancel {
        &self.0.lost
    }

    pub(crate) fn is_lost(&self) -> bool {
        if !self.0.lost.is_cancelled() && SystemTimer.now() < self.until() {
            return false;
        }
        self.0.lost.cancel();
        true
    }

    pub(crate) async fn release<E: Engine>(&self, store: &Store<E>) -> Result<Kept, Error> {
        store.ask(|| store.engine().release(&self.0.holding)).await
    }
}

/// By how much a lease is taken for lost before it ends: clocks differ, and what it protects has to stop.
fn margin(ttl: Duration) -> Duration {
    ttl / 10
}

impl<E: Engine> Guard<E> {
    /// What is held.
    pub fn name(&self) -> &Key {
        self.held.name()
    }

    /// The fence: greater than that of every holder before. Give it to what the lease protects.
    pub fn fence(&self) -> Fence {
        self.held.fence()
    }

    /// A switch that is thrown when the lease is lost, a tenth of its time before it ends: the store was away, or this
    /// process slept. It is not thrown by a release.
    pub fn lost(&self) -> &Cancel {
        self.held.lost()
    }

    /// Whether the lease is lost, by the switch or by the clock. A process that was stopped and goes on is told the truth here
    /// even before the switch is thrown.
    pub fn is_lost(&self) -> bool {
        self.held.is_lost()
    }

    /// Lets go, and says whether it was still held.
    ///
    /// # Errors
    ///
    /// What the store says; then the lease ends by itself.
    pub async fn release(mut self) -> Result<Kept, Error> {
        self.is_released = true;
        self.renewing.abort();
        self.held.release(&self.store).await
    }
}

impl<E: Engine> fmt::Debug for Guard<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("holding", &self.held.0.holding)
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}

impl<E: Engine> Drop for Guard<E> {
    fn drop(&mut self) {
        self.renewing.abort();
        if self.is_released {
            return;
        }
        // Without a runtime it ends by itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (store, held) = (self.store.clone(), self.held.clone());
            runtime.spawn(async move {
                let _ = held.release(&store).await;
            });
        }
    }
}

/// Renews until the lease is lost.
pub(crate) async fn renew<E: Engine>(store: Store<E>, held: Held) {
    let State { holding, ttl, .. } = &*held.0;
    let ttl = *ttl;
    let mut next = SystemTimer.now() + ttl / 3;
    let why = loop {
        let until = held.until();
        sleep_until(next.min(until)).await;
        if SystemTimer.now() >= until {
            break Lost::InTime;
        }
        let asked = SystemTimer.now();
        let renewing = store.ask(|| store.engine().renew(holding, ttl));
        match race(pin!(renewing), pin!(sleep_until(until))).await {
            Either::First(Ok(Renewed::Until(_))) => {
                let until = asked + (ttl - margin(ttl));
                *held.0.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
                next = asked + ttl / 3;
            }
            Either::First(Ok(Renewed::Fenced)) => break Lost::Taken,
            // The store's own policy has tried; there may be time for more.
            Either::First(Err(_)) => next = SystemTimer.now() + (ttl / 30).max(Duration::from_millis(1)),
            Either::Second(()) => break Lost::InTime,
        }
    };
    held.lost().cancel();
    if let Lost::Taken = why {
        let _ = store.counted(Kept::Fenced);
    }
    store.tell(Notice::LeaseLost(holding.name.to_string()));
}

async fn sleep_until(at: Timestamp) {
    SystemTimer.sleep(at.since(SystemTimer.now())).await;
}

enum Lost {
    /// It could not be renewed.
    InTime,
    /// Somebody else has it.
    Taken,
}
