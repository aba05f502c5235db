//! State in a Postgres server, for many machines.
//!
//! Each operation is a function in the database: one question, one answer, one transaction, on rows and the server's clock. Nothing
//! is kept on a connection, so it works behind poolers. What is accepted is as durable as the cluster makes a commit;
//! [`Store::about`](crate::Store::about) tells.

mod asking;
mod complete;
mod dedupe;
mod engine;
mod fault;
#[cfg(test)]
mod hostile;
mod listening;
mod many;
mod near;
mod records;
mod rows;
mod whose;
mod wire;

pub use self::{
    complete::{COMPLETE, complete},
    dedupe::{FIRST_TIME, first_time, keep_last},
};

use self::{
    many::Completion,
    wire::{Ssl, Wire},
};
use crate::{
    Begin, Error, ErrorKind,
    ears::Ears,
    gather::Gather,
    settings::{missing, too_old},
};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use std::{fmt, sync::Arc, time::Duration};

/// What each version adds to the one before; the first to an empty database. Only ever added to.
const STEPS: [&str; 6] = [
    include_str!("schema-1.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    include_str!("schema-4.sql"),
    include_str!("schema-5.sql"),
    include_str!("schema-6.sql"),
];

/// The version of the tables that this build makes and reads.
const VERSION: i32 = STEPS.len() as i32;

/// How many connections there are at most, unless it is said otherwise.
const CONNECTIONS: usize = 16;

/// How long a connection is waited for, at once. The store's own policy asks again.
const CONNECT: Duration = Duration::from_millis(2500);

/// A store in a Postgres server. A clone is the same store, on the same connections.
///
/// ```no_run
/// # async fn doc() -> Result<(), relent_store::Error> {
/// use relent_store::{Store, in_postgres::Postgres};
///
/// let store = Store::new(Postgres::open_url("postgres://app:secret@localhost/app?prefix=relent_&connections=16").await?);
/// println!("{}", store.about().await?.durability);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Postgres {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool,
    /// For the connection that listens.
    config: tokio_postgres::Config,
    wire: Wire,
    /// Whether connections keep the statements that they were asked.
    is_prepared: bool,
    prefix: String,
    /// The role that made the store, if the URL names one.
    owner: Option<String>,
    begins: Gather<Begin>,
    completions: Gather<Completion>,
    ears: Ears,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration knows the password.
        f.debug_struct("Postgres").field("prefix", &self.inner.prefix).finish_non_exhaustive()
    }
}

impl Postgres {
    /// Connects to what a URL names, and makes the tables and functions if they are not there. Behind the `?` may stand
    /// `prefix=NAME_` (`relent_`), `connections=N` (16), `prepared=1` (0), and what libpq knows, `sslmode` and `sslrootcert`
    /// among it. Statements that are prepared are planned once for each connection; that is not for poolers that give the server's
    /// connection to somebody else after each transaction.
    ///
    /// | `sslmode` | |
    /// |---|---|
    /// | `disable` (unless told) | plain text |
    /// | `require` | TLS, with whoever answers; with `sslrootcert`, as `verify-ca` |
    /// | `verify-ca` | the certificate must come from an authority that is trusted |
    /// | `verify-full` | and be for the host's name |
    ///
    /// `sslrootcert=FILE` names certificates (PEM) that are trusted in the place of the system's; `system` means those, and
    /// `verify-full`. None of these may be there twice with two values.
    ///
    /// On a socket of this machine nothing is said to a server that is neither the caller's nor root's nor that of whoever owns the
    /// folder of the socket, unless `owner=any` believes all: in a folder like `/tmp` anybody could wait there.
    ///
    /// What the store's functions do is done with the rights of the user of the URL. So the store is refused if its tables and functions, and what
    /// these call, belong to somebody else in the database than this user, a superuser or the owner of
    /// the database. `owner=NAME` believes one role more, as that of migrations, which made them, and `owner=any` believes all; who listens on a
    /// socket is nothing that `owner=NAME` says.
    ///
    /// With `make=no` nothing is made and nothing brought up to date, for who only wants to look.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a URL that makes no sense, [`ErrorKind::TooNew`] for tables of a newer relent,
    /// [`ErrorKind::Missing`] and [`ErrorKind::TooOld`] with `make=no`, [`ErrorKind::Refused`] for what belongs to somebody else and for a
    /// search path with a schema before `pg_catalog`, and what the server says.
    pub async fn open_url(url: &str) -> Result<Postgres, Error> {
        let (server, query) = url.split_once('?').unwrap_or((url, ""));
        // Postgres' own way to read it takes all before the last of them for the user and the password, and the settings for none of ours.
        if query.contains('@') {
            return Err(Error::new(
                ErrorKind::Invalid,
                "the store's URL has a `?` before its host: what are its settings?",
            )
            .hint("in a user or a password a ? is written %3F, and behind the ? of the settings an @ is %40"));
        }
        let (mut prefix, mut connections, mut is_prepared, mut rest) = ("relent_", CONNECTIONS, false, vec![]);
        let (mut ssl, mut believes_all, mut owner, mut is_made) = (Ssl::default(), false, None, true);
        crate::settings::check_once(query, &["prefix", "connections", "prepared", "sslmode", "sslrootcert", "owner"])?;
        for (name, value) in crate::settings::pairs(query) {
            match name {
                "prefix" => prefix = value,
                "connections" => {
                    let known = "prefix=NAME_, connections=1..1000";
                    let number = value.parse().ok().filter(|number| (1..=1000).contains(number));
                    connections = number.ok_or_else(|| crate::settings::unknown(name, known))?;
                }
                "prepared" => {
                    is_prepared = match value {
                        "0" => false,
                        "1" => true,
                        _ => return Err(crate::settings::unknown(name, "prepared=0|1")),
                    };
                }
                "sslmode" if ssl.mode(value) => {}
                "sslmode" if matches!(value, "prefer" | "allow") => {
                    let what = format!("`sslmode={value}` lets whoever is in between choose plain text");
                    return Err(Error::new(ErrorKind::Invalid, what)
                        .hint("`sslmode=verify-full`, or `disable` on a network that nobody else listens to"));
                }
                "sslmode" => {
                    return Err(crate::settings::unknown(name, "sslmode=disable|require|verify-ca|verify-full"));
                }
                "sslrootcert" => ssl.roots(crate::settings::path(value)),
                "owner" if value == "any" => believes_all = true,
                "owner" => owner = Some(whose::role(value)?),
                "make" if value == "no" => is_made = false,
                "make" => return Err(crate::settings::unknown(name, "make=no")),
                _ => rest.push(format!("{name}={value}")),
            }
        }
        crate::settings::check_prefix(prefix)?;
        let server = if rest.is_empty() { server.to_owned() } else { format!("{server}?{}", rest.join("&")) };
        // The text of this error may hold parts of the URL.
        let mut config: tokio_postgres::Config = server.parse().map_err(|_| {
            Error::new(ErrorKind::Invalid, "the store's URL makes no sense to Postgres")
                .hint("write it like postgres://host:5432/database; a user and a password stand before the host")
        })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        let wire = Wire::new(&mut config, &ssl, believes_all)?;
        let settings = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(config.clone(), wire.clone(), settings);
        let timeouts = Timeouts { wait: Some(CONNECT), create: Some(CONNECT), recycle: Some(CONNECT) };
        let pool = Pool::builder(manager).max_size(connections).timeouts(timeouts).runtime(Runtime::Tokio1).build();
        let pool = pool.map_err(|_| Error::new(ErrorKind::Unavailable, "no pool of connections can be made"))?;
        let postgres = Postgres {
            inner: Arc::new(Inner {
                pool,
                config,
                wire,
                is_prepared,
                prefix: prefix.into(),
                owner,
                begins: Gather::default(),
                completions: Gather::default(),
                ears: Ears::default(),
            }),
        };
        postgres.migrate(is_made).await?;
        Ok(postgres)
    }

