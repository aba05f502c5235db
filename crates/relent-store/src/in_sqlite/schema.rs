//! The tables, and how older ones become these.

use super::fault;
use crate::{
    Error, ErrorKind,
    settings::{missing, too_old},
};
use rusqlite::Connection;

/// What each version adds to the one before; the first to an empty file. Only ever added to.
pub(super) const STEPS: &[&str] = &[
    "
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
",
    "
CREATE TABLE relent_upstream_rate (
    name BLOB PRIMARY KEY, gap INTEGER NOT NULL, burst INTEGER NOT NULL, owed INTEGER NOT NULL, at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE relent_upstream_permits (
    name BLOB NOT NULL, second INTEGER NOT NULL, permits INTEGER NOT NULL,
    PRIMARY KEY (name, second)
) WITHOUT ROWID;
",
    "
ALTER TABLE relent_once ADD COLUMN ends INTEGER;
",
    "
ALTER TABLE relent_upstream_process ADD COLUMN reserves INTEGER NOT NULL DEFAULT 0;
",
];

/// The version that this build makes and reads.
pub(super) const VERSION: u32 = STEPS.len() as u32;

/// Texts with the prefix that was chosen in place of `relent_`.
pub(super) fn named(sql: &str, prefix: &str) -> String {
    sql.replace("relent_", prefix)
}

/// Makes the tables, or brings them to this version. The caller has locked the file for writing if there is something to do.
/// What has their names and was not made by a relent is refused.
pub(super) fn migrate(conn: &mut Connection, prefix: &str) -> Result<(), Error> {
    let made = made(prefix)?;
    if version(conn, prefix, &made)? != Some(VERSION) {
        let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(fault::of)?;
        // Somebody else may have done it meanwhile.
        let from = version(&tx, prefix, &made)?.unwrap_or(0);
        if from > VERSION {
            let what = format!("the store has tables of version {from}, and this relent knows {VERSION}");
            return Err(Error::new(ErrorKind::TooNew, what).hint("use the newer relent that made it"));
        }
        if from == 0
            && let Some(stranger) = there(&tx, &made)?.first()
        {
            return Err(strange(stranger));
        }
        for step in &STEPS[from as usize..] {
            tx.execute_batch(&named(step, prefix)).map_err(fault::of)?;
        }
        tx.execute(&named("UPDATE relent_meta SET value = ? WHERE name = 'version'", prefix), [VERSION])
            .map_err(fault::of)?;
        tx.commit().map_err(fault::of)?;
    }
    check(conn, &made)
}

/// Whether there is a store of this version or a newer one. Changes nothing.
///
/// # Errors
///
/// There is none, or an older one.
pub(super) fn must_be_there(conn: &Connection, prefix: &str) -> Result<(), Error> {
    match version(conn, prefix, &made(prefix)?)? {
        None => Err(missing("there is no store in it: it has none of its tables")),
        Some(version) if version < VERSION => Err(too_old(version, VERSION)),
        Some(_) => Ok(()),
    }
}

/// Whether the database has tables of others, and none of ours. What SQLite makes by itself is nobody's. Asked in one statement:
/// between two, somebody may make ours.
pub(super) fn is_of_others(conn: &Connection, prefix: &str) -> Result<bool, Error> {
    let any = "EXISTS (SELECT 1 FROM sqlite_schema WHERE name";
    let sql = format!("SELECT NOT {any} = ? COLLATE NOCASE) AND {any} NOT LIKE 'sqlite\\_%' ESCAPE '\\')");
    conn.query_row(&sql, [named("relent_meta", prefix)], |row| row.get(0)).map_err(fault::of)
}

/// A table, index, view or trigger, as a database describes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thing {
    kind: String,
    name: String,
    table: String,
    /// As it was written; nothing for what SQLite makes by itself.
    sql: Option<String>,
}

/// What somebody else wrote may be long.
const THINGS: &str = "SELECT substr(type, 1, 64), substr(name, 1, 256), substr(tbl_name, 1, 256), substr(sql, 1, 4096) FROM sqlite_schema";

fn thing(row: &rusqlite::Row<'_>) -> rusqlite::Result<Thing> {
    Ok(Thing { kind: row.get(0)?, name: row.get(1)?, table: row.get(2)?, sql: row.get(3)? })
}

/// What a relent makes, in the words of SQLite.
fn made(prefix: &str) -> Result<Vec<Thing>, Error> {
    let empty = Connection::open_in_memory().map_err(fault::of)?;
    for step in STEPS {
        empty.execute_batch(&named(step, prefix)).map_err(fault::of)?;
    }
    let mut sql = empty.prepare(THINGS).map_err(fault::of)?;
    let mut made: Vec<Thing> =
        sql.query_map([], thing).and_then(|rows| rows.collect::<Result<_, _>>()).map_err(fault::of)?;
    made.sort();
    Ok(made)
}

/// What in this database has one of those names, or belongs to one of those tables. SQLite's names know no case.
fn there(conn: &Connection, made: &[Thing]) -> Result<Vec<Thing>, Error> {
    let mut sql = conn
        .prepare(&format!("{THINGS} WHERE name = ?1 COLLATE NOCASE OR tbl_name = ?1 COLLATE NOCASE LIMIT 50"))
        .map_err(fault::of)?;
    let mut there = vec![];
    for name in made.iter().map(|thing| &thing.name) {
        let rows = sql.query_map([name], thing).and_then(|rows| rows.collect::<Result<Vec<_>, _>>());
        there.extend(rows.map_err(fault::of)?);
    }
    there.sort();
    there.dedup();
    Ok(there)
}

/// Whether the database has what a relent makes, and nothing besides that would be run with it.
fn check(conn: &Connection, made: &[Thing]) -> Result<(), Error> {
    let there = there(conn, made)?;
    if let Some(stranger) = there.iter().find(|thing| !made.contains(thing)) {
        return Err(strange(stranger));
    }
    if let Some(missing) = made.iter().find(|thing| !there.contains(thing)) {
        return Err(fault::corrupt(&format!("the {} '{}' of the store is gone", missing.kind, missing.name)));
    }
    Ok(())
}

fn strange(thing: &Thing) -> Error {
    let Thing { kind, name, table, .. } = thing;
    let of = if name == table { String::new() } else { format!(" of '{}'", short(table)) };
    let a = if kind == "index" { "an" } else { "a" };
    let what = format!("the file has {a} {} '{}'{of} that no relent made", short(kind), short(name));
    Error::new(ErrorKind::Corrupt, what).hint("name another file, or other tables by `?prefix=`")
}

/// A name of somebody else's, as a part of a line.
fn short(name: &str) -> String {
    let end = if name.chars().nth(64).is_some() { "..." } else { "" };
    name.chars().take(64).flat_map(char::escape_debug).chain(end.chars()).collect()
}

/// The version of the tables; `None` where there are none.
fn version(conn: &Connection, prefix: &str, made: &[Thing]) -> Result<Option<u32>, Error> {
    let meta = named("relent_meta", prefix);
    let Some(meta) = made.iter().find(|thing| thing.name == meta) else { return Ok(None) };
    let mut there = there(conn, std::slice::from_ref(meta))?;
    match there.pop() {
        None => Ok(None),
        // It is the same in all versions.
        Some(thing) if thing == *meta && there.is_empty() => {
            let sql = named("SELECT value FROM relent_meta WHERE name = 'version'", prefix);
            conn.query_row(&sql, [], |row| row.get(0)).map(Some).map_err(fault::of)
        }
        Some(stranger) => Err(strange(&stranger)),
    }
}
