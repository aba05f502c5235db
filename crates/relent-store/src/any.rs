//! Whichever engine a URL names.

use crate::{
    Abandon, About, Acquired, Begin, Claim, Clock, Delta, Engine, Error, ErrorKind, Held, Holder, Holding, Kept, Key,
    Kind, Lease, Listed, Memory, Nonce, Renewed, Replaced, Scope, Shared, Started, Stored, Version, Versioned,
};
use std::time::Duration;

/// An engine that was chosen when the program ran. A clone is the same store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Any {
    /// State in this process.
    Memory(Memory),
    /// State in a file.
    #[cfg(feature = "sqlite")]
    Sqlite(crate::in_sqlite::Sqlite),
    /// State in a Redis server.
    #[cfg(feature = "redis")]
    Redis(crate::in_redis::Redis),
    /// State in a Postgres server.
    #[cfg(feature = "postgres")]
    Postgres(crate::in_postgres::Postgres),
}

/// The engines that this build has, as their URLs begin.
pub const SCHEMES: &[&str] = &[
    "memory:",
    #[cfg(feature = "sqlite")]
    "sqlite:",
    #[cfg(feature = "redis")]
    "redis://",
    #[cfg(feature = "redis")]
    "rediss://",
    #[cfg(feature = "postgres")]
    "postgres://",
];

/// Opens a file on a thread of its own, which is left alone if nobody waits any more: who put something beside the file may have
/// made it long to open.
#[cfg(feature = "sqlite")]
async fn aside(url: String) -> Result<crate::in_sqlite::Sqlite, Error> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let kept = url.clone();
    let open = move || {
        let _ = tell.send(crate::in_sqlite::Sqlite::open_url(&kept));
    };
    match std::thread::Builder::new().name("open".into()).spawn(open) {
        Ok(_) => told.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::Unavailable, "it could not be opened"))),
        // There is none: then it is waited for.
        Err(_) => crate::in_sqlite::Sqlite::open_url(&url),
    }
}

impl Any {
    /// The engine that a URL names.
    ///
    /// | URL | |
    /// |---|---|
    /// | `memory:` | empty, this process's |
    /// | `sqlite:state.db` | a file, made if it is not there, with mode 0600; `?durability=process` does not wait for the disk |
    /// | `redis://user:secret@host:6379/0` | a server; `rediss://` with TLS |
    /// | `postgres://user:secret@host:5432/db` | a server; `?sslmode=verify-full` with TLS |
    ///
    /// All take `prefix=NAME_` behind the `?`: what the names of tables and keys begin with, `relent_` by default. Those with tables
    /// take `make=no`, for who only wants to look: then nothing is made and nothing brought up to date.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`], [`ErrorKind::Unsupported`], or what the engine says. Never shows the URL, which may hold
    /// credentials.
    pub async fn open(url: &str) -> Result<Any, Error> {
        Any::check(url)?;
        match url.split(':').next().unwrap_or_default() {
            #[cfg(feature = "sqlite")]
            "sqlite" => aside(url.to_owned()).await.map(Any::Sqlite),
            #[cfg(feature = "redis")]
            "redis" | "rediss" => crate::in_redis::Redis::open_url(url).await.map(Any::Redis),
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => crate::in_postgres::Postgres::open_url(url).await.map(Any::Postgres),
            _ => Ok(Any::Memory(Memory::new())),
        }
    }