    /// A statement with the prefix that was chosen in place of `relent_`.
    fn named(&self, sql: &str) -> String {
        sql.replace("relent_", &self.inner.prefix)
    }

    async fn client(&self) -> Result<deadpool_postgres::Client, Error> {
        use deadpool_postgres::{PoolError, TimeoutType};
        self.inner.pool.get().await.map_err(|err| match err {
            PoolError::Backend(_) if self.inner.wire.took_nonsense() => fault::nonsense(),
            PoolError::Backend(err) => fault::connecting(&err),
            PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
                Error::new(ErrorKind::Unavailable, "the Postgres server did not answer in time").hint("is it up?")
            }
            PoolError::Timeout(TimeoutType::Wait) => {
                Error::new(ErrorKind::Unavailable, "no connection to the Postgres server is free")
                    .hint("allow more, by `?connections=N`, or is the server away?")
            }
            _ => Error::new(ErrorKind::Unavailable, "the connections to the Postgres server are closed"),
        })
    }

    /// What an error means of a question that was sent.
    fn fault(&self, err: &tokio_postgres::Error) -> Error {
        if err.code().is_none() && self.inner.wire.took_nonsense() { fault::nonsense() } else { fault::of(err) }
    }

    /// The version of the tables that are there, which was looked at before.
    async fn version(&self) -> Result<i32, Error> {
        let client = self.client().await?;
        let sql = self.named("SELECT version FROM relent_meta");
        let rows = client.query_typed(&sql, &[]).await.map_err(|err| self.fault(&err))?;
        rows.first().and_then(|row| row.try_get(0).ok()).ok_or_else(fault::nonsense)
    }

    /// Whether all tables and functions are there that a relent makes.
    async fn check(&self, found: whose::Found) -> Result<(), Error> {
        if found.missing().is_none() {
            return Ok(());
        }
        // Somebody may have brought them up to date since they were looked at.
        match self.found().await?.missing() {
            None => Ok(()),
            Some(name) => {
                let what = format!("'{name}' of the store is gone, and the rest is there");
                Err(Error::new(ErrorKind::Corrupt, what).hint(
                    "restore it from a backup; or drop all that begins with the store's prefix, and the store is made anew, empty",
                ))
            }
        }
    }

    /// Makes the tables, or brings them to this version, if that may be; else there must be some of this version.
    async fn migrate(&self, is_made: bool) -> Result<(), Error> {
        let found = self.found().await?;
        let version = if found.has(&self.named("relent_meta")) { Some(self.version().await?) } else { None };
        match version {
            Some(VERSION) => self.check(found).await,
            Some(version) if version > VERSION => {
                let what = format!("the store has tables of version {version}, and this relent knows {VERSION}");
                Err(Error::new(ErrorKind::TooNew, what).hint("use the newer relent that made it"))
            }
            None if !is_made => Err(missing("there is no store in it: it has none of its tables")),
            Some(version) if !is_made => Err(too_old(version, VERSION)),
            from => {
                let from = from.and_then(|from| usize::try_from(from).ok()).unwrap_or(0);
                let schema = self.named(&STEPS[from.min(STEPS.len())..].concat());
                let client = self.client().await?;
                // One text is one transaction: all of it or nothing.
                client.batch_execute(&schema).await.map_err(|err| self.fault(&err))
            }
        }
    }
}
