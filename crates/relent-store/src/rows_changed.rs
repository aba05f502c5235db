//! Versions in the user's own tables.

use crate::update::Conflict;
use relent::Failure;

/// What the number of rows means that `UPDATE .. SET .., version = version + 1 WHERE id = ? AND version = ?` changed: none is a
/// [`Conflict`], which is transient, for somebody else was quicker; so the loop around it reads again, after a delay with
/// jitter.
///
/// More than one row is no conflict but a `WHERE` that names more than one thing: that is not judged here.
///
/// # Errors
///
/// [`Conflict`] if no row was changed.
///
/// ```
/// use relent::{Failure, Policy};
/// use relent_store::rows_changed;
/// use rusqlite::Connection;
/// use std::time::Duration;
///
/// let db = Connection::open_in_memory().unwrap();
/// db.execute_batch("CREATE TABLE stock (item TEXT, n INTEGER, version INTEGER); INSERT INTO stock VALUES ('book', 3, 1)").unwrap();
/// const CONFLICT: Policy = Policy::exponential(Duration::from_millis(1)).cap(Duration::from_millis(50)).max_attempts(20);
///
/// CONFLICT
///     .when(Failure::verdict)
///     .retry_blocking(|attempt| {
///         let read = "SELECT n, version FROM stock WHERE item = 'book'";
///         let (n, version): (i64, i64) = db.query_row(read, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
///         if attempt.number() == 1 {
///             db.execute("UPDATE stock SET version = version + 1", []).unwrap(); // Somebody else is quicker.
///         }
///         let sql = "UPDATE stock SET n = ?, version = version + 1 WHERE item = 'book' AND version = ?";
///         rows_changed(db.execute(sql, (n - 1, version)).unwrap() as u64)
///     })
///     .unwrap();
/// assert_eq!(db.query_row("SELECT n FROM stock", [], |row| row.get::<_, i64>(0)).unwrap(), 2);
/// ```
pub fn rows_changed(rows: u64) -> Result<(), Failure<Conflict>> {
    if rows == 0 { Err(Failure::transient(Conflict)) } else { Ok(()) }
}
