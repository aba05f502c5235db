//! State in a Redis server, for many machines, and for a short time.
//!
//! Each operation is one script, so it is atomic, and done on the server's clock. What outlives a crash of the server is what
//! its append-only file says: [`Store::about`](crate::Store::about) tells. What a failover to a replica loses is lost: a key that was
//! accepted can be accepted again, so where that must not be, use Postgres.
//!
//! A cluster of several nodes is refused: we keep to one server.
//!
//! A server that sends more than an answer, or other than one, is left.

mod alone;
mod answers;
mod engine;
mod fault;
mod frames;
#[cfg(test)]
mod hostile;
mod line;
mod listening;
mod listing;
mod many;
mod packed;
mod scripts;
mod wire;

use self::{line::Line, many::Gathered, scripts::Scripts};
use crate::{
    Error, ErrorKind, Key, Scope,
    ears::Ears,
    tls::{Checked, Tls},
};
use redis::{ConnectionAddr, IntoConnectionInfo};
use sha2::{Digest, Sha256};
use std::{fmt, path::Path, sync::Arc, time::Duration};

/// What releases of a lease are told on.
const FREED: &str = "freed";

/// How long an answer is waited for, at once. The store's own policy asks again.
const RESPONSE: Duration = Duration::from_millis(2500);

/// A store in a Redis server. A clone is the same store, over the same connection.
///
/// ```no_run
/// # async fn doc() -> Result<(), relent_store::Error> {
/// use relent_store::{Store, in_redis::Redis};
///
/// let store = Store::new(Redis::open("redis://localhost:6379/0", "relent_").await?);
/// println!("{}", store.about().await?.durability);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Redis {
    inner: Arc<Inner>,
}

struct Inner {
    line: Line,
    scripts: Scripts,
    gathered: Gathered,
    ears: Ears,
    prefix: String,
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client knows the password.
        f.debug_struct("Redis").field("prefix", &self.inner.prefix).finish_non_exhaustive()
    }
}

impl Redis {
    /// Connects to a server: `redis://user:password@host:6379/0`, or `rediss://` with TLS and the system's roots. All keys
    /// begin with `prefix`: 1 to 32 small letters, digits and underscores, a letter first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a URL or prefix that makes no sense; [`ErrorKind::Refused`], [`ErrorKind::Unavailable`] as
    /// the server says; [`ErrorKind::Corrupt`] for what is no Redis, which is told neither user nor password.
    pub async fn open(url: &str, prefix: &str) -> Result<Redis, Error> {
        Redis::connect(url, prefix, None).await
    }

    /// Connects to what a URL names. Behind a `?` may stand `prefix=NAME_` (`relent_`), and for `rediss://`
    /// `sslrootcert=FILE`, certificates (PEM) in the place of those that the system trusts.
    ///
    /// # Errors
    ///
    /// As [`open`](Redis::open).
    pub async fn open_url(url: &str) -> Result<Redis, Error> {
        let (server, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut prefix, mut roots) = ("relent_", None);
        crate::settings::check_once(query, &["prefix", "sslrootcert"])?;
        for (name, value) in crate::settings::pairs(query) {
            match name {
                "prefix" => prefix = value,
                "sslrootcert" => roots = Some(crate::settings::path(value)),
                _ => return Err(crate::settings::unknown(name, "prefix=NAME_, sslrootcert=FILE")),
            }
        }
        Redis::connect(server, prefix, roots.as_deref()).await
    }

    async fn connect(url: &str, prefix: &str, roots: Option<&Path>) -> Result<Redis, Error> {
        crate::settings::check_prefix(prefix)?;
        let server = url.into_connection_info().map_err(|err| fault::of(&err))?;
        let tls = matches!(server.addr(), ConnectionAddr::TcpTls { .. }).then(|| Tls::new(Checked::Name, roots, None));
        let line = Line::new(&server, tls.transpose()?);
        let redis = Redis {
            inner: Arc::new(Inner {
                line,
                scripts: Scripts::new(),
                gathered: Gathered::default(),
                ears: Ears::default(),
                prefix: prefix.into(),
            }),
        };
        // Whether we are let in shows when something is asked.
        redis.now().await?;
        redis.check_alone().await?;
        Ok(redis)
    }

    /// All keys of an operation are on one node of a cluster, but which one differs from key to key, and we know one server.
    async fn check_alone(&self) -> Result<(), Error> {
        let about = async |what: [&str; 2]| self.ask::<String>(redis::cmd(what[0]).arg(what[1])).await;
        // Who may not ask finds out when a key is elsewhere.
        if !about(["INFO", "cluster"]).await.is_ok_and(|info| info.contains("cluster_enabled:1")) {
            return Ok(());
        }
        let info = about(["CLUSTER", "INFO"]).await.unwrap_or_default();
        let nodes = info.lines().find_map(|line| line.trim().strip_prefix("cluster_size:")?.parse::<u32>().ok());
        match nodes {
            Some(nodes @ 2..) => {
                let what = format!("the Redis server is one of {nodes} of a cluster, which no store is kept in");
                let hint = "name a server that has all keys: one of its own, or a cluster of one node and its replicas";
                Err(Error::new(ErrorKind::Unsupported, what).hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// The name of a key in the server. What is in braces decides on which node of a cluster it is; a hash cannot hold a
    /// brace, and no two names make the same.
    fn named(&self, kind: &str, scope: Option<&Scope>, key: &Key) -> String {
        self.called(kind, &hashed(scope, key))
    }

    fn called(&self, kind: &str, hash: &[u8; 64]) -> String {
        let hash = std::str::from_utf8(hash).expect("these digits are text");
        let mut name = String::with_capacity(self.inner.prefix.len() + kind.len() + 67);
        name.extend([self.inner.prefix.as_str(), kind, ":{", hash, "}"]);
        name
    }
}

/// In hexadecimal digits.
fn hashed(scope: Option<&Scope>, key: &Key) -> [u8; 64] {
    let scope = scope.map_or(&[][..], Scope::as_bytes);
    let mut hash = Sha256::new();
    hash.update((scope.len() as u64).to_be_bytes());
    hash.update(scope);
    hash.update(key.as_bytes());
    let mut digits = [0; 64];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(hash.finalize()) {
        pair.copy_from_slice(&[byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    }
    digits
}

/// What is answered that no script of ours answers.
fn nonsense() -> Error {
    Error::new(ErrorKind::Corrupt, "the server answered what no Redis answers").maybe_happened()
}
