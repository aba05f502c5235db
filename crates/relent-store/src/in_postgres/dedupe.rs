//! Effects and "seen" in one transaction of the user's own.

use super::fault;
use crate::{Error, Key, Nonce, Scope, time::millis};
use std::time::Duration;
use tokio_postgres::{Transaction, types::Type};

/// The statement behind [`first_time`], for every other client: true where the message is seen for the first time. `$1` is the
/// scope and `$2` the key (`bytea`), `$3` any sixteen bytes that nobody else has (`bytea`), `$4` for how many milliseconds it
/// is remembered (`bigint`).
pub const FIRST_TIME: &str = "SELECT relent_first_time($1, $2, $3, $4)";

/// Whether a message is seen for the first time within `keep`: a row in relent's table, in the caller's transaction, so that
/// the message's effects and that it was seen are committed together, or neither. A second one waits until the first has
/// committed or rolled back.
///
/// The tables are made by opening the store once on the same database, with the prefix `relent_`.
///
/// # Errors
///
/// What the server says; the transaction is then at its end.
///
/// ```no_run
/// # async fn doc(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use relent_store::{Key, Scope, in_postgres};
/// use std::time::Duration;
///
/// let tx = client.transaction().await?;
/// let (scope, message) = (Scope::new("orders")?, Key::new("message-7")?);
/// if in_postgres::first_time(&tx, &scope, &message, Duration::from_secs(7 * 86_400)).await? {
///     tx.execute("INSERT INTO orders VALUES ('book')", &[]).await?;
/// }
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
pub async fn first_time(tx: &Transaction<'_>, scope: &Scope, key: &Key, keep: Duration) -> Result<bool, Error> {
    let (scope, key, nonce) = (scope.as_bytes(), key.as_bytes(), Nonce::random().0);
    let (nonce, keep) = (&nonce[..], i64::try_from(millis(keep)).unwrap_or(i64::MAX));
    let rows = tx
        .query_typed(
            FIRST_TIME,
            &[(&scope, Type::BYTEA), (&key, Type::BYTEA), (&nonce, Type::BYTEA), (&keep, Type::INT8)],
        )
        .await
        .map_err(|err| fault::of(&err))?;
    rows.first().and_then(|row| row.try_get(0).ok()).ok_or_else(fault::nonsense)
}

/// Forgets all of a scope but its last `most`, at most `batch` of them: retention by number. How many went.
///
/// # Errors
///
/// What the server says; the transaction is then at its end.
pub async fn keep_last(tx: &Transaction<'_>, scope: &Scope, most: u32, batch: u32) -> Result<u64, Error> {
    let sql = "WITH old AS (SELECT ctid FROM relent_seen WHERE scope = $1 ORDER BY from_ms DESC, key DESC
        LIMIT $2 OFFSET $3 FOR UPDATE SKIP LOCKED), gone AS (DELETE FROM relent_seen s USING old WHERE s.ctid = old.ctid
        RETURNING 1) SELECT count(*) FROM gone";
    let (scope, batch, most) = (scope.as_bytes(), i64::from(batch), i64::from(most));
    let rows = tx.query_typed(sql, &[(&scope, Type::BYTEA), (&batch, Type::INT8), (&most, Type::INT8)]).await;
    let rows = rows.map_err(|err| fault::of(&err))?;
    let gone: i64 = rows.first().and_then(|row| row.try_get(0).ok()).ok_or_else(fault::nonsense)?;
    Ok(u64::try_from(gone).unwrap_or(0))
}
