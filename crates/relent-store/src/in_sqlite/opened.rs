//! A connection to the file, and whether that is still the file that its path names.
//!
//! A file that is deleted or replaced while it is open can be written to as before, and nobody would ever read it: what was
//! accepted would be lost. So it is looked at after each commit, before anybody is told. Where it is gone, what is at its path
//! then is opened; where nothing is, nothing is made, because an empty store would say of everything that it never happened.

use super::{Durability, SqliteSettings, bounds, fault, file, schema};
use crate::{Error, ErrorKind};
use rusqlite::{Connection, OpenFlags};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// A connection, how it was made, and to which file.
pub(super) struct Opened {
    pub(super) conn: Connection,
    settings: SqliteSettings,
    path: PathBuf,
    id: Option<file::Id>,
    is_gone: bool,
}

impl Opened {
    /// Opens the file, or makes it; whether its group can write to it.
    pub(super) fn new(settings: SqliteSettings, path: &Path) -> Result<(Opened, bool), Error> {
        let is_of_group = file::prepare(path, settings.any_owner)?;
        // A relative path names another file when the process goes to another folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let conn = connect(&settings, &path)?;
        let id = file::id(&path);
        Ok((Opened { conn, settings, path, id, is_gone: false }, is_of_group))
    }

    /// Another connection to a file that is there already, for reading alone.
    pub(super) fn reading(settings: SqliteSettings, path: &Path) -> Result<Opened, Error> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        file::look(&path, settings.any_owner)?;
        let conn = connect(&settings, &path)?;
        conn.pragma_update(None, "query_only", true).map_err(fault::of)?;
        conn.busy_timeout(Duration::ZERO).map_err(fault::of)?;
        let id = file::id(&path);
        Ok(Opened { conn, settings, path, id, is_gone: false })
    }

    /// Whether what was written is where its path says. What is not, is not accepted.
    ///
    /// # Errors
    ///
    /// It is not.
    pub(super) fn is_there(&mut self) -> Result<(), Error> {
        if self.id.is_none() || file::id(&self.path) == self.id {
            return Ok(());
        }
        self.is_gone = true;
        Err(file::gone(&self.path).maybe_happened())
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Opens what is there now, if the file was gone. Makes nothing. Whether the connection is another.
    pub(super) fn again(&mut self) -> Result<bool, Error> {
        if !self.is_gone {
            return Ok(false);
        }
        if file::id(&self.path).is_none() {
            return Err(file::gone(&self.path));
        }
        file::look(&self.path, self.settings.any_owner)?;
        self.conn = connect(&self.settings, &self.path)?;
        (self.id, self.is_gone) = (file::id(&self.path), false);
        Ok(true)
    }
}

fn connect(settings: &SqliteSettings, path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(fault::of)?;
    // While it is set up, the default is good enough; then the writer has its own way to wait.
    conn.busy_timeout(Duration::from_secs(5)).map_err(fault::of)?;
    bounds::set(&mut conn)?;
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(fault::of)?;
    if mode != "wal" {
        let what = format!("the file's journal is '{mode}', and cannot be made a write-ahead log");
        return Err(Error::new(ErrorKind::Unsupported, what).hint("is it on a network file system?"));
    }
    let synchronous = if settings.durability == Durability::Machine { "FULL" } else { "NORMAL" };
    conn.pragma_update(None, "synchronous", synchronous).map_err(fault::of)?;
    conn.set_prepared_statement_cache_capacity(64);
    schema::migrate(&mut conn, &settings.prefix)?;
    bounds::end();
    Ok(conn)
}
