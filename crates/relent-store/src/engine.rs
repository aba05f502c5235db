//! What a store must be able to do: whole operations, each one atomic.

use crate::{
    Abandon, Acquired, Begin, Claim, Clock, Delta, Error, Fence, Held, Holder, Holding, Kept, Key, Lease, Nonce, Owner,
    Renewed, Replaced, Scope, Shared, Started, Stored, Time, Version, Versioned,
};
use relent::{SystemTimer, Timer};
use std::{future::Future, sync::Arc, time::Duration};

/// An engine: memory, SQLite, Redis, Postgres, or one of your own.
///
/// Each operation happens wholly or not at all, and alone. What an engine must keep is told by
/// [`conformance`](crate::conformance), which runs on any. Operations that carry a nonce, a fence or a number may be asked
/// again when their answer was lost, and are done once.
///
/// An error that [may have happened](Error::may_have_happened) leaves open whether it did.
pub trait Engine: Send + Sync + 'static {
    /// Claims a key, or says what came of it.
    fn begin(&self, begin: &Begin) -> impl Future<Output = Result<Started, Error>> + Send;

    /// Keeps what came of a claim, for `keep` from now on. Again with the same fence is the same, and changes nothing.
    fn complete(
        &self,
        claim: &Claim,
        stored: &Stored,
        keep: Duration,
    ) -> impl Future<Output = Result<Kept, Error>> + Send;

    /// Gives a claim up without a result. What was completed stays so.
    fn abandon(&self, claim: &Claim, why: Abandon) -> impl Future<Output = Result<Kept, Error>> + Send;

    /// Makes a claim hold for `lease` from now on. One whose lease has ended is fenced.
    fn extend(&self, claim: &Claim, lease: Duration) -> impl Future<Output = Result<Kept, Error>> + Send;

    /// Takes a name, or says who holds it.
    fn acquire(&self, lease: &Lease) -> impl Future<Output = Result<Acquired, Error>> + Send;

    /// Makes a lease hold for `ttl` from now on. One that has ended is fenced.
    fn renew(&self, holding: &Holding, ttl: Duration) -> impl Future<Output = Result<Renewed, Error>> + Send;

    /// Lets a name go.
    fn release(&self, holding: &Holding) -> impl Future<Output = Result<Kept, Error>> + Send;

    /// Who holds a name.
    fn holder(&self, name: &Key) -> impl Future<Output = Result<Option<Holder>, Error>> + Send;

    /// A value and its version.
    fn read(&self, key: &Key) -> impl Future<Output = Result<Versioned, Error>> + Send;

    /// Replaces a value that is still at `version`, or removes it (`None`). [`Version::ABSENT`] is that of all that is not
    /// there, removed or never made. Who asks again because an answer was lost and hears of a conflict may have replaced it, if somebody else did
    /// after that.
    fn replace(
        &self,
        key: &Key,
        version: Version,
        value: Option<&[u8]>,
        nonce: Nonce,
    ) -> impl Future<Output = Result<Replaced, Error>> + Send;

    /// Whether a key is seen for the first time within `keep`. From now on it is seen. The same nonce is told the same.
    fn first_time(
        &self,
        scope: &Scope,
        key: &Key,
        keep: Duration,
        nonce: Nonce,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Adds what a process saw of an upstream, and says what all saw.
    fn merge(&self, delta: &Delta) -> impl Future<Output = Result<Shared, Error>> + Send;

    /// Holds an upstream's breaker by hand, for all processes, or lets it go.
    fn hold(&self, upstream: &Key, held: Option<Held>) -> impl Future<Output = Result<(), Error>> + Send;

    /// Removes at most about `most` things that have expired. How many it were; zero when there are none left.
    fn purge(&self, most: u32) -> impl Future<Output = Result<u64, Error>> + Send;

    /// What there is, at most `most` of it, without the values.
    fn list(&self, kind: Kind, most: u32) -> impl Future<Output = Result<Vec<Listed>, Error>> + Send;

    /// What the engine promises with its present settings.
    fn about(&self) -> impl Future<Output = Result<About, Error>> + Send;

    /// Waits until the name may be free, at most so long. An engine that hears of releases returns early; others sleep.
    fn freed(&self, name: &Key, most: Duration) -> impl Future<Output = ()> + Send {
        let _ = name;
        polled(most)
    }

    /// The clock that it goes by, if that is this process's and not a server's.
    fn clock(&self) -> Option<&Clock> {
        None
    }
}

impl<E: Engine> Engine for Arc<E> {
    fn begin(&self, begin: &Begin) -> impl Future<Output = Result<Started, Error>> + Send {
        (**self).begin(begin)
    }

    fn complete(
        &self,
        claim: &Claim,
        stored: &Stored,
        keep: Duration,
    ) -> impl Future<Output = Result<Kept, Error>> + Send {
        (**self).complete(claim, stored, keep)
    }

