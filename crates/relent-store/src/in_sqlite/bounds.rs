//! How much work and memory a file can make SQLite take, whoever wrote it.
//!
//! A database holds more than rows: views, triggers and expressions run when it is read or written, and a value can say that
//! it has a gigabyte. So nothing of the kind is run, values have a limit, and every operation has a time after which it is
//! interrupted.

use super::fault;
use crate::{Error, MAX_VALUE};
use rusqlite::{Connection, config::DbConfig, limits::Limit};
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// After how many steps of SQLite's machine the time is looked at: a tenth of a millisecond or so.
const STEPS: i32 = 10_000;

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
        (SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (SQLITE_DBCONFIG_DQS_DDL, false),
        (SQLITE_DBCONFIG_DQS_DML, false),
    ] {
        conn.set_db_config(setting, value).map_err(fault::of)?;
    }
    // A row is a value, its keys, and some numbers.
    let row = i32::try_from(MAX_VALUE + 65_536).unwrap_or(i32::MAX);
    for (limit, most) in [
        (SQLITE_LIMIT_LENGTH, row),
        (SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
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
