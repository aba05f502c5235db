//! Effects and "seen" in one transaction of the user's own.

use super::{fault, rows::signed, schema};
use crate::{Clock, Error, Key, Nonce, Scope, time::millis};
use rusqlite::{OptionalExtension, Transaction, params};
use std::time::Duration;

/// Makes relent's tables in the user's own database, if they are not there, with names that begin with `relent_`. For
/// [`first_time`], which wants them beside the tables that it protects.
///
/// # Errors
///
/// As [`SqliteSettings::open`](super::SqliteSettings::open).
pub fn prepare(connection: &mut rusqlite::Connection) -> Result<(), Error> {
    schema::migrate(connection, "relent_")
}

/// Whether a message is seen for the first time within `keep`: a row in relent's table, in the caller's transaction, so that
/// the message's effects and that it was seen are committed together, or neither.
///
/// Take an immediate transaction: one that reads before it writes can fail where another writes meanwhile.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if the tables are not there (see [`prepare`]); what SQLite says.
///
/// ```
/// use relent_store::{Key, Scope, in_sqlite};
/// use rusqlite::{Connection, TransactionBehavior::Immediate};
/// use std::time::Duration;
///
/// let mut shop = Connection::open_in_memory()?;
/// shop.execute_batch("CREATE TABLE orders (item TEXT)")?;
/// in_sqlite::prepare(&mut shop)?;
///
/// let (scope, message) = (Scope::new("orders")?, Key::new("message-7")?);
/// for _ in 0..3 {
///     let tx = shop.transaction_with_behavior(Immediate)?;
///     if in_sqlite::first_time(&tx, &scope, &message, Duration::from_secs(7 * 86_400))? {
///         tx.execute("INSERT INTO orders VALUES ('book')", [])?;
///     }
///     tx.commit()?;
/// }
/// assert_eq!(shop.query_row("SELECT COUNT(*) FROM orders", [], |row| row.get::<_, u32>(0))?, 1);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn first_time(tx: &Transaction<'_>, scope: &Scope, key: &Key, keep: Duration) -> Result<bool, Error> {
    let now = Clock::wall().0;
    // What ends after its time because the clock leapt back is as old as it says.
    let sql = "INSERT INTO relent_seen (scope, key, nonce, from_ms, expires) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (scope, key) DO UPDATE SET nonce = excluded.nonce, from_ms = excluded.from_ms, expires = excluded.expires
        WHERE relent_seen.expires <= excluded.from_ms RETURNING 1";
    let row = params![
        scope.as_bytes(),
        key.as_bytes(),
        Nonce::random().0,
        signed(now),
        signed(now.saturating_add(millis(keep)))
    ];
    let first = tx.prepare_cached(sql).and_then(|mut sql| sql.query_row(row, |_| Ok(())).optional());
    first.map(|first| first.is_some()).map_err(fault::of)
}

/// Forgets all of a scope but its last `most`, at most `batch` of them: retention by number. How many went.
///
/// # Errors
///
/// What SQLite says.
pub fn keep_last(tx: &Transaction<'_>, scope: &Scope, most: u32, batch: u32) -> Result<usize, Error> {
    let sql = "DELETE FROM relent_seen WHERE (scope, key) IN (SELECT scope, key FROM relent_seen WHERE scope = ?
        ORDER BY from_ms DESC, key DESC LIMIT ? OFFSET ?)";
    let gone = tx.prepare_cached(sql).and_then(|mut sql| sql.execute(params![scope.as_bytes(), batch, most]));
    gone.map_err(fault::of)
}
