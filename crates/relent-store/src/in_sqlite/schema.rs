//! The tables, and how older ones become these.

use super::fault;
use crate::{Error, ErrorKind};
use rusqlite::Connection;

/// What each version adds to the one before; the first to an empty file. Only ever added to.
const STEPS: &[&str] = &["
CREATE TABLE relent_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO relent_meta VALUES ('version', 0), ('fence', 0);
CREATE TABLE relent_once (
    scope BLOB NOT NULL, key BLOB NOT NULL, fingerprint BLOB NOT NULL, fence INTEGER NOT NULL, nonce BLOB NOT NULL,
    since INTEGER NOT NULL, from_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL, expires INTEGER NOT NULL,
    unknown INTEGER, failed INTEGER, value BLOB,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX relent_once_expires ON relent_once (expires);
CREATE TABLE relent_lease (
    name BLOB PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL, nonce BLOB NOT NULL,
    from_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE relent_value (
    key BLOB PRIMARY KEY, version INTEGER NOT NULL, nonce BLOB NOT NULL, written INTEGER NOT NULL, value BLOB
) WITHOUT ROWID;
CREATE TABLE relent_seen (
    scope BLOB NOT NULL, key BLOB NOT NULL, nonce BLOB NOT NULL, from_ms INTEGER NOT NULL, expires INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX relent_seen_expires ON relent_seen (expires);
CREATE INDEX relent_seen_order ON relent_seen (scope, from_ms);
CREATE TABLE relent_upstream (name BLOB PRIMARY KEY, run INTEGER NOT NULL, held INTEGER) WITHOUT ROWID;
CREATE TABLE relent_upstream_second (
    name BLOB NOT NULL, second INTEGER NOT NULL, calls INTEGER NOT NULL, retries INTEGER NOT NULL,
    successes INTEGER NOT NULL, failures INTEGER NOT NULL,
    PRIMARY KEY (name, second)
) WITHOUT ROWID;
CREATE TABLE relent_upstream_process (
    name BLOB NOT NULL, process BLOB NOT NULL, seq INTEGER NOT NULL, seen INTEGER NOT NULL, is_open INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    PRIMARY KEY (name, process)
) WITHOUT ROWID;
"];

/// The version that this build makes and reads.
pub(super) const VERSION: u32 = STEPS.len() as u32;

/// Texts with the prefix that was chosen in place of `relent_`.
pub(super) fn named(sql: &str, prefix: &str) -> String {
    sql.replace("relent_", prefix)
}

/// Makes the tables, or brings them to this version. The caller has locked the file for writing if there is something to do.
pub(super) fn migrate(conn: &mut Connection, prefix: &str) -> Result<(), Error> {
    if version(conn, prefix)? == Some(VERSION) {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(fault::of)?;
    // Somebody else may have done it meanwhile.
    let from = version(&tx, prefix)?.unwrap_or(0);
    if from > VERSION {
        let what = format!("the store has tables of version {from}, and this relent knows {VERSION}");
        return Err(Error::new(ErrorKind::TooNew, what).hint("use the newer relent that made it"));
    }
    for step in &STEPS[from as usize..] {
        tx.execute_batch(&named(step, prefix)).map_err(fault::of)?;
    }
    tx.execute(&named("UPDATE relent_meta SET value = ? WHERE name = 'version'", prefix), [VERSION])
        .map_err(fault::of)?;
    tx.commit().map_err(fault::of)
}

/// The version of the tables; `None` where there are none.
pub(super) fn version(conn: &Connection, prefix: &str) -> Result<Option<u32>, Error> {
    let table = named("relent_meta", prefix);
    let there = "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = ?";
    let there: u32 = conn.query_row(there, [&table], |row| row.get(0)).map_err(fault::of)?;
    if there == 0 {
        return Ok(None);
    }
    let sql = named("SELECT value FROM relent_meta WHERE name = 'version'", prefix);
    let version = conn.query_row(&sql, [], |row| row.get(0)).map_err(fault::of)?;
    Ok(Some(version))
}
