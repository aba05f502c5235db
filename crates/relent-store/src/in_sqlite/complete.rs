//! An effect and its record in one transaction of the user's own.

use super::{names::Names, tx::Tx};
use crate::{Claim, Clock, Error, Kept, Stored, store::check_most};
use rusqlite::Transaction;
use std::{sync::LazyLock, time::Duration};

static NAMES: LazyLock<Names> = LazyLock::new(|| Names::new("relent_"));
static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::system);

/// Keeps what came of a claim for `keep` from now on, in the caller's transaction on the store's own file: the effects of the
/// claim and that they are done are committed together, or neither. Who dies between the two leaves no doubt.
///
/// The store has the tables' names that it has by default. Take an immediate transaction, and roll it back where this says
/// [`Kept::Fenced`]: the claim has passed to somebody else.
///
/// # Errors
///
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for more bytes than [`MAX_VALUE`](crate::MAX_VALUE);
/// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if the tables are not there; what SQLite says.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("shop.db");
/// use relent_store::{Claim, Kept, Key, Scope, Store, in_sqlite};
/// use rusqlite::{Connection, TransactionBehavior::Immediate};
/// use std::time::Duration;
///
/// let store = Store::new(in_sqlite::Sqlite::open(&path)?);
/// let shop = Connection::open(&path).unwrap();
/// shop.execute_batch("CREATE TABLE orders (item TEXT)").unwrap();
///
/// let (scope, key) = (Scope::new("orders")?, Key::new("7")?);
/// for _ in 0..2 {
///     let done = store.once(&scope, &key).run(async |effect| {
///         let mut shop = Connection::open(&path).unwrap();
///         let tx = shop.transaction_with_behavior(Immediate).unwrap();
///         tx.execute("INSERT INTO orders VALUES ('book')", []).unwrap();
///         let claim = Claim { scope: scope.clone(), key: key.clone(), fence: effect.fence };
///         match in_sqlite::complete(&tx, &claim, &"order 1".into(), Duration::from_secs(86_400)) {
///             Ok(Kept::Kept) => tx.commit().map_err(|err| err.to_string()).map(|()| "order 1"),
///             other => Err(format!("{other:?}")),
///         }
///     });
///     assert_eq!(done.await.unwrap().bytes(), b"order 1");
/// }
/// assert_eq!(shop.query_row("SELECT COUNT(*) FROM orders", [], |row| row.get::<_, u32>(0)).unwrap(), 1);
/// # Ok::<_, relent_store::Error>(())
/// # }).unwrap();
/// ```
pub fn complete(tx: &Transaction<'_>, claim: &Claim, stored: &Stored, keep: Duration) -> Result<Kept, Error> {
    check_most(stored.bytes())?;
    Tx { conn: tx, now: CLOCK.read(), fences: None }.complete(&NAMES, claim, stored, keep)
}