    /// Whether a URL names an engine that this build has, and of a file whether its settings are any, without opening it: what is wrong
    /// with that will be wrong later, too.
    ///
    /// ```
    /// use relent_store::Any;
    ///
    /// assert!(Any::check("sqlite:state.db").is_ok());
    /// assert_eq!(Any::check("sqlit:state.db").unwrap_err().to_string(), "the store's URL names no engine");
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] or [`ErrorKind::Unsupported`]. Never shows the URL, which may hold credentials.
    pub fn check(url: &str) -> Result<(), Error> {
        let scheme = url.split(':').next().unwrap_or_default();
        match scheme {
            "memory" if url == "memory:" => Ok(()),
            #[cfg(feature = "sqlite")]
            "sqlite" => crate::in_sqlite::check(url),
            #[cfg(feature = "redis")]
            "redis" | "rediss" => Ok(()),
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => Ok(()),
            known if ["sqlite", "redis", "rediss", "postgres", "postgresql"].contains(&known) => {
                let what = format!("this build has no engine for {scheme} stores");
                Err(Error::new(ErrorKind::Unsupported, what).hint("build relent-store with that feature"))
            }
            _ => {
                let what = "the store's URL names no engine";
                Err(Error::new(ErrorKind::Invalid, what).hint(format!("it begins with one of: {}", SCHEMES.join(" "))))
            }
        }
    }
}

/// The same on whichever it is.
macro_rules! on {
    ($any:expr, $engine:ident => $does:expr) => {
        match $any {
            Any::Memory($engine) => $does,
            #[cfg(feature = "sqlite")]
            Any::Sqlite($engine) => $does,
            #[cfg(feature = "redis")]
            Any::Redis($engine) => $does,
            #[cfg(feature = "postgres")]
            Any::Postgres($engine) => $does,
        }
    };
}

impl Engine for Any {
    async fn begin(&self, begin: &Begin) -> Result<Started, Error> {
        on!(self, engine => engine.begin(begin).await)
    }

    async fn complete(&self, claim: &Claim, stored: &Stored, keep: Duration) -> Result<Kept, Error> {
        on!(self, engine => engine.complete(claim, stored, keep).await)
    }

    async fn abandon(&self, claim: &Claim, why: Abandon) -> Result<Kept, Error> {
        on!(self, engine => engine.abandon(claim, why).await)
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Kept, Error> {
        on!(self, engine => engine.extend(claim, lease).await)
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, Error> {
        on!(self, engine => engine.acquire(lease).await)
    }

    async fn renew(&self, holding: &Holding, ttl: Duration) -> Result<Renewed, Error> {
        on!(self, engine => engine.renew(holding, ttl).await)
    }

    async fn release(&self, holding: &Holding) -> Result<Kept, Error> {
        on!(self, engine => engine.release(holding).await)
    }

    async fn holder(&self, name: &Key) -> Result<Option<Holder>, Error> {
        on!(self, engine => engine.holder(name).await)
    }

    async fn read(&self, key: &Key) -> Result<Versioned, Error> {
        on!(self, engine => engine.read(key).await)
    }

    async fn replace(
        &self,
        key: &Key,
        version: Version,
        value: Option<&[u8]>,
        nonce: Nonce,
    ) -> Result<Replaced, Error> {
        on!(self, engine => engine.replace(key, version, value, nonce).await)
    }

    async fn first_time(&self, scope: &Scope, key: &Key, keep: Duration, nonce: Nonce) -> Result<bool, Error> {
        on!(self, engine => engine.first_time(scope, key, keep, nonce).await)
    }

    async fn merge(&self, delta: &Delta) -> Result<Shared, Error> {
        on!(self, engine => engine.merge(delta).await)
    }

    async fn hold(&self, upstream: &Key, held: Option<Held>) -> Result<(), Error> {
        on!(self, engine => engine.hold(upstream, held).await)
    }

    async fn purge(&self, most: u32) -> Result<u64, Error> {
        on!(self, engine => engine.purge(most).await)
    }

    async fn list(&self, kind: Kind, most: u32) -> Result<Vec<Listed>, Error> {
        on!(self, engine => engine.list(kind, most).await)
    }

    async fn about(&self) -> Result<About, Error> {
        on!(self, engine => engine.about().await)
    }

    async fn freed(&self, name: &Key, most: Duration) {
        on!(self, engine => engine.freed(name, most).await);
    }

    fn clock(&self) -> Option<&Clock> {
        on!(self, engine => engine.clock())
    }
}