    fn abandon(&self, claim: &Claim, why: Abandon) -> impl Future<Output = Result<Kept, Error>> + Send {
        (**self).abandon(claim, why)
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> impl Future<Output = Result<Kept, Error>> + Send {
        (**self).extend(claim, lease)
    }

    fn acquire(&self, lease: &Lease) -> impl Future<Output = Result<Acquired, Error>> + Send {
        (**self).acquire(lease)
    }

    fn renew(&self, holding: &Holding, ttl: Duration) -> impl Future<Output = Result<Renewed, Error>> + Send {
        (**self).renew(holding, ttl)
    }

    fn release(&self, holding: &Holding) -> impl Future<Output = Result<Kept, Error>> + Send {
        (**self).release(holding)
    }

    fn holder(&self, name: &Key) -> impl Future<Output = Result<Option<Holder>, Error>> + Send {
        (**self).holder(name)
    }

    fn read(&self, key: &Key) -> impl Future<Output = Result<Versioned, Error>> + Send {
        (**self).read(key)
    }

    fn replace(
        &self,
        key: &Key,
        version: Version,
        value: Option<&[u8]>,
        nonce: Nonce,
    ) -> impl Future<Output = Result<Replaced, Error>> + Send {
        (**self).replace(key, version, value, nonce)
    }

    fn first_time(
        &self,
        scope: &Scope,
        key: &Key,
        keep: Duration,
        nonce: Nonce,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        (**self).first_time(scope, key, keep, nonce)
    }

    fn merge(&self, delta: &Delta) -> impl Future<Output = Result<Shared, Error>> + Send {
        (**self).merge(delta)
    }

    fn hold(&self, upstream: &Key, held: Option<Held>) -> impl Future<Output = Result<(), Error>> + Send {
        (**self).hold(upstream, held)
    }

    fn purge(&self, most: u32) -> impl Future<Output = Result<u64, Error>> + Send {
        (**self).purge(most)
    }

    fn list(&self, kind: Kind, most: u32) -> impl Future<Output = Result<Vec<Listed>, Error>> + Send {
        (**self).list(kind, most)
    }

    fn about(&self) -> impl Future<Output = Result<About, Error>> + Send {
        (**self).about()
    }

    fn freed(&self, name: &Key, most: Duration) -> impl Future<Output = ()> + Send {
        (**self).freed(name, most)
    }

    fn clock(&self) -> Option<&Clock> {
        (**self).clock()
    }
}

/// A wait of an engine that hears of nothing.
pub(crate) async fn polled(most: Duration) {
    SystemTimer.sleep(most).await;
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Idempotency records.
    Records,
    /// Leases that are held.
    Leases,
    /// Versioned values.
    Values,
    /// Keys that were seen.
    Seen,
    /// Shared upstreams.
    Upstreams,
}

/// One thing in a store, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// An idempotency record.
    Record {
        /// Whose key it is.
        scope: Scope,
        /// The key.
        key: Key,
        /// What is known of it.
        state: RecordState,
        /// The fence of its last claim.
        fence: Fence,
        /// When it was claimed or completed last.
        since: Time,
        /// When it is forgotten.
        expires: Time,
        /// How many bytes are kept.
        bytes: u64,
    },
    /// A lease.
    Lease {
        /// What is held.
        name: Key,
        /// Who holds it.
        owner: Owner,
        /// Its fence.
        fence: Fence,
        /// When it ends unless it is renewed.
        until: Time,
    },
    /// A versioned value.
    Value {
        /// Its key.
        key: Key,
        /// Its version.
        version: Version,
        /// How many bytes it has.
        bytes: u64,
    },
    /// A key that was seen.
    Seen {
        /// Whose key it is.
        scope: Scope,
        /// The key.
        key: Key,
        /// When it is forgotten.
        expires: Time,
    },
    /// A shared upstream, over the last ten seconds.
    Upstream {
        /// Its name.
        name: Key,
        /// What all processes know of it.
        shared: Shared,
    },
}

/// What is known of an idempotency record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// Somebody is at it.
    Running,
    /// Somebody was at it and went silent.
    Unknown,
    /// It is done.
    Done,
    /// It failed for good.
    Failed,
}

/// What an engine promises with its present settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    /// `memory`, `sqlite`, `redis`, `postgres`.
    pub engine: &'static str,
    /// The engine's own version.
    pub version: String,
    /// What outlives what, in a sentence.
    pub durability: String,
    /// What to know before relying on it, each in a sentence; what should be changed comes first.
    pub cautions: Vec<String>,
    /// The version of the tables, where there are any.
    pub schema: Option<u32>,
    /// The time on the store's clock.
    pub now: Time,
    /// The store's clock less this machine's, in milliseconds, to within how long the question took.
    pub skew_ms: i64,
}

impl About {
    /// What an engine of this name and version says of itself.
    pub fn new(engine: &'static str, version: impl Into<String>, durability: impl Into<String>, now: Time) -> About {
        let skew = now.0 as i64 - Clock::wall().0 as i64;
        let (version, durability) = (version.into(), durability.into());
        About { engine, version, durability, cautions: vec![], schema: None, now, skew_ms: skew }
    }
}
