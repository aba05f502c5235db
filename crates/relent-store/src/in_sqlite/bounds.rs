//! How much work and memory a file can make SQLite take, whoever wrote it.
//!
//! A database holds more than rows: views, triggers, foreign keys and expressions run when it is read or written, and a value can say that
//! it has a gigabyte. So nothing of the kind is run, values have a limit, and every operation has a time after which it is
//! interrupted.

use super::fault;
use crate::{Error, MAX_VALUE};
use rusqlite::{Connection, config::DbConfig, limits::Limit};
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// After how many steps of SQLite's machine the time is looked at: a few microseconds, but a step that reads what somebody else wrote can take
/// ten milliseconds.
const STEPS: i32 = 100;

/// The longest text of a table or a view, in bytes: no step is counted while SQLite takes it apart, which makes a hundred bytes of one.
const LONGEST_TEXT: i32 = 1 << 16;

/// The largest row of what a file says of its tables.
const LARGEST_NAME: i32 = 1 << 20;

/// What one operation may take on the thread of the writer.
pub(super) const OPERATION: Duration = Duration::from_millis(if cfg!(test) { 500 } else { 2000 });

/// What one operation may take on the thread of whoever asked, whose timers stand still meanwhile.
pub(super) const HERE: Duration = Duration::from_millis(20);

/// What opening may take.
const OPENING: Duration = Duration::from_secs(5);

thread_local! {
    /// When what this thread does in SQLite is interrupted; `None` is never.
    static ENDS: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets the bounds, and begins the time that opening may take.
pub(super) fn set(conn: &mut Connection) -> Result<(), Error> {
    use DbConfig::*;
    use Limit::*;
    for (setting, value) in [
        (SQLITE_DBCONFIG_DEFENSIVE, true),
        (SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        (SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (SQLITE_DBCONFIG_ENABLE_FKEY, false),
        (SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (SQLITE_DBCONFIG_DQS_DDL, false),
        (SQLITE_DBCONFIG_DQS_DML, false),
    ] {
        conn.set_db_config(setting, value).map_err(fault::of)?;
    }
    for (limit, most) in [
        (SQLITE_LIMIT_LENGTH, LARGEST_NAME),
        (SQLITE_LIMIT_SQL_LENGTH, LONGEST_TEXT),
        (SQLITE_LIMIT_VDBE_OP, 20_000),
        (SQLITE_LIMIT_ATTACHED, 0),
        (SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        conn.set_limit(limit, most).map_err(fault::of)?;
    }
    begin(OPENING);
    conn.progress_handler(STEPS, Some(is_over)).map_err(fault::of)?;
    // A page that lies about its cells is seen when it is read.
    conn.pragma_update(None, "cell_size_check", true).map_err(fault::of)?;
    conn.pragma_update(None, "mmap_size", 0).map_err(fault::of)
}

/// The file's tables were looked at, and are ours: from now on values are read.
pub(super) fn opened(conn: &Connection) -> Result<(), Error> {
    // A row is a value, its keys, and some numbers.
    let row = i32::try_from(MAX_VALUE + 65_536).unwrap_or(i32::MAX);
    conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, row).map_err(fault::of)?;
    end();
    Ok(())
}

/// See [`bound_memory`](super::bound_memory).
pub(super) fn memory(most: u64) -> Result<(), Error> {
    let conn = Connection::open_in_memory().map_err(fault::of)?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    conn.query_row(&format!("PRAGMA hard_heap_limit = {most}"), [], |_| Ok(())).map_err(fault::of)
}

/// What begins on this thread is interrupted after so long.
pub(super) fn begin(most: Duration) {
    ENDS.set(Some(Instant::now() + most));
}

/// What this thread does now is not interrupted any more.
pub(super) fn end() {
    ENDS.set(None);
}

/// Whether the time is over that was given to what this thread does.
pub(super) fn is_over() -> bool {
    ENDS.get().is_some_and(|end| Instant::now() >= end)
}
